/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/tuner/tuner_condition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cct_nvls_cause_text(enum cct_nvls_cause cause) {
  static const char *const texts[] = {
#define CCT_NVLS_CAUSE_TEXT(name, text) text,
      CCT_NVLS_CAUSES(CCT_NVLS_CAUSE_TEXT)
#undef CCT_NVLS_CAUSE_TEXT
  };
  return texts[cause];
}

/* NCCL_ALGO and NCCL_PROTO name what to use, or with '^' what not to, for all functions or "function:list;...". */
static int leaves_out(const char *filter, const char *word) {
  if (!filter || !*filter)
    return 0;
  int is_named = strcasestr(filter, word) != NULL;
  return strchr(filter, '^') ? is_named : !is_named;
}

static int is_zero(const char *number) {
  char *end;
  return number && *number && strtol(number, &end, 0) == 0 && *end == '\0';
}

static enum cct_nvls_cause cause_of(const struct cct_gpu_passive *facts, const struct cct_tuner_environment *env,
                                    size_t gpus) {
  if (facts->multicast == 0)
    return facts->cc == 1 ? CCT_NVLS_CC : CCT_NVLS_DRIVER;
  if (is_zero(env->nccl_nvls_enable))
    return CCT_NVLS_ENVIRONMENT;
  if (gpus < 3)
    return CCT_NVLS_FEW_GPUS;
  if (leaves_out(env->nccl_algo, "nvls") || leaves_out(env->nccl_proto, "simple"))
    return CCT_NVLS_FILTER;
  return facts->multicast < 0 ? CCT_NVLS_UNKNOWN : CCT_NVLS_NONE;
}

/* One word of CCTAX_CONDITION. */
static int word_apply(const char *word, size_t length, struct cct_tuner_condition *condition) {
#define IS(text) (length == sizeof text - 1 && !memcmp(word, text, sizeof text - 1))
  if ((IS("cc") && condition->cc != 0) || (IS("clear") && condition->cc != 1)) {
    condition->cc = IS("cc");
  } else if (IS("no-multicast")) {
    condition->is_multicast_off = 1;
  } else if (length > 4 && !memcmp(word, "gpu=", 4) && length - 4 < sizeof condition->gpu) {
    memcpy(condition->gpu, word + 4, length - 4);
    condition->gpu[length - 4] = '\0';
  } else {
    return 0;
  }
  return 1;
}

enum cct_status cct_tuner_condition_find(const struct cct_gpu_passive *facts, const struct cct_tuner_environment *env,
                                         size_t nodes, size_t gpus, struct cct_tuner_condition *condition_out,
                                         char *why_out, size_t size) {
  const struct cct_tuner_condition open = {.cc = -1, .cause = cause_of(facts, env, gpus), .source = "not agreed"};
  struct cct_tuner_condition condition = open;
  const char *at = env->cctax_condition;
  if (at && *at) {
    condition.source = "CCTAX_CONDITION";
    for (;; at++) {
      size_t length = strcspn(at, ",");
      if (!word_apply(at, length, &condition)) {
        *condition_out = open;
        snprintf(why_out, size,
                 "CCTAX_CONDITION: '%.*s' is not understood, or contradicts another word; it takes cc or clear, "
                 "no-multicast, gpu=NAME; rules with a condition are left out",
                 (int)(length < 60 ? length : 60), at);
        return CCT_USAGE;
      }
      at += length;
      if (!*at)
        break;
    }
  } else if (nodes <= 1) {
    condition.source = "read here";
    condition.cc = facts->cc;
    snprintf(condition.gpu, sizeof condition.gpu, "%s", facts->gpu_name);
  }
  *condition_out = condition;
  return CCT_OK;
}
