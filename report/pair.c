/* SPDX-License-Identifier: Apache-2.0 */
#include "report/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/arms.h"
#include "report/overlap.h"
#include "report/series.h"
#include "workloads/backends/exposure.h"

/* The CELL as canonical text without the member `factor`, in which arms are allowed to differ. */
static enum cct_status strip_key(const char *key, const char *factor, const char *path, struct cct_text *text) {
  char quoted[40];
  snprintf(quoted, sizeof quoted, "\"%s\":", factor);
  text->length = 0;
  if (!strstr(key, quoted)) {
    cct_text_append(text, key, strlen(key));
    return text->is_failed ? CCT_NOMEM : CCT_OK;
  }
  struct cct_json *document = NULL, *kept = cct_json_new_object();
  enum cct_status status = cct_json_parse(key, strlen(key), path, &document);
  void *iterator = NULL;
  const char *name;
  const struct cct_json *value;
  while (!status && cct_json_next(document, &iterator, &name, &value))
    if (strcmp(name, factor))
      cct_json_set(kept, name, cct_json_copy(value));
  if (!status)
    status = cct_json_canonical(kept, text);
  cct_json_free(document);
  cct_json_free(kept);
  return status;
}

static const char *member_text(const struct cct_json *object, const char *key) {
  const struct cct_json *value = cct_json_member(object, key);
  return value ? cct_json_string(value) : NULL;
}

static enum cct_status new_cell(struct cct_report *report, const struct cct_block *block, const char *key,
                                const struct cct_metric *metric, int is_first) {
  struct cct_report_cell cell = {.metric = *metric, .is_first = is_first};
  size_t capacity = (size_t)report->n_cells;
  if ((capacity & (capacity - 1)) == 0) { /* a power of two is a full table */
    void *grown = realloc(report->cells, (capacity ? capacity * 2 : 1) * sizeof *report->cells);
    if (!grown)
      return cct_fail(CCT_NOMEM, "out of memory: %d cells", report->n_cells);
    report->cells = grown;
  }
  cell.key = strdup(key);
  cell.arms = calloc((size_t)report->n_arms, sizeof *cell.arms);
  enum cct_status status = cell.key && cell.arms ? cct_json_parse(key, strlen(key), block->path, &cell.parameters)
                                                 : cct_fail(CCT_NOMEM, "out of memory: %d cells", report->n_cells);
  if (status) {
    free(cell.key);
    free(cell.arms);
    return status;
  }
  cell.workload = member_text(cell.parameters, "workload");
  cell.model = member_text(cell.parameters, "model");
  cell.layout = member_text(cell.parameters, "layout");
  const char *kind = cell.workload ? member_text(cell.parameters, cell.workload) : "program",
             *arrivals = member_text(cell.parameters, "arrivals");
  cell.is_primary = is_first && cct_metric_measure(metric) != CCT_MEASURE_COUNT;
  cell.is_open = cell.workload && !strcmp(cell.workload, "serve") && arrivals && !strcmp(arrivals, "seconds");
  cell.kind = cell.is_open ? "serve at a rate" : kind ? kind : cell.workload;
  report->cells[report->n_cells++] = cell;
  return CCT_OK;
}

/* Index of the cell, made where it is new. `hint`: where it is if this block lists its cells as the one before did. */
static enum cct_status find_cell(struct cct_report *report, const struct cct_block *block, const char *key,
                                 const struct cct_block_metric *metric, int is_first, int hint, int *index_out) {
  for (int k = 0; k < report->n_cells; k++) {
    int i = (hint + k) % report->n_cells;
    if (!strcmp(report->cells[i].metric.name, metric->metric.name) && !strcmp(report->cells[i].key, key)) {
      *index_out = i;
      return CCT_OK;
    }
  }
  *index_out = report->n_cells;
  return new_cell(report, block, key, &metric->metric, is_first);
}

/* One row of the report: a metric of a cell by its median, or by its tail under a name of its own. */
static enum cct_status add_metric(struct cct_report *report, const struct cct_runs *runs, int b,
                                  const struct cct_place *place, const char *key, const struct cct_block_cell *cell,
                                  int m, int is_tail, struct cct_series_work *work, int *at) {
  const struct cct_block *block = runs->blocks[b];
  struct cct_block_metric metric = cell->metrics[m];
  if (is_tail)
    snprintf(metric.metric.name, sizeof metric.metric.name, "%.18s_p99", cell->metrics[m].metric.name);
  enum cct_status status = find_cell(report, block, key, &metric, m == 0, *at, at);
  if (status)
    return status;
  const char *workload = report->cells[*at].workload;
  int is_run = workload && !strcmp(workload, "serve");
  status = cct_series_add(&report->cells[*at].arms[place->arm], block, cell, &cell->metrics[m], is_tail ? 0.99 : 0.5,
                          is_run, runs->boot_of[b], place->round, work);
  ++*at;
  return status;
}

