/* SPDX-License-Identifier: Apache-2.0
 * What the runs of a tune measured, cell by cell and process by process. Cells are found by their place: a run's agenda
 * is made of the same suite. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/run_block.h"
#include "cli/tune.h"
#include "mpi_runner/agenda.h"
#include "record/record.h"
#include "workloads/program/program.h"

struct cct_tune_grid cct_tune_alone(const struct cct_tune_plan *plan, const struct cct_tune_data *data, int kind) {
  return (struct cct_tune_grid){data->alone[kind], plan->n_bytes, plan->n_choices, data->n_processes};
}

struct cct_tune_grid cct_tune_beside(const struct cct_tune_plan *plan, const struct cct_tune_data *data, int kind) {
  return (struct cct_tune_grid){data->beside[kind], plan->n_beside, plan->n_channels, data->n_processes};
}

static double *unknown_times(int n) {
  double *times = malloc((size_t)(n ? n : 1) * sizeof *times);
  for (int i = 0; times && i < n; i++)
    times[i] = NAN;
  return times;
}

enum cct_status cct_tune_data_new(const struct cct_tune_plan *plan, int n_processes, struct cct_tune_data *data_out) {
  struct cct_tune_data data = {.n_processes = n_processes};
  int is_whole = 1;
  for (int k = 0; k < plan->n_kinds; k++) {
    data.alone[k] = unknown_times(plan->n_bytes * plan->n_choices * n_processes);
    data.beside[k] = unknown_times(plan->n_beside * plan->n_channels * n_processes);
    data.ran[k] = calloc((size_t)(plan->n_bytes * plan->n_choices + 1), sizeof *data.ran[k]);
    is_whole &= data.alone[k] && data.beside[k] && data.ran[k];
  }
  if (!is_whole) {
    cct_tune_data_free(&data);
    return cct_fail(CCT_NOMEM, "out of memory");
  }
  *data_out = data;
  return CCT_OK;
}

void cct_tune_data_free(struct cct_tune_data *data) {
  for (int k = 0; k < CCT_TUNE_MOST_KINDS; k++) {
    free(data->alone[k]);
    free(data->beside[k]);
    free(data->ran[k]);
  }
  memset(data, 0, sizeof *data);
}

/* The median burst, each averaged over the ranks; NAN where the cell has none. */
double cct_tune_cell_us(const struct cct_block_cell *cell) {
  const struct cct_block_metric *metric = cell->n_metrics ? &cell->metrics[0] : NULL;
  int n = 0, kept = 0;
  if (cell->state != CCT_CELL_DONE || !metric)
    return NAN;
  for (int i = 0; i < metric->n_samples; i++)
    n = metric->samples[i].index >= n ? metric->samples[i].index + 1 : n;
  if (!n || n > metric->n_samples)
    return NAN;
  double *sums = calloc((size_t)n, sizeof *sums), median = NAN;
  int *rows = calloc((size_t)n, sizeof *rows);
  for (int i = 0; sums && rows && i < metric->n_samples; i++) {
    const struct cct_sample *sample = &metric->samples[i];
    if (sample->index < 0)
      continue;
    sums[sample->index] += sample->value;
    rows[sample->index]++;
  }
  for (int i = 0; sums && rows && i < n; i++)
    if (rows[i])
      sums[kept++] = sums[i] / rows[i];
  if (kept)
    median = cct_median(sums, (size_t)kept);
  free(sums);
  free(rows);
  return median > 0 ? median : NAN;
}

static int kind_of(const struct cct_tune_plan *plan, const char *name) {
  for (int k = 0; name && k < plan->n_kinds; k++)
    if (!strcmp(name, cct_tune_kind_name(plan->kinds[k])))
      return k;
  return -1;
}

static int choice_of(const struct cct_tune_plan *plan, const char *text) {
  char own[48];
  for (int c = 0; c < plan->n_choices; c++)
    if (!strcmp(text ? text : "default/default/default", cct_tune_choice_text(plan, c, own)))
      return c;
  return -1;
}

static int size_of(const struct cct_tune_plan *plan, const int64_t *sizes, int n, int kind, int64_t bytes) {
  for (int s = 0; s < n; s++)
    if (cct_tune_bytes(plan, kind, sizes[s]) == bytes)
      return s;
  return -1;
}

struct cct_tune_place cct_tune_place_of(const struct cct_tune_plan *plan, const struct cct_options *cell) {
  const struct cct_value *choice = &cell->v[CCT_OPT_COMM_CHOICE];
  struct cct_tune_place place = {.kind = kind_of(plan, cell->v[CCT_OPT_COLLECTIVE].s),
                                 .is_beside = cell->v[CCT_OPT_GEMM_SHAPE].is_set,
                                 .is_chosen = choice->has_value};
  place.choice = choice_of(plan, choice->has_value ? choice->s : NULL);
  if (place.kind < 0 || place.choice < 0)
    return (struct cct_tune_place){.kind = -1};
  place.size = size_of(plan, place.is_beside ? plan->beside : plan->bytes,
                       place.is_beside ? plan->n_beside : plan->n_bytes, place.kind, cell->v[CCT_OPT_BYTES].i);
  if (place.size < 0)
    place.kind = -1;
  return place;
}

