/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/planner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/profile_bounds.h"
#include "workloads/backends/predict.h"
#include "workloads/program/counts.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

struct cct_planner {
  struct cct_model model;
  struct cct_profile *profile;
  struct cct_profile dear, cheap; /* at its bounds */
};

const struct cct_model *cct_planner_model(const struct cct_planner *planner) {
  return &planner->model;
}

const struct cct_profile *cct_planner_profile(const struct cct_planner *planner) {
  return planner->profile;
}

void cct_planner_close(struct cct_planner *planner) {
  if (!planner)
    return;
  cct_bounded_free(&planner->dear);
  cct_bounded_free(&planner->cheap);
  cct_profile_free(planner->profile);
  cct_model_free(&planner->model);
  free(planner);
}

enum cct_status cct_planner_open(const struct cct_options *options, struct cct_planner **planner_out) {
  const struct cct_value *v = options->v;
  struct cct_planner *planner = calloc(1, sizeof *planner);
  if (!planner)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status =
      cct_model_load(v[CCT_OPT_MODEL].s, v[CCT_OPT_ASSUME].s, v[CCT_OPT_WEIGHTS].s, &planner->model);
  if (!status && v[CCT_OPT_LAYERS].has_value)
    status = cct_model_cut(&planner->model, v[CCT_OPT_LAYERS].i);
  if (!status)
    status = cct_profile_load(v[CCT_OPT_PROFILE_FILE].s, &planner->profile);
  if (!status && (!planner->profile->has_clear || !planner->profile->has_confidential))
    status = cct_fail(CCT_USAGE, "profile %s has no %s column, and plan compares both; b200x8-tdx has both",
                      planner->profile->name, planner->profile->has_clear ? "confidential" : "clear");
  if (!status)
    status = cct_profile_at_bound(planner->profile, 1, &planner->dear);
  if (!status)
    status = cct_profile_at_bound(planner->profile, 0, &planner->cheap);
  if (status) {
    cct_planner_close(planner);
    return status;
  }
  *planner_out = planner;
  return CCT_OK;
}

/* ---- the steps that make up a workload ---- */

struct part {
  struct cct_step step;
  int64_t times;   /* how often it runs */
  int repetitions; /* of a burst: with overlap a single one would not overlap */
};

struct parts {
  struct part part[2];
  int n;
  double tokens;
};

static void free_parts(struct parts *parts) {
  while (parts->n)
    cct_step_free(&parts->part[--parts->n].step);
}

static enum cct_status add_part(const struct cct_planner *planner, const struct cct_options *cell,
                                const struct cct_layout *layout, int64_t times, struct parts *parts) {
  struct part *part = &parts->part[parts->n];
  enum cct_status status = cct_step_build_model(&planner->model, layout, cell, &part->step);
  if (status)
    return status;
  part->times = times;
  part->repetitions = !strcmp(cell->v[CCT_OPT_OVERLAP].s, "on") ? 16 : 1;
  parts->n++;
  return CCT_OK;
}

static enum cct_status set_i64(struct cct_options *cell, enum cct_option_id id, int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)value);
  return cct_option_set(cell, id, text, cct_option_table[id].name);
}

/* A decode step of a serving cell, at `concurrency` requests. */
static enum cct_status add_decode(const struct cct_planner *planner, const struct cct_options *cell,
                                  const struct cct_layout *layout, int64_t concurrency, int64_t times,
                                  struct parts *parts) {
  struct cct_options step;
  enum cct_status status = cct_options_copy(cell, &step);
  if (status)
    return status;
  status = cct_option_set(&step, CCT_OPT_WORKLOAD, "decode", "--workload");
  if (!status)
    status = set_i64(&step, CCT_OPT_BATCH, cct_share(concurrency, layout->dp));
  if (!status)
    status = add_part(planner, &step, layout, times, parts);
  cct_options_free(&step);
  return status;
}

static enum cct_status add_prompts(const struct cct_planner *planner, const struct cct_options *cell,
                                   const struct cct_layout *layout, int64_t times, struct parts *parts) {
  struct cct_options step;
  enum cct_status status = cct_options_copy(cell, &step);
  if (status)
    return status;
  step.v[CCT_OPT_GRAPH].has_value = 0; /* --graph is about decoding; prompts run without */
  status = cct_option_set(&step, CCT_OPT_WORKLOAD, "prefill", "--workload");
  if (!status)
    status = add_part(planner, &step, layout, times, parts);
  cct_options_free(&step);
  return status;
}

