/* SPDX-License-Identifier: Apache-2.0
 * The first half of cct_job_check: one program alone, entry by entry with the brackets it stands in. `job` says which
 * groups there are. CCT_USAGE with one line that names program, entry and rule; CCT_NOMEM. */
#ifndef CCT_WORKLOADS_PROGRAM_PROGRAM_CHECK_H
#define CCT_WORKLOADS_PROGRAM_PROGRAM_CHECK_H

#include "workloads/program/program.h"

enum cct_status cct_program_check(const struct cct_job *job, const struct cct_program *program) CCT_CHECKED;
/* A quantity at its slot's standard value; 0 when it has no such slot, overflows or is negative. */
int cct_quantity_standard(const struct cct_program *program, struct cct_quantity quantity, int64_t *value_out);

#endif
