/* SPDX-License-Identifier: Apache-2.0
 * Blocks made in memory for the report's tests: what a machine would have recorded, chosen by the test. */
#ifndef CCT_REPORT_REPORT_FIXTURE_H
#define CCT_REPORT_REPORT_FIXTURE_H

#include "report/runs.h"

/* A block of `arm` with the facts that every test block has; cells are added to it. */
struct cct_block *fixture_block(const char *arm, int boot, int round);
void fixture_fact(struct cct_block *block, const char *name, enum cct_fact_class fact_class, const char *value);
/* A finished cell with one metric, `n` steps of `ranks` ranks each: rank 0 takes values[i], the others less. */
struct cct_block_metric *fixture_cell(struct cct_block *block, const char *key, const char *label, const double *values,
                                      int n, int ranks);
/* The same with steps around `median`, `spread` per cent apart, drawn from `seed`. */
void fixture_steps(struct cct_block *block, const char *key, const char *label, double median, double spread, int n,
                   uint64_t seed);
/* A further metric of the cell added last, of one rank. */
void fixture_metric(struct cct_block *block, struct cct_metric metric, const double *values, int n);
/* A finished cell of 21 requests with the metrics of the serving driver: ttft and tpot spread over `most` times
 * their median; goodput 0: no request was good, and the metric has no sample. */
void fixture_serving(struct cct_block *block, const char *key, const char *label, double ttft_ms, double tpot_ms,
                     double most, double output_tok_s, double goodput);
/* Writes a block by the record room; the directory exists. */
void fixture_write(const struct cct_block *block, const char *directory, int number);

#endif
