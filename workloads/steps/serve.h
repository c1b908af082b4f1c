/* SPDX-License-Identifier: Apache-2.0
 * A serving cell: what is asked for (requests, limits, SLO), and the one program whose slots say what a step does, with
 * how a batch of the scheduler is bound to it.
 *
 * Slot `form` selects what a step computes:
 *  0 nothing
 *  1 decode     every sequence is in generation; a graph as --graph says, tokens padded to the next capture size
 *  2 mixed      prompts with or without generation beside them, eager; also a decode that no capture size holds
 *  3 mixed, piecewise graphs (--mixed-graph), tokens padded; where a capture size holds them
 * Capture sizes are vLLM's (vllm/config/vllm.py): 1, 2, 4, then every 8th below 256, then every 16th, up to min(512, 2
 * x max-seqs x (K + 1)). Replicas that step together have one form and one number of tokens, the largest of theirs.
 *
 * A member that works on t tokens behind c in its cache has causal pairs P(c + t) - P(c) and reads c + t entries (a
 * window w: min(c, w - 1) + t). Logits: one row for each token that is generated or verified, one for each prompt; in a
 * graph, whose sizes follow from its tokens alone, the padded tokens (decode) or the most there can be (piecewise). */
#ifndef CCT_WORKLOADS_STEPS_SERVE_H
#define CCT_WORKLOADS_STEPS_SERVE_H

#include "base/option.h"
#include "workloads/serving/cluster.h"
#include "workloads/serving/metrics.h"
#include "workloads/shape/layout.h"

enum cct_serve_form {
  CCT_SERVE_IDLE,
  CCT_SERVE_DECODE,
  CCT_SERVE_MIXED,
  CCT_SERVE_PIECEWISE,
  CCT_SERVE_FORMS
};
const char *cct_serve_form_name(enum cct_serve_form form);

#define CCT_MOST_CAPTURES 64
#define CCT_MOST_SOURCES  32 /* replicas that prompts are read on, where caches are read in their memory */

struct cct_serve_slots { /* of the program; -1: it has none */
  int form, busy, tokens, shard, rows, sequences, logits, input_bytes;
  int swap_out, swap_in, out_bytes, in_bytes;
  int context, decode;                                 /* tokens of each, where they multiply differently */
  int draft_tokens, draft_shard, draft_rows, draft_kv; /* of a draft pass */
  int pairs[CCT_MAX_KINDS], kv[CCT_MAX_KINDS];         /* by kind of layer */
  int pairs_decode[CCT_MAX_KINDS], kv_decode[CCT_MAX_KINDS];
  /* Prompts and generation apart: of what goes to the host, and of what is read from each source (the host: one). */
  int stage, stage_bytes, fetch[CCT_MOST_SOURCES], fetch_bytes[CCT_MOST_SOURCES];
};

struct cct_serve {
  struct cct_request_plan requests; /* .trace is owned; .seed, as that of the limits, is the cell's */
  struct cct_limits limits;
  struct cct_slo slo;                           /* all 0: none */
  int64_t replicas, together;                   /* data-parallel replicas; those that step together */
  int64_t prefills, decodes;                    /* of the replicas, where they have different work; 0: they have not */
  int is_staged, n_sources;                     /* caches go through the host; what they are read from, 0: they stay */
  int64_t most_fetch_blocks, most_stage_blocks; /* of a step */
  int64_t tp, ep;
  int64_t captures[CCT_MOST_CAPTURES];
  int n_captures;
  int is_decode_graph, is_mixed_graph, is_overlapped, is_worker;
  int64_t longest;                 /* places of a request in the cache: input, output, drafts that may be accepted */
  int64_t most_sequences;          /* of a replica at once */
  int64_t most_decode, most_mixed; /* tokens of a step, padded */
  int64_t most_cache;              /* tokens in a replica's cache */
  int64_t block_bytes;             /* of one cache block on one rank */
  int n_kinds, last_kind;          /* of layers; that of the last one, which drafts are made with */
  int64_t windows[CCT_MAX_KINDS];
  int is_split;                           /* prompts and generation multiply differently (MLA) */
  int64_t top_k, groups[CCT_SERVE_FORMS]; /* of experts; groups 0: no experts */
  struct cct_serve_slots slots;           /* set with the program */
};

