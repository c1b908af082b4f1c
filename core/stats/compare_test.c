/* SPDX-License-Identifier: Apache-2.0
 * Which interval is taken for which blocks, and that it is the closed form of those very numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stats/compare.h"
#include "tests/near.h"

static void rounds_of_one_boot(void **state) {
  (void)state;
  /* Drift common to both arms of a round (0, 1, 2) drops out of the pairs. */
  const struct cct_unit a[] = {{1, 0, 0.0}, {1, 1, 1.0}, {1, 2, 2.0}, {1, 3, 9.0}};
  const struct cct_unit b[] = {{1, 2, 2.3}, {1, 0, 0.1}, {1, 1, 1.2}};
  struct cct_comparison c;
  assert_int_equal(cct_compare(a, 4, b, 3, &c), CCT_OK);
  assert_int_equal(c.design, CCT_DESIGN_ROUNDS);
  assert_true(c.is_within_boot);
  assert_int_equal(c.blocks[0], 3);
  assert_int_equal(c.unpaired, 1);
  near(c.effect, 0.2, 1e-12);
  near(c.se, 0.1 / sqrt(3), 1e-12);
  near(c.df, 2, 0);
  near(c.centre[1] - c.centre[0], c.effect, 1e-12);
}

static void several_boots_with_both_arms(void **state) {
  (void)state;
  const struct cct_unit a[] = {{1, 0, 0}, {1, 1, 0}, {1, 2, 0}, {2, 0, 5}, {2, 1, 5}, {2, 2, 5}};
  const struct cct_unit b[] = {{1, 0, 0.1}, {1, 1, 0.2}, {1, 2, 7}, {2, 0, 5.3}, {2, 1, 5.4}, {2, 2, 5.5}};
  struct cct_comparison c;
  assert_int_equal(cct_compare(a, 6, b, 6, &c), CCT_OK);
  assert_int_equal(c.design, CCT_DESIGN_PAIRED_BOOTS);
  near(c.effect, 0.3, 1e-12); /* the boots' medians 0.2 and 0.4: the wild round does not reach them */
  near(c.df, 1, 0);
  near(c.se, 0.1, 1e-12);
  assert_false(c.is_within_boot);
}

static void boots_apart(void **state) {
  (void)state;
  const struct cct_unit a[] = {{1, 0, 1}, {1, 1, 1}, {2, 0, 2}, {2, 1, 2}, {3, 0, 3}, {3, 1, 3}};
  const struct cct_unit b[] = {{4, 0, 4}, {4, 1, 4}, {5, 0, 6}, {5, 1, 6}, {6, 0, 8}, {6, 1, 8}};
  struct cct_comparison c;
  assert_int_equal(cct_compare(a, 6, b, 6, &c), CCT_OK);
  assert_int_equal(c.design, CCT_DESIGN_BOOTS);
  near(c.effect, 4, 1e-12);
  near(c.se, sqrt(2.5 * 2 / 3), 1e-12);
  near(c.df, 4, 0);
  assert_int_equal(c.boots[0], 3);
  assert_int_equal(c.unpaired, 0);
}

static void one_boot_an_arm(void **state) {
  (void)state;
  const struct cct_unit a[] = {{1, 0, 1}, {1, 1, 2}, {1, 2, 3}}, b[] = {{2, 0, 4}, {2, 1, 6}, {2, 2, 8}};
  struct cct_comparison c;
  assert_int_equal(cct_compare(a, 3, b, 3, &c), CCT_OK);
  assert_int_equal(c.design, CCT_DESIGN_BLOCKS);
  assert_true(c.is_within_boot);
  near(c.effect, 4, 1e-12);
  near(c.df, 4, 0);
  assert_int_equal(cct_compare(a, 1, b, 1, &c), CCT_OK);
  near(c.effect, 3, 1e-12);
  near(c.df, 0, 0); /* one block an arm: a ratio and no interval */
}

static void halves_of_an_arm(void **state) {
  (void)state;
  const struct cct_unit u[] = {{1, 4, 0.3}, {1, 0, 0.0}, {1, 1, 0.1}, {1, 3, 0.2}, {1, 7, 5}};
  struct cct_comparison c;
  assert_int_equal(cct_compare_halves(u, 5, &c), CCT_OK);
  assert_int_equal(c.design, CCT_DESIGN_ROUNDS);
  near(c.effect, 0.1, 1e-12);
  assert_int_equal(c.blocks[0], 2);
  assert_int_equal(cct_compare_halves(u, 1, &c), CCT_OK);
  near(c.df, 0, 0);
}

static void one_arm_alone(void **state) {
  (void)state;
  const struct cct_unit one[] = {{1, 0, 1}, {1, 1, 2}, {1, 2, 6}};
  const struct cct_unit several[] = {{2, 0, 5}, {1, 0, 1}, {1, 1, 2}, {1, 2, 9}, {2, 1, 7}};
  struct cct_interval estimate;
  assert_int_equal(cct_estimate(one, 3, &estimate), CCT_OK);
  near(estimate.estimate, 3, 1e-12);
  near(estimate.se, sqrt(7.0 / 3), 1e-12);
  near(estimate.df, 2, 0);
  assert_int_equal(cct_estimate(several, 5, &estimate), CCT_OK);
  near(estimate.estimate, 4, 1e-12); /* of the boots' medians 2 and 6 */
  near(estimate.se, 2, 1e-12);
  near(estimate.df, 1, 0);
  assert_int_equal(cct_estimate(one, 1, &estimate), CCT_OK);
  near(estimate.df, 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_arm_alone),
      cmocka_unit_test(rounds_of_one_boot),
      cmocka_unit_test(several_boots_with_both_arms),
      cmocka_unit_test(boots_apart),
      cmocka_unit_test(one_boot_an_arm),
      cmocka_unit_test(halves_of_an_arm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
