/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "workloads/program/emulate.h"

void gpu_say(const struct gpu *gpu, const char *format, ...) {
  if (gpu->world->rank)
    return;
  va_list args;
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  fflush(stdout);
}

void gpu_check(struct gpu *gpu, int is_good, const char *format, ...) {
  int64_t bad = !is_good;
  if (gpu->world->size > 1 && gpu->world->ops->allreduce_i64(gpu->world, &bad, 1, CCT_REDUCE_MAX))
    bad = 1;
  gpu->checks++;
  gpu->failed += bad != 0;
  if (gpu->world->rank)
    return;
  va_list args;
  va_start(args, format);
  printf("%s  ", bad ? "FAIL" : "PASS");
  vprintf(format, args);
  printf("\n");
  fflush(stdout);
  va_end(args);
}

void arm_open(struct gpu *gpu, struct arm *arm, const char *name, struct cct_job *job, int verify) {
  struct cct_wrong wrong = {0};
  *arm = (struct arm){.job = job};
  snprintf(arm->name, sizeof arm->name, "%s", name);
  enum cct_status status = job ? cct_job_check(job) : CCT_NOMEM;
  if (!status)
    status = gpu->ops->load(gpu->backend, job, &arm->x);
  if (!status && verify)
    status = gpu->ops->verify(arm->x, NULL, &wrong);
  if (status || wrong.wrong)
    gpu_check(gpu, 0, "%s: %s; %lld wrong of %lld: %s", name, cct_status_name(status), (long long)wrong.wrong,
              (long long)wrong.elements, wrong.first);
  else if (verify)
    gpu_check(gpu, 1, "%-34s %12lld values right", name, (long long)wrong.elements);
}

