/* SPDX-License-Identifier: Apache-2.0
 * A product by bare cuBLAS, for experiments that need one; and what it takes in a row, and after a rest. */
#include "workloads/backends/cuda/cuda_experiment.h"

#include <stdlib.h>

#define MOST_EDGE (1 << 18)

enum cct_status cct_cuda_product_open(struct cct_backend *backend, int m, int n, int k, int copies,
                                      struct cct_cuda_product *product_out) {
  struct cct_cuda_product *p = product_out;
  *p = (struct cct_cuda_product){.backend = backend, .m = m, .n = n, .k = k, .copies = copies};
  size_t w = 2 * (size_t)n * (size_t)k * (size_t)copies, x = 2 * (size_t)m * (size_t)k;
  enum cct_status status = CCT_CUDA(cudaMalloc((void **)&p->w, w));
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&p->x, x));
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&p->y, 2 * (size_t)m * (size_t)n));
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&p->workspace, WORKSPACE_BYTES));
  if (!status)
    status = CCT_CUDA(cct_kernel_random(p->w, (int64_t)w, 1, backend->side));
  if (!status)
    status = CCT_CUDA(cct_kernel_random(p->x, (int64_t)x, 2, backend->side));
  if (!status)
    status = CCT_CUBLAS(cublasCreate(&p->blas));
  if (!status)
    status = CCT_CUBLAS(cublasSetStream(p->blas, backend->side));
  return status ? status : CCT_CUBLAS(cublasSetWorkspace(p->blas, p->workspace, WORKSPACE_BYTES));
}

enum cct_status cct_cuda_product(const struct cct_cuda_product *p, int i) {
  const float one = 1, zero = 0;
  const char *w = p->w + 2 * (int64_t)p->n * p->k * (i % p->copies);
  return CCT_CUBLAS(cublasGemmEx(p->blas, CUBLAS_OP_T, CUBLAS_OP_N, p->n, p->m, p->k, &one, w, CUDA_R_16BF, p->k, p->x,
                                 CUDA_R_16BF, p->k, &zero, p->y, CUDA_R_16BF, p->n, CUBLAS_COMPUTE_32F,
                                 CUBLAS_GEMM_DEFAULT));
}

void cct_cuda_product_close(struct cct_cuda_product *p) {
  if (p->blas)
    cublasDestroy(p->blas);
  cudaFree(p->w);
  cudaFree(p->x);
  cudaFree(p->y);
  cudaFree(p->workspace);
}

/* So many of w that four times L2 lies between two uses of one. */
static enum cct_status open_beyond_l2(struct experiment *e, const double *mnk, struct cct_cuda_product *product_out) {
  *product_out = (struct cct_cuda_product){.backend = e->backend};
  for (int i = 0; i < 3; i++)
    if (mnk[i] < 1 || mnk[i] > MOST_EDGE)
      return cct_fail(CCT_USAGE, "cuda: a product of %.0fx%.0fx%.0f: each has to be between 1 and %d", mnk[0], mnk[1],
                      mnk[2], MOST_EDGE);
  int64_t weight = 2 * (int64_t)mnk[1] * (int64_t)mnk[2];
  return cct_cuda_product_open(e->backend, (int)mnk[0], (int)mnk[1], (int)mnk[2],
                               (int)(4 * e->backend->l2_bytes / weight) + 1, product_out);
}

enum cct_status cct_cuda_run_bare_gemm(struct experiment *e) {
  struct cct_backend *backend = e->backend;
  struct cct_cuda_product product;
  int reps = (int)e->parameters[3];
  enum cct_status status = open_beyond_l2(e, e->parameters, &product);
  int64_t start_ns = 0, submitted_ns = 0;
  for (int i = -reps / 5 - 1; !status && i < reps; i++) { /* the first fifth warms up */
    if (i == 0) {
      status = cct_cuda_wait_stream(backend, backend->side);
      start_ns = cct_clock_ns();
    }
    if (!status)
      status = cct_cuda_product(&product, i + reps);
  }
  submitted_ns = cct_clock_ns();
  if (!status)
    status = cct_cuda_wait_stream(backend, backend->side);
  give(e, (double)(submitted_ns - start_ns) / reps);
  give(e, (double)(cct_clock_ns() - start_ns) / reps);
  cct_cuda_product_close(&product);
  return status;
}

