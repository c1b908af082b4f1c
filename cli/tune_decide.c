/* SPDX-License-Identifier: Apache-2.0
 * Which number of channels, and with it which rules. The choosers name the best number, the judges have to show it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/tune.h"

#define LARGE_BYTES (1 << 20) /* from here objective bandwidth counts */

struct weighing {
  const struct cct_tune_plan *plan;
  const struct cct_tune_data *data;
  int most;                                                 /* channels of NCCL's default communicator; 0: not known */
  char is_usable[CCT_TUNE_MOST_KINDS][CCT_TUNE_MOST_SIZES]; /* every process measured NCCL's default */
  char is_candidate[CCT_TUNE_MOST_SIZES * CCT_TUNE_MOST_CHOICES]; /* of one kind, as cct_tune_choose takes it */
};

static int own_of(const struct cct_tune_plan *plan, int channels) {
  return channels * plan->each;
}

static int is_whole(const struct cct_tune_grid *grid, int size, int choice) {
  for (int p = 0; p < grid->n_processes; p++)
    if (!isfinite(cct_tune_us(grid, size, choice, p)))
      return 0;
  return 1;
}

static void find_usable(struct weighing *w, int *n_left_out) {
  for (int k = 0; k < w->plan->n_kinds; k++) {
    struct cct_tune_grid grid = cct_tune_alone(w->plan, w->data, k);
    for (int s = 0; s < w->plan->n_bytes; s++) {
      w->is_usable[k][s] = (char)is_whole(&grid, s, 0);
      *n_left_out += !w->is_usable[k][s];
    }
  }
}

/* Without NCCL's own choice of every size nobody knows what a number of channels does to sizes without a rule. */
static int is_setting_whole(const struct weighing *w, int channels) {
  for (int k = 0; k < w->plan->n_kinds; k++) {
    struct cct_tune_grid grid = cct_tune_alone(w->plan, w->data, k);
    for (int s = 0; s < w->plan->n_bytes; s++)
      if (w->is_usable[k][s] && !is_whole(&grid, s, own_of(w->plan, channels)))
        return 0;
  }
  return 1;
}

/* ---- which choices a rule can make ---- */

static void find_most(struct weighing *w) {
  for (int k = 0; k < w->plan->n_kinds; k++)
    for (int s = 0; s < w->plan->n_bytes; s++)
      for (int c = 0; c < w->plan->each; c++) {
        int channels = cct_tune_ran(w->plan, w->data, k, s, c)->channels;
        w->most = channels > w->most ? channels : w->most;
      }
}

static int channels_of(const struct weighing *w, int channels) {
  return channels ? w->plan->channels[channels] : w->most;
}

static int ran_alike(const struct weighing *w, int kind, int size, int a, int b) {
  const struct cct_tune_ran *ran = cct_tune_ran(w->plan, w->data, kind, size, a);
  return ran->channels && cct_tune_is_same(ran, cct_tune_ran(w->plan, w->data, kind, size, b));
}

/* What a rule says so that a communicator with the channels of setting `channels` performs a choice; channels < 0: no
 * rule can. With fewer channels than the communicator has, it names those that NCCL told: a tuner's number is a call's
 * maximum, the work of one collective is cut by it alone, and channels are copies of each other. NVLS is no such
 * case: NCCL_MIN_CTAS itself raises its channels. Nor is objective overlap: it weighs a whole process's channels. */
