/* SPDX-License-Identifier: Apache-2.0
 * A sequence of a small decode-like program: steps in a graph padded to sizes, eager steps between them, idle ones; KV
 * caches that grow; metadata with the binding in front; ids read back by a worker lane, or by the engine. Checked are
 * what each step's kernels read on the device, the order and the lanes; printed what binding a step costs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_check.h"

enum {
  most_steps = 200,
  n_layers = 4,
  IDLE = 0,
  GRAPH,
  EAGER, /* forms */
  FORM = 0,
  TOKENS,
  KV,
  META,
  n_slots, /* slots */
  most_lanes = 2,
};
/* Where times tell nothing, fewer do. */
static int steps_of(const struct gpu *gpu) {
  return gpu->is_shared ? 40 : most_steps;
}

/* What a step is made of, besides the work. */
struct kind {
  const char *name;
  int has_worker, has_carrier;
  int64_t schedule_ns, gpu_ns; /* on the host before, and on the stream behind each step */
};

struct lanes {
  int host, worker, main, readback;
};

static int add(struct cct_program *p, struct cct_op op, int lane, int host, const char *name,
               const struct cct_wait *waits, int n) {
  op.lane = lane;
  op.host = host;
  op.reads[0] = op.reads[1] = op.writes = -1;
  op.name = name;
  return cct_program_add(p, &op, waits, n);
}

static void end(struct cct_program *p, int opens) {
  add(p, (struct cct_op){.kind = CCT_OP_END, .end = {opens}}, -1, -1, "end", NULL, 0);
}

/* Returns the last entry. */
static int layers(struct cct_program *p, const struct lanes *l, int host, int ranks) {
  int last = -1;
  for (int i = 0; i < n_layers; i++) {
    add(p,
        (struct cct_op){.kind = CCT_OP_GEMM,
                        .gemm = {.m = cct_per_slot(1, TOKENS), .n = 64, .k = 64, .groups = 1, .type = CCT_TYPE_BF16}},
        l->main, host, "qkv", NULL, 0);
    add(p,
        (struct cct_op){.kind = CCT_OP_ATTENTION,
                        .attention = {cct_per_slot(16, KV), cct_per_slot(1024, KV), CCT_TYPE_BF16}},
        l->main, host, "attention", NULL, 0);
    if (ranks > 1)
      add(p,
          (struct cct_op){.kind = CCT_OP_COLLECTIVE,
                          .collective = {.kind = CCT_COLL_ALL_REDUCE,
                                         .bytes = cct_per_slot(512, TOKENS),
                                         .type = CCT_TYPE_BF16,
                                         .matrix = -1}},
          l->main, host, "reduce", NULL, 0);
    last = add(p, (struct cct_op){.kind = CCT_OP_ELEMENTWISE, .elementwise = {(struct cct_quantity){64, 64, KV}}},
               l->main, host, "norm", NULL, 0);
  }
  return last;
}

static int open_case(struct cct_program *p, int64_t form) {
  return add(p, (struct cct_op){.kind = CCT_OP_CASE, .when = {FORM, form}}, -1, -1, "form", NULL, 0);
}

/* The entry; -1: it holds for no time and waits for nothing, so there is none. */
static int hold(struct cct_program *p, enum cct_op_kind kind, int64_t ns, int lane, int host, const char *name,
                const struct cct_wait *wait) {
  struct cct_op op = {.kind = kind};
  if (kind == CCT_OP_HOSTWORK)
    op.hostwork.ns = ns;
  else
    op.delay.ns = ns;
  if (kind == CCT_OP_DELAY)
    op.delay.of = -1;
  return ns || wait ? add(p, op, lane, host, name, wait, wait != NULL) : -1;
}

