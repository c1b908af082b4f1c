/* SPDX-License-Identifier: Apache-2.0
 * Writing a layer's operations into a step program. One emitter builds the program of one role of rank; the templates
 * of decode, prefill and train call it layer by layer. All shapes are one rank's share; m-dimensions are slots, so that
 * a step can be bound to other counts without building it again. Private to this room.
 *
 * Collectives a layer (Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.2): dense with tp > 1 two
 * all-reduces forward and two backward; with sequence parallelism two all-gathers and two reduce-scatters forward, four
 * and two backward (column-parallel inputs are gathered again for their weight gradients). An MoE part with ep > 1 one
 * dispatch and one combine each way, and when activations are not sharded over tp, one all-gather over tp that restores
 * the tokens; with ep = 1 its tokens are gathered once and kept, a shared expert gathers its own. MLA's
 * down-projections are on every rank: with sequence parallelism each takes its shard of the tokens, and the latents are
 * gathered. train_tp_test.c has all of it in closed form, with its source. */
#ifndef CCT_WORKLOADS_STEPS_EMIT_H
#define CCT_WORKLOADS_STEPS_EMIT_H

#include "base/option.h"
#include "workloads/program/program.h"
#include "workloads/shape/flops.h"
#include "workloads/shape/layout.h"
#include "workloads/shape/routing.h"

/* What the MoE layers of a step have in common: tokens and experts are drawn or expected once a step. */
struct cct_moe {
  struct cct_routing routing;
  int64_t groups; /* experts of a rank that compute: grouped GEMMs of so many */
  int64_t rows;   /* rows of each of them: the default of slot s_rows */
  double copies;  /* of a token over all ranks of the EP group, its own counted */
  enum cct_type dispatch_type, combine_type;
  int dispatch_matrix, combine_matrix; /* -1: uniform */
  int is_host_routed;                  /* --routing host: counts are read back before the dispatch */
  int64_t routed, dropped;             /* copies for experts, of all ranks of the EP group; those beyond capacity */
};

struct cct_serve;
struct cct_emit {
  const struct cct_model *model;
  const struct cct_options *cell;
  struct cct_layout layout;
  struct cct_job *job;
  struct cct_program *program;
  enum cct_form form;
  int is_checkpoint;           /* training: the step begins with a checkpoint */
  int is_training, is_sharded; /* sequence parallel: norms and residuals hold tokens / tp */
  int64_t tokens;              /* of this rank's replica in one pass (a micro-batch, a prompt, a decode batch) */
  int64_t sequences;
  struct cct_moe moe;
  enum cct_algorithm algorithm; /* of TP all-reduces */
  enum cct_type gemm_type;

  int compute, comm, readback, host; /* lanes; comm and readback -1 when not used */
  int graph;                         /* id of the open GRAPH, -1: none */
  int next_key;
  int g_tp, g_dp, g_ep, g_expert_dp, g_world;      /* groups; -1 when of one rank */
  int s_tokens, s_shard, s_rows;                   /* slots: tokens, ceil(tokens / tp), rows an expert */
  int s_pairs[CCT_MAX_KINDS], s_kv[CCT_MAX_KINDS]; /* query-key pairs, and cache entries read, by kind of layer */
  /* Form BOTH, a batch of prompts and generation where these multiply differently: tokens of each, and what the
   * latter's attention sees (s_pairs and s_kv being the former's). */
  int s_context, s_decode, s_pairs_decode[CCT_MAX_KINDS], s_kv_decode[CCT_MAX_KINDS];
  int b_hidden, b_wide, b_embedding, b_head, b_logits, b_dispatched, b_experts, b_expert_wide;
  int layer_gradient;              /* buffer of the gradient in hand, -1 outside training */
  int pending;                     /* entry of another lane that the next one of the compute lane waits for, -1: none */
  void (*complete)(void *context); /* told behind each GEMM that made a gradient; NULL outside training */
  void *context;
  int first_pass; /* the first micro-batch: weights are cast once a step */
  int *b_weights; /* [layer * CCT_WEIGHT_COUNT + place]: buffer ids, -1 until first used; owned */
  int *b_caches; /* [layer], where forms of one program share a layer's cache: -1 until first used; NULL: none do; owned
                  */
  struct cct_serve *serve; /* of a serving step, whose slots are filled in */
};
#define CCT_WEIGHT_COUNT (CCT_MAX_LINEARS + 7) /* linears, then the feed-forward matrices below */
enum {
  CCT_W_GATE_UP = CCT_MAX_LINEARS,
  CCT_W_DOWN,
  CCT_W_ROUTER,
  CCT_W_EXPERT_IN,
  CCT_W_EXPERT_OUT,
  CCT_W_SHARED_IN,
  CCT_W_SHARED_OUT
};

