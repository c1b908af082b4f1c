/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/attribute.h"
#include "report/names.h"
#include "report/overlap.h"
#include "report/pair.h"
#include "report/remarks.h"
#include "report/report.h"
#include "report/series.h"
#include "stats/stats.h"

const char *cct_verdict_name(enum cct_verdict verdict) {
  static const char *const names[] = {
#define VERDICT_NAME(id, name) name,
      CCT_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
  };
  return names[verdict];
}

double cct_time_overhead_pct(double effect) {
  return 100 * expm1(effect);
}

double cct_throughput_loss_pct(double effect) {
  return -100 * expm1(-effect);
}

static int has_word(const char *label, const char *word) {
  return strstr(label, word) != NULL;
}

/* The label of a pair: the arm's own, and what the baseline's adds to it. */
static void join_labels(const char *baseline, const char *arm, char *out, size_t size) {
  snprintf(out, size, "%s", arm);
  char copy[64], *rest = copy;
  snprintf(copy, sizeof copy, "%s", baseline);
  for (char *word; (word = strsep(&rest, ", "));) {
    size_t length = strlen(out);
    int is_kind = !strcmp(word, "measured") || !strcmp(word, "emulated") || !strcmp(word, "predicted");
    if (*word && !is_kind && !has_word(out, word))
      snprintf(out + length, size - length, ",%s", word);
  }
}

/* Why this pair has no overhead at all; "" if it has one. */
static void find_refusal(const struct cct_report *report, struct cct_result *result) {
  const struct cct_report_cell *cell = &report->cells[result->cell];
  const struct cct_series *a = &cell->arms[0], *b = &cell->arms[result->arm];
  const char *missing = !b->n_units ? report->arms[result->arm] : !a->n_units ? report->arms[0] : NULL;
  const struct cct_series *zero = b->n_zero ? b : a;
  if (*a->refusal || *b->refusal)
    snprintf(result->reason, sizeof result->reason, "%s", *a->refusal ? a->refusal : b->refusal);
  else if (zero->n_zero)
    snprintf(result->reason, sizeof result->reason, "0 in %d of %d blocks of arm '%s': no ratio", zero->n_zero,
             zero->n_zero + zero->n_units, report->arms[zero == b ? result->arm : 0]);
  else if (missing && report->is_null)
    snprintf(result->reason, sizeof result->reason, "one block: one condition is compared from two rounds on");
  else if (missing)
    snprintf(result->reason, sizeof result->reason, "no block of arm '%s' has this cell", missing);
  else if (has_word(result->label, "oversubscribed"))
    snprintf(result->reason, sizeof result->reason,
             "oversubscribed: more ranks than cores, no overhead is read from it");
  else if (has_word(result->label, "shared-gpu"))
    snprintf(result->reason, sizeof result->reason, "shared-gpu: functional only, no overhead is read from it");
}

/* In standard errors; looked for once as long as the degrees stay, as they do from cell to cell. */
static double visible_of(struct cct_report *report, double df) {
  if (report->visible_df != df) {
    report->visible_df = df;
    report->visible = cct_smallest_visible(1, df);
  }
  return report->visible;
}

/* Whether sim was given any: what it predicts is then drawn, and once is no certainty. */
static int has_noise(const struct cct_report *report) {
  for (int b = 0; b < report->runs->n_blocks; b++)
    if (cct_block_fact(report->runs->blocks[b], "noise"))
      return 1;
  return 0;
}

static void judge(struct cct_report *report, struct cct_result *result) {
  const struct cct_series *a = &report->cells[result->cell].arms[0],
                          *b = &report->cells[result->cell].arms[result->arm];
  struct cct_comparison *c = &result->comparison;
  int is_predicted = has_word(a->label, "predicted") && has_word(b->label, "predicted");
  result->is_exact = is_predicted && (c->df > 0 ? !(c->se > 1e-12) : !has_noise(report));
  if (result->is_exact) {
    c->df = 0; /* what has no noise has no interval */
  } else if (c->df > 0 && !(c->se > 1e-12)) {
    c->df = 0; /* equal samples of a real clock are a coarse clock, not certainty */
    snprintf(result->reason, sizeof result->reason,
             "all medians are equal, as those of counts or of a coarse clock are: no interval");
  } else if (!(c->df > 0)) {
    snprintf(result->reason, sizeof result->reason, "one block an arm: a ratio, and no interval");
  }
  result->smallest_visible = c->df > 0 ? c->se * visible_of(report, c->df) : NAN;
  int is_different = fabs(c->effect) > 1e-9 && (result->is_exact || (c->df > 0 && (c->lo > 0 || c->hi < 0)));
  const struct cct_metric *metric = &report->cells[result->cell].metric;
  int is_worse = c->effect > 0, is_higher = is_worse == (strcmp(metric->better, "higher") != 0);
  if (!is_different)
    result->verdict = CCT_VERDICT_SAME;
  else if (cct_metric_measure(metric) == CCT_MEASURE_COUNT)
    result->verdict = is_higher ? CCT_VERDICT_MORE : CCT_VERDICT_FEWER;
  else
    result->verdict = is_worse ? CCT_VERDICT_SLOWER : CCT_VERDICT_FASTER;
}

