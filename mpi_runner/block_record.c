/* SPDX-License-Identifier: Apache-2.0
 * The record of a block: made anew, or gone on with where it was interrupted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "machine/host_facts.h"
#include "mpi_runner/block.h"
#include "mpi_runner/totals.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

struct opening {
  const struct cct_agenda *agenda;
  const struct cct_block_at *at;
  const char *path;
  int is_emulated, cores;
  struct cct_record *record;
};

static void label_of(const struct opening *opening, int cell, char *out, size_t size) {
  const struct cct_agenda *agenda = opening->agenda;
  struct cct_step step = {0};
  struct cct_options options;
  int is_sim = !strcmp(agenda->backend, "sim"), is_host = !strcmp(agenda->backend, "host");
  int is_scaled = agenda->cells[cell].v[CCT_OPT_SCALE].i > 1, is_stand_in = 0;
  cct_log_mute(1);
  if (!cct_agenda_cell(agenda, cell, opening->at->arm, &options)) {
    if (!cct_step_build(&options, &step)) {
      is_scaled |= step.is_scaled;
      is_stand_in = step.is_stand_in;
    }
    cct_step_free(&step);
    cct_options_free(&options);
  }
  cct_log_mute(0);
  snprintf(out, size, "%s%s%s%s%s",
           is_sim                 ? "predicted"
           : opening->is_emulated ? "emulated"
                                  : "measured",
           agenda->is_shared_gpu ? ",shared-gpu" : "",
           is_host && agenda->ranks[cell] > opening->cores ? ",oversubscribed" : "", is_scaled ? ",scaled" : "",
           is_stand_in ? ",stand-in" : "");
}

/* One line a cell: what was performed, in figures that can be compared without the tool. */
static enum cct_status program_text(const struct cct_agenda *agenda, struct cct_text *text) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < agenda->n_cells; i++) {
    struct cct_step step;
    struct cct_counts counts;
    cct_log_mute(1);
    status = cct_step_build(&agenda->cells[i], &step);
    cct_log_mute(0);
    if (status) { /* performing the cell will say why */
      cct_text_add(text, "{\"cell\":%d,\"program\":\"%s\"}\n", i, agenda->programs[i]);
      status = CCT_OK;
      continue;
    }
    status = cct_step_totals(&step, 0, &counts);
    if (!status)
      cct_text_add(text,
                   "{\"cell\":%d,\"program\":\"%s\",\"ranks\":%d,\"entries\":%d,\"submissions\":%lld,\"flops\":%.17g,"
                   "\"hbm_bytes\":%.17g}\n",
                   i, agenda->programs[i], step.job->ranks, step.job->roles[0].program->n_ops,
                   (long long)counts.submissions, counts.flops, counts.hbm_bytes);
    cct_step_free(&step);
  }
  return status ? status : text->is_failed ? CCT_NOMEM : CCT_OK;
}

static enum cct_status cells_of(const struct opening *opening, struct cct_record_cell *cells,
                                struct cct_metric **metrics) {
  for (int i = 0; i < opening->agenda->n_cells; i++) {
    struct cct_json *json;
    struct cct_text key = {0};
    char label[96];
    enum cct_status status = cct_cell_to_json(&opening->agenda->cells[i], &json);
    if (status)
      return status;
    status = cct_json_canonical(json, &key);
    cct_json_free(json);
    label_of(opening, i, label, sizeof label);
    cells[i] = (struct cct_record_cell){.key = key.s, .label = strdup(label)};
    struct cct_options options;
    if (!status)
      status = cct_agenda_cell(opening->agenda, i, opening->at->arm, &options);
    if (!status) {
      status = cct_block_metrics(&options, &metrics[i], &cells[i].n_metrics);
      cells[i].metrics = metrics[i];
      cct_options_free(&options);
    }
    if (status || !cells[i].label)
      return status ? status : cct_fail(CCT_NOMEM, "out of memory");
  }
  return CCT_OK;
}

