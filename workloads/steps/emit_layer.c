/* SPDX-License-Identifier: Apache-2.0
 * The forward parts of a step: embedding, attention, dense feed-forward, head. */
#include <stdio.h>

#include "workloads/steps/emit.h"

/* "12.qkv" */
char *cct_layer_name(char out[40], int layer, const char *part) {
  snprintf(out, 40, "%d.%s", layer, part);
  return out;
}

/* Residual addition and RMSNorm as one kernel: reads both, writes both. */
static void norm(struct cct_emit *e, int layer, const char *part) {
  char name[40];
  cct_emit_elementwise(e, cct_layer_name(name, layer, part), cct_per_shard(e, 4 * e->model->hidden * 2), e->b_hidden);
}

void cct_emit_gather(struct cct_emit *e, int layer, const char *part, int64_t width, enum cct_type type) {
  char name[40];
  if (e->is_sharded)
    cct_emit_collective(e, cct_layer_name(name, layer, part), CCT_COLL_ALL_GATHER, e->g_tp,
                        cct_per_token(e, width * cct_type_bits(type) / 8), type,
                        width > e->model->hidden ? e->b_wide : e->b_hidden);
}

void cct_emit_reduce(struct cct_emit *e, int layer, const char *part, int64_t width) {
  char name[40];
  cct_emit_collective(e, cct_layer_name(name, layer, part),
                      e->is_sharded ? CCT_COLL_REDUCE_SCATTER : CCT_COLL_ALL_REDUCE, e->g_tp,
                      cct_per_token(e, width * 2), CCT_TYPE_BF16, width > e->model->hidden ? e->b_wide : e->b_hidden);
}

/* FP8 training casts what no fused kernel does (Transformer Engine: norms and activation functions cast their own
 * outputs): weights with their transposes once a step, the input of the output projection each pass. */
static void cast(struct cct_emit *e, int layer, const char *part, struct cct_quantity bytes, int buffer) {
  char name[40];
  if (e->is_training && e->gemm_type != CCT_TYPE_BF16)
    cct_emit_elementwise(e, cct_layer_name(name, layer, part), bytes, buffer);
}

/* Tokens that a linear multiplies. */
static struct cct_quantity rows_of(const struct cct_emit *e, const struct cct_layer_kind *kind,
                                   const struct cct_linear *l) {
  if (cct_is_on_shard(e, kind, l))
    return cct_per_shard(e, 1);
  if (e->form != CCT_FORM_BOTH || l->form == CCT_FORM_BOTH)
    return cct_per_token(e, 1);
  return cct_per_slot(1, l->form == CCT_FORM_DECODE ? e->s_decode : e->s_context);
}

static void linear(struct cct_emit *e, int layer, int place) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  const struct cct_linear *l = &kind->linears[place];
  char name[40];
  int64_t n, k, groups;
  cct_linear_share(kind, l, e->layout.tp, &n, &k, &groups);
  cct_layer_name(name, layer, l->name);
  int weight = cct_emit_weight(e, layer, place, name, e->gemm_type, (double)n * (double)k * (double)groups);
  if (e->first_pass)
    cast(e, layer, "cast_weight", cct_constant(4 * n * k * groups), weight);
  if (l->is_after)
    cast(e, layer, "cast", cct_per_token(e, 3 * k), e->b_wide);
  int is_by_head = l->split == CCT_SPLIT_HEADS; /* from heads to heads: neither side is hidden */
  cct_emit_gemm(e, name, rows_of(e, kind, l), n, k, groups, e->gemm_type,
                l->is_after || is_by_head ? e->b_wide : e->b_hidden, weight,
                l->is_after && !is_by_head ? e->b_hidden : e->b_wide);
}

static int is_used(const struct cct_emit *e, const struct cct_linear *l) {
  return l->form == CCT_FORM_BOTH || e->form == CCT_FORM_BOTH || l->form == e->form;
}

/* The latent that a column-parallel linear of MLA multiplies; with kv_b's the rotary part of the key, which none does.
 */
static void gather_latent(struct cct_emit *e, int layer, const struct cct_layer_kind *kind,
                          const struct cct_linear *l) {
  char part[32];
  snprintf(part, sizeof part, "gather_%s", l->name);
  cct_emit_gather(e, layer, part, l->k, cct_cast_type(e));
  if (l->form == CCT_FORM_CONTEXT)
    cct_emit_gather(e, layer, "gather_rope", kind->kv_bytes / 2 - l->k, CCT_TYPE_BF16);
}

