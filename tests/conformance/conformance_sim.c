/* SPDX-License-Identifier: Apache-2.0
 * sim against the suite: the law to the nanosecond, with its ranks in one process and in several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "conformance/conformance.h"
#include "fakes/world_threads.h"

extern const struct cct_backend_ops cct_backend_sim;
static struct cct_profile *machine;

static int load_machine(void **state) {
  (void)state;
  return cct_profile_load("h200", &machine);
}

static int free_machine(void **state) {
  (void)state;
  cct_profile_free(machine);
  return 0;
}

static void law_of(int ranks, int processes, int n_seeds, int is_sequence) {
  struct cct_suite suite = {.ops = &cct_backend_sim,
                            .options = {.machine = machine, .has_multicast = 1},
                            .ranks = ranks,
                            .first_seed = 1000 * ranks,
                            .n_seeds = n_seeds,
                            .n_entries = 24,
                            .unit_ns = 5000,
                            .is_sequence = is_sequence,
                            .is_exact = 1};
  assert_int_equal(cct_world_threads(processes, cct_conformance_order, &suite), 0);
  assert_int_equal(suite.n_failed, 0);
}

static void one_process(void **state) {
  (void)state;
  for (int ranks = 1; ranks <= 8; ranks++)
    law_of(ranks, 1, 40, 0);
}

static void several_processes(void **state) {
  (void)state;
  law_of(4, 2, 20, 0);
  law_of(6, 3, 20, 0);
  law_of(8, 8, 10, 0);
}

static void sequences(void **state) {
  (void)state;
  for (int ranks = 1; ranks <= 8; ranks++)
    law_of(ranks, 1, 20, 1);
  law_of(6, 3, 20, 1);
}

static void surcharges(void **state) {
  (void)state;
  struct cct_suite suite = {
      .ops = &cct_backend_sim, .options = {.has_multicast = 1}, .ranks = 2, .unit_ns = 31000, .is_exact = 1};
  assert_int_equal(cct_world_threads(1, cct_conformance_surcharges, &suite), 0);
  assert_int_equal(cct_world_threads(2, cct_conformance_surcharges, &suite), 0);
  assert_int_equal(suite.n_failed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_process), cmocka_unit_test(several_processes),
                                     cmocka_unit_test(sequences), cmocka_unit_test(surcharges)};
  return cmocka_run_group_tests(tests, load_machine, free_machine);
}
