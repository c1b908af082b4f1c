/* SPDX-License-Identifier: Apache-2.0
 * Is it fast, and is emulation what it claims? Every comparison is made in turns, step by step, within one run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_check.h"

static double bare(struct gpu *gpu, const char *name, const double *parameters, int n) {
  double out[2] = {NAN, NAN};
  int got = 0;
  if (gpu->ops->experiment(gpu->backend, name, parameters, n, out, 2, &got))
    gpu_check(gpu, 0, "experiment %s failed", name);
  return out[1];
}

enum {
  TURNS = 41
};

/* Own and bare in turns; the ratio of each turn, and of those the median, of the rank that is worst. */
static void overhead(struct gpu *gpu, struct arm *arm, int n, const char *name, const double *parameters, int count,
                     double per_step, double limit, const char *what) {
  double own[TURNS], plain[TURNS], ratio[TURNS];
  for (int i = -1; arm->x && i < TURNS; i++) {
    int at = i < 0 ? 0 : i;
    int64_t took = 0;
    struct cct_burst burst = {0, &took};
    for (int which = 0; which < 2; which++)
      if (which == (at & 1))
        plain[at] = bare(gpu, name, parameters, count);
      else if (gpu->ops->step(arm->x, NULL, n, &burst)) {
        gpu_check(gpu, 0, "%s: a step failed", what);
        exit(1);
      }
    own[at] = (double)took / n / per_step;
    ratio[at] = own[at] / plain[at];
  }
  if (!arm->x)
    return;
  double worst = gpu_worst(gpu, quantile(ratio, TURNS, 0.5)), own_us = quantile(own, TURNS, 0.5) / 1e3;
  gpu_check(gpu, worst <= limit,
            "%s: %.2f us an operation, bare %.2f us: x%.3f on the worst rank (bar x%.3f; here %d turns from x%.3f to "
            "x%.3f, p10 to p90)",
            what, own_us, quantile(plain, TURNS, 0.5) / 1e3, worst, limit, TURNS, quantile(ratio, TURNS, 0.1),
            quantile(ratio, TURNS, 0.9));
  if (per_step == 1)
    gpu_say(gpu, "      %s: %.0f TFLOP/s\n", what, 2 * pow(8192, 3) / own_us / 1e6);
}

void figures_overhead(struct gpu *gpu) {
  struct build b;
  struct arm arm;
  build_begin(&b, "gemm 8192", FORM_CLEAR, 0);
  build_gemm(&b, CCT_TYPE_BF16, 8192, 8192, 8192, 1);
  arm_open(gpu, &arm, "gemm 8192", build_end(&b, gpu->world->size), 1);
  overhead(gpu, &arm, 20, "bare_gemm", (double[]){8192, 8192, 8192, 20}, 4, 1, 1 / 0.95, "bf16 GEMM 8192^3");
  arm_close(gpu, &arm);

  build_begin(&b, "launches", FORM_CLEAR, 0);
  for (int i = 0; i < 500; i++)
    build_add(&b, (struct cct_op){.kind = CCT_OP_LAUNCH, .name = "empty"});
  arm_open(gpu, &arm, "launches", build_end(&b, gpu->world->size), 0);
  overhead(gpu, &arm, 4, "bare_launch", (double[]){2000}, 1, 500, 1.05, "500 empty kernels");
  arm_close(gpu, &arm);

  build_begin(&b, "small products", FORM_CLEAR, 0);
  for (int i = 0; i < 500; i++)
    build_gemm(&b, CCT_TYPE_BF16, 8, 256, 256, 1);
  arm_open(gpu, &arm, "small products", build_end(&b, gpu->world->size), 0);
  overhead(gpu, &arm, 2, "bare_gemm", (double[]){8, 256, 256, 1000}, 4, 500, 1.05, "500 products of 8x256x256");
  arm_close(gpu, &arm);
}

/* ---- surcharges a submission ---- */

static const double surcharges_us[] = {12.25, 20.5, 31};

static void open_shape(struct gpu *gpu, struct arm *arm, enum shape shape, enum part part, int in_graph, enum form form,
                       double us) {
  int submissions = 0;
  struct cct_job *job = shape_job(gpu, shape, part, in_graph, form, us, &submissions);
  arm_open(gpu, arm, shape_names[shape], job, 0);
  arm->submissions = submissions;
}

/* What the law says of form host: the host is busy with the clear program's own submitting and a surcharge before each,
 * until it has submitted the last large product; from there on it is far ahead, and the tail takes its time. Where that
 * is less than the clear step, the GPU hides it. */
