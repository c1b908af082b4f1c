/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/show_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/run_block.h"
#include "report/remarks.h"
#include "report/series.h"
#include "stats/stats.h"

static enum cct_status read_blocks(struct cct_show *show) {
  show->n_blocks = cct_agenda_blocks(show->agenda);
  show->blocks = calloc((size_t)show->n_blocks + 1, sizeof *show->blocks);
  show->is_partial = calloc((size_t)show->n_blocks + 1, sizeof *show->is_partial);
  if (!show->blocks || !show->is_partial)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int b = 0; b < show->n_blocks; b++) {
    char path[4096], partial[4200];
    cct_agenda_path(show->run, b, path, sizeof path);
    snprintf(partial, sizeof partial, "%s.partial", path);
    show->is_partial[b] = access(path, F_OK) != 0;
    if (show->is_partial[b] && access(partial, F_OK) != 0)
      continue;
    enum cct_status status = cct_run_block_read(show->agenda, show->run, b, show->is_partial[b], &show->blocks[b]);
    if (status == CCT_NOMEM)
      return status;
    show->n_damaged += status != CCT_OK;
    show->n_finished += show->blocks[b] && !show->is_partial[b];
  }
  return CCT_OK;
}

enum cct_status cct_show_load(const char *run, struct cct_show *show_out) {
  struct cct_show show = {.run = run};
  enum cct_status status = cct_agenda_load(run, &show.agenda);
  if (!status)
    status = read_blocks(&show);
  if (status)
    cct_show_free(&show);
  else
    *show_out = show;
  return status;
}

void cct_show_free(struct cct_show *show) {
  for (int b = 0; show->blocks && b < show->n_blocks; b++)
    cct_block_free(show->blocks[b]);
  free(show->blocks);
  free(show->is_partial);
  cct_agenda_free(show->agenda);
}

