/* SPDX-License-Identifier: Apache-2.0
 * Performing a program: its entries enqueued in array order by the host, each on its lane's stream behind the events it
 * waits for. */
#include <time.h>

#include "workloads/backends/cuda/cuda_room.h"

static cudaEvent_t event_of(const struct cct_executor *x, int id, int rep) {
  return x->events[x->plan[id].event * x->events_each + rep % x->events_each];
}

static enum cct_status stream_waits(struct cct_executor *x, const struct planned *plan, cudaStream_t stream, int rep) {
  enum cct_status status = CCT_OK;
  for (int e = plan->first_edge; !status && e < plan->first_edge + plan->n_edges; e++) {
    const struct edge *edge = &x->edges[e];
    if ((edge->is_previous && rep == 0) || is_left_out(x, edge->op, edge->is_previous))
      continue;
    cudaEvent_t event = event_of(x, edge->op, rep - edge->is_previous);
    status = CCT_CUDA(cudaStreamWaitEvent(stream, event, 0));
  }
  return status;
}

static enum cct_status host_waits(struct cct_executor *x, const struct planned *plan, int rep) {
  enum cct_status status = CCT_OK;
  for (int e = plan->first_edge; !status && e < plan->first_edge + plan->n_edges; e++) {
    const struct edge *edge = &x->edges[e];
    if ((edge->is_previous && rep == 0) || is_left_out(x, edge->op, edge->is_previous))
      continue;
    status = cct_cuda_wait_event(x->backend, event_of(x, edge->op, rep - edge->is_previous));
  }
  return status;
}

/* With one host lane a SYNC waits for its whole stream. With more, another one may have added what stands behind the
 * SYNC: it waits for the lane's last operation before it, or of the steps before. */
static enum cct_status sync_lane(struct cct_executor *x, int id, int rep) {
  int lane = x->program->ops[id].lane;
  struct last_unit last = {x->plan[id].sync_before, rep};
  if (x->n_hosts == 1)
    return cct_cuda_wait_stream(x->backend, x->lanes[lane].stream);
  if (last.id < 0)
    last = x->earlier ? x->earlier[lane] : (struct last_unit){rep ? x->last_on_lane[lane] : -1, rep - 1};
  return last.id < 0 ? CCT_OK : cct_cuda_wait_event(x->backend, event_of(x, last.id, last.rep));
}

static enum cct_status record(struct cct_executor *x, int id, cudaStream_t stream, int rep) {
  return x->plan[id].event < 0 ? CCT_OK : CCT_CUDA(cudaEventRecord(event_of(x, id, rep), stream));
}

/* Being held is not computing: a long hold leaves the core to others, but for its end. */
static void host_hold(int64_t ns, int is_computing) {
  const int64_t wake_ns = 500000;
  int64_t until_ns = cct_clock_ns() + ns;
  for (int64_t left = ns; left > 0; left = until_ns - cct_clock_ns())
    if (!is_computing && left > 2 * wake_ns) {
      int64_t nap_ns = left - wake_ns < 1000000 ? left - wake_ns : 1000000;
      nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
    }
}

static enum cct_status delay(const struct planned *plan, cudaStream_t stream) {
  /* less than half the kernel's own cost is nearer to nothing than to one */
  if (2 * plan->delay_ns < plan->own_ns)
    return CCT_OK;
  return CCT_CUDA(cct_kernel_spin(plan->delay_ns > plan->own_ns ? plan->delay_ns - plan->own_ns : 0, stream));
}

/* What is not captured is sized by its step. */
static int blocks_of(const struct cct_executor *x, const struct planned *plan, struct cct_quantity q) {
  struct cct_binding binding = {.slots = x->slots};
  return plan->in_graph ? plan->blocks : cct_cuda_blocks(x->backend, cct_quantity_value(q, &binding));
}

static struct cct_device_bytes device_bytes(const struct cct_executor *x, struct cct_quantity q) {
  return (struct cct_device_bytes){q.base, q.per, q.slot, x->device_slots};
}

enum cct_status cct_cuda_enqueue(struct cct_executor *x, int id, int rep, enum mode mode) {
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
                                      blocks_of(x, plan, op->attention.kv_bytes), x->sink, stream));
  case CCT_OP_ELEMENTWISE:
    return CCT_CUDA(cct_kernel_elementwise(plan->in[0], plan->in_capacity, plan->out, plan->out_capacity,
                                           device_bytes(x, op->elementwise.bytes),
                                           blocks_of(x, plan, op->elementwise.bytes), stream));
  case CCT_OP_COLLECTIVE:
    return cct_cuda_collective(x, id, rep);
  case CCT_OP_GROUP:
    return cct_cuda_group(x, id, rep);
  case CCT_OP_COPY:
    return cct_cuda_copy(x, id);
  case CCT_OP_LAUNCH:
    return CCT_CUDA(cct_kernel_empty(stream));
  case CCT_OP_STAMP:
    return CCT_CUDA(cct_kernel_stamp(x->backend->ring, id, stream));
  case CCT_OP_DELAY:
    return mode == MODE_COUNT ? CCT_OK : delay(plan, stream);
  case CCT_OP_GRAPH:
    return CCT_CUDA(cudaGraphLaunch(plan->captured->exec, stream));
  default:
    return cct_fail(CCT_USAGE, "cuda: %s: entry %d '%s': %s cannot stand here", x->program->name, id, op->name,
                    cct_op_name(op->kind));
  }
}

