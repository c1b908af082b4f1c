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
 * where there is nothing else to do.
 *
 * Where other replicas generate (cluster.h), engines of one replica each, a prompt's or a decode's, tell each other
 * what became known, in front of their steps, and step when that lets them do something. `replicas` then counts those
 * of the engine's own stage, so that request i has a replica of each. */
#ifndef CCT_WORKLOADS_SERVING_ENGINE_H
#define CCT_WORKLOADS_SERVING_ENGINE_H

#include "workloads/serving/scheduler.h"

struct cct_engine_plan {
  struct cct_limits limits;
  int64_t replicas;        /* of all engines */
  int64_t first, together; /* this engine's */
  int is_staged;           /* PREFILL: caches go to the host, by transfers of its own, before they can be read */
};

struct cct_engine_step {
  int is_over;  /* nothing is left to do; the other fields do not count */
  int is_empty; /* no replica has a member */
  enum cct_stage stage;
  int64_t start_ns;                /* SECONDS: nobody has anything to do before; 0: begin now */
  int64_t at;                      /* the step's number by which STEPS counts */
  const struct cct_batch *batches; /* [together]; until the next step */
};

struct cct_emission { /* tokens of one request that one step made */
  int64_t request;
  int32_t step, tokens; /* the how-manieth step of the engine, from 0, empty ones counted */
};

enum cct_notice_kind {
  CCT_NOTICE_READY, /* to its decode replica: its first token is known, and its cache may be read */
  CCT_NOTICE_READ,  /* to its prompt's: the cache has been read */
  CCT_NOTICE_ENDED, /* CLOSED, to its prompt's: its last token is known */
  CCT_NOTICE_MOVED, /* of the engine itself, to nobody: `request` is one of its steps, whose transfers are done */
};
struct cct_notice {
  enum cct_notice_kind kind;
  int64_t request;
};
struct cct_heard { /* in front of which step of the engine it was heard, or noticed */
  struct cct_notice what;
  int64_t step;
};

struct cct_history {
  const struct cct_emission *emissions; /* in the order of steps */
  int64_t n_emissions;
  const int64_t *arrival_steps; /* by request: STEPS: the step that it entered in front of */
  const int64_t *room_steps; /* by request: CLOSED: the step whose end made room for it; -1: it was among the first */
  int64_t steps;
  /* Of stages: the request whose end made room (-1: it was among the first); the step with which its transfer began;
   * all that was heard, in that order. */
  const int64_t *room_requests, *move_steps;
  const struct cct_heard *heard;
  int64_t n_heard;
};

struct cct_engine;
enum cct_status cct_engine_new(const struct cct_engine_plan *plan, const struct cct_requests *requests,
                               struct cct_engine **engine_out) CCT_CHECKED;
void cct_engine_free(struct cct_engine *engine); /* NULL-safe */
/* The next step, at `now_ns` since the start. CCT_NOMEM only. */
enum cct_status cct_engine_next(struct cct_engine *engine, int64_t now_ns,
                                struct cct_engine_step *step_out) CCT_CHECKED;

/* ---- of stages: what cct_engine_next does by itself ---- */

/* In front of a step, as often as wanted: the transfers of steps before `moved` are done. What others now have to hear;
 * until the next call. */
enum cct_status cct_engine_look(struct cct_engine *engine, int64_t moved, const struct cct_notice **notices_out,
                                int64_t *n_out) CCT_CHECKED;
enum cct_status cct_engine_hear(struct cct_engine *engine, const struct cct_notice *notice) CCT_CHECKED;
/* Lets requests enter: of STEPS those until this step, of SECONDS those until this time. */
void cct_engine_enter(struct cct_engine *engine, int64_t until);
int64_t cct_engine_next_arrival(const struct cct_engine *engine); /* of what has not entered; INT64_MAX: nothing */
int cct_engine_can_step(const struct cct_engine *engine);         /* it has something to do, or to learn by a step */
int cct_engine_is_done(const struct cct_engine *engine);          /* and hears nothing more */
int64_t cct_engine_steps(const struct cct_engine *engine);
int64_t cct_engine_awaits(const struct cct_engine *engine); /* the first step whose transfers are not known to be done;
                                                               -1: none has any such */
/* How many notices of this kind it hears in all. */
int64_t cct_engine_expects(const struct cct_engine *engine, enum cct_notice_kind kind);
enum cct_status cct_engine_step(struct cct_engine *engine, struct cct_engine_step *step_out) CCT_CHECKED;

struct cct_history cct_engine_history(const struct cct_engine *engine); /* until it is freed */

#endif
