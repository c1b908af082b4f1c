/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/sources_predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/planner.h"
#include "cli/profile_bounds.h"
#include "workloads/backends/predict.h"

#define MINIMAX "profile b200x8-tdx model minimax-m2 weights nvfp4 workload serve "
#define SGLANG  "profile b200-tdx model qwen3-8b workload decode layouts tp=1 overlap on "
#define STAND_IN_120B                                                                                                  \
  "profile b200-tdx model qwen3-235b-a22b layers 48 weights nvfp4 workload serve layouts tp=1 output-len 1024 "
#define DENSE_41B                                                                                                      \
  "profile b200x8-tdx model llama-3.3-70b layers 46 workload train layouts tp=8 seq-len 4096 accumulation 8 "
#define R1 "profile b200x8-tdx model deepseek-r1 weights nvfp4 layouts tp=8 input-len 32768 output-len 1024 "
static const char minimax_note[] = "minimax-m2's shape";
static const char sglang_note[] = "host work of the engine unknown: 0";
static const char nemotron_note[] =
    "stand-in: qwen3-235b-a22b cut to 48 layers (120 e9); the source's has state-space layers";
static const char qwen35_note[] = "stand-in: qwen3-235b-a22b; the source's has layers of linear attention";
static const char dense_note[] =
    "stand-in: llama-3.3-70b cut to 46 layers (41 e9), 8 of the 69 sequences a step (the rest repeats)";

static const struct row rows[] = {
    {.id = "skel-eager", .note = "36 layers of the 5 GEMMs of qwen3-8b, head, copy back; host-bound by the law"},
    {.id = "skel-graph", .note = "the same in one graph"},
    {"overlap-on-c16", SGLANG "batch 16", sglang_note, 0},
    {"overlap-on-c32", SGLANG "batch 32", sglang_note, 0},
    {"overlap-on-c64", SGLANG "batch 64", sglang_note, 0},
    {"overlap-on-tpot", SGLANG "batch 64", sglang_note, 0},
    {"overlap-off-c16", STAND_IN_120B "concurrency 16", nemotron_note, 0},
    {"overlap-off-c32", STAND_IN_120B "concurrency 32", nemotron_note, 0},
    {"overlap-off-c64", STAND_IN_120B "concurrency 64", nemotron_note, 0},
    {"patched", "profile b200-tdx model qwen2.5-72b weights nvfp4 workload decode layouts tp=1",
     "4-bit weights priced as nvfp4", 0},
    {"async-d2h", SGLANG "batch 64", sglang_note, 0},
    {"tp8-c1", MINIMAX "layouts tp=8 output-len 2048 concurrency 1", minimax_note, 0},
    {"tp8-c8", MINIMAX "layouts tp=8 output-len 2048 concurrency 8", minimax_note, 0},
    {"tp8-c16", MINIMAX "layouts tp=8 output-len 2048 concurrency 16", minimax_note, 0},
    {"tp8-c32", MINIMAX "layouts tp=8 output-len 2048", minimax_note, 0},
    {"tp8-c64", MINIMAX "layouts tp=8 output-len 2048 concurrency 64", minimax_note, 0},
    {"tp8-c128", MINIMAX "layouts tp=8 output-len 2048 concurrency 128", minimax_note, 0},
    {"tp8-512-512", MINIMAX "layouts tp=8 input-len 512 output-len 512", minimax_note, 0},
    {"tp8-1024-1024", MINIMAX "layouts tp=8", minimax_note, 0},
    {"tp8-2048-2048", MINIMAX "layouts tp=8 input-len 2048 output-len 2048", minimax_note, 0},
    {"tp8-4096-1024", MINIMAX "layouts tp=8 input-len 4096", minimax_note, 0},
    {"tp8-32768-2048", MINIMAX "layouts tp=8 input-len 32768 output-len 2048 concurrency 16", minimax_note, 0},
    {"tp8-out256", MINIMAX "layouts tp=8 output-len 256", minimax_note, 0},
    {"tp8-out512", MINIMAX "layouts tp=8 output-len 512", minimax_note, 0},
    {"tp8-out1024", MINIMAX "layouts tp=8 output-len 1024", minimax_note, 0},
    {"tp8-out2048", MINIMAX "layouts tp=8 output-len 2048", minimax_note, 0},
    {"tp8-pin1", MINIMAX "layouts tp=8 output-len 2048", minimax_note, 0},
    {"tp8-pin2", MINIMAX "layouts tp=8 output-len 2048", minimax_note, 0},
    {"tp4-pin", MINIMAX "layouts tp=4 output-len 2048", minimax_note, 0},
    {"tp2ep4dp2", MINIMAX "layouts tp=2,ep=4,dp=2 input-len 4096 output-len 256", "input 4096", 1},
    {"tp2ep4dp2", MINIMAX "layouts tp=2,ep=4,dp=2 input-len 32768 output-len 256", "input 32768", 2},
    {"dp8ep8",
     "profile b200x8-tdx model qwen3-235b-a22b weights fp8 workload serve layouts ep=8,dp=8 input-len 4096 output-len "
     "256",
     qwen35_note, 2},
    {"dp8ep8",
     "profile b200x8-tdx model qwen3-235b-a22b weights fp8 workload serve layouts ep=8,dp=8 input-len 32768 output-len "
     "256",
     qwen35_note, 1},
    {"train-bf16", DENSE_41B, dense_note, 0},
    {"train-fp8", DENSE_41B "weights fp8", dense_note, 0},
    {"train-moe",
     "profile b200x8-tdx model mixtral-8x7b layers 29 workload train layouts ep=8,dp=8 seq-len 4096 accumulation 4",
     "stand-in: mixtral-8x7b cut to 29 layers (42 e9), 4 sequences a GPU", 0},
    {"trt-thr", R1 "workload serve concurrency 1", "concurrency 1", 0},
    {"trt-thr", R1 "workload serve concurrency 16", "concurrency 16", 0},
    {"trt-tpot", R1 "workload decode batch 16", "concurrency 16", 0},
};
enum {
  N_ROWS = sizeof rows / sizeof *rows
};

