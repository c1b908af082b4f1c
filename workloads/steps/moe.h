/* SPDX-License-Identifier: Apache-2.0
 * The routing of one step: expected when it is uniform, drawn when it is skewed. Private to this room. */
#ifndef CCT_WORKLOADS_STEPS_MOE_H
#define CCT_WORKLOADS_STEPS_MOE_H

#include "workloads/steps/emit.h"

struct cct_moe_draw { /* what skew makes of the ranks of an EP group; all 0 when routing is uniform and has no capacity
                       */
  struct cct_matrix matrices[2]; /* dispatch, combine: bytes; owned */
  int64_t *rows;                 /* by rank of the EP group: slot expert_rows; owned */
};

/* Fills `moe` for `tokens` tokens of a replica (all zero when the model has no experts). Uniform: of T tokens of the EP
 * group a rank's experts get T k / n rows in all, spread over those that are expected to be chosen at all. Skewed: the
 * same draw for every layer of the step; `host` routing computes each rank's own rows, `padded` the busiest expert's
 * for every expert. With a capacity C = ceil(T k / E x factor) of an expert and rank the routing is drawn in any case:
 * what is above is dropped, `padded` computes n C rows for every expert and, per expert, sends C copies for each
 * (Megatron-core's --moe-pad-expert-input-to-capacity), `host` what is left. */
enum cct_status cct_moe_plan(const struct cct_model *model, const struct cct_layout *layout,
                             const struct cct_options *cell, int64_t tokens, struct cct_moe *moe,
                             struct cct_moe_draw *draw_out) CCT_CHECKED;
void cct_moe_draw_free(struct cct_moe_draw *draw); /* NULL-safe */

#endif
