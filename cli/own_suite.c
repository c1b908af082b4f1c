/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/own_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/launch.h"
#include "machine/gpu_passive.h"
#include "workloads/program/profile.h"
#include "workloads/shape/cell.h"

#define MOST_RANKS 8
#define HOST_RANKS 2

enum cct_status cct_own_backend(struct cct_options *options) {
  char why_not[256];
  if (strcmp(options->v[CCT_OPT_BACKEND].s, "auto"))
    return CCT_OK;
  enum cct_status status = cct_launch_why_no_cuda(why_not, sizeof why_not);
  if (!status && *why_not)
    cct_note("backend sim, the figures are predicted: %s", why_not);
  return status ? status : cct_option_set(options, CCT_OPT_BACKEND, *why_not ? "sim" : "cuda", "--backend");
}

enum cct_status cct_own_ranks(const struct cct_options *options, int *np_out) {
  const char *backend = options->v[CCT_OPT_BACKEND].s, *played = options->v[CCT_OPT_PROFILE_FILE].s;
  struct cct_gpu_passive gpus = {0};
  struct cct_profile *profile;
  int np = HOST_RANKS;
  if (options->v[CCT_OPT_NP].s && strchr(options->v[CCT_OPT_NP].s, ','))
    return cct_fail(CCT_USAGE, "--np: takes one value, not %s", options->v[CCT_OPT_NP].s);
  if (options->v[CCT_OPT_NP].has_value) {
    np = (int)options->v[CCT_OPT_NP].i;
  } else if (!strcmp(backend, "cuda")) {
    cct_gpu_passive_read(&gpus);
    np = gpus.gpus > 0 ? gpus.gpus : 1;
  } else if (!strcmp(backend, "sim")) {
    enum cct_status status = cct_profile_load(played ? played : CCT_SIM_PLAYS, &profile);
    if (status)
      return status;
    np = profile->platform.gpus;
    cct_profile_free(profile);
  }
  *np_out = options->v[CCT_OPT_NP].has_value || np < MOST_RANKS ? np : MOST_RANKS;
  return CCT_OK;
}

int cct_own_goes_on(const struct cct_options *options) {
  int goes_on = options->v[CCT_OPT_RESUME].is_set || options->v[CCT_OPT_APPEND].is_set;
  for (int id = 0; goes_on && id < CCT_OPTION_COUNT; id++)
    goes_on = !options->v[id].is_set || cct_run_says_how((enum cct_option_id)id);
  return goes_on;
}

enum cct_status cct_own_check_begun(const char *folder, const char *question, const char *command) {
  struct cct_agenda *agenda = NULL;
  enum cct_status status = folder ? cct_agenda_load(folder, &agenda) : CCT_OK;
  if (!status && agenda && strcmp(agenda->question, question))
    status = cct_fail(CCT_USAGE, "%s: cctax %s did not begin this run; cctax run -o %s --resume goes on with it",
                      folder, command, folder);
  cct_agenda_free(agenda);
  return status;
}

/* "" where it cannot be said. */
static void say_cell(const struct cct_options *cell, struct cct_text *text) {
  struct cct_json *json = NULL;
  if (!cct_cell_to_json(cell, &json) && cct_json_canonical(json, text))
    cct_text_free(text);
  cct_json_free(json);
}

int cct_own_has_cells(const struct cct_agenda *agenda, const struct cct_json *suite) {
  const struct cct_json *cells = cct_json_member(suite, "cells");
  int is_same = cct_json_size(cells) == (size_t)agenda->n_cells;
  for (int i = 0; is_same && i < agenda->n_cells; i++) {
    struct cct_json_at root = cct_json_root(cells, "cells"), at = cct_json_at_index(&root, (size_t)i);
    struct cct_options cell = {0};
    struct cct_text asked = {0}, kept = {0};
    if (!cct_cell_from_json(&at, &cell))
      say_cell(&cell, &asked);
    say_cell(&agenda->cells[i], &kept);
    is_same = asked.s && kept.s && !strcmp(asked.s, kept.s);
    cct_text_free(&asked);
    cct_text_free(&kept);
    cct_options_free(&cell);
  }
  return is_same;
}

/* The run keeps the cells in its agenda; the file lives only until that is made. */
enum cct_status cct_own_perform(const struct cct_options *options, struct cct_json *suite, cct_run_print *print,
                                const char *again) {
  char path[] = CCT_OWN_SUITE "XXXXXX";
  struct cct_options own = {0};
  int fd = mkstemp(path);
  enum cct_status status =
      fd < 0 || !suite ? cct_fail(CCT_IO, "%s: a suite cannot be written there", path) : cct_json_save(suite, path);
  if (fd >= 0)
    close(fd);
  cct_json_free(suite);
  if (!status)
    status = cct_options_copy(options, &own);
  for (int id = 0; !status && id < CCT_OPTION_COUNT; id++)
    if (cct_option_table[id].scope == CCT_SCOPE_CELL)
      own.v[id].is_set = 0;
  if (!status)
    status = cct_run_perform(&own, path, print, again);
  cct_options_free(&own);
  if (fd >= 0)
    unlink(path);
  return status;
}
