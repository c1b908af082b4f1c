/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/shape/flops.h"

int64_t cct_causal_pairs(int64_t n, int64_t window) {
  int64_t w = window && window < n ? window : n;
  return w * (w + 1) / 2 + (n - w) * w;
}

double cct_model_matrix_parameters(const struct cct_model *model) {
  double hidden = (double)model->hidden, total = (double)model->vocab * hidden;
  for (int layer = 0; layer < model->n_layers; layer++) {
    const struct cct_layer_kind *kind = cct_model_layer(model, layer);
    for (int i = 0; i < kind->n_linears; i++) {
      const struct cct_linear *l = &kind->linears[i];
      double heads = l->split == CCT_SPLIT_HEADS ? (double)kind->heads : 1;
      total += l->form == CCT_FORM_DECODE ? 0 : (double)(l->n + l->n_kv) * (double)l->k * heads;
    }
    total += hidden * (double)kind->experts;
    total += 3 * hidden * (double)(kind->ffn + kind->shared_ffn + kind->top_k * kind->expert_ffn);
  }
  return total;
}

double cct_model_train_flops(const struct cct_model *model, int64_t sequence) {
  double cores = 0;
  for (int layer = 0; layer < model->n_layers; layer++) {
    const struct cct_layer_kind *kind = cct_model_layer(model, layer);
    cores += kind->pair_flops_context * (double)cct_causal_pairs(sequence, kind->window);
  }
  return 6 * cct_model_matrix_parameters(model) + 3 * cores / (double)sequence;
}
