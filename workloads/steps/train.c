/* SPDX-License-Identifier: Apache-2.0
 * A training step: for each micro-batch forward, loss and backward; the gradients' reduction over the replicas, bucket
 * by bucket on the comm lane while the last micro-batch goes on backward; gradient norm, optimizer, and the loss read
 * back. Cross-entropy over a split vocabulary reduces three values a token over tp (Megatron-LM, section 3). Adam reads
 * and writes 12 bytes of state a parameter, reads the gradient and writes the weight.
 *
 * ZeRO-1 reduce-scatters gradients and gathers the updated weights (arXiv 1910.02054, section 5.1). The gathers stand
 * in front of the forward pass, as Megatron-core's --overlap-param-gather issues them, so that a step holds those of
 * the step before: in a row of steps it comes to the same, and one step alone is neither longer nor shorter.
 *
 * FP8 is Transformer Engine's delayed scaling (transformer_engine/pytorch/fp8.py): each pass writes the largest value
 * of every tensor, 3 a GEMM forward (input, weight, output) and 2 backward; behind each forward and each backward pass
 * one all-reduce takes their maximum over tp and dp, and one kernel shifts the history of 1024 and sets the scales. */
#include <string.h>

#include "base/log.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/template.h"
#include "workloads/steps/train.h"

static int64_t pairs(const struct cct_options *cell, int64_t sequences, int64_t window) {
  return sequences * cct_causal_pairs(cell->v[CCT_OPT_SEQ_LEN].i, window);
}

static int64_t kv(const struct cct_options *cell, int64_t sequences, int64_t window) {
  (void)window;
  return sequences * cell->v[CCT_OPT_SEQ_LEN].i;
}

static struct cct_pass pass(const struct cct_options *cell) {
  int64_t sequences = cell->v[CCT_OPT_MICRO_BATCH].i;
  return (struct cct_pass){
      .tokens = sequences * cell->v[CCT_OPT_SEQ_LEN].i, .sequences = sequences, .pairs = pairs, .kv = kv};
}

static int64_t tokens(const struct cct_options *cell) {
  return cell->v[CCT_OPT_SEQ_LEN].i * cell->v[CCT_OPT_MICRO_BATCH].i * cell->v[CCT_OPT_ACCUMULATION].i;
}

static void forward_layer(struct cct_train *t, int layer) {
  cct_train_await_weights(t, layer, 0);
  cct_emit_attention_in(t->e, layer);
  cct_emit_attention_core(t->e, layer);
  cct_emit_attention_out(t->e, layer);
  cct_train_await_weights(t, layer, 1);
  cct_emit_feed_forward(t->e, layer);
}

static void recompute_layer(struct cct_train *t, int layer) {
  struct cct_emit *e = t->e;
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  char name[40];
  if (t->recompute == 2) {
    forward_layer(t, layer);
  } else if (t->recompute == 1) { /* both norms' outputs, and the products */
    int64_t width = cct_share(kind->ffn, e->layout.tp);
    cct_emit_elementwise(e, cct_layer_name(name, layer, "norms_again"), cct_per_shard(e, 2 * 2 * e->model->hidden * 2),
                         e->b_hidden);
    if (width)
      cct_emit_elementwise(e, cct_layer_name(name, layer, "product_again"), cct_per_token(e, 3 * width * 2), e->b_wide);
    else
      cct_emit_elementwise(
          e, cct_layer_name(name, layer, "product_again"),
          cct_per_slot(3 * e->moe.groups * cct_share(kind->expert_ffn, e->layout.ep > 1 ? 1 : e->layout.tp) * 2,
                       e->s_rows),
          e->b_expert_wide);
  }
}

