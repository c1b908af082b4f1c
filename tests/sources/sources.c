/* SPDX-License-Identifier: Apache-2.0
 * sources_page PUBLISHED.tsv: docs/sources.md on stdout. For every published figure that the planner has to predict,
 * and for each sentence the sources draw from them, what unfitted unit costs give. No constant is moved here: a row is
 * a model, a layout and a profile as they ship. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/planner.h"
#include "cli/profile_bounds.h"
#include "workloads/backends/predict.h"

struct source { /* a row of published.tsv */
  char *id, *workload, *must_predict;
  double off, on, lo, hi; /* NAN: empty */
};

struct sources {
  char *text;
  struct source rows[128];
  int n;
};

struct prediction { /* added time in per cent of the clear time, and the clear time */
  double value, lo, hi, clear_s, added_s, share[CCT_BOUNDARY_COUNT];
};

/* What is predicted for a published row. `end`: 0 the whole range, 1 its low end, 2 its high end. */
struct row {
  const char *id, *words, *note;
  int end;
};

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
  N_ROWS = sizeof rows / sizeof *rows,
  NOISE = 2 /* points: the source's own figure for one pass */
};

static struct prediction predictions[N_ROWS];

/* ---- published.tsv ---- */

static double number(const char *text) {
  double value;
  return cct_parse_f64(text, &value) ? value : NAN;
}

static enum cct_status read_sources(const char *path, struct sources *sources) {
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

static const struct source *find(const struct sources *sources, const char *id) {
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

static enum cct_status predict_rows(void) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < N_ROWS; i++)
    status = rows[i].words ? predict_words(rows[i].words, &predictions[i])
                           : predict_skeleton(!strcmp(rows[i].id, "skel-graph"), &predictions[i]);
  return status;
}

/* The `n`-th row of this id. */
static const struct prediction *predicted(const char *id, int n) {
  for (int i = 0; i < N_ROWS; i++)
    if (!strcmp(rows[i].id, id) && n-- == 0)
      return &predictions[i];
  return NULL;
}

/* ---- the page ---- */

static void published_range(const struct row *row, const struct source *source, double *lo, double *hi) {
  *lo = row->end == 2 ? source->hi : source->lo;
  *hi = row->end == 1 ? source->lo : source->hi;
}

static const char *decides(const struct prediction *p) {
  static const char *const costs[] = {"submission", "copies", "collectives", "multicast", "CPU"};
  int most = 0;
  for (int i = 1; i < CCT_BOUNDARY_COUNT; i++)
    most = p->share[i] > p->share[most] ? i : most;
  return p->share[most] < 0.05 ? "none" : costs[most];
}

/* "yes" within the source's noise, "in bounds" when the profile's bounds reach it, "no". */
static const char *size_verdict(const struct prediction *p, double lo, double hi) {
  if (p->value >= lo - NOISE && p->value <= hi + NOISE)
    return "yes";
  return p->hi >= lo - NOISE && p->lo <= hi + NOISE ? "in bounds" : "no";
}

static const char *sign_verdict(const struct prediction *p, double lo, double hi) {
  if (lo > -NOISE && hi < NOISE)
    return "in noise";
  return (p->value > 0) == (hi > 0) ? "yes" : "no";
}

static void print_table(const struct sources *sources) {
  printf("| figure | what was measured | published +%% | predicted +%% | bounds | sign | size | decides | how it is "
         "predicted |\n"
         "|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 0; i < N_ROWS; i++) {
    const struct source *source = find(sources, rows[i].id);
    const struct prediction *p = &predictions[i];
    double lo, hi;
    published_range(&rows[i], source, &lo, &hi);
    printf("| %s | %s | ", source->id, source->workload);
    printf(lo == hi ? "%.1f" : "%.1f to %.1f", lo, hi);
    printf(" | %.1f | %.1f to %.1f | %s | %s | %s | %s |\n", p->value, p->lo, p->hi, sign_verdict(p, lo, hi),
           size_verdict(p, lo, hi), decides(p), rows[i].note);
  }
}

/* Which must be predicted and have no row. */
static void print_missing(const struct sources *sources) {
  int n = 0;
  for (int i = 0; i < sources->n; i++)
    if (!strcmp(sources->rows[i].must_predict, "yes") && !predicted(sources->rows[i].id, 0))
      printf("%s%s", n++ ? ", " : "\nWithout a prediction: ", sources->rows[i].id);
  if (n)
    printf(".\n");
}

static const char *yes(int is_so) {
  return is_so ? "yes" : "no";
}

