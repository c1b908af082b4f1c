/* SPDX-License-Identifier: Apache-2.0 */
#include "report/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/assets.h"
#include "report/figure_parts.h"
#include "report/verdict.h"

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

/* ---- overhead by cell ---- */

static int by_largest(const void *left, const void *right) {
  const struct cct_ranked *a = left, *b = right;
  return a->largest < b->largest ? 1 : a->largest > b->largest ? -1 : a->cell - b->cell;
}

int cct_rank_cells(const struct cct_report *report, struct cct_ranked **rows_out) {
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
      rows[n++] = (struct cct_ranked){result->cell, result->comparison.effect};
  }
  if (rows)
    qsort(rows, (size_t)n, sizeof *rows, by_largest);
  *rows_out = rows;
  return n;
}

static enum cct_status overhead(const struct cct_report *report, struct cct_figures *figures) {
  struct cct_ranked *rows;
  int n = cct_rank_cells(report, &rows), shown = n < CCT_FIGURE_ROWS ? n : CCT_FIGURE_ROWS, labels = 0;
  if (!rows)
    return cct_fail(CCT_NOMEM, "out of memory: %d cells", report->n_cells);
  if (!n) {
    free(rows);
    return CCT_OK;
  }
  char arms[256], effect[96];
  double lo = 0, hi = 0;
  cct_arms_text(report, arms, sizeof arms);
  struct cct_figure *figure = cct_figures_add(figures, "overhead", "What does each cell lose?", cct_asset_overhead_gp);
  cct_figure_title(figure, shown < n ? "Time added, the costliest cells" : "Time added, by cell", arms,
                   cct_interval_note(report), cct_report_label(report));
  cct_figure_arms(report, figure);
  cct_figure_next(figure);
  cct_text_add(&figure->data, "# row\tarm\ttime_pct\tlo_pct\thi_pct\tcell\ttext\n");
  cct_text_add(&figure->alt, "Dot plot of the time added, with 95 %% intervals, %s. ", arms);
  for (int i = 0, named = -1; i < shown; i++)
    for (int r = 0; r < report->n_results; r++) {
      const struct cct_result *result = &report->results[r];
      if (result->cell != rows[i].cell || result->verdict == CCT_VERDICT_REFUSED)
        continue;
      const struct cct_comparison *c = &result->comparison;
      double pct = cct_time_overhead_pct(c->effect);
      double low = c->df > 0 ? cct_time_overhead_pct(c->lo) : pct,
             high = c->df > 0 ? cct_time_overhead_pct(c->hi) : pct;
      const char *title = report->cells[result->cell].title;
      char text[32];
      lo = fmin(lo, low);
      hi = fmax(hi, high);
      labels = cct_text_width(title, 46) > labels ? cct_text_width(title, 46) : labels;
      cct_text_add(&figure->data, "%d\t%d\t%.6g\t%.6g\t%.6g\t", i, result->arm, pct, low, high);
      cct_figure_field(figure, named < i ? title : "", 46, "\t"); /* once a row; its points' values only where one is */
      cct_figure_field(figure, report->n_arms == 2 ? cct_percent_text(pct, (high - low) / 2, text) : "", 20, "\n");
      named = i;
      if (i < 5)
        cct_text_add(&figure->alt, "%s: %s. ", title, cct_effect_text(c, effect));
    }
  cct_text_add(&figure->caption, "The costliest first. ");
  if (has_interval(report))
    cct_text_add(&figure->caption, "A line is the 95 %% interval; where it crosses 0 the arms are not told apart. ");
  if (shown < n)
    cct_text_add(&figure->caption, "%d further cells are in the table and in report.csv. ", n - shown);
  double range = hi - lo > 1e-3 ? hi - lo : 1;
  cct_text_add(&figure->numbers, "ROWS = %d; LABELS = %d; ARMS = %d; LO = %.6g; HI = %.6g", shown, labels,
               report->n_arms - 1, lo < 0 ? lo - 0.06 * range : 0, hi + (report->n_arms == 2 ? 0.16 : 0.06) * range);
  figure->width = 860;
  figure->height = 64 + 66 + shown * 26;
  figure->narrow_width = 380;
  figure->narrow_height = 100 + 66 + shown * 44;
  free(rows);
  return CCT_OK;
}

enum cct_status cct_figures_make(const struct cct_report *report, struct cct_figures *figures_out) {
  static enum cct_status (*const makers[])(const struct cct_report *, struct cct_figures *) = {
      overhead,           cct_figure_size,      cct_figure_shares, cct_figure_sweeps,
      cct_figure_layouts, cct_figure_published, cct_figure_noise,
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
