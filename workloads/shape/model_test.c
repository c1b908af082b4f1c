/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/text.h"
#include "tests/scratch.h"
#include "workloads/shape/layout.h"
#include "workloads/shape/model.h"

/* Totals x 1e9 by the convention of model.h, stated with the presets. */
static void presets_have_their_totals(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double total;
    int64_t positions;
  } rows[] = {
      {"qwen3-0.6b", 0.5960, 40960},     {"qwen3-8b", 8.1907, 40960},       {"qwen3-14b", 14.7683, 40960},
      {"qwen2.5-72b", 72.7054, 131072},  {"llama-3.1-8b", 8.0303, 131072},  {"llama-3.3-70b", 70.5537, 131072},
      {"phi-4-mini", 3.8360, 131072},    {"qwen3-30b-a3b", 30.5321, 40960}, {"qwen3-235b-a22b", 235.0936, 40960},
      {"minimax-m2", 228.6893, 196608},  {"mixtral-8x7b", 46.7028, 32768},  {"gpt-oss-20b", 20.9079, 131072},
      {"deepseek-r1", 671.0264, 163840},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_model model;
    assert_int_equal(cct_model_load(rows[i].name, NULL, NULL, &model), CCT_OK);
    double total = cct_model_parameters(&model) / 1e9;
    if (fabs(total - rows[i].total) > 0.00005)
      fail_msg("%s has %.4f e9 parameters, not %.4f e9", rows[i].name, total, rows[i].total);
    if (model.positions != rows[i].positions)
      fail_msg("%s has %lld positions", rows[i].name, (long long)model.positions);
    cct_model_free(&model);
  }
}

/* What their published config.json say beyond widths. */
static void presets_have_their_windows_and_groups(void **state) {
  (void)state;
  struct cct_model model;
  assert_int_equal(cct_model_load("gpt-oss-20b", NULL, NULL, &model), CCT_OK);
  for (int layer = 0; layer < model.n_layers; layer++)
    assert_int_equal(cct_model_layer(&model, layer)->window, layer % 2 ? 0 : 128);
  cct_model_free(&model);
  assert_int_equal(cct_model_load("deepseek-r1", NULL, NULL, &model), CCT_OK);
  assert_int_equal(model.routing_groups, 8);
  assert_int_equal(model.routing_groups_chosen, 4);
  cct_model_free(&model);
}

static void active_parameters_count_the_chosen_experts(void **state) {
  (void)state;
  struct cct_model model;
  assert_int_equal(cct_model_load("qwen3-30b-a3b", NULL, NULL, &model), CCT_OK);
  double rest = 30532110336.0 - 48.0 * 128 * 3 * 2048 * 768;
  assert_true(fabs(cct_model_active_parameters(&model) - (rest + 48.0 * 8 * 3 * 2048 * 768)) < 1);
  cct_model_free(&model);
}

/* Loads a file of tests/data/models. */
static enum cct_status load_case(const char *name, const char *assume, struct cct_model *model) {
  char path[1024];
  const char *source = getenv("CCT_SOURCE");
  snprintf(path, sizeof path, "%s/tests/data/models/%s", source ? source : ".", name);
  return cct_model_load(path, assume, NULL, model);
}

