/* SPDX-License-Identifier: Apache-2.0
 * The step of a serving engine, in every form that it can take (serve.h). In the order of the engine's host lane:
 *
 *  schedule   the scheduler's time (--host-us)
 *  swap       cache blocks of pre-empted requests to the host, and back (--preempt offload)
 *  input      one pinned copy of the step's metadata: ids, positions and slots, 24 bytes a token, 4 a cache block, in
 *             front of them the slots themselves, which kernels read
 *  the form   embedding, layers, head and sampling; with drafts behind them K passes of the last layer and the head (an
 *             EAGLE or multi-token-prediction head of that shape, whose weights are the last layer's here) over one
 * token a sequence read-back  the ids, 4 bytes a token that was sampled. --readback sync: the engine copies and waits.
 * worker: a second host lane does, and the engine awaits it. --overlap on: it awaits the ids of the step before, so
 * that it schedules and submits a step while the GPU works on the one before.
 *
 *
 * Where prompts and generation are apart (--disaggregate) a host lane of their own, `mover`, and a GPU lane move
 * caches: at the step's beginning those that are read, in the memory of the replica that has them (--kv-route p2p) or
 * on the host; and behind the step that completes prompts, with --kv-route host, theirs to the host.
 *
 * A full graph holds the form whole, so schedule, input, launch and read-back are what is left to submit; piecewise
 * graphs leave out the attention cores. */
#include "workloads/steps/serve.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/shape/cell.h"
#include "workloads/steps/moe.h"
#include "workloads/steps/template.h"

struct body {
  struct cct_emit *e;
  struct cct_serve *serve;
  int reader;                /* the host lane that reads back */
  int last[CCT_SERVE_FORMS]; /* entry with which each form ends; -1: not in this program */
  int transfer, mover;       /* lanes of caches that change replicas */
};

/* ---- brackets and copies ---- */

static int open_case(struct cct_emit *e, int slot, int64_t value) {
  struct cct_op op = {.kind = CCT_OP_CASE, .name = "", .lane = -1, .host = -1, .reads = {-1, -1}, .writes = -1};
  op.when.slot = slot;
  op.when.value = value;
  op.name = e->program->slots ? e->program->slots[slot].name : "";
  return cct_program_add(e->program, &op, NULL, 0);
}

static int add_copy(struct body *b, const char *name, enum cct_direction direction, struct cct_quantity bytes, int lane,
                    int host, const struct cct_wait *waits, int n_waits) {
  struct cct_emit *e = b->e;
  int host_side = cct_program_add_buffer(e->program, name, bytes, CCT_MEM_PINNED, 0);
  int device_side = cct_program_add_buffer(e->program, name, bytes, CCT_MEM_DEVICE, 0);
  int is_up = direction == CCT_COPY_H2D;
  struct cct_op op = {.kind = CCT_OP_COPY,
                      .name = name,
                      .lane = lane,
                      .host = host,
                      .reads = {is_up ? host_side : device_side, -1},
                      .writes = is_up ? device_side : host_side};
  op.copy.direction = direction;
  op.copy.memory = CCT_MEM_PINNED;
  op.copy.bytes = bytes;
  op.copy.carries_binding = is_up && !strcmp(name, "input");
  return cct_program_add(e->program, &op, waits, n_waits);
}

static int add_sync(struct body *b, const char *name, int lane, int host, const struct cct_wait *wait) {
  struct cct_op sync = {.kind = CCT_OP_SYNC, .name = name, .lane = lane, .host = host, .reads = {-1, -1}, .writes = -1};
  return cct_program_add(b->e->program, &sync, wait, wait != NULL);
}

/* ---- the parts ---- */

static void schedule(struct body *b) {
  struct cct_emit *e = b->e;
  double host_ns = e->cell->v[CCT_OPT_HOST_US].f * 1000;
  if (host_ns <= 0)
    return;
  struct cct_op work = {
      .kind = CCT_OP_HOSTWORK, .name = "schedule", .lane = -1, .host = e->host, .reads = {-1, -1}, .writes = -1};
  work.hostwork.ns = (int64_t)(host_ns + 0.5);
  int busy = open_case(e, b->serve->slots.busy, 1);
  (void)cct_program_add(e->program, &work, NULL, 0);
  cct_emit_close_bracket(e, busy);
}

