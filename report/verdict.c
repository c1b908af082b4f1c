/* SPDX-License-Identifier: Apache-2.0 */
#include "report/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/attribute.h"
#include "report/names.h"
#include "report/numbers.h"
#include "report/overlap.h"
#include "report/spread.h"
#include "stats/stats.h"

const char *cct_verdict_title(enum cct_verdict_part part) {
  static const char *const titles[] = {
#define PART_TITLE(id, title) title,
      CCT_VERDICT_PARTS(PART_TITLE)
#undef PART_TITLE
  };
  return titles[part];
}

static int is_predicted(const struct cct_report *report) {
  int n = 0;
  for (int r = 0; r < report->n_results; r++)
    n += strstr(report->results[r].label, "predicted") != NULL;
  return n && n == report->n_results;
}

static void range_text(const struct cct_spread *spread, char out[96]) {
  char lo[32], hi[32];
  cct_percent_text(cct_time_overhead_pct(spread->least->comparison.effect), NAN, lo);
  cct_percent_text(cct_time_overhead_pct(spread->most->comparison.effect), NAN, hi);
  snprintf(out, 96, "%.*s to %s", (int)strlen(lo) - 2, lo, hi);
}

/* What each kind of cell pays, the steps of a model first. */
static enum cct_status by_kind(const struct cct_report *report, int arm, struct cct_text *text) {
  enum cct_status status = CCT_OK;
  for (int is_rest = 0; is_rest <= report->has_steps; is_rest++)
    for (int kind = 0; !status && kind < cct_names_kinds(report); kind++) {
      struct cct_spread spread;
      char range[96], percent[32];
      status = cct_spread_of(report, arm, kind, &spread);
      if (status || !spread.n || (report->has_steps && !report->cells[spread.most->cell].model) != is_rest)
        continue;
      range_text(&spread, range);
      if (spread.n == 1)
        cct_text_add(text, "%s: time %s, one cell.\n", cct_kind_name(report, kind),
                     cct_effect_text(&spread.most->comparison, range));
      else
        cct_text_add(text, "%s: time %s, median %s, over %d cells.\n", cct_kind_name(report, kind), range,
                     cct_percent_text(cct_time_overhead_pct(spread.median), NAN, percent), spread.n);
    }
  return status;
}

/* Whether a profile could tell where it comes from: of the time of steps, and not of requests. */
static int is_attributable(const struct cct_report *report) {
  for (int c = 0; c < report->n_cells; c++)
    if (report->cells[c].is_primary && !strcmp(report->cells[c].metric.name, "step"))
      return 1;
  return 0;
}

/* ", throughput -3.1 %" */
static void throughput_text(double effect, char out[64]) {
  char percent[32];
  snprintf(out, 64, ", throughput %s", cct_percent_text(-cct_throughput_loss_pct(effect), NAN, percent));
}

char *cct_throughput_scope(const struct cct_report *report, int arm, char out[CCT_SCOPE_TEXT]) {
  int n = report->throughput[arm].n_cells;
  *out = '\0';
  if (n < report->summary[arm].n_cells)
    snprintf(out, CCT_SCOPE_TEXT, " over the %d whose requests do not come at a rate", n);
  return out;
}

