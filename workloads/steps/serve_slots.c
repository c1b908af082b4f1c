/* SPDX-License-Identifier: Apache-2.0
 * The slots of a serving step's program, and how large its buffers are under any binding. */
#include <stdio.h>
#include <string.h>

#include "workloads/steps/emit.h"
#include "workloads/steps/serve.h"

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

void cct_serve_add_slots(struct cct_emit *e, struct cct_serve *serve) {
  struct cct_program *p = e->program;
  struct cct_serve_slots *s = &serve->slots;
  int64_t cache = serve->most_cache / 2 + 1;
  int is_moe = e->moe.groups > 0;
  memset(s, 0xff, sizeof *s);
  s->form = cct_program_add_slot(p, "form", CCT_SERVE_DECODE);
  s->busy = cct_program_add_slot(p, "busy", 1);
  s->tokens = e->s_tokens;
  s->shard = e->layout.tp > 1 ? e->s_shard : -1;
  s->rows = e->s_rows;
  s->sequences = cct_program_add_slot(p, "sequences", serve->most_sequences);
  s->logits = cct_program_add_slot(p, "logits", serve->most_decode);
  s->input_bytes = cct_program_add_slot(p, "input_bytes", 24 * serve->most_decode + 4 * (cache / CCT_BLOCK_TOKENS));
  if (serve->limits.is_offload) {
    s->swap_out = cct_program_add_slot(p, "swap_out", 0);
    s->swap_in = cct_program_add_slot(p, "swap_in", 0);
    s->out_bytes = cct_program_add_slot(p, "out_bytes", 0);
    s->in_bytes = cct_program_add_slot(p, "in_bytes", 0);
  }
  if (serve->is_staged) {
    s->stage = cct_program_add_slot(p, "kv_out", 0);
    s->stage_bytes = cct_program_add_slot(p, "kv_out_bytes", 0);
  }
  for (int i = 0; i < serve->n_sources; i++) {
    char name[24];
    snprintf(name, sizeof name, "kv_in_%d", i);
    s->fetch[i] = cct_program_add_slot(p, name, 0);
    snprintf(name, sizeof name, "kv_in_%d_bytes", i);
    s->fetch_bytes[i] = cct_program_add_slot(p, name, 0);
  }
  if (serve->limits.drafts) {
    s->draft_tokens = cct_program_add_slot(p, "draft_tokens", serve->most_sequences);
    s->draft_shard = e->layout.tp > 1
                         ? cct_program_add_slot(p, "draft_shard", cct_share(serve->most_sequences, e->layout.tp))
                         : s->draft_tokens;
    s->draft_rows = is_moe ? cct_program_add_slot(p, "draft_rows", e->moe.rows) : -1;
    s->draft_kv = cct_program_add_slot(p, "draft_kv", cache);
  }
  if (serve->is_split) {
    e->s_context = s->context = cct_program_add_slot(p, "context_tokens", serve->most_mixed);
    e->s_decode = s->decode = cct_program_add_slot(p, "decode_tokens", serve->most_decode);
  }
  for (int i = 0; i < serve->n_kinds; i++) {
    s->pairs[i] = e->s_pairs[i];
    s->kv[i] = e->s_kv[i];
    if (!serve->is_split)
      continue;
    s->pairs_decode[i] = e->s_pairs_decode[i] = cct_program_add_slot(p, "decode_pairs", cache);
    s->kv_decode[i] = e->s_kv_decode[i] = cct_program_add_slot(p, "decode_kv_entries", cache);
  }
}

/* The most that a slot is ever bound to, where a buffer's size follows it. */
static int64_t most_of(const struct cct_serve *serve, int slot) {
  const struct cct_serve_slots *s = &serve->slots;
  const int64_t most = larger(serve->most_decode, serve->most_mixed);
  if (slot == s->tokens || slot == s->context)
    return most;
  if (slot == s->shard)
    return cct_share(most, serve->tp);
  if (slot == s->input_bytes)
    return 24 * most + 4 * (serve->most_cache / CCT_BLOCK_TOKENS + serve->most_sequences);
  if (slot == s->out_bytes || slot == s->in_bytes)
    return (serve->most_cache / CCT_BLOCK_TOKENS + serve->most_sequences) * serve->block_bytes;
  if (slot == s->stage_bytes)
    return serve->most_stage_blocks * serve->block_bytes;
  if (serve->is_staged && slot == s->fetch_bytes[0])
    return serve->most_fetch_blocks * serve->block_bytes;
  if (slot == s->logits || slot == s->decode)
    return larger(serve->most_decode, serve->most_sequences * (serve->limits.drafts + 1));
  if (slot == s->sequences || slot == s->draft_tokens)
    return larger(serve->most_sequences, serve->most_decode);
  if (slot == s->draft_shard)
    return cct_share(larger(serve->most_sequences, serve->most_decode), serve->tp);
  return serve->most_cache; /* of entries in the cache */
}

void cct_serve_hold_most(struct cct_emit *e, const struct cct_serve *serve) {
  struct cct_program *p = e->program;
  for (int i = 0; i < p->n_buffers; i++) {
    struct cct_quantity *bytes = &p->buffers[i].bytes;
    if (bytes->slot < 0)
      continue;
    int64_t most = most_of(serve, bytes->slot);
    if (bytes->slot == serve->slots.rows) { /* rows of all experts together */
      int64_t routed = serve->ep > 1 ? cct_share(larger(serve->most_decode, serve->most_mixed), serve->tp)
                                     : larger(serve->most_decode, serve->most_mixed);
      int64_t per_row = bytes->per / e->moe.groups;
      *bytes = cct_constant(per_row * (routed * serve->top_k + serve->groups[CCT_SERVE_MIXED]));
      continue;
    }
    *bytes = cct_constant(bytes->base + bytes->per * most);
  }
}
