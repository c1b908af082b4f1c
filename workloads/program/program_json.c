/* SPDX-License-Identifier: Apache-2.0
 * A job as JSON, both ways (the form: docs/program.md). One description of each entry's fields serves listing its keys,
 * writing and reading, so that the two directions cannot drift apart. */
#include "workloads/program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "crypt/digest.h"
#include "json/json.h"

#define NAMES(array, LIST, ROW) static const char *const array[] = {LIST(ROW)};
#define SECOND(id, name, ...)   name,
NAMES(op_names, CCT_OPS, SECOND)
NAMES(type_names, CCT_TYPES, SECOND)
NAMES(collective_names, CCT_COLLECTIVES, SECOND)
NAMES(algorithm_names, CCT_ALGORITHMS, SECOND)
NAMES(direction_names, CCT_DIRECTIONS, SECOND)
NAMES(memory_names, CCT_MEMORIES, SECOND)
static const char *const lane_kind_names[] = {"stream", "host"};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Visits an object's fields: lists their keys, writes them, or reads them. The first error stays in `status`. */
struct fields {
  enum {
    LIST,
    WRITE,
    READ
  } way;
  const char *keys[24];
  size_t n_keys;
  struct cct_json *object; /* WRITE */
  struct cct_json_at at;   /* READ */
  enum cct_status status;
};

/* 1: the field is to be read, and is there; an absent one keeps its default unless `is_needed`. */
static int reads(struct fields *f, const char *key, int is_needed, struct cct_json_at *at_out) {
  if (f->way == LIST)
    f->keys[f->n_keys++] = key;
  if (f->way != READ || f->status)
    return 0;
  *at_out = cct_json_at_key(&f->at, key);
  return at_out->value || is_needed;
}

static void field_i64(struct fields *f, const char *key, int64_t *value, int64_t min, int64_t max,
                      const int64_t *absent) {
  struct cct_json_at at;
  if (f->way == WRITE && !(absent && *value == *absent))
    cct_json_set_i64(f->object, key, *value);
  if (reads(f, key, !absent, &at))
    f->status = cct_json_read_i64(&at, min, max, value);
}

static void field_int(struct fields *f, const char *key, int *value, int min, int max, const int *absent) {
  int64_t wide = *value, default_value = absent ? *absent : 0;
  field_i64(f, key, &wide, min, max, absent ? &default_value : NULL);
  *value = (int)wide;
}

static void field_f64(struct fields *f, const char *key, double *value, double min, double max) {
  struct cct_json_at at;
  if (f->way == WRITE && *value != 0)
    cct_json_set_f64(f->object, key, *value);
  if (reads(f, key, 0, &at))
    f->status = cct_json_read_f64(&at, min, max, value);
}

static void field_bool(struct fields *f, const char *key, int *value) {
  struct cct_json_at at;
  if (f->way == WRITE && *value)
    cct_json_set_bool(f->object, key, 1);
  if (reads(f, key, 0, &at))
    f->status = cct_json_read_bool(&at, value);
}

