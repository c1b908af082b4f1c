/* SPDX-License-Identifier: Apache-2.0
 * What a binding makes of a program's sizes, divided by --scale: bytes and flops each by K; a GEMM by its columns n,
 * and where those run out by k and then m, so that its flops and its weights' bytes shrink by K as every other
 * operation's do. */
#include "workloads/backends/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

int64_t cct_host_scaled(int64_t value, int64_t scale) {
  return value <= 0 ? 0 : value < scale ? 1 : value / scale;
}

static size_t floats(int64_t a, int64_t b) {
  return (size_t)a * (size_t)b * sizeof(float);
}

static size_t share(size_t bytes, int n) {
  return (bytes + (size_t)n - 1) / (size_t)n;
}

static void size_gemm(struct cct_host_entry *entry, const struct cct_op *op, const struct cct_binding *binding,
                      int64_t scale) {
  int64_t m = cct_quantity_value(op->gemm.m, binding), n = op->gemm.n, k = op->gemm.k;
  int64_t beyond_n = scale / (n ? n : 1), beyond_k = beyond_n / (k ? k : 1);
  entry->gemm_n = cct_host_scaled(n, scale);
  entry->gemm_k = beyond_n > 1 ? cct_host_scaled(k, beyond_n) : k;
  entry->gemm_m = beyond_k > 1 ? cct_host_scaled(m, beyond_k) : m;
  entry->flops = 2.0 * (double)entry->gemm_m * (double)entry->gemm_n * (double)entry->gemm_k * op->gemm.groups;
}

/* All-to-all: from the traffic matrix, or equal parts. What its duration is fitted on is the busiest rank's bytes. */
static enum cct_status size_exchange(struct cct_executor *x, int id, const struct cct_binding *binding) {
  struct cct_host_entry *entry = &x->entries[id];
  const struct cct_op *op = &x->program->ops[id];
  int64_t scale = x->backend->options.scale;
  int n = entry->n, matrix_id = op->collective.kind == CCT_COLL_ALL_TO_ALLV ? op->collective.matrix : -1;
  if (matrix_id < 0 || !binding->matrices) {
    for (int i = 0; i < n; i++)
      entry->send_bytes[i] = entry->recv_bytes[i] = share(entry->bytes, n);
    return CCT_OK;
  }
  const struct cct_matrix *matrix = &binding->matrices[matrix_id];
  if (matrix->n != n)
    return cct_fail(CCT_USAGE, "%s: entry %d '%s': its traffic matrix is for %d ranks, its group has %d",
                    x->program->name, id, op->name, matrix->n, n);
  entry->busiest_bytes = 0;
  for (int i = 0; i < n; i++) {
    int64_t out = 0, in = 0;
    for (int j = 0; j < n; j++) {
      out += cct_host_scaled(matrix->bytes[i * n + j], scale);
      in += cct_host_scaled(matrix->bytes[j * n + i], scale);
    }
    double busier = (double)(out > in ? out : in);
    entry->busiest_bytes = busier > entry->busiest_bytes ? busier : entry->busiest_bytes;
    entry->send_bytes[i] = (size_t)cct_host_scaled(matrix->bytes[entry->me * n + i], scale);
    entry->recv_bytes[i] = (size_t)cct_host_scaled(matrix->bytes[i * n + entry->me], scale);
  }
  return CCT_OK;
}

static enum cct_status size_entry(struct cct_executor *x, int id, const struct cct_binding *binding) {
  struct cct_host_entry *entry = &x->entries[id];
  const struct cct_op *op = &x->program->ops[id];
  int64_t scale = x->backend->options.scale;
  struct cct_quantity stated = {0, 0, -1};
  switch (op->kind) {
  case CCT_OP_GEMM:
    size_gemm(entry, op, binding, scale);
    return CCT_OK;
  case CCT_OP_ATTENTION:
    stated = op->attention.kv_bytes;
    entry->flops = (double)cct_host_scaled(cct_quantity_value(op->attention.flops, binding), scale);
    break;
  case CCT_OP_ELEMENTWISE:
    stated = op->elementwise.bytes;
    break;
  case CCT_OP_COPY:
    stated = op->copy.bytes;
    break;
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    stated = op->p2p.bytes;
    break;
  case CCT_OP_COLLECTIVE:
    stated = op->collective.bytes;
    break;
  default:
    break;
  }
  entry->bytes = (size_t)cct_host_scaled(cct_quantity_value(stated, binding), scale);
  entry->busiest_bytes = (double)entry->bytes;
  if (op->kind != CCT_OP_COLLECTIVE)
    return CCT_OK;
  size_t bits = (size_t)cct_type_bits(op->collective.type);
  entry->elements = (entry->bytes * 8 + bits - 1) / bits;
  if (op->collective.kind == CCT_COLL_REDUCE_SCATTER)
    entry->elements = share(entry->elements, entry->n) * (size_t)entry->n;
  return entry->send_bytes ? size_exchange(x, id, binding) : CCT_OK;
}

