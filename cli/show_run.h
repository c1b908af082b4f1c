/* SPDX-License-Identifier: Apache-2.0
 * What cctax show knows of a run, whichever form it prints it in. */
#ifndef CCT_CLI_SHOW_RUN_H
#define CCT_CLI_SHOW_RUN_H

#include "mpi_runner/agenda.h"
#include "record/record.h"

struct cct_show {
  const char *run;
  struct cct_agenda *agenda;
  struct cct_block **blocks; /* owned, by number; NULL: not there, or damaged (said when it was read) */
  int *is_partial;
  int n_blocks, n_finished, n_damaged;
};

enum cct_status cct_show_load(const char *run, struct cct_show *show_out) CCT_CHECKED;
void cct_show_free(struct cct_show *show);

/* Where a block stands among the others, and what drifts: no fact of the run. */
int cct_show_is_place(const struct cct_record_fact *fact);
/* 1: the first block that has the fact is `block`; `n_other_out` is how many later ones have another value. */
int cct_show_is_first(const struct cct_show *show, int block, const struct cct_record_fact *fact, int *n_other_out);

/* A cell under an arm, as the arm's first block that has it lists it; NULL: none has. */
const struct cct_block_cell *cct_show_cell(const struct cct_show *show, int cell, int arm);
/* The `reason` of a serving cell in the arm's next block from *block on that says another schedule than `last`; NULL:
 * none does. *block is where it stands. */
const char *cct_show_schedule(const struct cct_show *show, int cell, int arm, const char *last, int *block);
/* What the arm's backend performed otherwise than the program says, as its first finished block has it; "": nothing. */
void cct_show_counts(const struct cct_show *show, int cell, int arm, char *out, size_t size);

/* What the samples of one metric of one cell come to under one arm, all blocks together. */
struct cct_show_summary {
  size_t n;                 /* samples; of a gap, tokens; 0: none, and nothing below holds */
  int n_blocks;             /* that finished the cell */
  double median, mean, p99; /* of the slowest rank's values */
  double spread;            /* median of (slowest - fastest) / slowest rank */
  size_t slowest;           /* the rank that most often was, and how often */
  double slowest_share;
};
enum cct_status cct_show_summarize(const struct cct_show *show, int cell, int arm, int metric,
                                   struct cct_show_summary *summary_out) CCT_CHECKED;

/* ---- show_json.c ---- */
/* The run as one document on stdout. */
enum cct_status cct_show_json(const struct cct_show *show) CCT_CHECKED;

#endif
