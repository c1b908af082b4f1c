/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/program/program_fields.h"

#include <string.h>

#include "base/text.h"

#define NAMES(array, LIST, ROW) static const char *const array[] = {LIST(ROW)};
#define SECOND(id, name, ...)   name,
NAMES(op_names, CCT_OPS, SECOND)
NAMES(type_names, CCT_TYPES, SECOND)
NAMES(collective_names, CCT_COLLECTIVES, SECOND)
NAMES(algorithm_names, CCT_ALGORITHMS, SECOND)
NAMES(reduction_names, CCT_REDUCTIONS, SECOND)
NAMES(registration_names, CCT_REGISTRATIONS, SECOND)
NAMES(direction_names, CCT_DIRECTIONS, SECOND)
NAMES(memory_names, CCT_MEMORIES, SECOND)
static const char *const lane_kind_names[] = {"stream", "host"};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* 1: the field is to be read, and is there; an absent one keeps its default unless `is_needed`. */
static int reads(struct cct_fields *f, const char *key, int is_needed, struct cct_json_at *at_out) {
  if (f->way == CCT_FIELDS_LIST)
    f->keys[f->n_keys++] = key;
  if (f->way != CCT_FIELDS_READ || f->status)
    return 0;
  *at_out = cct_json_at_key(&f->at, key);
  return at_out->value || is_needed;
}

void cct_field_i64(struct cct_fields *f, const char *key, int64_t *value, int64_t min, int64_t max,
                   const int64_t *absent) {
  struct cct_json_at at;
  if (f->way == CCT_FIELDS_WRITE && !(absent && *value == *absent))
    cct_json_set_i64(f->object, key, *value);
  if (reads(f, key, !absent, &at))
    f->status = cct_json_read_i64(&at, min, max, value);
}

void cct_field_int(struct cct_fields *f, const char *key, int *value, int min, int max, const int *absent) {
  int64_t wide = *value, default_value = absent ? *absent : 0;
  cct_field_i64(f, key, &wide, min, max, absent ? &default_value : NULL);
  *value = (int)wide;
}

void cct_field_f64(struct cct_fields *f, const char *key, double *value, double min, double max) {
  struct cct_json_at at;
  if (f->way == CCT_FIELDS_WRITE && *value != 0)
    cct_json_set_f64(f->object, key, *value);
  if (reads(f, key, 0, &at))
    f->status = cct_json_read_f64(&at, min, max, value);
}

void cct_field_bool(struct cct_fields *f, const char *key, int *value) {
  struct cct_json_at at;
  if (f->way == CCT_FIELDS_WRITE && *value)
    cct_json_set_bool(f->object, key, 1);
  if (reads(f, key, 0, &at))
    f->status = cct_json_read_bool(&at, value);
}

static void field_enum(struct cct_fields *f, const char *key, const char *const *names, int n, unsigned *value,
                       const unsigned *absent) {
  struct cct_json_at at;
  const char *text;
  if (f->way == CCT_FIELDS_WRITE && !(absent && *value == *absent))
    cct_json_set_string(f->object, key, names[*value]);
  if (!reads(f, key, !absent, &at) || (f->status = cct_json_read_string(&at, &text)) != CCT_OK)
    return;
  for (int i = 0; i < n; i++)
    if (!strcmp(names[i], text)) {
      *value = (unsigned)i;
      return;
    }
  const char *near = cct_closest(text, names, (size_t)n);
  f->status = near ? cct_json_fail(&at, CCT_USAGE, "unknown '%s'; did you mean '%s'?", text, near)
                   : cct_json_fail(&at, CCT_USAGE, "unknown '%s'", text);
}

/* A plain integer, or {"base", "per", "slot"}. */
void cct_field_quantity(struct cct_fields *f, const char *key, struct cct_quantity *q) {
  static const char *const keys[] = {"base", "per", "slot"};
  struct cct_json_at at;
  if (f->way == CCT_FIELDS_WRITE && q->slot < 0) {
    cct_json_set_i64(f->object, key, q->base);
  } else if (f->way == CCT_FIELDS_WRITE) {
    struct cct_json *object = cct_json_new_object();
    cct_json_set_i64(object, "base", q->base);
    cct_json_set_i64(object, "per", q->per);
    cct_json_set_i64(object, "slot", q->slot);
    cct_json_set(f->object, key, object);
  }
  if (!reads(f, key, 1, &at))
    return;
  *q = cct_constant(0);
  if (at.value && cct_json_type(at.value) == CCT_JSON_OBJECT) {
    struct cct_json_at base = cct_json_at_key(&at, "base"), per = cct_json_at_key(&at, "per"),
                       slot = cct_json_at_key(&at, "slot");
    int64_t id = 0;
    if ((f->status = cct_json_known_keys(&at, keys, 3)) == CCT_OK &&
        (f->status = cct_json_read_i64(&base, -INT64_MAX, INT64_MAX, &q->base)) == CCT_OK &&
        (f->status = cct_json_read_i64(&per, -INT64_MAX, INT64_MAX, &q->per)) == CCT_OK)
      f->status = cct_json_read_i64(&slot, 0, INT32_MAX, &id);
    q->slot = (int)id;
    return;
  }
  f->status = cct_json_read_i64(&at, 0, INT64_MAX, &q->base);
}

/* Text of at most size - 1 bytes, into `text`. */
void cct_field_text(struct cct_fields *f, const char *key, char *text, size_t size) {
  struct cct_json_at at;
  const char *read;
  if (f->way == CCT_FIELDS_WRITE && *text)
    cct_json_set_string(f->object, key, text);
  if (!reads(f, key, 0, &at) || (f->status = cct_json_read_string(&at, &read)) != CCT_OK)
    return;
  if (strlen(read) >= size)
    f->status = cct_json_fail(&at, CCT_USAGE, "longer than %zu bytes", size - 1);
  else
    memcpy(text, read, strlen(read) + 1);
}

