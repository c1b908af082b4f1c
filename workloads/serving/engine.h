/* SPDX-License-Identifier: Apache-2.0
 * An engine: data-parallel replicas that step together, and what became of their requests. Replicas step together where
 * experts are spread over them (they meet in every MoE layer; one without work performs an empty step beside the
 * others); any other replica is an engine of its own. Request i belongs to replica i mod (replicas of all engines).
 *
 * When requests enter a replica, before step s of its engine:
 * closed   its share of `concurrency` (c / n, and one more for the first c mod n replicas) at the start; another one
 * for each that ended before step s - lag zero     all, at the start steps    those with arrival <= s; steps in which
 * nobody has anything to do are passed over seconds  those with arrival <= now; where nobody has anything to do, now is
 * the next arrival So but for `seconds` the steps do not depend on any clock.
 *
 * Tokens of a step become known when it ends, with lag 1 when the step behind it ends, which follows at once, empty
 * where there is nothing else to do. */
#ifndef CCT_WORKLOADS_SERVING_ENGINE_H
#define CCT_WORKLOADS_SERVING_ENGINE_H

#include "workloads/serving/scheduler.h"

struct cct_engine_plan {
  struct cct_limits limits;
  int64_t replicas;        /* of all engines */
  int64_t first, together; /* this engine's */
};

struct cct_engine_step {
  int is_over;                     /* nothing is left to do; the other fields do not count */
  int is_empty;                    /* no replica has a member */
  int64_t start_ns;                /* SECONDS: nobody has anything to do before; 0: begin now */
  int64_t at;                      /* the step's number by which STEPS counts */
  const struct cct_batch *batches; /* [together]; until the next step */
};

struct cct_emission { /* tokens of one request that one step made */
  int64_t request;
  int32_t step, tokens; /* the how-manieth step of the engine, from 0, empty ones counted */
};

struct cct_history {
  const struct cct_emission *emissions; /* in the order of steps */
  int64_t n_emissions;
  const int64_t *arrival_steps; /* by request: STEPS: the step that it entered in front of */
  const int64_t *room_steps; /* by request: CLOSED: the step whose end made room for it; -1: it was among the first */
  int64_t steps;
};

struct cct_engine;
enum cct_status cct_engine_new(const struct cct_engine_plan *plan, const struct cct_requests *requests,
                               struct cct_engine **engine_out) CCT_CHECKED;
void cct_engine_free(struct cct_engine *engine); /* NULL-safe */
/* The next step, at `now_ns` since the start. CCT_NOMEM only. */
enum cct_status cct_engine_next(struct cct_engine *engine, int64_t now_ns,
                                struct cct_engine_step *step_out) CCT_CHECKED;
struct cct_history cct_engine_history(const struct cct_engine *engine); /* until it is freed */

#endif