static void mean_text(const struct cct_report *report, int arm, const struct cct_spread *spread,
                      struct cct_text *text) {
  const struct cct_arm_summary *summary = &report->summary[arm];
  const char *what = report->has_steps && is_attributable(report) ? "step" : "cell",
             *many = summary->n_cells == 1 ? "" : "s";
  char effect[96], loss[64 + CCT_SCOPE_TEXT] = "", range[96];
  cct_effect_text(&summary->mean, effect);
  if (report->throughput[arm].n_cells) {
    throughput_text(report->throughput[arm].mean.effect, loss);
    cct_throughput_scope(report, arm, loss + strlen(loss));
  }
  if (report->is_null)
    cct_text_add(text, "One condition twice: time %s over %d %s%s is noise, not cost.\n", effect, summary->n_cells,
                 what, many);
  else if (summary->n_cells == 1)
    cct_text_add(text, "The one cell there is: time %s%s.\n", effect, loss);
  else if (!cct_spread_is_wide(spread))
    cct_text_add(text, "Geometric mean over %d %ss: time %s%s.\n", summary->n_cells, what, effect, loss);
  else if (spread->least->comparison.effect > 5e-4)
    cct_text_add(text,
                 "The costliest %s pays %.3g times what the cheapest pays: a mean over them would be the cost of none, "
                 "and is not given.\n",
                 what,
                 cct_time_overhead_pct(spread->most->comparison.effect) /
                     cct_time_overhead_pct(spread->least->comparison.effect));
  else {
    range_text(spread, range);
    cct_text_add(text, "The %ss differ too much for a mean (%s): it would be the cost of none, and is not given.\n",
                 what, range);
  }
}

/* What a training step costs with its part of a checkpoint in it: not what the step alone says. */
static void with_checkpoints(const struct cct_report *report, int arm, struct cct_text *text) {
  double least = INFINITY, most = -INFINITY;
  char low[32], high[32];
  for (int c = 0; c < report->n_cells; c++) {
    struct cct_training base, other;
    if (!cct_training_of(report, c, 0, &base) || !cct_training_of(report, c, arm, &other) ||
        !isfinite(base.checkpoint_s) || !isfinite(other.checkpoint_s))
      continue;
    least = fmin(least, 100 * (other.step_s / base.step_s - 1));
    most = fmax(most, 100 * (other.step_s / base.step_s - 1));
  }
  if (most < least)
    return;
  cct_percent_text(least, NAN, low);
  cct_percent_text(most, NAN, high);
  if (strcmp(low, high) != 0)
    cct_text_add(text, "With a step's part of its checkpoint: time %s to %s.\n", low, high);
  else
    cct_text_add(text, "With a step's part of its checkpoint: time %s.\n", high);
}

static void how_much(const struct cct_report *report, int arm, struct cct_text *text) {
  struct cct_spread spread;
  char effect[96], loss[64] = "";
  int has_open = 0;
  cct_text_add(text, "%s against %s%s", report->arms[arm], report->arms[0], report->is_null ? ", A/A.\n" : ".\n");
  if (cct_spread_of(report, arm, -1, &spread) || !spread.n) {
    cct_text_add(text, "No cell could be compared.\n");
    return;
  }
  for (int c = 0; c < report->n_cells; c++)
    has_open |= report->cells[c].is_open;
  if (has_open)
    cct_text_add(text, "Where requests come at a rate of their own, throughput is mostly theirs: time is that of "
                       "a request, e2e.\n");
  if (!report->is_null && (spread.n > 1 || cct_names_kinds(report) > 1) && by_kind(report, arm, text))
    return;
  if (spread.n > 1 && spread.least != spread.most) {
    const struct cct_result *most = spread.most, *least = spread.least;
    if (!report->cells[most->cell].is_open)
      throughput_text(most->comparison.effect, loss);
    cct_text_add(text, "Most: %s, time %s%s.\n", report->cells[most->cell].title,
                 cct_effect_text(&most->comparison, effect), loss);
    cct_text_add(text, "Least: %s, time %s.\n", report->cells[least->cell].title,
                 cct_effect_text(&least->comparison, effect));
  }
  mean_text(report, arm, &spread, text);
}

