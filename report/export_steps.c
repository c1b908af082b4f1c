/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/overlap.h"

static struct cct_json *row_of(const struct cct_report *report, int cell, int arm) {
  const struct cct_report_cell *at = &report->cells[cell];
  struct cct_json *row = cct_json_new_object();
  cct_json_set_string(row, "cell", at->title);
  cct_json_set_string(row, "workload", at->workload);
  cct_json_set_string(row, "model", at->model);
  cct_json_set_string(row, "layout", at->layout);
  cct_json_set_string(row, "arm", report->arms[arm]);
  cct_json_set_string(row, "label", at->arms[arm].label);
  return row;
}

static struct cct_json *training(const struct cct_report *report) {
  struct cct_json *rows = cct_json_new_array();
  struct cct_training t;
  for (int c = 0; c < report->n_cells; c++)
    for (int a = 0; a < report->n_arms; a++) {
      if (!cct_training_of(report, c, a, &t))
        continue;
      struct cct_json *row = row_of(report, c, a);
      cct_json_set_f64(row, "s_per_step", t.step_s);
      cct_json_set_f64(row, "checkpoint_s", t.checkpoint_s);
      cct_json_set_f64(row, "tokens_per_s", t.tokens_s);
      cct_json_set_f64(row, "model_tflop_s_per_gpu", t.model_tflop_s);
      cct_json_set_f64(row, "hardware_tflop_s_per_gpu", t.hardware_tflop_s);
      cct_json_add(rows, row);
    }
  return rows;
}

static struct cct_json *collectives(const struct cct_report *report) {
  struct cct_json *rows = cct_json_new_array();
  for (int i = 0; i < report->overlap->n_exposed; i++) {
    const struct cct_exposed *e = &report->overlap->exposed[i];
    struct cct_json *row = row_of(report, e->cell, e->arm);
    char kind[40];
    snprintf(kind, sizeof kind, "%s", e->name);
    char *group = strchr(kind, '.');
    if (group)
      *group++ = '\0';
    cct_json_set_string(row, "collective", kind);
    cct_json_set_string(row, "group", group);
    cct_json_set_f64(row, "spent_us", e->spent_us);
    cct_json_set_f64(row, "exposed_us", e->exposed_us);
    cct_json_set_f64(row, "exposed_pct", e->spent_us > 0 ? 100 * e->exposed_us / e->spent_us : NAN);
    cct_json_set_f64(row, "hidden_pct", e->spent_us > 0 ? 100 - 100 * e->exposed_us / e->spent_us : NAN);
    cct_json_add(rows, row);
  }
  return rows;
}

static void set_moved(const struct cct_report *report, const char *key, const struct cct_moved *moved,
                      struct cct_json *row) {
  const struct cct_arm_step *step = &report->overlap->steps[moved->cell * report->n_arms + moved->arm];
  struct cct_json *side = cct_json_new_object();
  double sum = 0;
  for (int i = 0; i < moved->n_units; i++)
    sum += moved->units[i].value;
  cct_json_set_string(side, "cell", report->cells[moved->cell].title);
  cct_json_set_string(side, "layout", report->cells[moved->cell].layout);
  const struct cct_json *dispatch = cct_json_member(report->cells[moved->cell].parameters, "dispatch");
  cct_json_set_string(side, "dispatch", dispatch ? cct_json_string(dispatch) : NULL);
  cct_json_set_f64(side, "wire_bytes", step->wire_bytes);
  cct_json_set_f64(side, "largest_bytes", step->largest_bytes);
  cct_json_set_f64(side, "moved_us", exp(sum / moved->n_units));
  cct_json_set(row, key, side);
}

enum cct_status cct_export_steps(const struct cct_report *report, struct cct_json *document) {
  struct cct_order *orders;
  int n;
  enum cct_status status = cct_order_list(report, &orders, &n);
  if (status)
    return status;
  cct_json_set(document, "training", training(report));
  cct_json_set(document, "collectives", collectives(report));
  struct cct_json *rows = cct_json_new_array();
  for (int i = 0; i < n; i++) {
    const struct cct_order *o = &orders[i];
    const struct cct_comparison *c = &o->comparison;
    struct cct_json *row = cct_json_new_object(), *interval = cct_json_new_array();
    cct_json_set_string(row, "arm", report->arms[report->overlap->moved[o->less].arm]);
    set_moved(report, "less", &report->overlap->moved[o->less], row);
    set_moved(report, "more", &report->overlap->moved[o->more], row);
    cct_json_set_f64(row, "counted_ratio", o->counted);
    cct_json_set_f64(row, "time_ratio", exp(c->effect));
    if (c->df > 0) {
      cct_json_add_f64(interval, exp(c->lo));
      cct_json_add_f64(interval, exp(c->hi));
      cct_json_set(row, "ci95_ratio", interval);
    } else {
      cct_json_free(interval);
      cct_json_set_null(row, "ci95_ratio");
    }
    cct_json_set_string(row, "verdict", cct_order_name(o->verdict));
    cct_json_add(rows, row);
  }
  cct_json_set(document, "order", rows);
  free(orders);
  return CCT_OK;
}
