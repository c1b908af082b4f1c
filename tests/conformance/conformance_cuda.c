/* SPDX-License-Identifier: Apache-2.0
 * The CUDA backend against the suite without a GPU: over the twin, its ranks as threads of one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conformance/conformance.h"
#include "fakes/twin_gpu.h"
#include "fakes/world_threads.h"

struct cct_log_room;
const struct cct_backend_ops *cctax_cuda_ops(const struct cct_log_room *room);

static int n_unjudged;

static struct cct_suite suite_of(int ranks) {
  return (struct cct_suite){.ops = cctax_cuda_ops(NULL),
                            .options = {.deadline_ns = 20000000000, .is_traced = 1},
                            .ranks = ranks,
                            .first_seed = 100 * ranks,
                            .n_entries = 14,
                            .budget_ns = 1000000000,
                            .pageable_blocks = 1,
                            .unit_ns = 3000000,
                            .early_ns = 2500000};
}

static void order_of(int ranks, int n_seeds, int has_hostwork, int is_sequence) {
  struct cct_suite suite = suite_of(ranks);
  suite.is_sequence = is_sequence;
  if (is_sequence) { /* of more holds in a row */
    suite.unit_ns = 5000000;
    suite.early_ns = 4000000;
  }
  suite.n_seeds = n_seeds;
  suite.has_hostwork = has_hostwork;
#ifdef __SANITIZE_THREAD__
  suite.has_hostwork = 1; /* too slow for an order by milliseconds */
#endif
  assert_int_equal(cct_world_threads(ranks, cct_conformance_order, &suite), 0);
  assert_int_equal(suite.n_failed, 0);
  n_unjudged += suite.n_unjudged;
}

static void one_rank(void **state) {
  (void)state;
  order_of(1, 10, 0, 0);
}

static void two_ranks(void **state) {
  (void)state;
  order_of(2, 6, 0, 0);
}

static void computing_hosts(void **state) {
  (void)state;
  order_of(1, 4, 1, 0);
}

/* Steps with bindings of their own, of which each leaves other entries out. */
static void sequences(void **state) {
  (void)state;
  order_of(1, 5, 0, 1);
  order_of(2, 4, 0, 1);
  order_of(1, 3, 1, 1);
}

/* What a block of an emulated arm says of its delays; products of 20 ms, which no neighbour on these cores hides. */
static double beside_of(double slowed) {
  static const struct cct_profile any;
  const struct cct_backend_options options = {.emulated = &any, .deadline_ns = 20000000000};
  const struct cct_backend_ops *ops = cctax_cuda_ops(NULL);
  struct cct_backend *backend = NULL;
  struct cct_fact facts[64];
  double found = 0;
  twin_slow_products(20000000, slowed);
  assert_int_equal(ops->open(cct_world_self(), &options, &backend), CCT_OK);
  twin_slow_products(0, 1);
  int n = ops->facts(backend, facts, 64);
  for (int i = 0; i < n; i++)
    if (!strcmp(facts[i].name, "delay.beside") && !strcmp(facts[i].fact_class, "drift"))
      found = strtod(facts[i].value, NULL);
  ops->close(backend);
  return found;
}

static void delays_that_slow_other_lanes_are_told(void **state) {
  (void)state;
  double alone = beside_of(1), slowed = beside_of(2);
  if (!(alone > 0.6 && alone < 1.4 && slowed > 1.4 && slowed < 2.8))
    fail_msg("x%.3f beside a delay, x%.3f where it slows to x2", alone, slowed);
}

static void surcharges(void **state) {
  (void)state;
#ifdef __SANITIZE_THREAD__
  skip(); /* every copy is slowed beyond what a surcharge could be told from */
#endif
  for (int ranks = 1; ranks <= 2; ranks++) {
    struct cct_suite suite = suite_of(ranks);
    suite.options.is_traced = 0;
    suite.budget_ns = 500000000;
    assert_int_equal(cct_world_threads(ranks, cct_conformance_surcharges, &suite), 0);
    assert_int_equal(suite.n_failed, 0);
    n_unjudged += suite.n_unjudged;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_rank),        cmocka_unit_test(two_ranks),
      cmocka_unit_test(computing_hosts), cmocka_unit_test(sequences),
      cmocka_unit_test(surcharges),      cmocka_unit_test(delays_that_slow_other_lanes_are_told),
  };
  int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (n_unjudged && !n_failed)
    printf("skipped: %d jobs and surcharges could not be judged, since other processes kept the cores\n", n_unjudged);
  return n_failed ? n_failed : n_unjudged ? 77 : 0;
}