static void how_sure(const struct cct_report *report, struct cct_text *text) {
  const struct cct_comparison *c = NULL;
  int counts[CCT_VERDICT_COUNT] = {0}, exact = 0, with_interval = 0, outliers = 0, drifting = 0, samples = 0,
      unpaired = 0;
  double worst = 0;
  char number[32];
  for (int r = 0; r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    counts[result->verdict]++;
    exact += result->is_exact;
    with_interval += result->comparison.df > 0;
    if (result->verdict != CCT_VERDICT_REFUSED) {
      c = c ? c : &result->comparison;
      unpaired += result->comparison.unpaired;
    }
    if (isfinite(result->smallest_visible) && result->smallest_visible > worst)
      worst = result->smallest_visible;
  }
  for (int k = 0; k < report->n_cells; k++)
    for (int a = 0; a < report->n_arms; a++) {
      outliers += report->cells[k].arms[a].outliers;
      samples += report->cells[k].arms[a].n_samples;
      drifting += report->cells[k].arms[a].is_drifting;
    }
  cct_text_add(text, "%d comparison%s: %d slower, %d faster", report->n_results, report->n_results == 1 ? "" : "s",
               counts[CCT_VERDICT_SLOWER], counts[CCT_VERDICT_FASTER]);
  if (counts[CCT_VERDICT_MORE] + counts[CCT_VERDICT_FEWER])
    cct_text_add(text, ", %d more, %d fewer", counts[CCT_VERDICT_MORE], counts[CCT_VERDICT_FEWER]);
  cct_text_add(text, ", %d not told apart (~)", counts[CCT_VERDICT_SAME]);
  cct_text_add(text, counts[CCT_VERDICT_REFUSED] ? ", %d refused.\n" : ".\n", counts[CCT_VERDICT_REFUSED]);
  if (exact && exact == report->n_results - counts[CCT_VERDICT_REFUSED]) {
    cct_text_add(text,
                 "No intervals: these figures are predicted, and sim takes the same time for the same step whenever "
                 "it is asked. Repeating it cannot tell whether its model is right; measuring can.\n");
    return;
  }
  if (with_interval > 1)
    cct_text_add(text, "%d of them have an interval; at 95 %% about %.1f of those would look different by chance.\n",
                 with_interval, 0.05 * with_interval);
  if (c)
    cct_text_add(text, "Intervals: %s; %d boot%s, %d blocks an arm.\n", cct_design_text(c->design), c->boots[1],
                 c->boots[1] == 1 ? "" : "s", c->blocks[1]);
  if (c && c->is_within_boot)
    cct_text_add(text, "One boot an arm: what changes from boot to boot is NOT in these intervals; add boots with "
                       "cctax run --append.\n");
  if (worst > 0)
    cct_text_add(text, "Smallest effect that every cell would show with 80 %% power: %s %%.\n",
                 cct_digits_text(cct_time_overhead_pct(worst), 2, number));
  if (report->n_nulls)
    cct_text_add(text, "A/A within arms: %d of %d called different (5 %% expected).\n", report->n_nulls_different,
                 report->n_nulls);
  cct_text_add(text, "%d of %d values are outliers, all kept; %d series drift within their blocks.\n", outliers,
               samples, drifting);
  if (unpaired)
    cct_text_add(text, "%d blocks had no partner in their round and were left out.\n", unpaired);
}

/* The typical shares of one kind of cell: the median over its attributed results, part by part. */
struct typical {
  int kind, n, largest;
  double share[CCT_BOUNDARY_COUNT], interaction, residual; /* residual: of its size */
};

enum {
  MOST_KINDS = 8,
  N_PARTS = CCT_BOUNDARY_COUNT + 2
};

static double part_of(const struct cct_attribution *a, int part) {
  return part < CCT_BOUNDARY_COUNT ? a->share[part] : part == CCT_BOUNDARY_COUNT ? a->interaction : fabs(a->residual);
}