static void loss(struct cct_emit *e, int64_t vocabulary) {
  static const char *const names[] = {"loss_max", "loss_target", "loss_sum"};
  cct_emit_elementwise(e, "loss", cct_per_token(e, 3 * vocabulary * 4), e->b_logits);
  for (int i = 0; i < 3; i++)
    cct_emit_collective(e, names[i], CCT_COLL_ALL_REDUCE, e->g_tp, cct_per_token(e, 4), CCT_TYPE_FP32, e->b_wide);
}

static void head_backward(struct cct_emit *e, int64_t vocabulary) {
  int64_t hidden = e->model->hidden;
  if (e->is_sharded) /* the head's input, of which only the shard was kept */
    cct_emit_collective(e, "head_gather_again", CCT_COLL_ALL_GATHER, e->g_tp, cct_per_token(e, hidden * 2),
                        CCT_TYPE_BF16, e->b_hidden);
  cct_emit_gemm(e, "head.dx", cct_per_token(e, 1), hidden, vocabulary, 1, CCT_TYPE_BF16, e->b_logits, e->b_head,
                e->b_hidden);
  cct_emit_gemm(e, "head.dw", cct_constant(hidden), vocabulary, e->tokens, 1, CCT_TYPE_BF16, e->b_hidden, e->b_logits,
                e->layer_gradient);
  cct_emit_collective(e, "head_reduce", e->is_sharded ? CCT_COLL_REDUCE_SCATTER : CCT_COLL_ALL_REDUCE, e->g_tp,
                      cct_per_token(e, hidden * 2), CCT_TYPE_BF16, e->b_hidden);
  cct_emit_elementwise(e, "final_norm.dx", cct_per_shard(e, 5 * hidden * 2), e->b_hidden);
}

/* Delayed scaling: FP8 GEMMs of a layer, those of a rank's experts one by one. */
static int64_t fp8_gemms(const struct cct_emit *e, int layer) {
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  int64_t n = kind->experts ? 2 * (kind->experts / e->layout.ep) + (kind->shared_ffn ? 2 : 0) : 2;
  for (int i = 0; i < kind->n_linears; i++)
    n += kind->linears[i].form != CCT_FORM_DECODE;
  return n;
}

static void update_scales(struct cct_emit *e, int is_backward) {
  int64_t history = 1024, values = 0;
  if (e->gemm_type == CCT_TYPE_BF16)
    return;
  for (int layer = 0; layer < e->model->n_layers; layer++)
    values += (is_backward ? 2 : 3) * fp8_gemms(e, layer);
  int id = cct_emit_collective(e, is_backward ? "amax_backward" : "amax_forward", CCT_COLL_ALL_REDUCE, e->g_world,
                               cct_constant(4 * values), CCT_TYPE_FP32, e->b_wide);
  if (id >= 0 && !e->program->is_failed)
    e->program->ops[id].collective.reduction = CCT_REDUCTION_MAX;
  cct_emit_elementwise(e, is_backward ? "scales_backward" : "scales_forward", cct_constant(2 * 4 * history * values),
                       e->b_wide);
}

static void forward(struct cct_train *t, int is_first) {
  struct cct_emit *e = t->e;
  int phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "forward");
  e->first_pass = is_first;
  cct_train_await_weights(t, -1, 0);
  cct_emit_embedding(e);
  for (int layer = 0; layer < e->model->n_layers; layer++)
    forward_layer(t, layer);
  cct_train_await_weights(t, -1, 1);
  cct_emit_head(e, cct_per_token(e, 1));
  loss(e, cct_share(e->model->vocab, e->layout.tp));
  update_scales(e, 0);
  cct_emit_close_bracket(e, phase);
}

