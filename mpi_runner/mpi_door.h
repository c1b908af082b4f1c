/* SPDX-License-Identifier: Apache-2.0
 * The one door to MPI; private to world_mpi.c and world_mpi_sums.c. */
#ifndef CCT_MPI_RUNNER_MPI_DOOR_H
#define CCT_MPI_RUNNER_MPI_DOOR_H

#include <mpi.h>

#include "base/world.h"

static inline MPI_Comm cct_mpi_comm(const struct cct_world *w) {
  return *(MPI_Comm *)w->state;
}

enum cct_status cct_mpi_check(int code, const char *what) CCT_CHECKED; /* the one converter of MPI's codes */
enum cct_status cct_mpi_check_bytes(size_t bytes, const char *what) CCT_CHECKED;

/* ---- world_mpi_sums.c ---- */

/* reduce_with and, with a request, ireduce_with. */
enum cct_status cct_mpi_reduce(const struct cct_world *w, void *buf, size_t count, size_t element_bytes,
                               cct_combine_fn *fn, enum cct_result_at where, MPI_Request *request) CCT_CHECKED;
void cct_mpi_free_sums(void);

#endif
