/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/serving/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct event { /* a request ends in a step, or begins to move with it */
  int64_t request, step;
};

struct replica {
  struct cct_scheduler *scheduler;
  int64_t share;      /* CLOSED: of the concurrency */
  int64_t ended[2];   /* requests that had ended after the step before, and after the one before that */
  int64_t *end_steps; /* by the how-manieth that ended: the step */
  int64_t n_ends;
};

struct cct_engine {
  struct cct_engine_plan plan;
  const struct cct_requests *requests;
  struct replica *replicas;
  struct cct_batch *batches;
  struct cct_emission *emissions;
  size_t n_emissions, capacity;
  int64_t *arrival_steps, *room_steps, *room_requests, *move_steps;
  int64_t steps, at;
  /* Of stages. Rooms: requests whose end let, or lets, another enter, in the order in which that became known. */
  struct event *ends, *moves;
  int64_t n_ends, n_moves, n_ends_known, n_moves_known, *rooms, n_rooms;
  int64_t n_heard[CCT_NOTICE_MOVED];
  int64_t *generated, n_moved;
  struct cct_notice *told;
  struct cct_heard *heard;
  size_t heard_capacity, n_heard_all;
};

static int64_t own_request(const struct cct_engine *e, int64_t replica, int64_t own) {
  return e->plan.first + replica + own * e->plan.replicas;
}

static enum cct_stage stage_of(const struct cct_engine *e) {
  return e->plan.limits.stage;
}

static enum cct_status new_replica(struct cct_engine *e, int64_t i) {
  struct replica *replica = &e->replicas[i];
  int64_t number = e->plan.first + i, n = e->plan.replicas, c = e->requests->concurrency;
  enum cct_status status = cct_scheduler_new(&e->plan.limits, e->requests, number, n, &replica->scheduler);
  if (status)
    return status;
  replica->share = c / n + (number < c % n);
  replica->end_steps = malloc(((size_t)cct_scheduler_requests(replica->scheduler) + 1) * sizeof(int64_t));
  if (!replica->end_steps)
    return cct_fail(CCT_NOMEM, "out of memory");
  if (e->requests->arrivals == CCT_ARRIVE_CLOSED && stage_of(e) != CCT_STAGE_DECODE && !replica->share &&
      cct_scheduler_requests(replica->scheduler))
    return cct_fail(CCT_USAGE, "--concurrency %lld: %lld replicas need at least one request each", (long long)c,
                    (long long)n);
  return CCT_OK;
}

enum cct_status cct_engine_new(const struct cct_engine_plan *plan, const struct cct_requests *requests,
                               struct cct_engine **engine_out) {
  struct cct_engine *e = calloc(1, sizeof *e);
  if (!e)
    return cct_fail(CCT_NOMEM, "out of memory");
  *e = (struct cct_engine){.plan = *plan, .requests = requests};
  e->replicas = calloc((size_t)plan->together, sizeof *e->replicas);
  e->batches = calloc((size_t)plan->together, sizeof *e->batches);
  e->arrival_steps = malloc((size_t)requests->n * sizeof *e->arrival_steps);
  e->room_steps = malloc((size_t)requests->n * sizeof *e->room_steps);
  e->room_requests = malloc((size_t)requests->n * sizeof *e->room_requests);
  e->move_steps = malloc((size_t)requests->n * sizeof *e->move_steps);
  e->ends = calloc((size_t)requests->n, sizeof *e->ends);
  e->moves = calloc((size_t)requests->n, sizeof *e->moves);
  e->generated = calloc((size_t)requests->n, sizeof *e->generated);
  e->rooms = calloc((size_t)requests->n, sizeof *e->rooms);
  e->told = calloc((size_t)requests->n * 2, sizeof *e->told);
  enum cct_status status = e->replicas && e->batches && e->arrival_steps && e->room_steps && e->room_requests &&
                                   e->move_steps && e->ends && e->moves && e->generated && e->rooms && e->told
                               ? CCT_OK
                               : cct_fail(CCT_NOMEM, "out of memory: %lld requests", (long long)requests->n);
  for (int64_t i = 0; !status && i < requests->n; i++)
    e->arrival_steps[i] = e->room_steps[i] = e->room_requests[i] = e->move_steps[i] = -1;
  for (int64_t i = 0; !status && i < plan->together; i++)
    status = new_replica(e, i);
  if (status) {
    cct_engine_free(e);
    return status;
  }
  *engine_out = e;
  return CCT_OK;
}

