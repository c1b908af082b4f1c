/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/text.h"
#include "mpi_runner/serving_run.h"

#define MOST_SIZES 512

struct warming { /* every rank is bound alike */
  const struct cct_serving_run *run;
  const struct cct_program *program;
  int count;
  int64_t *slots; /* [step][n_slots] */
  int64_t n;
};

static int64_t *slots_at(const struct warming *w, int64_t step) {
  return w->slots + step * w->program->n_slots;
}

/* The slots of one more step, at their defaults. */
static int64_t *add_step(struct warming *w) {
  int64_t *slots = slots_at(w, w->n++);
  for (int i = 0; i < w->program->n_slots; i++)
    slots[i] = w->program->slots[i].value;
  return slots;
}

/* With transfers of the share of the largest that these tokens are of the most. */
static void add_size(struct warming *w, enum cct_serve_form form, int64_t tokens) {
  const struct cct_serve *serve = w->run->serve;
  const struct cct_serve_step what = {form, tokens};
  int64_t *slots = add_step(w), most = serve->most_stage_blocks, blocks = most * tokens / serve->most_mixed;
  cct_serve_bind_size(serve, &what, slots);
  if (form == CCT_SERVE_MIXED)
    cct_serve_bind_transfers(serve, (blocks ? blocks : 1) * serve->block_bytes, slots);
}

/* Eager steps from the largest down by halves, between which a backend that knows no size itself can reckon, and each
 * size of a graph that the cell can need. */
static void add_sizes(struct warming *w) {
  const struct cct_serve *serve = w->run->serve;
  for (int64_t tokens = serve->most_mixed; tokens > 0; tokens /= 2)
    add_size(w, CCT_SERVE_MIXED, tokens);
  for (int i = 0; i < serve->n_captures; i++) {
    if (serve->is_mixed_graph && serve->captures[i] <= serve->most_mixed)
      add_size(w, CCT_SERVE_PIECEWISE, serve->captures[i]);
    if (serve->is_decode_graph && serve->captures[i] <= serve->most_decode)
      add_size(w, CCT_SERVE_DECODE, serve->captures[i]);
  }
  if (!serve->is_decode_graph)
    add_size(w, CCT_SERVE_DECODE, serve->most_decode);
}

static int is_new_size(const struct warming *w, const int64_t *slots) {
  const struct cct_serve_slots *s = &w->run->serve->slots;
  for (int64_t k = 0; k < w->n - 1; k++) {
    const int64_t *other = slots_at(w, k);
    if (other[s->form] == slots[s->form] && other[s->tokens] == slots[s->tokens] &&
        other[s->logits] == slots[s->logits])
      return 0;
  }
  return 1;
}

/* Where no clock decides, also the eager steps of the schedule, one of each size. Of an engine whose steps those of
 * others resemble. */
static enum cct_status add_schedule(struct warming *w, int number) {
  struct cct_serve_walk walk;
  struct cct_engine_step step;
  if (cct_serve_is_clocked(w->run->serve))
    return CCT_OK;
  enum cct_status status = cct_serve_walk_open(w->run->serve, w->run->requests, number, &walk);
  while (!status && w->n < MOST_SIZES && !(status = cct_serve_walk_next(&walk, &step)) && !step.is_over) {
    if (step.is_empty)
      continue;
    int64_t *slots = add_step(w);
    cct_serve_bind(w->run->serve, &step, 0, slots);
    w->n -= !is_new_size(w, slots);
  }
  cct_serve_walk_close(&walk);
  return status;
}

/* Each of them alone first: a backend gets its buffers, captures its graphs and measures what a DELAY stretches where
 * nothing is under way. */
static enum cct_status perform_alone(struct warming *w) {
  const struct cct_serving_run *run = w->run;
  struct cct_binding *bindings = calloc((size_t)run->job->ranks, sizeof *bindings);
  struct cct_measure_options once = run->measure;
  enum cct_status status = bindings ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  status = cct_world_agree(run->world, status, run->measure.name, run->measure.patience_ns);
  once.warmup = 1;
  once.samples = 0;
  once.repetitions = 1;
  for (int64_t step = 0; !status && step < w->n; step++) {
    struct cct_measured nothing;
    for (int rank = 0; rank < run->job->ranks; rank++)
      bindings[rank] = (struct cct_binding){.slots = slots_at(w, step)};
    status = cct_measure(run->world, run->ops, run->executor, bindings, &once, &nothing);
    if (!status)
      cct_measured_free(&nothing);
  }
  free(bindings);
  return status;
}

static enum cct_status next_warm(void *context, int64_t index, const int64_t *now_ns, struct cct_binding *bindings,
                                 int64_t *not_before_ns, int *is_over) {
  const struct warming *w = context;
  (void)now_ns;
  for (int owned = 0; owned < w->count; owned++) {
    is_over[owned] = index >= w->n;
    not_before_ns[owned] = 0;
    bindings[owned] = (struct cct_binding){.slots = slots_at(w, index < w->n ? index : 0)};
  }
  return CCT_OK;
}

enum cct_status cct_serving_bind_copies(const struct cct_job *job, const struct cct_serve *serve,
                                        struct cct_binding **bindings_out) {
  const struct cct_program *program = job->roles[0].program;
  size_t ranks = (size_t)job->ranks, n = (size_t)program->n_slots;
  *bindings_out = NULL;
  if (serve->slots.swap_out < 0 && !serve->n_sources)
    return CCT_OK;
  struct cct_binding *bindings = calloc(1, ranks * sizeof *bindings + n * sizeof(int64_t));
  if (!bindings)
    return cct_fail(CCT_NOMEM, "out of memory");
  int64_t *slots = (int64_t *)(void *)(bindings + ranks);
  for (size_t i = 0; i < n; i++)
    slots[i] = program->slots[i].value;
  cct_serve_bind_swaps(serve, serve->block_bytes, slots);
  cct_serve_bind_transfers(serve, serve->block_bytes, slots);
  for (size_t r = 0; r < ranks; r++)
    bindings[r] = (struct cct_binding){.slots = slots};
  *bindings_out = bindings;
  return CCT_OK;
}

enum cct_status cct_serving_warm(const struct cct_serving_run *run) {
  struct warming w = {.run = run, .program = run->job->roles[0].program};
  int first;
  run->ops->owned(run->executor, &first, &w.count);
  w.slots = calloc((size_t)((MOST_SIZES + 2 * CCT_MOST_CAPTURES + 64) * w.program->n_slots), sizeof *w.slots);
  enum cct_status status = w.slots ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  int64_t start_ns;
  if (!status) {
    add_sizes(&w);
    status = add_schedule(&w, 0);
    if (!status && run->serve->prefills)
      status = add_schedule(&w, (int)run->serve->prefills);
  }
  struct cct_sequence sequence = {.context = &w, .next = next_warm, .most_steps = w.n + 1};
  status = cct_world_agree(run->world, status, run->measure.name, run->measure.patience_ns);
  if (!status)
    status = perform_alone(&w);
  if (!status)
    status = cct_serving_measure(run, w.count, &sequence, &start_ns);
  free(sequence.lane_end_ns);
  free(w.slots);
  return status;
}
