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

static enum cct_status area_new(struct cct_p2p_area **area_out) {
  enum cct_status status = CCT_CUDA(cudaMalloc((void **)area_out, sizeof **area_out));
  return status ? status : cct_cuda_clear(*area_out, 0, offsetof(struct cct_p2p_area, data));
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

static enum cct_status map_areas(struct cct_backend *backend, struct communicator *c) {
  const struct cct_world *world = backend->world;
  struct handle own = {.rank = world->rank}, *all = calloc((size_t)world->size, sizeof *all);
  c->peers = calloc(1, sizeof *c->peers);
  enum cct_status status = all && c->peers ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  if (!status) {
    *c->peers = (struct cct_p2p_peers){.ranks = c->size, .rank = c->index, .limit_ns = backend->options.deadline_ns};
    if (c->peers->limit_ns <= 0)
      c->peers->limit_ns = 60000000000;
    status = area_new(&c->peers->area[c->index]);
  }
  if (!status && c->size > 1)
    status = CCT_CUDA(cudaIpcGetMemHandle(&own.ipc, c->peers->area[c->index]));
  enum cct_status met = all ? world->ops->allgather(world, &own, sizeof own, all) : CCT_NOMEM;
  status = status ? status : met;
  if (!status)
    status = map_peers(backend, c, all);
  free(all);
  return status;
}

static void unmap_peers(struct communicator *c) {
  for (int i = 0; i < c->size; i++) {
    if (c->opened[i])
      cudaIpcCloseMemHandle(c->opened[i]);
    c->opened[i] = NULL;
  }
}

enum cct_status cct_cuda_p2p_open(struct cct_backend *backend, struct communicator *c) {
  if (c->peers)
    return CCT_OK;
  if (c->size > CCT_P2P_RANKS)
    return cct_fail(CCT_UNSUPPORTED, "cuda: one-shot and two-shot all-reduces are for up to %d ranks, not %d",
                    CCT_P2P_RANKS, c->size);
  /* nobody uses an area before all have it zeroed and mapped; where one has not, nobody keeps any */
  enum cct_status status = cct_cuda_agree(backend, map_areas(backend, c));
  if (status) {
    unmap_peers(c);
    (void)backend->world->ops->barrier(backend->world); /* nobody frees what another still has mapped */
    cct_cuda_p2p_close(c);
  }
  return status;
}

void cct_cuda_p2p_close(struct communicator *c) {
  if (!c->peers)
    return;
  unmap_peers(c);
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
