/* SPDX-License-Identifier: Apache-2.0
 * Buffers that p2p copies read in other ranks' memory, mapped by CUDA IPC: between GPUs over NVLink or PCIe, between
 * two processes of one GPU inside it. A rank maps what its own copies name. */
#include <stdlib.h>
#include <string.h>

#include "workloads/backends/cuda/cuda_room.h"

static int is_peer_copy(const struct cct_op *op) {
  return op->kind == CCT_OP_COPY && op->copy.direction == CCT_COPY_P2P;
}

int cct_cuda_window_is_read(const struct cct_executor *x, int buffer) {
  for (int r = 0; r < x->job->n_roles; r++) {
    const struct cct_program *program = x->job->roles[r].program;
    for (int id = 0; id < program->n_ops; id++)
      if (is_peer_copy(&program->ops[id]) && program->ops[id].reads[0] == buffer)
        return 1;
  }
  return 0;
}

static int n_read(const struct cct_executor *x) {
  int n = 0;
  for (int i = 0; i < x->program->n_buffers; i++)
    n += cct_cuda_window_is_read(x, i);
  return n;
}

int cct_cuda_windows_wanted(const struct cct_executor *x) {
  return !x->windows && (n_read(x) || cct_cuda_window_is_read(x, -1));
}

struct offer { /* a rank's buffer, for others to map */
  cudaIpcMemHandle_t ipc;
  int64_t bytes;
};

static struct window *find(const struct cct_executor *x, int rank, int buffer) {
  for (int i = 0; i < x->n_windows; i++)
    if (x->windows[i].rank == rank && x->windows[i].buffer == buffer)
      return &x->windows[i];
  return NULL;
}

/* What the driver refuses for good is the cell's; its note of it must not meet the next launch. */
static enum cct_status shared(const struct cct_executor *x, cudaError_t error, int rank, int buffer) {
  if (error == cudaSuccess)
    return CCT_OK;
  if (error != cudaErrorNotSupported && error != cudaErrorPeerAccessUnsupported && error != cudaErrorInvalidValue)
    return cct_cuda_failed(error, "CUDA IPC");
  (void)cudaGetLastError();
  return cct_fail(CCT_UNSUPPORTED,
                  "cuda: no CUDA IPC here (error %d): rank %d may not %s '%s' of rank %d: copy through the host",
                  (int)error, x->rank, rank == x->rank ? "share" : "map", x->program->buffers[buffer].name, rank);
}

/* `of` is the buffer's offer. */
static enum cct_status map(struct cct_executor *x, int rank, int buffer, const struct offer *of) {
  struct window w = {.rank = rank, .buffer = buffer, .at = x->buffers[buffer].at, .bytes = x->buffers[buffer].bytes};
  enum cct_status status = CCT_OK;
  if (rank != x->rank) {
    status = shared(x, cudaIpcOpenMemHandle(&w.at, of->ipc, cudaIpcMemLazyEnablePeerAccess), rank, buffer);
    w.bytes = of->bytes;
    w.is_mapped = 1;
  }
  if (!status)
    x->windows[x->n_windows++] = w;
  return status;
}

/* Offers are in the order of buffers, which all roles have alike where they are read (program_check.c). */
static enum cct_status offer_all(const struct cct_executor *x, struct offer *own) {
  enum cct_status status =
      cct_cuda_window_is_read(x, -1)
          ? cct_fail(CCT_UNSUPPORTED, "cuda: %s: a copy from another's memory names no buffer", x->program->name)
          : CCT_OK;
  for (int i = 0, n = 0; !status && i < x->program->n_buffers; i++) {
    if (!cct_cuda_window_is_read(x, i))
      continue;
    own[n].bytes = x->buffers[i].bytes;
    status = shared(x, cudaIpcGetMemHandle(&own[n++].ipc, x->buffers[i].at), x->rank, i);
  }
  return status;
}

enum cct_status cct_cuda_windows_open(struct cct_executor *x) {
  const struct cct_world *world = x->backend->world;
  int n = n_read(x);
  struct offer *own = calloc((size_t)n + 1, sizeof *own);
  struct offer *all = calloc((size_t)(n * world->size) + 1, sizeof *all);
  x->windows = calloc((size_t)x->program->n_ops + 1, sizeof *x->windows);
  enum cct_status status = own && all && x->windows ? offer_all(x, own) : cct_fail(CCT_NOMEM, "out of memory");
  status = cct_cuda_agree(x->backend, status);
  if (!status)
    status = world->ops->allgather(world, own, (size_t)n * sizeof *own, all);
  for (int id = 0; !status && id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    if (!is_peer_copy(op))
      continue;
    int rank = cct_op_peer(x->job, op, x->rank), buffer = op->reads[0], place = 0;
    for (int i = 0; i < buffer; i++)
      place += cct_cuda_window_is_read(x, i);
    if (!find(x, rank, buffer))
      status = map(x, rank, buffer, &all[rank * n + place]);
    if (!status)
      status = cct_cuda_window_place(x, id);
  }
  free(own);
  free(all);
  return status;
}

enum cct_status cct_cuda_window_place(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  const struct window *w =
      x->windows && is_peer_copy(op) ? find(x, cct_op_peer(x->job, op, x->rank), op->reads[0]) : NULL;
  if (!w)
    return CCT_OK;
  x->plan[id].in[0] = w->at;
  x->plan[id].in_capacity = w->bytes;
  return x->plan[id].bytes <= w->bytes
             ? CCT_OK
             : cct_fail(CCT_UNSUPPORTED,
                        "cuda: entry %d '%s' of rank %d reads %lld bytes, and '%s' of rank %d has %lld", id, op->name,
                        x->rank, (long long)x->plan[id].bytes, x->program->buffers[w->buffer].name, w->rank,
                        (long long)w->bytes);
}

void cct_cuda_windows_close(struct cct_executor *x) {
  if (!x->windows)
    return;
  for (int i = 0; i < x->n_windows; i++)
    if (x->windows[i].is_mapped)
      cudaIpcCloseMemHandle(x->windows[i].at);
  (void)x->backend->world->ops->barrier(x->backend->world); /* nobody frees what another still has mapped */
  free(x->windows);
  x->windows = NULL;
}
