/* SPDX-License-Identifier: Apache-2.0
 * Going on with an interrupted block writes a fresh file and puts the finished cells into it: whatever the interruption
 * left half-written in the old one's structure stays behind. */
#include <stdint.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/text.h"
#include "record/record_write.h"

static enum cct_status copy_finished(struct cct_record *record, const struct cct_block *block) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < block->n_cells; i++) {
    const struct cct_block_cell *cell = &block->cells[i];
    if (cell->state == CCT_CELL_OPEN)
      continue;
    for (int m = 0; !status && m < cell->n_metrics; m++)
      status = cct_record_append(record, i, m, cell->metrics[m].samples, cell->metrics[m].n_samples);
    cct_record_set_counts(record, i, &cell->program, &cell->performed);
    if (!status)
      status = cct_record_set_state(record, i, cell->state, cell->reason);
  }
  return status;
}

static void free_cells(struct cct_record_cell *cells, int n) {
  for (int i = 0; cells && i < n; i++)
    free((void *)(uintptr_t)cells[i].metrics);
  free(cells);
}

static enum cct_status describe_cells(const struct cct_block *block, struct cct_record_cell **cells_out) {
  struct cct_record_cell *cells = calloc((size_t)block->n_cells + 1, sizeof *cells);
  enum cct_status status = cells ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; !status && i < block->n_cells; i++) {
    const struct cct_block_cell *cell = &block->cells[i];
    struct cct_metric *metrics = calloc((size_t)cell->n_metrics + 1, sizeof *metrics);
    for (int m = 0; metrics && m < cell->n_metrics; m++)
      metrics[m] = cell->metrics[m].metric;
    cells[i] = (struct cct_record_cell){cell->key, cell->label, metrics, cell->n_metrics};
    if (!metrics)
      status = cct_fail(CCT_NOMEM, "out of memory");
  }
  if (status)
    free_cells(cells, block->n_cells);
  else
    *cells_out = cells;
  return status;
}

static enum cct_status rewrite(const char *path, const char *partial, const struct cct_block *block,
                               struct cct_record **record_out) {
  struct cct_record_cell *cells = NULL;
  struct cct_record *record = NULL;
  enum cct_status status = describe_cells(block, &cells);
  if (!status)
    status = cct_record_create_as(path, ".partial.partial", &block->head, block->facts, block->n_facts, block->program,
                                  cells, block->n_cells, &record);
  if (!status)
    status = copy_finished(record, block);
  if (!status)
    status = cct_record_rename(record, partial);
  if (status)
    cct_record_discard(record);
  else
    *record_out = record;
  free_cells(cells, block->n_cells);
  return status;
}

enum cct_status cct_record_reopen(const char *path, struct cct_record **record_out) {
  struct cct_text partial = {0};
  struct cct_block *block = NULL;
  cct_text_add(&partial, "%s.partial", path);
  enum cct_status status = partial.s ? cct_block_read(partial.s, 1, &block) : CCT_NOMEM;
  if (!status)
    status = rewrite(path, partial.s, block, record_out);
  cct_block_free(block);
  cct_text_free(&partial);
  return status;
}
