/* SPDX-License-Identifier: Apache-2.0
 * One cell of a block: built, emulated, loaded, verified, timed, recorded. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "mpi_runner/block_room.h"
#include "mpi_runner/serving_run.h"
#include "mpi_runner/totals.h"
#include "mpi_runner/watchdog.h"
#include "workloads/program/emulate.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

/* A burst of a program that is no step of a model lasts at least this long: 1000 times the clock's own cost. */
#define BURST_NS 200000
#define IDLE_TAG 78

/* The same among those who perform the present cell. */
static enum cct_status agree_on_cell(const struct block *block, int cell, enum cct_status status, int64_t seconds) {
  char where[64];
  snprintf(where, sizeof where, "block %d, cell %d", block->at.block, cell);
  return cct_world_agree(block->meeting, status, where, cct_block_patience_ns(block, seconds));
}

/* Processes that have no rank of a cell hear from process 0 that it goes on, so that their own deadline holds. */
enum {
  CELL_GOES_ON,
  CELL_IS_OVER
};

static void tell_idle(const struct block *block, char what) {
  for (int p = block->n_members; p < block->world->size; p++)
    (void)block->world->ops->send(block->world, &what, 1, p, IDLE_TAG); /* one that is gone ends the block elsewhere */
}

static enum cct_status wait_idle(const struct block *block, int cell) {
  char what = CELL_GOES_ON;
  enum cct_status status = CCT_OK;
  while (!status && what == CELL_GOES_ON) {
    cct_watchdog_feed("cell %d, which has no rank here", cell);
    status = block->world->ops->recv(block->world, &what, 1, 0, IDLE_TAG);
  }
  return status;
}

struct progress {
  const struct block *block;
  int cell;
};

/* Process 0 also tells whoever launched the block, at most twice a second, and the idle ones. */
static void feed(void *context, const char *phase, int64_t index) {
  static int64_t told_ns;
  const struct progress *progress = context;
  cct_watchdog_feed("cell %d, %s %lld", progress->cell, phase, (long long)index);
  int64_t now = cct_clock_ns();
  if (progress->block->world->rank || now - told_ns < 500000000)
    return;
  told_ns = now;
  printf("alive\n");
  fflush(stdout);
  tell_idle(progress->block, CELL_GOES_ON);
}

/* Adds the wrong elements of all ranks; the first that anyone found is in `wrong->first`, on every process. */
static enum cct_status verify(struct block *block, struct cct_executor *executor, const struct cct_binding *bindings,
                              int cell, int64_t check, struct cct_wrong *wrong) {
  const struct cct_world *world = block->meeting;
  struct cct_wrong found = {0};
  cct_watchdog_feed("cell %d, verify %lld", cell, (long long)check);
  enum cct_status status = block->ops->verify(executor, bindings, &found);
  status = agree_on_cell(block, cell, status == CCT_UNSUPPORTED ? CCT_OK : status, CCT_STEP_PATIENCE_S);
  int64_t sums[2] = {found.elements, found.wrong}, first = found.wrong ? world->rank : INT_MAX;
  if (!status)
    status = world->ops->allreduce_i64(world, sums, 2, CCT_REDUCE_SUM);
  if (!status && sums[1])
    status = world->ops->allreduce_i64(world, &first, 1, CCT_REDUCE_MIN);
  if (!status && sums[1])
    status = world->ops->bcast(world, found.first, sizeof found.first, (int)first);
  if (!status && sums[1] && !wrong->wrong)
    memcpy(wrong->first, found.first, sizeof wrong->first);
  wrong->elements += sums[0];
  wrong->wrong += status ? 0 : sums[1];
  return status;
}

/* A step of rank 0 by count: as its program, which an emulated arm changed, has it; and as the backend performs it. */
static enum cct_status note_counts(struct block *block, int cell, struct cct_executor *executor,
                                   const struct cct_job *job, const struct cct_binding *bindings) {
  struct cct_counts of[2];
  struct cct_cell_counts kept[2];
  enum cct_status status = CCT_OK;
  if (block->record)
    status = cct_job_totals(job, bindings, 0, &of[0]);
  if (!status && block->record)
    status = block->ops->counts(executor, &of[1]);
  for (int i = 0; !status && block->record && i < 2; i++)
    kept[i] = (struct cct_cell_counts){of[i].submissions, of[i].graphs, of[i].nodes, of[i].kernels};
  if (!status && block->record)
    cct_record_set_counts(block->record, cell, &kept[0], &kept[1]);
  return agree_on_cell(block, cell, status, CCT_STEP_PATIENCE_S);
}

/* What the library chose, as process 0 heard it, for the cell's state. */
static enum cct_status ask_choice(struct block *block, int cell, struct cct_executor *executor) {
  block->choice[0] = '\0';
  if (!block->ops->choice)
    return CCT_OK;
  enum cct_status status = block->ops->choice(executor, block->choice, sizeof block->choice);
  return agree_on_cell(block, cell, status, CCT_STEP_PATIENCE_S);
}