static enum cct_status typical_shares(const struct cct_report *report, int kind, struct typical *typical) {
  double *values = malloc(((size_t)report->n_results + 1) * sizeof *values), median[N_PARTS] = {0};
  *typical = (struct typical){.kind = kind};
  if (!values)
    return cct_fail(CCT_NOMEM, "out of memory: the shares of %d comparisons", report->n_results);
  for (int part = 0; part < N_PARTS; part++) {
    typical->n = 0;
    for (int r = 0; r < report->n_results; r++)
      if (report->cells[report->results[r].cell].kind_index == kind && report->results[r].attribution.is_known)
        values[typical->n++] = part_of(&report->results[r].attribution, part);
    if (!typical->n)
      break;
    cct_sort(values, (size_t)typical->n);
    median[part] = cct_quantile(values, (size_t)typical->n, 0.5);
  }
  memcpy(typical->share, median, sizeof typical->share);
  typical->interaction = median[CCT_BOUNDARY_COUNT];
  typical->residual = median[CCT_BOUNDARY_COUNT + 1];
  for (int k = 0; k < CCT_BOUNDARY_COUNT; k++)
    typical->largest = typical->share[k] > typical->share[typical->largest] ? k : typical->largest;
  free(values);
  return CCT_OK;
}

/* Those kinds of which anything is known; their number, or -1: out of memory. */
static int find_typical(const struct cct_report *report, struct typical typical[MOST_KINDS]) {
  int n = 0;
  for (int kind = 0; kind < cct_names_kinds(report) && n < MOST_KINDS; kind++) {
    if (typical_shares(report, kind, &typical[n]))
      return -1;
    n += typical[n].n > 0;
  }
  return n;
}

static const char *boundary_words(enum cct_boundary boundary) {
  static const char *const words[] = {"command channel", "host-device copies", "NVLink", "lost capability", "CPU"};
  return words[boundary];
}

static void where_from(const struct cct_report *report, struct cct_text *text) {
  struct typical typical[MOST_KINDS];
  int n = find_typical(report, typical);
  if (n <= 0) {
    const char *why = report->n_results ? report->results[0].attribution.why_not : "";
    cct_text_add(text, "Not attributed: %s.\n", *why ? why : "no cell could be played in sim");
    return;
  }
  cct_text_add(text, "Boundaries switched on one at a time in sim, in points of the baseline's time; medians over "
                     "cells, part by part.\n");
  for (int i = 0; i < n; i++) {
    const struct typical *t = &typical[i];
    const char *comma = "";
    cct_text_add(text, "%s: ", cct_kind_name(report, t->kind));
    for (int k = 0; k < CCT_BOUNDARY_COUNT; k++)
      if (fabs(t->share[k]) >= 0.05) {
        cct_text_add(text, "%s%s %+.1f", comma, boundary_words((enum cct_boundary)k), t->share[k]);
        comma = ", ";
      }
    if (fabs(t->interaction) >= 0.05)
      cct_text_add(text, "%sinteraction %+.1f", comma, t->interaction);
    cct_text_add(text, "%sunexplained %.1f%s.\n", t->n && *comma ? "; " : "", t->residual,
                 t->residual >= 0.05 ? " either way" : "");
  }
}

static const char *remedy(enum cct_boundary boundary) {
  switch (boundary) {
  case CCT_BOUNDARY_CHANNEL:
    return "submit less often: whole steps in CUDA graphs where they are not (--graph full; coll: -G), else fewer and "
           "larger "
           "submissions";
  case CCT_BOUNDARY_COPIES:
    return "keep copies off the step's critical path: batch them, and read results back from a worker thread";
  case CCT_BOUNDARY_NVLINK:
    return "move less over NVLink: a layout with smaller groups or fewer collectives (cctax plan ranks them)";
  case CCT_BOUNDARY_CAPABILITY:
    return "retune the collectives for what is left without multicast (cctax tune)";
  case CCT_BOUNDARY_CPU:
    return "take work off the CPU's path: pin ranks, and check cctax doctor";
  case CCT_BOUNDARY_COUNT:
    break;
  }
  return "";
}

