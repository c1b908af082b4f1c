/* SPDX-License-Identifier: Apache-2.0
 * The generic model file, for an architecture that is not public: {"model_type":"generic","hidden_size","vocab_size",
 * "tie_word_embeddings","weights","layers":[{"count","heads","kv_heads","attention_flops" (of one query with one key,
 * all heads), "kv_bytes" (of one token, all KV heads),
 * "gemms":[{"name","n","k","split":"column"|"row"|"none","place":"before"| "after"}], "ffn" or
 * "experts":{"count","per_token","width","shared_width"}}]}. */
#include <string.h>

#include "workloads/shape/model_read.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MOST         ((int64_t)1 << 26)

static enum cct_status read_i64(const struct cct_json_at *object, const char *key, int64_t min, int64_t *value_out) {
  return cct_json_member_i64(object, key, min, MOST, value_out);
}

static enum cct_status read_word(const struct cct_json_at *object, const char *key, const char *const *words, int n,
                                 int *index_out) {
  struct cct_json_at at = cct_json_at_key(object, key);
  const char *text = NULL;
  enum cct_status status = cct_json_read_string(&at, &text);
  for (int i = 0; !status && i < n; i++)
    if (!strcmp(words[i], text)) {
      *index_out = i;
      return CCT_OK;
    }
  return status ? status : cct_json_fail(&at, CCT_USAGE, "'%s'; the first word it may be is '%s'", text, words[0]);
}

static enum cct_status read_gemm(const struct cct_json_at *at, struct cct_layer_kind *kind) {
  static const char *const known[] = {"name", "n", "k", "split", "place"};
  static const char *const splits[] = {"none", "column", "row"}, *const places[] = {"before", "after"};
  struct cct_linear *linear = &kind->linears[kind->n_linears];
  struct cct_json_at name_at = cct_json_at_key(at, "name");
  const char *name = NULL;
  int split = 0;
  enum cct_status status = cct_json_known_keys(at, known, COUNT(known));
  if (!status)
    status = cct_json_read_string(&name_at, &name);
  if (!status)
    status = read_i64(at, "n", 1, &linear->n);
  if (!status)
    status = read_i64(at, "k", 1, &linear->k);
  if (!status)
    status = read_word(at, "split", splits, 3, &split);
  if (!status)
    status = read_word(at, "place", places, 2, &linear->is_after);
  if (status)
    return status;
  strncpy(linear->name, name, sizeof linear->name - 1);
  linear->split = (enum cct_split)split;
  kind->n_linears++;
  return CCT_OK;
}

static enum cct_status read_gemms(const struct cct_json_at *layer, struct cct_layer_kind *kind) {
  struct cct_json_at gemms = cct_json_at_key(layer, "gemms");
  enum cct_status status = cct_json_expect(&gemms, CCT_JSON_ARRAY);
  if (!status && cct_json_size(gemms.value) > CCT_MAX_LINEARS)
    status = cct_json_fail(&gemms, CCT_USAGE, "more than %d", CCT_MAX_LINEARS);
  for (int after = 0; !status && after < 2; after++) /* those before the attention core come first */
    for (size_t i = 0; !status && i < cct_json_size(gemms.value); i++) {
      struct cct_json_at gemm = cct_json_at_index(&gemms, i);
      struct cct_layer_kind one;
      memset(&one, 0, sizeof one);
      status = read_gemm(&gemm, &one);
      if (!status && one.linears[0].is_after == after)
        memcpy(&kind->linears[kind->n_linears++], &one.linears[0], sizeof one.linears[0]);
    }
  return status;
}

