/* SPDX-License-Identifier: Apache-2.0
 * Plans of bindings, kept for sequences. What the host plans of a step follows from few values: which cases it has,
 * rows of products, bytes of collectives and messages, traffic matrices, and whether attention is bound by its
 * arithmetic. Kernels that stream read their bytes on the device, copies outside graphs take theirs when they are
 * enqueued. So the steps of a decode in one graph have one plan, and binding one costs finding it. */
#include <stdlib.h>
#include <string.h>

#include "workloads/backends/cuda/cuda_room.h"

#define MOST_BYTES ((size_t)64 << 20) /* of all plans together */
#define LEAST      (VIEWS + 2)        /* those of the steps under way are never the oldest */

struct determinant { /* a value, where its case is performed; of attention, the product's edge */
  int id;
  struct cct_quantity a, b;
};

struct bound_plan {
  uint64_t key;
  int64_t used; /* the use of the cache that was this plan's last */
  struct planned *plan;
  int *last_on_lane;
  struct cct_matrix *matrices; /* NULL: the binding has none */
};

struct plan_cache {
  struct determinant *determinants;
  int n_determinants;
  int *cases, n_cases;   /* one CASE of each value of a slot */
  int *copies, n_copies; /* whose size a step can change */
  struct bound_plan *plans;
  int n, most;
  int64_t uses; /* of every sequence so far: in each the steps begin at 0, and a plan that is under way is no old one */
};

/* ---- what a plan depends on ---- */

static int is_same(struct cct_quantity a, struct cct_quantity b) {
  return a.base == b.base && a.per == b.per && a.slot == b.slot;
}

static int is_alike(const struct cct_program *p, const struct determinant *a, const struct determinant *b) {
  return is_same(a->a, b->a) && is_same(a->b, b->b) && p->ops[a->id].kind == p->ops[b->id].kind &&
         !cct_case_compare(cct_op_case(p, &p->ops[a->id]), cct_op_case(p, &p->ops[b->id]));
}

static int determines(const struct cct_executor *x, int id, struct determinant *d) {
  const struct cct_op *op = &x->program->ops[id];
  *d = (struct determinant){.id = id};
  switch (op->kind) {
  case CCT_OP_GEMM:
    d->a = op->gemm.m;
    return op->gemm.m.slot >= 0;
  case CCT_OP_COLLECTIVE:
    d->a = op->collective.bytes;
    return d->a.slot >= 0;
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    d->a = op->p2p.bytes;
    return d->a.slot >= 0;
  case CCT_OP_COPY:
    d->a = op->copy.bytes;
    return d->a.slot >= 0 && (x->plan[id].in_graph || op->copy.direction == CCT_COPY_P2P); /* a DELAY follows it */
  case CCT_OP_ATTENTION:
    d->a = op->attention.flops;
    d->b = op->attention.kv_bytes;
    return d->a.slot >= 0 || d->b.slot >= 0;
  default:
    return 0;
  }
}

static void note_case(const struct cct_program *p, struct plan_cache *cache, int id) {
  for (int i = 0; i < cache->n_cases; i++)
    if (!cct_case_compare(&p->ops[cache->cases[i]], &p->ops[id]))
      return;
  cache->cases[cache->n_cases++] = id;
}

static void note_determinant(const struct cct_executor *x, struct plan_cache *cache, int id) {
  struct determinant d;
  if (!determines(x, id, &d))
    return;
  for (int i = 0; i < cache->n_determinants; i++)
    if (is_alike(x->program, &cache->determinants[i], &d))
      return;
  cache->determinants[cache->n_determinants++] = d;
}

enum cct_status cct_cuda_cache_open(struct cct_executor *x) {
  size_t n = (size_t)x->program->n_ops + 1, most = MOST_BYTES / (n * sizeof *x->plan);
  struct plan_cache *cache = x->cache = calloc(1, sizeof *cache);
  if (!cache)
    return cct_fail(CCT_NOMEM, "out of memory");
  cache->most = most < LEAST ? LEAST : most > 1024 ? 1024 : (int)most;
  cache->determinants = calloc(n, sizeof *cache->determinants);
  cache->cases = calloc(n, sizeof *cache->cases);
  cache->copies = calloc(n, sizeof *cache->copies);
  cache->plans = calloc((size_t)cache->most, sizeof *cache->plans);
  if (!cache->determinants || !cache->cases || !cache->copies || !cache->plans)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int id = 0; id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    if (op->kind == CCT_OP_CASE)
      note_case(x->program, cache, id);
    if (op->kind == CCT_OP_COPY && op->copy.bytes.slot >= 0 && !x->plan[id].in_graph)
      cache->copies[cache->n_copies++] = id;
    note_determinant(x, cache, id);
  }
  return CCT_OK;
}

