/* SPDX-License-Identifier: Apache-2.0
 * The one file that knows cblas.h. */
#include "workloads/backends/host.h"

#include <cblas.h>

void cct_host_sgemm(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, 1, a, (blasint)k, b,
              (blasint)n, 0, c, (blasint)n);
}

void cct_host_blas_threads(int n) {
  openblas_set_num_threads(n);
}

const char *cct_host_blas_library(void) {
  return openblas_get_config();
}
