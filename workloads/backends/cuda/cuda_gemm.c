/* SPDX-License-Identifier: Apache-2.0
 * Matrix products. X (m x k) and W (n x k) are row-major, as linear layers hold them; Y = X W^T (m x n). bf16, fp16 and
 * fp32 by cublasGemmEx, grouped experts by one cublasGemmGroupedBatchedEx; 8-bit floats by cublasLt into bf16, experts
 * as one strided batch with m padded to 16. */
#include <stdlib.h>

#include "workloads/backends/cuda/cuda_room.h"

static const float one = 1.0f, zero = 0.0f;

static int is_fp8(enum cct_type type) {
  return type == CCT_TYPE_FP8 || type == CCT_TYPE_FP8_E5M2;
}

static cudaDataType_t cuda_type(enum cct_type type) {
  switch (type) {
  case CCT_TYPE_FP32:
    return CUDA_R_32F;
  case CCT_TYPE_FP16:
    return CUDA_R_16F;
  case CCT_TYPE_FP8:
    return CUDA_R_8F_E4M3;
  case CCT_TYPE_FP8_E5M2:
    return CUDA_R_8F_E5M2;
  default:
    return CUDA_R_16BF;
  }
}

static enum cct_status lane_open(struct cct_executor *x, int id) {
  struct lane *lane = &x->lanes[id];
  if (lane->blas)
    return CCT_OK;
  enum cct_status status = CCT_CUDA(cudaMalloc(&lane->workspace, WORKSPACE_BYTES));
  if (!status)
    status = CCT_CUBLAS(cublasCreate(&lane->blas));
  if (!status)
    status = CCT_CUBLAS(cublasSetStream(lane->blas, lane->stream));
  if (!status) /* its own: cuBLAS's shared one may not be used from two lanes, nor allocated while capturing */
    status = CCT_CUBLAS(cublasSetWorkspace(lane->blas, lane->workspace, WORKSPACE_BYTES));
  return status;
}

static enum cct_status set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t what, int32_t value) {
  return CCT_CUBLAS(cublasLtMatmulDescSetAttribute(product, what, &value, sizeof value));
}

