/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/profile_cloud.h"
#include "stats/stats.h"
#include "workloads/steps/experiments.h"

/* What one call takes may be a nanosecond off, however many there are. */
static struct cct_fitted_line fit_calls(const struct cct_probe_set *set, const char *probe) {
  struct cct_cloud cloud;
  cct_cloud_gather(set, CCT_WANT_PROBE(probe), "step", CCT_BY_CALLS, 0, CCT_SPREAD_CALLS, &cloud);
  struct cct_fitted_line line = cct_cloud_fit(&cloud, CCT_CLOCK_US, probe);
  line.slope.lo -= CCT_CLOCK_US;
  line.slope.hi += CCT_CLOCK_US;
  return line;
}

static void fit_channel(const struct cct_probe_set *set, struct cct_fitted *f) {
  struct cct_cloud cloud;
  struct cct_fitted_line sync = fit_calls(set, "bare-sync");
  f->sync_us = sync.slope;
  f->closing_us = cct_estimate_not_negative(sync.fixed);
  f->submission_us = fit_calls(set, "submission").slope;
  f->floor_us = fit_calls(set, "floor").slope;
  cct_cloud_gather(set, CCT_WANT_PROBE("graph", CCT_WANT_CLOSED), "step", CCT_BY_NODES, f->closing_us.value,
                   CCT_SPREAD_CALLS, &cloud);
  struct cct_fitted_line graph = cct_cloud_fit(&cloud, 2 * CCT_CLOCK_US, "graph");
  f->graph_us = cct_estimate_not_negative(cct_estimate_less(graph.fixed, f->sync_us));
  f->graph_us_per_node = cct_estimate_not_negative(cct_estimate_less(graph.slope, f->floor_us));
}

/* fixed + bytes / rate of what is closed by a synchronisation each: less its submission and that. */
static struct cct_fitted_line fit_bytes(const struct cct_probe_set *set, const struct cct_want *wants,
                                        const struct cct_fitted *f, const char *from) {
  struct cct_cloud cloud;
  cct_cloud_gather(set, wants, "step", CCT_BY_BYTES, f->closing_us.value, CCT_SPREAD_BYTES, &cloud);
  struct cct_fitted_line line = cct_cloud_fit(&cloud, 2 * CCT_CLOCK_US, from);
  line.fixed =
      cct_estimate_not_negative(cct_estimate_less(cct_estimate_less(line.fixed, f->submission_us), f->sync_us));
  line.slope = cct_estimate_rate(line.slope, 1e-3);
  return line;
}

static void fit_copies(const struct cct_probe_set *set, struct cct_fitted *f) {
  static const char *const directions[] = {"h2d", "d2h"}, *const blocked[] = {"blocked-h2d", "blocked-d2h"},
                           *const memories[] = {"pinned", "pageable"};
  for (int d = 0; d < 2; d++)
    for (int m = 0; m < 2; m++) {
      struct cct_cloud cloud;
      struct cct_fitted_line line =
          fit_bytes(set, CCT_WANT_PROBE(directions[d], CCT_WANT_CLOSED, CCT_WANT_ALONE, {CCT_OPT_MEMORY, memories[m]}),
                    f, directions[d]);
      f->copy[d][m].fixed_us = line.fixed;
      f->copy[d][m].gb_s = line.slope;
      cct_cloud_gather(set, CCT_WANT_PROBE(blocked[d], {CCT_OPT_MEMORY, memories[m]}), "step", CCT_BY_VALUE, 0,
                       CCT_SPREAD_CALLS, &cloud);
      f->copy[d][m].blocks = cloud.n ? cct_median(cloud.y, cloud.n) > 1.5e-3 * CCT_PROBE_DELAY_NS : -1;
    }
}

