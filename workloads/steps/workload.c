/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/steps/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "workloads/shape/cell.h"
#include "workloads/shape/flops.h"
#include "workloads/steps/bare.h"
#include "workloads/steps/moe.h"
#include "workloads/steps/serve.h"
#include "workloads/steps/template.h"

static enum cct_status load_program(const struct cct_options *cell, struct cct_step *step) {
  const char *path = cell->v[CCT_OPT_PROGRAM].s;
  struct cct_json *document = NULL;
  enum cct_status status = cct_json_load(path, &document);
  if (status)
    return status;
  struct cct_json_at at = cct_json_root(document, path);
  status = cct_job_from_json(&at, &step->job);
  if (!status)
    status = cct_job_check(step->job);
  cct_json_free(document);
  if (!status && cell->v[CCT_OPT_NP].has_value && cell->v[CCT_OPT_NP].i != step->job->ranks)
    status = cct_fail(CCT_USAGE, "%s: a program of %d ranks, --np is %lld: --np %d", path, step->job->ranks,
                      (long long)cell->v[CCT_OPT_NP].i, step->job->ranks);
  return status;
}

struct cct_step_store {
  struct cct_moe_draw draw;
  struct cct_matrix matrix; /* of a skewed collective */
  int64_t *slots;           /* of all ranks, one after the other */
};

static enum cct_status find_template(const struct cct_options *cell, const struct cct_template **template_out) {
  static const struct cct_template *const templates[] = {&cct_template_train, &cct_template_prefill,
                                                         &cct_template_decode, &cct_template_serve};
  enum cct_workload workload = cct_cell_workload(cell);
  if (workload != CCT_WORKLOAD_TRAIN && workload != CCT_WORKLOAD_PREFILL && workload != CCT_WORKLOAD_DECODE &&
      workload != CCT_WORKLOAD_SERVE)
    return cct_fail(CCT_USAGE, "a cell of a model needs a workload: train, prefill, decode or serve");
  *template_out = templates[workload];
  return CCT_OK;
}

/* Skewed ranks bind their own rows and share the matrices. */
static enum cct_status bind_ranks(const struct cct_emit *e, struct cct_moe_draw *draw, struct cct_step *step) {
  size_t ranks = (size_t)e->job->ranks, n_slots = (size_t)e->program->n_slots;
  struct cct_step_store *store = calloc(1, sizeof *store);
  step->store = store;
  step->bindings = calloc(ranks, sizeof *step->bindings);
  if (!store || !step->bindings || !(store->slots = calloc(ranks * n_slots, sizeof *store->slots)))
    return cct_fail(CCT_NOMEM, "out of memory");
  store->draw = *draw;
  *draw = (struct cct_moe_draw){0};
  for (size_t rank = 0; rank < ranks; rank++) {
    int64_t *slots = store->slots + rank * n_slots;
    for (size_t i = 0; i < n_slots; i++)
      slots[i] = e->program->slots[i].value;
    slots[e->s_rows] = store->draw.rows[rank % (size_t)e->layout.ep];
    step->bindings[rank] = (struct cct_binding){.slots = slots, .matrices = store->draw.matrices};
  }
  return CCT_OK;
}

struct request { /* what a job is built from */
  const struct cct_model *model;
  const struct cct_layout *layout;
  const struct cct_options *cell;
  const struct cct_template *template;
  struct cct_serve *serve; /* NULL: no serving step */
};