/* Collectives and probes have nothing that could hide them. */
static int is_traced(const struct cct_options *cell) {
  enum cct_workload workload = cct_cell_workload(cell);
  return workload < CCT_WORKLOAD_SERVE || workload == CCT_WORKLOAD_NONE;
}

/* Metric 0 is the step itself, and what a trace of it tells comes behind all that is timed; 1 the step with a
 * checkpoint. */
static enum cct_status perform_job(struct block *block, int cell, int metric, const struct cct_job *job,
                                   const struct cct_step *step, const struct cct_options *cell_options,
                                   int repetitions) {
  struct cct_executor *executor = NULL;
  struct cct_measured measured = {0};
  struct cct_wrong wrong = {0};
  struct cct_binding *copies = NULL; /* of what the plain step of a serving cell does not copy */
  int64_t operations = step->operations ? step->operations : 1;
  struct progress progress = {block, cell};
  char name[64];
  snprintf(name, sizeof name, "block %d, cell %d", block->at.block, cell);
  const struct cct_measure_options options = {
      .warmup = block->agenda->warmup,
      .samples = block->agenda->samples,
      .repetitions = repetitions,
      .burst_ns = BURST_NS,
      .progress = feed,
      .context = &progress,
      .name = name,
      .patience_ns = cct_block_patience_ns(block, CCT_STEP_PATIENCE_S),
  };
  cct_watchdog_feed("cell %d, load", cell);
  enum cct_status status =
      agree_on_cell(block, cell, block->ops->load(block->backend, job, &executor), CCT_LOAD_PATIENCE_S);
  if (!status && metric == 0)
    status = note_counts(block, cell, executor, job, step->bindings);
  if (!status && step->serve)
    status = agree_on_cell(block, cell, cct_serving_bind_copies(job, step->serve, &copies), CCT_STEP_PATIENCE_S);
  for (int64_t c = 0; !status && c < step->checks && !wrong.wrong; c++) {
    status = verify(block, executor, NULL, cell, c, &wrong);
    if (!status && copies)
      status = verify(block, executor, copies, cell, c, &wrong);
  }
  free(copies);
  if (!status && step->repetitions)
    status = ask_choice(block, cell, executor);
  const struct cct_block_serve serve = {
      .world = block->meeting,
      .ops = block->ops,
      .backend = block->backend,
      .executor = executor,
      .job = job,
      .serve = step->serve,
      .cell = cell_options,
      .agenda = block->agenda,
      .measure = options,
      .record = block->record,
      .index = cell,
      .said = block->choice,
      .said_size = sizeof block->choice,
  };
  if (!status && step->serve)
    status = cct_block_perform_serve(&serve);
  else if (!status)
    status = cct_measure(block->meeting, block->ops, executor, step->bindings, &options, &measured);
  if (!status && !step->serve)
    status = cct_block_collect(block->members, block->record, cell, metric, &measured, operations);
  const struct cct_tracing tracing = {.members = block->members,
                                      .meeting = block->meeting,
                                      .ops = block->ops,
                                      .backend = block->backend,
                                      .job = job,
                                      .bindings = step->bindings,
                                      .record = block->record,
                                      .cell = cell,
                                      .first_metric = step->checkpoint ? 2 : 1,
                                      .options = &options};
  if (!status && metric == 0 && is_traced(&block->agenda->cells[cell]))
    status = cct_block_expose(&tracing, &executor);
  cct_measured_free(&measured);
  block->ops->unload(executor);
  if (!status && wrong.wrong)
    status = cct_fail(CCT_FOUND, "%lld of %lld elements are wrong, first %s", (long long)wrong.wrong,
                      (long long)wrong.elements, wrong.first);
  return status;
}

/* An experiment's values, one metric each; process 0 records its own. It measures the machine as it is, so no emulated
 * arm can have it. */
static enum cct_status perform_experiment(struct block *block, int cell, const struct cct_experiment_call *call) {
  const struct cct_experiment *experiment = call->experiment;
  struct progress progress = {block, cell};
  int n_outputs = cct_experiment_outputs(experiment), n;
  int64_t samples = block->agenda->samples;
  enum cct_status status = CCT_OK;
  if (experiment->most_samples && samples > experiment->most_samples)
    samples = experiment->most_samples;
  if (block->emulated)
    return cct_fail(CCT_UNSUPPORTED,
                    "experiment '%s': it measures the machine as it is, and emulation changes programs",
                    experiment->name);
  for (int64_t s = 0; !status && s < samples; s++) {
    double values[CCT_MOST_OUTPUTS];
    int64_t start_ns = cct_clock_ns();
    feed(&progress, "experiment", s);
    status = block->ops->experiment(block->backend, experiment->name, call->parameters, experiment->n_parameters,
                                    values, n_outputs, &n);
    status = agree_on_cell(block, cell, status, CCT_STEP_PATIENCE_S);
    if (!status && n != n_outputs)
      status = cct_fail(CCT_UNSUPPORTED, "experiment '%s': gave %d values, not %d", experiment->name, n, n_outputs);
    for (int i = 0; !status && i < n && block->world->rank == 0; i++) {
      const struct cct_sample sample = {.index = (int32_t)s, .n = 1, .start_ns = start_ns, .value = values[i]};
      status = cct_record_append(block->record, cell, i, &sample, 1);
    }
  }
  return agree_on_cell(block, cell, status, CCT_STEP_PATIENCE_S);
}

