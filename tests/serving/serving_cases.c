/* SPDX-License-Identifier: Apache-2.0 */
#include "serving_cases.h"

#include "base/random.h"

static int64_t pick(uint64_t seed, uint64_t *counter, int64_t low, int64_t high) {
  return low + cct_random_below(seed, (*counter)++, high - low + 1);
}

void serving_case_make(uint64_t seed, struct serving_case *out) {
  uint64_t k = 0;
  int64_t replicas = pick(seed, &k, 1, 4), input = pick(seed, &k, 1, 120), output = pick(seed, &k, 1, 40);
  double ratio = (double)pick(seed, &k, 0, 4) / 4;
  int64_t longest = 2 * (input + output) + 12 /* two times the drafts */,
          needed = (longest + CCT_BLOCK_TOKENS - 1) / CCT_BLOCK_TOKENS;
  struct cct_request_plan plan = {
      .arrivals = (enum cct_arrivals)pick(seed, &k, 0, 3),
      .concurrency = pick(seed, &k, replicas, 24),
      .n = pick(seed, &k, 1, 40),
      .burstiness = (double)pick(seed, &k, 1, 8) / 4,
      .input = input,
      .output = output,
      .range_ratio = ratio,
      .seed = seed,
  };
  plan.rate = plan.arrivals == CCT_ARRIVE_STEPS ? (double)pick(seed, &k, 1, 30) / 10
                                                : 1e4 * (double)pick(seed, &k, 1, 40); /* steps last about 20 us */
  struct cct_limits limits = {
      .tokens = pick(seed, &k, 1, 200),
      .sequences = pick(seed, &k, 1, 12),
      .blocks = needed + pick(seed, &k, 0, 3) * pick(seed, &k, 0, 10),
      .is_chunked = (int)pick(seed, &k, 0, 3) > 0,
      .is_offload = (int)pick(seed, &k, 0, 1),
      .lag = (int)pick(seed, &k, 0, 1),
      .drafts = pick(seed, &k, 0, 1) * pick(seed, &k, 1, 5),
      .acceptance = (double)pick(seed, &k, 0, 10) / 10,
      .seed = seed,
  };
  if (!limits.is_chunked)
    limits.tokens += longest;
  int64_t together = pick(seed, &k, 0, 1) ? replicas : 1;
  *out = (struct serving_case){plan, {.limits = limits, .replicas = replicas, .first = 0, .together = together}};
}

void cluster_case_make(uint64_t seed, struct cluster_case *out) {
  struct serving_case c;
  uint64_t k = 1000;
  serving_case_make(seed, &c);
  out->plan = c.plan;
  out->cluster = (struct cct_cluster_plan){.limits = c.engine.limits,
                                           .prefills = pick(seed, &k, 1, 3),
                                           .decodes = pick(seed, &k, 1, 3),
                                           .is_staged = (int)pick(seed, &k, 0, 1)};
  if (out->plan.concurrency < out->cluster.prefills)
    out->plan.concurrency = out->cluster.prefills;
}

struct cct_cluster_clock cluster_case_clock(uint64_t seed, int engine, int64_t step, const struct cct_engine_step *what,
                                            int64_t moved_ns) {
  uint64_t own = cct_random_fold(seed, (uint64_t)engine);
  int64_t takes_ns = what->is_empty ? 0 : serving_case_step_ns(own, step);
  int64_t moves_ns = what->batches->n_moves ? 3 * serving_case_step_ns(own + 1, step) : 0;
  int64_t done_ns = what->start_ns + moves_ns;
  return (struct cct_cluster_clock){what->start_ns + takes_ns, done_ns > moved_ns ? done_ns : moved_ns};
}

int64_t serving_case_step_ns(uint64_t seed, int64_t step) {
  return 1000 + cct_random_below(cct_random_fold(seed, 77), (uint64_t)step, 40000);
}
