/* SPDX-License-Identifier: Apache-2.0
 * Experiments between GPUs; docs/probe.md names them. All ranks call each; what fails on one fails on all. */
#include <stdlib.h>

#include "workloads/backends/cuda/cuda_experiment.h"

static enum cct_status need_two(const struct cct_backend *backend) {
  return backend->world->size == 2 ? CCT_OK : cct_fail(CCT_UNSUPPORTED, "cuda: this experiment is between two ranks");
}

static enum cct_status open_all(struct cct_backend *backend, struct communicator **c_out) {
  const struct cct_group all = {.size = backend->world->size, .stride = 1};
  enum cct_status status = cct_cuda_communicator(backend, &all, -1, 0, c_out);
  return status ? status : cct_cuda_p2p_open(backend, *c_out);
}

/* ---- copies ---- */

enum kind { /* of p2p_copy, its second parameter */
  READ_CE,
  READ_SM,
  WRITE_CE,
  WRITE_SM,
};
static int is_write(enum kind kind) {
  return kind == WRITE_CE || kind == WRITE_SM;
}

struct pair { /* own memory, and the other rank's mapped here: what it reads from, or writes to */
  char *from, *to, *peer;
};

static enum cct_status pair_open(struct cct_backend *backend, size_t bytes, enum kind kind, struct pair *pair) {
  const struct cct_world *world = backend->world;
  cudaIpcMemHandle_t own, all[2];
  enum cct_status status = CCT_CUDA(cudaMalloc((void **)&pair->from, bytes));
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&pair->to, bytes));
  if (!status)
    status = CCT_CUDA(cct_kernel_random(pair->from, (int64_t)bytes, 1, backend->side));
  if (!status)
    status = cct_cuda_wait_stream(backend, backend->side);
  if (!status)
    status = CCT_CUDA(cudaIpcGetMemHandle(&own, is_write(kind) ? pair->to : pair->from));
  status = cct_cuda_agree(backend, status);
  if (!status)
    status = world->ops->allgather(world, &own, sizeof own, all);
  if (!status)
    status = CCT_CUDA(cudaIpcOpenMemHandle((void **)&pair->peer, all[1 - world->rank], cudaIpcMemLazyEnablePeerAccess));
  return cct_cuda_agree(backend, status);
}

static void pair_close(const struct cct_backend *backend, struct pair *pair) {
  if (pair->peer)
    cudaIpcCloseMemHandle(pair->peer);
  (void)backend->world->ops->barrier(backend->world); /* nobody frees what the other still has mapped */
  cudaFree(pair->from);
  cudaFree(pair->to);
}

static enum cct_status enqueue_copies(struct cct_backend *backend, const struct pair *pair, size_t bytes,
                                      enum kind kind, int n) {
  enum cct_status status = CCT_OK;
  char *to = is_write(kind) ? pair->peer : pair->to, *from = is_write(kind) ? pair->from : pair->peer;
  for (int i = 0; !status && i < n; i++)
    status = kind == READ_SM || kind == WRITE_SM
                 ? CCT_CUDA(cct_kernel_copy(to, from, (int64_t)bytes, 8 * backend->sms, backend->side))
                 : CCT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, backend->side));
  return status;
}

/* What is enqueued between the two is timed by the GPU's own clock; the spin lasts while the host queues it. */
static enum cct_status begin_timed(struct cct_backend *backend) {
  enum cct_status status = CCT_CUDA(cct_kernel_spin(1000000, backend->side));
  return status ? status : CCT_CUDA(cct_kernel_stamp(backend->ring, 0, backend->side));
}

static enum cct_status end_timed(struct cct_backend *backend, double *ns_out) {
  enum cct_status status = CCT_CUDA(cct_kernel_stamp(backend->ring, 1, backend->side));
  if (!status)
    status = cct_cuda_wait_stream(backend, backend->side);
  return status ? status : cct_cuda_stamps_between(backend, ns_out);
}

/* GB/s of copies on end, by the GPU's own clock; the first is not timed. */
static enum cct_status time_copies(struct cct_backend *backend, const struct pair *pair, size_t bytes, enum kind kind,
                                   double *gb_s_out) {
  int n = bytes > (size_t)256 << 20 ? 8 : bytes > (size_t)1 << 20 ? 16 : 100;
  double ns = 0;
  enum cct_status status = cct_cuda_stamps_reset(backend);
  if (!status)
    status = enqueue_copies(backend, pair, bytes, kind, 1);
  if (!status)
    status = begin_timed(backend);
  if (!status)
    status = enqueue_copies(backend, pair, bytes, kind, n);
  if (!status)
    status = end_timed(backend, &ns);
  if (!status)
    *gb_s_out = (double)bytes * n / ns;
  return status;
}

enum cct_status cct_cuda_run_p2p_copy(struct experiment *e) {
  struct cct_backend *backend = e->backend;
  const struct cct_world *world = backend->world;
  size_t bytes = (size_t)e->parameters[0] / 16 * 16;
  int ways = (int)e->parameters[2];
  struct pair pair = {NULL, NULL, NULL};
  double gb_s = 0;
  enum cct_status status = need_two(backend);
  if (!status && (e->parameters[1] > WRITE_SM || ways < 1 || ways > 2))
    status = cct_fail(CCT_USAGE, "cuda: p2p_copy/BYTES/KIND/WAYS: kind 0 to 3, 1 or 2 ways");
  if (status)
    return status;
  enum kind kind = (enum kind)(int)e->parameters[1];
  status = pair_open(backend, bytes, kind, &pair);
  if (!status && world->rank < ways)
    status = time_copies(backend, &pair, bytes, kind, &gb_s);
  status = cct_cuda_agree(backend, status);
  if (!status)
    status = world->ops->allreduce_f64(world, &gb_s, 1, CCT_REDUCE_SUM);
  pair_close(backend, &pair);
  give(e, gb_s);
  return status;
}

