/* SPDX-License-Identifier: Apache-2.0
 * A footprint: the bytes of GPU memory that one rank needs. docs/models.md explains the formulas.
 *
 * Training (Rajbhandari et al. 2019, ZeRO, arXiv 1910.02054, section 3.1): 16 bytes a parameter = 2 weight + 2 gradient
 * (bf16) + 12 optimizer (fp32 master, momentum, variance); ZeRO-1 divides the 12 by the replicas of the shard. With fp8
 * 2 more of each matrix: Transformer Engine's copy, and the transpose that GPUs before the B200 need.
 * Activations a token and layer, kept for the backward pass in bf16 with an attention that stores no scores (after
 * Korthikanti et al. 2022, arXiv 2205.05198, section 4, for a gated feed-forward part): 2 bytes x [4 hidden (inputs and
 * outputs of both norms) + q, k, v + attention's output + 3 ffn (gate, up, product)], an MoE part: hidden + 3 ffn for
 * each chosen expert. tp divides all but the hidden terms, sequence parallelism these too. `selective` keeps neither
 * norm outputs nor products; `full` only each layer's input, and one layer's activations while it is recomputed. Logits
 * in fp32.
 *
 * Serving: weights + cache of (input + output) tokens a sequence + the activations of one prompt. */
#ifndef CCT_WORKLOADS_SHAPE_FOOTPRINT_H
#define CCT_WORKLOADS_SHAPE_FOOTPRINT_H

#include "base/option.h"
#include "workloads/shape/layout.h"

struct cct_footprint {
  double weights, gradients, optimizer, activations, cache, total; /* bytes */
};

/* `cell` gives lengths, batch or concurrency, optimizer, recompute and sequence-parallel. */
void cct_footprint_of(const struct cct_model *model, const struct cct_layout *layout, const struct cct_options *cell,
                      struct cct_footprint *footprint_out);

#endif
