/* SPDX-License-Identifier: Apache-2.0
 * A sequence: each step is performed by a view of the executor, a copy that has the step's plan and slots, of which
 * VIEWS are taken in turn. The rank's own thread is the first host lane: between two steps it asks for the next
 * binding. What kernels read on the device comes in stream order, by a copy from the step's own pinned block. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workloads/backends/cuda/cuda_room.h"

/* ---- the blocks that bring a binding ---- */

/* What this binding copies, and what the program's buffers for it hold: later steps may copy that much. */
static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* As much as the binding in hand brings, and as the copy's buffers could hold. */
static int64_t carried_bytes(const struct cct_executor *x) {
  struct cct_binding binding = {.slots = x->slots};
  int64_t most = 0;
  for (int id = 0; id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    if (op->kind != CCT_OP_COPY || !op->copy.carries_binding)
      continue;
    most = larger(most, 8 * (int64_t)x->program->n_slots);
    if (cct_op_is_performed(x->program, op, &binding))
      most = larger(most, cct_quantity_value(op->copy.bytes, &binding));
    if (op->reads[0] >= 0)
      most = larger(most, cct_quantity_value(x->program->buffers[op->reads[0]].bytes, &binding));
    if (op->writes >= 0)
      most = larger(most, cct_quantity_value(x->program->buffers[op->writes].bytes, &binding));
  }
  return (most + 255) / 256 * 256;
}

enum cct_status cct_cuda_carrier_provide(struct cct_executor *x, int *grown_out) {
  int64_t bytes = carried_bytes(x);
  enum cct_status status = CCT_OK;
  *grown_out = bytes > x->carrier_bytes;
  if (!*grown_out)
    return CCT_OK;
  bytes = larger(bytes, 2 * x->carrier_bytes);
  for (int i = 0; i < VIEWS && !x->carried[i] && !status; i++)
    status = CCT_CUDA(cudaEventCreateWithFlags(&x->carried[i], cudaEventDisableTiming));
  if (x->carrier)
    cudaFreeHost(x->carrier);
  cudaFree(x->device_slots);
  x->carrier = NULL;
  x->device_slots = NULL;
  x->carrier_bytes = 0;
  if (!status)
    status = CCT_CUDA(cudaHostAlloc((void **)&x->carrier, (size_t)(VIEWS * bytes), cudaHostAllocDefault));
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&x->device_slots, (size_t)bytes));
  if (status)
    return status;
  memset(x->carrier, 0, (size_t)(VIEWS * bytes));
  x->carrier_bytes = bytes;
  return CCT_OK;
}

void cct_cuda_carrier_close(struct cct_executor *x) {
  if (x->carrier)
    cudaFreeHost(x->carrier);
  for (int i = 0; i < VIEWS; i++)
    if (x->carried[i])
      cudaEventDestroy(x->carried[i]);
}

enum cct_status cct_cuda_carried(struct cct_executor *x, cudaStream_t stream) {
  return x->is_in_sequence ? CCT_CUDA(cudaEventRecord(x->carried[x->block], stream)) : CCT_OK;
}

/* ---- steps ---- */

struct run {
  struct cct_executor *x;
  struct cct_sequence *sequence;
  struct cct_executor views[VIEWS];
  int64_t *slots;            /* of each view */
  struct last_unit *earlier; /* of each view, by lane */
  int64_t *binding_ns;       /* by step */
};

static void note_last(const struct cct_executor *view, struct last_unit *last, int step) {
  for (int lane = 0; lane < view->program->n_lanes; lane++)
    if (view->last_on_lane[lane] >= 0)
      last[lane] = (struct last_unit){view->last_on_lane[lane], step};
}

static enum cct_status bind_step(struct run *run, int step, const struct cct_binding *binding) {
  struct cct_executor *x = run->x, *view = &run->views[step % VIEWS];
  const struct cct_executor *before = step ? &run->views[(step - 1) % VIEWS] : NULL;
  size_t n_slots = (size_t)x->program->n_slots, n_lanes = (size_t)x->program->n_lanes;
  enum cct_status status = CCT_OK;
  if (!binding->slots)
    return cct_fail(CCT_USAGE, "cuda: %s: step %d of a sequence has no slots", x->program->name, step);
  if (x->carrier && step >= VIEWS) /* the GPU has read what the block held */
    status = cct_cuda_wait_event(x->backend, x->carried[step % VIEWS]);
  memcpy(view->slots, binding->slots, n_slots * sizeof *view->slots);
  if (x->carrier)
    memcpy(x->carrier + (step % VIEWS) * x->carrier_bytes, view->slots, n_slots * sizeof *view->slots);
  if (!status)
    status = cct_cuda_cache_plan(x, view, step, binding);
  if (status)
    return status;
  view->before = before ? before->plan : view->plan;
  struct last_unit *earlier = run->earlier + (size_t)(step % VIEWS) * n_lanes;
  view->earlier = earlier;
  if (before) {
    memcpy(earlier, before->earlier, n_lanes * sizeof *earlier);
    note_last(before, earlier, step - 1);
  }
  return CCT_OK;
}

static void idle_until(int64_t due_ns) {
  const int64_t wake_ns = 200000;
  for (int64_t left; (left = due_ns - cct_clock_ns()) > 0;)
    if (left > 2 * wake_ns) {
      int64_t nap_ns = left - wake_ns < 100000000 ? left - wake_ns : 100000000;
      nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
    }
}