static void print_sentences(void) {
  const struct prediction *eager = predicted("skel-eager", 0), *graph = predicted("skel-graph", 0);
  const struct prediction *tp_short = predicted("tp2ep4dp2", 0), *tp_long = predicted("tp2ep4dp2", 1);
  const struct prediction *ep_short = predicted("dp8ep8", 0), *ep_long = predicted("dp8ep8", 1);
  const struct prediction *out[] = {predicted("tp8-out256", 0), predicted("tp8-out512", 0), predicted("tp8-out1024", 0),
                                    predicted("tp8-out2048", 0)};
  const struct prediction *tp4 = predicted("tp4-pin", 0), *tp8 = predicted("tp8-pin1", 0);
  const struct prediction *bf16 = predicted("train-bf16", 0), *fp8 = predicted("train-fp8", 0);
  int falls = out[0]->value > out[1]->value && out[1]->value > out[2]->value && out[2]->value > out[3]->value;
  printf("| sentence | sign | size | decides |\n|---|---|---|---|\n");
  printf("| eager decode pays by submission, one graph does not (+140.5 against +3.6) | %s: +%.1f against +%.1f | %s "
         "and %s | "
         "%s |\n",
         yes(eager->value > 10 * graph->value), eager->value, graph->value, size_verdict(eager, 140.5, 140.5),
         size_verdict(graph, 3.6, 3.6), decides(eager));
  printf(
      "| TP grows with the input (TP2/EP4/DP2, +9.9 at 4k to +17.0 at 32k) | %s: +%.1f to +%.1f | %s and %s | %s |\n",
      yes(tp_long->value > tp_short->value), tp_short->value, tp_long->value, size_verdict(tp_short, 9.9, 9.9),
      size_verdict(tp_long, 17, 17), decides(tp_long));
  printf("| EP with DP shrinks with the input (DP8/EP8, +12.4 at 4k to +2.0 at 32k) | %s: +%.1f to +%.1f | %s and %s | "
         "%s |\n",
         yes(ep_long->value < ep_short->value), ep_short->value, ep_long->value, size_verdict(ep_short, 12.4, 12.4),
         size_verdict(ep_long, 2, 2), decides(ep_short));
  printf("| longer outputs pay less (256 to 2048 tokens: +16.8, +11.2, +7.6, +1.1) | %s: +%.1f, +%.1f, +%.1f, +%.1f | "
         "%s and "
         "%s | %s |\n",
         yes(falls), out[0]->value, out[1]->value, out[2]->value, out[3]->value, size_verdict(out[0], 16.8, 16.8),
         size_verdict(out[3], 1.1, 1.1), decides(out[0]));
  printf("| TP4 pays half of TP8's tax (+1.6 against +2.9 to +3.7) | %s: +%.1f against +%.1f | %s and %s | %s |\n",
         yes(tp4->value < tp8->value), tp4->value, tp8->value, size_verdict(tp4, 1.6, 1.6), size_verdict(tp8, 2.9, 3.7),
         decides(tp8));
  printf("| FP8 training pays relatively more (+24.1 against +13.3) | %s: +%.1f against +%.1f | %s and %s | %s |\n",
         yes(fp8->value > bf16->value), fp8->value, bf16->value, size_verdict(fp8, 24.1, 24.1),
         size_verdict(bf16, 13.3, 13.3), decides(fp8));
}

static void print_skeleton(void) {
  const struct prediction *eager = predicted("skel-eager", 0);
  double clear_us = eager->clear_s * 1e6, confidential_us = clear_us + eager->added_s * 1e6;
  double serial_us = 2644 + 181 * (34.45 - 3.45);
  printf("\n## Two readings of the skeleton\n\n"
         "The source gives 2644 us clear and 6358 us confidential (x2.41). Serially, as if each of the 181\n"
         "launches added its surcharge to the clear step: 2644 + 181 x 31 = %.0f us, x%.2f. By the timing law the\n"
         "host runs ahead, and the step is as long as the slower of host and GPU: clear %.0f us, confidential\n"
         "%.0f us, x%.2f; the host alone needs 181 x 34.45 = %.0f us. The measured 6358 us are the second; the\n"
         "clear step is predicted %.0f %% too short (rooflines), which makes the ratio too large.\n",
         serial_us, serial_us / 2644, clear_us, confidential_us, 1 + eager->value / 100, 181 * 34.45,
         100 * (1 - clear_us / 2644));
}

static double share_s(const struct prediction *p, enum cct_boundary boundary) {
  return p->share[boundary] * p->clear_s / 100;
}

