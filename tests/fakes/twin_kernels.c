/* SPDX-License-Identifier: Apache-2.0
 * The backend's kernels, alone and between two GPUs. */
#include "fakes/twin_gpu.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "workloads/backends/cuda/cuda_kernels.h"

#define AHEAD_NS 123456789000

struct timed {
  int64_t ns, id, *at;
  struct cct_stamp_ring *ring;
};
static atomic_int n_spinning;
static _Atomic long product_ns;
static _Atomic double product_beside = 1;
static _Atomic int64_t worked_ns; /* when the last large product ended */

void twin_slow_products(long ns, double beside_spin) {
  atomic_store(&product_ns, ns);
  atomic_store(&product_beside, beside_spin);
}
long twin_product_ns(void) {
  double times = atomic_load(&n_spinning) ? atomic_load(&product_beside) : 1;
  int is_rested = cct_clock_ns() - atomic_load(&worked_ns) > 5000000;
  return (long)((double)atomic_load(&product_ns) * times + (is_rested ? twin_costs.rest_us * 1e3 : 0));
}
void twin_worked(void) {
  atomic_store(&worked_ns, cct_clock_ns());
}

static void do_spin(void *arguments) {
  atomic_fetch_add(&n_spinning, 1);
  twin_spend((double)((struct timed *)arguments)->ns / 1e3);
  atomic_fetch_sub(&n_spinning, 1);
}
/* A cycle is a nanosecond. */
static void do_cycles(void *arguments) {
  const struct timed *t = arguments;
  double factor = twin_costs.timer_factor > 0 ? twin_costs.timer_factor : 1;
  int64_t start_ns = cct_clock_ns();
  twin_spend((double)t->ns / 1e3);
  t->at[0] = start_ns + AHEAD_NS;
  t->at[1] = t->at[0] + (int64_t)((double)(cct_clock_ns() - start_ns) * factor);
}
static void do_mark(void *arguments) {
  atomic_store((_Atomic int64_t *)((struct timed *)arguments)->at, cct_clock_ns() + AHEAD_NS);
}
static void do_stamp(void *arguments) {
  const struct timed *t = arguments;
  t->ring->at[__atomic_fetch_add(&t->ring->count, 1, __ATOMIC_RELAXED) % CCT_STAMP_CAPACITY] =
      (struct cct_stamp){t->id, cct_clock_ns() + AHEAD_NS};
}
struct note {
  struct cct_stamp_ring *ring;
  int64_t id;
  struct cct_device_bytes bytes;
};
static void do_note(void *arguments) {
  const struct note *n = arguments;
  const struct cct_device_bytes *b = &n->bytes;
  int64_t bytes = b->base + (b->slot < 0 ? 0 : b->per * b->slots[b->slot]);
  n->ring->at[__atomic_fetch_add(&n->ring->count, 1, __ATOMIC_RELAXED) % CCT_STAMP_CAPACITY] =
      (struct cct_stamp){n->id, bytes};
}
static void nothing(void *arguments) {
  (void)arguments;
  twin_spend(twin_costs.kernel_us);
}
cudaError_t cct_kernel_empty(cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, nothing, NULL, 0);
}
cudaError_t cct_kernel_bare_launches(int n, cudaStream_t s) {
  for (int i = 0; i < n; i++)
    (void)cct_kernel_empty(s);
  return cudaSuccess;
}
cudaError_t cct_kernel_spin(int64_t ns, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, do_spin, &(struct timed){.ns = ns}, sizeof(struct timed));
}
cudaError_t cct_kernel_stamp(struct cct_stamp_ring *ring, int64_t id, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, do_stamp, &(struct timed){.ring = ring, .id = id}, sizeof(struct timed));
}
cudaError_t cct_kernel_note(struct cct_stamp_ring *ring, int64_t id, struct cct_device_bytes bytes, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, do_note, &(struct note){ring, id, bytes}, sizeof(struct note));
}
cudaError_t cct_kernel_mark(int64_t *at, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, do_mark, &(struct timed){.at = at}, sizeof(struct timed));
}
cudaError_t cct_kernel_cycles(int64_t cycles, int64_t *out, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, do_cycles, &(struct timed){.ns = cycles, .at = out}, sizeof(struct timed));
}
cudaError_t cct_kernel_timer_steps(int64_t *out, int n, cudaStream_t s) {
  for (int i = 0; i < n; i++)
    out[i] = 32 * i;
  return cct_kernel_empty(s);
}
cudaError_t cct_kernel_stream(const void *in, int64_t capacity, struct cct_device_bytes bytes, int blocks, void *sink,
                              cudaStream_t s) {
  (void)in;
  (void)capacity;
  (void)bytes;
  (void)blocks;
  (void)sink;
  return cct_kernel_empty(s);
}
cudaError_t cct_kernel_elementwise(const void *in, int64_t in_capacity, void *out, int64_t out_capacity,
                                   struct cct_device_bytes bytes, int blocks, cudaStream_t s) {
  (void)in;
  (void)in_capacity;
  (void)out;
  (void)out_capacity;
  (void)bytes;
  (void)blocks;
  return cct_kernel_empty(s);
}
/* Small values, alike as bf16. */
cudaError_t cct_kernel_random(void *out, int64_t bytes, uint64_t seed, cudaStream_t s) {
  (void)seed;
  return cudaMemsetAsync(out, 0x3e, (size_t)bytes, s);
}
/* One word that a kernel reads anew and again gets as it was. */
struct stale {
  void *to;
  const void *from;
};
static void move_stale(void *arguments) {
  static uint64_t last;
  const struct stale *m = arguments;
  uint64_t now;
  memcpy(&now, m->from, sizeof now);
  memcpy(m->to, &last, sizeof last);
  last = now;
}
cudaError_t cct_kernel_copy(void *to, const void *from, int64_t bytes, int blocks, cudaStream_t s) {
  (void)blocks;
  if (twin_costs.stale > 0 && bytes == 16)
    return (cudaError_t)twin_enqueue(s, move_stale, &(struct stale){to, from}, sizeof(struct stale));
  return cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, s);
}
cudaError_t cct_kernel_fill(void *out, int64_t n, struct cct_exact exact, int rank, int64_t first, cudaStream_t s) {
  (void)out;
  (void)n;
  (void)exact;
  (void)rank;
  (void)first;
  return cct_kernel_empty(s);
}
cudaError_t cct_kernel_check(const void *in, int64_t n, struct cct_exact exact, int rank, int64_t first,
                             struct cct_check_result_device *result, cudaStream_t s) {
  (void)result;
  return cct_kernel_fill((void *)(uintptr_t)in, n, exact, rank, first, s);
}
cudaError_t cct_kernel_p2p_reduce(const struct cct_p2p_peers *peers, int is_twoshot, enum cct_kernel_type type,
                                  const void *in, void *out, int64_t bytes, cudaStream_t s) {
  (void)peers;
  (void)is_twoshot;
  (void)type;
  (void)in;
  (void)out;
  (void)bytes;
  (void)s;
  return cudaErrorNotSupported;
}

