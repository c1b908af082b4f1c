/* SPDX-License-Identifier: Apache-2.0 */
#include "report/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/attribute.h"

const char *cct_verdict_title(enum cct_verdict_part part) {
  static const char *const titles[] = {
#define PART_TITLE(id, title) title,
      CCT_VERDICT_PARTS(PART_TITLE)
#undef PART_TITLE
  };
  return titles[part];
}

char *cct_percent_text(double percent, double half_width, char out[32]) {
  int digits = isfinite(half_width) && half_width > 0 ? (int)ceil(-log10(half_width)) : 1;
  digits = digits < 1 ? 1 : digits > 3 ? 3 : digits;
  if (fabs(percent) >= 100 && digits > 1)
    digits = 1;
  /* A true minus sign would be handsomer; a hyphen is what other tools read back. */
  snprintf(out, 32, "%+.*f %%", digits, percent == 0 ? 0.0 : percent);
  return out;
}

char *cct_value_text(double value, const char *unit, char out[48]) {
  static const struct {
    const char *unit;
    double seconds;
  } times[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  if (!isfinite(value)) {
    snprintf(out, 48, "-");
    return out;
  }
  for (size_t i = 0; i < sizeof times / sizeof *times; i++)
    if (!strcmp(unit, times[i].unit)) { /* in the largest unit of which there is at least one */
      double seconds = value * times[i].seconds;
      size_t k = 0;
      while (k + 1 < sizeof times / sizeof *times && seconds < 0.99995 * times[k].seconds)
        k++;
      snprintf(out, 48, "%.4g %s", seconds / times[k].seconds, times[k].unit);
      return out;
    }
  snprintf(out, 48, "%.4g %.24s", value, unit);
  return out;
}

char *cct_effect_text(const struct cct_comparison *c, char out[96]) {
  char middle[32], lo[32], hi[32];
  if (!isfinite(c->effect))
    return strcpy(out, "refused");
  double half = c->df > 0 ? (cct_time_overhead_pct(c->hi) - cct_time_overhead_pct(c->lo)) / 2 : NAN;
  cct_percent_text(cct_time_overhead_pct(c->effect), half, middle);
  if (!(c->df > 0) || !(c->se > 1e-12)) { /* nothing known of the spread, or none: sim */
    snprintf(out, 96, "%s", middle);
    return out;
  }
  cct_percent_text(cct_time_overhead_pct(c->lo), half, lo);
  cct_percent_text(cct_time_overhead_pct(c->hi), half, hi);
  snprintf(out, 96, "%s [%.*s, %.*s]", middle, (int)strlen(lo) - 2, lo, (int)strlen(hi) - 2, hi);
  return out;
}

static int is_predicted(const struct cct_report *report) {
  int n = 0;
  for (int r = 0; r < report->n_results; r++)
    n += strstr(report->results[r].label, "predicted") != NULL;
  return n && n == report->n_results;
}

static const struct cct_result *extreme(const struct cct_report *report, int arm, int sign) {
  const struct cct_result *best = NULL;
  for (int r = 0; r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    const struct cct_report_cell *cell = &report->cells[result->cell];
    if (result->arm == arm && result->verdict != CCT_VERDICT_REFUSED && cell->is_primary &&
        (cell->model || !report->has_steps) &&
        (!best || sign * result->comparison.effect > sign * best->comparison.effect))
      best = result;
  }
  return best;
}

/* The mean effect of each workload, where there are several. */
static void by_workload(const struct cct_report *report, int arm, struct cct_text *text) {
  const char *names[12];
  double sum[12];
  int count[12], n = 0;
  for (int r = 0; r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    const struct cct_report_cell *cell = &report->cells[result->cell];
    if (result->arm != arm || result->verdict == CCT_VERDICT_REFUSED || !cell->is_primary || !cell->workload)
      continue;
    int k = 0;
    while (k < n && strcmp(names[k], cell->workload))
      k++;
    if (k == 12)
      continue;
    if (k == n) {
      names[n] = cell->workload;
      sum[n] = count[n] = 0;
      n++;
    }
    sum[k] += result->comparison.effect;
    count[k]++;
  }
  for (int k = 0; k < n && n > 1; k++) {
    char percent[32];
    cct_text_add(text, "%s%s %s over %d cell%s%s", k ? "" : "By workload: ", names[k],
                 cct_percent_text(cct_time_overhead_pct(sum[k] / count[k]), NAN, percent), count[k],
                 count[k] == 1 ? "" : "s", k + 1 < n ? ", " : ". ");
  }
}

static void how_much(const struct cct_report *report, int arm, struct cct_text *text) {
  const struct cct_arm_summary *summary = &report->summary[arm];
  char effect[96], loss[32];
  if (!summary->n_cells) {
    cct_text_add(text, "%s against %s: no cell could be compared. ", report->arms[arm], report->arms[0]);
    return;
  }
  const struct cct_comparison *mean = &summary->mean;
  cct_effect_text(mean, effect);
  cct_percent_text(-cct_throughput_loss_pct(mean->effect), NAN, loss);
  if (report->is_null)
    cct_text_add(text, "A/A: %s against %s, one condition twice. Time %s over %d cell%s: this is noise, not cost. ",
                 report->arms[arm], report->arms[0], effect, summary->n_cells, summary->n_cells == 1 ? "" : "s");
  else
    cct_text_add(text, "%s against %s: time %s, throughput %s%s%d %s%s. ", report->arms[arm], report->arms[0], effect,
                 loss, summary->n_cells > 1 ? ", geometric mean over " : ", over ", summary->n_cells,
                 report->has_steps ? "step" : "cell", summary->n_cells == 1 ? "" : "s");
  if (!report->is_null)
    by_workload(report, arm, text);
  const struct cct_result *least = extreme(report, arm, -1), *most = extreme(report, arm, 1);
  if (summary->n_cells > 1 && least != most) {
    cct_text_add(text, "Least: %s, time %s. ", report->cells[least->cell].title,
                 cct_effect_text(&least->comparison, effect));
    cct_text_add(text, "Most: %s, time %s. ", report->cells[most->cell].title,
                 cct_effect_text(&most->comparison, effect));
  }
}

static void how_sure(const struct cct_report *report, struct cct_text *text) {
  const struct cct_comparison *c = NULL;
  int counts[4] = {0}, flat_predicted = is_predicted(report), outliers = 0, drifting = 0, samples = 0, unpaired = 0;
  double worst = 0;
  for (int r = 0; r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    counts[result->verdict]++;
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
  cct_text_add(text, "%d comparison%s with an interval: %d slower, %d faster, %d not told apart (~)",
               report->n_compared, report->n_compared == 1 ? "" : "s", counts[CCT_VERDICT_SLOWER],
               counts[CCT_VERDICT_FASTER], counts[CCT_VERDICT_SAME]);
  cct_text_add(text, counts[CCT_VERDICT_REFUSED] ? ", %d refused. " : ". ", counts[CCT_VERDICT_REFUSED]);
  if (flat_predicted && worst < 1e-9) {
    cct_text_add(text,
                 "Predicted figures: sim has no noise of its own, so an interval of zero width says that the model is "
                 "deterministic, not that it is right. ");
    return;
  }
  if (report->n_compared > 1)
    cct_text_add(text, "At 95 %% about %.1f of them would look different by chance alone. ", 0.05 * report->n_compared);
  if (c)
    cct_text_add(text, "Intervals: %s; %d boot%s, %d blocks an arm. ", cct_design_text(c->design), c->boots[1],
                 c->boots[1] == 1 ? "" : "s", c->blocks[1]);
  if (c && c->is_within_boot)
    cct_text_add(text, "One boot an arm: what changes from boot to boot is NOT in these intervals; add boots with "
                       "cctax run --append. ");
  if (worst > 0)
    cct_text_add(text, "Smallest effect that every cell would show with 80 %% power: %.2g %%. ",
                 cct_time_overhead_pct(worst));
  if (report->n_nulls)
    cct_text_add(text, "A/A within arms: %d of %d called different (5 %% expected). ", report->n_nulls_different,
                 report->n_nulls);
  cct_text_add(text, "%d of %d steps are outliers, all kept; %d series drift within their blocks. ", outliers, samples,
               drifting);
  if (unpaired)
    cct_text_add(text, "%d blocks had no partner in their round and were left out. ", unpaired);
}

/* The mean shares of the attributed cells of one workload. */
struct mean_shares {
  const char *workload;
  double share[CCT_BOUNDARY_COUNT], interaction, residual; /* residual: the mean of its size */
  int n, largest;
};

enum {
  MOST_WORKLOADS = 8
};

static void add_shares(struct mean_shares *mean, const struct cct_attribution *a) {
  for (int k = 0; k < CCT_BOUNDARY_COUNT; k++)
    mean->share[k] += a->share[k];
  mean->interaction += a->interaction;
  mean->residual += fabs(a->residual);
  mean->n++;
}

static void settle_shares(struct mean_shares *mean) {
  for (int k = 0; k < CCT_BOUNDARY_COUNT; k++) {
    mean->share[k] /= mean->n;
    mean->largest = mean->share[k] > mean->share[mean->largest] ? k : mean->largest;
  }
  mean->interaction /= mean->n;
  mean->residual /= mean->n;
}

static int mean_shares(const struct cct_report *report, struct mean_shares means[MOST_WORKLOADS]) {
  int n = 0;
  memset(means, 0, MOST_WORKLOADS * sizeof *means);
  for (int r = 0; r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    const char *workload = report->cells[result->cell].workload;
    int k = 0;
    if (!result->attribution.is_known)
      continue;
    workload = workload ? workload : "program";
    while (k < n && strcmp(means[k].workload, workload))
      k++;
    if (k == MOST_WORKLOADS)
      continue;
    n += k == n;
    means[k].workload = workload;
    add_shares(&means[k], &result->attribution);
  }
  for (int k = 0; k < n; k++)
    settle_shares(&means[k]);
  return n;
}

static const char *boundary_words(enum cct_boundary boundary) {
  static const char *const words[] = {"command channel", "host-device copies", "NVLink", "lost capability", "CPU"};
  return words[boundary];
}

static void where_from(const struct cct_report *report, struct cct_text *text) {
  struct mean_shares means[MOST_WORKLOADS];
  int n = mean_shares(report, means);
  if (!n) {
    const char *why = report->n_results ? report->results[0].attribution.why_not : "";
    cct_text_add(text, "Not attributed: %s.", *why ? why : "no cell could be played in sim");
    return;
  }
  cct_text_add(text,
               "Boundaries switched on one at a time in sim, in points of the baseline's time, mean over cells. ");
  for (int i = 0; i < n; i++) {
    const struct mean_shares *mean = &means[i];
    const char *comma = "";
    cct_text_add(text, "%s: ", mean->workload);
    for (int k = 0; k < CCT_BOUNDARY_COUNT; k++)
      if (fabs(mean->share[k]) >= 0.05) {
        cct_text_add(text, "%s%s %+.1f", comma, boundary_words((enum cct_boundary)k), mean->share[k]);
        comma = ", ";
      }
    if (fabs(mean->interaction) >= 0.05)
      cct_text_add(text, "%sinteraction %+.1f", comma, mean->interaction);
    cct_text_add(text, "; unexplained %.1f. ", mean->residual);
  }
}

static const char *remedy(enum cct_boundary boundary) {
  switch (boundary) {
  case CCT_BOUNDARY_CHANNEL:
    return "submit less often: CUDA graphs over the whole step (--graph full), fewer and larger kernels";
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

static void what_to_do(const struct cct_report *report, struct cct_text *text) {
  struct mean_shares means[MOST_WORKLOADS];
  int n = mean_shares(report, means);
  if (report->is_null) {
    cct_text_add(text,
                 "Nothing: these arms are one condition. Use the spread above as the floor below which no effect of "
                 "this machine can be seen.");
    return;
  }
  for (int k = 0; k < CCT_BOUNDARY_COUNT; k++) {
    int count = 0; /* workloads whose largest share this boundary is */
    for (int i = 0; i < n; i++)
      if (means[i].largest == k && means[i].share[k] >= 0.05)
        cct_text_add(text, count++ ? ", %s" : "For %s", means[i].workload);
    if (count)
      cct_text_add(text, ", where most comes from %s: %s. ", boundary_words((enum cct_boundary)k),
                   remedy((enum cct_boundary)k));
  }
  int first = 1;
  for (int r = 0; r < report->n_results; r++)
    if (report->results[r].verdict == CCT_VERDICT_SAME && report->results[r].comparison.df > 0 && first) {
      cct_text_add(
          text, "For the cells marked ~ run more rounds, or more boots, if an effect below their smallest visible one "
                "matters. ");
      first = 0;
    }
  if (is_predicted(report))
    cct_text_add(text, "Measure before deciding: these figures are predicted from a profile.");
}

void cct_verdict_text(const struct cct_report *report, enum cct_verdict_part part, struct cct_text *text) {
  if (part == CCT_VERDICT_HOW_MUCH)
    for (int arm = 1; arm < report->n_arms; arm++)
      how_much(report, arm, text);
  else if (part == CCT_VERDICT_HOW_SURE)
    how_sure(report, text);
  else if (part == CCT_VERDICT_WHERE_FROM)
    where_from(report, text);
  else
    what_to_do(report, text);
}
