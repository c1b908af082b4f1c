/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_cloud.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/shape/cell.h"

#define SHORT_US 50

int cct_is_wanted(const struct cct_options *cell, const struct cct_want *wants) {
  for (int i = 0; i < CCT_MOST_WANTS && wants[i].text; i++) {
    const struct cct_value *value = &cell->v[wants[i].id];
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)value->i);
    const char *text = cct_option_table[wants[i].id].kind == CCT_KIND_I64 ? number : cct_cell_text(cell, wants[i].id);
    if (!text || strcmp(text, wants[i].text))
      return 0;
  }
  return 1;
}

int cct_is_same_cell(const struct cct_options *a, const struct cct_options *b) {
  for (int id = 0; id < CCT_OPTION_COUNT; id++) {
    if (cct_option_table[id].scope != CCT_SCOPE_CELL)
      continue;
    const struct cct_value *x = &a->v[id], *y = &b->v[id];
    const char *s = x->s ? x->s : "", *t = y->s ? y->s : "";
    if (x->i != y->i || strcmp(s, t) != 0)
      return 0;
  }
  return 1;
}

/* How far the repeats of point `at`'s cell lie apart; returns the spread that its weight follows from. */
static double watch(const struct cct_probe_set *set, size_t at, struct cct_cloud *cloud) {
  const struct cct_probe_point *point = &set->points[at];
  double values[64], limit = cloud->limit;
  size_t n = 0;
  for (size_t i = 0; i < set->n && n < 64; i++)
    if (!strcmp(set->points[i].metric, point->metric) && cct_is_same_cell(&set->points[i].cell, &point->cell))
      values[n++] = set->points[i].value;
  cct_sort(values, n);
  double middle = cct_quantile(values, n, 0.5), spread = middle > 0 ? (values[n - 1] - values[0]) / middle : 0;
  if (middle < SHORT_US && limit < CCT_SPREAD_CALLS)
    limit = CCT_SPREAD_CALLS;
  cloud->spread = fmax(cloud->spread, spread);
  cloud->repeats = cloud->n <= 1 || (int)n < cloud->repeats ? (int)n : cloud->repeats;
  cloud->is_unstable |= spread > limit || n < CCT_LEAST_REPEATS;
  return fmax(spread, cloud->limit);
}

void cct_cloud_point(const struct cct_probe_set *set, size_t at, double limit, double x, double y,
                     struct cct_cloud *cloud) {
  size_t i = cloud->n++;
  cloud->limit = limit;
  cloud->x[i] = x;
  cloud->y[i] = y;
  cloud->block[i] = set->points[at].block;
  double error = y * watch(set, at, cloud);
  cloud->weight[i] = 1 / (error * error);
}

void cct_cloud_gather(const struct cct_probe_set *set, const struct cct_want *wants, const char *metric,
                      enum cct_axis axis, double closing_us, double limit, struct cct_cloud *cloud) {
  memset(cloud, 0, sizeof *cloud);
  for (size_t i = 0; i < set->n && cloud->n < CCT_MOST_POINTS; i++) {
    const struct cct_probe_point *point = &set->points[i];
    if (strcmp(point->metric, metric) || !cct_is_wanted(&point->cell, wants))
      continue;
    double calls = (double)point->cell.v[CCT_OPT_CALLS].i, bytes = (double)point->cell.v[CCT_OPT_BYTES].i;
    double x = axis == CCT_BY_CALLS   ? point->n * calls
               : axis == CCT_BY_NODES ? calls
               : axis == CCT_BY_BYTES ? bytes
                                      : 0;
    double y = axis == CCT_BY_CALLS   ? point->n * point->value
               : axis == CCT_BY_VALUE ? point->value
                                      : point->value - closing_us / point->n;
    if (!(y > 0) && axis != CCT_BY_VALUE)
      continue;
    cct_cloud_point(set, i, limit, x, y, cloud);
  }
}

static int has_two_x(const struct cct_cloud *cloud) {
  for (size_t i = 1; i < cloud->n; i++)
    if (cloud->x[i] != cloud->x[0])
      return cloud->n > 2;
  return 0;
}

struct cct_estimate cct_cloud_estimate(const struct cct_cloud *cloud, double value, double half, const char *from) {
  struct cct_estimate e = {.is_known = isfinite(value),
                           .is_unstable = cloud->is_unstable || !isfinite(half),
                           .repeats = cloud->repeats,
                           .value = value,
                           .lo = value - half,
                           .hi = value + half,
                           .spread = cloud->spread,
                           .scale = fabs(value),
                           .limit = cloud->limit};
  snprintf(e.from, sizeof e.from, "%s", from);
  return e;
}

double cct_interval_half(struct cct_interval interval) {
  return interval.df > 0 ? (interval.hi - interval.lo) / 2 : NAN;
}

struct cct_estimate cct_cloud_median(struct cct_cloud *cloud, const char *from) {
  if (!cloud->n)
    return (struct cct_estimate){0};
  double least = cloud->y[0], most = cloud->y[0];
  for (size_t i = 0; i < cloud->n; i++) {
    least = fmin(least, cloud->y[i]);
    most = fmax(most, cloud->y[i]);
  }
  struct cct_estimate e = cct_cloud_estimate(cloud, cct_median(cloud->y, cloud->n), 0, from);
  e.lo = least;
  e.hi = most;
  return e;
}

