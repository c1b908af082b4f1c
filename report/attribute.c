/* SPDX-License-Identifier: Apache-2.0 */
#include "report/attribute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "workloads/backends/predict.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

/* What an arm's cost is played by: the profile of its surcharges (NULL: none) and the boundaries that it switches on;
 * and the clear machine where one is named or was played. */
struct stage {
  struct cct_profile *machine, *emulated;
  unsigned mask;
};

static void stage_free(struct stage *stage) {
  cct_profile_free(stage->machine);
  cct_profile_free(stage->emulated);
}

/* -1: the second turn of a condition that had one block. */
static int block_of_arm(const struct cct_report *report, int arm) {
  int b = report->runs->n_blocks - 1;
  while (b >= 0 && report->arm_of[b] != arm)
    b--;
  return b;
}

static const char *fact_of_arm(const struct cct_report *report, int arm, const char *name) {
  int block = block_of_arm(report, arm);
  return block < 0 ? NULL : cct_block_fact(report->runs->blocks[block], name);
}

/* The machine that sim played: the file that the run was given, else the name that it had; NULL: no sim. */
static const char *machine_of_arm(const struct cct_report *report, int arm) {
  const char *named = fact_of_arm(report, arm, "sim_machine");
  const char *given = named ? report->runs->machines[report->runs->run_of[block_of_arm(report, arm)]] : NULL;
  return given ? given : named;
}

/* A name is not enough: the file behind it may have changed since, or be another one. */
static enum cct_status load_played(const char *name, const char *digest, struct cct_profile **profile_out) {
  struct cct_profile *profile;
  enum cct_status status = cct_profile_load(name, &profile);
  if (status)
    return status;
  if (digest && strcmp(digest, profile->digest)) {
    cct_profile_free(profile);
    return cct_fail(CCT_UNSUPPORTED, "profile '%.60s' is not the one that was played; name that file with --profile",
                    name);
  }
  *profile_out = profile;
  return CCT_OK;
}

