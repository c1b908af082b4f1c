/* SPDX-License-Identifier: Apache-2.0
 * The timing law of program/program.h once more, as directly as it can be written: what every backend is held against.
 * It walks each rank's array in order, so it takes only jobs whose members meet their collectives in one common order.
 */
#ifndef CCT_TESTS_CONFORMANCE_LAW_H
#define CCT_TESTS_CONFORMANCE_LAW_H

#include "workloads/backends/backend.h"
#include "workloads/program/price.h"

/* durations[rank][entry]; spans[rank][entry] of the last of `n` repetitions, as a backend's trace gives them. `forms`:
 * what slot 0 is bound to in the steps of a sequence, over and over; NULL: a burst of the default binding. Returns the
 * burst's end without its closing sync, the latest of all ranks; -1: the job deadlocks. */
int64_t cct_law(const struct cct_job *job, struct cct_duration *const *durations, int n, const int64_t *forms,
                int n_forms, struct cct_span *const *spans, int64_t *rank_ends);

#endif