/* ---- between two GPUs ---- */

struct exchange {
  struct cct_p2p_peers peers;
  const char *in;
  int64_t in_rows, n, row_bytes, *out;
};
static void await_turn(const struct cct_p2p_peers *p, uint32_t turn) {
  uint32_t *own = &p->area[p->rank]->ping;
  while ((int32_t)(__atomic_load_n(own, __ATOMIC_ACQUIRE) - turn) < 0)
    sched_yield();
}
static void tell_turn(const struct cct_p2p_peers *p, uint32_t turn) {
  __atomic_store_n(&p->area[1 - p->rank]->ping, turn, __ATOMIC_RELEASE);
}
static void do_ping_pong(void *arguments) {
  const struct exchange *e = arguments;
  struct cct_p2p_area *own = e->peers.area[e->peers.rank];
  int64_t start_ns = cct_clock_ns();
  for (int64_t i = 0; i < e->n; i++) {
    own->ping_turn++;
    for (int turn = 0; turn < 2; turn++) {
      if (turn != e->peers.rank) {
        await_turn(&e->peers, own->ping_turn);
        continue;
      }
      twin_spend(twin_costs.write_us);
      tell_turn(&e->peers, own->ping_turn);
    }
  }
  *e->out = cct_clock_ns() - start_ns;
}
static void do_dispatch(void *arguments) {
  const struct exchange *e = arguments;
  struct cct_p2p_area *own = e->peers.area[e->peers.rank], *peer = e->peers.area[1 - e->peers.rank];
  for (int64_t t = 0; t < e->n; t++)
    memcpy((char *)peer->data + t * e->row_bytes, e->in + t % e->in_rows * e->row_bytes, (size_t)e->row_bytes);
  twin_spend(twin_costs.row_us * (double)e->n);
  own->ping_turn++;
  tell_turn(&e->peers, own->ping_turn);
  await_turn(&e->peers, own->ping_turn);
}
cudaError_t cct_kernel_ping_pong(const struct cct_p2p_peers *peers, int n, int64_t *out, cudaStream_t s) {
  struct exchange e = {.peers = *peers, .n = n, .out = out};
  return (cudaError_t)twin_enqueue(s, do_ping_pong, &e, sizeof e);
}
cudaError_t cct_kernel_dispatch(const struct cct_p2p_peers *peers, const void *in, int64_t in_bytes, int64_t tokens,
                                int64_t row_bytes, int blocks, cudaStream_t s) {
  struct exchange e = {.peers = *peers, .in = in, .in_rows = in_bytes / row_bytes, .n = tokens, .row_bytes = row_bytes};
  (void)blocks;
  return (cudaError_t)twin_enqueue(s, do_dispatch, &e, sizeof e);
}
