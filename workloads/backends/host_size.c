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

static void size_gemm(struct cct_host_bound *b, const struct cct_op *op, const struct cct_binding *binding,
                      int64_t scale) {
  int64_t m = cct_quantity_value(op->gemm.m, binding), n = op->gemm.n, k = op->gemm.k;
  int64_t beyond_n = scale / (n ? n : 1), beyond_k = beyond_n / (k ? k : 1);
  b->gemm_n = cct_host_scaled(n, scale);
  b->gemm_k = beyond_n > 1 ? cct_host_scaled(k, beyond_n) : k;
  b->gemm_m = beyond_k > 1 ? cct_host_scaled(m, beyond_k) : m;
  b->flops = 2.0 * (double)b->gemm_m * (double)b->gemm_n * (double)b->gemm_k * op->gemm.groups;
}

/* All-to-all: from the traffic matrix, or equal parts. What its duration is fitted on is the busiest rank's bytes. */
static enum cct_status size_exchange(const struct cct_executor *x, int id, const struct cct_binding *binding,
                                     struct cct_host_bound *b) {
  const struct cct_host_entry *entry = &x->entries[id];
  const struct cct_op *op = &x->program->ops[id];
  int64_t scale = x->backend->options.scale;
  int n = entry->n, matrix_id = op->collective.kind == CCT_COLL_ALL_TO_ALLV ? op->collective.matrix : -1;
  if (matrix_id < 0 || !binding->matrices) {
    for (int i = 0; i < n; i++)
      b->send_bytes[i] = b->recv_bytes[i] = share(b->bytes, n);
    return CCT_OK;
  }
  const struct cct_matrix *matrix = &binding->matrices[matrix_id];
  if (matrix->n != n)
    return cct_fail(CCT_USAGE, "%s: entry %d '%s': its traffic matrix is for %d ranks, its group has %d",
                    x->program->name, id, op->name, matrix->n, n);
  b->busiest_bytes = 0;
  for (int i = 0; i < n; i++) {
    int64_t out = 0, in = 0;
    for (int j = 0; j < n; j++) {
      out += cct_host_scaled(matrix->bytes[i * n + j], scale);
      in += cct_host_scaled(matrix->bytes[j * n + i], scale);
    }
    double busier = (double)(out > in ? out : in);
    b->busiest_bytes = busier > b->busiest_bytes ? busier : b->busiest_bytes;
    b->send_bytes[i] = (size_t)cct_host_scaled(matrix->bytes[entry->me * n + i], scale);
    b->recv_bytes[i] = (size_t)cct_host_scaled(matrix->bytes[i * n + entry->me], scale);
  }
  return CCT_OK;
}

