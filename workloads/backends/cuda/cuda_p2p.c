/* SPDX-License-Identifier: Apache-2.0
 * Memory that the ranks of a group map from each other by CUDA IPC, for all-reduces without NCCL: as serving engines do
 * it. One area a rank and group. */
#include <stdlib.h>
#include <string.h>

#include "workloads/backends/cuda/cuda_room.h"

struct handle { /* what a rank tells the others */
  cudaIpcMemHandle_t ipc;
  int rank;
};

static enum cct_status area_new(struct cct_backend *backend, struct cct_p2p_area **area_out) {
  enum cct_status status = CCT_CUDA(cudaMalloc((void **)area_out, sizeof **area_out));
  if (!status)
    status = CCT_CUDA(cudaMemset(*area_out, 0, offsetof(struct cct_p2p_area, data)));
  return status ? status : CCT_CUDA(cudaStreamSynchronize(backend->side));
}

static enum cct_status map_peers(struct cct_backend *backend, struct communicator *c, const struct handle *handles) {
  struct cct_group group = {.size = c->size, .stride = c->stride};
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < c->size; i++) {
    if (i == c->index)
      continue;
    int rank = cct_group_member(&group, backend->world->rank, i);
    status = CCT_CUDA(cudaIpcOpenMemHandle(&c->opened[i], handles[rank].ipc, cudaIpcMemLazyEnablePeerAccess));
    c->peers->area[i] = c->opened[i];
  }
  return status;
}

enum cct_status cct_cuda_p2p_open(struct cct_backend *backend, struct communicator *c) {
  if (c->peers)
    return CCT_OK;
  const struct cct_world *world = backend->world;
  if (c->size > CCT_P2P_RANKS)
    return cct_fail(CCT_UNSUPPORTED, "cuda: one-shot and two-shot all-reduces are for up to %d ranks, not %d",
                    CCT_P2P_RANKS, c->size);
  struct handle own = {.rank = world->rank}, *all = calloc((size_t)world->size, sizeof *all);
  c->peers = calloc(1, sizeof *c->peers);
  enum cct_status status = all && c->peers ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  if (!status) {
    *c->peers = (struct cct_p2p_peers){.ranks = c->size, .rank = c->index, .limit_ns = backend->options.deadline_ns};
    if (c->peers->limit_ns <= 0)
      c->peers->limit_ns = 60000000000;
    status = area_new(backend, &c->peers->area[c->index]);
  }
  if (!status && c->size > 1)
    status = CCT_CUDA(cudaIpcGetMemHandle(&own.ipc, c->peers->area[c->index]));
  enum cct_status met = all ? world->ops->allgather(world, &own, sizeof own, all) : CCT_NOMEM;
  status = status ? status : met;
  if (!status)
    status = map_peers(backend, c, all);
  met = world->ops->barrier(world); /* nobody uses an area before all have it zeroed and mapped */
  free(all);
  return status ? status : met;
}

void cct_cuda_p2p_close(struct communicator *c) {
  if (!c->peers)
    return;
  for (int i = 0; i < c->size; i++)
    if (c->opened[i])
      cudaIpcCloseMemHandle(c->opened[i]);
  cudaFree(c->peers->area[c->index]);
  free(c->peers);
  c->peers = NULL;
}

enum cct_status cct_cuda_p2p_check(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < x->backend->n_communicators; i++) {
    const struct communicator *c = &x->backend->communicators[i];
    uint32_t is_late = 0;
    if (!c->peers)
      continue;
    status = CCT_CUDA(cudaMemcpy(&is_late, &c->peers->area[c->index]->is_late, sizeof is_late, cudaMemcpyDeviceToHost));
    if (!status && is_late) {
      x->backend->is_dead = 1;
      status =
          cct_fail(CCT_STOPPED, "cuda: one of %d ranks did not come to an all-reduce within the deadline", c->size);
    }
  }
  return status;
}

/* ---- what the links themselves do ---- */

static enum cct_status open_all(struct cct_backend *backend, struct communicator **c_out) {
  const struct cct_group all = {.size = backend->world->size, .stride = 1};
  if (backend->world->size < 2)
    return cct_fail(CCT_UNSUPPORTED, "cuda: this experiment needs two ranks");
  enum cct_status status = cct_cuda_communicator(backend, &all, -1, 0, c_out);
  return status ? status : cct_cuda_p2p_open(backend, *c_out);
}

