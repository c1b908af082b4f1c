/* SPDX-License-Identifier: Apache-2.0
 * Which figures a report has, and what is in each. A figure without data is left out. */
#ifndef CCT_REPORT_FIGURES_H
#define CCT_REPORT_FIGURES_H

#include "report/figure.h"
#include "report/report.h"

#define CCT_MAX_FIGURES 16
#define CCT_FIGURE_ROWS                                                                                                \
  40 /* rows that a reader takes in at once; further ones are in the tables and files, and it is said */

struct cct_figures {
  struct cct_figure items[CCT_MAX_FIGURES];
  int n;
};

enum cct_status cct_figures_make(const struct cct_report *report, struct cct_figures *figures_out) CCT_CHECKED;
void cct_figures_free(struct cct_figures *figures);
const struct cct_figure *cct_figures_find(const struct cct_figures *figures, const char *name); /* NULL: left out */

/* How the values of a figure were got, in one line. */
const char *cct_interval_note(const struct cct_report *report);
/* The label that holds for every result, "mixed labels" where they differ. */
const char *cct_report_label(const struct cct_report *report);

#endif
