/* SPDX-License-Identifier: Apache-2.0
 * The counts of one role of a step or job, bound as it will be performed: by the rank's own binding, or the program's
 * defaults (`bindings` NULL). */
#ifndef CCT_MPI_RUNNER_TOTALS_H
#define CCT_MPI_RUNNER_TOTALS_H

#include "workloads/program/counts.h"
#include "workloads/steps/workload.h"

enum cct_status cct_job_totals(const struct cct_job *job, const struct cct_binding *bindings, int role,
                               struct cct_counts *counts_out) CCT_CHECKED;
enum cct_status cct_step_totals(const struct cct_step *step, int role, struct cct_counts *counts_out) CCT_CHECKED;

#endif
