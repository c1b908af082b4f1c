/* SPDX-License-Identifier: Apache-2.0 */
#include "report/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/remarks.h"
#include "stats/stats.h"

static void refuse(struct cct_series *series, const struct cct_block *block, const char *why) {
  if (!*series->refusal)
    snprintf(series->refusal, sizeof series->refusal, "%.110s: %.80s", block->path, why);
}

/* A word that one block's label has holds for the whole series. */
static void add_label(struct cct_series *series, const char *label) {
  if (!strcmp(series->label, label))
    return;
  char copy[64], *rest = copy;
  snprintf(copy, sizeof copy, "%s", label);
  for (char *word; (word = strsep(&rest, ", "));) {
    size_t length = strlen(series->label);
    if (*word && !strstr(series->label, word))
      snprintf(series->label + length, sizeof series->label - length, "%s%s", length ? "," : "", word);
  }
}

static void remark(struct cct_series *series, const struct cct_block *block, const struct cct_block_cell *cell) {
  char mark[160];
  if (!series->performed.submissions) {
    series->program = cell->program;
    series->performed = cell->performed;
  }
  cct_block_mark(block, mark, sizeof mark);
  if (*mark && !*series->mark)
    snprintf(series->mark, sizeof series->mark, "%s (block %d)", mark, block->head.block);
}

enum cct_status cct_series_add(struct cct_series *series, const struct cct_block *block,
                               const struct cct_block_cell *cell, const struct cct_block_metric *metric,
                               double quantile, int is_run, int boot, int round, struct cct_series_work *work) {
  char why[160] = "";
  size_t need = cct_metric_values(metric) + 1, capacity = work->capacity;
  enum cct_status status = cct_grow((void **)&work->steps, &capacity, need, sizeof *work->steps);
  if (!status)
    status = cct_grow((void **)&work->scratch, &work->capacity, need, sizeof *work->scratch);
  if (status)
    return status;
  if (cell->state == CCT_CELL_FAILED || cell->state == CCT_CELL_REFUSED) {
    snprintf(why, sizeof why, "%s: %.120s", cell->state == CCT_CELL_FAILED ? "failed" : "refused", cell->reason);
    refuse(series, block, why);
    return CCT_OK;
  }
  int n = cct_reduce_samples(metric, work->steps, why, sizeof why);
  if (!n) {
    refuse(series, block, why);
    return CCT_OK;
  }
  if (!series->units) { /* at most one value a block */
    series->units = malloc(work->n_blocks * sizeof *series->units);
    series->drifts = malloc(work->n_blocks * sizeof *series->drifts);
    if (!series->units || !series->drifts)
      return cct_fail(CCT_NOMEM, "out of memory: %zu blocks", work->n_blocks);
  }
  size_t count = (size_t)n;
  if (!is_run)
    series->outliers += (int)cct_count_outliers(work->steps, count, work->scratch);
  memcpy(work->scratch, work->steps, count * sizeof *work->steps);
  cct_sort(work->scratch, count);
  double median = cct_quantile(work->scratch, count, 0.5), value = cct_quantile(work->scratch, count, quantile);
  if (value == 0) {
    series->n_zero++;
    series->n_samples += n;
    add_label(series, cell->label ? cell->label : "");
    return CCT_OK;
  }
  series->spread += (cct_quantile(work->scratch, count, 0.9) - cct_quantile(work->scratch, count, 0.1)) / median;
  series->drifts[series->n_units] = is_run ? NAN : cct_drift(work->steps, count, work->scratch);
  int sign = strcmp(metric->metric.better, "higher") ? 1 : -1;
  series->units[series->n_units++] = (struct cct_unit){boot, round, sign * log(value)};
  series->n_samples += n;
  if (!series->n_repetitions)
    series->n_repetitions = metric->samples[0].n > 0 && !is_run ? metric->samples[0].n : 1;
  add_label(series, cell->label ? cell->label : "");
  remark(series, block, cell);
  return CCT_OK;
}

enum cct_status cct_series_finish(struct cct_series *series) {
  if (!series->n_units)
    return CCT_OK;
  series->spread /= series->n_units;
  struct cct_interval drift = cct_interval_mean(series->drifts, (size_t)series->n_units);
  series->drift = drift.estimate;
  series->is_drifting = drift.df > 0 && fabs(drift.estimate) > 0.005 && (drift.lo > 0 || drift.hi < 0);
  if (*series->refusal || series->n_units < 2)
    return CCT_OK;
  enum cct_status status = cct_compare_halves(series->units, (size_t)series->n_units, &series->null);
  series->has_null = !status && series->null.df > 0 && series->null.se > 0;
  return status;
}

void cct_series_free(struct cct_series *series) {
  free(series->units);
  free(series->drifts);
}

void cct_series_work_free(struct cct_series_work *work) {
  free(work->steps);
  free(work->scratch);
}
