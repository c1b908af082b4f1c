/* SPDX-License-Identifier: Apache-2.0
 * What an operation does here.
 *  GEMM         sgemm of one thread: values of the narrower types are held as fp32, four bytes each
 *  ATTENTION    streams the keys and values once by multiply-adds; the flops beyond those as sgemm of 64 x 64 x 64
 *  ELEMENTWISE  reads half of its bytes and writes the other half
 *  COPY         memcpy; a bounce copy seals each chunk first, drops the ciphertext, and is held to the profile's time
 *  COLLECTIVE, SEND, RECV   posted to the funnel; every algorithm is the world's own
 *  LAUNCH, STAMP            nothing: what they cost is their submission
 *  HOSTWORK     computes for so long on its thread's CPU clock
 *  DELAY        holds its lane for so long of real time */
#include "workloads/backends/host.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"

static int64_t thread_cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_ns(int64_t ns) {
  struct timespec span = {ns / 1000000000, ns % 1000000000};
  nanosleep(&span, NULL);
}

static void hold_until(int64_t due_ns) {
  while (cct_clock_ns() < due_ns)
    ;
}

void cct_host_sleep_until(int64_t due_ns) {
  enum {
    look_last_ns = 100000
  };
  int64_t left_ns = due_ns - cct_clock_ns();
  if (left_ns > 2 * look_last_ns)
    sleep_ns(left_ns - look_last_ns);
  hold_until(due_ns);
}

/* A long hold sleeps most of its time. Where ranks share cores, every hold sleeps, work too: what it stands for would
 * not take another rank's core. Elsewhere it is spun to its end, since a sleep of microseconds is late by its own
 * length. */
static void hold(struct cct_host_track *track, int64_t ns, int is_work) {
  enum {
    sleep_above_ns = 200000,
    look_last_ns = 100000
  };
  int64_t start_ns = cct_clock_ns();
  if (track->x->backend->is_oversubscribed) {
    sleep_ns(ns);
  } else if (is_work) {
    for (int64_t start_cpu_ns = thread_cpu_ns(); thread_cpu_ns() - start_cpu_ns < ns;)
      ;
    return;
  } else if (ns > sleep_above_ns) {
    sleep_ns(ns - look_last_ns);
  }
  hold_until(start_ns + ns);
}

static void gemm(struct cct_host_track *track, const struct cct_host_entry *entry, int groups) {
  int64_t m = entry->b.gemm_m, n = entry->b.gemm_n, k = entry->b.gemm_k;
  for (int g = 0; m && n && k && g < groups; g++)
    cct_host_sgemm(m, n, k, (float *)track->from + g * m * k, entry->own + g * k * n, (float *)track->to + g * m * n);
}

/* The sum lands behind the tile in `to`. */
static void attention(struct cct_host_track *track, const struct cct_host_entry *entry) {
  enum {
    width = 16,
    block = 4096,
    tile = CCT_HOST_TILE
  };
  static const float query[width] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  size_t n = (entry->b.bytes + sizeof(float) - 1) / sizeof(float);
  double total = 0;
  for (size_t start = 0; start < n; start += block) {
    float sums[width] = {0}, rest = 0;
    size_t end = start + block < n ? start + block : n, i = start;
    for (; i + width <= end; i += width)
      for (int j = 0; j < width; j++)
        sums[j] += query[j] * entry->own[i + (size_t)j];
    for (; i < end; i++)
      rest += entry->own[i];
    for (int j = 0; j < width; j++)
      rest += sums[j];
    total += rest;
  }
  ((float *)track->to)[tile * tile] = (float)total;
  for (double flops = entry->b.flops - 2 * (double)n; flops >= 2.0 * tile * tile * tile;
       flops -= 2.0 * tile * tile * tile)
    cct_host_sgemm(tile, tile, tile, (float *)track->from, (float *)track->from + tile * tile, (float *)track->to);
}

static void elementwise(struct cct_host_track *track, const struct cct_host_entry *entry) {
  size_t n = (entry->b.bytes + 2 * sizeof(float) - 1) / (2 * sizeof(float));
  const float *from = (const float *)track->from;
  float *to = (float *)track->to;
  for (size_t i = 0; i < n; i++)
    to[i] = from[i] + 1;
}

/* One thread seals chunk by chunk. The profile's time decides: a core faster than it waits at each chunk's end; one
 * that is slower leaves unsealed what it could not seal in time. cct_host_bounce_fact says which. */
static enum cct_status bounce(struct cct_host_track *track, const struct cct_host_entry *entry,
                              const struct cct_op *op) {
  const struct cct_backend *backend = track->x->backend;
  const struct cct_copy_cost *cost = cct_host_bounce_cost(backend, op->copy.direction, op->copy.memory);
  int64_t start_ns = cct_clock_ns();
  for (size_t at = 0; at < entry->b.bytes; at += CCT_SEAL_CHUNK_BYTES) {
    size_t n = entry->b.bytes - at < CCT_SEAL_CHUNK_BYTES ? entry->b.bytes - at : CCT_SEAL_CHUNK_BYTES;
    int64_t due_ns = cost ? start_ns + (int64_t)(cost->fixed_us.value * 1e3 + (double)(at + n) / cost->gb_s.value) : 0;
    struct cct_seal_mark mark;
    if (!cost || track->x->is_verifying || cct_clock_ns() + (int64_t)((double)n / backend->seal_gb_s) <= due_ns) {
      enum cct_status status = cct_seal_chunk(track->seal, track->from + at, n, track->cipher, &mark);
      if (!status && track->x->is_verifying) /* what is dropped must have been the plaintext, sealed */
        status = cct_seal_open(track->seal, track->cipher, n, &mark, track->to + at);
      if (status)
        return status;
    }
    if (!track->x->is_verifying)
      memcpy(track->to + at, track->from + at, n);
    hold_until(due_ns);
  }
  return CCT_OK;
}

