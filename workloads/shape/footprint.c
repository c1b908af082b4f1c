/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/shape/footprint.h"

#include <string.h>

#include "workloads/shape/cell.h"

/* Stored bytes of one token in one layer: what tp shards, and what only sequence parallelism shards. */
static void layer_activations(const struct cct_model *model, const struct cct_layout *layout,
                              const struct cct_layer_kind *kind, int is_selective, double *sharded_out,
                              double *whole_out) {
  int64_t n, k, groups, expert_tp = layout->ep > 1 ? 1 : layout->tp;
  double hidden = (double)model->hidden, attention = 0, latents = 0, products = is_selective ? 2 : 3;
  for (int i = 0; i < kind->n_linears; i++) {
    const struct cct_linear *linear = &kind->linears[i];
    if (linear->form == CCT_FORM_DECODE)
      continue;
    cct_linear_share(kind, linear, layout->tp, &n, &k, &groups);
    *(kind->is_latent && linear->split == CCT_SPLIT_NONE ? &latents : &attention) +=
        (double)(linear->is_after ? k : n) * (double)groups;
  }
  double ffn = products * (double)cct_share(kind->ffn, layout->tp);
  double experts = (double)kind->top_k * (hidden + products * (double)cct_share(kind->expert_ffn, expert_tp)) +
                   products * (double)cct_share(kind->shared_ffn, expert_tp);
  if (layout->ep > 1)
    experts /= (double)layout->tp; /* each of the tp ranks routes its share of the tokens */
  *sharded_out = 2 * (attention + ffn + experts);
  *whole_out = 2 * (hidden * (is_selective ? 2 : 4) + latents); /* MLA's down-projections are on every rank */
}

static double training_activations(const struct cct_model *model, const struct cct_layout *layout,
                                   const struct cct_options *cell) {
  const char *recompute = cell->v[CCT_OPT_RECOMPUTE].s;
  double tokens = (double)(cell->v[CCT_OPT_SEQ_LEN].i * cell->v[CCT_OPT_MICRO_BATCH].i);
  double sp = !strcmp(cell->v[CCT_OPT_SEQUENCE_PARALLEL].s, "on") ? (double)layout->tp : 1, total = 0, largest = 0;
  int is_full = !strcmp(recompute, "full"), is_selective = !strcmp(recompute, "selective");
  for (int layer = 0; layer < model->n_layers; layer++) {
    double sharded, whole;
    layer_activations(model, layout, cct_model_layer(model, layer), is_selective, &sharded, &whole);
    double one = sharded + whole / sp;
    largest = one > largest ? one : largest;
    total += is_full ? 2 * (double)model->hidden / sp : one;
  }
  double logits = 4 * (double)cct_share(model->vocab, layout->tp);
  return tokens * (total + (is_full ? largest : 0) + logits);
}

static double cache_bytes(const struct cct_model *model, const struct cct_layout *layout, double sequences,
                          int64_t tokens) {
  double total = 0;
  for (int layer = 0; layer < model->n_layers; layer++) {
    const struct cct_layer_kind *kind = cct_model_layer(model, layer);
    int64_t kept = kind->window && kind->window < tokens ? kind->window : tokens;
    total += sequences * (double)kept * (double)cct_kv_bytes_share(kind, layout->tp);
  }
  return total;
}

/* The widest layer's activations of one prompt; nothing is kept between layers. */
static double prompt_activations(const struct cct_model *model, const struct cct_layout *layout, int64_t tokens) {
  double largest = 0;
  for (int i = 0; i < model->n_kinds; i++) {
    double sharded, whole;
    layer_activations(model, layout, &model->kinds[i], 0, &sharded, &whole);
    largest = sharded + whole > largest ? sharded + whole : largest;
  }
  return (double)tokens * largest;
}

void cct_footprint_of(const struct cct_model *model, const struct cct_layout *layout, const struct cct_options *cell,
                      struct cct_footprint *footprint_out) {
  enum cct_workload workload = cct_cell_workload(cell);
  struct cct_parameters p;
  struct cct_footprint sum = {0};
  cct_parameters_share(model, layout, &p);
  double shared = p.embedding + p.matrices + p.small;
  if (workload == CCT_WORKLOAD_TRAIN) {
    int is_zero1 = !strcmp(cell->v[CCT_OPT_OPTIMIZER].s, "adam-zero1");
    int grad_bytes = !strcmp(cell->v[CCT_OPT_GRAD_TYPE].s, "fp32") ? 4 : 2;
    int cast_bytes =
        model->weights == CCT_TYPE_FP8 ? 2 : 0; /* the copy and its transpose, kept for all micro-batches */
    sum.weights = 2 * (shared + p.experts) + cast_bytes * (p.matrices + p.experts);
    sum.gradients = grad_bytes * (shared + p.experts);
    sum.optimizer = 12 * (shared / (is_zero1 ? (double)layout->dp : 1) +
                          p.experts / (is_zero1 ? (double)cct_expert_replicas(layout) : 1));
    sum.activations = training_activations(model, layout, cell);
  } else {
    int64_t input = cell->v[CCT_OPT_INPUT_LEN].i, output = cell->v[CCT_OPT_OUTPUT_LEN].i;
    int64_t sequences = workload == CCT_WORKLOAD_PREFILL  ? 1
                        : workload == CCT_WORKLOAD_DECODE ? cell->v[CCT_OPT_BATCH].i
                                                          : cct_share(cell->v[CCT_OPT_CONCURRENCY].i, layout->dp);
    sum.weights = 2 * (p.embedding + p.small) + cct_weight_bytes(model->weights, p.matrices + p.experts);
    sum.cache = cache_bytes(model, layout, (double)sequences, input + (workload == CCT_WORKLOAD_PREFILL ? 0 : output));
    sum.activations = prompt_activations(model, layout, workload == CCT_WORKLOAD_DECODE ? sequences : input);
  }
  sum.total = sum.weights + sum.gradients + sum.optimizer + sum.activations + sum.cache;
  *footprint_out = sum;
}
