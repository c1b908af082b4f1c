/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/shape/footprint.h"
#include "workloads/shape/layout.h"

static struct cct_model load(const char *name) {
  struct cct_model model;
  assert_int_equal(cct_model_load(name, NULL, NULL, &model), CCT_OK);
  return model;
}

static struct cct_layout parse(const char *text) {
  struct cct_layout layout;
  assert_int_equal(cct_layout_parse(text, "test", &layout), CCT_OK);
  return layout;
}

static void layouts_are_read_and_written(void **state) {
  (void)state;
  static const struct {
    const char *in, *out;
    int ranks;
  } rows[] = {{"tp=8", "tp=8", 8},
              {"dp=4,tp=2,ep=8", "tp=2,ep=8,dp=4", 8},
              {"ep=8,dp=8", "ep=8,dp=8", 8},
              {"tp=1,dp=1", "tp=1", 1},
              {"tp=2,pp=4", "tp=2,pp=4", 8}};
  char text[64];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_layout layout = parse(rows[i].in);
    assert_string_equal(cct_layout_text(&layout, text), rows[i].out);
    assert_int_equal(cct_layout_ranks(&layout), rows[i].ranks);
  }
  static const char *const bad[] = {"",          "tp",   "tp=",   "tp=0",   "tp=-1",          "tp=8,",
                                    "tp=2,tp=4", "xp=8", "tp=8 ", "tp=1e3", "tp=99999999999", "tp=65536,dp=2",
                                    "tp=4;dp=2"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(cct_layout_parse(bad[i], "test", &(struct cct_layout){0}), CCT_USAGE);
}

