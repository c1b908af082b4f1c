/* SPDX-License-Identifier: Apache-2.0
 * The sim backend: virtual clocks by the timing law over a profile's clear column. No noise of its own, no limit on
 * queued submissions; the same bits for every number of processes. Process p of P owns ranks p*N/P to (p+1)*N/P - 1.
 * Ranks that behave alike are simulated once (sim_ranks.h). */
#ifndef CCT_WORKLOADS_BACKENDS_SIM_H
#define CCT_WORKLOADS_BACKENDS_SIM_H

#include "workloads/backends/backend.h"

extern const struct cct_backend_ops cct_backend_sim;

/* The bound durations of an owned rank's entries in the last step, and the closing synchronisation's: with the printed
 * program all that the law needs. Valid until the next step. For tests that hold sim against a reference. */
const struct cct_duration *cct_sim_durations(const struct cct_executor *executor, int owned,
                                             int64_t *closing_sync_ns_out);
/* Classes of ranks that the last step told apart. */
int cct_sim_classes(const struct cct_executor *executor);

#endif