void cct_engine_free(struct cct_engine *e) {
  if (!e)
    return;
  for (int64_t i = 0; e->replicas && i < e->plan.together; i++) {
    cct_scheduler_free(e->replicas[i].scheduler);
    free(e->replicas[i].end_steps);
  }
  free(e->replicas);
  free(e->batches);
  free(e->emissions);
  free(e->arrival_steps);
  free(e->room_steps);
  free(e->room_requests);
  free(e->move_steps);
  free(e->ends);
  free(e->moves);
  free(e->generated);
  free(e->rooms);
  free(e->told);
  free(e->heard);
  free(e);
}

/* ---- entering ---- */

static void enter_closed(struct cct_engine *e, int64_t i) {
  struct replica *replica = &e->replicas[i];
  int64_t before = cct_scheduler_entered(replica->scheduler);
  cct_scheduler_enter(replica->scheduler, replica->share + replica->ended[e->plan.limits.lag]);
  for (int64_t own = before; own < cct_scheduler_entered(replica->scheduler); own++)
    e->room_steps[own_request(e, i, own)] = own < replica->share ? -1 : replica->end_steps[own - replica->share];
}

/* Where others generate: room is known by what they say. */
static void enter_told(struct cct_engine *e) {
  struct replica *replica = &e->replicas[0];
  int64_t before = cct_scheduler_entered(replica->scheduler);
  cct_scheduler_enter(replica->scheduler, replica->share + e->n_rooms);
  for (int64_t own = before; own < cct_scheduler_entered(replica->scheduler); own++)
    e->room_requests[own_request(e, 0, own)] = own < replica->share ? -1 : e->rooms[own - replica->share];
}

static void enter_arrived(struct cct_engine *e, int64_t i, int64_t until) {
  struct replica *replica = &e->replicas[i];
  int64_t own = cct_scheduler_entered(replica->scheduler), n = cct_scheduler_requests(replica->scheduler);
  for (; own < n && e->requests->items[own_request(e, i, own)].arrival <= until; own++)
    e->arrival_steps[own_request(e, i, own)] = e->steps;
  cct_scheduler_enter(replica->scheduler, own);
}

void cct_engine_enter(struct cct_engine *e, int64_t until) {
  if (stage_of(e) == CCT_STAGE_DECODE)
    return;
  for (int64_t i = 0; i < e->plan.together; i++)
    switch (e->requests->arrivals) {
    case CCT_ARRIVE_CLOSED:
      if (stage_of(e) == CCT_STAGE_WHOLE)
        enter_closed(e, i);
      else
        enter_told(e);
      break;
    case CCT_ARRIVE_ZERO:
      cct_scheduler_enter(e->replicas[i].scheduler, INT64_MAX);
      break;
    case CCT_ARRIVE_STEPS:
    case CCT_ARRIVE_SECONDS:
      enter_arrived(e, i, until);
      break;
    }
}

/* Requests have entered and not ended, or are still on their way to being known. */
static int is_busy(const struct cct_engine *e) {
  for (int64_t i = 0; i < e->plan.together; i++) {
    const struct cct_scheduler *s = e->replicas[i].scheduler;
    if (cct_scheduler_entered(s) > cct_scheduler_ended(s) || cct_scheduler_lags(s))
      return 1;
  }
  return 0;
}

/* The first arrival of what has not entered; INT64_MAX: all has. */
int64_t cct_engine_next_arrival(const struct cct_engine *e) {
  int64_t next = INT64_MAX;
  int is_timed = e->requests->arrivals == CCT_ARRIVE_STEPS || e->requests->arrivals == CCT_ARRIVE_SECONDS;
  for (int64_t i = 0; is_timed && stage_of(e) != CCT_STAGE_DECODE && i < e->plan.together; i++) {
    int64_t own = cct_scheduler_entered(e->replicas[i].scheduler);
    if (own < cct_scheduler_requests(e->replicas[i].scheduler)) {
      int64_t arrival = e->requests->items[own_request(e, i, own)].arrival;
      next = arrival < next ? arrival : next;
    }
  }
  return next;
}

/* ---- steps ---- */

