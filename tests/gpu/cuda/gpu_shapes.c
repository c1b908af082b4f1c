/* SPDX-License-Identifier: Apache-2.0
 * The programs that figures are about: decode, prefill and training steps by hand, each closed by its read-back; and
 * what sim says they take on this machine's profile. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_check.h"

extern const struct cct_backend_ops cct_backend_sim;

const char *const shape_names[SHAPES] = {"decode, batch 8", "decode, batch 64", "experts, batch 8", "prefill 512",
                                         "train 2048"};

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

struct cct_job *shape_job(struct gpu *gpu, enum shape shape, enum part part, int in_graph, enum form form, double us,
                          int *submissions_out) {
  struct build b;
  build_begin(&b, shape_names[shape], form, (int64_t)(us * 1000));
  int layers = part == PART_TAIL ? 0 : shape == TRAIN ? 8 : shape == PREFILL ? 18 : 36;
  int graph = in_graph ? build_open(&b, CCT_OP_GRAPH, 0) : -1;
  for (int i = 0; i < layers; i++)
    layer(&b, shape);
  build_gemm(&b, CCT_TYPE_BF16, 8, 151936, 2560, 1);
  build_elementwise(&b, 8 * 151936 * 2);
  if (in_graph)
    build_close(&b, graph);
  if (part == PART_ALL_SYNCED)
    build_sync(&b);
  build_copy(&b, CCT_COPY_D2H, CCT_MEM_PINNED, 64, 0);
  build_sync(&b);
  if (submissions_out)
    *submissions_out = b.submissions;
  return build_end(&b, gpu->world->size);
}

/* ns of one step of the program by the profile; NAN when sim cannot. */
static double predict(struct gpu *gpu, const struct cct_profile *machine, enum shape shape, int in_graph) {
  const struct cct_backend_ops *sim = &cct_backend_sim;
  struct cct_backend_options options = {.machine = machine, .has_multicast = 1, .deadline_ns = 60000000000};
  struct gpu one = {.world = cct_world_self()};
  struct cct_job *job = shape_job(&one, shape, PART_ALL, in_graph, FORM_CLEAR, 0, NULL);
  struct cct_backend *backend = NULL;
  struct cct_executor *x = NULL;
  int64_t ns = 0;
  struct cct_burst burst = {0, &ns};
  (void)gpu;
  enum cct_status status = sim->open(one.world, &options, &backend);
  if (!status)
    status = sim->load(backend, job, &x);
  if (!status)
    status = sim->step(x, NULL, 1, &burst);
  sim->unload(x);
  sim->close(backend);
  cct_job_free(job);
  return status ? NAN : (double)ns;
}

void figures_forecast(struct gpu *gpu) {
  struct cct_profile *machine = NULL;
  if (cct_profile_load("h200", &machine)) {
    gpu_check(gpu, 0, "profile h200");
    return;
  }
  for (int shape = 0; shape < SHAPES; shape++) {
    struct arm arms[2] = {{.rounds = 0}};
    for (int in_graph = 0; in_graph < 2; in_graph++) {
      int submissions = 0;
      struct cct_job *job = shape_job(gpu, (enum shape)shape, PART_ALL, in_graph, FORM_CLEAR, 0, &submissions);
      arm_open(gpu, &arms[in_graph], shape_names[shape], job, 0);
      arms[in_graph].submissions = submissions;
    }
    arms_time(gpu, arms, 2, 30, 1, NULL);
    for (int in_graph = 0; in_graph < 2; in_graph++) {
      double got = arm_median(&arms[in_graph]), by_sim = predict(gpu, machine, (enum shape)shape, in_graph);
      gpu_check(gpu, fabs(by_sim / got - 1) < 0.15,
                "%-18s %-8s measured %6.0f us, sim with h200 %6.0f (%+.1f %%, bar 15)", shape_names[shape],
                in_graph ? "in graph" : "eager", got / 1e3, by_sim / 1e3, 100 * (by_sim / got - 1));
    }
    gpu_say(gpu, "      %s: the host is busy %.0f us with %d submissions\n", shape_names[shape],
            arm_submitting(&arms[0]) / 1e3, arms[0].submissions);
    arm_close(gpu, &arms[0]);
    arm_close(gpu, &arms[1]);
  }
  cct_profile_free(machine);
}