/* `pairs` and `kv` give, for a layer with this window (0: none), query-key pairs and cache entries of the pass. */
struct cct_pass {
  int64_t tokens, sequences;
  int64_t (*pairs)(const struct cct_options *cell, int64_t sequences, int64_t window);
  int64_t (*kv)(const struct cct_options *cell, int64_t sequences, int64_t window);
};

/* A full decode step of a serving cell: what its program is bound to by default. */
struct cct_pass cct_serve_pass(const struct cct_serve *serve);

/* Opens job and program with lanes, groups, slots, and the routing of the step; cct_emit_close releases what is not
 * handed on. */
enum cct_status cct_emit_open(struct cct_emit *emit, const struct cct_model *model, const struct cct_layout *layout,
                              const struct cct_options *cell, const struct cct_moe *moe, const struct cct_pass *pass,
                              const char *name) CCT_CHECKED;
void cct_emit_close(struct cct_emit *emit); /* NULL-safe */

/* ---- one operation on the compute lane; ids are returned ---- */
int cct_emit_gemm(struct cct_emit *e, const char *name, struct cct_quantity m, int64_t n, int64_t k, int64_t groups,
                  enum cct_type type, int input, int weight, int output);
int cct_emit_elementwise(struct cct_emit *e, const char *name, struct cct_quantity bytes, int buffer);
int cct_emit_collective(struct cct_emit *e, const char *name, enum cct_collective kind, int group,
                        struct cct_quantity bytes, enum cct_type type, int buffer); /* nothing when group is -1 */
int cct_emit_copy(struct cct_emit *e, const char *name, enum cct_direction direction, int64_t bytes);
int cct_emit_sync(struct cct_emit *e, const char *name, int lane);
int cct_emit_last(const struct cct_emit *e); /* the compute lane's last entry so far, -1: none */
int cct_emit_open_bracket(struct cct_emit *e, enum cct_op_kind kind, const char *name);
void cct_emit_close_bracket(struct cct_emit *e, int bracket);
struct cct_quantity cct_per_token(const struct cct_emit *e, int64_t bytes); /* on the replica's tokens */
struct cct_quantity cct_per_shard(const struct cct_emit *e,
                                  int64_t bytes); /* on what sequence parallelism leaves, or tokens */

/* The buffer of a weight of the layer, made at its first use. */
int cct_emit_weight(struct cct_emit *e, int layer, int place, const char *name, enum cct_type type, double elements);
char *cct_layer_name(char out[40], int layer, const char *part); /* "12.qkv" */

/* ---- parts ---- */
void cct_emit_embedding(struct cct_emit *e);
/* Norm, the head's GEMM over `m`, and (serving) the gathering of logits and the sampling of m / 1 tokens. */
void cct_emit_head(struct cct_emit *e, struct cct_quantity m);

/* A layer is attention (norm, linears, core, linears) and a feed-forward part. The core stands apart, because piecewise
 * graphs leave it out. */
void cct_emit_attention_in(struct cct_emit *e, int layer);
void cct_emit_attention_core(struct cct_emit *e, int layer);
void cct_emit_attention_out(struct cct_emit *e, int layer);
void cct_emit_feed_forward(struct cct_emit *e, int layer);
/* One layer forward; piecewise: the open graph closes before the core, and another opens behind it. */
void cct_emit_layer(struct cct_emit *e, int layer, int is_piecewise);
void cct_emit_layers(struct cct_emit *e, int is_piecewise); /* all of them */
/* The MoE part behind the second norm, forward. */
void cct_emit_experts(struct cct_emit *e, int layer);
/* gate and up, product, down of `groups` matrices of this width over `m` rows each; weights at `place` and place + 1.
 */
void cct_emit_gated(struct cct_emit *e, int layer, const char *const parts[3], int place, struct cct_quantity m,
                    int64_t width, int64_t groups, int input, int wide);
/* With sequence parallelism the all-gather of `width` elements a token, else nothing; and the reduce-scatter, else the
 * all-reduce, in bf16, over tp. What a linear casts is gathered as it was cast (cct_cast_type). */
void cct_emit_gather(struct cct_emit *e, int layer, const char *part, int64_t width, enum cct_type type);
void cct_emit_reduce(struct cct_emit *e, int layer, const char *part, int64_t width);
static inline enum cct_type cct_cast_type(const struct cct_emit *e) {
  return e->is_training ? e->gemm_type : CCT_TYPE_BF16;
}
/* The linear multiplies this rank's shard of the tokens: a down-projection of MLA. */
static inline int cct_is_on_shard(const struct cct_emit *e, const struct cct_layer_kind *kind,
                                  const struct cct_linear *linear) {
  return e->is_sharded && kind->is_latent && linear->split == CCT_SPLIT_NONE;
}
/* Dispatch and combine, also of the backward pass. */
void cct_emit_dispatch(struct cct_emit *e, int layer, const char *part, enum cct_type type);
void cct_emit_combine(struct cct_emit *e, int layer, const char *part);
void cct_emit_layer_backward(struct cct_emit *e, int layer);

#endif
