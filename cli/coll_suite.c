/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/coll.h"
#include "mpi_runner/suite.h"
#include "workloads/program/program.h"
#include "workloads/shape/cell.h"

#define MOST_SIZES  1000
#define MOST_VALUES 16

/* ---- names ---- */

static const char *const type_names[CCT_TYPE_COUNT] = {
    [CCT_TYPE_FP32] = "float",  [CCT_TYPE_BF16] = "bfloat16",   [CCT_TYPE_FP16] = "half",   [CCT_TYPE_FP8] = "f8e4m3",
    [CCT_TYPE_NVFP4] = "nvfp4", [CCT_TYPE_FP8_E5M2] = "f8e5m2", [CCT_TYPE_INT32] = "int32", [CCT_TYPE_INT8] = "int8",
};

const char *cct_coll_type_name(enum cct_type type) {
  return type_names[type];
}

int cct_coll_type(const char *name) {
  if (!strcmp(name, "int"))
    return CCT_TYPE_INT32;
  for (int i = 0; i < CCT_TYPE_COUNT; i++)
    if (i != CCT_TYPE_NVFP4 && (!strcmp(name, type_names[i]) || !strcmp(name, cct_type_name((enum cct_type)i))))
      return i;
  return -1;
}

/* ---- values of a flag, one or several ---- */

struct values {
  const char *flag;
  char text[MOST_VALUES][64];
  int n;
};

static enum cct_status add_value(void *context, const char *part) {
  struct values *values = context;
  if (!*part || strlen(part) >= sizeof values->text[0])
    return cct_fail(CCT_USAGE, "--%s: '%s' is empty, or too long for a value", values->flag, part);
  if (values->n == MOST_VALUES)
    return cct_fail(CCT_USAGE, "--%s: more than %d values", values->flag, MOST_VALUES);
  for (int i = 0; i < values->n; i++)
    if (!strcmp(values->text[i], part))
      return cct_fail(CCT_USAGE, "--%s: '%s' given twice", values->flag, part);
  snprintf(values->text[values->n++], sizeof values->text[0], "%s", part);
  return CCT_OK;
}

static enum cct_status refuse_all_among_others(const struct values *values) {
  for (int i = 0; values->n > 1 && i < values->n; i++)
    if (!strcmp(values->text[i], "all"))
      return cct_fail(CCT_USAGE, "--%s: all stands for every one, and stands alone", values->flag);
  return CCT_OK;
}

/* Of row `id`, each checked by it; `standard` where it was not given. */
static enum cct_status values_of(const struct cct_options *options, enum cct_option_id id, const char *standard,
                                 struct values *values) {
  const struct cct_value *given = &options->v[id];
  char where[48];
  *values = (struct values){.flag = cct_option_table[id].name};
  snprintf(where, sizeof where, "--%s", values->flag);
  enum cct_status status = cct_split(given->is_set ? given->s : standard, ',', add_value, values);
  for (int i = 0; !status && i < values->n; i++) {
    struct cct_options checked = {0};
    status = cct_option_set(&checked, id, values->text[i], where);
    cct_options_free(&checked);
  }
  return status ? status : refuse_all_among_others(values);
}

static enum cct_status refuse_lists(const struct cct_options *options) {
  static const enum cct_option_id single[] = {CCT_OPT_NP, CCT_OPT_ITERS, CCT_OPT_AGG_ITERS, CCT_OPT_CUDAGRAPH,
                                              CCT_OPT_CHECK};
  for (size_t i = 0; i < sizeof single / sizeof *single; i++)
    if (options->v[single[i]].is_set && strchr(options->v[single[i]].s, ','))
      return cct_fail(CCT_USAGE, "--%s: takes one value, not %s", cct_option_table[single[i]].name,
                      options->v[single[i]].s);
  return CCT_OK;
}

