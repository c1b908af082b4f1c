/* SPDX-License-Identifier: Apache-2.0
 * From blocks to verdicts: pairing, refusals of bad samples, and A/A. */
#include <stdio.h>
#include <stdlib.h>

#include "report/report_made_test.h"
#include "report/series.h"
#include "report/verdict.h"

#define KEY_2 "{\"batch\":16,\"layout\":\"tp=8\",\"model\":\"qwen3-8b\",\"workload\":\"decode\"}"

static void seventeen_per_cent_in_one_boot(void **state) {
  (void)state;
  two_arms(0, KEY);
  make();
  assert_int_equal(report.n_results, 1);
  const struct cct_result *result = &report.results[0];
  assert_int_equal(result->comparison.design, CCT_DESIGN_ROUNDS);
  assert_true(result->comparison.is_within_boot);
  near(cct_time_overhead_pct(result->comparison.effect), 17, 0.5);
  near(cct_throughput_loss_pct(result->comparison.effect), 100 - 100 / 1.17, 0.5);
  assert_int_equal(result->verdict, CCT_VERDICT_SLOWER);
  assert_string_equal(report.arms[0], "off");
  near(report.summary[1].mean.effect, result->comparison.effect, 1e-12);
}

static void seventeen_per_cent_over_boots(void **state) {
  (void)state;
  two_arms(3, KEY);
  make();
  assert_int_equal(report.results[0].comparison.design, CCT_DESIGN_BOOTS);
  near(report.results[0].comparison.df, 4, 0);
  near(cct_time_overhead_pct(report.results[0].comparison.effect), 17, 1.5);
  assert_int_equal(report.results[0].verdict, CCT_VERDICT_SLOWER);
}

static void higher_is_better_turns_the_sign(void **state) {
  (void)state;
  two_arms(0, KEY);
  for (int b = 0; b < runs.n_blocks; b++)
    snprintf(runs.blocks[b]->cells[0].metrics[0].metric.better, 8, "higher");
  make();
  assert_int_equal(report.results[0].verdict, CCT_VERDICT_FASTER); /* 17 % more tokens a second */
  near(cct_throughput_loss_pct(report.results[0].comparison.effect), -17, 0.5);
}

static void slowest_rank_is_the_step(void **state) {
  (void)state;
  const double values[] = {10, 12, 11};
  double steps[16];
  char why[160] = "";
  struct cct_block *block = fixture_block("off", 0, 0);
  struct cct_block_metric *metric = fixture_cell(block, KEY, "measured", values, 3, 4);
  metric->samples[5].value = 13; /* rank 1 is late once, at index 2 */
  assert_int_equal(cct_reduce_samples(metric, steps, why, sizeof why), 3);
  near(steps[0], 10, 0);
  near(steps[2], 13, 0);
  cct_block_free(block);
}

/* ---- bad input: each its line or its refusal ---- */

enum fault {
  ONE_SAMPLE,
  ALL_EQUAL,
  ZERO,
  NOT_A_NUMBER,
  NEGATIVE,
  CLOCK_BACK,
  FAILED_CELL,
  ONE_ARM_ONLY,
  OVERSUBSCRIBED
};

static void spoil(struct cct_block *block, enum fault fault) {
  struct cct_block_cell *cell = &block->cells[0];
  struct cct_sample *samples = cell->metrics[0].samples;
  if (fault == ONE_SAMPLE)
    cell->metrics[0].n_samples = 1;
  else if (fault == ALL_EQUAL)
    for (int i = 0; i < cell->metrics[0].n_samples; i++)
      samples[i].value = 5;
  else if (fault == FAILED_CELL) {
    cell->state = CCT_CELL_FAILED;
    snprintf(cell->reason, sizeof cell->reason, "7 wrong elements");
  } else if (fault == OVERSUBSCRIBED) {
    free(cell->label);
    cell->label = strdup("measured,oversubscribed");
  } else if (fault == CLOCK_BACK)
    samples[3].start_ns = -7;
  else
    samples[3].value = fault == ZERO ? 0 : fault == NEGATIVE ? -1 : NAN;
}

static void bad_samples_are_refused_by_name(void **state) {
  (void)state;
  static const struct {
    enum fault fault;
    const char *reason;
  } rows[] = {
      {ZERO, "is zero"},
      {NOT_A_NUMBER, "not a number"},
      {NEGATIVE, "clock went back"},
      {CLOCK_BACK, "clock went back"},
      {FAILED_CELL, "failed: 7 wrong elements"},
      {OVERSUBSCRIBED, "oversubscribed"},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    two_arms(0, KEY);
    spoil(runs.blocks[3], rows[k].fault);
    make();
    assert_int_equal(report.results[0].verdict, CCT_VERDICT_REFUSED);
    if (!strstr(report.results[0].reason, rows[k].reason))
      fail_msg("'%s' does not say '%s'", report.results[0].reason, rows[k].reason);
    assert_int_equal(cct_report_has_failures(&report), rows[k].fault != OVERSUBSCRIBED);
    assert_int_equal(report.summary[1].n_cells, 0);
    start_again();
  }
}

