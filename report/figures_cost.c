/* SPDX-License-Identifier: Apache-2.0
 * Figures of where the cost comes from and which layout pays least of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/assets.h"
#include "report/attribute.h"
#include "report/figure_parts.h"
#include "report/names.h"
#include "report/numbers.h"

/* ---- shares ---- */

static const struct cct_result *first_result(const struct cct_report *report, int cell) {
  for (int r = 0; r < report->n_results; r++)
    if (report->results[r].cell == cell && report->results[r].attribution.is_known)
      return &report->results[r];
  return NULL;
}

static const char *const part_names[] = {"channel", "copies", "NVLink", "capability", "CPU", "interaction", "seen"};

struct panel { /* rows of one kind that one scale shows */
  int first, n;
  double lo, hi;
};

enum {
  MOST_PANELS = 6
};

/* How far a row's bar, or what was seen, goes to the left and to the right. */
static void reach_of(const struct cct_result *result, double *lo, double *hi) {
  const struct cct_attribution *a = &result->attribution;
  double seen = cct_time_overhead_pct(result->comparison.effect);
  *lo = fmin(a->interaction, 0);
  *hi = fmax(a->interaction, 0);
  for (int k = 0; k < CCT_BOUNDARY_COUNT; k++) {
    *lo += fmin(a->share[k], 0);
    *hi += fmax(a->share[k], 0);
  }
  *lo = fmin(*lo, seen);
  *hi = fmax(*hi, seen);
}

/* A new panel where another kind begins, or where a bar would be shorter than a fifteenth of its panel. */
static int split_panels(const struct cct_report *report, const struct cct_ranked *rows, int n,
                        struct panel panels[MOST_PANELS]) {
  int count = 0;
  for (int i = 0; i < n; i++) {
    double lo, hi;
    reach_of(first_result(report, rows[i].cell), &lo, &hi);
    struct panel *panel = &panels[count - 1];
    if (!count ||
        (count < MOST_PANELS && (rows[i].kind != rows[i - 1].kind || hi - lo < (panel->hi - panel->lo) / 15))) {
      panel = &panels[count++];
      *panel = (struct panel){.first = i};
    }
    panel->n++;
    panel->lo = fmin(panel->lo, lo);
    panel->hi = fmax(panel->hi, hi);
  }
  return count;
}

/* The stacked segments of one bar: what adds goes right of 0, what takes away goes left. */
static void put_bar(struct cct_figure *figure, int row, const struct cct_attribution *a) {
  double right = 0, left = 0;
  for (int k = 0; k <= CCT_BOUNDARY_COUNT; k++) {
    double part = k < CCT_BOUNDARY_COUNT ? a->share[k] : a->interaction;
    double *end = part >= 0 ? &right : &left;
    cct_text_add(&figure->data, "%d\t%d\t%.6g\t%.6g\n", row, k + 1, *end, *end + part);
    *end += part;
  }
}

/* The bar's end, what was seen and the residual. */
static void put_seen(const struct cct_report *report, struct cct_figure *figure, int row, int cell) {
  const struct cct_result *result = first_result(report, cell);
  const struct cct_attribution *a = &result->attribution;
  const char *title = report->cells[cell].title;
  double seen = cct_time_overhead_pct(result->comparison.effect), lo, hi;
  int largest = 0;
  reach_of(result, &lo, &hi);
  for (int k = 1; k < CCT_BOUNDARY_COUNT; k++)
    largest = a->share[k] > a->share[largest] ? k : largest;
  cct_text_add(&figure->data, "%d\t%.6g\t", row, seen);
  cct_figure_field(figure, title, CCT_FIGURE_NAME, "\t");
  cct_text_add(&figure->data, "%.6g\t%+.1f, residual %+.1f\n", fmax(hi, 0), seen + 0.0,
               fabs(a->residual) < 0.05 ? 0.0 : a->residual);
  if (row == 0)
    cct_text_add(&figure->alt, "%s: %+.1f %%, most from %s (%+.1f), residual %+.1f. ", title, seen, part_names[largest],
                 a->share[largest], a->residual);
}