static void print_outputs(const struct sources *sources) {
  static const char *const ids[] = {"tp8-out256", "tp8-out512", "tp8-out1024", "tp8-out2048"};
  const struct prediction *shortest = predicted(ids[0], 0), *longest = predicted(ids[3], 0);
  double ratio[4];
  printf(
      "\n## The output sweep in seconds\n\n"
      "A wave of 32 requests, confidential less clear, and what collectives and submissions make of it.\n\n"
      "| output | published clear | published added | predicted clear | predicted added | collectives | submissions |\n"
      "|---|---|---|---|---|---|---|\n");
  for (int i = 0; i < 4; i++) {
    const struct source *source = find(sources, ids[i]);
    const struct prediction *p = predicted(ids[i], 0);
    double clear_s = 32.0 * (256 << i) / source->off, on_s = 32.0 * (256 << i) / source->on;
    ratio[i] = clear_s / p->clear_s;
    printf("| %d | %.2f | %.2f | %.2f | %.2f | %.3f | %.3f |\n", 256 << i, clear_s, on_s - clear_s, p->clear_s,
           p->added_s, share_s(p, CCT_BOUNDARY_NVLINK), share_s(p, CCT_BOUNDARY_CHANNEL));
  }
  printf(
      "\nThe published addition is nearly the same for 256 and for 1024 tokens, so it is paid a wave, not a token.\n"
      "Bytes and tolls of encrypted collectives make %.2f to %.2f s of it. What unit costs find are the submissions\n"
      "of 32 prompts, which `plan` composes one by one and without a graph; an engine that packs prompts submits\n"
      "less, so that the seconds agree is no proof. The clear time is predicted %.1f to %.1f times too short\n"
      "(rooflines, no engine), and so no size in per cent comes out. No constant was moved.\n",
      share_s(shortest, CCT_BOUNDARY_NVLINK), share_s(longest, CCT_BOUNDARY_NVLINK), ratio[3], ratio[0]);
}

static void print_overlap(const struct sources *sources) {
  const struct source *tpot = find(sources, "overlap-on-tpot");
  printf(
      "\n## What unit costs alone cannot say\n\n"
      "- Overlapped scheduling (overlap-on, async-d2h) loses what it hid: a confidential copy back holds the host\n"
      "  until the GPU is done, so the engine's own work, hidden before, follows the step. `--overlap on --host-us\n"
      "  US` prices it; US is a property of the engine, which no profile holds. The published %.2f ms and %.2f ms a\n"
      "  token leave %.2f ms for it.\n"
      "- Architectures that are not public or not modelled are predicted by stand-ins, named in the table; a figure\n"
      "  that a stand-in meets or misses says little about size.\n"
      "- How many copies and small kernels an engine submits beside its graphs is the engine's: 7 copies a decode step\n"
      "  in vLLM 0.22, none in SGLang 0.5.13, one here. It is not what the tables of TP8 lack ([serving.md](serving.md)).\n"
      "- The source's four measurements of one configuration (tp8-c32, tp8-out2048, tp8-pin1, tp8-pin2) span +1.1\n"
      "  to +5.0.\n",
      tpot->off, tpot->on, tpot->on - tpot->off);
}

static void print_head(void) {
  printf(
      "# What the sources say, and what unit costs predict\n\n"
      "<!-- generated: build/debug/tests/sources_page data/published.tsv > docs/sources.md -->\n\n"
      "Every figure that data/published.tsv marks as one the planner has to predict, by sim from the shipped\n"
      "profiles, unfitted. Added time in per cent of the clear time. *size* is yes within %d points (what the source\n"
      "states for one pass), *in bounds* when the bounds of the profile's confidential costs reach it. *decides* is\n"
      "the boundary with the largest share.\n\n## Sentences\n\n",
      NOISE);
}

int main(int argc, char **argv) {
  struct sources sources = {0};
  enum cct_status status;
  if (argc != 2)
    return cct_status_exit(cct_fail(CCT_USAGE, "usage: sources_page PUBLISHED.tsv > docs/sources.md"));
  status = read_sources(argv[1], &sources);
  for (int i = 0; !status && i < N_ROWS; i++)
    if (!find(&sources, rows[i].id))
      status = cct_fail(CCT_USAGE, "%s: no figure '%s'", argv[1], rows[i].id);
  if (!status)
    status = predict_rows();
  if (!status) {
    print_head();
    print_sentences();
    print_skeleton();
    print_outputs(&sources);
    print_overlap(&sources);
    printf("\n## Figures\n\n");
    print_table(&sources);
    print_missing(&sources);
  }
  free(sources.text);
  return cct_status_exit(status);
}
