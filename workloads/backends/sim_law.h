/* SPDX-License-Identifier: Apache-2.0
 * The timing law of workloads/program/program.h on one rank. A plan is what the law needs of a program, worked out
 * once: its lanes as tracks of items. A state is one rank in one burst; it runs until all that is left needs an
 * operation of other ranks, and goes on when those are told. Times are int64 ns since the start of the burst; -1: not
 * known yet. */
#ifndef CCT_WORKLOADS_BACKENDS_SIM_LAW_H
#define CCT_WORKLOADS_BACKENDS_SIM_LAW_H

#include "workloads/backends/backend.h"

struct sim_track { /* a lane, or a lane inside a graph: entries in array order */
  int *ids;
  int n;
};

struct sim_plan {
  const struct cct_program *program;
  struct sim_track *tracks; /* one a lane, then those inside graphs */
  int n_tracks;
  int *end_of;       /* the END of a bracket */
  int *first_branch; /* of a GRAPH: its first track, and how many */
  int *n_branches;
  int *before_on_lane; /* of what stands on a GPU lane outside graphs, and of a SYNC: the entry before on that lane */
  int *number;         /* of a COLLECTIVE: it is the number-th of its group */
  int *collectives;    /* entries that are COLLECTIVEs, by group, then case (law 9), in order */
  int first_collective[13];
  int *messages; /* entries that are SEND or RECV */
  int n_messages;
};

enum cct_status sim_plan_new(const struct cct_job *job, const struct cct_program *program,
                             struct sim_plan **plan_out) CCT_CHECKED;
void sim_plan_free(struct sim_plan *plan); /* NULL-safe */

struct sim_state {
  const struct sim_plan *plan;
  struct cct_duration *durations;
  int64_t *submitted, *start, *end, *previous_end; /* by entry; a start without an end: under way */
  int64_t *clock;                                  /* by track: H of a host lane, G of a GPU lane or branch */
  int64_t *clock_before;                           /* by track: at the end of the repetition before */
  int *next, *is_held;                             /* by track: its next item; a blocking copy holds it */
  char *is_out;                                    /* by entry: this repetition's binding does not perform it */
  int done;                                        /* tracks of lanes at their end */
  int *announced;                                  /* entries that wait for other ranks, since the last call */
  int n_announced;
};

enum cct_status sim_state_init(struct sim_state *state, const struct sim_plan *plan) CCT_CHECKED;
void sim_state_release(struct sim_state *state); /* of a zeroed or initialised state */
/* Which entries the repetitions from here on perform; NULL: none. */
void sim_state_bind(struct sim_state *state, const struct cct_binding *binding);
void sim_state_copy(struct sim_state *state, const struct sim_state *from); /* of the same plan */
/* Host lanes begin what comes no earlier than `asked_ns`, the first of them no earlier than `not_before_ns`. */
void sim_state_hold(struct sim_state *state, int64_t asked_ns, int64_t not_before_ns);
void sim_state_start_burst(struct sim_state *state);
void sim_state_start_repetition(struct sim_state *state);
/* Runs as far as known. Entries that became ready and wait for other ranks are in `announced`, ready at start[id]. */
void sim_state_run(struct sim_state *state);
/* Tells what other ranks decided; sim_state_run goes on. */
void sim_state_tell(struct sim_state *state, int id, int64_t start_ns, int64_t end_ns);
int sim_state_is_done(const struct sim_state *state);     /* with this repetition */
int64_t sim_state_last_ns(const struct sim_state *state); /* the last end on any lane */
/* How far its host lanes are, in lane order; how many there are. */
int sim_state_host_ns(const struct sim_state *state, int64_t *host_ns);
int sim_state_waits_at(const struct sim_state *state); /* the first entry that waits for other ranks; -1: none */

#endif