/* Per boundary the kinds that owe most to it, and what helps. */
static void advise_kinds(const struct cct_report *report, struct cct_text *text) {
  struct typical typical[MOST_KINDS];
  int n = find_typical(report, typical), unexplained = 0;
  if (!n && !is_attributable(report))
    cct_text_add(text,
                 "Find out where it comes from: run a step of the same settings (--workload decode or prefill) under "
                 "the same arms; its time is attributed.\n");
  else if (!n && !strcmp(report->factor, "condition"))
    cct_text_add(text,
                 "Find out where it comes from: probe the machine off and on (cctax probe), make its profile (cctax "
                 "profile OFF ON -o P) and report again with --profile P.\n");
  for (int i = 0; i < n; i++)
    if (typical[i].residual > fmax(typical[i].share[typical[i].largest], 0.5))
      cct_text_add(text, unexplained++ ? ", %s" : "%s", cct_kind_name(report, typical[i].kind));
  if (unexplained)
    cct_text_add(text, ": this profile leaves most of it unexplained; probe both machines and name their profile "
                       "(cctax probe, cctax profile, --profile) before acting on the shares.\n");
  for (int k = 0; k < CCT_BOUNDARY_COUNT; k++) {
    int count = 0;
    for (int i = 0; i < n; i++)
      if (typical[i].largest == k && typical[i].share[k] >= fmax(0.05, typical[i].residual))
        cct_text_add(text, count++ ? ", %s" : "%s", cct_kind_name(report, typical[i].kind));
    if (count)
      cct_text_add(text, ": most comes from %s; %s.\n", boundary_words((enum cct_boundary)k),
                   remedy((enum cct_boundary)k));
  }
}

/* A cell that pays several times what its kind pays has a reason of its own. */
static void advise_worst(const struct cct_report *report, int arm, struct cct_text *text) {
  for (int kind = 0; kind < cct_names_kinds(report); kind++) {
    struct cct_spread spread;
    char percent[32];
    if (cct_spread_of(report, arm, kind, &spread) || spread.n < 3 || !cct_spread_is_wide(&spread))
      continue;
    const struct cct_attribution *a = &spread.most->attribution;
    double most = cct_time_overhead_pct(spread.most->comparison.effect);
    int largest = 0;
    for (int k = 1; k < CCT_BOUNDARY_COUNT; k++)
      largest = a->share[k] > a->share[largest] ? k : largest;
    if (a->is_known && most > 5 * cct_time_overhead_pct(spread.median))
      cct_text_add(text, "%s: %s is far from the rest of its kind, and comes from %s; see to it first.\n",
                   report->cells[spread.most->cell].title, cct_percent_text(most, NAN, percent),
                   boundary_words((enum cct_boundary)largest));
  }
}

static void what_to_do(const struct cct_report *report, struct cct_text *text) {
  if (report->is_null) {
    cct_text_add(text, "Nothing: these arms are one condition. Use the spread above as the floor below which no effect "
                       "of this machine can be seen.\n");
    return;
  }
  for (int arm = 1; arm < report->n_arms; arm++)
    advise_worst(report, arm, text);
  advise_kinds(report, text);
  for (int r = 0; r < report->n_results; r++)
    if (report->results[r].verdict == CCT_VERDICT_SAME && report->results[r].comparison.df > 0) {
      cct_text_add(text, "For the cells marked ~ run more rounds, or more boots, if an effect below their smallest "
                         "visible one matters.\n");
      break;
    }
  if (is_predicted(report))
    cct_text_add(text, "Measure before deciding: these figures are predicted from a profile.\n");
}

void cct_verdict_text(const struct cct_report *report, enum cct_verdict_part part, struct cct_text *text) {
  if (part == CCT_VERDICT_HOW_MUCH)
    for (int arm = 1; arm < report->n_arms; arm++) {
      how_much(report, arm, text);
      with_checkpoints(report, arm, text);
    }
  else if (part == CCT_VERDICT_HOW_SURE)
    how_sure(report, text);
  else if (part == CCT_VERDICT_WHERE_FROM)
    where_from(report, text);
  else
    what_to_do(report, text);
}