static uint64_t key_of(const struct cct_executor *x, const struct cct_binding *binding) {
  const struct plan_cache *cache = x->cache;
  const struct cct_op *ops = x->program->ops;
  uint64_t key = 1;
  for (int i = 0; i < cache->n_cases; i++) {
    const struct cct_op *op = &ops[cache->cases[i]];
    key = cct_cuda_fold(key, binding->slots[op->when.slot] == op->when.value);
  }
  for (int i = 0; i < cache->n_determinants; i++) {
    const struct determinant *d = &cache->determinants[i];
    if (!cct_op_is_performed(x->program, &ops[d->id], binding))
      continue;
    int64_t value = cct_quantity_value(d->a, binding);
    if (ops[d->id].kind == CCT_OP_ATTENTION)
      value = cct_cuda_attention_edge((double)value, cct_quantity_value(d->b, binding));
    key = cct_cuda_fold(key, (uint64_t)value);
  }
  for (int i = 0; binding->matrices && i < x->program->n_matrices; i++)
    for (int k = 0; k < binding->matrices[i].n * binding->matrices[i].n; k++)
      key = cct_cuda_fold(key, (uint64_t)binding->matrices[i].bytes[k]);
  return key;
}

/* ---- plans ---- */

static void forget_matrices(const struct cct_executor *x, struct bound_plan *p) {
  for (int i = 0; p->matrices && i < x->program->n_matrices; i++)
    free(p->matrices[i].bytes);
  free(p->matrices);
  p->matrices = NULL;
}

void cct_cuda_cache_clear(struct cct_executor *x) {
  struct plan_cache *cache = x->cache;
  for (int i = 0; cache && i < cache->n; i++) {
    struct bound_plan *p = &cache->plans[i];
    for (int id = 0; id < x->program->n_ops; id++)
      cudaFree(p->plan[id].pointers);
    forget_matrices(x, p);
    free(p->plan);
    free(p->last_on_lane);
  }
  if (cache)
    cache->n = 0;
}

void cct_cuda_cache_close(struct cct_executor *x) {
  if (!x->cache)
    return;
  cct_cuda_cache_clear(x);
  free(x->cache->plans);
  free(x->cache->determinants);
  free(x->cache->cases);
  free(x->cache->copies);
  free(x->cache);
  x->cache = NULL;
}

static enum cct_status copy_matrices(const struct cct_executor *x, const struct cct_binding *binding,
                                     struct bound_plan *p) {
  if (!binding->matrices || !x->program->n_matrices)
    return CCT_OK;
  p->matrices = calloc((size_t)x->program->n_matrices, sizeof *p->matrices);
  for (int i = 0; p->matrices && i < x->program->n_matrices; i++) {
    const struct cct_matrix *from = &binding->matrices[i];
    size_t n = (size_t)(from->n * from->n) * sizeof *from->bytes;
    p->matrices[i] = (struct cct_matrix){from->n, malloc(n + 1)};
    if (!p->matrices[i].bytes)
      return cct_fail(CCT_NOMEM, "out of memory");
    memcpy(p->matrices[i].bytes, from->bytes, n);
  }
  return p->matrices ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
}

/* A new one, or that which was not used for longest; lanes may still read those of the last steps. */
static enum cct_status take_plan(struct cct_executor *x, struct bound_plan **plan_out) {
  struct plan_cache *cache = x->cache;
  size_t n = (size_t)x->program->n_ops + 1;
  if (cache->n < cache->most) {
    struct bound_plan *p = &cache->plans[cache->n];
    *p = (struct bound_plan){.plan = calloc(n, sizeof *p->plan),
                             .last_on_lane = calloc((size_t)x->program->n_lanes + 1, sizeof *p->last_on_lane)};
    if (!p->plan || !p->last_on_lane) {
      free(p->plan);
      free(p->last_on_lane);
      return cct_fail(CCT_NOMEM, "out of memory");
    }
    cache->n++;
    *plan_out = p;
    return CCT_OK;
  }
  struct bound_plan *oldest = cache->plans;
  for (int i = 1; i < cache->n; i++)
    if (cache->plans[i].used < oldest->used)
      oldest = &cache->plans[i];
  forget_matrices(x, oldest);
  *plan_out = oldest;
  return cct_cuda_drain(x); /* the GPU may still read its arrays of pointers */
}

