/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stddef.h>

#include "cli/tune.h"

#define LEAST_JUDGES 4

/* Ratios choice / own of the processes that judge, or choose, and measured both; returns how many. */
static size_t ratios(const struct cct_tune_grid *grid, int size, int choice, int own, int of_judges, double *out,
                     size_t *missing_out) {
  size_t n = 0, missing = 0;
  for (int p = 0; p < grid->n_processes; p++) {
    double ratio = cct_tune_us(grid, size, choice, p) / cct_tune_us(grid, size, own, p);
    if (cct_tune_is_judge(p) != of_judges)
      continue;
    if (isfinite(ratio) && ratio > 0)
      out[n++] = ratio;
    else
      missing++;
  }
  if (missing_out)
    *missing_out = missing;
  return n;
}

/* NAN where a chooser has not measured it. */
static double chosen_ratio(const struct cct_tune_grid *grid, int size, int choice, int own) {
  double values[CCT_TUNE_MOST_PROCESSES];
  size_t missing, n = ratios(grid, size, choice, own, 0, values, &missing);
  return n && !missing ? cct_median(values, n) : NAN;
}

static int best_of(const struct cct_tune_grid *grid, int size, int own, int n, int neighbour) {
  double best = CCT_TUNE_WORTH, beside;
  int candidate = own;
  for (int c = own + 1; c < own + n; c++) {
    double ratio = chosen_ratio(grid, size, c, own);
    if (ratio < best) {
      best = ratio;
      candidate = c;
    }
  }
  if (candidate == own || neighbour == own)
    return candidate;
  beside = chosen_ratio(grid, size, neighbour, own);
  return beside <= CCT_TUNE_WORTH && beside <= best / CCT_TUNE_WORTH ? neighbour : candidate;
}

void cct_tune_choose(const struct cct_tune_grid *grid, int own, int n, struct cct_tune_pick *picks_out) {
  double values[CCT_TUNE_MOST_PROCESSES];
  for (int s = 0; s < grid->n_sizes; s++) {
    struct cct_tune_pick *pick = &picks_out[s];
    size_t missing = 0;
    *pick = (struct cct_tune_pick){.choice = own};
    pick->candidate = best_of(grid, s, own, n, s ? picks_out[s - 1].candidate : own);
    if (pick->candidate == own)
      continue;
    size_t judges = ratios(grid, s, pick->candidate, own, 1, values, &missing);
    pick->judged = cct_interval_ordered(values, judges);
    if (judges >= LEAST_JUDGES && !missing && pick->judged.hi < 1 && pick->judged.median <= CCT_TUNE_WORTH)
      pick->choice = pick->candidate;
  }
}

int cct_tune_is_hopeless(const struct cct_tune_grid *grid, int size, int choice, int own) {
  int n = 0;
  for (int p = 0; p < CCT_TUNE_FIRST && p < grid->n_processes; p++) {
    double mine = cct_tune_us(grid, size, choice, p), owns = cct_tune_us(grid, size, own, p);
    if (isfinite(mine) && (!isfinite(owns) || mine <= CCT_TUNE_HOPELESS * owns))
      return 0;
    n++;
  }
  return n > 0;
}

static int64_t halfway(int64_t smaller, int64_t larger) {
  return smaller + (larger - smaller) / 2;
}

int cct_tune_merge(const struct cct_tune_pick *picks, const int64_t *bytes, int n, int own,
                   struct cct_tune_range *ranges_out) {
  int n_ranges = 0;
  for (int first = 0, last; first < n; first = last + 1) {
    for (last = first; last + 1 < n && picks[last + 1].choice == picks[first].choice; last++)
      ;
    if (picks[first].choice == own)
      continue;
    ranges_out[n_ranges++] = (struct cct_tune_range){
        .choice = picks[first].choice,
        .first = first,
        .last = last,
        .min_bytes = first ? halfway(bytes[first - 1], bytes[first]) + 1 : bytes[first],
        .max_bytes = last + 1 < n ? halfway(bytes[last], bytes[last + 1]) : bytes[last],
    };
  }
  return n_ranges;
}