static void swap(struct body *b) {
  struct cct_emit *e = b->e;
  const struct cct_serve_slots *s = &b->serve->slots;
  if (!b->serve->limits.is_offload)
    return;
  int out = open_case(e, s->swap_out, 1);
  (void)add_copy(b, "cache_out", CCT_COPY_D2H, cct_per_slot(1, s->out_bytes), e->compute, e->host, NULL, 0);
  cct_emit_close_bracket(e, out);
  int in = open_case(e, s->swap_in, 1);
  (void)add_copy(b, "cache_in", CCT_COPY_H2D, cct_per_slot(1, s->in_bytes), e->compute, e->host, NULL, 0);
  cct_emit_close_bracket(e, in);
}

static void input(struct body *b) {
  struct cct_emit *e = b->e;
  struct cct_quantity bytes = {8 * e->program->n_slots, 1, b->serve->slots.input_bytes};
  int busy = open_case(e, b->serve->slots.busy, 1);
  (void)add_copy(b, "input", CCT_COPY_H2D, bytes, e->compute, e->host, NULL, 0);
  cct_emit_close_bracket(e, busy);
}

/* K passes over one token a sequence, by the last layer and the head. */
static void draft(struct body *b, int is_piecewise) {
  struct cct_emit *e = b->e;
  const struct cct_serve_slots *s = &b->serve->slots;
  const struct cct_emit before = *e;
  int layer = e->model->n_layers - 1, kind = b->serve->last_kind;
  e->s_tokens = s->draft_tokens;
  e->s_shard = s->draft_shard;
  e->s_rows = s->draft_rows;
  e->s_pairs[kind] = e->s_kv[kind] = s->draft_kv;
  e->form = CCT_FORM_DECODE;
  for (int64_t pass = 0; pass < b->serve->limits.drafts; pass++) {
    cct_emit_embedding(e);
    cct_emit_layer(e, layer, is_piecewise);
    cct_emit_head(e, cct_per_token(e, 1));
  }
  int graph = e->graph, next_key = e->next_key;
  int b_embedding = e->b_embedding, b_head = e->b_head;
  *e = before;
  e->graph = graph;
  e->next_key = next_key;
  e->b_embedding = b_embedding;
  e->b_head = b_head;
}

static enum cct_status emit_form(struct body *b, enum cct_serve_form form, const char *graph) {
  struct cct_emit *e = b->e;
  struct cct_moe_draw draw;
  const struct cct_moe before = e->moe;
  int is_decode = form == CCT_SERVE_DECODE, is_graph = strcmp(graph, "none") != 0;
  int is_piecewise = !strcmp(graph, "piecewise");
  enum cct_status status = cct_moe_plan(e->model, &e->layout, e->cell,
                                        is_decode ? b->serve->most_decode : b->serve->most_mixed, &e->moe, &draw);
  cct_moe_draw_free(&draw);
  if (status)
    return status;
  e->form = is_decode ? CCT_FORM_DECODE : b->serve->is_split ? CCT_FORM_BOTH : CCT_FORM_CONTEXT;
  int open = open_case(e, b->serve->slots.form, form);
  int phase = cct_emit_open_bracket(e, CCT_OP_PHASE, cct_serve_form_name(form));
  if (is_graph)
    cct_emit_open_bracket(e, CCT_OP_GRAPH, cct_serve_form_name(form));
  cct_emit_embedding(e);
  cct_emit_layers(e, is_piecewise);
  cct_emit_head(e, cct_per_slot(1, b->serve->slots.logits));
  e->moe = before;
  draft(b, is_piecewise);
  b->last[form] = is_graph ? e->graph : e->program->n_ops - 1;
  if (is_graph)
    cct_emit_close_bracket(e, e->graph);
  cct_emit_close_bracket(e, phase);
  cct_emit_close_bracket(e, open);
  return CCT_OK;
}

