/* SPDX-License-Identifier: Apache-2.0
 * Law 4 across ranks: who has come to a collective or a message, and when it starts and ends for all. One process holds
 * a copy of all of it; what one process learns it tells the others in ONE all-gather a round. */
#ifndef CCT_WORKLOADS_BACKENDS_SIM_MEET_H
#define CCT_WORKLOADS_BACKENDS_SIM_MEET_H

#include "workloads/backends/sim_ranks.h"

struct sim_arrival { /* a class stands ready at an entry that needs others */
  int class, id;
  int64_t ready_ns, run_ns;
};

struct sim_decision { /* the entry starts and ends so for this class */
  int class, id;
  int64_t start_ns, end_ns;
};

struct sim_meet;
enum cct_status sim_meet_new(const struct sim_ranks *ranks, struct sim_plan *const *plans,
                             struct sim_meet **meet_out) CCT_CHECKED;
void sim_meet_free(struct sim_meet *meet);  /* NULL-safe */
void sim_meet_clear(struct sim_meet *meet); /* before each repetition */
/* Takes one arrival; *decisions_out (the meet's, until the next call) holds what it decides, returned: how many. */
int sim_meet_take(struct sim_meet *meet, const struct sim_arrival *arrival, const struct sim_decision **decisions_out);

#endif