static void equal_samples_are_no_certainty(void **state) {
  (void)state;
  two_arms(0, KEY);
  for (int b = 0; b < runs.n_blocks; b++)
    spoil(runs.blocks[b], ALL_EQUAL);
  make();
  assert_int_equal(report.results[0].verdict, CCT_VERDICT_SAME);
  near(report.results[0].comparison.df, 0, 0);
  assert_non_null(strstr(report.results[0].reason, "equal"));
}

static void predicted_is_exact(void **state) {
  (void)state;
  for (int round = 0; round < 2; round++)
    for (int arm = 0; arm < 2; arm++) {
      const double values[] = {arm ? 113 : 100, arm ? 113 : 100};
      struct cct_block *block = fixture_block(arm ? "emulated:b200x8-tdx" : "off", 0, round);
      fixture_cell(block, KEY, "predicted", values, 2, 2);
      add(block);
    }
  make();
  assert_int_equal(report.results[0].verdict, CCT_VERDICT_SLOWER);
  near(cct_time_overhead_pct(report.results[0].comparison.effect), 13, 1e-9);
  assert_string_equal(report.results[0].label, "predicted");
}

/* Of one block an arm too, and of values that differ from each other; not where sim was given noise. */
static void predicted_once_is_exact(void **state) {
  (void)state;
  for (int has_noise = 0; has_noise < 2; has_noise++) {
    for (int arm = 0; arm < 2; arm++) {
      const double values[] = {arm ? 113 : 100, arm ? 226 : 200};
      struct cct_block *block = fixture_block(arm ? "emulated:b200x8-tdx" : "off", 0, 0);
      fixture_cell(block, KEY, "predicted", values, 2, 2);
      fixture_metric(block, (struct cct_metric){"submissions", "a step", "lower"}, (const double[]){arm ? 3 : 9}, 1);
      if (has_noise)
        fixture_fact(block, "noise", CCT_FACT_IDENTITY, "ratios.txt");
      add(block);
    }
    make();
    assert_int_equal(report.results[0].verdict, has_noise ? CCT_VERDICT_SAME : CCT_VERDICT_SLOWER);
    assert_int_equal(report.results[1].verdict, has_noise ? CCT_VERDICT_SAME : CCT_VERDICT_FEWER);
    assert_true(!*report.results[0].reason == !has_noise);
    start_again();
  }
}

static void one_sample_and_one_block(void **state) {
  (void)state;
  for (int arm = 0; arm < 2; arm++) {
    struct cct_block *block = fixture_block(arm ? "on" : "off", arm, 0);
    fixture_steps(block, KEY, "measured", arm ? 117 : 100, 0.5, 20, (uint64_t)arm);
    spoil(block, ONE_SAMPLE);
    add(block);
  }
  make();
  assert_int_equal(report.results[0].verdict, CCT_VERDICT_SAME);
  assert_non_null(strstr(report.results[0].reason, "no interval"));
  assert_true(isnan(report.results[0].smallest_visible));
}

static void cells_of_one_arm_only(void **state) {
  (void)state;
  two_arms(0, KEY);
  for (int b = 0; b < runs.n_blocks; b++)
    if (!strcmp(runs.blocks[b]->head.arm, "on"))
      fixture_steps(runs.blocks[b], KEY_2, "measured", 50, 1, 20, (uint64_t)b);
  make();
  assert_int_equal(report.n_results, 2);
  assert_int_equal(report.results[0].verdict, CCT_VERDICT_SLOWER);
  assert_int_equal(report.results[1].verdict, CCT_VERDICT_REFUSED);
  assert_string_equal(report.results[1].reason, "no block of arm 'off' has this cell");
  assert_int_equal(report.summary[1].n_cells, 1);
}

static void one_condition_twice_is_a_null(void **state) {
  (void)state;
  for (int round = 0; round < 10; round++) {
    struct cct_block *block = fixture_block("off", 0, round);
    fixture_steps(block, KEY, "measured", 100, 0.5, 20, (uint64_t)(40 + round));
    add(block);
  }
  make();
  assert_true(report.is_null);
  assert_string_equal(report.arms[1], "off, turn 2");
  assert_int_equal(report.results[0].comparison.blocks[1], 5);
  near(report.results[0].comparison.effect, 0, 0.01);
}

