/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/probe_points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/run_block.h"
#include "mpi_runner/agenda.h"
#include "stats/stats.h"
#include "workloads/shape/cell.h"

enum cct_status cct_probe_set_add(struct cct_probe_set *set, const struct cct_options *cell, const char *metric,
                                  const char *unit, int block, double n, double value) {
  enum cct_status status = cct_grow((void **)&set->points, &set->capacity, set->n + 1, sizeof *set->points);
  struct cct_probe_point point = {.block = block, .n = n, .value = value};
  snprintf(point.metric, sizeof point.metric, "%s", metric);
  snprintf(point.unit, sizeof point.unit, "%s", unit);
  if (!status)
    status = cct_options_copy(cell, &point.cell);
  if (!status)
    set->points[set->n++] = point;
  return status;
}

const char *cct_probe_set_fact(const struct cct_probe_set *set, const char *name) {
  for (int i = 0; i < set->n_facts; i++)
    if (!strcmp(set->facts[i].name, name))
      return set->facts[i].value;
  return NULL;
}

int cct_probe_set_is_derived(const struct cct_probe_set *set) {
  return !strcmp(set->backend, "sim") || !strncmp(set->condition, "emulated:", 9);
}

void cct_probe_points_free(struct cct_probe_points *points) {
  for (int s = 0; s < CCT_PROBE_COLUMNS; s++) {
    struct cct_probe_set *set = &points->sets[s];
    for (size_t i = 0; i < set->n; i++)
      cct_options_free(&set->points[i].cell);
    free(set->points);
    free(set->facts);
  }
  memset(points, 0, sizeof *points);
}

/* The median over samples of the slowest rank's value of each. */
static enum cct_status median_of(const struct cct_block_metric *metric, double *median_out) {
  double *slowest = calloc((size_t)metric->n_samples + 1, sizeof *slowest);
  int n = 0;
  if (!slowest)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; i < metric->n_samples; i++) {
    const struct cct_sample *sample = &metric->samples[i];
    if (sample->index < 0 || sample->index >= metric->n_samples)
      continue;
    if (sample->index >= n)
      n = sample->index + 1;
    if (sample->value > slowest[sample->index])
      slowest[sample->index] = sample->value;
  }
  *median_out = n ? cct_median(slowest, (size_t)n) : 0;
  free(slowest);
  return CCT_OK;
}

static enum cct_status add_cell(struct cct_probe_set *set, const struct cct_block_cell *recorded, const char *source,
                                int block) {
  struct cct_json *document = NULL;
  struct cct_options cell = {0};
  enum cct_status status = cct_json_parse(recorded->key, strlen(recorded->key), source, &document);
  if (status)
    return status;
  struct cct_json_at at = cct_json_root(document, source);
  status = cct_cell_from_json(&at, &cell);
  for (int m = 0; !status && m < recorded->n_metrics; m++) {
    const struct cct_block_metric *metric = &recorded->metrics[m];
    double median = 0;
    if (!metric->n_samples)
      continue;
    status = median_of(metric, &median);
    if (!status)
      status =
          cct_probe_set_add(set, &cell, metric->metric.name, metric->metric.unit, block, metric->samples[0].n, median);
  }
  cct_options_free(&cell);
  cct_json_free(document);
  return status;
}

static enum cct_probe_column column_of(const char *condition, int is_registered) {
  if (!strcmp(condition, "stripped"))
    return CCT_PROBE_STRIPPED;
  if (!strcmp(condition, "on") || !strncmp(condition, "emulated:", 9))
    return is_registered ? CCT_PROBE_CONFIDENTIAL_REGISTERED : CCT_PROBE_CONFIDENTIAL;
  return is_registered ? CCT_PROBE_CLEAR_REGISTERED : CCT_PROBE_CLEAR;
}

static enum cct_status describe(struct cct_probe_set *set, const struct cct_agenda *agenda, const char *condition,
                                const struct cct_block *block) {
  const char *was = set->condition;
  if (*was && (strcmp(was, condition) || strcmp(set->backend, agenda->backend)))
    return cct_fail(CCT_USAGE, "%s: condition %s by backend %s cannot stand in one column with %s by %s", block->path,
                    condition, agenda->backend, was, set->backend);
  if (*was)
    return CCT_OK;
  snprintf(set->condition, sizeof set->condition, "%s", condition);
  snprintf(set->backend, sizeof set->backend, "%s", agenda->backend);
  snprintf(set->run, sizeof set->run, "%.12s", agenda->digest);
  snprintf(set->sim_machine, sizeof set->sim_machine, "%.63s", agenda->profile);
  set->facts = calloc((size_t)block->n_facts + 1, sizeof *set->facts);
  if (!set->facts)
    return cct_fail(CCT_NOMEM, "out of memory");
  memcpy(set->facts, block->facts, (size_t)block->n_facts * sizeof *set->facts);
  set->n_facts = block->n_facts;
  return CCT_OK;
}

enum cct_status cct_probe_points_add(struct cct_probe_points *points, const char *run) {
  struct cct_agenda *agenda;
  int n_read = 0;
  enum cct_status status = cct_agenda_load(run, &agenda);
  if (status)
    return status;
  for (int b = 0; !status && b < cct_agenda_blocks(agenda); b++) {
    struct cct_block *block;
    char path[4096];
    cct_agenda_path(run, b, path, sizeof path);
    if (access(path, F_OK) != 0)
      continue;
    status = cct_run_block_read(agenda, run, b, 0, &block);
    if (status)
      break;
    const char *condition = cct_agenda_condition(agenda, cct_agenda_block(agenda, b).arm);
    int is_registered =
        !strcmp(agenda->factor, "registration") && strcmp(agenda->arms[cct_agenda_block(agenda, b).arm], "off") != 0;
    struct cct_probe_set *set = &points->sets[column_of(condition, is_registered)];
    status = describe(set, agenda, condition, block);
    for (int c = 0; !status && c < block->n_cells; c++)
      if (block->cells[c].state == CCT_CELL_DONE)
        status = add_cell(set, &block->cells[c], path, set->n_blocks);
    set->n_blocks++;
    n_read++;
    cct_block_free(block);
  }
  cct_agenda_free(agenda);
  if (!status && !n_read)
    status = cct_fail(CCT_USAGE, "%s: no finished block; finish it with cctax probe -o %s --resume", run, run);
  return status;
}
