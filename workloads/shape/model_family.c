/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "workloads/shape/model_read.h"

const struct cct_family cct_families[] = {
    {"qwen2", "Qwen2ForCausalLM", CCT_WINDOW_LATE, 0, 0},
    {"qwen3", "Qwen3ForCausalLM", CCT_WINDOW_LATE, 0, 0},
    {"llama", "LlamaForCausalLM", CCT_WINDOW_ALL, 0, 0},
    {"mistral", "MistralForCausalLM", CCT_WINDOW_ALL, 0, 0},
    {"phi3", "Phi3ForCausalLM", CCT_WINDOW_ALL, 0, 0},
    {"qwen2_5_vl_text", "Qwen2_5_VLForConditionalGeneration", CCT_WINDOW_LATE, 0, 0},
    {"qwen3_vl_text", "Qwen3VLForConditionalGeneration", CCT_WINDOW_LATE, 0, 0},
    {"qwen2_moe", "Qwen2MoeForCausalLM", CCT_WINDOW_LATE, 1, 0},
    {"qwen3_moe", "Qwen3MoeForCausalLM", CCT_WINDOW_LATE, 1, 0},
    {"qwen3_vl_moe_text", "Qwen3VLMoeForConditionalGeneration", CCT_WINDOW_LATE, 1, 0},
    {"mixtral", "MixtralForCausalLM", CCT_WINDOW_ALL, 1, 0},
    {"minimax_m2", "MiniMaxM2ForCausalLM", CCT_WINDOW_ALL, 1, 0},
    {"gpt_oss", "GptOssForCausalLM", CCT_WINDOW_ALTERNATE, 1, 0},
    {"deepseek_v2", "DeepseekV2ForCausalLM", CCT_WINDOW_ALL, 1, 1},
    {"deepseek_v3", "DeepseekV3ForCausalLM", CCT_WINDOW_ALL, 1, 1},
    {"kimi_k2", "KimiK2ForCausalLM", CCT_WINDOW_ALL, 1, 1},
};
const int cct_n_families = sizeof cct_families / sizeof *cct_families;

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})
enum {
  MOST_WIDTH = 1 << 22,
  MOST_HEADS = 1 << 14,
  MOST_HEAD = 1 << 14,
  MOST_EXPERTS = 1 << 14
};
static const int64_t none = 0, one = 1;

static struct cct_linear *add_linear(struct cct_layer_kind *kind, const char *name, enum cct_split split, int64_t n,
                                     int64_t k) {
  struct cct_linear *linear = &kind->linears[kind->n_linears++];
  strncpy(linear->name, name, sizeof linear->name - 1);
  linear->split = split;
  linear->n = n;
  linear->k = k;
  return linear;
}

/* Grouped-query attention: QK^T and PV, 2 flops a multiply-add, for each head. */
static enum cct_status read_attention(const struct cct_config *config, int64_t hidden, struct cct_layer_kind *kind) {
  int64_t dim = 0;
  enum cct_status status = cct_config_i64(config, KEYS("num_attention_heads"), 1, MOST_HEADS, NULL, &kind->heads);
  if (!status)
    status = cct_config_i64(config, KEYS("num_key_value_heads"), 1, MOST_HEADS, &kind->heads, &kind->kv_heads);
  if (!status)
    status = cct_config_i64(config, KEYS("head_dim"), 1, MOST_HEAD, &none, &dim);
  if (status)
    return status;
  if (kind->heads % kind->kv_heads) {
    struct cct_json_at at = cct_config_at(config, "num_key_value_heads");
    return cct_json_fail(&at, CCT_USAGE, "%lld does not divide num_attention_heads %lld", (long long)kind->kv_heads,
                         (long long)kind->heads);
  }
  if (!dim && hidden % kind->heads)
    return cct_json_fail(&config->text, CCT_USAGE,
                         "no head_dim, and num_attention_heads %lld does not divide hidden_size %lld",
                         (long long)kind->heads, (long long)hidden);
  if (!dim)
    dim = hidden / kind->heads;
  add_linear(kind, "qkv", CCT_SPLIT_COLUMN, kind->heads * dim, hidden)->n_kv = 2 * kind->kv_heads * dim;
  add_linear(kind, "o", CCT_SPLIT_ROW, hidden, kind->heads * dim)->is_after = 1;
  kind->pair_flops_context = kind->pair_flops_decode = 4.0 * (double)(kind->heads * dim);
  kind->kv_bytes = 2 * kind->kv_heads * dim * 2;
  kind->norms = 2 * hidden;
  return CCT_OK;
}

/* Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries and keys of nope + rope dimensions
 * a head, values of v; the cache holds one latent of kv_rank + rope for all heads. Decoding absorbs the up-projections.
 */
