/* SPDX-License-Identifier: Apache-2.0
 * What a report attributes a cost to: boundaries by a profile, and what a remark says a step performed. */
#include <stdio.h>
#include <stdlib.h>

#include "report/report_made_test.h"
#include "workloads/backends/predict.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

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
    make();
    const struct cct_attribution *a = &report.results[0].attribution;
    if (!a->is_known)
      fail_msg("%s", a->why_not);
    near(a->residual, 0, 0.005);
    near(a->share[CCT_BOUNDARY_COPIES], 0, 0);
    start_again();
  }
}

static void a_baseline_has_surcharges_too(void **state) {
  (void)state;
  const char *const same[] = {"emulated:b200-tdx", "emulated:b200-tdx"}, *const two[] = {"emulated:b200x8-tdx",
                                                                                         "emulated:b200-tdx"};
  static const int once[] = {1, 1};
  played(two, once); /* 31 us a submission against 12.25 */
  make();
  const struct cct_attribution *a = &report.results[0].attribution;
  if (!a->is_known)
    fail_msg("%s", a->why_not);
  assert_true(a->share[CCT_BOUNDARY_CHANNEL] < -10);
  near(a->residual, 0, 0.005);
  start_again();
  played(same, once);
  make();
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
    start_again();
  }
  assert_true(share[0] > 100 && share[1] > 1.9 * share[0]);
}

static const char *remark_of(struct cct_cell_counts off, struct cct_cell_counts on, const char *fact,
                             const char *value) {
  const struct cct_cell_counts program = {20, 1, 16, 13};
  start_again();
  two_arms(0, KEY);
  for (int b = 0; b < runs.n_blocks; b++) {
    int is_on = !strcmp(runs.blocks[b]->head.arm, "on");
    runs.blocks[b]->cells[0].program = program;
    runs.blocks[b]->cells[0].performed = is_on ? on : off;
    if (fact && is_on)
      fixture_fact(runs.blocks[b], fact, CCT_FACT_DRIFT, value);
  }
  make();
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
  make();
  assert_non_null(strstr(report.results[0].attribution.why_not, "not the one that was played"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(sim_leaves_no_residual),
      TEST(a_baseline_has_surcharges_too),
      TEST(submissions_are_attributed_as_performed),
      TEST(remarks_say_counts_and_marks),
      TEST(another_profile_attributes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