static void put_panels(const struct cct_report *report, const struct cct_ranked *rows, const struct panel *panels,
                       int n, struct cct_figure *figure) {
  int labels = 0, shown = panels[n - 1].first + panels[n - 1].n;
  for (int p = 0; p < n; p++) {
    cct_figure_next(figure);
    cct_text_add(&figure->data, "# row\tpart\tfrom_pct\tto_pct\n");
    for (int i = 0; i < panels[p].n; i++)
      put_bar(figure, i, &first_result(report, rows[panels[p].first + i].cell)->attribution);
    cct_figure_next(figure);
    cct_text_add(&figure->data, "# row\tseen_pct\tcell\tend_of_bar_pct\tresidual\n");
    for (int i = 0; i < panels[p].n; i++)
      put_seen(report, figure, i, rows[panels[p].first + i].cell);
  }
  for (int i = 0; i < shown; i++) {
    int width = cct_text_width(report->cells[rows[i].cell].title, CCT_FIGURE_NAME);
    labels = width > labels ? width : labels;
  }
  cct_text_add(&figure->numbers, "PANELS = %d; LABELS = %d\narray ROWS[%d]; array FROM[%d]; array TO[%d]\n", n, labels,
               n, n, n);
  for (int p = 0; p < n; p++) {
    double range = panels[p].hi - panels[p].lo > 1e-3 ? panels[p].hi - panels[p].lo : 1;
    cct_text_add(&figure->numbers, "ROWS[%d] = %d; FROM[%d] = %.6g; TO[%d] = %.6g\n", p + 1, panels[p].n, p + 1,
                 panels[p].lo < 0 ? panels[p].lo - 0.04 * range : 0, p + 1, panels[p].hi + 0.34 * range);
  }
  figure->width = 860;
  figure->height = 108 + 22 + 44 * n + (int)(28 * (shown + 0.3 * n));
  figure->narrow_width = 380;
  figure->narrow_height = 170 + 22 + 44 * n + (int)(48 * (shown + 0.3 * n));
}

/* Small bars beside one of several hundred per cent would not show, and a length on a bent axis would lie: so each
 * kind, and each order of size within it, has its panel. */
enum cct_status cct_figure_shares(const struct cct_report *report, struct cct_figures *figures) {
  struct cct_ranked *rows;
  struct panel panels[MOST_PANELS];
  char arms[256];
  int all, n = cct_rank_cells(report, CCT_FIGURE_ROWS, &rows, &all), known = 0;
  if (!rows)
    return cct_fail(CCT_NOMEM, "out of memory: the shares' figure");
  for (int i = 0; i < n; i++)
    if (first_result(report, rows[i].cell))
      rows[known++] = rows[i];
  if (known) {
    cct_arms_text(report, arms, sizeof arms);
    struct cct_figure *figure =
        cct_figures_add(figures, "shares", "Where does the cost come from?", cct_asset_shares_gp);
    cct_figure_title(figure, "Share of each boundary", arms, "each switched on alone in sim", cct_report_label(report));
    cct_figure_next(figure);
    for (int k = 0; k < 7; k++)
      cct_text_add(&figure->data, "%d\t%s\n", k + 1, part_names[k]);
    cct_text_add(&figure->alt, "Stacked bars of the time added by boundary. ");
    int n_panels = split_panels(report, rows, known, panels);
    put_panels(report, rows, panels, n_panels, figure);
    if (n_panels > 1)
      cct_text_add(&figure->caption, "Each panel has its own scale. ");
    cct_text_add(&figure->caption,
                 "Right of 0 less left of 0 is what sim says with all boundaries on; the diamond is what was seen, the "
                 "residual their difference. Interaction is what boundaries cost only together (right of 0), or hide "
                 "from each other (left of 0). ");
    if (n < all)
      cct_text_add(&figure->caption, "%d further cells are in report.csv. ", all - n);
  }
  free(rows);
  return CCT_OK;
}

/* ---- layouts ---- */

struct layout_row {
  int cell;
  char group[160];
  double clear, confidential; /* time a token */
};

static int by_group(const void *left, const void *right) {
  const struct layout_row *a = left, *b = right;
  int order = strcmp(a->group, b->group);
  return order ? order : (a->confidential > b->confidential) - (a->confidential < b->confidential);
}

