/* SPDX-License-Identifier: Apache-2.0
 * A serving cell in a block: a sample is one run of all requests. What is recorded is in docs/record.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "machine/nvml.h"
#include "mpi_runner/block.h"
#include "mpi_runner/serving_run.h"
#include "workloads/shape/cell.h"

#define METRICS(X) /* ID, name, unit, better; in the order in which they are recorded */                               \
  X(OUTPUT, "output_tok_s", "tok/s", "higher")                                                                         \
  X(TOTAL, "total_tok_s", "tok/s", "higher")                                                                           \
  X(REQUESTS, "request_s", "req/s", "higher")                                                                          \
  X(TTFT, "ttft", "ms", "lower")                                                                                       \
  X(TPOT, "tpot", "ms", "lower")                                                                                       \
  X(ITL, "itl", "ms", "lower")                                                                                         \
  X(E2E, "e2e", "ms", "lower")                                                                                         \
  X(STEP, "step", "us", "lower")                                                                                       \
  X(SUBMISSIONS, "submissions", "a step", "lower")                                                                     \
  X(PADDING, "padding", "%", "neither")                                                                                \
  X(FORM, "form", "", "neither")                                                                                       \
  X(TOKENS, "tokens", "tokens", "neither")                                                                             \
  X(CACHE, "kv", "blocks", "neither")                                                                                  \
  X(POWER, "power", "W", "neither")                                                                                    \
  X(UTILIZATION, "utilization", "%", "neither")                                                                        \
  X(BINDING, "binding", "us", "neither")                                                                               \
  X(GOODPUT, "goodput", "req/s", "higher")  /* with --slo */                                                           \
  X(TRANSFER, "kv_transfer", "ms", "lower") /* with --disaggregate, as those behind it */                              \
  X(BYTES, "kv_bytes", "MiB a request", "neither")                                                                     \
  X(MOVED, "kv_moved", "blocks", "neither")                                                                            \
  X(HEARD, "heard", "", "neither")
enum metric {
#define METRIC_ENUM(id, ...) METRIC_##id,
  METRICS(METRIC_ENUM)
#undef METRIC_ENUM
  METRIC_COUNT
};
_Static_assert(METRIC_COUNT <= CCT_MOST_METRICS, "room for all");

static int is_recorded(const struct cct_options *cell, enum metric metric) {
  if (metric == METRIC_GOODPUT)
    return cell->v[CCT_OPT_SLO].has_value;
  return metric < METRIC_TRANSFER || cell->v[CCT_OPT_DISAGGREGATE].has_value;
}

int cct_block_serve_metrics(const struct cct_options *cell, struct cct_metric *metrics_out) {
  static const struct cct_metric all[METRIC_COUNT] = {
#define METRIC_ROW(id, name, unit, better) {name, unit, better},
      METRICS(METRIC_ROW)
#undef METRIC_ROW
  };
  int n = 0;
  for (int m = 0; m < METRIC_COUNT; m++)
    if (is_recorded(cell, (enum metric)m))
      metrics_out[n++] = all[m];
  return n;
}

struct rows { /* of one metric on this process */
  struct cct_sample *items;
  size_t n, capacity;
};

struct recording {
  const struct cct_block_serve *call;
  const struct cct_requests *requests;
  struct rows rows[METRIC_COUNT];
  int engines;           /* of all processes */
  int64_t *steps, *gaps; /* by engine: recorded so far, over all samples */
  enum cct_status status;
};

static void add(struct recording *r, enum metric metric, int64_t rank, int64_t index, int64_t n, int64_t start_ns,
                double value) {
  struct rows *rows = &r->rows[metric];
  if (!r->status)
    r->status = cct_grow((void **)&rows->items, &rows->capacity, rows->n + 1, sizeof *rows->items);
  if (!r->status)
    rows->items[rows->n++] = (struct cct_sample){(int32_t)rank, (int32_t)index, (int32_t)n, start_ns, value};
}

/* ---- one run ---- */

/* Of a replica; where prompts and generation are apart, of the engine, which is one. */
static int64_t first_rank(const struct cct_serve *serve, const struct cct_serving_engine *engine, int64_t replica) {
  return (serve->prefills ? engine->number : replica) * serve->tp;
}