/* What others will have to hear. */
static void keep_events(struct cct_engine *e, const struct cct_batch *batch) {
  for (int64_t m = 0; m < batch->n; m++) {
    const struct cct_member *member = &batch->members[m];
    int64_t last = stage_of(e) == CCT_STAGE_PREFILL ? 1 : e->requests->items[member->request].output - 1;
    e->generated[member->request] += member->emitted;
    if (member->emitted && e->generated[member->request] == last)
      e->ends[e->n_ends++] = (struct event){member->request, e->steps};
  }
  for (int64_t k = 0; k < batch->n_moves; k++) {
    e->moves[e->n_moves++] = (struct event){batch->moves[k].request, e->steps};
    e->move_steps[batch->moves[k].request] = e->steps;
  }
}

static enum cct_status keep(struct cct_engine *e, int64_t i) {
  struct replica *replica = &e->replicas[i];
  const struct cct_batch *batch = &e->batches[i];
  enum cct_status status =
      cct_grow((void **)&e->emissions, &e->capacity, e->n_emissions + (size_t)batch->n, sizeof *e->emissions);
  for (int64_t m = 0; !status && m < batch->n; m++)
    if (batch->members[m].emitted)
      e->emissions[e->n_emissions++] =
          (struct cct_emission){batch->members[m].request, (int32_t)e->steps, (int32_t)batch->members[m].emitted};
  for (int64_t k = 0; !status && k < batch->ended; k++)
    replica->end_steps[replica->n_ends++] = e->steps;
  if (stage_of(e) != CCT_STAGE_WHOLE)
    keep_events(e, batch);
  replica->ended[1] = replica->ended[0];
  replica->ended[0] = cct_scheduler_ended(replica->scheduler);
  return status;
}

enum cct_status cct_engine_next(struct cct_engine *e, int64_t now_ns, struct cct_engine_step *step_out) {
  int64_t start_ns = 0;
  int is_counted = e->requests->arrivals == CCT_ARRIVE_STEPS;
  cct_engine_enter(e, is_counted ? e->at : now_ns);
  if (!is_busy(e)) {
    int64_t next = cct_engine_next_arrival(e);
    if (next == INT64_MAX) {
      *step_out = (struct cct_engine_step){.is_over = 1};
      return CCT_OK;
    }
    if (is_counted)
      e->at = next;
    else
      start_ns = next;
    cct_engine_enter(e, next);
  }
  enum cct_status status = cct_engine_step(e, step_out);
  step_out->start_ns = start_ns;
  step_out->at = e->at++;
  return status;
}

enum cct_status cct_engine_step(struct cct_engine *e, struct cct_engine_step *step_out) {
  struct cct_engine_step step = {.is_empty = 1, .stage = stage_of(e), .batches = e->batches};
  enum cct_status status = CCT_OK;
  for (int64_t i = 0; !status && i < e->plan.together; i++) {
    cct_scheduler_step(e->replicas[i].scheduler, &e->batches[i]);
    step.is_empty &= !e->batches[i].n;
    status = keep(e, i);
  }
  e->steps++;
  *step_out = step;
  return status;
}

struct cct_history cct_engine_history(const struct cct_engine *e) {
  return (struct cct_history){.emissions = e->emissions,
                              .n_emissions = (int64_t)e->n_emissions,
                              .arrival_steps = e->arrival_steps,
                              .room_steps = e->room_steps,
                              .steps = e->steps,
                              .room_requests = e->room_requests,
                              .move_steps = e->move_steps,
                              .heard = e->heard,
                              .n_heard = (int64_t)e->n_heard_all};
}

/* ---- of stages ---- */

static enum cct_status note(struct cct_engine *e, enum cct_notice_kind kind, int64_t request) {
  enum cct_status status = cct_grow((void **)&e->heard, &e->heard_capacity, e->n_heard_all + 1, sizeof *e->heard);
  if (!status)
    e->heard[e->n_heard_all++] = (struct cct_heard){{kind, request}, e->steps};
  return status;
}

static void tell(struct cct_engine *e, int64_t *n, enum cct_notice_kind kind, int64_t request) {
  e->told[(*n)++] = (struct cct_notice){kind, request};
}

/* A prompt's replica: first tokens that are known, and caches that lie where they can be read. */
static void look_at_prompts(struct cct_engine *e, int64_t moved, int64_t *n) {
  for (; e->n_ends_known < e->n_ends; e->n_ends_known++) {
    const struct event *end = &e->ends[e->n_ends_known];
    int is_single = e->requests->items[end->request].output == 1;
    if (end->step >= e->steps - e->plan.limits.lag || (!is_single && e->plan.is_staged && end->step >= moved))
      break;
    if (is_single)
      e->rooms[e->n_rooms++] = end->request;
    else
      tell(e, n, CCT_NOTICE_READY, end->request);
  }
}

