/* SPDX-License-Identifier: Apache-2.0
 * Figures with a parameter on the x axis: message size, batch, lengths, concurrency, ... */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/assets.h"
#include "report/figure_parts.h"
#include "report/names.h"

enum {
  MAX_SERIES = 6,
  MAX_SWEEPS = 3
};

struct point {
  int cell, arm;
  double x;
  const struct cct_comparison *comparison;
};

/* Cells that differ in one parameter only. */
struct series {
  struct cct_text key; /* the other parameters, as canonical text */
  char name[160];
  int arm;
  struct point *points;
  int n;
};

struct sweep {
  const char *parameter;
  struct series series[64];
  int n;
};

static void sweep_free(struct sweep *sweep) {
  for (int i = 0; i < sweep->n; i++) {
    cct_text_free(&sweep->series[i].key);
    free(sweep->series[i].points);
  }
  sweep->n = 0;
}

enum cct_status cct_rest_of_key(const struct cct_report_cell *cell, const char *parameter, struct cct_text *text) {
  struct cct_json *rest = cct_json_new_object();
  void *iterator = NULL;
  const char *key;
  const struct cct_json *value;
  while (cct_json_next(cell->parameters, &iterator, &key, &value))
    if (strcmp(key, parameter))
      cct_json_set(rest, key, cct_json_copy(value));
  text->length = 0;
  enum cct_status status = cct_json_canonical(rest, text);
  cct_json_free(rest);
  return status;
}

static void series_name(const struct cct_report *report, int cell, const char *parameter, int arm, char *out,
                        size_t size) {
  cct_cell_name(report, cell, parameter, out, size);
  size_t length = strlen(out);
  if (cct_cell_names_metric(&report->cells[cell]))
    snprintf(out + length, size - length, ", %s", report->cells[cell].metric.name);
  length = strlen(out);
  if (report->n_arms > 2)
    snprintf(out + length, size - length, ", %s", report->arms[arm]);
}

static int by_x(const void *a, const void *b) {
  double x = ((const struct point *)a)->x, y = ((const struct point *)b)->x;
  return (x > y) - (x < y);
}

static enum cct_status add_point(const struct cct_report *report, struct sweep *sweep, const struct cct_result *result,
                                 double x) {
  const struct cct_report_cell *cell = &report->cells[result->cell];
  struct cct_text key = {0};
  enum cct_status status = cct_rest_of_key(cell, sweep->parameter, &key);
  int i = 0;
  if (status)
    goto out;
  while (i < sweep->n && (sweep->series[i].arm != result->arm || strcmp(sweep->series[i].key.s, key.s)))
    i++;
  if (i == sweep->n) {
    if (i == (int)(sizeof sweep->series / sizeof *sweep->series))
      goto out; /* more lines than a figure can hold; the table has them */
    struct series *fresh = &sweep->series[sweep->n++];
    *fresh = (struct series){.key = key, .arm = result->arm};
    key = (struct cct_text){0};
    series_name(report, result->cell, sweep->parameter, result->arm, fresh->name, sizeof fresh->name);
  }
  struct series *series = &sweep->series[i];
  struct point *grown = realloc(series->points, (size_t)(series->n + 1) * sizeof *grown);
  if (!grown) {
    status = cct_fail(CCT_NOMEM, "out of memory: a sweep of %s", sweep->parameter);
    goto out;
  }
  series->points = grown;
  series->points[series->n++] = (struct point){result->cell, result->arm, x, &result->comparison};
out:
  cct_text_free(&key);
  return status;
}

/* Series with at least `least` points, sorted by x; the rest is dropped from the sweep. */
static enum cct_status collect(const struct cct_report *report, const char *parameter, int least, struct sweep *sweep) {
  enum cct_status status = CCT_OK;
  sweep->parameter = parameter;
  sweep->n = 0;
  for (int r = 0; !status && r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    const struct cct_json *value = cct_json_member(report->cells[result->cell].parameters, parameter);
    int is_number = value && (cct_json_type(value) == CCT_JSON_INTEGER || cct_json_type(value) == CCT_JSON_REAL);
    if (is_number && result->verdict != CCT_VERDICT_REFUSED && report->cells[result->cell].is_primary)
      status = add_point(report, sweep, result, cct_json_number(value));
  }
  int kept = 0;
  for (int i = 0; i < sweep->n; i++) {
    if (sweep->series[i].n >= least) {
      qsort(sweep->series[i].points, (size_t)sweep->series[i].n, sizeof *sweep->series[i].points, by_x);
      struct series keep = sweep->series[i];
      sweep->series[i] = sweep->series[kept];
      sweep->series[kept++] = keep;
    }
  }
  for (int i = kept; i < sweep->n; i++) {
    cct_text_free(&sweep->series[i].key);
    free(sweep->series[i].points);
  }
  sweep->n = kept;
  return status;
}