static struct cct_job *decode(const struct kind *kind, int ranks) {
  static const char *const names[n_slots] = {"form", "tokens", "kv", "meta"};
  struct cct_program *p;
  struct cct_job *job;
  struct lanes l;
  if (cct_program_new(kind->name, &p) || cct_job_new(ranks, &job))
    exit(1);
  l.host = cct_program_add_lane(p, "engine", CCT_LANE_HOST);
  l.main = cct_program_add_lane(p, "main", CCT_LANE_STREAM);
  l.readback = cct_program_add_lane(p, "readback", CCT_LANE_STREAM);
  l.worker = kind->has_worker ? cct_program_add_lane(p, "worker", CCT_LANE_HOST) : l.host;
  for (int i = 0; i < n_slots; i++)
    cct_program_add_slot(p, names[i], i == TOKENS ? 8 : i == KV ? 1 : 0);
  hold(p, CCT_OP_HOSTWORK, kind->schedule_ns, -1, l.host, "schedule", NULL);
  struct cct_op copy = {.kind = CCT_OP_COPY,
                        .copy = {.direction = CCT_COPY_H2D,
                                 .memory = CCT_MEM_PINNED,
                                 .bytes = {8 * n_slots, 8, META},
                                 .carries_binding = kind->has_carrier}};
  add(p, copy, l.main, l.host, "input", NULL, 0);
  int graph_case = open_case(p, GRAPH);
  int graph = add(p, (struct cct_op){.kind = CCT_OP_GRAPH, .graph = {1, 0}}, l.main, l.host, "decode", NULL, 0);
  layers(p, &l, -1, ranks);
  end(p, graph);
  end(p, graph_case);
  int eager_case = open_case(p, EAGER);
  int last = layers(p, &l, l.host, ranks);
  end(p, eager_case);
  int model = hold(p, CCT_OP_DELAY, kind->gpu_ns, l.main, l.host, "model", NULL);
  copy.copy =
      (struct cct_op){.copy = {.direction = CCT_COPY_D2H, .memory = CCT_MEM_PINNED, .bytes = cct_per_slot(4, TOKENS)}}
          .copy;
  struct cct_wait on[3] = {{graph, 0}, {last, 0}, {model, 0}};
  int ids = add(p, copy, l.readback, l.host, "ids", on, model < 0 ? 2 : 3);
  add(p, (struct cct_op){.kind = CCT_OP_SYNC}, l.readback, l.worker, "ids_sync", &(struct cct_wait){ids, 0}, 1);
  cct_job_add_group(job, "all", ranks, 1);
  if (cct_job_add_role(job, p, 0, ranks))
    exit(1);
  return job;
}

struct cct_job *sequence_job(int ranks) {
  return decode(&(struct kind){"decode", 1, 1, 0, 0}, ranks);
}

/* ---- the steps ---- */

struct play {
  int64_t slots[CCT_SEQUENCE_DEPTH][n_slots];
  int n, only_graph, kv_of_last;
};

static void step_of(const struct play *play, int64_t index, int64_t *slots) {
  slots[FORM] = play->only_graph ? GRAPH : index % 31 == 30 ? IDLE : index % 7 == 6 ? EAGER : GRAPH;
  slots[TOKENS] = slots[FORM] == EAGER ? 17 + index % 5 : index % 3 ? 8 : 16;
  slots[KV] = 1 + 3 * index;
  slots[META] = slots[TOKENS] + index / 16;
}

static enum cct_status next(void *context, int64_t index, const int64_t *now_ns, struct cct_binding *bindings,
                            int64_t *not_before_ns, int *is_over) {
  struct play *play = context;
  (void)now_ns;
  *not_before_ns = 0;
  *is_over = index == play->n;
  step_of(play, index, play->slots[index % CCT_SEQUENCE_DEPTH]);
  bindings->slots = play->slots[index % CCT_SEQUENCE_DEPTH];
  return CCT_OK;
}

/* Each form and size once, untimed, the largest first. */
static enum cct_status perform_once(struct gpu *gpu, struct cct_executor *x, const struct play *play) {
  int64_t slots[n_slots], took;
  struct cct_burst burst = {0, &took};
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < 40; i++) {
    step_of(play, i, slots);
    slots[KV] = 1 + 3 * most_steps;
    slots[META] = 64;
    status = gpu->ops->step(x, &(struct cct_binding){.slots = slots}, 1, &burst);
  }
  return status;
}

static enum cct_status perform(struct gpu *gpu, struct cct_executor *x, struct play *play,
                               struct cct_sequence *sequence, int64_t *ends, int64_t *took_ns) {
  struct cct_burst burst = {0, took_ns};
  *sequence = (struct cct_sequence){.context = play, .next = next, .most_steps = play->n, .lane_end_ns = ends};
  (void)gpu->world->ops->barrier(gpu->world);
  return gpu->ops->sequence(x, sequence, &burst);
}

/* ---- what kernels read ---- */

