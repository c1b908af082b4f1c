/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "cli/coll.h"
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

static enum cct_status read_value(const struct cct_agenda *agenda, const struct cct_coll_blocks *blocks,
                                  const struct cct_coll_table *table, int index, int place,
                                  struct cct_coll_value *value) {
  const struct cct_options *cell = &agenda->cells[index];
  int ranks = agenda->ranks[index];
  *value = (struct cct_coll_value){.is_asked = 1, .wrong = has_no_check(agenda, table, cell, place) ? -1 : 0};
  enum cct_status status = cct_coll_samples_read(agenda, blocks, table->arm, index, value);
  if (status)
    return status;
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

/* Cells alike in every key but those of `but`. */
static int is_alike(const struct cct_options *a, const struct cct_options *b, const enum cct_option_id *but, int n) {
  for (int i = 0; i < CCT_OPTION_COUNT; i++) {
    enum cct_option_id id = (enum cct_option_id)i;
    const char *left = cct_cell_matters(a, id) ? cct_cell_text(a, id) : NULL;
    const char *right = cct_cell_matters(b, id) ? cct_cell_text(b, id) : NULL;
    int is_free = 0;
    for (int k = 0; k < n; k++)
      is_free |= id == but[k];
    if (!is_free && (!left != !right || (left && strcmp(left, right))))
      return 0;
  }
  return 1;
}

/* nccl-tests' one table has a row a type, reduction, root and size; a row has two places. */
static int is_same_table(const struct cct_options *a, const struct cct_options *b) {
  static const enum cct_option_id but[] = {CCT_OPT_BYTES, CCT_OPT_PLACE, CCT_OPT_TYPE, CCT_OPT_REDUCTION, CCT_OPT_ROOT};
  return is_alike(a, b, but, sizeof but / sizeof *but);
}

static int is_same_row(const struct cct_options *a, const struct cct_options *b) {
  static const enum cct_option_id but[] = {CCT_OPT_PLACE};
  return is_alike(a, b, but, 1);
}

/* nccl-tests counts a share's elements where ranks have shares. */
static int64_t count_of(int kind, int64_t bytes, enum cct_type type, int ranks) {
  int has_shares = kind == CCT_COLL_ALL_GATHER || kind == CCT_COLL_REDUCE_SCATTER || kind == CCT_COLL_ALL_TO_ALL ||
                   kind == CCT_COLL_ALL_TO_ALLV;
  return bytes * 8 / cct_type_bits(type) / (has_shares ? ranks : 1);
}

static void open_table(const struct cct_options *cell, int arm, struct cct_coll_table *table) {
  *table = (struct cct_coll_table){.cell = cell, .arm = arm, .collective = cell->v[CCT_OPT_COLLECTIVE].s};
  table->kind = cct_collective_by_name(table->collective);
}

static void open_row(const struct cct_options *cell, int kind, int ranks, struct cct_coll_row *row) {
  enum cct_type type = (enum cct_type)cct_type_by_name(cell->v[CCT_OPT_TYPE].s);
  int64_t bytes = cell->v[CCT_OPT_BYTES].i;
  *row = (struct cct_coll_row){.bytes = bytes,
                               .count = count_of(kind, bytes, type, ranks),
                               .type = cct_coll_type_name(type),
                               .reduction = "none",
                               .root = -1};
  if (kind >= 0 && cct_collective_reduces((enum cct_collective)kind))
    row->reduction = cell->v[CCT_OPT_REDUCTION].has_value ? cell->v[CCT_OPT_REDUCTION].s : "sum";
  if (kind == CCT_COLL_BROADCAST || kind == CCT_COLL_REDUCE)
    row->root = (int)cell->v[CCT_OPT_ROOT].i;
}

/* The link of a column: the faster of its two engines, or the network where ranks are more than GPUs share a link. */
static const struct cct_cost *link_of(const struct cct_profile *profile, const struct cct_column *column, int ranks) {
  if (ranks > profile->platform.gpus && column->net.gb_s.source)
    return &column->net.gb_s;
  return column->p2p.ce_gb_s.value > column->p2p.sm_gb_s.value ? &column->p2p.ce_gb_s : &column->p2p.sm_gb_s;
}

/* Emulation slows the machine's own link by what the emulated profile's link loses. */
static void set_limit(const struct cct_profile *machine, const struct cct_profile *emulated, int is_confidential,
                      struct cct_coll_table *table) {
  int ranks = (int)table->cell->v[CCT_OPT_NP].i, has_other = emulated && strcmp(emulated->name, machine->name) != 0;
  const struct cct_column *column =
      is_confidential && machine->has_confidential ? &machine->confidential : &machine->clear;
  const struct cct_cost *cost = link_of(machine, column, ranks);
  table->limit_gb_s = cost->value;
  if (emulated)
    table->limit_gb_s *=
        link_of(emulated, &emulated->confidential, ranks)->value / link_of(emulated, &emulated->clear, ranks)->value;
  snprintf(table->limit_of, sizeof table->limit_of, "%.4g GB/s one way, %s of %s%s%s, %s", table->limit_gb_s,
           cost == &column->net.gb_s ? "network" : "link", machine->name, has_other ? " slowed as that of " : "",
           has_other ? emulated->name : "", cct_cost_kind_name(cost->kind));
}

/* `machine_name` NULL: the emulated profile is of this machine, or its link is not known. */
static void find_limit(const struct cct_coll_result *result, const char *machine_name, struct cct_coll_table *table) {
  const char *condition = cct_agenda_condition(result->agenda, table->arm);
  const char *emulated_name = !strncmp(condition, "emulated:", 9) ? condition + 9 : NULL;
  struct cct_profile *machine = NULL, *emulated = NULL;
  int is_host = !strcmp(result->agenda->backend, "host");
  snprintf(table->limit_of, sizeof table->limit_of, "n/a: %s",
           is_host ? "ranks of the host backend share no GPU's link" : "--profile names none of this machine");
  if (is_host || (!machine_name && !emulated_name))
    return;
  cct_log_mute(1); /* a run outlives the profile that it was begun with */
  int is_lost = (emulated_name && cct_profile_load(emulated_name, &emulated)) ||
                (machine_name && cct_profile_load(machine_name, &machine));
  cct_log_mute(0);
  if (is_lost)
    snprintf(table->limit_of, sizeof table->limit_of, "n/a: %.120s", cct_log_last());
  else if (machine || !strncmp(result->gpu, emulated->platform.gpu, strlen(emulated->platform.gpu)))
    set_limit(machine ? machine : emulated, emulated, !strcmp(condition, "on"), table);
  cct_profile_free(machine);
  cct_profile_free(emulated);
}

static enum cct_status fill_table(const struct cct_coll_result *result, const struct cct_coll_blocks *blocks, int first,
                                  int n, struct cct_coll_table *table) {
  const struct cct_agenda *agenda = result->agenda;
  double sum = 0;
  int n_values = 0;
  table->rows = calloc((size_t)n, sizeof *table->rows);
  enum cct_status status = table->rows ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (int i = first; !status && i < first + n; i++) {
    struct cct_options cell;
    if (i == first || !is_same_row(&agenda->cells[i - 1], &agenda->cells[i]))
      open_row(&agenda->cells[i], table->kind, agenda->ranks[i], &table->rows[table->n_rows++]);
    struct cct_coll_row *row = &table->rows[table->n_rows - 1];
    const char *at = agenda->cells[i].v[CCT_OPT_PLACE].s;
    int place = at && !strcmp(at, "in") ? CCT_COLL_IN : CCT_COLL_OUT;
    status = read_value(agenda, blocks, table, i, place, &row->value[place]);
    if (!status && !cct_agenda_cell(agenda, i, table->arm, &cell)) {
      row->is_launch_bound =
          row->bytes < LAUNCH_BOUND_BYTES && !cell.v[CCT_OPT_CUDAGRAPH].i && strcmp(agenda->backend, "host");
      cct_options_free(&cell);
    }
    table->wrong_values += row->value[place].wrong > 0;
    sum += row->value[place].busbw_gb_s;
    n_values += row->value[place].n_samples > 0;
  }
  table->average_busbw_gb_s = n_values ? sum / n_values : NAN;
  return status;
}

static void read_facts(const struct cct_coll_blocks *blocks, struct cct_coll_result *result) {
  for (int b = 0; b < blocks->n; b++)
    for (int i = 0; blocks->at[b] && i < blocks->at[b]->n_facts; i++) {
      const struct cct_record_fact *fact = &blocks->at[b]->facts[i];
      if (!strcmp(fact->name, "gpu.name"))
        snprintf(result->gpu, sizeof result->gpu, "%s", fact->value);
      if (!strcmp(fact->name, "nccl"))
        snprintf(result->nccl, sizeof result->nccl, "%s", fact->value);
      if (!strcmp(fact->name, "start") && !*result->start)
        snprintf(result->start, sizeof result->start, "%.10s %.8s", fact->value,
                 strlen(fact->value) > 11 ? fact->value + 11 : "");
    }
}

enum cct_status cct_coll_read(const struct cct_agenda *agenda, const char *folder, const char *profile,
                              struct cct_coll_result *result_out) {
  struct cct_coll_result result = {.agenda = agenda};
  struct cct_coll_blocks blocks;
  enum cct_status status = CCT_OK;
  cct_coll_blocks_read(agenda, folder, &blocks);
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
      find_limit(&result, profile, table);
      status = fill_table(&result, &blocks, first, n, table);
    }
  cct_coll_blocks_free(&blocks);
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
