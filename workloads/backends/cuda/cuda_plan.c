/* SPDX-License-Identifier: Apache-2.0
 * Binding a program: the values of its slots, the operands' addresses, the waits that need an event, and whatever must
 * be measured or captured anew because a size changed. Nothing of this is timed. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "workloads/backends/cuda/cuda_room.h"

uint64_t cct_cuda_fold(uint64_t seed, uint64_t value) {
  return cct_random_fold(seed, value);
}

uint64_t cct_cuda_op_shape(const struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  uint64_t shape = cct_cuda_fold((uint64_t)op->kind, (uint64_t)plan->in_graph);
  /* ELEMENTWISE and streaming ATTENTION read their bytes from the slots on the device */
  if (op->kind != CCT_OP_ELEMENTWISE && (op->kind != CCT_OP_ATTENTION || plan->product))
    shape = cct_cuda_fold(cct_cuda_fold(shape, (uint64_t)plan->bytes), (uint64_t)plan->m);
  shape = cct_cuda_fold(shape, (uint64_t)plan->delay_ns);
  if (op->kind == CCT_OP_COLLECTIVE) {
    shape = cct_cuda_fold(shape, (uint64_t)op->collective.kind * 64 + (uint64_t)op->collective.group);
    shape = cct_cuda_fold(shape, (uint64_t)op->collective.type * 64 + (uint64_t)op->collective.algorithm);
    for (int i = 0; plan->matrix && i < plan->matrix->n * plan->matrix->n; i++)
      shape = cct_cuda_fold(shape, (uint64_t)plan->matrix->bytes[i]);
  }
  if (op->kind == CCT_OP_SEND || op->kind == CCT_OP_RECV)
    shape = cct_cuda_fold(shape, (uint64_t)op->p2p.group * 64 + (uint64_t)(unsigned)op->p2p.peer_offset);
  if (op->kind == CCT_OP_COPY && op->copy.direction == CCT_COPY_P2P)
    shape = cct_cuda_fold(shape, (uint64_t)op->copy.group * 64 + (uint64_t)op->copy.peer + 1);
  if (op->kind == CCT_OP_GROUP)
    for (int i = id + 1; i < plan->end; i++)
      shape = cct_cuda_fold(shape, cct_cuda_op_shape(x, i));
  return shape;
}

/* A wait needs an event when the lane's own order, or the host's, does not already give it. */
static int needs_event(const struct cct_program *program, const struct cct_op *op, const struct cct_op *target) {
  if (cct_cuda_is_host_entry(program, target) || target->kind == CCT_OP_PHASE || target->kind == CCT_OP_END)
    return 0;
  if (op->kind == CCT_OP_COPY && op->copy.is_bounce)
    return target->lane != op->lane;
  if (cct_cuda_is_host_entry(program, op))
    return op->kind != CCT_OP_SYNC || target->lane != op->lane;
  return target->lane != op->lane;
}

static void add_edge(struct cct_executor *x, int target, int is_previous) {
  x->edges[x->n_edges++] = (struct edge){target, is_previous};
  if (x->plan[target].event < 0)
    x->plan[target].event = x->n_events++;
}

static int has_cases(const struct cct_program *program) {
  for (int id = 0; id < program->n_ops; id++)
    if (program->ops[id].kind == CCT_OP_CASE)
      return 1;
  return 0;
}

/* Events of what a SYNC may find as its lane's last operation before it: with cases that can be any. */
static void add_sync_events(struct cct_executor *x, int sync) {
  const struct cct_op *ops = x->program->ops;
  int before = -1, last = -1, is_any = has_cases(x->program);
  for (int id = 0; id < x->program->n_ops; id++)
    if (is_unit(x, id) && ops[id].lane == ops[sync].lane) {
      before = id < sync ? id : before;
      last = id;
      if (is_any && x->plan[id].event < 0)
        x->plan[id].event = x->n_events++;
    }
  int target = before >= 0 ? before : last;
  if (target >= 0 && x->plan[target].event < 0)
    x->plan[target].event = x->n_events++;
}

