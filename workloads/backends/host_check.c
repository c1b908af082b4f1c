/* SPDX-License-Identifier: Apache-2.0
 * verify(): inputs that give exact results, outputs poisoned before, elements counted that differ after. */
#include "workloads/backends/host.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  poison = 0xff, /* four of it are a NaN; no byte that is only moved has this value */
  n_spots = 256, /* elements of a product that are computed again in double */
};

static float small_number(int id, size_t index) {
  return (float)cct_host_hash((uint32_t)id, index, 4);
}

static void fill_numbers(float *at, size_t n, int id, size_t first) {
  for (size_t i = 0; i < n; i++)
    at[i] = small_number(id, first + i);
}

static void fill_bytes(unsigned char *at, size_t n, int sender, int receiver) {
  for (size_t i = 0; i < n; i++)
    at[i] = cct_host_byte(sender, receiver, i);
}

static void judge(struct cct_host_track *track, int id, size_t index, int is_right) {
  track->elements++;
  if (is_right)
    return;
  if (!track->wrong++)
    snprintf(track->first_wrong, sizeof track->first_wrong, "entry %d '%.64s', element %zu", id,
             track->x->program->ops[id].name, index);
}

static void check_bytes(struct cct_host_track *track, int id, const unsigned char *at, size_t n, int sender,
                        int receiver) {
  for (size_t i = 0; i < n; i++)
    judge(track, id, i, at[i] == cct_host_byte(sender, receiver, i));
}

/* ---- collectives and messages ---- */

static int is_moved_once(const struct cct_op *op) { /* what differs only by its sender */
  return op->collective.kind == CCT_COLL_ALL_GATHER || op->collective.kind == CCT_COLL_BROADCAST;
}

static size_t part(const struct cct_host_entry *entry) {
  return (entry->b.bytes + (size_t)entry->n - 1) / (size_t)entry->n;
}

static void prepare_collective(struct cct_host_track *track, int id) {
  const struct cct_host_entry *entry = &track->x->entries[id];
  const struct cct_op *op = &track->x->program->ops[id];
  if (entry->b.send_bytes) {
    size_t from = 0, to = 0;
    for (int i = 0; i < entry->n; i++) {
      fill_bytes(track->from + from, entry->b.send_bytes[i], entry->me, i);
      from += entry->b.send_bytes[i];
      to += entry->b.recv_bytes[i];
    }
    memset(track->to, poison, to);
  } else if (op->collective.kind == CCT_COLL_ALL_GATHER) {
    size_t n = part(entry);
    memset(track->to, poison, n * (size_t)entry->n);
    fill_bytes(cct_host_is_in_place(op) ? track->to + n * (size_t)entry->me : track->from, n, entry->me, 0);
  } else if (op->collective.kind == CCT_COLL_BROADCAST) {
    memset(track->to, poison, entry->b.bytes);
    if (!entry->me)
      fill_bytes(cct_host_is_copied(op) ? track->from : track->to, entry->b.bytes, 0, 0);
  } else { /* reductions are in place: this rank's input is the poison of its result */
    unsigned char *at = cct_host_is_copied(op) ? track->from : track->to;
    for (size_t i = 0; i < entry->b.elements; i++)
      cct_host_put(op->collective.type, at, i,
                   cct_host_input(op->collective.type, op->collective.reduction, entry->n, entry->me, i));
    if (at == track->from)
      memset(track->to, poison, entry->b.elements * (size_t)cct_type_bits(op->collective.type) / 8);
  }
}

static void check_sum(struct cct_host_track *track, int id) {
  const struct cct_host_entry *entry = &track->x->entries[id];
  const struct cct_op *op = &track->x->program->ops[id];
  size_t n = entry->b.elements, first = 0;
  if (op->collective.kind == CCT_COLL_REDUCE && entry->me)
    return;
  if (op->collective.kind == CCT_COLL_REDUCE_SCATTER) {
    n /= (size_t)entry->n;
    first = n * (size_t)entry->me;
  }
  for (size_t i = 0; i < n; i++) {
    int result = cct_host_result(op->collective.type, op->collective.reduction, entry->n, first + i);
    judge(track, id, i, cct_host_is(op->collective.type, track->to, i, result));
  }
}

static void check_collective(struct cct_host_track *track, int id) {
  const struct cct_host_entry *entry = &track->x->entries[id];
  const struct cct_op *op = &track->x->program->ops[id];
  size_t at = 0;
  if (!entry->b.send_bytes && !is_moved_once(op)) {
    check_sum(track, id);
    return;
  }
  if (op->collective.kind == CCT_COLL_BROADCAST) {
    check_bytes(track, id, track->to, entry->b.bytes, 0, 0);
    return;
  }
  for (int i = 0; i < entry->n; i++) {
    size_t n = entry->b.send_bytes ? entry->b.recv_bytes[i] : part(entry);
    check_bytes(track, id, track->to + at, n, i, entry->b.send_bytes ? entry->me : 0);
    at += n;
  }
}

static int peer_of(const struct cct_host_entry *entry, const struct cct_op *op) {
  return ((entry->me + op->p2p.peer_offset) % entry->n + entry->n) % entry->n;
}

static void message(struct cct_host_track *track, int id, int is_check) {
  const struct cct_host_entry *entry = &track->x->entries[id];
  const struct cct_op *op = &track->x->program->ops[id];
  int peer = peer_of(entry, op), about = entry->tag << 16;
  if (op->kind == CCT_OP_SEND && !is_check)
    fill_bytes(track->from + entry->b.offset, entry->b.bytes, about | entry->me, peer);
  if (op->kind == CCT_OP_RECV && !is_check)
    memset(track->to + entry->b.offset, poison, entry->b.bytes);
  if (op->kind == CCT_OP_RECV && is_check)
    check_bytes(track, id, track->to + entry->b.offset, entry->b.bytes, about | peer, entry->me);
}

