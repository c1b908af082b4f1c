// SPDX-License-Identifier: Apache-2.0
// The CUDA backend's own kernels on one GPU; those that reach into a peer's memory are cuda_p2p_kernels.cu's.
// Everything else of the backend is C.
#include "workloads/backends/cuda/cuda_kernels.h"

#include "workloads/backends/cuda/cuda_device.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace {

constexpr int threads = 256;
constexpr int unroll = 4; // 16-byte loads in flight a thread

__device__ inline uint64_t mix(uint64_t x) { // SplitMix64's finaliser
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__device__ inline int64_t bytes_of(const cct_device_bytes &b) {
  return b.base + (b.slot < 0 ? 0 : b.per * b.slots[b.slot]);
}

__device__ inline uint32_t tame(uint32_t word) {
  return (word & 0x80778077u) | 0x3f003f00u;
}

__global__ void empty() {
}

__global__ void spin(int64_t ns) {
  int64_t start = now_ns();
  while (now_ns() - start < ns) {
  }
}

__global__ void stamp(cct_stamp_ring *ring, int64_t id) {
  unsigned long long i = atomicAdd(&ring->count, 1ull);
  ring->at[i % CCT_STAMP_CAPACITY] = {id, now_ns()};
}

__global__ void note(cct_stamp_ring *ring, int64_t id, cct_device_bytes bytes) {
  unsigned long long i = atomicAdd(&ring->count, 1ull);
  ring->at[i % CCT_STAMP_CAPACITY] = {id, bytes_of(bytes)};
}

__global__ void mark(int64_t *at) {
  *(volatile int64_t *)at = now_ns();
  __threadfence_system();
}

__global__ void cycles(int64_t n, int64_t *out) {
  int64_t before = now_ns(), start = clock64();
  while (clock64() - start < n) {
  }
  out[0] = before;
  out[1] = now_ns();
}

__global__ void timer_steps(int64_t *out, int n) {
  int64_t last = now_ns();
  for (int i = 0; i < n; i++) {
    int64_t t = now_ns();
    while (t == last)
      t = now_ns();
    out[i] = last = t;
  }
}

__global__ void stream_bytes(const uint4 *in, int64_t capacity, cct_device_bytes bytes, uint32_t *sink) {
  int64_t n = bytes_of(bytes) / 16, span = capacity / 16, step = (int64_t)gridDim.x * threads;
  uint32_t seen = 0;
  for (int64_t base = 0; base < n; base += span) {
    int64_t end = n - base < span ? n - base : span, i = (int64_t)blockIdx.x * threads + threadIdx.x;
    for (; i + (unroll - 1) * step < end; i += unroll * step) {
      uint4 v[unroll];
#pragma unroll
      for (int u = 0; u < unroll; u++)
        v[u] = __ldcs(in + i + u * step);
#pragma unroll
      for (int u = 0; u < unroll; u++)
        seen ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
    }
    for (; i < end; i += step) {
      uint4 v = __ldcs(in + i);
      seen ^= v.x ^ v.y ^ v.z ^ v.w;
    }
  }
  if (seen == 0x9e3779b9u) // keeps the loads alive; practically never true
    *sink = seen;
}

__global__ void elementwise(const uint4 *in, int64_t in_capacity, uint4 *out, int64_t out_capacity,
                            cct_device_bytes bytes) {
  int64_t n = bytes_of(bytes) / 32, in_span = in_capacity / 16, out_span = out_capacity / 16;
  int64_t step = (int64_t)gridDim.x * threads;
  bool wraps = n > in_span || n > out_span; // a 64-bit remainder costs more than the load it addresses
  for (int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x; i < n; i += step) {
    uint4 v = in[wraps ? i % in_span : i];
    out[wraps ? i % out_span : i] = make_uint4(tame(v.x), tame(v.y), tame(v.z), tame(v.w));
  }
}

__global__ void random_words(uint32_t *out, int64_t n, uint64_t seed) {
  for (int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x; i < n; i += (int64_t)gridDim.x * threads)
    out[i] = tame((uint32_t)mix(seed + (uint64_t)i * 0x9e3779b97f4a7c15ull));
}

__global__ void copy_bytes(unsigned char *to, const unsigned char *from, int64_t bytes) {
  int64_t n = bytes / 16, step = (int64_t)gridDim.x * threads, i = (int64_t)blockIdx.x * threads + threadIdx.x;
  const uint4 *src = (const uint4 *)from;
  uint4 *dst = (uint4 *)to;
  int64_t at = i;
  for (; at + (unroll - 1) * step < n; at += unroll * step) {
    uint4 v[unroll];
#pragma unroll
    for (int u = 0; u < unroll; u++)
      v[u] = src[at + u * step];
#pragma unroll
    for (int u = 0; u < unroll; u++)
      dst[at + u * step] = v[u];
  }
  for (; at < n; at += step)
    dst[at] = src[at];
  if (i < bytes % 16)
    to[n * 16 + i] = from[n * 16 + i];
}

__device__ inline int exact_value(const cct_exact &e, int rank, int64_t index) {
  if (e.reduction == CCT_KERNEL_PROD)
    return rank < 6 ? 1 + (int)(mix(((uint64_t)rank << 48) ^ ((uint64_t)index + 0x9e3779b97f4a7c15ull)) & 1) : 1;
  if (e.reduction == CCT_KERNEL_AVG)
    rank = 0;
  uint64_t most = e.type == CCT_KERNEL_INT8 ? 127 : 1ull << (e.precision < 24 ? e.precision : 24);
  uint64_t m = most / (uint64_t)e.ranks;
  if (e.reduction == CCT_KERNEL_MIN || e.reduction == CCT_KERNEL_MAX)
    m = most - 1;
  if (m == 0 && e.reduction == CCT_KERNEL_AVG)
    return 0;
  if (m == 0) {
    uint64_t shift = mix((uint64_t)index + 0x9e3779b97f4a7c15ull) % (uint64_t)e.ranks;
    return ((uint64_t)rank + shift) % (uint64_t)e.ranks < most;
  }
  return (int)(mix(((uint64_t)rank << 48) ^ ((uint64_t)index + 0x9e3779b97f4a7c15ull)) % (m + 1));
}

__device__ inline void put(void *out, int64_t i, cct_kernel_type type, int value) {
  switch (type) {
  case CCT_KERNEL_FP32:
    ((float *)out)[i] = (float)value;
    break;
  case CCT_KERNEL_BF16:
    ((__nv_bfloat16 *)out)[i] = __float2bfloat16((float)value);
    break;
  case CCT_KERNEL_FP16:
    ((__half *)out)[i] = __float2half((float)value);
    break;
  case CCT_KERNEL_E4M3:
    ((__nv_fp8_e4m3 *)out)[i] = __nv_fp8_e4m3((float)value);
    break;
  case CCT_KERNEL_E5M2:
    ((__nv_fp8_e5m2 *)out)[i] = __nv_fp8_e5m2((float)value);
    break;
  case CCT_KERNEL_INT32:
    ((int32_t *)out)[i] = value;
    break;
  case CCT_KERNEL_INT8:
    ((int8_t *)out)[i] = (int8_t)value;
    break;
  }
}

__device__ inline float get(const void *in, int64_t i, cct_kernel_type type) {
  switch (type) {
  case CCT_KERNEL_FP32:
    return ((const float *)in)[i];
  case CCT_KERNEL_BF16:
    return __bfloat162float(((const __nv_bfloat16 *)in)[i]);
  case CCT_KERNEL_FP16:
    return __half2float(((const __half *)in)[i]);
  case CCT_KERNEL_E4M3:
    return (float)((const __nv_fp8_e4m3 *)in)[i];
  case CCT_KERNEL_E5M2:
    return (float)((const __nv_fp8_e5m2 *)in)[i];
  case CCT_KERNEL_INT32:
    return (float)((const int32_t *)in)[i];
  case CCT_KERNEL_INT8:
    return (float)((const int8_t *)in)[i];
  }
  return 0;
}

__global__ void fill(void *out, int64_t n, cct_exact e, int rank, int64_t first) {
  for (int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x; i < n; i += (int64_t)gridDim.x * threads)
    put(out, i, e.type, exact_value(e, rank, first + i));
}

__global__ void check(const void *in, int64_t n, cct_exact e, int rank, int64_t first,
                      cct_check_result_device *result) {
  for (int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x; i < n; i += (int64_t)gridDim.x * threads) {
    int want = exact_value(e, rank >= 0 ? rank : 0, first + i);
    for (int r = 1; rank < 0 && r < e.ranks; r++) {
      int next = exact_value(e, r, first + i);
      want = e.reduction == CCT_KERNEL_SUM    ? want + next
             : e.reduction == CCT_KERNEL_PROD ? want * next
             : e.reduction == CCT_KERNEL_MIN  ? min(want, next)
             : e.reduction == CCT_KERNEL_MAX  ? max(want, next)
                                              : want;
    }
    float off = fabsf(get(in, i, e.type) - (float)want), allowed = 0;
    if (rank < 0 && e.reduction == CCT_KERNEL_AVG && (e.ranks & (e.ranks - 1)))
      allowed = e.ranks * ldexpf((float)want, -e.precision);
    if (!(off <= allowed)) { // also when it is NaN, as poison is
      atomicAdd(&result->wrong, 1ull);
      atomicMin(&result->first, (unsigned long long)i);
    }
  }
}

int blocks_for(int64_t units, int most) {
  int64_t blocks = (units + threads - 1) / threads;
  return (int)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

} // namespace

extern "C" {

cudaError_t cct_kernel_empty(cudaStream_t stream) {
  LAUNCH(empty, 1, 1, stream);
}
cudaError_t cct_kernel_spin(int64_t ns, cudaStream_t stream) {
  LAUNCH(spin, 1, 1, stream, ns);
}
cudaError_t cct_kernel_note(cct_stamp_ring *ring, int64_t id, struct cct_device_bytes bytes, cudaStream_t stream) {
  LAUNCH(note, 1, 1, stream, ring, id, bytes);
}
cudaError_t cct_kernel_stamp(cct_stamp_ring *ring, int64_t id, cudaStream_t stream) {
  LAUNCH(stamp, 1, 1, stream, ring, id);
}
cudaError_t cct_kernel_mark(int64_t *at, cudaStream_t stream) {
  LAUNCH(mark, 1, 1, stream, at);
}
cudaError_t cct_kernel_bare_launches(int n, cudaStream_t stream) {
  for (int i = 0; i < n; i++)
    empty<<<1, 1, 0, stream>>>();
  return cudaGetLastError();
}
cudaError_t cct_kernel_cycles(int64_t n, int64_t *out, cudaStream_t stream) {
  LAUNCH(cycles, 1, 1, stream, n, out);
}
cudaError_t cct_kernel_timer_steps(int64_t *out, int n, cudaStream_t stream) {
  LAUNCH(timer_steps, 1, 1, stream, out, n);
}

cudaError_t cct_kernel_stream(const void *in, int64_t capacity, cct_device_bytes bytes, int blocks, void *sink,
                              cudaStream_t stream) {
  LAUNCH(stream_bytes, blocks, threads, stream, (const uint4 *)in, capacity, bytes, (uint32_t *)sink);
}
cudaError_t cct_kernel_elementwise(const void *in, int64_t in_capacity, void *out, int64_t out_capacity,
                                   cct_device_bytes bytes, int blocks, cudaStream_t stream) {
  LAUNCH(elementwise, blocks, threads, stream, (const uint4 *)in, in_capacity, (uint4 *)out, out_capacity, bytes);
}
cudaError_t cct_kernel_random(void *out, int64_t bytes, uint64_t seed, cudaStream_t stream) {
  LAUNCH(random_words, blocks_for(bytes / 4, 2048), threads, stream, (uint32_t *)out, bytes / 4, seed);
}
cudaError_t cct_kernel_copy(void *to, const void *from, int64_t bytes, int blocks, cudaStream_t stream) {
  LAUNCH(copy_bytes, blocks, threads, stream, (unsigned char *)to, (const unsigned char *)from, bytes);
}

cudaError_t cct_kernel_fill(void *out, int64_t n, cct_exact exact, int rank, int64_t first, cudaStream_t stream) {
  LAUNCH(fill, blocks_for(n, 2048), threads, stream, out, n, exact, rank, first);
}
cudaError_t cct_kernel_check(const void *in, int64_t n, cct_exact exact, int rank, int64_t first,
                             cct_check_result_device *result, cudaStream_t stream) {
  LAUNCH(check, blocks_for(n, 2048), threads, stream, in, n, exact, rank, first, result);
}

} // extern "C"
