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
#include "report/verdict.h"

/* ---- shares ---- */

static const struct cct_result *first_result(const struct cct_report *report, int cell) {
  for (int r = 0; r < report->n_results; r++)
    if (report->results[r].cell == cell && report->results[r].attribution.is_known)
      return &report->results[r];
  return NULL;
}

static const char *const part_names[] = {"channel", "copies", "NVLink", "capability", "CPU", "interaction", "seen"};

struct span { /* of a figure's axis, and its longest label */
  double lo, hi;
  int labels;
};

/* The stacked segments of one bar: what adds goes right of 0, what takes away goes left. */
static void put_bar(struct cct_figure *figure, int row, const struct cct_attribution *a, double *lo, double *hi) {
  double right = 0, left = 0;
  for (int k = 0; k <= CCT_BOUNDARY_COUNT; k++) {
    double part = k < CCT_BOUNDARY_COUNT ? a->share[k] : a->interaction;
    double *end = part >= 0 ? &right : &left;
    cct_text_add(&figure->data, "%d\t%d\t%.6g\t%.6g\n", row, k + 1, *end, *end + part);
    *end += part;
  }
  *lo = fmin(*lo, left);
  *hi = fmax(*hi, right);
}

/* The bars' ends, what was seen and the residual: dataset 3. */
static void put_seen(const struct cct_report *report, struct cct_figure *figure, const struct cct_ranked *rows,
                     int shown, struct span *span) {
  char text[40];
  cct_figure_next(figure);
  cct_text_add(&figure->data, "# row\tseen_pct\tcell\tend_of_bar_pct\tresidual\n");
  for (int i = 0; i < shown; i++) {
    const struct cct_result *result = first_result(report, rows[i].cell);
    const struct cct_attribution *a = &result->attribution;
    const char *title = report->cells[result->cell].title;
    double seen = cct_time_overhead_pct(result->comparison.effect), end = fmax(a->interaction, 0);
    int largest = 0;
    for (int k = 0; k < CCT_BOUNDARY_COUNT; k++) {
      end += fmax(a->share[k], 0);
      largest = a->share[k] > a->share[largest] ? k : largest;
    }
    end = fmax(fmax(end, seen), 0);
    span->hi = fmax(span->hi, end);
    span->lo = fmin(span->lo, seen);
    span->labels = cct_text_width(title, 46) > span->labels ? cct_text_width(title, 46) : span->labels;
    snprintf(text, sizeof text, "%+.1f, residual %+.1f", seen + 0.0, fabs(a->residual) < 0.05 ? 0.0 : a->residual);
    cct_text_add(&figure->data, "%d\t%.6g\t", i, seen);
    cct_figure_field(figure, title, 46, "\t");
    cct_text_add(&figure->data, "%.6g\t%s\n", end, text);
    if (i < 5)
      cct_text_add(&figure->alt, "%s: %+.1f %%, most from %s (%+.1f), residual %+.1f. ", title, seen,
                   part_names[largest], a->share[largest], a->residual);
  }
}

