/* SPDX-License-Identifier: Apache-2.0
 * A layout: how a model is spread. ranks = tp x dp (x pp). ep divides tp x dp and the number of experts and is 1 or a
 * multiple of tp; EP groups are consecutive ranks in tp-fastest order; experts are not TP-sharded when ep > 1, and
 * TP-sharded when ep = 1. tp divides the query heads, and divides the KV heads or is a multiple of them (then they are
 * replicated); vocabulary, feed-forward and expert widths that tp does not divide are padded. */
#ifndef CCT_WORKLOADS_SHAPE_LAYOUT_H
#define CCT_WORKLOADS_SHAPE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "workloads/shape/model.h"

struct cct_layout {
  int64_t tp, ep, dp, pp;
};

/* "tp=2,ep=8,dp=4", each of tp, ep, dp, pp at most once, 1 when absent; `where` opens the error line. */
enum cct_status cct_layout_parse(const char *text, const char *where, struct cct_layout *layout_out) CCT_CHECKED;
/* The same layout's canonical text: 1s left out, "tp=1" when nothing is left. Returns `out`. */
char *cct_layout_text(const struct cct_layout *layout, char out[64]);
int64_t cct_layout_ranks(const struct cct_layout *layout);

/* NULL if the model can be spread so, else why not (in `why`; also pp > 1, which is parsed but not priced). */
const char *cct_layout_refusal(const struct cct_layout *layout, const struct cct_model *model, char why[192]);
/* The same as a status: CCT_UNSUPPORTED for pp, CCT_USAGE otherwise, with one line. */
enum cct_status cct_layout_check(const struct cct_layout *layout, const struct cct_model *model) CCT_CHECKED;
/* Refuses an np that is not the layout's ranks, and names the near layout that uses np. */
enum cct_status cct_layout_check_ranks(const struct cct_layout *layout, const struct cct_model *model,
                                       int64_t np) CCT_CHECKED;

/* Every legal layout of np ranks, tp ascending, then ep ascending, then dp; frees with free(). */
enum cct_status cct_layout_all(const struct cct_model *model, int64_t np, struct cct_layout **layouts_out,
                               int *n_out) CCT_CHECKED;

/* ---- one rank's share ---- */

static inline int64_t cct_share(int64_t whole, int64_t parts) { /* padded */
  return (whole + parts - 1) / parts;
}
int64_t cct_kv_heads_share(const struct cct_layer_kind *kind, int64_t tp); /* at least 1: replicated */
int64_t cct_kv_bytes_share(const struct cct_layer_kind *kind, int64_t tp); /* of a token's cache entry in one layer */
/* A linear's matrix on one rank: n x k, `groups` of them (one a head for CCT_SPLIT_HEADS). */
void cct_linear_share(const struct cct_layer_kind *kind, const struct cct_linear *linear, int64_t tp, int64_t *n_out,
                      int64_t *k_out, int64_t *groups_out);

struct cct_parameters { /* on one rank, padding and replication counted */
  double embedding;     /* token embedding and, unless tied, the head: bf16 */
  double matrices;      /* attention, dense and shared feed-forward: of the model's weight type */
  double small;         /* routers and norms: bf16 */
  double experts;       /* of the model's weight type */
};
void cct_parameters_of_layer(const struct cct_model *model, const struct cct_layout *layout, int layer,
                             struct cct_parameters *parameters_out);
void cct_parameters_share(const struct cct_model *model, const struct cct_layout *layout,
                          struct cct_parameters *parameters_out);
/* Ranks that hold the same shard: dp of everything but experts; of experts ranks / ep, or dp when ep = 1. */
int64_t cct_expert_replicas(const struct cct_layout *layout);

#endif