/* What a pair that is not compared has of a median; NAN: nothing. */
static double median_of(const struct cct_series *series) {
  struct cct_comparison alone;
  size_t n = (size_t)series->n_units;
  if (series->n_zero) /* as values are: negated logarithms where higher is better */
    return series->n_zero > series->n_units ? INFINITY : NAN;
  return n && !*series->refusal && cct_compare(series->units, n, series->units, n, &alone) == CCT_OK ? alone.centre[0]
                                                                                                     : NAN;
}

/* What both arms have is said once. */
static void add_remark(struct cct_result *result, const char *arms, const char *text) {
  size_t length = strlen(result->remark);
  if (*text)
    snprintf(result->remark + length, sizeof result->remark - length, "%s%s%s%s", length ? "; " : "", arms,
             *arms ? ": " : "", text);
}

static void remark_pair(const struct cct_report *report, struct cct_result *result) {
  const struct cct_report_cell *cell = &report->cells[result->cell];
  const struct cct_series *of[2] = {&cell->arms[0], &cell->arms[result->arm]};
  const char *names[2] = {report->arms[0], report->arms[result->arm]};
  char counts[2][200];
  for (int i = 0; i < 2; i++)
    cct_counts_remark(&of[i]->program, &of[i]->performed, counts[i], sizeof counts[i]);
  int is_same = !strcmp(counts[0], counts[1]);
  add_remark(result, is_same ? "" : names[0], counts[0]);
  add_remark(result, names[1], is_same ? "" : counts[1]);
  for (int i = 0; i < 2; i++)
    add_remark(result, names[i], of[i]->mark);
}

static enum cct_status compare_pair(struct cct_report *report, int cell, int arm, struct cct_result *result) {
  const struct cct_series *a = &report->cells[cell].arms[0], *b = &report->cells[cell].arms[arm];
  *result = (struct cct_result){.cell = cell, .arm = arm, .smallest_visible = NAN};
  join_labels(*a->label ? a->label : b->label, *b->label ? b->label : a->label, result->label, sizeof result->label);
  find_refusal(report, result);
  if (report->cells[cell].is_primary)
    remark_pair(report, result);
  if (*result->reason) {
    result->verdict = CCT_VERDICT_REFUSED;
    result->comparison = (struct cct_comparison){.effect = NAN, .centre = {median_of(a), median_of(b)}};
    return CCT_OK;
  }
  enum cct_status status = cct_compare(a->units, (size_t)a->n_units, b->units, (size_t)b->n_units, &result->comparison);
  if (!status)
    judge(report, result);
  return status;
}

/* ---- the geometric mean over cells, blocks kept apart, so that what a boot does to all cells stays in the interval
 * ---- */

static int same_blocks(const struct cct_series *a, const struct cct_series *b) {
  int is_same = a->n_units == b->n_units;
  for (int i = 0; is_same && i < a->n_units; i++)
    is_same = a->units[i].boot == b->units[i].boot && a->units[i].round == b->units[i].round;
  return is_same;
}

/* Steps of a model are what a user pays for; collectives and probes explain them. The mean is over steps where there
 * are any. */
static int has_steps(const struct cct_report *report) {
  for (int c = 0; c < report->n_cells; c++)
    if (report->cells[c].model)
      return 1;
  return 0;
}