void cct_emit_attention_in(struct cct_emit *e, int layer) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  char name[40];
  int64_t n, k, groups, width = 0;
  norm(e, layer, "norm1");
  if (!kind->is_latent)
    cct_emit_gather(e, layer, "gather1", e->model->hidden, cct_cast_type(e));
  for (int i = 0; i < kind->n_linears; i++)
    if (!kind->linears[i].is_after && is_used(e, &kind->linears[i])) {
      if (kind->is_latent && kind->linears[i].split == CCT_SPLIT_COLUMN)
        gather_latent(e, layer, kind, &kind->linears[i]);
      linear(e, layer, i);
      cct_linear_share(kind, &kind->linears[i], e->layout.tp, &n, &k, &groups);
      width = n * groups > width ? n * groups : width;
    }
  /* rotary embedding, and the keys and values written to the cache: what the last projections made, read and written */
  cct_emit_elementwise(e, cct_layer_name(name, layer, "rope_cache"), cct_per_token(e, 2 * width * 2), e->b_wide);
}

static void core(struct cct_emit *e, int layer, const char *part, double flops, int s_pairs, int s_kv) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  char name[40], cache_name[40];
  struct cct_op op = {.kind = CCT_OP_ATTENTION,
                      .lane = e->compute,
                      .host = e->graph >= 0 ? -1 : e->host,
                      .reads = {e->b_wide, -1},
                      .writes = e->b_wide};
  op.name = cct_layer_name(name, layer, part);
  op.attention.flops = cct_per_slot((int64_t)(flops / (double)e->layout.tp + 0.5), s_pairs);
  op.attention.kv_bytes = cct_per_slot(cct_kv_bytes_share(kind, e->layout.tp), s_kv);
  op.attention.type = CCT_TYPE_BF16;
  if (!e->is_training) {
    int *cache = e->b_caches ? &e->b_caches[layer] : NULL;
    op.reads[1] = cache && *cache >= 0 ? *cache
                                       : cct_program_add_buffer(e->program, cct_layer_name(cache_name, layer, "cache"),
                                                                op.attention.kv_bytes, CCT_MEM_DEVICE, 0);
    if (cache)
      *cache = op.reads[1];
  }
  (void)cct_program_add(e->program, &op, NULL, 0);
}

void cct_emit_attention_core(struct cct_emit *e, int layer) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  int i = e->model->kind_of[layer];
  core(e, layer, "attention", e->form == CCT_FORM_DECODE ? kind->pair_flops_decode : kind->pair_flops_context,
       e->s_pairs[i], e->s_kv[i]);
  if (e->form == CCT_FORM_BOTH)
    core(e, layer, "attention_decode", kind->pair_flops_decode, e->s_pairs_decode[i], e->s_kv_decode[i]);
}

void cct_emit_attention_out(struct cct_emit *e, int layer) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  for (int i = 0; i < kind->n_linears; i++)
    if (kind->linears[i].is_after && is_used(e, &kind->linears[i]))
      linear(e, layer, i);
  cct_emit_reduce(e, layer, "reduce1", e->model->hidden);
}

/* gate and up as one GEMM, their product, down; over `m` rows. */
void cct_emit_gated(struct cct_emit *e, int layer, const char *const parts[3], int place, struct cct_quantity m,
                    int64_t width, int64_t groups, int input, int wide) {
  char name[40];
  int64_t hidden = e->model->hidden;
  double elements = (double)hidden * (double)width * (double)groups;
  struct cct_quantity bytes = {m.base * 3 * width * groups * 2, m.per * 3 * width * groups * 2, m.slot};
  cct_layer_name(name, layer, parts[0]);
  int weight = cct_emit_weight(e, layer, place, name, e->gemm_type, 2 * elements);
  if (e->first_pass)
    cast(e, layer, "cast_weight", cct_constant(4 * 2 * (int64_t)elements), weight);
  cct_emit_gemm(e, name, m, 2 * width, hidden, groups, e->gemm_type, input, weight, wide);
  cct_emit_elementwise(e, cct_layer_name(name, layer, parts[1]), bytes, wide);
  cct_layer_name(name, layer, parts[2]);
  weight = cct_emit_weight(e, layer, place + 1, name, e->gemm_type, elements);
  if (e->first_pass)
    cast(e, layer, "cast_weight", cct_constant(4 * (int64_t)elements), weight);
  cct_emit_gemm(e, name, m, hidden, width, groups, e->gemm_type, wide, weight, input);
}

