/* SPDX-License-Identifier: Apache-2.0
 * From blocks to verdicts: pairing, refusals of bad samples, A/A, and that what is exported reads back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "report/report.h"
#include "base/random.h"
#include "report/series.h"
#include "report/report_fixture.h"
#include "report/verdict.h"
#include "workloads/backends/predict.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

#define KEY   "{\"batch\":8,\"layout\":\"tp=8\",\"model\":\"qwen3-8b\",\"workload\":\"decode\"}"
#define KEY_2 "{\"batch\":16,\"layout\":\"tp=8\",\"model\":\"qwen3-8b\",\"workload\":\"decode\"}"

static struct cct_runs runs;
static struct cct_report report;

static int set_up(void **state) {
  (void)state;
  memset(&runs, 0, sizeof runs);
  memset(&report, 0, sizeof report);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  cct_report_free(&report);
  cct_runs_free(&runs);
  return 0;
}

static void near(double is, double wanted, double within) {
  if (!(fabs(is - wanted) <= within))
    fail_msg("%.9g where %.9g is expected, within %g", is, wanted, within);
}

static void add(struct cct_block *block) {
  assert_int_equal(cct_runs_add(&runs, 0, "RUN", block), CCT_OK);
}

/* `boots` boots an arm (0: both arms in one boot, by rounds), 17 per cent apart. */
static void two_arms(int boots, const char *key) {
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

static void seventeen_per_cent_in_one_boot(void **state) {
  (void)state;
  two_arms(0, KEY);
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
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
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
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
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
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
    assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
    assert_int_equal(report.results[0].verdict, CCT_VERDICT_REFUSED);
    if (!strstr(report.results[0].reason, rows[k].reason))
      fail_msg("'%s' does not say '%s'", report.results[0].reason, rows[k].reason);
    assert_int_equal(cct_report_has_failures(&report), rows[k].fault != OVERSUBSCRIBED);
    assert_int_equal(report.summary[1].n_cells, 0);
    tear_down(NULL);
    set_up(NULL);
  }
}

static void equal_samples_are_no_certainty(void **state) {
  (void)state;
  two_arms(0, KEY);
  for (int b = 0; b < runs.n_blocks; b++)
    spoil(runs.blocks[b], ALL_EQUAL);
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
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
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  assert_int_equal(report.results[0].verdict, CCT_VERDICT_SLOWER);
  near(cct_time_overhead_pct(report.results[0].comparison.effect), 13, 1e-9);
  assert_string_equal(report.results[0].label, "predicted");
}

/* ---- where the cost comes from ---- */

static struct cct_profile *profile_of(const char *name) {
  struct cct_profile *profile = NULL;
  if (cct_profile_load(name, &profile))
    fail_msg("profile %s", name);
  return profile;
}

/* Blocks of a sim run over the source's decode skeleton, bursts of n repetitions; `arms` as conditions. */
static void played(const char *const arms[2], const int n[2]) {
  struct cct_profile *machine = profile_of("b200x8-tdx");
  struct cct_step step = {0};
  char key[4200];
  snprintf(key, sizeof key, "{\"program\":\"%s/examples/decode-skeleton.json\"}", getenv("CCT_SOURCE"));
  struct cct_json *document;
  assert_int_equal(cct_json_parse(key, strlen(key), "key", &document), CCT_OK);
  struct cct_json_at at = cct_json_root(document, "key");
  struct cct_options cell;
  assert_int_equal(cct_cell_from_json(&at, &cell), CCT_OK);
  assert_int_equal(cct_step_build(&cell, &step), CCT_OK);
  for (int arm = 0; arm < 2; arm++) {
    int is_emulated = !strncmp(arms[arm], "emulated:", 9);
    struct cct_profile *emulated = is_emulated ? profile_of(arms[arm] + 9) : NULL;
    int64_t ns;
    assert_int_equal(cct_predict(step.job, machine, emulated, is_emulated ? CCT_ALL_BOUNDARIES : 0, NULL, n[arm], &ns),
                     CCT_OK);
    const double values[] = {(double)ns / 1e3, (double)ns / 1e3};
    for (int round = 0; round < 2; round++) {
      struct cct_block *block = fixture_block(arms[arm], 0, round);
      struct cct_block_metric *metric = fixture_cell(block, key, "predicted", values, 2, 1);
      metric->samples[0].n = metric->samples[1].n = n[arm];
      fixture_fact(block, "sim_machine", CCT_FACT_IDENTITY, "b200x8-tdx");
      fixture_fact(block, "sim_machine_digest", CCT_FACT_IDENTITY, machine->digest);
      if (emulated)
        fixture_fact(block, "emulated_profile_digest", CCT_FACT_CONDITION, emulated->digest);
      add(block);
    }
    cct_profile_free(emulated);
  }
  cct_step_free(&step);
  cct_options_free(&cell);
  cct_json_free(document);
  cct_profile_free(machine);
}