/* Asks for the step; *is_over_out, or it is bound and the first lane may begin. */
static enum cct_status next_step(struct run *run, int step, int *is_over_out) {
  struct cct_executor *x = run->x;
  struct cct_sequence *sequence = run->sequence;
  struct cct_binding binding = {0};
  int64_t not_before_ns = 0, now_ns = cct_clock_ns() - x->start_ns;
  enum cct_status status = sequence->next(sequence->context, step, &now_ns, &binding, &not_before_ns, is_over_out);
  int64_t from_ns = cct_clock_ns();
  if (status || *is_over_out)
    return status;
  if (step >= sequence->most_steps || step == INT_MAX / (x->program->n_ops + 1))
    return cct_fail(CCT_USAGE, "cuda: %s: a sequence of more than %lld steps", x->program->name,
                    (long long)sequence->most_steps);
  status = bind_step(run, step, &binding);
  if (!status && x->hosts)
    cct_cuda_hosts_bound(x, step);
  run->binding_ns[step] = cct_clock_ns() - from_ns;
  if (!status && not_before_ns > 0)
    idle_until(x->start_ns + not_before_ns);
  return status;
}

static enum cct_status perform(struct run *run) {
  struct cct_executor *x = run->x;
  struct cct_sequence *sequence = run->sequence;
  enum cct_status status = CCT_OK;
  int is_over = 0, step = 0;
  if (x->hosts)
    cct_cuda_hosts_sequence(x, run->views, sequence);
  for (; !status; step++) {
    if (x->hosts)
      status = cct_cuda_hosts_await(x, step);
    if (!status)
      status = next_step(run, step, &is_over);
    if (status || is_over)
      break;
    status = x->hosts ? cct_cuda_hosts_step(x, step)
                      : cct_cuda_walk(&run->views[step % VIEWS], 0, x->program->n_ops, step, MODE_EAGER);
    if (!x->hosts)
      sequence->lane_end_ns[(int64_t)step * sequence->n_host_lanes] = cct_clock_ns() - x->start_ns;
  }
  if (x->hosts)
    status = cct_cuda_hosts_end(x, step, status);
  sequence->steps = step;
  return status;
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static enum cct_status nothing_to_do(struct cct_executor *x) { /* the GPU and NCCL go on by themselves */
  return x->hosts ? cct_cuda_hosts_status(x) : CCT_OK;
}

static int64_t lane_end(struct cct_executor *x, int owned, int lane, int64_t step) {
  (void)owned;
  return cct_cuda_hosts_lane_end(x, lane, step);
}

static enum cct_status prepare(struct run *run) {
  struct cct_executor *x = run->x;
  struct cct_sequence *sequence = run->sequence;
  size_t n_slots = (size_t)x->program->n_slots + 1, n_lanes = (size_t)x->program->n_lanes + 1;
  sequence->n_host_lanes = cct_job_host_lanes(x->job);
  sequence->progress = nothing_to_do;
  sequence->lane_end = lane_end;
  sequence->is_virtual = 0;
  sequence->steps = 0;
  sequence->binding_us = 0;
  for (int64_t i = 0; i < sequence->most_steps * sequence->n_host_lanes; i++)
    sequence->lane_end_ns[i] = -1;
  run->slots = calloc(VIEWS * n_slots, sizeof *run->slots);
  run->earlier = calloc(VIEWS * n_lanes, sizeof *run->earlier);
  run->binding_ns = calloc((size_t)sequence->most_steps + 1, sizeof *run->binding_ns);
  if (!run->slots || !run->earlier || !run->binding_ns)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = x->cache ? CCT_OK : cct_cuda_cache_open(x);
  if (status)
    return status;
  for (size_t i = 0; i < VIEWS * n_lanes; i++)
    run->earlier[i].id = -1;
  for (int i = 0; i < VIEWS; i++) {
    run->views[i] = *x;
    run->views[i].slots = run->slots + (size_t)i * n_slots;
    run->views[i].is_in_sequence = 1;
    run->views[i].block = i;
  }
  return CCT_OK;
}

enum cct_status cct_cuda_sequence(struct cct_executor *x, struct cct_sequence *sequence, struct cct_burst *burst) {
  struct run *run = calloc(1, sizeof *run);
  if (!run)
    return cct_fail(CCT_NOMEM, "out of memory");
  run->x = x;
  run->sequence = sequence;
  enum cct_status status = prepare(run);
  if (!status)
    status = cct_cuda_drain(x);
  if (!status)
    status = cct_cuda_trace_begin(x);
  if (status)
    goto out;
  for (int i = 0; i < VIEWS; i++)
    run->views[i].clock_ns = x->clock_ns;
  if (x->hosts)
    cct_cuda_hosts_begin(x, 0);
  atomic_store(&x->backend->waited_ns, 0);
  burst->start_ns = x->start_ns = cct_clock_ns();
  for (int i = 0; i < VIEWS; i++)
    run->views[i].start_ns = x->start_ns;
  status = perform(run);
  if (!status)
    status = cct_cuda_drain(x);
  burst->rank_ns[0] = cct_clock_ns() - x->start_ns;
  if (sequence->steps) {
    const struct cct_executor *last = &run->views[(sequence->steps - 1) % VIEWS];
    memcpy(x->slots, last->slots, (size_t)x->program->n_slots * sizeof *x->slots);
    qsort(run->binding_ns, (size_t)sequence->steps, sizeof *run->binding_ns, by_value);
    sequence->binding_us = (double)run->binding_ns[sequence->steps / 2] / 1e3;
  }
  x->is_bound = 0; /* the slots are the last step's, and those on the device */
out:
  free(run->slots);
  free(run->earlier);
  free(run->binding_ns);
  free(run);
  return status;
}