/* The line through the points of the first point's block, which are taken out of `todo`; 0: they lie at one x. */
static int fit_block(const struct cct_cloud *cloud, size_t first, char *todo, struct cct_line *line_out) {
  double x[CCT_MOST_POINTS], y[CCT_MOST_POINTS], weight[CCT_MOST_POINTS];
  size_t n = 0;
  int has_two = 0;
  for (size_t i = first; i < cloud->n; i++) {
    if (cloud->block[i] != cloud->block[first])
      continue;
    todo[i] = 0;
    x[n] = cloud->x[i];
    y[n] = cloud->y[i];
    weight[n] = cloud->weight[i];
    has_two |= x[n++] != x[0];
  }
  if (has_two)
    *line_out = cct_fit_line(x, y, weight, n);
  return has_two;
}

static void set_spread(double least, double most, int repeats, struct cct_estimate *e) {
  double range = most - least;
  e->repeats = repeats;
  e->spread = repeats && range > 0 ? range / e->scale : 0;
  e->is_unstable = !isfinite(e->hi - e->lo) || repeats < CCT_LEAST_REPEATS || e->spread > e->limit;
}

static void compare_blocks(const struct cct_cloud *cloud, struct cct_fitted_line *line) {
  double least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY};
  char todo[CCT_MOST_POINTS];
  int n = 0;
  memset(todo, 1, sizeof todo);
  for (size_t i = 0; i < cloud->n; i++) {
    struct cct_line own;
    if (!todo[i] || !fit_block(cloud, i, todo, &own))
      continue;
    const double parts[2] = {own.intercept.estimate, own.slope.estimate};
    for (int p = 0; p < 2; p++) {
      least[p] = fmin(least[p], parts[p]);
      most[p] = fmax(most[p], parts[p]);
    }
    n++;
  }
  set_spread(least[0], most[0], n, &line->fixed);
  set_spread(least[1], most[1], n, &line->slope);
}

struct cct_fitted_line cct_cloud_fit(const struct cct_cloud *cloud, double clock_us, const char *from) {
  struct cct_fitted_line line = {{0}, {0}};
  if (!has_two_x(cloud))
    return line;
  struct cct_line fitted = cct_fit_line(cloud->x, cloud->y, cloud->weight, cloud->n);
  double widest = 1;
  for (size_t i = 0; i < cloud->n; i++)
    widest = fmax(widest, cloud->x[i]);
  line.fixed =
      cct_cloud_estimate(cloud, fitted.intercept.estimate, cct_interval_half(fitted.intercept) + clock_us, from);
  line.slope =
      cct_cloud_estimate(cloud, fitted.slope.estimate, cct_interval_half(fitted.slope) + clock_us / widest, from);
  if (line.fixed.value < SHORT_US)
    line.fixed.limit = fmax(line.fixed.limit, CCT_SPREAD_CALLS);
  compare_blocks(cloud, &line);
  return line;
}

struct cct_estimate cct_estimate_scaled(struct cct_estimate e, double by) {
  double lo = e.lo * by, hi = e.hi * by;
  e.value *= by;
  e.scale *= fabs(by);
  e.lo = fmin(lo, hi);
  e.hi = fmax(lo, hi);
  return e;
}

/* What repeats of b differ by counts by its size beside what it is taken from: a launch does not unsettle a second. */
struct cct_estimate cct_estimate_less(struct cct_estimate a, struct cct_estimate b) {
  double ha = (a.hi - a.lo) / 2, hb = (b.hi - b.lo) / 2, half = sqrt(ha * ha + hb * hb);
  int disagrees = b.spread > b.limit;
  a.is_known &= b.is_known;
  if (b.spread > 0 && a.scale > 0)
    a.spread = hypot(a.spread, b.spread * b.scale / a.scale);
  a.is_unstable |= (b.is_unstable && !disagrees) || a.spread > a.limit;
  a.repeats = b.repeats < a.repeats ? b.repeats : a.repeats;
  a.value -= b.value;
  a.lo = a.value - half;
  a.hi = a.value + half;
  return a;
}

struct cct_estimate cct_estimate_not_negative(struct cct_estimate e) {
  e.is_unstable |= e.hi < 0;
  e.value = fmax(e.value, 0);
  e.lo = fmax(e.lo, 0);
  e.hi = fmax(e.hi, 0);
  return e;
}

struct cct_estimate cct_estimate_rate(struct cct_estimate slope, double scale) {
  if (!slope.is_known || !(slope.value > 0)) {
    slope.is_known = 0;
    return slope;
  }
  double value = scale / slope.value, lo = scale / slope.hi, hi = slope.lo > 0 ? scale / slope.lo : value;
  slope.is_unstable |= !(slope.lo > 0); /* wider than itself */
  slope.value = slope.scale = value;
  slope.lo = lo * (1 - 1e-6);
  slope.hi = hi * (1 + 1e-6);
  return slope;
}

struct cct_estimate cct_experiment_value(const struct cct_probe_set *set, const char *experiment, const char *metric) {
  struct cct_cloud cloud;
  char wanted[128] = "";
  for (size_t i = 0; i < set->n && !*wanted; i++) {
    const char *text = set->points[i].cell.v[CCT_OPT_EXPERIMENT].s;
    size_t length = strlen(experiment);
    if (text && !strncmp(text, experiment, length) && (text[length] == '/' || !text[length]))
      snprintf(wanted, sizeof wanted, "%s", text);
  }
  if (!*wanted)
    return (struct cct_estimate){0};
  cct_cloud_gather(set, CCT_WANT_PROBE("experiment", {CCT_OPT_EXPERIMENT, wanted}), metric, CCT_BY_VALUE, 0,
                   CCT_SPREAD_CALLS, &cloud);
  return cct_cloud_median(&cloud, wanted);
}
