/* SPDX-License-Identifier: Apache-2.0
 * How CUDA's, cuBLAS's and NCCL's errors become ours, and waiting for the GPU without being held by it forever. */
#include "workloads/backends/cuda/cuda_room.h"

enum cct_status cct_cuda_failed(cudaError_t error, const char *call) {
  enum cct_status status = CCT_STOPPED;
  if (error == cudaErrorMemoryAllocation)
    status = CCT_NOMEM;
  else if (error == cudaErrorNotSupported || error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ||
           error == cudaErrorNoKernelImageForDevice)
    status = CCT_UNSUPPORTED;
  return cct_fail(status, "cuda: %s: %s (%s)", call, cudaGetErrorString(error), cudaGetErrorName(error));
}

enum cct_status cct_cublas_failed(cublasStatus_t error, const char *call) {
  enum cct_status status = CCT_STOPPED;
  if (error == CUBLAS_STATUS_ALLOC_FAILED)
    status = CCT_NOMEM;
  else if (error == CUBLAS_STATUS_NOT_SUPPORTED || error == CUBLAS_STATUS_ARCH_MISMATCH)
    status = CCT_UNSUPPORTED;
  return cct_fail(status, "cublas: %s: %s", call, cublasGetStatusString(error));
}

enum cct_status cct_nccl_failed(ncclResult_t error, const char *call) {
  /* What NCCL refuses before it begins, such as an algorithm that a job forces and this machine has not, is the cell's.
   */
  enum cct_status status = error == ncclInvalidUsage || error == ncclInvalidArgument ? CCT_UNSUPPORTED : CCT_STOPPED;
  return cct_fail(status, "nccl: %s: %s (%s)", call, ncclGetErrorString(error), ncclGetLastError(NULL));
}

/* A communicator in error never finishes its kernels by itself: aborting makes them leave, so that the process can end.
 */
static enum cct_status give_up(struct cct_backend *backend, enum cct_status status) {
  if (atomic_exchange(&backend->is_dead, 1))
    return status;
  for (int i = 0; i < backend->n_communicators; i++)
    if (backend->communicators[i].comm && backend->communicators[i].comm != backend->base)
      (void)ncclCommAbort(backend->communicators[i].comm);
  if (backend->base)
    (void)ncclCommAbort(backend->base);
  backend->base = NULL;
  backend->n_communicators = 0;
  return status;
}

static enum cct_status check_communicators(struct cct_backend *backend) {
  if (backend->is_dead) /* another host lane has said why */
    return CCT_STOPPED;
  for (int i = 0; i < backend->n_communicators; i++) {
    ncclResult_t error = ncclSuccess;
    ncclComm_t comm = backend->communicators[i].comm;
    if (ncclCommGetAsyncError(comm, &error) != ncclSuccess || (error != ncclSuccess && error != ncclInProgress))
      return give_up(backend, cct_fail(CCT_STOPPED, "nccl: group of %d ranks: %s: %s", backend->communicators[i].size,
                                       ncclGetErrorString(error), ncclGetLastError(comm)));
  }
  return CCT_OK;
}

/* Errors are looked for once in 1024 turns, about a millisecond: at every turn they would be most of a short wait. */
static enum cct_status check_wait(struct cct_backend *backend, unsigned turn, int64_t start_ns) {
  if (turn % 1024)
    return CCT_OK;
  enum cct_status status = check_communicators(backend);
  int64_t deadline_ns = backend->options.deadline_ns;
  if (!status && deadline_ns > 0 && cct_clock_ns() - start_ns > deadline_ns)
    status = give_up(backend, cct_fail(CCT_STOPPED, "cuda: the GPU did not finish within the deadline of %.0f s",
                                       (double)deadline_ns / 1e9));
  return status;
}

typedef cudaError_t query_fn(const void *of);
static cudaError_t query_stream(const void *of) {
  return cudaStreamQuery(*(const cudaStream_t *)of);
}
static cudaError_t query_event(const void *of) {
  return cudaEventQuery(*(const cudaEvent_t *)of);
}

static enum cct_status wait_for(struct cct_backend *backend, query_fn *query, const void *of) {
  cudaError_t error = query(of);
  int64_t start_ns = error == cudaErrorNotReady ? cct_clock_ns() : 0;
  for (unsigned turn = 1; error == cudaErrorNotReady; turn++) {
    enum cct_status status = check_wait(backend, turn, start_ns);
    if (status)
      return status;
    error = query(of);
  }
  if (start_ns)
    atomic_fetch_add_explicit(&backend->waited_ns, cct_clock_ns() - start_ns, memory_order_relaxed);
  if (error != cudaSuccess)
    atomic_store(&backend->is_dead, 1);
  return cuda_status(error, "waiting for the GPU");
}

enum cct_status cct_cuda_wait_stream(struct cct_backend *backend, cudaStream_t stream) {
  return wait_for(backend, query_stream, &stream);
}

enum cct_status cct_cuda_wait_event(struct cct_backend *backend, cudaEvent_t event) {
  return wait_for(backend, query_event, &event);
}
