/* SPDX-License-Identifier: Apache-2.0
 * Is it right? Clocks that agree, values of every kind of entry, the timing law, and what must be refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_check.h"

static int run(struct gpu *gpu, const char *name, const double *parameters, int n, double *series, int max) {
  int got = 0;
  enum cct_status status = gpu->ops->experiment(gpu->backend, name, parameters, n, series, max, &got);
  if (status)
    gpu_check(gpu, 0, "experiment %s: %s", name, cct_status_name(status));
  return status ? 0 : got;
}

void check_clocks(struct gpu *gpu) {
  double out[8] = {0}, cycles = 20e6;
  if (run(gpu, "timer_step", NULL, 0, out, 8))
    gpu_say(gpu, "      %%globaltimer step %.0f ns: nothing shorter than %.0f ns is reported from stamps\n", out[0],
            20 * out[0]);
  if (run(gpu, "clock", &cycles, 1, out, 8)) {
    double most = fmax(out[0], fmax(out[1], out[2])), least = fmin(out[0], fmin(out[1], out[2]));
    gpu_check(gpu, most / least < 1.05, "one clock64 loop of 2e7 cycles: host %.3f, globaltimer %.3f, events %.3f ms",
              out[0] / 1e6, out[1] / 1e6, out[2] / 1e6);
  }
  for (double us = 2; us < 40; us = us < 10 ? us * 2.5 : us < 12 ? 12.25 : us < 20 ? 20.5 : us < 30 ? 31 : 100) {
    double ns = us * 1000;
    if (run(gpu, "delay", &ns, 1, out, 8))
      gpu_check(gpu, fabs(out[0] - ns) < 300 && fabs(out[1] - ns) < 300,
                "DELAY of %.2f us adds %.2f us eager, %.2f us in a graph", us, out[0] / 1e3, out[1] / 1e3);
  }
  double bytes = 1 << 20, trials = 2000, blocked[2] = {1 << 20, 2e6};
  if (run(gpu, "host_register", &bytes, 1, out, 8))
    gpu_say(gpu, "      cudaHostRegister of 1 MiB: error %.0f, %.1f us\n", out[0], out[1] / 1e3);
  if (run(gpu, "stale_memory", &trials, 1, out, 8))
    gpu_check(gpu, out[0] + out[1] == 0, "mapped memory in 2000 trials: %.0f stale reads by the GPU, %.0f by the host",
              out[0], out[1]);
  if (run(gpu, "caller_blocked", blocked, 2, out, 8))
    gpu_say(gpu,
            "      1 MiB copy behind a 2 ms kernel holds its caller: pinned h2d %.1f us, d2h %.1f us, pageable h2d "
            "%.1f us, d2h %.1f us\n",
            out[0] / 1e3, out[1] / 1e3, out[2] / 1e3, out[3] / 1e3);
}

/* ---- values ---- */

static void add_everything(struct build *b, int has_fp8) {
  build_gemm(b, CCT_TYPE_BF16, 8, 512, 1024, 1);
  build_gemm(b, CCT_TYPE_BF16, 300, 768, 256, 1);
  build_gemm(b, CCT_TYPE_FP16, 16, 256, 512, 1);
  build_gemm(b, CCT_TYPE_FP32, 16, 256, 512, 1);
  build_gemm(b, CCT_TYPE_BF16, 8, 512, 256, 8);
  if (has_fp8) {
    build_gemm(b, CCT_TYPE_FP8, 8, 512, 1024, 1);
    build_gemm(b, CCT_TYPE_FP8, 5, 512, 256, 8);
    build_gemm(b, CCT_TYPE_FP8_E5M2, 128, 256, 256, 1);
  }
  build_attention(b, 1e6, 3 << 20);
  build_attention(b, 4e9, 1 << 20);
  build_elementwise(b, 1 << 20);
  build_add(b, (struct cct_op){.kind = CCT_OP_LAUNCH, .name = "empty"});
  build_add(b, (struct cct_op){.kind = CCT_OP_STAMP, .name = "stamp"});
  build_copy(b, CCT_COPY_H2D, CCT_MEM_PINNED, 1000003, 0);
  build_copy(b, CCT_COPY_D2H, CCT_MEM_PINNED, 65536, 0);
  build_copy(b, CCT_COPY_D2D, CCT_MEM_DEVICE, 1 << 20, 0);
}