/* ---- work on one rank ---- */

static void check_gemm(struct cct_host_track *track, int id, int groups) {
  const struct cct_host_entry *entry = &track->x->entries[id];
  size_t m = (size_t)entry->b.gemm_m, n = (size_t)entry->b.gemm_n, k = (size_t)entry->b.gemm_k;
  size_t total = m * n * (size_t)groups, spots = total < n_spots ? total : n_spots;
  const float *a = (const float *)track->from, *c = (const float *)track->to;
  for (size_t spot = 0; k && spot < spots; spot++) {
    size_t at = total <= n_spots
                    ? spot
                    : cct_host_hash((uint32_t)id, spot, (uint32_t)(total < UINT32_MAX ? total : UINT32_MAX));
    size_t g = at / (m * n), row = at / n % m, column = at % n;
    double expected = 0;
    for (size_t i = 0; i < k; i++)
      expected += (double)a[(g * m + row) * k + i] * (double)entry->own[(g * k + i) * n + column];
    judge(track, id, at, fabs((double)c[at] - expected) <= 1e-6 * expected);
  }
}

static void check_attention(struct cct_host_track *track, int id) {
  enum {
    tile = CCT_HOST_TILE
  };
  const struct cct_host_entry *entry = &track->x->entries[id];
  size_t n = (entry->b.bytes + sizeof(float) - 1) / sizeof(float);
  const float *a = (const float *)track->from, *b = a + tile * tile, *c = (const float *)track->to;
  double total = 0;
  for (size_t i = 0; i < n; i++)
    total += (double)entry->own[i];
  judge(track, id, 0, fabs((double)c[tile * tile] - total) <= 1e-6 * total);
  if (entry->b.flops - 2 * (double)n < 2.0 * tile * tile * tile)
    return;
  for (size_t row = 0; row < tile; row++) {
    double expected = 0;
    for (size_t i = 0; i < tile; i++)
      expected += (double)a[row * tile + i] * (double)b[i * tile + row];
    judge(track, id, 1 + row, fabs((double)c[row * tile + row] - expected) <= 1e-6 * expected);
  }
}

void cct_host_prepare(struct cct_host_track *track, int id) {
  struct cct_host_entry *entry = &track->x->entries[id];
  const struct cct_op *op = &track->x->program->ops[id];
  size_t n = (entry->b.bytes + 2 * sizeof(float) - 1) / (2 * sizeof(float));
  switch (op->kind) {
  case CCT_OP_GEMM:
    n = (size_t)entry->b.gemm_k * (size_t)op->gemm.groups;
    fill_numbers((float *)track->from, (size_t)entry->b.gemm_m * n, id, 0);
    fill_numbers(entry->own, (size_t)entry->b.gemm_n * n, id, 1u << 30);
    memset(track->to, poison, (size_t)(entry->b.gemm_m * entry->b.gemm_n * op->gemm.groups) * sizeof(float));
    break;
  case CCT_OP_ATTENTION:
    n = CCT_HOST_TILE * CCT_HOST_TILE;
    fill_numbers((float *)track->from, 2 * n, id, 0);
    fill_numbers(entry->own, (entry->b.bytes + sizeof(float) - 1) / sizeof(float), id, 1u << 30);
    memset(track->to, poison, (n + 1) * sizeof(float));
    break;
  case CCT_OP_ELEMENTWISE:
    fill_numbers((float *)track->from, n, id, 0);
    memset(track->to, poison, n * sizeof(float));
    break;
  case CCT_OP_COPY:
    fill_bytes(track->from, entry->b.bytes, id, 0);
    memset(track->to, poison, entry->b.bytes);
    break;
  case CCT_OP_COLLECTIVE:
    prepare_collective(track, id);
    break;
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    message(track, id, 0);
    break;
  default:
    break;
  }
}

/* Tests ask for one wrong element on one rank, to see it found. */
static void corrupt(struct cct_host_track *track) {
  const char *rank = getenv("CCTAX_TEST_CORRUPT");
  if (!rank || atoi(rank) != track->x->rank || track->x->is_corrupted)
    return;
  track->x->is_corrupted = 1;
  track->to[0] ^= 0x55;
}

void cct_host_check(struct cct_host_track *track, int id) {
  const struct cct_host_entry *entry = &track->x->entries[id];
  const struct cct_op *op = &track->x->program->ops[id];
  if (op->kind == CCT_OP_COLLECTIVE || op->kind == CCT_OP_RECV ||
      (op->kind == CCT_OP_COPY && op->copy.direction == CCT_COPY_P2P))
    corrupt(track);
  switch (op->kind) {
  case CCT_OP_GEMM:
    check_gemm(track, id, op->gemm.groups);
    break;
  case CCT_OP_ATTENTION:
    check_attention(track, id);
    break;
  case CCT_OP_ELEMENTWISE:
    for (size_t i = 0; i < (entry->b.bytes + 2 * sizeof(float) - 1) / (2 * sizeof(float)); i++)
      judge(track, id, i, ((const float *)track->to)[i] == small_number(id, i) + 1);
    break;
  case CCT_OP_COPY:
    check_bytes(track, id, track->to, entry->b.bytes, id, 0);
    break;
  case CCT_OP_COLLECTIVE:
    check_collective(track, id);
    break;
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    message(track, id, 1);
    break;
  default:
    break;
  }
}
