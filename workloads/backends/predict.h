/* SPDX-License-Identifier: Apache-2.0
 * What a step would take, by sim in this process alone: the planner's price and the report's attribution. */
#ifndef CCT_WORKLOADS_BACKENDS_PREDICT_H
#define CCT_WORKLOADS_BACKENDS_PREDICT_H

#include "workloads/backends/backend.h"

/* One step of `job` on the clear column of `machine`, with the surcharges of `emulated` (NULL: none) at the boundaries
 * in `mask` (bits 1 << CCT_BOUNDARY_x): n back-to-back repetitions, divided by n, maximum over ranks. With the bit of
 * CAPABILITY, what `emulated` says is taken away is not used (rows that need multicast). `bindings` has one for each
 * rank, or is NULL for the programs' defaults. */
enum cct_status cct_predict(const struct cct_job *job, const struct cct_profile *machine,
                            const struct cct_profile *emulated, unsigned mask, const struct cct_binding *bindings,
                            int n, int64_t *step_ns_out) CCT_CHECKED;

#endif
