/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/shape/cell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum cct_workload cct_cell_workload(const struct cct_options *cell) {
  static const char *const names[] = {"train", "prefill", "decode", "serve", "collective", "probe"};
  const char *name = cell->v[CCT_OPT_WORKLOAD].s;
  for (int i = 0; name && i < CCT_WORKLOAD_NONE; i++)
    if (!strcmp(name, names[i]))
      return (enum cct_workload)i;
  return CCT_WORKLOAD_NONE;
}

const char *cct_cell_text(const struct cct_options *cell, enum cct_option_id id) {
  const struct cct_value *value = &cell->v[id];
  enum cct_workload workload = cct_cell_workload(cell);
  if (value->has_value)
    return value->s;
  if (workload == CCT_WORKLOAD_NONE)
    return NULL;
  if (id == CCT_OPT_GRAPH)
    return workload == CCT_WORKLOAD_DECODE || workload == CCT_WORKLOAD_SERVE ? "full" : "none";
  if (id == CCT_OPT_DISPATCH)
    return workload == CCT_WORKLOAD_TRAIN ? "per-expert" : "per-rank";
  if (id == CCT_OPT_ARRIVALS && workload == CCT_WORKLOAD_SERVE)
    return cell->v[CCT_OPT_REQUEST_RATE].has_value || cell->v[CCT_OPT_TRACE].has_value ? "seconds" : "closed";
  if (id == CCT_OPT_MIXED_GRAPH && workload == CCT_WORKLOAD_SERVE)
    return strcmp(cct_cell_text(cell, CCT_OPT_GRAPH), "piecewise") ? "none" : "piecewise";
  return NULL;
}

enum cct_status cct_cell_to_json(const struct cct_options *cell, struct cct_json **json_out) {
  struct cct_json *json = cct_json_new_object();
  if (!json)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; i < CCT_OPTION_COUNT; i++) {
    enum cct_option_id id = (enum cct_option_id)i;
    char key[32];
    if (!cct_cell_matters(cell, id))
      continue;
    switch (cct_option_table[id].kind) {
    case CCT_KIND_FLAG:
      cct_json_set_bool(json, cct_option_key(id, key), 1);
      break;
    case CCT_KIND_I64:
    case CCT_KIND_BYTES:
      cct_json_set_i64(json, cct_option_key(id, key), cell->v[id].i);
      break;
    case CCT_KIND_F64:
      cct_json_set_f64(json, cct_option_key(id, key), cell->v[id].f);
      break;
    case CCT_KIND_TEXT:
    case CCT_KIND_WORD:
      cct_json_set_string(json, cct_option_key(id, key), cct_cell_text(cell, id));
      break;
    }
  }
  *json_out = json;
  return CCT_OK;
}

/* The value as a user would write it on the command line, so that the one option table checks it. */
static enum cct_status value_text(const struct cct_json_at *at, enum cct_option_kind kind, char number[40],
                                  const char **text_out) {
  int64_t i = 0;
  double f = 0;
  int is_true = 0;
  enum cct_status status = CCT_OK;
  *text_out = number;
  switch (kind) {
  case CCT_KIND_I64:
  case CCT_KIND_BYTES:
    status = cct_json_read_i64(at, INT64_MIN, INT64_MAX, &i);
    snprintf(number, 40, "%" PRId64, i);
    return status;
  case CCT_KIND_F64:
    status = cct_json_read_f64(at, -1e308, 1e308, &f);
    snprintf(number, 40, "%.17g", f);
    return status;
  case CCT_KIND_FLAG:
    status = cct_json_read_bool(at, &is_true);
    if (!is_true)
      *text_out = NULL;
    return status;
  case CCT_KIND_TEXT:
  case CCT_KIND_WORD:
    break;
  }
  return cct_json_read_string(at, text_out);
}

static enum cct_status refuse_key(const struct cct_json_at *at, const char *key) {
  char keys[CCT_OPTION_COUNT][32];
  const char *names[CCT_OPTION_COUNT];
  size_t n = 0;
  for (int id = 0; id < CCT_OPTION_COUNT; id++)
    if (cct_option_table[id].scope == CCT_SCOPE_CELL) {
      names[n] = cct_option_key((enum cct_option_id)id, keys[n]);
      n++;
    }
  const char *near = cct_closest(key, names, n);
  return near ? cct_json_fail(at, CCT_USAGE, "unknown key; did you mean '%s'?", near)
              : cct_json_fail(at, CCT_USAGE, "unknown key; a cell's keys are run's long flags with _ for -");
}

enum cct_status cct_cell_from_json(const struct cct_json_at *at, struct cct_options *cell_out) {
  struct cct_options cell;
  void *iterator = NULL;
  const char *key;
  const struct cct_json *value;
  enum cct_status status = cct_json_expect(at, CCT_JSON_OBJECT);
  if (!status)
    status = cct_options_init(&cell);
  if (status)
    return status;
  while (!status && cct_json_next(at->value, &iterator, &key, &value)) {
    struct cct_json_at place = cct_json_at_key(at, key);
    enum cct_option_id id = cct_option_by_key(key);
    char number[40], where[512];
    const char *text;
    if (id == CCT_OPTION_COUNT || cct_option_table[id].scope != CCT_SCOPE_CELL) {
      status = refuse_key(&place, key);
      continue;
    }
    snprintf(where, sizeof where, "%s: %s", place.source, place.path);
    status = value_text(&place, cct_option_table[id].kind, number, &text);
    if (!status && text)
      status = cct_option_set(&cell, id, text, where);
  }
  if (status) {
    cct_options_free(&cell);
    return status;
  }
  *cell_out = cell;
  return CCT_OK;
}