static enum cct_status create_record(struct opening *opening, const struct cct_fact_list *facts) {
  const struct cct_agenda *agenda = opening->agenda;
  const struct cct_boot *boot = &agenda->boots[opening->at->boot];
  struct cct_record_head head = {.block = opening->at->block, .round = opening->at->round, .boot = opening->at->boot};
  struct cct_record_cell *cells = calloc((size_t)agenda->n_cells + 1, sizeof *cells);
  struct cct_metric **metrics = calloc((size_t)agenda->n_cells + 1, sizeof *metrics);
  struct cct_text text = {0};
  struct cct_host_facts host;
  cct_host_facts_read(&host);
  opening->cores = host.cores;
  snprintf(head.tool, sizeof head.tool, "%s", CCT_VERSION);
  snprintf(head.run, sizeof head.run, "%s", agenda->digest);
  snprintf(head.factor, sizeof head.factor, "%s", agenda->factor);
  snprintf(head.arm, sizeof head.arm, "%s", agenda->arms[opening->at->arm]);
  snprintf(head.boot_id, sizeof head.boot_id, "%s", boot->id);
  enum cct_status status = cells && metrics ? cells_of(opening, cells, metrics) : cct_fail(CCT_NOMEM, "out of memory");
  if (!status)
    status = program_text(agenda, &text);
  if (!status)
    status = cct_record_create(opening->path, &head, facts->items, facts->n, text.s ? text.s : "", cells,
                               agenda->n_cells, &opening->record);
  for (int i = 0; cells && i < agenda->n_cells; i++) {
    free((void *)(uintptr_t)cells[i].key);
    free((void *)(uintptr_t)cells[i].label);
    if (metrics)
      free(metrics[i]);
  }
  free(cells);
  free(metrics);
  cct_text_free(&text);
  return status;
}

/* The interrupted file can be gone on with when it is of this run, this boot and this machine. */
static int is_ours(const struct opening *opening, const struct cct_block *before, const struct cct_fact_list *facts) {
  if (strcmp(before->head.run, opening->agenda->digest) || before->head.block != opening->at->block ||
      strcmp(before->head.boot_id, opening->agenda->boots[opening->at->boot].id))
    return 0;
  for (int i = 0; i < before->n_facts; i++)
    for (int k = 0; k < facts->n; k++)
      if (before->facts[i].fact_class == CCT_FACT_IDENTITY && facts->items[k].fact_class == CCT_FACT_IDENTITY &&
          !strcmp(before->facts[i].name, facts->items[k].name) && strcmp(before->facts[i].value, facts->items[k].value))
        return 0;
  return 1;
}

static enum cct_status open_or_create(struct opening *opening, const struct cct_fact_list *facts) {
  char partial[4200];
  struct cct_block *before = NULL;
  snprintf(partial, sizeof partial, "%s.partial", opening->path);
  FILE *file = fopen(partial, "re");
  if (!file)
    return create_record(opening, facts);
  fclose(file);
  enum cct_status status = cct_block_read(partial, 1, &before);
  int is_usable = !status && is_ours(opening, before, facts);
  cct_block_free(before);
  if (is_usable && !cct_record_reopen(opening->path, &opening->record))
    return CCT_OK;
  cct_note("%s: begun anew: %s", partial, status ? "it cannot be read" : "it is of another run, boot or machine");
  return create_record(opening, facts);
}

enum cct_status cct_block_record(const struct cct_agenda *agenda, const struct cct_block_at *at, const char *path,
                                 int is_emulated, const struct cct_fact_list *facts, struct cct_record **record_out) {
  struct opening opening = {.agenda = agenda, .at = at, .path = path, .is_emulated = is_emulated};
  enum cct_status status = open_or_create(&opening, facts);
  if (!status)
    *record_out = opening.record;
  return status;
}
