/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/coll.h"
#include "record/record.h"
#include "stats/stats.h"
#include "workloads/program/price.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

/* Below this an eager collective takes what its launch takes. */
#define LAUNCH_BOUND_BYTES (256 << 10)

const char *cct_coll_formula(int kind) {
  switch (kind) {
  case CCT_COLL_ALL_REDUCE:
    return "algbw x 2(n-1)/n";
  case CCT_COLL_ALL_TO_ALLV:
    return "the busiest rank's bytes to or from others / time; evenly spread algbw x (n-1)/n";
  case CCT_COLL_ALL_GATHER:
  case CCT_COLL_REDUCE_SCATTER:
  case CCT_COLL_ALL_TO_ALL:
    return "algbw x (n-1)/n";
  default:
    return "algbw";
  }
}

/* ---- samples ---- */

/* The blocks of a run, NULL where there is none or it cannot be read (that has been said). */
struct blocks {
  struct cct_block **at;
  int n;
};

static void read_blocks(const struct cct_agenda *agenda, const char *folder, struct blocks *blocks) {
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
    if (access(is_partial ? partial : path, F_OK) == 0 &&
        !cct_block_read(is_partial ? partial : path, is_partial, &block))
      blocks->at[b] = block;
  }
  cct_log_mute(0);
}