static void backward(struct cct_train *t, int is_last) {
  struct cct_emit *e = t->e;
  int phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "backward");
  e->first_pass = 0;
  t->is_last = is_last;
  t->next = 0;
  int head = e->model->is_tied ? t->n_units - 1 : 0; /* a tied head's gradient is the embedding's */
  e->layer_gradient = t->buckets[t->units[head].bucket].buffer;
  head_backward(e, cct_share(e->model->vocab, e->layout.tp));
  if (e->model->is_tied)
    e->layer_gradient = t->buckets[t->units[0].bucket].buffer;
  else
    cct_train_complete(t);
  for (int layer = e->model->n_layers - 1; layer >= 0; layer--) {
    recompute_layer(t, layer);
    cct_emit_layer_backward(e, layer);
  }
  if (e->is_sharded)
    cct_emit_collective(e, "embedding_gather_grad", CCT_COLL_ALL_GATHER, e->g_tp,
                        cct_per_token(e, e->model->hidden * 2), CCT_TYPE_BF16, e->b_hidden);
  cct_emit_elementwise(e, "embedding.dw", cct_per_token(e, 3 * e->model->hidden * 2), e->layer_gradient);
  cct_train_complete(t);
  update_scales(e, 1);
  cct_emit_close_bracket(e, phase);
}

/* Parameters that every rank of tp holds and that saw only its share of the tokens, or of what the tokens did: with
 * sequence parallelism norms and MLA's down-projections; routers; with ep > 1 shared experts. */
static double shared_over_tp(const struct cct_emit *e) {
  const struct cct_model *model = e->model;
  double sum = e->is_sharded ? (double)model->hidden : 0, hidden = (double)model->hidden;
  for (int layer = 0; layer < model->n_layers; layer++) {
    const struct cct_layer_kind *kind = cct_model_layer(model, layer);
    sum += e->is_sharded ? (double)kind->norms : 0;
    for (int i = 0; i < kind->n_linears; i++)
      sum += cct_is_on_shard(e, kind, &kind->linears[i]) ? cct_linear_parameters(kind, &kind->linears[i]) : 0;
    sum += hidden * (double)(kind->experts + (e->layout.ep > 1 ? 3 * kind->shared_ffn : 0));
  }
  return sum;
}

/* One all-reduce of all of them (Megatron-core, finalize_model_grads.py), when the replicas have reduced theirs. */
static void reduce_over_tp(struct cct_train *t) {
  struct cct_emit *e = t->e;
  int64_t bytes = (int64_t)(t->grad_bytes * shared_over_tp(e));
  if (e->g_tp < 0 || !bytes)
    return;
  int buffer = cct_program_add_buffer(e->program, "tp_gradients", cct_constant(bytes), CCT_MEM_DEVICE, 0);
  cct_emit_collective(e, "tp_gradients", CCT_COLL_ALL_REDUCE, e->g_tp, cct_constant(bytes), t->grad_type, buffer);
}

static void optimize(struct cct_train *t) {
  struct cct_emit *e = t->e;
  struct cct_op norm = {.kind = CCT_OP_ELEMENTWISE,
                        .name = "gradient_norm",
                        .lane = e->compute,
                        .host = e->graph >= 0 ? -1 : e->host,
                        .reads = {t->buckets[0].buffer, -1},
                        .writes = -1};
  norm.elementwise.bytes = cct_constant((int64_t)(t->grad_bytes * t->owned));
  cct_train_reduce_rest(t);
  int reduced = e->comm >= 0 ? e->program->n_ops - 1 : -1;
  while (reduced >= 0 && !e->program->is_failed && e->program->ops[reduced].lane != e->comm)
    reduced--;
  e->pending = reduced;
  reduce_over_tp(t);
  struct cct_wait wait = {e->pending, 0};
  (void)cct_program_add(e->program, &norm, &wait, wait.id >= 0);
  e->pending = -1;
  cct_emit_collective(e, "norm_reduce", CCT_COLL_ALL_REDUCE, e->g_world, cct_constant(4), CCT_TYPE_FP32, e->b_wide);
  e->pending = t->saved;
  int update =
      cct_emit_elementwise(e, "adam", cct_constant((int64_t)((2 * 12 + t->grad_bytes + 2) * t->owned)), t->optimizer);
  if (t->gathered_after >= 0 && !e->program->is_failed)
    e->program->waits[t->gathered_after].id = update;
  if (t->is_zero1 && !t->is_gathered_early)
    cct_train_gather_late(t);
}

