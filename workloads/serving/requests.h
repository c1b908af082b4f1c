/* SPDX-License-Identifier: Apache-2.0
 * Requests: who asks for how many tokens, and when. The same for every backend, arm and number of processes: a draw is
 * a function of (seed, request).
 *
 * Arrivals. closed: `concurrency` requests at once, the next one comes when one ends (vllm bench serve
 * --max-concurrency). zero: all at the start. steps: request i in step floor(a_i). seconds: at a_i. Without a trace a_0
 * is 0 and a_i = a_(i-1) + a gap from a gamma distribution of shape b (burstiness) and mean 1 / rate, as vllm bench
 * serve draws them (b 1: exponential gaps, a Poisson process; less: bursts), without its later stretching of the whole
 * to a given length. Gamma variates after Marsaglia and Tsang 2000, "A simple method for generating gamma variables".
 *
 * Lengths. Uniform over the integers from floor((1 - r) n) to ceil((1 + r) n), at least 1 (vllm bench serve
 * --random-range-ratio); or those of the trace. */
#ifndef CCT_WORKLOADS_SERVING_REQUESTS_H
#define CCT_WORKLOADS_SERVING_REQUESTS_H

#include <stdint.h>

#include "base/status.h"

enum cct_arrivals {
  CCT_ARRIVE_CLOSED,
  CCT_ARRIVE_ZERO,
  CCT_ARRIVE_STEPS,
  CCT_ARRIVE_SECONDS,
};

struct cct_request {
  int64_t arrival;       /* ns since the start, or a step; never before the request in front of it; 0 where closed */
  int64_t input, output; /* tokens, each at least 1 */
};

struct cct_requests {
  enum cct_arrivals arrivals;
  int64_t concurrency; /* CLOSED */
  struct cct_request *items;
  int64_t n;
};

struct cct_request_plan {
  enum cct_arrivals arrivals;
  int64_t concurrency, n; /* n 0: all of the trace */
  double rate;            /* STEPS, SECONDS without a trace: requests a step, or a second; > 0 */
  double burstiness;
  int64_t input, output;
  double range_ratio; /* 0 to 1 */
  const char *trace;  /* a .csv or .jsonl file; NULL: none */
  uint64_t seed;
};

/* CCT_USAGE for a trace that is not what requests_read.c states, with its line, or with fewer than n requests. */
enum cct_status cct_requests_make(const struct cct_request_plan *plan, struct cct_requests *requests_out) CCT_CHECKED;
void cct_requests_free(struct cct_requests *requests); /* NULL-safe; leaves it zero */

/* ---- requests_read.c ---- */

/* A trace: .csv with a first line that names the columns arrival, input and output in any order; or .jsonl with one
 * object of these three keys a line. Arrivals are seconds or whole steps since the start, never falling; where
 * requests are closed or all at zero they may be left out and do not count. Anything else is CCT_USAGE by FILE:LINE. */
enum cct_status cct_requests_read(const char *path, enum cct_arrivals arrivals,
                                  struct cct_requests *requests_out) CCT_CHECKED;

#endif