static double by_law_host(const struct arm *clear, const struct arm *tail, int round, double surcharge_ns) {
  int before = clear->submissions - tail->submissions;
  double until_tail_ns = clear->submitting_ns[round] - tail->submitting_ns[round] + (before + 1) * surcharge_ns;
  return fmax(clear->ns[round], until_tail_ns + tail->ns[round]);
}

static void emulate_shape(struct gpu *gpu, enum shape shape) {
  enum {
    CLEAR,
    GRAPH,
    TAIL,
    STREAM,
    HOST = STREAM + 3,
    ARMS = HOST + 3,
    ROUNDS = 60
  };
  struct arm arms[ARMS];
  struct cct_counts counts = {0};
  open_shape(gpu, &arms[CLEAR], shape, PART_ALL, 0, FORM_CLEAR, 0);
  open_shape(gpu, &arms[GRAPH], shape, PART_ALL, 1, FORM_CLEAR, 0);
  open_shape(gpu, &arms[TAIL], shape, PART_TAIL, 0, FORM_CLEAR, 0);
  for (int i = 0; i < 3; i++) {
    open_shape(gpu, &arms[STREAM + i], shape, PART_ALL, 0, FORM_STREAM, surcharges_us[i]);
    open_shape(gpu, &arms[HOST + i], shape, PART_ALL, 0, FORM_HOST, surcharges_us[i]);
  }
  arms_time(gpu, arms, ARMS, ROUNDS, 1, NULL);
  if (arms[CLEAR].x)
    (void)gpu->ops->counts(arms[CLEAR].x, &counts);
  double clear = arm_median(&arms[CLEAR]) / 1e3;
  int n = arms[CLEAR].submissions;
  gpu_say(gpu,
          "      %s: %d submissions (%lld performed), clear %.0f us (p10 %.0f, p90 %.0f), in a graph %.0f us, from the "
          "last product on %.0f us, submitting %.2f us each\n",
          shape_names[shape], n, (long long)counts.submissions, clear, arm_quantile(&arms[CLEAR], 0.1) / 1e3,
          arm_quantile(&arms[CLEAR], 0.9) / 1e3, arm_median(&arms[GRAPH]) / 1e3, arm_median(&arms[TAIL]) / 1e3,
          arm_submitting(&arms[CLEAR]) / 1e3 / n);
  for (int i = 0; i < 3; i++) {
    double us = surcharges_us[i], law[ROUNDS], off[ROUNDS];
    double stream = arm_ratio(&arms[STREAM + i], &arms[CLEAR], n * us * 1e3);
    gpu_check(gpu, fabs(stream - 1) < 0.03, "%-18s stream +%5.2f us: %7.0f us x%.3f, by count %7.0f (%+.1f %%, bar 3)",
              shape_names[shape], us, arm_median(&arms[STREAM + i]) / 1e3,
              arm_ratio(&arms[STREAM + i], &arms[CLEAR], 0), clear + n * us, 100 * (stream - 1));
    for (int r = 0; r < ROUNDS; r++) {
      law[r] = by_law_host(&arms[CLEAR], &arms[TAIL], r, us * 1e3);
      off[r] = arms[HOST + i].ns[r] / law[r];
    }
    double host = quantile(off, ROUNDS, 0.5);
    gpu_check(gpu, fabs(host - 1) < 0.05, "%-18s host   +%5.2f us: %7.0f us x%.3f, by the law %6.0f (%+.1f %%, bar 5)",
              shape_names[shape], us, arm_median(&arms[HOST + i]) / 1e3, arm_ratio(&arms[HOST + i], &arms[CLEAR], 0),
              quantile(law, ROUNDS, 0.5) / 1e3, 100 * (host - 1));
  }
  for (int i = 0; i < ARMS; i++)
    arm_close(gpu, &arms[i]);
}

/* One graph a step, closed by its read-back: two submissions. Form host pays the second while the GPU still runs the
 * graph, unless the host waits for the graph before it asks for the read-back. Each program is loaded twice, for one in
 * other memory takes some microseconds more or less: the mean of both loads is judged, and what they differ by told. */
