/* SPDX-License-Identifier: Apache-2.0
 * What performs a block, shared by the files that perform its parts. */
#ifndef CCT_MPI_RUNNER_BLOCK_ROOM_H
#define CCT_MPI_RUNNER_BLOCK_ROOM_H

#include "mpi_runner/block.h"

struct block {
  const struct cct_world *world;
  const struct cct_agenda *agenda;
  const char *run;
  char path[4096];
  struct cct_block_at at;
  const char *condition;
  const struct cct_backend_ops *ops;
  struct cct_profile *machine, *emulated; /* NULL: none */
  struct cct_backend *backend;            /* open on `members` */
  struct cct_world *members;              /* the processes that take part in the present cell */
  struct cct_world *meeting;              /* the same ones where they agree, apart from what the backend does */
  int n_members;
  int64_t scale;                /* that the backend was opened with */
  struct cct_record *record;    /* process 0's */
  struct cct_block_drift drift; /* of this process's backend, read between cells */
  int n_failed;
  char choice[100]; /* of the present cell: what the collective library chose */
};

/* How long a rank that failed alone waits for the others before it ends the block. Ranks of one program reach the end
 * of a step close together; opening and loading may take one of them longer. */
#define CCT_STEP_PATIENCE_S 5
#define CCT_LOAD_PATIENCE_S 30
int64_t cct_block_patience_ns(const struct block *block, int64_t seconds);
/* Every process leaves with the worst status of all. */
enum cct_status cct_block_meet(const struct block *block, enum cct_status status) CCT_CHECKED;

/* Opens the backend for a cell on as many processes as it has ranks (sim: at most that many), or keeps the open one. */
enum cct_status cct_block_open_backend(struct block *block, int cell) CCT_CHECKED;
void cct_block_close_backend(struct block *block);

/* block_cell.c: every process comes here for every open cell. What ends the block (a full disk, a lost connection) is
 * returned; what is the cell's own trouble is recorded as its state. */
enum cct_status cct_block_perform_cell(struct block *block, int cell) CCT_CHECKED;

#endif
