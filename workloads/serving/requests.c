/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/serving/requests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"

enum { /* streams of draws */
  DRAW_INPUT = 1,
  DRAW_OUTPUT,
  DRAW_GAP,
};

/* Mean 1. */
static double gamma_gap(uint64_t seed, double shape) {
  double boosted = shape < 1 ? shape + 1 : shape, d = boosted - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (uint64_t trial = 0;; trial++) {
    double x = cct_random_normal(seed, trial), v = 1 + c * x;
    double u = 1 - cct_random_unit(cct_random_fold(seed, 1), trial);
    v = v * v * v;
    if (v <= 0 || log(u) >= x * x / 2 + d - d * v + d * log(v))
      continue;
    double boost = shape < 1 ? pow(1 - cct_random_unit(cct_random_fold(seed, 2), 0), 1 / shape) : 1;
    return d * v * boost / shape;
  }
}

static int64_t draw_length(uint64_t seed, uint64_t stream, int64_t request, int64_t mean, double ratio) {
  int64_t low = (int64_t)floor((double)mean * (1 - ratio)), high = (int64_t)ceil((double)mean * (1 + ratio));
  if (low < 1)
    low = 1;
  return low + cct_random_below(cct_random_fold(seed, stream), (uint64_t)request, high - low + 1);
}

static void draw(const struct cct_request_plan *plan, struct cct_requests *requests) {
  int is_timed = plan->arrivals == CCT_ARRIVE_STEPS || plan->arrivals == CCT_ARRIVE_SECONDS;
  uint64_t gaps = cct_random_fold(plan->seed, DRAW_GAP);
  double at = 0, unit = plan->arrivals == CCT_ARRIVE_SECONDS ? 1e9 : 1;
  for (int64_t i = 0; i < requests->n; i++) {
    if (is_timed && i)
      at += gamma_gap(cct_random_fold(gaps, (uint64_t)i), plan->burstiness) / plan->rate * unit;
    requests->items[i] = (struct cct_request){
        .arrival = (int64_t)floor(at),
        .input = draw_length(plan->seed, DRAW_INPUT, i, plan->input, plan->range_ratio),
        .output = draw_length(plan->seed, DRAW_OUTPUT, i, plan->output, plan->range_ratio),
    };
  }
}

enum cct_status cct_requests_make(const struct cct_request_plan *plan, struct cct_requests *requests_out) {
  struct cct_requests requests = {.n = plan->n};
  enum cct_status status = CCT_OK;
  if (plan->trace) {
    status = cct_requests_read(plan->trace, plan->arrivals, &requests);
    if (!status && plan->n > requests.n)
      status = cct_fail(CCT_USAGE, "%s: %lld requests, and %lld are asked for", plan->trace, (long long)requests.n,
                        (long long)plan->n);
    if (!status && plan->n)
      requests.n = plan->n;
  } else {
    requests.items = malloc((size_t)plan->n * sizeof *requests.items);
    if (!requests.items)
      return cct_fail(CCT_NOMEM, "out of memory: %lld requests", (long long)plan->n);
    draw(plan, &requests);
    if (requests.items[plan->n - 1].arrival < 0 || requests.items[plan->n - 1].arrival > INT64_MAX / 4)
      status = cct_fail(CCT_USAGE, "--request-rate: %lld requests would come over more time than can be counted",
                        (long long)plan->n);
  }
  if (status) {
    cct_requests_free(&requests);
    return status;
  }
  requests.arrivals = plan->arrivals;
  requests.concurrency = plan->concurrency;
  *requests_out = requests;
  return CCT_OK;
}

void cct_requests_free(struct cct_requests *requests) {
  if (!requests)
    return;
  free(requests->items);
  memset(requests, 0, sizeof *requests);
}
