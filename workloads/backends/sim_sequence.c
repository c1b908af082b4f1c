/* SPDX-License-Identifier: Apache-2.0
 * A sequence on virtual clocks: before each step its bindings are asked for and told to all processes. Ranks that had
 * the same turns so far, and whose partners had, have equal clocks: classes (sim_ranks.h) split as their turns differ.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"
#include "workloads/backends/sim_executor.h"

struct turn { /* of one rank in one step */
  uint64_t key;
  int32_t is_over, failure; /* or passed; enum cct_status of its process */
};

struct run {
  struct cct_executor *x;
  struct cct_sequence *sequence;
  struct turn *turns; /* of all ranks */
  struct turn *mine;
  size_t *turn_bytes; /* each process's contribution */
  struct cct_binding *bindings;
  int64_t *now_ns, *not_before_ns, *host_ns;
  int *is_over;
};

static struct sim_local *local_of(const struct run *run, int owned) {
  const struct cct_executor *x = run->x;
  return &x->locals[x->local_of[x->ranks->class_of[x->first + owned]]];
}

/* When the step is asked for: the first host lane is through with the step before. No lane here keeps a binding. */
static int64_t asked_ns(struct run *run, const struct sim_local *local) {
  int n = sim_state_host_ns(&local->state, run->host_ns);
  return n ? run->host_ns[0] : 0;
}

static enum cct_status ask(struct run *run, int64_t index) {
  const struct cct_executor *x = run->x;
  int open = 0;
  for (int i = 0; i < x->count; i++) {
    run->is_over[i] &= CCT_SEQUENCE_OVER;
    open += !run->is_over[i];
    run->now_ns[i] = asked_ns(run, local_of(run, i));
    run->not_before_ns[i] = 0;
  }
  if (!open)
    return CCT_OK;
  int *is_over = calloc((size_t)x->count, sizeof *is_over);
  if (!is_over)
    return cct_fail(CCT_NOMEM, "sim: out of memory");
  enum cct_status status =
      run->sequence->next(run->sequence->context, index, run->now_ns, run->bindings, run->not_before_ns, is_over);
  for (int i = 0, is_said = 0; i < x->count && !status; i++) {
    run->is_over[i] |= is_over[i];
    if (!run->is_over[i] && index >= run->sequence->most_steps && !is_said++)
      status = cct_fail(CCT_USAGE, "sim: a sequence of more than %lld steps", (long long)run->sequence->most_steps);
  }
  free(is_over);
  return status;
}

/* Asks for this process's turns and learns all others'. *is_over_out: of every rank. */
static enum cct_status take_turns(struct run *run, int64_t index, int *is_over_out) {
  struct cct_executor *x = run->x;
  const struct cct_world *world = x->backend->world;
  enum cct_status status = ask(run, index);
  for (int i = 0; i < x->count; i++) {
    struct turn *turn = &run->mine[i];
    *turn = (struct turn){.is_over = run->is_over[i], .failure = (int32_t)status};
    if (!status && !turn->is_over)
      turn->key = cct_random_fold(sim_binding_key(x, x->first + i, &run->bindings[i]), (uint64_t)run->not_before_ns[i]);
  }
  enum cct_status told =
      world->ops->allgatherv(world, run->mine, (size_t)x->count * sizeof *run->mine, run->turns, run->turn_bytes);
  if (status || told)
    return status ? status : told;
  *is_over_out = 1;
  for (int rank = 0; rank < x->job->ranks; rank++) {
    if (run->turns[rank].failure)
      return (enum cct_status)run->turns[rank].failure; /* its process has said why */
    *is_over_out &= run->turns[rank].is_over == CCT_SEQUENCE_OVER;
  }
  return CCT_OK;
}