static void add_requests(struct recording *r, int64_t sample, int64_t origin_ns,
                         const struct cct_serving_engine *engine) {
  for (int64_t i = 0; i < r->requests->n; i++) {
    const struct cct_request_times *t = &engine->times.requests[i];
    const struct cct_request *request = &r->requests->items[i];
    int64_t rank = first_rank(r->call->serve, engine, i % r->call->serve->replicas),
            index = sample * r->requests->n + i;
    if (t->first_ns < 0)
      continue;
    int64_t at = origin_ns + t->arrival_ns;
    add(r, METRIC_TTFT, rank, index, 1, at, (double)(t->first_ns - t->arrival_ns) / 1e6);
    add(r, METRIC_E2E, rank, index, 1, at, (double)(t->last_ns - t->arrival_ns) / 1e6);
    if (request->output > 1)
      add(r, METRIC_TPOT, rank, index, 1, at, (double)(t->last_ns - t->first_ns) / (double)(request->output - 1) / 1e6);
    if (t->moved_ns >= 0)
      add(r, METRIC_TRANSFER, rank, index, 1, at, (double)(t->moved_ns - t->first_ns) / 1e6);
  }
}

/* Indices tell engines apart, so that no two rows of different ranks are taken for one step. */
static void add_steps(struct recording *r, const struct cct_serving_result *result,
                      const struct cct_serving_engine *engine) {
  const struct cct_serve *serve = r->call->serve;
  int64_t rank = (int64_t)engine->number * serve->tp * serve->together, heard = 0;
  for (int64_t k = 0; k < engine->times.n_gaps; k++) {
    const struct cct_gap *gap = &engine->times.gaps[k];
    int64_t index = r->gaps[engine->number]++ * r->engines + engine->number;
    add(r, METRIC_ITL, first_rank(serve, engine, gap->replica), index, gap->n, result->origin_ns + gap->at_ns,
        (double)gap->gap_ns / 1e6);
  }
  for (int64_t s = 0; s < engine->n; s++) {
    const struct cct_serve_row *row = &engine->rows[s];
    int64_t index = r->steps[engine->number]++ * r->engines + engine->number, at = result->start_ns + row->begin_ns;
    if (row->form != CCT_SERVE_IDLE)
      add(r, METRIC_STEP, rank, index, 1, at, (double)(row->end_ns - row->begin_ns) / 1e3);
    add(r, METRIC_FORM, rank, index, 1, at, row->form);
    add(r, METRIC_TOKENS, rank, index, row->sequences, at, (double)row->tokens);
    add(r, METRIC_CACHE, rank, index, 1 + row->preempted, at, (double)row->blocks);
    if (!serve->prefills)
      continue;
    add(r, METRIC_MOVED, rank, index, 1 + row->moved, at, (double)row->moved_blocks);
    for (; heard < engine->n_heard && engine->heard[heard].step <= s; heard++)
      add(r, METRIC_HEARD, rank, index, 1 + engine->heard[heard].what.kind, at,
          (double)engine->heard[heard].what.request);
  }
}

enum { /* what is added up over all processes */
  SUM_OUTPUT,
  SUM_TOTAL,
  SUM_REQUESTS,
  SUM_GOOD,
  SUM_SUBMISSIONS,
  SUM_STEPS,
  SUM_TOKENS,
  SUM_PADDED,
  SUM_MOVED,
  SUM_MOVED_BLOCKS,
  SUMS
};

static void add_up(const struct recording *r, const struct cct_serving_engine *engine, int64_t sums[SUMS],
                   int64_t *last_ns) {
  for (int64_t i = 0; i < r->requests->n; i++) {
    const struct cct_request_times *t = &engine->times.requests[i];
    const struct cct_request *request = &r->requests->items[i];
    if (t->first_ns < 0)
      continue;
    sums[SUM_OUTPUT] += request->output;
    sums[SUM_TOTAL] += request->input + request->output;
    sums[SUM_REQUESTS]++;
    sums[SUM_GOOD] += cct_slo_is_kept(&r->call->serve->slo, request, t);
    *last_ns = t->last_ns > *last_ns ? t->last_ns : *last_ns;
  }
  for (int64_t s = 0; s < engine->n; s++) {
    const struct cct_serve_row *row = &engine->rows[s];
    sums[SUM_STEPS] += row->form != CCT_SERVE_IDLE;
    sums[SUM_SUBMISSIONS] += row->submissions;
    sums[SUM_TOKENS] += row->tokens;
    sums[SUM_PADDED] += row->padded;
    if (engine->number < r->call->serve->prefills)
      continue;
    sums[SUM_MOVED] += row->moved;
    sums[SUM_MOVED_BLOCKS] += row->moved_blocks;
  }
}