/* What sim alone performed leaves nothing over, however many repetitions its bursts had: hiding differs between them.
 */
static void sim_leaves_no_residual(void **state) {
  (void)state;
  static const int repetitions[][2] = {{1, 1}, {7, 7}, {76, 32}};
  const char *const arms[] = {"off", "emulated:b200x8-tdx"};
  for (size_t i = 0; i < sizeof repetitions / sizeof *repetitions; i++) {
    played(arms, repetitions[i]);
    assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
    const struct cct_attribution *a = &report.results[0].attribution;
    if (!a->is_known)
      fail_msg("%s", a->why_not);
    near(a->residual, 0, 0.005);
    near(a->share[CCT_BOUNDARY_COPIES], 0, 0);
    tear_down(NULL);
    set_up(NULL);
  }
}

static void a_baseline_has_surcharges_too(void **state) {
  (void)state;
  const char *const same[] = {"emulated:b200-tdx", "emulated:b200-tdx"}, *const two[] = {"emulated:b200x8-tdx",
                                                                                         "emulated:b200-tdx"};
  static const int once[] = {1, 1};
  played(two, once); /* 31 us a submission against 12.25 */
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  const struct cct_attribution *a = &report.results[0].attribution;
  if (!a->is_known)
    fail_msg("%s", a->why_not);
  assert_true(a->share[CCT_BOUNDARY_CHANNEL] < -10);
  near(a->residual, 0, 0.005);
  tear_down(NULL);
  set_up(NULL);
  played(same, once);
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  assert_int_equal(report.results[0].attribution.is_known, 0); /* one condition: what differs is noise */
}

/* A confidential machine makes every submission that is performed pay, and not those of the program alone. */
static void submissions_are_attributed_as_performed(void **state) {
  (void)state;
  const char *const arms[] = {"off", "on"};
  static const int once[] = {1, 1};
  const struct cct_cell_counts program = {181, 0, 0, 180}, more = {362, 0, 0, 361};
  double share[2];
  for (int i = 0; i < 2; i++) {
    played(arms, once);
    for (int b = 0; b < runs.n_blocks; b++) {
      runs.blocks[b]->cells[0].program = program;
      runs.blocks[b]->cells[0].performed = i ? more : program;
    }
    assert_int_equal(cct_report_make(&runs, NULL, "b200x8-tdx", &report), CCT_OK);
    const struct cct_attribution *a = &report.results[0].attribution;
    if (!a->is_known)
      fail_msg("%s", a->why_not);
    share[i] = a->share[CCT_BOUNDARY_CHANNEL];
    tear_down(NULL);
    set_up(NULL);
  }
  assert_true(share[0] > 100 && share[1] > 1.9 * share[0]);
}

static const char *remark_of(struct cct_cell_counts off, struct cct_cell_counts on, const char *fact,
                             const char *value) {
  const struct cct_cell_counts program = {20, 1, 16, 13};
  tear_down(NULL);
  set_up(NULL);
  two_arms(0, KEY);
  for (int b = 0; b < runs.n_blocks; b++) {
    int is_on = !strcmp(runs.blocks[b]->head.arm, "on");
    runs.blocks[b]->cells[0].program = program;
    runs.blocks[b]->cells[0].performed = is_on ? on : off;
    if (fact && is_on)
      fixture_fact(runs.blocks[b], fact, CCT_FACT_DRIFT, value);
  }
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  return report.results[0].remark;
}

