/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_runner/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/shape/cell.h"
#include "workloads/shape/layout.h"
#include "workloads/shape/model.h"

#define MAX_CELLS 10000

static const char *const suite_keys[] = {"schema", "question", "rounds",   "samples", "warmup",
                                         "seed",   "arms",     "defaults", "cells"};

enum cct_status cct_split(const char *text, char separator, enum cct_status (*take)(void *context, const char *part),
                          void *context) {
  char *copy = strdup(text);
  enum cct_status status = copy ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (char *part = copy, *next; !status && part; part = next) {
    next = strchr(part, separator);
    if (next)
      *next++ = '\0';
    status = take(context, part);
  }
  free(copy);
  return status;
}

/* One object {key: value}, so that the one reader of cells judges the value and names its place. */
static enum cct_status check_value(const struct cct_json_at *object, const char *key, const struct cct_json *value) {
  struct cct_json *single = cct_json_new_object();
  struct cct_json_at at = *object;
  struct cct_options cell;
  cct_json_set(single, key, cct_json_copy(value));
  at.value = single;
  enum cct_status status = single ? cct_cell_from_json(&at, &cell) : cct_fail(CCT_NOMEM, "out of memory");
  if (!status)
    cct_options_free(&cell);
  cct_json_free(single);
  return status;
}

/* A CELL in which lists are allowed. */
static enum cct_status check_cell(const struct cct_json_at *at) {
  enum cct_status status = cct_json_expect(at, CCT_JSON_OBJECT);
  void *iterator = NULL;
  const char *key;
  const struct cct_json *value;
  while (!status && cct_json_next(at->value, &iterator, &key, &value)) {
    struct cct_json_at place = cct_json_at_key(at, key);
    if (cct_json_type(value) != CCT_JSON_ARRAY) {
      status = check_value(at, key, value);
      continue;
    }
    if (!cct_json_size(value))
      status = cct_json_fail(&place, CCT_USAGE, "an empty list; give at least one value");
    for (size_t i = 0; !status && i < cct_json_size(value); i++)
      status = check_value(at, key, cct_json_element(value, i));
  }
  return status;
}

static enum cct_status check_suite(const struct cct_json_at *root) {
  int64_t schema;
  const char *question;
  struct cct_json_at at = cct_json_at_key(root, "schema");
  enum cct_status status = cct_json_known_keys(root, suite_keys, sizeof suite_keys / sizeof *suite_keys);
  if (!status)
    status = cct_json_read_i64(&at, 1, 1, &schema);
  at = cct_json_at_key(root, "question");
  if (!status && at.value)
    status = cct_json_read_string(&at, &question);
  at = cct_json_at_key(root, "defaults");
  if (!status && at.value)
    status = check_cell(&at);
  at = cct_json_at_key(root, "cells");
  if (!status)
    status = cct_json_expect(&at, CCT_JSON_ARRAY);
  if (!status && !cct_json_size(at.value))
    status = cct_json_fail(&at, CCT_USAGE, "no cells; give at least one, which may be {}");
  for (size_t i = 0; !status && i < cct_json_size(at.value); i++) {
    struct cct_json_at cell = cct_json_at_index(&at, i);
    status = check_cell(&cell);
  }
  return status;
}

enum cct_status cct_suite_load(const char *suite_path, struct cct_text *notes, struct cct_suite *suite_out) {
  static const char one_cell[] = "{\"schema\":1,\"cells\":[{}]}";
  struct cct_suite suite = {.notes = notes};
  enum cct_status status = suite_path ? cct_json_load(suite_path, &suite.document)
                                      : cct_json_parse(one_cell, sizeof one_cell - 1, "flags", &suite.document);
  if (status)
    return status;
  suite.root = cct_json_root(suite.document, suite_path ? suite_path : "flags");
  status = check_suite(&suite.root);
  if (status) {
    cct_suite_free(&suite);
    return status;
  }
  *suite_out = suite;
  return CCT_OK;
}

void cct_suite_free(struct cct_suite *suite) {
  cct_json_free(suite->document);
  suite->document = NULL;
}

enum cct_status cct_suite_number(const struct cct_suite *suite, const struct cct_options *flags, enum cct_option_id id,
                                 int64_t *value_out) {
  const struct cct_option *row = &cct_option_table[id];
  char key[32];
  struct cct_json_at at = cct_json_at_key(&suite->root, cct_option_key(id, key));
  int64_t value = flags->v[id].i;
  enum cct_status status = CCT_OK;
  if (at.value)
    status = cct_json_read_i64(&at, (int64_t)row->min, row->max >= 9e18 ? INT64_MAX : (int64_t)row->max, &value);
  if (!status && at.value && flags->v[id].is_set && flags->v[id].i != value) {
    cct_text_add(suite->notes, "--%s %lld replaces the suite's %lld\n", row->name, (long long)flags->v[id].i,
                 (long long)value);
    value = flags->v[id].i;
  }
  if (!status)
    *value_out = value;
  return status;
}

/* ---- flags as JSON values ---- */

struct listing {
  enum cct_option_id id;
  struct cct_json *list;
};

