/* SPDX-License-Identifier: Apache-2.0
 * Does a DELAY on one lane leave a product that fills the GPU on another alone? Where it does not, what is emulated
 * costs more than it stands for: the ratio is a drift fact, by which a block is marked (report/remarks.h). */
#include <stdlib.h>

#include "workloads/backends/cuda/cuda_experiment.h"

#define PAIRS       9      /* in turns, so that both meet the same clocks and heat */
#define FILL_NS     200000 /* holds the lane while the host queues what is timed */
#define LEAST_EDGE  1024
#define MOST_EDGE   8192
#define TILE        32768 /* elements of the result that a thread block computes, in cuBLAS' largest */
#define WAVES       8     /* of thread blocks over all SMs, so that the last one's gaps are small */
#define LEFT_FACTOR 4     /* of the memory that the operands take there must be so many times as much */

struct beside {
  struct cct_backend *backend;
  struct cct_cuda_product product;
  cudaStream_t other;
};

static int edge_of(const struct cct_backend *backend) {
  int edge = LEAST_EDGE;
  while (edge < MOST_EDGE && (int64_t)edge * edge < (int64_t)TILE * WAVES * backend->sms)
    edge *= 2;
  return edge;
}

/* The product's own time by the GPU's clock; `spin_ns` 0: nothing runs beside it. */
static enum cct_status time_product(struct beside *b, int64_t spin_ns, double *ns_out) {
  struct cct_backend *backend = b->backend;
  enum cct_status status = cct_cuda_stamps_reset(backend);
  if (!status && spin_ns)
    status = CCT_CUDA(cct_kernel_spin(spin_ns, b->other));
  if (!status)
    status = CCT_CUDA(cct_kernel_spin(FILL_NS, backend->side));
  if (!status)
    status = CCT_CUDA(cct_kernel_stamp(backend->ring, 0, backend->side));
  if (!status)
    status = cct_cuda_product(&b->product, 0);
  if (!status)
    status = CCT_CUDA(cct_kernel_stamp(backend->ring, 1, backend->side));
  if (!status)
    status = cct_cuda_wait_stream(backend, backend->side);
  if (!status)
    status = cct_cuda_wait_stream(backend, b->other);
  if (!status)
    status = cct_cuda_stamps_between(backend, ns_out);
  return status;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static enum cct_status compare(struct beside *b, double *ratio_out) {
  double ratios[PAIRS], alone_ns = 0, beside_ns = 0;
  enum cct_status status = time_product(b, 0, &alone_ns); /* loads the kernels */
  for (int i = 0; !status && i < PAIRS; i++) {
    status = time_product(b, 0, &alone_ns);
    if (!status) /* over before the product: one that rests behind it lets the next product alone clock higher */
      status = time_product(b, FILL_NS + (int64_t)(0.8 * alone_ns), &beside_ns);
    ratios[i] = alone_ns > 0 ? beside_ns / alone_ns : 0;
  }
  if (status)
    return status;
  qsort(ratios, PAIRS, sizeof *ratios, by_value);
  *ratio_out = ratios[PAIRS / 2];
  return CCT_OK;
}

enum cct_status cct_cuda_beside(struct cct_backend *backend, double *ratio_out) {
  struct beside b = {.backend = backend};
  size_t left = 0, all = 0, edge = (size_t)edge_of(backend);
  enum cct_status status = CCT_CUDA(cudaMemGetInfo(&left, &all));
  *ratio_out = 0;
  if (status || left / LEFT_FACTOR < 6 * edge * edge)
    return status; /* a GPU that is full already cannot be asked */
  status = cct_cuda_product_open(backend, (int)edge, (int)edge, (int)edge, 1, &b.product);
  if (!status)
    status = CCT_CUDA(cudaStreamCreateWithFlags(&b.other, cudaStreamNonBlocking));
  if (!status)
    status = compare(&b, ratio_out);
  cct_cuda_product_close(&b.product);
  if (b.other)
    cudaStreamDestroy(b.other);
  return status;
}
