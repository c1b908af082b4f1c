/* SPDX-License-Identifier: Apache-2.0
 * A training step: for each micro-batch forward, loss and backward; the gradients' reduction over the replicas, layer
 * by layer on the comm lane while the last micro-batch goes on backward; gradient norm, optimizer, and the loss read
 * back. Cross-entropy over a split vocabulary reduces three values a token over tp (Megatron-LM, section 3). Adam reads
 * and writes 16 bytes a parameter. ZeRO-1 reduce-scatters gradients and gathers the updated weights (arXiv 1910.02054,
 * section 5.1). */
#include <stdlib.h>
#include <string.h>

#include "workloads/shape/cell.h"
#include "workloads/steps/template.h"

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

struct train {
  struct cct_emit *e;
  int is_zero1, recompute; /* recompute: 0 none, 1 selective, 2 full */
  int *gradients;          /* buffer by layer */
  int embedding_gradient, optimizer;
};

/* One bucket on the comm lane behind what the compute lane did so far. */
static void reduce_bucket(struct train *t, const char *name, int group, double parameters, int buffer) {
  struct cct_emit *e = t->e;
  if (group < 0 || parameters <= 0)
    return;
  struct cct_wait made = {e->program->n_ops - 1, 0};
  struct cct_op op = {.kind = CCT_OP_COLLECTIVE,
                      .name = name,
                      .lane = e->comm,
                      .host = e->graph >= 0 ? -1 : e->host,
                      .reads = {buffer, -1},
                      .writes = buffer};
  op.collective.kind = t->is_zero1 ? CCT_COLL_REDUCE_SCATTER : CCT_COLL_ALL_REDUCE;
  op.collective.group = group;
  op.collective.bytes = cct_constant((int64_t)(2 * parameters));
  op.collective.type = CCT_TYPE_BF16;
  op.collective.matrix = -1;
  while (e->program->n_ops && e->program->ops[made.id].lane != e->compute)
    made.id--;
  (void)cct_program_add(e->program, &op, &made, 1);
}

static void reduce_layer(struct train *t, int layer) {
  struct cct_parameters p;
  char name[40];
  cct_parameters_of_layer(t->e->model, &t->e->layout, layer, &p);
  reduce_bucket(t, cct_layer_name(name, layer, "gradients"), t->e->g_dp, p.matrices + p.small, t->gradients[layer]);
  reduce_bucket(t, cct_layer_name(name, layer, "expert_gradients"), t->e->g_expert_dp, p.experts, t->gradients[layer]);
}

static void forward_layer(struct cct_emit *e, int layer) {
  cct_emit_attention_in(e, layer);
  cct_emit_attention_core(e, layer);
  cct_emit_attention_out(e, layer);
  cct_emit_feed_forward(e, layer);
}

static void recompute_layer(struct train *t, int layer) {
  struct cct_emit *e = t->e;
  const struct cct_layer_kind *kind = cct_model_layer(e->model, layer);
  char name[40];
  if (t->recompute == 2) {
    forward_layer(e, layer);
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
  cct_emit_gemm(e, "head.dx", cct_per_token(e, 1), hidden, vocabulary, 1, CCT_TYPE_BF16, e->b_logits, e->b_head,
                e->b_hidden);
  cct_emit_gemm(e, "head.dw", cct_constant(hidden), vocabulary, e->tokens, 1, CCT_TYPE_BF16, e->b_hidden, e->b_logits,
                e->layer_gradient);
  cct_emit_collective(e, "head_reduce", e->is_sharded ? CCT_COLL_REDUCE_SCATTER : CCT_COLL_ALL_REDUCE, e->g_tp,
                      cct_per_token(e, hidden * 2), CCT_TYPE_BF16, e->b_hidden);
  cct_emit_elementwise(e, "final_norm.dx", cct_per_shard(e, 5 * hidden * 2), e->b_hidden);
}

static void micro_batch(struct train *t, int is_first, int is_last) {
  struct cct_emit *e = t->e;
  int64_t vocabulary = cct_share(e->model->vocab, e->layout.tp), hidden = e->model->hidden;
  int phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "forward");
  e->first_pass = is_first;
  cct_emit_embedding(e);
  for (int layer = 0; layer < e->model->n_layers; layer++)
    forward_layer(e, layer);
  cct_emit_head(e, cct_per_token(e, 1));
  loss(e, vocabulary);
  cct_emit_close_bracket(e, phase);
  phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "backward");
  e->first_pass = 0;
  e->layer_gradient = t->embedding_gradient;
  head_backward(e, vocabulary);
  for (int layer = e->model->n_layers - 1; layer >= 0; layer--) {
    e->layer_gradient = t->gradients[layer];
    recompute_layer(t, layer);
    cct_emit_layer_backward(e, layer);
    if (is_last)
      reduce_layer(t, layer);
  }
  cct_emit_elementwise(e, "embedding.dw", cct_per_token(e, 3 * hidden * 2), t->embedding_gradient);
  if (is_last)
    reduce_bucket(t, "embedding_gradients", e->g_dp, (double)((e->model->is_tied ? 1 : 2) * vocabulary * hidden),
                  t->embedding_gradient);
  cct_emit_close_bracket(e, phase);
}

/* What this rank updates: under ZeRO-1 its part of the replicas' shard. */
static double owned_parameters(const struct train *t, const struct cct_parameters *p) {
  const struct cct_layout *layout = &t->e->layout;
  double shared = p->embedding + p->matrices + p->small;
  return t->is_zero1 ? shared / (double)layout->dp + p->experts / (double)cct_expert_replicas(layout)
                     : shared + p->experts;
}

