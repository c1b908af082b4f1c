/* SPDX-License-Identifier: Apache-2.0
 * How far the effects of one arm differ from cell to cell: what a verdict may say in one number, and what not. */
#ifndef CCT_REPORT_SPREAD_H
#define CCT_REPORT_SPREAD_H

#include "report/report.h"

struct cct_spread {
  int n;                                 /* cells that could be compared */
  const struct cct_result *least, *most; /* borrowed; NULL where n is 0 */
  double median;                         /* log ratio of times */
};

/* Of the primary cells of one kind; kind -1: of all that the geometric mean is over. CCT_NOMEM only. */
enum cct_status cct_spread_of(const struct cct_report *report, int arm, int kind,
                              struct cct_spread *spread_out) CCT_CHECKED;
/* 1 where the costliest cell pays more than three times what the cheapest pays, and 5 points more: no mean then says
 * what any cell pays. */
int cct_spread_is_wide(const struct cct_spread *spread);

#endif
