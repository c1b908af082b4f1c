/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/steps/workload.h"

#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "workloads/shape/cell.h"

static enum cct_status load_program(const struct cct_options *cell, struct cct_step *step) {
  const char *path = cell->v[CCT_OPT_PROGRAM].s;
  struct cct_json *document = NULL;
  enum cct_status status = cct_json_load(path, &document);
  if (status)
    return status;
  struct cct_json_at at = cct_json_root(document, path);
  status = cct_job_from_json(&at, &step->job);
  if (!status)
    status = cct_job_check(step->job);
  cct_json_free(document);
  if (!status && cell->v[CCT_OPT_NP].has_value && cell->v[CCT_OPT_NP].i != step->job->ranks)
    status = cct_fail(CCT_USAGE, "%s: a program of %d ranks, --np is %lld: --np %d", path, step->job->ranks,
                      (long long)cell->v[CCT_OPT_NP].i, step->job->ranks);
  return status;
}

enum cct_status cct_step_build(const struct cct_options *cell, struct cct_step *step_out) {
  struct cct_step step = {0};
  enum cct_status status;
  if (cell->v[CCT_OPT_PROGRAM].has_value && (cell->v[CCT_OPT_MODEL].has_value || cell->v[CCT_OPT_WORKLOAD].has_value))
    return cct_fail(CCT_USAGE, "a cell has a program, or a model and a workload, not both");
  if (cell->v[CCT_OPT_PROGRAM].has_value)
    status = load_program(cell, &step);
  else
    status = cct_fail(CCT_USAGE, "a cell needs a program, or a model, a workload and a layout");
  if (status) {
    cct_step_free(&step);
    return status;
  }
  *step_out = step;
  return CCT_OK;
}

void cct_step_free(struct cct_step *step) {
  if (!step)
    return;
  cct_job_free(step->job);
  free(step->bindings);
  memset(step, 0, sizeof *step);
}
