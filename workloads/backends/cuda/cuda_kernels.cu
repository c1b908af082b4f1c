// SPDX-License-Identifier: Apache-2.0
// The CUDA backend's own kernels. Everything else of the backend is C.
#include "workloads/backends/cuda/cuda_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace {

constexpr int threads = 256;
constexpr int unroll = 4; // 16-byte loads in flight a thread

__device__ inline int64_t now_ns() {
  int64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

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

// ---- all-reduce by peer access ----

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
    int64_t since = now_ns();
    while ((int32_t)(load_acquire(&own->ping) - turn) < 0)
      if (now_ns() - since > p.limit_ns) {
        own->is_late = 1;
        break;
      }
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
    int64_t since = now_ns();
    while ((int32_t)(load_acquire(&own->ping) - turn) < 0)
      if (now_ns() - since > p.limit_ns) {
        own->is_late = 1;
        break;
      }
    if (p.rank == 1)
      store_release(&peer->ping, turn);
  }
  out[0] = now_ns() - start;
  own->ping_turn = turn;
}

int blocks_for(int64_t units, int most) {
  int64_t blocks = (units + threads - 1) / threads;
  return (int)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

} // namespace

#define LAUNCH(kernel, blocks, per_block, stream, ...)                                                                 \
  do {                                                                                                                 \
    kernel<<<blocks, per_block, 0, stream>>>(__VA_ARGS__);                                                             \
    return cudaGetLastError();                                                                                         \
  } while (0)

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