static void legality_is_as_defined(void **state) {
  (void)state;
  static const struct {
    const char *model, *layout;
    int is_legal;
  } rows[] = {
      {"qwen3-8b", "tp=8", 1},
      {"qwen3-8b", "tp=32", 1}, /* 8 KV heads, replicated 4 times */
      {"qwen3-8b", "tp=3,dp=1", 0},
      {"qwen3-8b", "ep=2,dp=2", 0},
      {"qwen2.5-72b", "tp=8", 1},
      {"phi-4-mini", "tp=12", 0}, /* 24 heads, 8 KV heads: neither divides nor multiple */
      {"phi-4-mini", "tp=24", 1},
      {"phi-4-mini", "tp=3", 0},
      {"deepseek-r1", "tp=8", 1},
      {"deepseek-r1", "tp=128", 1},
      {"deepseek-r1", "ep=8,dp=8", 1},
      {"deepseek-r1", "tp=2,ep=8,dp=4", 1},
      {"deepseek-r1", "tp=4,ep=2,dp=2", 0},
      {"deepseek-r1", "tp=8,ep=8", 1},
      {"deepseek-r1", "ep=3,dp=3", 0},
      {"deepseek-r1", "ep=8,dp=4", 0},
      {"gpt-oss-20b", "ep=64,dp=64", 0},
      {"qwen3-8b", "tp=2,pp=2", 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_model model = load(rows[i].model);
    struct cct_layout layout = parse(rows[i].layout);
    char why[192];
    const char *refusal = cct_layout_refusal(&layout, &model, why);
    if ((refusal == NULL) != rows[i].is_legal)
      fail_msg("%s of %s: %s", rows[i].layout, rows[i].model, refusal ? refusal : "legal");
    cct_model_free(&model);
  }
  struct cct_model model = load("deepseek-r1");
  struct cct_layout pipeline = parse("tp=2,pp=4"), small = parse("tp=2,ep=4,dp=2");
  assert_int_equal(cct_layout_check(&pipeline, &model), CCT_UNSUPPORTED);
  assert_int_equal(cct_layout_check_ranks(&small, &model, 8), CCT_USAGE);
  assert_int_equal(cct_layout_check_ranks(&small, &model, 4), CCT_OK);
  struct cct_layout *layouts;
  int n;
  assert_int_equal(cct_layout_all(&model, 8, &layouts, &n), CCT_OK);
  assert_int_equal(n, 13); /* tp 1: ep 1 2 4 8; tp 2: ep 1 2 4 8; tp 4: ep 1 4 8; tp 8: ep 1 8 */
  free(layouts);
  cct_model_free(&model);
}

/* The shares of all ranks together are the whole, plus what is replicated and padded. */
static void shares_add_up(void **state) {
  (void)state;
  struct cct_model model = load("qwen3-8b");
  struct cct_parameters one, eight, wide;
  struct cct_layout tp1 = parse("tp=1"), tp8 = parse("tp=8"), tp32 = parse("tp=32");
  cct_parameters_share(&model, &tp1, &one);
  assert_true(fabs(one.embedding + one.matrices + one.small + one.experts - cct_model_parameters(&model)) < 1);
  cct_parameters_share(&model, &tp8, &eight);
  assert_true(fabs(8 * (eight.embedding + eight.matrices) - (one.embedding + one.matrices)) < 1);
  cct_parameters_share(&model, &tp32, &wide); /* each rank holds a whole KV head: 4 copies of K and V */
  assert_true(fabs(32 * wide.matrices - (one.matrices + 36.0 * 3 * 2 * 8 * 128 * 4096)) < 1);
  assert_int_equal(cct_kv_bytes_share(&model.kinds[0], 8), 2 * 128 * 2);
  assert_int_equal(cct_kv_bytes_share(&model.kinds[0], 32), 2 * 128 * 2);
  cct_model_free(&model);

  model = load("qwen2.5-72b"); /* 29568 = 64 x 462: padded for tp = 16 x 4 */
  struct cct_layout tp64 = parse("tp=64");
  cct_parameters_share(&model, &tp64, &wide);
  assert_int_equal(cct_share(29568, 64), 462);
  assert_int_equal(cct_share(152064, 64) * 64, 152064);
  cct_model_free(&model);

  model = load("gpt-oss-20b"); /* 201088 = 64 x 3142; expert width 2880 over tp = 64 is 45 */
  struct cct_layout experts = parse("ep=8,dp=8"), sharded = parse("tp=8");
  cct_parameters_share(&model, &experts, &eight);
  cct_parameters_share(&model, &sharded, &wide);
  assert_true(fabs(eight.experts - wide.experts) < 1);
  assert_true(fabs(eight.experts - 24.0 * 4 * 3 * 2880 * 2880) < 1);
  cct_model_free(&model);

  model = load("deepseek-r1"); /* the latent's projections and cache are replicated */
  cct_parameters_share(&model, &tp8, &eight);
  cct_parameters_share(&model, &tp1, &one);
  double latent = 61.0 * (7168.0 * 1536 + 7168.0 * 576);
  assert_true(fabs(8 * eight.matrices - (one.matrices + 7 * latent)) < 1);
  assert_int_equal(cct_kv_bytes_share(&model.kinds[1], 8), 576 * 2);
  cct_model_free(&model);
}

/* ZeRO (arXiv 1910.02054), section 3.1: 16 bytes a parameter; section 5: its optimizer part divided. */
static void training_takes_16_bytes_a_parameter(void **state) {
  (void)state;
  struct cct_model model = load("qwen3-8b");
  struct cct_layout dp8 = parse("dp=8");
  struct cct_options cell;
  struct cct_footprint plain, zero1, full;
  double parameters = cct_model_parameters(&model);
  assert_int_equal(cct_options_init(&cell), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_WORKLOAD, "train", "test"), CCT_OK);
  cct_footprint_of(&model, &dp8, &cell, &plain);
  assert_true(fabs(plain.weights + plain.gradients + plain.optimizer - 16 * parameters) < 1);
  /* 2 x [4 x 4096 + (6144 + 4096) + 3 x 12288] bytes a token and layer, and 4 bytes a logit */
  double token = 36.0 * 2 * (4 * 4096 + 6144 + 4096 + 3 * 12288) + 4.0 * 151936;
  assert_true(fabs(plain.activations - 4096 * token) < 1);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_OPTIMIZER, "adam-zero1", "test"), CCT_OK);
  cct_footprint_of(&model, &dp8, &cell, &zero1);
  assert_true(fabs(zero1.optimizer - 12 * parameters / 8) < 1);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_RECOMPUTE, "full", "test"), CCT_OK);
  cct_footprint_of(&model, &dp8, &cell, &full);
  assert_true(full.activations < plain.activations / 5);
  cct_options_free(&cell);
  cct_model_free(&model);
}

