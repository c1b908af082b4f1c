/* SPDX-License-Identifier: Apache-2.0
 * The counts of one role of a step, bound as it will be performed. */
#ifndef CCT_MPI_RUNNER_TOTALS_H
#define CCT_MPI_RUNNER_TOTALS_H

#include "workloads/program/counts.h"
#include "workloads/steps/workload.h"

enum cct_status cct_step_totals(const struct cct_step *step, int role, struct cct_counts *counts_out) CCT_CHECKED;

#endif
