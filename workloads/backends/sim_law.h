/* SPDX-License-Identifier: Apache-2.0
 * The timing law of workloads/program/program.h on one rank, over its plan. A state is one rank in one burst; it runs
 * until all that is left needs an operation of other ranks, and goes on when those are told. Times are int64 ns since
 * the start of the burst; -1: not known yet. */
#ifndef CCT_WORKLOADS_BACKENDS_SIM_LAW_H
#define CCT_WORKLOADS_BACKENDS_SIM_LAW_H

#include "workloads/backends/sim_plan.h"

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
