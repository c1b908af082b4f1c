/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mpi_runner/block.h"
#include "workloads/backends/exposure.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

#define TRACED_STEPS 5 /* of an executor loaded to be traced; they wobble with what is around them */

static void set_metric(struct cct_metric *metric, const char *prefix, const char *name, const char *unit,
                       const char *better) {
  snprintf(metric->name, sizeof metric->name, "%s%s", prefix, name);
  snprintf(metric->unit, sizeof metric->unit, "%s", unit);
  snprintf(metric->better, sizeof metric->better, "%s", better);
}

/* `metrics` has room for three an exposure. */
static int exposure_metrics(const struct cct_job *job, struct cct_metric *metrics) {
  struct cct_exposure exposures[CCT_MOST_EXPOSURES];
  int n = cct_exposure_list(job->roles[0].program, exposures), at = 0;
  char name[32];
  for (int i = 0; i < n; i++) {
    cct_exposure_name(job, &exposures[i], name);
    set_metric(&metrics[at++], CCT_METRIC_SPENT, name, "us", "lower");
    set_metric(&metrics[at++], CCT_METRIC_EXPOSED, name, "us", "lower");
    if (job->n_roles == 1)
      set_metric(&metrics[at++], CCT_METRIC_MOVED, name, "us", "lower");
  }
  return at;
}

enum cct_status cct_block_metrics(const struct cct_options *cell, struct cct_metric **metrics_out, int *n_out) {
  struct cct_metric *metrics = calloc(CCT_MOST_METRICS + 3 * CCT_MOST_EXPOSURES + 2, sizeof *metrics);
  enum cct_workload workload = cct_cell_workload(cell);
  struct cct_step step = {0};
  int n = 0;
  if (!metrics)
    return cct_fail(CCT_NOMEM, "out of memory");
  if (workload == CCT_WORKLOAD_SERVE)
    n = cct_block_serve_metrics(cell, metrics);
  cct_log_mute(1); /* a cell that makes no step says so where it is performed */
  enum cct_status built = cct_step_build(cell, &step);
  cct_log_mute(0);
  const struct cct_experiment *experiment = built ? NULL : step.experiment.experiment;
  for (; experiment && n < cct_experiment_outputs(experiment); n++)
    set_metric(&metrics[n], "", experiment->outputs[n].name, experiment->outputs[n].unit,
               experiment->outputs[n].better);
  if (!n)
    set_metric(&metrics[n++], "", "step", "us", "lower");
  if (!built && step.checkpoint)
    set_metric(&metrics[n++], "", "checkpoint_step", "us", "lower");
  if (!built && !experiment && (workload < CCT_WORKLOAD_SERVE || workload == CCT_WORKLOAD_NONE))
    n += exposure_metrics(step.job, metrics + n);
  cct_step_free(&step);
  *metrics_out = metrics;
  *n_out = n;
  return CCT_OK;
}

struct seen { /* of the steps traced so far */
  const struct cct_tracing *tracing;
  struct cct_exposure *exposures;                  /* [rank owned * n + exposure] of the step in hand */
  struct cct_sample *rows[2 * CCT_MOST_EXPOSURES]; /* [metric][step * count + rank] */
  struct cct_sample *moved[CCT_MOST_EXPOSURES];    /* [step], process 0's */
  double *moved_ns;
  struct cct_span *spans;
  int n, first, count, n_moved, most_ops, steps;
};

static void seen_free(struct seen *seen) {
  free(seen->exposures);
  for (int m = 0; m < 2 * seen->n; m++)
    free(seen->rows[m]);
  for (int i = 0; i < seen->n; i++)
    free(seen->moved[i]);
  free(seen->moved_ns);
  free(seen->spans);
}

static enum cct_status seen_open(const struct cct_tracing *t, struct cct_executor *executor, int steps,
                                 struct seen *seen) {
  struct cct_exposure exposures[CCT_MOST_EXPOSURES];
  *seen = (struct seen){.tracing = t, .n = cct_exposure_list(t->job->roles[0].program, exposures), .steps = steps};
  t->ops->owned(executor, &seen->first, &seen->count);
  for (int r = 0; r < t->job->n_roles; r++)
    if (t->job->roles[r].program->n_ops > seen->most_ops)
      seen->most_ops = t->job->roles[r].program->n_ops;
  size_t rows = (size_t)seen->count * (size_t)steps + 1;
  seen->n_moved = t->job->n_roles == 1 ? cct_exposure_collectives(t->job->roles[0].program) : 0;
  seen->spans = calloc((size_t)seen->most_ops + 1, sizeof *seen->spans);
  seen->exposures = calloc((size_t)seen->count * (size_t)seen->n + 1, sizeof *seen->exposures);
  seen->moved_ns = calloc((size_t)seen->n_moved + 1, sizeof *seen->moved_ns);
  int is_whole = seen->spans && seen->exposures && seen->moved_ns;
  for (int m = 0; m < 2 * seen->n; m++)
    is_whole &= (seen->rows[m] = calloc(rows, sizeof **seen->rows)) != NULL;
  for (int i = 0; i < seen->n; i++)
    is_whole &= (seen->moved[i] = calloc((size_t)steps + 1, sizeof **seen->moved)) != NULL;
  return is_whole ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory: traces of %d ranks", seen->count);
}