void cct_emit_feed_forward(struct cct_emit *e, int layer) {
  static const char *const parts[] = {"gate_up", "product", "down"};
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  norm(e, layer, "norm2");
  if (kind->experts) {
    cct_emit_experts(e, layer);
    return;
  }
  cct_emit_gather(e, layer, "gather2", e->model->hidden, cct_cast_type(e));
  cct_emit_gated(e, layer, parts, CCT_W_GATE_UP, cct_per_token(e, 1), cct_share(kind->ffn, e->layout.tp), 1,
                 e->b_hidden, e->b_wide);
  cct_emit_reduce(e, layer, "reduce2", e->model->hidden);
}

void cct_emit_embedding(struct cct_emit *e) {
  int64_t hidden = e->model->hidden, rows = cct_share(e->model->vocab, e->layout.tp);
  if (e->b_embedding < 0)
    e->b_embedding =
        cct_program_add_buffer(e->program, "embedding", cct_constant(rows * hidden * 2), CCT_MEM_DEVICE, 1);
  cct_emit_elementwise(e, "embedding", cct_per_token(e, 2 * hidden * 2), e->b_hidden);
  /* each rank looks up its part of the vocabulary; the sum has every row (Megatron-LM, section 3) */
  cct_emit_collective(e, "embedding_reduce", e->is_sharded ? CCT_COLL_REDUCE_SCATTER : CCT_COLL_ALL_REDUCE, e->g_tp,
                      cct_per_token(e, hidden * 2), CCT_TYPE_BF16, e->b_hidden);
}

void cct_emit_head(struct cct_emit *e, struct cct_quantity m) {
  int64_t hidden = e->model->hidden, rows = cct_share(e->model->vocab, e->layout.tp), tp = e->layout.tp;
  struct cct_quantity logits = {m.base * rows * 2, m.per * rows * 2, m.slot};
  struct cct_quantity all = {logits.base * tp, logits.per * tp, m.slot};
  if (e->b_head < 0)
    e->b_head = e->model->is_tied
                    ? e->b_embedding
                    : cct_program_add_buffer(e->program, "head", cct_constant(rows * hidden * 2), CCT_MEM_DEVICE, 1);
  if (e->b_logits < 0)
    e->b_logits = cct_program_add_buffer(e->program, "logits", e->is_training ? logits : all, CCT_MEM_DEVICE, 0);
  cct_emit_elementwise(e, "final_norm", cct_per_shard(e, 4 * hidden * 2), e->b_hidden);
  if (e->is_sharded)
    cct_emit_collective(e, "head_gather", CCT_COLL_ALL_GATHER, e->g_tp, cct_per_token(e, hidden * 2), CCT_TYPE_BF16,
                        e->b_hidden);
  cct_emit_gemm(e, "head", m, rows, hidden, 1, CCT_TYPE_BF16, e->b_hidden, e->b_head, e->b_logits);
  if (e->is_training)
    return;
  cct_emit_collective(e, "logits_gather", CCT_COLL_ALL_GATHER, e->g_tp, all, CCT_TYPE_BF16, e->b_logits);
  cct_emit_elementwise(e, "sample", all, e->b_logits);
}

void cct_emit_layer(struct cct_emit *e, int layer, int is_piecewise) {
  cct_emit_attention_in(e, layer);
  if (is_piecewise)
    cct_emit_close_bracket(e, e->graph);
  cct_emit_attention_core(e, layer);
  if (is_piecewise)
    cct_emit_open_bracket(e, CCT_OP_GRAPH, "piece");
  cct_emit_attention_out(e, layer);
  cct_emit_feed_forward(e, layer);
}

void cct_emit_layers(struct cct_emit *e, int is_piecewise) {
  for (int layer = 0; layer < e->model->n_layers; layer++)
    cct_emit_layer(e, layer, is_piecewise);
}