/* An experiment measures a GPU's own accesses; the library's messages stand in where there is none. */
static void fit_p2p(const struct cct_probe_set *set, struct cct_fitted *f) {
  struct cct_fitted_line line = fit_bytes(set, CCT_WANT_PROBE("p2p", CCT_WANT_CLOSED), f, "p2p");
  struct cct_estimate write = cct_experiment_value(set, "short_write", "one_way"),
                      by_sm = cct_experiment_value(set, "p2p_copy/1G/1/1", "rate");
  f->ce_gb_s = cct_experiment_value(set, "p2p_copy/1G/0/1", "rate");
  f->sm_gb_s = by_sm.is_known ? by_sm : line.slope;
  f->short_write_us = write.is_known ? write : line.fixed;
}

static void fit_device(const struct cct_probe_set *set, struct cct_fitted *f) {
  struct cct_cloud cloud;
  for (int type = 0; type < CCT_TYPE_COUNT; type++) {
    const char *name = cct_type_name((enum cct_type)type);
    cct_cloud_gather(set, CCT_WANT_PROBE("gemm", CCT_WANT_CLOSED, {CCT_OPT_TYPE, name}), "step", CCT_BY_BYTES,
                     f->closing_us.value, CCT_SPREAD_BYTES, &cloud);
    long long m, n, k;
    for (size_t i = 0; cloud.n && i < set->n; i++)
      if (cct_is_wanted(&set->points[i].cell, CCT_WANT_PROBE("gemm", CCT_WANT_CLOSED, {CCT_OPT_TYPE, name})) &&
          sscanf(set->points[i].cell.v[CCT_OPT_GEMM_SHAPE].s, "%lldx%lldx%lld", &m, &n, &k) == 3) {
        struct cct_interval mean = cct_interval_mean(cloud.y, cloud.n);
        struct cct_estimate us =
            cct_estimate_less(cct_estimate_less(cct_cloud_estimate(&cloud, mean.estimate,
                                                                   cct_interval_half(mean) + 2 * CCT_CLOCK_US, "gemm"),
                                                f->submission_us),
                              f->sync_us);
        f->gemm_tflop_s[type] = cct_estimate_rate(us, 2e-6 * (double)m * (double)n * (double)k);
        break;
      }
  }
  f->hbm_gb_s = fit_bytes(set, CCT_WANT_PROBE("hbm", CCT_WANT_CLOSED), f, "hbm").slope;
  f->memory_bytes = cct_experiment_value(set, "memory", "total");
  f->reserved_bytes = cct_experiment_value(set, "memory", "reserved");
  f->cpu_slowdown = cct_estimate_scaled(fit_calls(set, "hostwork").slope, 1e3 / CCT_PROBE_WORK_NS);
  struct cct_estimate error = cct_experiment_value(set, "host_register", "error"),
                      gdr = cct_experiment_value(set, "gdr", "supported");
  f->host_register = error.is_known ? error.value == 0 : -1;
  f->gdr = gdr.is_known ? gdr.value > 0 : -1;
}

/* ---- collectives: lines over ranges of sizes, whose lower envelope is the time ---- */

struct sizes { /* of one kind and number of ranks, ascending */
  double wire[64], eager_us[64], graph_us[64], weight[64];
  int n;
  double factor, calls, graph_extra_us, node_us; /* wire bytes of one; what a graph has beside its collectives */
  struct cct_cloud eager, graph;
};

#define COLLECTIVE(kind, ranks, graph_)                                                                                \
  ((const struct cct_want[CCT_MOST_WANTS]){{CCT_OPT_WORKLOAD, "collective"},                                           \
                                           {CCT_OPT_COLLECTIVE, (kind)},                                               \
                                           {CCT_OPT_NP, (ranks)},                                                      \
                                           {CCT_OPT_GRAPH, (graph_)},                                                  \
                                           CCT_WANT_CLOSED})

