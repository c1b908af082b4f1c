/* SPDX-License-Identifier: Apache-2.0
 * Communicators, one for each shape of group, choice and lane, and the operations on them. Byte counts are nccl-tests':
 * all-gather and reduce-scatter state the total, all-to-all what one rank sends. */
#include <stdlib.h>
#include <string.h>

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

/* NCCL_ALGO and NCCL_PROTO as a communicator finds them when it is born, and what they were before. */
struct variable {
  const char *name, *value;
  char *before;
};

static enum cct_status set_variables(struct variable *variables, int n) {
  int failed = 0;
  for (int i = 0; i < n; i++) {
    const char *before = getenv(variables[i].name);
    if (!*variables[i].value)
      continue;
    variables[i].before = before ? strdup(before) : NULL;
    failed |= (before && !variables[i].before) || setenv(variables[i].name, variables[i].value, 1);
  }
  return failed ? cct_fail(CCT_NOMEM, "out of memory") : CCT_OK;
}

static void restore_variables(struct variable *variables, int n) {
  for (int i = 0; i < n; i++) {
    if (*variables[i].value && variables[i].before)
      setenv(variables[i].name, variables[i].before, 1);
    else if (*variables[i].value)
      unsetenv(variables[i].name);
    free(variables[i].before);
  }
}

/* NCCL reads its algorithms and protocols at every communicator's birth; the channels are the communicator's own. */
static enum cct_status split(struct cct_backend *backend, const struct cct_group *group, int is_copying,
                             struct communicator *c) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  struct cct_choice choice;
  if (!cct_choice_parse(c->choice, &choice))
    return cct_fail(CCT_USAGE, "cuda: '%s' is no choice of a communicator's", c->choice);
  struct variable variables[] = {{"NCCL_ALGO", choice.algorithm, NULL}, {"NCCL_PROTO", choice.protocol, NULL}};
  config.CTAPolicy = is_copying ? NCCL_CTA_POLICY_ZERO : NCCL_CONFIG_UNDEF_INT;
  if (choice.channels)
    config.minCTAs = config.maxCTAs = choice.channels;
  enum cct_status status = set_variables(variables, 2);
  if (!status)
    status = CCT_NCCL(
        ncclCommSplit(backend->base, cct_group_member(group, backend->world->rank, 0), c->index, &c->comm, &config));
  restore_variables(variables, 2);
  return status;
}

enum cct_status cct_cuda_communicator(struct cct_backend *backend, const struct cct_group *group, int lane,
                                      int is_copying, struct communicator **communicator_out) {
  int is_base_free = group->size == backend->world->size && group->stride == 1 && !is_copying && !*group->choice;
  for (int i = 0; i < backend->n_communicators; i++) {
    struct communicator *c = &backend->communicators[i];
    if (c->size == group->size && c->stride == group->stride && !strcmp(c->choice, group->choice) && c->lane == lane &&
        c->is_copying == is_copying) {
      *communicator_out = c;
      return CCT_OK;
    }
    is_base_free &= c->comm != backend->base;
  }
  if (backend->n_communicators == MAX_COMMUNICATORS)
    return cct_fail(
        CCT_UNSUPPORTED,
        "cuda: more than %d groups, choices and lanes communicate in a block: spread the cells over several runs",
        MAX_COMMUNICATORS);
  enum cct_status status = backend->base ? CCT_OK : base_open(backend);
  int rank = backend->world->rank;
  struct communicator c = {.size = group->size,
                           .stride = group->stride,
                           .lane = lane,
                           .is_copying = is_copying,
                           .index = cct_group_index(group, rank)};
  memcpy(c.choice, group->choice, sizeof c.choice);
  if (!status && is_base_free)
    c.comm = backend->base;
  else if (!status)
    status = split(backend, group, is_copying, &c);
  if (status)
    return status;
  *communicator_out = &backend->communicators[backend->n_communicators];
  backend->communicators[backend->n_communicators++] = c;
  return CCT_OK;
}

static int group_of(const struct cct_op *op) {
  return op->kind == CCT_OP_COLLECTIVE                        ? op->collective.group
         : op->kind == CCT_OP_SEND || op->kind == CCT_OP_RECV ? op->p2p.group
                                                              : -1;
}

static int next_of(const struct cct_program *program, int id, int group, int lane) {
  for (id++; id < program->n_ops; id++)
    if (group_of(&program->ops[id]) == group && (lane < 0 || program->ops[id].lane == lane))
      return id;
  return -1;
}

