/* SPDX-License-Identifier: Apache-2.0
 * What the blocks of a run say of one cell under one arm. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/coll.h"
#include "cli/run_block.h"
#include "record/record.h"
#include "stats/stats.h"

void cct_coll_blocks_read(const struct cct_agenda *agenda, const char *folder, struct cct_coll_blocks *blocks) {
  int n = cct_agenda_blocks(agenda);
  blocks->at = calloc((size_t)n + 1, sizeof *blocks->at);
  blocks->n = blocks->at ? n : 0;
  cct_log_mute(1); /* `conclude` counts what is damaged, and says so */
  for (int b = 0; b < blocks->n; b++) {
    char path[4200], partial[4300];
    struct cct_block *block = NULL;
    cct_agenda_path(folder, b, path, sizeof path);
    snprintf(partial, sizeof partial, "%s.partial", path);
    int is_partial = access(path, F_OK) != 0;
    if (access(is_partial ? partial : path, F_OK) == 0 && !cct_run_block_read(agenda, folder, b, is_partial, &block))
      blocks->at[b] = block;
  }
  cct_log_mute(0);
}

void cct_coll_blocks_free(struct cct_coll_blocks *blocks) {
  for (int b = 0; b < blocks->n; b++)
    cct_block_free(blocks->at[b]);
  free(blocks->at);
}

struct bursts { /* of one cell under one arm */
  double *mean; /* of each burst, over ranks */
  double *block_median;
  double *by_rank; /* rank after rank, room for every burst of one */
  int *of_rank;    /* of those, how many there are */
  int n, n_blocks, ranks, room;
};

/* The samples that a cell left in block `b`; NULL: none. */
static const struct cct_block_metric *metric_of(const struct cct_coll_blocks *blocks, int b, int cell) {
  const struct cct_block *block = blocks->at[b];
  return block && cell < block->n_cells && block->cells[cell].n_metrics ? &block->cells[cell].metrics[0] : NULL;
}

static int make_bursts(struct bursts *bursts, const struct cct_coll_blocks *blocks, int cell, int ranks) {
  size_t n = 1;
  *bursts = (struct bursts){.ranks = ranks, .room = 1, .of_rank = calloc((size_t)ranks, sizeof(int))};
  for (int b = 0; bursts->of_rank && b < blocks->n; b++) {
    const struct cct_block_metric *metric = metric_of(blocks, b, cell);
    for (int i = 0; metric && i < metric->n_samples; i++) {
      int rank = metric->samples[i].rank;
      n++;
      if (rank >= 0 && rank < ranks && ++bursts->of_rank[rank] > bursts->room)
        bursts->room = bursts->of_rank[rank];
    }
  }
  if (bursts->of_rank)
    memset(bursts->of_rank, 0, (size_t)ranks * sizeof *bursts->of_rank);
  bursts->mean = calloc(n, sizeof(double));
  bursts->block_median = calloc((size_t)blocks->n + 1, sizeof(double));
  bursts->by_rank = calloc((size_t)ranks * (size_t)bursts->room, sizeof(double));
  return bursts->mean && bursts->block_median && bursts->by_rank && bursts->of_rank;
}

static void free_bursts(struct bursts *bursts) {
  free(bursts->mean);
  free(bursts->block_median);
  free(bursts->by_rank);
  free(bursts->of_rank);
}

/* Rows come rank by rank; those of one burst share their index. */
static void add_block(struct bursts *bursts, const struct cct_block_metric *metric) {
  int n = 0, *rows;
  double *sums, *copy;
  for (int i = 0; i < metric->n_samples; i++)
    n = metric->samples[i].index >= n ? metric->samples[i].index + 1 : n;
  if (!n || n > metric->n_samples)
    return;
  rows = calloc((size_t)n, sizeof *rows);
  sums = calloc((size_t)n, sizeof *sums);
  copy = calloc((size_t)n, sizeof *copy);
  for (int i = 0; rows && sums && copy && i < metric->n_samples; i++) {
    const struct cct_sample *s = &metric->samples[i];
    if (s->index < 0 || s->rank < 0 || s->rank >= bursts->ranks)
      continue;
    rows[s->index]++;
    sums[s->index] += s->value;
    bursts->by_rank[(size_t)s->rank * (size_t)bursts->room + (size_t)bursts->of_rank[s->rank]++] = s->value;
  }
  int kept = 0;
  for (int i = 0; rows && sums && copy && i < n; i++)
    if (rows[i])
      bursts->mean[bursts->n + kept++] = sums[i] / rows[i];
  if (kept) {
    memcpy(copy, bursts->mean + bursts->n, (size_t)kept * sizeof *copy);
    bursts->block_median[bursts->n_blocks++] = cct_median(copy, (size_t)kept);
    bursts->n += kept;
  }
  free(rows);
  free(sums);
  free(copy);
}

