/* SPDX-License-Identifier: Apache-2.0
 * Model FLOPs of training: what the mathematics needs, whatever a machine performs for it.
 *
 *   per token = 6 N + 3 A / s      a multiply-add is 2; forward 1, backward 2
 *
 * N: weights that a token multiplies with: linears, feed-forward or top_k experts, shared expert, router, head; no
 * embedding (a lookup), no norms, no padding. A: flops of the attention cores of a causal sequence of s tokens, each
 * query-key pair once, so half of the full square. 6 N is Kaplan et al. 2020, section 2.1, and PaLM, arXiv 2204.02311,
 * appendix B; the causal half is Megatron-LM's (num_floating_point_operations), where PaLM counts the square. Neither
 * recomputation nor the 2.5 of a core that stores no scores counts: that is what hardware FLOPs are for, which
 * counts.h adds up. */
#ifndef CCT_WORKLOADS_SHAPE_FLOPS_H
#define CCT_WORKLOADS_SHAPE_FLOPS_H

#include "workloads/shape/model.h"

double cct_model_matrix_parameters(const struct cct_model *model); /* N */
double cct_model_train_flops(const struct cct_model *model, int64_t sequence);
/* Query-key pairs of a causal sequence: n (n + 1) / 2, or what a window of w leaves. */
int64_t cct_causal_pairs(int64_t n, int64_t window);

#endif
