/* SPDX-License-Identifier: Apache-2.0 */
#include "report/attribute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "workloads/backends/predict.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

enum {
  MOST_REPETITIONS = 4
}; /* of a burst: enough for what one step hides from the next */

/* The profiles that an arm's cost is played on: `machine` clear, `emulated` for the surcharges. */
struct stage {
  struct cct_profile *machine, *emulated;
};

static void stage_free(struct stage *stage) {
  cct_profile_free(stage->machine);
  cct_profile_free(stage->emulated);
}

static enum cct_status stage_open(const struct cct_report *report, int arm, const char *profile, struct stage *stage) {
  const char *name = report->arms[arm], *played = cct_block_fact(report->runs->blocks[0], "profile");
  if (report->is_null || strcmp(report->factor, "condition") || strcmp(report->arms[0], "off"))
    return cct_fail(CCT_UNSUPPORTED, "boundaries are attributed to arms of condition off and on, or emulated");
  const char *emulated = !strncmp(name, "emulated:", 9) ? name + 9 : profile;
  if (!emulated)
    return cct_fail(CCT_UNSUPPORTED, "no profile says what arm '%.60s' costs; name one with --profile", name);
  enum cct_status status = cct_profile_load(emulated, &stage->emulated);
  if (!status)
    status = cct_profile_load(profile ? profile : played && *played ? played : emulated, &stage->machine);
  if (!status && !stage->emulated->has_confidential)
    status = cct_fail(CCT_UNSUPPORTED, "profile '%.60s' has no confidential column", emulated);
  return status;
}

static enum cct_status open_step(const struct cct_report_cell *cell, struct cct_step *step) {
  struct cct_options options;
  struct cct_json_at at = cct_json_root(cell->parameters, cell->title);
  enum cct_status status = cct_cell_from_json(&at, &options);
  if (status)
    return status;
  status = cct_step_build(&options, step);
  cct_options_free(&options);
  return status;
}

static enum cct_status play(const struct stage *stage, const struct cct_step *step, unsigned mask, double *ns_out) {
  int64_t ns = 0;
  enum cct_status status = cct_predict(step->job, stage->machine, mask ? stage->emulated : NULL, mask, step->bindings,
                                       MOST_REPETITIONS, &ns);
  if (!status && ns <= 0)
    status = cct_fail(CCT_UNSUPPORTED, "sim says that the step takes no time");
  *ns_out = (double)ns;
  return status;
}

static enum cct_status attribute(const struct stage *stage, const struct cct_step *step, double seen_pct,
                                 struct cct_attribution *out) {
  double clear, all, alone, without, sum = 0;
  enum cct_status status = play(stage, step, 0, &clear);
  if (!status)
    status = play(stage, step, CCT_ALL_BOUNDARIES, &all);
  for (int k = 0; !status && k < CCT_BOUNDARY_COUNT; k++) {
    status = play(stage, step, 1u << k, &alone);
    if (!status)
      status = play(stage, step, CCT_ALL_BOUNDARIES & ~(1u << k), &without);
    if (status)
      break;
    out->share[k] = 100 * (alone - clear) / clear;
    out->off[k] = 100 * (all - without) / clear;
    sum += out->share[k];
  }
  if (status)
    return status;
  double on = 100 * (all - clear) / clear;
  out->interaction = on - sum;
  out->residual = seen_pct - on;
  out->is_known = 1;
  return CCT_OK;
}

/* What a muted room said last is why this result has no attribution. */
static void keep_reason(struct cct_attribution *attribution) {
  snprintf(attribution->why_not, sizeof attribution->why_not, "%s", cct_log_last());
}

static void attribute_cell(struct cct_report *report, int cell, const struct stage *stages,
                           const char (*why_not)[160]) {
  struct cct_step step = {0};
  enum cct_status built = CCT_UNSUPPORTED;
  int is_step = report->cells[cell].is_primary && !strcmp(report->cells[cell].metric.name, "step");
  if (is_step)
    built = open_step(&report->cells[cell], &step);
  else
    cct_fail(CCT_UNSUPPORTED, "only the time of a step is attributed");
  char reason[160];
  snprintf(reason, sizeof reason, "%s", cct_log_last());
  report->cells[cell].tokens = built ? 0 : step.tokens;
  for (int r = 0; r < report->n_results; r++) {
    struct cct_result *result = &report->results[r];
    if (result->cell != cell || result->verdict == CCT_VERDICT_REFUSED)
      continue;
    if (*why_not[result->arm])
      snprintf(result->attribution.why_not, sizeof reason, "%s", why_not[result->arm]);
    else if (built)
      snprintf(result->attribution.why_not, sizeof reason, "%s", reason);
    else if (attribute(&stages[result->arm], &step, cct_time_overhead_pct(result->comparison.effect),
                       &result->attribution))
      keep_reason(&result->attribution);
  }
  cct_step_free(&step);
}

enum cct_status cct_attribute(struct cct_report *report, const char *profile) {
  struct stage stages[CCT_MAX_ARMS] = {0};
  char why_not[CCT_MAX_ARMS][160] = {0};
  cct_log_mute(1); /* a cell that cannot be played is no error of the report */
  for (int arm = 1; arm < report->n_arms; arm++)
    if (stage_open(report, arm, profile, &stages[arm]))
      snprintf(why_not[arm], sizeof *why_not, "%s", cct_log_last());
  for (int cell = 0; cell < report->n_cells; cell++)
    attribute_cell(report, cell, stages, (const char(*)[160])why_not);
  cct_log_mute(0);
  for (int arm = 1; arm < report->n_arms; arm++)
    stage_free(&stages[arm]);
  return CCT_OK;
}
