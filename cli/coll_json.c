/* SPDX-License-Identifier: Apache-2.0
 * nccl-tests' JSON (its version 3), all tables in one list; further keys stand beside its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/coll.h"

#define NCCL_TESTS_VERSION 3

extern char **environ;

static struct cct_json *value_json(const struct cct_coll_result *result, const struct cct_coll_table *table,
                                   const struct cct_coll_value *value) {
  struct cct_json *json = cct_json_new_object(), *interval = NULL;
  char ran[160];
  cct_json_set_f64(json, "time", value->time_us);
  cct_json_set_f64(json, "alg_bw", value->algbw_gb_s);
  cct_json_set_f64(json, "bus_bw", value->busbw_gb_s);
  if (value->wrong < 0)
    cct_json_set_null(json, "nwrong");
  else
    cct_json_set_f64(json, "nwrong", (double)value->wrong);
  cct_json_set_i64(json, "samples", value->n_samples);
  if (!isnan(value->lo_us)) {
    interval = cct_json_new_array();
    cct_json_add_f64(interval, value->lo_us);
    cct_json_add_f64(interval, value->hi_us);
    cct_json_set(json, "ci95_us", interval);
    cct_json_set_string(json, "ci95_of", value->is_of_blocks ? "blocks" : "samples");
  } else {
    cct_json_set_null(json, "ci95_us");
    cct_json_set_null(json, "ci95_of");
  }
  cct_json_set_f64(json, "slowest", value->slowest_us);
  cct_json_set_i64(json, "slowest_rank", value->slowest_rank);
  cct_json_set_string(json, "ran", *value->ran ? cct_coll_ran(result->agenda, table->arm, value->ran, ran) : NULL);
  cct_json_set_string(json, "reason", *value->reason ? value->reason : NULL);
  cct_json_set_string(json, "label", value->label);
  return json;
}

static void set_value(struct cct_json *row, const char *key, const struct cct_coll_result *result,
                      const struct cct_coll_table *table, const struct cct_coll_value *value) {
  if (value->n_samples)
    cct_json_set(row, key, value_json(result, table, value));
  else
    cct_json_set_null(row, key);
}

static void add_rows(const struct cct_coll_result *result, const struct cct_coll_table *table,
                     struct cct_json *results) {
  for (int i = 0; i < table->n_rows; i++) {
    const struct cct_coll_row *at = &table->rows[i];
    struct cct_json *row = cct_json_new_object();
    char root[16];
    snprintf(root, sizeof root, "%6d", at->root);
    cct_json_set_i64(row, "size", at->bytes);
    cct_json_set_i64(row, "count", at->count);
    cct_json_set_string(row, "type", at->type);
    cct_json_set_string(row, "redop", at->reduction);
    cct_json_set_string(row, "root", root);
    set_value(row, "out_of_place", result, table, &at->value[CCT_COLL_OUT]);
    set_value(row, "in_place", result, table, &at->value[CCT_COLL_IN]);
    cct_json_set_i64(row, "actual_iterations", table->cell->v[CCT_OPT_ITERS].i);
    cct_json_set_string(row, "experiment_name", "");
    cct_json_set_string(row, "collective", table->collective);
    cct_json_set_string(row, "arm", result->agenda->arms[table->arm]);
    cct_json_set_string(row, "formula", cct_coll_formula(table->kind));
    if (table->limit_gb_s > 0)
      cct_json_set_f64(row, "limit_gb_s", table->limit_gb_s);
    else
      cct_json_set_null(row, "limit_gb_s");
    cct_json_set_string(row, "verdict", at->is_launch_bound ? "launch-bound" : NULL);
    const struct cct_coll_value *out = &at->value[CCT_COLL_OUT], *in = &at->value[CCT_COLL_IN];
    cct_json_set_string(row, "reason", *out->reason ? out->reason : *in->reason ? in->reason : NULL);
    cct_json_add(results, row);
  }
}

static void set_step(const struct cct_options *flags, struct cct_json *config) {
  int is_factor = flags->v[CCT_OPT_STEP_FACTOR].i > 1;
  cct_json_set_i64(config, is_factor ? "step_factor" : "step_bytes",
                   flags->v[is_factor ? CCT_OPT_STEP_FACTOR : CCT_OPT_STEP_BYTES].i);
}

/* Its keys that are not recorded here are null. */
static struct cct_json *device_json(const struct cct_coll_result *result, int rank) {
  static const char *const not_kept[] = {"pid", "hostname", "device", "device_hex"};
  struct cct_json *device = cct_json_new_object();
  cct_json_set_i64(device, "rank", rank);
  cct_json_set_i64(device, "group", 0);
  for (size_t i = 0; i < sizeof not_kept / sizeof *not_kept; i++)
    cct_json_set_null(device, not_kept[i]);
  cct_json_set_string(device, "device_info", *result->gpu ? result->gpu : result->agenda->backend);
  return device;
}