static void remarks_say_counts_and_marks(void **state) {
  (void)state;
  const struct cct_cell_counts same = {20, 1, 16, 13}, more = {21, 1, 16, 15};
  assert_string_equal(remark_of(same, same, NULL, NULL), "");
  assert_string_equal(remark_of(more, more, NULL, NULL),
                      "a step performed 21 submissions (its program says 20), 15 kernels (its program says 13)");
  assert_string_equal(remark_of(same, more, NULL, NULL),
                      "on: a step performed 21 submissions (its program says 20), 15 kernels (its program says 13)");
  assert_string_equal(remark_of(same, same, "delay.beside", "1.019"), "");
  assert_string_equal(remark_of(same, same, "delay.beside", "1.031"),
                      "on: a delay slows a full GEMM on another lane to x1.031 (bar 1.02) (block 0)");
  assert_non_null(strstr(remark_of(same, same, "delay.beside", "1.004 to 1.031"), "to x1.031 (bar 1.02)"));
  assert_string_equal(remark_of(same, same, "gpu.slowed_by", "0 to 1"), "");
  assert_non_null(strstr(remark_of(same, same, "gpu.slowed_by", "64"), "held down (NVML reasons 64)"));
  assert_non_null(strstr(remark_of(same, same, "gpu.slowed_by", "0 to 64"), "(NVML reasons 0 to 64)"));
  assert_non_null(strstr(remark_of(same, same, "gpu.contexts", "3"), "3 processes used the GPU"));
  struct cct_text table = {0};
  cct_report_to_table(&report, &table);
  assert_non_null(strstr(table.s, "3 processes used the GPU"));
  cct_text_free(&table);
}

static void another_profile_attributes_nothing(void **state) {
  (void)state;
  const char *const arms[] = {"off", "emulated:b200x8-tdx"};
  static const int once[] = {1, 1};
  played(arms, once);
  for (int b = 0; b < runs.n_blocks; b++)
    for (int f = 0; f < runs.blocks[b]->n_facts; f++)
      if (!strcmp(runs.blocks[b]->facts[f].name, "sim_machine_digest"))
        runs.blocks[b]->facts[f].value[0] ^= 1;
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  assert_non_null(strstr(report.results[0].attribution.why_not, "not the one that was played"));
}

