/* SPDX-License-Identifier: Apache-2.0
 * cuBLAS and NCCL over the twin's streams. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fakes/twin_gpu.h"

/* ---- cuBLAS: bf16 products, (k x n)^T (k x m), column-major ---- */

struct cublasContext {
  cudaStream_t stream;
};
struct product {
  int n, m, k;
  const unsigned short *w, *x;
  unsigned short *y;
};
static float bf16(unsigned short value) {
  unsigned word = (unsigned)value << 16;
  float out;
  memcpy(&out, &word, sizeof out);
  return out;
}
static float dot(const struct product *p, int row, int column) {
  float sum = 0;
  for (int i = 0; i < p->k; i++)
    sum += bf16(p->x[(long)row * p->k + i]) * bf16(p->w[(long)column * p->k + i]);
  return sum;
}
/* What fills memory at random here is everywhere the same, and so are the elements of a large product. */
static void multiply(void *arguments) {
  const struct product *p = arguments;
  long n = (long)p->m * p->n;
  int is_large = n * p->k > 1000000;
  long slow_ns = is_large ? twin_product_ns() : 0;
  if (slow_ns) {
    nanosleep(&(struct timespec){.tv_nsec = slow_ns}, NULL);
    twin_worked();
    return;
  }
  twin_memory(1);
  float sum = dot(p, 0, 0);
  for (long i = 0; i < n; i++) {
    unsigned word;
    if (!is_large)
      sum = dot(p, (int)(i / p->n), (int)(i % p->n));
    memcpy(&word, &sum, sizeof word);
    p->y[i] = (unsigned short)((word + 0x8000) >> 16);
  }
  twin_memory(0);
}
struct products { /* of one shape, by device arrays of pointers */
  int n, m, k, groups;
  const void *const *w, *const *x;
  void *const *y;
};
static void multiply_all(void *arguments) {
  const struct products *all = arguments;
  for (int g = 0; g < all->groups; g++) {
    struct product p = {all->n, all->m, all->k, all->w[g], all->x[g], all->y[g]};
    multiply(&p);
  }
}
cublasStatus_t cublasCreate_v2(cublasHandle_t *out) {
  *out = calloc(1, sizeof **out);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *at, size_t bytes) {
  (void)handle;
  (void)at;
  (void)bytes;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType what, int *value) {
  (void)what;
  *value = 0;
  return CUBLAS_STATUS_SUCCESS;
}
const char *cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "the twin cannot";
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a, cublasOperation_t b, int n, int m, int k,
                            const void *alpha, const void *w, cudaDataType w_type, int ldw, const void *x,
                            cudaDataType x_type, int ldx, const void *beta, void *y, cudaDataType y_type, int ldy,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  (void)a, (void)b, (void)alpha, (void)w_type, (void)ldw, (void)ldx, (void)beta, (void)y_type, (void)ldy;
  (void)compute, (void)algorithm;
  if (x_type != CUDA_R_16BF)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  struct product p = {n, m, k, w, x, y};
  twin_enqueue(handle->stream, multiply, &p, sizeof p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGemmGroupedBatchedEx(cublasHandle_t h, const cublasOperation_t ta[], const cublasOperation_t tb[],
                                          const int m[], const int n[], const int k[], const void *alpha,
                                          const void *const a[], cudaDataType_t at, const int lda[],
                                          const void *const b[], cudaDataType_t bt, const int ldb[], const void *beta,
                                          void *const c[], cudaDataType_t ct, const int ldc[], int groups,
                                          const int size[], cublasComputeType_t compute) {
  (void)ta, (void)tb, (void)alpha, (void)lda, (void)bt, (void)ldb, (void)beta, (void)ct, (void)ldc, (void)compute;
  if (at != CUDA_R_16BF || groups != 1)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  struct products all = {m[0], n[0], k[0], size[0], a, b, c};
  twin_enqueue(h->stream, multiply_all, &all, sizeof all);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
  *out = NULL;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  (void)handle;
  return CUBLAS_STATUS_SUCCESS;
}
#define REFUSED(name, ...)                                                                                             \
  cublasStatus_t name(__VA_ARGS__) {                                                                                   \
    return CUBLAS_STATUS_NOT_SUPPORTED;                                                                                \
  }
#pragma GCC diagnostic ignored "-Wunused-parameter"
REFUSED(cublasLtMatmulDescCreate, cublasLtMatmulDesc_t *d, cublasComputeType_t c, cudaDataType_t t)
REFUSED(cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t d)
REFUSED(cublasLtMatmulDescSetAttribute, cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a, const void *v,
        size_t n)
REFUSED(cublasLtMatrixLayoutCreate, cublasLtMatrixLayout_t *l, cudaDataType t, uint64_t r, uint64_t c, int64_t ld)
REFUSED(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t l)
REFUSED(cublasLtMatrixLayoutSetAttribute, cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t a, const void *v,
        size_t n)
REFUSED(cublasLtMatmulPreferenceCreate, cublasLtMatmulPreference_t *p)
REFUSED(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t p)
REFUSED(cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t a,
        const void *v, size_t n)
REFUSED(cublasLtMatmulAlgoGetHeuristic, cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t e, cublasLtMatmulPreference_t p,
        int n, cublasLtMatmulHeuristicResult_t r[], int *got)
REFUSED(cublasLtMatmul, cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
        cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta, const void *c,
        cublasLtMatrixLayout_t lc, void *e, cublasLtMatrixLayout_t le, const cublasLtMatmulAlgo_t *algo, void *w,
        size_t n, cudaStream_t s)

/* ---- NCCL: members meet; no data moves ---- */

struct meeting { /* what the members of one communicator share */
  struct meeting *next;
  ncclUniqueId id;
  int size;
  atomic_int members, arrived, round;
  int colour[64];
  struct meeting *splits[64];
};
struct ncclComm {
  struct meeting *meeting;
  int rank;
};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct meeting *meetings;
static _Thread_local int group_depth;
static _Thread_local struct {
  ncclComm_t comm;
  cudaStream_t stream;
} group;

static void meet(struct meeting *m) {
  int round = atomic_load(&m->round);
  if (atomic_fetch_add(&m->arrived, 1) + 1 == m->size) {
    atomic_store(&m->arrived, 0);
    atomic_fetch_add(&m->round, 1);
    return;
  }
  while (atomic_load(&m->round) == round)
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}
static void meet_once(void *arguments) {
  meet(*(struct meeting **)arguments);
}
static ncclResult_t call(ncclComm_t comm, cudaStream_t stream) {
  if (group_depth) {
    group.comm = comm;
    group.stream = stream;
  } else {
    twin_enqueue(stream, meet_once, &comm->meeting, sizeof comm->meeting);
  }
  return ncclSuccess;
}
static struct meeting *meeting_new(int size) {
  struct meeting *m = calloc(1, sizeof *m);
  m->size = size;
  atomic_store(&m->members, size);
  return m;
}
static ncclComm_t member_of(struct meeting *m, int rank) {
  ncclComm_t comm = malloc(sizeof *comm);
  *comm = (struct ncclComm){m, rank};
  return comm;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static atomic_int n;
  int number = atomic_fetch_add(&n, 1) + 1;
  memset(id, 0, sizeof *id);
  memcpy(id, &number, sizeof number);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t *out, int size, ncclUniqueId id, int rank) {
  pthread_mutex_lock(&mutex);
  struct meeting *m = meetings;
  while (m && memcmp(&m->id, &id, sizeof id) != 0)
    m = m->next;
  if (!m) {
    m = meeting_new(size);
    m->id = id;
    m->next = meetings;
    meetings = m;
  }
  pthread_mutex_unlock(&mutex);
  meet(m);
  *out = member_of(m, rank);
  return ncclSuccess;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int colour, int key, ncclComm_t *out, ncclConfig_t *config) {
  struct meeting *m = comm->meeting;
  int size = 0, first = -1;
  (void)config;
  m->colour[comm->rank] = colour;
  meet(m);
  for (int i = 0; i < m->size; i++) {
    size += m->colour[i] == colour;
    first = first < 0 && m->colour[i] == colour ? i : first;
  }
  if (first == comm->rank)
    m->splits[first] = meeting_new(size);
  meet(m);
  *out = member_of(m->splits[first], key);
  meet(m);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (atomic_fetch_sub(&comm->meeting->members, 1) == 1) {
    pthread_mutex_lock(&mutex);
    for (struct meeting **link = &meetings; *link; link = &(*link)->next)
      if (*link == comm->meeting) {
        *link = comm->meeting->next;
        break;
      }
    pthread_mutex_unlock(&mutex);
    free(comm->meeting);
  }
  free(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return ncclCommDestroy(comm);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  (void)comm;
  *error = ncclSuccess;
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t error) {
  return error == ncclSuccess ? "no error" : "an error of the twin";
}
const char *ncclGetLastError(ncclComm_t comm) {
  (void)comm;
  return "";
}
ncclResult_t ncclGetVersion(int *version) {
  *version = 22803;
  return ncclSuccess;
}
/* The twin's device memory is the host's, and it needs no registration. */
ncclResult_t ncclMemAlloc(void **at, size_t bytes) {
  return cudaMalloc(at, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void *at) {
  return cudaFree(at) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void *at, size_t bytes, void **handle) {
  (void)comm;
  (void)bytes;
  *handle = at;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
  (void)comm;
  (void)handle;
  return ncclSuccess;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *at, size_t bytes, ncclWindow_t *window, int flags) {
  (void)comm;
  (void)bytes;
  (void)flags;
  *window = at;
  return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  (void)comm;
  (void)window;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart(void); /* nccl.h leaves out the void */
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclGroupStart(void) {
  group_depth++;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd(void) {
  ncclComm_t comm = group.comm;
  if (--group_depth || !comm)
    return ncclSuccess;
  group.comm = NULL;
  return call(comm, group.stream);
}
ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                           cudaStream_t s) {
  return call(c, s);
}
ncclResult_t ncclAllGather(const void *in, void *out, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s) {
  return call(c, s);
}
ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                               cudaStream_t s) {
  return call(c, s);
}
ncclResult_t ncclBroadcast(const void *in, void *out, size_t n, ncclDataType_t t, int root, ncclComm_t c,
                           cudaStream_t s) {
  return call(c, s);
}
ncclResult_t ncclReduce(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t op, int root, ncclComm_t c,
                        cudaStream_t s) {
  return call(c, s);
}
ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s) {
  return call(c, s);
}
ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s) {
  return call(c, s);
}
