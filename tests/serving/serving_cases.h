/* SPDX-License-Identifier: Apache-2.0
 * Random small workloads for the scheduler: tight caches, tight budgets, every way of arriving. */
#ifndef CCT_TESTS_SERVING_CASES_H
#define CCT_TESTS_SERVING_CASES_H

#include "workloads/serving/engine.h"

struct serving_case {
  struct cct_request_plan plan;
  struct cct_engine_plan engine; /* `first` 0 and `together` of the first engine */
};

/* Case number `seed`; its requests are made by cct_requests_make(&plan). Every one can be served. */
void serving_case_make(uint64_t seed, struct serving_case *out);
/* How long step `step` lasts where nothing else says so: from 1 to 40 us, by seed and step. */
int64_t serving_case_step_ns(uint64_t seed, int64_t step);

#endif
