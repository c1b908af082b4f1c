/* SPDX-License-Identifier: Apache-2.0
 * What the tests of steps share: cells from words, steps, counts. */
#ifndef CCT_WORKLOADS_STEPS_STEP_FIXTURE_H
#define CCT_WORKLOADS_STEPS_STEP_FIXTURE_H

#include "workloads/program/counts.h"
#include "workloads/steps/workload.h"

/* qwen3-8b: matrices a token multiplies with, without embedding; per layer and as a whole. */
enum {
  H = 4096,
  L = 36,
  QKV = 6144,
  FFN = 12288,
  V = 151936,
  HEADS = 32 * 128
};
static const double layer_matrices = (double)H * QKV + (double)HEADS * H + 3.0 * H * FFN;

/* A cell of "key value" words; aborts on a word that is none. */
struct cct_options cct_fixture_cell(const char *words);
enum cct_status cct_fixture_build(const char *words, struct cct_step *step_out);
/* Counts of rank 0's step as it is bound by default; `tokens_out` may be NULL. */
struct cct_counts cct_fixture_count(const char *words, int64_t *tokens_out);
int cct_fixture_is_same(double is, double should); /* but for rounding */
/* For the test that includes cmocka. */
#define cct_fixture_same(is, should, what)                                                                             \
  do {                                                                                                                 \
    double same_is = (is), same_should = (should);                                                                     \
    if (!cct_fixture_is_same(same_is, same_should))                                                                    \
      fail_msg("%s: %.17g, not %.17g", what, same_is, same_should);                                                    \
  } while (0)

#endif
