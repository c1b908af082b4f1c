/* SPDX-License-Identifier: Apache-2.0
 * Experiments of the CUDA backend, which cuda_experiment.c calls by name, and what they share. Private to this room. */
#ifndef CCT_WORKLOADS_BACKENDS_CUDA_EXPERIMENT_H
#define CCT_WORKLOADS_BACKENDS_CUDA_EXPERIMENT_H

#include "workloads/backends/cuda/cuda_room.h"

struct experiment {
  struct cct_backend *backend;
  const double *parameters;
  double *series;
  int max, n;
};
static inline void give(struct experiment *e, double value) {
  if (e->n < e->max)
    e->series[e->n++] = value;
}

/* cuda_links.c, cuda_trials.c, cuda_children.c, cuda_copy.c, cuda_product.c: one trial of what docs/probe.md names so
 */
enum cct_status cct_cuda_run_p2p_copy(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_short_write(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_dispatch(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_peer(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_communicator(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_memory(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_marker(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_managed(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_pinned(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_overlap(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_mapped(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_processes(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_aes_rate(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_aes_copy(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_context(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_gdr(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_checkpoint(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_bare_gemm(struct experiment *e) CCT_CHECKED;
enum cct_status cct_cuda_run_rest(struct experiment *e) CCT_CHECKED;

/* cuda_product.c: a bf16 product y[m][n] = x[m][k] w[n][k]^T on the side stream, of random values. Of w there are
 * `copies`, so that none need be found in L2. */
struct cct_cuda_product {
  struct cct_backend *backend;
  cublasHandle_t blas;
  char *w, *x, *y, *workspace;
  int m, n, k, copies;
};
/* CCT_NOMEM: not all of it fits. Close it whatever this returns. */
enum cct_status cct_cuda_product_open(struct cct_backend *backend, int m, int n, int k, int copies,
                                      struct cct_cuda_product *product_out) CCT_CHECKED;
/* Enqueues it once, with the i-th of w modulo their number. */
enum cct_status cct_cuda_product(const struct cct_cuda_product *product, int i) CCT_CHECKED;
void cct_cuda_product_close(struct cct_cuda_product *product);

#endif
