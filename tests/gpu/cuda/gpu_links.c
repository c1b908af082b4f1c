/* SPDX-License-Identifier: Apache-2.0
 * Collectives with the delay that emulation puts behind them, in graphs; and what the links themselves do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_check.h"

enum {
  CHAIN = 20,
  ROUNDS = 40
};

static void open_chain(struct gpu *gpu, struct arm *arm, enum cct_collective kind, int64_t bytes,
                       enum cct_algorithm algorithm, double toll_us, double stretch) {
  struct build b;
  int has_matrix = kind == CCT_COLL_ALL_TO_ALLV;
  build_begin(&b, "chain", FORM_CLEAR, 0);
  b.program->n_matrices = has_matrix;
  int graph = build_open(&b, CCT_OP_GRAPH, 0);
  for (int i = 0; i < CHAIN; i++) {
    build_collective(&b, kind, 0, bytes, CCT_TYPE_BF16, algorithm);
    b.program->ops[b.program->n_ops - 1].collective.matrix = has_matrix ? 0 : -1;
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
  arm_open(gpu, arm, cct_collective_name(kind), build_end(&b, gpu->world->size), 0);
}

static void check_stretch(struct gpu *gpu, const struct arm *arm, const struct arm *clear_arm, double toll_us,
                          double stretch, double share, double least_us, const char *what) {
  double clear = arm_median(clear_arm) / CHAIN / 1e3;
  double wanted = toll_us + stretch * clear, more = arm_more(arm, clear_arm) / CHAIN / 1e3;
  gpu_check(gpu, fabs(more - wanted) < fmax(share * (clear + wanted), least_us),
            "%s in a graph + %.0f us + %.0f %%: %.2f + %.2f us, wanted + %.2f (%+.2f us)", what, toll_us, 100 * stretch,
            clear, more, wanted, more - wanted);
}

static void all_reduces(struct gpu *gpu) {
  static const int64_t sizes[] = {16 << 10, 1 << 20, 64 << 20};
  for (int i = 0; i < 3; i++) {
    struct arm arms[5];
    char what[48];
    int n = sizes[i] <= 1 << 20 ? 5 : 3;
    snprintf(what, sizeof what, "all-reduce %lld KiB", (long long)(sizes[i] >> 10));
    open_chain(gpu, &arms[0], CCT_COLL_ALL_REDUCE, sizes[i], CCT_ALGORITHM_AUTO, 0, 0);
    open_chain(gpu, &arms[1], CCT_COLL_ALL_REDUCE, sizes[i], CCT_ALGORITHM_AUTO, 10, 0);
    open_chain(gpu, &arms[2], CCT_COLL_ALL_REDUCE, sizes[i], CCT_ALGORITHM_AUTO, 10, 0.15);
    if (n == 5) {
      open_chain(gpu, &arms[3], CCT_COLL_ALL_REDUCE, sizes[i], CCT_ALGORITHM_ONESHOT, 0, 0);
      open_chain(gpu, &arms[4], CCT_COLL_ALL_REDUCE, sizes[i], CCT_ALGORITHM_TWOSHOT, 0, 0);
    }
    arms_time(gpu, arms, n, ROUNDS, 1, NULL);
    check_stretch(gpu, &arms[1], &arms[0], 10, 0, 0.03, 0.3, what);
    check_stretch(gpu, &arms[2], &arms[0], 10, 0.15, 0.03, 0.3, what);
    if (n == 5)
      gpu_say(gpu, "      %s in a graph: nccl %.2f us, one-shot %.2f us, two-shot %.2f us\n", what,
              arm_median(&arms[0]) / CHAIN / 1e3, arm_median(&arms[3]) / CHAIN / 1e3,
              arm_median(&arms[4]) / CHAIN / 1e3);
    for (int a = 0; a < n; a++)
      arm_close(gpu, &arms[a]);
  }
}

/* Member 0 sends most; every binding changes the matrix, and the stretch is by the line fitted to the first one. */
static void exchanges(struct gpu *gpu) {
  int ranks = gpu->world->size;
  struct cct_matrix matrix = {ranks, calloc((size_t)(ranks * ranks), sizeof *matrix.bytes)};
  struct arm arms[2];
  open_chain(gpu, &arms[0], CCT_COLL_ALL_TO_ALLV, 16 << 20, CCT_ALGORITHM_AUTO, 0, 0);
  open_chain(gpu, &arms[1], CCT_COLL_ALL_TO_ALLV, 16 << 20, CCT_ALGORITHM_AUTO, 0, 0.5);
  for (int64_t each = 8 << 20; matrix.bytes && each >= 1 << 20; each /= 2) {
    for (int i = 0; i < ranks * ranks; i++)
      matrix.bytes[i] = i < ranks ? each : each / 4;
    struct cct_binding binding = {NULL, &matrix};
    char what[64];
    snprintf(what, sizeof what, "all-to-allv, busiest %lld KiB", (long long)(each >> 10) * (ranks - 1));
    arms_time(gpu, arms, 2, ROUNDS / 2, 1, &binding);
    check_stretch(gpu, &arms[1], &arms[0], 0, 0.5, 0.05, 1, what);
  }
  free(matrix.bytes);
  arm_close(gpu, &arms[0]);
  arm_close(gpu, &arms[1]);
}

