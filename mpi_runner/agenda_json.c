/* SPDX-License-Identifier: Apache-2.0
 * run.json: {"schema", "digest", "agenda" (what decides the figures, and alone is under the digest), "launch",
 * "boots"}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crypt/digest.h"
#include "mpi_runner/agenda.h"
#include "workloads/shape/cell.h"

static struct cct_json *arms_json(const struct cct_agenda *agenda) {
  struct cct_json *arms = cct_json_new_array();
  for (int i = 0; i < agenda->n_arms; i++) {
    struct cct_json *arm = cct_json_new_object();
    cct_json_set_string(arm, "value", agenda->arms[i]);
    if (agenda->emulated[i][0])
      cct_json_set_string(arm, "profile_digest", agenda->emulated[i]);
    if (agenda->emulated[i][0] && !strcmp(cct_agenda_condition(agenda, i), "stripped"))
      cct_json_set_string(arm, "profile", agenda->stripped);
    cct_json_add(arms, arm);
  }
  return arms;
}

static enum cct_status cells_json(const struct cct_agenda *agenda, struct cct_json **cells_out) {
  struct cct_json *cells = cct_json_new_array();
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < agenda->n_cells; i++) {
    struct cct_json *entry = cct_json_new_object(), *cell;
    status = cct_cell_to_json(&agenda->cells[i], &cell);
    if (!status) {
      cct_json_set(entry, "cell", cell);
      cct_json_set_i64(entry, "ranks", agenda->ranks[i]);
      cct_json_set_string(entry, "program", agenda->programs[i]);
    }
    cct_json_add(cells, entry);
  }
  if (status) {
    cct_json_free(cells);
    return status;
  }
  *cells_out = cells;
  return CCT_OK;
}

/* What decides the figures, and with it the digest. */
static enum cct_status core_json(const struct cct_agenda *agenda, struct cct_json **core_out) {
  struct cct_json *core = cct_json_new_object(), *cells;
  enum cct_status status = cells_json(agenda, &cells);
  if (status) {
    cct_json_free(core);
    return status;
  }
  cct_json_set_string(core, "tool", CCT_VERSION);
  cct_json_set_string(core, "question", agenda->question);
  cct_json_set_string(core, "factor", agenda->factor);
  cct_json_set(core, "arms", arms_json(agenda));
  cct_json_set_string(core, "condition", agenda->condition);
  cct_json_set_string(core, "backend", agenda->backend);
  cct_json_set_string(core, "profile", agenda->profile);
  cct_json_set_string(core, "profile_digest", agenda->profile_digest);
  cct_json_set_i64(core, "rounds", agenda->rounds);
  cct_json_set_i64(core, "samples", agenda->samples);
  cct_json_set_i64(core, "warmup", agenda->warmup);
  cct_json_set_i64(core, "seed", agenda->seed);
  cct_json_set_string(core, "noise", agenda->noise);
  cct_json_set_bool(core, "shared_gpu", agenda->is_shared_gpu);
  cct_json_set(core, "cells", cells);
  *core_out = core;
  return CCT_OK;
}

static enum cct_status digest_core(const struct cct_json *core, char digest_out[65]) {
  struct cct_text text = {0};
  enum cct_status status = cct_json_canonical(core, &text);
  if (!status)
    status = cct_digest_text(text.s, text.length, digest_out);
  cct_text_free(&text);
  return status;
}

static struct cct_json *boots_json(const struct cct_agenda *agenda) {
  struct cct_json *boots = cct_json_new_array();
  for (int b = 0; b < agenda->n_boots; b++) {
    struct cct_json *boot = cct_json_new_object(), *arms = cct_json_new_array();
    for (int i = 0; i < agenda->boots[b].n_arms; i++)
      cct_json_add_i64(arms, agenda->boots[b].arms[i]);
    cct_json_set_string(boot, "id", agenda->boots[b].id);
    cct_json_set(boot, "arms", arms);
    cct_json_add(boots, boot);
  }
  return boots;
}

enum cct_status cct_agenda_save(const struct cct_agenda *agenda, const char *run) {
  struct cct_json *core, *document = cct_json_new_object(), *launch = cct_json_new_object();
  char path[4096];
  enum cct_status status = core_json(agenda, &core);
  if (status)
    goto out;
  cct_json_set_i64(launch, "deadline", agenda->deadline_s);
  cct_json_set_i64(launch, "procs", agenda->procs);
  cct_json_set_string(launch, "launcher", agenda->launcher);
  cct_json_set_i64(document, "schema", 1);
  cct_json_set_string(document, "digest", agenda->digest);
  cct_json_set(document, "agenda", core);
  cct_json_set(document, "launch", launch);
  cct_json_set(document, "boots", boots_json(agenda));
  launch = NULL;
  snprintf(path, sizeof path, "%s/run.json", run);
  status = cct_json_save(document, path);
out:
  cct_json_free(document);
  cct_json_free(launch);
  return status;
}

