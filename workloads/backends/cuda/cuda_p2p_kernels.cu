// SPDX-License-Identifier: Apache-2.0
// Kernels that read and write the memory of other GPUs: all-reduces, the dispatch of rows, short writes.
#include "workloads/backends/cuda/cuda_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "workloads/backends/cuda/cuda_device.cuh"

namespace {

__device__ inline void store_release(uint32_t *at, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
__device__ inline uint32_t load_acquire(const uint32_t *at) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

// Block b of every rank meets block b of every other. Counters only grow, so nothing is ever reset; the comparison is
// of the difference, so that they may wrap.
__device__ inline void meet(const cct_p2p_peers &p, uint32_t turn) {
  __syncthreads();
  if (threadIdx.x < p.ranks) {
    cct_p2p_area *own = p.area[p.rank];
    __threadfence_system();
    store_release(&p.area[threadIdx.x]->arrived[blockIdx.x][p.rank], turn);
    int64_t start = now_ns();
    while ((int32_t)(load_acquire(&own->arrived[blockIdx.x][threadIdx.x]) - turn) < 0)
      if (now_ns() - start > p.limit_ns) {
        own->is_late = 1;
        break;
      }
  }
  __syncthreads();
}

template <typename T> struct pack { T v[16 / sizeof(T)]; };
__device__ inline float as_float(float v) {
  return v;
}
__device__ inline float as_float(__nv_bfloat16 v) {
  return __bfloat162float(v);
}
__device__ inline float as_float(__half v) {
  return __half2float(v);
}
__device__ inline void from_float(float &to, float v) {
  to = v;
}
__device__ inline void from_float(__nv_bfloat16 &to, float v) {
  to = __float2bfloat16(v);
}
__device__ inline void from_float(__half &to, float v) {
  to = __float2half(v);
}

template <typename T> __device__ inline uint4 sum_of(const cct_p2p_peers &p, uint32_t parity, int64_t i) {
  constexpr int width = 16 / sizeof(T);
  float sum[width] = {};
  uint4 raw[CCT_P2P_RANKS];
#pragma unroll
  for (int r = 0; r < CCT_P2P_RANKS; r++)
    if (r < p.ranks)
      raw[r] = ((const uint4 *)p.area[r]->data[parity][0])[i];
#pragma unroll
  for (int r = 0; r < CCT_P2P_RANKS; r++)
    if (r < p.ranks) {
      const pack<T> &values = *(const pack<T> *)&raw[r];
#pragma unroll
      for (int j = 0; j < width; j++)
        sum[j] += as_float(values.v[j]);
    }
  uint4 result;
  pack<T> &packed = *(pack<T> *)&result;
#pragma unroll
  for (int j = 0; j < width; j++)
    from_float(packed.v[j], sum[j]);
  return result;
}

// The areas' halves alternate from call to call: a rank writes half h again only after it met its peers in the call
// between, which they began only after all their blocks had read half h. So no meeting is needed at a call's end.
template <typename T, bool twoshot>
__global__ void __launch_bounds__(512)
    p2p_reduce(const __grid_constant__ cct_p2p_peers p, const uint4 *in, uint4 *out, int64_t n) {
  cct_p2p_area *own = p.area[p.rank];
  uint32_t parity = *(volatile uint32_t *)&own->parity, turn = own->turn[blockIdx.x];
  int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, step = (int64_t)gridDim.x * blockDim.x;
  uint4 *staged = (uint4 *)own->data[parity][0];
  if (!twoshot) {
    for (int64_t i = first; i < n; i += step)
      staged[i] = in[i];
    meet(p, ++turn);
    for (int64_t i = first; i < n; i += step)
      out[i] = sum_of<T>(p, parity, i);
  } else {
    // A chunk a rank; block b stages, reduces and gathers the same places of every chunk, so that only blocks b must
    // meet.
    int64_t chunk = (n + p.ranks - 1) / p.ranks;
    for (int c = 0; c < p.ranks; c++)
      for (int64_t i = first; i < chunk && c * chunk + i < n; i += step)
        staged[c * chunk + i] = in[c * chunk + i];
    meet(p, ++turn);
    uint4 *reduced = (uint4 *)own->data[parity][1];
    for (int64_t i = first; i < chunk && p.rank * chunk + i < n; i += step)
      reduced[i] = sum_of<T>(p, parity, p.rank * chunk + i);
    meet(p, ++turn);
    for (int c = 0; c < p.ranks; c++)
      for (int64_t i = first; i < chunk && c * chunk + i < n; i += step)
        out[c * chunk + i] = ((const uint4 *)p.area[c]->data[parity][1])[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    own->turn[blockIdx.x] = turn;
    if (atomicAdd(&own->finished, 1u) == gridDim.x - 1) { // all blocks have read the parity by now
      own->finished = 0;
      own->parity = parity ^ 1;
    }
  }
}

// Until the peer has told this turn, or the limit, which leaves its mark.
__device__ inline void await_ping(cct_p2p_area *own, uint32_t turn, int64_t limit_ns) {
  int64_t since = now_ns();
  while ((int32_t)(load_acquire(&own->ping) - turn) < 0)
    if (now_ns() - since > limit_ns) {
      own->is_late = 1;
      return;
    }
}

// A warp a row. Places are spread by a prime, as rows of a batch go to experts; the block that is through last tells
// the peer, and waits for the peer's.
__global__ void __launch_bounds__(512)
    dispatch(const __grid_constant__ cct_p2p_peers p, const uint4 *in, int64_t in_rows, int64_t tokens, int64_t row) {
  constexpr int64_t prime = 1000003;
  cct_p2p_area *own = p.area[p.rank], *peer = p.area[1 - p.rank];
  uint4 *out = (uint4 *)peer->data;
  int64_t warps = (int64_t)gridDim.x * blockDim.x / 32, lane = threadIdx.x % 32;
  for (int64_t t = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; t < tokens; t += warps) {
    const uint4 *src = in + t % in_rows * row;
    uint4 *dst = out + t * prime % tokens * row;
    for (int64_t i = lane; i < row; i += 32)
      dst[i] = src[i];
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&own->finished, 1u) == gridDim.x - 1) {
    uint32_t turn = own->ping_turn + 1;
    own->finished = 0;
    own->ping_turn = turn;
    store_release(&peer->ping, turn);
    await_ping(own, turn, p.limit_ns);
  }
}

__global__ void ping_pong(const __grid_constant__ cct_p2p_peers p, int n, int64_t *out) {
  cct_p2p_area *own = p.area[p.rank], *peer = p.area[1 - p.rank];
  uint32_t turn = own->ping_turn;
  int64_t start = now_ns();
  for (int i = 0; i < n; i++) {
    turn++;
    if (p.rank == 0)
      store_release(&peer->ping, turn);
    await_ping(own, turn, p.limit_ns);
    if (p.rank == 1)
      store_release(&peer->ping, turn);
  }
  out[0] = now_ns() - start;
  own->ping_turn = turn;
}

} // namespace

extern "C" {

cudaError_t cct_kernel_p2p_reduce(const cct_p2p_peers *peers, int is_twoshot, cct_kernel_type type, const void *in,
                                  void *out, int64_t bytes, cudaStream_t stream) {
  constexpr int wide = 512;
  int64_t n = bytes / 16, share = is_twoshot ? (n + peers->ranks - 1) / peers->ranks : n;
  int64_t most = (share + wide - 1) / wide;
  int blocks = (int)(most < 1 ? 1 : most < CCT_P2P_BLOCKS ? most : CCT_P2P_BLOCKS);
  // A block's counters move only when it runs, and every rank runs the same blocks in every call, so they stay equal.
#define P2P(T)                                                                                                         \
  if (is_twoshot)                                                                                                      \
    p2p_reduce<T, true><<<blocks, wide, 0, stream>>>(*peers, (const uint4 *)in, (uint4 *)out, n);                      \
  else                                                                                                                 \
    p2p_reduce<T, false><<<blocks, wide, 0, stream>>>(*peers, (const uint4 *)in, (uint4 *)out, n)
  if (type == CCT_KERNEL_BF16) {
    P2P(__nv_bfloat16);
  } else if (type == CCT_KERNEL_FP16) {
    P2P(__half);
  } else if (type == CCT_KERNEL_FP32) {
    P2P(float);
  } else {
    return cudaErrorInvalidValue;
  }
#undef P2P
  return cudaGetLastError();
}

cudaError_t cct_kernel_dispatch(const cct_p2p_peers *peers, const void *in, int64_t in_bytes, int64_t tokens,
                                int64_t row_bytes, int blocks, cudaStream_t stream) {
  constexpr int wide = 512;
  int64_t most = (tokens * 32 + wide - 1) / wide;
  LAUNCH(dispatch, (int)(most < blocks ? most : blocks), wide, stream, *peers, (const uint4 *)in, in_bytes / row_bytes,
         tokens, row_bytes / 16);
}

cudaError_t cct_kernel_ping_pong(const cct_p2p_peers *peers, int n, int64_t *out, cudaStream_t stream) {
  LAUNCH(ping_pong, 1, 1, stream, *peers, n, out);
}

} // extern "C"
