/* SPDX-License-Identifier: Apache-2.0
 * The table of what nothing reads (shape/cell_reads.c) held against what steps are made of: a key that is said to be
 * read makes another step, another footprint or another schedule by one of its values, or is refused where the step is
 * built; one that is said to decide nothing makes none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/text.h"
#include "workloads/shape/cell.h"
#include "workloads/shape/footprint.h"
#include "workloads/steps/serve.h"
#include "workloads/steps/step_fixture.h"

#define DENSE  "model qwen3-0.6b layers 2 "
#define SPARSE "model qwen3-30b-a3b layers 2 "
static const char *const bases[] = {
    DENSE "workload train seq-len 128 layout tp=1",
    DENSE "workload train seq-len 128 layout dp=2",
    DENSE "workload train seq-len 128 layout dp=2 overlap-grad-reduce off",
    DENSE "workload train seq-len 128 layout tp=2,dp=2 optimizer adam-zero1",
    DENSE "workload train seq-len 128 layout tp=2 checkpoint-every 10",
    SPARSE "workload train seq-len 128 layout tp=2,dp=2",
    SPARSE "workload train seq-len 128 layout tp=2,ep=4,dp=2 optimizer adam-zero1",
    "model deepseek-r1 layers 3 workload train seq-len 128 layout tp=2", /* its first layers are dense */
    DENSE "workload prefill input-len 64 layout tp=1",
    SPARSE "workload prefill input-len 64 layout tp=2",
    SPARSE "workload prefill input-len 64 layout ep=2,dp=2",
    DENSE "workload decode layout dp=2",
    DENSE "workload decode layout tp=2",
    SPARSE "workload decode layout tp=2,ep=2 graph none",
    DENSE "workload serve layout tp=1 num-prompts 40",
    DENSE "workload serve layout dp=2 disaggregate 1:1",
    DENSE "workload serve layout tp=2 graph none speculate 2",
    DENSE "workload serve layout tp=2 graph piecewise request-rate 5 kv-tokens 8192",
    SPARSE "workload serve layout tp=2 graph piecewise",
    SPARSE "workload serve layout tp=2,ep=2 request-rate 5 arrivals steps",
    "workload collective np 2",
    "workload collective np 2 graph full",
    "workload collective np 4 iters 5 collective all_to_allv",
    "workload collective np 4 collective broadcast bytes 4096",
    "workload probe np 2 probe submission",
    "workload probe np 2 probe sync",
    "workload probe np 2 probe graph",
    "workload probe np 2 probe decode-loop",
    "workload probe np 2 probe h2d",
    "workload probe np 2 probe d2h",
    "workload probe np 2 probe d2d",
    "workload probe np 2 probe p2p",
    "workload probe np 2 probe gemm",
    "workload probe np 2 probe hbm",
    "workload probe np 2 probe bare-sync",
    "workload probe np 2 probe floor",
    "workload probe np 2 probe blocked-h2d",
    "workload probe np 2 probe blocked-d2h",
    "workload probe np 2 probe both",
    "workload probe np 2 probe streams",
    "workload probe np 2 probe threads",
    "workload probe np 2 probe load",
    "workload probe np 2 probe save",
    "workload probe np 2 probe hostwork",
};

/* Values of a key, of which one at least differs from its default; NULL: it is no key of a model's step that could be
 * tried alone, or one that the runner reads. */
static const char *values_of(enum cct_option_id id, char made[64]) {
  const struct cct_option *row = &cct_option_table[id];
  switch (id) {
  case CCT_OPT_WORKLOAD:
  case CCT_OPT_MODEL:
  case CCT_OPT_LAYOUT:
  case CCT_OPT_PROGRAM:
  case CCT_OPT_NP:     /* checked against the layout */
  case CCT_OPT_ASSUME: /* of a config's own keys */
  case CCT_OPT_TRACE:
  case CCT_OPT_SCALE: /* the host backend's */
    return NULL;
  case CCT_OPT_SKEW:
    return "zipf:1";
  case CCT_OPT_SLO:
    return "tpot=9ms";
  case CCT_OPT_DISAGGREGATE:
    return "1:1";
  case CCT_OPT_LAYERS:
    return "1";
  case CCT_OPT_CAPACITY:
  case CCT_OPT_ACCEPTANCE:
  case CCT_OPT_RANDOM_RANGE_RATIO:
    return "0.5";
  case CCT_OPT_BYTES:
  case CCT_OPT_BUCKET_BYTES:
  case CCT_OPT_KV_TOKENS:
    return "65536";
  case CCT_OPT_NUM_PROMPTS:
    return "39";
  case CCT_OPT_BUFFER_BYTES:
    return "64M";
  case CCT_OPT_GEMM_SHAPE:
    return "16x64x64";
  case CCT_OPT_COMM_CHOICE:
    return "ring/ll/2";
  default:
    break;
  }
  if (row->kind == CCT_KIND_WORD)
    return row->argument;
  snprintf(made, 64, "%.0f|%.0f", row->standard ? atof(row->standard) + 1 : 3,
           row->standard ? atof(row->standard) * 2 : 9);
  return row->kind == CCT_KIND_BYTES ? "100G" : made;
}

static void add_job(struct cct_text *text, const struct cct_job *job) {
  char digest[65] = "none";
  assert_true(!job || !cct_job_digest(job, digest));
  cct_text_add(text, "%s;", digest);
}

