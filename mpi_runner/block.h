/* SPDX-License-Identifier: Apache-2.0
 * One block: the cells of a run under one arm, performed by all processes of a world and recorded by process 0. */
#ifndef CCT_MPI_RUNNER_BLOCK_H
#define CCT_MPI_RUNNER_BLOCK_H

#include "base/world.h"
#include "mpi_runner/agenda.h"
#include "record/record.h"
#include "workloads/backends/measure.h"

/* Performs what is not done of block `block` and finishes its file. Collective. CCT_FOUND when a cell failed. A cell
 * that cannot be performed here is recorded as refused, with its reason. */
enum cct_status cct_block_perform(const struct cct_world *world, const char *run, const struct cct_agenda *agenda,
                                  int block) CCT_CHECKED;

/* ---- block_facts.c ---- */

struct cct_fact_list {
  struct cct_record_fact items[256];
  int n;
};
void cct_fact_add(struct cct_fact_list *list, enum cct_fact_class fact_class, const char *name, const char *format, ...)
    CCT_PRINTF(4, 5);

/* Refuses, on every process, a process whose tool, agenda, profiles or libraries differ from process 0's, naming it. */
enum cct_status cct_block_agree(const struct cct_world *world, const struct cct_agenda *agenda) CCT_CHECKED;

struct cct_block_binding { /* over all processes; as struct cct_binding_facts */
  int least_cores, most_cores, near_gpu;
};
/* Binds each process to its cores; before the backend is opened, whose threads then stay where their rank is.
 * Collective. */
enum cct_status cct_block_bind(const struct cct_world *world, struct cct_block_binding *binding_out) CCT_CHECKED;

/* The facts of the block as process 0 records them at its creation; `backend` is open on `world`. Collective: a
 * backend's identity fact that differs between processes is refused, naming the process (GPU uuids differ and are
 * recorded as one digest). */
enum cct_status cct_block_facts(const struct cct_world *world, const struct cct_agenda *agenda,
                                const struct cct_block_at *at, const struct cct_backend_ops *ops,
                                struct cct_backend *backend, const struct cct_block_binding *binding,
                                struct cct_fact_list *facts_out) CCT_CHECKED;

#define CCT_MOST_DRIFT 24
struct cct_block_drift { /* each fact's values so far: of a number its range, "38 to 47" */
  struct cct_record_fact items[CCT_MOST_DRIFT];
  int n;
};
/* Adds the backend's drift facts as they are now, on this process. */
void cct_block_drift_read(const struct cct_backend_ops *ops, struct cct_backend *backend,
                          struct cct_block_drift *drift);
/* Adds what the other processes saw to process 0's. Collective. */
enum cct_status cct_block_drift_gather(const struct cct_world *world, struct cct_block_drift *drift) CCT_CHECKED;

/* ---- block_environment.c ---- */

/* What NCCL reads when it is first used, as the arm wants it: what the profile's capability takes away, and the factors
 * tuner (a plugin's name; `tuned`: the variables of nccl.conf in the folder above RUN), net, choice and registration.
 * Before the backend is opened. A profile may be NULL. */
enum cct_status cct_block_environment(const struct cct_agenda *agenda, const struct cct_block_at *at, const char *run,
                                      const struct cct_profile *machine,
                                      const struct cct_profile *emulated) CCT_CHECKED;
/* Every variable of NCCL's and of this product's plugins that is set, as a condition fact. */
void cct_block_environment_facts(struct cct_fact_list *list);

/* ---- block_samples.c ---- */

/* Appends every rank's samples (us a step, or one of the `operations` that a step counts) to `record`, which only
 * process 0 has, in rank order: the same rows however many processes share the ranks. Collective. Process 0 receives
 * all of them also when the disk is full, so that no sender waits for ever. */
enum cct_status cct_block_collect(const struct cct_world *world, struct cct_record *record, int cell, int metric,
                                  const struct cct_measured *measured, int64_t operations) CCT_CHECKED;
/* ---- block_trace.c ---- */

/* The metrics of a cell: those of its experiment or of serving, or "step" (us), for a cell with checkpoints
 * "checkpoint_step" (us: a step that has one), and for steps of a model and programs what exposure.h names. free()
 * them. */
enum cct_status cct_block_metrics(const struct cct_options *cell, struct cct_metric **metrics_out,
                                  int *n_out) CCT_CHECKED;

struct cct_tracing {                         /* of one cell */
  const struct cct_world *members, *meeting; /* as in block_room.h */
  const struct cct_backend_ops *ops;
  struct cct_backend *backend;
  const struct cct_job *job;
  const struct cct_binding *bindings;
  struct cct_record *record; /* process 0's */
  int cell, first_metric;    /* the first of exposure.h's */
  const struct cct_measure_options *options;
};
/* Records what of the job's collectives is exposed, from `executor`, which has just performed it, or where the backend
 * has to be told to trace from a second one, loaded for this alone; the first is then unloaded (and NULL). Nothing
 * where the job has no such collectives. Collective. */
enum cct_status cct_block_expose(const struct cct_tracing *tracing, struct cct_executor **executor) CCT_CHECKED;

/* Appends `n` rows (-1: this process could not make them) of one metric of every process, in the order of processes; as
 * cct_block_collect, which uses it. */
enum cct_status cct_block_append(const struct cct_world *world, struct cct_record *record, int cell, int metric,
                                 const struct cct_sample *rows, int64_t n) CCT_CHECKED;

/* ---- block_serve.c ---- */

#define CCT_MOST_METRICS 24 /* of a cell */
struct cct_serve;
struct cct_block_serve {         /* a serving cell, loaded */
  const struct cct_world *world; /* of the processes that have a rank, and that nothing else uses */
  const struct cct_backend_ops *ops;
  struct cct_backend *backend;
  struct cct_executor *executor;
  const struct cct_job *job; /* as it is performed */
  const struct cct_serve *serve;
  const struct cct_options *cell;
  const struct cct_agenda *agenda;    /* its seed */
  struct cct_measure_options measure; /* repetitions do not count */
  struct cct_record *record;          /* process 0's */
  int index;                          /* of the cell */
  char *said;                         /* out: the schedule in a word */
  size_t said_size;
};
/* Performs and records its samples, each a run of all requests. Collective. */
enum cct_status cct_block_perform_serve(const struct cct_block_serve *call) CCT_CHECKED;
/* The metrics of such a cell, at most CCT_MOST_METRICS; returns how many. */
int cct_block_serve_metrics(const struct cct_options *cell, struct cct_metric *metrics_out);

/* ---- block_record.c: on process 0 ---- */

/* Creates the record of a block, or goes on with PATH.partial where that is of this run, boot and machine. */
enum cct_status cct_block_record(const struct cct_agenda *agenda, const struct cct_block_at *at, const char *path,
                                 int is_emulated, const struct cct_fact_list *facts,
                                 struct cct_record **record_out) CCT_CHECKED;

#endif
