/* SPDX-License-Identifier: Apache-2.0
 * The host backend against the suite, its ranks as threads of one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "conformance/conformance.h"
#include "fakes/world_threads.h"

extern const struct cct_backend_ops cct_backend_host;
static int n_unjudged;

static void order_of(int ranks, int n_seeds, int has_hostwork, int is_sequence) {
  struct cct_suite suite = {.ops = &cct_backend_host,
                            .options = {.has_multicast = 1, .scale = 1, .deadline_ns = 20000000000},
                            .ranks = ranks,
                            .first_seed = 100 * ranks,
                            .n_seeds = n_seeds,
                            .n_entries = 14,
                            .budget_ns = 1000000000,
                            .has_hostwork = has_hostwork,
                            .is_sequence = is_sequence,
                            .unit_ns = 1000000};
  assert_int_equal(cct_world_threads(ranks, cct_conformance_order, &suite), 0);
  assert_int_equal(suite.n_failed, 0);
  n_unjudged += suite.n_unjudged;
}

static void one_rank(void **state) {
  (void)state;
  order_of(1, 8, 0, 0);
}

static void two_ranks(void **state) {
  (void)state;
  order_of(2, 6, 0, 0);
}

static void three_ranks(void **state) {
  (void)state;
  order_of(3, 4, 0, 0);
}

static void computing_hosts(void **state) {
  (void)state;
  order_of(1, 4, 1, 0);
  order_of(2, 4, 1, 0);
}

static void four_ranks(void **state) {
  (void)state;
  order_of(4, 4, 0, 0);
}

/* Steps with bindings of their own, of which each leaves other entries out. */
static void sequences(void **state) {
  (void)state;
  order_of(1, 5, 0, 1);
  order_of(2, 4, 0, 1);
  order_of(3, 2, 1, 1);
}

static void surcharges(void **state) {
  (void)state;
#ifdef __SANITIZE_THREAD__
  skip(); /* every copy is slowed beyond what a surcharge could be told from */
#endif
  struct cct_suite suite = {.ops = &cct_backend_host,
                            .options = {.has_multicast = 1, .scale = 1, .deadline_ns = 20000000000},
                            .budget_ns = 500000000,
                            .unit_ns = 1000000};
  for (suite.ranks = 1; suite.ranks <= 2; suite.ranks++)
    assert_int_equal(cct_world_threads(suite.ranks, cct_conformance_surcharges, &suite), 0);
  assert_int_equal(suite.n_failed, 0);
  n_unjudged += suite.n_unjudged;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_rank),        cmocka_unit_test(two_ranks),
                                     cmocka_unit_test(three_ranks),     cmocka_unit_test(four_ranks),
                                     cmocka_unit_test(computing_hosts), cmocka_unit_test(sequences),
                                     cmocka_unit_test(surcharges)};
  int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (n_unjudged && !n_failed)
    printf("skipped: %d jobs and surcharges could not be judged, since other processes kept the cores\n", n_unjudged);
  return n_failed ? n_failed : n_unjudged ? 77 : 0;
}