static enum cct_status add_value(void *context, const char *text) {
  struct listing *listing = context;
  const struct cct_option *row = &cct_option_table[listing->id];
  struct cct_options checked = {0};
  char where[40];
  snprintf(where, sizeof where, "--%s", row->name);
  enum cct_status status = cct_option_set(&checked, listing->id, text, where);
  if (!status && row->kind == CCT_KIND_F64)
    cct_json_add_f64(listing->list, checked.v[listing->id].f);
  else if (!status && (row->kind == CCT_KIND_I64 || row->kind == CCT_KIND_BYTES))
    cct_json_add_i64(listing->list, checked.v[listing->id].i);
  else if (!status)
    cct_json_add_string(listing->list, text);
  cct_options_free(&checked);
  return status;
}

/* The values of a flag as a JSON array (owned by the caller); NULL in *list_out where it was not given. */
static enum cct_status flag_values(const struct cct_options *flags, enum cct_option_id id, struct cct_json **list_out) {
  const struct cct_value *layouts = &flags->v[CCT_OPT_LAYOUTS];
  const struct cct_value *value = id == CCT_OPT_LAYOUT && layouts->is_set ? layouts : &flags->v[id];
  struct listing listing = {id, NULL};
  *list_out = NULL;
  if (!value->is_set)
    return CCT_OK;
  listing.list = cct_json_new_array();
  char separator = id == CCT_OPT_LAYOUT ? '/' : cct_option_table[id].kind == CCT_KIND_TEXT ? '\0' : ',';
  enum cct_status status =
      listing.list ? separator ? cct_split(value->s, separator, add_value, &listing) : add_value(&listing, value->s)
                   : cct_fail(CCT_NOMEM, "out of memory");
  if (status) {
    cct_json_free(listing.list);
    return status;
  }
  *list_out = listing.list;
  return CCT_OK;
}

static int is_same(const struct cct_json *a, const struct cct_json *b) {
  struct cct_text left = {0}, right = {0};
  int same = !cct_json_canonical(a, &left) && !cct_json_canonical(b, &right) && !strcmp(left.s, right.s);
  cct_text_free(&left);
  cct_text_free(&right);
  return same;
}

static void note_replacement(struct cct_text *notes, enum cct_option_id id, const struct cct_json *was,
                             const struct cct_json *now) {
  struct cct_text left = {0}, right = {0};
  if (!cct_json_canonical(now, &left) && !cct_json_canonical(was, &right))
    cct_text_add(notes, "--%s %s replaces the suite's %s\n", cct_option_table[id].name, left.s, right.s);
  cct_text_free(&left);
  cct_text_free(&right);
}

/* Layout "all": every legal layout of the cell's one model on its one number of ranks. */
static enum cct_status expand_layouts(const struct cct_json_at *at, struct cct_json *merged) {
  const char *layout = cct_json_string(cct_json_member(merged, "layout"));
  const char *model_name = cct_json_string(cct_json_member(merged, "model"));
  const struct cct_json *np = cct_json_member(merged, "np");
  struct cct_model model;
  struct cct_layout *layouts = NULL;
  struct cct_json *list = NULL;
  char text[64];
  int n = 0;
  if (!layout || strcmp(layout, "all"))
    return CCT_OK;
  if (!model_name || !np || cct_json_type(np) != CCT_JSON_INTEGER)
    return cct_json_fail(at, CCT_USAGE, "layout 'all' needs one model and one np");
  enum cct_status status = cct_model_load(model_name, cct_json_string(cct_json_member(merged, "assume")), NULL, &model);
  if (status)
    return status;
  status = cct_layout_all(&model, cct_json_integer(np), &layouts, &n);
  cct_model_free(&model);
  if (!status && !n)
    status =
        cct_json_fail(at, CCT_USAGE, "no layout of %lld ranks fits %s", (long long)cct_json_integer(np), model_name);
  if (!status && !(list = cct_json_new_array()))
    status = cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; !status && i < n; i++)
    cct_json_add_string(list, cct_layout_text(&layouts[i], text));
  if (!status)
    cct_json_set(merged, "layout", list);
  free(layouts);
  return status;
}

/* defaults, then the cell's own, then flags. */
static enum cct_status merge(const struct cct_suite *suite, const struct cct_json_at *at,
                             const struct cct_options *flags, int *is_noted, struct cct_json **merged_out) {
  const struct cct_json *sources[] = {cct_json_member(suite->document, "defaults"), at->value}, *value;
  struct cct_json *merged = cct_json_new_object();
  enum cct_status status = merged ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (int s = 0; !status && s < 2; s++) {
    void *iterator = NULL;
    const char *key;
    while (sources[s] && cct_json_next(sources[s], &iterator, &key, &value))
      cct_json_set(merged, key, cct_json_copy(value));
  }
  for (int i = 0; !status && i < CCT_OPTION_COUNT; i++) {
    struct cct_json *list;
    char key[32];
    if (cct_option_table[i].scope != CCT_SCOPE_CELL)
      continue;
    status = flag_values(flags, (enum cct_option_id)i, &list);
    if (status || !list)
      continue;
    struct cct_json *now = cct_json_size(list) == 1 ? cct_json_copy(cct_json_element(list, 0)) : cct_json_copy(list);
    cct_json_free(list);
    const struct cct_json *was = cct_json_member(merged, cct_option_key((enum cct_option_id)i, key));
    if (was && !is_noted[i] && !is_same(was, now)) {
      note_replacement(suite->notes, (enum cct_option_id)i, was, now);
      is_noted[i] = 1;
    }
    cct_json_set(merged, key, now);
  }
  if (!status)
    status = expand_layouts(at, merged);
  if (status) {
    cct_json_free(merged);
    return status;
  }
  *merged_out = merged;
  return CCT_OK;
}

