/* SPDX-License-Identifier: Apache-2.0
 * Figures that put a report in its context: what others published, and how steady the machine was. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/assets.h"
#include "report/figure_parts.h"
#include "report/published.h"

/* ---- published ---- */

static const double published_most = 75; /* per cent that the axis shows; what lies beyond is named in words */

static int by_middle(const void *left, const void *right) {
  const struct cct_published_row *a = *(const struct cct_published_row *const *)left;
  const struct cct_published_row *b = *(const struct cct_published_row *const *)right;
  double x = a->lo + a->hi, y = b->lo + b->hi;
  return (x < y) - (x > y);
}

static void own_range(const struct cct_report *report, double *lo, double *hi) {
  *lo = INFINITY;
  *hi = -INFINITY;
  for (int r = 0; r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    const struct cct_report_cell *cell = &report->cells[result->cell];
    if (result->verdict == CCT_VERDICT_REFUSED || !cell->is_primary || (report->has_steps && !cell->model))
      continue;
    *lo = fmin(*lo, cct_time_overhead_pct(result->comparison.effect));
    *hi = fmax(*hi, cct_time_overhead_pct(result->comparison.effect));
  }
}

static void put_published(struct cct_figure *figure, const struct cct_published_row *const *rows, int n, int *labels) {
  cct_figure_next(figure);
  cct_text_add(&figure->data, "# row\tlo_pct\thi_pct\tid\tis_contradicted\tbeyond\n");
  for (int i = 0; i < n; i++) {
    const char *id = rows[i]->field[CCT_PUBLISHED_ID];
    int is_beyond = rows[i]->lo > published_most;
    *labels = cct_text_width(id, 40) > *labels ? cct_text_width(id, 40) : *labels;
    cct_text_add(&figure->data, "%d\t%.6g\t%.6g\t", i, is_beyond ? NAN : rows[i]->lo, is_beyond ? NAN : rows[i]->hi);
    cct_figure_field(figure, id, 40, "\t");
    if (is_beyond)
      cct_text_add(&figure->data, "%d\t%+.0f %% \u2192\n", cct_published_is_contradicted(id), rows[i]->lo);
    else
      cct_text_add(&figure->data, "%d\t \n", cct_published_is_contradicted(id));
  }
}

enum cct_status cct_figure_published(const struct cct_report *report, struct cct_figures *figures) {
  struct cct_published published;
  const struct cct_published_row *rows[128];
  int n = 0, labels = 0;
  if (report->is_null || strcmp(report->factor, "condition"))
    return CCT_OK;
  enum cct_status status = cct_published_read(&published);
  if (status)
    return status;
  for (int i = 0; i < published.n; i++)
    if (isfinite(published.rows[i].lo) && !strcmp(published.rows[i].field[CCT_PUBLISHED_PREDICT], "yes"))
      rows[n++] = &published.rows[i];
  qsort(rows, (size_t)n, sizeof *rows, by_middle);
  double lo, hi;
  own_range(report, &lo, &hi);
  struct cct_figure *figure =
      cct_figures_add(figures, "published", "How does it compare with what others published?", cct_asset_published_gp);
  cct_figure_title(figure, "Published overheads, and the span of these cells", "each as time added",
                   "ranges as published", cct_report_label(report));
  cct_figure_next(figure);
  cct_text_add(&figure->data, "1\tpublished\n2\tcontradicted\n3\tthese cells\n");
  put_published(figure, rows, n, &labels);
  int has_own = lo <= hi;
  cct_text_add(&figure->numbers, "ROWS = %d; LABELS = %d; LO = %.6g; HI = %.6g; OWN_LO = %.6g; OWN_HI = %.6g", n,
               labels, fmin(-6, has_own && lo > -40 ? lo - 2 : -6), published_most,
               has_own ? fmin(lo, published_most) : 1, has_own ? fmin(hi, published_most) : 0);
  cct_text_add(&figure->alt, "Ranges of %d published overheads as time added, most between 0 and 20 %%", n);
  cct_text_add(&figure->alt, has_own ? "; these cells span %+.1f to %+.1f %%. " : ". ", lo, hi);
  cct_text_add(&figure->caption, "Other machines, models and software: a frame, not a check. ");
  figure->width = 860;
  figure->height = 88 + 60 + n * 17;
  figure->narrow_width = 380;
  figure->narrow_height = 136 + 60 + n * 34;
  cct_published_free(&published);
  return CCT_OK;
}

/* ---- noise ---- */

enum {
  MAX_NOISE_CELLS = 60
};

struct moment {
  int boot, round;
};

static int by_moment(const void *left, const void *right) {
  const struct moment *a = left, *b = right;
  return a->boot != b->boot ? (a->boot > b->boot) - (a->boot < b->boot) : (a->round > b->round) - (a->round < b->round);
}