/* Bytes of each streaming kernel in order, by their difference to the first one's. */
static int reads_right(struct gpu *gpu, struct cct_executor *x, char *why, size_t n_why) {
  enum {
    most = 4096
  };
  double *series = calloc(2 * most, sizeof *series);
  int64_t ends[most_steps * most_lanes], took;
  struct play play = {.n = steps_of(gpu)};
  struct cct_sequence sequence;
  int got = 0, at = 0, is_good = 0;
  if (!series || gpu->ops->experiment(gpu->backend, "stamps", NULL, 0, series, 2 * most, &got) ||
      perform(gpu, x, &play, &sequence, ends, &took) ||
      gpu->ops->experiment(gpu->backend, "stamps", NULL, 0, series, 2 * most, &got)) {
    snprintf(why, n_why, "the sequence failed");
    goto out;
  }
  for (int step = 0; step < play.n; step++) {
    int64_t slots[n_slots];
    step_of(&play, step, slots);
    for (int k = 0; slots[FORM] != IDLE && k < 2 * n_layers; k++, at++) {
      int64_t wanted = (k % 2 ? 64 + 64 * slots[KV] : 1024 * slots[KV]) - 1024; /* the first one: step 0's attention */
      if (2 * at + 1 < got && (int64_t)series[2 * at + 1] == wanted)
        continue;
      snprintf(why, n_why, "step %d, kernel %d read %.0f bytes more than the first one, not %lld", step, k,
               2 * at + 1 < got ? series[2 * at + 1] : -1, (long long)wanted);
      goto out;
    }
  }
  snprintf(why, n_why, "%d kernels in %d steps read the slots of their own step", at, play.n);
  is_good = 2 * at == got;
out:
  free(series);
  return is_good;
}

/* The last step's order: input, work, read-back, its synchronisation; what it leaves out has no time. */
static int keeps_order(struct gpu *gpu, struct cct_executor *x, const struct cct_program *p) {
  struct cct_span *spans = calloc((size_t)p->n_ops, sizeof *spans);
  int input = -1, ids = -1, sync = -1, is_good = spans && !gpu->ops->trace(x, 0, spans);
  int64_t slots[n_slots], last_work = 0;
  step_of(&(struct play){.n = steps_of(gpu)}, steps_of(gpu) - 1, slots);
  for (int id = 0; is_good && id < p->n_ops; id++) {
    const struct cct_op *op = &p->ops[id];
    int is_out = !cct_op_is_performed(p, op, &(struct cct_binding){.slots = slots});
    input = !strcmp(op->name, "input") ? id : input;
    ids = !strcmp(op->name, "ids") ? id : ids;
    sync = !strcmp(op->name, "ids_sync") ? id : sync;
    if (is_out)
      is_good = spans[id].end_ns == -1;
    else if (op->in_case >= 0 && spans[id].end_ns >= 0)
      last_work = spans[id].end_ns > last_work ? spans[id].end_ns : last_work;
    if (!is_out && op->in_case >= 0 && spans[id].end_ns >= 0)
      is_good &= spans[id].start_ns >= spans[input].end_ns;
  }
  int64_t late_ns =
      gpu->is_shared ? 10000000 : 0; /* the GPU's time in the host's is late by what its threads were held */
  is_good =
      is_good && last_work > 0 && spans[ids].start_ns >= last_work && spans[sync].end_ns + late_ns >= spans[ids].end_ns;
  free(spans);
  return is_good;
}

static int lanes_follow(const struct cct_sequence *sequence, const int64_t *ends) {
  for (int64_t i = 0; i < sequence->steps * sequence->n_host_lanes; i++)
    if (ends[i] < 0 || (i >= sequence->n_host_lanes && ends[i] < ends[i - sequence->n_host_lanes]))
      return 0;
  return sequence->steps > 0;
}

static void check_reads(struct gpu *gpu, const struct kind *kind) {
  struct cct_backend_options options = gpu->options;
  struct cct_backend *own = gpu->backend;
  struct arm arm;
  char why[160] = "not loaded";
  options.is_traced = 1;
  if (gpu->ops->open(gpu->world, &options, &gpu->backend)) {
    gpu->backend = own;
    gpu_check(gpu, 0, "%s: no backend that is traced", kind->name);
    return;
  }
  arm_open(gpu, &arm, kind->name, decode(kind, gpu->world->size), 0);
  int is_right = arm.x && !perform_once(gpu, arm.x, &(struct play){.n = steps_of(gpu)}) &&
                 reads_right(gpu, arm.x, why, sizeof why);
  gpu_check(gpu, is_right, "%-20s %s", kind->name, why);
  gpu_check(gpu, is_right && keeps_order(gpu, arm.x, arm.job->roles[0].program), "%-20s the last step in its order",
            kind->name);
  arm_close(gpu, &arm);
  gpu->ops->close(gpu->backend);
  gpu->backend = own;
}

