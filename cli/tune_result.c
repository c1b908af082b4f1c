/* SPDX-License-Identifier: Apache-2.0
 * What came of a tune: for programs (tune.json, --json) and on the terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/document.h"
#include "cli/tune.h"

char *cct_tune_nccl(const struct cct_tune *tune, char out[32]) {
  int version = atoi(tune->data.nccl);
  if (version)
    snprintf(out, 32, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  else
    snprintf(out, 32, "no NCCL");
  return out;
}

void cct_tune_percent(struct cct_text *text, const struct cct_ordered *ratio) {
  if (!ratio->n)
    cct_text_add(text, "not measured");
  else
    cct_text_add(text, "%+.1f %% [%+.1f, %+.1f]", 100 * (ratio->median - 1), 100 * (ratio->lo - 1),
                 100 * (ratio->hi - 1));
}

/* ---- for programs ---- */

static struct cct_json *ordered_json(const struct cct_ordered *ratio) {
  struct cct_json *object = cct_json_new_object();
  if (!ratio->n) {
    cct_json_free(object);
    return NULL;
  }
  cct_json_set_f64(object, "median", ratio->median);
  cct_json_set_f64(object, "lo", ratio->lo);
  cct_json_set_f64(object, "hi", ratio->hi);
  cct_json_set_i64(object, "n", (int64_t)ratio->n);
  cct_json_set_f64(object, "coverage", ratio->coverage);
  return object;
}

static void set_ordered(struct cct_json *object, const char *key, const struct cct_ordered *ratio) {
  struct cct_json *value = ordered_json(ratio);
  if (value)
    cct_json_set(object, key, value);
  else
    cct_json_set_null(object, key);
}

static struct cct_json *settings_json(const struct cct_tune *tune) {
  struct cct_json *list = cct_json_new_array();
  for (int c = 0; c < tune->plan.n_channels; c++) {
    const struct cct_tune_setting *setting = &tune->decision.settings[c];
    struct cct_json *object = cct_json_new_object();
    cct_json_set_i64(object, "channels", tune->plan.channels[c]);
    cct_json_set_bool(object, "chosen", c == tune->decision.channels);
    set_ordered(object, "gain", &setting->gain);
    set_ordered(object, "counted", &setting->counted);
    set_ordered(object, "beside_gemm", &setting->beside);
    cct_json_set_i64(object, "held_sizes", setting->n_held);
    cct_json_set_string(object, "why_not", *setting->why_not ? setting->why_not : NULL);
    cct_json_add(list, object);
  }
  return list;
}

static struct cct_json *cells_json(const struct cct_tune *tune) {
  const struct cct_tune_plan *plan = &tune->plan;
  const struct cct_tune_setting *setting = &tune->decision.settings[tune->decision.channels];
  struct cct_json *list = cct_json_new_array();
  char text[64];
  for (int k = 0; k < plan->n_kinds; k++)
    for (int s = 0; s < plan->n_bytes; s++) {
      const struct cct_tune_pick *pick = &setting->picks[k][s];
      const struct cct_tune_ran *own = cct_tune_ran(plan, &tune->data, k, s, 0);
      struct cct_json *object = cct_json_new_object();
      cct_json_set_string(object, "collective", cct_tune_kind_name(plan->kinds[k]));
      cct_json_set_i64(object, "bytes", cct_tune_bytes(plan, k, plan->bytes[s]));
      cct_json_set_string(object, "default_ran", own->channels ? cct_tune_ran_text(own, text) : NULL);
      cct_json_set_string(object, "candidate", cct_tune_choice_text(plan, pick->candidate, text));
      cct_json_set_string(object, "choice", cct_tune_choice_text(plan, pick->choice, text));
      cct_json_set_bool(object, "held", pick->is_held);
      set_ordered(object, "judged", &pick->judged);
      set_ordered(object, "against_default", &setting->shown[k][s]);
      if (tune->is_verified) {
        const struct cct_tune_held *first = &tune->verdict.first[k * plan->n_bytes + s];
        cct_json_set_f64(object, "default_us", first->us[0]);
        cct_json_set_f64(object, "tuned_us", first->us[1]);
        set_ordered(object, "verified", &first->ratio);
        set_ordered(object, "verified_again", &tune->verdict.again[k * plan->n_bytes + s].ratio);
      }
      cct_json_add(list, object);
    }
  return list;
}

static struct cct_json *rules_json(const struct cct_tune *tune) {
  struct cct_json *list = cct_json_new_array();
  struct cct_rule *rules = calloc(CCT_TUNE_MOST_KINDS * CCT_TUNE_MOST_SIZES, sizeof *rules);
  char line[CCT_RULE_TEXT];
  int n = rules ? cct_tune_rules(tune, rules) : 0;
  for (int i = 0; i < n; i++)
    cct_json_add_string(list, cct_rule_text(&rules[i], line));
  free(rules);
  return list;
}