/* Lanes can have their own communicators where all roles say the same on the same lanes, entry by entry. */
static int is_alike(const struct cct_job *job, int group) {
  const struct cct_program *a = job->roles[0].program;
  for (int r = 1; r < job->n_roles; r++) {
    const struct cct_program *b = job->roles[r].program;
    int i = next_of(a, -1, group, -1), j = next_of(b, -1, group, -1);
    while (i >= 0 && j >= 0 && a->ops[i].lane == b->ops[j].lane) {
      i = next_of(a, i, group, -1);
      j = next_of(b, j, group, -1);
    }
    if (i >= 0 || j >= 0)
      return 0;
  }
  return 1;
}

/* What `group` says on `lane`, -1: on any. Every rank opens the same in the same order, whatever its role. */
static enum cct_status open_for(struct cct_executor *x, int group, int lane) {
  int is_used = 0, is_p2p = 0, is_copying = 0;
  struct communicator *c = NULL;
  for (int r = 0; r < x->job->n_roles; r++) {
    const struct cct_program *program = x->job->roles[r].program;
    for (int id = -1; (id = next_of(program, id, group, lane)) >= 0;) {
      int buffer = program->ops[id].reads[0] >= 0 ? program->ops[id].reads[0] : program->ops[id].writes;
      is_used = 1;
      is_copying |= buffer >= 0 && program->buffers[buffer].registration == CCT_REGISTRATION_COPY_ENGINE;
      is_p2p |=
          program->ops[id].kind == CCT_OP_COLLECTIVE && program->ops[id].collective.algorithm != CCT_ALGORITHM_AUTO;
    }
  }
  if (!is_used)
    return CCT_OK;
  enum cct_status status = cct_cuda_communicator(x->backend, &x->job->groups[group], lane, is_copying, &c);
  if (!status && is_p2p)
    status = cct_cuda_p2p_open(x->backend, c);
  for (int id = -1; !status && (id = next_of(x->program, id, group, lane)) >= 0;)
    x->plan[id].communicator = c;
  x->has_p2p |= is_p2p;
  return status;
}