static void field_enum(struct fields *f, const char *key, const char *const *names, int n, unsigned *value,
                       const unsigned *absent) {
  struct cct_json_at at;
  const char *text;
  if (f->way == WRITE && !(absent && *value == *absent))
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
static void field_quantity(struct fields *f, const char *key, struct cct_quantity *q) {
  static const char *const keys[] = {"base", "per", "slot"};
  struct cct_json_at at;
  if (f->way == WRITE && q->slot < 0) {
    cct_json_set_i64(f->object, key, q->base);
  } else if (f->way == WRITE) {
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
static void field_text(struct fields *f, const char *key, char *text, size_t size) {
  struct cct_json_at at;
  const char *read;
  if (f->way == WRITE && *text)
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

static const int none = -1, zero = 0, one = 1;

static void visit_collective(struct fields *f, struct cct_op *op) {
  ENUM(f, "kind", collective_names, op->collective.kind, 0);
  field_int(f, "group", &op->collective.group, 0, INT32_MAX, NULL);
  field_quantity(f, "bytes", &op->collective.bytes);
  ENUM(f, "type", type_names, op->collective.type, 0);
  ENUM(f, "algorithm", algorithm_names, op->collective.algorithm, 1);
  field_int(f, "matrix", &op->collective.matrix, -1, 1 << 20, &none);
}

static void visit_copy(struct fields *f, struct cct_op *op) {
  ENUM(f, "direction", direction_names, op->copy.direction, 0);
  ENUM(f, "memory", memory_names, op->copy.memory, 1);
  field_quantity(f, "bytes", &op->copy.bytes);
  field_bool(f, "blocking", &op->copy.is_blocking);
  field_bool(f, "bounce", &op->copy.is_bounce);
}

static void visit_delay(struct fields *f, struct cct_op *op) {
  field_i64(f, "ns", &op->delay.ns, -INT64_MAX, INT64_MAX, NULL);
  field_f64(f, "stretch", &op->delay.stretch, -1e6, 1e6);
  field_int(f, "of", &op->delay.of, -1, INT32_MAX, &none);
}

static void visit_kind(struct fields *f, struct cct_op *op) {
  switch (op->kind) {
  case CCT_OP_GEMM:
    field_quantity(f, "m", &op->gemm.m);
    field_i64(f, "n", &op->gemm.n, 1, INT32_MAX, NULL);
    field_i64(f, "k", &op->gemm.k, 1, INT32_MAX, NULL);
    field_int(f, "groups", &op->gemm.groups, 1, INT32_MAX, &one);
    ENUM(f, "type", type_names, op->gemm.type, 0);
    break;
  case CCT_OP_ATTENTION:
    field_quantity(f, "flops", &op->attention.flops);
    field_quantity(f, "kv_bytes", &op->attention.kv_bytes);
    ENUM(f, "type", type_names, op->attention.type, 0);
    break;
  case CCT_OP_ELEMENTWISE:
    field_quantity(f, "bytes", &op->elementwise.bytes);
    break;
  case CCT_OP_COLLECTIVE:
    visit_collective(f, op);
    break;
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    field_int(f, "group", &op->p2p.group, 0, INT32_MAX, NULL);
    field_int(f, "peer_offset", &op->p2p.peer_offset, -INT32_MAX, INT32_MAX, NULL);
    field_quantity(f, "bytes", &op->p2p.bytes);
    break;
  case CCT_OP_COPY:
    visit_copy(f, op);
    break;
  case CCT_OP_HOSTWORK:
    field_i64(f, "ns", &op->hostwork.ns, 0, INT64_MAX, NULL);
    break;
  case CCT_OP_DELAY:
    visit_delay(f, op);
    break;
  case CCT_OP_GRAPH:
    field_int(f, "key", &op->graph.key, 0, INT32_MAX, &zero);
    break;
  default:
    break;
  }
}

/* ---- writing ---- */

static struct cct_json *op_to_json(const struct cct_program *p, int id) {
  struct cct_op op = p->ops[id];
  struct cct_json *object = cct_json_new_object();
  struct fields f = {.way = WRITE, .object = object};
  cct_json_set_string(object, "op", cct_op_name(op.kind));
  if (*op.name)
    cct_json_set_string(object, "name", op.name);
  if (op.kind == CCT_OP_END)
    return object;
  if (op.kind != CCT_OP_PHASE) {
    field_int(&f, "lane", &op.lane, 0, 0, &none);
    field_int(&f, "host", &op.host, 0, 0, &none);
  }
  if (op.n_waits) {
    struct cct_json *waits = cct_json_new_array();
    for (int w = 0; w < op.n_waits; w++) {
      struct cct_wait wait = p->waits[op.first_wait + w];
      char text[24];
      snprintf(text, sizeof text, "prev:%d", wait.id);
      if (wait.is_previous)
        cct_json_add_string(waits, text);
      else
        cct_json_add_i64(waits, wait.id);
    }
    cct_json_set(object, "waits", waits);
  }
  if (op.reads[0] >= 0 || op.reads[1] >= 0) {
    struct cct_json *buffers = cct_json_new_array();
    for (int i = 0; i < 2 && (op.reads[i] >= 0 || i == 0); i++)
      cct_json_add_i64(buffers, op.reads[i]);
    cct_json_set(object, "reads", buffers);
  }
  field_int(&f, "writes", &op.writes, 0, 0, &none);
  visit_kind(&f, &op);
  return object;
}

static struct cct_json *program_to_json(const struct cct_program *p) {
  struct cct_json *object = cct_json_new_object(), *array;
  cct_json_set_string(object, "name", p->name);
  cct_json_set(object, "lanes", array = cct_json_new_array());
  for (int i = 0; i < p->n_lanes; i++) {
    struct cct_json *lane = cct_json_new_object();
    cct_json_set_string(lane, "name", p->lanes[i].name);
    cct_json_set_string(lane, "kind", lane_kind_names[p->lanes[i].kind]);
    cct_json_add(array, lane);
  }
  cct_json_set(object, "slots", array = cct_json_new_array());
  for (int i = 0; i < p->n_slots; i++) {
    struct cct_json *slot = cct_json_new_object();
    cct_json_set_string(slot, "name", p->slots[i].name);
    cct_json_set_i64(slot, "value", p->slots[i].value);
    cct_json_add(array, slot);
  }
  cct_json_set(object, "buffers", array = cct_json_new_array());
  for (int i = 0; i < p->n_buffers; i++) {
    struct cct_buffer buffer = p->buffers[i];
    struct cct_json *json = cct_json_new_object();
    struct fields f = {.way = WRITE, .object = json};
    cct_json_set_string(json, "name", buffer.name);
    field_quantity(&f, "bytes", &buffer.bytes);
    ENUM(&f, "memory", memory_names, buffer.memory, 0);
    field_bool(&f, "weight", &buffer.is_weight);
    cct_json_add(array, json);
  }
  cct_json_set(object, "ops", array = cct_json_new_array());
  for (int id = 0; id < p->n_ops; id++)
    cct_json_add(array, op_to_json(p, id));
  return object;
}

enum cct_status cct_job_to_json(const struct cct_job *job, struct cct_json **document_out) {
  struct cct_json *document = cct_json_new_object(), *array;
  if (!document)
    return cct_fail(CCT_NOMEM, "job of %d ranks: out of memory", job->ranks);
  cct_json_set_i64(document, "schema", 1);
  cct_json_set_i64(document, "ranks", job->ranks);
  cct_json_set(document, "groups", array = cct_json_new_array());
  for (int i = 0; i < job->n_groups; i++) {
    struct cct_json *group = cct_json_new_object();
    cct_json_set_string(group, "name", job->groups[i].name);
    cct_json_set_i64(group, "size", job->groups[i].size);
    cct_json_set_i64(group, "stride", job->groups[i].stride);
    cct_json_add(array, group);
  }
  cct_json_set(document, "roles", array = cct_json_new_array());
  for (int i = 0; i < job->n_roles; i++) {
    struct cct_json *role = cct_json_new_object();
    cct_json_set_i64(role, "first", job->roles[i].first);
    cct_json_set_i64(role, "count", job->roles[i].count);
    cct_json_set(role, "program", program_to_json(job->roles[i].program));
    cct_json_add(array, role);
  }
  *document_out = document;
  return CCT_OK;
}

enum cct_status cct_job_digest(const struct cct_job *job, char hex_out[65]) {
  struct cct_json *document;
  struct cct_text text = {0};
  enum cct_status status = cct_job_to_json(job, &document);
  if (status)
    return status;
  status = cct_json_canonical(document, &text);
  if (!status)
    status = cct_digest_text(text.s, text.length, hex_out);
  cct_text_free(&text);
  cct_json_free(document);
  return status;
}

/* ---- reading ---- */

static enum cct_status read_array(const struct cct_json_at *object, const char *key, size_t limit, int is_needed,
                                  struct cct_json_at *array_out, size_t *n_out) {
  *array_out = cct_json_at_key(object, key);
  *n_out = 0;
  if (!array_out->value && !is_needed)
    return CCT_OK;
  enum cct_status status = cct_json_expect(array_out, CCT_JSON_ARRAY);
  if (status)
    return status;
  if (cct_json_size(array_out->value) > limit)
    return cct_json_fail(array_out, CCT_USAGE, "%zu elements, more than %zu", cct_json_size(array_out->value), limit);
  *n_out = cct_json_size(array_out->value);
  return CCT_OK;
}

static enum cct_status read_waits(const struct cct_json_at *at, struct cct_wait *waits, int max, int *n_out) {
  struct cct_json_at array;
  size_t n;
  enum cct_status status = read_array(at, "waits", (size_t)max, 0, &array, &n);
  for (size_t i = 0; i < n && !status; i++) {
    struct cct_json_at wait = cct_json_at_index(&array, i);
    const char *text = cct_json_string(wait.value);
    int64_t id = 0;
    if (text && (strncmp(text, "prev:", 5) || !cct_parse_i64(text + 5, &id) || id < 0 || id > INT32_MAX))
      status = cct_json_fail(&wait, CCT_USAGE, "'%s' is no wait: an entry's number, or \"prev:NUMBER\"", text);
    else if (!text)
      status = cct_json_read_i64(&wait, 0, INT32_MAX, &id);
    waits[i] = (struct cct_wait){.id = (int)id, .is_previous = text != NULL};
  }
  *n_out = (int)n;
  return status;
}

static enum cct_status read_buffers(const struct cct_json_at *at, struct cct_op *op) {
  struct cct_json_at array;
  size_t n;
  enum cct_status status = read_array(at, "reads", 2, 0, &array, &n);
  for (size_t i = 0; i < n && !status; i++) {
    struct cct_json_at buffer = cct_json_at_index(&array, i);
    int64_t id = -1;
    status = cct_json_read_i64(&buffer, -1, INT32_MAX, &id);
    op->reads[i] = (int)id;
  }
  return status;
}

static enum cct_status read_op(const struct cct_json_at *at, struct cct_program *p) {
  struct cct_op op = {.lane = -1, .host = -1, .reads = {-1, -1}, .writes = -1, .name = ""};
  struct cct_wait waits[64];
  int n_waits = 0;
  enum cct_status status = cct_json_expect(at, CCT_JSON_OBJECT);
  if (status)
    return status;
  struct fields f = {.way = READ, .at = *at}, list = {.way = LIST};
  ENUM(&f, "op", op_names, op.kind, 0);
  if (f.status)
    return f.status;
  if (op.kind == CCT_OP_COLLECTIVE)
    op.collective.matrix = -1;
  if (op.kind == CCT_OP_DELAY)
    op.delay.of = -1;
  if (op.kind == CCT_OP_GEMM)
    op.gemm.groups = 1;
  list.keys[list.n_keys++] = "op";
  list.keys[list.n_keys++] = "name";
  if (op.kind != CCT_OP_END && op.kind != CCT_OP_PHASE)
    for (int i = 0; i < 5; i++)
      list.keys[list.n_keys++] = (const char *const[]){"lane", "host", "waits", "reads", "writes"}[i];
  visit_kind(&list, &op);
  status = cct_json_known_keys(at, list.keys, list.n_keys);
  char name[128] = "";
  field_text(&f, "name", name, sizeof name);
  field_int(&f, "lane", &op.lane, -1, INT32_MAX, &none);
  field_int(&f, "host", &op.host, -1, INT32_MAX, &none);
  field_int(&f, "writes", &op.writes, -1, INT32_MAX, &none);
  visit_kind(&f, &op);
  if (!status)
    status = f.status;
  if (!status)
    status = read_waits(at, waits, (int)(sizeof waits / sizeof *waits), &n_waits);
  if (!status)
    status = read_buffers(at, &op);
  if (status)
    return status;
  op.name = name;
  cct_program_add(p, &op, waits, n_waits);
  return CCT_OK;
}

static enum cct_status known(struct fields *f, const char *const *keys, size_t n) {
  return f->status ? f->status : (f->status = cct_json_known_keys(&f->at, keys, n));
}

static enum cct_status read_lane(const struct cct_json_at *at, struct cct_program *p) {
  struct fields f = {.way = READ, .at = *at};
  struct cct_lane lane = {0};
  if (known(&f, (const char *const[]){"name", "kind"}, 2) == CCT_OK) {
    field_text(&f, "name", lane.name, sizeof lane.name);
    ENUM(&f, "kind", lane_kind_names, lane.kind, 0);
    if (!f.status)
      cct_program_add_lane(p, lane.name, lane.kind);
  }
  return f.status;
}

static enum cct_status read_slot(const struct cct_json_at *at, struct cct_program *p) {
  struct fields f = {.way = READ, .at = *at};
  struct cct_slot slot = {0};
  if (known(&f, (const char *const[]){"name", "value"}, 2) == CCT_OK) {
    field_text(&f, "name", slot.name, sizeof slot.name);
    field_i64(&f, "value", &slot.value, 0, INT64_MAX, NULL);
    if (!f.status)
      cct_program_add_slot(p, slot.name, slot.value);
  }
  return f.status;
}

static enum cct_status read_buffer(const struct cct_json_at *at, struct cct_program *p) {
  struct fields f = {.way = READ, .at = *at};
  struct cct_buffer buffer = {0};
  if (known(&f, (const char *const[]){"name", "bytes", "memory", "weight"}, 4) == CCT_OK) {
    field_text(&f, "name", buffer.name, sizeof buffer.name);
    field_quantity(&f, "bytes", &buffer.bytes);
    ENUM(&f, "memory", memory_names, buffer.memory, 0);
    field_bool(&f, "weight", &buffer.is_weight);
    if (!f.status)
      cct_program_add_buffer(p, buffer.name, buffer.bytes, buffer.memory, buffer.is_weight);
  }
  return f.status;
}

static enum cct_status read_each(const struct cct_json_at *at, const char *key, size_t limit, struct cct_program *p,
                                 enum cct_status (*read)(const struct cct_json_at *at, struct cct_program *p)) {
  struct cct_json_at array;
  size_t n;
  enum cct_status status = read_array(at, key, limit, 1, &array, &n);
  for (size_t i = 0; i < n && !status; i++) {
    struct cct_json_at element = cct_json_at_index(&array, i);
    status = read(&element, p);
  }
  return status;
}

static enum cct_status read_program(const struct cct_json_at *at, struct cct_program **program_out) {
  static const char *const keys[] = {"name", "lanes", "slots", "buffers", "ops"};
  struct fields f = {.way = READ, .at = *at};
  char name[48] = "";
  struct cct_program *p = NULL;
  if (known(&f, keys, 5) == CCT_OK)
    field_text(&f, "name", name, sizeof name);
  enum cct_status status = f.status;
  if (!status)
    status = cct_program_new(name, &p);
  if (!status)
    status = read_each(at, "lanes", 64, p, read_lane);
  if (!status)
    status = read_each(at, "slots", 4096, p, read_slot);
  if (!status)
    status = read_each(at, "buffers", 1 << 16, p, read_buffer);
  if (!status)
    status = read_each(at, "ops", 1 << 20, p, read_op);
  if (status)
    cct_program_free(p);
  else
    *program_out = p;
  return status;
}

static enum cct_status read_role(const struct cct_json_at *at, struct cct_job *job) {
  struct fields f = {.way = READ, .at = *at};
  struct cct_program *p = NULL;
  int first = 0, count = 0;
  if (known(&f, (const char *const[]){"first", "count", "program"}, 3) == CCT_OK) {
    field_int(&f, "first", &first, 0, INT32_MAX, NULL);
    field_int(&f, "count", &count, 1, INT32_MAX, NULL);
  }
  if (f.status)
    return f.status;
  struct cct_json_at program = cct_json_at_key(at, "program");
  enum cct_status status = read_program(&program, &p);
  if (status)
    return status;
  status = cct_job_add_role(job, p, first, count);
  if (status)
    cct_program_free(p);
  return status;
}

static enum cct_status read_group(const struct cct_json_at *at, struct cct_job *job) {
  struct fields f = {.way = READ, .at = *at};
  struct cct_group group = {0};
  if (known(&f, (const char *const[]){"name", "size", "stride"}, 3) == CCT_OK) {
    field_text(&f, "name", group.name, sizeof group.name);
    field_int(&f, "size", &group.size, 1, INT32_MAX, NULL);
    field_int(&f, "stride", &group.stride, 1, INT32_MAX, NULL);
  }
  job->groups[job->n_groups++] = group; /* as it stands, not merged with an equal one: entries name it by number */
  return f.status;
}

static enum cct_status read_job(const struct cct_json_at *at, struct cct_job *job) {
  struct cct_json_at array;
  size_t n;
  enum cct_status status = read_array(at, "groups", sizeof job->groups / sizeof *job->groups, 1, &array, &n);
  for (size_t i = 0; i < n && !status; i++) {
    struct cct_json_at element = cct_json_at_index(&array, i);
    status = read_group(&element, job);
  }
  if (!status)
    status = read_array(at, "roles", 1 << 16, 1, &array, &n);
  for (size_t i = 0; i < n && !status; i++) {
    struct cct_json_at element = cct_json_at_index(&array, i);
    status = read_role(&element, job);
  }
  return status ? status : cct_job_check(job);
}

enum cct_status cct_job_from_json(const struct cct_json_at *at, struct cct_job **job_out) {
  struct fields f = {.way = READ, .at = *at};
  struct cct_job *job = NULL;
  int schema = 0, ranks = 0;
  if (known(&f, (const char *const[]){"schema", "ranks", "groups", "roles"}, 4) == CCT_OK) {
    field_int(&f, "schema", &schema, 1, 1, NULL);
    field_int(&f, "ranks", &ranks, 1, INT32_MAX, NULL);
  }
  enum cct_status status = f.status;
  if (!status)
    status = cct_job_new(ranks, &job);
  if (!status)
    status = read_job(at, job);
  if (status)
    cct_job_free(job);
  else
    *job_out = job;
  return status;
}
