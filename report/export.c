/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "report/attribute.h"
#include "report/load.h"
#include "report/overlap.h"
#include "report/numbers.h"
#include "report/report.h"
#include "report/series.h"

static double median_of(const struct cct_report_cell *cell, double centre) {
  return exp(strcmp(cell->metric.better, "higher") ? centre : -centre);
}

static void set_parameters(const struct cct_report_cell *cell, struct cct_json *row) {
  struct cct_json *parameters = cct_json_new_object();
  void *iterator = NULL;
  const char *key;
  const struct cct_json *value;
  while (cct_json_next(cell->parameters, &iterator, &key, &value))
    if (strcmp(key, "workload") && strcmp(key, "model") && strcmp(key, "layout"))
      cct_json_set(parameters, key, cct_json_copy(value));
  cct_json_set(row, "parameters", parameters);
}

static void set_attribution(const struct cct_attribution *attribution, struct cct_json *row) {
  struct cct_json *share = cct_json_new_object(), *off = cct_json_new_object();
  for (int k = 0; k < CCT_BOUNDARY_COUNT; k++) {
    const char *name = cct_boundary_name((enum cct_boundary)k);
    cct_json_set_f64(share, name, attribution->is_known ? attribution->share[k] : NAN);
    cct_json_set_f64(off, name, attribution->is_known ? attribution->off[k] : NAN);
  }
  cct_json_set(row, "boundaries_pct", share);
  cct_json_set(row, "boundaries_off_pct", off);
  cct_json_set_f64(row, "interaction_pct", attribution->is_known ? attribution->interaction : NAN);
  cct_json_set_f64(row, "residual_pct", attribution->is_known ? attribution->residual : NAN);
}

static struct cct_json *result_row(const struct cct_report *report, const struct cct_result *result) {
  const struct cct_report_cell *cell = &report->cells[result->cell];
  const struct cct_series *a = &cell->arms[0], *b = &cell->arms[result->arm];
  const struct cct_comparison *c = &result->comparison;
  enum cct_measure measure = cct_metric_measure(&cell->metric);
  struct cct_json *row = cct_json_new_object(), *allowed = cct_json_new_array();
  cct_json_set_string(row, "workload", cell->workload);
  cct_json_set_string(row, "model", cell->model);
  cct_json_set_string(row, "layout", cell->layout);
  set_parameters(cell, row);
  cct_json_set_string(row, "metric", cell->metric.name);
  cct_json_set_string(row, "unit", cell->metric.unit);
  cct_json_set_string(row, "better", cell->metric.better);
  cct_json_set_string(row, "factor", report->factor);
  cct_json_set_string(row, "baseline", report->arms[0]);
  cct_json_set_string(row, "arm", report->arms[result->arm]);
  cct_json_set_string(row, "label", result->label);
  cct_json_set_i64(row, "n", a->n_samples < b->n_samples ? a->n_samples : b->n_samples);
  cct_json_set_i64(row, "blocks", c->blocks[0] < c->blocks[1] ? c->blocks[0] : c->blocks[1]);
  cct_json_set_i64(row, "boots", c->boots[0] < c->boots[1] ? c->boots[0] : c->boots[1]);
  cct_json_set_f64(row, "baseline_median", median_of(cell, c->centre[0]));
  cct_json_set_f64(row, "median", median_of(cell, c->centre[1]));
  const struct cct_comparison change = cct_change_of(cell, c), *told = measure == CCT_MEASURE_COUNT ? &change : c;
  cct_json_set_f64(row, "change_pct", cct_time_overhead_pct(change.effect));
  cct_json_set_f64(row, "time_overhead_pct", measure != CCT_MEASURE_COUNT ? cct_time_overhead_pct(c->effect) : NAN);
  cct_json_set_f64(row, "throughput_loss_pct", measure == CCT_MEASURE_WORK ? cct_throughput_loss_pct(c->effect) : NAN);
  if (c->df > 0) {
    struct cct_json *interval = cct_json_new_array();
    cct_json_add_f64(interval, cct_time_overhead_pct(told->lo));
    cct_json_add_f64(interval, cct_time_overhead_pct(told->hi));
    cct_json_set(row, "ci95_pct", interval);
  } else {
    cct_json_set_null(row, "ci95_pct");
  }
  cct_json_set_f64(row, "smallest_visible_pct", cct_time_overhead_pct(result->smallest_visible));
  cct_json_set_string(row, "verdict", cct_verdict_name(result->verdict));
  cct_json_set_string(row, "reason", *result->reason ? result->reason : NULL);
  cct_json_set_string(row, "remark", *result->remark ? result->remark : NULL);
  for (int i = 0; i < report->gate.n_allowed; i++)
    cct_json_add_string(allowed, report->gate.allowed[i].name);
  cct_json_set(row, "allowed", allowed);
  set_attribution(&result->attribution, row);
  return row;
}

static struct cct_json *summary_row(const struct cct_report *report, int arm) {
  const struct cct_comparison *mean = &report->summary[arm].mean;
  struct cct_json *row = cct_json_new_object();
  int n = report->summary[arm].n_cells;
  cct_json_set_string(row, "arm", report->arms[arm]);
  cct_json_set_i64(row, "cells", n);
  cct_json_set_f64(row, "time_overhead_pct", n ? cct_time_overhead_pct(mean->effect) : NAN);
  const struct cct_arm_summary *throughput = &report->throughput[arm];
  cct_json_set_f64(row, "throughput_loss_pct",
                   throughput->n_cells ? cct_throughput_loss_pct(throughput->mean.effect) : NAN);
  cct_json_set_i64(row, "throughput_cells", throughput->n_cells);
  if (n && mean->df > 0) {
    struct cct_json *interval = cct_json_new_array();
    cct_json_add_f64(interval, cct_time_overhead_pct(mean->lo));
    cct_json_add_f64(interval, cct_time_overhead_pct(mean->hi));
    cct_json_set(row, "ci95_pct", interval);
  } else {
    cct_json_set_null(row, "ci95_pct");
  }
  return row;
}

