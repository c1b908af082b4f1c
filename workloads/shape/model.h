/* SPDX-License-Identifier: Apache-2.0
 * A model: a network's shape, read from a Hugging Face config.json, a preset of that form (data/models), or a generic
 * file that stands in where an architecture is not public. Every family becomes the same description: layers of a few
 * kinds, each with its matrices, its attention and its feed-forward part; the templates in workloads/steps know nothing
 * of families.
 *
 * Keys of a config are used, ignored (a named list without cost), cost-relevant but not modelled (refused by name
 * unless
 * --assume states what they mean), or unknown (one warning names them). docs/models.md lists them.
 *
 * Parameters are counted as data/models was: matrices, RMSNorm weights and routers; no biases, no q/k norms, no
 * multi-token-prediction layers. */
#ifndef CCT_WORKLOADS_SHAPE_MODEL_H
#define CCT_WORKLOADS_SHAPE_MODEL_H

#include <stdint.h>

#include "base/status.h"
#include "workloads/program/program.h"

enum cct_split {    /* of a matrix over tp (Shoeybi et al. 2019, arXiv 1909.08053, section 3) */
  CCT_SPLIT_NONE,   /* replicated */
  CCT_SPLIT_COLUMN, /* its n output columns */
  CCT_SPLIT_ROW,    /* its k inputs */
  CCT_SPLIT_HEADS,  /* one n x k matrix a head; the heads are split */
};

enum cct_form { /* MLA multiplies differently while it decodes (DeepSeek-V2, arXiv 2405.04434, section 2.1.2) */
  CCT_FORM_BOTH,
  CCT_FORM_CONTEXT, /* prefill and training: keys and values expanded */
  CCT_FORM_DECODE,  /* absorbed: attention over the latent */
};

struct cct_linear { /* y(m x n) = x(m x k) W */
  char name[16];
  enum cct_split split;
  enum cct_form form;
  int64_t n, k;
  int64_t n_kv; /* further output columns, which belong to KV heads and are split or replicated with them */
  int is_after; /* behind the attention core */
  int is_view;  /* the same weights as another linear: not counted again */
};

#define CCT_MAX_LINEARS 8
struct cct_layer_kind {
  struct cct_linear linears[CCT_MAX_LINEARS];
  int n_linears;
  int64_t heads, kv_heads;
  double pair_flops_context, pair_flops_decode; /* of one query with one key, all heads */
  int64_t kv_bytes;                             /* a token's cache entry, all KV heads */
  int is_latent;  /* MLA: the cache entry is replicated over tp, the KV-head rule does not apply */
  int64_t window; /* tokens a query sees; 0: all before it */
  int64_t norms;  /* RMSNorm weights */
  int64_t ffn;    /* width of a dense feed-forward part (gate, up, down); 0: none */
  int64_t experts, top_k, expert_ffn, shared_ffn; /* of an MoE part; experts 0: none; shared_ffn 0: no shared expert */
};

#define CCT_MAX_KINDS 16
struct cct_model {
  char name[64];
  int64_t hidden, vocab;
  int64_t positions; /* tokens that a sequence may have, whatever of them a window sees; 0: not said */
  int is_tied;
  enum cct_type weights; /* BF16, FP8 or NVFP4: of the layers' matrices; embeddings, routers, norms are bf16 */
  int64_t routing_groups, routing_groups_chosen; /* a token's experts lie in so many of the groups; 0: no such limit */
  struct cct_layer_kind kinds[CCT_MAX_KINDS];
  int n_kinds;
  uint8_t *kind_of; /* by layer, n_layers of them; owned */
  int n_layers;
  int is_scaled;   /* --layers cut it */
  int is_stand_in; /* from a generic file */
};

/* NAME_OR_FILE as in cct_data_path("models"). `assume`: "KEY=VALUE[,KEY=VALUE..]" or NULL; VALUE is `ignore`, for
 * quantization_config also bf16, fp8, nvfp4. `weights`: bf16, fp8, nvfp4, or NULL: as quantization_config, else
 * torch_dtype says. */
enum cct_status cct_model_load(const char *name_or_file, const char *assume, const char *weights,
                               struct cct_model *model_out) CCT_CHECKED;
void cct_model_free(struct cct_model *model); /* NULL-safe */

/* CCT_USAGE where `what` ("--seq-len: a sequence") of so many tokens has more than the model has positions. */
enum cct_status cct_model_check_length(const struct cct_model *model, const char *what, int64_t tokens) CCT_CHECKED;
/* Keeps the first n layers. */
enum cct_status cct_model_cut(struct cct_model *model, int64_t layers) CCT_CHECKED;

static inline const struct cct_layer_kind *cct_model_layer(const struct cct_model *model, int layer) {
  return &model->kinds[model->kind_of[layer]];
}
int cct_model_has_experts(const struct cct_model *model);
double cct_linear_parameters(const struct cct_layer_kind *kind, const struct cct_linear *linear);
double cct_model_parameters(const struct cct_model *model);
double cct_model_active_parameters(const struct cct_model *model); /* what one token multiplies with: top_k experts */

/* Bytes of `elements` weights with their scales: fp8 one fp32 a 128 x 128 block (DeepSeek-V3, arXiv 2412.19437, section
 * 3.3.2), nvfp4 one fp8 a 16 elements (NVIDIA, "Introducing NVFP4"). */
double cct_weight_bytes(enum cct_type type, double elements);

#endif