/* ---- reading ---- */

static enum cct_status read_cells(const struct cct_json_at *core, struct cct_agenda *agenda) {
  struct cct_json_at list = cct_json_at_key(core, "cells");
  enum cct_status status = cct_json_expect(&list, CCT_JSON_ARRAY);
  size_t n = status ? 0 : cct_json_size(list.value);
  if (!status && !n)
    status = cct_json_fail(&list, CCT_USAGE, "no cells");
  agenda->cells = calloc(n + 1, sizeof *agenda->cells);
  agenda->programs = calloc(n + 1, sizeof *agenda->programs);
  agenda->ranks = calloc(n + 1, sizeof *agenda->ranks);
  if (!agenda->cells || !agenda->programs || !agenda->ranks)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (size_t i = 0; !status && i < n; i++) {
    struct cct_json_at entry = cct_json_at_index(&list, i), cell = cct_json_at_key(&entry, "cell");
    int64_t ranks = 0;
    status = cct_json_member_i64(&entry, "ranks", 1, 65536, &ranks);
    agenda->ranks[i] = (int)ranks;
    if (!status)
      status = cct_json_member_text(&entry, "program", agenda->programs[i], sizeof agenda->programs[i]);
    if (!status)
      status = cct_cell_from_json(&cell, &agenda->cells[i]);
    if (!status)
      agenda->n_cells = (int)i + 1;
  }
  return status;
}

static enum cct_status read_arms(const struct cct_json_at *core, struct cct_agenda *agenda) {
  struct cct_json_at list = cct_json_at_key(core, "arms");
  enum cct_status status = cct_json_expect(&list, CCT_JSON_ARRAY);
  for (size_t i = 0; !status && i < cct_json_size(list.value); i++) {
    struct cct_json_at arm = cct_json_at_index(&list, i);
    char value[96];
    status = cct_json_member_text(&arm, "value", value, sizeof value);
    if (!status)
      status = cct_agenda_add_arm(agenda, value);
    if (!status && cct_json_member(arm.value, "profile_digest"))
      status = cct_json_member_text(&arm, "profile_digest", agenda->emulated[agenda->n_arms - 1],
                                    sizeof agenda->emulated[0]);
    if (!status && cct_json_member(arm.value, "profile"))
      status = cct_json_member_text(&arm, "profile", agenda->stripped, sizeof agenda->stripped);
  }
  if (!status && !agenda->n_arms)
    status = cct_json_fail(&list, CCT_USAGE, "no arms");
  return status;
}

static enum cct_status read_core(const struct cct_json_at *core, struct cct_agenda *agenda) {
  struct cct_json_at shared = cct_json_at_key(core, "shared_gpu");
  enum cct_status status = cct_json_member_text(core, "question", agenda->question, sizeof agenda->question);
  if (!status)
    status = cct_json_member_text(core, "factor", agenda->factor, sizeof agenda->factor);
  if (!status)
    status = read_arms(core, agenda);
  if (!status)
    status = cct_json_member_text(core, "condition", agenda->condition, sizeof agenda->condition);
  if (!status)
    status = cct_json_member_text(core, "backend", agenda->backend, sizeof agenda->backend);
  if (!status && strcmp(agenda->backend, "cuda") && strcmp(agenda->backend, "host") && strcmp(agenda->backend, "sim"))
    status = cct_json_fail(core, CCT_USAGE, "backend '%s' is none of cuda, host, sim", agenda->backend);
  if (!status)
    status = cct_json_member_text(core, "profile", agenda->profile, sizeof agenda->profile);
  if (!status)
    status = cct_json_member_text(core, "profile_digest", agenda->profile_digest, sizeof agenda->profile_digest);
  if (!status)
    status = cct_json_member_i64(core, "rounds", 1, 10000, &agenda->rounds);
  if (!status)
    status = cct_json_member_i64(core, "samples", 1, 1000000, &agenda->samples);
  if (!status)
    status = cct_json_member_i64(core, "warmup", 0, 1000000, &agenda->warmup);
  if (!status)
    status = cct_json_member_i64(core, "seed", 0, INT64_MAX, &agenda->seed);
  if (!status)
    status = cct_json_member_text(core, "noise", agenda->noise, sizeof agenda->noise);
  if (!status)
    status = cct_json_read_bool(&shared, &agenda->is_shared_gpu);
  return status ? status : read_cells(core, agenda);
}