void figures_collectives(struct gpu *gpu) {
  all_reduces(gpu);
  if (gpu->world->size > 1)
    exchanges(gpu);
}

static double one_value(struct gpu *gpu, const char *name, const double *parameters, int n) {
  double value = NAN;
  int got = 0;
  if (gpu->ops->experiment(gpu->backend, name, parameters, n, &value, 1, &got) || got != 1)
    gpu_check(gpu, 0, "experiment %s failed", name);
  return value;
}

/* What a link does is printed; its bars tell a working link from a broken one. */
void figures_links(struct gpu *gpu) {
  static const double sizes[] = {1 << 20, 64 << 20, 1 << 30};
  if (gpu->world->size != 2)
    return;
  for (int i = 0; i < 3; i++) {
    double rate[8];
    for (int way = 0; way < 8; way++)
      rate[way] = one_value(gpu, "p2p_copy", (double[]){sizes[i], way % 4, 1 + way / 4}, 3);
    for (int is_write = 0; is_write < 2; is_write++)
      gpu_say(gpu, "      %4.0f MiB %s GPU to GPU: copy engine %.1f, SM %.1f GB/s; both ways at once %.1f, %.1f\n",
              sizes[i] / (1 << 20), is_write ? "written" : "read", rate[2 * is_write], rate[2 * is_write + 1],
              rate[2 * is_write + 4], rate[2 * is_write + 5]);
    gpu_check(gpu, i < 2 || gpu->is_shared || (rate[0] > 100 && rate[1] > 100 && rate[4] > 1.5 * rate[0]),
              "%.0f MiB between GPUs go over NVLink, both ways at once", sizes[i] / (1 << 20));
  }
  double us = one_value(gpu, "short_write", (double[]){2000}, 1);
  gpu_check(gpu, gpu->is_shared || gpu->world->rank || (us > 0.1 && us < 5), "a short write, one way: %.3f us", us);
  us = one_value(gpu, "dispatch", (double[]){128, 7168}, 2);
  gpu_check(gpu, gpu->is_shared || gpu->world->rank || (us > 0.5 && us < 200), "128 rows of 7 KiB dispatched: %.2f us",
            us);
  gpu_say(gpu, "      a communicator: %.1f ms\n", one_value(gpu, "communicator", NULL, 0) / 1e6);
}

/* What docs/probe.md names and needs no second rank; `context` is cctax-rank's own. */
void check_trials(struct gpu *gpu) {
  static const struct {
    const char *name;
    double parameter;
    int n_parameters, n_values;
  } trials[] = {
      {"memory", 0, 0, 3},          {"managed", 2 << 20, 1, 2},  {"mapped", 64 << 20, 1, 1}, {"gdr", 0, 0, 1},
      {"checkpoint", 0, 0, 1},      {"marker", 1, 1, 1},         {"marker", 0, 1, 1},        {"bare_sync", 500, 1, 3},
      {"aes_rate", 16 << 20, 1, 1}, {"aes_copy", 64 << 20, 1, 1}};
  for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
    double out[3] = {0};
    int got = 0;
    enum cct_status status = gpu->ops->experiment(gpu->backend, trials[i].name, &trials[i].parameter,
                                                  trials[i].n_parameters, out, trials[i].n_values, &got);
    gpu_check(gpu, !status && got == trials[i].n_values, "experiment %-10s %14.0f %14.0f %14.0f", trials[i].name,
              out[0], out[1], out[2]);
  }
}