static enum cct_status types_of(const struct cct_options *options, struct values *values) {
  const char *text = options->v[CCT_OPT_DATATYPE].s;
  *values = (struct values){.flag = cct_option_table[CCT_OPT_DATATYPE].name};
  if (strcmp(text, "all")) {
    enum cct_status status = cct_split(text, ',', add_value, values);
    for (int i = 0; !status && i < values->n; i++)
      for (int j = 0; j < i; j++)
        if (cct_coll_type(values->text[i]) >= 0 && cct_coll_type(values->text[i]) == cct_coll_type(values->text[j]))
          return cct_fail(CCT_USAGE, "--datatype: '%s' and '%s' are one type", values->text[j], values->text[i]);
    return status ? status : refuse_all_among_others(values);
  }
  static const char *const as_nccl_tests[] = {"int8", "int32", "half", "float", "bfloat16", "f8e4m3", "f8e5m2"};
  for (size_t i = 0; i < sizeof as_nccl_tests / sizeof *as_nccl_tests; i++)
    (void)add_value(values, as_nccl_tests[i]);
  return CCT_OK;
}

static enum cct_status reductions_of(const struct cct_options *options, struct values *values) {
  static const char *const as_nccl_tests[] = {"sum", "prod", "max", "min", "avg"};
  enum cct_status status = values_of(options, CCT_OPT_REDUCTION, "sum", values);
  if (status || strcmp(values->text[0], "all"))
    return status;
  values->n = 0;
  for (size_t i = 0; i < sizeof as_nccl_tests / sizeof *as_nccl_tests; i++)
    (void)add_value(values, as_nccl_tests[i]);
  return CCT_OK;
}

static enum cct_status roots_of(const struct cct_options *options, int ranks, struct values *values) {
  enum cct_status status = values_of(options, CCT_OPT_ROOT, "0", values);
  for (int i = 0; !status && i < values->n; i++)
    if (strtoll(values->text[i], NULL, 10) >= ranks)
      status = cct_fail(CCT_USAGE, "--root: %s is no rank of 0 to %d", values->text[i], ranks - 1);
  return status;
}

/* ---- sizes ---- */

int64_t cct_coll_bytes(int kind, int64_t size, enum cct_type type, int ranks) {
  int64_t element = cct_type_bits(type) / 8, count = size / element;
  int has_shares = kind == CCT_COLL_ALL_GATHER || kind == CCT_COLL_REDUCE_SCATTER || kind == CCT_COLL_ALL_TO_ALL ||
                   kind == CCT_COLL_ALL_TO_ALLV;
  return has_shares ? (count / ranks & ~(16 / element - 1)) * ranks * element : count * element;
}

static int has_matrix(const struct cct_options *options) {
  const struct cct_value *skew = &options->v[CCT_OPT_SKEW];
  return skew->is_set && strcmp(skew->s, "uniform") && strncmp(skew->s, "zipf:", 5);
}

/* A matrix file fits one size: what its first row sums to, where no other is asked for. */
static enum cct_status take_matrix_size(struct cct_options *options) {
  const char *skew = options->v[CCT_OPT_SKEW].s;
  struct cct_json *document = NULL;
  if (!has_matrix(options) || options->v[CCT_OPT_MIN_BYTES].is_set || options->v[CCT_OPT_MAX_BYTES].is_set)
    return CCT_OK;
  enum cct_status status = cct_json_load(skew, &document);
  const struct cct_json *row = cct_json_element(document, 0);
  int64_t sum = 0;
  for (size_t i = 0; i < cct_json_size(row); i++)
    sum += cct_json_integer(cct_json_element(row, i));
  cct_json_free(document);
  if (!status)
    options->v[CCT_OPT_MIN_BYTES].i = options->v[CCT_OPT_MAX_BYTES].i = sum;
  return status;
}

struct sizes {
  int64_t at[MOST_SIZES], most;
  int n;
};