/* Transformer Engine keeps an fp8 copy of each matrix and its transpose beside the bf16 weight, for all micro-batches
 * of a step. */
static void fp8_training_keeps_what_it_cast(void **state) {
  (void)state;
  struct cct_model bf16 = load("qwen3-8b"), fp8;
  struct cct_layout tp8 = parse("tp=8");
  struct cct_options cell;
  struct cct_footprint a, b;
  assert_int_equal(cct_model_load("qwen3-8b", NULL, "fp8", &fp8), CCT_OK);
  assert_int_equal(cct_options_init(&cell), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_WORKLOAD, "train", "test"), CCT_OK);
  cct_footprint_of(&bf16, &tp8, &cell, &a);
  cct_footprint_of(&fp8, &tp8, &cell, &b);
  assert_true(fabs(b.total - a.total - 2.0 * 36 * (4096.0 * 6144 + 4096 * 4096 + 3.0 * 4096 * 12288) / 8) < 1);
  cct_options_free(&cell);
  cct_model_free(&bf16);
  cct_model_free(&fp8);
}

/* Each of tp's two ranks has half of the tokens in norms, down-projections and, with ep > 1, experts, the shared one
 * too; and half of the heads. */
static void activations_of_an_expert_layer_are_shared(void **state) {
  (void)state;
  struct cct_layout layout = parse("tp=2,ep=8,dp=4");
  struct cct_options cell;
  double activations[2];
  assert_int_equal(cct_options_init(&cell), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_WORKLOAD, "train", "test"), CCT_OK);
  for (int more = 0; more < 2; more++) {
    struct cct_model model = load("deepseek-r1");
    struct cct_footprint f;
    assert_int_equal(cct_model_cut(&model, 3 + more), CCT_OK);
    cct_footprint_of(&model, &layout, &cell, &f);
    activations[more] = f.activations;
    cct_model_free(&model);
  }
  double token = 4 * 7168 + 1536 + 576 + 128 * (192 + 256 + 128) + 3 * 2048 + 8 * (7168 + 3 * 2048);
  assert_true(fabs(activations[1] - activations[0] - 4096 * 2 * token / 2) < 1);
  cct_options_free(&cell);
}

static void serving_takes_weights_and_cache(void **state) {
  (void)state;
  struct cct_model model = load("qwen3-8b");
  struct cct_layout tp8 = parse("tp=8");
  struct cct_options cell;
  struct cct_footprint footprint;
  assert_int_equal(cct_options_init(&cell), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_WORKLOAD, "serve", "test"), CCT_OK);
  cct_footprint_of(&model, &tp8, &cell, &footprint);
  assert_true(fabs(footprint.cache - 32.0 * 2048 * 36 * 512) < 1); /* 32 sequences, 1 KV head of 128, K and V in bf16 */
  assert_true(fabs(footprint.weights - 2 * (cct_model_parameters(&model) / 8 + 7 / 8.0 * (36 * 2 + 1) * 4096)) < 1);
  cct_options_free(&cell);
  cct_model_free(&model);
  assert_true(fabs(cct_weight_bytes(CCT_TYPE_NVFP4, 1600) - 900) < 1e-9);
  assert_true(fabs(cct_weight_bytes(CCT_TYPE_FP8, 16384) - 16388) < 1e-9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layouts_are_read_and_written),
      cmocka_unit_test(legality_is_as_defined),
      cmocka_unit_test(shares_add_up),
      cmocka_unit_test(training_takes_16_bytes_a_parameter),
      cmocka_unit_test(fp8_training_keeps_what_it_cast),
      cmocka_unit_test(activations_of_an_expert_layer_are_shared),
      cmocka_unit_test(serving_takes_weights_and_cache),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
