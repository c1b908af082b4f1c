/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/steps/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/shape/cell.h"

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Elements a token takes in the widest intermediate of a layer on this rank. */
static int64_t widest(const struct cct_emit *e) {
  int64_t width = larger(e->model->hidden, 1), n, k, groups, expert_tp = e->layout.ep > 1 ? 1 : e->layout.tp;
  for (int i = 0; i < e->model->n_kinds; i++) {
    const struct cct_layer_kind *kind = &e->model->kinds[i];
    for (int j = 0; j < kind->n_linears; j++) {
      cct_linear_share(kind, &kind->linears[j], e->layout.tp, &n, &k, &groups);
      width = larger(width, larger(n, k) * groups);
    }
    width = larger(width, 2 * cct_share(kind->ffn, e->layout.tp));
    width = larger(width, 2 * cct_share(kind->shared_ffn, expert_tp));
    width = larger(width, kind->experts);
  }
  return width;
}

static void add_groups(struct cct_emit *e) {
  int tp = (int)e->layout.tp, dp = (int)e->layout.dp, ep = (int)e->layout.ep, ranks = tp * dp;
  int replicas = (int)cct_expert_replicas(&e->layout);
  e->g_tp = tp > 1 ? cct_job_add_group(e->job, "tp", tp, 1) : -1;
  e->g_dp = dp > 1 ? cct_job_add_group(e->job, "dp", dp, tp) : -1;
  e->g_ep = ep > 1 ? cct_job_add_group(e->job, "ep", ep, 1) : -1;
  e->g_expert_dp = ep == 1 ? e->g_dp : replicas > 1 ? cct_job_add_group(e->job, "expert_dp", replicas, ep) : -1;
  e->g_world = dp == 1 ? e->g_tp : tp == 1 ? e->g_dp : cct_job_add_group(e->job, "world", ranks, 1);
}

static void add_slots(struct cct_emit *e, const struct cct_pass *pass) {
  struct cct_program *p = e->program;
  e->s_tokens = cct_program_add_slot(p, "tokens", pass->tokens);
  e->s_shard =
      e->layout.tp > 1 ? cct_program_add_slot(p, "tokens_shard", cct_share(pass->tokens, e->layout.tp)) : e->s_tokens;
  e->s_rows = e->moe.groups ? cct_program_add_slot(p, "expert_rows", e->moe.rows) : -1;
  for (int i = 0; i < e->model->n_kinds; i++) {
    int64_t window = e->model->kinds[i].window;
    int same = 0;
    while (same < i && e->model->kinds[same].window != window)
      same++;
    if (same < i) {
      e->s_pairs[i] = e->s_pairs[same];
      e->s_kv[i] = e->s_kv[same];
      continue;
    }
    char pairs[24] = "pairs", kv[24] = "kv_entries";
    if (window) {
      snprintf(pairs, sizeof pairs, "pairs_%d", (int)window);
      snprintf(kv, sizeof kv, "kv_entries_%d", (int)window);
    }
    e->s_pairs[i] = cct_program_add_slot(p, pairs, pass->pairs(e->cell, pass->sequences, window));
    e->s_kv[i] = cct_program_add_slot(p, kv, pass->kv(e->cell, pass->sequences, window));
  }
}

static void add_buffers(struct cct_emit *e) {
  struct cct_program *p = e->program;
  int64_t hidden = e->model->hidden, expert_width = 0;
  for (int i = 0; i < e->model->n_kinds; i++)
    expert_width = larger(expert_width, cct_share(e->model->kinds[i].expert_ffn, e->layout.ep > 1 ? 1 : e->layout.tp));
  e->b_hidden = cct_program_add_buffer(p, "hidden", cct_per_slot(hidden * 2, e->s_tokens), CCT_MEM_DEVICE, 0);
  e->b_wide = cct_program_add_buffer(p, "wide", cct_per_slot(widest(e) * 2, e->s_tokens), CCT_MEM_DEVICE, 0);
  e->b_experts = e->b_expert_wide = e->b_dispatched = -1;
  if (e->moe.groups && e->g_ep >= 0) {
    int64_t received = (int64_t)(e->moe.copies * (double)hidden + 1) * 2;
    e->b_dispatched = cct_program_add_buffer(p, "dispatched", cct_per_slot(received, e->s_shard), CCT_MEM_DEVICE, 0);
  }
  if (e->moe.groups) {
    e->b_experts = cct_program_add_buffer(p, "expert_rows", cct_per_slot(e->moe.groups * hidden * 2, e->s_rows),
                                          CCT_MEM_DEVICE, 0);
    e->b_expert_wide = cct_program_add_buffer(
        p, "expert_wide", cct_per_slot(e->moe.groups * 2 * expert_width * 2, e->s_rows), CCT_MEM_DEVICE, 0);
  }
}

