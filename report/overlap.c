/* SPDX-License-Identifier: Apache-2.0 */
#include "report/overlap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "workloads/backends/exposure.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

static struct cct_exposed *find_exposed(struct cct_overlap *o, int cell, int arm, const char *name) {
  for (int i = o->n_exposed - 1; i >= 0; i--) /* a block's rows come together */
    if (o->exposed[i].cell == cell && o->exposed[i].arm == arm && !strcmp(o->exposed[i].name, name))
      return &o->exposed[i];
  return NULL;
}

/* Room for one more; a power of two is a full table. */
static void *grown(void *rows, int n, size_t size) {
  return n & (n - 1) ? rows : realloc(rows, (n ? 2 * (size_t)n : 1) * size);
}

static double sum_of(const struct cct_block_metric *metric) {
  double sum = 0;
  for (int i = 0; i < metric->n_samples; i++)
    sum += metric->samples[i].value;
  return sum;
}

static enum cct_status add_exposed(struct cct_overlap *o, int cell, int arm, const struct cct_block_metric *metric) {
  int is_exposed = !strncmp(metric->metric.name, CCT_METRIC_EXPOSED, strlen(CCT_METRIC_EXPOSED));
  const char *name = metric->metric.name + strlen(is_exposed ? CCT_METRIC_EXPOSED : CCT_METRIC_SPENT);
  struct cct_exposed *row = find_exposed(o, cell, arm, name);
  if (!row) {
    struct cct_exposed *rows = grown(o->exposed, o->n_exposed, sizeof *rows);
    if (!rows)
      return cct_fail(CCT_NOMEM, "out of memory: %d collectives", o->n_exposed);
    o->exposed = rows;
    row = &rows[o->n_exposed++];
    *row = (struct cct_exposed){.cell = cell, .arm = arm};
    snprintf(row->name, sizeof row->name, "%s", name);
  }
  *(is_exposed ? &row->exposed_us : &row->spent_us) += sum_of(metric);
  row->n[is_exposed] += metric->n_samples;
  return CCT_OK;
}

static int is_of_layout(const char *group) {
  return !strcmp(group, "tp") || !strcmp(group, "ep");
}

/* A block's kinds and groups come one after the other and are added up. */
static enum cct_status add_moved(struct cct_overlap *o, int cell, int arm, const struct cct_block_metric *metric,
                                 int boot, int block) {
  const char *group = strrchr(metric->metric.name, '.');
  double mean = metric->n_samples ? sum_of(metric) / metric->n_samples : 0;
  struct cct_moved *row = NULL;
  for (int i = 0; !row && i < o->n_moved; i++)
    row = o->moved[i].cell == cell && o->moved[i].arm == arm ? &o->moved[i] : NULL;
  if (!(mean > 0) || !group || !is_of_layout(group + 1))
    return CCT_OK;
  if (!row) {
    struct cct_moved *rows = grown(o->moved, o->n_moved, sizeof *rows);
    if (!rows)
      return cct_fail(CCT_NOMEM, "out of memory: %d cells", o->n_moved);
    o->moved = rows;
    row = &rows[o->n_moved++];
    *row = (struct cct_moved){.cell = cell, .arm = arm};
  }
  struct cct_unit *last = row->n_units ? &row->units[row->n_units - 1] : NULL;
  if (last && last->boot == boot && last->round == block) {
    last->value += mean;
    return CCT_OK;
  }
  struct cct_unit *units = grown(row->units, row->n_units, sizeof *units);
  if (!units)
    return cct_fail(CCT_NOMEM, "out of memory: %d blocks", row->n_units);
  row->units = units;
  units[row->n_units++] = (struct cct_unit){boot, block, mean};
  return CCT_OK;
}

enum cct_status cct_overlap_add(struct cct_report *report, int cell, int arm, const struct cct_block_metric *metric,
                                int boot, int block) {
  if (!report->overlap && !(report->overlap = calloc(1, sizeof *report->overlap)))
    return cct_fail(CCT_NOMEM, "out of memory");
  return strncmp(metric->metric.name, CCT_METRIC_MOVED, strlen(CCT_METRIC_MOVED))
             ? add_exposed(report->overlap, cell, arm, metric)
             : add_moved(report->overlap, cell, arm, metric, boot, block);
}

static void count(const struct cct_step *step, struct cct_arm_step *out) {
  const struct cct_program *program = step->job->roles[0].program;
  int64_t *slots = calloc((size_t)program->n_slots + 1, sizeof *slots);
  struct cct_counts counts;
  for (int i = 0; slots && i < program->n_slots; i++)
    slots[i] = program->slots[i].value;
  const struct cct_binding defaults = {.slots = slots};
  const struct cct_binding *binding = step->bindings ? step->bindings : &defaults;
  if (slots) {
    cct_count_program(step->job, program, binding, &counts);
    out->flops = counts.flops;
  }
  for (int id = 0; slots && id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    const struct cct_group *group = op->kind == CCT_OP_COLLECTIVE ? &step->job->groups[op->collective.group] : NULL;
    if (!group || !is_of_layout(group->name))
      continue;
    out->wire_bytes += cct_wire_bytes(step->job, op, binding);
    out->largest_bytes = fmax(out->largest_bytes, (double)cct_quantity_value(op->collective.bytes, binding));
  }
  free(slots);
}

