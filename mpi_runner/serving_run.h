/* SPDX-License-Identifier: Apache-2.0
 * A serving cell performed: the engines' schedulers between the steps of a sequence, and what was made of it. Every
 * process decides for each engine that it owns a rank of; only where requests arrive in seconds does the decision need
 * a time, that of the engine's first rank, whose process tells it to the others. */
#ifndef CCT_MPI_RUNNER_SERVING_RUN_H
#define CCT_MPI_RUNNER_SERVING_RUN_H

#include "base/world.h"
#include "workloads/backends/measure.h"
#include "workloads/steps/serve.h"

struct cct_serving_engine { /* one whose first rank is this process's */
  int number;               /* its first rank is number x ranks */
  struct cct_serve_row *rows;
  int64_t n;
  struct cct_serve_times times;
  struct cct_heard *heard; /* prompts and generation apart: from whom, and in front of which step */
  int64_t n_heard;
};

struct cct_serving_result {
  int64_t start_ns;  /* on this process's clock; what rows count from */
  int64_t origin_ns; /* on the same, when the first process of this machine started, which the run began with: what
                        times of requests and gaps count from */
  int is_virtual;    /* times are a law's, and both the same everywhere */
  double binding_us;
  struct cct_serving_engine *engines;
  int n_engines;
};

struct cct_serving_run {
  const struct cct_world *world; /* of the processes that the backend was opened with, and that nothing else uses */
  const struct cct_backend_ops *ops;
  struct cct_executor *executor;
  const struct cct_job *job;
  const struct cct_serve *serve;
  const struct cct_requests *requests;
  struct cct_measure_options measure;
  /* What stands for the time at which a step is decided, in tests and replays: NULL, the backend's clock. */
  int64_t (*clock)(void *context, int engine, int64_t step, int64_t now_ns);
  void *clock_context;
  /* Prompts and generation apart: what an engine of another run heard, and how many steps it took; NULL: no replay. */
  const struct cct_heard *(*heard)(void *clock_context, int engine, int64_t *n_out, int64_t *steps_out);
};

/* One run of all requests, from the first to the last token. Collective. */
enum cct_status cct_serving_perform(const struct cct_serving_run *run,
                                    struct cct_serving_result *result_out) CCT_CHECKED;
void cct_serving_result_free(struct cct_serving_result *result); /* NULL-safe; leaves it zero */

/* One sequence of run's job, of which this process owns `count` ranks, with room for its lanes' times, which the caller
 * frees. Collective. */
enum cct_status cct_serving_measure(const struct cct_serving_run *run, int count, struct cct_sequence *sequence,
                                    int64_t *start_ns_out) CCT_CHECKED;

/* ---- serving_warm.c ---- */

/* Untimed: a step of each form and size that a run may take, first alone, then one behind the other, so that buffers
 * are there, graphs are captured and shapes are known. Collective. */
enum cct_status cct_serving_warm(const struct cct_serving_run *run) CCT_CHECKED;

/* For verifying: of every rank a step that makes each copy which only some steps make, of one block, in one piece of
 * memory that the caller frees. NULL where no step makes any. */
enum cct_status cct_serving_bind_copies(const struct cct_job *job, const struct cct_serve *serve,
                                        struct cct_binding **bindings_out) CCT_CHECKED;

#endif
