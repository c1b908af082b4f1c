/* SPDX-License-Identifier: Apache-2.0
 * Experiments about what this machine allows and keeps; docs/probe.md names them. A refusal by the driver is the
 * answer: its error code is the value, and no error of what follows. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "machine/nvml.h"
#include "workloads/backends/cuda/cuda_experiment.h"

static void forget_error(void) {
  (void)cudaGetLastError();
}

enum cct_status cct_cuda_run_memory(struct experiment *e) {
  size_t left = 0, all = 0;
  long long reserved = -1;
  struct cct_nvml *nvml = cct_nvml_open(e->backend->uuid);
  enum cct_status status = CCT_CUDA(cudaMemGetInfo(&left, &all));
  if (!status && !cct_nvml_memory(nvml, &reserved))
    status = cct_fail(CCT_UNSUPPORTED, "cuda: NVML does not tell how much memory the driver keeps");
  cct_nvml_close(nvml);
  give(e, (double)all);
  give(e, (double)reserved);
  give(e, (double)left);
  return status;
}

#define MARKER        0xc5 /* a byte; four of them are a word of the marker */
#define MARKER_BYTES  ((size_t)64 << 20)
#define MANAGED_BYTES ((size_t)4 << 20)

/* 1: leaves the marker behind; 0: counts what an earlier process left, in memory that nobody has written. */
enum cct_status cct_cuda_run_marker(struct experiment *e) {
  void *memory = NULL;
  int64_t found = 0;
  unsigned word;
  memset(&word, MARKER, sizeof word);
  enum cct_status status = CCT_CUDA(cudaMalloc(&memory, MARKER_BYTES));
  if (!status && e->parameters[0] > 0) {
    status = cct_cuda_clear(memory, MARKER, MARKER_BYTES);
  } else if (!status) {
    unsigned *seen = malloc(MARKER_BYTES);
    status = seen ? CCT_CUDA(cudaMemcpy(seen, memory, MARKER_BYTES, cudaMemcpyDeviceToHost))
                  : cct_fail(CCT_NOMEM, "out of memory");
    for (size_t i = 0; !status && i < MARKER_BYTES / sizeof *seen; i++)
      found += seen[i] == word;
    free(seen);
  }
  if (!status)
    status = CCT_CUDA(cudaDeviceSynchronize());
  cudaFree(memory);
  give(e, (double)found);
  return status;
}

enum cct_status cct_cuda_run_managed(struct experiment *e) {
  size_t bytes = (size_t)e->parameters[0];
  void *memory = NULL;
  int64_t took_ns = 0;
  if (bytes > MANAGED_BYTES) /* a trial, no load: much of it could hang the GPU */
    return cct_fail(CCT_USAGE, "cuda: managed/BYTES: 1 byte to 4 MiB");
  cudaError_t error = cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal);
  if (error == cudaSuccess) {
    int64_t start_ns = cct_clock_ns();
    error = cct_kernel_random(memory, (int64_t)bytes, 1, e->backend->side);
    if (error == cudaSuccess)
      error = cudaStreamSynchronize(e->backend->side);
    took_ns = cct_clock_ns() - start_ns;
  }
  cudaFree(memory);
  forget_error();
  give(e, (double)error);
  give(e, (double)took_ns);
  return CCT_OK;
}

enum cct_status cct_cuda_run_pinned(struct experiment *e) {
  size_t bytes = (size_t)e->parameters[0];
  void *memory = NULL, *device = NULL;
  cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
  if (error == cudaSuccess) {
    memset(memory, 1, bytes);
    error = cudaMalloc(&device, bytes);
  }
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(device, memory, bytes, cudaMemcpyHostToDevice, e->backend->side);
  if (error == cudaSuccess)
    error = cudaStreamSynchronize(e->backend->side);
  cudaFree(device);
  cudaFreeHost(memory);
  forget_error();
  give(e, (double)error);
  return CCT_OK;
}