/* What an entry reads and writes in its track's buffers, and streams from memory of its own. */
struct room {
  size_t from, to, own;
};

static size_t sum(const size_t *sizes, int n) {
  size_t total = 0;
  for (int i = 0; i < n; i++)
    total += sizes[i];
  return total;
}

static struct room room_of_collective(const struct cct_host_entry *entry, const struct cct_op *op) {
  switch (op->collective.kind) {
  case CCT_COLL_ALL_GATHER:
    return (struct room){share(entry->bytes, entry->n), share(entry->bytes, entry->n) * (size_t)entry->n, 0};
  case CCT_COLL_ALL_TO_ALL:
  case CCT_COLL_ALL_TO_ALLV:
    return (struct room){sum(entry->send_bytes, entry->n), sum(entry->recv_bytes, entry->n), 0};
  case CCT_COLL_BROADCAST:
    return (struct room){0, entry->bytes, 0};
  default: {
    size_t bytes = entry->elements * (size_t)cct_type_bits(op->collective.type) / 8;
    return (struct room){cct_host_is_copied(op) ? bytes : 0, bytes, 0};
  }
  }
}

static struct room room_of(const struct cct_host_entry *entry, const struct cct_op *op) {
  switch (op->kind) {
  case CCT_OP_GEMM:
    return (struct room){floats(entry->gemm_m, entry->gemm_k) * (size_t)op->gemm.groups,
                         floats(entry->gemm_m, entry->gemm_n) * (size_t)op->gemm.groups,
                         floats(entry->gemm_k, entry->gemm_n) * (size_t)op->gemm.groups};
  case CCT_OP_ATTENTION:
    return (struct room){2 * floats(CCT_HOST_TILE, CCT_HOST_TILE), floats(CCT_HOST_TILE, CCT_HOST_TILE) + sizeof(float),
                         share(entry->bytes, sizeof(float)) * sizeof(float)};
  case CCT_OP_ELEMENTWISE:
    return (struct room){share(entry->bytes, 2 * sizeof(float)) * sizeof(float),
                         share(entry->bytes, 2 * sizeof(float)) * sizeof(float), 0};
  case CCT_OP_COPY:
    return (struct room){entry->bytes, entry->bytes, 0};
  case CCT_OP_COLLECTIVE:
    return room_of_collective(entry, op);
  default:
    return (struct room){0};
  }
}

/* Bytes the system can still give this process; what it cannot say is no reason to refuse. */
static double memory_left(const struct cct_backend *backend) {
  char line[128];
  double kib = 0;
  FILE *file = fopen("/proc/meminfo", "r");
  if (!file)
    return 1e18;
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "MemAvailable: %lf", &kib) == 1)
      break;
  fclose(file);
  return kib > 0 ? kib * 1024 / backend->processes_here : 1e18;
}

/* Written once with small positive values, so that every page is real and no sum of it is slow. */
static enum cct_status provide(void *buffer, size_t *bytes, size_t need) {
  void **at = buffer, *fresh;
  if (need <= *bytes && *at)
    return CCT_OK;
  size_t rounded = (need + 63) / 64 * 64 + 64;
  if (!(fresh = aligned_alloc(64, rounded)))
    return cct_fail(CCT_NOMEM, "out of memory: %zu bytes for one lane's buffer, raise --scale", rounded);
  memset(fresh, 0x3c, rounded);
  free(*at);
  *at = fresh;
  *bytes = rounded;
  return CCT_OK;
}

static size_t missing(size_t have, size_t want) {
  return want > have ? want : 0;
}

static enum cct_status provide_all(struct cct_executor *x, const struct room *rooms, const struct room *of_entries) {
  double want = 0, left = memory_left(x->backend);
  char want_text[32], left_text[32];
  for (int i = 0; i < x->n_tracks; i++)
    want += (double)(missing(x->tracks[i].from_bytes, rooms[i].from) + missing(x->tracks[i].to_bytes, rooms[i].to));
  for (int id = 0; id < x->program->n_ops; id++)
    want += (double)missing(x->entries[id].own_bytes, of_entries[id].own);
  if (want > left)
    return cct_fail(CCT_UNSUPPORTED, "%s needs %s a rank, this machine has %s left for each: raise --scale",
                    x->program->name, cct_bytes_text(want, want_text), cct_bytes_text(left, left_text));
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < x->n_tracks; i++) {
    status = provide(&x->tracks[i].from, &x->tracks[i].from_bytes, rooms[i].from);
    if (!status)
      status = provide(&x->tracks[i].to, &x->tracks[i].to_bytes, rooms[i].to);
  }
  for (int id = 0; !status && id < x->program->n_ops; id++)
    if (of_entries[id].own)
      status = provide(&x->entries[id].own, &x->entries[id].own_bytes, of_entries[id].own);
  return status;
}