static void bounds(const struct sweep *sweep, int shown, double *x_lo, double *x_hi, double *lo, double *hi) {
  *x_lo = *lo = INFINITY;
  *x_hi = *hi = -INFINITY;
  for (int i = 0; i < shown; i++)
    for (int k = 0; k < sweep->series[i].n; k++) {
      const struct point *p = &sweep->series[i].points[k];
      const struct cct_comparison *c = p->comparison;
      *x_lo = fmin(*x_lo, p->x);
      *x_hi = fmax(*x_hi, p->x);
      *lo = fmin(*lo, c->df > 0 ? c->lo : c->effect);
      *hi = fmax(*hi, c->df > 0 ? c->hi : c->effect);
    }
}

static const char *x_text(int is_bytes, double x, char out[32]) {
  if (is_bytes)
    return cct_bytes_text(x, out);
  snprintf(out, 32, "%.10g", x);
  return out;
}

static void put_series(struct cct_figure *figure, const struct sweep *sweep, int shown, int is_ratio) {
  for (int i = 0; i < shown; i++) {
    const struct series *series = &sweep->series[i];
    cct_figure_next(figure);
    cct_text_add(&figure->data, "# %s\t%s\tlo\thi\n", sweep->parameter, is_ratio ? "ratio" : "time_pct");
    for (int k = 0; k < series->n; k++) {
      const struct cct_comparison *c = series->points[k].comparison;
      double value[3] = {c->effect, c->df > 0 ? c->lo : c->effect, c->df > 0 ? c->hi : c->effect};
      for (int j = 0; j < 3; j++)
        value[j] = is_ratio ? exp(value[j]) : cct_time_overhead_pct(value[j]);
      cct_text_add(&figure->data, "%.10g\t%.6g\t%.6g\t%.6g\n", series->points[k].x, value[0], value[1], value[2]);
    }
    const struct point *first = &series->points[0], *last = &series->points[series->n - 1];
    char from[32], to[32];
    cct_text_add(&figure->alt, "%s: time %+.1f %% at %s, %+.1f %% at %s. ", series->name,
                 cct_time_overhead_pct(first->comparison->effect), x_text(is_ratio, first->x, from),
                 cct_time_overhead_pct(last->comparison->effect), x_text(is_ratio, last->x, to));
  }
}

static void put_series_names(struct cct_figure *figure, const struct sweep *sweep, int shown) {
  cct_figure_next(figure);
  for (int i = 0; i < shown; i++) {
    cct_text_add(&figure->data, "%d\t", i + 1);
    cct_figure_field(figure, sweep->series[i].name, CCT_FIGURE_NAME, "\n");
  }
}

static void say_left_out(struct cct_figure *figure, int n, int shown) {
  if (n > shown)
    cct_text_add(&figure->caption, "%d further series are in report.csv. ", n - shown);
}

enum cct_status cct_figure_size(const struct cct_report *report, struct cct_figures *figures) {
  struct sweep *sweep = calloc(1, sizeof *sweep);
  if (!sweep)
    return cct_fail(CCT_NOMEM, "out of memory: the sizes' figure");
  enum cct_status status = collect(report, "bytes", 2, sweep);
  if (!status && sweep->n) {
    double x_lo, x_hi, lo, hi;
    char arms[256];
    int shown = sweep->n < MAX_SERIES ? sweep->n : MAX_SERIES;
    bounds(sweep, shown, &x_lo, &x_hi, &lo, &hi);
    double low = fmin(1, exp(lo)), high = fmax(1, exp(hi)), margin = 0.08 * (high - low) + 0.005;
    int from = (int)floor(log2(x_lo)), to = (int)ceil(log2(x_hi));
    cct_arms_text(report, arms, sizeof arms);
    struct cct_figure *figure =
        cct_figures_add(figures, "size", "How does the cost change with message size?", cct_asset_size_gp);
    cct_figure_title(figure, "Ratio of times, by message size", arms, cct_interval_note(report),
                     cct_report_label(report));
    put_series_names(figure, sweep, shown);
    put_series(figure, sweep, shown, 1);
    cct_text_add(&figure->numbers, "SERIES = %d; LO = %.6g; HI = %.6g; EXP_LO = %d; EXP_HI = %d; EXP_STEP = %d", shown,
                 low - margin, high + margin, from, to, to - from > 8 ? 3 : 1);
    cct_text_add(&figure->caption,
                 "Above 1x the arm is slower. A cost per call shows at small sizes, a cost per byte at large. ");
    say_left_out(figure, sweep->n, shown);
    figure->width = 860;
    figure->height = 380 + 20 * shown;
    figure->narrow_width = 380;
    figure->narrow_height = 400 + 20 * shown;
  }
  sweep_free(sweep);
  free(sweep);
  return status;
}