static int is_split(const struct run *run) {
  const struct cct_executor *x = run->x;
  for (int rank = 0; rank < x->job->ranks; rank++) {
    const struct turn *turn = &run->turns[rank], *first = &run->turns[x->ranks->classes[x->ranks->class_of[rank]].rank];
    if (turn->key != first->key || turn->is_over != first->is_over)
      return 1;
  }
  return 0;
}

/* New classes, whose clocks go on where those of the class that they were in have come to. */
static enum cct_status split(struct run *run) {
  struct cct_executor *x = run->x;
  struct cct_executor old = *x;
  for (int rank = 0; rank < x->job->ranks; rank++)
    x->keys[rank] = cct_random_fold(run->turns[rank].key * 4 + (uint64_t)run->turns[rank].is_over,
                                    (uint64_t)old.ranks->class_of[rank]);
  x->locals = NULL;
  x->local_of = NULL;
  x->meet = NULL;
  x->ranks = NULL;
  x->n_locals = 0;
  enum cct_status status = sim_sort_ranks(x);
  for (int i = 0; i < x->n_locals && !status; i++) {
    struct sim_local *local = &x->locals[i];
    const struct sim_local *from = &old.locals[old.local_of[old.ranks->class_of[local->rank]]];
    local->turn = from->turn;
    local->is_bound = from->is_bound;
    sim_state_copy(&local->state, &from->state);
  }
  struct cct_executor *forgotten = &old;
  sim_forget_ranks(forgotten);
  return status;
}

static enum cct_status bind_turns(struct run *run, int64_t index) {
  struct cct_executor *x = run->x;
  const struct cct_world *world = x->backend->world;
  enum cct_status status = index == 0 || is_split(run) ? split(run) : CCT_OK;
  for (int i = 0; i < x->n_locals && !status; i++) {
    struct sim_local *local = &x->locals[i];
    const struct turn *turn = &run->turns[local->rank];
    int owned = local->rank - x->first;
    local->is_passed = turn->is_over == CCT_SEQUENCE_PASSED;
    if (local->is_passed)
      continue;
    if (turn->is_over) {
      sim_state_bind(&local->state, NULL);
      continue;
    }
    if (!local->is_bound || turn->key != local->turn)
      status = sim_price_local(x, local, &run->bindings[owned]);
    local->turn = turn->key;
    local->is_bound = 1;
    sim_state_hold(&local->state, run->now_ns[owned], run->not_before_ns[owned]);
  }
  int64_t worst = status; /* a rank that cannot be priced is known to its owner alone */
  enum cct_status told = world->size > 1 ? world->ops->allreduce_i64(world, &worst, 1, CCT_REDUCE_MAX) : CCT_OK;
  return status ? status : told ? told : (enum cct_status)worst;
}

static void note_ends(struct run *run, int64_t index) {
  const struct cct_executor *x = run->x;
  int lanes = run->sequence->n_host_lanes, has_performed = 0;
  if (index >= run->sequence->most_steps)
    return; /* all ranks here are over */
  int64_t *ends = run->sequence->lane_end_ns + index * x->count * lanes;
  for (int i = 0; i < x->count; i++) {
    int n = run->is_over[i] ? 0 : sim_state_host_ns(&local_of(run, i)->state, run->host_ns);
    has_performed |= !run->is_over[i];
    for (int lane = 0; lane < lanes; lane++)
      ends[i * lanes + lane] = lane < n ? run->host_ns[lane] : -1;
  }
  run->sequence->steps = has_performed ? index + 1 : run->sequence->steps;
}

static enum cct_status perform(struct run *run) {
  struct cct_executor *x = run->x;
  enum cct_status status = CCT_OK;
  for (int64_t index = 0; !status; index++) {
    int is_over = 0;
    status = take_turns(run, index, &is_over);
    if (status || is_over)
      break;
    status = bind_turns(run, index);
    if (!status)
      status = sim_run_repetition(x);
    if (!status)
      note_ends(run, index);
  }
  return status;
}

