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

enum cct_status cct_cuda_stamps_between(struct cct_backend *backend, double *ns_out) {
  struct cct_stamp stamps[3]; /* one more than there may be */
  int n = 0;
  enum cct_status status = cct_cuda_stamps_read(backend, stamps, 3, &n);
  if (!status && n != 2)
    status = cct_fail(CCT_STOPPED, "cuda: %d stamps where 2 were written", n);
  if (!status)
    *ns_out = (double)(stamps[1].ns - stamps[0].ns);
  return status;
}

/* ---- an operation alone ---- */

#define ALONE_REPETITIONS 10
#define ALONE_BATCHES     7
#define FILL_NS           500000 /* holds the stream while the host queues what follows, so that the host is not measured */

struct alone {
  int id;          /* -1: a kernel of the backend's own that fills the GPU, instead of an operation */
  int64_t spin_ns; /* a spin kernel of so long behind it; -1: none */
  cudaStream_t stream;
  int repetitions;
};

static enum cct_status once(struct cct_executor *x, struct cct_backend *backend, const struct alone *alone) {
  enum cct_status status = alone->id < 0 ? CCT_CUDA(cct_kernel_random(backend->probe, PROBE_BYTES, 1, alone->stream))
                                         : cct_cuda_enqueue(x, alone->id, 0, MODE_EAGER);
  if (!status && alone->spin_ns >= 0)
    status = CCT_CUDA(cct_kernel_spin(alone->spin_ns, alone->stream));
  return status;
}

