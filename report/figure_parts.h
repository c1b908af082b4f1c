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

struct cct_ranked {
  int cell;
  double largest; /* effect over its arms */
};
/* Primary cells with a comparison, the costliest first; their number. The caller frees `rows_out`; NULL: out of memory.
 */
int cct_rank_cells(const struct cct_report *report, struct cct_ranked **rows_out);

/* Each adds its figure, or nothing where the report has no data for it. */
enum cct_status cct_figure_size(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_sweeps(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_shares(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_layouts(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_published(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;
enum cct_status cct_figure_noise(const struct cct_report *report, struct cct_figures *figures) CCT_CHECKED;

#endif
