/* SPDX-License-Identifier: Apache-2.0
 * Communicators, one for each shape of group, and the operations on them. Byte counts are nccl-tests': all-gather and
 * reduce-scatter state the total, all-to-all what one rank sends. */
#include "workloads/backends/cuda/cuda_room.h"

int cct_cuda_nccl_type(enum cct_type type, ncclDataType_t *type_out) {
  static const ncclDataType_t types[CCT_TYPE_COUNT] = {
      [CCT_TYPE_FP32] = ncclFloat32,   [CCT_TYPE_BF16] = ncclBfloat16,       [CCT_TYPE_FP16] = ncclFloat16,
      [CCT_TYPE_FP8] = ncclFloat8e4m3, [CCT_TYPE_FP8_E5M2] = ncclFloat8e5m2, [CCT_TYPE_NVFP4] = ncclUint8,
      [CCT_TYPE_INT32] = ncclInt32,    [CCT_TYPE_INT8] = ncclInt8,
  };
  *type_out = types[type];
  return type != CCT_TYPE_NVFP4;
}

static enum cct_status base_open(struct cct_backend *backend) {
  const struct cct_world *world = backend->world;
  ncclUniqueId id = {{0}};
  enum cct_status status = world->rank == 0 ? CCT_NCCL(ncclGetUniqueId(&id)) : CCT_OK;
  enum cct_status met = world->ops->bcast(world, &id, sizeof id, 0);
  if (status || met)
    return status ? status : met;
  return CCT_NCCL(ncclCommInitRank(&backend->base, world->size, id, world->rank));
}

enum cct_status cct_cuda_communicator(struct cct_backend *backend, const struct cct_group *group,
                                      struct communicator **communicator_out) {
  for (int i = 0; i < backend->n_communicators; i++)
    if (backend->communicators[i].size == group->size && backend->communicators[i].stride == group->stride) {
      *communicator_out = &backend->communicators[i];
      return CCT_OK;
    }
  if (backend->n_communicators == MAX_COMMUNICATORS)
    return cct_fail(CCT_UNSUPPORTED, "cuda: more than %d group shapes in a block", MAX_COMMUNICATORS);
  enum cct_status status = backend->base ? CCT_OK : base_open(backend);
  int rank = backend->world->rank;
  struct communicator c = {.size = group->size, .stride = group->stride, .index = cct_group_index(group, rank)};
  if (!status && group->size == backend->world->size && group->stride == 1)
    c.comm = backend->base;
  else if (!status)
    status = CCT_NCCL(ncclCommSplit(backend->base, cct_group_member(group, rank, 0), c.index, &c.comm, NULL));
  if (status)
    return status;
  *communicator_out = &backend->communicators[backend->n_communicators];
  backend->communicators[backend->n_communicators++] = c;
  return CCT_OK;
}

void cct_cuda_communicators_close(struct cct_backend *backend) {
  for (int i = 0; i < backend->n_communicators; i++) {
    struct communicator *c = &backend->communicators[i];
    cct_cuda_p2p_close(c);
    if (c->comm && c->comm != backend->base)
      (void)ncclCommDestroy(c->comm);
  }
  if (backend->base)
    (void)ncclCommDestroy(backend->base);
  backend->base = NULL;
  backend->n_communicators = 0;
}

/* Pairwise exchange; with a matrix each pair has its own size. What a rank keeps is copied too, as NCCL's own does. */
static enum cct_status all_to_all(const struct communicator *c, const struct planned *plan, cudaStream_t stream) {
  const struct cct_matrix *matrix = plan->matrix;
  int64_t each = plan->bytes / c->size, sent = 0, received = 0;
  enum cct_status status = CCT_NCCL(ncclGroupStart());
  for (int peer = 0; !status && peer < c->size; peer++) {
    int64_t out = matrix ? matrix->bytes[c->index * matrix->n + peer] : each;
    int64_t in = matrix ? matrix->bytes[peer * matrix->n + c->index] : each;
    if (out)
      status = CCT_NCCL(ncclSend((char *)plan->in[0] + sent, (size_t)out, ncclUint8, peer, c->comm, stream));
    if (!status && in)
      status = CCT_NCCL(ncclRecv((char *)plan->out + received, (size_t)in, ncclUint8, peer, c->comm, stream));
    sent += out;
    received += in;
  }
  enum cct_status ended = CCT_NCCL(ncclGroupEnd());
  return status ? status : ended;
}

