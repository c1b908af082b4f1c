/* SPDX-License-Identifier: Apache-2.0 */
#include "report/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/assets.h"
#include "report/figure_parts.h"
#include "report/numbers.h"

static int has_interval(const struct cct_report *report) {
  for (int r = 0; r < report->n_results; r++)
    if (report->results[r].comparison.se > 1e-12)
      return 1;
  return 0;
}

const char *cct_interval_note(const struct cct_report *report) {
  return has_interval(report) ? "ratio of medians, 95 % interval" : "ratio of medians, no noise and no interval";
}

const char *cct_report_label(const struct cct_report *report) {
  for (int r = 1; r < report->n_results; r++)
    if (strcmp(report->results[r].label, report->results[0].label))
      return "mixed labels";
  return report->n_results ? report->results[0].label : "";
}

void cct_figures_free(struct cct_figures *figures) {
  for (int i = 0; i < figures->n; i++)
    cct_figure_free(&figures->items[i]);
  memset(figures, 0, sizeof *figures);
}

const struct cct_figure *cct_figures_find(const struct cct_figures *figures, const char *name) {
  for (int i = 0; i < figures->n; i++)
    if (!strcmp(figures->items[i].name, name))
      return &figures->items[i];
  return NULL;
}

struct cct_figure *cct_figures_add(struct cct_figures *figures, const char *name, const char *heading,
                                   const char *body) {
  struct cct_figure *figure = &figures->items[figures->n++];
  snprintf(figure->name, sizeof figure->name, "%s", name);
  snprintf(figure->heading, sizeof figure->heading, "%s", heading);
  figure->body = body;
  return figure;
}

/* "A against B", or the baseline alone where there are several arms. */
void cct_arms_text(const struct cct_report *report, char *out, size_t size) {
  if (report->n_arms == 2)
    snprintf(out, size, "%s against %s", report->arms[1], report->arms[0]);
  else
    snprintf(out, size, "%d arms against %s", report->n_arms - 1, report->arms[0]);
}

void cct_figure_arms(const struct cct_report *report, struct cct_figure *figure) {
  cct_figure_next(figure);
  for (int arm = 1; arm < report->n_arms; arm++) {
    cct_text_add(&figure->data, "%d\t", arm);
    cct_figure_field(figure, report->arms[arm], 40, "\n");
  }
}

/* ---- axis ---- */

static const double linear_pct = 2; /* as style.gp has it */

struct cct_axis cct_axis_of(double lo, double hi, int is_wide, double beyond) {
  double from = is_wide ? asinh(lo / linear_pct) : lo, to = is_wide ? asinh(hi / linear_pct) : hi;
  double range = to - from > 1e-3 ? to - from : 1;
  from -= lo < 0 ? 0.06 * range : 0;
  to += beyond * range;
  return (struct cct_axis){is_wide ? linear_pct * sinh(from) : from, is_wide ? linear_pct * sinh(to) : to, is_wide};
}

/* ---- overhead by cell ---- */

static int by_largest(const void *left, const void *right) {
  const struct cct_ranked *a = left, *b = right;
  return a->largest < b->largest ? 1 : a->largest > b->largest ? -1 : a->cell - b->cell;
}

static int by_kind(const void *left, const void *right) {
  const struct cct_ranked *a = left, *b = right;
  return a->kind != b->kind ? a->kind - b->kind : by_largest(left, right);
}

/* From kinds in any order to kinds in the order of their costliest cells. */
static void order_kinds(struct cct_ranked *rows, int n) {
  for (int i = 0; i < n; i++)
    rows[i].kind = -1 - rows[i].kind; /* not yet placed */
  for (int i = 0, placed = 0; i < n; i++) {
    int kind = rows[i].kind;
    if (kind >= 0)
      continue;
    for (int j = i; j < n; j++)
      if (rows[j].kind == kind)
        rows[j].kind = placed;
    placed++;
  }
}

int cct_rank_cells(const struct cct_report *report, int most, struct cct_ranked **rows_out, int *n_out) {
  struct cct_ranked *rows = calloc((size_t)report->n_cells, sizeof *rows);
  int n = 0;
  for (int r = 0; rows && r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    const struct cct_report_cell *cell = &report->cells[result->cell];
    /* Collectives and probes have the figure by size; beside steps they would rule the scale. */
    if (result->verdict == CCT_VERDICT_REFUSED || !cell->is_primary || (report->has_steps && !cell->model))
      continue;
    if (n && rows[n - 1].cell == result->cell)
      rows[n - 1].largest = fmax(rows[n - 1].largest, result->comparison.effect);
    else
      rows[n++] = (struct cct_ranked){result->cell, cell->kind_index, result->comparison.effect};
  }
  int shown = n < most ? n : most;
  if (rows) {
    qsort(rows, (size_t)n, sizeof *rows, by_largest);
    order_kinds(rows, shown);
    qsort(rows, (size_t)shown, sizeof *rows, by_kind);
  }
  *rows_out = rows;
  *n_out = n;
  return shown;
}