int cct_host_is_copied(const struct cct_op *op) {
  return op->kind == CCT_OP_COLLECTIVE &&
         (cct_collective_reduces(op->collective.kind) || op->collective.kind == CCT_COLL_BROADCAST) &&
         op->reads[0] >= 0 && op->reads[0] != op->writes;
}

int cct_host_is_in_place(const struct cct_op *op) {
  return op->kind == CCT_OP_COLLECTIVE && op->collective.kind == CCT_COLL_ALL_GATHER && op->reads[0] >= 0 &&
         op->reads[0] == op->writes;
}

/* Into the buffer where it is performed. */
static void copy_input(struct cct_host_track *track, const struct cct_host_entry *entry, const struct cct_op *op) {
  size_t bits = entry->b.elements * (size_t)cct_type_bits(op->collective.type);
  if (cct_host_is_copied(op) && (op->collective.kind != CCT_COLL_BROADCAST || !entry->me))
    memcpy(track->to, track->from, bits / 8);
}

static void finish_average(struct cct_host_track *track, const struct cct_host_entry *entry, const struct cct_op *op) {
  size_t n = op->collective.kind == CCT_COLL_REDUCE_SCATTER ? entry->b.elements / (size_t)entry->n : entry->b.elements;
  if (op->collective.kind != CCT_COLL_REDUCE || !entry->me)
    cct_host_divide(op->collective.type, track->to, n, entry->n);
}

static enum cct_status exchange(struct cct_host_track *track, int first, int last) {
  struct cct_host_comm *comm = &track->comm;
  comm->first = first;
  comm->last = last;
  for (int id = first; id <= last; id++) {
    if (track->x->is_verifying)
      cct_host_prepare(track, id);
    track->x->entries[id].span.start_ns = cct_clock_ns() - track->x->start_ns;
    copy_input(track, &track->x->entries[id], &track->x->program->ops[id]);
  }
  int64_t n = atomic_fetch_add(&comm->posted, 1) + 1;
  atomic_fetch_add(&track->x->posts, 1);
  cct_host_wake(track->x, &track->x->posts);
  if (!cct_host_wait(track, &comm->completed, n))
    return CCT_STOPPED;
  for (int id = first; id <= last; id++) {
    if (track->x->program->ops[id].kind == CCT_OP_COLLECTIVE &&
        track->x->program->ops[id].collective.reduction == CCT_REDUCTION_AVG)
      finish_average(track, &track->x->entries[id], &track->x->program->ops[id]);
    track->x->entries[id].span.end_ns = cct_clock_ns() - track->x->start_ns;
    if (track->x->is_verifying)
      cct_host_check(track, id);
  }
  return CCT_OK;
}

static enum cct_status group(struct cct_host_track *track, int id) {
  const struct cct_op *ops = track->x->program->ops;
  enum cct_status status = CCT_OK;
  int last = id;
  while (ops[last + 1].kind != CCT_OP_END)
    last++;
  if (last > id && ops[id + 1].kind != CCT_OP_COLLECTIVE)
    return exchange(track, id + 1, last);
  for (int i = id + 1; !status && i <= last; i++)
    status = exchange(track, i, i);
  return status;
}

static enum cct_status work(struct cct_host_track *track, const struct cct_host_entry *entry, const struct cct_op *op) {
  switch (op->kind) {
  case CCT_OP_GEMM:
    gemm(track, entry, op->gemm.groups);
    return CCT_OK;
  case CCT_OP_ATTENTION:
    attention(track, entry);
    return CCT_OK;
  case CCT_OP_ELEMENTWISE:
    elementwise(track, entry);
    return CCT_OK;
  case CCT_OP_COPY:
    if (op->copy.is_bounce)
      return bounce(track, entry, op);
    if (entry->b.bytes)
      memcpy(track->to, track->from, entry->b.bytes);
    return CCT_OK;
  case CCT_OP_HOSTWORK:
  case CCT_OP_DELAY:
    hold(track, entry->b.hold_ns, op->kind == CCT_OP_HOSTWORK);
    return CCT_OK;
  default:
    return CCT_OK;
  }
}

enum cct_status cct_host_perform(struct cct_host_track *track, int id) {
  const struct cct_op *op = &track->x->program->ops[id];
  if (op->kind == CCT_OP_COLLECTIVE)
    return exchange(track, id, id);
  if (op->kind == CCT_OP_GROUP)
    return group(track, id);
  if (track->x->is_verifying)
    cct_host_prepare(track, id);
  enum cct_status status = work(track, &track->x->entries[id], op);
  if (!status && track->x->is_verifying)
    cct_host_check(track, id);
  return status;
}
