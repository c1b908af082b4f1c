/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_runner/serving_driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "workloads/program/counts.h"

#define TIME_TAG 79

static int ranks_of(const struct cct_serve *serve) {
  return (int)(serve->tp * serve->together);
}

/* ---- telling the time ---- */

enum cct_status cct_serving_finish(struct serving_driver *d, struct cct_request *request) {
  const struct cct_world *world = d->run->world;
  enum cct_status status = CCT_OK;
  int done = 0;
  while (!status && !(status = world->ops->test(world, request, &done)) && !done)
    if (d->sequence->progress)
      status = d->sequence->progress(d->run->executor);
  return status;
}

enum cct_status cct_serving_agree(struct serving_driver *d, const struct serving_engine *e, int64_t *now_ns) {
  const struct cct_world *world = d->run->world;
  struct cct_request *request;
  enum cct_status status = CCT_OK;
  if (!e->is_leader) {
    status = world->ops->irecv(world, now_ns, sizeof *now_ns, e->leader, TIME_TAG, &request);
    return status ? status : cct_serving_finish(d, request);
  }
  for (int p = 0; !status && p < world->size; p++) {
    if (p == world->rank || d->owners[p + 1] <= e->first_rank || d->owners[p] >= e->first_rank + e->ranks)
      continue;
    status = world->ops->isend(world, now_ns, sizeof *now_ns, p, TIME_TAG, &request);
    if (!status)
      status = cct_serving_finish(d, request);
  }
  return status;
}

/* ---- a step ---- */

/* Submissions of one rank that is bound so: they follow from what the cases choose. */
static int64_t count_submissions(struct serving_driver *d, const int64_t *slots) {
  const struct cct_serve_slots *s = &d->run->serve->slots;
  int64_t out = s->swap_out >= 0 && slots[s->swap_out], in = s->swap_in >= 0 && slots[s->swap_in];
  int64_t *known = &d->submissions[(slots[s->form] * 2 + out) * 2 + in];
  const struct cct_binding binding = {.slots = slots};
  struct cct_counts counts;
  if (*known < 0) {
    cct_count_program(d->run->job, d->program, &binding, &counts);
    *known = counts.submissions;
  }
  return *known;
}

static enum cct_status add_row(struct serving_driver *d, struct serving_engine *e, const struct cct_engine_step *step,
                               int64_t index, int64_t now_ns, const int64_t *slots) {
  enum cct_status status = cct_grow((void **)&e->rows, &e->capacity, e->n + 1, sizeof *e->rows);
  if (status)
    return status;
  e->rows[e->n] = cct_serve_row_of(d->run->serve, step);
  e->rows[e->n].begin_ns = step->start_ns > now_ns ? step->start_ns : now_ns;
  e->rows[e->n].submissions = count_submissions(d, slots);
  e->rows[e->n].index = index;
  e->n++;
  return CCT_OK;
}

static int64_t *slots_at(const struct serving_driver *d, int64_t index, int owned) {
  return d->slots + ((index % CCT_SEQUENCE_DEPTH) * d->count + owned) * d->program->n_slots;
}

static void bind_owned(const struct serving_driver *d, const struct serving_engine *e,
                       const struct cct_engine_step *step, int64_t index, struct cct_binding *bindings,
                       int64_t *not_before_ns) {
  const struct cct_serve *serve = d->run->serve;
  for (int k = 0; k < e->n_owned; k++) {
    int owned = e->first_owned + k, rank = d->first + owned;
    int64_t *slots = slots_at(d, index, owned);
    for (int i = 0; i < d->program->n_slots; i++)
      slots[i] = d->program->slots[i].value;
    cct_serve_bind(serve, step, (rank - e->first_rank) / serve->tp, slots);
    bindings[owned] = (struct cct_binding){.slots = slots};
    not_before_ns[owned] = step->start_ns;
  }
}

/* An engine that needs no other. */
static enum cct_status next_alone(struct serving_driver *d, const struct serving_engine *e, int64_t *now,
                                  struct cct_engine_step *step) {
  enum cct_status status = CCT_OK;
  if (!d->run->clock && d->run->requests->arrivals == CCT_ARRIVE_SECONDS)
    status = cct_serving_agree(d, e, now);
  return status ? status : cct_engine_next(e->engine, *now, step);
}

