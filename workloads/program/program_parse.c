/* SPDX-License-Identifier: Apache-2.0
 * A job read from JSON, every error by its path, and judged by cct_job_check. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "workloads/program/program_fields.h"

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
  struct cct_fields f = {.way = CCT_FIELDS_READ, .at = *at}, list = {.way = CCT_FIELDS_LIST};
  cct_field_op_kind(&f, &op.kind);
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
  if (op.kind != CCT_OP_END && op.kind != CCT_OP_PHASE && op.kind != CCT_OP_CASE)
    for (int i = 0; i < 5; i++)
      list.keys[list.n_keys++] = (const char *const[]){"lane", "host", "waits", "reads", "writes"}[i];
  cct_fields_of_op(&list, &op);
  status = cct_json_known_keys(at, list.keys, list.n_keys);
  char name[128] = "";
  cct_field_text(&f, "name", name, sizeof name);
  cct_field_int(&f, "lane", &op.lane, -1, INT32_MAX, &cct_fields_none);
  cct_field_int(&f, "host", &op.host, -1, INT32_MAX, &cct_fields_none);
  cct_field_int(&f, "writes", &op.writes, -1, INT32_MAX, &cct_fields_none);
  cct_fields_of_op(&f, &op);
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

static enum cct_status known(struct cct_fields *f, const char *const *keys, size_t n) {
  return f->status ? f->status : (f->status = cct_json_known_keys(&f->at, keys, n));
}

static enum cct_status read_lane(const struct cct_json_at *at, struct cct_program *p) {
  struct cct_fields f = {.way = CCT_FIELDS_READ, .at = *at};
  struct cct_lane lane = {0};
  if (known(&f, (const char *const[]){"name", "kind"}, 2) == CCT_OK) {
    cct_field_text(&f, "name", lane.name, sizeof lane.name);
    cct_field_lane_kind(&f, &lane.kind);
    if (!f.status)
      cct_program_add_lane(p, lane.name, lane.kind);
  }
  return f.status;
}

static enum cct_status read_slot(const struct cct_json_at *at, struct cct_program *p) {
  struct cct_fields f = {.way = CCT_FIELDS_READ, .at = *at};
  struct cct_slot slot = {0};
  if (known(&f, (const char *const[]){"name", "value"}, 2) == CCT_OK) {
    cct_field_text(&f, "name", slot.name, sizeof slot.name);
    cct_field_i64(&f, "value", &slot.value, 0, INT64_MAX, NULL);
    if (!f.status)
      cct_program_add_slot(p, slot.name, slot.value);
  }
  return f.status;
}

static enum cct_status read_buffer(const struct cct_json_at *at, struct cct_program *p) {
  struct cct_fields f = {.way = CCT_FIELDS_READ, .at = *at};
  struct cct_buffer buffer = {0};
  if (known(&f, (const char *const[]){"name", "bytes", "memory", "weight", "rotated", "registration"}, 6) == CCT_OK) {
    cct_field_text(&f, "name", buffer.name, sizeof buffer.name);
    cct_field_quantity(&f, "bytes", &buffer.bytes);
    cct_field_memory(&f, &buffer.memory);
    cct_field_bool(&f, "weight", &buffer.is_weight);
    cct_field_bool(&f, "rotated", &buffer.is_rotated);
    cct_field_registration(&f, &buffer.registration);
    if (!f.status)
      cct_program_set_buffer(p, cct_program_add_buffer(p, buffer.name, buffer.bytes, buffer.memory, buffer.is_weight),
                             buffer.is_rotated, buffer.registration);
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
  struct cct_fields f = {.way = CCT_FIELDS_READ, .at = *at};
  char name[48] = "";
  struct cct_program *p = NULL;
  if (known(&f, keys, 5) == CCT_OK)
    cct_field_text(&f, "name", name, sizeof name);
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
  struct cct_fields f = {.way = CCT_FIELDS_READ, .at = *at};
  struct cct_program *p = NULL;
  int first = 0, count = 0;
  if (known(&f, (const char *const[]){"first", "count", "program"}, 3) == CCT_OK) {
    cct_field_int(&f, "first", &first, 0, INT32_MAX, NULL);
    cct_field_int(&f, "count", &count, 1, INT32_MAX, NULL);
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
  struct cct_fields f = {.way = CCT_FIELDS_READ, .at = *at};
  struct cct_group group = {0};
  struct cct_choice choice;
  if (known(&f, (const char *const[]){"name", "size", "stride", "choice"}, 4) == CCT_OK) {
    cct_field_text(&f, "name", group.name, sizeof group.name);
    cct_field_int(&f, "size", &group.size, 1, INT32_MAX, NULL);
    cct_field_int(&f, "stride", &group.stride, 1, INT32_MAX, NULL);
    if (cct_json_member(at->value, "choice"))
      cct_field_text(&f, "choice", group.choice, sizeof group.choice);
    if (!f.status && !cct_choice_parse(group.choice, &choice))
      f.status = cct_json_fail(at, CCT_USAGE, "choice '%s' is no ALGORITHM/PROTOCOL/CHANNELS", group.choice);
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
  struct cct_fields f = {.way = CCT_FIELDS_READ, .at = *at};
  struct cct_job *job = NULL;
  int schema = 0, ranks = 0;
  if (known(&f, (const char *const[]){"schema", "ranks", "groups", "roles"}, 4) == CCT_OK) {
    cct_field_int(&f, "schema", &schema, 1, 1, NULL);
    cct_field_int(&f, "ranks", &ranks, 1, INT32_MAX, NULL);
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
