/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_runner/world_mpi.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "mpi_runner/mpi_door.h"

struct cct_request {
  MPI_Request request;
  int *lengths; /* what a started all-to-all still reads */
};

enum cct_status cct_mpi_check(int code, const char *what) {
  if (code == MPI_SUCCESS)
    return CCT_OK;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return cct_fail(CCT_STOPPED, "%s: %s", what, text);
}

enum cct_status cct_mpi_check_bytes(size_t bytes, const char *what) {
  return bytes <= INT_MAX ? CCT_OK : cct_fail(CCT_UNSUPPORTED, "%s: %zu bytes at once; MPI takes 2 GiB", what, bytes);
}

static enum cct_status world_new(MPI_Comm comm, const struct cct_world_ops *ops, struct cct_world **world_out) {
  struct cct_world *world = malloc(sizeof *world);
  MPI_Comm *state = malloc(sizeof *state);
  if (!world || !state) {
    free(world);
    free(state);
    return cct_fail(CCT_NOMEM, "out of memory");
  }
  *state = comm;
  *world = (struct cct_world){.ops = ops, .state = state};
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &world->rank);
  MPI_Comm_size(comm, &world->size);
  *world_out = world;
  return CCT_OK;
}

static enum cct_status world_split(const struct cct_world *w, int colour, int key, struct cct_world **world_out) {
  MPI_Comm comm;
  enum cct_status status = cct_mpi_check(MPI_Comm_split(cct_mpi_comm(w), colour, key, &comm), "MPI_Comm_split");
  return status ? status : world_new(comm, w->ops, world_out);
}

static void world_release(struct cct_world *w) {
  if (!w)
    return;
  MPI_Comm_free(w->state);
  free(w->state);
  free(w);
}

static enum cct_status world_barrier(const struct cct_world *w) {
  return cct_mpi_check(MPI_Barrier(cct_mpi_comm(w)), "MPI_Barrier");
}

static enum cct_status world_bcast(const struct cct_world *w, void *buf, size_t bytes, int root) {
  enum cct_status status = cct_mpi_check_bytes(bytes, "MPI_Bcast");
  return status ? status : cct_mpi_check(MPI_Bcast(buf, (int)bytes, MPI_BYTE, root, cct_mpi_comm(w)), "MPI_Bcast");
}

static enum cct_status world_gather(const struct cct_world *w, const void *send, size_t bytes, void *recv, int root) {
  enum cct_status status = cct_mpi_check_bytes(bytes, "MPI_Gather");
  return status
             ? status
             : cct_mpi_check(MPI_Gather(send, (int)bytes, MPI_BYTE, recv, (int)bytes, MPI_BYTE, root, cct_mpi_comm(w)),
                             "MPI_Gather");
}

/* What an all-gather sends: MPI wants to be told that it stands in its place already. */
static const void *part_of(const struct cct_world *w, const void *send, size_t bytes, const void *recv) {
  return bytes && send == (const char *)recv + (size_t)w->rank * bytes ? MPI_IN_PLACE : send;
}

static enum cct_status world_allgather(const struct cct_world *w, const void *send, size_t bytes, void *recv) {
  enum cct_status status = cct_mpi_check_bytes(bytes, "MPI_Allgather");
  return status ? status
                : cct_mpi_check(MPI_Allgather(part_of(w, send, bytes, recv), (int)bytes, MPI_BYTE, recv, (int)bytes,
                                              MPI_BYTE, cct_mpi_comm(w)),
                                "MPI_Allgather");
}

/* Counts and displacements as MPI takes them: two arrays of `size` ints in one allocation, for each of `n` lists. */
static enum cct_status lengths_of(const struct cct_world *w, const size_t *const *lists, int n, const char *what,
                                  int **lengths_out) {
  int *lengths = malloc((size_t)w->size * 2 * (size_t)n * sizeof *lengths);
  if (!lengths)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int l = 0; l < n; l++) {
    size_t at = 0;
    for (int r = 0; r < w->size; r++) {
      lengths[2 * l * w->size + r] = (int)lists[l][r];
      lengths[(2 * l + 1) * w->size + r] = (int)at;
      at += lists[l][r];
    }
    enum cct_status status = cct_mpi_check_bytes(at, what);
    if (status) {
      free(lengths);
      return status;
    }
  }
  *lengths_out = lengths;
  return CCT_OK;
}

