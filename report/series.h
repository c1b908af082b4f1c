/* SPDX-License-Identifier: Apache-2.0
 * One arm of one cell: its blocks' samples folded into one number a block, and what is noteworthy in them. */
#ifndef CCT_REPORT_SERIES_H
#define CCT_REPORT_SERIES_H

#include "report/report.h"

struct cct_series_work { /* memory that every series shares; zero but for n_blocks */
  double *steps, *scratch;
  size_t capacity, n_blocks;
};

/* Adds one block's cell and metric: the `quantile` of its values (0.5: the median). Samples that cannot be used refuse
 * the series by name. With `is_run` values come in the course of a run that changes by itself, so that none is an
 * outlier and no trend a drift. */
enum cct_status cct_series_add(struct cct_series *series, const struct cct_block *block,
                               const struct cct_block_cell *cell, const struct cct_block_metric *metric,
                               double quantile, int is_run, int boot, int round,
                               struct cct_series_work *work) CCT_CHECKED;
/* After the last block: spread, drift, the A/A null. */
enum cct_status cct_series_finish(struct cct_series *series) CCT_CHECKED;
void cct_series_free(struct cct_series *series);
void cct_series_work_free(struct cct_series_work *work);

/* Metrics of serving: whether each value counts `n` times, and whether its tail is told beside its median. */
int cct_metric_is_counted(const struct cct_metric *metric);
int cct_metric_has_tail(const struct cct_metric *metric);
/* What of it changes: time or rate of work, which are each other's reciprocal; what somebody waits for, of which no
 * throughput follows; or what is no speed, of which there is more or fewer. */
enum cct_measure {
  CCT_MEASURE_WORK,
  CCT_MEASURE_WAIT,
  CCT_MEASURE_COUNT,
};
enum cct_measure cct_metric_measure(const struct cct_metric *metric); /* also of a tail's row, NAME_p99 */
int cct_metric_may_be_zero(const struct cct_metric *metric);          /* without its clock being too coarse */
size_t cct_metric_values(const struct cct_block_metric *metric);      /* room for cct_reduce_samples */

/* The steps of one metric in one block: per index the slowest rank (the highest value where lower is better, the lowest
 * where higher is), in the order of their indices. `steps_out` has room for cct_metric_values; returns their number, or
 * 0 with a reason why the samples cannot be used: zero, negative, NaN, a clock that went back. */
int cct_reduce_samples(const struct cct_block_metric *metric, double *steps_out, char *refusal, size_t refusal_size);

#endif