static void real_shaped_files_are_read(void **state) {
  (void)state;
  static const struct {
    const char *file, *assume;
    double total_e9;
    enum cct_type weights;
  } rows[] = {
      {"qwen2-like.json", NULL, 7.6155, CCT_TYPE_BF16},
      {"qwen3-like.json", NULL, 8.1907, CCT_TYPE_BF16},
      {"llama-like.json", NULL, 8.0303, CCT_TYPE_BF16},
      {"phi3-like.json", NULL, 3.8211, CCT_TYPE_BF16},
      {"qwen3-moe-like.json", NULL, 30.5321, CCT_TYPE_FP8},
      {"mixtral-like.json", NULL, 46.7028, CCT_TYPE_BF16},
      {"minimax-like.json", NULL, 228.6893, CCT_TYPE_FP8},
      {"gpt-oss-like.json", "quantization_config=nvfp4", 20.9079, CCT_TYPE_NVFP4},
      {"deepseek-like.json", NULL, 671.0264, CCT_TYPE_FP8},
      {"nested-like.json", NULL, 23.5724, CCT_TYPE_BF16},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_model model;
    if (load_case(rows[i].file, rows[i].assume, &model))
      fail_msg("%s is refused", rows[i].file);
    double total = cct_model_parameters(&model) / 1e9;
    if (fabs(total - rows[i].total_e9) > 0.00005)
      fail_msg("%s has %.4f e9 parameters, not %.4f e9", rows[i].file, total, rows[i].total_e9);
    assert_int_equal(model.weights, rows[i].weights);
    cct_model_free(&model);
  }
}

static void a_sliding_window_is_a_property_of_layers(void **state) {
  (void)state;
  struct cct_model model;
  assert_int_equal(load_case("gpt-oss-like.json", "quantization_config=bf16", &model), CCT_OK);
  assert_int_equal(cct_model_layer(&model, 0)->window, 128);
  assert_int_equal(cct_model_layer(&model, 1)->window, 0);
  assert_int_equal(model.n_kinds, 2);
  cct_model_free(&model);
  assert_int_equal(load_case("qwen2-like.json", NULL, &model), CCT_OK); /* use_sliding_window is false */
  assert_int_equal(cct_model_layer(&model, 27)->window, 0);
  cct_model_free(&model);
}

static void leading_layers_of_deepseek_are_dense(void **state) {
  (void)state;
  struct cct_model model;
  assert_int_equal(cct_model_load("deepseek-r1", NULL, NULL, &model), CCT_OK);
  for (int layer = 0; layer < 61; layer++) {
    assert_int_equal(cct_model_layer(&model, layer)->experts, layer < 3 ? 0 : 256);
    assert_int_equal(cct_model_layer(&model, layer)->ffn, layer < 3 ? 18432 : 0);
  }
  assert_int_equal(cct_model_layer(&model, 3)->shared_ffn, 2048);
  assert_int_equal(cct_model_cut(&model, 3), CCT_OK);
  assert_int_equal(model.is_scaled, 1);
  assert_int_equal(cct_model_cut(&model, 4), CCT_USAGE);
  cct_model_free(&model);
}

/* Loads `text` as a config. */
static enum cct_status load_text(const char *text, const char *assume) {
  char path[] = "/tmp/cctax-model-XXXXXX.json";
  struct cct_model model;
  write_temporary(path, text);
  enum cct_status status = cct_model_load(path, assume, NULL, &model);
  if (!status)
    cct_model_free(&model);
  unlink(path);
  return status;
}

#define CONFIG(extra)                                                                                                  \
  "{\"model_type\":\"qwen3\",\"torch_dtype\":\"bfloat16\",\"num_hidden_layers\":2,\"num_attention_heads\":4,"          \
  "\"intermediate_size\":64,\"vocab_size\":100" extra "}"

/* vLLM's rule (vllm/config/model.py, _get_and_verify_max_len): a rope that is scaled by a factor reaches so much
 * farther than the positions it was trained on; llama3 and longrope say the whole length themselves. A window is no
 * limit. */