static void emulate_graph(struct gpu *gpu, enum part part) {
  enum {
    CLEAR,
    STREAM,
    HOST = STREAM + 3,
    ARMS = HOST + 3,
    LOADS = 2
  };
  struct arm arms[LOADS * ARMS];
  const char *what = part == PART_ALL ? "" : ", synced";
  for (int load = 0; load < LOADS; load++) {
    struct arm *own = arms + load * ARMS;
    open_shape(gpu, &own[CLEAR], DECODE, part, 1, FORM_CLEAR, 0);
    for (int i = 0; i < 3; i++) {
      open_shape(gpu, &own[STREAM + i], DECODE, part, 1, FORM_STREAM, surcharges_us[i]);
      open_shape(gpu, &own[HOST + i], DECODE, part, 1, FORM_HOST, surcharges_us[i]);
    }
  }
  arms_time(gpu, arms, LOADS * ARMS, 80, 1, NULL);
  const struct arm *again = arms + ARMS;
  int n = arms[CLEAR].submissions;
  gpu_say(gpu,
          "      decode in one graph%s: clear %.1f us (p10 %.1f, p90 %.1f), the same loaded once more %+.1f us, %d "
          "submissions outside\n",
          what, arm_median(&arms[CLEAR]) / 1e3, arm_quantile(&arms[CLEAR], 0.1) / 1e3,
          arm_quantile(&arms[CLEAR], 0.9) / 1e3, arm_more(&again[CLEAR], &arms[CLEAR]) / 1e3, n);
  for (int i = STREAM; i < ARMS; i++) {
    int seen = i < HOST || part == PART_ALL_SYNCED ? n : 1;
    double one = arm_more(&arms[i], &arms[CLEAR]) / 1e3, other = arm_more(&again[i], &again[CLEAR]) / 1e3;
    double us = surcharges_us[(i - STREAM) % 3], more = (one + other) / 2, wanted = seen * us;
    gpu_check(gpu, fabs(more - wanted) < 10,
              "graph%s %s +%5.2f us: +%.1f us (%.1f and %.1f), by the law +%.1f (%+.1f us, bar 10)", what,
              i < HOST ? "stream" : "host  ", us, more, one, other, wanted, more - wanted);
  }
  for (int i = 0; i < LOADS * ARMS; i++)
    arm_close(gpu, &arms[i]);
}

/* What a DELAY adds beyond itself behind a graph whose end the host awaits, where emulated arms have it, and as the
 * graph's last node. */
static void behind_graph(struct gpu *gpu) {
  enum {
    CLEAR,
    BEHIND,
    INSIDE,
    ARMS
  };
  struct arm arms[ARMS];
  for (int i = 0; i < ARMS; i++) {
    struct build b;
    build_begin(&b, "graph", FORM_CLEAR, 0);
    int graph = build_open(&b, CCT_OP_GRAPH, 0);
    build_gemm(&b, CCT_TYPE_BF16, 8, 151936, 2560, 1);
    if (i == INSIDE)
      build_delay(&b, b.lane, 20500, NULL, 0);
    build_close(&b, graph);
    if (i == BEHIND)
      build_delay(&b, b.lane, 20500, NULL, 0);
    build_sync(&b);
    arm_open(gpu, &arms[i], "graph", build_end(&b, gpu->world->size), 0);
  }
  arms_time(gpu, arms, ARMS, 200, 1, NULL);
  gpu_say(gpu,
          "      a graph and a synchronisation take %.1f us; 20.5 us of DELAY add %.1f behind the graph, %.1f in it\n",
          arm_median(&arms[CLEAR]) / 1e3, arm_more(&arms[BEHIND], &arms[CLEAR]) / 1e3,
          arm_more(&arms[INSIDE], &arms[CLEAR]) / 1e3);
  for (int i = 0; i < ARMS; i++)
    arm_close(gpu, &arms[i]);
}

/* What a DELAY adds beyond itself on a lane that has run dry: its launch is then waited for, and a copy and a kernel
 * wait for each other across engines. Emulated arms have it behind what pays, where most of that hides. */
static void idle_lane(struct gpu *gpu) {
  struct arm arms[3];
  for (int i = 0; i < 3; i++) {
    struct build b;
    build_begin(&b, "read-back", FORM_CLEAR, 0);
    if (i == 1)
      build_delay(&b, b.lane, 20500, NULL, 0);
    build_copy(&b, CCT_COPY_D2H, CCT_MEM_PINNED, 64, 0);
    if (i == 2)
      build_delay(&b, b.lane, 20500, NULL, 0);
    build_sync(&b);
    arm_open(gpu, &arms[i], "read-back", build_end(&b, gpu->world->size), 0);
  }
  arms_time(gpu, arms, 3, 200, 1, NULL);
  gpu_say(gpu,
          "      a read-back on an idle lane takes %.1f us; 20.5 us of DELAY add %.1f in front of it, %.1f behind\n",
          arm_median(&arms[0]) / 1e3, arm_more(&arms[1], &arms[0]) / 1e3, arm_more(&arms[2], &arms[0]) / 1e3);
  for (int i = 0; i < 3; i++)
    arm_close(gpu, &arms[i]);
}

