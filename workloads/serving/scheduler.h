/* SPDX-License-Identifier: Apache-2.0
 * The scheduler of one replica, as vLLM V1's (vllm/v1/core/sched/scheduler.py): which requests work on how many tokens
 * in a step. It knows no clock: the same requests entered in front of the same steps give the same batches.
 *
 * A request has `input` prompt tokens, has generated g of `output`, and has computed c of its n = input + g tokens (the
 * cache holds these). It decodes when g > 0 and n - c = 1. The cache is of `blocks` blocks of 16 tokens.
 *
 * One step:
 * 1. Blocks of requests that ended in step s - 1 - lag come back (lag 1: the host learns tokens one step late).
 * 2. Running requests, in the order of their admission, while there is budget (`tokens`): one wants n - c tokens, and K
 *    drafts when it decodes; it gets what the budget leaves of that. Where its cache would grow over the free blocks,
 *    the request that was admitted last is pre-empted, until it fits or is itself pre-empted, which ends this part.
 * 3. Unless something was pre-empted in this step, waiting requests are admitted in their order, while there is budget
 *    and fewer than `sequences` run: one wants n - c (and drafts) and gets what the budget leaves. The first that does
 * not fit into the free blocks, or, without chunked prefill, wants more than the budget, ends the step.
 * 4. A request whose tokens are now all computed emits 1 + a tokens: a drafts are accepted before the first that is
 * not. The draft of output position p is accepted when the draw of (seed, request, p) is below `acceptance`. With g =
 *    output it has ended and runs no more.
 *
 * Drafts beyond the output are computed and dropped: steps stay uniform. With lag 1, as in vLLM's asynchronous
 * scheduler, what the step before accepts is not known when a step is made up: blocks are taken as if all its drafts
 * had been accepted, and kept; and a request that ends by an accepted draft, which was not sure, runs once more as if
 * it had not, and emits nothing. Its blocks come back as if it had not run. Where it is pre-empted in that step they
 * are free at once, and it is gone.
 *
 * With generation on other replicas (stage). PREFILL: a request ends with its first token. Unless that is its only one
 * its blocks stay until cct_scheduler_release(). DECODE: a request comes by cct_scheduler_hand(), with g = 1 and its
 * c = input tokens in another replica's cache. In part 3 those whose transfer is done are admitted first, in the order
 * in which they were handed. At the end, unless something pre-empted waits or a transfer is under way, the next one's
 * begins, if those that run and those whose transfer is done are fewer than `sequences` and the free blocks hold its
 * input and its first want, which are taken. What was pre-empted computes everything itself.
 *
 * Pre-emption: the request goes to the front of the waiting ones. Recompute: c = 0 and its blocks are free at once.
 * Offload: its blocks are copied to the host and free at once; c stays, and its blocks are copied back when it is
 * admitted again. The host holds any number. */
#ifndef CCT_WORKLOADS_SERVING_SCHEDULER_H
#define CCT_WORKLOADS_SERVING_SCHEDULER_H

#include "workloads/serving/requests.h"

#define CCT_BLOCK_TOKENS 16

enum cct_stage { /* what a replica does of a request */
  CCT_STAGE_WHOLE,
  CCT_STAGE_PREFILL, /* its prompt and first token */
  CCT_STAGE_DECODE,  /* the rest */
};

struct cct_limits {
  int64_t tokens, sequences; /* of a step; running at once */
  int64_t blocks;            /* of the cache */
  int is_chunked, is_offload;
  int lag; /* 0 or 1 */
  int64_t drafts;
  double acceptance;
  uint64_t seed;
  enum cct_stage stage;
};

struct cct_member { /* a request's part in a step */
  int64_t request;  /* its number among all */
  int64_t computed; /* before the step */
  int64_t given;    /* tokens it works on, drafts counted */
  int64_t emitted;
  int is_decode;
};

struct cct_move {          /* a request changes replicas */
  int64_t request, blocks; /* of its input */
};

struct cct_batch {
  const struct cct_member *members; /* in the order of scheduling; until the next step */
  int64_t n;
  int64_t tokens, prefill_tokens; /* given in all, and to members that do not decode */
  int64_t prefills;               /* members that do not decode */
  int64_t emitted, ended;         /* tokens, requests */
  int64_t blocks;                 /* of the cache that are in use in this step, those still to come back counted */
  int64_t preempted, out_blocks, in_blocks;
  /* Requests that change replicas: PREFILL: whose last prompt token is computed in this step; DECODE: whose transfer
   * begins with it. Until the next step. */
  const struct cct_move *moves;
  int64_t n_moves, moved_blocks;
};

struct cct_scheduler;

/* For the requests first, first + stride, ... of `requests`, borrowed, which enter in this order (DECODE: as handed).
 * CCT_USAGE names one that can never be served: input + output beyond the cache, or, without chunked prefill, beyond a
 * step's tokens. */
enum cct_status cct_scheduler_new(const struct cct_limits *limits, const struct cct_requests *requests, int64_t first,
                                  int64_t stride, struct cct_scheduler **scheduler_out) CCT_CHECKED;
void cct_scheduler_free(struct cct_scheduler *scheduler);              /* NULL-safe */
int64_t cct_scheduler_requests(const struct cct_scheduler *scheduler); /* that are its own */
/* Lets requests enter until `n` of its own have. */
void cct_scheduler_enter(struct cct_scheduler *scheduler, int64_t n);
int64_t cct_scheduler_entered(const struct cct_scheduler *scheduler);
int64_t cct_scheduler_ended(const struct cct_scheduler *scheduler);
/* PREFILL: the request's cache has been read. */
void cct_scheduler_release(struct cct_scheduler *scheduler, int64_t request);
/* DECODE: its cache may be read. */
void cct_scheduler_hand(struct cct_scheduler *scheduler, int64_t request);
/* DECODE: the next `n` transfers, in the order in which they began, are done. */
void cct_scheduler_arrive(struct cct_scheduler *scheduler, int64_t n);
/* The step before did nothing, and so will the next unless a request enters, or one of the three above is called. */
int cct_scheduler_is_stuck(const struct cct_scheduler *scheduler);
/* One step. A batch of no members: nothing can be done now. */
void cct_scheduler_step(struct cct_scheduler *scheduler, struct cct_batch *batch_out);
/* 1: tokens of the step before become known by another one. */
int cct_scheduler_lags(const struct cct_scheduler *scheduler);

#endif
