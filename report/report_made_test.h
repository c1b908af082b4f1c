/* SPDX-License-Identifier: Apache-2.0
 * A test's one report: the blocks it adds to `runs`, and the `report` made of them. TEST(f) frees both behind f. */
#ifndef CCT_REPORT_REPORT_MADE_TEST_H
#define CCT_REPORT_REPORT_MADE_TEST_H

#include <string.h>

#include "base/random.h"
#include "report/report.h"
#include "report/report_fixture.h"
#include "tests/near.h"

#define KEY "{\"batch\":8,\"layout\":\"tp=8\",\"model\":\"qwen3-8b\",\"workload\":\"decode\"}"
/* An entry of cmocka's table. */
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static struct cct_runs runs;
static struct cct_report report;

static inline int set_up(void **state) {
  (void)state;
  memset(&runs, 0, sizeof runs);
  memset(&report, 0, sizeof report);
  return 0;
}

static inline int tear_down(void **state) {
  (void)state;
  cct_report_free(&report);
  cct_runs_free(&runs);
  return 0;
}

/* For a further report within one test. */
static inline void start_again(void) {
  (void)tear_down(NULL);
  (void)set_up(NULL);
}

static inline void add(struct cct_block *block) {
  assert_int_equal(cct_runs_add(&runs, 0, "RUN", block), CCT_OK);
}

static inline void make(void) {
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
}

/* `boots` boots an arm (0: both arms in one boot, by rounds), 17 per cent apart. */
static inline void two_arms(int boots, const char *key) {
  for (int boot = 0; boot < (boots ? boots : 1); boot++)
    for (int round = 0; round < 5; round++)
      for (int arm = 0; arm < 2; arm++) {
        struct cct_block *block = fixture_block(arm ? "on" : "off", boots ? 2 * boot + arm : 0, round);
        double shift = boots ? 1 + 0.004 * cct_random_normal(9, (uint64_t)(2 * boot + arm)) : 1;
        fixture_steps(block, key, "measured", (arm ? 117 : 100) * shift, 0.5, 20,
                      (uint64_t)(100 * boot + 10 * round + arm));
        add(block);
      }
}

#endif
