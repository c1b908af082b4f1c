/* SPDX-License-Identifier: Apache-2.0
 * Choosing, judging, merging and weighing on data whose truth is known: how often pure noise becomes a rule, whether
 * true gains are found, that no rule covers a size that was not shown, which sizes are held. */
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
    cct_tune_choose(&grid, 0, NULL, &pick);
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
  cct_tune_choose(&grid, 0, NULL, &pick);
  assert_true(pick.choice == 1 && pick.judged.n == 4 && pick.judged.rank == 1);
  us[PROCESSES + 3] = 10.01; /* one of the judges */
  cct_tune_choose(&grid, 0, NULL, &pick);
  assert_true(pick.candidate == 1 && pick.choice == 0);
  us[PROCESSES + 3] = NAN; /* a judge that could not measure it */
  cct_tune_choose(&grid, 0, NULL, &pick);
  assert_true(pick.candidate == 1 && pick.choice == 0);
  us[PROCESSES + 3] = 9;
  us[PROCESSES + 2] = 12; /* one of five choosers */
  cct_tune_choose(&grid, 0, NULL, &pick);
  assert_int_equal(pick.choice, 1);
  us[PROCESSES + 2] = NAN; /* left out of the later processes: nobody may choose it */
  cct_tune_choose(&grid, 0, NULL, &pick);
  assert_int_equal(pick.candidate, 0);
  fill(us + PROCESSES, 9.95); /* not worth a rule */
  cct_tune_choose(&grid, 0, NULL, &pick);
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
  cct_tune_choose(&grid, 0, NULL, picks);
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
      picks[s].choice = (int)(uniform() * 5); /* 3 and 4 are another choice by the same rule, and with fewer channels */
      picks[s].rule = (struct cct_tune_ran){picks[s].choice == 3 ? 2 : picks[s].choice, 1, 24 * (picks[s].choice == 4)};
      bytes[s] = at;
      at += 1 + (int64_t)(uniform() * (double)at);
    }
    int n = cct_tune_merge(picks, bytes, SIZES, 0, ranges);
    for (int i = 0; i < n; i++) {
      assert_true(ranges[i].min_bytes <= ranges[i].max_bytes);
      assert_true(ranges[i].min_bytes >= bytes[0] && ranges[i].max_bytes <= bytes[SIZES - 1]);
      if (i && ranges[i].first == ranges[i - 1].last + 1) { /* they meet halfway */
        assert_false(cct_tune_is_same(&ranges[i].rule, &ranges[i - 1].rule));
        assert_int_equal(ranges[i].min_bytes, ranges[i - 1].max_bytes + 1);
        assert_int_equal(ranges[i - 1].max_bytes, (bytes[ranges[i].first - 1] + bytes[ranges[i].first]) / 2);
      }
      assert_true(!i || ranges[i].min_bytes > ranges[i - 1].max_bytes);
    }
    for (int s = 0; s < SIZES; s++) {
      const struct cct_tune_ran *covered = NULL;
      for (int i = 0; i < n; i++)
        if (ranges[i].min_bytes <= bytes[s] && bytes[s] <= ranges[i].max_bytes)
          covered = &ranges[i].rule;
      assert_true(!covered == !picks[s].choice && (!covered || cct_tune_is_same(covered, &picks[s].rule)));
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

struct channels_case {
  const char *objective;
  double small, large, beside; /* what 32 channels take, of NCCL's own time */
  const char *ran, *ran_32;    /* at the small size */
  int taken;
  const char *why;
  struct cct_tune_ran held; /* the rule of the small size; channels 0: none */
};

/* Two sizes, two numbers of channels; times of NCCL's own choices, and beside a GEMM. */
static void weigh_channels(const struct channels_case *row, struct cct_tune_decision *decision_out) {
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
  snprintf(plan.objective, sizeof plan.objective, "%s", row->objective);
  put_choices(&plan);
  assert_int_equal(cct_tune_data_new(&plan, PROCESSES, &data), CCT_OK);
  for (int p = 0; p < PROCESSES; p++) {
    for (int s = 0; s < 2; s++)
      for (int c = 0; c < 2; c++)
        data.alone[0][(s * plan.n_choices + c * plan.each) * PROCESSES + p] =
            noisy(plain[s] * (c ? s ? row->large : row->small : 1), 0.002, 0);
    for (int c = 0; c < 2; c++)
      data.beside[0][c * PROCESSES + p] = noisy(2000 * (c ? row->beside : 1), 0.002, 0);
  }
  data.ran[0][0] = cct_tune_ran_parse(row->ran);
  data.ran[0][plan.each] = cct_tune_ran_parse(row->ran_32);
  data.ran[0][plan.n_choices] = cct_tune_ran_parse("RING SIMPLE 24 channels");
  assert_int_equal(cct_tune_decide(&plan, &data, decision_out), CCT_OK);
  cct_tune_data_free(&data);
}

/* A number of channels without times: it was never asked for, or not everywhere. */
static void what_is_missing_is_said(void **state) {
  (void)state;
  static const struct {
    const char *backend, *why;
    int is_usable;
  } rows[] = {{"cuda", "not every process measured NCCL's own choices with it", 1},
              {"sim", "not played: profile h200 has no row of all_reduce with 32 channels", 0},
              {"host", "not measured: backend host sets no channels", 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_tune_decision decision;
    struct cct_tune_data data;
    struct cct_tune_plan plan = {.kinds = {CCT_COLL_ALL_REDUCE},
                                 .bytes = {1024},
                                 .channels = {0, 32},
                                 .n_kinds = 1,
                                 .n_bytes = 1,
                                 .n_channels = 2,
                                 .ranks = 2,
                                 .type = "fp32",
                                 .rounds = PROCESSES,
                                 .objective = "latency",
                                 .profile = "h200"};
    snprintf(plan.backend, sizeof plan.backend, "%s", rows[i].backend);
    put_choices(&plan);
    memset(plan.is_usable[0], 1, sizeof plan.is_usable[0]);
    plan.is_usable[0][plan.each] = (char)rows[i].is_usable;
    assert_int_equal(cct_tune_data_new(&plan, PROCESSES, &data), CCT_OK);
    for (int p = 0; p < PROCESSES; p++)
      data.alone[0][p] = 10;
    data.alone[0][plan.each * PROCESSES] = 10; /* one of the processes */
    assert_int_equal(cct_tune_decide(&plan, &data, &decision), CCT_OK);
    assert_string_equal(decision.settings[1].why_not, rows[i].why);
    cct_tune_decision_free(&decision);
    cct_tune_data_free(&data);
  }
}

static void channels_are_taken_where_all_agree(void **state) {
  (void)state;
#define LL  "RING LL 8 channels, 1024 B"
#define LLS "RING LL 32 channels, 1024 B"
  static const char slower[] = "it makes all_reduce of 1 KiB slower, by ";
  static const struct channels_case rows[] = {
      {"latency", 1, 0.85, 1, "", "", 1, "", {0}},
      {"latency", 1, 0.85, 1.05, LL, LLS, 0, "beside a GEMM it is slower, by 5.", {0}},
      {"latency", 1, 1, 0.8, "", "", 0, "the judges do not show it better under objective latency", {0}},
      /* slower: held to what the default ran as, where NCCL said it and a rule can say it */
      {"latency", 1.05, 0.8, 1, "", "", 0, slower, {0}},
      {"latency", 1.05, 0.8, 1, LL, LLS, 1, "", {CCT_TUNER_RING, CCT_TUNER_LL, 8}},
      {"latency", 1.05, 0.8, 1, LL, "", 1, "", {CCT_TUNER_RING, CCT_TUNER_LL, 8}},
      {"latency", 1.05, 0.8, 1, "TREE LL 2 channels, 1024 B", LLS, 1, "", {CCT_TUNER_TREE, CCT_TUNER_LL, 2}},
      {"latency", 1.05, 0.8, 1, "NVLS SIMPLE 16 channels, 1024 B", LLS, 0, slower, {0}},
      {"latency", 1.05, 0.8, 1, "RING LL 40 channels, 1024 B", LLS, 0, slower, {0}},
      /* the 16 are 24 that NCCL lowers itself where buffers are registered */
      {"latency", 1.05, 0.8, 1, "RING SIMPLE 16 channels", LLS, 1, "", {CCT_TUNER_RING, CCT_TUNER_SIMPLE, 24}},
      /* both ran the same: noise, which the verification sees again */
      {"latency", 1.05, 0.8, 1, LL, LL, 1, "", {0}},
      {"bandwidth", 1.05, 0.85, 1.05, "", "", 1, "", {0}},
      {"bandwidth", 0.5, 1, 1, "", "", 0, "the judges do not show it better under objective bandwidth", {0}},
      {"overlap", 1.2, 1.2, 0.95, "", "", 1, "", {0}},
      {"overlap", 0.8, 0.8, 1.01, LL, LLS, 0, "the judges do not show it better under objective overlap", {0}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_tune_decision decision;
    weigh_channels(&rows[i], &decision);
    const struct cct_tune_setting *setting = &decision.settings[1];
    const struct cct_tune_pick *pick = &setting->picks[0][0];
    assert_int_equal(decision.n_left_out, 0);
    if (decision.channels != rows[i].taken || !strstr(setting->why_not, rows[i].why) ||
        (!*rows[i].why && *setting->why_not))
      fail_msg("%s, row %zu: taken %d, '%s'", rows[i].objective, i, decision.channels, setting->why_not);
    if (rows[i].held.channels && (!pick->is_held || setting->n_held != 1 || pick->choice ||
                                  !cct_tune_is_same(&pick->rule, &rows[i].held) || setting->shown[0][0].hi != 1))
      fail_msg("row %zu: held %d by %d %d %d", i, pick->is_held, pick->rule.algorithm, pick->rule.protocol,
               pick->rule.channels);
    if (!rows[i].held.channels && setting->n_held)
      fail_msg("row %zu: %d sizes are held", i, setting->n_held);
    cct_tune_decision_free(&decision);
  }
}

/* ---- what ran ---- */

static void what_ran_otherwise_is_no_measurement(void **state) {
  (void)state;
  static const struct {
    int choice;
    const char *ran;
    int channels, is_asked;
  } rows[] = {{0, "RING SIMPLE 24 channels, 4096 B", 24, 1}, {2, "RING LL128 24 channels, 4096 B", 24, 1},
              {2, "RING LL 24 channels, 4096 B", 24, 0},     {4, "TREE LL 1 channels, 4096 B", 1, 1},
              {4, "RING LL 1 channels, 4096 B", 1, 0},       {4, "", 0, 1},
              {4, "RING NEW 1 channels, 4096 B", 0, 1}};
  struct cct_tune_plan plan = {.channels = {0}, .n_channels = 1};
  put_choices(&plan);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_tune_ran ran = cct_tune_ran_parse(rows[i].ran);
    assert_int_equal(ran.channels, rows[i].channels);
    assert_int_equal(cct_tune_is_as_asked(&plan, rows[i].choice, &ran), rows[i].is_asked);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(noise_becomes_no_rule),
      cmocka_unit_test(true_gains_are_found),
      cmocka_unit_test(judges_decide_and_choosers_do_not_judge),
      cmocka_unit_test(neighbours_keep_together_where_it_costs_nothing),
      cmocka_unit_test(only_what_all_found_hopeless_is_left_out),
      cmocka_unit_test(a_rule_covers_what_was_shown_and_nothing_else),
      cmocka_unit_test(channels_are_taken_where_all_agree),
      cmocka_unit_test(what_is_missing_is_said),
      cmocka_unit_test(what_ran_otherwise_is_no_measurement),
      cmocka_unit_test(a_process_is_the_median_of_its_bursts),
      cmocka_unit_test(the_bars_are_what_they_say),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