/* ---- what it costs ---- */

static double timed(struct gpu *gpu, const struct kind *kind, int only_graph, double *binding_us_out) {
  struct arm arm;
  struct play play = {.n = steps_of(gpu), .only_graph = only_graph};
  struct cct_sequence sequence = {0};
  int64_t *ends = calloc(most_steps * most_lanes, sizeof *ends), took = 0, best = INT64_MAX;
  double binding_us = 1e9;
  arm_open(gpu, &arm, kind->name, decode(kind, gpu->world->size), 0);
  int is_good = ends && arm.x && !perform_once(gpu, arm.x, &play);
  for (int i = 0; i < (gpu->is_shared ? 1 : 3) && is_good; i++) {
    is_good = !perform(gpu, arm.x, &play, &sequence, ends, &took) && lanes_follow(&sequence, ends) &&
              sequence.steps == play.n;
    best = took < best ? took : best;
    binding_us = sequence.binding_us < binding_us ? sequence.binding_us : binding_us;
  }
  gpu_check(gpu, is_good, "%-20s %d steps%s, lanes in turn", kind->name, play.n, only_graph ? " in a graph" : "");
  arm_close(gpu, &arm);
  free(ends);
  *binding_us_out = gpu_worst(gpu, binding_us);
  return gpu_worst(gpu, is_good ? (double)best / play.n : 0);
}

static void check_costs(struct gpu *gpu) {
  static const struct kind engine = {"engine reads back", 0, 1, 0, 0}, worker = {"worker reads back", 1, 1, 0, 0};
  for (int i = 0; i < 2; i++) {
    double binding_us, mixed_us;
    double graph_ns = timed(gpu, i ? &worker : &engine, 1, &binding_us);
    double mixed_ns = timed(gpu, i ? &worker : &engine, 0, &mixed_us);
    gpu_check(gpu, gpu->is_shared || binding_us < 5, "%-20s binding %.2f us a step in a graph (bar 5), %.2f mixed",
              i ? worker.name : engine.name, binding_us, mixed_us);
    gpu_say(gpu, "      %-20s %.1f us a step in a graph, %.1f mixed\n", i ? worker.name : engine.name, graph_ns / 1e3,
            mixed_ns / 1e3);
  }
}

/* 1 ms on the host and 1 ms on the GPU a step: the worker hides one behind the other, the engine waits for both. */
static void check_overlap(struct gpu *gpu) {
  static const struct kind engine = {"engine, 1 ms + 1 ms", 0, 1, 1000000, 1000000},
                           worker = {"worker, 1 ms + 1 ms", 1, 1, 1000000, 1000000};
  double binding_us, apart_ns = timed(gpu, &engine, 1, &binding_us), over_ns = timed(gpu, &worker, 1, &binding_us);
  gpu_check(gpu, gpu->is_shared || (apart_ns > 1.9e6 && over_ns < 1.4e6),
            "%-20s %.3f ms a step, with a worker lane %.3f (bars: above 1.9, below 1.4)", "overlap", apart_ns / 1e6,
            over_ns / 1e6);
}

static void check_refused(struct gpu *gpu) {
  static const struct kind bare = {"no carrier", 0, 0, 0, 0};
  struct arm arm;
  struct play play = {.n = steps_of(gpu)};
  struct cct_sequence sequence;
  int64_t ends[most_steps * most_lanes], took;
  arm_open(gpu, &arm, bare.name, decode(&bare, gpu->world->size), 0);
  int is_ready = arm.x && !perform_once(gpu, arm.x, &play);
  cct_log_mute(1);
  enum cct_status status = is_ready ? perform(gpu, arm.x, &play, &sequence, ends, &took) : CCT_OK;
  cct_log_mute(0);
  gpu_check(gpu, status == CCT_USAGE, "%-20s refused: kernels would read the slots of another step", bare.name);
  arm_close(gpu, &arm);
}

void check_sequence(struct gpu *gpu) {
  static const struct kind engine = {"engine reads", 0, 1, 0, 0}, worker = {"worker reads", 1, 1, 0, 0};
  check_refused(gpu);
  check_reads(gpu, &engine);
  check_reads(gpu, &worker);
  check_costs(gpu);
  check_overlap(gpu);
}