/* A GROUP's sends and receives stand side by side in its track's buffers. Collectives use them one after the other. */
static void size_group(struct cct_executor *x, int id, struct room *room) {
  x->entries[id].busiest_bytes = 0;
  for (int i = id + 1; x->program->ops[i].kind != CCT_OP_END; i++) {
    struct cct_host_entry *entry = &x->entries[i];
    x->entries[id].busiest_bytes += entry->busiest_bytes;
    if (x->program->ops[i].kind == CCT_OP_COLLECTIVE) {
      struct room one = room_of_collective(entry, &x->program->ops[i]);
      room->from = one.from > room->from ? one.from : room->from;
      room->to = one.to > room->to ? one.to : room->to;
      continue;
    }
    size_t *side = x->program->ops[i].kind == CCT_OP_SEND ? &room->from : &room->to;
    entry->offset = *side;
    *side += entry->bytes;
  }
}

static void size_hold(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  struct cct_host_entry *entry = &x->entries[id];
  if (op->kind == CCT_OP_HOSTWORK)
    entry->hold_ns = op->hostwork.ns;
  if (op->kind != CCT_OP_DELAY)
    return;
  double alone_ns = 0;
  if (op->delay.of >= 0) {
    const struct cct_host_entry *of = &x->entries[op->delay.of];
    alone_ns = of->alone_ns + of->alone_ns_per_byte * of->busiest_bytes;
  }
  entry->hold_ns = op->delay.ns + (int64_t)(op->delay.stretch * alone_ns + 0.5);
}

enum cct_status cct_host_bind(struct cct_executor *x, const struct cct_binding *binding) {
  int n_ops = x->program->n_ops;
  struct cct_binding bound = binding ? *binding : x->defaults;
  if (!bound.slots)
    bound.slots = x->slots;
  struct room *rooms = calloc((size_t)x->n_tracks + 1, sizeof *rooms);
  struct room *of_entries = calloc((size_t)n_ops + 1, sizeof *of_entries);
  enum cct_status status = rooms && of_entries ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (int id = 0; !status && id < n_ops; id++)
    status = size_entry(x, id, &bound);
  for (int id = 0; !status && id < n_ops; id++) {
    of_entries[id] = room_of(&x->entries[id], &x->program->ops[id]);
    if (x->program->ops[id].kind == CCT_OP_GROUP)
      size_group(x, id, &of_entries[id]);
    if (x->entries[id].track < 0)
      continue;
    struct room *room = &rooms[x->entries[id].track];
    room->from = of_entries[id].from > room->from ? of_entries[id].from : room->from;
    room->to = of_entries[id].to > room->to ? of_entries[id].to : room->to;
  }
  for (int id = 0; !status && id < n_ops; id++)
    size_hold(x, id);
  if (!status)
    status = provide_all(x, rooms, of_entries);
  free(rooms);
  free(of_entries);
  return status;
}

void cct_host_scale_op(const struct cct_executor *x, int id, struct cct_op *op_out) {
  const struct cct_host_entry *entry = &x->entries[id];
  struct cct_op op = x->program->ops[id];
  struct cct_quantity bytes = cct_constant((int64_t)entry->bytes);
  switch (op.kind) {
  case CCT_OP_GEMM:
    op.gemm.m = cct_constant(entry->gemm_m);
    op.gemm.n = entry->gemm_n;
    op.gemm.k = entry->gemm_k;
    break;
  case CCT_OP_ATTENTION:
    op.attention.kv_bytes = bytes;
    op.attention.flops = cct_constant((int64_t)entry->flops);
    break;
  case CCT_OP_ELEMENTWISE:
    op.elementwise.bytes = bytes;
    break;
  case CCT_OP_COPY:
    op.copy.bytes = bytes;
    break;
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    op.p2p.bytes = bytes;
    break;
  case CCT_OP_COLLECTIVE:
    op.collective.bytes = bytes;
    break;
  default:
    break;
  }
  *op_out = op;
}
