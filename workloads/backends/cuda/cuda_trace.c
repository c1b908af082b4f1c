/* SPDX-License-Identifier: Apache-2.0
 * When each entry of a burst's last repetition ran, for an executor that was opened to be traced: kernels around each
 * entry of a GPU lane write %globaltimer, the host notes its own. They cost about two launches an entry, so a traced
 * burst is for order and attribution, never for a figure.
 *
 * %globaltimer becomes host time by an offset taken before each burst: a kernel's time minus the host's when it sees
 * it, the least of several trials. It errs by what a write takes to the host, under a microsecond, and never early. */
#include <stdlib.h>

#include "workloads/backends/cuda/cuda_room.h"

#define CLOCK_TRIALS 20

enum cct_status cct_cuda_trace_open(struct cct_executor *x) {
  size_t n = (size_t)x->program->n_ops + 1;
  if (!x->backend->options.is_traced)
    return CCT_OK;
  x->spans = calloc(n, sizeof *x->spans);
  if (!x->spans)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = CCT_CUDA(cudaMalloc((void **)&x->marks, 2 * n * sizeof *x->marks));
  return status ? status : cct_cuda_clear(x->marks, 0, 2 * n * sizeof *x->marks);
}

void cct_cuda_trace_close(struct cct_executor *x) {
  cudaFree(x->marks);
}

static enum cct_status read_clocks(struct cct_executor *x) {
  _Atomic int64_t *seen = NULL; /* written by the GPU */
  enum cct_status status = CCT_CUDA(cudaHostAlloc((void **)&seen, sizeof *seen, cudaHostAllocMapped));
  x->clock_ns = INT64_MAX;
  for (int trial = 0; !status && trial < CLOCK_TRIALS; trial++) {
    atomic_store(seen, 0);
    int64_t start_ns = cct_clock_ns();
    status = CCT_CUDA(cct_kernel_mark((int64_t *)seen, x->backend->side));
    while (!status && atomic_load(seen) == 0 && cct_clock_ns() - start_ns < 1000000000) {
    }
    int64_t ahead_ns = cct_clock_ns() - atomic_load(seen); /* read after it was seen: never early */
    if (!status && atomic_load(seen) == 0)
      status = cct_fail(CCT_STOPPED, "cuda: the GPU did not answer within a second");
    if (ahead_ns < x->clock_ns)
      x->clock_ns = ahead_ns;
    if (!status)
      status = cct_cuda_wait_stream(x->backend, x->backend->side);
  }
  cudaFreeHost((void *)seen);
  return status;
}

enum cct_status cct_cuda_trace_begin(struct cct_executor *x) {
  return x->spans ? read_clocks(x) : CCT_OK;
}

void cct_cuda_trace_host(struct cct_executor *x, int id, int64_t start_ns) {
  x->spans[id] = (struct cct_span){start_ns - x->start_ns, cct_clock_ns() - x->start_ns};
}

/* A GROUP's members go together, and have its span. */
enum cct_status cct_cuda_trace(struct cct_executor *x, int owned, struct cct_span *spans) {
  int n = x->program->n_ops, group = -1;
  if (owned != 0)
    return cct_fail(CCT_USAGE, "cuda: trace of owned rank %d: a process owns one", owned);
  if (!x->spans)
    return cct_fail(CCT_UNSUPPORTED, "cuda: the backend was not opened to be traced");
  int64_t *marks = malloc(2 * (size_t)n * sizeof *marks + 1);
  if (!marks)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = CCT_CUDA(cudaMemcpy(marks, x->marks, 2 * (size_t)n * sizeof *marks, cudaMemcpyDeviceToHost));
  for (int id = 0; !status && id < n; id++) {
    const struct cct_op *op = &x->program->ops[id];
    int64_t to_burst_ns = x->clock_ns - x->start_ns;
    group = op->kind == CCT_OP_GROUP ? id : op->kind == CCT_OP_END && op->end.opens == group ? -1 : group;
    if (op->kind == CCT_OP_PHASE || op->kind == CCT_OP_CASE || op->kind == CCT_OP_END ||
        !cct_op_is_performed(x->program, op, &(struct cct_binding){.slots = x->slots}))
      spans[id] = (struct cct_span){-1, -1};
    else if (group >= 0 && group != id)
      spans[id] = spans[group];
    else if (cct_cuda_is_host_entry(x->program, op))
      spans[id] = x->spans[id];
    else
      spans[id] = (struct cct_span){marks[2 * id] + to_burst_ns, marks[2 * id + 1] + to_burst_ns};
  }
  free(marks);
  return status;
}