int cct_cuda_streams(const struct cct_executor *x, int id, struct cct_quantity *bytes_out) {
  const struct cct_op *op = &x->program->ops[id];
  if (x->plan[id].is_out || x->plan[id].product)
    return 0;
  *bytes_out = op->kind == CCT_OP_ELEMENTWISE ? op->elementwise.bytes : op->attention.kv_bytes;
  return op->kind == CCT_OP_ELEMENTWISE || op->kind == CCT_OP_ATTENTION;
}

enum cct_status cct_cuda_host_entry(struct cct_executor *x, int id, int rep) {
  const struct cct_op *op = &x->program->ops[id];
  int64_t start_ns = x->spans ? cct_clock_ns() : 0;
  enum cct_status status = host_waits(x, &x->plan[id], rep);
  if (status)
    return status;
  if (op->kind != CCT_OP_SYNC)
    host_hold(op->kind == CCT_OP_HOSTWORK ? op->hostwork.ns : x->plan[id].delay_ns, op->kind == CCT_OP_HOSTWORK);
  else
    status = sync_lane(x, id, rep);
  if (x->spans)
    cct_cuda_trace_host(x, id, start_ns);
  return status;
}

int cct_cuda_is_host_entry(const struct cct_program *program, const struct cct_op *op) {
  return op->kind == CCT_OP_HOSTWORK || op->kind == CCT_OP_SYNC ||
         (op->kind == CCT_OP_DELAY && !is_gpu_lane(program, op->lane));
}

/* Traced, what streams also tells how much: the bytes it read on the device, in the ring of stamps. */
static enum cct_status note(struct cct_executor *x, int id, enum mode mode) {
  struct cct_quantity q;
  if (!x->marks || mode == MODE_COUNT || mode == MODE_WARM || !cct_cuda_streams(x, id, &q))
    return CCT_OK;
  return CCT_CUDA(cct_kernel_note(x->backend->ring, id, device_bytes(x, q), x->lanes[x->program->ops[id].lane].stream));
}

/* Nothing but its own kernels tells a traced entry's time. */
static enum cct_status mark(struct cct_executor *x, int id, int is_end, enum mode mode) {
  if (!x->marks || mode == MODE_COUNT || mode == MODE_WARM)
    return CCT_OK;
  return CCT_CUDA(cct_kernel_mark(&x->marks[2 * id + is_end], x->lanes[x->program->ops[id].lane].stream));
}

enum cct_status cct_cuda_unit(struct cct_executor *x, int id, int rep, enum mode mode) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  cudaStream_t stream = x->lanes[op->lane].stream;
  enum cct_status status = CCT_OK;
  if (op->kind == CCT_OP_COPY && op->copy.is_bounce)
    status = host_waits(x, plan, rep);
  else if (plan->n_edges && mode != MODE_COUNT)
    status = stream_waits(x, plan, stream, rep);
  if (!status)
    status = mark(x, id, 0, mode);
  if (!status)
    status = cct_cuda_enqueue(x, id, rep, mode);
  if (!status)
    status = mark(x, id, 1, mode);
  if (!status)
    status = note(x, id, mode);
  int last_covered = op->kind == CCT_OP_GROUP ? plan->end : id;
  for (int member = id; !status && mode != MODE_COUNT && member <= last_covered; member++)
    status = record(x, member, stream, rep);
  return status;
}

static int is_uncounted(const struct cct_op *op, enum mode mode) {
  return mode == MODE_COUNT && op->kind == CCT_OP_COPY &&
         (op->copy.is_blocking || op->copy.is_bounce || op->copy.memory == CCT_MEM_PAGEABLE);
}

enum cct_status cct_cuda_walk(struct cct_executor *x, int first, int last, int rep, enum mode mode) {
  enum cct_status status = CCT_OK;
  for (int id = first; !status && id < last; id++) {
    const struct cct_op *op = &x->program->ops[id];
    if (op->kind == CCT_OP_PHASE || op->kind == CCT_OP_CASE || op->kind == CCT_OP_END || x->plan[id].is_out ||
        is_uncounted(op, mode))
      continue;
    if (op->kind == CCT_OP_GRAPH && mode == MODE_WARM)
      continue;
    if (op->kind == CCT_OP_GRAPH && mode == MODE_COUNT) {
      id = x->plan[id].end;
      continue;
    }
    if (cct_cuda_is_host_entry(x->program, op))
      status = mode == MODE_COUNT ? CCT_OK : cct_cuda_host_entry(x, id, rep);
    else
      status = cct_cuda_unit(x, id, rep, mode);
    if (op->kind == CCT_OP_GROUP || op->kind == CCT_OP_GRAPH)
      id = x->plan[id].end;
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