static enum cct_status world_allgatherv(const struct cct_world *w, const void *send, size_t bytes, void *recv,
                                        const size_t *counts) {
  int *lengths;
  enum cct_status status = lengths_of(w, &counts, 1, "MPI_Allgatherv", &lengths);
  if (status)
    return status;
  status = cct_mpi_check(
      MPI_Allgatherv(send, (int)bytes, MPI_BYTE, recv, lengths, lengths + w->size, MPI_BYTE, cct_mpi_comm(w)),
      "MPI_Allgatherv");
  free(lengths);
  return status;
}

static enum cct_status world_alltoallv(const struct cct_world *w, const void *send, const size_t *send_bytes,
                                       void *recv, const size_t *recv_bytes) {
  int *lengths;
  enum cct_status status = lengths_of(w, (const size_t *const[]){send_bytes, recv_bytes}, 2, "MPI_Alltoallv", &lengths);
  if (status)
    return status;
  status = cct_mpi_check(MPI_Alltoallv(send, lengths, lengths + w->size, MPI_BYTE, recv, lengths + 2 * w->size,
                                       lengths + 3 * w->size, MPI_BYTE, cct_mpi_comm(w)),
                         "MPI_Alltoallv");
  free(lengths);
  return status;
}

static MPI_Op op_of(enum cct_reduce how) {
  return how == CCT_REDUCE_MAX ? MPI_MAX : how == CCT_REDUCE_MIN ? MPI_MIN : MPI_SUM;
}

static enum cct_status world_allreduce_i64(const struct cct_world *w, int64_t *values, size_t n, enum cct_reduce how) {
  return cct_mpi_check(MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_INT64_T, op_of(how), cct_mpi_comm(w)),
                       "MPI_Allreduce");
}

static enum cct_status world_allreduce_f64(const struct cct_world *w, double *values, size_t n, enum cct_reduce how) {
  return cct_mpi_check(MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_DOUBLE, op_of(how), cct_mpi_comm(w)),
                       "MPI_Allreduce");
}

static enum cct_status world_reduce_with(const struct cct_world *w, void *buf, size_t count, size_t element_bytes,
                                         cct_combine_fn *fn, enum cct_result_at where) {
  return cct_mpi_reduce(w, buf, count, element_bytes, fn, where, NULL);
}

/* ---- point to point, and what is started and tested ---- */

static enum cct_status world_send(const struct cct_world *w, const void *buf, size_t bytes, int to, int tag) {
  enum cct_status status = cct_mpi_check_bytes(bytes, "MPI_Send");
  return status ? status : cct_mpi_check(MPI_Send(buf, (int)bytes, MPI_BYTE, to, tag, cct_mpi_comm(w)), "MPI_Send");
}

static enum cct_status world_recv(const struct cct_world *w, void *buf, size_t bytes, int from, int tag) {
  enum cct_status status = cct_mpi_check_bytes(bytes, "MPI_Recv");
  return status ? status
                : cct_mpi_check(MPI_Recv(buf, (int)bytes, MPI_BYTE, from, tag, cct_mpi_comm(w), MPI_STATUS_IGNORE),
                                "MPI_Recv");
}

static struct cct_request *request_new(void) {
  struct cct_request *request = calloc(1, sizeof *request);
  if (!request)
    (void)cct_fail(CCT_NOMEM, "out of memory");
  return request;
}

static enum cct_status started(enum cct_status status, struct cct_request *request, struct cct_request **request_out) {
  if (status) {
    free(request->lengths);
    free(request);
    return status;
  }
  *request_out = request;
  return CCT_OK;
}

static enum cct_status world_isend(const struct cct_world *w, const void *buf, size_t bytes, int to, int tag,
                                   struct cct_request **request_out) {
  struct cct_request *request = request_new();
  if (!request)
    return CCT_NOMEM;
  enum cct_status status = cct_mpi_check_bytes(bytes, "MPI_Isend");
  if (!status)
    status =
        cct_mpi_check(MPI_Isend(buf, (int)bytes, MPI_BYTE, to, tag, cct_mpi_comm(w), &request->request), "MPI_Isend");
  return started(status, request, request_out);
}

static enum cct_status world_irecv(const struct cct_world *w, void *buf, size_t bytes, int from, int tag,
                                   struct cct_request **request_out) {
  struct cct_request *request = request_new();
  if (!request)
    return CCT_NOMEM;
  enum cct_status status = cct_mpi_check_bytes(bytes, "MPI_Irecv");
  if (!status)
    status =
        cct_mpi_check(MPI_Irecv(buf, (int)bytes, MPI_BYTE, from, tag, cct_mpi_comm(w), &request->request), "MPI_Irecv");
  return started(status, request, request_out);
}

