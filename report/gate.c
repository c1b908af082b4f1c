/* SPDX-License-Identifier: Apache-2.0 */
#include "report/gate.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

/* Which condition facts a factor sets: patterns as of fnmatch. Any factor sets the fact of its own name. */
static const struct {
  const char *factor, *pattern;
} sets[] = {
    {"condition", "NCCL_NVLS_ENABLE"},
    {"condition", "NCCL_WORK_FIFO_BYTES"},
    {"condition", "NCCL_ALLGATHERV_ENABLE"},
    {"condition",
     "[!N]*"}, /* CC state, mode, TEE, multicast, kernel: all but NCCL's environment follows the condition */
    {"net", "NCCL_NET*"},
    {"net", "CCTAX_NET*"},
    {"tuner", "NCCL_TUNER*"},
    {"tuner", "NCCL_M??_CTAS"},
    {"tuner", "CCTAX_TUNER*"},
    {"registration", "NCCL_*REGISTER*"},
};

int cct_factor_sets(const char *factor, const char *name) {
  if (!strcmp(factor, name))
    return 1;
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    if (!strcmp(sets[i].factor, factor) && !fnmatch(sets[i].pattern, name, 0))
      return 1;
  return 0;
}

static int is_in_list(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *at = list; at && *at;) {
    size_t n = strcspn(at, ",");
    if (n == length && !strncmp(at, name, n))
      return 1;
    at += n + (at[n] == ',');
  }
  return 0;
}

static enum cct_status differ(const struct cct_runs *runs, int a, int b, const struct cct_record_fact *fact,
                              const char *left, const char *right, const char *allow, struct cct_gate *gate) {
  if (!is_in_list(allow, fact->name))
    return cct_fail(CCT_USAGE, "%s fact '%s' differs: '%s' in %s, '%s' in %s; --allow %s compares all the same",
                    cct_fact_class_name(fact->fact_class), fact->name, left, runs->blocks[a]->path, right,
                    runs->blocks[b]->path, fact->name);
  for (int i = 0; i < gate->n_allowed; i++)
    if (!strcmp(gate->allowed[i].name, fact->name))
      return CCT_OK; /* one difference of a fact stands for all */
  if (gate->n_allowed == (int)(sizeof gate->allowed / sizeof *gate->allowed))
    return cct_fail(CCT_USAGE, "--allow: more than %d facts differ; these runs are not comparable", gate->n_allowed);
  struct cct_gate_finding *finding = &gate->allowed[gate->n_allowed++];
  finding->fact_class = fact->fact_class;
  snprintf(finding->name, sizeof finding->name, "%s", fact->name);
  snprintf(finding->left, sizeof finding->left, "%s", left);
  snprintf(finding->right, sizeof finding->right, "%s", right);
  return CCT_OK;
}

static int must_agree(const struct cct_record_fact *fact, const struct cct_block *a, const struct cct_block *b) {
  if (fact->fact_class == CCT_FACT_IDENTITY)
    return 1;
  return fact->fact_class == CCT_FACT_CONDITION &&
         (!strcmp(a->head.arm, b->head.arm) || !cct_factor_sets(a->head.factor, fact->name));
}

/* Every fact of block `a` that must agree, looked up in block `b`; with `only_absent`, only those that `b` lacks. */
static enum cct_status compare_blocks(const struct cct_runs *runs, int a, int b, int only_absent, const char *allow,
                                      struct cct_gate *gate) {
  const struct cct_block *left = runs->blocks[a], *right = runs->blocks[b];
  for (int i = 0; i < left->n_facts; i++) {
    const struct cct_record_fact *fact = &left->facts[i];
    const char *other = cct_block_fact(right, fact->name);
    if (!must_agree(fact, left, right) || (other && (only_absent || !strcmp(other, fact->value))))
      continue;
    /* The order of the two values is the order of the blocks, whichever lacks the fact. */
    enum cct_status status = only_absent ? differ(runs, b, a, fact, "absent", fact->value, allow, gate)
                                         : differ(runs, a, b, fact, fact->value, other ? other : "absent", allow, gate);
    if (status)
      return status;
  }
  return CCT_OK;
}

/* What was detected speaks for the arm: one that says `on` on a machine whose GPU had it off is no arm. */
static enum cct_status check_fact(const struct cct_block *block, const char *name, const char *wanted,
                                  const char *allow) {
  const char *is = cct_block_fact(block, name);
  if (!is || !strcmp(is, wanted) || !strcmp(is, "not known") || is_in_list(allow, name))
    return CCT_OK;
  return cct_fail(CCT_USAGE, "condition fact '%s' differs: arm '%s' needs '%s', %s was '%s'", name, block->head.arm,
                  wanted, block->path, is);
}

static enum cct_status check_arm(const struct cct_block *block, const char *allow) {
  if (strcmp(block->head.factor, "condition"))
    return CCT_OK;
  enum cct_status status = check_fact(block, "condition", block->head.arm, allow);
  return status ? status : check_fact(block, "gpu_cc", strcmp(block->head.arm, "on") ? "off" : "on", allow);
}

static enum cct_status check_allow(const struct cct_runs *runs, const char *allow) {
  for (const char *at = allow; at && *at;) {
    size_t n = strcspn(at, ",");
    int is_known = 0;
    for (int b = 0; b < runs->n_blocks && !is_known; b++)
      for (int i = 0; i < runs->blocks[b]->n_facts && !is_known; i++) {
        const char *name = runs->blocks[b]->facts[i].name;
        is_known = strlen(name) == n && !strncmp(name, at, n);
      }
    if (!is_known)
      return cct_fail(CCT_USAGE, "--allow: '%.*s' is no fact of these runs; cctax show lists them", (int)n, at);
    at += n + (at[n] == ',');
  }
  return CCT_OK;
}

enum cct_status cct_gate_check(const struct cct_runs *runs, const char *allow, struct cct_gate *gate_out) {
  struct cct_gate gate = {0};
  enum cct_status status = check_allow(runs, allow);
  for (int b = 0; !status && b < runs->n_blocks; b++) {
    const struct cct_block *block = runs->blocks[b];
    if (strcmp(block->head.factor, runs->blocks[0]->head.factor))
      return cct_fail(CCT_USAGE, "arms of two factors: '%s' in %s, '%s' in %s; report them apart",
                      runs->blocks[0]->head.factor, runs->blocks[0]->path, block->head.factor, block->path);
    status = check_arm(block, allow);
    /* The first block of all, and the first of the same arm, stand for the blocks before. */
    int first = 0;
    while (strcmp(runs->blocks[first]->head.arm, block->head.arm))
      first++;
    for (int k = 0; !status && k < (first ? 2 : 1); k++) {
      int a = k ? first : 0;
      if (a == b)
        continue;
      status = compare_blocks(runs, a, b, 0, allow, &gate);
      if (!status)
        status = compare_blocks(runs, b, a, 1, allow, &gate);
    }
  }
  if (!status)
    *gate_out = gate;
  return status;
}