static void free_blocks(struct blocks *blocks) {
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
static const struct cct_block_metric *metric_of(const struct blocks *blocks, int b, int cell) {
  const struct cct_block *block = blocks->at[b];
  return block && cell < block->n_cells && block->cells[cell].n_metrics ? &block->cells[cell].metrics[0] : NULL;
}

static int make_bursts(struct bursts *bursts, const struct blocks *blocks, int cell, int ranks) {
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

/* ---- a value ---- */

/* What the busiest rank moves, where a matrix spreads the bytes; 0: evenly. */
static double busiest_bytes(const struct cct_options *cell) {
  struct cct_step step;
  double bytes = 0;
  if (cct_step_build(cell, &step))
    return 0;
  if (step.bindings && step.bindings[0].matrices)
    bytes = cct_busiest_bytes(&step.bindings[0].matrices[0]);
  cct_step_free(&step);
  return bytes;
}

static int has_no_check(const struct cct_agenda *agenda, const struct cct_coll_table *table,
                        const struct cct_options *cell, int place) {
  int is_exchange = table->kind < 0 || table->kind == CCT_COLL_ALL_TO_ALL || table->kind == CCT_COLL_ALL_TO_ALLV;
  return !strcmp(agenda->backend, "sim") || (cell->v[CCT_OPT_CHECK].has_value && !cell->v[CCT_OPT_CHECK].i) ||
         (place == CCT_COLL_IN && is_exchange);
}

static enum cct_status read_value(const struct cct_agenda *agenda, const struct blocks *blocks,
                                  const struct cct_coll_table *table, int index, int place,
                                  struct cct_coll_value *value) {
  const struct cct_options *cell = &agenda->cells[index];
  int ranks = agenda->ranks[index];
  struct bursts bursts;
  *value = (struct cct_coll_value){.is_asked = 1, .wrong = has_no_check(agenda, table, cell, place) ? -1 : 0};
  snprintf(value->reason, sizeof value->reason, "not performed");
  if (!make_bursts(&bursts, blocks, index, ranks)) {
    free_bursts(&bursts);
    return cct_fail(CCT_NOMEM, "out of memory");
  }
  for (int b = 0, n_read = 0; b < blocks->n; b++) {
    const struct cct_block *block = blocks->at[b];
    if (!block || cct_agenda_block(agenda, b).arm != table->arm || index >= block->n_cells)
      continue;
    const struct cct_block_cell *recorded = &block->cells[index];
    if (!n_read++)
      value->reason[0] = '\0';
    read_state(recorded, value);
    if (recorded->n_metrics && recorded->state != CCT_CELL_OPEN)
      add_block(&bursts, &recorded->metrics[0]);
  }
  conclude(&bursts, value);
  free_bursts(&bursts);
  if (value->time_us <= 0)
    return CCT_OK;
  double bytes = (double)cell->v[CCT_OPT_BYTES].i,
         spread = table->kind == CCT_COLL_ALL_TO_ALLV ? busiest_bytes(cell) : 0;
  double factor = table->kind < 0 ? 1 : cct_collective_factor((enum cct_collective)table->kind, ranks);
  value->algbw_gb_s = bytes / value->time_us * 1e-3;
  value->busbw_gb_s = spread > 0 ? spread / value->time_us * 1e-3 : value->algbw_gb_s * factor;
  return CCT_OK;
}

/* ---- tables ---- */

/* Cells of one table differ by size and place alone. */
static int is_same_table(const struct cct_options *a, const struct cct_options *b) {
  for (int i = 0; i < CCT_OPTION_COUNT; i++) {
    enum cct_option_id id = (enum cct_option_id)i;
    const char *left = cct_cell_matters(a, id) ? cct_cell_text(a, id) : NULL;
    const char *right = cct_cell_matters(b, id) ? cct_cell_text(b, id) : NULL;
    if (id == CCT_OPT_BYTES || id == CCT_OPT_PLACE)
      continue;
    if (!left != !right || (left && strcmp(left, right)))
      return 0;
  }
  return 1;
}

/* nccl-tests counts a share's elements where ranks have shares. */
static int64_t count_of(int kind, int64_t bytes, enum cct_type type, int ranks) {
  int has_shares = kind == CCT_COLL_ALL_GATHER || kind == CCT_COLL_REDUCE_SCATTER || kind == CCT_COLL_ALL_TO_ALL ||
                   kind == CCT_COLL_ALL_TO_ALLV;
  return bytes * 8 / cct_type_bits(type) / (has_shares ? ranks : 1);
}

static void open_table(const struct cct_options *cell, int arm, struct cct_coll_table *table) {
  enum cct_type type = (enum cct_type)cct_type_by_name(cell->v[CCT_OPT_TYPE].s);
  *table = (struct cct_coll_table){.cell = cell,
                                   .arm = arm,
                                   .collective = cell->v[CCT_OPT_COLLECTIVE].s,
                                   .type = cct_coll_type_name(type),
                                   .reduction = "none",
                                   .root = -1};
  table->kind = cct_collective_by_name(table->collective);
  if (table->kind >= 0 && cct_collective_reduces((enum cct_collective)table->kind))
    table->reduction = cell->v[CCT_OPT_REDUCTION].has_value ? cell->v[CCT_OPT_REDUCTION].s : "sum";
  if (table->kind == CCT_COLL_BROADCAST || table->kind == CCT_COLL_REDUCE)
    table->root = (int)cell->v[CCT_OPT_ROOT].i;
}

static void find_limit(const struct cct_agenda *agenda, const char *profile_name, struct cct_coll_table *table) {
  const char *condition = cct_agenda_condition(agenda, table->arm);
  int is_emulated = !strncmp(condition, "emulated:", 9), is_confidential = is_emulated || !strcmp(condition, "on");
  const char *name = is_emulated ? condition + 9 : profile_name;
  int ranks = (int)table->cell->v[CCT_OPT_NP].i;
  struct cct_profile *profile;
  if (!name || cct_profile_load(name, &profile))
    return;
  const struct cct_column *column =
      is_confidential && profile->has_confidential ? &profile->confidential : &profile->clear;
  const struct cct_cost *cost =
      column->p2p.ce_gb_s.value > column->p2p.sm_gb_s.value ? &column->p2p.ce_gb_s : &column->p2p.sm_gb_s;
  if (ranks > profile->platform.gpus && column->net.gb_s.source)
    cost = &column->net.gb_s;
  table->limit_gb_s = cost->value;
  snprintf(table->limit_of, sizeof table->limit_of, "%.4g GB/s one way, %s of %s, %s", cost->value,
           cost == &column->net.gb_s ? "network" : "link", profile->name, cct_cost_kind_name(cost->kind));
  cct_profile_free(profile);
}

static enum cct_status fill_table(const struct cct_coll_result *result, const struct blocks *blocks, int first, int n,
                                  struct cct_coll_table *table) {
  const struct cct_agenda *agenda = result->agenda;
  enum cct_type type = (enum cct_type)cct_type_by_name(table->cell->v[CCT_OPT_TYPE].s);
  double sum = 0;
  int n_values = 0;
  table->rows = calloc((size_t)n, sizeof *table->rows);
  enum cct_status status = table->rows ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (int i = first; !status && i < first + n; i++) {
    struct cct_options cell;
    int64_t bytes = agenda->cells[i].v[CCT_OPT_BYTES].i;
    if (!table->n_rows || table->rows[table->n_rows - 1].bytes != bytes)
      table->rows[table->n_rows++] =
          (struct cct_coll_row){.bytes = bytes, .count = count_of(table->kind, bytes, type, agenda->ranks[i])};
    struct cct_coll_row *row = &table->rows[table->n_rows - 1];
    const char *at = agenda->cells[i].v[CCT_OPT_PLACE].s;
    int place = at && !strcmp(at, "in") ? CCT_COLL_IN : CCT_COLL_OUT;
    status = read_value(agenda, blocks, table, i, place, &row->value[place]);
    if (!status && !cct_agenda_cell(agenda, i, table->arm, &cell)) {
      row->is_launch_bound =
          bytes < LAUNCH_BOUND_BYTES && !cell.v[CCT_OPT_CUDAGRAPH].i && strcmp(agenda->backend, "host");
      cct_options_free(&cell);
    }
    table->wrong_values += row->value[place].wrong > 0;
    sum += row->value[place].busbw_gb_s;
    n_values += row->value[place].n_samples > 0;
  }
  table->average_busbw_gb_s = n_values ? sum / n_values : NAN;
  return status;
}

static void read_facts(const struct blocks *blocks, struct cct_coll_result *result) {
  for (int b = 0; b < blocks->n; b++)
    for (int i = 0; blocks->at[b] && i < blocks->at[b]->n_facts; i++) {
      const struct cct_record_fact *fact = &blocks->at[b]->facts[i];
      if (!strcmp(fact->name, "gpu.name"))
        snprintf(result->gpu, sizeof result->gpu, "%s", fact->value);
      if (!strcmp(fact->name, "nccl"))
        snprintf(result->nccl, sizeof result->nccl, "%s", fact->value);
    }
}

enum cct_status cct_coll_read(const struct cct_agenda *agenda, const char *folder, const char *profile,
                              struct cct_coll_result *result_out) {
  struct cct_coll_result result = {.agenda = agenda};
  struct blocks blocks;
  enum cct_status status = CCT_OK;
  read_blocks(agenda, folder, &blocks);
  read_facts(&blocks, &result);
  result.tables = calloc((size_t)agenda->n_arms * (size_t)agenda->n_cells + 1, sizeof *result.tables);
  if (!result.tables)
    status = cct_fail(CCT_NOMEM, "out of memory");
  for (int arm = 0; !status && arm < agenda->n_arms; arm++)
    for (int first = 0, n; !status && first < agenda->n_cells; first += n) {
      struct cct_coll_table *table = &result.tables[result.n_tables++];
      for (n = 1; first + n < agenda->n_cells && is_same_table(&agenda->cells[first], &agenda->cells[first + n]); n++)
        ;
      open_table(&agenda->cells[first], arm, table);
      find_limit(agenda, profile, table);
      status = fill_table(&result, &blocks, first, n, table);
    }
  free_blocks(&blocks);
  if (status) {
    cct_coll_free(&result);
    return status;
  }
  *result_out = result;
  return CCT_OK;
}

void cct_coll_free(struct cct_coll_result *result) {
  for (int i = 0; result->tables && i < result->n_tables; i++)
    free(result->tables[i].rows);
  free(result->tables);
  memset(result, 0, sizeof *result);
}

/* ---- what ran against what was asked for ---- */

static int is_asked(const char *word) {
  return word && *word && strcmp(word, "default");
}

/* NCCL knows rings by "RING" in its log and "ring" in its environment. */
char *cct_coll_ran(const struct cct_agenda *agenda, int arm, const char *ran, char *out) {
  char text[96], algorithm[32] = "", protocol[32] = "", *rest = text;
  int channels = 0;
  snprintf(out, 160, "%s", ran);
  if (strcmp(agenda->factor, "choice") || sscanf(ran, "%31s %31s %d channels", algorithm, protocol, &channels) != 3)
    return out;
  snprintf(text, sizeof text, "%s", agenda->arms[arm]);
  const char *a = strsep(&rest, "/"), *p = strsep(&rest, "/"), *c = strsep(&rest, "/");
  int is_other = (is_asked(a) && strcasecmp(a, algorithm)) || (is_asked(p) && strcasecmp(p, protocol)) ||
                 (is_asked(c) && atoi(c) != channels);
  if (is_other)
    snprintf(out, 160, "%.60s NOT %s", ran, agenda->arms[arm]);
  return out;
}
