/* SPDX-License-Identifier: Apache-2.0
 * Private to serving_*.c: what decides the steps of a sequence. */
#ifndef CCT_MPI_RUNNER_SERVING_DRIVER_H
#define CCT_MPI_RUNNER_SERVING_DRIVER_H

#include "mpi_runner/serving_run.h"

#define CCT_SERVING_HELD 0.01 /* of its time that an engine may be held by the room for bindings */

struct serving_engine {
  int number, first_rank, ranks;
  int first_owned, n_owned; /* of its ranks, here: places among the owned ones */
  int leader, is_leader;    /* the process of its first rank */
  int is_over;
  struct cct_engine *engine;  /* NULL: the cluster's */
  struct cct_serve_row *rows; /* the leader's */
  size_t n, capacity;
  int64_t moved; /* its steps whose transfers are known to be done */
};

struct serving_stages;
struct serving_driver {
  const struct cct_serving_run *run;
  const struct cct_program *program;
  struct cct_sequence *sequence;
  int first, count;
  int *owners; /* [process]: first rank that it owns; [size]: ranks */
  struct serving_engine *engines;
  int n_engines;
  int64_t *slots;                /* [steps in use at once][count][n_slots] */
  int64_t *submissions;          /* by form, swap_out, swap_in; -1: not counted yet */
  struct serving_stages *stages; /* prompts and generation apart; else NULL */
  double held;                   /* the worst of the engines here */
  int64_t offset_ns;             /* of this process's start behind the run's */
};

/* Until the started operation is done, others' exchanges going on. */
enum cct_status cct_serving_finish(struct serving_driver *driver, struct cct_request *request) CCT_CHECKED;
/* The leader's time, on every process that has a rank of the engine. */
enum cct_status cct_serving_agree(struct serving_driver *driver, const struct serving_engine *engine,
                                  int64_t *now_ns) CCT_CHECKED;

/* ---- serving_stages.c ---- */

enum cct_status cct_stages_open(struct serving_driver *driver) CCT_CHECKED; /* its engines are open */
void cct_stages_close(struct serving_driver *driver);
/* In front of the steps at `index` of all engines here. */
enum cct_status cct_stages_ask(struct serving_driver *driver, const int64_t *now_ns) CCT_CHECKED;
/* One engine's; *now_ns becomes when it was decided. *passed_out: it has none now, and is asked again. */
enum cct_status cct_stages_next(struct serving_driver *driver, struct serving_engine *engine, int64_t *now_ns,
                                struct cct_engine_step *step_out, int *passed_out) CCT_CHECKED;
struct cct_history cct_stages_history(const struct serving_driver *driver, const struct serving_engine *engine);

/* ---- serving_times.c ---- */

/* When the run began, which started here at result's start_ns; of processes on several machines, whose clocks have
 * nothing in common, each where it started. Collective. */
enum cct_status cct_serving_find_origin(struct serving_driver *driver, struct cct_serving_result *result) CCT_CHECKED;
/* Of an engine that needs no other. */
enum cct_status cct_serving_take_times(const struct serving_driver *driver, struct serving_engine *engine,
                                       struct cct_serve_times *times_out) CCT_CHECKED;
/* Of all engines here, whose `times` and `heard` are filled: each request's by the engine that ended it. Collective. */
enum cct_status cct_stages_times(struct serving_driver *driver, struct cct_serving_result *result) CCT_CHECKED;
/* Of the engine's time, what it could not go on because another host lane of its first rank was CCT_SEQUENCE_DEPTH
 * steps behind: 0 to 1. After the times are noted. */
double cct_serving_held(const struct serving_driver *driver, const struct serving_engine *engine);

/* ---- serving_letters.c: between engines whose processes each have a clock ---- */

struct serving_letters;
enum cct_status cct_letters_open(struct serving_driver *driver, const struct cct_cluster_plan *plan,
                                 struct serving_letters **letters_out) CCT_CHECKED;
void cct_letters_close(struct serving_letters *letters); /* NULL-safe */
enum cct_status cct_letters_send(struct serving_letters *letters, int from, int to,
                                 const struct cct_notice *notice) CCT_CHECKED;
/* The next letter from that engine, if there is one now. */
enum cct_status cct_letters_take(struct serving_letters *letters, int from, struct cct_notice *notice_out,
                                 int *has_out) CCT_CHECKED;
enum cct_status cct_letters_drain(struct serving_letters *letters, int *is_drained_out) CCT_CHECKED; /* all are sent */
/* What a leader decided on, told to the other processes of its engine: the steps whose transfers are done, what was
 * heard; n -1: no more steps. On those, from it: into `heard`, which has room for all. */
enum cct_status cct_letters_share(struct serving_letters *letters, const struct serving_engine *engine, int64_t *now_ns,
                                  int64_t *moved, struct cct_notice *heard, int64_t *n) CCT_CHECKED;

#endif
