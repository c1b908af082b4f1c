/* SPDX-License-Identifier: Apache-2.0
 * Where an MoE layer's tokens go. Three ways of dispatch over an EP group of n ranks:
 *  per-expert  a copy of the token for each of its k experts (Megatron-Core's token dispatcher)
 *  per-rank    a copy for each rank that holds one of them (DeepEP)
 *  allgather   every token to every rank, and a reduce-scatter back (vLLM's default)
 * Bytes that a rank sends in dispatch and combine together, in (tokens of the EP group) x hidden x bytes:
 *  (n-1)/n x 2 x copies / n, copies being k, n x p, n; and p, the chance that a rank holds one of a token's experts, is
 *  1 - C(E - E/n, k) / C(E, k) when every set of k experts is equally likely (hypergeometric). With a limit on routing
 * groups (DeepSeek-V3, arXiv 2412.19437, section 2.1.2) the same within the chosen groups, summed over how many a rank
 * shares. */
#ifndef CCT_WORKLOADS_SHAPE_ROUTING_H
#define CCT_WORKLOADS_SHAPE_ROUTING_H

#include <stdint.h>

#include "workloads/shape/model.h"

enum cct_dispatch {
  CCT_DISPATCH_PER_EXPERT,
  CCT_DISPATCH_PER_RANK,
  CCT_DISPATCH_ALLGATHER,
};

struct cct_routing {
  int64_t experts, top_k;
  int64_t groups, groups_chosen; /* 0: no limit */
  int64_t ranks;                 /* of the EP group; divides experts */
  enum cct_dispatch dispatch;
  const double *popularity; /* of each expert, NULL: uniform; borrowed */
  int64_t capacity;         /* copies of one rank's tokens that one expert takes at most, in the order of the tokens; 0:
                               all. What is above is dropped (Megatron-core's --moe-expert-capacity-factor with
                               --moe-token-drop-policy position) */
};

/* Chance that one rank holds at least one of a token's experts; uniform routing. */
double cct_routing_hit(const struct cct_routing *routing);
/* Copies of one token over all ranks, its own counted. */
double cct_routing_copies(const struct cct_routing *routing);
double cct_routing_bytes(const struct cct_routing *routing); /* the table above */
/* Experts of one rank that at least one of `tokens` chose, expected; uniform routing. */
double cct_routing_active(const struct cct_routing *routing, double tokens);

/* Popularity by `skew`: "uniform" gives NULL; "zipf:S" rank^-S over experts in an order drawn from `seed`; else a JSON
 * file with one positive number an expert. free() it. */
enum cct_status cct_routing_popularity(const char *skew, int64_t experts, uint64_t seed,
                                       double **popularity_out) CCT_CHECKED;

/* What `tokens` tokens on each rank chose. Release with cct_routing_draw_free. */
struct cct_routing_draw {
  int n;
  int64_t *copies; /* [i * n + j]: copies that rank i sends to rank j, i = j counted */
  int64_t *rows;   /* of each expert: tokens of all ranks that it takes */
  int64_t experts;
  int64_t dropped; /* tokens x ranks x top_k = sum of rows + dropped */
};
/* Draws without replacement by popularity (Efraimidis and Spirakis 2006: the k smallest of -ln(u)/weight). Beyond 16384
 * tokens in all, so many are drawn and the counts scaled. */
enum cct_status cct_routing_draw(const struct cct_routing *routing, int64_t tokens, uint64_t seed,
                                 struct cct_routing_draw *draw_out) CCT_CHECKED;
void cct_routing_draw_free(struct cct_routing_draw *draw); /* NULL-safe */

#endif