/* What each SYNC finds so, and what the next step's will. */
static void plan_syncs(struct cct_executor *x) {
  for (int lane = 0; lane < x->program->n_lanes; lane++)
    x->last_on_lane[lane] = -1;
  for (int id = 0; id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    if (x->plan[id].is_out)
      continue;
    if (op->kind == CCT_OP_SYNC)
      x->plan[id].sync_before = x->last_on_lane[op->lane];
    else if (is_unit(x, id))
      x->last_on_lane[op->lane] = id;
  }
}

static void plan_brackets(struct cct_executor *x) {
  const struct cct_program *program = x->program;
  int open[64], depth = 0, graphs = 0, groups = 0;
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    struct planned *plan = &x->plan[id];
    plan->event = -1;
    plan->in_graph = graphs > 0;
    plan->in_group = groups > 0;
    if ((op->kind == CCT_OP_GRAPH || op->kind == CCT_OP_PHASE || op->kind == CCT_OP_GROUP || op->kind == CCT_OP_CASE) &&
        depth < 64) {
      open[depth++] = id;
      graphs += op->kind == CCT_OP_GRAPH;
      groups += op->kind == CCT_OP_GROUP;
    } else if (op->kind == CCT_OP_END && depth > 0) {
      int opened = open[--depth];
      x->plan[opened].end = id;
      graphs -= program->ops[opened].kind == CCT_OP_GRAPH;
      groups -= program->ops[opened].kind == CCT_OP_GROUP;
    }
  }
}

enum cct_status cct_cuda_plan_edges(struct cct_executor *x) {
  const struct cct_program *program = x->program;
  x->last_on_lane = calloc((size_t)program->n_lanes + 1, sizeof *x->last_on_lane);
  x->edges = calloc((size_t)(program->n_waits + program->n_ops) + 1, sizeof *x->edges);
  if (!x->edges || !x->last_on_lane)
    return cct_fail(CCT_NOMEM, "out of memory");
  plan_brackets(x);
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    struct planned *plan = &x->plan[id];
    plan->first_edge = x->n_edges;
    for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
      const struct cct_wait *wait = &program->waits[w];
      if (needs_event(program, op, &program->ops[wait->id]))
        add_edge(x, wait->id, wait->is_previous);
    }
    if (op->kind == CCT_OP_SYNC && x->n_hosts > 1)
      add_sync_events(x, id);
    plan->n_edges = x->n_edges - plan->first_edge;
  }
  x->events_each = x->n_hosts > 1 ? VIEWS : 2;
  x->events = calloc((size_t)(x->n_events * x->events_each) + 1, sizeof *x->events);
  if (!x->events)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < x->n_events * x->events_each; i++)
    status = CCT_CUDA(cudaEventCreateWithFlags(&x->events[i], cudaEventDisableTiming));
  return status;
}

int cct_cuda_blocks(const struct cct_backend *backend, int64_t bytes) {
  int64_t blocks = bytes / (256 * 16 * 4) + 1, most = 8 * backend->sms; /* 256 threads, 4 loads of 16 bytes each */
  return (int)(blocks < most ? blocks : most);
}

/* The edge of the square bf16 product that has `flops`, a multiple of 128. */
static int square_edge(double flops) {
  int edge = (int)(cbrt(flops / 2) / 128 + 0.5) * 128;
  return edge < 128 ? 128 : edge;
}

/* Attention is bound by its arithmetic when it does more than this for a byte of KV cache: between what one H200 and
 * one B200 can (206 and 281 flop a byte in dense bf16). It then is a square product of as many flops, which tensor
 * cores run at about the rate that fused attention reaches. */
#define ATTENTION_FLOPS_PER_BYTE 240.0

int cct_cuda_attention_edge(double flops, int64_t kv_bytes) {
  return flops > ATTENTION_FLOPS_PER_BYTE * (double)kv_bytes ? square_edge(flops) : 0;
}