static enum cct_status refuse(const struct cct_emit *e, const char *graph, int64_t passes) {
  int64_t most = 4 << 20;
  if (e->gemm_type == CCT_TYPE_NVFP4) /* Transformer Engine's recipe, NVFP4BlockScaling, is no delayed scaling */
    return cct_fail(CCT_USAGE, "train: nvfp4 (blocks with two scales, transforms, stochastic rounding, some layers in "
                               "bf16) is not modelled: --weights bf16 or fp8");
  if (!strcmp(graph, "piecewise"))
    return cct_fail(CCT_USAGE,
                    "--graph piecewise: graphs around attention are a form of serving; train takes none or full");
  if (passes * e->model->n_layers > most / 64)
    return cct_fail(CCT_USAGE, "--accumulation %lld: %lld layers to write down, %lld are possible", (long long)passes,
                    (long long)(passes * e->model->n_layers), (long long)(most / 64));
  return CCT_OK;
}

static int is_on(const struct cct_emit *e, enum cct_option_id id) {
  return !strcmp(e->cell->v[id].s, "on");
}

static enum cct_status emit(struct cct_emit *e) {
  const char *graph = cct_cell_text(e->cell, CCT_OPT_GRAPH), *recompute = e->cell->v[CCT_OPT_RECOMPUTE].s;
  int64_t passes = e->cell->v[CCT_OPT_ACCUMULATION].i;
  int is_graph = !strcmp(graph, "full"), is_zero1 = !strcmp(e->cell->v[CCT_OPT_OPTIMIZER].s, "adam-zero1");
  struct cct_train t = {.e = e,
                        .is_zero1 = is_zero1,
                        .is_overlapped = is_on(e, CCT_OPT_OVERLAP_GRAD),
                        .is_gathered_early = is_zero1 && is_on(e, CCT_OPT_OVERLAP_PARAM),
                        .recompute = !strcmp(recompute, "full") ? 2 : !strcmp(recompute, "selective"),
                        .grad_type = !strcmp(e->cell->v[CCT_OPT_GRAD_TYPE].s, "fp32") ? CCT_TYPE_FP32 : CCT_TYPE_BF16,
                        .awaited = -1,
                        .gathered_after = -1,
                        .saved = -1};
  t.grad_bytes = cct_type_bits(t.grad_type) / 8;
  enum cct_status status = refuse(e, graph, passes);
  if (!status)
    status = cct_train_plan(&t);
  if (status)
    goto out;
  e->complete = cct_train_complete;
  e->context = &t;
  if ((e->g_dp >= 0 || e->g_expert_dp >= 0) && (t.is_overlapped || t.is_gathered_early))
    e->comm = cct_program_add_lane(e->program, "comm", CCT_LANE_STREAM);
  cct_emit_copy(e, "input", CCT_COPY_H2D, 16 * e->tokens * passes);
  if (e->is_checkpoint)
    status = cct_train_checkpoint(&t);
  if (is_graph)
    cct_emit_open_bracket(e, CCT_OP_GRAPH, "train");
  if (t.is_gathered_early)
    cct_train_gather_early(&t);
  for (int64_t i = 0; i < passes; i++) {
    forward(&t, i == 0);
    backward(&t, i == passes - 1);
  }
  int phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "optimizer");
  optimize(&t);
  cct_emit_close_bracket(e, phase);
  if (is_graph)
    cct_emit_close_bracket(e, e->graph);
  cct_emit_copy(e, "loss_back", CCT_COPY_D2H, 4);
  cct_emit_sync(e, "loss_sync", e->compute);
out:
  cct_train_free(&t);
  return status;
}

const struct cct_template cct_template_train = {"train", pass, tokens, emit};
