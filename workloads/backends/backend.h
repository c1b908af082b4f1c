/* SPDX-License-Identifier: Apache-2.0
 * A backend performs step programs: cuda, host, sim. Called from one thread; the world is borrowed. Every call is
 * collective over the world's processes unless it says otherwise. */
#ifndef CCT_WORKLOADS_BACKENDS_BACKEND_H
#define CCT_WORKLOADS_BACKENDS_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/world.h"
#include "workloads/program/counts.h"
#include "workloads/program/emulate.h"
#include "workloads/program/price.h"

struct cct_backend;  /* an open backend */
struct cct_executor; /* a loaded job: buffers, communicators, graphs */

struct cct_fact { /* of class identity, condition, replicate or drift (record/record.h) */
  char name[48], fact_class[12], value[128];
};

struct cct_backend_options {
  const struct cct_profile *machine;  /* sim: the machine it plays (its clear column) */
  int has_multicast;                  /* sim: 0 under stripped and emulated */
  const struct cct_profile *emulated; /* the profile whose surcharges the program carries, or NULL */
  const char *noise_file;             /* sim, tests; NULL: none */
  uint64_t noise_seed;                /* folded from (seed, boot, block, cell) */
  int is_shared_gpu;
  int64_t scale; /* host: sizes are divided by it */
  int64_t deadline_ns;
  int is_traced; /* keep what trace() tells; where that costs time (cuda) trace() is refused without */
};

/* What one burst took. `rank_ns` has one value for each rank this process owns, in rank order: the whole burst, not
 * divided. */
struct cct_burst {
  int64_t start_ns; /* on this process's clock */
  int64_t *rank_ns; /* the caller's, at least n_owned */
};

/* Steps with different bindings, back to back: what a scheduler decides between them. Lane clocks carry over from step
 * to step (law 8). A step is asked for when the rank's first host lane is through with the step before; no host lane
 * begins it earlier. Where the times are a clock's, all host lanes have also to be through with the step
 * CCT_SEQUENCE_DEPTH before. That is the room that there is for bindings, and models nothing: a lane that has to be
 * near another awaits it. Host lanes fall behind where caches go through the host under CC: by up to 20 decode steps
 * where one is 144 MiB, 1024 tokens of an 8B model (examples/serve-disaggregated.json); who is held by a longer copy is
 * told (mpi_runner/serving_run.c). */
enum {
  CCT_SEQUENCE_DEPTH = 64
};
enum {
  CCT_SEQUENCE_OVER = 1,
  CCT_SEQUENCE_PASSED
};
struct cct_sequence {
  void *context;
  /* Before step `index`. now_ns: [owned], the time since the start. Fills bindings_out[owned] (what they point to stays
   * unchanged until step index + CCT_SEQUENCE_DEPTH is asked for), not_before_ns_out[owned] (the first host lane idles
   * until then: nothing to serve yet; 0: no), and is_over_out[owned] (1: this rank performs nothing from here on;
   * CCT_SEQUENCE_PASSED: nothing at this index, as if it had not been asked; its other answers are not read). Called
   * from the one thread that may use the world; on every process for every step until all its ranks are over. Ranks
   * that meet in a collective have to get the same cases. */
  enum cct_status (*next)(void *context, int64_t index, const int64_t *now_ns, struct cct_binding *bindings_out,
                          int64_t *not_before_ns_out, int *is_over_out);
  int64_t most_steps; /* one more that is not over is CCT_USAGE */
  /* [step * owned * n_host_lanes + owned * n_host_lanes + lane], the caller's: when each host lane, in lane order, was
   * through with its entries of each step, since the start; -1: the rank has no such lane, or was over. n_host_lanes is
   * cct_job_host_lanes(). */
  int64_t *lane_end_ns;
  int n_host_lanes; /* out */
  /* Out, before the first next(): its times are a law's (sim), so that next() cannot wait for them to pass; it orders
   * the ranks' steps by them, by CCT_SEQUENCE_PASSED, which belongs here alone. */
  int is_virtual;
  /* Out, likewise: when the rank's host lane was through with this step, as lane_end_ns says; -1: it is not. Where
   * is_virtual it may lie ahead. */
  int64_t (*lane_end)(struct cct_executor *executor, int owned, int lane, int64_t step);
  /* Out, before the first next(): what next() has to call again and again while it waits for another process, which it
   * does by a started operation and its test, never by a blocking one: on host, exchanges go on only then. */
  enum cct_status (*progress)(struct cct_executor *executor);
  int64_t steps;     /* out: performed by the rank owned here that performed most */
  double binding_us; /* out: host time from next()'s return to the first entry, the median of steps; 0 on sim */
};

