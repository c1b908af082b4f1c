/* SPDX-License-Identifier: Apache-2.0
 * How a report calls its cells: by what tells each from the others, so that two cells never read the same. What all
 * share is said once: keys with one value, and the usual value of a key that few cells set otherwise. */
#ifndef CCT_REPORT_NAMES_H
#define CCT_REPORT_NAMES_H

#include "base/text.h"
#include "report/report.h"

/* Fills the report's names, its kinds (cells of one kind differ in parameters alone) and the cells' titles. */
enum cct_status cct_names_make(struct cct_report *report) CCT_CHECKED;
void cct_names_free(struct cct_names *names); /* NULL-safe */

int cct_names_kinds(const struct cct_report *report);
/* The first cell of a kind has its name. */
const char *cct_kind_name(const struct cct_report *report, int kind);
/* A cell's title without the word of one parameter ("workload": without that of its kind). */
void cct_cell_name(const struct cct_report *report, int cell, const char *without, char *out, size_t size);
/* "batch 8", of the leading keys the value alone ("qwen3-8b"); 0: the cell has no such key. */
int cct_cell_word(const struct cct_report_cell *cell, const char *key, char *out, size_t size);
/* 1: its metric is said beside its name; 0: it is the time of a step, or the one figure there is. */
int cct_cell_names_metric(const struct cct_report_cell *cell);
/* "all cells: np 8, graph none (train, prefill); unless named: batch 8 (decode)"; nothing where cells share nothing. */
void cct_names_shared(const struct cct_report *report, struct cct_text *text);

#endif