enum cct_status cct_cuda_run_mapped(struct experiment *e) {
  void *memory = NULL;
  int64_t bytes = (int64_t)e->parameters[0];
  cudaError_t error = cudaHostAlloc(&memory, (size_t)bytes, cudaHostAllocMapped);
  if (error == cudaSuccess) {
    memset(memory, 1, (size_t)bytes);
    error = cct_kernel_stream(memory, bytes, (struct cct_device_bytes){.base = bytes, .slot = -1}, e->backend->sms,
                              e->backend->probe, e->backend->side);
    if (error == cudaSuccess)
      error = cudaStreamSynchronize(e->backend->side);
  }
  cudaFreeHost(memory);
  forget_error();
  give(e, (double)error);
  return CCT_OK;
}

/* ---- streams beside each other ---- */

struct beside {
  struct cct_backend *backend;
  cudaStream_t other;
  void *pinned, *device;
  size_t bytes;
};

/* How long a kernel of `spin_ns` (0: none) on one stream and on the other one like it, or a copy (0: neither), take. */
static enum cct_status time_both(const struct beside *b, int64_t spin_ns, int64_t other_ns, int is_copying,
                                 int64_t *took_ns_out) {
  int64_t start_ns = cct_clock_ns();
  enum cct_status status = spin_ns ? CCT_CUDA(cct_kernel_spin(spin_ns, b->backend->side)) : CCT_OK;
  if (!status && other_ns)
    status = CCT_CUDA(cct_kernel_spin(other_ns, b->other));
  if (!status && is_copying)
    status = CCT_CUDA(cudaMemcpyAsync(b->device, b->pinned, b->bytes, cudaMemcpyHostToDevice, b->other));
  if (!status)
    status = cct_cuda_wait_stream(b->backend, b->backend->side);
  if (!status)
    status = cct_cuda_wait_stream(b->backend, b->other);
  *took_ns_out = cct_clock_ns() - start_ns;
  return status;
}

static enum cct_status time_overlap(struct experiment *e, const struct beside *b) {
  enum {
    SPIN_NS = 2000000
  };
  int64_t alone_ns = 0, both_ns = 0, copy_ns = 0;
  enum cct_status status = time_both(b, SPIN_NS, SPIN_NS, 1, &both_ns); /* loads and opens what there is */
  if (!status)
    status = time_both(b, SPIN_NS, 0, 0, &alone_ns);
  if (!status)
    status = time_both(b, SPIN_NS, SPIN_NS, 0, &both_ns);
  give(e, alone_ns > 0 ? (double)both_ns / (double)alone_ns : 0);
  if (!status)
    status = time_both(b, 0, 0, 1, &copy_ns);
  if (!status)
    status = time_both(b, copy_ns, 0, 1, &both_ns);
  give(e, copy_ns > 0 ? (double)both_ns / (double)copy_ns : 0);
  return status;
}

enum cct_status cct_cuda_run_overlap(struct experiment *e) {
  struct beside b = {.backend = e->backend, .bytes = (size_t)e->parameters[0]};
  enum cct_status status = CCT_CUDA(cudaStreamCreateWithFlags(&b.other, cudaStreamNonBlocking));
  if (!status)
    status = CCT_CUDA(cudaHostAlloc(&b.pinned, b.bytes, cudaHostAllocDefault));
  if (!status)
    status = CCT_CUDA(cudaMalloc(&b.device, b.bytes));
  if (!status)
    status = time_overlap(e, &b);
  cudaFree(b.device);
  cudaFreeHost(b.pinned);
  if (b.other)
    cudaStreamDestroy(b.other);
  return status;
}

enum cct_status cct_cuda_run_gdr(struct experiment *e) {
  int supported = 0;
  enum cct_status status =
      CCT_CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrGPUDirectRDMASupported, e->backend->device));
  give(e, supported);
  return status;
}

enum cct_status cct_cuda_run_checkpoint(struct experiment *e) {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  give(e, driver && dlsym(driver, "cuCheckpointProcessLock"));
  if (driver)
    dlclose(driver);
  return CCT_OK;
}