static enum cct_status build_parts(const struct cct_planner *planner, const struct cct_options *cell,
                                   const struct cct_layout *layout, int64_t concurrency, struct parts *parts) {
  if (cct_cell_workload(cell) != CCT_WORKLOAD_SERVE) {
    enum cct_status status = add_part(planner, cell, layout, 1, parts);
    parts->tokens = status ? 0 : (double)parts->part[0].step.tokens;
    return status;
  }
  int64_t output = cell->v[CCT_OPT_OUTPUT_LEN].i;
  parts->tokens = (double)(concurrency * output);
  enum cct_status status = add_decode(planner, cell, layout, concurrency, output, parts);
  return status ? status : add_prompts(planner, cell, layout, cct_share(concurrency, layout->dp), parts);
}

/* Both in ns: of all parts as often as they run, and of the first. */
static enum cct_status predict_parts(const struct cct_planner *planner, const struct parts *parts,
                                     const struct cct_profile *emulated, unsigned mask, double *ns_out,
                                     double *first_ns_out) {
  double total = 0, first = 0;
  for (int i = 0; i < parts->n; i++) {
    const struct part *part = &parts->part[i];
    int64_t ns = 0;
    enum cct_status status =
        cct_predict(part->step.job, planner->profile, emulated, mask, part->step.bindings, part->repetitions, &ns);
    if (status)
      return status;
    total += (double)ns * (double)part->times;
    first = i ? first : (double)ns;
  }
  *ns_out = total;
  *first_ns_out = first;
  return CCT_OK;
}

/* ---- a layout ---- */

/* What one rank sends over tp and ep in the last layer of a step, all its passes counted, for a token of the EP group
 * (or of its replica). */
static enum cct_status link_bytes(const struct cct_planner *planner, const struct cct_layout *layout,
                                  const struct cct_step *step, double *bytes_out) {
  const struct cct_job *job = step->job;
  const struct cct_program *program = job->roles[0].program;
  int64_t *slots = calloc((size_t)program->n_slots + 1, sizeof *slots);
  struct cct_binding binding = {.slots = slots};
  double sum = 0, tokens = (double)step->tokens / (double)layout->dp;
  char last[16];
  if (!slots)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; i < program->n_slots; i++)
    slots[i] = program->slots[i].value;
  snprintf(last, sizeof last, "%d.", planner->model.n_layers - 1);
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    const char *group = op->kind == CCT_OP_COLLECTIVE ? job->groups[op->collective.group].name : "";
    if (!strncmp(op->name, last, strlen(last)) && (!strcmp(group, "tp") || !strcmp(group, "ep")))
      sum += cct_wire_bytes(job, op, &binding);
  }
  *bytes_out = sum / tokens / (layout->ep > 1 ? (double)layout->ep / (double)layout->tp : 1);
  free(slots);
  return CCT_OK;
}

static enum cct_status price_boundaries(const struct cct_planner *planner, const struct parts *parts,
                                        struct cct_plan_row *row) {
  double first, sum = 0;
  for (int i = 0; i < CCT_BOUNDARY_COUNT; i++) {
    double ns;
    enum cct_status status = predict_parts(planner, parts, planner->profile, 1u << i, &ns, &first);
    if (status)
      return status;
    row->share_ns[i] = ns - row->clear_ns;
    sum += row->share_ns[i];
  }
  row->interaction_ns = row->confidential_ns - row->clear_ns - sum;
  return CCT_OK;
}

static enum cct_status price_columns(const struct cct_planner *planner, const struct parts *parts,
                                     struct cct_plan_row *row) {
  double ignored;
  enum cct_status status = predict_parts(planner, parts, NULL, 0, &row->clear_ns, &row->token_clear_ns);
  if (!status)
    status = predict_parts(planner, parts, planner->profile, CCT_ALL_BOUNDARIES, &row->confidential_ns,
                           &row->token_confidential_ns);
  if (!status)
    status = predict_parts(planner, parts, &planner->cheap, CCT_ALL_BOUNDARIES, &row->lo_ns, &ignored);
  if (!status)
    status = predict_parts(planner, parts, &planner->dear, CCT_ALL_BOUNDARIES, &row->hi_ns, &ignored);
  return status ? status : price_boundaries(planner, parts, row);
}

/* "tpot=50ms" */
static enum cct_status read_slo(const char *text, double *ns_out) {
  char number[32];
  size_t length = strlen(text);
  const char *unit = length > 2 ? text + length - 2 : "";
  double value = 0, scale = !strcmp(unit, "ms") ? 1e6 : !strcmp(unit, "us") ? 1e3 : 0;
  if (!strncmp(text, "tpot=", 5) && scale > 0 && length - 7 < sizeof number) {
    snprintf(number, sizeof number, "%.*s", (int)(length - 7), text + 5);
    if (cct_parse_f64(number, &value) && value > 0) {
      *ns_out = value * scale;
      return CCT_OK;
    }
  }
  return cct_fail(CCT_USAGE, "--slo: '%s' is no latency such as tpot=50ms", text);
}

