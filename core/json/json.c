/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* struct cct_json is jansson's json_t under our name; it is never dereferenced here. */
static json_t *own(const struct cct_json *value) {
  return (json_t *)(uintptr_t)value;
}

static struct cct_json *as_cct(json_t *value) {
  return (struct cct_json *)value;
}

enum cct_status cct_json_parse(const char *text, size_t length, const char *source, struct cct_json **document_out) {
  json_error_t error;
  json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
  if (!document)
    return cct_fail(CCT_USAGE, "%s:%d:%d: not JSON: %s", source, error.line, error.column, error.text);
  *document_out = as_cct(document);
  return CCT_OK;
}

enum cct_status cct_json_load(const char *path, struct cct_json **document_out) {
  char *text;
  size_t length;
  enum cct_status status = cct_read_file(path, CCT_JSON_LIMIT_BYTES, &text, &length);
  if (status)
    return status;
  status = cct_json_parse(text, length, path, document_out);
  free(text);
  return status;
}

void cct_json_free(struct cct_json *document) {
  json_decref(own(document));
}

enum cct_json_type cct_json_type(const struct cct_json *value) {
  switch (json_typeof(own(value))) {
  case JSON_OBJECT:
    return CCT_JSON_OBJECT;
  case JSON_ARRAY:
    return CCT_JSON_ARRAY;
  case JSON_STRING:
    return CCT_JSON_STRING;
  case JSON_INTEGER:
    return CCT_JSON_INTEGER;
  case JSON_REAL:
    return CCT_JSON_REAL;
  case JSON_TRUE:
  case JSON_FALSE:
    return CCT_JSON_BOOL;
  case JSON_NULL:
    break;
  }
  return CCT_JSON_NULL;
}

const char *cct_json_type_name(enum cct_json_type type) {
  static const char *const names[] = {"null",     "a boolean", "an integer", "a number",
                                      "a string", "an array",  "an object"};
  return names[type];
}

size_t cct_json_size(const struct cct_json *value) {
  return json_is_array(own(value)) ? json_array_size(own(value)) : json_object_size(own(value));
}

const struct cct_json *cct_json_member(const struct cct_json *object, const char *key) {
  return as_cct(json_object_get(own(object), key));
}

const struct cct_json *cct_json_element(const struct cct_json *array, size_t index) {
  return as_cct(json_array_get(own(array), index));
}

int cct_json_next(const struct cct_json *object, void **iterator, const char **key_out,
                  const struct cct_json **value_out) {
  *iterator = *iterator ? json_object_iter_next(own(object), *iterator) : json_object_iter(own(object));
  if (!*iterator)
    return 0;
  *key_out = json_object_iter_key(*iterator);
  *value_out = as_cct(json_object_iter_value(*iterator));
  return 1;
}

double cct_json_number(const struct cct_json *value) {
  return json_number_value(own(value));
}

int64_t cct_json_integer(const struct cct_json *value) {
  return json_integer_value(own(value));
}

const char *cct_json_string(const struct cct_json *value) {
  return json_string_value(own(value));
}

int cct_json_is_true(const struct cct_json *value) {
  return json_is_true(own(value));
}

struct cct_json_at cct_json_root(const struct cct_json *document, const char *source) {
  return (struct cct_json_at){.value = document, .source = source, .path = "$"};
}

struct cct_json_at cct_json_at_key(const struct cct_json_at *at, const char *key) {
  struct cct_json_at child = *at;
  size_t length = strlen(child.path);
  snprintf(child.path + length, sizeof child.path - length, ".%s", key);
  child.value = at->value ? cct_json_member(at->value, key) : NULL;
  return child;
}

struct cct_json_at cct_json_at_index(const struct cct_json_at *at, size_t index) {
  struct cct_json_at child = *at;
  size_t length = strlen(child.path);
  snprintf(child.path + length, sizeof child.path - length, "[%zu]", index);
  child.value = at->value ? cct_json_element(at->value, index) : NULL;
  return child;
}

enum cct_status cct_json_fail(const struct cct_json_at *at, enum cct_status status, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return cct_fail(status, "%s: %s: %s", at->source, at->path, text);
}

enum cct_status cct_json_expect(const struct cct_json_at *at, enum cct_json_type type) {
  if (!at->value)
    return cct_json_fail(at, CCT_USAGE, "missing; %s is needed", cct_json_type_name(type));
  enum cct_json_type is = cct_json_type(at->value);
  if (is == type || (type == CCT_JSON_REAL && is == CCT_JSON_INTEGER))
    return CCT_OK;
  return cct_json_fail(at, CCT_USAGE, "%s where %s is needed", cct_json_type_name(is), cct_json_type_name(type));
}

enum cct_status cct_json_read_i64(const struct cct_json_at *at, int64_t min, int64_t max, int64_t *value_out) {
  enum cct_status status = cct_json_expect(at, CCT_JSON_INTEGER);
  if (status)
    return status;
  int64_t value = cct_json_integer(at->value);
  if (value < min || value > max)
    return cct_json_fail(at, CCT_USAGE, "%lld is outside %lld to %lld", (long long)value, (long long)min,
                         (long long)max);
  *value_out = value;
  return CCT_OK;
}

enum cct_status cct_json_read_f64(const struct cct_json_at *at, double min, double max, double *value_out) {
  enum cct_status status = cct_json_expect(at, CCT_JSON_REAL);
  if (status)
    return status;
  double value = cct_json_number(at->value);
  if (!(value >= min && value <= max))
    return cct_json_fail(at, CCT_USAGE, "%.15g is outside %.15g to %.15g", value, min, max);
  *value_out = value;
  return CCT_OK;
}