void cct_tune_facts_read(const struct cct_block *block, struct cct_tune_data *data) {
  for (int i = 0; i < block->n_facts; i++) {
    const struct cct_record_fact *fact = &block->facts[i];
    if (!strcmp(fact->name, "gpu.name"))
      snprintf(data->gpu, sizeof data->gpu, "%s", fact->value);
    else if (!strcmp(fact->name, "nccl"))
      snprintf(data->nccl, sizeof data->nccl, "%s", fact->value);
    else if (!strcmp(fact->name, "driver"))
      snprintf(data->driver, sizeof data->driver, "%s", fact->value);
    else if (!strcmp(fact->name, "start"))
      snprintf(data->date, sizeof data->date, "%.10s", fact->value);
    else if (!strcmp(fact->name, "condition"))
      snprintf(data->condition, sizeof data->condition, "%s", fact->value);
    else if (!strcmp(fact->name, "NCCL_NVLS_ENABLE"))
      data->is_nvls_off = !strcmp(fact->value, "0");
  }
}

static int index_of(const char *name, const char *const *names, int n) {
  int i = 0;
  while (i < n && strcasecmp(name, names[i]))
    i++;
  return i < n ? i : -1;
}

struct cct_tune_ran cct_tune_ran_parse(const char *text) {
  char algorithm[32], protocol[32];
  struct cct_tune_ran ran = {0};
  if (sscanf(text, "%31s %31s %d channels", algorithm, protocol, &ran.channels) != 3)
    return (struct cct_tune_ran){0};
  ran.algorithm = index_of(algorithm, cct_tuner_algorithms, CCT_TUNER_ALGORITHMS);
  ran.protocol = index_of(protocol, cct_tuner_protocols, CCT_TUNER_PROTOCOLS);
  return ran.algorithm < 0 || ran.protocol < 0 || ran.channels < 1 ? (struct cct_tune_ran){0} : ran;
}

char *cct_tune_ran_text(const struct cct_tune_ran *ran, char out[64]) {
  int n = snprintf(out, 64, "%s %s", cct_tuner_algorithms[ran->algorithm], cct_tuner_protocols[ran->protocol]);
  if (ran->channels)
    snprintf(out + n, (size_t)(64 - n), ", %d channel%s", ran->channels, ran->channels > 1 ? "s" : "");
  return out;
}

int cct_tune_is_as_asked(const struct cct_tune_plan *plan, int choice, const struct cct_tune_ran *ran) {
  const struct cct_tune_choice *asked = &plan->choices[choice];
  return !ran->channels ||
         ((!*asked->algorithm || !strcasecmp(asked->algorithm, cct_tuner_algorithms[ran->algorithm])) &&
          (!*asked->protocol || !strcasecmp(asked->protocol, cct_tuner_protocols[ran->protocol])));
}

/* What processes tell differently is not known. */
static void keep_ran(const struct cct_tune_plan *plan, const struct cct_tune_place *place,
                     const struct cct_tune_ran *ran, int process, struct cct_tune_data *data) {
  struct cct_tune_ran *kept = &data->ran[place->kind][place->size * plan->n_choices + place->choice];
  if (!process)
    *kept = *ran;
  else if (!cct_tune_is_same(kept, ran))
    *kept = (struct cct_tune_ran){0};
}

static enum cct_status take_block(const struct cct_tune_plan *plan, const struct cct_agenda *agenda, const char *run,
                                  int b, int process, struct cct_tune_data *data) {
  struct cct_block *block;
  enum cct_status status = cct_run_block_read(agenda, run, b, 0, &block);
  if (status)
    return status;
  cct_tune_facts_read(block, data);
  for (int i = 0; !status && i < block->n_cells; i++) {
    struct cct_tune_place place = cct_tune_place_of(plan, &agenda->cells[i]);
    double us = cct_tune_cell_us(&block->cells[i]);
    struct cct_tune_ran ran = {0};
    if (block->cells[i].state == CCT_CELL_DONE)
      ran = cct_tune_ran_parse(block->cells[i].reason);
    if (place.kind >= 0 && !cct_tune_is_as_asked(plan, place.choice, &ran)) {
      data->n_other++;
      us = NAN;
    }
    if (place.kind >= 0 && !place.is_beside)
      keep_ran(plan, &place, &ran, process, data);
    if (place.kind < 0)
      status = cct_fail(CCT_DAMAGED, "%s: cell %d is none of this tune's", block->path, i);
    else if (place.is_beside)
      data->beside[place.kind]
                  [(place.size * plan->n_channels + plan->choices[place.choice].channels) * data->n_processes +
                   process] = us;
    else
      data->alone[place.kind][(place.size * plan->n_choices + place.choice) * data->n_processes + process] = us;
  }
  cct_block_free(block);
  return status;
}

enum cct_status cct_tune_data_read(const struct cct_tune_plan *plan, const char *run, int first,
                                   struct cct_tune_data *data) {
  struct cct_agenda *agenda;
  enum cct_status status = cct_agenda_load(run, &agenda);
  if (status)
    return status;
  for (int b = 0; !status && b < cct_agenda_blocks(agenda); b++) {
    int process = first + cct_agenda_block(agenda, b).round;
    if (process >= data->n_processes)
      status = cct_fail(CCT_DAMAGED, "%s: more processes than the tune has", run);
    else
      status = take_block(plan, agenda, run, b, process, data);
  }
  cct_agenda_free(agenda);
  return status;
}
