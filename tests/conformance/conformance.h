/* SPDX-License-Identifier: Apache-2.0
 * One suite for every backend. Each process of the world calls it alike; process 0 judges what all gathered. */
#ifndef CCT_TESTS_CONFORMANCE_CONFORMANCE_H
#define CCT_TESTS_CONFORMANCE_CONFORMANCE_H

#include "workloads/backends/backend.h"

struct cct_suite {
  const struct cct_backend_ops *ops;
  struct cct_backend_options options;
  int ranks, first_seed, n_seeds, n_entries;
  int64_t unit_ns;
  /* What holds a lane may be short by so much in all: a backend that takes its own kernel's cost off a DELAY is, where
   * that cost was measured on a machine more loaded than it is now. */
  int64_t early_ns;
  /* A virtual clock: the law to the nanosecond, in one attempt. Else nothing may end before the law lets it, in any
   * attempt; and ends that the law puts clearly apart keep their order, surcharges have their size, in attempts that
   * the machine left alone (calm.h), of which `budget_ns` bounds the search for one job or surcharge. */
  int is_exact;
  int64_t budget_ns;
  /* Computing lanes share cores: then, on a real clock, only that nothing ends too early is judged. */
  int has_hostwork;
  int is_sequence;     /* of steps whose bindings choose between cases, instead of a burst */
  int pageable_blocks; /* whatever a copy says (CCT_RANDOM_PAGEABLE_BLOCKS) */
  int n_failed;        /* process 0's verdict */
  int n_unjudged;      /* and what it could not judge, since nothing was ever left alone: to be skipped, not passed */
};

/* The same random jobs complete in the same order as by the law; each verifies without a wrong element. */
void cct_conformance_order(const struct cct_world *world, void *suite);
/* Each surcharge of a profile alone lengthens a step by what the profile says; `unit_ns` is their size. */
void cct_conformance_surcharges(const struct cct_world *world, void *suite);

#endif
