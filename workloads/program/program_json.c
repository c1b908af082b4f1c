/* SPDX-License-Identifier: Apache-2.0
 * A job written as JSON, and its digest. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "crypt/digest.h"
#include "workloads/program/program_fields.h"

static struct cct_json *op_to_json(const struct cct_program *p, int id) {
  struct cct_op op = p->ops[id];
  struct cct_json *object = cct_json_new_object();
  struct cct_fields f = {.way = CCT_FIELDS_WRITE, .object = object};
  cct_json_set_string(object, "op", cct_op_name(op.kind));
  if (*op.name)
    cct_json_set_string(object, "name", op.name);
  if (op.kind == CCT_OP_END)
    return object;
  if (op.kind != CCT_OP_PHASE && op.kind != CCT_OP_CASE) {
    cct_field_int(&f, "lane", &op.lane, 0, 0, &cct_fields_none);
    cct_field_int(&f, "host", &op.host, 0, 0, &cct_fields_none);
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
  cct_field_int(&f, "writes", &op.writes, 0, 0, &cct_fields_none);
  cct_fields_of_op(&f, &op);
  return object;
}

static struct cct_json *program_to_json(const struct cct_program *p) {
  struct cct_json *object = cct_json_new_object(), *array;
  cct_json_set_string(object, "name", p->name);
  cct_json_set(object, "lanes", array = cct_json_new_array());
  for (int i = 0; i < p->n_lanes; i++) {
    struct cct_json *lane = cct_json_new_object();
    cct_json_set_string(lane, "name", p->lanes[i].name);
    cct_json_set_string(lane, "kind", p->lanes[i].kind == CCT_LANE_HOST ? "host" : "stream");
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
    struct cct_fields f = {.way = CCT_FIELDS_WRITE, .object = json};
    cct_json_set_string(json, "name", buffer.name);
    cct_field_quantity(&f, "bytes", &buffer.bytes);
    cct_field_memory(&f, &buffer.memory);
    cct_field_bool(&f, "weight", &buffer.is_weight);
    cct_field_bool(&f, "rotated", &buffer.is_rotated);
    cct_field_registration(&f, &buffer.registration);
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
    if (*job->groups[i].choice)
      cct_json_set_string(group, "choice", job->groups[i].choice);
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