static enum cct_status world_ireduce_with(const struct cct_world *w, void *buf, size_t count, size_t element_bytes,
                                          cct_combine_fn *fn, enum cct_result_at where,
                                          struct cct_request **request_out) {
  struct cct_request *request = request_new();
  if (!request)
    return CCT_NOMEM;
  return started(cct_mpi_reduce(w, buf, count, element_bytes, fn, where, &request->request), request, request_out);
}

static enum cct_status world_iallgather(const struct cct_world *w, const void *send, size_t bytes, void *recv,
                                        struct cct_request **request_out) {
  struct cct_request *request = request_new();
  if (!request)
    return CCT_NOMEM;
  enum cct_status status = cct_mpi_check_bytes(bytes, "MPI_Iallgather");
  if (!status)
    status = cct_mpi_check(MPI_Iallgather(part_of(w, send, bytes, recv), (int)bytes, MPI_BYTE, recv, (int)bytes,
                                          MPI_BYTE, cct_mpi_comm(w), &request->request),
                           "MPI_Iallgather");
  return started(status, request, request_out);
}

static enum cct_status world_ialltoallv(const struct cct_world *w, const void *send, const size_t *send_bytes,
                                        void *recv, const size_t *recv_bytes, struct cct_request **request_out) {
  struct cct_request *request = request_new();
  if (!request)
    return CCT_NOMEM;
  enum cct_status status =
      lengths_of(w, (const size_t *const[]){send_bytes, recv_bytes}, 2, "MPI_Ialltoallv", &request->lengths);
  const int *lengths = request->lengths;
  if (!status)
    status = cct_mpi_check(MPI_Ialltoallv(send, lengths, lengths + w->size, MPI_BYTE, recv, lengths + 2 * w->size,
                                          lengths + 3 * w->size, MPI_BYTE, cct_mpi_comm(w), &request->request),
                           "MPI_Ialltoallv");
  return started(status, request, request_out);
}

static enum cct_status world_test(const struct cct_world *w, struct cct_request *request, int *done_out) {
  (void)w;
  int done = 0;
  enum cct_status status = cct_mpi_check(MPI_Test(&request->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (status)
    return status;
  if (done) {
    free(request->lengths);
    free(request);
  }
  *done_out = done;
  return CCT_OK;
}

static int64_t world_now_ns(const struct cct_world *w) {
  (void)w;
  return cct_clock_ns();
}

static void world_abort(const struct cct_world *w, int exit_code) {
  MPI_Abort(cct_mpi_comm(w), exit_code);
}

static const struct cct_world_ops mpi_ops = {
    .split = world_split,
    .release = world_release,
    .barrier = world_barrier,
    .bcast = world_bcast,
    .gather = world_gather,
    .allgather = world_allgather,
    .allgatherv = world_allgatherv,
    .alltoallv = world_alltoallv,
    .allreduce_i64 = world_allreduce_i64,
    .allreduce_f64 = world_allreduce_f64,
    .reduce_with = world_reduce_with,
    .send = world_send,
    .recv = world_recv,
    .isend = world_isend,
    .irecv = world_irecv,
    .ireduce_with = world_ireduce_with,
    .iallgather = world_iallgather,
    .ialltoallv = world_ialltoallv,
    .test = world_test,
    .now_ns = world_now_ns,
    .abort = world_abort,
};

enum cct_status cct_world_mpi_open(int *argc, char ***argv, struct cct_world **world_out) {
  int provided;
  if (MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS || provided < MPI_THREAD_FUNNELED)
    return cct_fail(CCT_STOPPED, "MPI does not start with thread support");
  MPI_Comm comm; /* our own, so that no library that uses MPI too meets our messages */
  enum cct_status status = cct_mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  if (!status)
    status = world_new(comm, &mpi_ops, world_out);
  if (status)
    MPI_Finalize();
  return status;
}

void cct_world_mpi_close(struct cct_world *world) {
  if (!world)
    return;
  cct_mpi_free_sums();
  world_release(world);
  MPI_Finalize();
}

enum cct_status cct_world_mpi_local(const struct cct_world *world, int *rank_out, int *size_out) {
  MPI_Comm comm;
  enum cct_status status = cct_mpi_check(
      MPI_Comm_split_type(cct_mpi_comm(world), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm), "MPI_Comm_split_type");
  if (status)
    return status;
  MPI_Comm_rank(comm, rank_out);
  MPI_Comm_size(comm, size_out);
  MPI_Comm_free(&comm);
  return CCT_OK;
}

char *cct_world_mpi_version(char *out, size_t size) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  text[strcspn(text, ",\n")] = '\0';
  snprintf(out, size, "%s", text);
  return out;
}