static enum cct_status read_experts(const struct cct_json_at *layer, struct cct_layer_kind *kind) {
  static const char *const known[] = {"count", "per_token", "width", "shared_width"};
  struct cct_json_at experts = cct_json_at_key(layer, "experts"), ffn = cct_json_at_key(layer, "ffn");
  if (!experts.value == !ffn.value)
    return cct_json_fail(layer, CCT_USAGE, "a layer has either ffn or experts");
  if (ffn.value)
    return cct_json_read_i64(&ffn, 1, MOST, &kind->ffn);
  enum cct_status status = cct_json_known_keys(&experts, known, COUNT(known));
  if (!status)
    status = read_i64(&experts, "count", 1, &kind->experts);
  if (!status)
    status = read_i64(&experts, "per_token", 1, &kind->top_k);
  if (!status)
    status = read_i64(&experts, "width", 1, &kind->expert_ffn);
  if (!status && cct_json_member(experts.value, "shared_width"))
    status = read_i64(&experts, "shared_width", 0, &kind->shared_ffn);
  if (!status && (kind->top_k > kind->experts || kind->experts > 1 << 14))
    status = cct_json_fail(&experts, CCT_USAGE, "%lld of %lld experts a token", (long long)kind->top_k,
                           (long long)kind->experts);
  return status;
}

static enum cct_status read_layer(const struct cct_json_at *at, int64_t hidden, struct cct_layer_kind *kind,
                                  int64_t *count_out) {
  static const char *const known[] = {"count",    "heads", "kv_heads", "attention_flops",
                                      "kv_bytes", "gemms", "ffn",      "experts"};
  struct cct_json_at flops = cct_json_at_key(at, "attention_flops");
  enum cct_status status = cct_json_known_keys(at, known, COUNT(known));
  if (!status)
    status = read_i64(at, "count", 1, count_out);
  if (!status)
    status = read_i64(at, "heads", 1, &kind->heads);
  if (!status)
    status = read_i64(at, "kv_heads", 1, &kind->kv_heads);
  if (!status)
    status = cct_json_read_f64(&flops, 0, 1e15, &kind->pair_flops_context);
  if (!status)
    status = read_i64(at, "kv_bytes", 0, &kind->kv_bytes);
  if (!status)
    status = read_gemms(at, kind);
  kind->pair_flops_decode = kind->pair_flops_context;
  kind->norms = 2 * hidden;
  return status ? status : read_experts(at, kind);
}

enum cct_status cct_model_read_generic(const struct cct_config *config, struct cct_model *model) {
  static const char *const known[] = {"model_type",  "hidden_size", "vocab_size", "tie_word_embeddings",
                                      "torch_dtype", "layers",      "note"};
  const struct cct_json_at *root = &config->root;
  struct cct_json_at layers = cct_json_at_key(root, "layers"), tied = cct_json_at_key(root, "tie_word_embeddings");
  int64_t counts[CCT_MAX_KINDS], total = 0;
  struct cct_layer_kind kinds[CCT_MAX_KINDS];
  memset(kinds, 0, sizeof kinds);
  enum cct_status status = cct_json_known_keys(root, known, COUNT(known));
  if (!status)
    status = read_i64(root, "hidden_size", 1, &model->hidden);
  if (!status)
    status = read_i64(root, "vocab_size", 1, &model->vocab);
  if (!status && tied.value)
    status = cct_json_read_bool(&tied, &model->is_tied);
  if (!status)
    status = cct_config_weights(config, &model->weights);
  if (!status)
    status = cct_json_expect(&layers, CCT_JSON_ARRAY);
  size_t n = status ? 0 : cct_json_size(layers.value);
  if (!status && (n == 0 || n > CCT_MAX_KINDS))
    status = cct_json_fail(&layers, CCT_USAGE, "%zu kinds of layers; 1 to %d are read", n, CCT_MAX_KINDS);
  for (size_t i = 0; !status && i < n; i++) {
    struct cct_json_at layer = cct_json_at_index(&layers, i);
    status = read_layer(&layer, model->hidden, &kinds[i], &counts[i]);
    total += status ? 0 : counts[i];
    if (!status && total > 1 << 12)
      status = cct_json_fail(&layer, CCT_USAGE, "more than %d layers", 1 << 12);
  }
  if (!status)
    status = cct_model_set_layers(model, total);
  for (size_t i = 0, at = 0; !status && i < n; i++)
    for (int64_t j = 0; !status && j < counts[i]; j++)
      status = cct_model_set_kind(model, &layers, (int)at++, &kinds[i]);
  model->is_stand_in = 1;
  return status;
}