int cct_show_is_place(const struct cct_record_fact *fact) {
  static const char *const places[] = {"boot", "boot_id", "round", "block", "start"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (!strcmp(fact->name, places[i]))
      return 1;
  return fact->fact_class == CCT_FACT_DRIFT;
}

static const struct cct_record_fact *find_fact(const struct cct_block *block, const char *name) {
  for (int i = 0; block && i < block->n_facts; i++)
    if (!strcmp(block->facts[i].name, name))
      return &block->facts[i];
  return NULL;
}

int cct_show_is_first(const struct cct_show *show, int block, const struct cct_record_fact *fact, int *n_other_out) {
  for (int b = 0; b < block; b++)
    if (find_fact(show->blocks[b], fact->name))
      return 0;
  *n_other_out = 0;
  for (int b = block + 1; b < show->n_blocks; b++) {
    const struct cct_record_fact *other = find_fact(show->blocks[b], fact->name);
    *n_other_out += other && strcmp(other->value, fact->value);
  }
  return 1;
}

static int is_of(const struct cct_show *show, int block, int cell, int arm) {
  return show->blocks[block] && cct_agenda_block(show->agenda, block).arm == arm && cell < show->blocks[block]->n_cells;
}

static int is_done(const struct cct_show *show, int block, int cell, int arm) {
  return is_of(show, block, cell, arm) && show->blocks[block]->cells[cell].state == CCT_CELL_DONE;
}

const struct cct_block_cell *cct_show_cell(const struct cct_show *show, int cell, int arm) {
  for (int b = 0; b < show->n_blocks; b++)
    if (is_of(show, b, cell, arm))
      return &show->blocks[b]->cells[cell];
  return NULL;
}

const char *cct_show_schedule(const struct cct_show *show, int cell, int arm, const char *last, int *block) {
  for (; *block < show->n_blocks; ++*block) {
    const char *said = is_done(show, *block, cell, arm) ? show->blocks[*block]->cells[cell].reason : "";
    if (!strncmp(said, "schedule ", 9) && strcmp(last, said))
      return said;
  }
  return NULL;
}

void cct_show_counts(const struct cct_show *show, int cell, int arm, char *out, size_t size) {
  *out = '\0';
  for (int b = 0; b < show->n_blocks && !*out; b++)
    if (is_done(show, b, cell, arm))
      cct_counts_remark(&show->blocks[b]->cells[cell].program, &show->blocks[b]->cells[cell].performed, out, size);
}

struct pool {              /* of the samples of several blocks */
  double *steps, *spreads; /* of each index: the slowest rank's value; (slowest - fastest) / slowest */
  int *slowest;            /* times that each rank was it */
  size_t n, capacity_steps, capacity_spreads, capacity_ranks;
};

static void pool_free(struct pool *pool) {
  free(pool->steps);
  free(pool->spreads);
  free(pool->slowest);
}

struct extreme {
  double worst, best;
  int rank, is_set, times;
};

/* Worst is the largest of a metric where lower is better, else the smallest. */
static enum cct_status add_samples(const struct cct_block_metric *metric, struct pool *pool) {
  int n_steps = 0, n_ranks = 0, sign = strcmp(metric->metric.better, "higher") ? 1 : -1;
  for (int i = 0; i < metric->n_samples; i++) {
    n_steps = metric->samples[i].index >= n_steps ? metric->samples[i].index + 1 : n_steps;
    n_ranks = metric->samples[i].rank >= n_ranks ? metric->samples[i].rank + 1 : n_ranks;
  }
  struct extreme *steps = calloc((size_t)n_steps + 1, sizeof *steps);
  size_t had_ranks = pool->capacity_ranks;
  enum cct_status status = steps ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  if (!status)
    status = cct_grow((void **)&pool->slowest, &pool->capacity_ranks, (size_t)n_ranks, sizeof *pool->slowest);
  if (!status && pool->capacity_ranks > had_ranks)
    memset(pool->slowest + had_ranks, 0, (pool->capacity_ranks - had_ranks) * sizeof *pool->slowest);
  size_t need = pool->n + cct_metric_values(metric);
  if (!status)
    status = cct_grow((void **)&pool->steps, &pool->capacity_steps, need, sizeof *pool->steps);
  if (!status)
    status = cct_grow((void **)&pool->spreads, &pool->capacity_spreads, need, sizeof *pool->spreads);
  for (int i = 0; !status && i < metric->n_samples; i++) {
    const struct cct_sample *sample = &metric->samples[i];
    struct extreme *step = &steps[sample->index];
    if (!step->is_set || sign * sample->value > sign * step->worst) {
      step->worst = sample->value;
      step->rank = sample->rank;
    }
    if (!step->is_set || sign * sample->value < sign * step->best)
      step->best = sample->value;
    step->is_set = 1;
    step->times = cct_metric_is_counted(&metric->metric) && sample->n > 1 ? sample->n : 1;
  }
  for (int s = 0; !status && s < n_steps; s++)
    for (int k = 0; k < steps[s].times; k++) {
      pool->steps[pool->n] = steps[s].worst;
      pool->spreads[pool->n++] = steps[s].worst != 0 ? fabs(steps[s].worst - steps[s].best) / fabs(steps[s].worst) : 0;
      pool->slowest[steps[s].rank]++;
    }
  free(steps);
  return status;
}

enum cct_status cct_show_summarize(const struct cct_show *show, int cell, int arm, int metric,
                                   struct cct_show_summary *summary_out) {
  struct pool pool = {0};
  struct cct_show_summary summary = {0};
  enum cct_status status = CCT_OK;
  for (int b = 0; !status && b < show->n_blocks; b++)
    if (is_done(show, b, cell, arm)) {
      status = add_samples(&show->blocks[b]->cells[cell].metrics[metric], &pool);
      summary.n_blocks++;
    }
  summary.n = pool.n;
  for (size_t i = 0; !status && i < pool.n; i++)
    summary.mean += pool.steps[i] / (double)pool.n;
  for (size_t r = 0; !status && pool.n && r < pool.capacity_ranks; r++)
    if (pool.slowest[r] > pool.slowest[summary.slowest])
      summary.slowest = r;
  if (!status && pool.n) {
    cct_sort(pool.steps, pool.n);
    summary.median = cct_quantile(pool.steps, pool.n, 0.5);
    summary.p99 = cct_quantile(pool.steps, pool.n, 0.99);
    summary.spread = cct_median(pool.spreads, pool.n);
    summary.slowest_share = pool.slowest[summary.slowest] / (double)pool.n;
  }
  pool_free(&pool);
  *summary_out = summary;
  return status;
}
