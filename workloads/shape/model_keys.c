/* SPDX-License-Identifier: Apache-2.0
 * What each key of a config is, and what is done with those that nothing reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/shape/model_read.h"

/* What the readers use. */
static const char *const used[] = {
    "architectures",
    "model_type",
    "text_config",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "tie_word_embeddings",
    "torch_dtype",
    "dtype",
    "quantization_config",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "layer_types",
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "shared_intermediate_size",
    "n_shared_experts",
    "first_k_dense_replace",
    "moe_layer_freq",
    "decoder_sparse_step",
    "mlp_only_layers",
    "n_group",
    "topk_group",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "qk_head_dim",
    "v_head_dim",
    "max_position_embeddings",
    "rope_scaling",
    "rope_parameters",
    "original_max_position_embeddings",
};

/* What costs nothing, or nothing that the parameter convention counts. */
static const char *const ignored[] = {
    "_name_or_path",
    "activation_function",
    "attention_bias",
    "attention_dropout",
    "attn_implementation",
    "_attn_implementation",
    "attn_output_gate_bias",
    "auto_map",
    "aux_loss_alpha",
    "bos_token_id",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "decoder_start_token_id",
    "embd_pdrop",
    "eos_token_id",
    "ep_size",
    "experts_per_token",
    "hidden_act",
    "hidden_dropout",
    "id2label",
    "image_token_id",
    "image_token_index",
    "initial_context_length",
    "initializer_range",
    "interpolate_factor",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "layernorm_epsilon",
    "lm_head_bias",
    "max_sequence_length",
    "min_length",
    "max_length",
    "mlp_bias",
    "mm_tokens_per_image",
    "multimodal_projector_bias",
    "norm_eps",
    "norm_topk_prob",
    "num_labels",
    "num_mtp_modules",
    "mtp_transformer_layers",
    "num_nextn_predict_layers",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "pad_token_id",
    "padding_side",
    "partial_rotary_factor",
    "position_embedding_type",
    "pretraining_tp",
    "problem_type",
    "projector_hidden_act",
    "qk_norm_type",
    "qkv_bias",
    "resid_pdrop",
    "return_dict",
    "rms_norm_eps",
    "rope_interleave",
    "rope_theta",
    "rotary_dim",
    "rotary_emb_base",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_bias",
    "router_dtype",
    "router_jitter_noise",
    "router_z_loss_coef",
    "scoring_func",
    "seq_aux",
    "seq_length",
    "spatial_merge_size",
    "swiglu_limit",
    "tokenizer_class",
    "topk_method",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_bias",
    "use_cache",
    "use_mtp",
    "use_qk_norm",
    "use_qkv_bias",
    "use_rmsnorm",
    "use_routing_bias",
    "video_token_id",
    "vision_end_token_id",
    "vision_feature_layer",
    "vision_start_token_id",
    "vision_token_id",
    "wte_pdrop",
    "ffn_pdrop",
    "layernorm_full_attention_beta",
    "rope_local_base_freq",
    "layer_norm_eps",
    "bad_words_ids",
    "begin_suppress_tokens",
    "cross_attention_hidden_size",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_scores",
    "prefix",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "top_k",
    "top_p",
    "torchscript",
    "typical_p",
    "use_bfloat16",
};

/* What changes the cost and is not modelled; harmless when null, false, 0, empty, or the one value given. */
static const struct {
  const char *key, *harmless, *why;
} refused[] = {
    {"attn_type_list", "[1...]", "layers of linear attention"},
    {"attention_chunk_size", NULL, "chunked attention"},
    {"full_attention_interval", "1", "layers of linear attention"},
    {"linear_conv_kernel_dim", NULL, "linear attention"},
    {"linear_key_head_dim", NULL, "linear attention"},
    {"linear_num_key_heads", NULL, "linear attention"},
    {"linear_num_value_heads", NULL, "linear attention"},
    {"linear_value_head_dim", NULL, "linear attention"},
    {"attn_output_gate", NULL, "a gate on attention's output"},
    {"mamba_d_state", NULL, "state-space layers"},
    {"mamba_d_conv", NULL, "state-space layers"},
    {"mamba_expand", NULL, "state-space layers"},
    {"mamba_num_heads", NULL, "state-space layers"},
    {"mamba_head_dim", NULL, "state-space layers"},
    {"ssm_state_size", NULL, "state-space layers"},
    {"ssm_cfg", NULL, "state-space layers"},
    {"state_size", NULL, "state-space layers"},
    {"conv_kernel", NULL, "state-space layers"},
    {"attn_layer_period", NULL, "state-space layers"},
    {"attn_layer_indices", NULL, "state-space layers"},
    {"layers_block_type", NULL, "layers of mixed kinds"},
    {"hybrid_override_pattern", NULL, "layers of mixed kinds"},
    {"block_configs", NULL, "layers of different widths"},
    {"index_topk", NULL, "sparse attention"},
    {"index_n_heads", NULL, "sparse attention"},
    {"index_head_dim", NULL, "sparse attention"},
    {"sparse_attention_config", NULL, "sparse attention"},
    {"cross_attention_layers", NULL, "cross attention"},
    {"encoder_layers", NULL, "an encoder"},
    {"add_cross_attention", NULL, "cross attention"},
    {"num_kv_shared_layers", NULL, "a cache shared between layers"},
    {"hidden_size_per_layer_input", NULL, "inputs to each layer"},
    {"compression_config", NULL, "compressed weights"},
    {"pruned_heads", NULL, "pruned heads"},
    {"zero_expert_num", NULL, "experts that compute nothing"},
    {"moe_latent_size", NULL, "experts of a narrower width"},
    {"sandwich_norm", NULL, "further norms"},
};

