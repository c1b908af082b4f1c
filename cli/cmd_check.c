/* SPDX-License-Identifier: Apache-2.0
 * cctax check RUN: is everything in a run what was written? */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/document.h"
#include "json/json.h"
#include "mpi_runner/agenda.h"
#include "record/record.h"

struct check {
  struct cct_json *files; /* of --json */
  int n_files, n_damaged, n_unfinished, is_json;
};

static int is_block(const struct dirent *entry) {
  const char *name = entry->d_name, *dot = strstr(name, ".h5");
  return !strncmp(name, "block-", 6) && dot && (!dot[3] || !strcmp(dot + 3, ".partial"));
}

static enum cct_status check_file(const char *path, struct check *check) {
  struct cct_check_result result;
  enum cct_status status = cct_record_check(path, &result);
  if (status)
    return status;
  size_t length = strlen(path);
  int is_partial = length > 8 && !strcmp(path + length - 8, ".partial");
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

/* run.json first, then every block in order. A changed agenda is damage found, not bad input. */
static enum cct_status check_folder(const char *folder, struct check *check) {
  struct cct_agenda *agenda = NULL;
  struct dirent **entries;
  enum cct_status status = cct_agenda_load(folder, &agenda);
  if (status == CCT_DAMAGED) {
    check->n_damaged++;
    status = CCT_OK;
  }
  cct_agenda_free(agenda);
  if (status)
    return status;
  int n = scandir(folder, &entries, is_block, alphasort);
  if (n < 0)
    return cct_fail(CCT_IO, "%s: cannot be read: %s", folder, strerror(errno));
  for (int i = 0; i < n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    if (!status)
      status = check_file(path, check);
    free(entries[i]);
  }
  free(entries);
  return status;
}

static enum cct_status print_json(struct check *check) {
  struct cct_json *document = cct_document_new("check");
  cct_json_set(document, "files", check->files);
  cct_json_set_i64(document, "damaged", check->n_damaged);
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
    printf("%d files, %d damaged, %d unfinished\n", check.n_files, check.n_damaged, check.n_unfinished);
  return status ? status : check.n_damaged ? CCT_FOUND : CCT_OK;
}