static struct cct_tune_ran rule_of(const struct weighing *w, int kind, int size, int channels, int choice) {
  static const struct cct_tune_ran none = {.channels = -1};
  const struct cct_tune_choice *c = &w->plan->choices[choice];
  struct cct_tune_ran rule = *cct_tune_ran(w->plan, w->data, kind, size, choice);
  int own = channels_of(w, channels), its = channels_of(w, c->channels);
  char text[64];
  if (c->channels == channels && *c->algorithm) {
    snprintf(text, sizeof text, "%s %s 1 channels", c->algorithm, c->protocol);
    rule = cct_tune_ran_parse(text);
    rule.channels = 0;
    return rule;
  }
  if (c->channels == channels || !strcmp(w->plan->objective, "overlap") || cct_tune_tuned(w->plan->kinds[kind]) < 0 ||
      !own || !its || its > own || !rule.channels ||
      (rule.algorithm != CCT_TUNER_RING && rule.algorithm != CCT_TUNER_TREE))
    return none;
  /* Where buffers are registered, as in graphs, NCCL itself makes 16 of 17 to 24 (coll_reg.cc), and without keeps them.
   */
  if (rule.protocol == CCT_TUNER_SIMPLE && rule.channels == 16 && its > 16 && its <= 24)
    rule.channels = its;
  return rule;
}

/* What ran as the setting's own choice is no other choice. */
static void find_candidates(struct weighing *w, int kind, int channels) {
  int own = own_of(w->plan, channels);
  for (int s = 0; s < w->plan->n_bytes; s++)
    for (int c = 0; c < w->plan->n_choices; c++)
      w->is_candidate[s * w->plan->n_choices + c] =
          c != own && rule_of(w, kind, s, channels, c).channels >= 0 && !ran_alike(w, kind, s, c, own);
}

static int is_slower(const struct weighing *w, int kind, int size, int choice, const struct cct_ordered *ratio) {
  return w->is_usable[kind][size] && ratio->n && ratio->lo > CCT_TUNE_SLOWER && !ran_alike(w, kind, size, choice, 0);
}

static void choose(struct weighing *w, int kind, int channels, struct cct_tune_setting *setting) {
  struct cct_tune_grid grid = cct_tune_alone(w->plan, w->data, kind);
  int own = own_of(w->plan, channels);
  find_candidates(w, kind, channels);
  cct_tune_choose(&grid, own, w->is_candidate, setting->picks[kind]);
  for (int s = 0; s < w->plan->n_bytes; s++) {
    struct cct_tune_pick *pick = &setting->picks[kind][s];
    struct cct_ordered ratio = cct_tune_judged(&grid, s, pick->choice, 0);
    if (is_slower(w, kind, s, pick->choice, &ratio) && w->is_candidate[s * w->plan->n_choices])
      *pick = (struct cct_tune_pick){.judged = cct_tune_judged(&grid, s, 0, own)};
    pick->is_held = pick->choice != own && (!pick->choice || ran_alike(w, kind, s, pick->choice, 0));
    setting->n_held += pick->is_held;
    if (pick->choice != own)
      pick->rule = rule_of(w, kind, s, channels, pick->choice);
    setting->shown[kind][s] = cct_tune_judged(&grid, s, pick->choice, 0);
  }
}

/* The geometric mean of the choosers' best, by the judges' medians: of a setting's candidates, -1: of everything. */
static double best_mean(struct weighing *w, int channels) {
  struct cct_tune_mean mean = {0};
  for (int k = 0; k < w->plan->n_kinds; k++) {
    struct cct_tune_grid grid = cct_tune_alone(w->plan, w->data, k);
    int own = channels < 0 ? 0 : own_of(w->plan, channels);
    find_candidates(w, k, channels < 0 ? 0 : channels);
    for (int s = 0; s < w->plan->n_bytes; s++) {
      char *candidates = w->is_candidate + s * w->plan->n_choices;
      for (int c = 0; channels < 0 && c < w->plan->n_choices; c++)
        candidates[c] = (char)!ran_alike(w, k, s, c, 0);
      struct cct_ordered ratio = cct_tune_judged(&grid, s, cct_tune_best(&grid, s, own, w->is_candidate), 0);
      if (!w->is_usable[k][s] || !ratio.n)
        continue;
      mean.sum += ratio.median < 1 ? log(ratio.median) : 0;
      mean.n++;
    }
  }
  return exp(cct_tune_log_mean(&mean));
}

/* ---- weighing numbers of channels ---- */

/* log of the geometric mean in process p over the cells of at least `least` bytes, what the setting chooses against
 * NCCL's default. */
