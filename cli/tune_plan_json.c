/* SPDX-License-Identifier: Apache-2.0
 * A tune's plan in tune.json, and back, so that a tune goes on as it was begun. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/tune.h"
#include "workloads/program/program.h"

struct cct_json *cct_tune_plan_json(const struct cct_tune_plan *plan) {
  struct cct_json *object = cct_json_new_object(), *list;
  cct_json_set_string(object, "backend", plan->backend);
  cct_json_set_string(object, "condition", plan->condition);
  cct_json_set_string(object, "profile", plan->profile);
  cct_json_set_string(object, "noise", plan->noise);
  cct_json_set_string(object, "type", plan->type);
  cct_json_set_string(object, "objective", plan->objective);
  cct_json_set_string(object, "rules", plan->rules);
  cct_json_set_string(object, "plugin", plan->plugin);
  cct_json_set_i64(object, "ranks", plan->ranks);
  cct_json_set_bool(object, "shared_gpu", plan->is_shared_gpu);
  cct_json_set_i64(object, "rounds", plan->rounds);
  cct_json_set_i64(object, "samples", plan->samples);
  cct_json_set_i64(object, "warmup", plan->warmup);
  cct_json_set_i64(object, "seed", plan->seed);
  cct_json_set(object, "collectives", list = cct_json_new_array());
  for (int i = 0; i < plan->n_kinds; i++)
    cct_json_add_string(list, cct_tune_kind_name(plan->kinds[i]));
  cct_json_set(object, "bytes", list = cct_json_new_array());
  for (int i = 0; i < plan->n_bytes; i++)
    cct_json_add_i64(list, plan->bytes[i]);
  cct_json_set(object, "beside_bytes", list = cct_json_new_array());
  for (int i = 0; i < plan->n_beside; i++)
    cct_json_add_i64(list, plan->beside[i]);
  cct_json_set(object, "channels", list = cct_json_new_array()); /* 0: NCCL's own number */
  for (int i = 0; i < plan->n_channels; i++)
    cct_json_add_i64(list, plan->channels[i]);
  cct_json_set(object, "choices", list = cct_json_new_array()); /* of one number of channels, its own first */
  for (int i = 0; i < plan->each; i++) {
    const struct cct_tune_choice *c = &plan->choices[i];
    char text[40];
    snprintf(text, sizeof text, "%s/%s", *c->algorithm ? c->algorithm : "default",
             *c->protocol ? c->protocol : "default");
    cct_json_add_string(list, text);
  }
  return object;
}

static enum cct_status open_list(const struct cct_json_at *at, const char *key, int most, struct cct_json_at *list,
                                 int *n_out) {
  *list = cct_json_at_key(at, key);
  enum cct_status status = cct_json_expect(list, CCT_JSON_ARRAY);
  if (!status && cct_json_size(list->value) > (size_t)most)
    status = cct_json_fail(list, CCT_USAGE, "more than %d of them", most);
  *n_out = status ? 0 : (int)cct_json_size(list->value);
  return status;
}

static enum cct_status read_numbers(const struct cct_json_at *at, const char *key, int most, int64_t min,
                                    int64_t *values, int *n_out) {
  struct cct_json_at list;
  enum cct_status status = open_list(at, key, most, &list, n_out);
  for (int i = 0; !status && i < *n_out; i++) {
    struct cct_json_at place = cct_json_at_index(&list, (size_t)i);
    status = cct_json_read_i64(&place, min, (int64_t)1 << 50, &values[i]);
    if (!status && i && values[i] <= values[i - 1] && min)
      status = cct_json_fail(&place, CCT_USAGE, "not above the one before it");
  }
  return status;
}

static enum cct_status read_kinds(const struct cct_json_at *at, struct cct_tune_plan *plan) {
  struct cct_json_at list;
  int n;
  enum cct_status status = open_list(at, "collectives", CCT_TUNE_MOST_KINDS, &list, &n);
  for (int i = 0; !status && i < n; i++) {
    struct cct_json_at place = cct_json_at_index(&list, (size_t)i);
    const char *name;
    status = cct_json_read_string(&place, &name);
    if (!status)
      status = cct_tune_add_kind(plan, name);
  }
  return status;
}

