/* SPDX-License-Identifier: Apache-2.0
 * Which ranks behave alike. Ranks of one role with equal bindings whose partners in every group behave alike too have
 * equal times by the law, so one of them stands for all: the coarsest equitable partition that refines (role, key),
 * found by colour refinement (Hopcroft's partitioning argument). Computed by every process from the job and the keys of
 * all ranks, so that it does not depend on the number of processes. */
#ifndef CCT_WORKLOADS_BACKENDS_SIM_RANKS_H
#define CCT_WORKLOADS_BACKENDS_SIM_RANKS_H

#include "workloads/backends/sim_law.h"

struct sim_class {
  int rank; /* the lowest of its ranks stands for all */
  int role;
  int *meeting; /* by group: number of the set of classes that its collectives meet; -1: it has none in that group */
  int *peer;    /* by message of its plan: the class at the other end, and the message there */
  int *peer_message;
};

struct sim_meeting { /* the classes whose members meet in one group's collectives */
  int group, n_classes, n_collectives;
  int *classes;
};

struct sim_ranks {
  int *class_of; /* by rank */
  struct sim_class *classes;
  struct sim_meeting *meetings;
  int n_classes, n_meetings;
};

/* `keys` (one a rank) tell apart what differs by binding; plans are by role. */
enum cct_status sim_ranks_new(const struct cct_job *job, struct sim_plan *const *plans, const uint64_t *keys,
                              struct sim_ranks **ranks_out) CCT_CHECKED;
void sim_ranks_free(struct sim_ranks *ranks); /* NULL-safe */

#endif
