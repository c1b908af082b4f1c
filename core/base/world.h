/* SPDX-License-Identifier: Apache-2.0
 * How processes meet, without naming MPI: the runner implements this over MPI (world_mpi), a single process over
 * nothing (world_self). Everything is called from one thread (MPI_THREAD_FUNNELED): a host lane that needs it hands
 * over. `rank` and `size` count PROCESSES; a process of the sim backend owns several simulated ranks. */
#ifndef CCT_BASE_WORLD_H
#define CCT_BASE_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum cct_reduce {
  CCT_REDUCE_MAX,
  CCT_REDUCE_MIN,
  CCT_REDUCE_SUM,
};

enum cct_result_at {  /* where the result of reduce_with lands */
  CCT_RESULT_ALL,     /* on every process: `buf` holds it afterwards */
  CCT_RESULT_ROOT,    /* on process 0 */
  CCT_RESULT_SCATTER, /* process r keeps elements [r*count/size, (r+1)*count/size) at the start of `buf`; size divides
                         count */
};

/* Adds `count` elements of `in` into `inout`; associative and commutative up to rounding. */
typedef void cct_combine_fn(void *inout, const void *in, size_t count);

struct cct_request; /* a started operation; freed by the test that reports it done */

struct cct_world;
struct cct_world_ops {
  /* A sub-world of the processes that pass the same colour, ordered by key then rank; release it with `release`. */
  enum cct_status (*split)(const struct cct_world *w, int colour, int key, struct cct_world **world_out);
  void (*release)(struct cct_world *w); /* NULL-safe; never on a world the caller did not split */
  enum cct_status (*barrier)(const struct cct_world *w);
  enum cct_status (*bcast)(const struct cct_world *w, void *buf, size_t bytes, int root);
  /* `send` has `bytes`, `recv` has size*bytes (on the root for gather, elsewhere it may be NULL). allgather and
   * iallgather, in place: `send` is this process's part of `recv`. */
  enum cct_status (*gather)(const struct cct_world *w, const void *send, size_t bytes, void *recv, int root);
  enum cct_status (*allgather)(const struct cct_world *w, const void *send, size_t bytes, void *recv);
  /* Contributions of different length: counts[r] bytes from process r, concatenated in rank order into `recv`. */
  enum cct_status (*allgatherv)(const struct cct_world *w, const void *send, size_t bytes, void *recv,
                                const size_t *counts);
  enum cct_status (*alltoallv)(const struct cct_world *w, const void *send, const size_t *send_bytes, void *recv,
                               const size_t *recv_bytes);
  enum cct_status (*allreduce_i64)(const struct cct_world *w, int64_t *values, size_t n, enum cct_reduce how);
  enum cct_status (*allreduce_f64)(const struct cct_world *w, double *values, size_t n, enum cct_reduce how);
  enum cct_status (*reduce_with)(const struct cct_world *w, void *buf, size_t count, size_t element_bytes,
                                 cct_combine_fn *combine, enum cct_result_at where);
  /* Blocking point to point; and the started forms, which `test` completes (*done_out = 1 once, then the request is
   * gone). */
  enum cct_status (*send)(const struct cct_world *w, const void *buf, size_t bytes, int to, int tag);
  enum cct_status (*recv)(const struct cct_world *w, void *buf, size_t bytes, int from, int tag);
  enum cct_status (*isend)(const struct cct_world *w, const void *buf, size_t bytes, int to, int tag,
                           struct cct_request **request_out);
  enum cct_status (*irecv)(const struct cct_world *w, void *buf, size_t bytes, int from, int tag,
                           struct cct_request **request_out);
  enum cct_status (*ireduce_with)(const struct cct_world *w, void *buf, size_t count, size_t element_bytes,
                                  cct_combine_fn *combine, enum cct_result_at where, struct cct_request **request_out);
  enum cct_status (*iallgather)(const struct cct_world *w, const void *send, size_t bytes, void *recv,
                                struct cct_request **request_out);
  enum cct_status (*ialltoallv)(const struct cct_world *w, const void *send, const size_t *send_bytes, void *recv,
                                const size_t *recv_bytes, struct cct_request **request_out);
  enum cct_status (*test)(const struct cct_world *w, struct cct_request *request, int *done_out);
  int64_t (*now_ns)(const struct cct_world *w);
  void (*abort)(const struct cct_world *w, int exit_code); /* ends every process of the run */
};

struct cct_world {
  int rank, size;
  const struct cct_world_ops *ops;
  void *state; /* the implementation's */
};

/* Every process leaves with the worst status of all. Collective, over a world that nothing else uses meanwhile. A
 * process that brings a failure waits at most `patience_ns` (0: as long as it takes): the others may be waiting for it
 * inside an operation that it has left. It then says what failed, and `where`, in one line and ends every process,
 * exit 3. */
enum cct_status cct_world_agree(const struct cct_world *world, enum cct_status status, const char *where,
                                int64_t patience_ns) CCT_CHECKED;

/* The world of one process; never released. */
const struct cct_world *cct_world_self(void);

#endif