/* The step that the executor performed last. The meeting hears of what fails here with the next agreement. */
static enum cct_status look(struct seen *seen, struct cct_executor *executor, int step) {
  const struct cct_tracing *t = seen->tracing;
  enum cct_status status = CCT_OK;
  for (int k = 0; k < seen->n_moved; k++)
    seen->moved_ns[k] = INFINITY;
  for (int r = 0; !status && r < seen->count; r++) {
    const struct cct_program *program = cct_job_role(t->job, seen->first + r)->program;
    struct cct_exposure *own = seen->exposures + r * seen->n;
    (void)cct_exposure_list(t->job->roles[0].program, own);
    status = t->ops->trace(executor, r, seen->spans);
    if (!status)
      status = cct_exposure_add(program, seen->spans, own, seen->n, seen->n_moved ? seen->moved_ns : NULL);
    for (int m = 0; !status && m < 2 * seen->n; m++)
      seen->rows[m][step * seen->count + r] =
          (struct cct_sample){.rank = seen->first + r,
                              .index = step,
                              .n = 1,
                              .start_ns = step,
                              .value = (m & 1 ? own[m / 2].exposed_ns : own[m / 2].spent_ns) / 1e3};
  }
  return status;
}

static enum cct_status meet(struct seen *seen, int step) {
  const struct cct_tracing *t = seen->tracing;
  const struct cct_program *program = t->job->roles[0].program;
  struct cct_exposure exposures[CCT_MOST_EXPOSURES];
  double sums_ns[CCT_MOST_EXPOSURES] = {0};
  int k = 0, n = cct_exposure_list(program, exposures);
  enum cct_status status =
      seen->n_moved ? t->meeting->ops->allreduce_f64(t->meeting, seen->moved_ns, (size_t)seen->n_moved, CCT_REDUCE_MIN)
                    : CCT_OK;
  for (int id = 0; seen->n_moved && id < program->n_ops; id++) {
    if (program->ops[id].kind != CCT_OP_COLLECTIVE)
      continue;
    int i = cct_exposure_find(exposures, n, &program->ops[id]);
    if (i >= 0 && isfinite(seen->moved_ns[k]))
      sums_ns[i] += seen->moved_ns[k];
    k++;
  }
  for (int i = 0; i < seen->n; i++)
    seen->moved[i][step] = (struct cct_sample){.index = step, .n = 1, .start_ns = step, .value = sums_ns[i] / 1e3};
  return status;
}

static enum cct_status agree(const struct cct_tracing *t, enum cct_status status) {
  return cct_world_agree(t->meeting, status, t->options->name, t->options->patience_ns);
}

static enum cct_status look_at_all(struct seen *seen, struct cct_executor *executor, int is_performed) {
  const struct cct_tracing *t = seen->tracing;
  struct cct_measure_options once = *t->options;
  enum cct_status status = CCT_OK;
  once.samples = 1;
  once.repetitions = 1;
  for (int step = 0; !status && step < seen->steps; step++) {
    struct cct_measured measured = {0};
    once.warmup = step ? 0 : 2;
    if (!is_performed)
      status = cct_measure(t->meeting, t->ops, executor, t->bindings, &once, &measured);
    cct_measured_free(&measured);
    if (!status)
      status = agree(t, look(seen, executor, step));
    if (!status)
      status = meet(seen, step);
  }
  return status;
}

static enum cct_status record(struct seen *seen) {
  const struct cct_tracing *t = seen->tracing;
  enum cct_status status = CCT_OK;
  int metric = t->first_metric;
  for (int m = 0; !status && m < 2 * seen->n; m++) {
    status =
        cct_block_append(t->members, t->record, t->cell, metric++, seen->rows[m], (int64_t)seen->count * seen->steps);
    if (m % 2 == 0 || t->job->n_roles > 1)
      continue;
    if (!status && t->members->rank == 0)
      status = cct_record_append(t->record, t->cell, metric, seen->moved[m / 2], seen->steps);
    metric++;
  }
  return agree(t, status);
}

enum cct_status cct_block_expose(const struct cct_tracing *t, struct cct_executor **executor) {
  struct cct_exposure exposures[CCT_MOST_EXPOSURES];
  struct seen seen = {0};
  int is_performed = !t->ops->set_traced;
  enum cct_status status = CCT_OK;
  if (!t->ops->trace || !cct_exposure_list(t->job->roles[0].program, exposures))
    return CCT_OK;
  if (!is_performed) {
    t->ops->unload(*executor);
    *executor = NULL;
    t->ops->set_traced(t->backend, 1);
    status = agree(t, t->ops->load(t->backend, t->job, executor));
    t->ops->set_traced(t->backend, 0);
  }
  if (!status)
    status = agree(t, seen_open(t, *executor, is_performed ? 1 : TRACED_STEPS, &seen));
  if (!status)
    status = look_at_all(&seen, *executor, is_performed);
  if (!status)
    status = record(&seen);
  seen_free(&seen);
  return status;
}
