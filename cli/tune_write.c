/* SPDX-License-Identifier: Apache-2.0
 * What a tune leaves for jobs: rules.csv, nccl.conf, environment.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/tune.h"

#define LEAST_NVLS_RANKS 3 /* below, NCCL has no NVLS */

/* What the rules were measured without decides where they hold. */
static enum cct_rule_condition condition_of(const struct cct_tune *tune) {
  const char *condition = tune->data.condition;
  if (!strcmp(condition, "on"))
    return CCT_RULE_CC;
  int is_without = tune->plan.ranks < LEAST_NVLS_RANKS || tune->data.is_nvls_off || !strcmp(condition, "stripped") ||
                   !strncmp(condition, "emulated:", 9);
  return is_without ? CCT_RULE_NO_MULTICAST : CCT_RULE_ANY;
}

int cct_tune_rules(const struct cct_tune *tune, struct cct_rule *rules_out) {
  const struct cct_tune_plan *plan = &tune->plan;
  const struct cct_tune_setting *setting = &tune->decision.settings[tune->decision.channels];
  struct cct_tune_range ranges[CCT_TUNE_MOST_SIZES];
  int64_t bytes[CCT_TUNE_MOST_SIZES];
  int n = 0;
  for (int k = 0; k < plan->n_kinds; k++) {
    if (cct_tune_tuned(plan->kinds[k]) < 0)
      continue;
    for (int s = 0; s < plan->n_bytes; s++)
      bytes[s] = cct_tune_bytes(plan, k, plan->bytes[s]);
    int n_ranges =
        cct_tune_merge(setting->picks[k], bytes, plan->n_bytes, tune->decision.channels * plan->each, ranges);
    for (int i = 0; i < n_ranges; i++) {
      struct cct_rule *rule = &rules_out[n++];
      *rule = (struct cct_rule){
          .min_bytes = (uint64_t)ranges[i].min_bytes,
          .max_bytes = (uint64_t)ranges[i].max_bytes,
          .collective = cct_tune_tuned(plan->kinds[k]),
          .algorithm = ranges[i].rule.algorithm,
          .protocol = ranges[i].rule.protocol,
          .channels = ranges[i].rule.channels,
          .nodes = 1,
          .ranks = plan->ranks,
          .pipe_ops = 1,
          .reg_buff = -1,
          .condition = condition_of(tune),
      };
      snprintf(rule->gpu, sizeof rule->gpu, "%s", cct_tune_gpu(tune));
    }
  }
  return n;
}

/* ---- for jobs ---- */

/* One line of words without a line end of theirs: names come from drivers. */
static void add_measured(const struct cct_tune *tune, struct cct_text *text) {
  const struct cct_tune_data *data = &tune->data;
  cct_text_add(text, "# %s: gpu=%s; ranks=%d; nccl=%s; driver=%s; condition=%s; date=%s; backend=%s; tool=cctax %s\n",
               !strcmp(tune->plan.backend, "sim") ? "predicted" : "measured",
               *cct_tune_gpu(tune) ? cct_tune_gpu(tune) : "none", tune->plan.ranks, *data->nccl ? data->nccl : "none",
               *data->driver ? data->driver : "none", data->condition, data->date, tune->plan.backend, CCT_VERSION);
}

static void add_rules(const struct cct_tune *tune, struct cct_text *text) {
  struct cct_rule *rules = calloc(CCT_TUNE_MOST_KINDS * CCT_TUNE_MOST_SIZES, sizeof *rules);
  char line[CCT_RULE_TEXT];
  int n = rules ? cct_tune_rules(tune, rules) : 0;
  cct_text_add(text,
               "# Rules for libnccl-tuner-cctax.so, by cctax tune. They are of the machine of the next line alone.\n");
  add_measured(tune, text);
  if (!strcmp(tune->plan.backend, "sim"))
    cct_text_add(text, "# No machine showed them: the simulator played profile %s. Tune the machine itself.\n",
                 tune->plan.profile);
  cct_text_add(
      text,
      "# %lld processes, every second one judged; a size that is not here was not shown to gain 1 %% over NCCL's "
      "own choice.\n# Ranges meet halfway between two measured sizes.\n",
      (long long)tune->plan.rounds);
  const struct cct_tune_setting *setting = &tune->decision.settings[tune->decision.channels];
  if (cct_tune_channels(tune))
    cct_text_add(text,
                 "# They are for NCCL_MIN_CTAS=NCCL_MAX_CTAS=%d, which no rule can set: nccl.conf, environment.sh.\n",
                 cct_tune_channels(tune));
  if (setting->n_held)
    cct_text_add(text, "# Sizes that these make slower are held to the channels that NCCL's default ran with: %d.\n",
                 setting->n_held);
  cct_text_add(text,
               "collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff,condition,"
               "gpu\n");
  for (int i = 0; i < n; i++)
    cct_text_add(text, "%s\n", cct_rule_text(&rules[i], line));
  text->is_failed |= !rules;
  free(rules);
}