static void positions_follow_the_rope(void **state) {
  (void)state;
#define REACH(rest) CONFIG(",\"hidden_size\":64,\"max_position_embeddings\":4096" rest)
  static const struct {
    const char *text, *assume;
    int64_t positions;
  } rows[] = {
      {CONFIG(",\"hidden_size\":64"), NULL, 0},
      {REACH(""), NULL, 4096},
      {REACH(",\"sliding_window\":512,\"use_sliding_window\":true,\"max_window_layers\":0"), NULL, 4096},
      {REACH(",\"rope_scaling\":null"), NULL, 4096},
      {REACH(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.5}"), NULL, 10240},
      {REACH(",\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":2}"), NULL, 8192},
      {REACH(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"original_max_position_embeddings\":1024}"), NULL,
       40960},
      {REACH(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}"), NULL, 16384},
      {REACH(",\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":2048}"),
       NULL, 8192},
      {REACH(",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\"}}"), NULL, 4096},
      {REACH(",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"original_max_position_embeddings\":512}"),
       NULL, 4096},
      {REACH(",\"rope_scaling\":{\"type\":\"longrope\",\"long_factor\":[1,2]}"), NULL, 4096},
      {REACH(",\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[16,24,24]}"), NULL, 4096},
      {REACH(",\"rope_scaling\":{\"type\":\"video_rope\",\"factor\":null}"), NULL, 4096},
      {REACH(""), "max_position_embeddings=ignore", 0},
      {REACH(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":-1}"), NULL, -1},
      {REACH(",\"rope_scaling\":{\"type\":7,\"factor\":2}"), NULL, -1},
      {REACH(",\"rope_scaling\":\"yarn\""), NULL, -1},
      {CONFIG(",\"hidden_size\":64,\"max_position_embeddings\":0"), NULL, -1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char path[] = "/tmp/cctax-model-XXXXXX.json";
    struct cct_model model = {.positions = -1};
    write_temporary(path, rows[i].text);
    enum cct_status status = cct_model_load(path, rows[i].assume, NULL, &model);
    unlink(path);
    if (status != (rows[i].positions < 0 ? CCT_USAGE : CCT_OK) || model.positions != rows[i].positions)
      fail_msg("%s: %lld positions, not %lld", rows[i].text, (long long)model.positions, (long long)rows[i].positions);
    if (!status)
      cct_model_free(&model);
  }
}

static void bad_input_is_refused(void **state) {
  (void)state;
  assert_int_equal(load_text(CONFIG(",\"hidden_size\":64"), NULL), CCT_OK);
  static const char *const texts[] = {
      "",
      "{",
      "[]",
      "null",
      "{}",
      "{\"model_type\":\"qwen3\"}",
      "{\"model_type\":7}",
      "{\"model_type\":\"unheard_of\"}",
      CONFIG(""),
      CONFIG(",\"hidden_size\":-1"),
      CONFIG(",\"hidden_size\":1e18"),
      CONFIG(",\"hidden_size\":1000000000000000000"),
      CONFIG(",\"hidden_size\":\"64\""),
      CONFIG(",\"hidden_size\":[64]"),
      CONFIG(",\"hidden_size\":66"), /* no head_dim, 4 heads */
      CONFIG(",\"hidden_size\":64,\"num_key_value_heads\":3"),
      CONFIG(",\"hidden_size\":64,\"num_key_value_heads\":0"),
      CONFIG(",\"hidden_size\":64,\"tie_word_embeddings\":\"no\""),
      CONFIG(",\"hidden_size\":64,\"layer_types\":[\"full_attention\"]"),
      CONFIG(",\"hidden_size\":64,\"layer_types\":[\"full_attention\",\"linear_attention\"]"),
      CONFIG(",\"hidden_size\":64,\"text_config\":3"),
      CONFIG(",\"hidden_size\":64,\"quantization_config\":{\"quant_method\":\"awq\"}"),
      CONFIG(",\"hidden_size\":64,\"quantization_config\":\"fp8\""),
      CONFIG(",\"hidden_size\":64,\"linear_num_value_heads\":32"),
      CONFIG(",\"hidden_size\":64,\"mamba_d_state\":128"),
      CONFIG(",\"hidden_size\":64,\"hidden_size\":64"),
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (load_text(texts[i], NULL) != CCT_USAGE)
      fail_msg("not refused as bad input: %s", texts[i]);
  assert_int_equal(cct_model_load("/nowhere/config.json", NULL, NULL, &(struct cct_model){0}), CCT_IO);
  char *deep = malloc(200001);
  memset(deep, '[', 100000);
  memset(deep + 100000, ']', 100000);
  deep[200000] = '\0';
  assert_int_equal(load_text(deep, NULL), CCT_USAGE);
  free(deep);
}

static void what_is_not_modelled_needs_an_assumption(void **state) {
  (void)state;
  static const char linear[] = CONFIG(",\"hidden_size\":64,\"full_attention_interval\":4");
  assert_int_equal(load_text(linear, NULL), CCT_USAGE);
  assert_int_equal(load_text(linear, "full_attention_interval=ignore"), CCT_OK);
  assert_int_equal(load_text(linear, "full_attention_interval=2"), CCT_USAGE);
  assert_int_equal(load_text(linear, "full_attention_interval"), CCT_USAGE);
  assert_int_equal(load_text(linear, "full_attention_interval=ignore,absent=ignore"), CCT_USAGE);
  assert_int_equal(load_text(linear, "full_attention_interval=ignore,hidden_size=ignore"), CCT_USAGE);
  static const char awq[] = CONFIG(",\"hidden_size\":64,\"quantization_config\":{\"quant_method\":\"awq\"}");
  assert_int_equal(load_text(awq, "quantization_config=fp8"), CCT_OK);
  static const char harmless[] =
      CONFIG(",\"hidden_size\":64,\"attn_type_list\":[1,1],\"mamba_d_state\":null,\"nobody_knows\":1");
  assert_int_equal(load_text(harmless, NULL), CCT_OK);
}

static const char generic[] =
    "{\"model_type\":\"generic\",\"hidden_size\":1024,\"vocab_size\":1000,\"torch_dtype\":\"bfloat16\",\"layers\":["
    "{\"count\":3,\"heads\":16,\"kv_heads\":2,\"attention_flops\":8192,\"kv_bytes\":1024,\"gemms\":["
    "{\"name\":\"out\",\"n\":1024,\"k\":2048,\"split\":\"row\",\"place\":\"after\"},"
    "{\"name\":\"in\",\"n\":2560,\"k\":1024,\"split\":\"column\",\"place\":\"before\"}],\"ffn\":4096},"
    "{\"count\":1,\"heads\":16,\"kv_heads\":2,\"attention_flops\":0,\"kv_bytes\":0,\"gemms\":[],"
    "\"experts\":{\"count\":8,\"per_token\":2,\"width\":512}}]}";

static void a_generic_file_stands_in(void **state) {
  (void)state;
  char path[] = "/tmp/cctax-model-XXXXXX.json";
  struct cct_model model;
  write_temporary(path, generic);
  assert_int_equal(cct_model_load(path, NULL, NULL, &model), CCT_OK);
  unlink(path);
  assert_int_equal(model.is_stand_in, 1);
  assert_int_equal(model.n_layers, 4);
  assert_string_equal(model.kinds[0].linears[0].name, "in");
  double layer = 1024.0 * 2048 + 2560 * 1024 + 3 * 1024 * 4096 + 2048, moe = 8 * 3 * 1024 * 512 + 8 * 1024 + 2048;
  assert_true(fabs(cct_model_parameters(&model) - (2 * 1000 * 1024 + 1024 + 3 * layer + moe)) < 1);
  cct_model_free(&model);
  assert_int_equal(
      load_text("{\"model_type\":\"generic\",\"hidden_size\":8,\"vocab_size\":8,\"torch_dtype\":\"bfloat16\","
                "\"layers\":[]}",
                NULL),
      CCT_USAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(presets_have_their_totals),
      cmocka_unit_test(presets_have_their_windows_and_groups),
      cmocka_unit_test(active_parameters_count_the_chosen_experts),
      cmocka_unit_test(real_shaped_files_are_read),
      cmocka_unit_test(a_sliding_window_is_a_property_of_layers),
      cmocka_unit_test(leading_layers_of_deepseek_are_dense),
      cmocka_unit_test(positions_follow_the_rope),
      cmocka_unit_test(bad_input_is_refused),
      cmocka_unit_test(what_is_not_modelled_needs_an_assumption),
      cmocka_unit_test(a_generic_file_stands_in),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
