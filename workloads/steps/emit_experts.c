/* SPDX-License-Identifier: Apache-2.0
 * The MoE part of a layer, forward. */
#include "workloads/steps/emit.h"

/* Tokens that this rank routes: with ep > 1 each of the tp ranks its share, with ep = 1 all of the replica's. */
static int routed_slot(const struct cct_emit *e) {
  return e->layout.ep > 1 ? e->s_shard : e->s_tokens;
}

static struct cct_quantity per_routed(const struct cct_emit *e, double bytes) {
  return cct_per_slot((int64_t)(bytes + 0.5), routed_slot(e));
}

static void exchange(struct cct_emit *e, int layer, const char *part, enum cct_collective collective,
                     enum cct_type type, int matrix) {
  char name[40];
  double copy = (double)e->model->hidden * cct_type_bits(type) / 8;
  int id = cct_emit_collective(e, cct_layer_name(name, layer, part), collective, e->g_ep,
                               per_routed(e, e->moe.copies * copy), type, e->b_dispatched);
  if (id >= 0 && collective == CCT_COLL_ALL_TO_ALLV && !e->program->is_failed)
    e->program->ops[id].collective.matrix = matrix;
}

void cct_emit_dispatch(struct cct_emit *e, int layer, const char *part, enum cct_type type) {
  int is_gather = e->moe.routing.dispatch == CCT_DISPATCH_ALLGATHER;
  exchange(e, layer, part, is_gather ? CCT_COLL_ALL_GATHER : CCT_COLL_ALL_TO_ALLV, type, e->moe.dispatch_matrix);
}

void cct_emit_combine(struct cct_emit *e, int layer, const char *part) {
  int is_gather = e->moe.routing.dispatch == CCT_DISPATCH_ALLGATHER;
  exchange(e, layer, part, is_gather ? CCT_COLL_REDUCE_SCATTER : CCT_COLL_ALL_TO_ALLV, e->moe.combine_type,
           e->moe.combine_matrix);
}

/* --routing host: the ranks exchange their counts, and the host reads them before it can size what follows. A graph
 * ends before it and another begins behind it. */
static void read_counts(struct cct_emit *e, int layer) {
  char name[40];
  int64_t bytes = e->moe.routing.experts * 4, is_graph = e->graph >= 0;
  cct_emit_collective(e, cct_layer_name(name, layer, "counts"), CCT_COLL_ALL_GATHER, e->g_ep,
                      cct_constant(bytes * e->layout.ep), CCT_TYPE_INT32, e->b_wide);
  if (is_graph)
    cct_emit_close_bracket(e, e->graph);
  cct_emit_copy(e, cct_layer_name(name, layer, "counts_back"), CCT_COPY_D2H, bytes * e->layout.ep);
  cct_emit_sync(e, cct_layer_name(name, layer, "counts_sync"), e->compute);
  if (is_graph)
    cct_emit_open_bracket(e, CCT_OP_GRAPH, cct_layer_name(name, layer, "experts"));
}

static void route(struct cct_emit *e, int layer) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  char name[40];
  cct_layer_name(name, layer, "router");
  int weight = cct_emit_weight(e, layer, CCT_W_ROUTER, name, CCT_TYPE_BF16, (double)(kind->experts * e->model->hidden));
  cct_emit_gemm(e, name, per_routed(e, 1), kind->experts, e->model->hidden, 1, CCT_TYPE_BF16, e->b_hidden, weight,
                e->b_wide);
  cct_emit_elementwise(e, cct_layer_name(name, layer, "top_k"), per_routed(e, (double)(2 * kind->experts * 2)),
                       e->b_wide);
}

/* The rows of this rank's experts gathered in expert order, or back: each read and written. */
static void permute(struct cct_emit *e, int layer, const char *part) {
  char name[40];
  cct_emit_elementwise(e, cct_layer_name(name, layer, part),
                       cct_per_slot(e->moe.groups * 2 * e->model->hidden * 2, e->s_rows), e->b_experts);
}

void cct_emit_experts(struct cct_emit *e, int layer) {
  static const char *const expert_parts[] = {"expert_gate_up", "expert_product", "expert_down"};
  static const char *const shared_parts[] = {"shared_gate_up", "shared_product", "shared_down"};
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  int64_t hidden = e->model->hidden, expert_tp = e->layout.ep > 1 ? 1 : e->layout.tp;
  char name[40];
  if (e->layout.ep == 1)
    cct_emit_gather(e, layer, "gather2", hidden, CCT_TYPE_BF16);
  route(e, layer);
  if (e->moe.is_host_routed)
    read_counts(e, layer);
  cct_emit_dispatch(e, layer, "dispatch", e->moe.dispatch_type);
  permute(e, layer, "permute");
  cct_emit_gated(e, layer, expert_parts, CCT_W_EXPERT_IN, cct_per_slot(1, e->s_rows),
                 cct_share(kind->expert_ffn, expert_tp), e->moe.groups, e->b_experts, e->b_expert_wide);
  permute(e, layer, "unpermute");
  cct_emit_combine(e, layer, "combine");
  int gathers_own = kind->shared_ffn && e->is_sharded && e->layout.ep == 1;
  if (gathers_own)
    cct_emit_gather(e, layer, "gather_shared", hidden, cct_cast_type(e));
  if (kind->shared_ffn)
    cct_emit_gated(e, layer, shared_parts, CCT_W_SHARED_IN, per_routed(e, 1), cct_share(kind->shared_ffn, expert_tp), 1,
                   e->b_hidden, e->b_wide);
  if (gathers_own)
    cct_emit_reduce(e, layer, "reduce_shared", hidden);
  cct_emit_elementwise(e, cct_layer_name(name, layer, "weighted_sum"),
                       per_routed(e, (double)((kind->top_k + 1) * hidden * 2)), e->b_hidden);
  if (e->layout.ep == 1)
    cct_emit_reduce(e, layer, "reduce2", hidden);
  else if (!e->is_sharded) /* the tp ranks have each combined their share of the tokens */
    cct_emit_collective(e, cct_layer_name(name, layer, "restore"), CCT_COLL_ALL_GATHER, e->g_tp,
                        cct_per_token(e, hidden * 2), CCT_TYPE_BF16, e->b_hidden);
}