static enum cct_status read_latent(const struct cct_config *config, int64_t hidden, struct cct_layer_kind *kind) {
  int64_t q_rank = 0, kv_rank = 0, nope = 0, rope = 0, v = 0;
  enum cct_status status = cct_config_i64(config, KEYS("num_attention_heads"), 1, MOST_HEADS, NULL, &kind->heads);
  if (!status)
    status = cct_config_i64(config, KEYS("q_lora_rank"), 0, MOST_WIDTH, &none, &q_rank);
  if (!status)
    status = cct_config_i64(config, KEYS("kv_lora_rank"), 1, MOST_WIDTH, NULL, &kv_rank);
  if (!status)
    status = cct_config_i64(config, KEYS("qk_nope_head_dim"), 1, MOST_HEAD, NULL, &nope);
  if (!status)
    status = cct_config_i64(config, KEYS("qk_rope_head_dim"), 1, MOST_HEAD, NULL, &rope);
  if (!status)
    status = cct_config_i64(config, KEYS("v_head_dim"), 1, MOST_HEAD, NULL, &v);
  if (status)
    return status;
  int64_t heads = kind->heads;
  kind->kv_heads = 1;
  kind->is_latent = 1;
  if (q_rank)
    add_linear(kind, "q_a", CCT_SPLIT_NONE, q_rank, hidden);
  add_linear(kind, "q_b", CCT_SPLIT_COLUMN, heads * (nope + rope), q_rank ? q_rank : hidden);
  add_linear(kind, "kv_a", CCT_SPLIT_NONE, kv_rank + rope, hidden);
  add_linear(kind, "kv_b", CCT_SPLIT_COLUMN, heads * (nope + v), kv_rank)->form = CCT_FORM_CONTEXT;
  struct cct_linear *absorbed = add_linear(kind, "q_absorb", CCT_SPLIT_HEADS, kv_rank, nope);
  absorbed->form = CCT_FORM_DECODE;
  absorbed->is_view = 1;
  absorbed = add_linear(kind, "v_up", CCT_SPLIT_HEADS, v, kv_rank);
  absorbed->form = CCT_FORM_DECODE;
  absorbed->is_view = absorbed->is_after = 1;
  add_linear(kind, "o", CCT_SPLIT_ROW, hidden, heads * v)->is_after = 1;
  kind->pair_flops_context = 2.0 * (double)(heads * (nope + rope + v));
  kind->pair_flops_decode = 2.0 * (double)(heads * (kv_rank + rope + kv_rank));
  kind->kv_bytes = (kv_rank + rope) * 2;
  kind->norms = 2 * hidden + q_rank + kv_rank;
  return CCT_OK;
}

struct moe { /* which layers have experts, and what they are */
  int64_t experts, top_k, ffn, shared, first_dense, step;
  struct cct_json_at dense_layers;
};

static enum cct_status read_moe(const struct cct_config *config, int64_t dense_ffn, struct moe *moe) {
  int64_t shared_count = 0, shared_width = 0, step = 0;
  enum cct_status status = cct_config_i64(config, KEYS("num_experts", "num_local_experts", "n_routed_experts"), 1,
                                          MOST_EXPERTS, NULL, &moe->experts);
  if (!status)
    status = cct_config_i64(config, KEYS("num_experts_per_tok"), 1, moe->experts, NULL, &moe->top_k);
  if (!status)
    status = cct_config_i64(config, KEYS("moe_intermediate_size"), 1, MOST_WIDTH, &dense_ffn, &moe->ffn);
  if (!status)
    status = cct_config_i64(config, KEYS("n_shared_experts"), 0, MOST_EXPERTS, &none, &shared_count);
  if (!status)
    status = cct_config_i64(config, KEYS("shared_expert_intermediate_size", "shared_intermediate_size"), 0, MOST_WIDTH,
                            &none, &shared_width);
  if (!status)
    status = cct_config_i64(config, KEYS("first_k_dense_replace"), 0, 1 << 12, &none, &moe->first_dense);
  if (!status)
    status = cct_config_i64(config, KEYS("decoder_sparse_step", "moe_layer_freq"), 1, 1 << 12, &one, &step);
  if (status)
    return status;
  moe->shared = shared_count * moe->ffn + shared_width;
  moe->step = step;
  moe->dense_layers = cct_config_at(config, "mlp_only_layers");
  return moe->dense_layers.value ? cct_json_expect(&moe->dense_layers, CCT_JSON_ARRAY) : CCT_OK;
}

/* qwen: layer + 1 is a multiple of decoder_sparse_step; deepseek: from first_k_dense_replace on, multiples of
 * moe_layer_freq. */
static int is_moe_layer(const struct moe *moe, int is_latent, int layer) {
  for (size_t i = 0; moe->dense_layers.value && i < cct_json_size(moe->dense_layers.value); i++)
    if (cct_json_integer(cct_json_element(moe->dense_layers.value, i)) == layer)
      return 0;
  return layer >= moe->first_dense && (is_latent ? layer : layer + 1) % moe->step == 0;
}

