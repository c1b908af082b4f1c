/* SPDX-License-Identifier: Apache-2.0
 * The CUDA backend's own kernels, behind C functions that enqueue one kernel each on `stream` and return its launch
 * error. Pointers are device pointers (or mapped host memory for cct_kernel_copy), aligned to 16 bytes; times are
 * %globaltimer ns. */
#ifndef CCT_WORKLOADS_BACKENDS_CUDA_KERNELS_H
#define CCT_WORKLOADS_BACKENDS_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of an operation as the device reads them: base + per * slots[slot], so that a captured graph serves any
 * binding. */
struct cct_device_bytes {
  int64_t base, per;
  int slot; /* -1: base alone */
  const int64_t *slots;
};

#define CCT_STAMP_CAPACITY 4096
struct cct_stamp {
  int64_t id, ns;
};
struct cct_stamp_ring { /* on the device; the newest CCT_STAMP_CAPACITY stamps */
  unsigned long long count;
  struct cct_stamp at[CCT_STAMP_CAPACITY];
};

cudaError_t cct_kernel_empty(cudaStream_t stream);
cudaError_t cct_kernel_spin(int64_t ns, cudaStream_t stream); /* one thread holds the stream */
cudaError_t cct_kernel_stamp(struct cct_stamp_ring *ring, int64_t id, cudaStream_t stream);
/* A stamp of the bytes that an operation reads there, in place of the time. */
cudaError_t cct_kernel_note(struct cct_stamp_ring *ring, int64_t id, struct cct_device_bytes bytes,
                            cudaStream_t stream);
/* out[0..1]: %globaltimer before and after `cycles` of clock64 */
cudaError_t cct_kernel_cycles(int64_t cycles, int64_t *out, cudaStream_t stream);
cudaError_t cct_kernel_mark(int64_t *at, cudaStream_t stream); /* %globaltimer; `at` may be mapped host memory */
/* `n` empty kernels by the barest loop there is. */
cudaError_t cct_kernel_bare_launches(int n, cudaStream_t stream);
/* Consecutive distinct values of %globaltimer. */
cudaError_t cct_kernel_timer_steps(int64_t *out, int n, cudaStream_t stream);

/* Reads `bytes` once, wrapping at `capacity` bytes: a KV cache streamed from HBM. */
cudaError_t cct_kernel_stream(const void *in, int64_t capacity, struct cct_device_bytes bytes, int blocks, void *sink,
                              cudaStream_t stream);
/* Reads half of `bytes` and writes as many, each value brought back to +-[0.5, 1) whatever it was, so that a chain of
 * products never overflows; the bits stay harmless as bf16, fp16, fp32, e4m3 and e5m2. */
cudaError_t cct_kernel_elementwise(const void *in, int64_t in_capacity, void *out, int64_t out_capacity,
                                   struct cct_device_bytes bytes, int blocks, cudaStream_t stream);
cudaError_t cct_kernel_random(void *out, int64_t bytes, uint64_t seed, cudaStream_t stream); /* values as above */
cudaError_t cct_kernel_copy(void *to, const void *from, int64_t bytes, int blocks, cudaStream_t stream);

/* Integer inputs whose every partial result over `ranks` is exact in a format of `precision` significand bits.
 *  sum       0..m by a hash of rank and index, m = floor(2^precision / ranks); where m is 0, 2^precision of the ranks,
 *            chosen by the index, give 1
 *  prod      1 or 2 of the first six ranks, 1 of the others
 *  min, max  0..2^precision - 1
 *  avg       the sum's inputs of rank 0, of every rank: their mean, which a division by ranks that are no power of two
 *            may miss by a rounding of each summand */
enum cct_kernel_type {
  CCT_KERNEL_FP32,
  CCT_KERNEL_BF16,
  CCT_KERNEL_FP16,
  CCT_KERNEL_E4M3,
  CCT_KERNEL_E5M2,
  CCT_KERNEL_INT32,
  CCT_KERNEL_INT8
};
enum cct_kernel_reduction {
  CCT_KERNEL_SUM,
  CCT_KERNEL_PROD,
  CCT_KERNEL_MIN,
  CCT_KERNEL_MAX,
  CCT_KERNEL_AVG
};
struct cct_exact {
  enum cct_kernel_type type;
  int ranks, precision;
  enum cct_kernel_reduction reduction;
};
/* Element i becomes the value of (rank, first + i). */
cudaError_t cct_kernel_fill(void *out, int64_t n, struct cct_exact exact, int rank, int64_t first, cudaStream_t stream);
struct cct_check_result_device { /* zero `wrong` and set `first` to all ones before */
  unsigned long long wrong, first;
};
/* Element i must be the value of (rank, first + i), or with rank -1 the reduction over all ranks. */
cudaError_t cct_kernel_check(const void *in, int64_t n, struct cct_exact exact, int rank, int64_t first,
                             struct cct_check_result_device *result, cudaStream_t stream);

/* All-reduce by peer access, as serving engines do for small messages. Every rank's `area` lies in memory that all
 * ranks have mapped. Types: fp32, bf16, fp16. `bytes` is a multiple of 16 and at most CCT_P2P_LIMIT_BYTES. */
#define CCT_P2P_RANKS       8
#define CCT_P2P_BLOCKS      36
#define CCT_P2P_LIMIT_BYTES ((int64_t)8 << 20)
struct cct_p2p_area {
  uint32_t arrived[CCT_P2P_BLOCKS][CCT_P2P_RANKS]; /* written by the peer, one counter for each of its blocks */
  uint32_t turn[CCT_P2P_BLOCKS];                   /* own: barriers passed so far */
  uint32_t parity;                                 /* own: which half of `data` the next call uses */
  uint32_t finished;                               /* own: blocks of the running call that are through */
  uint32_t is_late;                                /* own: a peer did not come within the limit */
  uint32_t ping;                                   /* written by the peer of a ping-pong */
  uint32_t ping_turn;                              /* own */
  uint32_t pad[3];
  unsigned char data[2][2][CCT_P2P_LIMIT_BYTES]; /* [parity][input | reduced] */
};
struct cct_p2p_peers {
  struct cct_p2p_area *area[CCT_P2P_RANKS];
  int ranks, rank;
  int64_t limit_ns; /* a block gives up waiting after this */
};
cudaError_t cct_kernel_p2p_reduce(const struct cct_p2p_peers *peers, int is_twoshot, enum cct_kernel_type type,
                                  const void *in, void *out, int64_t bytes, cudaStream_t stream);
/* `tokens` rows of `row_bytes` (a multiple of 16) from `in` (`in_bytes`, its rows in turn), each stored to its place in
 * the peer's `data` by the threads of a warp; then both wait for each other's. Ranks 0 and 1; at most
 * CCT_DISPATCH_BYTES. */
#define CCT_DISPATCH_BYTES (4 * CCT_P2P_LIMIT_BYTES)
cudaError_t cct_kernel_dispatch(const struct cct_p2p_peers *peers, const void *in, int64_t in_bytes, int64_t tokens,
                                int64_t row_bytes, int blocks, cudaStream_t stream);
/* `n` round trips of one word between the areas' owners 0 and 1; out[0] of rank 0: ns of all of them. */
cudaError_t cct_kernel_ping_pong(const struct cct_p2p_peers *peers, int n, int64_t *out, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
