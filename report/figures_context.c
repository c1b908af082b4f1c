/* SPDX-License-Identifier: Apache-2.0
 * Figures that put a report in its context: what others published, and how steady the machine was. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/assets.h"
#include "report/figure_parts.h"
#include "report/names.h"
#include "report/published.h"
#include "report/spread.h"

/* ---- published ---- */

static int by_middle(const void *left, const void *right) {
  const struct cct_published_row *a = *(const struct cct_published_row *const *)left;
  const struct cct_published_row *b = *(const struct cct_published_row *const *)right;
  double x = a->lo + a->hi, y = b->lo + b->hi;
  return (x < y) - (x > y);
}

enum origin { /* the series of the figure, in the order of its key */
  PUBLISHED,
  CONTRADICTED,
  OWN
};

struct drawn {
  int n, labels;
  double lo, hi;
};

static void put_range(struct cct_figure *figure, double lo, double middle, double hi, const char *name,
                      enum origin origin, struct drawn *drawn) {
  cct_text_add(&figure->data, "%d\t%.6g\t%.6g\t%.6g\t%d\t", drawn->n++, middle, lo, hi, origin);
  cct_figure_field(figure, name, CCT_FIGURE_NAME, "\n");
  drawn->labels = (int)fmax(drawn->labels, cct_text_width(name, CCT_FIGURE_NAME));
  drawn->lo = fmin(drawn->lo, lo);
  drawn->hi = fmax(drawn->hi, hi);
}

/* One row a kind of this report's cells: from the least to the most, its median between. */
static enum cct_status put_own(const struct cct_report *report, struct cct_figure *figure, struct drawn *drawn) {
  enum cct_status status = CCT_OK;
  for (int arm = 1; arm < report->n_arms; arm++)
    for (int kind = 0; !status && kind < cct_names_kinds(report); kind++) {
      struct cct_spread spread;
      char name[160];
      status = cct_spread_of(report, arm, kind, &spread);
      if (status || !spread.n || (report->has_steps && !report->cells[spread.most->cell].model))
        continue;
      snprintf(name, sizeof name, "here: %.60s%s%.60s", cct_kind_name(report, kind), report->n_arms > 2 ? ", " : "",
               report->n_arms > 2 ? report->arms[arm] : "");
      double lo = cct_time_overhead_pct(spread.least->comparison.effect),
             hi = cct_time_overhead_pct(spread.most->comparison.effect), middle = cct_time_overhead_pct(spread.median);
      put_range(figure, lo, middle, hi, name, OWN, drawn);
      cct_text_add(&figure->alt, "%s %+.1f to %+.1f %%. ", name, lo, hi);
    }
  return status;
}

enum cct_status cct_figure_published(const struct cct_report *report, struct cct_figures *figures) {
  struct cct_published published;
  const struct cct_published_row *rows[128];
  struct drawn drawn = {0};
  int n = 0;
  if (report->is_null || strcmp(report->factor, "condition"))
    return CCT_OK;
  enum cct_status status = cct_published_read(&published);
  if (status)
    return status;
  for (int i = 0; i < published.n; i++)
    if (isfinite(published.rows[i].lo) && !strcmp(published.rows[i].field[CCT_PUBLISHED_PREDICT], "yes"))
      rows[n++] = &published.rows[i];
  qsort(rows, (size_t)n, sizeof *rows, by_middle);
  struct cct_figure *figure =
      cct_figures_add(figures, "published", "How does it compare with what others published?", cct_asset_published_gp);
  cct_figure_title(figure, "Published overheads beside these", "each as time added", "ranges as published",
                   cct_report_label(report));
  cct_figure_next(figure);
  cct_text_add(&figure->data, "1\tpublished\n2\tcontradicted\n3\tthis report\n");
  cct_figure_next(figure);
  cct_text_add(&figure->data, "# row\tmiddle_pct\tlo_pct\thi_pct\torigin\tname\n");
  cct_text_add(&figure->alt, "Ranges of %d published overheads as time added. ", n);
  status = put_own(report, figure, &drawn);
  for (int i = 0; i < n; i++) {
    const char *id = rows[i]->field[CCT_PUBLISHED_ID];
    put_range(figure, rows[i]->lo, (rows[i]->lo + rows[i]->hi) / 2, rows[i]->hi, id,
              cct_published_is_contradicted(id) ? CONTRADICTED : PUBLISHED, &drawn);
  }
  struct cct_axis axis = cct_axis_of(drawn.lo, drawn.hi, 1, 0.04);
  cct_text_add(&figure->numbers, "ROWS = %d; LABELS = %d; WIDE = 1; LO = %.6g; HI = %.6g", drawn.n, drawn.labels,
               axis.lo, axis.hi);
  cct_text_add(
      &figure->caption,
      "Other machines, models and software: a frame, not a check. Of this report each row spans its cells, the "
      "point is their median. The axis is linear below about 2 %% and logarithmic beyond. ");
  figure->width = 860;
  figure->height = 88 + 60 + drawn.n * 17;
  figure->narrow_width = 380;
  figure->narrow_height = 136 + 60 + drawn.n * 34;
  cct_published_free(&published);
  return status;
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