/* One job, and where `step` is given what belongs to it. */
static enum cct_status build_job(const struct request *request, int is_checkpoint, struct cct_step *step,
                                 struct cct_job **job_out) {
  const struct cct_options *cell = request->cell;
  struct cct_emit emit = {0};
  struct cct_moe moe;
  struct cct_moe_draw draw = {0};
  struct cct_pass pass = request->serve ? cct_serve_pass(request->serve) : request->template->pass(cell);
  enum cct_status status = cct_moe_plan(request->model, request->layout, cell, pass.tokens, &moe, &draw);
  if (!status && moe.is_host_routed && !strcmp(cct_cell_text(cell, CCT_OPT_GRAPH), "full"))
    status = cct_fail(CCT_USAGE, "--routing host reads counts back in the middle of a step, which no full graph can: "
                                 "--routing padded, or --graph none or piecewise");
  if (!status)
    status = cct_emit_open(&emit, request->model, request->layout, cell, &moe, &pass, request->template->name);
  if (!status) {
    emit.is_checkpoint = is_checkpoint;
    emit.serve = request->serve;
    status = request->template->emit(&emit);
  }
  if (!status && step && draw.rows)
    status = bind_ranks(&emit, &draw, step);
  if (!status)
    status = cct_job_add_role(emit.job, emit.program, 0, emit.job->ranks);
  if (!status)
    emit.program = NULL; /* the job's from here on */
  if (!status)
    status = cct_job_check(emit.job);
  if (!status) {
    *job_out = emit.job;
    emit.job = NULL;
  }
  if (!status && step) {
    step->routed = moe.routed;
    step->dropped = moe.dropped;
  }
  cct_moe_draw_free(&draw);
  cct_emit_close(&emit);
  return status;
}

/* serve knows its longest request itself. */
static enum cct_status check_length(const struct cct_model *model, const struct cct_options *cell) {
  int64_t input = cell->v[CCT_OPT_INPUT_LEN].i;
  switch (cct_cell_workload(cell)) {
  case CCT_WORKLOAD_TRAIN:
    return cct_model_check_length(model, "--seq-len: a sequence", cell->v[CCT_OPT_SEQ_LEN].i);
  case CCT_WORKLOAD_PREFILL:
    return cct_model_check_length(model, "--input-len: a prompt", input);
  case CCT_WORKLOAD_DECODE:
    return cct_model_check_length(model, "--input-len and --output-len: a request",
                                  input + cell->v[CCT_OPT_OUTPUT_LEN].i);
  default:
    return CCT_OK;
  }
}

enum cct_status cct_step_build_model(const struct cct_model *model, const struct cct_layout *layout,
                                     const struct cct_options *cell, struct cct_step *step_out) {
  struct request request = {model, layout, cell, NULL, NULL};
  struct cct_step step = {.is_stand_in = model->is_stand_in,
                          .is_scaled = model->is_scaled || cell->v[CCT_OPT_SCALE].i > 1};
  int is_training = cct_cell_workload(cell) == CCT_WORKLOAD_TRAIN;
  enum cct_status status = find_template(cell, &request.template);
  if (!status)
    status = cct_layout_check(layout, model);
  if (!status)
    status = check_length(model, cell);
  if (!status && !is_training && cell->v[CCT_OPT_CHECKPOINT_EVERY].has_value)
    status = cct_fail(CCT_USAGE, "--checkpoint-every: only training has checkpoints");
  if (!status && cct_cell_workload(cell) == CCT_WORKLOAD_SERVE)
    status = cct_serve_plan(model, layout, cell, &step.serve);
  request.serve = step.serve;
  if (!status)
    status = build_job(&request, 0, &step, &step.job);
  if (!status && cell->v[CCT_OPT_CHECKPOINT_EVERY].has_value) {
    step.checkpoint_every = cell->v[CCT_OPT_CHECKPOINT_EVERY].i;
    status = build_job(&request, 1, NULL, &step.checkpoint);
  }
  if (status) {
    cct_step_free(&step);
    return status;
  }
  step.tokens = request.template->tokens(cell) * layout->dp;
  if (is_training && cell->v[CCT_OPT_SCALE].i == 1)
    step.model_flops = (double)step.tokens * cct_model_train_flops(model, cell->v[CCT_OPT_SEQ_LEN].i);
  snprintf(step.model, sizeof step.model, "%s", model->name);
  cct_layout_text(layout, step.layout);
  *step_out = step;
  return CCT_OK;
}