static int by_number(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* From 0 to 1 along the axis. */
static double place_of(double value, double lo, double hi, int is_log) {
  return hi <= lo ? 0 : is_log ? log(value / lo) / log(hi / lo) : (value - lo) / (hi - lo);
}

/* The last one stands, whatever is in front of it. */
int cct_choose_ticks(double *values, int n, int is_log, double gap, double ticks[CCT_MOST_TICKS]) {
  int n_ticks = 0;
  qsort(values, (size_t)n, sizeof *values, by_number);
  double last = -INFINITY, lo = n ? values[0] : 0, hi = n ? values[n - 1] : 0;
  for (int i = 0; i < n && n_ticks < CCT_MOST_TICKS; i++) {
    double place = place_of(values[i], lo, hi, is_log);
    if (place - last < gap)
      continue;
    ticks[n_ticks++] = values[i];
    last = place;
  }
  if (n_ticks && ticks[n_ticks - 1] < hi) {
    while (n_ticks > 1 && (n_ticks == CCT_MOST_TICKS || place_of(ticks[n_ticks - 1], lo, hi, is_log) > 1 - gap))
      n_ticks--;
    ticks[n_ticks++] = hi;
  }
  return n_ticks;
}

void cct_figure_numbers(struct cct_figure *figure, const char *name, const double *values, int n) {
  cct_text_add(&figure->numbers, "\narray %s[%d] = [", name, n);
  for (int i = 0; i < n; i++)
    cct_text_add(&figure->numbers, "%s%.10g", i ? ", " : "", values[i]);
  cct_text_add(&figure->numbers, "]");
}

/* The values that the lines have. */
static int choose_ticks(const struct sweep *sweep, int shown, int is_log, double ticks[CCT_MOST_TICKS]) {
  double values[1024];
  int n = 0;
  for (int i = 0; i < shown; i++)
    for (int k = 0; k < sweep->series[i].n && n < 1024; k++)
      values[n++] = sweep->series[i].points[k].x;
  return cct_choose_ticks(values, n, is_log, 0.11, ticks);
}

static void add_sweep(const struct cct_report *report, struct cct_figures *figures, const struct sweep *sweep) {
  double x_lo, x_hi, lo, hi, ticks[CCT_MOST_TICKS];
  char arms[256], name[48], title[80], axis[40];
  int shown = sweep->n < MAX_SERIES ? sweep->n : MAX_SERIES, n_ticks = 0;
  bounds(sweep, shown, &x_lo, &x_hi, &lo, &hi);
  int is_log = x_lo > 0 && x_hi / x_lo >= 4;
  n_ticks = choose_ticks(sweep, shown, is_log, ticks);
  snprintf(axis, sizeof axis, "%s", sweep->parameter);
  for (char *p = axis; *p; p++)
    *p = *p == '_' ? ' ' : *p;
  snprintf(name, sizeof name, "sweep_%s", sweep->parameter);
  snprintf(title, sizeof title, "Time added, by %s", axis);
  cct_arms_text(report, arms, sizeof arms);
  struct cct_figure *figure = cct_figures_add(figures, name, "", cct_asset_sweep_gp);
  snprintf(figure->heading, sizeof figure->heading, "How does the cost change with %s?", axis);
  cct_figure_title(figure, title, arms, cct_interval_note(report), cct_report_label(report));
  put_series_names(figure, sweep, shown);
  cct_figure_next(figure);
  cct_figure_field(figure, axis, 40, "\n");
  put_series(figure, sweep, shown, 0);
  double low = fmin(0, cct_time_overhead_pct(lo)), high = fmax(0, cct_time_overhead_pct(hi));
  double margin = high - low > 1e-3 ? 0.06 * (high - low) : 1;
  double pad = is_log ? pow(x_hi / x_lo, 0.06) : 0.06 * (x_hi - x_lo);
  cct_text_add(&figure->numbers, "SERIES = %d; LOG = %d; X_LO = %.8g; X_HI = %.8g; LO = %.6g; HI = %.6g; TICKS = %d",
               shown, is_log, is_log ? x_lo / pad : x_lo - pad, is_log ? x_hi * pad : x_hi + pad,
               low < 0 ? low - margin : 0, high + margin, n_ticks);
  cct_figure_numbers(figure, "TICK", ticks, n_ticks);
  cct_text_add(&figure->caption, "Everything but %s is held within a line. ", axis);
  say_left_out(figure, sweep->n, shown);
  figure->width = 860;
  figure->height = 380 + 20 * shown;
  figure->narrow_width = 380;
  figure->narrow_height = 400 + 20 * shown;
}

enum cct_status cct_figure_sweeps(const struct cct_report *report, struct cct_figures *figures) {
  static const char *const parameters[] = {"batch",   "concurrency", "request_rate", "input_len",    "output_len",
                                           "seq_len", "micro_batch", "np",           "accumulation", "layers"};
  struct sweep *sweep = calloc(1, sizeof *sweep);
  enum cct_status status = sweep ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory: the sweeps");
  for (size_t i = 0, made = 0; !status && i < sizeof parameters / sizeof *parameters && made < MAX_SWEEPS; i++) {
    status = collect(report, parameters[i], 2, sweep);
    if (!status && sweep->n) {
      add_sweep(report, figures, sweep);
      made++;
    }
    sweep_free(sweep);
  }
  free(sweep);
  return status;
}