static void build(const struct cct_report *report, int cell, int arm, struct cct_arm_step *out) {
  struct cct_options options;
  struct cct_step step;
  struct cct_json_at at = cct_json_root(report->cells[cell].parameters, report->cells[cell].title);
  enum cct_option_id id = cct_option_by_key(report->factor);
  if (cct_cell_from_json(&at, &options))
    return;
  enum cct_status status = id < CCT_OPTION_COUNT && cct_option_table[id].scope == CCT_SCOPE_CELL && !report->is_null
                               ? cct_option_set(&options, id, report->arms[arm], report->factor)
                               : CCT_OK;
  if (!status && !cct_step_build(&options, &step)) {
    *out = (struct cct_arm_step){.tokens = step.tokens,
                                 .ranks = step.job->ranks,
                                 .model_flops = step.model_flops,
                                 .checkpoint_every = step.checkpoint_every};
    count(&step, out);
    cct_step_free(&step);
  }
  cct_options_free(&options);
}

static int is_wanted(const struct cct_report *report, int cell) {
  const struct cct_report_cell *at = &report->cells[cell];
  int is_training = at->workload && !strcmp(at->workload, "train") && at->is_primary;
  for (int i = 0; !is_training && report->overlap && i < report->overlap->n_moved; i++)
    is_training = report->overlap->moved[i].cell == cell;
  return is_training;
}

enum cct_status cct_overlap_finish(struct cct_report *report) {
  size_t n = (size_t)report->n_cells * (size_t)report->n_arms;
  if (!report->overlap && !(report->overlap = calloc(1, sizeof *report->overlap)))
    return cct_fail(CCT_NOMEM, "out of memory");
  struct cct_overlap *o = report->overlap;
  if (!(o->steps = calloc(n + 1, sizeof *o->steps)))
    return cct_fail(CCT_NOMEM, "out of memory: %zu steps", n);
  int is_one = !strcmp(report->factor, "condition") || report->is_null; /* arms perform the same program */
  cct_log_mute(1);                                                      /* a step that cannot be built has no counts */
  for (int c = 0; c < report->n_cells; c++)
    for (int a = 0; a < report->n_arms && is_wanted(report, c); a++)
      if (a && is_one)
        o->steps[c * report->n_arms + a] = o->steps[c * report->n_arms];
      else
        build(report, c, a, &o->steps[c * report->n_arms + a]);
  cct_log_mute(0);
  for (int i = 0; i < o->n_moved; i++)
    for (int u = 0; u < o->moved[i].n_units; u++)
      o->moved[i].units[u].value = log(o->moved[i].units[u].value);
  for (int i = 0; i < o->n_exposed; i++) {
    o->exposed[i].spent_us /= o->exposed[i].n[0] ? o->exposed[i].n[0] : 1;
    o->exposed[i].exposed_us /= o->exposed[i].n[1] ? o->exposed[i].n[1] : 1;
  }
  return CCT_OK;
}

void cct_overlap_free(struct cct_overlap *o) {
  if (!o)
    return;
  for (int i = 0; i < o->n_moved; i++)
    free(o->moved[i].units);
  free(o->moved);
  free(o->exposed);
  free(o->steps);
  free(o);
}

/* ---- order ---- */

const char *cct_order_name(enum cct_order_verdict verdict) {
  static const char *const names[] = {
#define ORDER_NAME(id, name) name,
      CCT_ORDERS(ORDER_NAME)
#undef ORDER_NAME
  };
  return names[verdict];
}

static const struct cct_arm_step *step_of(const struct cct_report *report, const struct cct_moved *moved) {
  return &report->overlap->steps[moved->cell * report->n_arms + moved->arm];
}

static int is_pair(const struct cct_report *report, const struct cct_moved *a, const struct cct_moved *b) {
  const struct cct_report_cell *left = &report->cells[a->cell], *right = &report->cells[b->cell];
  const struct cct_arm_step *x = step_of(report, a), *y = step_of(report, b);
  return a->arm == b->arm && a->cell != b->cell && left->model && right->model && !strcmp(left->model, right->model) &&
         !strcmp(left->workload, right->workload) && x->tokens && x->tokens == y->tokens && x->ranks == y->ranks &&
         x->wire_bytes > 0 && y->wire_bytes > 0;
}

