// SPDX-License-Identifier: Apache-2.0
// What the files of kernels share.
#ifndef CCT_WORKLOADS_BACKENDS_CUDA_DEVICE_CUH
#define CCT_WORKLOADS_BACKENDS_CUDA_DEVICE_CUH

#include <cuda_runtime_api.h>
#include <stdint.h>

__device__ inline int64_t now_ns() {
  int64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

// The whole body of a function that enqueues one kernel.
#define LAUNCH(kernel, blocks, per_block, stream, ...)                                                                 \
  do {                                                                                                                 \
    kernel<<<blocks, per_block, 0, stream>>>(__VA_ARGS__);                                                             \
    return cudaGetLastError();                                                                                         \
  } while (0)

#endif