static void bind_values(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  struct planned *plan = &x->plan[id];
  struct cct_binding binding = {x->slots, x->matrices};
  switch (op->kind) {
  case CCT_OP_GEMM:
    plan->m = cct_quantity_value(op->gemm.m, &binding);
    break;
  case CCT_OP_ATTENTION: {
    double flops = (double)cct_quantity_value(op->attention.flops, &binding);
    plan->bytes = cct_quantity_value(op->attention.kv_bytes, &binding);
    plan->product = cct_cuda_attention_edge(flops, plan->bytes);
    plan->m = plan->product;
    plan->blocks = cct_cuda_blocks(x->backend, plan->in_graph ? INT64_MAX / 2 : plan->bytes);
    break;
  }
  case CCT_OP_ELEMENTWISE:
    plan->bytes = cct_quantity_value(op->elementwise.bytes, &binding);
    plan->blocks = cct_cuda_blocks(x->backend, plan->bytes);
    break;
  case CCT_OP_COLLECTIVE:
    plan->bytes = cct_quantity_value(op->collective.bytes, &binding);
    if (op->collective.kind == CCT_COLL_ALL_TO_ALLV && op->collective.matrix >= 0 && x->matrices)
      plan->matrix = &x->matrices[op->collective.matrix];
    break;
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    plan->bytes = cct_quantity_value(op->p2p.bytes, &binding);
    break;
  case CCT_OP_COPY:
    plan->bytes = cct_quantity_value(op->copy.bytes, &binding);
    plan->blocks = cct_cuda_blocks(x->backend, plan->bytes);
    break;
  case CCT_OP_DELAY:
    cct_cuda_delay_plan(x, id);
    break;
  default:
    break;
  }
}

static enum cct_status copy_matrices(struct cct_executor *x, const struct cct_binding *binding, int *changed) {
  for (int i = 0; i < x->program->n_matrices; i++) {
    const struct cct_matrix *from = &binding->matrices[i];
    struct cct_matrix *to = &x->matrices[i];
    size_t n = (size_t)(from->n * from->n) * sizeof *from->bytes;
    if (to->n == from->n && memcmp(to->bytes, from->bytes, n) == 0)
      continue;
    int64_t *bytes = realloc(to->bytes, n ? n : 1);
    if (!bytes)
      return cct_fail(CCT_NOMEM, "out of memory");
    memcpy(bytes, from->bytes, n);
    *to = (struct cct_matrix){from->n, bytes};
    *changed = 1;
  }
  return CCT_OK;
}

static enum cct_status take_binding(struct cct_executor *x, const struct cct_binding *binding, int *changed_out) {
  int changed = !x->is_bound;
  for (int i = 0; i < x->program->n_slots; i++) {
    int64_t value = binding && binding->slots ? binding->slots[i] : x->program->slots[i].value;
    changed |= value != x->slots[i];
    x->slots[i] = value;
  }
  enum cct_status status = CCT_OK;
  if (binding && binding->matrices && x->program->n_matrices) {
    if (!x->matrices)
      x->matrices = calloc((size_t)x->program->n_matrices, sizeof *x->matrices);
    status = x->matrices ? copy_matrices(x, binding, &changed) : cct_fail(CCT_NOMEM, "out of memory");
  }
  *changed_out = changed;
  return status;
}

void cct_cuda_plan_values(struct cct_executor *x) {
  struct cct_binding binding = {x->slots, x->matrices};
  for (int id = 0; id < x->program->n_ops; id++) {
    struct planned *plan = &x->plan[id];
    plan->is_out = !cct_op_is_performed(x->program, &x->program->ops[id], &binding);
    plan->bytes = plan->m = plan->delay_ns = plan->product = 0;
    plan->captured = NULL;
    if (!plan->is_out)
      bind_values(x, id);
  }
  plan_syncs(x);
}