enum cct_status cct_json_read_string(const struct cct_json_at *at, const char **text_out) {
  enum cct_status status = cct_json_expect(at, CCT_JSON_STRING);
  if (!status)
    *text_out = cct_json_string(at->value);
  return status;
}

enum cct_status cct_json_read_bool(const struct cct_json_at *at, int *value_out) {
  enum cct_status status = cct_json_expect(at, CCT_JSON_BOOL);
  if (!status)
    *value_out = cct_json_is_true(at->value);
  return status;
}

enum cct_status cct_json_member_i64(const struct cct_json_at *object, const char *key, int64_t min, int64_t max,
                                    int64_t *value_out) {
  struct cct_json_at at = cct_json_at_key(object, key);
  return cct_json_read_i64(&at, min, max, value_out);
}

enum cct_status cct_json_member_text(const struct cct_json_at *object, const char *key, char *text, size_t size) {
  struct cct_json_at at = cct_json_at_key(object, key);
  const char *read;
  enum cct_status status = cct_json_read_string(&at, &read);
  if (!status && strlen(read) >= size)
    status = cct_json_fail(&at, CCT_USAGE, "longer than %zu bytes", size - 1);
  if (!status)
    memcpy(text, read, strlen(read) + 1);
  return status;
}

enum cct_status cct_json_known_keys(const struct cct_json_at *at, const char *const *known, size_t n) {
  enum cct_status status = cct_json_expect(at, CCT_JSON_OBJECT);
  if (status)
    return status;
  void *iterator = NULL;
  const char *key;
  const struct cct_json *value;
  while (cct_json_next(at->value, &iterator, &key, &value)) {
    size_t i = 0;
    while (i < n && strcmp(known[i], key))
      i++;
    if (i < n)
      continue;
    const char *near = cct_closest(key, known, n);
    return near ? cct_json_fail(at, CCT_USAGE, "unknown key '%s'; did you mean '%s'?", key, near)
                : cct_json_fail(at, CCT_USAGE, "unknown key '%s'", key);
  }
  return CCT_OK;
}

struct cct_json *cct_json_new_object(void) {
  return as_cct(json_object());
}

struct cct_json *cct_json_new_array(void) {
  return as_cct(json_array());
}

struct cct_json *cct_json_copy(const struct cct_json *value) {
  return as_cct(json_deep_copy(own(value)));
}

/* A value that could not be made or placed must not vanish silently: the container is spoilt by a member that no
 * printer accepts, and print reports it. jansson's own NULL tolerance does this: json_object_set_new(o, k, NULL) fails,
 * so the failure is kept as a marker under a key that no document of ours has. */
static const char spoilt[] = "\x01";

static void put(struct cct_json *object, const char *key, json_t *value) {
  if (object && json_object_set_new(own(object), key, value) != 0)
    json_object_set_new(own(object), spoilt, json_null());
}

static void push(struct cct_json *array, json_t *value) {
  if (array && json_array_append_new(own(array), value) != 0)
    json_array_append_new(own(array), json_pack("{s:n}", spoilt));
}

static json_t *real_or_null(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

void cct_json_set_string(struct cct_json *object, const char *key, const char *text) {
  put(object, key, text ? json_string(text) : json_null());
}

void cct_json_set_i64(struct cct_json *object, const char *key, int64_t value) {
  put(object, key, json_integer(value));
}

void cct_json_set_f64(struct cct_json *object, const char *key, double value) {
  put(object, key, real_or_null(value));
}

void cct_json_set_bool(struct cct_json *object, const char *key, int value) {
  put(object, key, json_boolean(value));
}

void cct_json_set_null(struct cct_json *object, const char *key) {
  put(object, key, json_null());
}

void cct_json_set(struct cct_json *object, const char *key, struct cct_json *value) {
  put(object, key, own(value));
}

void cct_json_add_string(struct cct_json *array, const char *text) {
  push(array, text ? json_string(text) : json_null());
}

void cct_json_add_i64(struct cct_json *array, int64_t value) {
  push(array, json_integer(value));
}

void cct_json_add_f64(struct cct_json *array, double value) {
  push(array, real_or_null(value));
}

void cct_json_add(struct cct_json *array, struct cct_json *value) {
  push(array, own(value));
}

static enum cct_status print(const struct cct_json *value, size_t flags, struct cct_text *text) {
  char *dump = value ? json_dumps(own(value), flags | JSON_ENCODE_ANY) : NULL;
  if (!dump)
    return cct_fail(CCT_NOMEM, "a JSON document could not be built: out of memory, or a text in it is not UTF-8");
  enum cct_status status = CCT_OK;
  if (strstr(dump, "\"\\u0001\""))
    status = cct_fail(CCT_USAGE, "a JSON document could not be built: a text in it is not UTF-8");
  else
    cct_text_append(text, dump, strlen(dump));
  free(dump);
  return status ? status : text->is_failed ? CCT_NOMEM : CCT_OK;
}

enum cct_status cct_json_print(const struct cct_json *value, struct cct_text *text) {
  return print(value, JSON_INDENT(2) | JSON_REAL_PRECISION(12), text);
}

enum cct_status cct_json_canonical(const struct cct_json *value, struct cct_text *text) {
  return print(value, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17), text);
}

enum cct_status cct_json_save(const struct cct_json *value, const char *path) {
  struct cct_text text = {0};
  enum cct_status status = cct_json_print(value, &text);
  if (!status) {
    cct_text_append(&text, "\n", 1);
    status = cct_write_file(path, text.s, text.length);
  }
  cct_text_free(&text);
  return status;
}
