/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "tuner/decision.h"
#include "tuner/rules_scan_test.h"

enum {
  CELLS = CCT_TUNER_ALGORITHMS * CCT_TUNER_PROTOCOLS
};

static void the_search_agrees_with_the_scan(void **state) {
  (void)state;
  static const char *const gpus[] = {"", "NVIDIA H200", "NVIDIA B200"};
  size_t seen[3] = {0};
  for (uint64_t file = 0; file < 2000; file++) {
    struct cct_rule items[60];
    struct cct_rules rules = {items, (size_t)cct_random_below(file, 0, 60), 60};
    for (size_t i = 0; i < rules.n; i++)
      items[i] = random_rule(cct_random_fold(file, i));
    struct cct_tuner_situation s = {.nodes = 1 + (int)cct_random_below(file, 1, 2),
                                    .ranks = 2 + (int)cct_random_below(file, 2, 2),
                                    .cc = (int)cct_random_below(file, 3, 3) - 1,
                                    .is_multicast_off = !cct_random_below(file, 4, 4),
                                    .gpu = gpus[cct_random_below(file, 5, 3)]};
    struct cct_decision *decision;
    assert_int_equal(cct_decision_build(&rules, &s, &decision), CCT_OK);
    for (uint64_t n = 0; n < 100; n++) {
      uint64_t seed = cct_random_fold(file, 1000 + n);
      float cost[CELLS];
      for (uint64_t i = 0; i < CELLS; i++)
        cost[i] = cct_random_below(seed, 10 + i, 3) ? -1 : 5;
      struct cct_tuner_call call = {.collective = (int)cct_random_below(seed, 0, 5),
                                    .bytes = (uint64_t)cct_random_below(seed, 1, 45),
                                    .pipe_ops = 1 + (int)cct_random_below(seed, 2, 4),
                                    .reg_buff = (int)cct_random_below(seed, 3, 3) - 1,
                                    .cost = cost,
                                    .algorithms = 6 + (int)cct_random_below(seed, 4, 2),
                                    .protocols = 3};
      struct cct_tuner_choice found = {-1, -1, -1, -1}, wanted = {-1, -1, -1, -1};
      enum cct_tuner_verdict verdict = cct_decision_choose(decision, &call, &found);
      seen[verdict]++;
      assert_int_equal(verdict, scan(&rules, &s, &call, &wanted));
      /* Of two rules of one cell only the first is kept; the scan finds that one too. */
      assert_memory_equal(&found, &wanted, sizeof found);
    }
    cct_decision_free(decision);
  }
  assert_true(seen[0] > 1000 && seen[1] > 1000 && seen[2] > 1000);
}

static void forcing_names_the_cell_and_changes_no_other_ones_state(void **state) {
  (void)state;
  const float before[CELLS] = {0, 1e-4f, 16.4f, 7.8f, NAN, 15.2f, -1, -1024, INFINITY, 3e9f, 1e-3f};
  for (int algorithm = 0; algorithm < CCT_TUNER_ALGORITHMS; algorithm++)
    for (int protocol = 0; protocol < CCT_TUNER_PROTOCOLS; protocol++) {
      float cost[CELLS];
      int target = algorithm * CCT_TUNER_PROTOCOLS + protocol;
      if (!cct_cost_is_usable(before[target]))
        continue;
      memcpy(cost, before, sizeof cost);
      cct_cost_force(cost, CCT_TUNER_ALGORITHMS, CCT_TUNER_PROTOCOLS, algorithm, protocol);
      assert_true(fabsf(cost[target] - 1e-3f * (float)(target + 1)) < 1e-9f);
      for (int i = 0; i < CELLS; i++)
        if (i != target) {
          assert_int_equal(cct_cost_is_usable(cost[i]), cct_cost_is_usable(before[i]));
          assert_true(!cct_cost_is_usable(cost[i]) || cost[i] > cost[target]);
          assert_true(cct_cost_is_usable(cost[i]) || !memcmp(&cost[i], &before[i], sizeof(float)));
        }
    }
}

static void nothing_is_decided_without_rules_or_for_unknown_collectives(void **state) {
  (void)state;
  const float cost[CELLS] = {1};
  struct cct_tuner_choice choice;
  struct cct_tuner_call call = {.collective = CCT_TUNER_ALLREDUCE, .cost = cost, .algorithms = 7, .protocols = 3};
  assert_int_equal(cct_decision_choose(NULL, &call, &choice), CCT_TUNER_NOT_COVERED);
  struct cct_rule rule = {.max_bytes = UINT64_MAX,
                          .collective = CCT_TUNER_ALLREDUCE,
                          .nodes = -1,
                          .ranks = -1,
                          .pipe_ops = -1,
                          .reg_buff = -1};
  struct cct_rules rules = {&rule, 1, 1};
  struct cct_decision *decision;
  assert_int_equal(cct_decision_build(&rules, &(struct cct_tuner_situation){.cc = -1, .gpu = ""}, &decision), CCT_OK);
  assert_int_equal(cct_decision_choose(decision, &call, &choice), CCT_TUNER_CHOSEN);
  static const int others[] = {-1, CCT_TUNER_BROADCAST, 5, 8, 1000};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    call.collective = others[i];
    assert_int_equal(cct_decision_choose(decision, &call, &choice), CCT_TUNER_NOT_COVERED);
  }
  cct_decision_free(decision);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_search_agrees_with_the_scan),
      cmocka_unit_test(forcing_names_the_cell_and_changes_no_other_ones_state),
      cmocka_unit_test(nothing_is_decided_without_rules_or_for_unknown_collectives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
