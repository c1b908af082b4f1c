/* SPDX-License-Identifier: Apache-2.0
 * Times inside the GPU: the ring of stamps, operations measured alone, and what the kernel of a DELAY itself costs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/backends/cuda/cuda_room.h"

enum cct_status cct_cuda_stamps_reset(struct cct_backend *backend) {
  enum cct_status status = CCT_CUDA(cudaMemsetAsync(backend->ring, 0, sizeof backend->ring->count, backend->side));
  return status ? status : CCT_CUDA(cudaStreamSynchronize(backend->side));
}

enum cct_status cct_cuda_stamps_read(struct cct_backend *backend, struct cct_stamp *stamps, int max, int *n_out) {
  unsigned long long count = 0;
  enum cct_status status = CCT_CUDA(cudaMemcpy(&count, &backend->ring->count, sizeof count, cudaMemcpyDeviceToHost));
  int n = count < (unsigned long long)max ? (int)count : max;
  if (count > CCT_STAMP_CAPACITY)
    status = cct_fail(CCT_UNSUPPORTED, "cuda: %llu stamps in a step, and the ring keeps %d", count, CCT_STAMP_CAPACITY);
  if (!status && n)
    status = CCT_CUDA(cudaMemcpy(stamps, backend->ring->at, (size_t)n * sizeof *stamps, cudaMemcpyDeviceToHost));
  if (!status)
    *n_out = n;
  return status;
}

/* ---- an operation alone ---- */

#define ALONE_REPETITIONS 10
#define ALONE_BATCHES     5
#define FILL_NS           300000 /* holds the stream while the host queues what follows, so that the host is not measured */

struct alone {
  int id;
  int64_t spin_ns; /* id < 0: a spin kernel of so long instead of an operation */
  cudaStream_t stream;
  int repetitions;
};

static enum cct_status once(struct cct_executor *x, const struct alone *alone) {
  return alone->id < 0 ? CCT_CUDA(cct_kernel_spin(alone->spin_ns, alone->stream))
                       : cct_cuda_enqueue(x, alone->id, 0, MODE_EAGER);
}

/* The first one is not timed: in it the ranks meet. */
static enum cct_status enqueue_alone(struct cct_executor *x, struct cct_backend *backend, const struct alone *alone) {
  enum cct_status status = once(x, alone);
  if (!status)
    status = CCT_CUDA(cct_kernel_stamp(backend->ring, 0, alone->stream));
  for (int i = 0; !status && i < alone->repetitions; i++)
    status = once(x, alone);
  if (!status)
    status = CCT_CUDA(cct_kernel_stamp(backend->ring, 1, alone->stream));
  return status;
}

struct capture_context {
  struct cct_backend *backend;
  const struct alone *alone;
};

static enum cct_status enqueue_captured(struct cct_executor *x, void *context) {
  const struct capture_context *c = context;
  return enqueue_alone(x, c->backend, c->alone);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Median ns of one repetition, the GPU's time alone. */
static enum cct_status time_alone(struct cct_executor *x, struct cct_backend *backend, const struct alone *alone,
                                  int in_graph, double *ns_out) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  struct capture_context context = {backend, alone};
  enum cct_status status = CCT_OK;
  double batch_ns[ALONE_BATCHES];
  if (in_graph) {
    status = cct_cuda_capture(x, alone->stream, enqueue_captured, &context, &graph);
    if (!status)
      status = CCT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  }
  for (int batch = 0; !status && batch < ALONE_BATCHES; batch++) {
    struct cct_stamp stamps[2];
    int n = 0;
    status = cct_cuda_stamps_reset(backend);
    if (!status)
      status = CCT_CUDA(cct_kernel_spin(FILL_NS, alone->stream));
    if (!status)
      status = in_graph ? CCT_CUDA(cudaGraphLaunch(exec, alone->stream)) : enqueue_alone(x, backend, alone);
    if (!status)
      status = cct_cuda_wait_stream(backend, alone->stream);
    if (!status)
      status = cct_cuda_stamps_read(backend, stamps, 2, &n);
    if (!status)
      batch_ns[batch] = (double)(stamps[1].ns - stamps[0].ns) / alone->repetitions;
  }
  if (!status) {
    qsort(batch_ns, ALONE_BATCHES, sizeof *batch_ns, by_value);
    *ns_out = batch_ns[ALONE_BATCHES / 2];
  }
  if (exec)
    cudaGraphExecDestroy(exec);
  if (graph)
    cudaGraphDestroy(graph);
  return status;
}