static double alone_mean(const struct weighing *w, const struct cct_tune_setting *setting, int64_t least, int p) {
  struct cct_tune_mean mean = {0};
  for (int k = 0; k < w->plan->n_kinds; k++) {
    struct cct_tune_grid grid = cct_tune_alone(w->plan, w->data, k);
    for (int s = 0; s < w->plan->n_bytes; s++) {
      if (!w->is_usable[k][s] || w->plan->bytes[s] < least)
        continue;
      double ratio = cct_tune_us(&grid, s, setting->picks[k][s].choice, p) / cct_tune_us(&grid, s, 0, p);
      if (!isfinite(ratio)) /* chosen, and all judges and choosers measured it */
        continue;
      mean.sum += log(ratio);
      mean.n++;
    }
  }
  return cct_tune_log_mean(&mean);
}

static double beside_mean(const struct weighing *w, int channels, int p) {
  struct cct_tune_mean mean = {0};
  for (int k = 0; k < w->plan->n_kinds; k++) {
    struct cct_tune_grid grid = cct_tune_beside(w->plan, w->data, k);
    for (int s = 0; s < w->plan->n_beside; s++) {
      double ratio = cct_tune_us(&grid, s, channels, p) / cct_tune_us(&grid, s, 0, p);
      if (!isfinite(ratio))
        continue;
      mean.sum += log(ratio);
      mean.n++;
    }
  }
  return mean.n ? cct_tune_log_mean(&mean) : NAN;
}

/* What the objective counts of a setting in process p, against the default number of channels with its own rules. */
static double counted_mean(const struct weighing *w, const struct cct_tune_setting *settings, int channels, int p) {
  if (!strcmp(w->plan->objective, "overlap"))
    return beside_mean(w, channels, p);
  int64_t least = !strcmp(w->plan->objective, "bandwidth") ? LARGE_BYTES : 0;
  return alone_mean(w, &settings[channels], least, p) - alone_mean(w, &settings[0], least, p);
}

static struct cct_ordered of_judges(const struct weighing *w, const struct cct_tune_setting *settings, int channels,
                                    char what) {
  double values[CCT_TUNE_MOST_PROCESSES];
  size_t n = 0;
  for (int p = 0; p < w->data->n_processes; p++) {
    double value = what == 'a'   ? alone_mean(w, &settings[channels], 0, p)
                   : what == 'b' ? beside_mean(w, channels, p)
                                 : counted_mean(w, settings, channels, p);
    if (cct_tune_is_judge(p) && isfinite(value))
      values[n++] = exp(value);
  }
  return cct_interval_ordered(values, n);
}

static double of_choosers(const struct weighing *w, const struct cct_tune_setting *settings, int channels) {
  double values[CCT_TUNE_MOST_PROCESSES];
  size_t n = 0;
  for (int p = 0; p < w->data->n_processes; p++) {
    double value = counted_mean(w, settings, channels, p);
    if (!cct_tune_is_judge(p) && isfinite(value))
      values[n++] = exp(value);
  }
  return n ? cct_median(values, n) : NAN;
}

/* The first cell that the setting makes slower, under an objective that counts it. */
static int find_slower(const struct weighing *w, const struct cct_tune_setting *setting, int *kind_out, int *size_out) {
  int64_t least = !strcmp(w->plan->objective, "bandwidth") ? LARGE_BYTES : 0;
  for (int k = 0; strcmp(w->plan->objective, "overlap") && k < w->plan->n_kinds; k++)
    for (int s = 0; s < w->plan->n_bytes; s++)
      if (w->plan->bytes[s] >= least && is_slower(w, k, s, setting->picks[k][s].choice, &setting->shown[k][s])) {
        *kind_out = k;
        *size_out = s;
        return 1;
      }
  return 0;
}

