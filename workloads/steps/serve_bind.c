/* SPDX-License-Identifier: Apache-2.0
 * A batch of the scheduler as the values of the program's slots. */
#include "workloads/shape/flops.h"
#include "workloads/steps/serve.h"

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

struct cct_serve_step cct_serve_step_of(const struct cct_serve *serve, const struct cct_engine_step *step) {
  struct cct_serve_step out = {.form = CCT_SERVE_IDLE};
  int64_t prefills = 0;
  if (step->is_empty)
    return out;
  for (int64_t i = 0; i < serve->together; i++) {
    out.tokens = larger(out.tokens, step->batches[i].tokens);
    prefills += step->batches[i].prefills;
  }
  int64_t captured = cct_serve_capture(serve, out.tokens);
  int is_captured = captured > 0 && (prefills ? serve->is_mixed_graph : serve->is_decode_graph);
  if (prefills)
    out.form = is_captured ? CCT_SERVE_PIECEWISE : CCT_SERVE_MIXED;
  else
    out.form = is_captured || !serve->is_decode_graph ? CCT_SERVE_DECODE : CCT_SERVE_MIXED;
  if (is_captured)
    out.tokens = captured;
  return out;
}

/* Pairs and cache entries of the members, all of them or those of one kind, in a layer with this window. */
static void see(const struct cct_batch *batch, int64_t window, int with_prefills, int with_decodes, int64_t *pairs,
                int64_t *kv) {
  *pairs = *kv = 0;
  for (int64_t m = 0; m < batch->n; m++) {
    const struct cct_member *member = &batch->members[m];
    int64_t c = member->computed, t = member->given;
    if (!(member->is_decode ? with_decodes : with_prefills))
      continue;
    *pairs += cct_causal_pairs(c + t, window) - cct_causal_pairs(c, window);
    *kv += (window && c > window - 1 ? window - 1 : c) + t;
  }
}

static void set(int64_t *slots, int slot, int64_t value) {
  if (slot >= 0)
    slots[slot] = value;
}

/* Of `tokens` tokens a replica: rows of each of the experts that compute. */
static int64_t rows_of(const struct cct_serve *serve, enum cct_serve_form form, int64_t tokens) {
  int64_t groups = serve->groups[form], routed = serve->ep > 1 ? cct_share(tokens, serve->tp) : tokens;
  return groups ? cct_share(routed * serve->top_k, groups) : 0;
}

/* Sequences that a draft pass works on: in a graph what its tokens leave room for. */
static void bind_drafts(const struct cct_serve *serve, const struct cct_serve_step *what, int64_t sequences,
                        int64_t *slots) {
  const struct cct_serve_slots *s = &serve->slots;
  int64_t tokens = what->form == CCT_SERVE_DECODE      ? cct_share(what->tokens, serve->limits.drafts + 1)
                   : what->form == CCT_SERVE_PIECEWISE ? serve->most_sequences
                                                       : sequences;
  set(slots, s->draft_tokens, tokens);
  set(slots, s->draft_shard, cct_share(tokens, serve->tp));
  set(slots, s->draft_rows, larger(1, rows_of(serve, CCT_SERVE_DECODE, tokens)));
}

static void bind_size(const struct cct_serve *serve, const struct cct_serve_step *what, int64_t sequences,
                      int64_t logits, int64_t *slots) {
  const struct cct_serve_slots *s = &serve->slots;
  int64_t most = serve->most_sequences * (serve->limits.drafts + 1);
  set(slots, s->form, what->form);
  set(slots, s->busy, what->form != CCT_SERVE_IDLE);
  set(slots, s->tokens, what->tokens);
  set(slots, s->shard, cct_share(what->tokens, serve->tp));
  set(slots, s->rows, larger(1, rows_of(serve, what->form, what->tokens)));
  set(slots, s->logits,
      what->form == CCT_SERVE_DECODE      ? what->tokens
      : what->form == CCT_SERVE_PIECEWISE ? most
                                          : logits);
  if (serve->limits.drafts)
    bind_drafts(serve, what, sequences, slots);
}

/* ---- caches that change replicas ---- */

static void bind_transfer(int64_t *slots, int is_there, int bytes_slot, int64_t bytes) {
  set(slots, is_there, bytes > 0);
  set(slots, bytes_slot, bytes);
}

void cct_serve_bind_transfers(const struct cct_serve *serve, int64_t bytes, int64_t *slots) {
  const struct cct_serve_slots *s = &serve->slots;
  int64_t stage = serve->most_stage_blocks * serve->block_bytes, fetch = serve->most_fetch_blocks * serve->block_bytes;
  bind_transfer(slots, s->stage, s->stage_bytes, bytes < stage ? bytes : stage);
  for (int i = 0; i < serve->n_sources; i++)
    bind_transfer(slots, s->fetch[i], s->fetch_bytes[i], bytes < fetch ? bytes : fetch);
}