#define ENUM(f, key, names, field, absent)                                                                             \
  do {                                                                                                                 \
    unsigned value_ = (field);                                                                                         \
    const unsigned absent_ = 0;                                                                                        \
    field_enum(f, key, names, COUNT(names), &value_, (absent) ? &absent_ : NULL);                                      \
    (field) = value_;                                                                                                  \
  } while (0)

const int cct_fields_none = -1;
static const int zero = 0, one = 1;

static void visit_collective(struct cct_fields *f, struct cct_op *op) {
  ENUM(f, "kind", collective_names, op->collective.kind, 0);
  cct_field_int(f, "group", &op->collective.group, 0, INT32_MAX, NULL);
  cct_field_quantity(f, "bytes", &op->collective.bytes);
  ENUM(f, "type", type_names, op->collective.type, 0);
  ENUM(f, "algorithm", algorithm_names, op->collective.algorithm, 1);
  ENUM(f, "reduction", reduction_names, op->collective.reduction, 1);
  cct_field_int(f, "root", &op->collective.root, 0, INT32_MAX, &zero);
  cct_field_int(f, "matrix", &op->collective.matrix, -1, 1 << 20, &cct_fields_none);
}

static void visit_copy(struct cct_fields *f, struct cct_op *op) {
  struct cct_json_at at;
  ENUM(f, "direction", direction_names, op->copy.direction, 0);
  ENUM(f, "memory", memory_names, op->copy.memory, 1);
  cct_field_quantity(f, "bytes", &op->copy.bytes);
  cct_field_bool(f, "blocking", &op->copy.is_blocking);
  cct_field_bool(f, "bounce", &op->copy.is_bounce);
  cct_field_bool(f, "carries_binding", &op->copy.carries_binding);
  if (f->way == CCT_FIELDS_LIST || op->copy.direction == CCT_COPY_P2P) {
    cct_field_int(f, "group", &op->copy.group, 0, INT32_MAX, NULL);
    cct_field_int(f, "peer", &op->copy.peer, 0, INT32_MAX, NULL);
  } else if (f->way == CCT_FIELDS_READ && (reads(f, "group", 0, &at) || reads(f, "peer", 0, &at))) {
    f->status = cct_json_fail(&at, CCT_USAGE, "a copy of direction p2p alone reads from a member of a group");
  }
}

static void visit_delay(struct cct_fields *f, struct cct_op *op) {
  cct_field_i64(f, "ns", &op->delay.ns, -INT64_MAX, INT64_MAX, NULL);
  cct_field_f64(f, "stretch", &op->delay.stretch, -1e6, 1e6);
  cct_field_int(f, "of", &op->delay.of, -1, INT32_MAX, &cct_fields_none);
}

void cct_fields_of_op(struct cct_fields *f, struct cct_op *op) {
  switch (op->kind) {
  case CCT_OP_GEMM:
    cct_field_quantity(f, "m", &op->gemm.m);
    cct_field_i64(f, "n", &op->gemm.n, 1, INT32_MAX, NULL);
    cct_field_i64(f, "k", &op->gemm.k, 1, INT32_MAX, NULL);
    cct_field_int(f, "groups", &op->gemm.groups, 1, INT32_MAX, &one);
    ENUM(f, "type", type_names, op->gemm.type, 0);
    break;
  case CCT_OP_ATTENTION:
    cct_field_quantity(f, "flops", &op->attention.flops);
    cct_field_quantity(f, "kv_bytes", &op->attention.kv_bytes);
    ENUM(f, "type", type_names, op->attention.type, 0);
    break;
  case CCT_OP_ELEMENTWISE:
    cct_field_quantity(f, "bytes", &op->elementwise.bytes);
    break;
  case CCT_OP_COLLECTIVE:
    visit_collective(f, op);
    break;
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    cct_field_int(f, "group", &op->p2p.group, 0, INT32_MAX, NULL);
    cct_field_int(f, "peer_offset", &op->p2p.peer_offset, -INT32_MAX, INT32_MAX, NULL);
    cct_field_quantity(f, "bytes", &op->p2p.bytes);
    break;
  case CCT_OP_COPY:
    visit_copy(f, op);
    break;
  case CCT_OP_HOSTWORK:
    cct_field_i64(f, "ns", &op->hostwork.ns, 0, INT64_MAX, NULL);
    break;
  case CCT_OP_DELAY:
    visit_delay(f, op);
    break;
  case CCT_OP_GRAPH:
    cct_field_int(f, "key", &op->graph.key, 0, INT32_MAX, &zero);
    cct_field_bool(f, "fresh", &op->graph.is_fresh);
    break;
  case CCT_OP_CASE:
    cct_field_int(f, "slot", &op->when.slot, 0, INT32_MAX, NULL);
    cct_field_i64(f, "value", &op->when.value, -INT64_MAX, INT64_MAX, NULL);
    break;
  default:
    break;
  }
}

/* ---- enumerations that stand outside an entry's own keys ---- */

void cct_field_op_kind(struct cct_fields *f, enum cct_op_kind *kind) {
  ENUM(f, "op", op_names, *kind, 0);
}

void cct_field_lane_kind(struct cct_fields *f, enum cct_lane_kind *kind) {
  ENUM(f, "kind", lane_kind_names, *kind, 0);
}

void cct_field_memory(struct cct_fields *f, enum cct_memory *memory) {
  ENUM(f, "memory", memory_names, *memory, 0);
}

void cct_field_registration(struct cct_fields *f, enum cct_registration *registration) {
  ENUM(f, "registration", registration_names, *registration, 1);
}
