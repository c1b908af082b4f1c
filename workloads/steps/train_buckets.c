/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/train.h"

/* Adds a unit to the open bucket of its kind, or opens one. */
static enum cct_status add_unit(struct cct_train *t, const struct cct_unit *unit, double limit, int open[2]) {
  enum cct_status status = cct_grow((void **)&t->units, &t->capacity_units, (size_t)t->n_units + 1, sizeof *t->units);
  if (!status)
    status = cct_grow((void **)&t->buckets, &t->capacity_buckets, (size_t)t->n_buckets + 1, sizeof *t->buckets);
  if (status)
    return status;
  int *at = &open[unit->is_expert];
  if (*at < 0) {
    *at = t->n_buckets++;
    t->buckets[*at] = (struct cct_bucket){.is_expert = unit->is_expert, .gather = -1};
  }
  struct cct_bucket *bucket = &t->buckets[*at];
  t->units[t->n_units] = *unit;
  t->units[t->n_units].bucket = *at;
  bucket->parameters += unit->parameters;
  bucket->last = t->n_units++;
  if (bucket->parameters * t->grad_bytes >= limit)
    *at = -1;
  return CCT_OK;
}

struct layer_units {
  struct cct_unit units[CCT_MAX_LINEARS + 6];
  int n;
  double shared; /* parameters in units so far that are no experts */
};

static void put(struct layer_units *list, int layer, int block, double parameters, int is_expert) {
  list->units[list->n++] =
      (struct cct_unit){.parameters = parameters, .is_expert = is_expert, .layer = layer, .block = block};
  list->shared += is_expert ? 0 : parameters;
}

static void put_linears(const struct cct_emit *e, int layer, int is_after, struct layer_units *list) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  for (int i = kind->n_linears - 1; i >= 0; i--) {
    int64_t n, k, groups;
    if (kind->linears[i].is_after != is_after || kind->linears[i].form == CCT_FORM_DECODE)
      continue;
    cct_linear_share(kind, &kind->linears[i], e->layout.tp, &n, &k, &groups);
    put(list, layer, 0, (double)n * (double)k * (double)groups, 0);
  }
}

/* As cct_emit_layer_backward completes them; the norms' gradients come with the last. */
static void list_layer(const struct cct_emit *e, int layer, struct layer_units *list) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  double hidden = (double)e->model->hidden;
  int64_t expert_tp = e->layout.ep > 1 ? 1 : e->layout.tp;
  struct cct_parameters p;
  cct_parameters_of_layer(e->model, &e->layout, layer, &p);
  *list = (struct layer_units){0};
  if (kind->experts) {
    double shared = hidden * (double)cct_share(kind->shared_ffn, expert_tp);
    for (int i = 1; kind->shared_ffn && i <= 2; i++)
      put(list, layer, 1, i * shared, 0);
    for (int i = 1; i <= 2; i++)
      put(list, layer, 1, i * p.experts / 3, 1);
    put(list, layer, 1, (double)kind->experts * hidden, 0);
  } else {
    for (int i = 1; i <= 2; i++)
      put(list, layer, 1, i * hidden * (double)cct_share(kind->ffn, e->layout.tp), 0);
  }
  put_linears(e, layer, 1, list);
  put_linears(e, layer, 0, list);
  list->units[list->n - 1].parameters += fmax(0, p.matrices + p.small - list->shared);
}

static enum cct_status list_units(struct cct_train *t, double limit) {
  const struct cct_model *model = t->e->model;
  double rows = (double)cct_share(model->vocab, t->e->layout.tp) * (double)model->hidden;
  struct cct_unit outer = {.parameters = rows, .layer = -1, .block = 1}; /* the head */
  struct layer_units list;
  int open[2] = {-1, -1};
  enum cct_status status = model->is_tied ? CCT_OK : add_unit(t, &outer, limit, open);
  for (int layer = model->n_layers - 1; !status && layer >= 0; layer--) {
    list_layer(t->e, layer, &list);
    for (int i = 0; !status && i < list.n; i++)
      status = add_unit(t, &list.units[i], limit, open);
  }
  outer.parameters += (double)model->hidden; /* the embedding, and with it the final norm */
  outer.block = 0;
  return status ? status : add_unit(t, &outer, limit, open);
}

enum cct_status cct_train_plan(struct cct_train *t) {
  const struct cct_options *cell = t->e->cell;
  struct cct_emit *e = t->e;
  double limit = fmax(40e6, 1e6 * (double)e->layout.dp) * t->grad_bytes, shared = 0, experts = 0;
  if (cell->v[CCT_OPT_BUCKET_BYTES].has_value)
    limit = (double)cell->v[CCT_OPT_BUCKET_BYTES].i;
  enum cct_status status = list_units(t, t->is_overlapped ? limit : INFINITY);
  for (int b = 0; !status && b < t->n_buckets; b++) {
    struct cct_bucket *bucket = &t->buckets[b];
    char name[40];
    *(bucket->is_expert ? &experts : &shared) += bucket->parameters;
    bucket->buffer =
        cct_program_add_buffer(e->program, cct_layer_name(name, b, "gradients"),
                               cct_constant((int64_t)(t->grad_bytes * bucket->parameters)), CCT_MEM_DEVICE, 0);
  }
  t->owned = t->is_zero1 ? shared / (double)e->layout.dp + experts / (double)cct_expert_replicas(&e->layout)
                         : shared + experts;
  t->optimizer =
      cct_program_add_buffer(e->program, "optimizer", cct_constant((int64_t)(12 * t->owned)), CCT_MEM_DEVICE, 0);
  return status;
}

