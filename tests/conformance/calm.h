/* SPDX-License-Identifier: Apache-2.0
 * How far the machine left an attempt alone. What a scheduler delays says nothing about a backend, so sizes and orders
 * are judged by attempts that it did not delay. */
#ifndef CCT_TESTS_CONFORMANCE_CALM_H
#define CCT_TESTS_CONFORMANCE_CALM_H

#include "base/world.h"

#define CCT_MOST_THREADS 128

/* For how long each thread of this process stood ready without a core so far, and the machine without its host's; where
 * the kernel does not tell, a thread that was put aside counts a second. */
struct cct_calm {
  struct {
    int id;
    int64_t waited_ns;
  } threads[CCT_MOST_THREADS];
  int n;
  int64_t stolen_ns;
};

void cct_calm_begin(struct cct_calm *calm);
/* The longest that a thread of any process waited since then, and what was stolen; collective. */
int64_t cct_calm_end(const struct cct_world *world, const struct cct_calm *begun);
/* 1 while process 0's clock has not reached `end_ns`; collective. */
int cct_is_before(const struct cct_world *world, int64_t end_ns);

#endif