enum cct_status cct_cuda_communicators_open(struct cct_executor *x) {
  int most_lanes = 0;
  enum cct_status status = CCT_OK;
  for (int r = 0; r < x->job->n_roles; r++)
    most_lanes = x->job->roles[r].program->n_lanes > most_lanes ? x->job->roles[r].program->n_lanes : most_lanes;
  for (int g = 0; !status && g < x->job->n_groups; g++) {
    if (!is_alike(x->job, g)) {
      status = open_for(x, g, -1);
      continue;
    }
    for (int lane = 0; !status && lane < most_lanes; lane++)
      status = open_for(x, g, lane);
  }
  return status;
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
static enum cct_status all_to_all(const struct communicator *c, const struct planned *plan, int64_t moved,
                                  cudaStream_t stream) {
  const struct cct_matrix *matrix = plan->matrix;
  int64_t each = plan->bytes / c->size, sent = 0, received = 0;
  enum cct_status status = CCT_NCCL(ncclGroupStart());
  for (int peer = 0; !status && peer < c->size; peer++) {
    int64_t out = matrix ? matrix->bytes[c->index * matrix->n + peer] : each;
    int64_t in = matrix ? matrix->bytes[peer * matrix->n + c->index] : each;
    if (out)
      status = CCT_NCCL(ncclSend((char *)plan->in[0] + moved + sent, (size_t)out, ncclUint8, peer, c->comm, stream));
    if (!status && in)
      status = CCT_NCCL(ncclRecv((char *)plan->out + moved + received, (size_t)in, ncclUint8, peer, c->comm, stream));
    sent += out;
    received += in;
  }
  enum cct_status ended = CCT_NCCL(ncclGroupEnd());
  return status ? status : ended;
}

static enum cct_status p2p_reduce(const struct communicator *c, const struct cct_op *op, const struct planned *plan,
                                  int64_t moved, cudaStream_t stream) {
  enum cct_kernel_type type = op->collective.type == CCT_TYPE_FP32   ? CCT_KERNEL_FP32
                              : op->collective.type == CCT_TYPE_FP16 ? CCT_KERNEL_FP16
                                                                     : CCT_KERNEL_BF16;
  if (plan->bytes > CCT_P2P_LIMIT_BYTES || plan->bytes % 16)
    return cct_fail(CCT_UNSUPPORTED, "cuda: %s is for a multiple of 16 bytes up to %lld, not %lld",
                    cct_algorithm_name(op->collective.algorithm), (long long)CCT_P2P_LIMIT_BYTES,
                    (long long)plan->bytes);
  return CCT_CUDA(cct_kernel_p2p_reduce(c->peers, op->collective.algorithm == CCT_ALGORITHM_TWOSHOT, type,
                                        (char *)plan->in[0] + moved, (char *)plan->out + moved, plan->bytes, stream));
}

int64_t cct_cuda_moved(const struct planned *plan, int rep) {
  const struct turn *turn = &plan->turn;
  if (turn->steps < 2)
    return 0;
  return turn->size * (((int64_t)rep * turn->uses + turn->ordinal) % turn->steps - turn->ordinal % turn->steps);
}

int cct_cuda_is_in_place(const struct cct_op *op) {
  return op->reads[0] >= 0 && op->reads[0] == op->writes;
}

enum cct_status cct_cuda_collective(struct cct_executor *x, int id, int rep) {
  static const ncclRedOp_t reductions[CCT_REDUCTION_COUNT] = {[CCT_REDUCTION_SUM] = ncclSum,
                                                              [CCT_REDUCTION_PROD] = ncclProd,
                                                              [CCT_REDUCTION_MIN] = ncclMin,
                                                              [CCT_REDUCTION_MAX] = ncclMax,
                                                              [CCT_REDUCTION_AVG] = ncclAvg};
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  const struct communicator *c = plan->communicator;
  cudaStream_t stream = x->lanes[op->lane].stream;
  ncclDataType_t type;
  cct_cuda_nccl_type(op->collective.type, &type);
  int64_t bits = op->collective.type == CCT_TYPE_NVFP4 ? 8 : cct_type_bits(op->collective.type);
  size_t count = (size_t)(plan->bytes * 8 / bits), share = count / (size_t)c->size;
  int64_t moved = cct_cuda_moved(plan, rep);
  const void *in = (char *)plan->in[0] + moved;
  void *out = (char *)plan->out + moved;
  ncclRedOp_t reduction = reductions[op->collective.reduction];
  switch (op->collective.kind) {
  case CCT_COLL_ALL_REDUCE:
    if (op->collective.algorithm != CCT_ALGORITHM_AUTO)
      return p2p_reduce(c, op, plan, moved, stream);
    return CCT_NCCL(ncclAllReduce(in, out, count, type, reduction, c->comm, stream));
  case CCT_COLL_ALL_GATHER:
    return CCT_NCCL(ncclAllGather(in, out, share, type, c->comm, stream));
  case CCT_COLL_REDUCE_SCATTER:
    return CCT_NCCL(ncclReduceScatter(in, out, share, type, reduction, c->comm, stream));
  case CCT_COLL_BROADCAST:
    return CCT_NCCL(ncclBroadcast(in, out, count, type, op->collective.root, c->comm, stream));
  case CCT_COLL_REDUCE:
    return CCT_NCCL(ncclReduce(in, out, count, type, reduction, op->collective.root, c->comm, stream));
  default:
    return all_to_all(c, plan, moved, stream);
  }
}

static enum cct_status point_to_point(struct cct_executor *x, int id, int rep) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  const struct communicator *c = plan->communicator;
  cudaStream_t stream = x->lanes[op->lane].stream;
  int peer = ((c->index + op->p2p.peer_offset) % c->size + c->size) % c->size;
  int64_t moved = cct_cuda_moved(plan, rep);
  if (op->kind == CCT_OP_SEND)
    return CCT_NCCL(ncclSend((char *)plan->in[0] + moved, (size_t)plan->bytes, ncclUint8, peer, c->comm, stream));
  return CCT_NCCL(ncclRecv((char *)plan->out + moved, (size_t)plan->bytes, ncclUint8, peer, c->comm, stream));
}

enum cct_status cct_cuda_group(struct cct_executor *x, int id, int rep) {
  enum cct_status status = CCT_NCCL(ncclGroupStart());
  if (status)
    return status;
  for (int member = id + 1; !status && member < x->plan[id].end; member++)
    status = x->program->ops[member].kind == CCT_OP_COLLECTIVE ? cct_cuda_collective(x, member, rep)
                                                               : point_to_point(x, member, rep);
  enum cct_status ended = CCT_NCCL(ncclGroupEnd());
  return status ? status : ended;
}