static enum cct_status layout(cublasLtMatrixLayout_t *out, cudaDataType_t type, int64_t rows, int64_t columns,
                              int32_t batch) {
  enum cct_status status = CCT_CUBLAS(cublasLtMatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)columns, rows));
  int64_t stride = rows * columns;
  if (!status && batch > 1)
    status =
        CCT_CUBLAS(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  if (!status && batch > 1)
    status = CCT_CUBLAS(
        cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  return status;
}

static void lt_free(struct lt_plan *p) {
  if (p->a)
    cublasLtMatrixLayoutDestroy(p->a);
  if (p->b)
    cublasLtMatrixLayoutDestroy(p->b);
  if (p->d)
    cublasLtMatrixLayoutDestroy(p->d);
  if (p->product)
    cublasLtMatmulDescDestroy(p->product);
  free(p);
}

/* cuBLAS is column-major: D (n x m) = W (k x n)^T X (k x m), the one form it has for 8-bit floats. Weights are e4m3. */
static enum cct_status lt_describe(struct cct_executor *x, struct lt_plan *p) {
  enum cct_status status = CCT_CUBLAS(cublasLtMatmulDescCreate(&p->product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  if (!status)
    status = set(p->product, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  if (!status)
    status = layout(&p->a, CUDA_R_8F_E4M3, p->k, p->n, p->groups);
  if (!status)
    status = layout(&p->b, cuda_type(p->type), p->k, p->m, p->groups);
  if (!status)
    status = layout(&p->d, CUDA_R_16BF, p->n, p->m, p->groups);
  cublasLtMatmulPreference_t preference = NULL;
  if (!status)
    status = CCT_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
  size_t workspace = WORKSPACE_BYTES;
  if (!status)
    status = CCT_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                             &workspace, sizeof workspace));
  cublasLtMatmulHeuristicResult_t found = {0};
  int n_found = 0;
  if (!status) {
    cublasStatus_t error = cublasLtMatmulAlgoGetHeuristic(x->backend->lt, p->product, p->a, p->b, p->d, p->d,
                                                          preference, 1, &found, &n_found);
    if (error != CUBLAS_STATUS_SUCCESS || n_found == 0)
      status = cct_fail(CCT_UNSUPPORTED,
                        "cuda: no %s product of m %lld, n %lld, k %lld on this GPU (n and k must be "
                        "multiples of 16; compute capability 8.9 or later): %s",
                        cct_type_name(p->type), (long long)p->m, (long long)p->n, (long long)p->k,
                        cublasGetStatusString(error));
  }
  p->algorithm = found.algo;
  if (preference)
    cublasLtMatmulPreferenceDestroy(preference);
  return status;
}

static enum cct_status lt_prepare(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  struct planned *plan = &x->plan[id];
  int64_t m = op->gemm.groups > 1 ? (plan->m + 15) / 16 * 16 : plan->m;
  for (struct lt_plan *p = x->lt_plans; p; p = p->next)
    if (p->m == m && p->n == op->gemm.n && p->k == op->gemm.k && p->groups == op->gemm.groups &&
        p->type == op->gemm.type) {
      plan->lt = p;
      return CCT_OK;
    }
  struct lt_plan *p = calloc(1, sizeof *p);
  if (!p)
    return cct_fail(CCT_NOMEM, "out of memory");
  *p = (struct lt_plan){.m = m, .n = op->gemm.n, .k = op->gemm.k, .groups = op->gemm.groups, .type = op->gemm.type};
  enum cct_status status = lt_describe(x, p);
  if (status) {
    lt_free(p);
    return status;
  }
  p->next = x->lt_plans;
  x->lt_plans = p;
  plan->lt = p;
  return CCT_OK;
}

/* Device arrays of W, X and Y pointers of each expert. */
static enum cct_status pointers_prepare(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  struct planned *plan = &x->plan[id];
  int groups = op->gemm.groups;
  size_t bytes = (size_t)groups * 3 * sizeof(void *);
  void **host = malloc(bytes);
  if (!host)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int g = 0; g < groups; g++) {
    host[g] = (char *)plan->in[1] + g * cct_cuda_type_bytes(op->gemm.type, op->gemm.n * op->gemm.k);
    host[groups + g] = (char *)plan->in[0] + g * cct_cuda_type_bytes(op->gemm.type, plan->m * op->gemm.k);
    host[2 * groups + g] = (char *)plan->out + g * cct_cuda_type_bytes(op->gemm.type, plan->m * op->gemm.n);
  }
  enum cct_status status = plan->pointers ? CCT_OK : CCT_CUDA(cudaMalloc((void **)&plan->pointers, bytes));
  if (!status)
    status = cct_cuda_upload(plan->pointers, host, bytes);
  free(host);
  return status;
}

enum cct_status cct_cuda_gemm_prepare(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  enum cct_status status = lane_open(x, op->lane);
  if (status || op->kind != CCT_OP_GEMM)
    return status;
  enum cct_type type = op->gemm.type;
  if (type == CCT_TYPE_NVFP4 || type == CCT_TYPE_INT8 || type == CCT_TYPE_INT32)
    return cct_fail(CCT_UNSUPPORTED, "cuda: %s: entry %d '%s': no %s products in this backend; use bf16 or fp8",
                    x->program->name, id, op->name, cct_type_name(type));
  if (is_fp8(type))
    return lt_prepare(x, id);
  int is_captured = x->is_in_sequence && x->plan[id].in_graph; /* with arrays that it keeps */
  return op->gemm.groups > 1 && !is_captured ? pointers_prepare(x, id) : CCT_OK;
}

static enum cct_status gemm_fp8(struct cct_executor *x, int id) {
  const struct planned *plan = &x->plan[id];
  const struct lt_plan *p = plan->lt;
  const struct lane *lane = &x->lanes[x->program->ops[id].lane];
  return CCT_CUBLAS(cublasLtMatmul(x->backend->lt, p->product, &one, plan->in[1], p->a, plan->in[0], p->b, &zero,
                                   plan->out, p->d, plan->out, p->d, &p->algorithm, lane->workspace, WORKSPACE_BYTES,
                                   lane->stream));
}

/* All experts have m rows, so they are one group of cuBLAS's, of `groups` products. */
static enum cct_status gemm_grouped(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  const struct lane *lane = &x->lanes[op->lane];
  int groups = op->gemm.groups, size[1] = {groups};
  cublasOperation_t transposed[1] = {CUBLAS_OP_T}, plain[1] = {CUBLAS_OP_N};
  int n[1] = {(int)op->gemm.n}, m[1] = {(int)plan->m}, k[1] = {(int)op->gemm.k};
  cudaDataType_t type = cuda_type(op->gemm.type);
  return CCT_CUBLAS(cublasGemmGroupedBatchedEx(lane->blas, transposed, plain, n, m, k, &one,
                                               (const void *const *)plan->pointers, type, k,
                                               (const void *const *)(plan->pointers + groups), type, k, &zero,
                                               plan->pointers + 2 * groups, type, n, 1, size, CUBLAS_COMPUTE_32F));
}

enum cct_status cct_cuda_gemm(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  if (plan->m <= 0)
    return CCT_OK;
  if (is_fp8(op->gemm.type))
    return gemm_fp8(x, id);
  if (op->gemm.groups > 1)
    return gemm_grouped(x, id);
  cudaDataType_t type = cuda_type(op->gemm.type);
  int n = (int)op->gemm.n, m = (int)plan->m, k = (int)op->gemm.k;
  return CCT_CUBLAS(cublasGemmEx(x->lanes[op->lane].blas, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, plan->in[1], type, k,
                                 plan->in[0], type, k, &zero, plan->out, type, n, CUBLAS_COMPUTE_32F,
                                 CUBLAS_GEMM_DEFAULT));
}

enum cct_status cct_cuda_attention_product(struct cct_executor *x, int id) {
  const struct planned *plan = &x->plan[id];
  int edge = plan->product;
  return CCT_CUBLAS(cublasGemmEx(x->lanes[x->program->ops[id].lane].blas, CUBLAS_OP_T, CUBLAS_OP_N, edge, edge, edge,
                                 &one, plan->in[0], CUDA_R_16BF, edge, plan->in[1], CUDA_R_16BF, edge, &zero, plan->out,
                                 CUDA_R_16BF, edge, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

void cct_cuda_gemm_release(struct cct_executor *x) {
  while (x->lt_plans) {
    struct lt_plan *p = x->lt_plans;
    x->lt_plans = p->next;
    lt_free(p);
  }
  for (int i = 0; x->plan && i < x->program->n_ops; i++)
    cudaFree(x->plan[i].pointers);
  for (int i = 0; x->lanes && i < x->program->n_lanes; i++) {
    if (x->lanes[i].blas)
      cublasDestroy(x->lanes[i].blas);
    cudaFree(x->lanes[i].workspace);
  }
}