static enum cct_status next(void *context, int64_t index, const int64_t *now_ns, struct cct_binding *bindings,
                            int64_t *not_before_ns, int *is_over) {
  struct serving_driver *d = context;
  enum cct_status status = d->stages ? cct_stages_ask(d, now_ns) : CCT_OK;
  if (index % 64 == 63 && d->run->measure.progress)
    d->run->measure.progress(d->run->measure.context, "step", index);
  for (int i = 0; !status && i < d->n_engines; i++) {
    struct serving_engine *e = &d->engines[i];
    struct cct_engine_step step = {.is_over = 1};
    int64_t now = now_ns[e->first_owned];
    int is_passed = 0;
    if (!e->is_over && d->run->clock)
      now = d->run->clock(d->run->clock_context, e->number, index, now);
    if (!e->is_over)
      status = d->stages ? cct_stages_next(d, e, &now, &step, &is_passed) : next_alone(d, e, &now, &step);
    e->is_over = step.is_over && !is_passed;
    for (int k = 0; k < e->n_owned; k++)
      is_over[e->first_owned + k] = is_passed ? CCT_SEQUENCE_PASSED : e->is_over;
    if (status || e->is_over || is_passed)
      continue;
    bind_owned(d, e, &step, index, bindings, not_before_ns);
    if (e->is_leader)
      status = add_row(d, e, &step, index, now, slots_at(d, index, e->first_owned));
  }
  return status;
}

/* ---- opening and closing ---- */

static void close_driver(struct serving_driver *d) {
  cct_stages_close(d);
  for (int i = 0; d->engines && i < d->n_engines; i++) {
    cct_engine_free(d->engines[i].engine);
    free(d->engines[i].rows);
  }
  free(d->engines);
  free(d->owners);
  free(d->slots);
  free(d->submissions);
}

/* Which process owns which ranks: everyone's first. */
static enum cct_status find_owners(struct serving_driver *d) {
  const struct cct_world *world = d->run->world;
  d->owners = malloc(((size_t)world->size + 1) * sizeof *d->owners);
  if (!d->owners)
    return cct_fail(CCT_NOMEM, "out of memory");
  d->owners[world->size] = d->run->job->ranks;
  return world->ops->allgather(world, &d->first, sizeof d->first, d->owners);
}

static enum cct_status open_engine(struct serving_driver *d, int number) {
  int ranks = ranks_of(d->run->serve), first = number * ranks, end = first + ranks, p = 0;
  int owned_end = d->first + d->count;
  if (first >= owned_end || end <= d->first)
    return CCT_OK;
  while (d->owners[p + 1] <= first)
    p++;
  struct serving_engine *e = &d->engines[d->n_engines++];
  *e = (struct serving_engine){.number = number, .first_rank = first, .ranks = ranks, .leader = p};
  e->is_leader = p == d->run->world->rank;
  e->first_owned = first > d->first ? first - d->first : 0;
  e->n_owned = (end < owned_end ? end : owned_end) - d->first - e->first_owned;
  struct cct_engine_plan plan = cct_serve_engine(d->run->serve, number);
  return d->run->serve->prefills ? CCT_OK : cct_engine_new(&plan, d->run->requests, &e->engine);
}

static enum cct_status open_driver(const struct cct_serving_run *run, struct cct_sequence *sequence,
                                   struct serving_driver *d) {
  int engines = run->job->ranks / ranks_of(run->serve);
  *d = (struct serving_driver){.run = run, .program = run->job->roles[0].program, .sequence = sequence};
  run->ops->owned(run->executor, &d->first, &d->count);
  enum cct_status status = find_owners(d);
  d->engines = calloc((size_t)engines, sizeof *d->engines);
  d->slots = calloc((size_t)(CCT_SEQUENCE_DEPTH * d->count * d->program->n_slots) + 1, sizeof *d->slots);
  d->submissions = malloc(4 * CCT_SERVE_FORMS * sizeof *d->submissions);
  if (!status && (!d->engines || !d->slots || !d->submissions))
    status = cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; !status && i < 4 * CCT_SERVE_FORMS; i++)
    d->submissions[i] = -1;
  for (int i = 0; !status && i < engines; i++)
    status = open_engine(d, i);
  if (!status && run->serve->prefills)
    status = cct_stages_open(d);
  return status;
}

/* More steps than a run can take: as if requests were served one after the other, and twice that for what is computed
 * again. */