/* What stands before the variables, in both files. */
static void add_trade(const struct cct_tune *tune, struct cct_text *text) {
  const struct cct_tune_setting *setting = &tune->decision.settings[tune->decision.channels];
  add_measured(tune, text);
  if (!cct_tune_channels(tune)) {
    cct_text_add(text, "# The number of channels stays NCCL's own: no other was shown better under objective %s.\n",
                 tune->plan.objective);
    return;
  }
  cct_text_add(text, "# %d channels for every communicator of the process, alone: ", cct_tune_channels(tune));
  cct_tune_percent(text, &setting->gain);
  cct_text_add(text,
               " time with the rules, against NCCL's default.\n# They take as many SMs from kernels beside them: ");
  cct_tune_percent(text, &setting->beside);
  cct_text_add(text, " time beside a GEMM, against NCCL's number.\n");
}

static void add_variable(struct cct_text *text, int is_shell, const char *name, const char *value) {
  if (!is_shell) {
    cct_text_add(text, "%s=%s\n", name, value);
    return;
  }
  cct_text_add(text, "export %s='", name);
  for (; *value; value++)
    if (*value == '\'')
      cct_text_add(text, "'\\''");
    else
      cct_text_append(text, value, 1);
  cct_text_add(text, "'\n");
}

static void add_variables(const struct cct_tune *tune, int is_shell, struct cct_text *text) {
  char value[4096];
  add_trade(tune, text);
  add_variable(text, is_shell, "NCCL_TUNER_PLUGIN", *tune->plan.plugin ? tune->plan.plugin : "cctax");
  snprintf(value, sizeof value, "%s/rules.csv", tune->folder);
  add_variable(text, is_shell, "CCTAX_TUNER_RULES", value);
  if (!cct_tune_channels(tune))
    return;
  snprintf(value, sizeof value, "%d", cct_tune_channels(tune));
  add_variable(text, is_shell, "NCCL_MIN_CTAS", value);
  add_variable(text, is_shell, "NCCL_MAX_CTAS", value);
}

static enum cct_status save_text(const struct cct_tune *tune, const char *name, struct cct_text *text) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", tune->folder, name);
  enum cct_status status =
      text->is_failed ? cct_fail(CCT_NOMEM, "out of memory") : cct_write_file(path, text->s, text->length);
  text->length = 0;
  return status;
}

/* --rules: a file that is there stays, unless it says the same. */
static enum cct_status save_rules(const struct cct_tune *tune, const struct cct_text *text) {
  const char *path = tune->plan.rules;
  char *there = NULL;
  size_t length = 0;
  if (!*path)
    return CCT_OK;
  if (access(path, F_OK) != 0)
    return cct_write_file(path, text->s, text->length);
  enum cct_status status = cct_read_file(path, CCT_RULES_FILE_MAX, &there, &length);
  int is_same = !status && length == text->length && !memcmp(there, text->s, length);
  free(there);
  return status || is_same
             ? status
             : cct_fail(CCT_USAGE, "--rules %s: another file is there, and stays; the new rules are in %s/rules.csv",
                        path, tune->folder);
}

enum cct_status cct_tune_write(const struct cct_tune *tune) {
  struct cct_text text = {0};
  add_rules(tune, &text);
  enum cct_status status = text.is_failed ? CCT_OK : save_rules(tune, &text);
  if (!status)
    status = save_text(tune, "rules.csv", &text);
  if (!status) {
    cct_text_add(&text, "# For /etc/nccl.conf, ~/.nccl.conf or a file named by NCCL_CONF_FILE, by cctax tune.\n");
    add_variables(tune, 0, &text);
    status = save_text(tune, "nccl.conf", &text);
  }
  if (!status) {
    cct_text_add(&text, "# . environment.sh, on every rank alike, by cctax tune.\n");
    add_variables(tune, 1, &text);
    status = save_text(tune, "environment.sh", &text);
  }
  cct_text_free(&text);
  return status;
}
