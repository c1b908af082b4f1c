/* SPDX-License-Identifier: Apache-2.0
 * cctax check RUN: is everything in a run what was written? */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/document.h"
#include "json/json.h"
#include "mpi_runner/agenda.h"
#include "record/record.h"

struct check {
  struct cct_json *files; /* of --json */
  const char *run;        /* digest of the agenda, NULL: a file alone */
  int n_blocks;           /* of the agenda */
  int n_files, n_damaged, n_unfinished, n_missing, is_json;
};

static int is_block(const struct dirent *entry) {
  const char *name = entry->d_name, *dot = strstr(name, ".h5");
  return !strncmp(name, "block-", 6) && dot && (!dot[3] || !strcmp(dot + 3, ".partial"));
}

/* A sound block under another's name, or in another run's folder, is damage to the run. */
static void check_place(const char *path, const struct check *check, struct cct_check_result *result) {
  const char *name = strrchr(path, '/');
  struct cct_block *block = NULL;
  int number;
  if (!check->run || !name || sscanf(name, "/block-%d.h5", &number) != 1 || cct_block_read(path, 0, &block))
    return;
  result->is_sound = 0;
  if (strcmp(block->head.run, check->run))
    snprintf(result->finding, sizeof result->finding, "a sound block of another run");
  else if (block->head.block != number)
    snprintf(result->finding, sizeof result->finding, "a sound block, but block %d of the run", block->head.block);
  else if (number >= check->n_blocks)
    snprintf(result->finding, sizeof result->finding, "a sound block, but its run has %d", check->n_blocks);
  else
    result->is_sound = 1;
  cct_block_free(block);
}

static enum cct_status check_file(const char *path, struct check *check) {
  struct cct_check_result result;
  enum cct_status status = cct_record_check(path, &result);
  if (status)
    return status;
  size_t length = strlen(path);
  int is_partial = length > 8 && !strcmp(path + length - 8, ".partial");
  if (result.is_sound && !is_partial)
    check_place(path, check, &result);
  check->n_files++;
  check->n_unfinished += is_partial && !result.n_bad;
  check->n_damaged += is_partial ? result.n_bad != 0 : !result.is_sound;
  if (!check->is_json) {
    printf("%s: %s\n", path, result.finding);
    return CCT_OK;
  }
  struct cct_json *file = cct_json_new_object(), *cells = cct_json_new_array();
  for (int i = 0; i < result.n_bad && i < 64; i++)
    cct_json_add_i64(cells, result.bad[i]);
  cct_json_set_string(file, "file", path);
  cct_json_set_bool(file, "sound", result.is_sound);
  cct_json_set_bool(file, "finished", !is_partial);
  cct_json_set(file, "affected_cells", cells);
  cct_json_set_string(file, "finding", result.finding);
  cct_json_add(check->files, file);
  return CCT_OK;
}

/* Blocks that the agenda has and the folder has not, begun or finished. */
static void count_missing(const struct cct_agenda *agenda, const char *folder, struct check *check) {
  for (int b = 0; agenda && b < cct_agenda_blocks(agenda); b++) {
    char path[4096], partial[4200];
    cct_agenda_path(folder, b, path, sizeof path);
    snprintf(partial, sizeof partial, "%s.partial", path);
    check->n_missing += access(path, F_OK) != 0 && access(partial, F_OK) != 0;
  }
}

/* run.json first, then every block in order. A changed agenda is damage found, not bad input. */
static enum cct_status check_folder(const char *folder, struct check *check) {
  struct cct_agenda *agenda = NULL;
  struct dirent **entries;
  enum cct_status status = cct_agenda_load(folder, &agenda);
  if (status == CCT_DAMAGED) {
    check->n_damaged++;
    status = CCT_OK;
  }
  if (status)
    return status;
  check->run = agenda ? agenda->digest : NULL;
  check->n_blocks = agenda ? cct_agenda_blocks(agenda) : 0;
  count_missing(agenda, folder, check);
  int n = scandir(folder, &entries, is_block, alphasort);
  if (n < 0)
    status = cct_fail(CCT_IO, "%s: cannot be read: %s", folder, strerror(errno));
  for (int i = 0; i < n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    if (!status)
      status = check_file(path, check);
    free(entries[i]);
  }
  if (n >= 0)
    free(entries);
  check->run = NULL;
  cct_agenda_free(agenda);
  return status;
}

static enum cct_status print_json(struct check *check) {
  struct cct_json *document = cct_document_new("check");
  cct_json_set(document, "files", check->files);
  cct_json_set_i64(document, "damaged", check->n_damaged);
  cct_json_set_i64(document, "unfinished", check->n_unfinished);
  cct_json_set_i64(document, "missing", check->n_missing);
  return cct_document_print(document);
}

enum cct_status cct_cmd_check(const struct cct_options *options, const char *const *args, int n_args) {
  struct check check = {.is_json = (int)options->v[CCT_OPT_JSON].i};
  struct stat facts;
  if (n_args != 1)
    return cct_fail(CCT_USAGE, "check takes one run's folder, or one block's file");
  if (stat(args[0], &facts) != 0)
    return cct_fail(CCT_IO, "%s: cannot be read: %s", args[0], strerror(errno));
  if (check.is_json)
    check.files = cct_json_new_array();
  enum cct_status status = S_ISDIR(facts.st_mode) ? check_folder(args[0], &check) : check_file(args[0], &check);
  if (status) {
    cct_json_free(check.files);
    return status;
  }
  if (check.is_json)
    status = print_json(&check);
  else
    printf("%d files, %d damaged, %d unfinished", check.n_files, check.n_damaged, check.n_unfinished);
  if (!check.is_json)
    printf(check.n_missing ? ", %d not begun; finish the run with --resume\n" : "\n", check.n_missing);
  return status ? status : check.n_damaged ? CCT_FOUND : CCT_OK;
}