static int64_t most_steps(const struct cct_serving_run *run) {
  int64_t steps = 1000, tokens = run->serve->limits.tokens;
  for (int64_t i = 0; i < run->requests->n; i++)
    steps += 2 * (run->requests->items[i].output + run->requests->items[i].input / tokens + 2);
  return run->serve->prefills ? 2 * run->serve->replicas * steps : steps; /* each in its turn, with empty ones */
}

/* ---- a run ---- */

static enum cct_status take_result(struct serving_driver *d, struct cct_serving_result *result) {
  enum cct_status status = CCT_OK;
  result->binding_us = d->sequence->binding_us;
  result->engines = calloc((size_t)d->n_engines + 1, sizeof *result->engines);
  if (!result->engines)
    status = cct_fail(CCT_NOMEM, "out of memory");
  if (d->stages) {
    status = cct_world_agree(d->run->world, status, d->run->measure.name, d->run->measure.patience_ns);
    status = status ? status : cct_stages_times(d, result);
  }
  for (int i = 0; !status && i < d->n_engines; i++) {
    struct serving_engine *e = &d->engines[i];
    struct cct_serving_engine *out = &result->engines[result->n_engines];
    if (!e->is_leader)
      continue;
    result->n_engines++;
    if (!d->stages)
      status = cct_serving_take_times(d, e, &out->times);
    double held = d->sequence->is_virtual ? 0 : cct_serving_held(d, e);
    d->held = held > d->held ? held : d->held;
    out->number = e->number;
    out->rows = e->rows;
    out->n = (int64_t)e->n;
    e->rows = NULL;
  }
  return status;
}

/* What is measured then holds an artefact of this program's. */
static enum cct_status tell_held(struct serving_driver *d) {
  const struct cct_world *world = d->run->world;
  enum cct_status status = world->ops->allreduce_f64(world, &d->held, 1, CCT_REDUCE_MAX);
  if (!status && !world->rank && d->held > CCT_SERVING_HELD)
    cct_warn("%s: an engine was held for %.0f %% of its time by a host lane more than %d steps behind, as no real one "
             "is; give shorter inputs",
             d->run->measure.name, 100 * d->held, CCT_SEQUENCE_DEPTH);
  return status;
}

enum cct_status cct_serving_measure(const struct cct_serving_run *run, int count, struct cct_sequence *sequence,
                                    int64_t *start_ns_out) {
  size_t lanes = (size_t)cct_job_host_lanes(run->job), owned = (size_t)count;
  struct cct_burst burst = {.rank_ns = calloc(owned + 1, sizeof *burst.rank_ns)};
  sequence->lane_end_ns = calloc((size_t)sequence->most_steps * (owned ? owned : 1) * lanes, sizeof(int64_t));
  enum cct_status status = burst.rank_ns && sequence->lane_end_ns
                               ? CCT_OK
                               : cct_fail(CCT_NOMEM, "out of memory: %lld steps", (long long)sequence->most_steps);
  status = cct_world_agree(run->world, status, run->measure.name, run->measure.patience_ns);
  if (!status)
    status = cct_measure_sequence(run->world, run->ops, run->executor, sequence, &run->measure, &burst);
  *start_ns_out = burst.start_ns;
  free(burst.rank_ns);
  return status;
}

enum cct_status cct_serving_perform(const struct cct_serving_run *run, struct cct_serving_result *result_out) {
  struct serving_driver driver;
  struct cct_sequence sequence = {.context = &driver, .next = next, .most_steps = most_steps(run)};
  struct cct_serving_result result = {0};
  enum cct_status status = open_driver(run, &sequence, &driver);
  status = cct_world_agree(run->world, status, run->measure.name, run->measure.patience_ns);
  if (!status)
    status = cct_serving_measure(run, driver.count, &sequence, &result.start_ns);
  if (!status)
    status = cct_serving_find_origin(&driver, &result);
  if (!status)
    status = take_result(&driver, &result);
  status = cct_world_agree(run->world, status, run->measure.name, run->measure.patience_ns);
  if (!status)
    status = tell_held(&driver);
  free(sequence.lane_end_ns);
  close_driver(&driver);
  if (status) {
    cct_serving_result_free(&result);
    return status;
  }
  *result_out = result;
  return CCT_OK;
}

void cct_serving_result_free(struct cct_serving_result *result) {
  if (!result)
    return;
  for (int i = 0; result->engines && i < result->n_engines; i++) {
    free(result->engines[i].rows);
    free(result->engines[i].heard);
    cct_serve_times_free(&result->engines[i].times);
  }
  free(result->engines);
  memset(result, 0, sizeof *result);
}