static void conclude(struct bursts *bursts, struct cct_coll_value *value) {
  value->n_samples = bursts->n;
  value->lo_us = value->hi_us = NAN;
  if (!bursts->n)
    return;
  value->is_of_blocks = bursts->n_blocks > 1;
  double *units = value->is_of_blocks ? bursts->block_median : bursts->mean;
  int n_units = value->is_of_blocks ? bursts->n_blocks : bursts->n;
  double *logs = calloc((size_t)n_units, sizeof *logs);
  int is_positive = logs != NULL;
  for (int i = 0; logs && i < n_units; i++) {
    is_positive &= units[i] > 0;
    logs[i] = log(units[i]);
  }
  if (is_positive) {
    struct cct_interval interval = cct_interval_mean(logs, (size_t)n_units);
    int is_spread = interval.df > 0 && interval.hi > interval.lo; /* sim repeats itself: that bounds nothing */
    value->lo_us = is_spread ? exp(interval.lo) : NAN;
    value->hi_us = is_spread ? exp(interval.hi) : NAN;
  }
  free(logs);
  value->time_us = cct_median(bursts->mean, (size_t)bursts->n);
  for (int r = 0; r < bursts->ranks; r++) {
    double *own = bursts->by_rank + (size_t)r * (size_t)bursts->room;
    double median = bursts->of_rank[r] ? cct_median(own, (size_t)bursts->of_rank[r]) : 0;
    if (median > value->slowest_us) {
      value->slowest_us = median;
      value->slowest_rank = r;
    }
  }
}

/* What a block says of it: why it is not done stays said, whatever the next block says. */
static void read_state(const struct cct_block_cell *cell, struct cct_coll_value *value) {
  long long wrong, of;
  snprintf(value->label, sizeof value->label, "%s", cell->label);
  if (cell->state == CCT_CELL_DONE)
    snprintf(value->ran, sizeof value->ran, "%s", cell->reason);
  else
    snprintf(value->reason, sizeof value->reason, "%s", cell->state == CCT_CELL_OPEN ? "not finished" : cell->reason);
  if (cell->state == CCT_CELL_FAILED && sscanf(cell->reason, "%lld of %lld elements are wrong", &wrong, &of) == 2)
    value->wrong = (value->wrong > 0 ? value->wrong : 0) + wrong;
}

enum cct_status cct_coll_samples_read(const struct cct_agenda *agenda, const struct cct_coll_blocks *blocks, int arm,
                                      int cell, struct cct_coll_value *value) {
  struct bursts bursts;
  snprintf(value->reason, sizeof value->reason, "not performed");
  if (!make_bursts(&bursts, blocks, cell, agenda->ranks[cell])) {
    free_bursts(&bursts);
    return cct_fail(CCT_NOMEM, "out of memory");
  }
  for (int b = 0, n_read = 0; b < blocks->n; b++) {
    const struct cct_block *block = blocks->at[b];
    if (!block || cct_agenda_block(agenda, b).arm != arm || cell >= block->n_cells)
      continue;
    const struct cct_block_cell *recorded = &block->cells[cell];
    if (!n_read++)
      value->reason[0] = '\0';
    read_state(recorded, value);
    if (recorded->n_metrics && recorded->state != CCT_CELL_OPEN)
      add_block(&bursts, &recorded->metrics[0]);
  }
  conclude(&bursts, value);
  free_bursts(&bursts);
  return CCT_OK;
}