static enum cct_status sizes_of(const struct cct_options *options, struct sizes *sizes) {
  int64_t least = options->v[CCT_OPT_MIN_BYTES].i, most = options->v[CCT_OPT_MAX_BYTES].i;
  int64_t step = options->v[CCT_OPT_STEP_BYTES].i, factor = options->v[CCT_OPT_STEP_FACTOR].i;
  if (least > most)
    return cct_fail(CCT_USAGE, "-b %lld is above -e %lld", (long long)least, (long long)most);
  if (factor > 1 && least == 0)
    return cct_fail(CCT_USAGE, "-b 0: no factor leads from it to another size; give -i, or a greater -b");
  sizes->n = 0;
  sizes->most = most;
  for (int64_t size = least; size <= most; size = factor > 1 ? size * factor : size + step) {
    if (sizes->n == MOST_SIZES)
      return cct_fail(CCT_USAGE, "more than %d sizes from -b to -e; raise -i or -f", MOST_SIZES);
    sizes->at[sizes->n++] = size;
    if (factor > 1 && size > most / factor)
      break;
  }
  return CCT_OK;
}

/* ---- arms ---- */

static enum cct_status set_arms(struct cct_options *options, const char *text) {
  if (options->v[CCT_OPT_ARMS].is_set)
    return cct_fail(CCT_USAGE, "--arms %s, and flags that ask for arms %s: one factor a run",
                    options->v[CCT_OPT_ARMS].s, text);
  return cct_option_set(options, CCT_OPT_ARMS, text, "--arms");
}

/* Every algorithm with every protocol and number of channels. */
static enum cct_status set_grid(struct cct_options *options) {
  struct values algorithms, protocols, channels;
  struct cct_text text = {0};
  if (!options->v[CCT_OPT_ALGORITHMS].is_set && !options->v[CCT_OPT_PROTOCOLS].is_set &&
      !options->v[CCT_OPT_CHANNELS].is_set)
    return CCT_OK;
  enum cct_status status = values_of(options, CCT_OPT_ALGORITHMS, "default", &algorithms);
  if (!status)
    status = values_of(options, CCT_OPT_PROTOCOLS, "default", &protocols);
  if (!status)
    status = values_of(options, CCT_OPT_CHANNELS, "default", &channels);
  if (status)
    return status;
  for (int i = 0; i < channels.n; i++) {
    int64_t n = 0;
    if (strcmp(channels.text[i], "default") && (!cct_parse_i64(channels.text[i], &n) || n < 1 || n > 64))
      return cct_fail(CCT_USAGE, "--channels: '%s' is neither default nor 1 to 64", channels.text[i]);
  }
  cct_text_add(&text, "choice=");
  for (int i = 0; i < algorithms.n * protocols.n * channels.n; i++)
    cct_text_add(&text, "%s%s/%s/%s", i ? "," : "", algorithms.text[i / protocols.n / channels.n],
                 protocols.text[i / channels.n % protocols.n], channels.text[i % channels.n]);
  status = text.is_failed ? cct_fail(CCT_NOMEM, "out of memory") : set_arms(options, text.s);
  cct_text_free(&text);
  return status;
}

static int is_list(const struct cct_options *options, enum cct_option_id id) {
  return options->v[id].is_set && strchr(options->v[id].s, ',');
}

/* Several registrations are arms: NCCL treats the buffers of a process differently from then on. */
static enum cct_status set_registrations(struct cct_options *options) {
  struct cct_text text = {0};
  struct values values;
  enum cct_status status = values_of(options, CCT_OPT_LOCAL_REGISTER, "0", &values);
  if (status || !is_list(options, CCT_OPT_LOCAL_REGISTER))
    return status;
  cct_text_add(&text, "local-register=%s", options->v[CCT_OPT_LOCAL_REGISTER].s);
  status = text.is_failed ? cct_fail(CCT_NOMEM, "out of memory") : set_arms(options, text.s);
  cct_text_free(&text);
  return status;
}

/* ---- cells ---- */