struct cct_span { /* of one entry, since the start of its burst; both -1: the entry takes no time of its own (PHASE,
                     CASE, END), or the binding did not perform it */
  int64_t start_ns, end_ns;
};

struct cct_wrong { /* what verify found */
  int64_t elements, wrong;
  char first[160]; /* the first wrong one, for the error line */
};

struct cct_backend_ops {
  const char *name;
  /* 1 if this machine can open it; else 0 and one line of why in `why`. Not collective. */
  int (*available)(char *why, size_t n);
  enum cct_status (*open)(const struct cct_world *world, const struct cct_backend_options *options,
                          struct cct_backend **backend_out);
  void (*close)(struct cct_backend *backend); /* NULL-safe */
  /* Adds up to `max` facts of the machine and libraries this process runs on; returns how many. Not collective. */
  int (*facts)(struct cct_backend *backend, struct cct_fact *facts, int max);
  /* Buffers, communicators, graphs. The job is borrowed until unload. CCT_UNSUPPORTED with one line when it cannot. */
  enum cct_status (*load)(struct cct_backend *backend, const struct cct_job *job, struct cct_executor **executor_out);
  void (*unload)(struct cct_executor *executor); /* NULL-safe */
  /* Ranks this process owns: [*first_out, *first_out + *count_out). Not collective. */
  void (*owned)(const struct cct_executor *executor, int *first_out, int *count_out);
  /* n back-to-back repetitions of one step, closed by one synchronisation. A timed call, called only by the one
   * timing loop. bindings[r] belongs to owned rank r; NULL: each program's defaults. */
  enum cct_status (*step)(struct cct_executor *executor, const struct cct_binding *bindings, int n,
                          struct cct_burst *burst);
  /* One sequence, closed by one synchronisation: rank_ns from the start to its end. CCT_UNSUPPORTED with a line where
   * it cannot. The other timed call, called only by the one timing loop's file; may be NULL. */
  enum cct_status (*sequence)(struct cct_executor *executor, struct cct_sequence *sequence, struct cct_burst *burst);
  /* Untimed: poisons outputs, performs one step, checks values. bindings: as for step. */
  enum cct_status (*verify)(struct cct_executor *executor, const struct cct_binding *bindings,
                            struct cct_wrong *wrong_out);
  /* Counts as performed, by rank owned first; on cuda from the captured graph's nodes. Not collective. */
  enum cct_status (*counts)(struct cct_executor *executor, struct cct_counts *counts_out);
  /* Probes and trials that are no program; `series` receives up to `max` values of the experiment. CCT_UNSUPPORTED if
   * unknown. */
  enum cct_status (*experiment)(struct cct_backend *backend, const char *name, const double *parameters,
                                int n_parameters, double *series, int max, int *n_out);
  /* When each entry of the program of the rank owned as number `owned` ran in the last repetition of the last step:
   * spans[0..n_ops-1]. What the conformance suite holds against the law. A GROUP and a GRAPH span what they hold. Not
   * collective; may be NULL. */
  enum cct_status (*trace)(struct cct_executor *executor, int owned, struct cct_span *spans);
  /* Whether jobs loaded from here on keep what trace() tells, whatever the backend was opened with; NULL: they always
   * do. Not collective. */
  void (*set_traced)(struct cct_backend *backend, int is_traced);
  /* How the collective library performs the program's first collective, in its own words ("RING LL128 24 channels"), or
   * "" where it does not say; untimed, and the library performs it once more. May be NULL. */
  enum cct_status (*choice)(struct cct_executor *executor, char *text, size_t n);
};

/* All backends this build has, NULL-terminated: cuda (when built), host, sim. */
extern const struct cct_backend_ops *const cct_backends[];
const struct cct_backend_ops *cct_backend_by_name(const char *name); /* NULL: this build has none of that name */

#endif