/* A DELAY on one lane must leave a product that fills the GPU on another lane alone. */
static void beside(struct gpu *gpu) {
  struct arm arms[2];
  for (int i = 0; i < 2; i++) {
    struct build b;
    build_begin(&b, i ? "product beside a delay" : "product alone", FORM_CLEAR, 0);
    int other = cct_program_add_lane(b.program, "other", CCT_LANE_STREAM);
    struct cct_op op = {
        .kind = CCT_OP_DELAY, .lane = other, .host = b.host, .reads = {-1, -1}, .writes = -1, .name = ""};
    op.delay.ns = i ? 1200000 : 0; /* 0: no kernel */
    op.delay.of = -1;
    cct_program_add(b.program, &op, NULL, 0);
    build_gemm(&b, CCT_TYPE_BF16, 8192, 8192, 8192, 1);
    op.kind = CCT_OP_SYNC;
    cct_program_add(b.program, &op, NULL, 0);
    arm_open(gpu, &arms[i], "beside", build_end(&b, gpu->world->size), 0);
  }
  arms_time(gpu, arms, 2, 60, 1, NULL);
  double ratio = gpu_worst(gpu, arm_ratio(&arms[1], &arms[0], 0));
  gpu_check(gpu, ratio < 1.02, "a DELAY beside a GEMM 8192^3: %.1f us, alone %.1f us: x%.3f (bar 1.02)",
            arm_median(&arms[1]) / 1e3, arm_median(&arms[0]) / 1e3, ratio);
  arm_close(gpu, &arms[0]);
  arm_close(gpu, &arms[1]);
  double own = NAN; /* what a block of an emulated arm records of itself */
  int got = 0;
  if (gpu->ops->experiment(gpu->backend, "beside", NULL, 0, &own, 1, &got))
    own = NAN;
  own = gpu_worst(gpu, own);
  gpu_check(gpu, own > 0.98 && own < 1.02 && fabs(own - ratio) < 0.015,
            "a block's own check of the same: x%.3f (bar 1.02, and within 0.015 of the step's)", own);
}

/* What train's products pay beyond a surcharge: one that comes after a rest takes longer than one in a row. A late
 * submission lets the GPU rest as a DELAY does, so this is the machine's, and emulation has it as the machine has. */
static void rest(struct gpu *gpu) {
  enum {
    IN_A_ROW,
    BEHIND_DELAY,
    AFTER_IDLENESS,
    WAYS
  };
  static const int shapes[][3] = {{8, 9728, 2560}, {512, 9728, 2560}, {2048, 9728, 2560}, {2048, 2560, 9728}};
  for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++)
    for (int i = 0; i < 3; i++) {
      const int *mnk = shapes[shape];
      double ns[WAYS] = {NAN, NAN, NAN};
      int got = 0;
      if (gpu->ops->experiment(gpu->backend, "rest", (double[]){surcharges_us[i] * 1e3, mnk[0], mnk[1], mnk[2]}, 4, ns,
                               WAYS, &got))
        got = 0;
      double delay = ns[BEHIND_DELAY] - ns[IN_A_ROW], idle = ns[AFTER_IDLENESS] - ns[IN_A_ROW];
      gpu_check(gpu, got == WAYS && fabs(delay - idle) < fmax(0.02 * ns[IN_A_ROW], 500),
                "a product of %dx%dx%d: %.2f us in a row, %+.2f behind a DELAY of %.2f us, %+.2f after as long an "
                "idleness (bar: within 2 %% of the product, or 0.5 us)",
                mnk[0], mnk[1], mnk[2], ns[IN_A_ROW] / 1e3, delay / 1e3, surcharges_us[i], idle / 1e3);
    }
}

void figures_emulation(struct gpu *gpu) {
  for (int shape = 0; shape < SHAPES; shape++)
    emulate_shape(gpu, (enum shape)shape);
  emulate_graph(gpu, PART_ALL);
  emulate_graph(gpu, PART_ALL_SYNCED);
  behind_graph(gpu);
  idle_lane(gpu);
  rest(gpu);
  beside(gpu);
}
