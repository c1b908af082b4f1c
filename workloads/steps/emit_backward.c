/* SPDX-License-Identifier: Apache-2.0
 * The backward pass of a layer. Each GEMM has two: the gradient of its input (m x k, over n) and of its weights (k x n,
 * over m). An attention core that stores no scores multiplies five times where forward does twice (Dao 2023,
 * FlashAttention-2, arXiv 2307.08691, section 3.2): 2.5 times the flops. */
#include <stdio.h>

#include "workloads/steps/emit.h"

struct shape { /* of the forward GEMM */
  struct cct_quantity m;
  int64_t m_value, n, k, groups;
  int weight, input, output; /* buffers */
};

static void gemm_backward(struct cct_emit *e, int layer, const char *part, const struct shape *s, enum cct_type type) {
  char name[40], piece[40];
  if (type != CCT_TYPE_BF16) { /* the gradient with its transpose: read in bf16, written twice */
    struct cct_quantity bytes = {0, 4 * s->n * s->groups, s->m.slot};
    cct_emit_elementwise(e, cct_layer_name(name, layer, "cast_grad"), bytes, s->output);
  }
  snprintf(piece, sizeof piece, "%s.dx", part);
  cct_emit_gemm(e, cct_layer_name(name, layer, piece), s->m, s->k, s->n, s->groups, type, s->output, s->weight,
                s->input);
  snprintf(piece, sizeof piece, "%s.dw", part);
  cct_emit_gemm(e, cct_layer_name(name, layer, piece), cct_constant(s->k), s->n, s->m_value, s->groups, type, s->input,
                s->output, e->layer_gradient);
  e->complete(e->context);
}

static void norm_backward(struct cct_emit *e, int layer, const char *part) {
  char name[40];
  cct_emit_elementwise(e, cct_layer_name(name, layer, part), cct_per_shard(e, 5 * e->model->hidden * 2), e->b_hidden);
}

static void linear_backward(struct cct_emit *e, int layer, int place) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  const struct cct_linear *l = &kind->linears[place];
  struct shape s = {.m = cct_per_token(e, 1), .m_value = e->tokens};
  char name[40];
  if (cct_is_on_shard(e, kind, l))
    s = (struct shape){.m = cct_per_shard(e, 1), .m_value = cct_share(e->tokens, e->layout.tp)};
  cct_linear_share(kind, l, e->layout.tp, &s.n, &s.k, &s.groups);
  s.weight = cct_emit_weight(e, layer, place, cct_layer_name(name, layer, l->name), e->gemm_type, 0);
  s.input = l->is_after ? e->b_wide : e->b_hidden;
  s.output = l->is_after ? e->b_hidden : e->b_wide;
  gemm_backward(e, layer, l->name, &s, e->gemm_type);
}

/* A column-parallel linear of MLA: its latent comes again, and the latent's gradient is reduced. */
static void latent_backward(struct cct_emit *e, int layer, int place) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  const struct cct_linear *l = &kind->linears[place];
  char part[32];
  snprintf(part, sizeof part, "gather_again_%s", l->name);
  cct_emit_gather(e, layer, part, l->k, cct_cast_type(e));
  linear_backward(e, layer, place);
  snprintf(part, sizeof part, "reduce_grad_%s", l->name);
  cct_emit_reduce(e, layer, part, l->k);
  if (l->form == CCT_FORM_CONTEXT)
    cct_emit_reduce(e, layer, "reduce_grad_rope", kind->kv_bytes / 2 - l->k);
}

static void attention_backward(struct cct_emit *e, int layer) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  int index = e->model->kind_of[layer];
  char name[40];
  cct_emit_gather(e, layer, "gather_grad1", e->model->hidden, cct_cast_type(e));
  for (int i = kind->n_linears - 1; i >= 0; i--)
    if (kind->linears[i].is_after && kind->linears[i].form != CCT_FORM_DECODE)
      linear_backward(e, layer, i);
  struct cct_op op = {.kind = CCT_OP_ATTENTION,
                      .lane = e->compute,
                      .host = e->graph >= 0 ? -1 : e->host,
                      .reads = {e->b_wide, -1},
                      .writes = e->b_wide};
  op.name = cct_layer_name(name, layer, "attention.dx");
  op.attention.flops =
      cct_per_slot((int64_t)(2.5 * kind->pair_flops_context / (double)e->layout.tp + 0.5), e->s_pairs[index]);
  op.attention.kv_bytes = cct_per_slot(2 * cct_kv_bytes_share(kind, e->layout.tp), e->s_kv[index]);
  op.attention.type = CCT_TYPE_BF16;
  (void)cct_program_add(e->program, &op, NULL, 0);
  cct_emit_elementwise(e, cct_layer_name(name, layer, "rope.dx"),
                       cct_per_token(e, 2 * cct_kv_bytes_share(kind, e->layout.tp)), e->b_wide);
  if (!kind->is_latent) /* the columns' input, for their weight gradients */
    cct_emit_gather(e, layer, "gather_again1", e->model->hidden, cct_cast_type(e));
  for (int i = kind->n_linears - 1; i >= 0; i--)
    if (!kind->linears[i].is_after && kind->linears[i].form != CCT_FORM_DECODE)
      (kind->is_latent && kind->linears[i].split == CCT_SPLIT_COLUMN ? latent_backward : linear_backward)(e, layer, i);
  if (!kind->is_latent)
    cct_emit_reduce(e, layer, "reduce_grad1", e->model->hidden);
  norm_backward(e, layer, "norm1.dx");
}