/* The program that the agenda was made with, or none: a changed model file would change the cell under its name. */
static enum cct_status check_program(const struct block *block, int cell) {
  struct cct_step step;
  char hex[65];
  enum cct_status status = cct_step_build(&block->agenda->cells[cell], &step);
  if (status)
    return status;
  status = cct_job_digest(step.job, hex);
  cct_step_free(&step);
  if (!status && strcmp(hex, block->agenda->programs[cell]))
    status = cct_fail(CCT_USAGE, "its program is not what it was when the run began (a model or program file changed)");
  return status;
}

/* One of a step of a model, as many as a program's cell says; 0: as many as a burst needs. */
static int repetitions_of(const struct cct_options *cell) {
  enum cct_workload workload = cct_cell_workload(cell);
  if (workload == CCT_WORKLOAD_NONE && cell->v[CCT_OPT_CALLS].is_set)
    return (int)cell->v[CCT_OPT_CALLS].i;
  return workload < CCT_WORKLOAD_COLLECTIVE;
}

/* With what the arm's profile adds. */
static enum cct_status emulate(const struct block *block, const struct cct_job *job, struct cct_job **emulated_out) {
  return block->emulated && job ? cct_emulate(job, block->emulated, CCT_ALL_BOUNDARIES, emulated_out) : CCT_OK;
}

static enum cct_status perform_members(struct block *block, int cell) {
  struct cct_options options = {0};
  struct cct_step step = {0};
  struct cct_job *emulated = NULL, *emulated_checkpoint = NULL;
  enum cct_status status = check_program(block, cell);
  if (!status)
    status = cct_agenda_cell(block->agenda, cell, block->at.arm, &options);
  if (!status)
    status = cct_step_build(&options, &step);
  if (!status)
    status = emulate(block, step.job, &emulated);
  if (!status)
    status = emulate(block, step.checkpoint, &emulated_checkpoint);
  status = agree_on_cell(block, cell, status, CCT_STEP_PATIENCE_S);
  if (!status && step.experiment.experiment)
    status = perform_experiment(block, cell, &step.experiment);
  else if (!status)
    status = perform_job(block, cell, 0, emulated ? emulated : step.job, &step, &options,
                         step.repetitions ? (int)step.repetitions : repetitions_of(&options));
  if (!status && step.checkpoint)
    status =
        perform_job(block, cell, 1, emulated_checkpoint ? emulated_checkpoint : step.checkpoint, &step, &options, 1);
  cct_job_free(emulated);
  cct_job_free(emulated_checkpoint);
  cct_step_free(&step);
  cct_options_free(&options);
  return status;
}

/* The reason of the lowest process that has one, on process 0. */
static enum cct_status gather_reason(const struct cct_world *world, enum cct_status status, char reason_out[120]) {
  int64_t first = status ? world->rank : INT_MAX;
  snprintf(reason_out, 120, "%s", cct_log_last());
  enum cct_status told = world->ops->allreduce_i64(world, &first, 1, CCT_REDUCE_MIN);
  return told || first == INT_MAX ? told : world->ops->bcast(world, reason_out, 120, (int)first);
}

enum cct_status cct_block_perform_cell(struct block *block, int cell) {
  char reason[120];
  block->choice[0] = '\0';
  cct_watchdog_feed("cell %d, start", cell);
  cct_log_mute(1);
  enum cct_status status = cct_block_meet(block, cct_block_open_backend(block, cell));
  if (status) /* on every process alike, so that the next cell opens anew instead of finding none */
    cct_block_close_backend(block);
  if (!status && block->world->rank >= block->n_members) {
    status = wait_idle(block, cell);
  } else if (!status) {
    status = perform_members(block, cell);
    if (block->world->rank == 0)
      tell_idle(block, CELL_IS_OVER);
  }
  enum cct_status worst = cct_block_meet(block, status);
  enum cct_status told = worst ? gather_reason(block->world, status, reason) : CCT_OK;
  cct_log_mute(0);
  if (told)
    return told;
  int is_fatal = worst == CCT_IO || worst == CCT_NOSPACE || worst == CCT_STOPPED || worst == CCT_DAMAGED;
  enum cct_cell_state state = !worst ? CCT_CELL_DONE : worst == CCT_UNSUPPORTED ? CCT_CELL_REFUSED : CCT_CELL_FAILED;
  block->n_failed += state == CCT_CELL_FAILED;
  if (worst && block->world->rank == 0)
    (void)cct_fail(worst, "block %d, cell %d: %s", block->at.block, cell, reason);
  if (is_fatal)
    return worst;
  status =
      block->world->rank ? CCT_OK : cct_record_set_state(block->record, cell, state, worst ? reason : block->choice);
  return cct_block_meet(block, status);
}
