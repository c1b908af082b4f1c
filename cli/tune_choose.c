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

static int is_candidate_at(const struct cct_tune_grid *grid, const char *is_candidate, int size, int choice) {
  return !is_candidate || is_candidate[size * grid->n_choices + choice];
}

static int best_below(const struct cct_tune_grid *grid, int size, int own, const char *is_candidate, double *best) {
  int candidate = own;
  for (int c = 0; c < grid->n_choices; c++) {
    double ratio = c != own && is_candidate_at(grid, is_candidate, size, c) ? chosen_ratio(grid, size, c, own) : NAN;
    if (ratio < *best) {
      *best = ratio;
      candidate = c;
    }
  }
  return candidate;
}

int cct_tune_best(const struct cct_tune_grid *grid, int size, int own, const char *is_candidate) {
  double best = 1;
  return best_below(grid, size, own, is_candidate, &best);
}

static int candidate_of(const struct cct_tune_grid *grid, int size, int own, const char *is_candidate, int neighbour) {
  double best = CCT_TUNE_WORTH, beside;
  int candidate = best_below(grid, size, own, is_candidate, &best);
  if (candidate == own || neighbour == own || !is_candidate_at(grid, is_candidate, size, neighbour))
    return candidate;
  beside = chosen_ratio(grid, size, neighbour, own);
  return beside <= CCT_TUNE_WORTH && beside <= best / CCT_TUNE_WORTH ? neighbour : candidate;
}

struct cct_ordered cct_tune_judged(const struct cct_tune_grid *grid, int size, int choice, int own) {
  double values[CCT_TUNE_MOST_PROCESSES];
  size_t n = ratios(grid, size, choice, own, 1, values, NULL);
  return cct_interval_ordered(values, n);
}

void cct_tune_choose(const struct cct_tune_grid *grid, int own, const char *is_candidate,
                     struct cct_tune_pick *picks_out) {
  double values[CCT_TUNE_MOST_PROCESSES];
  for (int s = 0; s < grid->n_sizes; s++) {
    struct cct_tune_pick *pick = &picks_out[s];
    size_t missing = 0;
    *pick = (struct cct_tune_pick){.choice = own};
    pick->candidate = candidate_of(grid, s, own, is_candidate, s ? picks_out[s - 1].candidate : own);
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
    last = first;
    if (picks[first].choice == own)
      continue;
    while (last + 1 < n && picks[last + 1].choice != own && cct_tune_is_same(&picks[last + 1].rule, &picks[first].rule))
      last++;
    ranges_out[n_ranges++] = (struct cct_tune_range){
        .rule = picks[first].rule,
        .first = first,
        .last = last,
        .min_bytes = first ? halfway(bytes[first - 1], bytes[first]) + 1 : bytes[first],
        .max_bytes = last + 1 < n ? halfway(bytes[last], bytes[last + 1]) : bytes[last],
    };
  }
  return n_ranges;
}
