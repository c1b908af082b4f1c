/* SPDX-License-Identifier: Apache-2.0
 * Does a DELAY on one lane leave a product that fills the GPU on another alone? Where it does not, what is emulated
 * costs more than it stands for: the ratio is a drift fact, by which a block is marked (report/remarks.h). */
#include <stdlib.h>

#include "workloads/backends/cuda/cuda_room.h"

#define PAIRS       9      /* in turns, so that both meet the same clocks and heat */
#define FILL_NS     200000 /* holds the lane while the host queues what is timed */
#define LEAST_EDGE  1024
#define MOST_EDGE   8192
#define TILE        32768 /* elements of the result that a thread block computes, in cuBLAS' largest */
#define WAVES       8     /* of thread blocks over all SMs, so that the last one's gaps are small */
#define LEFT_FACTOR 4     /* of the memory that the operands take there must be so many times as much */

struct beside {
  struct cct_backend *backend;
  cublasHandle_t blas;
  cudaStream_t other;
  char *w, *x, *y, *workspace;
  int edge;
};

static int edge_of(const struct cct_backend *backend) {
  int edge = LEAST_EDGE;
  while (edge < MOST_EDGE && (int64_t)edge * edge < (int64_t)TILE * WAVES * backend->sms)
    edge *= 2;
  return edge;
}

static enum cct_status multiply(struct beside *b) {
  const float one = 1, zero = 0;
  int n = b->edge;
  return CCT_CUBLAS(cublasGemmEx(b->blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, b->w, CUDA_R_16BF, n, b->x,
                                 CUDA_R_16BF, n, &zero, b->y, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
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
    status = multiply(b);
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

static enum cct_status prepare(struct beside *b) {
  size_t bytes = 2 * (size_t)b->edge * (size_t)b->edge;
  enum cct_status status = CCT_CUDA(cudaStreamCreateWithFlags(&b->other, cudaStreamNonBlocking));
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&b->w, bytes));
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&b->x, bytes));
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&b->y, bytes));
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&b->workspace, WORKSPACE_BYTES));
  if (!status)
    status = CCT_CUDA(cct_kernel_random(b->w, (int64_t)bytes, 1, b->backend->side));
  if (!status)
    status = CCT_CUDA(cct_kernel_random(b->x, (int64_t)bytes, 2, b->backend->side));
  if (!status)
    status = CCT_CUBLAS(cublasCreate(&b->blas));
  if (!status)
    status = CCT_CUBLAS(cublasSetStream(b->blas, b->backend->side));
  return status ? status : CCT_CUBLAS(cublasSetWorkspace(b->blas, b->workspace, WORKSPACE_BYTES));
}

enum cct_status cct_cuda_beside(struct cct_backend *backend, double *ratio_out) {
  struct beside b = {.backend = backend, .edge = edge_of(backend)};
  size_t left = 0, all = 0;
  enum cct_status status = CCT_CUDA(cudaMemGetInfo(&left, &all));
  *ratio_out = 0;
  if (status || left / LEFT_FACTOR < 6 * (size_t)b.edge * (size_t)b.edge)
    return status; /* a GPU that is full already cannot be asked */
  status = prepare(&b);
  if (!status)
    status = compare(&b, ratio_out);
  if (b.blas)
    cublasDestroy(b.blas);
  cudaFree(b.w);
  cudaFree(b.x);
  cudaFree(b.y);
  cudaFree(b.workspace);
  if (b.other)
    cudaStreamDestroy(b.other);
  return status;
}
