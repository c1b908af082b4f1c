/* SPDX-License-Identifier: Apache-2.0
 * One fuzz input: parses it, and if it is a rules file, builds decisions from it and asks them. Returns whether it was
 * read. rules_test drives it with deterministic mutations; rules_fuzz.c hands it to libFuzzer (-DCCT_FUZZ=ON, clang).
 */
#ifndef CCT_TUNER_RULES_FUZZ_H
#define CCT_TUNER_RULES_FUZZ_H

#include <stdint.h>
#include <stdlib.h>

#include "tuner/decision.h"

static inline int cct_rules_fuzz(const uint8_t *bytes, size_t length) {
  struct cct_rules rules;
  struct cct_rules_origin origin;
  char why[CCT_RULES_WHY];
  (void)cct_rules_origin((const char *)bytes, length, &origin);
  if (cct_rules_parse("fuzz", (const char *)bytes, length, &rules, why) != CCT_OK)
    return 0;
  float cost[CCT_TUNER_ALGORITHMS * CCT_TUNER_PROTOCOLS];
  for (size_t i = 0; i < sizeof cost / sizeof *cost; i++)
    cost[i] = i % 2 ? 1.0f : -1.0f;
  for (int cc = -1; cc <= 1; cc++) {
    const struct cct_tuner_situation situation = {.nodes = 1, .ranks = 8, .cc = cc, .gpu = "NVIDIA B200"};
    struct cct_decision *decision;
    if (cct_decision_build(&rules, &situation, &decision) != CCT_OK)
      abort();
    for (size_t i = 0; i < rules.n; i++) {
      const uint64_t sizes[] = {0, rules.items[i].min_bytes, rules.items[i].max_bytes, UINT64_MAX};
      for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const struct cct_tuner_call call = {.collective = rules.items[i].collective,
                                            .bytes = sizes[s],
                                            .pipe_ops = 1,
                                            .reg_buff = (int)i % 3 - 1,
                                            .cost = cost,
                                            .algorithms = CCT_TUNER_ALGORITHMS,
                                            .protocols = CCT_TUNER_PROTOCOLS};
        struct cct_tuner_choice choice;
        if (cct_decision_choose(decision, &call, &choice) == CCT_TUNER_CHOSEN &&
            cost[choice.algorithm * CCT_TUNER_PROTOCOLS + choice.protocol] < 0)
          abort();
      }
    }
    cct_decision_free(decision);
  }
  cct_rules_free(&rules);
  return 1;
}

#endif