void cct_tune_tell(const struct cct_tune *tune, struct cct_text *text) {
  struct cct_json *rules = rules_json(tune);
  cct_text_add(text, "%d\n", cct_tune_channels(tune));
  for (size_t i = 0; i < cct_json_size(rules); i++)
    cct_text_add(text, "%s\n", cct_json_string(cct_json_element(rules, i)));
  cct_json_free(rules);
}

char *cct_tune_told(const struct cct_json *document) {
  const struct cct_json *rules = cct_json_member(document, "rules");
  struct cct_text text = {0};
  if (!rules)
    return NULL;
  cct_text_add(&text, "%lld\n", (long long)cct_json_integer(cct_json_member(document, "channels")));
  for (size_t i = 0; i < cct_json_size(rules); i++) {
    const char *rule = cct_json_string(cct_json_element(rules, i));
    cct_text_add(&text, "%s\n", rule ? rule : "");
  }
  return text.s;
}

static struct cct_json *verdict_json(const struct cct_tune *tune) {
  const struct cct_tune_verdict *verdict = &tune->verdict;
  struct cct_json *object = cct_json_new_object();
  cct_json_set_f64(object, "ratio", verdict->gain);
  cct_json_set_f64(object, "grid_ratio", tune->decision.grid_gain);
  cct_json_set_f64(object, "allowed_ratio", tune->decision.allowed_gain);
  cct_json_set_bool(object, "gain_held", verdict->is_gain_held);
  cct_json_set_i64(object, "slower_at_first", verdict->n_missed);
  cct_json_set_i64(object, "slower", verdict->n_still);
  cct_json_set_i64(object, "not_measured", verdict->n_unknown);
  cct_json_set_i64(object, "failed", verdict->n_failed);
  if (verdict->n_proofs >= 0)
    cct_json_set_i64(object, "plugin_proofs", verdict->n_proofs);
  cct_json_set_bool(object, "held", verdict->is_held);
  return object;
}

struct cct_json *cct_tune_json(const struct cct_tune *tune, enum cct_status ended) {
  struct cct_json *document = cct_document_new("tune"), *facts = cct_json_new_object();
  cct_json_set_string(document, "run", tune->folder);
  cct_json_set(document, "plan", cct_tune_plan_json(&tune->plan));
  if (tune->is_decided) {
    cct_json_set_string(facts, "gpu", tune->data.gpu);
    cct_json_set_string(facts, "nccl", tune->data.nccl);
    cct_json_set_string(facts, "driver", tune->data.driver);
    cct_json_set_string(facts, "condition", tune->data.condition);
    cct_json_set_string(facts, "date", tune->data.date);
    cct_json_set(document, "measured", facts);
    cct_json_set_i64(document, "channels", cct_tune_channels(tune));
    cct_json_set(document, "settings", settings_json(tune));
    cct_json_set(document, "rules", rules_json(tune));
    cct_json_set_f64(document, "grid_ratio", tune->decision.grid_gain);
    cct_json_set_f64(document, "allowed_ratio", tune->decision.allowed_gain);
    cct_json_set_i64(document, "left_out", tune->decision.n_left_out);
    cct_json_set_i64(document, "ran_otherwise", tune->data.n_other);
    cct_json_set(document, "cells", cells_json(tune));
  } else {
    cct_json_free(facts);
  }
  if (tune->is_verified)
    cct_json_set(document, "verification", verdict_json(tune));
  cct_json_set_string(document, "ended", cct_status_text(ended));
  return document;
}

enum cct_status cct_tune_save(const struct cct_tune *tune, enum cct_status ended) {
  char path[4200];
  struct cct_json *document = cct_tune_json(tune, ended);
  snprintf(path, sizeof path, "%s/tune.json", tune->folder);
  enum cct_status status = document ? cct_json_save(document, path) : cct_fail(CCT_NOMEM, "out of memory");
  cct_json_free(document);
  return status;
}

/* ---- on the terminal ---- */

static void print_settings(const struct cct_tune *tune, struct cct_text *text) {
  cct_text_add(text, "channels  alone, with its rules         beside a GEMM               under objective %s\n",
               tune->plan.objective);
  for (int c = 0; c < tune->plan.n_channels; c++) {
    const struct cct_tune_setting *setting = &tune->decision.settings[c];
    struct cct_text part = {0};
    if (tune->plan.channels[c])
      cct_text_add(text, "%-9d ", tune->plan.channels[c]);
    else
      cct_text_add(text, "default   ");
    cct_tune_percent(&part, &setting->gain);
    cct_text_add(text, "%-30s", part.s ? part.s : "");
    part.length = 0;
    cct_tune_percent(&part, &setting->beside);
    cct_text_add(text, "%-28s", part.s ? part.s : "");
    cct_text_add(text, "%s", c == tune->decision.channels ? "taken" : c ? setting->why_not : "");
    if (setting->n_held)
      cct_text_add(text, "; held to NCCL's default: %d", setting->n_held);
    cct_text_add(text, "\n");
    cct_text_free(&part);
  }
  cct_text_add(text, "the best choice of every size gains %.2f %% in geometric mean; with the channels taken %.2f %%\n",
               100 * (1 - tune->decision.grid_gain), 100 * (1 - tune->decision.allowed_gain));
}