static enum cct_status add_rates(struct recording *r, int64_t sample, const struct cct_serving_result *result) {
  const struct cct_world *world = r->call->world;
  int64_t sums[SUMS] = {0}, last_ns = 0;
  for (int i = 0; i < result->n_engines; i++)
    add_up(r, &result->engines[i], sums, &last_ns);
  enum cct_status status = world->ops->allreduce_i64(world, sums, SUMS, CCT_REDUCE_SUM);
  if (!status)
    status = world->ops->allreduce_i64(world, &last_ns, 1, CCT_REDUCE_MAX);
  if (status || world->rank)
    return status;
  const int64_t at = result->origin_ns;
  double seconds = (double)last_ns / 1e9;
  add(r, METRIC_OUTPUT, 0, sample, 1, at, (double)sums[SUM_OUTPUT] / seconds);
  add(r, METRIC_TOTAL, 0, sample, 1, at, (double)sums[SUM_TOTAL] / seconds);
  add(r, METRIC_REQUESTS, 0, sample, 1, at, (double)sums[SUM_REQUESTS] / seconds);
  add(r, METRIC_SUBMISSIONS, 0, sample, 1, at, (double)sums[SUM_SUBMISSIONS] / (double)sums[SUM_STEPS]);
  add(r, METRIC_PADDING, 0, sample, 1, at,
      100 * (double)(sums[SUM_PADDED] - sums[SUM_TOKENS]) / (double)sums[SUM_TOKENS]);
  add(r, METRIC_BINDING, 0, sample, 1, at, result->binding_us);
  if (sums[SUM_MOVED])
    add(r, METRIC_BYTES, 0, sample, 1, at,
        (double)(sums[SUM_MOVED_BLOCKS] * r->call->serve->block_bytes * r->call->serve->tp) / 1048576 /
            (double)sums[SUM_MOVED]);
  if (r->call->serve->slo.ttft_ns || r->call->serve->slo.tpot_ns || r->call->serve->slo.e2e_ns)
    add(r, METRIC_GOODPUT, 0, sample, 1, at, (double)sums[SUM_GOOD] / seconds);
  return CCT_OK;
}

/* ---- the GPU of this process, where it has one that NVML knows ---- */

struct usage {
  struct cct_nvml *nvml;
  long long energy_mj;
  int64_t since_ns;
};

static struct cct_nvml *open_nvml(const struct cct_block_serve *call) {
  struct cct_fact facts[64];
  int n = call->ops->facts ? call->ops->facts(call->backend, facts, 64) : 0;
  for (int i = 0; i < n; i++)
    if (!strcmp(facts[i].name, "gpu.uuid"))
      return cct_nvml_open(facts[i].value);
  return NULL;
}

static void begin_usage(struct usage *usage) {
  int ignored;
  cct_nvml_usage(usage->nvml, &usage->energy_mj, &ignored);
  usage->since_ns = cct_clock_ns();
}

static void end_usage(struct recording *r, const struct usage *usage, int64_t sample, int64_t start_ns) {
  long long energy_mj;
  int utilization, rank, count;
  double ms = (double)(cct_clock_ns() - usage->since_ns) / 1e6;
  cct_nvml_usage(usage->nvml, &energy_mj, &utilization);
  r->call->ops->owned(r->call->executor, &rank, &count);
  if (energy_mj > usage->energy_mj && usage->energy_mj >= 0)
    add(r, METRIC_POWER, rank, sample, 1, start_ns, (double)(energy_mj - usage->energy_mj) / ms);
  if (utilization >= 0)
    add(r, METRIC_UTILIZATION, rank, sample, 1, start_ns, utilization);
}

/* ---- the schedule in one word, to see at once whether two runs had the same ---- */

static uint64_t digest_of(const struct cct_serving_engine *engine) {
  uint64_t digest = (uint64_t)engine->number;
  for (int64_t s = 0; s < engine->n; s++) {
    const struct cct_serve_row *row = &engine->rows[s];
    const int64_t parts[] = {row->form, row->tokens, row->padded, row->sequences, row->blocks, row->preempted};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
      digest = cct_random_fold(digest, (uint64_t)parts[k]);
    if (row->moved)
      digest = cct_random_fold(digest, (uint64_t)row->moved_blocks);
  }
  return digest;
}

static enum cct_status tell_schedule(const struct recording *r, const struct cct_serving_result *result) {
  uint64_t digest = 0;
  int64_t sums[3] = {0}; /* upper and lower half, so that no sum overflows, and steps */
  for (int i = 0; i < result->n_engines; i++) {
    digest = digest_of(&result->engines[i]);
    sums[0] += (int64_t)(digest >> 32);
    sums[1] += (int64_t)(digest & 0xffffffff);
    sums[2] += result->engines[i].n;
  }
  enum cct_status status = r->call->world->ops->allreduce_i64(r->call->world, sums, 3, CCT_REDUCE_SUM);
  snprintf(r->call->said, r->call->said_size, "schedule %08llx%08llx of %lld steps",
           (unsigned long long)sums[0] & 0xffffffff, (unsigned long long)sums[1] & 0xffffffff, (long long)sums[2]);
  return status;
}

