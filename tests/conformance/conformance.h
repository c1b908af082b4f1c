/* SPDX-License-Identifier: Apache-2.0
 * One suite for every backend. Each process of the world calls it alike; process 0 judges what all gathered. */
#ifndef CCT_TESTS_CONFORMANCE_CONFORMANCE_H
#define CCT_TESTS_CONFORMANCE_CONFORMANCE_H

#include "workloads/backends/backend.h"

struct cct_suite {
  const struct cct_backend_ops *ops;
  struct cct_backend_options options;
  int ranks, first_seed, n_seeds, n_entries, n_tries;
  int64_t unit_ns;
  /* A virtual clock: the law to the nanosecond; else ends that the law puts clearly apart keep their order. */
  int is_exact;
  /* Computing lanes share cores: then, on a real clock, only that nothing ends too early is judged. */
  int has_hostwork;
  int pageable_blocks; /* whatever a copy says (CCT_RANDOM_PAGEABLE_BLOCKS) */
  int n_failed;        /* process 0's verdict */
};

/* The same random jobs complete in the same order as by the law; each verifies without a wrong element. */
void cct_conformance_order(const struct cct_world *world, void *suite);
/* Each surcharge of a profile alone lengthens a step by what the profile says; `unit_ns` is their size. */
void cct_conformance_surcharges(const struct cct_world *world, void *suite);

#endif