static void one_sample_and_one_block(void **state) {
  (void)state;
  for (int arm = 0; arm < 2; arm++) {
    struct cct_block *block = fixture_block(arm ? "on" : "off", arm, 0);
    fixture_steps(block, KEY, "measured", arm ? 117 : 100, 0.5, 20, (uint64_t)arm);
    spoil(block, ONE_SAMPLE);
    add(block);
  }
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
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
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
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
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
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
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
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
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  assert_int_equal(report.n_cells, 2);
  assert_string_equal(report.cells[0].metric.name, "ttft");
  assert_string_equal(report.cells[1].metric.name, "ttft_p99");
  assert_true(report.cells[1].arms[0].units[0].value > report.cells[0].arms[0].units[0].value);
  assert_int_equal(report.cells[0].arms[0].outliers, 0);
  assert_false(report.is_open);
  struct cct_text advice = {0}; /* no profile tells where the time of requests comes from */
  cct_verdict_text(&report, CCT_VERDICT_WHAT_TO_DO, &advice);
  assert_non_null(strstr(advice.s, "run a step of the same settings"));
  assert_null(strstr(advice.s, "--profile"));
  cct_text_free(&advice);
  (void)tear_down(state);
  (void)set_up(state);
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

/* ---- parse-back ---- */

static void json_reads_back(void **state) {
  (void)state;
  two_arms(0, KEY);
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  struct cct_json *document = NULL, *again = NULL;
  struct cct_text text = {0};
  assert_int_equal(cct_report_to_json(&report, "out/index.html", &document), CCT_OK);
  assert_int_equal(cct_json_print(document, &text), CCT_OK);
  assert_int_equal(cct_json_parse(text.s, text.length, "report.json", &again), CCT_OK);
  assert_string_equal(cct_json_string(cct_json_member(again, "tool")), "cctax " CCT_VERSION);
  const struct cct_json *row = cct_json_element(cct_json_member(again, "cells"), 0);
  static const char *const keys[] = {"workload",
                                     "model",
                                     "layout",
                                     "parameters",
                                     "metric",
                                     "unit",
                                     "better",
                                     "factor",
                                     "baseline",
                                     "arm",
                                     "label",
                                     "n",
                                     "blocks",
                                     "boots",
                                     "baseline_median",
                                     "median",
                                     "time_overhead_pct",
                                     "throughput_loss_pct",
                                     "ci95_pct",
                                     "smallest_visible_pct",
                                     "verdict",
                                     "allowed",
                                     "boundaries_pct",
                                     "boundaries_off_pct",
                                     "interaction_pct",
                                     "residual_pct"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (!cct_json_member(row, keys[i]))
      fail_msg("%s is missing", keys[i]);
  double time = cct_json_number(cct_json_member(row, "time_overhead_pct"));
  double ratio =
      cct_json_number(cct_json_member(row, "median")) / cct_json_number(cct_json_member(row, "baseline_median"));
  near(100 * (ratio - 1), time, 1e-6);
  near(cct_json_number(cct_json_member(row, "throughput_loss_pct")), 100 - 100 / ratio, 1e-6);
  const struct cct_json *ci = cct_json_member(row, "ci95_pct");
  assert_true(cct_json_number(cct_json_element(ci, 0)) < time && time < cct_json_number(cct_json_element(ci, 1)));
  assert_int_equal(cct_json_size(cct_json_member(row, "boundaries_pct")), 5);
  assert_int_equal(cct_json_integer(cct_json_member(cct_json_member(row, "parameters"), "batch")), 8);
  assert_string_equal(cct_json_string(cct_json_member(again, "report")), "out/index.html");
  cct_text_free(&text);
  cct_json_free(document);
  cct_json_free(again);
}

static void csv_has_one_width(void **state) {
  (void)state;
  two_arms(0, "{\"layout\":\"tp=8\",\"model\":\"a,\\\"b\\\"\\nc\",\"workload\":\"decode\"}");
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  struct cct_text csv = {0};
  assert_int_equal(cct_report_to_csv(&report, &csv), CCT_OK);
  int columns[2] = {1, 1}, row = 0, is_quoted = 0;
  for (const char *p = csv.s; *p && row < 2; p++) {
    is_quoted ^= *p == '"';
    columns[row] += *p == ',' && !is_quoted;
    row += *p == '\n' && !is_quoted;
  }
  assert_int_equal(row, 2);
  assert_int_equal(columns[0], columns[1]);
  assert_non_null(strstr(csv.s, "\"a,\"\"b\"\"\nc\""));
  cct_text_free(&csv);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(seventeen_per_cent_in_one_boot),
      TEST(seventeen_per_cent_over_boots),
      TEST(higher_is_better_turns_the_sign),
      TEST(slowest_rank_is_the_step),
      TEST(bad_samples_are_refused_by_name),
      TEST(equal_samples_are_no_certainty),
      TEST(predicted_is_exact),
      TEST(sim_leaves_no_residual),
      TEST(a_baseline_has_surcharges_too),
      TEST(submissions_are_attributed_as_performed),
      TEST(remarks_say_counts_and_marks),
      TEST(another_profile_attributes_nothing),
      TEST(one_sample_and_one_block),
      TEST(cells_of_one_arm_only),
      TEST(one_condition_twice_is_a_null),
      TEST(one_block_shows_its_medians),
      TEST(serving_has_tails_and_counts),
      TEST(too_many_arms),
      TEST(json_reads_back),
      TEST(csv_has_one_width),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