enum cct_status cct_report_to_json(const struct cct_report *report, const char *page, struct cct_json **document_out) {
  struct cct_json *document = cct_json_new_object(), *cells = cct_json_new_array(), *arms = cct_json_new_array();
  struct cct_json *summary = cct_json_new_object();
  cct_json_set_i64(document, "schema", 1);
  cct_json_set_string(document, "tool", "cctax " CCT_VERSION);
  cct_json_set_string(document, "command", "report");
  cct_json_set_string(document, "report", page);
  for (int arm = 1; arm < report->n_arms; arm++)
    cct_json_add(arms, summary_row(report, arm));
  cct_json_set(summary, "geometric_mean", arms);
  cct_json_set_i64(summary, "compared", report->n_compared);
  cct_json_set_i64(summary, "null_compared", report->n_nulls);
  cct_json_set_i64(summary, "null_different", report->n_nulls_different);
  cct_json_set_bool(summary, "is_null", report->is_null);
  cct_json_set(document, "summary", summary);
  for (int r = 0; r < report->n_results; r++)
    cct_json_add(cells, result_row(report, &report->results[r]));
  cct_json_set(document, "cells", cells);
  enum cct_status status = cct_export_steps(report, document);
  if (!status)
    status = cct_export_load(report, document);
  if (status) {
    cct_json_free(document);
    return status;
  }
  *document_out = document;
  return CCT_OK;
}

/* ---- CSV (RFC 4180): the rows of the JSON document, flattened; an absent value is an empty field ---- */

static void csv_text(struct cct_text *text, const char *field) {
  int is_plain = field && !strpbrk(field, ",\"\r\n");
  if (!field)
    return;
  if (is_plain) {
    cct_text_append(text, field, strlen(field));
    return;
  }
  cct_text_append(text, "\"", 1);
  for (const char *p = field; *p; p++) {
    if (*p == '"')
      cct_text_append(text, "\"", 1);
    cct_text_append(text, p, 1);
  }
  cct_text_append(text, "\"", 1);
}

static void csv_value(struct cct_text *text, const char *key, const struct cct_json *value) {
  struct cct_text nested = {0};
  switch (cct_json_type(value)) {
  case CCT_JSON_STRING:
    csv_text(text, cct_json_string(value));
    break;
  case CCT_JSON_INTEGER:
    cct_text_add(text, "%lld", (long long)cct_json_integer(value));
    break;
  case CCT_JSON_REAL:
    cct_text_add(text, "%.12g", cct_json_number(value));
    break;
  case CCT_JSON_ARRAY:
    if (!strcmp(key, "allowed")) {
      for (size_t i = 0; i < cct_json_size(value); i++)
        cct_text_add(&nested, "%s%s", i ? ";" : "", cct_json_string(cct_json_element(value, i)));
      csv_text(text, nested.s);
    }
    break;
  case CCT_JSON_OBJECT:
    if (cct_json_canonical(value, &nested) == CCT_OK)
      csv_text(text, nested.s);
    break;
  case CCT_JSON_BOOL:
  case CCT_JSON_NULL:
    break;
  }
  cct_text_free(&nested);
}

/* One row, or with `is_head` the names: ci95_pct becomes two columns, each boundary one. */
static void csv_row(struct cct_text *text, const struct cct_json *row, int is_head) {
  void *iterator = NULL, *inner;
  const char *key, *name;
  const struct cct_json *value, *part;
  for (int column = 0; cct_json_next(row, &iterator, &key, &value); column++) {
    if (column)
      cct_text_append(text, ",", 1);
    if (!strcmp(key, "ci95_pct")) {
      int is_known = cct_json_type(value) == CCT_JSON_ARRAY;
      if (is_head)
        cct_text_add(text, "ci95_lo_pct,ci95_hi_pct");
      else if (is_known)
        cct_text_add(text, "%.12g,%.12g", cct_json_number(cct_json_element(value, 0)),
                     cct_json_number(cct_json_element(value, 1)));
      else
        cct_text_append(text, ",", 1);
    } else if (!strncmp(key, "boundaries", 10)) {
      inner = NULL;
      for (int i = 0; cct_json_next(value, &inner, &name, &part); i++) {
        cct_text_add(text, "%s", i ? "," : "");
        if (is_head)
          cct_text_add(text, "%s%s_pct", name, strcmp(key, "boundaries_pct") ? "_off" : "");
        else
          csv_value(text, name, part);
      }
    } else if (is_head) {
      cct_text_add(text, "%s", key);
    } else {
      csv_value(text, key, value);
    }
  }
  cct_text_append(text, "\r\n", 2);
}

enum cct_status cct_report_to_csv(const struct cct_report *report, struct cct_text *text) {
  struct cct_json *document = NULL;
  enum cct_status status = cct_report_to_json(report, NULL, &document);
  if (status)
    return status;
  const struct cct_json *rows = cct_json_member(document, "cells");
  for (size_t i = 0; i < cct_json_size(rows); i++) {
    if (i == 0)
      csv_row(text, cct_json_element(rows, 0), 1);
    csv_row(text, cct_json_element(rows, i), 0);
  }
  cct_json_free(document);
  return text->is_failed ? cct_fail(CCT_NOMEM, "out of memory: %zu rows of CSV", cct_json_size(rows)) : CCT_OK;
}
