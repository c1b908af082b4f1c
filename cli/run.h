/* SPDX-License-Identifier: Apache-2.0
 * What every command that starts blocks does: plan or read an agenda, take the run's folder, perform the blocks that
 * are missing, say how it ended. `cctax run` gives it the user's suite; other commands give it one of their own. */
#ifndef CCT_CLI_RUN_H
#define CCT_CLI_RUN_H

#include "base/option.h"
#include "mpi_runner/agenda.h"

/* Says on stdout what came of a run; `ended` is how it ended so far. */
typedef enum cct_status cct_run_print(const struct cct_agenda *agenda, const char *folder,
                                      const struct cct_options *flags, enum cct_status ended);
/* Flags as `cctax run` takes them (--output, --resume, --append, --dry-run, --json included); suite NULL: flags alone;
 * `print` NULL: how many cells are done; `again`: the command that goes on with an interrupted run, NULL: that of `run`
 * or, with a `print`, of `coll`. */
enum cct_status cct_run_perform(const struct cct_options *flags, const char *suite_path, cct_run_print *print,
                                const char *again) CCT_CHECKED;

/* 1: the flag says where and how a run goes on, nothing of what is performed; so it may stand beside --resume. */
int cct_run_says_how(enum cct_option_id id);

/* ---- dry_run.c: the programs of an agenda and their totals on stdout ---- */
enum cct_status cct_dry_run(const struct cct_agenda *agenda, int is_json) CCT_CHECKED;

/* ---- progress.c ---- */
struct cct_progress {
  int n_blocks, n_cells; /* to be performed, and cells in each */
  int block;             /* of them, from 0 */
  int is_terminal, is_quiet;
  int64_t start_ns;
  char text[64]; /* "round 2, arm off" */
};
void cct_progress_start(struct cct_progress *progress, int n_blocks, int n_cells, int is_quiet);
void cct_progress_cell(void *progress, int cells_done); /* on a terminal one line, rewritten */
void cct_progress_end_block(struct cct_progress *progress, double block_s, int is_done);

#endif
