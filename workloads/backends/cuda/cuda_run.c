/* SPDX-License-Identifier: Apache-2.0
 * Performing a program: its entries enqueued in array order by the host, each on its lane's stream behind the events it
 * waits for. */
#include "workloads/backends/cuda/cuda_room.h"

static enum cct_status stream_waits(struct cct_executor *x, const struct planned *plan, cudaStream_t stream, int rep) {
  enum cct_status status = CCT_OK;
  for (int e = plan->first_edge; !status && e < plan->first_edge + plan->n_edges; e++) {
    const struct edge *edge = &x->edges[e];
    if (edge->is_previous && rep == 0)
      continue;
    cudaEvent_t event = x->events[x->plan[edge->op].event][(rep + edge->is_previous) & 1];
    status = CCT_CUDA(cudaStreamWaitEvent(stream, event, 0));
  }
  return status;
}

static enum cct_status host_waits(struct cct_executor *x, const struct planned *plan, int rep) {
  enum cct_status status = CCT_OK;
  for (int e = plan->first_edge; !status && e < plan->first_edge + plan->n_edges; e++) {
    const struct edge *edge = &x->edges[e];
    if (edge->is_previous && rep == 0)
      continue;
    status = cct_cuda_wait_event(x->backend, x->events[x->plan[edge->op].event][(rep + edge->is_previous) & 1]);
  }
  return status;
}

static enum cct_status record(struct cct_executor *x, int id, cudaStream_t stream, int rep) {
  int event = x->plan[id].event;
  return event < 0 ? CCT_OK : CCT_CUDA(cudaEventRecord(x->events[event][rep & 1], stream));
}

static void host_spin(int64_t ns) {
  int64_t start_ns = cct_clock_ns();
  while (cct_clock_ns() - start_ns < ns) {
  }
}

static enum cct_status delay(struct cct_executor *x, const struct planned *plan, cudaStream_t stream) {
  int64_t ns = plan->delay_ns - x->backend->spin_cost_ns[plan->in_graph];
  /* less than half the kernel's own cost is nearer to nothing than to one */
  if (2 * plan->delay_ns < x->backend->spin_cost_ns[plan->in_graph])
    return CCT_OK;
  return CCT_CUDA(cct_kernel_spin(ns > 0 ? ns : 0, stream));
}

static struct cct_device_bytes device_bytes(const struct cct_executor *x, struct cct_quantity q) {
  return (struct cct_device_bytes){q.base, q.per, q.slot, x->device_slots};
}

enum cct_status cct_cuda_enqueue(struct cct_executor *x, int id, int rep, enum mode mode) {
  (void)rep;
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  cudaStream_t stream = x->lanes[op->lane].stream;
  switch (op->kind) {
  case CCT_OP_GEMM:
    return cct_cuda_gemm(x, id);
  case CCT_OP_ATTENTION:
    if (plan->product)
      return cct_cuda_attention_product(x, id);
    return CCT_CUDA(cct_kernel_stream(plan->in[0], plan->in_capacity, device_bytes(x, op->attention.kv_bytes),
                                      plan->blocks, x->sink, stream));
  case CCT_OP_ELEMENTWISE:
    return CCT_CUDA(cct_kernel_elementwise(plan->in[0], plan->in_capacity, plan->out, plan->out_capacity,
                                           device_bytes(x, op->elementwise.bytes), plan->blocks, stream));
  case CCT_OP_COLLECTIVE:
    return cct_cuda_collective(x, id);
  case CCT_OP_GROUP:
    return cct_cuda_group(x, id);
  case CCT_OP_COPY:
    return cct_cuda_copy(x, id);
  case CCT_OP_LAUNCH:
    return CCT_CUDA(cct_kernel_empty(stream));
  case CCT_OP_STAMP:
    return CCT_CUDA(cct_kernel_stamp(x->backend->ring, id, stream));
  case CCT_OP_DELAY:
    return mode == MODE_COUNT ? CCT_OK : delay(x, plan, stream);
  case CCT_OP_GRAPH:
    return CCT_CUDA(cudaGraphLaunch(plan->captured->exec, stream));
  default:
    return cct_fail(CCT_USAGE, "cuda: %s: entry %d '%s': %s cannot stand here", x->program->name, id, op->name,
                    cct_op_name(op->kind));
  }
}

static enum cct_status host_entry(struct cct_executor *x, int id, int rep) {
  const struct cct_op *op = &x->program->ops[id];
  enum cct_status status = host_waits(x, &x->plan[id], rep);
  if (status)
    return status;
  if (op->kind == CCT_OP_SYNC)
    return cct_cuda_wait_stream(x->backend, x->lanes[op->lane].stream);
  host_spin(op->kind == CCT_OP_HOSTWORK ? op->hostwork.ns : x->plan[id].delay_ns);
  return CCT_OK;
}

static int is_host_entry(const struct cct_executor *x, const struct cct_op *op) {
  return op->kind == CCT_OP_HOSTWORK || op->kind == CCT_OP_SYNC || !is_gpu_lane(x->program, op->lane);
}

static int is_left_out(const struct cct_op *op, enum mode mode) {
  return mode == MODE_COUNT && op->kind == CCT_OP_COPY &&
         (op->copy.is_blocking || op->copy.is_bounce || op->copy.memory == CCT_MEM_PAGEABLE);
}

enum cct_status cct_cuda_walk(struct cct_executor *x, int first, int last, int rep, enum mode mode) {
  enum cct_status status = CCT_OK;
  for (int id = first; !status && id < last; id++) {
    const struct cct_op *op = &x->program->ops[id];
    struct planned *plan = &x->plan[id];
    if (op->kind == CCT_OP_PHASE || op->kind == CCT_OP_END || is_left_out(op, mode))
      continue;
    if (op->kind == CCT_OP_GRAPH && mode == MODE_WARM)
      continue;
    if (op->kind == CCT_OP_GRAPH && mode == MODE_COUNT) {
      id = plan->end;
      continue;
    }
    if (is_host_entry(x, op)) {
      status = mode == MODE_COUNT ? CCT_OK : host_entry(x, id, rep);
      continue;
    }
    cudaStream_t stream = x->lanes[op->lane].stream;
    if (op->kind == CCT_OP_COPY && op->copy.is_bounce)
      status = host_waits(x, plan, rep);
    else if (plan->n_edges && mode != MODE_COUNT)
      status = stream_waits(x, plan, stream, rep);
    if (!status)
      status = cct_cuda_enqueue(x, id, rep, mode);
    int last_covered = op->kind == CCT_OP_GROUP || op->kind == CCT_OP_GRAPH ? plan->end : id;
    for (int member = id; !status && mode != MODE_COUNT && member <= last_covered; member++)
      if (member == id || op->kind == CCT_OP_GROUP)
        status = record(x, member, stream, rep);
    id = last_covered;
  }
  return status;
}

enum cct_status cct_cuda_drain(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < x->program->n_lanes; i++)
    if (x->lanes[i].stream)
      status = cct_cuda_wait_stream(x->backend, x->lanes[i].stream);
  if (!status && x->has_p2p)
    status = cct_cuda_p2p_check(x);
  return status;
}
