/* SPDX-License-Identifier: Apache-2.0
 * JSON in and out. Reading is strict: duplicate keys, trailing text, numbers that do not fit and depth beyond 2048 are
 * refused with file, line and column; the typed readers refuse a missing, wrong-typed or absurd value by its JSON path
 * in one line. A `struct cct_json` is a value; `cct_json_load` and `cct_json_parse` give an owned document, the
 * accessors give values borrowed from it. */
#ifndef CCT_JSON_JSON_H
#define CCT_JSON_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

struct cct_json;

enum cct_json_type {
  CCT_JSON_NULL,
  CCT_JSON_BOOL,
  CCT_JSON_INTEGER,
  CCT_JSON_REAL,
  CCT_JSON_STRING,
  CCT_JSON_ARRAY,
  CCT_JSON_OBJECT,
};

/* Input files larger than this are refused before they are read. */
#define CCT_JSON_LIMIT_BYTES ((size_t)64 << 20)

enum cct_status cct_json_load(const char *path, struct cct_json **document_out) CCT_CHECKED;
/* `source` names the text in error lines. */
enum cct_status cct_json_parse(const char *text, size_t length, const char *source,
                               struct cct_json **document_out) CCT_CHECKED;
void cct_json_free(struct cct_json *document); /* NULL-safe */

enum cct_json_type cct_json_type(const struct cct_json *value);
const char *cct_json_type_name(enum cct_json_type type);
size_t cct_json_size(const struct cct_json *value); /* members or elements; 0 for a scalar */
const struct cct_json *cct_json_member(const struct cct_json *object, const char *key); /* NULL: absent, or no object */
const struct cct_json *cct_json_element(const struct cct_json *array, size_t index);    /* NULL: outside, or no array */
/* Members in file order: *iterator starts NULL; returns 0 at the end. */
int cct_json_next(const struct cct_json *object, void **iterator, const char **key_out,
                  const struct cct_json **value_out);
double cct_json_number(const struct cct_json *value);      /* integer or real; 0 for anything else */
int64_t cct_json_integer(const struct cct_json *value);    /* 0 for anything else */
const char *cct_json_string(const struct cct_json *value); /* NULL for anything else */
int cct_json_is_true(const struct cct_json *value);

/* ---- typed reading with paths ---- */

/* A place in a document: the value and how an error line names it. Copy it freely; `path` is "$", "$.cells[3].model".
 */
struct cct_json_at {
  const struct cct_json *value;
  const char *source;
  char path[160];
};

struct cct_json_at cct_json_root(const struct cct_json *document, const char *source);
/* The member or element there; `.value` is NULL when it is absent. */
struct cct_json_at cct_json_at_key(const struct cct_json_at *at, const char *key);
struct cct_json_at cct_json_at_index(const struct cct_json_at *at, size_t index);
/* Logs "SOURCE: PATH: ..." and returns `status`. */
enum cct_status cct_json_fail(const struct cct_json_at *at, enum cct_status status, const char *format, ...)
    CCT_PRINTF(3, 4);

enum cct_status cct_json_expect(const struct cct_json_at *at, enum cct_json_type type) CCT_CHECKED;
enum cct_status cct_json_read_i64(const struct cct_json_at *at, int64_t min, int64_t max,
                                  int64_t *value_out) CCT_CHECKED;
enum cct_status cct_json_read_f64(const struct cct_json_at *at, double min, double max, double *value_out) CCT_CHECKED;
enum cct_status cct_json_read_string(const struct cct_json_at *at, const char **text_out) CCT_CHECKED; /* borrowed */
enum cct_status cct_json_read_bool(const struct cct_json_at *at, int *value_out) CCT_CHECKED;
/* Of a member. Its text is copied, and refused where it has more than size - 1 bytes. */
enum cct_status cct_json_member_i64(const struct cct_json_at *object, const char *key, int64_t min, int64_t max,
                                    int64_t *value_out) CCT_CHECKED;
enum cct_status cct_json_member_text(const struct cct_json_at *object, const char *key, char *text,
                                     size_t size) CCT_CHECKED;
/* Refuses an object that has a key outside `known` (n of them), with the nearest known one. */
enum cct_status cct_json_known_keys(const struct cct_json_at *at, const char *const *known, size_t n) CCT_CHECKED;

/* ---- building; every function is NULL-safe on its parent, so that one check of the root at the end suffices ---- */

struct cct_json *cct_json_new_object(void);
struct cct_json *cct_json_new_array(void);
struct cct_json *cct_json_copy(const struct cct_json *value);                         /* deep */
void cct_json_set_string(struct cct_json *object, const char *key, const char *text); /* NULL text: JSON null */
void cct_json_set_i64(struct cct_json *object, const char *key, int64_t value);
void cct_json_set_f64(struct cct_json *object, const char *key, double value); /* NaN, inf: JSON null */
void cct_json_set_bool(struct cct_json *object, const char *key, int value);
void cct_json_set_null(struct cct_json *object, const char *key);
void cct_json_set(struct cct_json *object, const char *key, struct cct_json *value); /* takes `value` */
void cct_json_add_string(struct cct_json *array, const char *text);
void cct_json_add_i64(struct cct_json *array, int64_t value);
void cct_json_add_f64(struct cct_json *array, double value);
void cct_json_add(struct cct_json *array, struct cct_json *value); /* takes `value` */

/* Text of a document. Canonical: keys sorted, no spaces, so that equal content has equal bytes and digest. */
enum cct_status cct_json_print(const struct cct_json *value,
                               struct cct_text *text) CCT_CHECKED; /* indented, file order */
enum cct_status cct_json_canonical(const struct cct_json *value, struct cct_text *text) CCT_CHECKED;
/* Writes the indented form to PATH, whole or not at all. */
enum cct_status cct_json_save(const struct cct_json *value, const char *path) CCT_CHECKED;

#endif
