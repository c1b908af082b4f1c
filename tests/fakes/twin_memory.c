/* SPDX-License-Identifier: Apache-2.0
 * Memory, what moves it, and what the device says of itself. */
#include "fakes/twin_gpu.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

cudaError_t cudaMalloc(void **at, size_t bytes) {
  *at = calloc(bytes + 1, 1);
  return *at ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void *at) {
  free(at);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags) {
  double error = flags & cudaHostAllocMapped ? twin_costs.mapped_error : twin_costs.pinned_error;
  if (error > 0)
    return (cudaError_t)error;
  return cudaMalloc(at, bytes);
}
cudaError_t cudaMallocManaged(void **at, size_t bytes, unsigned flags) {
  (void)flags;
  return twin_costs.managed_error > 0 ? (cudaError_t)twin_costs.managed_error : cudaMalloc(at, bytes);
}
cudaError_t cudaFreeHost(void *at) {
  return cudaFree(at);
}
cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned flags) {
  (void)at;
  (void)bytes;
  (void)flags;
  return (cudaError_t)twin_costs.register_error;
}
cudaError_t cudaHostUnregister(void *at) {
  (void)at;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  (void)kind;
  memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset(void *at, int value, size_t bytes) {
  memset(at, value, bytes);
  return cudaSuccess;
}
struct move {
  void *to;
  const void *from;
  size_t bytes;
  int value;
};
void twin_memory(int take) {
  static pthread_mutex_t memory = PTHREAD_MUTEX_INITIALIZER;
  if (take)
    pthread_mutex_lock(&memory);
  else
    pthread_mutex_unlock(&memory);
}
static void move(void *arguments) {
  const struct move *m = arguments;
  int64_t start_ns = cct_clock_ns();
  twin_memory(1);
  if (m->from)
    memmove(m->to, m->from, m->bytes);
  else
    memset(m->to, m->value, m->bytes);
  twin_memory(0);
  if (m->from && twin_costs.copy_gb_s > 0)
    twin_spend((double)m->bytes / twin_costs.copy_gb_s / 1e3 - (double)(cct_clock_ns() - start_ns) / 1e3);
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s) {
  cudaError_t error = (cudaError_t)twin_enqueue(s, move, &(struct move){to, from, bytes, 0}, sizeof(struct move));
  return error == cudaSuccess && twin_costs.holds && kind != cudaMemcpyDefault ? cudaStreamSynchronize(s) : error;
}
cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, move, &(struct move){at, NULL, bytes, value}, sizeof(struct move));
}
cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
  *left = *all = (size_t)64 << 30;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *n) {
  *n = 8;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device >= 0 && device < 8 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
  *p = (struct cudaDeviceProp){.name = "twin", .multiProcessorCount = 2, .l2CacheSize = 65536, .major = 9};
  p->uuid.bytes[0] = (char)(device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int a, int b) {
  *can = a != b && !(twin_costs.no_peer > 0);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  (void)device;
  *value = attribute == cudaDevAttrGPUDirectRDMASupported && twin_costs.gdr > 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  return cudaDriverGetVersion(version);
}
cudaError_t cudaGetLastError(void) {
  return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error of the twin";
}
const char *cudaGetErrorName(cudaError_t error) {
  return cudaGetErrorString(error);
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *at) {
  if (twin_costs.share_error > 0)
    return (cudaError_t)twin_costs.share_error;
  memcpy(handle, &at, sizeof at);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void **at, cudaIpcMemHandle_t handle, unsigned flags) {
  (void)flags;
  if (twin_costs.ipc_error > 0)
    return (cudaError_t)twin_costs.ipc_error;
  memcpy(at, &handle, sizeof *at);
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void *at) {
  (void)at;
  return cudaSuccess;
}