static enum cct_status token_time(const struct cct_planner *planner, const struct cct_options *cell,
                                  const struct cct_layout *layout, int64_t concurrency, unsigned mask, double *ns_out) {
  struct parts parts = {0};
  double total;
  enum cct_status status = add_decode(planner, cell, layout, concurrency, 1, &parts);
  if (!status)
    status = predict_parts(planner, &parts, mask ? planner->profile : NULL, mask, &total, ns_out);
  free_parts(&parts);
  return status;
}

/* The largest concurrency, a power of two times dp up to the cell's own or that itself, whose token keeps the limit. */
static enum cct_status find_concurrency(const struct cct_planner *planner, const struct cct_options *cell,
                                        const struct cct_layout *layout, unsigned mask, double limit_ns,
                                        struct cct_slo_point *point) {
  int64_t most = cell->v[CCT_OPT_CONCURRENCY].i, good = 0, bad = most + 1;
  double ns, first;
  enum cct_status status = CCT_OK;
  while (!status && bad - good > 1) {
    int64_t middle = good ? (good + bad) / 2 : bad == most + 1 ? most : (bad + 1) / 2;
    status = token_time(planner, cell, layout, middle, mask, &ns);
    if (!status && ns <= limit_ns)
      good = middle;
    else
      bad = middle;
  }
  *point = (struct cct_slo_point){.concurrency = good};
  if (status || !good)
    return status;
  struct parts parts = {0};
  status = build_parts(planner, cell, layout, good, &parts);
  if (!status)
    status = predict_parts(planner, &parts, mask ? planner->profile : NULL, mask, &ns, &first);
  if (!status)
    point->tokens_per_s = cct_per_second(parts.tokens, ns);
  free_parts(&parts);
  return status;
}

/* GPUs and money for what the clear machine makes on the layout's ranks within the limit. */
static enum cct_status price_slo(const struct cct_planner *planner, const struct cct_options *cell,
                                 const struct cct_layout *layout, struct cct_plan_row *row) {
  struct cct_slo_point *clear = &row->slo_clear, *confidential = &row->slo_confidential;
  double limit_ns = 0, ranks = (double)cct_layout_ranks(layout), price = cell->v[CCT_OPT_PRICE].f;
  enum cct_status status = read_slo(cell->v[CCT_OPT_SLO].s, &limit_ns);
  if (!status)
    status = find_concurrency(planner, cell, layout, 0, limit_ns, clear);
  if (!status)
    status = find_concurrency(planner, cell, layout, CCT_ALL_BOUNDARIES, limit_ns, confidential);
  if (status || !clear->concurrency)
    return status;
  clear->gpus = ranks;
  clear->price = ranks * price;
  if (confidential->concurrency) {
    confidential->gpus = ranks * clear->tokens_per_s / confidential->tokens_per_s;
    confidential->price = confidential->gpus * price;
  }
  return CCT_OK;
}

enum cct_status cct_planner_price(const struct cct_planner *planner, const struct cct_options *cell,
                                  const struct cct_layout *layout, struct cct_plan_row *row_out) {
  const struct cct_column *column = &planner->profile->confidential;
  struct cct_plan_row row = {.layout = *layout};
  struct parts parts = {0};
  enum cct_workload workload = cct_cell_workload(cell);
  cct_layout_text(layout, row.text);
  cct_footprint_of(&planner->model, layout, cell, &row.footprint);
  row.room_bytes = column->memory_bytes.value - column->reserved_bytes.value;
  row.fits = row.footprint.total <= row.room_bytes;
  enum cct_status status = build_parts(planner, cell, layout, cell->v[CCT_OPT_CONCURRENCY].i, &parts);
  if (!status)
    status = price_columns(planner, &parts, &row);
  if (!status)
    status = link_bytes(planner, layout, &parts.part[0].step, &row.link_bytes);
  if (!status && cell->v[CCT_OPT_SLO].has_value)
    status = price_slo(planner, cell, layout, &row);
  if (workload != CCT_WORKLOAD_SERVE && workload != CCT_WORKLOAD_DECODE)
    row.token_clear_ns = row.token_confidential_ns = 0;
  row.tokens = parts.tokens;
  row.is_scaled = planner->model.is_scaled;
  row.is_stand_in = planner->model.is_stand_in;
  free_parts(&parts);
  if (!status)
    *row_out = row;
  return status;
}
