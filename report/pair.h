/* SPDX-License-Identifier: Apache-2.0
 * From blocks to series: which blocks are which arm, which cells of theirs are the same cell, and one number a block.
 */
#ifndef CCT_REPORT_PAIR_H
#define CCT_REPORT_PAIR_H

#include "report/report.h"

/* Fills factor, arms, is_null, cells with their series and titles. Two arms of one condition (one arm name in several
 * runs, twice in a round, or alone) become an A/A report, whose arms are told apart by run or by turn. */
enum cct_status cct_pair_cells(const struct cct_runs *runs, struct cct_report *report) CCT_CHECKED;
void cct_pair_free(struct cct_report *report);

/* The steps of one metric in one block: per index the slowest rank (the highest value where lower is better, the lowest
 * where higher is), in the order of their indices. `steps_out` has room for n_samples; returns their number, or 0 with
 * a reason why the samples cannot be used: zero, negative, NaN, a clock that went back. */
int cct_reduce_samples(const struct cct_block_metric *metric, double *steps_out, char *refusal, size_t refusal_size);

#endif