/* The second turn has no block, so no facts either, from which its boundaries could be told. */
static void one_block_shows_its_medians(void **state) {
  (void)state;
  struct cct_block *block = fixture_block("off", 0, 0);
  fixture_steps(block, KEY, "measured", 100, 0, 20, 1);
  add(block);
  make();
  assert_true(report.is_null);
  assert_int_equal(report.results[0].verdict, CCT_VERDICT_REFUSED);
  near(exp(report.results[0].comparison.centre[0]), 100, 1e-9);
  assert_true(isnan(report.results[0].comparison.centre[1]));
  assert_string_equal(report.results[0].reason, "one block: one condition is compared from two rounds on");
}

/* Gaps between tokens count as often as they came, the tail of a metric is a row of its own, and what is better neither
 * way is none. */
static void serving_has_tails_and_counts(void **state) {
  (void)state;
  struct cct_sample rows[3] = {{0, 0, 97, 1, 2}, {0, 1, 2, 2, 5}, {0, 2, 1, 3, 9}};
  struct cct_block_metric itl = {{"itl", "ms", "lower"}, rows, 3};
  double values[100];
  char why[80];
  assert_int_equal(cct_metric_values(&itl), 100);
  assert_int_equal(cct_reduce_samples(&itl, values, why, sizeof why), 100);
  struct cct_sample late[2] = {{0, 0, 1, 9, 2}, {0, 1, 1, 3, 5}}; /* request 1 came before request 0 */
  struct cct_block_metric ttft = {{"ttft", "ms", "lower"}, late, 2};
  assert_int_equal(cct_reduce_samples(&ttft, values, why, sizeof why), 2);
  near(values[96], 2, 0);
  near(values[98], 5, 0);
  near(values[99], 9, 0);
  for (int b = 0; b < 4; b++) {
    struct cct_block *block = fixture_block(b % 2 ? "on" : "off", 0, b / 2);
    fixture_steps(block, "{\"model\":\"m\",\"workload\":\"serve\"}", "measured", 100, 1, 40, (uint64_t)b + 1);
    struct cct_metric *metric = &block->cells[0].metrics[0].metric;
    snprintf(metric->name, sizeof metric->name, "%s", "ttft");
    add(block);
  }
  make();
  assert_int_equal(report.n_cells, 2);
  assert_string_equal(report.cells[0].metric.name, "ttft");
  assert_string_equal(report.cells[1].metric.name, "ttft_p99");
  assert_true(report.cells[1].arms[0].units[0].value > report.cells[0].arms[0].units[0].value);
  assert_int_equal(report.cells[0].arms[0].outliers, 0);
  struct cct_text advice = {0}; /* no profile tells where the time of requests comes from */
  cct_verdict_text(&report, CCT_VERDICT_WHAT_TO_DO, &advice);
  assert_non_null(strstr(advice.s, "run a step of the same settings"));
  assert_null(strstr(advice.s, "--profile"));
  cct_text_free(&advice);
  start_again();
  for (int b = 0; b < 2; b++) {
    struct cct_block *block = fixture_block(b ? "on" : "off", 0, 0);
    fixture_steps(block, "{\"model\":\"m\",\"workload\":\"serve\"}", "measured", 100, 1, 40, (uint64_t)b + 1);
    snprintf(block->cells[0].metrics[0].metric.better, 8, "neither");
    add(block);
  }
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_USAGE); /* no cell is left */
}

static void too_many_arms(void **state) {
  (void)state;
  for (int arm = 0; arm < 200; arm++) {
    char name[32];
    snprintf(name, sizeof name, "on-%d", arm);
    struct cct_block *block = fixture_block(name, 0, 0);
    fixture_steps(block, KEY, "measured", 100, 0.5, 3, (uint64_t)arm);
    add(block);
  }
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_USAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(seventeen_per_cent_in_one_boot),
      TEST(seventeen_per_cent_over_boots),
      TEST(higher_is_better_turns_the_sign),
      TEST(slowest_rank_is_the_step),
      TEST(bad_samples_are_refused_by_name),
      TEST(equal_samples_are_no_certainty),
      TEST(predicted_is_exact),
      TEST(predicted_once_is_exact),
      TEST(one_sample_and_one_block),
      TEST(cells_of_one_arm_only),
      TEST(one_condition_twice_is_a_null),
      TEST(one_block_shows_its_medians),
      TEST(serving_has_tails_and_counts),
      TEST(too_many_arms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
