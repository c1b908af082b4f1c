/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "json/json.h"
#include "report/runs.h"

struct names {
  char **s;
  int n;
};

static void names_free(struct names *names) {
  for (int i = 0; i < names->n; i++)
    free(names->s[i]);
  free(names->s);
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static int ends_with(const char *s, const char *end) {
  size_t n = strlen(s), m = strlen(end);
  return n >= m && !strcmp(s + n - m, end);
}

static int is_block_name(const char *name) {
  int number, end = 0;
  return sscanf(name, "block-%d.h5%n", &number, &end) == 1 && end && !name[end];
}

/* The block files of a directory in ascending order; counts what is unfinished, refuses what is foreign. */
static enum cct_status list(const char *directory, struct names *names_out, int *unfinished) {
  DIR *handle = opendir(directory);
  if (!handle)
    return cct_fail(CCT_IO, "%s: not a run directory that can be read: %s", directory, strerror(errno));
  enum cct_status status = CCT_OK;
  for (struct dirent *entry; !status && (entry = readdir(handle));) {
    const char *name = entry->d_name;
    *unfinished += ends_with(name, ".h5.partial");
    if (!ends_with(name, ".h5"))
      continue;
    if (!is_block_name(name)) {
      status = cct_fail(CCT_USAGE, "%s/%s: not a block of a run; move it out of the run directory", directory, name);
      break;
    }
    char **grown = realloc(names_out->s, (size_t)(names_out->n + 1) * sizeof *grown);
    char *copy = grown ? strdup(name) : NULL;
    if (grown)
      names_out->s = grown;
    if (!copy)
      status = cct_fail(CCT_NOMEM, "%s: out of memory", directory);
    else
      names_out->s[names_out->n++] = copy;
  }
  closedir(handle);
  if (!status && names_out->n)
    qsort(names_out->s, (size_t)names_out->n, sizeof *names_out->s, by_name);
  return status;
}

static enum cct_status copy_text(const struct cct_json *object, const char *key, const char *path, char **text_out) {
  const struct cct_json *value = object ? cct_json_member(object, key) : NULL;
  const char *text = value ? cct_json_string(value) : NULL;
  if (text && *text && !(*text_out = strdup(text)))
    return cct_fail(CCT_NOMEM, "%s: out of memory", path);
  return CCT_OK;
}

/* The question a run was made to answer, and what sim played; NULL where there is no run.json, or it states none. */
static enum cct_status read_agenda(const char *directory, char **question_out, char **machine_out) {
  char path[4096];
  struct cct_json *document = NULL;
  snprintf(path, sizeof path, "%s/run.json", directory);
  FILE *probe = fopen(path, "re");
  if (!probe)
    return CCT_OK;
  fclose(probe);
  enum cct_status status = cct_json_load(path, &document);
  if (status)
    return status;
  const struct cct_json *agenda = cct_json_member(document, "agenda");
  status = copy_text(agenda, "question", path, question_out);
  if (!status)
    status = copy_text(agenda, "profile", path, machine_out);
  cct_json_free(document);
  return status;
}

/* Equal in their first bytes, which hold the digest of all others: one file twice. */
static int is_same_file(const char *a, const char *b) {
  char begin[2][72] = {{0}};
  const char *paths[2] = {a, b};
  for (int i = 0; i < 2; i++) {
    FILE *file = fopen(paths[i], "re");
    size_t n = file ? fread(begin[i], 1, sizeof begin[i], file) : 0;
    if (file)
      fclose(file);
    if (n != sizeof begin[i])
      return 0;
  }
  return !memcmp(begin[0], begin[1], sizeof begin[0]);
}

/* A copy repeats nothing: taken for a block of its own it would narrow every interval. */
static enum cct_status refuse_copy(const struct cct_runs *runs, const struct cct_block *block) {
  for (int i = 0; i < runs->n_blocks; i++)
    if (runs->blocks[i]->head.block == block->head.block && !strcmp(runs->blocks[i]->head.run, block->head.run) &&
        is_same_file(runs->blocks[i]->path, block->path))
      return cct_fail(CCT_USAGE, "%s: a copy of %s, and no block of its own; leave one of them out", block->path,
                      runs->blocks[i]->path);
  return CCT_OK;
}

static enum cct_status load_one(const char *directory, struct cct_runs *runs) {
  struct names names = {0};
  char path[4096];
  int unfinished = 0, run = runs->n_runs;
  enum cct_status status = list(directory, &names, &unfinished);
  if (!status && !names.n)
    status = cct_fail(CCT_USAGE, "%s: no finished block (block-NNNN.h5)%s", directory,
                      unfinished ? "; finish it with --resume" : "");
  for (int i = 0; !status && i < names.n; i++) {
    struct cct_block *block = NULL;
    snprintf(path, sizeof path, "%s/%s", directory, names.s[i]);
    status = cct_block_read(path, 0, &block);
    if (!status && (status = refuse_copy(runs, block)))
      cct_block_free(block);
    if (!status)
      status = cct_runs_add(runs, run, directory, block);
  }
  if (!status)
    status = read_agenda(directory, &runs->questions[run], &runs->machines[run]);
  if (!status && unfinished)
    cct_warn("%s: %d unfinished block%s left out; finish the run with --resume", directory, unfinished,
             unfinished == 1 ? "" : "s");
  runs->n_unfinished += unfinished;
  names_free(&names);
  return status;
}

enum cct_status cct_runs_load(const char *const *directories, int n, struct cct_runs *runs_out) {
  struct cct_runs runs = {0};
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < n; i++) {
    for (int j = 0; !status && j < i; j++)
      if (!strcmp(directories[i], directories[j]))
        status = cct_fail(CCT_USAGE, "%s: given twice", directories[i]);
    if (!status)
      status = load_one(directories[i], &runs);
  }
  if (status)
    cct_runs_free(&runs);
  else
    *runs_out = runs;
  return status;
}
