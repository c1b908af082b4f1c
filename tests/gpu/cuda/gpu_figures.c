/* SPDX-License-Identifier: Apache-2.0
 * Is it fast, and is emulation what it claims? Every comparison is made in turns within one run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpu_check.h"

static double bare(struct gpu *gpu, const char *name, const double *parameters, int n) {
  double out[2] = {NAN, NAN};
  int got = 0;
  if (gpu->ops->experiment(gpu->backend, name, parameters, n, out, 2, &got))
    gpu_check(gpu, 0, "experiment %s failed", name);
  return out[1];
}

static double median3(double a, double b, double c) {
  return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

static void overhead(struct gpu *gpu, struct arm *arm, int n, const char *name, const double *parameters, int count,
                     double per_step, double limit, const char *what) {
  double own[3], plain[3];
  for (int i = 0; arm->x && i < 3; i++) {
    arms_time(gpu, arm, 1, 1, 5, n);
    own[i] = arm->median_ns / per_step;
    plain[i] = bare(gpu, name, parameters, count);
  }
  if (!arm->x)
    return;
  double o = median3(own[0], own[1], own[2]), p = median3(plain[0], plain[1], plain[2]);
  gpu_check(gpu, o <= p * limit, "%s: %.2f us an operation, bare %.2f us: x%.3f (bar x%.2f)", what, o / 1e3, p / 1e3,
            o / p, limit);
}

void figures_overhead(struct gpu *gpu) {
  struct build b;
  struct arm arm;
  build_begin(&b, "gemm 8192", FORM_CLEAR, 0);
  build_gemm(&b, CCT_TYPE_BF16, 8192, 8192, 8192, 1);
  arm_open(gpu, &arm, "gemm 8192", build_end(&b, gpu->world->size), 1);
  overhead(gpu, &arm, 30, "bare_gemm", (double[]){8192, 8192, 8192, 30}, 4, 1, 1 / 0.95, "bf16 GEMM 8192^3");
  if (arm.x)
    gpu_say(gpu, "      bf16 GEMM 8192^3: %.0f TFLOP/s\n", 2 * pow(8192, 3) / arm.median_ns / 1e3);
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

/* ---- five programs; each step ends with its read-back ---- */

enum shape {
  DECODE,
  DECODE_64,
  EXPERTS,
  PREFILL,
  TRAIN,
  SHAPES
};
static const char *const shape_names[SHAPES] = {"decode, batch 8", "decode, batch 64", "experts, batch 8",
                                                "prefill 512", "train 2048"};

static void layer(struct build *b, enum shape shape) {
  int64_t m = shape == DECODE || shape == EXPERTS ? 8 : shape == DECODE_64 ? 64 : shape == PREFILL ? 512 : 2048;
  int64_t hidden = 2560, inner = 9728;
  build_gemm(b, CCT_TYPE_BF16, m, hidden + 2 * 1024, hidden, 1);
  if (shape != DECODE)
    build_attention(b, (double)m * 4096 * 1024 * 2, shape == PREFILL || shape == TRAIN ? 1 << 20 : m * 1024 * 2048);
  build_gemm(b, CCT_TYPE_BF16, m, hidden, hidden, 1);
  if (shape == EXPERTS) {
    build_gemm(b, CCT_TYPE_BF16, 2, 2 * 768, hidden, 32);
    build_gemm(b, CCT_TYPE_BF16, 2, hidden, 768, 32);
    return;
  }
  build_gemm(b, CCT_TYPE_BF16, m, inner, hidden, 1);
  build_gemm(b, CCT_TYPE_BF16, m, inner, hidden, 1);
  build_gemm(b, CCT_TYPE_BF16, m, hidden, inner, 1);
  if (shape == TRAIN)
    build_elementwise(b, m * hidden * 8);
}

static void open_program(struct gpu *gpu, struct arm *arm, enum shape shape, int in_graph, enum form form, double us) {
  struct build b;
  char name[48];
  snprintf(name, sizeof name, "%s%s%s %.2f", shape_names[shape], in_graph ? " graph" : "",
           form == FORM_CLEAR  ? ""
           : form == FORM_HOST ? " host"
                               : " stream",
           us);
  build_begin(&b, name, form, (int64_t)(us * 1000));
  int layers = shape == TRAIN ? 8 : shape == PREFILL ? 18 : 36, graph = in_graph ? build_open(&b, CCT_OP_GRAPH, 0) : -1;
  for (int i = 0; i < layers; i++)
    layer(&b, shape);
  build_gemm(&b, CCT_TYPE_BF16, 8, 151936, 2560, 1);
  build_elementwise(&b, 8 * 151936 * 2);
  if (in_graph)
    build_close(&b, graph);
  build_copy(&b, CCT_COPY_D2H, CCT_MEM_PINNED, 64, 0);
  build_sync(&b);
  int submissions = b.submissions;
  arm_open(gpu, arm, name, build_end(&b, gpu->world->size), 0);
  snprintf(arm->name, sizeof arm->name, "%d", submissions); /* read back by the bars */
}