static enum cct_status mean_over_cells(const struct cct_report *report, int arm, int with_open,
                                       struct cct_arm_summary *summary) {
  struct cct_unit *sum[2] = {NULL, NULL};
  const struct cct_series *first[2] = {NULL, NULL};
  enum cct_status status = CCT_OK;
  for (int r = 0; r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    const struct cct_report_cell *cell = &report->cells[result->cell];
    if (result->arm != arm || result->verdict == CCT_VERDICT_REFUSED || !cell->is_primary ||
        (cell->is_open && !with_open) || (report->has_steps && !cell->model))
      continue;
    const struct cct_series *series[2] = {&cell->arms[0], &cell->arms[arm]};
    for (int k = 0; k < 2 && !first[0]; k++) {
      sum[k] = calloc((size_t)series[k]->n_units, sizeof *sum[k]);
      if (!sum[k]) {
        status = cct_fail(CCT_NOMEM, "out of memory: geometric mean");
        goto out;
      }
      memcpy(sum[k], series[k]->units, (size_t)series[k]->n_units * sizeof *sum[k]);
      for (int i = 0; i < series[k]->n_units; i++)
        sum[k][i].value = 0;
    }
    if (!first[0])
      memcpy(first, series, sizeof first);
    if (!same_blocks(first[0], series[0]) || !same_blocks(first[1], series[1]))
      continue;
    for (int k = 0; k < 2; k++)
      for (int i = 0; i < series[k]->n_units; i++)
        sum[k][i].value += series[k]->units[i].value;
    summary->n_cells++;
  }
  for (int k = 0; k < 2 && first[k]; k++)
    for (int i = 0; i < first[k]->n_units; i++)
      sum[k][i].value /= summary->n_cells;
  if (first[0])
    status = cct_compare(sum[0], (size_t)first[0]->n_units, sum[1], (size_t)first[1]->n_units, &summary->mean);
  if (!(summary->mean.se > 1e-12))
    summary->mean.df = 0;
out:
  free(sum[0]);
  free(sum[1]);
  return status;
}

static void count(struct cct_report *report) {
  for (int r = 0; r < report->n_results; r++)
    report->n_compared += report->results[r].comparison.df > 0 || report->results[r].is_exact;
  for (int c = 0; c < report->n_cells; c++)
    for (int a = 0; a < report->n_arms; a++) {
      const struct cct_series *series = &report->cells[c].arms[a];
      report->n_nulls += series->has_null;
      report->n_nulls_different += series->has_null && (series->null.lo > 0 || series->null.hi < 0);
    }
}

enum cct_status cct_report_make(const struct cct_runs *runs, const char *allow, const char *profile,
                                struct cct_report *report_out) {
  struct cct_report report = {.runs = runs};
  enum cct_status status = runs->n_blocks ? cct_gate_check(runs, allow, &report.gate)
                                          : cct_fail(CCT_USAGE, "no block to report; name run directories");
  if (!status)
    status = cct_pair_cells(runs, &report);
  if (!status && !report.n_cells)
    status = cct_fail(CCT_USAGE, "%s: no finished cell in any block", runs->names[0]);
  if (!status)
    status = cct_names_make(&report);
  if (!status) {
    report.results = calloc((size_t)report.n_cells * (size_t)(report.n_arms - 1), sizeof *report.results);
    if (!report.results)
      status = cct_fail(CCT_NOMEM, "out of memory: %d cells", report.n_cells);
  }
  for (int c = 0; !status && c < report.n_cells; c++)
    for (int a = 1; !status && a < report.n_arms; a++)
      status = compare_pair(&report, c, a, &report.results[report.n_results++]);
  report.has_steps = has_steps(&report);
  for (int a = 1; !status && a < report.n_arms; a++) {
    status = mean_over_cells(&report, a, 1, &report.summary[a]);
    if (!status)
      status = mean_over_cells(&report, a, 0, &report.throughput[a]);
  }
  if (!status)
    status = cct_attribute(&report, profile);
  if (!status)
    status = cct_overlap_finish(&report);
  if (status) {
    cct_report_free(&report);
    return status;
  }
  count(&report);
  *report_out = report;
  return CCT_OK;
}

int cct_report_has_failures(const struct cct_report *report) {
  for (int c = 0; c < report->n_cells; c++)
    for (int a = 0; a < report->n_arms; a++)
      if (*report->cells[c].arms[a].refusal)
        return 1;
  return 0;
}

void cct_report_free(struct cct_report *report) {
  if (!report)
    return;
  cct_pair_free(report);
  cct_names_free(report->names);
  cct_overlap_free(report->overlap);
  free(report->results);
  memset(report, 0, sizeof *report);
}