enum cct_status cct_cuda_time_spin(struct cct_backend *backend, int64_t spin_ns, int in_graph, double *ns_out) {
  struct alone alone = {.id = -1, .spin_ns = spin_ns, .stream = backend->side, .repetitions = 50};
  return time_alone(NULL, backend, &alone, in_graph, ns_out);
}

enum cct_status cct_cuda_spin_cost(struct cct_backend *backend) {
  enum cct_status status = CCT_OK;
  for (int in_graph = 0; !status && in_graph < 2; in_graph++) {
    double ns = 0;
    status = cct_cuda_time_spin(backend, 10000, in_graph, &ns);
    backend->spin_cost_ns[in_graph] = ns > 10000 ? llround(ns) - 10000 : 0;
  }
  return status;
}

static struct clear_time *find(const struct cct_executor *x, int id) {
  uint64_t shape = cct_cuda_op_shape(x, id);
  struct clear_time *t = x->clear;
  while (t && t->shape != shape)
    t = t->next;
  return t;
}

int64_t cct_cuda_delay_ns(const struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  const struct clear_time *clear = op->delay.of >= 0 && op->delay.stretch > 0 ? find(x, op->delay.of) : NULL;
  return op->delay.ns + (clear ? llround(op->delay.stretch * clear->ns) : 0);
}

static int is_stretched(const struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  return op->kind == CCT_OP_DELAY && op->delay.of >= 0 && op->delay.stretch > 0;
}

int cct_cuda_delays_missing(const struct cct_executor *x) {
  int missing = 0;
  for (int id = 0; id < x->program->n_ops; id++)
    missing += is_stretched(x, id) && !find(x, x->program->ops[id].delay.of);
  return missing;
}

static enum cct_status measure(struct cct_executor *x, int id) {
  struct alone alone = {
      .id = id, .stream = x->lanes[x->program->ops[id].lane].stream, .repetitions = ALONE_REPETITIONS};
  double ns = 0;
  enum cct_status status = time_alone(x, x->backend, &alone, x->plan[id].in_graph, &ns);
  if (status || find(x, id))
    return status; /* the first measurement of a block stays: graphs hold it */
  struct clear_time *t = malloc(sizeof *t);
  if (!t)
    return cct_fail(CCT_NOMEM, "out of memory");
  *t = (struct clear_time){x->clear, cct_cuda_op_shape(x, id), ns};
  x->clear = t;
  return CCT_OK;
}

/* Every rank measures the same operations in the same order, whether it knows them already or not: members of a group
 * must meet in each. */
enum cct_status cct_cuda_delays_prepare(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  int n = x->program->n_ops;
  char *is_wanted = calloc((size_t)n + 1, 1);
  if (!is_wanted)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int id = 0; id < n; id++)
    if (is_stretched(x, id))
      is_wanted[x->program->ops[id].delay.of] = 1;
  for (int id = 0; !status && id < n; id++)
    if (is_wanted[id]) {
      int is_first = 1; /* of its shape */
      for (int before = 0; is_first && before < id; before++)
        is_first = !is_wanted[before] || cct_cuda_op_shape(x, before) != cct_cuda_op_shape(x, id);
      status = is_first ? measure(x, id) : CCT_OK;
    }
  for (int id = 0; id < n; id++)
    if (x->program->ops[id].kind == CCT_OP_DELAY)
      x->plan[id].delay_ns = cct_cuda_delay_ns(x, id);
  free(is_wanted);
  return status;
}

void cct_cuda_clear_release(struct cct_executor *x) {
  while (x->clear) {
    struct clear_time *t = x->clear;
    x->clear = t->next;
    free(t);
  }
}