enum cct_status cct_emit_open(struct cct_emit *emit, const struct cct_model *model, const struct cct_layout *layout,
                              const struct cct_options *cell, const struct cct_moe *moe, const struct cct_pass *pass,
                              const char *name) {
  const char *allreduce = cct_cell_text(cell, CCT_OPT_ALLREDUCE);
  size_t weights = (size_t)model->n_layers * CCT_WEIGHT_COUNT;
  struct cct_emit e = {.model = model,
                       .cell = cell,
                       .layout = *layout,
                       .moe = *moe,
                       .tokens = pass->tokens,
                       .sequences = pass->sequences,
                       .gemm_type = model->weights,
                       .comm = -1,
                       .readback = -1,
                       .graph = -1,
                       .layer_gradient = -1,
                       .pending = -1,
                       .b_embedding = -1,
                       .b_head = -1,
                       .b_logits = -1};
  e.algorithm = !strcmp(allreduce, "oneshot")   ? CCT_ALGORITHM_ONESHOT
                : !strcmp(allreduce, "twoshot") ? CCT_ALGORITHM_TWOSHOT
                                                : CCT_ALGORITHM_AUTO;
  enum cct_workload workload = cct_cell_workload(cell);
  e.form = workload == CCT_WORKLOAD_DECODE ? CCT_FORM_DECODE : CCT_FORM_CONTEXT;
  e.is_training = workload == CCT_WORKLOAD_TRAIN;
  e.is_sharded = e.is_training && layout->tp > 1 && !strcmp(cell->v[CCT_OPT_SEQUENCE_PARALLEL].s, "on");
  enum cct_status status = cct_job_new((int)cct_layout_ranks(layout), &e.job);
  if (!status)
    status = cct_program_new(name, &e.program);
  e.b_weights = status ? NULL : malloc(weights * sizeof *e.b_weights);
  if (!status && !e.b_weights)
    status = cct_fail(CCT_NOMEM, "out of memory");
  if (status) {
    cct_emit_close(&e);
    return status;
  }
  memset(e.b_weights, 0xff, weights * sizeof *e.b_weights);
  e.program->n_matrices = moe->dispatch_matrix >= 0 ? 2 : 0;
  e.compute = cct_program_add_lane(e.program, "compute", CCT_LANE_STREAM);
  e.host = cct_program_add_lane(e.program, "main", CCT_LANE_HOST);
  add_groups(&e);
  add_slots(&e, pass);
  add_buffers(&e);
  *emit = e;
  return CCT_OK;
}

void cct_emit_close(struct cct_emit *e) {
  if (!e)
    return;
  free(e->b_weights);
  free(e->b_caches);
  cct_program_free(e->program);
  cct_job_free(e->job);
  *e = (struct cct_emit){0};
}

/* ---- operations ---- */

static int add(struct cct_emit *e, struct cct_op op, const char *name) {
  op.name = name;
  op.lane = e->compute;
  op.host = e->graph >= 0 ? -1 : e->host;
  struct cct_wait wait = {e->pending, 0};
  e->pending = -1;
  return cct_program_add(e->program, &op, &wait, wait.id >= 0);
}

int cct_emit_gemm(struct cct_emit *e, const char *name, struct cct_quantity m, int64_t n, int64_t k, int64_t groups,
                  enum cct_type type, int input, int weight, int output) {
  struct cct_op op = {.kind = CCT_OP_GEMM, .reads = {input, weight}, .writes = output};
  op.gemm.m = m;
  op.gemm.n = n;
  op.gemm.k = k;
  op.gemm.groups = (int)groups;
  op.gemm.type = type;
  return add(e, op, name);
}