static enum cct_status p2p_reduce(const struct communicator *c, const struct cct_op *op, const struct planned *plan,
                                  cudaStream_t stream) {
  enum cct_kernel_type type = op->collective.type == CCT_TYPE_FP32   ? CCT_KERNEL_FP32
                              : op->collective.type == CCT_TYPE_FP16 ? CCT_KERNEL_FP16
                                                                     : CCT_KERNEL_BF16;
  return CCT_CUDA(cct_kernel_p2p_reduce(c->peers, op->collective.algorithm == CCT_ALGORITHM_TWOSHOT, type, plan->in[0],
                                        plan->out, plan->bytes, stream));
}

enum cct_status cct_cuda_collective(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  const struct communicator *c = x->by_group[op->collective.group];
  cudaStream_t stream = x->lanes[op->lane].stream;
  ncclDataType_t type;
  cct_cuda_nccl_type(op->collective.type, &type);
  int64_t bits = op->collective.type == CCT_TYPE_NVFP4 ? 8 : cct_type_bits(op->collective.type);
  size_t count = (size_t)(plan->bytes * 8 / bits), share = count / (size_t)c->size;
  const void *in = plan->in[0];
  void *out = plan->out;
  switch (op->collective.kind) {
  case CCT_COLL_ALL_REDUCE:
    if (op->collective.algorithm != CCT_ALGORITHM_AUTO)
      return p2p_reduce(c, op, plan, stream);
    return CCT_NCCL(ncclAllReduce(in, out, count, type, ncclSum, c->comm, stream));
  case CCT_COLL_ALL_GATHER:
    return CCT_NCCL(ncclAllGather(in, out, share, type, c->comm, stream));
  case CCT_COLL_REDUCE_SCATTER:
    return CCT_NCCL(ncclReduceScatter(in, out, share, type, ncclSum, c->comm, stream));
  case CCT_COLL_BROADCAST:
    return CCT_NCCL(ncclBroadcast(in, out, count, type, 0, c->comm, stream));
  case CCT_COLL_REDUCE:
    return CCT_NCCL(ncclReduce(in, out, count, type, ncclSum, 0, c->comm, stream));
  default:
    return all_to_all(c, plan, stream);
  }
}

static enum cct_status point_to_point(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  const struct communicator *c = x->by_group[op->p2p.group];
  cudaStream_t stream = x->lanes[op->lane].stream;
  int peer = ((c->index + op->p2p.peer_offset) % c->size + c->size) % c->size;
  if (op->kind == CCT_OP_SEND)
    return CCT_NCCL(ncclSend(plan->in[0], (size_t)plan->bytes, ncclUint8, peer, c->comm, stream));
  return CCT_NCCL(ncclRecv(plan->out, (size_t)plan->bytes, ncclUint8, peer, c->comm, stream));
}

enum cct_status cct_cuda_group(struct cct_executor *x, int id) {
  enum cct_status status = CCT_NCCL(ncclGroupStart());
  if (status)
    return status;
  for (int member = id + 1; !status && member < x->plan[id].end; member++)
    status =
        x->program->ops[member].kind == CCT_OP_COLLECTIVE ? cct_cuda_collective(x, member) : point_to_point(x, member);
  enum cct_status ended = CCT_NCCL(ncclGroupEnd());
  return status ? status : ended;
}
