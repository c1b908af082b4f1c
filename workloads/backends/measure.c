/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define TRIALS 3 /* single repetitions from which the number of repetitions follows */

struct loop {
  const struct cct_world *world;
  const struct cct_backend_ops *ops;
  struct cct_executor *executor;
  const struct cct_binding *bindings; /* of this process's first rank */
  const struct cct_measure_options *options;
  int count;
};

/* A process that fails alone would leave the others waiting in the next barrier, so all hear of it, between bursts. */
static enum cct_status agree(const struct loop *loop, enum cct_status status) {
  const char *name = loop->options->name;
  return cct_world_agree(loop->world, status, name ? name : "a step", loop->options->patience_ns);
}

static enum cct_status burst(const struct loop *loop, const char *phase, int64_t index, int n, int64_t *start_ns,
                             int64_t *rank_ns) {
  struct cct_burst burst = {.rank_ns = rank_ns};
  if (loop->options->progress)
    loop->options->progress(loop->options->context, phase, index);
  enum cct_status status = loop->world->ops->barrier(loop->world);
  if (!status)
    status = loop->ops->step(loop->executor, loop->bindings, n, &burst);
  *start_ns = burst.start_ns;
  return agree(loop, status);
}

/* The fastest of a few single repetitions on the slowest rank. */
static enum cct_status choose_repetitions(const struct loop *loop, int64_t *rank_ns, int *n_out) {
  int64_t best = INT64_MAX, start_ns;
  enum cct_status status = CCT_OK;
  for (int t = 0; !status && t < TRIALS; t++) {
    int64_t slowest = 0;
    status = burst(loop, "trial", t, 1, &start_ns, rank_ns);
    for (int r = 0; r < loop->count; r++)
      slowest = rank_ns[r] > slowest ? rank_ns[r] : slowest;
    if (!status)
      status = loop->world->ops->allreduce_i64(loop->world, &slowest, 1, CCT_REDUCE_MAX);
    best = slowest < best ? slowest : best;
  }
  if (status)
    return status;
  int64_t n = best > 0 ? (loop->options->burst_ns + best - 1) / best : CCT_MOST_REPETITIONS;
  *n_out = n > CCT_MOST_REPETITIONS ? CCT_MOST_REPETITIONS : n < 1 ? 1 : (int)n;
  return CCT_OK;
}

static enum cct_status run_loop(const struct loop *loop, struct cct_measured *measured) {
  enum cct_status status = CCT_OK;
  int64_t start_ns;
  measured->n = loop->options->repetitions ? loop->options->repetitions : 1;
  for (int64_t w = 0; !status && w < loop->options->warmup; w++)
    status = burst(loop, "warm-up", w, 1, &start_ns, measured->burst_ns);
  if (!status && loop->options->burst_ns && !loop->options->repetitions)
    status = choose_repetitions(loop, measured->burst_ns, &measured->n);
  if (!status &&
      measured->n > 1) /* the first burst that fills the queue of a fresh stream takes longer than later ones */
    status = burst(loop, "warm-up", loop->options->warmup, measured->n, &start_ns, measured->burst_ns);
  for (int64_t s = 0; !status && s < measured->samples; s++)
    status = burst(loop, "sample", s, measured->n, &measured->start_ns[s], measured->burst_ns + s * measured->count);
  return status;
}

enum cct_status cct_measure(const struct cct_world *world, const struct cct_backend_ops *ops,
                            struct cct_executor *executor, const struct cct_binding *bindings,
                            const struct cct_measure_options *options, struct cct_measured *measured_out) {
  struct cct_measured measured = {.samples = options->samples};
  ops->owned(executor, &measured.first, &measured.count);
  size_t rows = (size_t)(measured.samples > 0 ? measured.samples : 1);
  measured.start_ns = calloc(rows, sizeof *measured.start_ns);
  measured.burst_ns = calloc(rows * (size_t)(measured.count ? measured.count : 1), sizeof *measured.burst_ns);
  enum cct_status status =
      measured.start_ns && measured.burst_ns ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory: %zu samples", rows);
  const struct loop loop = {world, ops, executor, bindings ? bindings + measured.first : NULL, options, measured.count};
  status = agree(&loop, status);
  if (!status)
    status = run_loop(&loop, &measured);
  if (status) {
    cct_measured_free(&measured);
    return status;
  }
  *measured_out = measured;
  return CCT_OK;
}

void cct_measured_free(struct cct_measured *measured) {
  free(measured->start_ns);
  free(measured->burst_ns);
  memset(measured, 0, sizeof *measured);
}

enum cct_status cct_measure_sequence(const struct cct_world *world, const struct cct_backend_ops *ops,
                                     struct cct_executor *executor, struct cct_sequence *sequence,
                                     const struct cct_measure_options *options, struct cct_burst *burst) {
  const struct loop loop = {.world = world, .ops = ops, .executor = executor, .options = options};
  if (!ops->sequence)
    return cct_fail(CCT_UNSUPPORTED, "backend '%s' performs no sequences of steps", ops->name);
  if (options->progress)
    options->progress(options->context, "sequence", 0);
  enum cct_status status = world->ops->barrier(world);
  if (!status)
    status = ops->sequence(executor, sequence, burst);
  return agree(&loop, status);
}
