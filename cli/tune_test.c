/* SPDX-License-Identifier: Apache-2.0
 * Choosing, judging, merging and weighing on data whose truth is known: how often pure noise becomes a rule, whether
 * true gains are found, that no rule covers a size that was not shown; and on the grid that was measured on two H200s.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>

#include "base/random.h"
#include "cli/tune.h"
#include "record/record.h"
#include "workloads/program/program.h"

enum {
  PROCESSES = 9,
  CHOICES = 7
};

/* ---- noise ---- */

static uint64_t counter;
static double uniform(void) {
  return ((double)(cct_random_u64(7, counter++) >> 11) + 0.5) * 0x1p-53;
}
static double normal(void) {
  return sqrt(-2 * log(uniform())) * cos(2 * 3.141592653589793 * uniform());
}
/* A process's median: lognormal, and now and then far off, as processes on real machines are. */
static double noisy(double us, double spread, double outliers) {
  return us * exp(spread * normal()) * (uniform() < outliers ? 1 + 3 * uniform() : 1);
}

/* How often of `trials` sizes a rule comes about, and how often it is choice `wanted`, where choice c takes truth[c]
 * us. */
static double rate(const double *truth, double spread, double outliers, int trials, int wanted, double *wanted_out) {
  double us[CHOICES * PROCESSES];
  int n = 0, right = 0;
  for (int t = 0; t < trials; t++) {
    for (int c = 0; c < CHOICES; c++)
      for (int p = 0; p < PROCESSES; p++)
        us[c * PROCESSES + p] = noisy(truth[c], spread, outliers);
    const struct cct_tune_grid grid = {us, 1, CHOICES, PROCESSES};
    struct cct_tune_pick pick;
    cct_tune_choose(&grid, 0, CHOICES, &pick);
    n += pick.choice != 0;
    right += pick.choice == wanted;
  }
  if (wanted_out)
    *wanted_out = (double)right / trials;
  return (double)n / trials;
}

/* Four judges all below 1 by chance: 1/16, however large the noise and however many choices were chosen from. */
static void noise_becomes_no_rule(void **state) {
  (void)state;
  static const double equal[CHOICES] = {10, 10, 10, 10, 10, 10, 10}, worse[CHOICES] = {10, 10.3, 10.3, 11, 12, 13, 14};
  static const struct {
    const double *truth;
    double spread, outliers, most;
  } rows[] = {{equal, 0.003, 0, 0.001},
              {equal, 0.01, 0.02, 0.07},
              {equal, 0.03, 0.02, 0.07},
              {equal, 0.2, 0.1, 0.07},
              {worse, 0.01, 0.02, 0.005}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double is = rate(rows[i].truth, rows[i].spread, rows[i].outliers, 4000, -1, NULL);
    if (is > rows[i].most)
      fail_msg("noise of %g: %.4f of sizes got a rule, at most %.4f", rows[i].spread, is, rows[i].most);
  }
}

static void true_gains_are_found(void **state) {
  (void)state;
  static const double five[CHOICES] = {10, 10, 10.5, 9.5, 11, 10.2, 12}, two[CHOICES] = {10, 10, 9.8, 10, 10, 10, 10};
  double right;
  assert_true(rate(five, 0.005, 0, 2000, 3, &right) > 0.999);
  assert_true(right > 0.999);
  (void)rate(five, 0.01, 0, 2000, 3, &right);
  assert_true(right > 0.98);
  (void)rate(five, 0.01, 0.02, 2000, 3, &right); /* an outlier among the judges keeps the default: never slower */
  assert_true(right > 0.85);
  (void)rate(two, 0.003, 0, 2000, 2, &right);
  assert_true(right > 0.98);
}

/* ---- choosing and judging, by hand ---- */

static void fill(double *us, double value) {
  for (int p = 0; p < PROCESSES; p++)
    us[p] = value;
}