static void add_collectives(struct build *b, int64_t bytes) {
  static const enum cct_type types[] = {CCT_TYPE_FP32,     CCT_TYPE_BF16,  CCT_TYPE_FP16, CCT_TYPE_FP8,
                                        CCT_TYPE_FP8_E5M2, CCT_TYPE_INT32, CCT_TYPE_INT8};
  for (int kind = 0; kind < CCT_COLL_COUNT; kind++)
    build_collective(b, (enum cct_collective)kind, 0, bytes, CCT_TYPE_BF16, CCT_ALGORITHM_AUTO);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    build_collective(b, CCT_COLL_ALL_REDUCE, 0, bytes, types[i], CCT_ALGORITHM_AUTO);
}

static void add_p2p(struct build *b, int64_t bytes) {
  static const enum cct_type types[] = {CCT_TYPE_FP32, CCT_TYPE_BF16, CCT_TYPE_FP16};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    build_collective(b, CCT_COLL_ALL_REDUCE, 0, bytes, types[i], CCT_ALGORITHM_ONESHOT);
    build_collective(b, CCT_COLL_ALL_REDUCE, 0, bytes, types[i], CCT_ALGORITHM_TWOSHOT);
  }
}

static void add_messages(struct build *b, int64_t bytes) {
  int group = build_open(b, CCT_OP_GROUP, 0);
  for (int i = 0; i < 2; i++)
    cct_program_add(b->program,
                    &(struct cct_op){.kind = i ? CCT_OP_RECV : CCT_OP_SEND,
                                     .lane = b->lane,
                                     .host = b->is_in_graph ? -1 : b->host,
                                     .reads = {-1, -1},
                                     .writes = -1,
                                     .name = i ? "recv" : "send",
                                     .p2p = {.group = 0, .peer_offset = i ? -1 : 1, .bytes = cct_constant(bytes)}},
                    NULL, 0);
  build_close(b, group);
}

static void value_job(struct gpu *gpu, const char *name, int in_graph, int what) {
  struct build b;
  struct arm arm;
  build_begin(&b, name, FORM_CLEAR, 0);
  int graph = in_graph ? build_open(&b, CCT_OP_GRAPH, 0) : -1;
  if (what == 0)
    add_everything(&b, 1);
  else if (what == 1)
    add_collectives(&b, gpu->is_shared ? 1 << 16 : 1 << 20);
  else if (what == 2) {
    add_p2p(&b, 8192);
    if (!gpu->is_shared) { /* a kernel that waits for those of other processes gets its turn only in slices */
      add_p2p(&b, 64);
      add_p2p(&b, 1000000 / 16 * 16);
    }
  } else
    add_messages(&b, 100000);
  if (in_graph)
    build_close(&b, graph);
  else if (what == 0) {
    build_copy(&b, CCT_COPY_H2D, CCT_MEM_PAGEABLE, 300001, 0);
    build_copy(&b, CCT_COPY_D2H, CCT_MEM_PAGEABLE, 300001, 1);
    build_copy(&b, CCT_COPY_H2D, CCT_MEM_MAPPED, 300001, 0);
    build_copy(&b, CCT_COPY_D2H, CCT_MEM_MAPPED, 300001, 0);
  }
  build_sync(&b);
  arm_open(gpu, &arm, name, build_end(&b, gpu->world->size), 1);
  struct cct_counts counts;
  if (arm.x && !gpu->ops->counts(arm.x, &counts)) {
    struct cct_counts own;
    cct_count_program(arm.job, b.program, &(struct cct_binding){0}, &own);
    gpu_say(gpu,
            "      counts as performed (and by the program): submissions %lld (%lld), nodes %lld (%lld), kernels %lld "
            "(%lld)\n",
            (long long)counts.submissions, (long long)own.submissions, (long long)counts.nodes, (long long)own.nodes,
            (long long)counts.kernels, (long long)own.kernels);
  }
  if (arm.x)
    arms_time(gpu, &arm, 1, gpu->is_shared ? 1 : 3, 2, NULL);
  arm_close(gpu, &arm);
}

