/* SPDX-License-Identifier: Apache-2.0
 * The fields of a job's JSON form (docs/program.md): one description of each entry serves listing its keys, writing and
 * reading them, so that the directions cannot drift apart. Private to program_json.c and program_parse.c. */
#ifndef CCT_WORKLOADS_PROGRAM_PROGRAM_FIELDS_H
#define CCT_WORKLOADS_PROGRAM_PROGRAM_FIELDS_H

#include "json/json.h"
#include "workloads/program/program.h"

/* Visits an object's fields: lists their keys, writes them, or reads them. The first error stays in `status`. */
struct cct_fields {
  enum {
    CCT_FIELDS_LIST,
    CCT_FIELDS_WRITE,
    CCT_FIELDS_READ,
  } way;
  const char *keys[24];
  size_t n_keys;
  struct cct_json *object; /* WRITE */
  struct cct_json_at at;   /* READ */
  enum cct_status status;
};

extern const int cct_fields_none; /* -1, the value of a lane or buffer that is left out */

/* `absent`: the value that is not written, and kept when it is not there; NULL: the field is always written and needed.
 */
void cct_field_i64(struct cct_fields *f, const char *key, int64_t *value, int64_t min, int64_t max,
                   const int64_t *absent);
void cct_field_int(struct cct_fields *f, const char *key, int *value, int min, int max, const int *absent);
void cct_field_f64(struct cct_fields *f, const char *key, double *value, double min, double max); /* absent: 0 */
void cct_field_bool(struct cct_fields *f, const char *key, int *value);                           /* absent: false */
void cct_field_quantity(struct cct_fields *f, const char *key,
                        struct cct_quantity *q); /* an integer, or {base, per, slot} */
void cct_field_text(struct cct_fields *f, const char *key, char *text, size_t size); /* at most size - 1 bytes */
void cct_field_op_kind(struct cct_fields *f, enum cct_op_kind *kind);
void cct_field_lane_kind(struct cct_fields *f, enum cct_lane_kind *kind);
void cct_field_memory(struct cct_fields *f, enum cct_memory *memory);
void cct_field_registration(struct cct_fields *f, enum cct_registration *registration); /* absent: none */
/* The keys that belong to the entry's kind alone. */
void cct_fields_of_op(struct cct_fields *f, struct cct_op *op);

#endif