static void set_count(const struct cct_options *options, enum cct_option_id id, int64_t standard,
                      struct cct_json *cell) {
  int64_t value = options->v[id].is_set ? options->v[id].i : standard;
  char key[32];
  if (value != standard)
    cct_json_set_i64(cell, cct_option_key(id, key), value);
}

/* What all cells of one collective and type share. */
static struct cct_json *common_cell(const struct cct_options *options, const char *collective, int kind,
                                    enum cct_type type, int ranks, int64_t buffer_bytes) {
  const struct cct_value *known = &options->v[CCT_OPT_LOCAL_REGISTER];
  struct cct_json *cell = cct_json_new_object();
  cct_json_set_string(cell, "workload", "collective");
  cct_json_set_string(cell, "collective", collective);
  cct_json_set_i64(cell, "np", ranks);
  cct_json_set_string(cell, "type", cct_type_name(type));
  cct_json_set_i64(cell, "iters", options->v[CCT_OPT_ITERS].is_set ? options->v[CCT_OPT_ITERS].i : 20);
  set_count(options, CCT_OPT_AGG_ITERS, 1, cell);
  set_count(options, CCT_OPT_CUDAGRAPH, 0, cell);
  set_count(options, CCT_OPT_CHECK, 1, cell);
  if (known->is_set && !is_list(options, CCT_OPT_LOCAL_REGISTER) && strcmp(known->s, "0"))
    cct_json_set_string(cell, "local_register", known->s);
  if (kind == CCT_COLL_ALL_REDUCE && options->v[CCT_OPT_ALLREDUCE].is_set)
    cct_json_set_string(cell, "allreduce", options->v[CCT_OPT_ALLREDUCE].s);
  if (kind == CCT_COLL_ALL_TO_ALLV && options->v[CCT_OPT_SKEW].is_set)
    cct_json_set_string(cell, "skew", options->v[CCT_OPT_SKEW].s);
  if (buffer_bytes > 0)
    cct_json_set_i64(cell, "buffer_bytes", buffer_bytes);
  return cell;
}

/* In nccl-tests' order: type, reduction, root, and in these the sizes. */
struct sweep {
  struct values types, reductions, roots, places;
};

/* `reduction`, `root` NULL: it has none. */
static void add_cells(const struct cct_json *common, int kind, enum cct_type type, int ranks, const struct sizes *sizes,
                      const char *reduction, const char *root, const struct values *places, struct cct_json *cells) {
  int64_t before = -1, at = root ? strtoll(root, NULL, 10) : 0;
  for (int i = 0; i < sizes->n; i++) {
    int64_t bytes = cct_coll_bytes(kind, sizes->at[i], type, ranks);
    for (int p = 0; bytes != before && p < places->n; p++) {
      struct cct_json *cell = cct_json_copy(common);
      if (reduction)
        cct_json_set_string(cell, "op", reduction);
      if (at)
        cct_json_set_i64(cell, "root", at);
      cct_json_set_i64(cell, "bytes", bytes);
      cct_json_set_string(cell, "place", places->text[p]);
      cct_json_add(cells, cell);
    }
    before = bytes;
  }
}

