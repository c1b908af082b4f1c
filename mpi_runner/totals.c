/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_runner/totals.h"

#include <stdlib.h>

#include "base/log.h"

enum cct_status cct_job_totals(const struct cct_job *job, const struct cct_binding *bindings, int role,
                               struct cct_counts *counts_out) {
  const struct cct_role *at = &job->roles[role];
  int64_t *slots = calloc((size_t)at->program->n_slots + 1, sizeof *slots);
  if (!slots)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; i < at->program->n_slots; i++)
    slots[i] = at->program->slots[i].value;
  const struct cct_binding defaults = {.slots = slots};
  cct_count_program(job, at->program, bindings ? &bindings[at->first] : &defaults, counts_out);
  free(slots);
  return CCT_OK;
}

enum cct_status cct_step_totals(const struct cct_step *step, int role, struct cct_counts *counts_out) {
  return cct_job_totals(step->job, step->bindings, role, counts_out);
}