void check_values(struct gpu *gpu) {
  value_job(gpu, "entries, eager", 0, 0);
  value_job(gpu, "entries, in a graph", 1, 0);
  value_job(gpu, "collectives, eager", 0, 1);
  value_job(gpu, "collectives, in a graph", 1, 1);
  value_job(gpu, "one-shot and two-shot, eager", 0, 2);
  value_job(gpu, "one-shot and two-shot, in a graph", 1, 2);
  check_peers(gpu);
  if (gpu->world->size == 1)
    return; /* nobody to send to */
  value_job(gpu, "messages, eager", 0, 3);
  value_job(gpu, "messages, in a graph", 1, 3);
}

void check_small(struct gpu *gpu) {
  value_job(gpu, "entries, eager", 0, 0);
  value_job(gpu, "entries, in a graph", 1, 0);
  value_job(gpu, "one-shot and two-shot, eager", 0, 2);
}

/* ---- the law, with delays long enough that everything else is small ---- */

#define US 1000

static int hostwork(struct build *b, int64_t ns, const struct cct_wait *waits, int n) {
  struct cct_op op = {
      .kind = CCT_OP_HOSTWORK, .lane = -1, .host = b->host, .reads = {-1, -1}, .writes = -1, .name = "work"};
  op.hostwork.ns = ns;
  return cct_program_add(b->program, &op, waits, n);
}

static void law(struct gpu *gpu, struct build *b, int n, double expected_us, const char *what) {
  struct arm arm;
  arm_open(gpu, &arm, what, build_end(b, gpu->world->size), 0);
  if (arm.x) {
    arms_time(gpu, &arm, 1, 9, n, NULL);
    double us = arm_median(&arm) / 1e3;
    gpu_check(gpu, fabs(us - expected_us) < 0.03 * expected_us + 15, "%-58s %8.1f us, the law says %6.1f", what, us,
              expected_us);
  }
  arm_close(gpu, &arm);
}