/* Everything but `slots`. CCT_USAGE where the cell cannot be served: memory that weights alone fill, a request that
 * never fits, settings that contradict each other. */
enum cct_status cct_serve_plan(const struct cct_model *model, const struct cct_layout *layout,
                               const struct cct_options *cell, struct cct_serve **serve_out) CCT_CHECKED;
void cct_serve_free(struct cct_serve *serve); /* NULL-safe */

int64_t cct_serve_capture(const struct cct_serve *serve, int64_t tokens); /* the next size; -1: none holds them */

struct cct_serve_step { /* what the replicas of an engine do in a step */
  enum cct_serve_form form;
  int64_t tokens; /* with padding */
};
struct cct_serve_step cct_serve_step_of(const struct cct_serve *serve, const struct cct_engine_step *step);
/* A step of this form and size with the most of everything else: what a graph of that size is captured with, and
 * buffers have to hold. The slots of swapped caches are left as they are. */
void cct_serve_bind_size(const struct cct_serve *serve, const struct cct_serve_step *what, int64_t *slots);
/* Transfers of so many bytes, everywhere; 0: none. Likewise caches that go to the host and come back. */
void cct_serve_bind_transfers(const struct cct_serve *serve, int64_t bytes, int64_t *slots);
void cct_serve_bind_swaps(const struct cct_serve *serve, int64_t bytes, int64_t *slots);
/* The slots of a rank of the engine's replica `replica`; every other slot of the program is left as it is. */
void cct_serve_bind(const struct cct_serve *serve, const struct cct_engine_step *step, int64_t replica, int64_t *slots);

/* ---- serve_slots.c: of the program that is being emitted ---- */

struct cct_emit;
void cct_serve_add_slots(struct cct_emit *e, struct cct_serve *serve);
/* Buffers are as large as the largest step needs, whatever a step is bound to. */
void cct_serve_hold_most(struct cct_emit *e, const struct cct_serve *serve);

/* ---- serve_schedule.c ---- */

struct cct_serve_row { /* a step of an engine: the largest of its replicas' figures, and the cache of all of them */
  enum cct_serve_form form;
  int64_t tokens, padded, sequences, blocks, preempted;
  int64_t moved, moved_blocks; /* requests that change replicas (scheduler.h, moves) */
  int64_t begin_ns, end_ns,
      known_ns;        /* where it was performed: on the engine's host lane, and when its tokens became known */
  int64_t submissions; /* of one rank; where it was counted */
  int64_t index;       /* of the sequence that performed it */
};

int cct_serve_engines(const struct cct_serve *serve);
struct cct_engine_plan cct_serve_engine(const struct cct_serve *serve, int number);
struct cct_cluster_plan cct_serve_cluster(const struct cct_serve *serve); /* of prefills > 0 */
int cct_serve_is_clocked(const struct cct_serve *serve);                  /* a run's clock decides what its steps do */
struct cct_serve_row cct_serve_row_of(const struct cct_serve *serve, const struct cct_engine_step *step);
/* The steps of engine `number`, one by one, where no clock decides (CCT_USAGE where one does). Closed whatever it says.
 */
struct cct_serve_walk {
  int number;
  struct cct_engine *engine;
  struct cct_cluster *cluster;
  struct cct_cluster_turn *turns;
};
enum cct_status cct_serve_walk_open(const struct cct_serve *serve, const struct cct_requests *requests, int number,
                                    struct cct_serve_walk *walk) CCT_CHECKED;
enum cct_status cct_serve_walk_next(struct cct_serve_walk *walk, struct cct_engine_step *step_out) CCT_CHECKED;
void cct_serve_walk_close(struct cct_serve_walk *walk);
/* The steps of engine `number` without performing them. CCT_USAGE where the clock of a run decides. free() the rows. */
enum cct_status cct_serve_schedule(const struct cct_serve *serve, const struct cct_requests *requests, int number,
                                   struct cct_serve_row **rows_out, int64_t *n_out) CCT_CHECKED;

#endif