static double median_at(const struct cct_cloud *cloud, double bytes) {
  double values[CCT_MOST_POINTS];
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
  double seen[CCT_MOST_POINTS], sub = f->submission_us.value, sync = f->sync_us.value, calls = 1;
  snprintf(np, sizeof np, "%d", ranks);
  s->n = 0;
  cct_cloud_gather(set, COLLECTIVE(name, np, "none"), "step", CCT_BY_BYTES, f->closing_us.value, CCT_SPREAD_CALLS,
                   &s->eager);
  cct_cloud_gather(set, COLLECTIVE(name, np, "full"), "step", CCT_BY_BYTES, f->closing_us.value, CCT_SPREAD_CALLS,
                   &s->graph);
  for (size_t i = 0; i < set->n; i++)
    if (cct_is_wanted(&set->points[i].cell, COLLECTIVE(name, np, "full")))
      calls = (double)set->points[i].cell.v[CCT_OPT_CALLS].i;
  memcpy(seen, s->eager.x, s->eager.n * sizeof *seen);
  cct_sort(seen, s->eager.n);
  s->factor = cct_collective_factor(kind, ranks);
  s->calls = calls;
  s->graph_extra_us = sync + f->graph_us.value;
  s->node_us = f->graph_us_per_node.value;
  for (size_t i = 0; i < s->eager.n && s->n < 64; i++) {
    if (i && seen[i] == seen[i - 1])
      continue;
    double eager = median_at(&s->eager, seen[i]) - sub - sync, graph = median_at(&s->graph, seen[i]);
    graph = (graph - s->graph_extra_us) / s->calls - s->node_us;
    if (!(eager > 0) || !(graph > 0))
      continue;
    s->wire[s->n] = seen[i] * s->factor;
    s->eager_us[s->n] = eager;
    s->graph_us[s->n] = graph;
    s->weight[s->n++] = 1 / (graph * graph);
  }
}

static struct cct_estimate around(const struct sizes *s, double value, double half) {
  struct cct_estimate e = cct_cloud_estimate(&s->graph, value, half, "collective");
  e.is_unstable |= s->eager.is_unstable;
  e.spread = fmax(e.spread, s->eager.spread);
  return e;
}

/* The line through every repeat of sizes [first, last], not their medians: its intervals know what repeats differ by.
 */
static struct cct_line fit_repeats(const struct sizes *s, int first, int last) {
  double x[CCT_MOST_POINTS], y[CCT_MOST_POINTS], weight[CCT_MOST_POINTS];
  size_t n = 0;
  for (size_t i = 0; i < s->graph.n; i++) {
    double wire = s->graph.x[i] * s->factor, us = (s->graph.y[i] - s->graph_extra_us) / s->calls - s->node_us;
    if (wire < s->wire[first] || wire > s->wire[last] || !(us > 0))
      continue;
    x[n] = wire;
    y[n] = us;
    weight[n++] = 1 / (us * us);
  }
  return cct_fit_line(x, y, weight, n);
}

/* One row over sizes [first, last]: rate and toll in graphs from the graphs' line, the eager toll from what is left. */
static struct cct_fitted_row make_row(const struct sizes *s, int first, int last) {
  int n = last - first + 1;
  struct cct_line line = cct_fit_line(s->wire + first, s->graph_us + first, s->weight + first, (size_t)n);
  double slope = fmax(line.slope.estimate, 1e-12), left[64];
  for (int i = 0; i < n; i++)
    left[i] = s->eager_us[first + i] - slope * s->wire[first + i];
  double eager = cct_median(left, (size_t)n), toll = line.intercept.estimate;
  struct cct_line repeats = fit_repeats(s, first, last);
  double least = CCT_SEGMENT_ERROR * s->graph_us[first], h_toll = cct_interval_half(repeats.intercept),
         h_slope = cct_interval_half(repeats.slope);
  struct cct_fitted_row row = {
      .toll_us_eager = cct_estimate_not_negative(around(s, eager, fmax(least, isnan(h_toll) ? 0 : h_toll))),
      .toll_us_graph = cct_estimate_not_negative(around(s, toll, fmax(least, isnan(h_toll) ? 0 : h_toll))),
  };
  double half = fmax(CCT_SEGMENT_ERROR * slope, isnan(h_slope) ? 0 : h_slope);
  row.busbw_gb_s = cct_estimate_rate(around(s, slope, half), 1e-3);
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