/* Encoders beside a nested text model: no part of a text step, but their weights occupy memory, so their absence is
 * said. */
static const char *const beside[] = {"vision_config", "audio_config"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static int is_in(const char *key, const char *const *list, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(list[i], key))
      return 1;
  return 0;
}

static int is_harmless(const struct cct_json *value, const char *harmless) {
  switch (cct_json_type(value)) {
  case CCT_JSON_NULL:
    return 1;
  case CCT_JSON_BOOL:
    return !cct_json_is_true(value);
  case CCT_JSON_INTEGER:
  case CCT_JSON_REAL:
    return cct_json_number(value) == 0 || (harmless && cct_json_number(value) == atof(harmless));
  case CCT_JSON_ARRAY:
    for (size_t i = 0; i < cct_json_size(value); i++)
      if (!harmless || cct_json_number(cct_json_element(value, i)) != 1)
        return 0;
    return 1;
  case CCT_JSON_OBJECT:
    return cct_json_size(value) == 0;
  case CCT_JSON_STRING:
    break;
  }
  return 0;
}

static enum cct_status sort_object(const struct cct_config *config, const struct cct_json_at *object,
                                   struct cct_text *unknown) {
  void *iterator = NULL;
  const char *key;
  const struct cct_json *value;
  while (cct_json_next(object->value, &iterator, &key, &value)) {
    char assumed[32];
    size_t i = 0;
    while (i < COUNT(refused) && strcmp(refused[i].key, key))
      i++;
    if (i < COUNT(refused)) {
      struct cct_json_at at = cct_json_at_key(object, key);
      if (!is_harmless(value, refused[i].harmless) && !cct_config_assumed(config, key, assumed))
        return cct_json_fail(&at, CCT_USAGE,
                             "%s: changes the cost and is not modelled; --assume %s=ignore to leave it out",
                             refused[i].why, key);
    } else if (is_in(key, beside, COUNT(beside))) {
      if (!is_harmless(value, NULL) && !cct_config_assumed(config, key, assumed))
        cct_warn("%s: %s.%s: no part of a text step, left out with its weights", object->source, object->path, key);
    } else if (!is_in(key, used, COUNT(used)) && !is_in(key, ignored, COUNT(ignored))) {
      if (!cct_config_assumed(config, key, assumed))
        cct_text_add(unknown, "%s%s.%s", unknown->length ? ", " : "", object->path, key);
    }
  }
  return CCT_OK;
}

/* Each assumption must name a key that is there, and say what can be said of it. */
static enum cct_status check_assumptions(const struct cct_config *config) {
  for (const char *at = config->assume; at && *at;) {
    char key[64], value[32];
    size_t length = strcspn(at, ",");
    const char *equals = memchr(at, '=', length);
    if (!equals || equals == at || equals == at + length - 1 || (size_t)(equals - at) >= sizeof key)
      return cct_fail(CCT_USAGE, "--assume: '%.*s' is no KEY=VALUE", (int)length, at);
    snprintf(key, sizeof key, "%.*s", (int)(equals - at), at);
    if (!cct_config_at(config, key).value)
      return cct_fail(CCT_USAGE, "--assume %s: %s has no such key", key, config->root.source);
    cct_config_assumed(config, key, value);
    int is_quantization = !strcmp(key, "quantization_config");
    if (is_in(key, used, COUNT(used)) && !is_quantization && strcmp(key, "max_position_embeddings") != 0)
      return cct_fail(CCT_USAGE, "--assume %s: this key is modelled; change it in the file", key);
    if (strcmp(value, "ignore") &&
        !(is_quantization && (!strcmp(value, "bf16") || !strcmp(value, "fp8") || !strcmp(value, "nvfp4"))))
      return cct_fail(CCT_USAGE, "--assume %s=%s: what can be assumed is %s", key, value,
                      is_quantization ? "bf16, fp8, nvfp4 or ignore" : "ignore");
    at += length + (at[length] == ',');
  }
  return CCT_OK;
}

enum cct_status cct_config_sort(const struct cct_config *config) {
  struct cct_text unknown = {0};
  enum cct_status status = check_assumptions(config);
  if (!status)
    status = sort_object(config, &config->root, &unknown);
  if (!status && config->text.value != config->root.value)
    status = sort_object(config, &config->text, &unknown);
  if (!status && unknown.length)
    cct_warn("%s: %s: unknown, taken to cost nothing", config->root.source, unknown.s);
  cct_text_free(&unknown);
  return status;
}