static void judges_decide_and_choosers_do_not_judge(void **state) {
  (void)state;
  double us[2 * PROCESSES];
  const struct cct_tune_grid grid = {us, 1, 2, PROCESSES};
  struct cct_tune_pick pick;
  fill(us, 10);
  fill(us + PROCESSES, 9);
  cct_tune_choose(&grid, 0, 2, &pick);
  assert_true(pick.choice == 1 && pick.judged.n == 4 && pick.judged.rank == 1);
  us[PROCESSES + 3] = 10.01; /* one of the judges */
  cct_tune_choose(&grid, 0, 2, &pick);
  assert_true(pick.candidate == 1 && pick.choice == 0);
  us[PROCESSES + 3] = NAN; /* a judge that could not measure it */
  cct_tune_choose(&grid, 0, 2, &pick);
  assert_true(pick.candidate == 1 && pick.choice == 0);
  us[PROCESSES + 3] = 9;
  us[PROCESSES + 2] = 12; /* one of five choosers */
  cct_tune_choose(&grid, 0, 2, &pick);
  assert_int_equal(pick.choice, 1);
  us[PROCESSES + 2] = NAN; /* left out of the later processes: nobody may choose it */
  cct_tune_choose(&grid, 0, 2, &pick);
  assert_int_equal(pick.candidate, 0);
  fill(us + PROCESSES, 9.95); /* not worth a rule */
  cct_tune_choose(&grid, 0, 2, &pick);
  assert_int_equal(pick.candidate, 0);
}

static void neighbours_keep_together_where_it_costs_nothing(void **state) {
  (void)state;
  double us[3 * 3 * PROCESSES];
  static const double truth[3][3] = {{10, 8, 8.5}, {20, 16.1, 16}, {40, 36, 30}};
  for (int s = 0; s < 3; s++)
    for (int c = 0; c < 3; c++)
      fill(us + (s * 3 + c) * PROCESSES, truth[s][c]);
  const struct cct_tune_grid grid = {us, 3, 3, PROCESSES};
  struct cct_tune_pick picks[3];
  cct_tune_choose(&grid, 0, 3, picks);
  assert_int_equal(picks[0].choice, 1);
  assert_int_equal(picks[1].choice, 1); /* 0.6 % slower than choice 2 */
  assert_int_equal(picks[2].choice, 2);
}

static void only_what_all_found_hopeless_is_left_out(void **state) {
  (void)state;
  double us[2 * PROCESSES];
  const struct cct_tune_grid grid = {us, 1, 2, PROCESSES};
  fill(us, 10);
  fill(us + PROCESSES, 13.1);
  assert_true(cct_tune_is_hopeless(&grid, 0, 1, 0));
  us[PROCESSES + 1] = 12.9;
  assert_false(cct_tune_is_hopeless(&grid, 0, 1, 0));
  us[PROCESSES] = us[PROCESSES + 1] = NAN; /* refused */
  assert_true(cct_tune_is_hopeless(&grid, 0, 1, 0));
}

/* ---- merging ---- */

static void a_rule_covers_what_was_shown_and_nothing_else(void **state) {
  (void)state;
  enum {
    SIZES = 12
  };
  for (int t = 0; t < 3000; t++) {
    struct cct_tune_pick picks[SIZES] = {0};
    struct cct_tune_range ranges[SIZES];
    int64_t bytes[SIZES], at = 256 + (int64_t)(uniform() * 1000);
    for (int s = 0; s < SIZES; s++) {
      picks[s].choice = (int)(uniform() * 3);
      bytes[s] = at;
      at += 1 + (int64_t)(uniform() * (double)at);
    }
    int n = cct_tune_merge(picks, bytes, SIZES, 0, ranges);
    for (int i = 0; i < n; i++) {
      assert_true(ranges[i].min_bytes <= ranges[i].max_bytes && ranges[i].choice != 0);
      assert_true(ranges[i].min_bytes >= bytes[0] && ranges[i].max_bytes <= bytes[SIZES - 1]);
      if (i && ranges[i].first == ranges[i - 1].last + 1) { /* they meet halfway */
        assert_true(ranges[i].choice != ranges[i - 1].choice);
        assert_int_equal(ranges[i].min_bytes, ranges[i - 1].max_bytes + 1);
        assert_int_equal(ranges[i - 1].max_bytes, (bytes[ranges[i].first - 1] + bytes[ranges[i].first]) / 2);
      }
      assert_true(!i || ranges[i].min_bytes > ranges[i - 1].max_bytes);
    }
    for (int s = 0; s < SIZES; s++) {
      int covered = 0;
      for (int i = 0; i < n; i++)
        if (ranges[i].min_bytes <= bytes[s] && bytes[s] <= ranges[i].max_bytes)
          covered = ranges[i].choice;
      assert_int_equal(covered, picks[s].choice);
    }
  }
}

/* ---- channels ---- */