/* ---- rest ---- */

#define TURNS    9
#define FILL_NS  200000 /* holds the stream while the host queues what follows */
#define FORERUNS 4      /* products before, so that the GPU has been at work */

enum way {
  IN_A_ROW,
  BEHIND_DELAY,
  AFTER_IDLENESS,
  WAYS
};

/* A graph of one product between stamps: no launch lies between them, so an idle GPU and a busy one pay the same. */
static enum cct_status capture(const struct cct_cuda_product *product, cudaGraphExec_t *exec_out) {
  struct cct_backend *backend = product->backend;
  cudaGraph_t graph = NULL;
  enum cct_status status = cct_cuda_product(product, 0); /* loads it */
  if (!status)
    status = cct_cuda_wait_stream(backend, backend->side);
  if (!status)
    status = CCT_CUDA(cudaStreamBeginCapture(backend->side, cudaStreamCaptureModeThreadLocal));
  if (status)
    return status;
  enum cct_status captured = CCT_CUDA(cct_kernel_stamp(backend->ring, 0, backend->side));
  if (!captured)
    captured = cct_cuda_product(product, 0);
  if (!captured)
    captured = CCT_CUDA(cct_kernel_stamp(backend->ring, 1, backend->side));
  status = CCT_CUDA(cudaStreamEndCapture(backend->side, &graph));
  if (captured || !status)
    status = captured;
  if (!status)
    status = CCT_CUDA(cudaGraphInstantiate(exec_out, graph, 0));
  if (graph)
    cudaGraphDestroy(graph);
  return status;
}

static enum cct_status time_rested(const struct cct_cuda_product *product, cudaGraphExec_t exec, enum way way,
                                   int64_t rest_ns, double *ns_out) {
  struct cct_backend *backend = product->backend;
  enum cct_status status = cct_cuda_stamps_reset(backend);
  if (!status)
    status = CCT_CUDA(cct_kernel_spin(FILL_NS, backend->side));
  for (int i = 1; !status && i <= FORERUNS; i++)
    status = cct_cuda_product(product, i);
  if (!status && way == BEHIND_DELAY)
    status = CCT_CUDA(cct_kernel_spin(rest_ns, backend->side));
  if (!status && way == AFTER_IDLENESS) {
    status = cct_cuda_wait_stream(backend, backend->side);
    for (int64_t start_ns = cct_clock_ns(); cct_clock_ns() - start_ns < rest_ns;) {
    }
  }
  if (!status)
    status = CCT_CUDA(cudaGraphLaunch(exec, backend->side));
  if (!status)
    status = cct_cuda_wait_stream(backend, backend->side);
  return status ? status : cct_cuda_stamps_between(backend, ns_out);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Medians, each of as many turns of all ways. */
enum cct_status cct_cuda_run_rest(struct experiment *e) {
  struct cct_cuda_product product;
  cudaGraphExec_t exec = NULL;
  double ns[WAYS][TURNS] = {{0}};
  enum cct_status status = open_beyond_l2(e, e->parameters + 1, &product);
  if (!status)
    status = capture(&product, &exec);
  for (int turn = -1; !status && turn < TURNS; turn++) /* the first warms up */
    for (int way = 0; !status && way < WAYS; way++)
      status = time_rested(&product, exec, (enum way)way, (int64_t)e->parameters[0], &ns[way][turn < 0 ? 0 : turn]);
  for (int way = 0; way < WAYS; way++) {
    qsort(ns[way], TURNS, sizeof **ns, by_value);
    give(e, ns[way][TURNS / 2]);
  }
  if (exec)
    cudaGraphExecDestroy(exec);
  cct_cuda_product_close(&product);
  return status;
}