struct extent { /* of what an axis has to show */
  double lo, hi, smallest;
  int labels;
};

static void put_point(const struct cct_report *report, const struct cct_result *result, double y, int is_named,
                      struct cct_figure *figure, struct extent *extent) {
  const struct cct_comparison *c = &result->comparison;
  const char *title = report->cells[result->cell].title;
  double pct = cct_time_overhead_pct(c->effect), low = c->df > 0 ? cct_time_overhead_pct(c->lo) : pct,
         high = c->df > 0 ? cct_time_overhead_pct(c->hi) : pct;
  char text[32];
  extent->lo = fmin(extent->lo, low);
  extent->hi = fmax(extent->hi, high);
  extent->smallest = fmin(extent->smallest, fabs(pct));
  extent->labels = (int)fmax(extent->labels, cct_text_width(title, CCT_FIGURE_NAME));
  cct_text_add(&figure->data, "%.6g\t%d\t%.6g\t%.6g\t%.6g\t", y, result->arm, pct, low, high);
  /* The name once a row; its points' values only where one is. */
  cct_figure_field(figure, is_named ? title : "", CCT_FIGURE_NAME, "\t");
  cct_figure_field(figure, report->n_arms == 2 ? cct_percent_text(pct, (high - low) / 2, text) : "", 20, "\n");
}

static enum cct_status overhead(const struct cct_report *report, struct cct_figures *figures) {
  struct cct_ranked *rows;
  int n, shown = cct_rank_cells(report, CCT_FIGURE_ROWS, &rows, &n);
  if (!rows)
    return cct_fail(CCT_NOMEM, "out of memory: %d cells", report->n_cells);
  if (!n) {
    free(rows);
    return CCT_OK;
  }
  char arms[256], effect[96];
  struct extent extent = {.smallest = INFINITY};
  double y = 0;
  cct_arms_text(report, arms, sizeof arms);
  struct cct_figure *figure = cct_figures_add(figures, "overhead", "What does each cell lose?", cct_asset_overhead_gp);
  cct_figure_title(figure, shown < n ? "Time added, the costliest cells" : "Time added, by cell", arms,
                   cct_interval_note(report), cct_report_label(report));
  cct_figure_arms(report, figure);
  cct_figure_next(figure);
  cct_text_add(&figure->data, "# row\tarm\ttime_pct\tlo_pct\thi_pct\tcell\ttext\n");
  cct_text_add(&figure->alt, "Dot plot of the time added, %s. ", arms);
  for (int i = 0, named = -1; i < shown; i++) {
    y += i == 0 ? 0 : rows[i].kind != rows[i - 1].kind ? 1.6 : 1;
    for (int r = 0; r < report->n_results; r++) {
      const struct cct_result *result = &report->results[r];
      if (result->cell != rows[i].cell || result->verdict == CCT_VERDICT_REFUSED)
        continue;
      put_point(report, result, y, named < i, figure, &extent);
      if (named < i && (i == 0 || rows[i].kind != rows[i - 1].kind))
        cct_text_add(&figure->alt, "%s: %s. ", report->cells[result->cell].title,
                     cct_effect_text(&result->comparison, effect));
      named = i;
    }
  }
  double most = fmax(extent.hi, -extent.lo);
  struct cct_axis axis =
      cct_axis_of(extent.lo, extent.hi, most > 20 && extent.smallest < most / 20, report->n_arms == 2 ? 0.16 : 0.06);
  if (axis.is_wide)
    cct_text_add(&figure->caption,
                 "The axis is linear below about 2 %% and logarithmic beyond, so that small costs can "
                 "be read beside large ones. ");
  if (has_interval(report))
    cct_text_add(&figure->caption, "A line is the 95 %% interval; where it crosses 0 the arms are not told apart. ");
  if (shown < n)
    cct_text_add(&figure->caption, "%d further cells are in the table and in report.csv. ", n - shown);
  cct_text_add(&figure->numbers, "ROWS = %.6g; LABELS = %d; ARMS = %d; WIDE = %d; LO = %.6g; HI = %.6g", y + 1,
               extent.labels, report->n_arms - 1, axis.is_wide, axis.lo, axis.hi);
  figure->width = 860;
  figure->height = 64 + 66 + (int)((y + 1) * 26);
  figure->narrow_width = 380;
  figure->narrow_height = 100 + 66 + (int)((y + 1) * 44);
  free(rows);
  return CCT_OK;
}

enum cct_status cct_figures_make(const struct cct_report *report, struct cct_figures *figures_out) {
  static enum cct_status (*const makers[])(const struct cct_report *, struct cct_figures *) = {
      cct_figure_load,   overhead,           cct_figure_size,      cct_figure_shares,
      cct_figure_sweeps, cct_figure_layouts, cct_figure_published, cct_figure_noise,
  };
  struct cct_figures figures = {0};
  enum cct_status status = CCT_OK;
  for (size_t i = 0; !status && i < sizeof makers / sizeof *makers; i++)
    status = makers[i](report, &figures);
  if (status)
    cct_figures_free(&figures);
  else
    *figures_out = figures;
  return status;
}