static void put_choices(struct cct_tune_plan *plan) {
  static const char *const words[][2] = {{"", ""},       {"ring", "ll"},    {"ring", "ll128"}, {"ring", "simple"},
                                         {"tree", "ll"}, {"tree", "ll128"}, {"tree", "simple"}};
  plan->each = 7;
  for (int c = 0; c < plan->n_channels; c++)
    for (int i = 0; i < plan->each; i++) {
      struct cct_tune_choice *choice = &plan->choices[plan->n_choices++];
      *choice = (struct cct_tune_choice){.channels = c};
      snprintf(choice->algorithm, sizeof choice->algorithm, "%s", words[i][0]);
      snprintf(choice->protocol, sizeof choice->protocol, "%s", words[i][1]);
    }
}

/* Two sizes, two numbers of channels; times of NCCL's own choices, and beside a GEMM. */
static int channels_taken(const char *objective, double small, double large, double beside, char why[160]) {
  static const double plain[2] = {10, 1000};
  struct cct_tune_plan plan = {.kinds = {CCT_COLL_ALL_REDUCE},
                               .bytes = {1 << 10, 64 << 20},
                               .beside = {64 << 20},
                               .channels = {0, 32},
                               .n_kinds = 1,
                               .n_bytes = 2,
                               .n_beside = 1,
                               .n_channels = 2,
                               .ranks = 2,
                               .type = "fp32",
                               .rounds = PROCESSES};
  struct cct_tune_data data;
  struct cct_tune_decision decision;
  snprintf(plan.objective, sizeof plan.objective, "%s", objective);
  put_choices(&plan);
  assert_int_equal(cct_tune_data_new(&plan, PROCESSES, &data), CCT_OK);
  for (int p = 0; p < PROCESSES; p++) {
    for (int s = 0; s < 2; s++)
      for (int c = 0; c < 2; c++)
        data.alone[0][(s * plan.n_choices + c * plan.each) * PROCESSES + p] =
            noisy(plain[s] * (c ? s ? large : small : 1), 0.002, 0);
    for (int c = 0; c < 2; c++)
      data.beside[0][c * PROCESSES + p] = noisy(2000 * (c ? beside : 1), 0.002, 0);
  }
  assert_int_equal(cct_tune_decide(&plan, &data, &decision), CCT_OK);
  int taken = decision.channels;
  assert_int_equal(decision.n_left_out, 0);
  snprintf(why, 160, "%s", decision.settings[1].why_not);
  cct_tune_decision_free(&decision);
  cct_tune_data_free(&data);
  return taken;
}

static void channels_are_taken_where_all_agree(void **state) {
  (void)state;
  static const struct {
    const char *objective;
    double small, large, beside;
    int taken;
    const char *why;
  } rows[] = {
      {"latency", 1, 0.85, 1, 1, ""},
      {"latency", 1, 0.85, 1.05, 0, "beside a GEMM it is slower, by 5."},
      {"latency", 1.05, 0.8, 1, 0, "it makes all_reduce of 1 KiB slower, by 5."},
      {"latency", 1, 1, 0.8, 0, "the judges do not show it better under objective latency"},
      {"bandwidth", 1.05, 0.85, 1.05, 1, ""},
      {"bandwidth", 0.5, 1, 1, 0, "the judges do not show it better under objective bandwidth"},
      {"overlap", 1.2, 1.2, 0.95, 1, ""},
      {"overlap", 0.8, 0.8, 1.01, 0, "the judges do not show it better under objective overlap"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char why[160];
    int taken = channels_taken(rows[i].objective, rows[i].small, rows[i].large, rows[i].beside, why);
    if (taken != rows[i].taken || !strstr(why, rows[i].why) || (!*rows[i].why && *why))
      fail_msg("%s, row %zu: taken %d, '%s'", rows[i].objective, i, taken, why);
  }
}

/* ---- what ran ---- */

static void what_ran_otherwise_is_no_measurement(void **state) {
  (void)state;
  static const struct {
    int choice;
    const char *ran;
    int is_asked;
  } rows[] = {{0, "RING SIMPLE 24 channels, 4096 B", 1}, {2, "RING LL128 24 channels, 4096 B", 1},
              {2, "RING LL 24 channels, 4096 B", 0},     {4, "TREE LL 1 channels, 4096 B", 1},
              {4, "RING LL 1 channels, 4096 B", 0},      {4, "", 1}};
  struct cct_tune_plan plan = {.channels = {0}, .n_channels = 1};
  put_choices(&plan);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_block_cell cell = {.state = CCT_CELL_DONE};
    snprintf(cell.reason, sizeof cell.reason, "%s", rows[i].ran);
    assert_int_equal(cct_tune_is_as_asked(&plan, rows[i].choice, &cell), rows[i].is_asked);
  }
}

