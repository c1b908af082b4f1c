/* SPDX-License-Identifier: Apache-2.0 */
#include "report/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/figure_parts.h"

static const char *const names[] = {
#define VALUE_NAME(id, name) name,
    CCT_LOAD_VALUES(VALUE_NAME)
#undef VALUE_NAME
};

int cct_load_cell(const struct cct_load_point *point) {
  int k = 0;
  while (point->cells[k] < 0)
    k++;
  return point->cells[k];
}

static void free_load(struct cct_load *load) {
  free(load->key);
  free(load->points);
}

void cct_loads_free(struct cct_loads *loads) {
  if (!loads)
    return;
  for (int i = 0; i < loads->n; i++)
    free_load(&loads->items[i]);
  free(loads->items);
  *loads = (struct cct_loads){0};
}

/* The line of cells that have `key` without the axis; a new one takes the key over. */
static struct cct_load *find_load(struct cct_loads *loads, const char *axis, struct cct_text *key) {
  for (int i = 0; i < loads->n; i++)
    if (!strcmp(loads->items[i].axis, axis) && !strcmp(loads->items[i].key, key->s))
      return &loads->items[i];
  struct cct_load *grown = realloc(loads->items, (size_t)(loads->n + 1) * sizeof *grown);
  if (!grown)
    return NULL;
  loads->items = grown;
  grown[loads->n] = (struct cct_load){.axis = axis, .key = key->s};
  *key = (struct cct_text){0};
  return &grown[loads->n++];
}

static struct cct_load_point *find_point(struct cct_load *load, double x) {
  for (int i = 0; i < load->n; i++)
    if (load->points[i].x == x)
      return &load->points[i];
  struct cct_load_point *grown = realloc(load->points, (size_t)(load->n + 1) * sizeof *grown);
  if (!grown)
    return NULL;
  load->points = grown;
  grown[load->n].x = x;
  for (int k = 0; k < CCT_LOAD_VALUE_COUNT; k++)
    grown[load->n].cells[k] = -1;
  return &grown[load->n++];
}

static enum cct_status add_cell(const struct cct_report *report, int c, const char *axis, struct cct_loads *loads) {
  const struct cct_report_cell *cell = &report->cells[c];
  const struct cct_json *value = cct_json_member(cell->parameters, axis);
  struct cct_text key = {0};
  int k = 0;
  while (k < CCT_LOAD_VALUE_COUNT && strcmp(names[k], cell->metric.name))
    k++;
  int is_number = value && (cct_json_type(value) == CCT_JSON_INTEGER || cct_json_type(value) == CCT_JSON_REAL);
  if (k == CCT_LOAD_VALUE_COUNT || !is_number || !cell->workload || strcmp(cell->workload, "serve"))
    return CCT_OK;
  enum cct_status status = cct_rest_of_key(cell, axis, &key);
  struct cct_load *load = status ? NULL : find_load(loads, axis, &key);
  struct cct_load_point *point = load ? find_point(load, cct_json_number(value)) : NULL;
  if (point)
    point->cells[k] = c;
  else if (!status)
    status = cct_fail(CCT_NOMEM, "out of memory: %d cells by load", report->n_cells);
  cct_text_free(&key);
  return status;
}

static int by_x(const void *a, const void *b) {
  double x = ((const struct cct_load_point *)a)->x, y = ((const struct cct_load_point *)b)->x;
  return (x > y) - (x < y);
}

enum cct_status cct_loads_find(const struct cct_report *report, struct cct_loads *loads_out) {
  static const char *const axes[] = {"concurrency", "request_rate"};
  struct cct_loads loads = {0};
  enum cct_status status = CCT_OK;
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
    for (int c = 0; !status && c < report->n_cells; c++)
      status = add_cell(report, c, axes[i], &loads);
  if (status) {
    cct_loads_free(&loads);
    return status;
  }
  int kept = 0;
  for (int i = 0; i < loads.n; i++) {
    if (loads.items[i].n < 2) {
      free_load(&loads.items[i]);
      continue;
    }
    qsort(loads.items[i].points, (size_t)loads.items[i].n, sizeof *loads.items[i].points, by_x);
    loads.items[kept++] = loads.items[i];
  }
  loads.n = kept;
  *loads_out = loads;
  return CCT_OK;
}

