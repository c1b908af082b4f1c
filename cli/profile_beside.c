/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_beside.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/profile_cloud.h"

struct beside {
  const struct cct_probe_set *set;
  const struct cct_fitted *fitted;
  const char *column;
  struct cct_profile_report *report;
  enum cct_status status;
};

__attribute__((format(printf, 3, 4))) static void tell(struct beside *b, struct cct_estimate e, const char *format,
                                                       ...) {
  struct cct_profile_report *r = b->report;
  va_list arguments;
  if (b->status || !e.is_known)
    return;
  b->status = cct_grow((void **)&r->lines, &r->capacity, r->n + 1, sizeof *r->lines);
  if (b->status)
    return;
  struct cct_profile_line *line = &r->lines[r->n++];
  *line = (struct cct_profile_line){.state = e.is_unstable                      ? CCT_VALUE_UNSTABLE
                                             : cct_probe_set_is_derived(b->set) ? CCT_VALUE_DERIVED
                                                                                : CCT_VALUE_MEASURED,
                                    .estimate = e};
  int at = snprintf(line->path, sizeof line->path, "%s.", b->column);
  va_start(arguments, format);
  vsnprintf(line->path + at, sizeof line->path - (size_t)at, format, arguments);
  va_end(arguments);
}

/* The line through the sizes that were measured, at the model's. */
static void tell_model(struct beside *b) {
  static const char *const probes[] = {"load", "save"}, *const memories[] = {"pinned", "pageable"};
  for (int p = 0; p < 2; p++)
    for (int m = 0; m < 2; m++) {
      struct cct_cloud cloud;
      cct_cloud_gather(b->set, CCT_WANT_PROBE(probes[p], CCT_WANT_ALONE, {CCT_OPT_MEMORY, memories[m]}), "step",
                       CCT_BY_BYTES, b->fitted->closing_us.value, CCT_SPREAD_BYTES, &cloud);
      struct cct_fitted_line line = cct_cloud_fit(&cloud, CCT_CLOCK_US, probes[p]);
      struct cct_estimate rest = cct_estimate_scaled(line.fixed, -1);
      struct cct_estimate us =
          cct_estimate_less(cct_estimate_scaled(line.slope, CCT_MODEL_BYTES), rest); /* slope + fixed */
      tell(b, cct_estimate_not_negative(cct_estimate_scaled(us, 1e-6)), "%s.%s.s_at_72_gb", probes[p], memories[m]);
    }
}

/* Bytes that a step of the cell moves one way, or both ways together; 0: it is no such probe. */
static double bytes_at_once(const struct cct_options *cell) {
  const char *probe = cell->v[CCT_OPT_PROBE_NAME].s;
  double bytes = (double)cell->v[CCT_OPT_BYTES].i, calls = (double)cell->v[CCT_OPT_CALLS].i;
  if (!strcmp(probe, "both"))
    return 2 * bytes;
  if (!strcmp(probe, "streams") || !strcmp(probe, "threads"))
    return bytes * calls;
  if (!strcmp(probe, "h2d") && cell->v[CCT_OPT_NP].i > 1)
    return bytes * calls * (double)cell->v[CCT_OPT_NP].i;
  return !strcmp(probe, "h2d") && calls > 1 ? bytes * calls : 0;
}

/* All repeats of the cell of point `at`. */
static void gather_cell(const struct cct_probe_set *set, size_t at, double limit, struct cct_cloud *cloud) {
  memset(cloud, 0, sizeof *cloud);
  for (size_t i = 0; i < set->n && cloud->n < CCT_MOST_POINTS; i++)
    if (!strcmp(set->points[i].metric, set->points[at].metric) &&
        cct_is_same_cell(&set->points[i].cell, &set->points[at].cell))
      cct_cloud_point(set, i, limit, 0, set->points[i].value, cloud);
}

static int is_first(const struct cct_probe_set *set, size_t at) {
  for (size_t i = 0; i < at; i++)
    if (!strcmp(set->points[i].metric, set->points[at].metric) &&
        cct_is_same_cell(&set->points[i].cell, &set->points[at].cell))
      return 0;
  return 1;
}

static void tell_cell(struct beside *b, size_t at) {
  const struct cct_probe_point *point = &b->set->points[at];
  const struct cct_options *cell = &point->cell;
  const char *probe = cell->v[CCT_OPT_PROBE_NAME].s;
  struct cct_cloud cloud;
  double bytes = bytes_at_once(cell);
  int is_experiment = !strcmp(probe, "experiment"), is_loop = !strcmp(probe, "decode-loop");
  if (!is_experiment && !is_loop && !(bytes > 0))
    return;
  gather_cell(b->set, at, bytes > 0 ? CCT_SPREAD_BYTES : CCT_SPREAD_CALLS, &cloud);
  struct cct_estimate e = cct_cloud_median(&cloud, probe);
  if (is_experiment)
    tell(b, e, "%s.%s_%s", cell->v[CCT_OPT_EXPERIMENT].s, point->metric, point->unit);
  else if (is_loop)
    tell(b, e, "%s.us", probe);
  else
    tell(b, cct_estimate_rate(e, bytes * 1e-3), "%s.%s.%lldx%lld.np%lld.gb_s", probe, cell->v[CCT_OPT_MEMORY].s,
         (long long)cell->v[CCT_OPT_BYTES].i, (long long)cell->v[CCT_OPT_CALLS].i, (long long)cell->v[CCT_OPT_NP].i);
}

static void tell_registered(struct beside *b) {
  for (int i = 0; i < b->fitted->n_rows; i++) {
    const struct cct_fitted_row *row = &b->fitted->rows[i];
    const struct cct_estimate *values[] = {&row->toll_us_graph, &row->busbw_gb_s};
    static const char *const keys[] = {"toll_us_graph", "busbw_gb_s"};
    for (int k = 0; k < 2; k++)
      tell(b, *values[k], "registered.%s.%d.range%d.%s", cct_collective_name(row->kind), row->ranks, row->segment + 1,
           keys[k]);
  }
}

enum cct_status cct_profile_beside(const struct cct_probe_points *points, const struct cct_fitted *fitted,
                                   struct cct_profile_report *report) {
  static const struct {
    enum cct_probe_column column, registered;
    const char *name;
  } columns[] = {{CCT_PROBE_CLEAR, CCT_PROBE_CLEAR_REGISTERED, "clear"},
                 {CCT_PROBE_CONFIDENTIAL, CCT_PROBE_CONFIDENTIAL_REGISTERED, "confidential"}};
  enum cct_status status = CCT_OK;
  for (int c = 0; !status && c < 2; c++) {
    struct beside b = {&points->sets[columns[c].column], &fitted[columns[c].column], columns[c].name, report, CCT_OK};
    tell_model(&b);
    for (size_t i = 0; i < b.set->n; i++)
      if (!strcmp(b.set->points[i].cell.v[CCT_OPT_WORKLOAD].s, "probe") && is_first(b.set, i))
        tell_cell(&b, i);
    b.fitted = &fitted[columns[c].registered];
    tell_registered(&b);
    status = b.status;
  }
  return status;
}