static void a_process_is_the_median_of_its_bursts(void **state) {
  (void)state;
  struct cct_sample samples[] = {{.rank = 0, .index = 0, .value = 10}, {.rank = 0, .index = 1, .value = 50},
                                 {.rank = 0, .index = 2, .value = 12}, {.rank = 1, .index = 0, .value = 12},
                                 {.rank = 1, .index = 1, .value = 60}, {.rank = 1, .index = 2, .value = 14}};
  struct cct_block_metric metric = {.samples = samples, .n_samples = 6};
  struct cct_block_cell cell = {.state = CCT_CELL_DONE, .metrics = &metric, .n_metrics = 1};
  assert_float_equal(cct_tune_cell_us(&cell), 13, 1e-12); /* means over ranks: 11, 55, 13 */
  cell.state = CCT_CELL_FAILED;
  assert_true(isnan(cct_tune_cell_us(&cell)));
  cell = (struct cct_block_cell){.state = CCT_CELL_DONE};
  assert_true(isnan(cct_tune_cell_us(&cell)));
}

/* ---- verdict ---- */

static void the_bars_are_what_they_say(void **state) {
  (void)state;
  struct cct_tune_plan plan = {.n_kinds = 1, .n_bytes = 2};
  struct cct_tune_held first[2] = {0}, again[2] = {0};
  struct cct_tune_decision decision = {.grid_gain = 0.9};
  struct cct_tune_verdict v = {.first = first, .again = again};
  struct cct_tune_cells missed;
  const struct cct_ordered better = {.median = 0.9, .lo = 0.89, .hi = 0.91, .n = 9, .rank = 2},
                           slower = {.median = 1.03, .lo = 1.021, .hi = 1.05, .n = 9, .rank = 2},
                           less = {.median = 0.92, .lo = 0.9, .hi = 0.93, .n = 9, .rank = 2};
  first[0].ratio = first[1].ratio = better;
  cct_tune_judge(&plan, &decision, &v);
  assert_true(v.is_held && fabs(v.gain - 0.9) < 1e-9);
  first[0].ratio = first[1].ratio = less; /* 79 % of the gain */
  cct_tune_judge(&plan, &decision, &v);
  assert_true(!v.is_held && !v.is_gain_held && !v.n_still);
  decision.grid_gain = 0.98;
  first[1].ratio = slower;
  cct_tune_judge(&plan, &decision, &v);
  cct_tune_missed(&plan, &v, &missed);
  assert_true(missed.n == 1 && missed.is_in[0][1] && !missed.is_in[0][0]);
  assert_true(!v.is_held && v.n_missed == 1 && v.n_still == 1);
  again[1].ratio = less; /* one more measurement */
  cct_tune_judge(&plan, &decision, &v);
  assert_true(v.is_held && v.n_missed == 1 && v.n_still == 0);
  v.n_failed = 1; /* a wrong element is no success */
  cct_tune_judge(&plan, &decision, &v);
  assert_false(v.is_held);
  v.n_failed = 0;
  first[0].ratio = (struct cct_ordered){.n = 0};
  cct_tune_judge(&plan, &decision, &v);
  assert_false(v.is_held);
}

/* ---- the grid of two H200s ---- */

static int index_in(const struct cct_tune_plan *plan, const char *operation, const char *choice, const char *channels,
                    long bytes, int *kind_out, int *size_out) {
  static const char *const operations[] = {"all_reduce", "all_gather", "reduce_scatter"};
  int c = !strcmp(channels, "32"), at = -1;
  *kind_out = *size_out = -1;
  for (int k = 0; k < 3; k++)
    if (!strcmp(operation, operations[k]))
      *kind_out = k;
  for (int s = 0; s < plan->n_bytes; s++)
    if (plan->bytes[s] == bytes)
      *size_out = s;
  for (int i = 1; i < plan->each; i++) {
    char name[40];
    snprintf(name, sizeof name, "%s:%s", plan->choices[i].algorithm, plan->choices[i].protocol);
    if (!strcasecmp(name, choice))
      at = i;
  }
  if (at < 0)
    at = 0;
  return c * plan->each + at;
}

/* Five processes were measured; they play nine in turn, so that choosers and judges are not independent here: what is
 * held is the whole path on real times, not its error rates. */