static int submissions_of(const struct arm *arm) {
  int n = 0;
  sscanf(arm->name, "%d", &n);
  return n;
}

static void emulate_shape(struct gpu *gpu, enum shape shape) {
  static const double us[] = {12.25, 20.5, 31};
  struct arm arms[8];
  open_program(gpu, &arms[0], shape, 0, FORM_CLEAR, 0);
  open_program(gpu, &arms[1], shape, 1, FORM_CLEAR, 0);
  for (int i = 0; i < 3; i++) {
    open_program(gpu, &arms[2 + i], shape, 0, FORM_STREAM, us[i]);
    open_program(gpu, &arms[5 + i], shape, 0, FORM_HOST, us[i]);
  }
  arms_time(gpu, arms, 8, 5, 8, 1);
  double clear = arms[0].median_ns / 1e3, gpu_time = arms[1].median_ns / 1e3, launch = 3.3;
  int n = submissions_of(&arms[0]);
  gpu_say(gpu, "      %s: %d submissions, clear %.0f us (p10 %.0f, p90 %.0f), in a graph %.0f us\n", shape_names[shape],
          n, clear, arms[0].p10_ns / 1e3, arms[0].p90_ns / 1e3, gpu_time);
  for (int i = 0; i < 3; i++) {
    double stream = arms[2 + i].median_ns / 1e3, wanted = clear + n * us[i];
    gpu_check(gpu, fabs(stream / wanted - 1) < 0.03,
              "%-18s stream +%5.2f us: %7.0f us x%.3f, by count %7.0f (%+.1f %%, bar 3)", shape_names[shape], us[i],
              stream, stream / clear, wanted, 100 * (stream / wanted - 1));
    double host = arms[5 + i].median_ns / 1e3, floor_us = n * (launch + us[i]), bar = fmax(clear, floor_us) + 10;
    gpu_check(gpu, fabs(host / bar - 1) < 0.05,
              "%-18s host   +%5.2f us: %7.0f us x%.3f, by the law %6.0f (%+.1f %%, bar 5)", shape_names[shape], us[i],
              host, host / clear, bar, 100 * (host / bar - 1));
  }
  for (int i = 0; i < 8; i++)
    arm_close(gpu, &arms[i]);
}

/* One graph a step closed by its read-back: two submissions. */
static void emulate_graph(struct gpu *gpu) {
  static const double us[] = {12.25, 20.5, 31};
  struct arm arms[7];
  open_program(gpu, &arms[0], DECODE, 1, FORM_CLEAR, 0);
  for (int i = 0; i < 3; i++) {
    open_program(gpu, &arms[1 + i], DECODE, 1, FORM_STREAM, us[i]);
    open_program(gpu, &arms[4 + i], DECODE, 1, FORM_HOST, us[i]);
  }
  arms_time(gpu, arms, 7, 8, 12, 1);
  double clear = arms[0].median_ns / 1e3;
  int n = submissions_of(&arms[0]);
  gpu_say(gpu, "      decode in one graph: clear %.1f us (p10 %.1f, p90 %.1f), %d submissions outside\n", clear,
          arms[0].p10_ns / 1e3, arms[0].p90_ns / 1e3, n);
  for (int i = 0; i < 6; i++) {
    double got = arms[1 + i].median_ns / 1e3, wanted = clear + n * us[i % 3];
    gpu_check(gpu, fabs(got - wanted) < 10, "graph %s +%5.2f us: %.1f us, by count %.1f (%+.1f us, bar 10)",
              i < 3 ? "stream" : "host  ", us[i % 3], got, wanted, got - wanted);
  }
  for (int i = 0; i < 7; i++)
    arm_close(gpu, &arms[i]);
}

