/* SPDX-License-Identifier: Apache-2.0
 * What the timing law needs of a program, worked out once: its lanes as tracks of items. */
#ifndef CCT_WORKLOADS_BACKENDS_SIM_PLAN_H
#define CCT_WORKLOADS_BACKENDS_SIM_PLAN_H

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
  int *
      messages; /* entries that are SEND or RECV, n_messages of them; behind these, up to n_peers, copies from a peer */
  int n_messages, n_peers;
};

enum cct_status sim_plan_new(const struct cct_job *job, const struct cct_program *program,
                             struct sim_plan **plan_out) CCT_CHECKED;
void sim_plan_free(struct sim_plan *plan); /* NULL-safe */

/* Takes a place on a GPU lane: operations, GRAPH and GROUP. */
int sim_is_on_lane(const struct cct_op *op);
/* n + 1 of that value; NULL: out of memory. */
int *sim_new_ints(int n, int value);

#endif