static void read_grid(const struct cct_tune_plan *plan, struct cct_tune_data *data) {
  char path[4096], line[512], operation[32], choice[32], channels[16];
  snprintf(path, sizeof path, "%s/tests/data/h200x2/nccl-tests-graph-grid.tsv", getenv("CCT_SOURCE"));
  FILE *file = fopen(path, "r");
  int rows = 0;
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    double us[5];
    long bytes;
    int kind, size;
    if (sscanf(line, "%31s %31[^\t] %15s %ld %lf %lf %lf %lf %lf", operation, choice, channels, &bytes, &us[0], &us[1],
               &us[2], &us[3], &us[4]) != 9)
      continue;
    int at = index_in(plan, operation, choice, channels, bytes, &kind, &size);
    assert_true(kind >= 0 && size >= 0);
    for (int p = 0; p < PROCESSES; p++)
      data->alone[kind][(size * plan->n_choices + at) * PROCESSES + p] = us[p % 5];
    rows++;
  }
  fclose(file);
  assert_true(rows >= 290);
}

static void the_measured_grid_gives_its_rules(void **state) {
  (void)state;
  struct cct_tune *tune = calloc(1, sizeof *tune);
  struct cct_rule rules[64];
  char text[CCT_RULE_TEXT], all[4096] = "";
  tune->plan = (struct cct_tune_plan){.kinds = {CCT_COLL_ALL_REDUCE, CCT_COLL_ALL_GATHER, CCT_COLL_REDUCE_SCATTER},
                                      .channels = {0, 32},
                                      .n_kinds = 3,
                                      .n_bytes = 10,
                                      .n_channels = 2,
                                      .ranks = 2,
                                      .type = "fp32",
                                      .rounds = PROCESSES,
                                      .objective = "bandwidth"};
  for (int s = 0; s < 10; s++)
    tune->plan.bytes[s] = (int64_t)1024 << 2 * s;
  put_choices(&tune->plan);
  assert_int_equal(cct_tune_data_new(&tune->plan, PROCESSES, &tune->data), CCT_OK);
  read_grid(&tune->plan, &tune->data);
  strcpy(tune->data.gpu, "NVIDIA H200");
  strcpy(tune->data.condition, "off");
  assert_int_equal(cct_tune_decide(&tune->plan, &tune->data, &tune->decision), CCT_OK);
  /* What the grid itself says: Simple where LL128 is faster at 4 MiB, and 32 channels from 1 MiB on. */
  assert_int_equal(tune->decision.channels, 1);
  assert_true(tune->decision.settings[1].gain.median < 0.96 && tune->decision.grid_gain < 0.95);
  tune->decision.channels = 0;
  int n = cct_tune_rules(tune, rules);
  for (int i = 0; i < n; i++) {
    strcat(all, cct_rule_text(&rules[i], text));
    strcat(all, "\n");
    assert_int_not_equal(rules[i].collective, CCT_TUNER_REDUCESCATTER); /* 24.90 against 24.99 us */
  }
  assert_non_null(strstr(all, "allreduce,2621441,10485760,ring,ll128,-1,1,2,1,-1,no-multicast,NVIDIA H200\n"));
  assert_non_null(strstr(all, "allgather,2621441,10485760,ring,ll128,-1,1,2,1,-1,no-multicast,NVIDIA H200\n"));
  tune->decision.channels = 1;
  n = cct_tune_rules(tune, rules);
  assert_int_equal(n, 3);
  for (int i = 0; i < n; i++)
    assert_true(rules[i].min_bytes == 2621441 && rules[i].protocol == CCT_TUNER_LL128);
  cct_tune_decision_free(&tune->decision);
  cct_tune_data_free(&tune->data);
  free(tune);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(noise_becomes_no_rule),
      cmocka_unit_test(true_gains_are_found),
      cmocka_unit_test(judges_decide_and_choosers_do_not_judge),
      cmocka_unit_test(neighbours_keep_together_where_it_costs_nothing),
      cmocka_unit_test(only_what_all_found_hopeless_is_left_out),
      cmocka_unit_test(a_rule_covers_what_was_shown_and_nothing_else),
      cmocka_unit_test(channels_are_taken_where_all_agree),
      cmocka_unit_test(what_ran_otherwise_is_no_measurement),
      cmocka_unit_test(a_process_is_the_median_of_its_bursts),
      cmocka_unit_test(the_bars_are_what_they_say),
      cmocka_unit_test(the_measured_grid_gives_its_rules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
