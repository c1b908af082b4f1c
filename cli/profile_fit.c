/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/experiments.h"

#define MOST_POINTS 512
#define CLOCK_US    0.001 /* every duration is a whole number of nanoseconds */
#define SHORT_US    50

/* Which cells: option and text; ends with a NULL text. */
struct want {
  enum cct_option_id id;
  const char *text;
};
#define MOST_WANTS 6

struct cloud { /* the points of one line */
  double x[MOST_POINTS], y[MOST_POINTS], weight[MOST_POINTS];
  size_t n;
  double spread;
  int repeats, is_unstable;
};

static int is_wanted(const struct cct_options *cell, const struct want *wants) {
  for (int i = 0; i < MOST_WANTS && wants[i].text; i++) {
    const struct cct_value *value = &cell->v[wants[i].id];
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)value->i);
    const char *text = cct_option_table[wants[i].id].kind == CCT_KIND_I64 ? number : cct_cell_text(cell, wants[i].id);
    if (!text || strcmp(text, wants[i].text))
      return 0;
  }
  return 1;
}

static int is_same_cell(const struct cct_options *a, const struct cct_options *b) {
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

/* How far the repeats of point `at`'s cell lie apart. */
static void watch(const struct cct_probe_set *set, size_t at, double limit, struct cloud *cloud) {
  const struct cct_probe_point *point = &set->points[at];
  double values[64];
  size_t n = 0;
  for (size_t i = 0; i < set->n && n < 64; i++)
    if (!strcmp(set->points[i].metric, point->metric) && is_same_cell(&set->points[i].cell, &point->cell))
      values[n++] = set->points[i].value;
  cct_sort(values, n);
  double middle = cct_quantile(values, n, 0.5), spread = middle > 0 ? (values[n - 1] - values[0]) / middle : 0;
  if (middle < SHORT_US && limit < CCT_SPREAD_CALLS)
    limit = CCT_SPREAD_CALLS;
  cloud->spread = fmax(cloud->spread, spread);
  cloud->repeats = cloud->n <= 1 || (int)n < cloud->repeats ? (int)n : cloud->repeats;
  cloud->is_unstable |= spread > limit || n < CCT_LEAST_REPEATS;
}

enum axis {
  BY_CALLS, /* x: calls of the burst, y: us of the burst */
  BY_NODES, /* x: calls of a repetition, y: us of a repetition without the closing synchronisation */
  BY_BYTES, /* x: bytes, y: us of a repetition without the closing synchronisation */
  BY_VALUE, /* x: 0, y: the value */
};

static void gather(const struct cct_probe_set *set, const struct want *wants, const char *metric, enum axis axis,
                   double closing_us, double limit, struct cloud *cloud) {
  memset(cloud, 0, sizeof *cloud);
  for (size_t i = 0; i < set->n && cloud->n < MOST_POINTS; i++) {
    const struct cct_probe_point *point = &set->points[i];
    if (strcmp(point->metric, metric) || !is_wanted(&point->cell, wants))
      continue;
    double calls = (double)point->cell.v[CCT_OPT_CALLS].i, bytes = (double)point->cell.v[CCT_OPT_BYTES].i;
    double x = axis == BY_CALLS ? point->n * calls : axis == BY_NODES ? calls : axis == BY_BYTES ? bytes : 0;
    double y = axis == BY_CALLS   ? point->n * point->value
               : axis == BY_VALUE ? point->value
                                  : point->value - closing_us / point->n;
    if (!(y > 0) && axis != BY_VALUE)
      continue;
    cloud->x[cloud->n] = x;
    cloud->y[cloud->n] = y;
    cloud->weight[cloud->n] = 1 / (y * y);
    cloud->n++;
    watch(set, i, limit, cloud);
  }
}

static int has_two_x(const struct cloud *cloud) {
  for (size_t i = 1; i < cloud->n; i++)
    if (cloud->x[i] != cloud->x[0])
      return cloud->n > 2;
  return 0;
}

static struct cct_estimate estimate(const struct cloud *cloud, double value, double half, const char *from) {
  struct cct_estimate e = {.is_known = isfinite(value),
                           .is_unstable = cloud->is_unstable || !isfinite(half),
                           .repeats = cloud->repeats,
                           .value = value,
                           .lo = value - half,
                           .hi = value + half,
                           .spread = cloud->spread};
  snprintf(e.from, sizeof e.from, "%s", from);
  return e;
}

static double half_of(struct cct_interval interval) {
  return interval.df > 0 ? (interval.hi - interval.lo) / 2 : NAN;
}

struct line { /* both parts of one line */
  struct cct_estimate fixed, slope;
};

static struct line fit(const struct cloud *cloud, double clock_us, const char *from) {
  struct line line = {{0}, {0}};
  if (!has_two_x(cloud))
    return line;
  struct cct_line fitted = cct_fit_line(cloud->x, cloud->y, cloud->weight, cloud->n);
  double widest = 1;
  for (size_t i = 0; i < cloud->n; i++)
    widest = fmax(widest, cloud->x[i]);
  line.fixed = estimate(cloud, fitted.intercept.estimate, half_of(fitted.intercept) + clock_us, from);
  line.slope = estimate(cloud, fitted.slope.estimate, half_of(fitted.slope) + clock_us / widest, from);
  return line;
}

/* a - b - ..: what is left of a sum when its known parts are taken away. */
static struct cct_estimate less(struct cct_estimate a, struct cct_estimate b) {
  double ha = (a.hi - a.lo) / 2, hb = (b.hi - b.lo) / 2, half = sqrt(ha * ha + hb * hb);
  a.is_known &= b.is_known;
  a.is_unstable |= b.is_unstable;
  a.repeats = b.repeats < a.repeats ? b.repeats : a.repeats;
  a.spread = fmax(a.spread, b.spread);
  a.value -= b.value;
  a.lo = a.value - half;
  a.hi = a.value + half;
  return a;
}

/* No time is negative; an interval that is all below zero says that the law does not hold. */
static struct cct_estimate not_negative(struct cct_estimate e) {
  e.is_unstable |= e.hi < 0;
  e.value = fmax(e.value, 0);
  e.lo = fmax(e.lo, 0);
  e.hi = fmax(e.hi, 0);
  return e;
}

/* GB/s of us a byte; TFLOP/s of us a Mflop. */
static struct cct_estimate rate_of(struct cct_estimate slope, double scale) {
  if (!slope.is_known || !(slope.value > 0)) {
    slope.is_known = 0;
    return slope;
  }
  double value = scale / slope.value, lo = scale / slope.hi, hi = slope.lo > 0 ? scale / slope.lo : value;
  slope.is_unstable |= !(slope.lo > 0); /* wider than itself */
  slope.value = value;
  slope.lo = lo * (1 - 1e-6);
  slope.hi = hi * (1 + 1e-6);
  return slope;
}

#define PROBE(name, ...)                                                                                               \
  ((const struct want[MOST_WANTS]){{CCT_OPT_WORKLOAD, "probe"}, {CCT_OPT_PROBE_NAME, (name)}, ##__VA_ARGS__})
#define CLOSED                                                                                                         \
  { CCT_OPT_CLOSE, "call" }
#define ALONE                                                                                                          \
  { CCT_OPT_NP, "1" }

/* What one call takes may be a nanosecond off, however many there are. */
static struct line fit_calls(const struct cct_probe_set *set, const char *probe) {
  struct cloud cloud;
  gather(set, PROBE(probe), "step", BY_CALLS, 0, CCT_SPREAD_CALLS, &cloud);
  struct line line = fit(&cloud, CLOCK_US, probe);
  line.slope.lo -= CLOCK_US;
  line.slope.hi += CLOCK_US;
  return line;
}

static void fit_channel(const struct cct_probe_set *set, struct cct_fitted *f) {
  struct cloud cloud;
  struct line sync = fit_calls(set, "bare-sync");
  f->sync_us = sync.slope;
  f->closing_us = not_negative(sync.fixed);
  f->submission_us = fit_calls(set, "submission").slope;
  f->floor_us = fit_calls(set, "floor").slope;
  gather(set, PROBE("graph", CLOSED), "step", BY_NODES, f->closing_us.value, CCT_SPREAD_CALLS, &cloud);
  struct line graph = fit(&cloud, 2 * CLOCK_US, "graph");
  f->graph_us = not_negative(less(graph.fixed, f->sync_us));
  f->graph_us_per_node = not_negative(less(graph.slope, f->floor_us));
}

/* fixed + bytes / rate of what is closed by a synchronisation each: less its submission and that. */
static struct line fit_bytes(const struct cct_probe_set *set, const struct want *wants, const struct cct_fitted *f,
                             const char *from) {
  struct cloud cloud;
  gather(set, wants, "step", BY_BYTES, f->closing_us.value, CCT_SPREAD_BYTES, &cloud);
  struct line line = fit(&cloud, 2 * CLOCK_US, from);
  line.fixed = not_negative(less(less(line.fixed, f->submission_us), f->sync_us));
  line.slope = rate_of(line.slope, 1e-3);
  return line;
}

static void fit_copies(const struct cct_probe_set *set, struct cct_fitted *f) {
  static const char *const directions[] = {"h2d", "d2h"}, *const blocked[] = {"blocked-h2d", "blocked-d2h"},
                           *const memories[] = {"pinned", "pageable"};
  for (int d = 0; d < 2; d++)
    for (int m = 0; m < 2; m++) {
      struct cloud cloud;
      struct line line =
          fit_bytes(set, PROBE(directions[d], CLOSED, ALONE, {CCT_OPT_MEMORY, memories[m]}), f, directions[d]);
      f->copy[d][m].fixed_us = line.fixed;
      f->copy[d][m].gb_s = line.slope;
      gather(set, PROBE(blocked[d], {CCT_OPT_MEMORY, memories[m]}), "step", BY_VALUE, 0, CCT_SPREAD_CALLS, &cloud);
      f->copy[d][m].blocks = cloud.n ? cct_median(cloud.y, cloud.n) > 1.5e-3 * CCT_PROBE_DELAY_NS : -1;
    }
}

/* The value of an experiment's metric; spread as that of calls. */
static struct cct_estimate value_of(const struct cct_probe_set *set, const char *experiment, const char *metric) {
  struct cloud cloud;
  char wanted[128] = "";
  for (size_t i = 0; i < set->n && !*wanted; i++) {
    const char *text = set->points[i].cell.v[CCT_OPT_EXPERIMENT].s;
    size_t length = strlen(experiment);
    if (text && !strncmp(text, experiment, length) && (text[length] == '/' || !text[length]))
      snprintf(wanted, sizeof wanted, "%s", text);
  }
  if (!*wanted)
    return (struct cct_estimate){0};
  gather(set, PROBE("experiment", {CCT_OPT_EXPERIMENT, wanted}), metric, BY_VALUE, 0, CCT_SPREAD_CALLS, &cloud);
  if (!cloud.n)
    return (struct cct_estimate){0};
  double least = cloud.y[0], most = cloud.y[0];
  for (size_t i = 0; i < cloud.n; i++) {
    least = fmin(least, cloud.y[i]);
    most = fmax(most, cloud.y[i]);
  }
  struct cct_estimate e = estimate(&cloud, cct_median(cloud.y, cloud.n), 0, wanted);
  e.lo = least;
  e.hi = most;
  return e;
}

/* An experiment measures a GPU's own accesses; the library's messages stand in where there is none. */
static void fit_p2p(const struct cct_probe_set *set, struct cct_fitted *f) {
  struct line line = fit_bytes(set, PROBE("p2p", CLOSED), f, "p2p");
  struct cct_estimate write = value_of(set, "short_write", "one_way"), by_sm = value_of(set, "p2p_copy/1G/1/1", "rate");
  f->ce_gb_s = value_of(set, "p2p_copy/1G/0/1", "rate");
  f->sm_gb_s = by_sm.is_known ? by_sm : line.slope;
  f->short_write_us = write.is_known ? write : line.fixed;
}

static void fit_device(const struct cct_probe_set *set, struct cct_fitted *f) {
  struct cloud cloud;
  for (int type = 0; type < CCT_TYPE_COUNT; type++) {
    const char *name = cct_type_name((enum cct_type)type);
    gather(set, PROBE("gemm", CLOSED, {CCT_OPT_TYPE, name}), "step", BY_BYTES, f->closing_us.value, CCT_SPREAD_BYTES,
           &cloud);
    long long m, n, k;
    for (size_t i = 0; cloud.n && i < set->n; i++)
      if (is_wanted(&set->points[i].cell, PROBE("gemm", CLOSED, {CCT_OPT_TYPE, name})) &&
          sscanf(set->points[i].cell.v[CCT_OPT_GEMM_SHAPE].s, "%lldx%lldx%lld", &m, &n, &k) == 3) {
        struct cct_interval mean = cct_interval_mean(cloud.y, cloud.n);
        struct cct_estimate us = less(
            less(estimate(&cloud, mean.estimate, half_of(mean) + 2 * CLOCK_US, "gemm"), f->submission_us), f->sync_us);
        f->gemm_tflop_s[type] = rate_of(us, 2e-6 * (double)m * (double)n * (double)k);
        break;
      }
  }
  f->hbm_gb_s = fit_bytes(set, PROBE("hbm", CLOSED), f, "hbm").slope;
  f->memory_bytes = value_of(set, "memory", "total");
  f->reserved_bytes = value_of(set, "memory", "reserved");
  f->cpu_slowdown = fit_calls(set, "hostwork").slope;
  double per_us = 1e3 / CCT_PROBE_WORK_NS;
  f->cpu_slowdown.value *= per_us;
  f->cpu_slowdown.lo *= per_us;
  f->cpu_slowdown.hi *= per_us;
  struct cct_estimate error = value_of(set, "host_register", "error"), gdr = value_of(set, "gdr", "supported");
  f->host_register = error.is_known ? error.value == 0 : -1;
  f->gdr = gdr.is_known ? gdr.value > 0 : -1;
}

/* ---- collectives: lines over ranges of sizes, whose lower envelope is the time ---- */

struct sizes { /* of one kind and number of ranks, ascending */
  double wire[64], eager_us[64], graph_us[64], weight[64];
  int n;
  struct cloud eager, graph;
};

#define COLLECTIVE(kind, ranks, graph_)                                                                                \
  ((const struct want[MOST_WANTS]){{CCT_OPT_WORKLOAD, "collective"},                                                   \
                                   {CCT_OPT_COLLECTIVE, (kind)},                                                       \
                                   {CCT_OPT_NP, (ranks)},                                                              \
                                   {CCT_OPT_GRAPH, (graph_)},                                                          \
                                   CLOSED})

static double median_at(const struct cloud *cloud, double bytes) {
  double values[MOST_POINTS];
  size_t n = 0;
  for (size_t i = 0; i < cloud->n; i++)
    if (cloud->x[i] == bytes)
      values[n++] = cloud->y[i];
  return n ? cct_median(values, n) : NAN;
}

static void gather_sizes(const struct cct_probe_set *set, const struct cct_fitted *f, enum cct_collective kind,
                         int ranks, struct sizes *s) {
  const char *name = cct_collective_name(kind);
  char np[16];
  double seen[MOST_POINTS], sub = f->submission_us.value, sync = f->sync_us.value, calls = 1;
  snprintf(np, sizeof np, "%d", ranks);
  s->n = 0;
  gather(set, COLLECTIVE(name, np, "none"), "step", BY_BYTES, f->closing_us.value, CCT_SPREAD_CALLS, &s->eager);
  gather(set, COLLECTIVE(name, np, "full"), "step", BY_BYTES, f->closing_us.value, CCT_SPREAD_CALLS, &s->graph);
  for (size_t i = 0; i < set->n; i++)
    if (is_wanted(&set->points[i].cell, COLLECTIVE(name, np, "full")))
      calls = (double)set->points[i].cell.v[CCT_OPT_CALLS].i;
  memcpy(seen, s->eager.x, s->eager.n * sizeof *seen);
  cct_sort(seen, s->eager.n);
  for (size_t i = 0; i < s->eager.n && s->n < 64; i++) {
    if (i && seen[i] == seen[i - 1])
      continue;
    double eager = median_at(&s->eager, seen[i]) - sub - sync, graph = median_at(&s->graph, seen[i]) - sync;
    graph = (graph - f->graph_us.value) / calls - f->graph_us_per_node.value;
    if (!(eager > 0) || !(graph > 0))
      continue;
    s->wire[s->n] = seen[i] * cct_collective_factor(kind, ranks);
    s->eager_us[s->n] = eager;
    s->graph_us[s->n] = graph;
    s->weight[s->n++] = 1 / (graph * graph);
  }
}

static struct cct_estimate around(const struct sizes *s, double value, double half) {
  struct cct_estimate e = estimate(&s->graph, value, half, "collective");
  e.is_unstable |= s->eager.is_unstable;
  e.spread = fmax(e.spread, s->eager.spread);
  return e;
}

/* One row over sizes [first, last]: rate and toll in graphs from the graphs' line, the eager toll from what is left. */
static struct cct_fitted_row make_row(const struct sizes *s, int first, int last) {
  int n = last - first + 1;
  struct cct_line line = cct_fit_line(s->wire + first, s->graph_us + first, s->weight + first, (size_t)n);
  double slope = fmax(line.slope.estimate, 1e-12), left[64];
  for (int i = 0; i < n; i++)
    left[i] = s->eager_us[first + i] - slope * s->wire[first + i];
  double eager = cct_median(left, (size_t)n), toll = line.intercept.estimate;
  double least = CCT_SEGMENT_ERROR * s->graph_us[first], h_toll = half_of(line.intercept),
         h_slope = half_of(line.slope);
  struct cct_fitted_row row = {
      .toll_us_eager = not_negative(around(s, eager, fmax(least, isnan(h_toll) ? 0 : h_toll))),
      .toll_us_graph = not_negative(around(s, toll, fmax(least, isnan(h_toll) ? 0 : h_toll))),
  };
  double half = fmax(CCT_SEGMENT_ERROR * slope, isnan(h_slope) ? 0 : h_slope);
  row.busbw_gb_s = rate_of(around(s, slope, fmin(half, slope / 2)), 1e-3);
  return row;
}

static int is_line(const struct sizes *s, int first, int last) {
  if (last - first < 2)
    return 1;
  return cct_fit_line(s->wire + first, s->graph_us + first, s->weight + first, (size_t)(last - first + 1)).worst <=
         CCT_SEGMENT_ERROR;
}

static void check_envelope(const struct sizes *s, struct cct_fitted_row *rows, int n) {
  double worst = 0;
  for (int i = 0; i < s->n; i++) {
    double least = INFINITY;
    for (int r = 0; r < n; r++)
      least = fmin(least, rows[r].toll_us_graph.value + 1e-3 * s->wire[i] / rows[r].busbw_gb_s.value);
    worst = fmax(worst, fabs(least - s->graph_us[i]) / s->graph_us[i]);
  }
  for (int r = 0; r < n; r++)
    rows[r].toll_us_eager.is_unstable = rows[r].toll_us_graph.is_unstable = rows[r].busbw_gb_s.is_unstable |=
        worst > CCT_ENVELOPE_ERROR;
}

static void fit_collective(const struct cct_probe_set *set, enum cct_collective kind, int ranks, struct cct_fitted *f) {
  struct sizes *s = calloc(1, sizeof *s);
  int room = (int)(sizeof f->rows / sizeof *f->rows) - f->n_rows, n = 0;
  struct cct_fitted_row *rows = f->rows + f->n_rows;
  if (!s)
    return;
  gather_sizes(set, f, kind, ranks, s);
  for (int first = 0, last; first < s->n && n < room && n < CCT_MOST_SEGMENTS; first = last + 1) {
    for (last = first + 1; last + 1 < s->n && (n == CCT_MOST_SEGMENTS - 1 || is_line(s, first, last + 1));)
      last++;
    if (last == s->n - 2) /* one size alone is no line */
      last++;
    if (last >= s->n)
      break;
    rows[n] = make_row(s, first, last);
    rows[n].kind = kind;
    rows[n].ranks = ranks;
    rows[n].segment = n;
    n++;
  }
  check_envelope(s, rows, n);
  f->n_rows += n;
  free(s);
}

static void fit_collectives(const struct cct_probe_set *set, struct cct_fitted *f) {
  for (int kind = 0; kind < CCT_COLL_COUNT; kind++)
    for (int ranks = 2; ranks <= 1024; ranks *= 2)
      fit_collective(set, (enum cct_collective)kind, ranks, f);
}

void cct_profile_fit(const struct cct_probe_set *set, struct cct_fitted *fitted_out) {
  memset(fitted_out, 0, sizeof *fitted_out);
  fit_channel(set, fitted_out);
  fit_copies(set, fitted_out);
  fit_p2p(set, fitted_out);
  fit_collectives(set, fitted_out);
  fit_device(set, fitted_out);
}

enum cct_submission_form cct_profile_form(const struct cct_fitted *clear, const struct cct_fitted *confidential) {
  double surcharge = confidential->submission_us.value - clear->submission_us.value,
         slower = confidential->floor_us.value - clear->floor_us.value;
  return surcharge > 0 && slower > surcharge / 2 ? CCT_FORM_STREAM : CCT_FORM_HOST;
}
