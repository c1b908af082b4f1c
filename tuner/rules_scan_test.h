/* SPDX-License-Identifier: Apache-2.0
 * What rules mean, as a scan: the reference that the search, and the plugin, are held against. And random rules. */
#ifndef CCT_RULES_SCAN_TEST_H
#define CCT_RULES_SCAN_TEST_H

#include <string.h>

#include "base/random.h"
#include "tuner/decision.h"

/* The first rule in the file's order that holds and whose cell is usable. */
static inline enum cct_tuner_verdict scan(const struct cct_rules *rules, const struct cct_tuner_situation *s,
                                          const struct cct_tuner_call *call, struct cct_tuner_choice *choice_out) {
  enum cct_tuner_verdict verdict = CCT_TUNER_NOT_COVERED;
  int has_nvls = cct_cost_has_nvls(call->cost, call->algorithms, call->protocols);
  for (size_t i = 0; i < rules->n; i++) {
    const struct cct_rule *r = &rules->items[i];
    if (r->collective != call->collective || call->bytes < r->min_bytes || call->bytes > r->max_bytes ||
        !cct_rule_holds(r, s) || (r->pipe_ops != -1 && r->pipe_ops != call->pipe_ops) ||
        (r->reg_buff != -1 && r->reg_buff != call->reg_buff) ||
        (r->condition == CCT_RULE_NO_MULTICAST && has_nvls && !s->is_multicast_off))
      continue;
    verdict = CCT_TUNER_NOT_USABLE;
    if (r->algorithm < call->algorithms &&
        cct_cost_is_usable(call->cost[r->algorithm * call->protocols + r->protocol])) {
      *choice_out = (struct cct_tuner_choice){(int)i, r->algorithm, r->protocol, r->channels};
      return CCT_TUNER_CHOSEN;
    }
  }
  return verdict;
}

static inline struct cct_rule random_rule(uint64_t seed) {
#define BELOW(n) cct_random_below(seed, counter++, n)
  uint64_t counter = 0;
  uint64_t a = (uint64_t)BELOW(40), b = (uint64_t)BELOW(40);
  struct cct_rule r = {.min_bytes = a < b ? a : b, .max_bytes = a < b ? b : a, .collective = (int)BELOW(5)};
  r.min_bytes = BELOW(8) ? r.min_bytes : 0;
  r.max_bytes = BELOW(8) ? r.max_bytes : UINT64_MAX;
  r.algorithm = (int)BELOW(7);
  r.protocol = (int)BELOW(3);
  r.channels = (int)BELOW(3);
  r.nodes = BELOW(3) ? -1 : 1 + (int)BELOW(2);
  r.ranks = BELOW(3) ? -1 : 2 + (int)BELOW(2);
  r.pipe_ops = BELOW(2) ? -1 : 1 + (int)BELOW(3);
  r.reg_buff = (int)BELOW(3) - 1;
  r.condition = BELOW(2) ? CCT_RULE_ANY : (enum cct_rule_condition)BELOW(4);
  strcpy(r.gpu, BELOW(2) ? "" : BELOW(2) ? "NVIDIA H200" : "NVIDIA B");
  return r;
#undef BELOW
}

#endif