static enum cct_status add_cells(struct cct_report *report, const struct cct_runs *runs, int b,
                                 const struct cct_place *place, struct cct_text *key, struct cct_series_work *work) {
  const struct cct_block *block = runs->blocks[b];
  enum cct_status status = CCT_OK;
  int at = 0, step = 0;
  for (int c = 0; !status && c < block->n_cells; c++) {
    const struct cct_block_cell *cell = &block->cells[c];
    if (cell->state == CCT_CELL_OPEN)
      continue; /* the deadline came first: this block says nothing about this cell */
    status = strip_key(cell->key, report->factor, block->path, key);
    for (int m = 0; !status && m < cell->n_metrics; m++) {
      const struct cct_metric *metric = &cell->metrics[m].metric;
      if (!strcmp(metric->better, "neither"))
        continue; /* a record of what happened, not a figure to compare */
      if (m && cell->state == CCT_CELL_DONE && !cell->metrics[m].n_samples)
        continue; /* nothing of the kind happened: no request kept the limits, or had a second token */
      if (cct_exposure_is_metric(metric->name)) {
        if (cell->state == CCT_CELL_DONE)
          status = cct_overlap_add(report, step, place->arm, &cell->metrics[m], runs->boot_of[b], b);
        continue;
      }
      int tails = cct_metric_has_tail(metric) && cell->metrics[m].n_samples > 0;
      for (int is_tail = 0; !status && is_tail <= tails; is_tail++)
        status = add_metric(report, runs, b, place, key->s, cell, m, is_tail, work, &at);
      step = m ? step : at - 1;
    }
  }
  return status;
}

/* Where a clock decides when requests come, throughput is the rate at which they do, as long as they are kept up with:
 * what a platform costs is told by the time of a request. */
static void prefer_times(struct cct_report *report) {
  for (int c = 0; c < report->n_cells; c++) {
    struct cct_report_cell *cell = &report->cells[c];
    if (!cell->is_primary || !cell->is_open)
      continue;
    for (int k = 0; k < report->n_cells; k++)
      if (!strcmp(report->cells[k].metric.name, "e2e") && !strcmp(report->cells[k].key, cell->key)) {
        cell->is_primary = 0;
        report->cells[k].is_primary = 1;
        break;
      }
  }
}

enum cct_status cct_pair_cells(const struct cct_runs *runs, struct cct_report *report) {
  struct cct_text key = {0};
  struct cct_series_work work = {.n_blocks = (size_t)runs->n_blocks};
  struct cct_place *places = calloc((size_t)runs->n_blocks, sizeof *places);
  report->arm_of = calloc((size_t)runs->n_blocks, sizeof *report->arm_of);
  if (!places || !report->arm_of) {
    free(places);
    return cct_fail(CCT_NOMEM, "out of memory: %d blocks", runs->n_blocks);
  }
  enum cct_status status = cct_arms_find(runs, report, places);
  for (int b = 0; b < runs->n_blocks; b++)
    report->arm_of[b] = places[b].arm;
  for (int b = 0; !status && b < runs->n_blocks; b++)
    status = add_cells(report, runs, b, &places[b], &key, &work);
  prefer_times(report);
  for (int c = 0; !status && c < report->n_cells; c++)
    for (int a = 0; !status && a < report->n_arms; a++)
      status = cct_series_finish(&report->cells[c].arms[a]);
  cct_text_free(&key);
  cct_series_work_free(&work);
  free(places);
  return status;
}

void cct_pair_free(struct cct_report *report) {
  for (int c = 0; c < report->n_cells; c++) {
    struct cct_report_cell *cell = &report->cells[c];
    for (int a = 0; cell->arms && a < report->n_arms; a++)
      cct_series_free(&cell->arms[a]);
    free(cell->arms);
    free(cell->key);
    cct_json_free(cell->parameters);
  }
  free(report->cells);
  free(report->arm_of);
}