/* A DELAY on one lane must leave a product that fills the GPU on another lane alone. */
static void beside(struct gpu *gpu) {
  struct arm arms[2];
  for (int i = 0; i < 2; i++) {
    struct build b;
    build_begin(&b, i ? "product beside a delay" : "product alone", FORM_CLEAR, 0);
    int other = cct_program_add_lane(b.program, "other", CCT_LANE_STREAM);
    if (i) {
      struct cct_op op = {
          .kind = CCT_OP_DELAY, .lane = other, .host = b.host, .reads = {-1, -1}, .writes = -1, .name = "delay"};
      op.delay.ns = 1200000;
      op.delay.of = -1;
      cct_program_add(b.program, &op, NULL, 0);
    }
    build_gemm(&b, CCT_TYPE_BF16, 8192, 8192, 8192, 1);
    if (i)
      cct_program_add(
          b.program,
          &(struct cct_op){
              .kind = CCT_OP_SYNC, .lane = other, .host = b.host, .reads = {-1, -1}, .writes = -1, .name = "sync"},
          NULL, 0);
    arm_open(gpu, &arms[i], "beside", build_end(&b, gpu->world->size), 0);
  }
  arms_time(gpu, arms, 2, 5, 6, 1);
  double ratio = arms[1].median_ns / arms[0].median_ns;
  gpu_check(gpu, ratio < 1.02, "a DELAY beside a GEMM 8192^3: %.1f us, alone %.1f us: x%.3f (bar 1.02)",
            arms[1].median_ns / 1e3, arms[0].median_ns / 1e3, ratio);
  arm_close(gpu, &arms[0]);
  arm_close(gpu, &arms[1]);
}

void figures_emulation(struct gpu *gpu) {
  for (int shape = 0; shape < SHAPES; shape++)
    emulate_shape(gpu, (enum shape)shape);
  emulate_graph(gpu);
  beside(gpu);
}

/* ---- collectives with their delay, in graphs ---- */

static void open_chain(struct gpu *gpu, struct arm *arm, int64_t bytes, enum cct_algorithm algorithm, double toll_us,
                       double stretch) {
  struct build b;
  build_begin(&b, "chain", FORM_CLEAR, 0);
  int graph = build_open(&b, CCT_OP_GRAPH, 0);
  for (int i = 0; i < 20; i++) {
    build_collective(&b, CCT_COLL_ALL_REDUCE, 0, bytes, CCT_TYPE_BF16, algorithm);
    if (toll_us <= 0 && stretch <= 0)
      continue;
    struct cct_op op = {
        .kind = CCT_OP_DELAY, .lane = b.lane, .host = -1, .reads = {-1, -1}, .writes = -1, .name = "toll"};
    op.delay.ns = (int64_t)(toll_us * 1000);
    op.delay.stretch = stretch;
    op.delay.of = b.program->n_ops - 1;
    cct_program_add(b.program, &op, NULL, 0);
  }
  build_close(&b, graph);
  build_sync(&b);
  arm_open(gpu, arm, "all-reduce", build_end(&b, gpu->world->size), 0);
}

void figures_collectives(struct gpu *gpu) {
  static const int64_t sizes[] = {16 << 10, 1 << 20, 64 << 20};
  for (int i = 0; i < 3; i++) {
    struct arm arms[5];
    open_chain(gpu, &arms[0], sizes[i], CCT_ALGORITHM_AUTO, 0, 0);
    open_chain(gpu, &arms[1], sizes[i], CCT_ALGORITHM_AUTO, 10, 0);
    open_chain(gpu, &arms[2], sizes[i], CCT_ALGORITHM_AUTO, 10, 0.15);
    int is_small = sizes[i] <= 1 << 20;
    if (is_small) {
      open_chain(gpu, &arms[3], sizes[i], CCT_ALGORITHM_ONESHOT, 0, 0);
      open_chain(gpu, &arms[4], sizes[i], CCT_ALGORITHM_TWOSHOT, 0, 0);
    }
    arms_time(gpu, arms, is_small ? 5 : 3, 5, 5, 1);
    double clear = arms[0].median_ns / 20e3;
    for (int a = 1; a < 3; a++) {
      double got = arms[a].median_ns / 20e3, wanted = clear + 10 + (a == 2 ? 0.15 * clear : 0);
      gpu_check(gpu, fabs(got - wanted) < fmax(0.03 * wanted, 0.3),
                "all-reduce %lld KiB in a graph + 10 us%s: %.2f us, wanted %.2f (clear %.2f)",
                (long long)(sizes[i] >> 10), a == 2 ? " + 15 %" : "", got, wanted, clear);
    }
    if (is_small)
      gpu_say(gpu, "      all-reduce %lld KiB in a graph: nccl %.2f us, one-shot %.2f us, two-shot %.2f us\n",
              (long long)(sizes[i] >> 10), clear, arms[3].median_ns / 20e3, arms[4].median_ns / 20e3);
    for (int a = 0; a < (is_small ? 5 : 3); a++)
      arm_close(gpu, &arms[a]);
  }
}
