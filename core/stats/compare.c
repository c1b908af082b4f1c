/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static const struct {
  const char *name, *text;
} designs[] = {
#define DESIGN_ROW(id, name, text) {name, text},
    CCT_DESIGNS(DESIGN_ROW)
#undef DESIGN_ROW
};

const char *cct_design_name(enum cct_design design) {
  return designs[design].name;
}

const char *cct_design_text(enum cct_design design) {
  return designs[design].text;
}

static int by_boot_and_round(const void *left, const void *right) {
  const struct cct_unit *a = left, *b = right;
  if (a->boot != b->boot)
    return a->boot < b->boot ? -1 : 1;
  return (a->round > b->round) - (a->round < b->round);
}

/* Sorted copy of `units`; NULL when out of memory. */
static struct cct_unit *sorted_copy(const struct cct_unit *units, size_t n) {
  struct cct_unit *copy = malloc(n * sizeof *copy);
  if (!copy)
    return NULL;
  memcpy(copy, units, n * sizeof *copy);
  qsort(copy, n, sizeof *copy, by_boot_and_round);
  return copy;
}

/* The median of each boot's units, into medians[0..boots-1]; `units` sorted. */
static size_t boot_medians(const struct cct_unit *units, size_t n, double *medians, double *scratch) {
  size_t boots = 0;
  for (size_t i = 0, j; i < n; i = j) {
    for (j = i; j < n && units[j].boot == units[i].boot; j++)
      scratch[j - i] = units[j].value;
    medians[boots++] = cct_median(scratch, j - i);
  }
  return boots;
}

static double mean(const double *values, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += values[i];
  return sum / (double)n;
}

static void take(struct cct_comparison *out, struct cct_interval interval) {
  out->effect = interval.estimate;
  out->lo = interval.lo;
  out->hi = interval.hi;
  out->se = interval.se;
  out->df = interval.df;
}

/* Units of rounds that both arms have, as pairs[i] = arm - baseline and bases[i] = baseline; returns their number. */
static size_t match_rounds(const struct cct_unit *a, size_t na, const struct cct_unit *b, size_t nb,
                           struct cct_unit *pairs, struct cct_unit *bases) {
  size_t n = 0;
  for (size_t i = 0, j = 0; i < na && j < nb;) {
    int order = by_boot_and_round(&a[i], &b[j]);
    if (order == 0) {
      bases[n] = a[i];
      pairs[n] = (struct cct_unit){a[i].boot, a[i].round, b[j].value - a[i].value};
      n++;
    }
    i += order <= 0;
    j += order >= 0;
  }
  return n;
}

static void compare_pairs(const struct cct_unit *pairs, const struct cct_unit *bases, size_t n, double *x,
                          double *scratch, struct cct_comparison *out) {
  size_t boots = boot_medians(pairs, n, x, scratch);
  out->design = boots > 1 ? CCT_DESIGN_PAIRED_BOOTS : CCT_DESIGN_ROUNDS;
  out->is_within_boot = boots == 1;
  out->boots[0] = out->boots[1] = (int)boots;
  out->blocks[0] = out->blocks[1] = (int)n;
  if (boots == 1)
    for (size_t i = 0; i < n; i++)
      x[i] = pairs[i].value;
  take(out, cct_interval_mean(x, boots > 1 ? boots : n));
  if (boots == 1)
    for (size_t i = 0; i < n; i++)
      x[i] = bases[i].value;
  else
    boot_medians(bases, n, x, scratch);
  out->centre[0] = mean(x, boots > 1 ? boots : n);
  out->centre[1] = out->centre[0] + out->effect;
}

static void compare_apart(const struct cct_unit *a, size_t na, const struct cct_unit *b, size_t nb, double *x,
                          double *y, double *scratch, struct cct_comparison *out) {
  size_t nx = boot_medians(a, na, x, scratch), ny = boot_medians(b, nb, y, scratch);
  out->boots[0] = (int)nx;
  out->boots[1] = (int)ny;
  out->blocks[0] = (int)na;
  out->blocks[1] = (int)nb;
  out->is_within_boot = nx + ny < 3;
  out->design = out->is_within_boot ? CCT_DESIGN_BLOCKS : CCT_DESIGN_BOOTS;
  if (out->is_within_boot) {
    nx = na;
    ny = nb;
    for (size_t i = 0; i < na; i++)
      x[i] = a[i].value;
    for (size_t i = 0; i < nb; i++)
      y[i] = b[i].value;
  }
  out->centre[0] = mean(x, nx);
  out->centre[1] = mean(y, ny);
  take(out, cct_interval_difference(x, nx, y, ny));
}

enum cct_status cct_compare(const struct cct_unit *a, size_t na, const struct cct_unit *b, size_t nb,
                            struct cct_comparison *comparison_out) {
  size_t most = na > nb ? na : nb;
  struct cct_unit *u = sorted_copy(a, na), *v = sorted_copy(b, nb);
  struct cct_unit *pairs = malloc(2 * most * sizeof *pairs);
  double *x = malloc(3 * most * sizeof *x);
  enum cct_status status = CCT_OK;
  if (!u || !v || !pairs || !x) {
    status = cct_fail(CCT_NOMEM, "out of memory: comparing %zu with %zu blocks", na, nb);
    goto out;
  }
  struct cct_comparison result = {0};
  size_t n = match_rounds(u, na, v, nb, pairs, pairs + most);
  if (n) {
    compare_pairs(pairs, pairs + most, n, x, x + most, &result);
    result.unpaired = (int)(na + nb - 2 * n);
  } else {
    compare_apart(u, na, v, nb, x, x + most, x + 2 * most, &result);
  }
  *comparison_out = result;
out:
  free(u);
  free(v);
  free(pairs);
  free(x);
  return status;
}

enum cct_status cct_estimate(const struct cct_unit *units, size_t n, struct cct_interval *estimate_out) {
  struct cct_unit *sorted = sorted_copy(units, n);
  double *values = malloc(2 * n * sizeof *values);
  enum cct_status status = CCT_OK;
  if (!sorted || !values) {
    status = cct_fail(CCT_NOMEM, "out of memory: the centre of %zu blocks", n);
    goto out;
  }
  size_t boots = boot_medians(sorted, n, values, values + n);
  for (size_t i = 0; boots == 1 && i < n; i++)
    values[i] = sorted[i].value;
  *estimate_out = cct_interval_mean(values, boots == 1 ? n : boots);
out:
  free(sorted);
  free(values);
  return status;
}

enum cct_status cct_compare_halves(const struct cct_unit *units, size_t n, struct cct_comparison *null_out) {
  struct cct_unit *sorted = sorted_copy(units, n), *half = malloc(2 * n * sizeof *half);
  enum cct_status status = CCT_OK;
  if (!sorted || !half) {
    status = cct_fail(CCT_NOMEM, "out of memory: halving %zu blocks", n);
    goto out;
  }
  size_t count[2] = {0, 0};
  for (size_t i = 0, place = 0; i < n; i++) {
    place = i && sorted[i].boot == sorted[i - 1].boot ? place + 1 : 0;
    int odd = place % 2;
    half[(odd ? n : 0) + count[odd]++] = (struct cct_unit){sorted[i].boot, (int)(place / 2), sorted[i].value};
  }
  if (count[0] && count[1])
    status = cct_compare(half, count[0], half + n, count[1], null_out);
  else
    *null_out = (struct cct_comparison){.design = CCT_DESIGN_BLOCKS};
out:
  free(sorted);
  free(half);
  return status;
}