static enum cct_status record(struct recording *r) {
  const struct cct_block_serve *call = r->call;
  enum cct_status status = CCT_OK;
  for (int m = 0, n = 0; m < METRIC_COUNT; m++) { /* collective: goes on where one failed */
    if (!is_recorded(call->cell, (enum metric)m))
      continue;
    enum cct_status done =
        cct_block_append(call->world, call->record, call->index, n++, r->rows[m].items, (int64_t)r->rows[m].n);
    status = status ? status : done;
  }
  return status;
}

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* When the last of a run's steps and requests of this process was over. */
static int64_t end_of(const struct recording *r, const struct cct_serving_result *result) {
  int64_t end_ns = 0;
  for (int e = 0; e < result->n_engines; e++) {
    const struct cct_serving_engine *engine = &result->engines[e];
    for (int64_t i = 0; i < r->requests->n; i++)
      end_ns = later(end_ns, result->origin_ns + engine->times.requests[i].last_ns);
    for (int64_t s = 0; s < engine->n; s++)
      end_ns = later(end_ns, result->start_ns + engine->rows[s].end_ns);
  }
  return end_ns;
}

/* A predicted run is computed sooner than it is over: the next one of any process begins behind it all the same. */
static enum cct_status queue_behind(const struct recording *r, struct cct_serving_result *result, int64_t *free_ns) {
  int64_t shift_ns = later(*free_ns - result->start_ns, 0);
  if (!result->is_virtual)
    return CCT_OK;
  result->start_ns += shift_ns;
  result->origin_ns += shift_ns;
  *free_ns = end_of(r, result);
  return r->call->world->ops->allreduce_i64(r->call->world, free_ns, 1, CCT_REDUCE_MAX);
}

static enum cct_status perform(struct recording *r, const struct cct_serving_run *run) {
  struct usage usage = {.nvml = open_nvml(r->call)};
  enum cct_status status = CCT_OK;
  int64_t free_ns = 0;
  for (int64_t w = 0; !status && w < r->call->measure.warmup; w++)
    status = cct_serving_warm(run);
  for (int64_t sample = 0; !status && sample < r->call->measure.samples; sample++) {
    struct cct_serving_result result;
    begin_usage(&usage);
    status = cct_serving_perform(run, &result);
    if (status)
      break;
    status = queue_behind(r, &result, &free_ns);
    end_usage(r, &usage, sample, result.start_ns);
    for (int i = 0; i < result.n_engines; i++) {
      add_requests(r, sample, result.origin_ns, &result.engines[i]);
      add_steps(r, &result, &result.engines[i]);
    }
    if (!status)
      status = add_rates(r, sample, &result);
    if (!status && !sample)
      status = tell_schedule(r, &result);
    cct_serving_result_free(&result);
  }
  cct_nvml_close(usage.nvml);
  return status;
}

enum cct_status cct_block_perform_serve(const struct cct_block_serve *call) {
  struct cct_requests requests = {0};
  struct cct_serve serve = *call->serve; /* with the run's seed */
  struct cct_block_serve seeded = *call;
  struct recording r = {.call = &seeded, .requests = &requests, .engines = (int)(serve.replicas / serve.together)};
  seeded.serve = &serve;
  serve.requests.seed = serve.limits.seed = (uint64_t)call->agenda->seed;
  r.steps = calloc((size_t)r.engines, sizeof *r.steps);
  r.gaps = calloc((size_t)r.engines, sizeof *r.gaps);
  enum cct_status status =
      r.steps && r.gaps ? cct_requests_make(&serve.requests, &requests) : cct_fail(CCT_NOMEM, "out of memory");
  const struct cct_serving_run run = {
      .world = call->world,
      .ops = call->ops,
      .executor = call->executor,
      .job = call->job,
      .serve = &serve,
      .requests = &requests,
      .measure = call->measure,
  };
  status = cct_world_agree(call->world, status, call->measure.name, call->measure.patience_ns);
  if (!status)
    status = perform(&r, &run);
  status = cct_world_agree(call->world, status ? status : r.status, call->measure.name, call->measure.patience_ns);
  if (!status)
    status = record(&r);
  for (int m = 0; m < METRIC_COUNT; m++)
    free(r.rows[m].items);
  free(r.steps);
  free(r.gaps);
  cct_requests_free(&requests);
  return status;
}