static enum cct_status stage_open(const struct cct_report *report, int arm, const char *profile, struct stage *stage) {
  const char *name = report->arms[arm], *played = machine_of_arm(report, arm);
  int is_off = !strcmp(name, "off"), is_stripped = !strcmp(name, "stripped"),
      is_emulated = !strncmp(name, "emulated:", 9);
  if (report->is_null || strcmp(report->factor, "condition") ||
      !(is_off || is_stripped || is_emulated || !strcmp(name, "on")))
    return cct_fail(CCT_UNSUPPORTED, "boundaries are attributed to arms of condition off, stripped, on and emulated");
  const char *surcharges = is_emulated ? name + 9 : is_off ? NULL : profile ? profile : is_stripped ? played : NULL;
  if (!is_off && !surcharges)
    return cct_fail(CCT_UNSUPPORTED, "no profile says what arm '%.60s' costs; name one with --profile", name);
  stage->mask = is_off ? 0 : is_stripped ? 1u << CCT_BOUNDARY_CAPABILITY : CCT_ALL_BOUNDARIES;
  enum cct_status status = CCT_OK;
  if (surcharges)
    status = load_played(surcharges, is_emulated ? fact_of_arm(report, arm, "emulated_profile_digest") : NULL,
                         &stage->emulated);
  if (!status && (profile || played))
    status = profile ? cct_profile_load(profile, &stage->machine)
                     : load_played(played, fact_of_arm(report, arm, "sim_machine_digest"), &stage->machine);
  if (!status && surcharges && !stage->emulated->has_confidential)
    status = cct_fail(CCT_UNSUPPORTED, "profile '%.60s' has no confidential column", surcharges);
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

/* What sim says of one arm's step, ns. */
struct played {
  double clear, all, alone[CCT_BOUNDARY_COUNT], without[CCT_BOUNDARY_COUNT];
};

struct stand { /* what stays the same while boundaries are switched */
  const struct cct_profile *machine;
  const struct stage *stage;
  const struct cct_step *step;
  int n; /* repetitions of a burst */
};

static enum cct_status play(const struct stand *stand, unsigned mask, double *ns_out) {
  int64_t ns = 0;
  mask &= stand->stage->mask;
  enum cct_status status = cct_predict(stand->step->job, stand->machine, mask ? stand->stage->emulated : NULL, mask,
                                       stand->step->bindings, stand->n, &ns);
  if (!status && ns <= 0)
    status = cct_fail(CCT_UNSUPPORTED, "sim says that the step takes no time");
  *ns_out = (double)ns;
  return status;
}

/* `clear_ns`: what the same stand without boundaries was found to take, 0: not known. */
static enum cct_status play_all(const struct stand *stand, double clear_ns, struct played *out) {
  enum cct_status status = CCT_OK;
  out->clear = clear_ns;
  if (!(clear_ns > 0))
    status = play(stand, 0, &out->clear);
  out->all = out->clear;
  if (!status && stand->stage->mask)
    status = play(stand, CCT_ALL_BOUNDARIES, &out->all);
  for (int k = 0; !status && k < CCT_BOUNDARY_COUNT; k++) {
    out->alone[k] = out->clear;
    out->without[k] = out->all;
    if (!(stand->stage->mask >> k & 1))
      continue;
    status = play(stand, 1u << k, &out->alone[k]);
    if (!status)
      status = play(stand, CCT_ALL_BOUNDARIES & ~(1u << k), &out->without[k]);
  }
  return status;
}

/* A baseline that has surcharges of its own takes them from the arm's, boundary by boundary. */
static enum cct_status attribute(const struct stage *baseline, const struct stage *arm, const int n[2],
                                 const struct cct_step *step, double seen_pct, struct cct_attribution *out) {
  const struct cct_profile *machine = arm->machine ? arm->machine : arm->emulated ? arm->emulated : baseline->emulated;
  const struct stand stands[2] = {{machine, baseline, step, n[0]}, {machine, arm, step, n[1]}};
  struct played off, on;
  if (!machine)
    return cct_fail(CCT_UNSUPPORTED, "no profile says what the clear machine is; name one with --profile");
  enum cct_status status = play_all(&stands[0], 0, &off);
  if (!status)
    status = play_all(&stands[1], n[0] == n[1] ? off.clear : 0, &on);
  if (status)
    return status;
  double sum = 0, all = 100 * (on.all - off.all) / off.all;
  for (int k = 0; k < CCT_BOUNDARY_COUNT; k++) {
    out->share[k] = 100 * ((on.alone[k] - on.clear) - (off.alone[k] - off.clear)) / off.all;
    out->off[k] = 100 * ((on.all - on.without[k]) - (off.all - off.without[k])) / off.all;
    sum += out->share[k];
  }
  out->interaction = all - sum;
  out->residual = seen_pct - all;
  out->is_known = 1;
  return CCT_OK;
}

/* What a muted room said last is why this result has no attribution. */
static void keep_reason(struct cct_attribution *attribution) {
  snprintf(attribution->why_not, sizeof attribution->why_not, "%s", cct_log_last());
}

static void scale_surcharge(struct cct_cost *confidential, const struct cct_cost *clear, int64_t performed,
                            int64_t program) {
  if (performed > 0 && program > 0)
    confidential->value = clear->value + (confidential->value - clear->value) * (double)performed / (double)program;
}

/* An arm that emulates pays for each submission of its program; one that was confidential paid for each that the
 * backend performed. `profile` holds the stage's own then. */
static struct stage by_count(const struct stage *stage, const char *arm, const struct cct_series *series,
                             struct cct_profile *profile) {
  struct stage own = *stage;
  const struct cct_cell_counts *program = &series->program, *performed = &series->performed;
  if (!stage->emulated || !strncmp(arm, "emulated:", 9))
    return own;
  *profile = *stage->emulated; /* what it points to stays the stage's */
  scale_surcharge(&profile->confidential.submission.us, &profile->clear.submission.us,
                  performed->submissions - performed->graphs, program->submissions - program->graphs);
  scale_surcharge(&profile->confidential.graph_launch.us_per_node, &profile->clear.graph_launch.us_per_node,
                  performed->nodes, program->nodes);
  own.emulated = profile;
  return own;
}

static void attribute_cell(struct cct_report *report, int cell, const struct stage *stages,
                           const char (*why_not)[160]) {
  const struct cct_series *arms = report->cells[cell].arms;
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
    /* A sample's n counts collectives; sim repeats launches, of graphs and groups of them. */
    const int operations = step.operations > 1 ? (int)step.operations : 1;
    const int n[2] = {arms[0].n_repetitions / operations, arms[result->arm].n_repetitions / operations};
    struct cct_profile profile;
    const struct stage stage = by_count(&stages[result->arm], report->arms[result->arm], &arms[result->arm], &profile);
    const char *why = *why_not[0] ? why_not[0] : why_not[result->arm];
    if (*why)
      snprintf(result->attribution.why_not, sizeof reason, "%s", why);
    else if (built)
      snprintf(result->attribution.why_not, sizeof reason, "%s", reason);
    else if (attribute(&stages[0], &stage, n, &step, cct_time_overhead_pct(result->comparison.effect),
                       &result->attribution))
      keep_reason(&result->attribution);
  }
  cct_step_free(&step);
}

enum cct_status cct_attribute(struct cct_report *report, const char *profile) {
  struct stage stages[CCT_MAX_ARMS] = {0};
  char why_not[CCT_MAX_ARMS][160] = {0};
  cct_log_mute(1); /* a cell that cannot be played is no error of the report */
  for (int arm = 0; arm < report->n_arms; arm++)
    if (stage_open(report, arm, profile, &stages[arm]))
      snprintf(why_not[arm], sizeof *why_not, "%s", cct_log_last());
  for (int cell = 0; cell < report->n_cells; cell++)
    attribute_cell(report, cell, stages, (const char(*)[160])why_not);
  cct_log_mute(0);
  for (int arm = 0; arm < report->n_arms; arm++)
    stage_free(&stages[arm]);
  return CCT_OK;
}