static enum cct_status read_window(const struct cct_config *config, const struct cct_family *family, int layer,
                                   int layers, int64_t *window_out) {
  struct cct_json_at use = cct_config_at(config, "use_sliding_window"), types = cct_config_at(config, "layer_types");
  int64_t window = 0, full_layers = 0;
  int slides = 1;
  enum cct_status status = cct_config_i64(config, KEYS("sliding_window"), 0, 1 << 30, &none, &window);
  if (!status && use.value)
    status = cct_json_read_bool(&use, &slides);
  if (!status && types.value)
    status = cct_json_expect(&types, CCT_JSON_ARRAY);
  if (!status)
    status = cct_config_i64(config, KEYS("max_window_layers"), 0, 1 << 12, &none, &full_layers);
  if (status)
    return status;
  if (types.value) {
    struct cct_json_at type = cct_json_at_index(&types, (size_t)layer);
    const char *name = NULL;
    status = cct_json_read_string(&type, &name);
    if (status)
      return status;
    if (strcmp(name, "full_attention") && strcmp(name, "sliding_attention"))
      return cct_json_fail(&type, CCT_USAGE, "'%s' is not modelled; full_attention and sliding_attention are", name);
    if (!strcmp(name, "full_attention"))
      slides = 0;
    else if (!window)
      return cct_json_fail(&type, CCT_USAGE, "sliding_attention without a sliding_window");
  } else if (family->window == CCT_WINDOW_ALTERNATE) {
    slides &= layer % 2 == 0;
  } else if (family->window == CCT_WINDOW_LATE) {
    slides &= use.value && layer >= (full_layers < layers ? full_layers : layers);
  }
  *window_out = slides ? window : 0;
  return CCT_OK;
}

static enum cct_status read_widths(const struct cct_config *config, struct cct_model *model, int64_t *layers_out) {
  struct cct_json_at tied = cct_config_at(config, "tie_word_embeddings");
  enum cct_status status = cct_config_i64(config, KEYS("hidden_size"), 1, MOST_WIDTH, NULL, &model->hidden);
  if (!status)
    status = cct_config_i64(config, KEYS("num_hidden_layers"), 1, 1 << 12, NULL, layers_out);
  if (!status)
    status = cct_config_i64(config, KEYS("vocab_size"), 1, 1 << 26, NULL, &model->vocab);
  if (!status && tied.value)
    status = cct_json_read_bool(&tied, &model->is_tied);
  if (!status)
    status = cct_config_i64(config, KEYS("n_group"), 0, MOST_EXPERTS, &none, &model->routing_groups);
  if (!status)
    status = cct_config_i64(config, KEYS("topk_group"), 0, MOST_EXPERTS, &none, &model->routing_groups_chosen);
  if (!status)
    status = cct_config_positions(config, &model->positions);
  return status ? status : cct_config_weights(config, &model->weights);
}

static enum cct_status check_routing_groups(const struct cct_config *config, struct cct_model *model,
                                            const struct moe *moe) {
  int64_t groups = model->routing_groups, chosen = model->routing_groups_chosen;
  if (groups <= 1 || !chosen || chosen == groups) {
    model->routing_groups = model->routing_groups_chosen = 0;
    return CCT_OK;
  }
  if (moe->experts % groups || chosen > groups || chosen * (moe->experts / groups) < moe->top_k)
    return cct_json_fail(&config->text, CCT_USAGE,
                         "n_group %lld and topk_group %lld do not fit %lld experts, %lld a token", (long long)groups,
                         (long long)chosen, (long long)moe->experts, (long long)moe->top_k);
  return CCT_OK;
}

enum cct_status cct_model_read_family(const struct cct_config *config, const struct cct_family *family,
                                      struct cct_model *model) {
  int64_t layers = 0, dense_ffn = 0;
  struct moe moe = {0};
  struct cct_layer_kind base;
  memset(&base, 0, sizeof base); /* kinds are compared as bytes */
  enum cct_status status = read_widths(config, model, &layers);
  if (!status)
    status =
        family->is_latent ? read_latent(config, model->hidden, &base) : read_attention(config, model->hidden, &base);
  if (!status)
    status = cct_config_i64(config, KEYS("intermediate_size"), 1, MOST_WIDTH, NULL, &dense_ffn);
  if (!status && family->has_experts)
    status = read_moe(config, dense_ffn, &moe);
  if (!status)
    status = check_routing_groups(config, model, &moe);
  if (!status)
    status = cct_model_set_layers(model, layers);
  for (int layer = 0; !status && layer < layers; layer++) {
    struct cct_layer_kind kind;
    memcpy(&kind, &base, sizeof kind);
    status = read_window(config, family, layer, (int)layers, &kind.window);
    if (family->has_experts && is_moe_layer(&moe, family->is_latent, layer)) {
      kind.experts = moe.experts;
      kind.top_k = moe.top_k;
      kind.expert_ffn = moe.ffn;
      kind.shared_ffn = moe.shared;
    } else {
      kind.ffn = dense_ffn;
    }
    if (!status)
      status = cct_model_set_kind(model, &config->text, layer, &kind);
  }
  return status;
}
