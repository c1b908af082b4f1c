/* SPDX-License-Identifier: Apache-2.0
 * Reading a config.json: the sorting of its keys, and each family's form. Private to this room. */
#ifndef CCT_WORKLOADS_SHAPE_MODEL_READ_H
#define CCT_WORKLOADS_SHAPE_MODEL_READ_H

#include "json/json.h"
#include "workloads/shape/model.h"

struct cct_family {
  const char *model_type, *architecture;
  enum {
    CCT_WINDOW_ALL,
    CCT_WINDOW_LATE,
    CCT_WINDOW_ALTERNATE
  } window; /* which layers slide when layer_types is absent */
  int has_experts, is_latent;
};
extern const struct cct_family cct_families[];
extern const int cct_n_families;

/* A config: the text model's object, and the root that it inherits from (the same object when nothing is nested). */
struct cct_config {
  struct cct_json_at text, root;
  const char *assume, *weights; /* --assume and --weights, or NULL */
};

/* Sorts every key; refuses and warns as model.h says. */
enum cct_status cct_config_sort(const struct cct_config *config) CCT_CHECKED;
/* 1 and its value in `value` if --assume names the key. */
int cct_config_assumed(const struct cct_config *config, const char *key, char value[32]);
/* The key in the text model, else in the root; `.value` NULL when absent or null in both. */
struct cct_json_at cct_config_at(const struct cct_config *config, const char *key);
/* The first of the NULL-terminated spellings that is there. */
enum cct_status cct_config_i64(const struct cct_config *config, const char *const *spellings, int64_t min, int64_t max,
                               const int64_t *standard, int64_t *value_out) CCT_CHECKED;
/* Positions that the rope reaches, 0 where the config does not say or --assume ignores it: vLLM's rule
 * (vllm/config/model.py, _get_and_verify_max_len). */
enum cct_status cct_config_positions(const struct cct_config *config, int64_t *positions_out) CCT_CHECKED;
enum cct_status cct_config_weights(const struct cct_config *config, enum cct_type *type_out) CCT_CHECKED;

enum cct_status cct_model_read_family(const struct cct_config *config, const struct cct_family *family,
                                      struct cct_model *model) CCT_CHECKED;
enum cct_status cct_model_read_generic(const struct cct_config *config, struct cct_model *model) CCT_CHECKED;

/* Gives `layer` (of an allocated kind_of) the kind, reusing an equal one. */
enum cct_status cct_model_set_kind(struct cct_model *model, const struct cct_json_at *at, int layer,
                                   const struct cct_layer_kind *kind) CCT_CHECKED;
/* Allocates kind_of. */
enum cct_status cct_model_set_layers(struct cct_model *model, int64_t layers) CCT_CHECKED;

#endif
