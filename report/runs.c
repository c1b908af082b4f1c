/* SPDX-License-Identifier: Apache-2.0 */
#include "report/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

const char *cct_block_fact(const struct cct_block *block, const char *name) {
  for (int i = 0; i < block->n_facts; i++)
    if (!strcmp(block->facts[i].name, name))
      return block->facts[i].value;
  return NULL;
}

/* Boots are one boot where their boot ids are; without an id, where run directory and boot number are. */
static int same_boot(const struct cct_runs *runs, int a, int b) {
  const struct cct_record_head *left = &runs->blocks[a]->head, *right = &runs->blocks[b]->head;
  if (*left->boot_id && *right->boot_id)
    return !strcmp(left->boot_id, right->boot_id);
  return runs->run_of[a] == runs->run_of[b] && left->boot == right->boot && !*left->boot_id && !*right->boot_id;
}

static enum cct_status add_run(struct cct_runs *runs, const char *name) {
  char **names = realloc(runs->names, (size_t)(runs->n_runs + 1) * sizeof *names);
  if (names)
    runs->names = names;
  char **questions = names ? realloc(runs->questions, (size_t)(runs->n_runs + 1) * sizeof *questions) : NULL;
  if (questions)
    runs->questions = questions;
  char **machines = questions ? realloc(runs->machines, (size_t)(runs->n_runs + 1) * sizeof *machines) : NULL;
  if (machines)
    runs->machines = machines;
  char *copy = machines ? strdup(name) : NULL;
  if (!copy)
    return cct_fail(CCT_NOMEM, "%s: out of memory", name);
  runs->questions[runs->n_runs] = runs->machines[runs->n_runs] = NULL;
  runs->names[runs->n_runs++] = copy;
  return CCT_OK;
}

/* Room for one more element in each of the three arrays that run in step. */
static enum cct_status grow(struct cct_runs *runs) {
  size_t n = (size_t)runs->n_blocks + 1;
  struct cct_block **blocks = realloc(runs->blocks, n * sizeof *blocks);
  if (blocks)
    runs->blocks = blocks;
  int *run_of = realloc(runs->run_of, n * sizeof *run_of);
  if (run_of)
    runs->run_of = run_of;
  int *boot_of = realloc(runs->boot_of, n * sizeof *boot_of);
  if (boot_of)
    runs->boot_of = boot_of;
  return blocks && run_of && boot_of ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory: %zu blocks", n);
}

enum cct_status cct_runs_add(struct cct_runs *runs, int run, const char *name, struct cct_block *block) {
  enum cct_status status = run == runs->n_runs ? add_run(runs, name) : CCT_OK;
  if (!status)
    status = grow(runs);
  if (status) {
    cct_block_free(block);
    return status;
  }
  int at = runs->n_blocks;
  runs->blocks[at] = block;
  runs->run_of[at] = run;
  runs->boot_of[at] = runs->n_boots;
  for (int i = 0; i < at; i++)
    if (same_boot(runs, i, at)) {
      runs->boot_of[at] = runs->boot_of[i];
      break;
    }
  runs->n_boots += runs->boot_of[at] == runs->n_boots;
  runs->n_blocks++;
  return CCT_OK;
}

void cct_runs_free(struct cct_runs *runs) {
  if (!runs)
    return;
  for (int i = 0; i < runs->n_blocks; i++)
    cct_block_free(runs->blocks[i]);
  for (int i = 0; i < runs->n_runs; i++) {
    free(runs->names[i]);
    free(runs->questions[i]);
    free(runs->machines[i]);
  }
  free(runs->blocks);
  free(runs->run_of);
  free(runs->boot_of);
  free(runs->names);
  free(runs->questions);
  free(runs->machines);
  memset(runs, 0, sizeof *runs);
}