/* down, product, gate and up in reverse. */
static void gated_backward(struct cct_emit *e, int layer, const char *const parts[3], int place, struct cct_quantity m,
                           int64_t m_value, int64_t width, int64_t groups, int input, int wide, const char *again) {
  char name[40];
  int64_t hidden = e->model->hidden;
  struct cct_quantity bytes = {m.base * 5 * width * groups * 2, m.per * 5 * width * groups * 2, m.slot};
  struct shape down = {m, m_value, hidden, width, groups, 0, wide, input},
               up = {m, m_value, 2 * width, hidden, groups, 0, input, wide};
  down.weight = cct_emit_weight(e, layer, place + 1, "", e->gemm_type, 0);
  up.weight = cct_emit_weight(e, layer, place, "", e->gemm_type, 0);
  gemm_backward(e, layer, parts[2], &down, e->gemm_type);
  cct_emit_elementwise(e, cct_layer_name(name, layer, parts[1]), bytes, wide);
  if (again)
    cct_emit_gather(e, layer, again, hidden, cct_cast_type(e));
  gemm_backward(e, layer, parts[0], &up, e->gemm_type);
}

static void experts_backward(struct cct_emit *e, int layer) {
  static const char *const expert_parts[] = {"expert_gate_up", "expert_product.dx", "expert_down"};
  static const char *const shared_parts[] = {"shared_gate_up", "shared_product.dx", "shared_down"};
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  int64_t hidden = e->model->hidden, expert_tp = e->layout.ep > 1 ? 1 : e->layout.tp;
  int64_t routed = e->layout.ep > 1 ? cct_share(e->tokens, e->layout.tp) : e->tokens;
  struct cct_quantity m = e->layout.ep > 1 ? cct_per_slot(1, e->s_shard) : cct_per_token(e, 1);
  struct cct_quantity rows = cct_per_slot(e->moe.groups * 2 * hidden * 2, e->s_rows);
  char name[40];
  int gathers_own = kind->shared_ffn && e->is_sharded && e->layout.ep == 1;
  if (gathers_own)
    cct_emit_gather(e, layer, "gather_grad_shared", hidden, cct_cast_type(e));
  if (kind->shared_ffn)
    gated_backward(e, layer, shared_parts, CCT_W_SHARED_IN, m, routed, cct_share(kind->shared_ffn, expert_tp), 1,
                   e->b_hidden, e->b_wide, gathers_own ? "gather_again_shared" : NULL);
  if (gathers_own)
    cct_emit_reduce(e, layer, "reduce_grad_shared", hidden);
  if (e->layout.ep == 1)
    cct_emit_gather(e, layer, "gather_grad2", hidden, CCT_TYPE_BF16);
  cct_emit_dispatch(e, layer, "combine.dx", e->moe.combine_type);
  cct_emit_elementwise(e, cct_layer_name(name, layer, "unpermute.dx"), rows, e->b_experts);
  gated_backward(e, layer, expert_parts, CCT_W_EXPERT_IN, cct_per_slot(1, e->s_rows), e->moe.rows,
                 cct_share(kind->expert_ffn, expert_tp), e->moe.groups, e->b_experts, e->b_expert_wide, NULL);
  cct_emit_elementwise(e, cct_layer_name(name, layer, "permute.dx"), rows, e->b_experts);
  cct_emit_combine(e, layer, "dispatch.dx");
  struct shape router = {m, routed, kind->experts, hidden, 1, 0, e->b_hidden, e->b_wide};
  router.weight = cct_emit_weight(e, layer, CCT_W_ROUTER, "", CCT_TYPE_BF16, 0);
  gemm_backward(e, layer, "router", &router, CCT_TYPE_BF16);
  if (e->layout.ep == 1)
    cct_emit_reduce(e, layer, "reduce_grad2", hidden);
  else if (!e->is_sharded)
    cct_emit_collective(e, cct_layer_name(name, layer, "restore.dx"), CCT_COLL_ALL_GATHER, e->g_tp,
                        cct_per_token(e, hidden * 2), CCT_TYPE_BF16, e->b_hidden);
}

void cct_emit_layer_backward(struct cct_emit *e, int layer) {
  static const char *const parts[] = {"gate_up", "product.dx", "down"};
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  if (kind->experts) {
    experts_backward(e, layer);
  } else {
    cct_emit_gather(e, layer, "gather_grad2", e->model->hidden, cct_cast_type(e));
    gated_backward(e, layer, parts, CCT_W_GATE_UP, cct_per_token(e, 1), e->tokens, cct_share(kind->ffn, e->layout.tp),
                   1, e->b_hidden, e->b_wide, "gather_again2");
    cct_emit_reduce(e, layer, "reduce_grad2", e->model->hidden);
  }
  norm_backward(e, layer, "norm2.dx");
  attention_backward(e, layer);
}
