/* SPDX-License-Identifier: Apache-2.0
 * Closed forms: values a textbook's table gives, and the power of the smallest visible effect by drawing it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "stats/stats.h"
#include "tests/near.h"

static void medians(void **state) {
  (void)state;
  double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};
  near(cct_median(odd, 3), 2, 0);
  near(cct_median(even, 4), 2.5, 0);
  near(cct_median(one, 1), 7, 0);
  double sorted[] = {5, 1, 2, 4, 3};
  cct_sort(sorted, 5);
  near(cct_quantile(sorted, 5, 0.25), 2, 0);
  near(cct_quantile(sorted, 5, 0.90), 4.6, 1e-12);
}

static void mean_interval(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4, 5};
  struct cct_interval t = cct_interval_mean(x, 5); /* t(0.975, 4) = 2.776445, se = sqrt(2.5 / 5) */
  near(t.estimate, 3, 0);
  near(t.se, sqrt(0.5), 1e-12);
  near(t.hi - 3, 2.776445 * sqrt(0.5), 1e-6);
  near(3 - t.lo, 2.776445 * sqrt(0.5), 1e-6);
  near(cct_interval_mean(x, 1).df, 0, 0);
}

static void difference_interval(void **state) {
  (void)state;
  const double a[] = {1, 2, 3}, b[] = {4, 6, 8}; /* pooled variance (2 + 8) / 4 = 2.5; t(0.975, 4) */
  struct cct_interval t = cct_interval_difference(a, 3, b, 3);
  near(t.estimate, 4, 1e-12);
  near(t.df, 4, 0);
  near(t.hi - t.lo, 2 * 2.776445 * sqrt(2.5 * 2 / 3), 1e-5);
  t = cct_interval_difference(a, 1, b, 3); /* one value tells nothing of the spread: the other arm's two degrees */
  near(t.df, 2, 0);
  near(t.se, sqrt(4.0 * (1 + 1.0 / 3)), 1e-12);
  near(cct_interval_difference(a, 1, b, 1).df, 0, 0);
}

/* By drawing: a t statistic of mean `delta` and se 1 must leave its bounds in 80 % of cases. */
static void smallest_visible(void **state) {
  (void)state;
  near(cct_smallest_visible(1, 1e6), 1.959964 + 0.841621, 1e-3); /* the normal law's two quantiles */
  near(cct_smallest_visible(0, 4), 0, 0);
  assert_true(isnan(cct_smallest_visible(1, 0)));
  const int dfs[] = {2, 4, 8, 18, 120};
  const double critical[] = {4.302653, 2.776445, 2.306004, 2.100922, 1.979930};
  for (int k = 0; k < 5; k++) {
    double delta = cct_smallest_visible(1, dfs[k]);
    int seen = 0, draws = 40000;
    uint64_t seed = cct_random_fold(7, (uint64_t)k), counter = 0;
    for (int i = 0; i < draws; i++) {
      double z = delta + cct_random_normal(seed, counter++), squares = 0;
      for (int j = 0; j < dfs[k]; j++) {
        double g = cct_random_normal(seed, counter++);
        squares += g * g;
      }
      seen += fabs(z) > critical[k] * sqrt(squares / dfs[k]);
    }
    near((double)seen / draws, CCT_POWER, 0.007);
  }
}

static void outliers_and_drift(void **state) {
  (void)state;
  double scratch[12];
  const double calm[] = {10, 11, 9, 10.5, 9.5, 10, 10.2}, wild[] = {10, 11, 9, 10.5, 9.5, 10, 31.5};
  const double equal[] = {5, 5, 5, 5, 5, 9};
  assert_int_equal(cct_count_outliers(calm, 7, scratch), 0);
  assert_int_equal(cct_count_outliers(wild, 7, scratch), 1);
  assert_int_equal(cct_count_outliers(equal, 6, scratch), 0);
  const double falling[] = {12, 12, 12, 11, 10, 10, 10, 10, 10};
  near(cct_drift(falling, 9, scratch), log(10.0 / 12.0), 1e-12);
  assert_true(isnan(cct_drift(falling, 5, scratch)));
}

/* Against the closed forms of Draper and Smith (1998), chapter 1, for equal weights; and exact on an exact line. */
/* The binomial sums by hand: 9 values, ranks 2 and 8: 1 - 2 (1 + 9) / 512. */
static void ordered_interval(void **state) {
  (void)state;
  double nine[] = {9, 1, 8, 2, 7, 3, 6, 4, 5}, four[] = {4, 3, 2, 1}, one[] = {7};
  struct cct_ordered o = cct_interval_ordered(nine, 9);
  assert_true(o.rank == 2 && o.lo == 2 && o.hi == 8 && o.median == 5);
  assert_float_equal(o.coverage, 1 - 20.0 / 512, 1e-12);
  o = cct_interval_ordered(four, 4); /* none covers enough: the outermost */
  assert_true(o.rank == 1 && o.lo == 1 && o.hi == 4 && o.median == 2.5);
  assert_float_equal(o.coverage, 1 - 2.0 / 16, 1e-12);
  o = cct_interval_ordered(one, 1);
  assert_true(o.rank == 1 && o.lo == 7 && o.hi == 7 && o.n == 1);
  o = cct_interval_ordered(NULL, 0);
  assert_true(o.n == 0 && isnan(o.median) && isnan(o.lo));
}

static void lines(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4, 5}, y[] = {2, 4, 5, 4, 5}, same[] = {1, 1, 1, 1, 1};
  struct cct_line line = cct_fit_line(x, y, same, 5); /* slope 0.6, intercept 2.2, residual squares 2.4 */
  near(line.slope.estimate, 0.6, 1e-12);
  near(line.intercept.estimate, 2.2, 1e-12);
  near(line.slope.se, sqrt(2.4 / 3 / 10), 1e-12);
  near(line.intercept.se, sqrt(2.4 / 3 * (1.0 / 5 + 9.0 / 10)), 1e-12);
  near(line.slope.hi - 0.6, 3.182446 * line.slope.se, 1e-5); /* t(0.975, 3) */
  near(line.worst, 0.8 / 2, 1e-12);
  const double exact[] = {5, 7, 9, 11, 13}, weights[] = {1, 1e-3, 5, 1e3, 2};
  line = cct_fit_line(x, exact, weights, 5);
  near(line.slope.estimate, 2, 1e-9);
  near(line.intercept.estimate, 3, 1e-9);
  near(cct_fit_line(x, exact, weights, 2).slope.df, 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(medians),
      cmocka_unit_test(ordered_interval),
      cmocka_unit_test(mean_interval),
      cmocka_unit_test(difference_interval),
      cmocka_unit_test(lines),
      cmocka_unit_test(smallest_visible),
      cmocka_unit_test(outliers_and_drift),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