static enum cct_status size_entry(const struct cct_executor *x, int id, const struct cct_binding *binding,
                                  struct cct_host_bound *b) {
  const struct cct_op *op = &x->program->ops[id];
  int64_t scale = x->backend->options.scale;
  struct cct_quantity stated = {0, 0, -1};
  switch (op->kind) {
  case CCT_OP_GEMM:
    size_gemm(b, op, binding, scale);
    return CCT_OK;
  case CCT_OP_ATTENTION:
    stated = op->attention.kv_bytes;
    b->flops = (double)cct_host_scaled(cct_quantity_value(op->attention.flops, binding), scale);
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
  b->bytes = (size_t)cct_host_scaled(cct_quantity_value(stated, binding), scale);
  b->busiest_bytes = (double)b->bytes;
  if (op->kind != CCT_OP_COLLECTIVE)
    return CCT_OK;
  size_t bits = (size_t)cct_type_bits(op->collective.type);
  b->elements = (b->bytes * 8 + bits - 1) / bits;
  if (op->collective.kind == CCT_COLL_REDUCE_SCATTER)
    b->elements = share(b->elements, x->entries[id].n) * (size_t)x->entries[id].n;
  return b->send_bytes ? size_exchange(x, id, binding, b) : CCT_OK;
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

static struct room room_of_collective(const struct cct_host_bound *b, int n, const struct cct_op *op) {
  switch (op->collective.kind) {
  case CCT_COLL_ALL_GATHER:
    return (struct room){cct_host_is_in_place(op) ? 0 : share(b->bytes, n), share(b->bytes, n) * (size_t)n, 0};
  case CCT_COLL_ALL_TO_ALL:
  case CCT_COLL_ALL_TO_ALLV:
    return (struct room){sum(b->send_bytes, n), sum(b->recv_bytes, n), 0};
  case CCT_COLL_BROADCAST:
    return (struct room){cct_host_is_copied(op) ? b->bytes : 0, b->bytes, 0};
  default: {
    size_t bytes = b->elements * (size_t)cct_type_bits(op->collective.type) / 8;
    return (struct room){cct_host_is_copied(op) ? bytes : 0, bytes, 0};
  }
  }
}

static struct room room_of(const struct cct_host_bound *b, int n, const struct cct_op *op) {
  switch (op->kind) {
  case CCT_OP_GEMM:
    return (struct room){floats(b->gemm_m, b->gemm_k) * (size_t)op->gemm.groups,
                         floats(b->gemm_m, b->gemm_n) * (size_t)op->gemm.groups,
                         floats(b->gemm_k, b->gemm_n) * (size_t)op->gemm.groups};
  case CCT_OP_ATTENTION:
    return (struct room){2 * floats(CCT_HOST_TILE, CCT_HOST_TILE), floats(CCT_HOST_TILE, CCT_HOST_TILE) + sizeof(float),
                         share(b->bytes, sizeof(float)) * sizeof(float)};
  case CCT_OP_ELEMENTWISE:
    return (struct room){share(b->bytes, 2 * sizeof(float)) * sizeof(float),
                         share(b->bytes, 2 * sizeof(float)) * sizeof(float), 0};
  case CCT_OP_COPY:
    return (struct room){b->bytes, b->bytes, 0};
  case CCT_OP_COLLECTIVE:
    return room_of_collective(b, n, op);
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

/* The most needed so far: what grows once grows by half at least, so that a sequence seldom allocates. */
static size_t keep_most(size_t *most, size_t need, double *more) {
  if (need > *most) {
    size_t generous = *most + *most / 2;
    *most = need > generous ? need : generous;
    *more += (double)*most;
  }
  return *most;
}

/* Notes what the set needs beyond all so far, and refuses what this machine does not have. */
static enum cct_status want(struct cct_executor *x, struct cct_host_set *set) {
  double more = 0;
  char want_text[32], left_text[32];
  for (int i = 0; i < x->n_tracks; i++) {
    set->rooms[i].from = keep_most(&x->wanted[i].from, set->rooms[i].from, &more);
    set->rooms[i].to = keep_most(&x->wanted[i].to, set->rooms[i].to, &more);
  }
  for (int id = 0; id < x->program->n_ops; id++)
    set->bound[id].own = keep_most(&x->wanted_own[id], set->bound[id].own, &more);
  double left = more > 0 ? memory_left(x->backend) : 0;
  if (more > left)
    return cct_fail(CCT_UNSUPPORTED, "%s needs %s a rank, this machine has %s left for each: raise --scale",
                    x->program->name, cct_bytes_text(more, want_text), cct_bytes_text(left, left_text));
  return CCT_OK;
}

/* A GROUP's sends and receives stand side by side in its track's buffers. Collectives use them one after the other. */
static void size_group(const struct cct_executor *x, struct cct_host_bound *bound, int id, struct room *room) {
  bound[id].busiest_bytes = 0;
  for (int i = id + 1; x->program->ops[i].kind != CCT_OP_END; i++) {
    struct cct_host_bound *b = &bound[i];
    bound[id].busiest_bytes += b->busiest_bytes;
    if (x->program->ops[i].kind == CCT_OP_COLLECTIVE) {
      struct room one = room_of_collective(b, x->entries[i].n, &x->program->ops[i]);
      room->from = one.from > room->from ? one.from : room->from;
      room->to = one.to > room->to ? one.to : room->to;
      continue;
    }
    size_t *side = x->program->ops[i].kind == CCT_OP_SEND ? &room->from : &room->to;
    b->offset = *side;
    *side += b->bytes;
  }
}

static void size_hold(const struct cct_executor *x, struct cct_host_bound *bound, int id) {
  const struct cct_op *op = &x->program->ops[id];
  if (op->kind == CCT_OP_HOSTWORK)
    bound[id].hold_ns = op->hostwork.ns;
  if (op->kind != CCT_OP_DELAY)
    return;
  double alone_ns = 0;
  if (op->delay.of >= 0) {
    const struct cct_host_entry *of = &x->entries[op->delay.of];
    alone_ns = of->alone_ns + of->alone_ns_per_byte * bound[op->delay.of].busiest_bytes;
  }
  bound[id].hold_ns = op->delay.ns + (int64_t)(op->delay.stretch * alone_ns + 0.5);
}

enum cct_status cct_host_make_set(struct cct_executor *x, struct cct_host_set *set) {
  if (set->bound)
    return CCT_OK;
  set->bound = calloc((size_t)x->program->n_ops + 1, sizeof *set->bound);
  set->rooms = calloc((size_t)x->n_tracks + 1, sizeof *set->rooms);
  if (!set->bound || !set->rooms)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int id = 0; id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    if (op->kind != CCT_OP_COLLECTIVE ||
        (op->collective.kind != CCT_COLL_ALL_TO_ALL && op->collective.kind != CCT_COLL_ALL_TO_ALLV))
      continue;
    set->bound[id].send_bytes = calloc(2 * (size_t)x->entries[id].n, sizeof(size_t));
    if (!set->bound[id].send_bytes)
      return cct_fail(CCT_NOMEM, "out of memory");
    set->bound[id].recv_bytes = set->bound[id].send_bytes + x->entries[id].n;
  }
  return CCT_OK;
}

void cct_host_free_set(const struct cct_executor *x, struct cct_host_set *set) {
  for (int id = 0; set->bound && id < x->program->n_ops; id++)
    free(set->bound[id].send_bytes);
  free(set->bound);
  free(set->rooms);
}

enum cct_status cct_host_bind_set(struct cct_executor *x, struct cct_host_set *set, const struct cct_binding *binding) {
  int n_ops = x->program->n_ops;
  struct cct_binding bound = binding ? *binding : x->defaults;
  struct cct_host_bound *b = set->bound;
  enum cct_status status = CCT_OK;
  if (!bound.slots)
    bound.slots = x->slots;
  memset(set->rooms, 0, (size_t)x->n_tracks * sizeof *set->rooms);
  for (int id = 0; !status && id < n_ops; id++) {
    b[id].is_out = !cct_op_is_performed(x->program, &x->program->ops[id], &bound);
    b[id].bytes = b[id].own = 0;
    if (!b[id].is_out || !binding)
      status = size_entry(x, id, &bound, &b[id]);
  }
  for (int id = 0; !status && id < n_ops; id++) {
    if (b[id].is_out && binding)
      continue;
    struct room of_entry = room_of(&b[id], x->entries[id].n, &x->program->ops[id]);
    if (x->program->ops[id].kind == CCT_OP_GROUP)
      size_group(x, b, id, &of_entry);
    b[id].own = of_entry.own;
    if (x->entries[id].track < 0)
      continue;
    struct cct_host_room *room = &set->rooms[x->entries[id].track];
    room->from = of_entry.from > room->from ? of_entry.from : room->from;
    room->to = of_entry.to > room->to ? of_entry.to : room->to;
  }
  for (int id = 0; !status && id < n_ops; id++)
    size_hold(x, b, id);
  return status ? status : want(x, set);
}

enum cct_status cct_host_adopt(struct cct_host_track *track, const struct cct_host_set *set) {
  struct cct_executor *x = track->x;
  const struct cct_host_room *room = &set->rooms[track - x->tracks];
  enum cct_status status = provide(&track->from, &track->from_bytes, room->from);
  if (!status)
    status = provide(&track->to, &track->to_bytes, room->to);
  for (int i = 0; !status && i < track->n_entries; i++) {
    int id = track->entries[i];
    if (&x->tracks[x->entries[id].track] != track)
      continue;
    for (int k = id;; k++) { /* a GROUP's members stand behind it and are its track's */
      struct cct_host_entry *entry = &x->entries[k];
      entry->b = set->bound[k];
      if (entry->b.own && !status)
        status = provide(&entry->own, &entry->own_bytes, entry->b.own);
      if (x->program->ops[id].kind != CCT_OP_GROUP || x->program->ops[k].kind == CCT_OP_END)
        break;
    }
  }
  return status;
}

enum cct_status cct_host_bind(struct cct_executor *x, const struct cct_binding *binding) {
  enum cct_status status = cct_host_bind_set(x, &x->sets[0], binding);
  for (int i = 0; !status && i < x->n_tracks; i++)
    status = cct_host_adopt(&x->tracks[i], &x->sets[0]);
  return status;
}

void cct_host_scale_op(const struct cct_executor *x, int id, struct cct_op *op_out) {
  const struct cct_host_entry *entry = &x->entries[id];
  struct cct_op op = x->program->ops[id];
  struct cct_quantity bytes = cct_constant((int64_t)entry->b.bytes);
  switch (op.kind) {
  case CCT_OP_GEMM:
    op.gemm.m = cct_constant(entry->b.gemm_m);
    op.gemm.n = entry->b.gemm_n;
    op.gemm.k = entry->b.gemm_k;
    break;
  case CCT_OP_ATTENTION:
    op.attention.kv_bytes = bytes;
    op.attention.flops = cct_constant((int64_t)entry->b.flops);
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