/* The first one is not timed: in it the ranks meet. */
static enum cct_status enqueue_alone(struct cct_executor *x, struct cct_backend *backend, const struct alone *alone) {
  enum cct_status status = once(x, backend, alone);
  if (!status)
    status = CCT_CUDA(cct_kernel_stamp(backend->ring, 0, alone->stream));
  for (int i = 0; !status && i < alone->repetitions; i++)
    status = once(x, backend, alone);
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
    batch_ns[batch] = 0;
    status = cct_cuda_stamps_reset(backend);
    if (!status)
      status = CCT_CUDA(cct_kernel_spin(FILL_NS, alone->stream));
    if (!status)
      status = in_graph ? CCT_CUDA(cudaGraphLaunch(exec, alone->stream)) : enqueue_alone(x, backend, alone);
    if (!status)
      status = cct_cuda_wait_stream(backend, alone->stream);
    if (!status)
      status = cct_cuda_stamps_between(backend, &batch_ns[batch]);
    batch_ns[batch] /= alone->repetitions;
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

/* Two spins on end would hide what a spin costs behind a kernel that fills the GPU, where a DELAY stands. */
enum cct_status cct_cuda_time_spin(struct cct_backend *backend, int64_t spin_ns, int in_graph, double *ns_out) {
  struct alone alone = {.id = -1, .spin_ns = -1, .stream = backend->side, .repetitions = 30};
  double without_ns = 0, with_ns = 0;
  enum cct_status status = time_alone(NULL, backend, &alone, in_graph, &without_ns);
  alone.spin_ns = spin_ns;
  if (!status)
    status = time_alone(NULL, backend, &alone, in_graph, &with_ns);
  if (!status)
    *ns_out = with_ns - without_ns;
  return status;
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

/* ---- what a DELAY stands behind ---- */

static const struct cct_matrix *matrix_of(const struct cct_executor *x, int id) {
  return x->program->ops[id].kind == CCT_OP_COLLECTIVE ? x->plan[id].matrix : NULL;
}

/* An exchange whose matrix changes is one shape whatever its matrix: its time is fitted. */
static uint64_t clear_shape(const struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  if (!matrix_of(x, id))
    return cct_cuda_op_shape(x, id);
  return cct_cuda_fold(cct_cuda_fold((uint64_t)op->kind, (uint64_t)x->plan[id].in_graph),
                       (uint64_t)op->collective.group * 64 + (uint64_t)op->lane + 1);
}

static uint64_t family(const struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  if (op->kind == CCT_OP_COPY)
    return cct_cuda_fold((uint64_t)op->copy.direction + 1, (uint64_t)op->kind);
  if (op->kind != CCT_OP_COLLECTIVE || matrix_of(x, id))
    return 0;
  uint64_t of = cct_cuda_fold((uint64_t)op->collective.kind * 64 + (uint64_t)op->collective.group + 1,
                              (uint64_t)x->plan[id].in_graph);
  return cct_cuda_fold(of, (uint64_t)op->collective.type * 64 + (uint64_t)op->collective.algorithm);
}

static struct clear_time *find(const struct cct_executor *x, int id) {
  uint64_t shape = clear_shape(x, id);
  struct clear_time *t = x->clear;
  while (t && t->shape != shape)
    t = t->next;
  return t;
}

/* As measured; in a sequence, which stops for no measurement, between the nearest sizes that were, or as the nearest.
 */
static int clear_of(const struct cct_executor *x, int id, struct clear_time *out) {
  const struct clear_time *exact = find(x, id), *below = NULL, *above = NULL;
  uint64_t of = family(x, id);
  int64_t bytes = x->plan[id].bytes;
  if (exact) {
    *out = *exact;
    return 1;
  }
  for (const struct clear_time *t = x->clear; x->is_in_sequence && of && t; t = t->next) {
    if (t->family == of && t->bytes <= bytes && (!below || t->bytes > below->bytes))
      below = t;
    if (t->family == of && t->bytes >= bytes && (!above || t->bytes < above->bytes))
      above = t;
  }
  if (!below && !above)
    return 0;
  *out = below ? *below : *above;
  if (below && above && above->bytes > below->bytes)
    out->ns += (above->ns - below->ns) * (double)(bytes - below->bytes) / (double)(above->bytes - below->bytes);
  return 1;
}

void cct_cuda_delay_plan(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  struct planned *plan = &x->plan[id];
  struct clear_time clear;
  plan->delay_ns = op->delay.ns;
  plan->own_ns = is_gpu_lane(x->program, op->lane) ? x->backend->spin_cost_ns[plan->in_graph] : 0;
  if (op->delay.of < 0 || !clear_of(x, op->delay.of, &clear))
    return;
  const struct cct_matrix *matrix = matrix_of(x, op->delay.of);
  double ns = clear.ns + (matrix ? clear.ns_per_byte * cct_busiest_bytes(matrix) : 0);
  plan->delay_ns += llround(op->delay.stretch * ns);
  plan->own_ns = clear.own_ns;
}

static int is_behind(const struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  return op->kind == CCT_OP_DELAY && !x->plan[id].is_out && op->delay.of >= 0 && is_gpu_lane(x->program, op->lane);
}

int cct_cuda_delays_missing(const struct cct_executor *x) {
  int missing = 0;
  struct clear_time clear;
  for (int id = 0; id < x->program->n_ops; id++)
    missing += is_behind(x, id) && !clear_of(x, x->program->ops[id].delay.of, &clear);
  return missing;
}

static enum cct_status time_op(struct cct_executor *x, int id, int64_t spin_ns, double *ns_out) {
  struct alone alone = {.id = id,
                        .spin_ns = spin_ns,
                        .stream = x->lanes[x->program->ops[id].lane].stream,
                        .repetitions = ALONE_REPETITIONS};
  return time_alone(x, x->backend, &alone, x->plan[id].in_graph, ns_out);
}

/* The least squares line through the times of the matrix made 1, 2, 4 and 8 times smaller: whatever the matrix of a
 * later step is, its busiest member's bytes give its time. */
static enum cct_status fit_exchange(struct cct_executor *x, int id, struct clear_time *t) {
  struct planned *plan = &x->plan[id];
  const struct cct_matrix *whole = plan->matrix;
  size_t n = (size_t)(whole->n * whole->n);
  struct cct_matrix part = {whole->n, malloc(n * sizeof *part.bytes)};
  double sum_b = 0, sum_t = 0, sum_bb = 0, sum_bt = 0;
  enum cct_status status = part.bytes ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (int divisor = 1; !status && divisor <= 8; divisor *= 2) {
    for (size_t i = 0; i < n; i++)
      part.bytes[i] = whole->bytes[i] / divisor / 16 * 16;
    plan->matrix = &part;
    double bytes = cct_busiest_bytes(&part), ns = 0;
    status = time_op(x, id, -1, &ns);
    sum_b += bytes;
    sum_t += ns;
    sum_bb += bytes * bytes;
    sum_bt += bytes * ns;
  }
  plan->matrix = whole;
  free(part.bytes);
  double spread = 4 * sum_bb - sum_b * sum_b;
  t->ns_per_byte = spread > 0 ? fmax(0, (4 * sum_bt - sum_b * sum_t) / spread) : 0;
  t->ns = (sum_t - t->ns_per_byte * sum_b) / 4;
  return status;
}

/* The own cost of a DELAY's kernel differs with what it stands behind: it is what the two together take more than the
 * operation and the wanted time. */
static enum cct_status measure(struct cct_executor *x, int id) {
  const int64_t spin_ns = 10000;
  struct clear_time t = {.shape = clear_shape(x, id), .family = family(x, id), .bytes = x->plan[id].bytes};
  double alone_ns = 0, with_ns = 0;
  enum cct_status status = time_op(x, id, -1, &alone_ns);
  if (!status)
    status = time_op(x, id, spin_ns, &with_ns);
  t.ns = alone_ns;
  if (!status && matrix_of(x, id))
    status = fit_exchange(x, id, &t);
  if (status || find(x, id))
    return status; /* the first measurement of a block stays: graphs hold it */
  t.own_ns = with_ns - alone_ns > (double)spin_ns ? llround(with_ns - alone_ns) - spin_ns : 0;
  t.next = x->clear;
  struct clear_time *kept = malloc(sizeof *kept);
  if (!kept)
    return cct_fail(CCT_NOMEM, "out of memory");
  *kept = t;
  x->clear = kept;
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
    if (is_behind(x, id))
      is_wanted[x->program->ops[id].delay.of] = 1;
  for (int id = 0; !status && id < n; id++)
    if (is_wanted[id]) {
      int is_first = 1; /* of its shape */
      for (int before = 0; is_first && before < id; before++)
        is_first = !is_wanted[before] || clear_shape(x, before) != clear_shape(x, id);
      status = is_first ? measure(x, id) : CCT_OK;
    }
  for (int id = 0; id < n; id++)
    if (x->program->ops[id].kind == CCT_OP_DELAY && !x->plan[id].is_out)
      cct_cuda_delay_plan(x, id);
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