void cct_serve_bind_swaps(const struct cct_serve *serve, int64_t bytes, int64_t *slots) {
  bind_transfer(slots, serve->slots.swap_out, serve->slots.out_bytes, bytes);
  bind_transfer(slots, serve->slots.swap_in, serve->slots.in_bytes, bytes);
}

static void bind_moves(const struct cct_serve *serve, const struct cct_engine_step *step, const struct cct_batch *batch,
                       int64_t *slots) {
  const struct cct_serve_slots *s = &serve->slots;
  int64_t bytes[CCT_MOST_SOURCES] = {0};
  int is_decode = step->stage == CCT_STAGE_DECODE;
  for (int64_t k = 0; is_decode && k < batch->n_moves; k++)
    bytes[batch->moves[k].request % serve->n_sources] += batch->moves[k].blocks * serve->block_bytes;
  bind_transfer(slots, s->stage, s->stage_bytes, is_decode ? 0 : batch->moved_blocks * serve->block_bytes);
  for (int i = 0; i < serve->n_sources; i++)
    bind_transfer(slots, s->fetch[i], s->fetch_bytes[i], bytes[i]);
}

void cct_serve_bind_size(const struct cct_serve *serve, const struct cct_serve_step *what, int64_t *slots) {
  const struct cct_serve_slots *s = &serve->slots;
  bind_size(serve, what, serve->most_sequences, serve->most_sequences * (serve->limits.drafts + 1), slots);
  set(slots, s->sequences, serve->most_sequences);
  set(slots, s->input_bytes, 24 * what->tokens + 4 * (serve->most_cache / CCT_BLOCK_TOKENS + serve->most_sequences));
  set(slots, s->context, what->tokens);
  set(slots, s->decode, serve->most_decode < what->tokens ? serve->most_decode : what->tokens);
  for (int i = 0; i < serve->n_kinds; i++) {
    int64_t seen = serve->windows[i] && serve->windows[i] < serve->longest ? serve->windows[i] : serve->longest;
    set(slots, s->pairs[i], what->tokens * seen);
    set(slots, s->kv[i], serve->most_cache);
    set(slots, s->pairs_decode[i], what->tokens * seen);
    set(slots, s->kv_decode[i], serve->most_cache);
  }
  set(slots, s->draft_kv, serve->most_cache);
}

void cct_serve_bind(const struct cct_serve *serve, const struct cct_engine_step *step, int64_t replica,
                    int64_t *slots) {
  const struct cct_serve_slots *s = &serve->slots;
  const struct cct_batch *batch = &step->batches[replica];
  struct cct_serve_step what = cct_serve_step_of(serve, step);
  int is_split = serve->is_split && what.form != CCT_SERVE_DECODE;
  int64_t sequences = 1, logits = 1, blocks = 0, pairs, kv;
  for (int64_t i = 0; i < serve->together; i++) { /* replicas that step together gather and sample alike */
    const struct cct_batch *other = &step->batches[i];
    sequences = larger(sequences, other->n);
    logits = larger(logits, other->tokens - other->prefill_tokens + other->prefills);
  }
  for (int64_t m = 0; m < batch->n; m++)
    blocks += cct_share(batch->members[m].computed + batch->members[m].given, CCT_BLOCK_TOKENS);
  bind_transfer(slots, s->swap_out, s->out_bytes, batch->out_blocks * serve->block_bytes);
  bind_transfer(slots, s->swap_in, s->in_bytes, batch->in_blocks * serve->block_bytes);
  set(slots, s->form, what.form);
  set(slots, s->busy, what.form != CCT_SERVE_IDLE);
  bind_moves(serve, step, batch, slots);
  if (what.form == CCT_SERVE_IDLE)
    return;
  bind_size(serve, &what, sequences, logits, slots);
  set(slots, s->sequences, sequences);
  set(slots, s->input_bytes, 24 * what.tokens + 4 * blocks);
  set(slots, s->context, larger(1, batch->prefill_tokens));
  set(slots, s->decode, larger(1, batch->tokens - batch->prefill_tokens));
  for (int i = 0; i < serve->n_kinds; i++) {
    see(batch, serve->windows[i], 1, !is_split, &pairs, &kv);
    set(slots, s->pairs[i], larger(1, pairs));
    set(slots, s->kv[i], larger(1, kv));
    see(batch, serve->windows[i], 0, 1, &pairs, &kv);
    set(slots, s->pairs_decode[i], larger(1, pairs));
    set(slots, s->kv_decode[i], larger(1, kv));
  }
  see(batch, serve->windows[serve->last_kind], 1, 1, &pairs, &kv);
  set(slots, s->draft_kv, larger(1, kv));
}
