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

struct cct_request_times { /* -1: not known to this engine; first_ns -1: not served by it */
  int64_t arrival_ns, first_ns, last_ns;
  int64_t moved_ns; /* its cache was on the replica that generates */
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

struct cct_step_times { /* by step of the engine */
  const int64_t *begin_ns;
  const int64_t *known_ns; /* its tokens became known */
  const int64_t *moved_ns; /* its transfers were done; NULL: it has none */
};

/* before: of all requests, what the replicas of their prompts know; NULL: this engine reads them itself. */
enum cct_status cct_serve_times(const struct cct_requests *requests, const struct cct_history *history,
                                int64_t replicas, const struct cct_step_times *steps,
                                const struct cct_request_times *before, struct cct_serve_times *times_out) CCT_CHECKED;
/* Adds what an engine knows of n requests to what others do, at first -1. Any order. */
void cct_serve_join(struct cct_request_times *all, const struct cct_request_times *one, int64_t n);
/* CLOSED, prompts and generation apart, all joined: a request arrives when that which made room for it has ended.
 * room_requests: of all requests. */
void cct_serve_arrive(struct cct_request_times *all, const int64_t *room_requests, int64_t n);
void cct_serve_times_free(struct cct_serve_times *times); /* NULL-safe; leaves it zero */

struct cct_slo { /* ns; 0: no limit */
  int64_t ttft_ns, tpot_ns, e2e_ns;
};
/* "ttft=200ms,tpot=50ms,e2e=20s"; units us, ms, s; at least one, each once. */
enum cct_status cct_slo_parse(const char *text, struct cct_slo *slo_out) CCT_CHECKED;
int cct_slo_is_kept(const struct cct_slo *slo, const struct cct_request *request,
                    const struct cct_request_times *times);

#endif