/* Kernels read the slots on the device: what brings them has to come first. */
static enum cct_status check_carried(const struct cct_executor *view) {
  int is_carried = 0;
  for (int id = 0; id < view->program->n_ops; id++) {
    const struct cct_op *op = &view->program->ops[id];
    struct cct_quantity q;
    is_carried |= !view->plan[id].is_out && op->kind == CCT_OP_COPY && op->copy.carries_binding;
    if (!cct_cuda_streams(view, id, &q))
      continue;
    if (q.slot >= 0 && !is_carried)
      return cct_fail(
          CCT_USAGE, "cuda: %s: entry %d '%s' reads slot '%s' on the device, and no copy before it carries the binding",
          view->program->name, id, op->name, view->program->slots[q.slot].name);
  }
  return CCT_OK;
}

static enum cct_status capture(struct cct_executor *x, struct cct_executor *view, int step) {
  enum cct_status status = x->hosts ? cct_cuda_hosts_quiet(x, step) : CCT_OK;
  if (!status)
    status = cct_cuda_drain(x);
  if (!status)
    status = cct_cuda_graphs_capture(view);
  x->graphs = view->graphs;
  return status;
}

static enum cct_status plan_anew(struct cct_executor *x, struct cct_executor *view, int step) {
  for (int id = 0; id < x->program->n_ops; id++) { /* what no binding changes, and arrays that are there */
    void **pointers = view->plan[id].pointers;
    view->plan[id] = x->plan[id];
    view->plan[id].pointers = pointers;
    view->plan[id].lt = NULL;
    view->plan[id].matrix = NULL;
  }
  cct_cuda_plan_values(view);
  enum cct_status status = cct_cuda_place(view);
  if (!status)
    status = cct_cuda_plan_entries(view);
  x->lt_plans = view->lt_plans;
  if (!status && cct_cuda_delays_missing(view))
    status = cct_fail(CCT_USAGE,
                      "cuda: %s: a step of a sequence stretches an operation that was never measured alone: perform it "
                      "once before",
                      x->program->name);
  if (!status && cct_cuda_graphs_missing(view))
    status = capture(x, view, step);
  return status ? status : check_carried(view);
}

/* Copies outside graphs are as large as the step makes them, and have to fit into what they were given. */
static enum cct_status check_copies(const struct cct_executor *view, const struct cct_binding *binding) {
  for (int i = 0; i < view->cache->n_copies; i++) {
    int id = view->cache->copies[i];
    const struct cct_op *op = &view->program->ops[id];
    const struct planned *plan = &view->plan[id];
    int64_t bytes = plan->is_out ? 0 : cct_quantity_value(op->copy.bytes, binding);
    if (bytes > plan->in_capacity || bytes > plan->out_capacity)
      return cct_fail(CCT_USAGE,
                      "cuda: %s: entry %d '%s' of a sequence copies %lld bytes, more than any step before it: perform "
                      "the largest step once before",
                      view->program->name, id, op->name, (long long)bytes);
  }
  return CCT_OK;
}

enum cct_status cct_cuda_cache_plan(struct cct_executor *x, struct cct_executor *view, int step,
                                    const struct cct_binding *binding) {
  struct plan_cache *cache = x->cache;
  uint64_t key = key_of(x, binding);
  struct bound_plan *p = NULL;
  for (int i = 0; !p && i < cache->n; i++)
    if (cache->plans[i].key == key)
      p = &cache->plans[i];
  int is_new = !p;
  enum cct_status status = CCT_OK;
  if (is_new) {
    status = take_plan(x, &p);
    if (status)
      return status;
    p->key = 0;
    status = copy_matrices(x, binding, p);
  }
  view->plan = p->plan;
  view->last_on_lane = p->last_on_lane;
  view->matrices = p->matrices;
  view->lt_plans = x->lt_plans;
  view->graphs = x->graphs;
  if (is_new && !status)
    status = plan_anew(x, view, step);
  if (status)
    return status;
  p->key = key;
  p->used = ++cache->uses;
  return check_copies(view, binding);
}
