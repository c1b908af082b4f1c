/* SPDX-License-Identifier: Apache-2.0
 * The blocks of one or several run directories in memory: what a report is made from. */
#ifndef CCT_REPORT_RUNS_H
#define CCT_REPORT_RUNS_H

#include "base/status.h"
#include "record/record.h"

#define CCT_MAX_ARMS 16 /* in one report; more are refused, since no reader takes in more */

struct cct_runs {
  struct cct_block **blocks; /* owned, in the order of directories and block numbers */
  int *run_of;               /* which directory each came from */
  int *boot_of;              /* 0, 1, ...: equal for equal boots, across directories too */
  int n_blocks;
  char **names;     /* owned: the directories as given */
  char **questions; /* owned: the question that run.json states, or NULL */
  char **machines;  /* owned: the profile that sim played, as run.json names it, or NULL */
  int n_runs;
  int n_boots;
  int n_unfinished; /* BLOCK.h5.partial files, left out */
};

/* Reads every block-NNNN.h5 of the directories. An .h5 of another name, no block at all, and what cct_block_read
 * refuses are refused in one line; an unfinished block is left out with a warning. */
enum cct_status cct_runs_load(const char *const *directories, int n, struct cct_runs *runs_out) CCT_CHECKED;
/* Adds one block (taken, also on failure) to directory `run`, a new one where it equals n_runs (its name is copied). */
enum cct_status cct_runs_add(struct cct_runs *runs, int run, const char *name, struct cct_block *block) CCT_CHECKED;
void cct_runs_free(struct cct_runs *runs); /* NULL-safe; leaves it zero */

/* The value of a fact of a block, NULL where it has none. */
const char *cct_block_fact(const struct cct_block *block, const char *name);

#endif