enum cct_status cct_cuda_plan_entries(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  for (int id = 0; !status && id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    enum cct_op_kind kind = op->kind;
    if (x->plan[id].is_out)
      continue;
    if (kind == CCT_OP_COLLECTIVE && op->collective.algorithm != CCT_ALGORITHM_AUTO &&
        (x->plan[id].bytes > CCT_P2P_LIMIT_BYTES || x->plan[id].bytes % 16))
      status = cct_fail(CCT_UNSUPPORTED,
                        "cuda: %s: entry %d '%s': %s is for multiples of 16 bytes up to %lld, not %lld: use nccl",
                        x->program->name, id, op->name, cct_algorithm_name(op->collective.algorithm),
                        (long long)CCT_P2P_LIMIT_BYTES, (long long)x->plan[id].bytes);
    else if (kind == CCT_OP_GEMM || (kind == CCT_OP_ATTENTION && x->plan[id].product))
      status = cct_cuda_gemm_prepare(x, id);
    else if (kind == CCT_OP_COPY)
      status = cct_cuda_bounce_prepare(x, id);
  }
  return status;
}

static enum cct_status plan_all(struct cct_executor *x) {
  cct_cuda_plan_values(x);
  enum cct_status status = cct_cuda_allocate(x);
  if (!status)
    status = cct_cuda_plan_entries(x);
  if (!status && x->carrier)
    memcpy(x->carrier, x->slots, (size_t)x->program->n_slots * sizeof *x->slots);
  if (!status && x->program->n_slots)
    status = cct_cuda_upload(x->device_slots, x->slots, (size_t)x->program->n_slots * sizeof *x->slots);
  return status;
}

/* Of the lowest rank that failed, for those that did not: each has to say why it does not go on. */
static enum cct_status give_reason(const struct cct_world *world, enum cct_status own, enum cct_status worst) {
  char reason[160];
  int64_t first = own ? world->rank : INT_MAX;
  snprintf(reason, sizeof reason, "%s", cct_log_last());
  enum cct_status met = world->ops->allreduce_i64(world, &first, 1, CCT_REDUCE_MIN);
  if (!met)
    met = world->ops->bcast(world, reason, sizeof reason, (int)first);
  return own ? own : met ? met : cct_fail(worst, "%s", reason);
}

/* All ranks go on, or none. `*most` becomes the greatest over the ranks. */
static enum cct_status agree(const struct cct_backend *backend, enum cct_status status, int *most) {
  const struct cct_world *world = backend->world;
  int64_t values[2] = {status, *most};
  if (world->size > 1) {
    enum cct_status met = world->ops->allreduce_i64(world, values, 2, CCT_REDUCE_MAX);
    if (met)
      return met;
  }
  *most = (int)values[1];
  return values[0] ? give_reason(world, status, (enum cct_status)values[0]) : CCT_OK;
}

enum cct_status cct_cuda_agree(const struct cct_backend *backend, enum cct_status status) {
  int nothing = 0;
  return agree(backend, status, &nothing);
}

static enum cct_status bind(struct cct_executor *x, const struct cct_binding *binding) {
  const struct cct_backend *backend = x->backend;
  int changed = 0;
  enum cct_status status = take_binding(x, binding, &changed);
  if (!status && changed)
    status = plan_all(x);
  status = agree(backend, status, &changed);
  if (status || !changed)
    return status;
  if (cct_cuda_windows_wanted(x)) {
    status = cct_cuda_agree(backend, cct_cuda_windows_open(x));
    if (status)
      return status;
  }
  int must = !x->is_warm || cct_cuda_delays_missing(x) || cct_cuda_graphs_missing(x);
  status = agree(backend, CCT_OK, &must);
  if (status || !must)
    return status;
  status = cct_cuda_walk(x, 0, x->program->n_ops, 0, MODE_WARM);
  if (!status)
    status = cct_cuda_drain(x);
  x->is_warm = 1;
  if (!status)
    status = cct_cuda_delays_prepare(x);
  if (!status)
    status = cct_cuda_graphs_prepare(x);
  return cct_cuda_agree(backend, status);
}

enum cct_status cct_cuda_bind(struct cct_executor *x, const struct cct_binding *binding) {
  enum cct_status status = bind(x, binding);
  x->is_bound = !status; /* the slots are taken, and nothing may be as they want it: the same binding is tried anew */
  return status;
}