void check_law(struct gpu *gpu) {
  struct build b;
  build_begin(&b, "two lanes", FORM_CLEAR, 0);
  int other = cct_program_add_lane(b.program, "other", CCT_LANE_STREAM);
  build_delay(&b, b.lane, 500 * US, NULL, 0);
  int second = build_delay(&b, other, 700 * US, NULL, 0);
  hostwork(&b, 0, (struct cct_wait[]){{second, 0}}, 1);
  law(gpu, &b, 1, 700, "law 2: lanes run side by side");

  build_begin(&b, "wait", FORM_CLEAR, 0);
  other = cct_program_add_lane(b.program, "other", CCT_LANE_STREAM);
  int first = build_delay(&b, b.lane, 500 * US, NULL, 0);
  second = build_delay(&b, other, 700 * US, (struct cct_wait[]){{first, 0}}, 1);
  hostwork(&b, 0, (struct cct_wait[]){{second, 0}}, 1);
  law(gpu, &b, 1, 1200, "law 2: a wait holds another lane");

  build_begin(&b, "host", FORM_CLEAR, 0);
  build_delay(&b, b.lane, 500 * US, NULL, 0);
  hostwork(&b, 800 * US, NULL, 0);
  law(gpu, &b, 1, 800, "law 1: host work beside the GPU");

  build_begin(&b, "host waits", FORM_CLEAR, 0);
  first = build_delay(&b, b.lane, 500 * US, NULL, 0);
  hostwork(&b, 800 * US, (struct cct_wait[]){{first, 0}}, 1);
  law(gpu, &b, 1, 1300, "law 2: host work that waits for a lane");

  build_begin(&b, "sync", FORM_CLEAR, 0);
  build_delay(&b, b.lane, 500 * US, NULL, 0);
  build_sync(&b);
  hostwork(&b, 300 * US, NULL, 0);
  law(gpu, &b, 4, 800, "law 7: SYNC holds the host (4 steps)");

  /* 4 repetitions: lane main runs 4 x 500; `other` (700) of step r waits for main of step r-1: 500 + ... the longer
   * chain */
  build_begin(&b, "prev", FORM_CLEAR, 0);
  other = cct_program_add_lane(b.program, "other", CCT_LANE_STREAM);
  first = build_delay(&b, b.lane, 500 * US, NULL, 0);
  second = build_delay(&b, other, 700 * US, (struct cct_wait[]){{first, 1}}, 1);
  hostwork(&b, 0, (struct cct_wait[]){{second, 1}}, 1);
  law(gpu, &b, 4, 700, "law 3: prev: the other lane never waits long (4 steps)");

  build_begin(&b, "graph branches", FORM_CLEAR, 0);
  other = cct_program_add_lane(b.program, "other", CCT_LANE_STREAM);
  int graph = build_open(&b, CCT_OP_GRAPH, 0);
  first = build_delay(&b, b.lane, 300 * US, NULL, 0);
  second = build_delay(&b, other, 400 * US, NULL, 0);
  build_delay(&b, b.lane, 200 * US, (struct cct_wait[]){{second, 0}}, 1);
  build_close(&b, graph);
  build_sync(&b);
  law(gpu, &b, 1, 600, "law 6: branches of a graph join at its end");

  build_begin(&b, "blocking", FORM_CLEAR, 0);
  build_delay(&b, b.lane, 400 * US, NULL, 0);
  build_copy(&b, CCT_COPY_D2H, CCT_MEM_PINNED, 64, 1);
  hostwork(&b, 300 * US, NULL, 0);
  law(gpu, &b, 1, 700, "law 2: a blocking copy holds the host");
}

/* ---- refusals: one line, and the backend goes on ---- */

static void refused(struct gpu *gpu, struct build *b, const char *what) {
  struct cct_job *job = build_end(b, gpu->world->size);
  struct cct_executor *x = NULL;
  enum cct_status status = cct_job_check(job);
  if (!status)
    status = gpu->ops->load(gpu->backend, job, &x);
  gpu_check(gpu, status == CCT_UNSUPPORTED && !x, "refused: %s: %s", what, cct_status_name(status));
  gpu->ops->unload(x);
  cct_job_free(job);
}

void check_refusals(struct gpu *gpu) {
  struct build b;
  build_begin(&b, "too large", FORM_CLEAR, 0);
  cct_program_add_buffer(b.program, "weights", cct_constant((int64_t)400 << 30), CCT_MEM_DEVICE, 1);
  build_gemm(&b, CCT_TYPE_BF16, 8, 128, 128, 1);
  build_sync(&b);
  refused(gpu, &b, "400 GiB of weights");
  build_begin(&b, "odd fp8", FORM_CLEAR, 0);
  build_gemm(&b, CCT_TYPE_FP8, 8, 100, 100, 1);
  build_sync(&b);
  refused(gpu, &b, "an fp8 product whose n and k are no multiples of 16");
  build_begin(&b, "nvfp4", FORM_CLEAR, 0);
  build_gemm(&b, CCT_TYPE_NVFP4, 16, 128, 128, 1);
  build_sync(&b);
  refused(gpu, &b, "an nvfp4 product");
}