/* ---- lists multiply out ---- */

struct cells {
  struct cct_options *items;
  size_t n, capacity;
};

static void free_cells(struct cells *cells) {
  for (size_t i = 0; i < cells->n; i++)
    cct_options_free(&cells->items[i]);
  free(cells->items);
}

/* Combination `index` of the lists in `merged`; the last key written varies fastest. */
static enum cct_status add_combination(const struct cct_json_at *at, const struct cct_json *merged, size_t index,
                                       size_t total, struct cells *cells) {
  struct cct_json *object = cct_json_new_object();
  struct cct_json_at place = *at;
  void *iterator = NULL;
  const char *key;
  const struct cct_json *value;
  while (cct_json_next(merged, &iterator, &key, &value)) {
    if (cct_json_type(value) == CCT_JSON_ARRAY) {
      total /= cct_json_size(value);
      cct_json_set(object, key, cct_json_copy(cct_json_element(value, index / total)));
      index %= total;
    } else {
      cct_json_set(object, key, cct_json_copy(value));
    }
  }
  place.value = object;
  enum cct_status status = cct_grow((void **)&cells->items, &cells->capacity, cells->n + 1, sizeof *cells->items);
  if (!status)
    status = cct_cell_from_json(&place, &cells->items[cells->n]);
  if (!status)
    cells->n++;
  cct_json_free(object);
  return status;
}

static enum cct_status multiply_out(const struct cct_json_at *at, const struct cct_json *merged, struct cells *cells) {
  size_t total = 1;
  void *iterator = NULL;
  const char *key;
  const struct cct_json *value;
  while (cct_json_next(merged, &iterator, &key, &value))
    if (cct_json_type(value) == CCT_JSON_ARRAY) {
      total *= cct_json_size(value);
      if (total + cells->n > MAX_CELLS)
        return cct_json_fail(at, CCT_USAGE, "its lists multiply out to more than %d cells", MAX_CELLS);
    }
  enum cct_status status = CCT_OK;
  for (size_t i = 0; !status && i < total; i++)
    status = add_combination(at, merged, i, total, cells);
  return status;
}

struct keyed {
  char *key;
  size_t cell;
};

static int by_key(const void *a, const void *b) {
  const struct keyed *left = a, *right = b;
  int order = strcmp(left->key, right->key);
  return order ? order : (left->cell > right->cell) - (left->cell < right->cell);
}

static enum cct_status refuse_doubles(const struct cct_json_at *at, const struct cells *cells) {
  struct keyed *keyed = calloc(cells->n + 1, sizeof *keyed);
  enum cct_status status = keyed ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (size_t i = 0; !status && i < cells->n; i++) {
    struct cct_json *json;
    struct cct_text text = {0};
    status = cct_cell_to_json(&cells->items[i], &json);
    if (status)
      break;
    status = cct_json_canonical(json, &text);
    keyed[i] = (struct keyed){text.s, i};
    cct_json_free(json);
  }
  if (!status)
    qsort(keyed, cells->n, sizeof *keyed, by_key);
  for (size_t i = 1; !status && i < cells->n; i++)
    if (!strcmp(keyed[i - 1].key, keyed[i].key))
      status = cct_json_fail(at, CCT_USAGE, "cells %zu and %zu are the same: %s", keyed[i - 1].cell, keyed[i].cell,
                             keyed[i].key);
  for (size_t i = 0; keyed && i < cells->n; i++)
    free(keyed[i].key);
  free(keyed);
  return status;
}

enum cct_status cct_suite_cells(const struct cct_suite *suite, const struct cct_options *flags,
                                struct cct_options **cells_out, int *n_cells_out) {
  struct cct_json_at list = cct_json_at_key(&suite->root, "cells");
  struct cells cells = {0};
  int is_noted[CCT_OPTION_COUNT] = {0};
  enum cct_status status = CCT_OK;
  for (size_t i = 0; !status && i < cct_json_size(list.value); i++) {
    struct cct_json_at at = cct_json_at_index(&list, i);
    struct cct_json *merged;
    status = merge(suite, &at, flags, is_noted, &merged);
    if (status)
      break;
    status = multiply_out(&at, merged, &cells);
    cct_json_free(merged);
  }
  if (!status)
    status = refuse_doubles(&list, &cells);
  if (status) {
    free_cells(&cells);
    return status;
  }
  *cells_out = cells.items;
  *n_cells_out = (int)cells.n;
  return CCT_OK;
}
