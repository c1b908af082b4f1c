/* SPDX-License-Identifier: Apache-2.0
 * A random job of all kinds of entries that any backend can perform: its time is in DELAY and HOSTWORK, in multiples of
 * `unit_ns`, so that a real backend's order can be told from noise. */
#ifndef CCT_TESTS_CONFORMANCE_RANDOM_JOB_H
#define CCT_TESTS_CONFORMANCE_RANDOM_JOB_H

#include "workloads/program/program.h"

enum cct_random_allow { /* bits */
  CCT_RANDOM_HOSTWORK = 1,
  /* Broadcasts, and rings that send one way: by the law all members start together, but who only sends through a real
   * library has its data taken and goes on. */
  CCT_RANDOM_ONE_WAY = 2,
  /* Every pageable copy holds its host lane, as real drivers do whatever was asked for. */
  CCT_RANDOM_PAGEABLE_BLOCKS = 4,
  /* Entries in CASEs of slot 0, values 0 and 1. */
  CCT_RANDOM_CASES = 8,
};

/* Every rank has a program of its own: one skeleton for all, other times in each. */
struct cct_job *cct_random_job(uint64_t seed, int ranks, int n_entries, int64_t unit_ns, unsigned allow);

#endif