int cct_emit_elementwise(struct cct_emit *e, const char *name, struct cct_quantity bytes, int buffer) {
  struct cct_op op = {.kind = CCT_OP_ELEMENTWISE, .reads = {buffer, -1}, .writes = buffer};
  op.elementwise.bytes = bytes;
  return add(e, op, name);
}

int cct_emit_collective(struct cct_emit *e, const char *name, enum cct_collective kind, int group,
                        struct cct_quantity bytes, enum cct_type type, int buffer) {
  if (group < 0)
    return -1;
  struct cct_op op = {.kind = CCT_OP_COLLECTIVE, .reads = {buffer, -1}, .writes = buffer};
  op.collective.kind = kind;
  op.collective.group = group;
  op.collective.bytes = bytes;
  op.collective.type = type;
  op.collective.algorithm = kind == CCT_COLL_ALL_REDUCE && group == e->g_tp ? e->algorithm : CCT_ALGORITHM_AUTO;
  op.collective.matrix = -1;
  return add(e, op, name);
}

int cct_emit_copy(struct cct_emit *e, const char *name, enum cct_direction direction, int64_t bytes) {
  int host_side = cct_program_add_buffer(e->program, name, cct_constant(bytes), CCT_MEM_PINNED, 0);
  int device_side = cct_program_add_buffer(e->program, name, cct_constant(bytes), CCT_MEM_DEVICE, 0);
  struct cct_op op = {.kind = CCT_OP_COPY};
  op.reads[0] = direction == CCT_COPY_H2D ? host_side : device_side;
  op.reads[1] = -1;
  op.writes = direction == CCT_COPY_H2D ? device_side : host_side;
  op.copy.direction = direction;
  op.copy.memory = CCT_MEM_PINNED;
  op.copy.bytes = cct_constant(bytes);
  return add(e, op, name);
}

int cct_emit_sync(struct cct_emit *e, const char *name, int lane) {
  struct cct_op op = {
      .kind = CCT_OP_SYNC, .name = name, .lane = lane, .host = e->host, .reads = {-1, -1}, .writes = -1};
  return cct_program_add(e->program, &op, NULL, 0);
}

int cct_emit_last(const struct cct_emit *e) {
  int id = e->program->n_ops - 1;
  while (id >= 0 && e->program->ops[id].lane != e->compute)
    id--;
  return id;
}

int cct_emit_open_bracket(struct cct_emit *e, enum cct_op_kind kind, const char *name) {
  struct cct_op op = {.kind = kind, .name = name, .lane = -1, .host = -1, .reads = {-1, -1}, .writes = -1};
  if (kind == CCT_OP_GRAPH) {
    op.lane = e->compute;
    op.host = e->host;
    op.graph.key = e->next_key++;
  }
  int id = cct_program_add(e->program, &op, NULL, 0);
  if (kind == CCT_OP_GRAPH)
    e->graph = id;
  return id;
}

void cct_emit_close_bracket(struct cct_emit *e, int bracket) {
  struct cct_op op = {.kind = CCT_OP_END, .name = "", .lane = -1, .host = -1, .reads = {-1, -1}, .writes = -1};
  op.end.opens = bracket;
  (void)cct_program_add(e->program, &op, NULL, 0);
  if (bracket == e->graph)
    e->graph = -1;
}

struct cct_quantity cct_per_token(const struct cct_emit *e, int64_t bytes) {
  return cct_per_slot(bytes, e->s_tokens);
}

struct cct_quantity cct_per_shard(const struct cct_emit *e, int64_t bytes) {
  return cct_per_slot(bytes, e->is_sharded ? e->s_shard : e->s_tokens);
}

int cct_emit_weight(struct cct_emit *e, int layer, int place, const char *name, enum cct_type type, double elements) {
  int *id = &e->b_weights[layer * CCT_WEIGHT_COUNT + place];
  if (*id < 0) {
    double bytes = type == CCT_TYPE_BF16 ? 2 * elements : cct_weight_bytes(type, elements);
    *id = cct_program_add_buffer(e->program, name, cct_constant((int64_t)(bytes + 0.5)), CCT_MEM_DEVICE, 1);
  }
  return *id;
}