/* Waits for the reductions, then norm, Adam on what this rank owns, and under ZeRO-1 the weights back. */
static void optimize(struct train *t) {
  struct cct_emit *e = t->e;
  struct cct_parameters p;
  cct_parameters_share(e->model, &e->layout, &p);
  double shared = p.embedding + p.matrices + p.small, owned = owned_parameters(t, &p);
  struct cct_op norm = {.kind = CCT_OP_ELEMENTWISE,
                        .name = "gradient_norm",
                        .lane = e->compute,
                        .host = e->graph >= 0 ? -1 : e->host,
                        .reads = {t->embedding_gradient, -1},
                        .writes = -1};
  norm.elementwise.bytes = cct_constant((int64_t)(2 * owned));
  struct cct_wait reduced = {e->program->n_ops - 1, 0};
  while (reduced.id >= 0 && !e->program->is_failed && e->program->ops[reduced.id].lane != e->comm)
    reduced.id--;
  (void)cct_program_add(e->program, &norm, &reduced, e->comm >= 0 && reduced.id >= 0);
  if (e->gemm_type != CCT_TYPE_BF16) /* delayed scaling: the largest values of every tensor, once a step */
    cct_emit_collective(e, "amax", CCT_COLL_ALL_REDUCE, e->g_world, cct_constant(12 * 4 * e->model->n_layers),
                        CCT_TYPE_FP32, e->b_wide);
  cct_emit_collective(e, "norm_reduce", CCT_COLL_ALL_REDUCE, e->g_world, cct_constant(4), CCT_TYPE_FP32, e->b_wide);
  cct_emit_elementwise(e, "adam", cct_constant((int64_t)((2 * 12 + 2 + 2) * owned)), t->optimizer);
  if (t->is_zero1) {
    cct_emit_collective(e, "weights_gather", CCT_COLL_ALL_GATHER, e->g_dp, cct_constant((int64_t)(2 * shared)),
                        CCT_TYPE_BF16, t->optimizer);
    if (p.experts > 0)
      cct_emit_collective(e, "expert_weights_gather", CCT_COLL_ALL_GATHER, e->g_expert_dp,
                          cct_constant((int64_t)(2 * p.experts)), CCT_TYPE_BF16, t->optimizer);
  }
}

static void add_gradients(struct train *t) {
  struct cct_emit *e = t->e;
  struct cct_parameters p;
  for (int layer = 0; layer < e->model->n_layers; layer++) {
    char name[40];
    cct_parameters_of_layer(e->model, &e->layout, layer, &p);
    t->gradients[layer] =
        cct_program_add_buffer(e->program, cct_layer_name(name, layer, "gradients"),
                               cct_constant((int64_t)(2 * (p.matrices + p.small + p.experts))), CCT_MEM_DEVICE, 0);
  }
  cct_parameters_share(e->model, &e->layout, &p);
  t->optimizer = cct_program_add_buffer(e->program, "optimizer", cct_constant((int64_t)(12 * owned_parameters(t, &p))),
                                        CCT_MEM_DEVICE, 0);
  t->embedding_gradient = cct_program_add_buffer(e->program, "embedding_gradients",
                                                 cct_constant((int64_t)(2 * p.embedding)), CCT_MEM_DEVICE, 0);
}

static enum cct_status emit(struct cct_emit *e) {
  const char *graph = cct_cell_text(e->cell, CCT_OPT_GRAPH), *recompute = e->cell->v[CCT_OPT_RECOMPUTE].s;
  int64_t passes = e->cell->v[CCT_OPT_ACCUMULATION].i, most = 4 << 20;
  struct train t = {.e = e,
                    .is_zero1 = !strcmp(e->cell->v[CCT_OPT_OPTIMIZER].s, "adam-zero1"),
                    .recompute = !strcmp(recompute, "full") ? 2 : !strcmp(recompute, "selective")};
  if (!strcmp(graph, "piecewise"))
    return cct_fail(CCT_USAGE,
                    "--graph piecewise: graphs around attention are a form of serving; train takes none or full");
  if (passes * e->model->n_layers > most / 64)
    return cct_fail(CCT_USAGE, "--accumulation %lld: %lld layers to write down, %lld are possible", (long long)passes,
                    (long long)(passes * e->model->n_layers), (long long)(most / 64));
  if (!(t.gradients = calloc((size_t)e->model->n_layers, sizeof *t.gradients)))
    return cct_fail(CCT_NOMEM, "out of memory");
  if (e->g_dp >= 0 || e->g_expert_dp >= 0)
    e->comm = cct_program_add_lane(e->program, "comm", CCT_LANE_STREAM);
  add_gradients(&t);
  cct_emit_copy(e, "input", CCT_COPY_H2D, 16 * e->tokens * passes);
  int is_graph = !strcmp(graph, "full");
  if (is_graph)
    cct_emit_open_bracket(e, CCT_OP_GRAPH, "train");
  for (int64_t i = 0; i < passes; i++)
    micro_batch(&t, i == 0, i == passes - 1);
  int phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "optimizer");
  optimize(&t);
  cct_emit_close_bracket(e, phase);
  if (is_graph)
    cct_emit_close_bracket(e, e->graph);
  cct_emit_copy(e, "loss_back", CCT_COPY_D2H, 4);
  cct_emit_sync(e, "loss_sync", e->compute);
  free(t.gradients);
  return CCT_OK;
}

const struct cct_template cct_template_train = {"train", pass, tokens, emit};