static enum cct_status read_choices(const struct cct_json_at *at, struct cct_tune_plan *plan) {
  struct cct_json_at list;
  int64_t channels[CCT_TUNE_MOST_CHANNELS];
  enum cct_status status = read_numbers(at, "channels", CCT_TUNE_MOST_CHANNELS, 0, channels, &plan->n_channels);
  if (!status)
    status = open_list(at, "choices", CCT_TUNE_MOST_CHOICES / CCT_TUNE_MOST_CHANNELS, &list, &plan->each);
  if (!status && (!plan->n_channels || channels[0] || !plan->each))
    status = cct_json_fail(&list, CCT_USAGE, "NCCL's own choice and number of channels come first");
  for (int c = 0; !status && c < plan->n_channels; c++)
    plan->channels[c] = (int)channels[c];
  for (int i = 0; !status && i < plan->each * plan->n_channels; i++) {
    struct cct_json_at place = cct_json_at_index(&list, (size_t)(i % plan->each));
    struct cct_choice read;
    const char *text;
    char whole[64];
    status = cct_json_read_string(&place, &text);
    snprintf(whole, sizeof whole, "%.40s/default", status ? "" : text);
    if (!status && (!cct_choice_parse(whole, &read) || (i % plan->each == 0) != (!*read.algorithm && !*read.protocol)))
      status = cct_json_fail(&place, CCT_USAGE, "'%.40s' is no ALGORITHM/PROTOCOL", text);
    struct cct_tune_choice *choice = &plan->choices[plan->n_choices++];
    choice->channels = i / plan->each;
    memcpy(choice->algorithm, read.algorithm, sizeof choice->algorithm);
    memcpy(choice->protocol, read.protocol, sizeof choice->protocol);
  }
  return status;
}

enum cct_status cct_tune_plan_read(const struct cct_json_at *at, struct cct_tune_plan *plan_out) {
  struct cct_tune_plan *plan = plan_out;
  struct cct_json_at shared = cct_json_at_key(at, "shared_gpu");
  int64_t ranks = 0;
  *plan = (struct cct_tune_plan){.ranks = 0};
  static const char *const keys[] = {"backend",      "condition",   "profile",  "noise",  "type",
                                     "objective",    "rules",       "plugin",   "ranks",  "rounds",
                                     "shared_gpu",   "samples",     "warmup",   "seed",   "bytes",
                                     "beside_bytes", "collectives", "channels", "choices"};
  enum cct_status status = cct_json_known_keys(at, keys, sizeof keys / sizeof *keys);
  const struct {
    const char *key;
    char *field;
    size_t size;
  } texts[] = {{"backend", plan->backend, sizeof plan->backend}, {"condition", plan->condition, sizeof plan->condition},
               {"profile", plan->profile, sizeof plan->profile}, {"noise", plan->noise, sizeof plan->noise},
               {"type", plan->type, sizeof plan->type},          {"objective", plan->objective, sizeof plan->objective},
               {"rules", plan->rules, sizeof plan->rules},       {"plugin", plan->plugin, sizeof plan->plugin}};
  for (size_t i = 0; !status && i < sizeof texts / sizeof *texts; i++)
    status = cct_json_member_text(at, texts[i].key, texts[i].field, texts[i].size);
  if (!status && cct_type_by_name(plan->type) < 0)
    status = cct_json_fail(at, CCT_USAGE, "type '%s' is unknown", plan->type);
  struct cct_options checked = {0};
  if (!status)
    status = cct_option_set(&checked, CCT_OPT_OBJECTIVE, plan->objective, at->source);
  cct_options_free(&checked);
  if (!status)
    status = cct_json_member_i64(at, "ranks", 2, 65536, &ranks);
  if (!status)
    status = cct_json_read_bool(&shared, &plan->is_shared_gpu);
  if (!status)
    status = cct_json_member_i64(at, "rounds", CCT_TUNE_LEAST_PROCESSES, CCT_TUNE_MOST_PROCESSES, &plan->rounds);
  if (!status)
    status = cct_json_member_i64(at, "samples", 1, 1000000, &plan->samples);
  if (!status)
    status = cct_json_member_i64(at, "warmup", 0, 1000000, &plan->warmup);
  if (!status)
    status = cct_json_member_i64(at, "seed", 0, INT64_MAX, &plan->seed);
  if (!status)
    status = read_kinds(at, plan);
  if (!status)
    status = read_numbers(at, "bytes", CCT_TUNE_MOST_SIZES, 1, plan->bytes, &plan->n_bytes);
  if (!status)
    status = read_numbers(at, "beside_bytes", CCT_TUNE_MOST_BESIDE, 1, plan->beside, &plan->n_beside);
  if (!status)
    status = read_choices(at, plan);
  if (!status && (!plan->n_bytes || !plan->n_kinds))
    status = cct_json_fail(at, CCT_USAGE, "without sizes or collectives");
  plan->ranks = (int)ranks;
  return status ? status : cct_tune_find_usable(plan);
}
