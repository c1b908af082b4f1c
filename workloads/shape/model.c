/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/shape/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data.h"
#include "workloads/shape/model_read.h"

double cct_weight_bytes(enum cct_type type, double elements) {
  if (type == CCT_TYPE_FP8)
    return elements * (1 + 4.0 / (128 * 128));
  if (type == CCT_TYPE_NVFP4)
    return elements * (0.5 + 1.0 / 16);
  return elements * 2;
}

int cct_model_has_experts(const struct cct_model *model) {
  for (int layer = 0; layer < model->n_layers; layer++) /* of those that --layers left */
    if (cct_model_layer(model, layer)->experts)
      return 1;
  return 0;
}

double cct_linear_parameters(const struct cct_layer_kind *kind, const struct cct_linear *linear) {
  double one = (double)(linear->n + linear->n_kv) * (double)linear->k;
  return linear->is_view ? 0 : linear->split == CCT_SPLIT_HEADS ? one * (double)kind->heads : one;
}

static double count_parameters(const struct cct_model *model, int is_active) {
  double hidden = (double)model->hidden;
  double total = (double)model->vocab * hidden * (model->is_tied ? 1 : 2) + hidden;
  for (int layer = 0; layer < model->n_layers; layer++) {
    const struct cct_layer_kind *kind = cct_model_layer(model, layer);
    double experts = (double)(is_active ? kind->top_k : kind->experts);
    for (int i = 0; i < kind->n_linears; i++)
      total += cct_linear_parameters(kind, &kind->linears[i]);
    total += (double)kind->norms + 3 * hidden * (double)(kind->ffn + kind->shared_ffn);
    total += experts * 3 * hidden * (double)kind->expert_ffn + (double)kind->experts * hidden;
  }
  return total;
}

double cct_model_parameters(const struct cct_model *model) {
  return count_parameters(model, 0);
}

double cct_model_active_parameters(const struct cct_model *model) {
  return count_parameters(model, 1);
}

enum cct_status cct_model_set_layers(struct cct_model *model, int64_t layers) {
  model->kind_of = calloc((size_t)layers, 1);
  if (!model->kind_of)
    return cct_fail(CCT_NOMEM, "out of memory");
  model->n_layers = (int)layers;
  return CCT_OK;
}

enum cct_status cct_model_set_kind(struct cct_model *model, const struct cct_json_at *at, int layer,
                                   const struct cct_layer_kind *kind) {
  int i = 0;
  while (i < model->n_kinds && memcmp(&model->kinds[i], kind, sizeof *kind))
    i++;
  if (i == CCT_MAX_KINDS)
    return cct_json_fail(at, CCT_USAGE, "more than %d kinds of layers", CCT_MAX_KINDS);
  if (i == model->n_kinds)
    memcpy(&model->kinds[model->n_kinds++], kind, sizeof *kind);
  model->kind_of[layer] = (uint8_t)i;
  return CCT_OK;
}

enum cct_status cct_model_check_length(const struct cct_model *model, const char *what, int64_t tokens) {
  if (!model->positions || tokens <= model->positions)
    return CCT_OK;
  return cct_fail(CCT_USAGE,
                  "%s of %lld tokens, and %s has %lld positions: shorter ones, a longer rope_scaling in a config.json, "
                  "or --assume max_position_embeddings=ignore",
                  what, (long long)tokens, model->name, (long long)model->positions);
}

enum cct_status cct_model_cut(struct cct_model *model, int64_t layers) {
  if (layers > model->n_layers)
    return cct_fail(CCT_USAGE, "--layers %lld: %s has %d layers", (long long)layers, model->name, model->n_layers);
  model->is_scaled |= layers < model->n_layers;
  model->n_layers = (int)layers;
  return CCT_OK;
}

static const struct cct_family *family_of(const struct cct_config *config) {
  struct cct_json_at type = cct_config_at(config, "model_type"), all = cct_config_at(config, "architectures");
  const char *name = type.value && cct_json_type(type.value) == CCT_JSON_STRING ? cct_json_string(type.value) : NULL;
  const struct cct_json *first = all.value ? cct_json_element(all.value, 0) : NULL;
  const char *architecture = first ? cct_json_string(first) : NULL;
  for (int i = 0; i < cct_n_families; i++)
    if (name ? !strcmp(cct_families[i].model_type, name)
             : architecture && !strcmp(cct_families[i].architecture, architecture))
      return &cct_families[i];
  return NULL;
}

static enum cct_status refuse_family(const struct cct_config *config) {
  struct cct_json_at at = cct_json_at_key(&config->text, "model_type");
  const char *name = at.value ? cct_json_string(at.value) : NULL;
  struct cct_text known = {0};
  for (int i = 0; i < cct_n_families; i++)
    if (!i || strcmp(cct_families[i].model_type, cct_families[i - 1].model_type))
      cct_text_add(&known, "%s%s", i ? ", " : "", cct_families[i].model_type);
  enum cct_status status =
      cct_json_fail(&at, CCT_USAGE, "'%s' is no family that is modelled (%s); a generic model file can stand in",
                    name ? name : "(none)", known.s ? known.s : "");
  cct_text_free(&known);
  return status;
}

static void name_model(struct cct_model *model, const char *path) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  size_t length = strlen(base);
  if (length > 5 && !strcmp(base + length - 5, ".json"))
    length -= 5;
  snprintf(model->name, sizeof model->name, "%.*s", (int)length, base);
}

static enum cct_status read_model(const struct cct_json *document, const char *path, const char *assume,
                                  const char *weights, struct cct_model *model) {
  struct cct_config config = {.root = cct_json_root(document, path), .assume = assume, .weights = weights};
  config.text = config.root;
  enum cct_status status = cct_json_expect(&config.root, CCT_JSON_OBJECT);
  if (status)
    return status;
  struct cct_json_at type = cct_json_at_key(&config.root, "model_type");
  if (type.value && cct_json_string(type.value) && !strcmp(cct_json_string(type.value), "generic"))
    return cct_model_read_generic(&config, model);
  struct cct_json_at nested = cct_json_at_key(&config.root, "text_config");
  if (nested.value)
    config.text = nested;
  status = cct_json_expect(&config.text, CCT_JSON_OBJECT);
  const struct cct_family *family = status ? NULL : family_of(&config);
  if (!status && !family)
    status = refuse_family(&config);
  if (!status)
    status = cct_config_sort(&config);
  return status ? status : cct_model_read_family(&config, family, model);
}

enum cct_status cct_model_load(const char *name_or_file, const char *assume, const char *weights,
                               struct cct_model *model_out) {
  struct cct_model model = {0};
  struct cct_json *document = NULL;
  char path[4096];
  enum cct_status status = cct_data_path("models", "model", name_or_file, path, sizeof path);
  if (!status)
    status = cct_json_load(path, &document);
  if (!status)
    status = read_model(document, path, assume, weights, &model);
  cct_json_free(document);
  if (status) {
    cct_model_free(&model);
    return status;
  }
  name_model(&model, path);
  *model_out = model;
  return CCT_OK;
}

void cct_model_free(struct cct_model *model) {
  if (!model)
    return;
  free(model->kind_of);
  memset(model, 0, sizeof *model);
}