static struct cct_json *config_json(const struct cct_coll_result *result, const struct cct_options *flags) {
  const struct cct_agenda *agenda = result->agenda;
  const struct cct_options *cell = &agenda->cells[0];
  struct cct_json *config = cct_json_new_object(), *devices = cct_json_new_array();
  int64_t least = INT64_MAX, most = 0;
  for (int i = 0; i < agenda->n_cells; i++) {
    int64_t bytes = agenda->cells[i].v[CCT_OPT_BYTES].i;
    least = bytes < least ? bytes : least;
    most = bytes > most ? bytes : most;
  }
  cct_json_set_i64(config, "nthreads", 1);
  cct_json_set_i64(config, "ngpus", 1);
  cct_json_set_i64(config, "minimum_bytes", least);
  cct_json_set_i64(config, "maximum_bytes", most);
  if (flags)
    set_step(flags, config);
  cct_json_set_i64(config, "warmup_iters", agenda->warmup);
  cct_json_set_i64(config, "iterations", cell->v[CCT_OPT_ITERS].i);
  cct_json_set_i64(config, "aggregated_iterations",
                   cell->v[CCT_OPT_AGG_ITERS].has_value ? cell->v[CCT_OPT_AGG_ITERS].i : 1);
  cct_json_set_i64(config, "validation", cell->v[CCT_OPT_CHECK].has_value ? cell->v[CCT_OPT_CHECK].i : 1);
  cct_json_set_i64(config, "graph", cell->v[CCT_OPT_CUDAGRAPH].i);
  cct_json_set_string(config, "blocking_collectives", "false");
  cct_json_set_string(config, "per_iter_timing", "false");
  cct_json_set_i64(config, "per_iter_skip", 0);
  cct_json_set_string(config, "parallel_init", "false");
  for (int r = 0; r < cct_agenda_most_ranks(agenda); r++)
    cct_json_add(devices, device_json(result, r));
  cct_json_set(config, "devices", devices);
  return config;
}

/* JSON is UTF-8, and words of a shell need not be. */
static void add_word(struct cct_json *list, char *word) {
  for (char *at = word; *at; at++)
    *at = (char)(*at & 0x80 ? '?' : *at);
  cct_json_add_string(list, word);
}

/* NCCL's own settings alone: the rest of an environment is nobody's business. */
static struct cct_json *environment_json(void) {
  struct cct_json *list = cct_json_new_array();
  for (char **at = environ; *at; at++)
    if (!strncmp(*at, "NCCL_", 5)) {
      char *copy = strdup(*at);
      if (copy)
        add_word(list, copy);
      free(copy);
    }
  return list;
}

/* The words of this command. */
static struct cct_json *arguments_json(void) {
  struct cct_json *list = cct_json_new_array();
  FILE *file = fopen("/proc/self/cmdline", "r");
  char *word = NULL;
  size_t room = 0;
  while (file && getdelim(&word, &room, '\0', file) > 0)
    add_word(list, word);
  free(word);
  if (file)
    fclose(file);
  return list;
}

static void set_footer(const struct cct_coll_result *result, struct cct_json *document) {
  struct cct_json *bounds = cct_json_new_object(), *average = cct_json_new_object();
  double sum = 0;
  int wrong = 0, n = 0;
  for (int t = 0; t < result->n_tables; t++) {
    const struct cct_coll_table *table = &result->tables[t];
    wrong += table->wrong_values;
    for (int i = 0; i < table->n_rows; i++)
      for (int p = 0; p < CCT_COLL_PLACES; p++) {
        sum += table->rows[i].value[p].busbw_gb_s;
        n += table->rows[i].value[p].n_samples > 0;
      }
  }
  cct_json_set_i64(bounds, "count", wrong);
  cct_json_set_string(bounds, "okay", wrong ? "false" : "true");
  cct_json_set_f64(average, "bandwidth", n ? sum / n : NAN);
  cct_json_set_string(average, "okay", "unchecked");
  cct_json_set(document, "out_of_bounds", bounds);
  cct_json_set(document, "average_bus_bandwidth", average);
}

struct cct_json *cct_coll_json(const struct cct_coll_result *result, const struct cct_options *flags,
                               enum cct_status ended) {
  struct cct_json *document = cct_json_new_object(), *results = cct_json_new_array();
  cct_json_set_i64(document, "schema", 1);
  cct_json_set_string(document, "tool", "cctax " CCT_VERSION);
  cct_json_set_string(document, "command", "coll");
  cct_json_set_i64(document, "version", NCCL_TESTS_VERSION);
  cct_json_set_string(document, "start_time", *result->start ? result->start : NULL);
  cct_json_set(document, "args", arguments_json());
  cct_json_set(document, "env", environment_json());
  if (*result->nccl)
    cct_json_set_i64(document, "nccl_version", strtoll(result->nccl, NULL, 10));
  else
    cct_json_set_null(document, "nccl_version");
  cct_json_set_string(document, "agenda", result->agenda->digest);
  cct_json_set_string(document, "backend", result->agenda->backend);
  cct_json_set_string(document, "factor", result->agenda->factor);
  cct_json_set(document, "config", config_json(result, flags));
  for (int t = 0; t < result->n_tables; t++)
    add_rows(result, &result->tables[t], results);
  cct_json_set(document, "results", results);
  set_footer(result, document);
  cct_json_set(document, "errors", cct_json_new_array());
  cct_json_set_string(document, "ended", cct_status_text(ended));
  return document;
}
