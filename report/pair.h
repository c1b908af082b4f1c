/* SPDX-License-Identifier: Apache-2.0
 * From blocks to cells: which cells of which blocks are the same cell, and the series of each arm. */
#ifndef CCT_REPORT_PAIR_H
#define CCT_REPORT_PAIR_H

#include "report/report.h"

/* Fills factor, arms, is_null and the cells with their series, not their titles. */
enum cct_status cct_pair_cells(const struct cct_runs *runs, struct cct_report *report) CCT_CHECKED;
void cct_pair_free(struct cct_report *report);

#endif
