/* SPDX-License-Identifier: Apache-2.0
 * What a run of requests comes to, in vllm bench serve's words. Times are ns since the start.
 *
 * A request arrives at a: at its time (seconds), when the step that it entered in front of begins (steps), at 0 (zero,
 * and the first of closed), or when the tokens of the step that made room for it became known (closed). Its tokens come
 * when those of their step become known, t_1 first, t_k last, n of them:
 *   TTFT = t_1 - a    E2E = t_k - a    TPOT = (t_k - t_1) / (n - 1), of n > 1
 *   ITL  = from one step that made tokens of it to the next; with drafts accepted, between groups of tokens
 * Over all replicas, D the time of the last token: output tok/s = sum of n / D, total tok/s = sum of (input + n) / D,
 * request/s = requests / D, goodput = requests within every limit of the SLO / D. */
#ifndef CCT_WORKLOADS_SERVING_METRICS_H
#define CCT_WORKLOADS_SERVING_METRICS_H

#include "workloads/serving/engine.h"

struct cct_request_times {
  int64_t arrival_ns, first_ns, last_ns; /* first_ns -1: not served by this engine */
};
struct cct_gap { /* n times in one step of one replica: so long after the request's tokens before */
  int64_t at_ns, gap_ns, n;
  int64_t replica;
};
struct cct_serve_times {
  struct cct_request_times *requests; /* by request */
  struct cct_gap *gaps;               /* in the order of time for each replica; equal ones of a step counted together */
  int64_t n_gaps;
};

/* begin_ns and known_ns: by step of the engine, when it began and when its tokens became known. */
enum cct_status cct_serve_times(const struct cct_requests *requests, const struct cct_history *history,
                                int64_t replicas, const int64_t *begin_ns, const int64_t *known_ns,
                                struct cct_serve_times *times_out) CCT_CHECKED;
void cct_serve_times_free(struct cct_serve_times *times); /* NULL-safe; leaves it zero */

struct cct_slo { /* ns; 0: no limit */
  int64_t ttft_ns, tpot_ns, e2e_ns;
};
/* "ttft=200ms,tpot=50ms,e2e=20s"; units us, ms, s; at least one, each once. */
enum cct_status cct_slo_parse(const char *text, struct cct_slo *slo_out) CCT_CHECKED;
int cct_slo_is_kept(const struct cct_slo *slo, const struct cct_request *request,
                    const struct cct_request_times *times);

#endif