/* ---- short writes ---- */

enum cct_status cct_cuda_run_short_write(struct experiment *e) {
  struct cct_backend *backend = e->backend;
  const struct cct_world *world = backend->world;
  struct communicator *c = NULL;
  int n = (int)e->parameters[0];
  int64_t ns = 0;
  enum cct_status status = need_two(backend);
  if (status)
    return status;
  status = cct_cuda_agree(backend, open_all(backend, &c));
  for (int turn = 0; !status && turn < 2; turn++) { /* the first loads the kernel and opens the way */
    status = world->ops->barrier(world);
    if (!status)
      status = CCT_CUDA(cct_kernel_ping_pong(c->peers, n, backend->probe, backend->side));
    if (!status)
      status = cct_cuda_wait_stream(backend, backend->side);
  }
  if (!status)
    status = CCT_CUDA(cudaMemcpy(&ns, backend->probe, sizeof ns, cudaMemcpyDeviceToHost));
  give(e, (double)ns / n / 2e3);
  return cct_cuda_agree(backend, status);
}

/* ---- dispatch ---- */

/* Each is one kernel that ends when the peer's rows are here too, so that dispatches keep pace by themselves. */
static enum cct_status time_dispatch(struct cct_backend *backend, const struct cct_p2p_peers *peers, int64_t tokens,
                                     int64_t row_bytes, double *us_out) {
  enum {
    N = 20
  };
  double ns = 0;
  enum cct_status status = cct_cuda_stamps_reset(backend);
  for (int i = -1; !status && i < N; i++) {
    status = CCT_CUDA(
        cct_kernel_dispatch(peers, backend->probe, PROBE_BYTES, tokens, row_bytes, backend->sms, backend->side));
    if (!status && i < 0)
      status = begin_timed(backend);
  }
  if (!status)
    status = end_timed(backend, &ns);
  if (!status)
    *us_out = ns / 1e3 / N;
  return status;
}

enum cct_status cct_cuda_run_dispatch(struct experiment *e) {
  struct cct_backend *backend = e->backend;
  int64_t tokens = (int64_t)e->parameters[0], row_bytes = (int64_t)e->parameters[1];
  struct communicator *c = NULL;
  double us = 0;
  enum cct_status status = need_two(backend);
  if (!status &&
      (row_bytes < 16 || row_bytes % 16 || row_bytes > (int64_t)PROBE_BYTES || tokens > CCT_DISPATCH_BYTES / row_bytes))
    status =
        cct_fail(CCT_USAGE, "cuda: dispatch/TOKENS/BYTES: rows of a multiple of 16 bytes up to 1 MiB, 32 MiB together");
  if (status)
    return status;
  status = cct_cuda_agree(backend, open_all(backend, &c));
  if (!status)
    status = time_dispatch(backend, c->peers, tokens, row_bytes, &us);
  give(e, us);
  give(e, us > 0 ? (double)(tokens * row_bytes) / us / 1e3 : 0);
  return cct_cuda_agree(backend, status);
}

/* ---- reaching each other ---- */

enum cct_status cct_cuda_run_peer(struct experiment *e) {
  struct cct_backend *backend = e->backend;
  const struct cct_world *world = backend->world;
  cudaIpcMemHandle_t own = {{0}}, all[2];
  int gpus = 0, without = 0;
  void *peer = NULL;
  enum cct_status status = need_two(backend);
  if (status)
    return status;
  status = CCT_CUDA(cudaGetDeviceCount(&gpus));
  for (int i = 0; !status && i < gpus; i++)
    for (int j = 0; !status && j < i; j++) {
      int there = 0, back = 0;
      status = CCT_CUDA(cudaDeviceCanAccessPeer(&there, i, j));
      if (!status)
        status = CCT_CUDA(cudaDeviceCanAccessPeer(&back, j, i));
      without += !there || !back;
    }
  cudaError_t error = cudaIpcGetMemHandle(&own, backend->probe);
  enum cct_status met = world->ops->allgather(world, &own, sizeof own, all);
  status = cct_cuda_agree(backend, status ? status : met);
  if (!status && error == cudaSuccess)
    error = cudaIpcOpenMemHandle(&peer, all[1 - world->rank], cudaIpcMemLazyEnablePeerAccess);
  if (peer)
    cudaIpcCloseMemHandle(peer);
  (void)cudaGetLastError(); /* a refusal is the answer, not an error of what follows */
  give(e, without);
  give(e, (double)error);
  return cct_cuda_agree(backend, status);
}

enum cct_status cct_cuda_run_communicator(struct experiment *e) {
  const struct cct_backend *backend = e->backend;
  const struct cct_world *world = backend->world;
  ncclUniqueId id = {{0}};
  ncclComm_t comm = NULL;
  enum cct_status status = need_two(backend);
  if (status)
    return status;
  status = cct_cuda_agree(backend, world->rank ? CCT_OK : CCT_NCCL(ncclGetUniqueId(&id)));
  if (!status)
    status = world->ops->bcast(world, &id, sizeof id, 0);
  int64_t start_ns = cct_clock_ns();
  if (!status)
    status = CCT_NCCL(ncclCommInitRank(&comm, world->size, id, world->rank));
  give(e, (double)(cct_clock_ns() - start_ns));
  if (comm)
    (void)ncclCommDestroy(comm);
  return cct_cuda_agree(backend, status);
}