/* Why a setting has no times: it was never asked for, or some process lacks them. */
static void say_missing(const struct weighing *w, int channels, struct cct_tune_setting *setting) {
  const struct cct_tune_plan *plan = w->plan;
  int kind = 0;
  while (kind < plan->n_kinds && plan->is_usable[kind][own_of(plan, channels)])
    kind++;
  if (kind == plan->n_kinds)
    snprintf(setting->why_not, sizeof setting->why_not, "not every process measured NCCL's own choices with it");
  else if (!strcmp(plan->backend, "sim"))
    snprintf(setting->why_not, sizeof setting->why_not, "not played: profile %.80s has no row of %s with %d channels",
             plan->profile, cct_tune_kind_name(plan->kinds[kind]), plan->channels[channels]);
  else
    snprintf(setting->why_not, sizeof setting->why_not, "not measured: backend %s sets no channels", plan->backend);
}

/* Why this number of channels is not to be set; "" where it may. */
static void object(const struct weighing *w, int channels, struct cct_tune_setting *setting) {
  char size[32];
  int kind = 0, at = 0;
  if (!is_setting_whole(w, channels))
    say_missing(w, channels, setting);
  else if (!(setting->counted.n && setting->counted.hi < 1 && setting->counted.median <= CCT_TUNE_WORTH))
    snprintf(setting->why_not, sizeof setting->why_not, "the judges do not show it better under objective %s",
             w->plan->objective);
  else if (find_slower(w, setting, &kind, &at))
    snprintf(setting->why_not, sizeof setting->why_not, "it makes %s of %s slower, by %.1f %%",
             cct_tune_kind_name(w->plan->kinds[kind]), cct_bytes_text((double)w->plan->bytes[at], size),
             100 * (setting->shown[kind][at].median - 1));
  else if (!strcmp(w->plan->objective, "latency") && setting->beside.n && setting->beside.lo > CCT_TUNE_SLOWER)
    snprintf(setting->why_not, sizeof setting->why_not,
             "beside a GEMM it is slower, by %.1f %%; objective bandwidth would take it",
             100 * (setting->beside.median - 1));
}

enum cct_status cct_tune_decide(const struct cct_tune_plan *plan, const struct cct_tune_data *data,
                                struct cct_tune_decision *decision_out) {
  struct cct_tune_decision decision = {.channels = 0};
  struct weighing *w = calloc(1, sizeof *w);
  double best = 1;
  int wanted = 0;
  decision.settings = calloc((size_t)plan->n_channels, sizeof *decision.settings);
  if (!w || !decision.settings) {
    free(w);
    free(decision.settings);
    return cct_fail(CCT_NOMEM, "out of memory");
  }
  w->plan = plan;
  w->data = data;
  find_usable(w, &decision.n_left_out);
  find_most(w);
  for (int c = 0; c < plan->n_channels; c++)
    for (int k = 0; k < plan->n_kinds; k++)
      choose(w, k, c, &decision.settings[c]);
  for (int c = 0; c < plan->n_channels; c++) {
    struct cct_tune_setting *setting = &decision.settings[c];
    if (!is_setting_whole(w, c)) {
      object(w, c, setting);
      continue;
    }
    setting->gain = of_judges(w, decision.settings, c, 'a');
    setting->beside = of_judges(w, decision.settings, c, 'b');
    setting->counted = of_judges(w, decision.settings, c, 'c');
    double ratio = of_choosers(w, decision.settings, c);
    if (c)
      object(w, c, setting);
    if (c && ratio < best && !*setting->why_not) {
      best = ratio;
      wanted = c;
    }
  }
  for (int c = 1; c < plan->n_channels; c++)
    if (c != wanted && !*decision.settings[c].why_not)
      snprintf(decision.settings[c].why_not, sizeof decision.settings[c].why_not, "%d channels are better",
               plan->channels[wanted]);
  decision.channels = wanted;
  decision.grid_gain = best_mean(w, -1);
  decision.allowed_gain = best_mean(w, wanted);
  free(w);
  *decision_out = decision;
  return CCT_OK;
}

void cct_tune_decision_free(struct cct_tune_decision *decision) {
  free(decision->settings);
  memset(decision, 0, sizeof *decision);
}