static void add_host_wait(struct cct_emit *e, int id, int is_previous) {
  struct cct_op collect = {
      .kind = CCT_OP_HOSTWORK, .name = "collect", .lane = -1, .host = e->host, .reads = {-1, -1}, .writes = -1};
  struct cct_wait wait = {id, is_previous};
  (void)cct_program_add(e->program, &collect, &wait, 1);
}

/* For the end of whatever the step computes. */
static int wait_forms(const struct body *b, struct cct_wait waits[CCT_SERVE_FORMS]) {
  int n = 0;
  for (int form = 0; form < CCT_SERVE_FORMS; form++)
    if (b->last[form] >= 0)
      waits[n++] = (struct cct_wait){b->last[form], 0};
  return n;
}

static void read_back(struct body *b) {
  struct cct_emit *e = b->e;
  const struct cct_serve *serve = b->serve;
  const struct cct_quantity bytes = cct_per_slot(4 * (serve->limits.drafts + 1), serve->slots.sequences);
  struct cct_wait sampled[CCT_SERVE_FORMS];
  int n = wait_forms(b, sampled);
  int is_late = serve->is_overlapped, is_apart = is_late || serve->is_worker;
  if (is_late && !serve->is_worker) { /* awaits the copy of the step before: in front of this step's */
    struct cct_wait previous = {e->program->n_ops + 2, 1};
    (void)add_sync(b, "ids_sync", e->readback, e->host, &previous);
  }
  int busy = open_case(e, serve->slots.busy, 1);
  (void)add_copy(b, "ids_back", CCT_COPY_D2H, bytes, is_apart ? e->readback : e->compute, b->reader, sampled,
                 is_apart ? n : 0);
  int sync = -1;
  if (serve->is_worker)
    sync = add_sync(b, "ids_sync", e->readback, b->reader, NULL);
  else if (!is_late)
    cct_emit_sync(e, "ids_sync", e->compute);
  if (serve->is_worker && !is_late)
    add_host_wait(e, sync, 0);
  cct_emit_close_bracket(e, busy);
  if (serve->is_worker && is_late)
    add_host_wait(e, sync, 1);
}

/* ---- caches that change replicas ---- */

/* From the memory of the replica that read the prompt: member `peer` of those with the same part of the layers. */
static void add_peer_copy(struct body *b, int group, int peer, const int buffers[2]) {
  struct cct_emit *e = b->e;
  struct cct_op op = {.kind = CCT_OP_COPY,
                      .name = "kv_read",
                      .lane = b->transfer,
                      .host = b->mover,
                      .reads = {buffers[0], -1},
                      .writes = buffers[1]};
  op.copy.direction = CCT_COPY_P2P;
  op.copy.memory = CCT_MEM_DEVICE;
  op.copy.bytes = cct_per_slot(1, b->serve->slots.fetch_bytes[peer]);
  op.copy.group = group;
  op.copy.peer = peer;
  (void)cct_program_add(e->program, &op, NULL, 0);
}

/* The mover begins when the engine's thread comes to the step. */
static void begin_move(struct body *b) {
  struct cct_op told = {.kind = CCT_OP_HOSTWORK, .name = "kv_told", .lane = -1, .reads = {-1, -1}, .writes = -1};
  told.host = b->e->host;
  struct cct_wait wait = {cct_program_add(b->e->program, &told, NULL, 0), 0};
  told.host = b->mover;
  (void)cct_program_add(b->e->program, &told, &wait, 1);
}