static enum cct_status read_boots(const struct cct_json_at *root, struct cct_agenda *agenda) {
  struct cct_json_at list = cct_json_at_key(root, "boots");
  enum cct_status status = cct_json_expect(&list, CCT_JSON_ARRAY);
  for (size_t b = 0; !status && b < cct_json_size(list.value); b++) {
    struct cct_json_at boot = cct_json_at_index(&list, b), arms = cct_json_at_key(&boot, "arms");
    int ids[CCT_MOST_ARMS], n = 0;
    char id[64];
    status = cct_json_member_text(&boot, "id", id, sizeof id);
    if (!status)
      status = cct_json_expect(&arms, CCT_JSON_ARRAY);
    for (size_t i = 0; !status && i < cct_json_size(arms.value) && n < CCT_MOST_ARMS; i++) {
      struct cct_json_at at = cct_json_at_index(&arms, i);
      int64_t arm = 0;
      status = cct_json_read_i64(&at, 0, agenda->n_arms - 1, &arm);
      ids[n++] = (int)arm;
    }
    if (!status)
      status = cct_agenda_add_boot(agenda, id, ids, n);
  }
  return status;
}

static enum cct_status read_run(const struct cct_json_at *root, struct cct_agenda *agenda) {
  struct cct_json_at core = cct_json_at_key(root, "agenda"), launch = cct_json_at_key(root, "launch");
  char written[65], tool[32];
  int64_t schema;
  static const char *const keys[] = {"schema", "digest", "agenda", "launch", "boots"};
  enum cct_status status = cct_json_known_keys(root, keys, sizeof keys / sizeof *keys);
  if (!status)
    status = cct_json_member_i64(root, "schema", 1, 1, &schema);
  if (!status)
    status = cct_json_member_text(root, "digest", written, sizeof written);
  if (!status)
    status = cct_json_expect(&core, CCT_JSON_OBJECT);
  if (!status)
    status = digest_core(core.value, agenda->digest);
  if (!status && strcmp(written, agenda->digest))
    status = cct_fail(CCT_DAMAGED, "%s: its agenda does not fit its digest; it was changed or damaged", root->source);
  if (!status)
    status = cct_json_member_text(&core, "tool", tool, sizeof tool);
  if (!status && strcmp(tool, CCT_VERSION))
    status = cct_fail(CCT_USAGE, "%s: a run of cctax %s; this is %s, and one run is one version's", root->source, tool,
                      CCT_VERSION);
  if (!status)
    status = read_core(&core, agenda);
  if (!status)
    status = cct_json_member_i64(&launch, "deadline", 1, 1 << 30, &agenda->deadline_s);
  if (!status)
    status = cct_json_member_i64(&launch, "procs", 0, 4096, &agenda->procs);
  if (!status)
    status = cct_json_member_text(&launch, "launcher", agenda->launcher, sizeof agenda->launcher);
  return status ? status : read_boots(root, agenda);
}

enum cct_status cct_agenda_load(const char *run, struct cct_agenda **agenda_out) {
  struct cct_agenda *agenda = calloc(1, sizeof *agenda);
  struct cct_json *document = NULL;
  char path[4096], tune[4096];
  snprintf(path, sizeof path, "%s/run.json", run);
  snprintf(tune, sizeof tune, "%s/tune.json", run);
  if (access(path, F_OK) != 0 && access(tune, F_OK) == 0) {
    free(agenda);
    return cct_fail(CCT_USAGE, "%s: a tune and no run; its runs are the folders in it, such as %s/first", run, run);
  }
  enum cct_status status = agenda ? cct_json_load(path, &document) : cct_fail(CCT_NOMEM, "out of memory");
  if (!status) {
    struct cct_json_at root = cct_json_root(document, path);
    status = read_run(&root, agenda);
  }
  cct_json_free(document);
  if (status) {
    cct_agenda_free(agenda);
    return status;
  }
  *agenda_out = agenda;
  return CCT_OK;
}

enum cct_status cct_agenda_seal(struct cct_agenda *agenda) {
  struct cct_json *core;
  enum cct_status status = core_json(agenda, &core);
  if (status)
    return status;
  status = digest_core(core, agenda->digest);
  cct_json_free(core);
  return status;
}
