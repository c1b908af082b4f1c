/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/serving/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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
  int64_t *arrival_steps, *room_steps;
  int64_t steps, at;
};

static int64_t own_request(const struct cct_engine *e, int64_t replica, int64_t own) {
  return e->plan.first + replica + own * e->plan.replicas;
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
  if (e->requests->arrivals == CCT_ARRIVE_CLOSED && !replica->share && cct_scheduler_requests(replica->scheduler))
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
  enum cct_status status = e->replicas && e->batches && e->arrival_steps && e->room_steps
                               ? CCT_OK
                               : cct_fail(CCT_NOMEM, "out of memory: %lld requests", (long long)requests->n);
  for (int64_t i = 0; !status && i < requests->n; i++)
    e->arrival_steps[i] = e->room_steps[i] = -1;
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

static void enter_arrived(struct cct_engine *e, int64_t i, int64_t until) {
  struct replica *replica = &e->replicas[i];
  int64_t own = cct_scheduler_entered(replica->scheduler), n = cct_scheduler_requests(replica->scheduler);
  for (; own < n && e->requests->items[own_request(e, i, own)].arrival <= until; own++)
    e->arrival_steps[own_request(e, i, own)] = e->steps;
  cct_scheduler_enter(replica->scheduler, own);
}

static void enter(struct cct_engine *e, int64_t now_ns) {
  for (int64_t i = 0; i < e->plan.together; i++)
    switch (e->requests->arrivals) {
    case CCT_ARRIVE_CLOSED:
      enter_closed(e, i);
      break;
    case CCT_ARRIVE_ZERO:
      cct_scheduler_enter(e->replicas[i].scheduler, INT64_MAX);
      break;
    case CCT_ARRIVE_STEPS:
      enter_arrived(e, i, e->at);
      break;
    case CCT_ARRIVE_SECONDS:
      enter_arrived(e, i, now_ns);
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
static int64_t next_arrival(const struct cct_engine *e) {
  int64_t next = INT64_MAX;
  for (int64_t i = 0; i < e->plan.together; i++) {
    int64_t own = cct_scheduler_entered(e->replicas[i].scheduler);
    if (own < cct_scheduler_requests(e->replicas[i].scheduler)) {
      int64_t arrival = e->requests->items[own_request(e, i, own)].arrival;
      next = arrival < next ? arrival : next;
    }
  }
  return next;
}

/* ---- steps ---- */

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
  replica->ended[1] = replica->ended[0];
  replica->ended[0] = cct_scheduler_ended(replica->scheduler);
  return status;
}

enum cct_status cct_engine_next(struct cct_engine *e, int64_t now_ns, struct cct_engine_step *step_out) {
  struct cct_engine_step step = {.is_empty = 1, .batches = e->batches};
  enum cct_status status = CCT_OK;
  enter(e, now_ns);
  if (!is_busy(e)) {
    int64_t next = next_arrival(e);
    if (next == INT64_MAX) {
      *step_out = (struct cct_engine_step){.is_over = 1};
      return CCT_OK;
    }
    if (e->requests->arrivals == CCT_ARRIVE_STEPS)
      e->at = next;
    else
      step.start_ns = next;
    enter(e, next);
  }
  for (int64_t i = 0; !status && i < e->plan.together; i++) {
    cct_scheduler_step(e->replicas[i].scheduler, &e->batches[i]);
    step.is_empty &= !e->batches[i].n;
    status = keep(e, i);
  }
  step.at = e->at++;
  e->steps++;
  *step_out = step;
  return status;
}

struct cct_history cct_engine_history(const struct cct_engine *e) {
  return (struct cct_history){e->emissions, (int64_t)e->n_emissions, e->arrival_steps, e->room_steps, e->steps};
}