void cct_train_free(struct cct_train *t) {
  free(t->units);
  free(t->buckets);
}

static int group_of(const struct cct_train *t, const struct cct_bucket *bucket) {
  return bucket->is_expert ? t->e->g_expert_dp : t->e->g_dp;
}

/* A collective over the replicas, on `lane`. */
static int add_collective(struct cct_train *t, const char *name, enum cct_collective kind,
                          const struct cct_bucket *bucket, int buffer, enum cct_type type, int lane,
                          const struct cct_wait *wait) {
  struct cct_emit *e = t->e;
  struct cct_op op = {.kind = CCT_OP_COLLECTIVE,
                      .name = name,
                      .lane = lane,
                      .host = e->graph >= 0 ? -1 : e->host,
                      .reads = {buffer, -1},
                      .writes = buffer};
  op.collective.kind = kind;
  op.collective.group = group_of(t, bucket);
  op.collective.bytes = cct_constant((int64_t)(bucket->parameters * cct_type_bits(type) / 8));
  op.collective.type = type;
  op.collective.matrix = -1;
  return cct_program_add(e->program, &op, wait, wait != NULL);
}

static void reduce(struct cct_train *t, int b, int lane) {
  const struct cct_bucket *bucket = &t->buckets[b];
  struct cct_wait made = {cct_emit_last(t->e), 0};
  char name[40];
  if (group_of(t, bucket) >= 0)
    (void)add_collective(t, cct_layer_name(name, b, bucket->is_expert ? "expert_gradients" : "gradients"),
                         t->is_zero1 ? CCT_COLL_REDUCE_SCATTER : CCT_COLL_ALL_REDUCE, bucket, bucket->buffer,
                         t->grad_type, lane, lane == t->e->compute ? NULL : &made);
}

void cct_train_complete(void *context) {
  struct cct_train *t = context;
  if (t->e->program->is_failed || t->next >= t->n_units)
    return;
  int b = t->units[t->next].bucket;
  if (t->is_last && t->is_overlapped && t->buckets[b].last == t->next)
    reduce(t, b, t->e->comm);
  t->next++;
  if (t->next < t->n_units)
    t->e->layer_gradient = t->buckets[t->units[t->next].bucket].buffer;
}

void cct_train_reduce_rest(struct cct_train *t) {
  for (int b = 0; !t->is_overlapped && b < t->n_buckets; b++)
    reduce(t, b, t->e->compute);
}

/* In the order in which the forward pass needs them: that of the last unit of each, from behind. In a graph they are
 * roots, and start with it; outside they wait for the update of the step before. */
void cct_train_gather_early(struct cct_train *t) {
  struct cct_emit *e = t->e;
  char name[40];
  t->gathered_after = -1;
  for (int u = t->n_units - 1; u >= 0; u--) {
    struct cct_bucket *bucket = &t->buckets[t->units[u].bucket];
    struct cct_wait updated = {0, 1};
    int is_first = t->gathered_after < 0 && e->graph < 0;
    if (bucket->last != u || group_of(t, bucket) < 0)
      continue;
    bucket->gather =
        add_collective(t, cct_layer_name(name, t->units[u].bucket, bucket->is_expert ? "expert_weights" : "weights"),
                       CCT_COLL_ALL_GATHER, bucket, t->optimizer, CCT_TYPE_BF16, e->comm, is_first ? &updated : NULL);
    if (is_first && !e->program->is_failed)
      t->gathered_after = e->program->ops[bucket->gather].first_wait;
  }
}

void cct_train_await_weights(struct cct_train *t, int layer, int block) {
  int latest = -1; /* they share a lane: the last of those that the block needs is enough */
  for (int u = 0; u < t->n_units; u++) {
    const struct cct_unit *unit = &t->units[u];
    int gather = t->buckets[unit->bucket].gather;
    if (unit->layer == layer && unit->block == block && gather > latest)
      latest = gather;
  }
  if (latest > t->awaited)
    t->awaited = t->e->pending = latest;
}

void cct_train_gather_late(struct cct_train *t) {
  double parameters[2] = {0, 0};
  for (int b = 0; b < t->n_buckets; b++)
    parameters[t->buckets[b].is_expert] += t->buckets[b].parameters;
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    struct cct_bucket all = {.parameters = parameters[is_expert], .is_expert = is_expert};
    if (all.parameters > 0 && group_of(t, &all) >= 0)
      (void)add_collective(t, is_expert ? "expert_weights" : "weights", CCT_COLL_ALL_GATHER, &all, t->optimizer,
                           CCT_TYPE_BF16, t->e->compute, NULL);
  }
}