static void look_at_decodes(struct cct_engine *e, int64_t moved, int64_t *n) {
  int64_t before = e->n_moves_known;
  for (; e->n_moves_known < e->n_moves && e->moves[e->n_moves_known].step < moved; e->n_moves_known++)
    tell(e, n, CCT_NOTICE_READ, e->moves[e->n_moves_known].request);
  if (e->n_moves_known > before)
    cct_scheduler_arrive(e->replicas[0].scheduler, e->n_moves_known - before);
  for (; e->n_ends_known < e->n_ends && e->ends[e->n_ends_known].step < e->steps - e->plan.limits.lag;
       e->n_ends_known++)
    if (e->requests->arrivals == CCT_ARRIVE_CLOSED)
      tell(e, n, CCT_NOTICE_ENDED, e->ends[e->n_ends_known].request);
}

enum cct_status cct_engine_look(struct cct_engine *e, int64_t moved, const struct cct_notice **notices_out,
                                int64_t *n_out) {
  enum cct_status status = CCT_OK;
  *n_out = 0;
  *notices_out = e->told;
  for (int64_t step = e->n_moved; !status && step < moved; step++) {
    int64_t k = e->n_moves; /* those of this step, if it had any */
    while (k > 0 && e->moves[k - 1].step > step)
      k--;
    if (k > 0 && e->moves[k - 1].step == step)
      status = note(e, CCT_NOTICE_MOVED, step);
  }
  e->n_moved = moved > e->n_moved ? moved : e->n_moved;
  if (stage_of(e) == CCT_STAGE_PREFILL)
    look_at_prompts(e, moved, n_out);
  else
    look_at_decodes(e, moved, n_out);
  return status;
}

enum cct_status cct_engine_hear(struct cct_engine *e, const struct cct_notice *notice) {
  if (notice->kind == CCT_NOTICE_READY)
    cct_scheduler_hand(e->replicas[0].scheduler, notice->request);
  else if (notice->kind == CCT_NOTICE_READ)
    cct_scheduler_release(e->replicas[0].scheduler, notice->request);
  else
    e->rooms[e->n_rooms++] = notice->request;
  e->n_heard[notice->kind]++;
  return note(e, notice->kind, notice->request);
}

/* Requests of this engine that generate elsewhere, or here for others. */
static int64_t n_handed(const struct cct_engine *e) {
  int64_t n = 0;
  for (int64_t i = e->plan.first; i < e->requests->n; i += e->plan.replicas)
    n += e->requests->items[i].output > 1;
  return n;
}

int64_t cct_engine_expects(const struct cct_engine *e, enum cct_notice_kind kind) {
  int is_prefill = stage_of(e) == CCT_STAGE_PREFILL;
  if (kind == CCT_NOTICE_ENDED && e->requests->arrivals != CCT_ARRIVE_CLOSED)
    return 0;
  return kind != CCT_NOTICE_MOVED && (kind == CCT_NOTICE_READY) != is_prefill ? n_handed(e) : 0;
}

int cct_engine_can_step(const struct cct_engine *e) {
  return is_busy(e) && !cct_scheduler_is_stuck(e->replicas[0].scheduler);
}

int cct_engine_is_done(const struct cct_engine *e) {
  const struct cct_scheduler *s = e->replicas[0].scheduler;
  int is_prefill = stage_of(e) == CCT_STAGE_PREFILL;
  for (int kind = 0; kind < CCT_NOTICE_MOVED; kind++)
    if (e->n_heard[kind] < cct_engine_expects(e, (enum cct_notice_kind)kind))
      return 0;
  return cct_scheduler_ended(s) == (is_prefill ? cct_scheduler_requests(s) : n_handed(e)) && !cct_scheduler_lags(s) &&
         e->n_ends_known == e->n_ends;
}

int64_t cct_engine_awaits(const struct cct_engine *e) {
  if (stage_of(e) == CCT_STAGE_DECODE)
    return e->n_moves_known < e->n_moves ? e->moves[e->n_moves_known].step : -1;
  return e->n_ends_known < e->n_ends ? e->ends[e->n_ends_known].step : -1;
}

int64_t cct_engine_steps(const struct cct_engine *e) {
  return e->steps;
}