/* NULL: the arm has none, or one that tells of no machine's speed. */
static const struct cct_series *series_of(const struct cct_report *report, int cell, int arm) {
  const struct cct_series *series = cell >= 0 ? &report->cells[cell].arms[arm] : NULL;
  int is_fit = series && series->n_units && !*series->refusal && !strstr(series->label, "shared-gpu") &&
               !strstr(series->label, "oversubscribed");
  return is_fit ? series : NULL;
}

enum cct_status cct_load_see(const struct cct_report *report, const struct cct_load_point *point,
                             enum cct_load_value value, int arm, struct cct_load_seen *seen_out) {
  const struct cct_series *series = series_of(report, point->cells[value], arm),
                          *whole = series_of(report, point->cells[CCT_LOAD_OUTPUT_TOK_S], arm);
  struct cct_interval log;
  int is_goodput =
      value == CCT_LOAD_GOODPUT && whole && cct_json_member(report->cells[cct_load_cell(point)].parameters, "slo");
  *seen_out = (struct cct_load_seen){is_goodput && !series ? 0 : NAN, NAN, NAN};
  if (!series)
    return CCT_OK;
  enum cct_status status = cct_estimate(series->units, (size_t)series->n_units, &log);
  if (status)
    return status;
  int sign = strcmp(report->cells[point->cells[value]].metric.better, "higher") ? 1 : -1;
  /* Blocks without a single good request have no goodput: they count as 0, of which there is no logarithm. */
  double share = is_goodput ? series->n_units / (double)whole->n_units : 1;
  seen_out->value = share * exp(sign * log.estimate);
  if (share == 1 && log.df > 0 && log.se > 1e-12) {
    seen_out->lo = exp(sign * (sign > 0 ? log.lo : log.hi));
    seen_out->hi = exp(sign * (sign > 0 ? log.hi : log.lo));
  }
  return CCT_OK;
}

static enum cct_status set_row(const struct cct_report *report, const struct cct_load *load,
                               const struct cct_load_point *point, int arm, struct cct_json *row) {
  enum cct_status status = CCT_OK;
  struct cct_json *parameters;
  char name[48];
  cct_json_set_string(row, "axis", load->axis);
  cct_json_set_f64(row, load->axis, point->x);
  cct_json_set_string(row, "arm", report->arms[arm]);
  cct_json_set_string(row, "label", report->cells[cct_load_cell(point)].arms[arm].label);
  for (int k = 0; !status && k < CCT_LOAD_VALUE_COUNT; k++) {
    struct cct_load_seen seen;
    status = cct_load_see(report, point, (enum cct_load_value)k, arm, &seen);
    if (status)
      break;
    cct_json_set_f64(row, names[k], seen.value);
    snprintf(name, sizeof name, "%s_ci95", names[k]);
    if (isfinite(seen.lo)) {
      struct cct_json *interval = cct_json_new_array();
      cct_json_add_f64(interval, seen.lo);
      cct_json_add_f64(interval, seen.hi);
      cct_json_set(row, name, interval);
    } else {
      cct_json_set_null(row, name);
    }
  }
  if (!status)
    status = cct_json_parse(load->key, strlen(load->key), "parameters", &parameters);
  if (!status)
    cct_json_set(row, "parameters", parameters);
  return status;
}

enum cct_status cct_export_load(const struct cct_report *report, struct cct_json *document) {
  struct cct_json *rows = cct_json_new_array();
  struct cct_loads loads = {0};
  enum cct_status status = cct_loads_find(report, &loads);
  if (status) {
    cct_json_free(rows);
    return status;
  }
  for (int i = 0; i < loads.n; i++)
    for (int p = 0; p < loads.items[i].n; p++)
      for (int arm = 0; !status && arm < report->n_arms; arm++) {
        struct cct_json *row = cct_json_new_object();
        status = set_row(report, &loads.items[i], &loads.items[i].points[p], arm, row);
        cct_json_add(rows, row);
      }
  cct_loads_free(&loads);
  cct_json_set(document, "load", rows);
  return status;
}