static void add_serving(struct cct_text *text, const struct cct_serve *s) {
  const struct cct_request_plan *r = &s->requests;
  const struct cct_limits *l = &s->limits;
  cct_text_add(text, "requests %d %" PRId64 " %" PRId64 " %g %g %" PRId64 " %" PRId64 " %g;", (int)r->arrivals,
               r->concurrency, r->n, r->rate, r->rate > 0 ? r->burstiness : 0, r->input, r->output, r->range_ratio);
  cct_text_add(text, "limits %" PRId64 " %" PRId64 " %" PRId64 " %d %d %d %" PRId64 " %g;", l->tokens, l->sequences,
               l->blocks, l->is_chunked, l->is_offload, l->lag, l->drafts, l->drafts ? l->acceptance : 0);
  cct_text_add(text, "slo %" PRId64 ", %" PRId64 ":%" PRId64, s->slo.tpot_ns, s->prefills, s->decodes);
}

/* All that a cell decides, as text; empty where its step is refused. */
static void describe(const struct cct_options *cell, struct cct_text *text) {
  struct cct_step step;
  struct cct_model model = {0};
  struct cct_layout layout;
  struct cct_footprint f;
  cct_log_mute(1);
  enum cct_status status = cct_step_build(cell, &step);
  cct_log_mute(0);
  if (status)
    return;
  add_job(text, step.job);
  add_job(text, step.checkpoint);
  cct_text_add(text, "%" PRId64 " %" PRId64 " %g %" PRId64 " %" PRId64 ";", step.checkpoint_every, step.tokens,
               step.model_flops, step.checks, step.dropped);
  const struct cct_program *program = step.job->roles[0].program;
  for (int rank = 0; step.bindings && rank < step.job->ranks; rank++)
    for (int i = 0; i < program->n_slots; i++)
      cct_text_add(text, "%" PRId64 " ", step.bindings[rank].slots[i]);
  if (step.serve)
    add_serving(text, step.serve);
  cct_text_add(text, "%" PRId64 " %" PRId64 ";", step.repetitions, step.operations);
  if (cct_cell_workload(cell) >= CCT_WORKLOAD_COLLECTIVE) {
    cct_step_free(&step);
    return;
  }
  assert_int_equal(cct_model_load(cell->v[CCT_OPT_MODEL].s, NULL, cell->v[CCT_OPT_WEIGHTS].s, &model), CCT_OK);
  assert_int_equal(cct_layout_parse(cell->v[CCT_OPT_LAYOUT].s, "layout", &layout), CCT_OK);
  cct_footprint_of(&model, &layout, cell, &f);
  cct_text_add(text, "%.17g", f.total);
  cct_model_free(&model);
  cct_step_free(&step);
}

enum effect { /* of a key's values in a cell */
  NONE = 0,
  REFUSED = 1 << 0, /* where the step is built */
  OTHER = 1 << 1,   /* another step than without it */
  READ = 1 << 2,    /* says the table */
};

static int effect_of(const struct cct_options *cell, enum cct_option_id id, const char *value, const char *base) {
  struct cct_options with;
  struct cct_text text = {0};
  char why[128];
  assert_int_equal(cct_options_copy(cell, &with), CCT_OK);
  assert_int_equal(cct_option_set(&with, id, value, "test"), CCT_OK);
  describe(&with, &text);
  int effect = !text.length ? REFUSED : strcmp(text.s, base) != 0 ? OTHER : NONE;
  int is_default = cell->v[id].has_value && cell->v[id].s && !strcmp(cell->v[id].s, value); /* may be read in vain */
  effect |= !is_default && cct_cell_reads(&with, id, why, NULL) == CCT_READ ? READ : NONE;
  cct_text_free(&text);
  cct_options_free(&with);
  return effect;
}

/* What is refused although something follows from it: beside a rate the number of requests, which --num-prompts says;
 * with one replica into how many buffers its gradients are put. */
static int is_refused_anyway(enum cct_option_id id) {
  return id == CCT_OPT_CONCURRENCY || id == CCT_OPT_OVERLAP_GRAD || id == CCT_OPT_BUCKET_BYTES;
}

static void what_is_read_matters(void **state) {
  (void)state;
  int n_wrong = 0;
  for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
    struct cct_options cell = cct_fixture_cell(bases[b]);
    struct cct_text base = {0};
    describe(&cell, &base);
    if (!base.length)
      fail_msg("refused: %s", bases[b]);
    for (int i = 0; i < CCT_OPTION_COUNT; i++) {
      enum cct_option_id id = (enum cct_option_id)i;
      char made[64], copy[512], *save = NULL;
      const char *values = cct_option_table[i].scope == CCT_SCOPE_CELL ? values_of(id, made) : NULL;
      int effects = NONE;
      if (!values || cell.v[id].is_set)
        continue;
      snprintf(copy, sizeof copy, "%s", values);
      for (char *value = strtok_r(copy, "|", &save); value; value = strtok_r(NULL, "|", &save))
        effects |= effect_of(&cell, id, value, base.s);
      int is_wrong = effects & READ ? !(effects & (OTHER | REFUSED)) : (effects & OTHER) && !is_refused_anyway(id);
      if (is_wrong)
        fprintf(stderr, "%s: --%s is %s\n", bases[b], cct_option_table[i].name,
                effects & READ ? "read, and makes no difference" : "not read, and makes a difference");
      n_wrong += is_wrong;
    }
    cct_text_free(&base);
    cct_options_free(&cell);
  }
  assert_int_equal(n_wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_read_matters)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
