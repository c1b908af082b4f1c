/* SPDX-License-Identifier: Apache-2.0
 * Random small workloads for the scheduler: tight caches, tight budgets, every way of arriving. */
#ifndef CCT_TESTS_SERVING_CASES_H
#define CCT_TESTS_SERVING_CASES_H

#include "workloads/serving/cluster.h"

struct serving_case {
  struct cct_request_plan plan;
  struct cct_engine_plan engine; /* `first` 0 and `together` of the first engine */
};

/* Case number `seed`; its requests are made by cct_requests_make(&plan). Every one can be served. */
void serving_case_make(uint64_t seed, struct serving_case *out);
/* How long step `step` lasts where nothing else says so: from 1 to 40 us, by seed and step. */
int64_t serving_case_step_ns(uint64_t seed, int64_t step);

struct cluster_case {
  struct cct_request_plan plan;
  struct cct_cluster_plan cluster;
};
void cluster_case_make(uint64_t seed, struct cluster_case *out);
/* When a step of engine `engine` that began at `start_ns` lets the next be asked for, and its transfers are done. An
 * empty one takes no time, as in sim. */
struct cct_cluster_clock cluster_case_clock(uint64_t seed, int engine, int64_t step, const struct cct_engine_step *what,
                                            int64_t moved_ns);

#endif