static enum cct_status add_collective(const struct cct_options *options, const char *collective, int ranks,
                                      const struct sweep *sweep, const struct sizes *sizes, struct cct_json *cells) {
  int kind = cct_collective_by_name(collective);
  int is_reducing = kind >= 0 && cct_collective_reduces((enum cct_collective)kind);
  int has_root = kind == CCT_COLL_BROADCAST || kind == CCT_COLL_REDUCE;
  struct values places = sweep->places;
  if (!cct_has_in_place(collective, options->v[CCT_OPT_BACKEND].s)) {
    if (options->v[CCT_OPT_PLACE].is_set && strcmp(options->v[CCT_OPT_PLACE].s, "out"))
      return cct_fail(CCT_USAGE, "--place %s: the host backend moves %s from one buffer to another: out alone",
                      options->v[CCT_OPT_PLACE].s, collective);
    (void)snprintf(places.text[0], sizeof places.text[0], "out");
    places.n = 1;
  }
  for (int t = 0; t < sweep->types.n; t++) {
    int type = cct_coll_type(sweep->types.text[t]);
    if (type < 0)
      return cct_fail(CCT_USAGE,
                      "--datatype: '%s' is none of fp32 (float), bf16 (bfloat16), fp16 (half), fp8 (f8e4m3), "
                      "fp8_e5m2 (f8e5m2), int32 (int), int8, all",
                      sweep->types.text[t]);
    int shares = kind == CCT_COLL_ALL_TO_ALLV && has_matrix(options) ? -1 : kind; /* a matrix has its own */
    struct cct_json *common = common_cell(options, collective, kind, (enum cct_type)type, ranks, sizes->most);
    for (int r = 0; r < (is_reducing ? sweep->reductions.n : 1); r++)
      for (int root = 0; root < (has_root ? sweep->roots.n : 1); root++)
        add_cells(common, shares, (enum cct_type)type, ranks, sizes, is_reducing ? sweep->reductions.text[r] : NULL,
                  has_root ? sweep->roots.text[root] : NULL, &places, cells);
    cct_json_free(common);
  }
  return CCT_OK;
}

static enum cct_status sweep_of(const struct cct_options *options, int ranks, struct sweep *sweep) {
  enum cct_status status = types_of(options, &sweep->types);
  if (!status)
    status = reductions_of(options, &sweep->reductions);
  if (!status)
    status = roots_of(options, ranks, &sweep->roots);
  return status ? status : values_of(options, CCT_OPT_PLACE, "out,in", &sweep->places);
}

/* A flag that none of the collectives reads. */
static enum cct_status refuse_unread(const struct cct_options *options, const struct values *collectives) {
  struct cct_options cells[MOST_VALUES] = {0};
  enum cct_status status = CCT_OK;
  char why[200];
  for (int i = 0; !status && i < collectives->n; i++) {
    status = cct_options_copy(options, &cells[i]);
    if (!status)
      status = cct_option_set(&cells[i], CCT_OPT_WORKLOAD, "collective", "coll");
    if (!status)
      status = cct_option_set(&cells[i], CCT_OPT_COLLECTIVE, collectives->text[i], "--collective");
  }
  for (int id = 0; !status && id < CCT_OPTION_COUNT; id++)
    if (cct_option_table[id].scope == CCT_SCOPE_CELL &&
        cct_cells_ignore(cells, collectives->n, (enum cct_option_id)id, why))
      status = cct_fail(CCT_USAGE, "--%s: %s", cct_option_table[id].name, why);
  for (int i = 0; i < collectives->n; i++)
    cct_options_free(&cells[i]);
  return status;
}

enum cct_status cct_coll_suite(struct cct_options *options, int ranks, struct cct_json **suite_out) {
  struct cct_json *suite = cct_json_new_object(), *cells = cct_json_new_array();
  struct values collectives;
  struct sweep sweep;
  struct sizes sizes = {.n = 0};
  enum cct_status status = refuse_lists(options);
  if (!status)
    status = values_of(options, CCT_OPT_COLLECTIVE, "all_reduce", &collectives);
  if (!status)
    status = refuse_unread(options, &collectives);
  if (!status)
    status = sweep_of(options, ranks, &sweep);
  if (!status)
    status = take_matrix_size(options);
  if (!status)
    status = sizes_of(options, &sizes);
  if (!status)
    status = set_grid(options);
  if (!status)
    status = set_registrations(options);
  for (int i = 0; !status && i < collectives.n; i++)
    status = add_collective(options, collectives.text[i], ranks, &sweep, &sizes, cells);
  if (status) {
    cct_json_free(suite);
    cct_json_free(cells);
    return status;
  }
  cct_json_set_i64(suite, "schema", 1);
  cct_json_set_string(suite, "question", CCT_COLL_QUESTION);
  cct_json_set(suite, "cells", cells);
  *suite_out = suite;
  return CCT_OK;
}
