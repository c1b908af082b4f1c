/* SPDX-License-Identifier: Apache-2.0
 * What a config says of a key, wherever it stands, and what follows from several of them. */
#include <stdio.h>
#include <string.h>

#include "workloads/shape/model_read.h"

#define MOST_POSITIONS ((int64_t)1 << 40)

int cct_config_assumed(const struct cct_config *config, const char *key, char value[32]) {
  size_t length = strlen(key);
  for (const char *at = config->assume; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    if (!strncmp(at, key, length) && at[length] == '=') {
      snprintf(value, 32, "%.*s", (int)strcspn(at + length + 1, ","), at + length + 1);
      return 1;
    }
  return 0;
}

static int is_there(const struct cct_json_at *at) {
  return at->value && cct_json_type(at->value) != CCT_JSON_NULL;
}

struct cct_json_at cct_config_at(const struct cct_config *config, const char *key) {
  struct cct_json_at at = cct_json_at_key(&config->text, key);
  if (!is_there(&at) && config->root.value != config->text.value) {
    struct cct_json_at inherited = cct_json_at_key(&config->root, key);
    if (is_there(&inherited))
      return inherited;
  }
  if (!is_there(&at))
    at.value = NULL;
  return at;
}

enum cct_status cct_config_i64(const struct cct_config *config, const char *const *spellings, int64_t min, int64_t max,
                               const int64_t *standard, int64_t *value_out) {
  struct cct_json_at at = {0};
  for (int i = 0; spellings[i]; i++) {
    at = cct_config_at(config, spellings[i]);
    if (at.value)
      return cct_json_read_i64(&at, min, max, value_out);
  }
  if (!standard) {
    at = cct_json_at_key(&config->text, spellings[0]);
    at.value = NULL;
    return cct_json_read_i64(&at, min, max, value_out);
  }
  *value_out = *standard;
  return CCT_OK;
}

static enum cct_status type_by_name(const struct cct_json_at *at, const char *name, enum cct_type *type_out) {
  if (!strcmp(name, "bfloat16") || !strcmp(name, "float16") || !strcmp(name, "bf16") || !strcmp(name, "ignore"))
    *type_out = CCT_TYPE_BF16; /* fp16 costs the same bytes and flops */
  else if (!strncmp(name, "float8_e4m3", 11) || !strcmp(name, "fp8"))
    *type_out = CCT_TYPE_FP8;
  else if (!strcmp(name, "nvfp4"))
    *type_out = CCT_TYPE_NVFP4;
  else
    return cct_json_fail(at, CCT_USAGE,
                         "weights of '%s' are not modelled; --weights bf16|fp8|nvfp4 needs bfloat16, float16 or "
                         "float8_e4m3fn here",
                         name);
  return CCT_OK;
}

enum cct_status cct_config_weights(const struct cct_config *config, enum cct_type *type_out) {
  struct cct_json_at quantization = cct_config_at(config, "quantization_config"), at;
  char assumed[32];
  if (config->weights)
    return type_by_name(&config->root, config->weights, type_out);
  const char *method = NULL, *algorithm = NULL, *name;
  if (quantization.value && cct_config_assumed(config, "quantization_config", assumed))
    return type_by_name(&quantization, assumed, type_out);
  if (quantization.value) {
    enum cct_status status = cct_json_expect(&quantization, CCT_JSON_OBJECT);
    if (status)
      return status;
    at = cct_json_at_key(&quantization, "quant_method");
    method = at.value ? cct_json_string(at.value) : NULL;
    at = cct_json_at_key(&quantization, "quant_algo");
    algorithm = at.value ? cct_json_string(at.value) : NULL;
    if (method && !strcmp(method, "fp8")) {
      *type_out = CCT_TYPE_FP8;
      return CCT_OK;
    }
    if (algorithm && (!strcmp(algorithm, "NVFP4") || !strcmp(algorithm, "FP8"))) {
      *type_out = *algorithm == 'F' ? CCT_TYPE_FP8 : CCT_TYPE_NVFP4;
      return CCT_OK;
    }
    return cct_json_fail(
        &quantization, CCT_USAGE,
        "quantization by '%s' is not modelled; --assume quantization_config=bf16|fp8|nvfp4 states what it "
        "costs",
        algorithm ? algorithm
        : method  ? method
                  : "(no quant_method)");
  }
  at = cct_config_at(config, "torch_dtype");
  if (!at.value)
    at = cct_config_at(config, "dtype");
  if (!at.value)
    return cct_json_fail(&config->text, CCT_USAGE,
                         "no torch_dtype and no quantization_config; --weights bf16|fp8|nvfp4 "
                         "states the weights' type");
  enum cct_status status = cct_json_read_string(&at, &name);
  return status ? status : type_by_name(&at, name, type_out);
}

/* A rope that is scaled by a factor reaches so much farther than where it was trained; the others say their whole
 * length. */
static enum cct_status scale_positions(const struct cct_json_at *rope, int64_t *positions) {
  struct cct_json_at type = cct_json_at_key(rope, "rope_type"), factor = cct_json_at_key(rope, "factor");
  struct cct_json_at trained = cct_json_at_key(rope, "original_max_position_embeddings");
  const char *name = NULL;
  double times = 1;
  enum cct_status status = cct_json_expect(rope, CCT_JSON_OBJECT);
  if (!is_there(&type))
    type = cct_json_at_key(rope, "type");
  if (status || !is_there(&type)) /* rope_parameters of each kind of layer: no scaling that all share */
    return status;
  status = cct_json_read_string(&type, &name);
  if (status || !strcmp(name, "llama3") || !strcmp(name, "longrope") || !strcmp(name, "su"))
    return status;
  if (is_there(&factor))
    status = cct_json_read_f64(&factor, 1e-3, 1e6, &times);
  if (!status && !strcmp(name, "yarn") && is_there(&trained))
    status = cct_json_read_i64(&trained, 1, MOST_POSITIONS, positions);
  *positions = (int64_t)((double)*positions * times + 0.5);
  return status;
}

enum cct_status cct_config_positions(const struct cct_config *config, int64_t *positions_out) {
  static const char *const keys[] = {"max_position_embeddings", NULL};
  static const int64_t none = 0;
  struct cct_json_at rope = cct_config_at(config, "rope_scaling");
  char assumed[32];
  int64_t positions;
  enum cct_status status = cct_config_i64(config, keys, 1, MOST_POSITIONS, &none, &positions);
  if (!rope.value)
    rope = cct_config_at(config, "rope_parameters");
  if (!status && positions && rope.value)
    status = scale_positions(&rope, &positions);
  if (!status)
    *positions_out = cct_config_assumed(config, keys[0], assumed) ? 0 : positions;
  return status;
}
