/* SPDX-License-Identifier: Apache-2.0
 * world.h over MPI: the one door to mpi.h. Every message is bytes; one of more than 2 GiB is refused. */
#ifndef CCT_MPI_RUNNER_WORLD_MPI_H
#define CCT_MPI_RUNNER_WORLD_MPI_H

#include <stddef.h>

#include "base/world.h"

/* Starts MPI (MPI_THREAD_FUNNELED) and gives the world of all processes; close it to end MPI. */
enum cct_status cct_world_mpi_open(int *argc, char ***argv, struct cct_world **world_out) CCT_CHECKED;
void cct_world_mpi_close(struct cct_world *world); /* NULL-safe; collective */

/* Which of the processes on this machine this one is, and how many there are. Collective. */
enum cct_status cct_world_mpi_local(const struct cct_world *world, int *rank_out, int *size_out) CCT_CHECKED;
/* The MPI library, in words of its own. Returns `out`. */
char *cct_world_mpi_version(char *out, size_t size);

#endif
