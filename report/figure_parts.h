/* SPDX-License-Identifier: Apache-2.0
 * What the makers of figures share. Private to report/. */
#ifndef CCT_REPORT_FIGURE_PARTS_H
#define CCT_REPORT_FIGURE_PARTS_H

#include "report/figures.h"

struct cct_figure *cct_figures_add(struct cct_figures *figures, const char *name, const char *heading,
                                   const char *body);
/* "A against B", or "3 arms against B". */
void cct_arms_text(const struct cct_report *report, char *out, size_t size);
void cct_figure_arms(const struct cct_report *report, struct cct_figure *figure); /* dataset 1: the arms */

#define CCT_FIGURE_NAME 48 /* characters of a cell's name in a figure */

struct cct_ranked {
  int cell, kind;
  double largest; /* effect over its arms */
};
/* Primary cells with a comparison, the costliest `most` of them: kinds stand together, the costliest first, and within
 * each the costliest cell first. Their number, `n_out` that of all. The caller frees `rows_out`; NULL: out of memory.
 */
int cct_rank_cells(const struct cct_report *report, int most, struct cct_ranked **rows_out, int *n_out);

/* An axis of per cents from `lo` to `hi` with room beyond, `beyond` of its length. `is_wide`: as asinh(x / 2), linear
 * near 0 and logarithmic from about 2 % on, where one linear scale would hide the small beside the large. */
struct cct_axis {
  double lo, hi;
  int is_wide;
};
struct cct_axis cct_axis_of(double lo, double hi, int is_wide, double beyond);

#define CCT_MOST_TICKS 10
/* The least, and those that stand at least `gap` of the axis from the last chosen. Sorts `values`. */
int cct_choose_ticks(double *values, int n, int is_log, double gap, double ticks[CCT_MOST_TICKS]);
void cct_figure_numbers(struct cct_figure *figure, const char *name, const double *values, int n); /* array NAME[n] */
/* The cell's parameters without one of them, as canonical text. */
enum cct_status cct_rest_of_key(const struct cct_report_cell *cell, const char *parameter,
                                struct cct_text *text) CCT_CHECKED;

/* Each adds its figure, or nothing where the report has no data for it. */
enum cct_status cct_figure_load(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_size(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_sweeps(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_shares(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_layouts(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_published(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_noise(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;

#endif