static int collect_layouts(const struct cct_report *report, struct layout_row *rows) {
  int n = 0;
  for (int r = 0; r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    const struct cct_report_cell *cell = &report->cells[result->cell];
    if (result->arm != 1 || result->verdict == CCT_VERDICT_REFUSED || !cell->is_primary || !cell->layout)
      continue;
    struct layout_row *row = &rows[n++];
    double tokens = cell->tokens > 0 ? log((double)cell->tokens) : 0;
    row->cell = result->cell;
    cct_cell_name(report, result->cell, "layout", row->group, sizeof row->group);
    row->clear = exp(result->comparison.centre[0] - tokens);
    row->confidential = exp(result->comparison.centre[1] - tokens);
  }
  qsort(rows, (size_t)n, sizeof *rows, by_group);
  /* Groups of one layout have nothing to compare. */
  int kept = 0;
  for (int i = 0, j; i < n; i = j) {
    double best = INFINITY;
    for (j = i; j < n && !strcmp(rows[j].group, rows[i].group); j++)
      best = fmin(best, rows[j].clear);
    for (int k = i; k < j && j - i > 1; k++) {
      rows[kept] = rows[k];
      rows[kept].clear /= best;
      rows[kept++].confidential /= best;
    }
  }
  return kept;
}

enum cct_status cct_figure_layouts(const struct cct_report *report, struct cct_figures *figures) {
  struct layout_row *rows = calloc((size_t)report->n_cells, sizeof *rows);
  if (!rows)
    return cct_fail(CCT_NOMEM, "out of memory: the layouts' figure");
  int n = collect_layouts(report, rows), shown = n < CCT_FIGURE_ROWS ? n : CCT_FIGURE_ROWS, labels = 0;
  if (!n || report->is_null) {
    free(rows);
    return CCT_OK;
  }
  double hi = 1;
  char arms[256], text[40];
  snprintf(arms, sizeof arms, "%s against %s", report->arms[1], report->arms[0]);
  struct cct_figure *figure =
      cct_figures_add(figures, "layouts", "Tensor or expert parallel: which layout pays least?", cct_asset_layouts_gp);
  cct_figure_title(figure, "Layouts of the same work", arms, "best confidential layout first in each group",
                   cct_report_label(report));
  cct_figure_next(figure);
  cct_text_add(&figure->data, "1\t");
  cct_figure_field(figure, report->arms[0], 24, "\n");
  cct_text_add(&figure->data, "2\tadded by ");
  cct_figure_field(figure, report->arms[1], 30, "\n");
  cct_figure_next(figure);
  cct_text_add(&figure->data, "# row\tgroup\tclear\tconfidential\tcell\ttext\n");
  cct_text_add(&figure->alt,
               "Bars of the time a token for each layout, relative to the fastest clear layout of its group. ");
  double y = 0; /* rows of one group stand together */
  for (int i = 0; i < shown; i++) {
    const struct cct_report_cell *cell = &report->cells[rows[i].cell];
    y += i == 0 ? 0 : strcmp(rows[i].group, rows[i - 1].group) ? 1.6 : 1;
    labels =
        cct_text_width(cell->title, CCT_FIGURE_NAME) > labels ? cct_text_width(cell->title, CCT_FIGURE_NAME) : labels;
    hi = fmax(hi, fmax(rows[i].confidential, rows[i].clear));
    snprintf(text, sizeof text, "%.3g (%+.1f %%)", rows[i].confidential,
             100 * (rows[i].confidential / rows[i].clear - 1));
    cct_text_add(&figure->data, "%.6g\t0\t%.6g\t%.6g\t", y, rows[i].clear, rows[i].confidential);
    cct_figure_field(figure, cell->title, CCT_FIGURE_NAME, "\t");
    cct_text_add(&figure->data, "%s\n", text);
    if (i == 0 || strcmp(rows[i].group, rows[i - 1].group))
      cct_text_add(&figure->alt, "%s: least time under %s is %s. ", rows[i].group, report->arms[1], cell->layout);
  }
  cct_text_add(&figure->numbers, "ROWS = %.6g; LABELS = %d; HI = %.6g", y + 1, labels, hi * 1.24);
  cct_text_add(
      &figure->caption,
      "Within a group the bars compare what a token costs, so that layouts with more data-parallel "
      "ranks, which work on more tokens a step, are not charged for them; batch is that of a data-parallel rank. ");
  if (shown < n)
    cct_text_add(&figure->caption, "%d further rows are in report.csv. ", n - shown);
  figure->width = 860;
  figure->height = 108 + 60 + (int)(28 * (y + 1));
  figure->narrow_width = 380;
  figure->narrow_height = 148 + 60 + (int)(48 * (y + 1));
  free(rows);
  return CCT_OK;
}