static void fetch_caches(struct body *b) {
  struct cct_emit *e = b->e;
  const struct cct_serve *serve = b->serve;
  const struct cct_serve_slots *s = &serve->slots;
  const struct cct_quantity most = cct_constant(serve->most_fetch_blocks * serve->block_bytes);
  int group = -1, buffers[2] = {-1, -1};
  if (serve->prefills && !serve->is_staged) {
    group = cct_job_add_group(e->job, "replicas", (int)serve->replicas, (int)serve->tp);
    buffers[0] = cct_program_add_buffer(e->program, "kv_left", most, CCT_MEM_DEVICE, 0);
    buffers[1] = cct_program_add_buffer(e->program, "kv_read", most, CCT_MEM_DEVICE, 0);
  }
  for (int i = 0; i < serve->n_sources; i++) {
    int open = open_case(e, s->fetch[i], 1);
    begin_move(b);
    if (serve->is_staged)
      (void)add_copy(b, "kv_in", CCT_COPY_H2D, cct_per_slot(1, s->fetch_bytes[i]), b->transfer, b->mover, NULL, 0);
    else
      add_peer_copy(b, group, i, buffers);
    (void)add_sync(b, "kv_sync", b->transfer, b->mover, NULL);
    cct_emit_close_bracket(e, open);
  }
}

static void stage_caches(struct body *b) {
  const struct cct_serve_slots *s = &b->serve->slots;
  struct cct_wait computed[CCT_SERVE_FORMS];
  int n = wait_forms(b, computed);
  if (!b->serve->is_staged)
    return;
  int open = open_case(b->e, s->stage, 1);
  (void)add_copy(b, "kv_out", CCT_COPY_D2H, cct_per_slot(1, s->stage_bytes), b->transfer, b->mover, computed, n);
  (void)add_sync(b, "kv_out_sync", b->transfer, b->mover, NULL);
  cct_emit_close_bracket(b->e, open);
}

static enum cct_status emit(struct cct_emit *e) {
  struct body b = {.e = e, .serve = e->serve, .reader = e->host, .last = {-1, -1, -1, -1}};
  const struct cct_serve *serve = e->serve;
  enum cct_status status = CCT_OK;
  cct_serve_add_slots(e, e->serve);
  if (serve->is_overlapped || serve->is_worker)
    e->readback = cct_program_add_lane(e->program, "readback", CCT_LANE_STREAM);
  if (serve->is_worker)
    b.reader = cct_program_add_lane(e->program, "reader", CCT_LANE_HOST);
  if (serve->prefills) {
    b.transfer = cct_program_add_lane(e->program, "transfer", CCT_LANE_STREAM);
    b.mover = cct_program_add_lane(e->program, "mover", CCT_LANE_HOST);
  }
  e->b_caches = malloc((size_t)e->model->n_layers * sizeof *e->b_caches);
  if (!e->b_caches)
    return cct_fail(CCT_NOMEM, "out of memory");
  memset(e->b_caches, 0xff, (size_t)e->model->n_layers * sizeof *e->b_caches);
  fetch_caches(&b);
  schedule(&b);
  swap(&b);
  input(&b);
  /* the largest first: weights of experts are made as wide as their first use */
  if (serve->is_mixed_graph)
    status = emit_form(&b, CCT_SERVE_PIECEWISE, "piecewise");
  if (!status)
    status = emit_form(&b, CCT_SERVE_MIXED, "none");
  if (!status)
    status = emit_form(&b, CCT_SERVE_DECODE, cct_cell_text(e->cell, CCT_OPT_GRAPH));
  if (status)
    return status;
  read_back(&b);
  stage_caches(&b);
  cct_serve_hold_most(e, serve);
  return CCT_OK;
}

static int64_t half_full(const struct cct_options *cell, int64_t sequences, int64_t window) {
  int64_t length = cell->v[CCT_OPT_INPUT_LEN].i + cell->v[CCT_OPT_OUTPUT_LEN].i / 2;
  return sequences * (window && window < length ? window : length);
}

struct cct_pass cct_serve_pass(const struct cct_serve *serve) {
  return (struct cct_pass){
      .tokens = serve->most_decode, .sequences = serve->most_sequences, .pairs = half_full, .kv = half_full};
}

static int64_t no_tokens(const struct cct_options *cell) {
  (void)cell; /* so many as the scheduler decides */
  return 0;
}

const struct cct_template cct_template_serve = {"serve", NULL, no_tokens, emit};