struct link_copy { /* between the own area and the next rank's */
  char *own, *peer;
  int64_t bytes;
  int by_kernel, is_read, sms;
};

static enum cct_status enqueue_copies(const struct link_copy *copy, int n, cudaStream_t stream) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < n; i++) {
    char *to = copy->is_read ? copy->own : copy->peer, *from = copy->is_read ? copy->peer : copy->own;
    status = copy->by_kernel ? CCT_CUDA(cct_kernel_copy(to, from, copy->bytes, 8 * copy->sms, stream))
                             : CCT_CUDA(cudaMemcpyAsync(to, from, (size_t)copy->bytes, cudaMemcpyDefault, stream));
  }
  return status;
}

/* GB/s of copies on end, by the GPU's own clock; the first is not timed. */
static enum cct_status time_copies(struct cct_backend *backend, const struct link_copy *copy, double *gb_s_out) {
  int n = (int)(((int64_t)512 << 20) / copy->bytes), n_stamps = 0;
  struct cct_stamp stamps[2];
  n = n < 10 ? 10 : n > 200 ? 200 : n;
  enum cct_status status = cct_cuda_stamps_reset(backend);
  if (!status)
    status = enqueue_copies(copy, 1, backend->side);
  if (!status)
    status = CCT_CUDA(cct_kernel_spin(2000000, backend->side)); /* while the host queues what follows */
  if (!status)
    status = CCT_CUDA(cct_kernel_stamp(backend->ring, 0, backend->side));
  if (!status)
    status = enqueue_copies(copy, n, backend->side);
  if (!status)
    status = CCT_CUDA(cct_kernel_stamp(backend->ring, 1, backend->side));
  if (!status)
    status = cct_cuda_wait_stream(backend, backend->side);
  if (!status)
    status = cct_cuda_stamps_read(backend, stamps, 2, &n_stamps);
  if (!status)
    *gb_s_out = (double)copy->bytes * n / (double)(stamps[1].ns - stamps[0].ns);
  return status;
}

/* Each way of copying by one rank after the other would take long with many: rank 0 alone, then all at once. */
enum cct_status cct_cuda_run_p2p_copy(struct experiment *e) {
  struct cct_backend *backend = e->backend;
  const struct cct_world *world = backend->world;
  struct communicator *c = NULL;
  enum cct_status status = open_all(backend, &c);
  if (status)
    return status;
  int64_t half = (int64_t)sizeof c->peers->area[0]->data / 2, bytes = (int64_t)e->parameters[0] / 16 * 16;
  bytes = bytes < 16 ? 16 : bytes > half ? half : bytes;
  struct link_copy copy = {.bytes = bytes, .sms = backend->sms};
  copy.own = (char *)c->peers->area[c->index]->data;
  copy.peer = (char *)c->peers->area[(c->index + 1) % c->size]->data + half;
  for (int way = 0; !status && way < 8; way++) {
    double gb_s = 0;
    int all_at_once = way >= 4;
    copy.is_read = way & 1;
    copy.by_kernel = (way & 2) != 0;
    status = world->ops->barrier(world);
    if (!status && (all_at_once || world->rank == 0))
      status = time_copies(backend, &copy, &gb_s);
    give(e, gb_s);
    enum cct_status met = world->ops->barrier(world);
    status = status ? status : met;
  }
  return status;
}

enum cct_status cct_cuda_run_ping_pong(struct experiment *e) {
  struct cct_backend *backend = e->backend;
  const struct cct_world *world = backend->world;
  struct communicator *c = NULL;
  int n = (int)e->parameters[0];
  int64_t *out = backend->probe, ns = 0;
  enum cct_status status = open_all(backend, &c);
  for (int turn = 0; !status && turn < 2; turn++) { /* the first loads the kernel and opens the way */
    status = world->ops->barrier(world);
    if (!status && c->index < 2)
      status = CCT_CUDA(cct_kernel_ping_pong(c->peers, n, out, backend->side));
    if (!status)
      status = cct_cuda_wait_stream(backend, backend->side);
  }
  if (!status)
    status = CCT_CUDA(cudaMemcpy(&ns, out, sizeof ns, cudaMemcpyDeviceToHost));
  give(e, c && c->index == 0 && n > 0 ? (double)ns / n / 2 : 0);
  return status;
}