static void add_shares(const struct cct_report *report, struct cct_figures *figures, const struct cct_ranked *rows,
                       int n, const char *workload, int number) {
  struct span span = {0};
  char arms[256], name[48];
  int shown = n < CCT_FIGURE_ROWS ? n : CCT_FIGURE_ROWS;
  cct_arms_text(report, arms, sizeof arms);
  snprintf(name, sizeof name, "shares_%d", number);
  struct cct_figure *figure = cct_figures_add(figures, name, "", cct_asset_shares_gp);
  snprintf(figure->heading, sizeof figure->heading, "Where does the cost of %.40s come from?", workload);
  cct_figure_title(figure, "Share of each boundary", arms, "each switched on alone in sim", cct_report_label(report));
  cct_figure_next(figure);
  for (int k = 0; k < 7; k++)
    cct_text_add(&figure->data, "%d\t%s\n", k + 1, part_names[k]);
  cct_figure_next(figure);
  cct_text_add(&figure->data, "# row\tpart\tfrom_pct\tto_pct\n");
  for (int i = 0; i < shown; i++)
    put_bar(figure, i, &first_result(report, rows[i].cell)->attribution, &span.lo, &span.hi);
  cct_text_add(&figure->alt, "Stacked bars of the time added by boundary. ");
  put_seen(report, figure, rows, shown, &span);
  double range = span.hi - span.lo > 1e-3 ? span.hi - span.lo : 1;
  cct_text_add(&figure->numbers, "ROWS = %d; LABELS = %d; LO = %.6g; HI = %.6g", shown, span.labels,
               span.lo < 0 ? span.lo - 0.04 * range : 0, span.hi + 0.34 * range);
  cct_text_add(&figure->caption,
               "What lies right of 0 less what lies left is what sim says with all boundaries on; the diamond is "
               "what was seen; the residual is their difference. Interaction is what boundaries cost only "
               "together (right of 0), or hide from each other (left of 0). ");
  if (shown < n)
    cct_text_add(&figure->caption, "%d further cells are in report.csv. ", n - shown);
  figure->width = 860;
  figure->height = 108 + 60 + shown * 28;
  figure->narrow_width = 380;
  figure->narrow_height = 170 + 60 + shown * 48;
}

/* One figure a workload: beside a prefill of several times 100 per cent, a decode step's few would not show. */
enum cct_status cct_figure_shares(const struct cct_report *report, struct cct_figures *figures) {
  enum {
    MOST = 4
  };
  struct cct_ranked *rows, *some = NULL;
  const char *done[MOST];
  int n = cct_rank_cells(report, &rows), n_done = 0;
  if (rows)
    some = calloc((size_t)n + 1, sizeof *some);
  for (int i = 0; some && i < n && n_done < MOST; i++) {
    const char *workload = report->cells[rows[i].cell].workload;
    int k = 0, count = 0;
    while (workload && k < n_done && strcmp(done[k], workload))
      k++;
    if (!workload || k < n_done || !first_result(report, rows[i].cell))
      continue;
    for (int j = i; j < n; j++) {
      const char *other = report->cells[rows[j].cell].workload;
      if (other && !strcmp(other, workload) && first_result(report, rows[j].cell))
        some[count++] = rows[j];
    }
    done[n_done++] = workload;
    add_shares(report, figures, some, count, workload, n_done);
  }
  int is_failed = !rows || !some;
  free(rows);
  free(some);
  return is_failed ? cct_fail(CCT_NOMEM, "out of memory: the shares' figure") : CCT_OK;
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

/* A cell's title without its layout: cells of one group are the same work spread in different ways. */
static void group_name(const struct cct_report_cell *cell, char *out, size_t size) {
  const char *at = cell->layout ? strstr(cell->title, cell->layout) : NULL;
  size_t before = at ? (size_t)(at - cell->title) : strlen(cell->title);
  snprintf(out, size, "%.*s%s", (int)before, cell->title, at ? at + strlen(cell->layout) : "");
  for (char *p; (p = strstr(out, ", ,"));)
    memmove(p, p + 2, strlen(p + 2) + 1);
  size_t n = strlen(out);
  while (n && (out[n - 1] == ' ' || out[n - 1] == ','))
    out[--n] = '\0';
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
    group_name(cell, row->group, sizeof row->group);
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
    labels = cct_text_width(cell->title, 46) > labels ? cct_text_width(cell->title, 46) : labels;
    hi = fmax(hi, fmax(rows[i].confidential, rows[i].clear));
    snprintf(text, sizeof text, "%.3g (%+.1f %%)", rows[i].confidential,
             100 * (rows[i].confidential / rows[i].clear - 1));
    cct_text_add(&figure->data, "%.6g\t0\t%.6g\t%.6g\t", y, rows[i].clear, rows[i].confidential);
    cct_figure_field(figure, cell->title, 46, "\t");
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