/* Before the first turns ranks differ by role and place alone. */
static enum cct_status start(struct run *run) {
  struct cct_executor *x = run->x;
  x->is_in_sequence = 1;
  x->ran_n = 0;
  for (int rank = 0; rank < x->job->ranks; rank++)
    x->keys[rank] = sim_fold_domains(x, rank, 0);
  for (int p = 0; p < x->backend->world->size; p++)
    run->turn_bytes[p] = x->key_bytes[p] / sizeof *x->keys * sizeof *run->turns;
  enum cct_status status = sim_sort_ranks(x);
  for (int i = 0; i < x->n_locals && !status; i++) {
    sim_state_start_burst(&x->locals[i].state);
    sim_state_bind(&x->locals[i].state, NULL);
  }
  return status;
}

/* Noise stretches the whole sequence of a rank, as it does a burst; what next() is told is without. */
static void finish(struct run *run, struct cct_burst *burst) {
  struct cct_executor *x = run->x;
  int lanes = run->sequence->n_host_lanes;
  for (int i = 0; i < x->count; i++) {
    double factor = sim_noise_factor(x, x->first + i);
    int64_t ns = sim_state_last_ns(&local_of(run, i)->state) + x->closing_sync_ns;
    burst->rank_ns[i] = x->backend->n_noise ? llround((double)ns * factor) : ns;
    for (int64_t step = 0; x->backend->n_noise && step < run->sequence->steps; step++)
      for (int lane = 0; lane < lanes; lane++) {
        int64_t *end_ns = &run->sequence->lane_end_ns[(step * x->count + i) * lanes + lane];
        *end_ns = *end_ns < 0 ? -1 : llround((double)*end_ns * factor);
      }
  }
  x->steps++;
}

/* Nothing goes on between steps. */
static enum cct_status progress(struct cct_executor *x) {
  (void)x;
  return CCT_OK;
}

static int64_t lane_end(struct cct_executor *x, int owned, int lane, int64_t step) {
  int lanes = x->sequence->n_host_lanes;
  return x->sequence->lane_end_ns[(step * x->count + owned) * lanes + lane];
}

enum cct_status sim_sequence(struct cct_executor *x, struct cct_sequence *sequence, struct cct_burst *burst) {
  size_t owned = (size_t)x->count + 1;
  int64_t start_ns = x->backend->world->ops->now_ns(x->backend->world);
  struct run run = {.x = x, .sequence = sequence};
  sequence->n_host_lanes = cct_job_host_lanes(x->job);
  sequence->progress = progress;
  sequence->lane_end = lane_end;
  sequence->is_virtual = 1;
  x->sequence = sequence;
  sequence->steps = 0;
  sequence->binding_us = 0;
  run.turns = calloc((size_t)x->job->ranks + owned, sizeof *run.turns);
  run.turn_bytes = calloc((size_t)x->backend->world->size, sizeof *run.turn_bytes);
  run.bindings = calloc(owned, sizeof *run.bindings);
  run.now_ns = calloc(2 * owned + (size_t)sequence->n_host_lanes, sizeof *run.now_ns);
  run.is_over = calloc(owned, sizeof *run.is_over);
  enum cct_status status = CCT_NOMEM;
  if (!run.turns || !run.turn_bytes || !run.bindings || !run.now_ns || !run.is_over) {
    (void)cct_fail(CCT_NOMEM, "sim: out of memory for %d ranks", x->job->ranks);
    goto out;
  }
  run.mine = run.turns + x->job->ranks;
  run.not_before_ns = run.now_ns + owned;
  run.host_ns = run.not_before_ns + owned;
  status = start(&run);
  if (!status)
    status = perform(&run);
  if (!status)
    finish(&run, burst);
  burst->start_ns = start_ns;
out:
  x->sequence = NULL;
  if (status)
    sim_forget_ranks(x);
  free(run.turns);
  free(run.turn_bytes);
  free(run.bindings);
  free(run.now_ns);
  free(run.is_over);
  return status;
}