static struct prediction predictions[N_ROWS];

/* ---- published.tsv ---- */

static double number(const char *text) {
  double value;
  return cct_parse_f64(text, &value) ? value : NAN;
}

enum cct_status sources_read(const char *path, struct sources *sources) {
  size_t length;
  char *lines = NULL, *line;
  enum cct_status status = cct_read_file(path, 1 << 20, &sources->text, &length);
  for (line = status ? NULL : strtok_r(sources->text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
    char *fields[13];
    int n = 0;
    for (char *at = line; at && n < 13; n++) {
      fields[n] = at;
      at = strchr(at, '\t');
      if (at)
        *at++ = '\0';
    }
    if (*line == '#' || n < 13 || !strcmp(fields[0], "id") || sources->n == 128)
      continue;
    sources->rows[sources->n++] = (struct source){.id = fields[0],
                                                  .workload = fields[4],
                                                  .must_predict = fields[12],
                                                  .off = number(fields[7]),
                                                  .on = number(fields[8]),
                                                  .lo = number(fields[10]),
                                                  .hi = number(fields[11])};
  }
  return status;
}

const struct source *sources_find(const struct sources *sources, const char *id) {
  for (int i = 0; i < sources->n; i++)
    if (!strcmp(sources->rows[i].id, id))
      return &sources->rows[i];
  return NULL;
}

/* ---- predictions ---- */

static struct prediction prediction_of(double clear_ns, double confidential_ns, double lo_ns, double hi_ns) {
  return (struct prediction){.value = cct_per_cent(confidential_ns - clear_ns, clear_ns),
                             .lo = cct_per_cent(lo_ns - clear_ns, clear_ns),
                             .hi = cct_per_cent(hi_ns - clear_ns, clear_ns),
                             .clear_s = clear_ns * 1e-9,
                             .added_s = (confidential_ns - clear_ns) * 1e-9};
}

static enum cct_status predict_words(const char *words, struct prediction *p) {
  struct cct_options options;
  struct cct_planner *planner = NULL;
  struct cct_plan_row *plan = NULL;
  char text[512], *save = NULL;
  int n = 0;
  enum cct_status status = cct_options_init(&options);
  if (status)
    return status;
  snprintf(text, sizeof text, "%s", words);
  for (char *name = strtok_r(text, " ", &save); !status && name; name = strtok_r(NULL, " ", &save))
    status = cct_option_set(&options, cct_option_by_name(name), strtok_r(NULL, " ", &save), name);
  if (!status)
    status = cct_planner_open(&options, &planner);
  if (!status)
    status = cct_planner_rank(planner, &options, &plan, &n);
  if (!status) {
    *p = prediction_of(plan->clear_ns, plan->confidential_ns, plan->lo_ns, plan->hi_ns);
    for (int i = 0; i < CCT_BOUNDARY_COUNT; i++)
      p->share[i] = cct_per_cent(plan->share_ns[i], plan->clear_ns);
  }
  free(plan);
  cct_planner_close(planner);
  cct_options_free(&options);
  return status;
}

/* The source's probe: batch 8, 36 layers x 5 GEMMs, head, ids read back: 181 launches. */
static enum cct_status build_skeleton(int is_graph, struct cct_job **job_out) {
  static const struct {
    const char *name;
    int n, k;
  } gemms[] = {
      {"qkv", 6144, 4096}, {"o", 4096, 4096}, {"gate", 12288, 4096}, {"up", 12288, 4096}, {"down", 4096, 12288}};
  struct cct_job *job = NULL;
  struct cct_program *p = NULL;
  enum cct_status status = cct_job_new(1, &job);
  if (!status)
    status = cct_program_new("skeleton", &p);
  if (status)
    goto out;
  int stream = cct_program_add_lane(p, "compute", CCT_LANE_STREAM),
      host = cct_program_add_lane(p, "main", CCT_LANE_HOST);
  int submits = is_graph ? -1 : host, graph = -1;
  struct cct_op op = {
      .kind = CCT_OP_GRAPH, .name = "step", .lane = stream, .host = host, .reads = {-1, -1}, .writes = -1};
  if (is_graph)
    graph = cct_program_add(p, &op, NULL, 0);
  for (int i = 0; i < 181; i++) {
    op = (struct cct_op){.kind = CCT_OP_GEMM,
                         .name = i < 180 ? gemms[i % 5].name : "head",
                         .lane = stream,
                         .host = submits,
                         .reads = {-1, -1},
                         .writes = -1};
    op.gemm.m = cct_constant(8);
    op.gemm.n = i < 180 ? gemms[i % 5].n : 151936;
    op.gemm.k = i < 180 ? gemms[i % 5].k : 4096;
    op.gemm.groups = 1;
    op.gemm.type = CCT_TYPE_BF16;
    cct_program_add(p, &op, NULL, 0);
  }
  op = (struct cct_op){.kind = CCT_OP_END, .name = "", .lane = -1, .host = -1, .reads = {-1, -1}, .writes = -1};
  op.end.opens = graph;
  if (is_graph)
    cct_program_add(p, &op, NULL, 0);
  op = (struct cct_op){
      .kind = CCT_OP_COPY, .name = "ids", .lane = stream, .host = host, .reads = {-1, -1}, .writes = -1};
  op.copy.direction = CCT_COPY_D2H;
  op.copy.memory = CCT_MEM_PINNED;
  op.copy.bytes = cct_constant(32);
  cct_program_add(p, &op, NULL, 0);
  op = (struct cct_op){
      .kind = CCT_OP_SYNC, .name = "sync", .lane = stream, .host = host, .reads = {-1, -1}, .writes = -1};
  cct_program_add(p, &op, NULL, 0);
  status = cct_job_add_role(job, p, 0, 1);
  if (!status) {
    p = NULL;
    status = cct_job_check(job);
  }
out:
  if (!status) {
    *job_out = job;
    job = NULL;
  }
  cct_program_free(p);
  cct_job_free(job);
  return status;
}

static enum cct_status predict_skeleton(int is_graph, struct prediction *p) {
  struct cct_job *job = NULL;
  struct cct_profile *profile = NULL, bounds[2] = {0};
  int64_t ns[4] = {0}, share = 0;
  enum cct_status status = build_skeleton(is_graph, &job);
  if (!status)
    status = cct_profile_load("b200x8-tdx", &profile);
  for (int i = 0; !status && i < 2; i++)
    status = cct_profile_at_bound(profile, i, &bounds[i]);
  for (int i = 0; !status && i < 4; i++) {
    const struct cct_profile *emulated = i == 0 ? NULL : i == 1 ? profile : &bounds[i - 2];
    status = cct_predict(job, profile, emulated, i ? CCT_ALL_BOUNDARIES : 0, NULL, 1, &ns[i]);
  }
  if (!status)
    *p = prediction_of((double)ns[0], (double)ns[1], (double)ns[2], (double)ns[3]);
  for (int i = 0; !status && i < CCT_BOUNDARY_COUNT; i++) {
    status = cct_predict(job, profile, profile, 1u << i, NULL, 1, &share);
    p->share[i] = cct_per_cent((double)(share - ns[0]), (double)ns[0]);
  }
  cct_bounded_free(&bounds[0]);
  cct_bounded_free(&bounds[1]);
  cct_profile_free(profile);
  cct_job_free(job);
  return status;
}

enum cct_status sources_predict(void) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < N_ROWS; i++)
    status = rows[i].words ? predict_words(rows[i].words, &predictions[i])
                           : predict_skeleton(!strcmp(rows[i].id, "skel-graph"), &predictions[i]);
  return status;
}

const struct prediction *predicted(const char *id, int n) {
  for (int i = 0; i < N_ROWS; i++)
    if (!strcmp(rows[i].id, id) && n-- == 0)
      return &predictions[i];
  return NULL;
}

const struct row *sources_row(int i) {
  return i < N_ROWS ? &rows[i] : NULL;
}

const struct prediction *sources_prediction(int i) {
  return &predictions[i];
}