static enum cct_status build_model(const struct cct_options *cell, struct cct_step *step) {
  struct cct_model model = {0};
  struct cct_layout layout;
  if (!cell->v[CCT_OPT_MODEL].has_value || !cell->v[CCT_OPT_LAYOUT].has_value)
    return cct_fail(CCT_USAGE, "a cell needs a program, or a model, a workload and a layout: no %s is given",
                    cell->v[CCT_OPT_MODEL].has_value ? "layout" : "model");
  enum cct_status status = cct_layout_parse(cell->v[CCT_OPT_LAYOUT].s, "layout", &layout);
  if (!status)
    status = cct_model_load(cell->v[CCT_OPT_MODEL].s, cell->v[CCT_OPT_ASSUME].s, cell->v[CCT_OPT_WEIGHTS].s, &model);
  if (!status && cell->v[CCT_OPT_LAYERS].has_value)
    status = cct_model_cut(&model, cell->v[CCT_OPT_LAYERS].i);
  if (!status && cell->v[CCT_OPT_NP].has_value)
    status = cct_layout_check_ranks(&layout, &model, cell->v[CCT_OPT_NP].i);
  if (!status)
    status = cct_step_build_model(&model, &layout, cell, step);
  cct_model_free(&model);
  return status;
}

/* As nccl-tests times a collective. */
static void count_iterations(const struct cct_options *cell, struct cct_step *step) {
  int64_t iters = cell->v[CCT_OPT_ITERS].i, launches = cell->v[CCT_OPT_CUDAGRAPH].i;
  int64_t grouped = cell->v[CCT_OPT_AGG_ITERS].has_value ? cell->v[CCT_OPT_AGG_ITERS].i : 1;
  step->repetitions = launches ? launches : iters;
  step->operations = launches ? iters * grouped : grouped;
}

/* A collective or a probe; the ranks of a skewed one bind its matrix. */
static enum cct_status build_bare(const struct cct_options *cell, struct cct_step *step) {
  struct cct_matrix matrix = {0};
  enum cct_status status = cct_bare_build(cell, &step->job, &matrix);
  if (!status && cct_cell_workload(cell) == CCT_WORKLOAD_COLLECTIVE && cell->v[CCT_OPT_ITERS].has_value)
    count_iterations(cell, step);
  if (!status && cct_cell_workload(cell) == CCT_WORKLOAD_PROBE && !strcmp(cell->v[CCT_OPT_PROBE_NAME].s, "experiment"))
    status = cct_experiment_parse(cell->v[CCT_OPT_EXPERIMENT].s, &step->experiment);
  if (status || !matrix.n)
    return status;
  step->store = calloc(1, sizeof *step->store);
  step->bindings = calloc((size_t)step->job->ranks, sizeof *step->bindings);
  if (!step->store || !step->bindings) {
    free(matrix.bytes);
    return cct_fail(CCT_NOMEM, "out of memory");
  }
  step->store->matrix = matrix;
  for (int rank = 0; rank < step->job->ranks; rank++)
    step->bindings[rank].matrices = &step->store->matrix;
  return CCT_OK;
}

enum cct_status cct_step_build(const struct cct_options *cell, struct cct_step *step_out) {
  struct cct_step step = {0};
  enum cct_status status;
  if (cell->v[CCT_OPT_PROGRAM].has_value && (cell->v[CCT_OPT_MODEL].has_value || cell->v[CCT_OPT_WORKLOAD].has_value))
    return cct_fail(CCT_USAGE, "a cell has a program, or a model and a workload, not both");
  if (cell->v[CCT_OPT_PROGRAM].has_value)
    status = load_program(cell, &step);
  else if (cct_cell_workload(cell) == CCT_WORKLOAD_COLLECTIVE || cct_cell_workload(cell) == CCT_WORKLOAD_PROBE)
    status = build_bare(cell, &step);
  else
    status = build_model(cell, &step);
  if (status) {
    cct_step_free(&step);
    return status;
  }
  step.checks = cell->v[CCT_OPT_CHECK].has_value ? cell->v[CCT_OPT_CHECK].i : 1;
  *step_out = step;
  return CCT_OK;
}

void cct_step_free(struct cct_step *step) {
  if (!step)
    return;
  cct_job_free(step->job);
  cct_job_free(step->checkpoint);
  cct_serve_free(step->serve);
  free(step->bindings);
  if (step->store) {
    cct_moe_draw_free(&step->store->draw);
    free(step->store->matrix.bytes);
    free(step->store->slots);
  }
  free(step->store);
  memset(step, 0, sizeof *step);
}