/* The distinct (boot, round) of all series, in order; the caller frees. */
static int list_moments(const struct cct_report *report, struct moment **moments_out) {
  size_t total = 1;
  int n = 0, distinct = 0;
  for (int c = 0; c < report->n_cells; c++)
    for (int a = 0; a < report->n_arms; a++)
      total += (size_t)report->cells[c].arms[a].n_units;
  struct moment *moments = malloc(total * sizeof *moments);
  for (int c = 0; moments && c < report->n_cells; c++)
    for (int a = 0; a < report->n_arms; a++)
      for (int i = 0; i < report->cells[c].arms[a].n_units; i++)
        moments[n++] = (struct moment){report->cells[c].arms[a].units[i].boot, report->cells[c].arms[a].units[i].round};
  if (moments)
    qsort(moments, (size_t)n, sizeof *moments, by_moment);
  for (int i = 0; i < n; i++)
    if (!distinct || by_moment(&moments[i], &moments[distinct - 1]))
      moments[distinct++] = moments[i];
  *moments_out = moments;
  return distinct;
}

static double mean_value(const struct cct_series *series) {
  double sum = 0;
  for (int i = 0; i < series->n_units; i++)
    sum += series->units[i].value;
  return sum / series->n_units;
}

static void put_noise(const struct cct_report *report, struct cct_figure *figure, const struct moment *moments, int n,
                      double *lo, double *hi) {
  int cells = 0;
  for (int c = 0; c < report->n_cells && cells < MAX_NOISE_CELLS; c++) {
    const struct cct_report_cell *cell = &report->cells[c];
    if (!cell->is_primary)
      continue;
    cells++;
    for (int a = 0; a < report->n_arms; a++)
      for (int i = 0; i < cell->arms[a].n_units; i++) {
        const struct cct_unit *unit = &cell->arms[a].units[i];
        struct moment key = {unit->boot, unit->round};
        const struct moment *found = bsearch(&key, moments, (size_t)n, sizeof *moments, by_moment);
        double away = cct_time_overhead_pct(unit->value - mean_value(&cell->arms[a]));
        *lo = fmin(*lo, away);
        *hi = fmax(*hi, away);
        cct_text_add(&figure->data, "%d\t%d\t%.5g\n", (int)(found - moments), a, away);
      }
  }
}

enum cct_status cct_figure_noise(const struct cct_report *report, struct cct_figures *figures) {
  struct moment *moments;
  int n = list_moments(report, &moments), boots = 0;
  double lo = 0, hi = 0;
  char arms[256];
  if (!moments)
    return cct_fail(CCT_NOMEM, "out of memory: the noise figure");
  struct cct_figure *figure = cct_figures_add(figures, "noise", "How steady was the machine?", cct_asset_noise_gp);
  cct_arms_text(report, arms, sizeof arms);
  cct_figure_title(figure, "Block medians around their arm's centre", arms, "one point a cell and block",
                   cct_report_label(report));
  cct_figure_next(figure);
  for (int a = 0; a < report->n_arms; a++) {
    cct_text_add(&figure->data, "%d\t", a + 1);
    cct_figure_field(figure, report->arms[a], 30, "\n");
  }
  cct_figure_next(figure);
  cct_text_add(&figure->data, "# block\tarm\tfrom_centre_pct\n");
  put_noise(report, figure, moments, n, &lo, &hi);
  if (hi - lo < 1e-6 || n < 2) { /* predicted: nothing to see */
    cct_figure_free(figure);
    figures->n--;
    free(moments);
    return CCT_OK;
  }
  double margin = 0.1 * (hi - lo);
  for (int i = 1; i < n; i++)
    boots += moments[i].boot != moments[i - 1].boot;
  boots = boots < 64 ? boots : 64;
  cct_text_add(&figure->numbers, "ARMS = %d; BLOCKS = %d; LO = %.6g; HI = %.6g; BOOTS = %d\narray BOOT[%d] = [",
               report->n_arms, n, lo - margin, hi + margin, boots, boots ? boots : 1);
  for (int i = 1, k = 0; i < n && k < boots; i++)
    if (moments[i].boot != moments[i - 1].boot)
      cct_text_add(&figure->numbers, "%s%d", k++ ? ", " : "", i);
  cct_text_add(&figure->numbers, boots ? "]" : "0]");
  cct_text_add(&figure->alt, "Scatter of block medians around their centre, %+.2f to %+.2f %%, over %d blocks. ", lo,
               hi, n);
  cct_text_add(&figure->caption,
               "A slope is drift, a step at a dotted line is what a boot changes, a lone point is an outlier. "
               "None was dropped. ");
  figure->width = 860;
  figure->height = 360;
  figure->narrow_width = 380;
  figure->narrow_height = 380;
  free(moments);
  return CCT_OK;
}