static void print_rules(const struct cct_tune *tune, struct cct_text *text) {
  struct cct_rule *rules = calloc(CCT_TUNE_MOST_KINDS * CCT_TUNE_MOST_SIZES, sizeof *rules);
  int n = rules ? cct_tune_rules(tune, rules) : 0;
  char least[32], most[32], choice[64];
  cct_text_add(text, "%d rules:\n", n);
  for (int i = 0; i < n; i++)
    cct_text_add(
        text, "  %-14s %10s to %-10s %s\n", cct_tuner_collectives[rules[i].collective],
        cct_bytes_text((double)rules[i].min_bytes, least), cct_bytes_text((double)rules[i].max_bytes, most),
        cct_tune_ran_text(&(struct cct_tune_ran){rules[i].algorithm, rules[i].protocol, rules[i].channels}, choice));
  for (int k = 0; k < tune->plan.n_kinds; k++)
    if (cct_tune_tuned(tune->plan.kinds[k]) < 0)
      cct_text_add(text, "  %-14s NCCL asks no tuner; environment settings alone\n",
                   cct_tune_kind_name(tune->plan.kinds[k]));
  free(rules);
}

static void print_held(const struct cct_tune *tune, struct cct_text *text) {
  const struct cct_tune_plan *plan = &tune->plan;
  const struct cct_tune_verdict *verdict = &tune->verdict;
  char size[32];
  cct_text_add(text, "verified, against NCCL's default: collective, size, us of both, time\n");
  for (int i = 0; i < plan->n_kinds * plan->n_bytes; i++) {
    const struct cct_tune_held *held[] = {&verdict->first[i], &verdict->again[i]};
    int k = i / plan->n_bytes;
    for (int r = 0; r < 2; r++) {
      if (r && !held[r]->ratio.n)
        continue;
      cct_text_add(text, "  %-14s %10s %s%10.2f %10.2f  ", cct_tune_kind_name(plan->kinds[k]),
                   cct_bytes_text((double)cct_tune_bytes(plan, k, plan->bytes[i % plan->n_bytes]), size),
                   r ? "again " : "", held[r]->us[0], held[r]->us[1]);
      cct_tune_percent(text, &held[r]->ratio);
      cct_text_add(text, "%s\n", held[r]->ratio.n && held[r]->ratio.lo > CCT_TUNE_SLOWER ? "  SLOWER" : "");
    }
  }
  cct_text_add(
      text,
      "%s  gain %.2f %% in geometric mean; the whole grid's %.2f %%, of which at least 90 %% is asked; with these "
      "channels %.2f %% can be had\n",
      verdict->is_gain_held ? "held  " : "FAILED", 100 * (1 - verdict->gain), 100 * (1 - tune->decision.grid_gain),
      100 * (1 - tune->decision.allowed_gain));
  cct_text_add(text, "%s  %d cells slower (interval above +2 %%) at first, %d after one more measurement\n",
               verdict->n_still ? "FAILED" : "held  ", verdict->n_missed, verdict->n_still);
  if (verdict->n_unknown || verdict->n_failed)
    cct_text_add(text, "FAILED  %d cells without a pair, %d failed\n", verdict->n_unknown, verdict->n_failed);
}

void cct_tune_print(const struct cct_tune *tune, struct cct_text *text) {
  const struct cct_tune_plan *plan = &tune->plan;
  if (!tune->is_decided)
    return;
  if (plan->n_choices == 1)
    cct_text_add(text, "backend %s has one choice only: it is measured, and there is nothing to choose or to verify\n",
                 plan->backend);
  cct_text_add(text, "%s: %lld processes of %d ranks, %d collectives, %d sizes, %d choices; condition %s%s%s; %s\n",
               tune->folder, (long long)plan->rounds, plan->ranks, plan->n_kinds, plan->n_bytes, plan->n_choices,
               tune->data.condition, *cct_tune_gpu(tune) ? "; " : "", cct_tune_gpu(tune), cct_tune_label(tune));
  print_settings(tune, text);
  print_rules(tune, text);
  if (tune->decision.n_left_out)
    cct_text_add(text, "%d cells are left out: NCCL's own choice was not measured by every process\n",
                 tune->decision.n_left_out);
  if (tune->data.n_other)
    cct_text_add(text, "%d times NCCL performed another choice than its communicator was left: taken as not measured\n",
                 tune->data.n_other);
  if (tune->is_verified)
    print_held(tune, text);
  cct_text_add(text, "rules.csv, nccl.conf, environment.sh and report/index.html are in %s\n", tune->folder);
}