void arm_close(struct gpu *gpu, struct arm *arm) {
  gpu->ops->unload(arm->x);
  cct_job_free(arm->job);
  free(arm->ns);
  free(arm->submitting_ns);
  *arm = (struct arm){.rounds = 0};
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double quantile(double *values, int n, double q) {
  qsort(values, (size_t)n, sizeof *values, by_value);
  return n ? values[(int)(q * (n - 1) + 0.5)] : NAN;
}

static double quantile_of(const double *a, const double *b, double more, int divides, int n, double q) {
  double *values = calloc((size_t)n + 1, sizeof *values);
  for (int i = 0; values && i < n; i++)
    values[i] = !b ? a[i] : divides ? a[i] / (b[i] + more) : a[i] - b[i];
  double value = values ? quantile(values, n, q) : NAN;
  free(values);
  return value;
}

double arm_quantile(const struct arm *arm, double q) {
  return quantile_of(arm->ns, NULL, 0, 0, arm->rounds, q);
}
double arm_median(const struct arm *arm) {
  return arm_quantile(arm, 0.5);
}
double arm_submitting(const struct arm *arm) {
  return quantile_of(arm->submitting_ns, NULL, 0, 0, arm->rounds, 0.5);
}
double arm_more(const struct arm *arm, const struct arm *base) {
  return quantile_of(arm->ns, base->ns, 0, 0, arm->rounds, 0.5);
}
double arm_ratio(const struct arm *arm, const struct arm *base, double base_more_ns) {
  return quantile_of(arm->ns, base->ns, base_more_ns, 1, arm->rounds, 0.5);
}

double gpu_worst(const struct gpu *gpu, double value) {
  if (gpu->world->size > 1)
    (void)gpu->world->ops->allreduce_f64(gpu->world, &value, 1, CCT_REDUCE_MAX);
  return value;
}

/* The slowest rank's burst, and the longest submitting. */
static void one_burst(struct gpu *gpu, struct arm *arm, int n, const struct cct_binding *binding, double out[2]) {
  int64_t took = 0;
  struct cct_burst burst = {0, &took};
  int got = 0;
  (void)gpu->world->ops->barrier(gpu->world);
  if (gpu->ops->step(arm->x, binding, n, &burst) ||
      gpu->ops->experiment(gpu->backend, "submitting", NULL, 0, &out[1], 1, &got)) {
    gpu_check(gpu, 0, "%s: a step failed", arm->name);
    exit(1);
  }
  out[0] = (double)took / n;
  out[1] /= n;
  if (gpu->world->size > 1)
    (void)gpu->world->ops->allreduce_f64(gpu->world, out, 2, CCT_REDUCE_MAX);
}

void arms_time(struct gpu *gpu, struct arm *arms, int n_arms, int rounds, int n, const struct cct_binding *binding) {
  int first = rounds / 10 + 1, order[16];
  for (int a = 0; a < n_arms; a++) {
    free(arms[a].ns);
    free(arms[a].submitting_ns);
    arms[a].ns = calloc((size_t)rounds, sizeof *arms[a].ns);
    arms[a].submitting_ns = calloc((size_t)rounds, sizeof *arms[a].submitting_ns);
    arms[a].rounds = rounds;
    order[a] = a;
  }
  for (int round = -first; round < rounds; round++) {
    for (int i = n_arms - 1; i > 0; i--) {
      int k = (int)cct_random_below((uint64_t)n_arms, (uint64_t)((round + first) * 16 + i), i + 1), swapped = order[i];
      order[i] = order[k];
      order[k] = swapped;
    }
    for (int i = 0; i < n_arms; i++) {
      struct arm *arm = &arms[order[i]];
      double out[2] = {NAN, NAN};
      if (arm->x)
        one_burst(gpu, arm, n, binding, out);
      if (round >= 0) {
        arm->ns[round] = out[0];
        arm->submitting_ns[round] = out[1];
      }
    }
  }
}

/* ---- programs ---- */

void build_begin(struct build *b, const char *name, enum form form, int64_t surcharge_ns) {
  *b = (struct build){.form = form, .surcharge_ns = surcharge_ns};
  if (cct_program_new(name, &b->program))
    exit(1);
  b->host = cct_program_add_lane(b->program, "host", CCT_LANE_HOST);
  b->lane = cct_program_add_lane(b->program, "main", CCT_LANE_STREAM);
}

int build_add(struct build *b, struct cct_op op) {
  op.lane = b->lane;
  op.host = b->is_in_graph ? -1 : b->host;
  op.reads[0] = op.reads[1] = op.writes = -1;
  b->submissions += !b->is_in_graph;
  return cct_program_add(b->program, &op, NULL, 0);
}

void build_gemm(struct build *b, enum cct_type type, int64_t m, int64_t n, int64_t k, int groups) {
  build_add(b, (struct cct_op){.kind = CCT_OP_GEMM,
                               .name = "product",
                               .gemm = {.m = cct_constant(m), .n = n, .k = k, .groups = groups, .type = type}});
}

void build_elementwise(struct build *b, int64_t bytes) {
  build_add(b, (struct cct_op){
                   .kind = CCT_OP_ELEMENTWISE, .name = "elementwise", .elementwise = {.bytes = cct_constant(bytes)}});
}

void build_attention(struct build *b, double flops, int64_t kv_bytes) {
  build_add(b, (struct cct_op){.kind = CCT_OP_ATTENTION,
                               .name = "attention",
                               .attention = {.flops = cct_constant((int64_t)flops),
                                             .kv_bytes = cct_constant(kv_bytes),
                                             .type = CCT_TYPE_BF16}});
}

void build_copy(struct build *b, enum cct_direction direction, enum cct_memory memory, int64_t bytes, int is_blocking) {
  build_add(b, (struct cct_op){.kind = CCT_OP_COPY,
                               .name = "copy",
                               .copy = {.direction = direction,
                                        .memory = memory,
                                        .bytes = cct_constant(bytes),
                                        .is_blocking = is_blocking}});
}

void build_collective(struct build *b, enum cct_collective kind, int group, int64_t bytes, enum cct_type type,
                      enum cct_algorithm algorithm) {
  build_add(b, (struct cct_op){.kind = CCT_OP_COLLECTIVE,
                               .name = cct_collective_name(kind),
                               .collective = {.kind = kind,
                                              .group = group,
                                              .bytes = cct_constant(bytes),
                                              .type = type,
                                              .algorithm = algorithm,
                                              .matrix = -1}});
}

int build_open(struct build *b, enum cct_op_kind bracket, int key) {
  struct cct_op op = {.kind = bracket, .name = cct_op_name(bracket)};
  if (bracket == CCT_OP_GRAPH)
    op.graph.key = key;
  int id = build_add(b, op);
  b->is_in_graph += bracket == CCT_OP_GRAPH;
  return id;
}

void build_close(struct build *b, int opened) {
  struct cct_op op = {.kind = CCT_OP_END, .lane = -1, .host = -1, .reads = {-1, -1}, .writes = -1, .name = "end"};
  op.end.opens = opened;
  b->is_in_graph -= b->program->ops[opened].kind == CCT_OP_GRAPH;
  cct_program_add(b->program, &op, NULL, 0);
}

int build_delay(struct build *b, int lane, int64_t ns, const struct cct_wait *waits, int n) {
  struct cct_op op = {.kind = CCT_OP_DELAY,
                      .lane = lane,
                      .host = b->is_in_graph ? -1 : b->host,
                      .reads = {-1, -1},
                      .writes = -1,
                      .name = "delay"};
  op.delay.ns = ns;
  op.delay.of = -1;
  return cct_program_add(b->program, &op, waits, n);
}

void build_sync(struct build *b) {
  struct cct_op op = {
      .kind = CCT_OP_SYNC, .lane = b->lane, .host = b->host, .reads = {-1, -1}, .writes = -1, .name = "sync"};
  cct_program_add(b->program, &op, NULL, 0);
}

/* As an emulated arm's program is made, so that what is checked is what users run. */
static struct cct_job *with_surcharges(const struct build *b, struct cct_job *job) {
  struct cct_profile profile = {.name = "surcharge", .has_clear = 1, .has_confidential = 1};
  struct cct_job *emulated = NULL;
  profile.clear.cpu_slowdown.value = profile.confidential.cpu_slowdown.value = 1;
  profile.confidential.submission.form = b->form == FORM_HOST ? CCT_FORM_HOST : CCT_FORM_STREAM;
  profile.confidential.submission.us.value = (double)b->surcharge_ns / 1e3;
  profile.confidential.graph_launch.us.value = (double)b->surcharge_ns / 1e3;
  if (cct_emulate(job, &profile, 1u << CCT_BOUNDARY_CHANNEL, &emulated))
    exit(1);
  cct_job_free(job);
  return emulated;
}

struct cct_job *build_end(struct build *b, int ranks) {
  struct cct_job *job = NULL;
  if (cct_job_new(ranks, &job))
    exit(1);
  cct_job_add_group(job, "all", ranks, 1);
  if (cct_job_add_role(job, b->program, 0, ranks))
    exit(1);
  return b->form == FORM_CLEAR ? job : with_surcharges(b, job);
}