/* Of an A/A report the blocks of both arms are one series. */
static enum cct_status join(const struct cct_report *report, const struct cct_moved *moved, struct cct_unit **units_out,
                            size_t *n_out) {
  const struct cct_overlap *o = report->overlap;
  size_t n = 0;
  struct cct_unit *units = NULL;
  for (int pass = 0; pass < 2; pass++) {
    n = 0;
    for (int i = 0; i < o->n_moved; i++)
      if (o->moved[i].cell == moved->cell && (o->moved[i].arm == moved->arm || report->is_null)) {
        if (pass)
          memcpy(units + n, o->moved[i].units, (size_t)o->moved[i].n_units * sizeof *units);
        n += (size_t)o->moved[i].n_units;
      }
    if (!pass && !(units = malloc((n + 1) * sizeof *units)))
      return cct_fail(CCT_NOMEM, "out of memory: %zu blocks", n);
  }
  *units_out = units;
  *n_out = n;
  return CCT_OK;
}

static enum cct_status judge(const struct cct_report *report, struct cct_order *order) {
  const struct cct_moved *less = &report->overlap->moved[order->less], *more = &report->overlap->moved[order->more];
  const struct cct_arm_step *x = step_of(report, less), *y = step_of(report, more);
  struct cct_unit *a = NULL, *b = NULL;
  size_t na, nb;
  struct cct_comparison *c = &order->comparison;
  order->counted = y->wire_bytes / x->wire_bytes;
  enum cct_status status = join(report, less, &a, &na);
  if (!status)
    status = join(report, more, &b, &nb);
  if (!status)
    status = cct_compare(a, na, b, nb, c);
  free(a);
  free(b);
  if (status)
    return status;
  int is_predicted = strstr(report->cells[less->cell].arms[less->arm].label, "predicted") != NULL;
  int is_exact = is_predicted && !(c->se > 1e-12);
  c->df = c->se > 1e-12 ? c->df : 0;
  int is_ordered =
      order->counted >= CCT_ORDER_RATIO && x->largest_bytes >= CCT_ORDER_BYTES && y->largest_bytes >= CCT_ORDER_BYTES;
  order->verdict = !is_ordered              ? CCT_ORDER_TIE
                   : is_exact               ? (c->effect > 0 ? CCT_ORDER_AS_COUNTED : CCT_ORDER_AGAINST)
                   : c->df > 0 && c->lo > 0 ? CCT_ORDER_AS_COUNTED
                   : c->df > 0 && c->hi < 0 ? CCT_ORDER_AGAINST
                                            : CCT_ORDER_UNCLEAR;
  return CCT_OK;
}

enum cct_status cct_order_list(const struct cct_report *report, struct cct_order **orders_out, int *n_out) {
  const struct cct_overlap *o = report->overlap;
  struct cct_order *orders = NULL;
  enum cct_status status = CCT_OK;
  int n = 0;
  for (int i = 0; !status && i < o->n_moved; i++)
    for (int k = i + 1; !status && k < o->n_moved; k++) {
      const struct cct_moved *a = &o->moved[i], *b = &o->moved[k];
      if (!is_pair(report, a, b) || (report->is_null && a->arm))
        continue;
      struct cct_order *rows = grown(orders, n, sizeof *rows);
      if (!rows) {
        status = cct_fail(CCT_NOMEM, "out of memory: %d pairs", n);
        break;
      }
      orders = rows;
      int is_less = step_of(report, a)->wire_bytes <= step_of(report, b)->wire_bytes;
      orders[n] = (struct cct_order){.less = is_less ? i : k, .more = is_less ? k : i};
      status = judge(report, &orders[n++]);
    }
  if (status) {
    free(orders);
    return status;
  }
  *orders_out = orders;
  *n_out = n;
  return CCT_OK;
}

/* ---- training ---- */

static double median_us(const struct cct_report *report, const char *key, const char *metric, int arm) {
  for (int c = 0; c < report->n_cells; c++) {
    const struct cct_series *series = &report->cells[c].arms[arm];
    double sum = 0;
    if (strcmp(report->cells[c].metric.name, metric) || strcmp(report->cells[c].key, key) || !series->n_units)
      continue;
    for (int i = 0; i < series->n_units; i++)
      sum += series->units[i].value;
    return exp(sum / series->n_units);
  }
  return NAN;
}

int cct_training_of(const struct cct_report *report, int cell, int arm, struct cct_training *out) {
  const struct cct_report_cell *at = &report->cells[cell];
  const struct cct_arm_step *step = &report->overlap->steps[cell * report->n_arms + arm];
  if (!(step->model_flops > 0) || !at->is_primary || *at->arms[arm].refusal)
    return 0;
  double step_us = median_us(report, at->key, at->metric.name, arm);
  double extra_us = step->checkpoint_every ? median_us(report, at->key, "checkpoint_step", arm) - step_us : NAN;
  if (!isfinite(step_us))
    return 0;
  double s = (step_us + (isfinite(extra_us) ? extra_us / (double)step->checkpoint_every : 0)) / 1e6;
  *out = (struct cct_training){.step_s = s,
                               .checkpoint_s = extra_us / 1e6,
                               .tokens_s = (double)step->tokens / s,
                               .model_tflop_s = step->model_flops / step->ranks / s / 1e12,
                               .hardware_tflop_s = step->flops / s / 1e12};
  return 1;
}
