/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

static void *need(void *memory) {
  if (!memory)
    abort();
  return memory;
}

struct cct_block *fixture_block(const char *arm, int boot, int round) {
  struct cct_block *block = need(calloc(1, sizeof *block));
  char path[160];
  snprintf(path, sizeof path, "RUN/%s-boot%d-round%d.h5", arm, boot, round);
  block->path = need(strdup(path));
  block->program = need(strdup("{}"));
  block->head = (struct cct_record_head){.tool = "0.1.0", .run = "r", .block = round, .round = round, .boot = boot};
  snprintf(block->head.factor, sizeof block->head.factor, "condition");
  snprintf(block->head.arm, sizeof block->head.arm, "%s", arm);
  snprintf(block->head.boot_id, sizeof block->head.boot_id, "boot-%d", boot);
  fixture_fact(block, "gpu_uuid", CCT_FACT_IDENTITY, "GPU-1");
  fixture_fact(block, "gpu_driver", CCT_FACT_IDENTITY, "595.71.05");
  fixture_fact(block, "NCCL_ALGO", CCT_FACT_CONDITION, "");
  fixture_fact(block, "temperature", CCT_FACT_DRIFT, "41");
  return block;
}

void fixture_fact(struct cct_block *block, const char *name, enum cct_fact_class fact_class, const char *value) {
  block->facts = need(realloc(block->facts, (size_t)(block->n_facts + 1) * sizeof *block->facts));
  struct cct_record_fact *fact = &block->facts[block->n_facts++];
  memset(fact, 0, sizeof *fact);
  snprintf(fact->name, sizeof fact->name, "%s", name);
  snprintf(fact->value, sizeof fact->value, "%s", value);
  fact->fact_class = fact_class;
}

struct cct_block_metric *fixture_cell(struct cct_block *block, const char *key, const char *label, const double *values,
                                      int n, int ranks) {
  block->cells = need(realloc(block->cells, (size_t)(block->n_cells + 1) * sizeof *block->cells));
  struct cct_block_cell *cell = &block->cells[block->n_cells++];
  *cell = (struct cct_block_cell){.key = need(strdup(key)),
                                  .label = need(strdup(label)),
                                  .state = CCT_CELL_DONE,
                                  .metrics = need(calloc(1, sizeof *cell->metrics)),
                                  .n_metrics = 1};
  struct cct_block_metric *metric = cell->metrics;
  metric->metric = (struct cct_metric){"step", "us", "lower"};
  metric->n_samples = n * ranks;
  metric->samples = need(calloc((size_t)(n * ranks) + 1, sizeof *metric->samples));
  for (int r = 0; r < ranks; r++)
    for (int i = 0; i < n; i++)
      metric->samples[r * n + i] = (struct cct_sample){r, i, 1, 1000000ll * i, values[i] * (r ? 0.9 : 1)};
  return metric;
}

void fixture_steps(struct cct_block *block, const char *key, const char *label, double median, double spread, int n,
                   uint64_t seed) {
  double *values = need(malloc((size_t)n * sizeof *values));
  for (int i = 0; i < n; i++)
    values[i] = median * (1 + spread / 100 * cct_random_normal(seed, (uint64_t)i));
  fixture_cell(block, key, label, values, n, 2);
  free(values);
}

void fixture_metric(struct cct_block *block, struct cct_metric metric, const double *values, int n) {
  struct cct_block_cell *cell = &block->cells[block->n_cells - 1];
  cell->metrics = need(realloc(cell->metrics, (size_t)(cell->n_metrics + 1) * sizeof *cell->metrics));
  struct cct_block_metric *fresh = &cell->metrics[cell->n_metrics++];
  *fresh = (struct cct_block_metric){
      .metric = metric, .n_samples = n, .samples = need(calloc((size_t)n + 1, sizeof *fresh->samples))};
  for (int i = 0; i < n; i++)
    fresh->samples[i] = (struct cct_sample){0, i, 1, 1000000ll * i, values[i]};
}

void fixture_serving(struct cct_block *block, const char *key, const char *label, double ttft_ms, double tpot_ms,
                     double most, double output_tok_s, double goodput) {
  static const char *const times[] = {"ttft", "tpot", "e2e"};
  const double medians[] = {ttft_ms, tpot_ms, ttft_ms + 100 * tpot_ms};
  double values[21];
  fixture_cell(block, key, label, &output_tok_s, 1, 1)->metric = (struct cct_metric){"output_tok_s", "tok/s", "higher"};
  for (int m = 0; m < 3; m++) {
    struct cct_metric metric = {.unit = "ms", .better = "lower"};
    snprintf(metric.name, sizeof metric.name, "%s", times[m]);
    for (int i = 0; i < 21; i++)
      values[i] = medians[m] * (i <= 10 ? 0.9 + 0.01 * i : 1 + (most - 1) * (i - 10) / 10);
    fixture_metric(block, metric, values, 21);
  }
  fixture_metric(block, (struct cct_metric){"goodput", "req/s", "higher"}, &goodput, 1);
}

void fixture_write(const struct cct_block *block, const char *directory, int number) {
  struct cct_record_cell *cells = need(calloc((size_t)block->n_cells, sizeof *cells));
  struct cct_record *record = NULL;
  char path[4096];
  for (int c = 0; c < block->n_cells; c++) {
    struct cct_block_cell *cell = &block->cells[c];
    struct cct_metric *metrics = need(calloc((size_t)cell->n_metrics, sizeof *metrics));
    for (int m = 0; m < cell->n_metrics; m++)
      metrics[m] = cell->metrics[m].metric;
    cells[c] = (struct cct_record_cell){cell->key, cell->label, metrics, cell->n_metrics};
  }
  snprintf(path, sizeof path, "%s/block-%04d.h5", directory, number);
  enum cct_status status = cct_record_create(path, &block->head, block->facts, block->n_facts, block->program, cells,
                                             block->n_cells, &record);
  for (int c = 0; !status && c < block->n_cells; c++) {
    const struct cct_block_metric *metrics = block->cells[c].metrics;
    for (int m = 0; !status && m < cells[c].n_metrics; m++)
      status = cct_record_append(record, c, m, metrics[m].samples, metrics[m].n_samples);
    if (!status)
      status = cct_record_set_state(record, c, block->cells[c].state, block->cells[c].reason);
  }
  if (!status)
    status = cct_record_finish(record);
  if (status)
    abort();
  for (int c = 0; c < block->n_cells; c++)
    free((void *)(uintptr_t)cells[c].metrics);
  free(cells);
}
