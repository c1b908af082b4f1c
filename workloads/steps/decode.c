/* SPDX-License-Identifier: Apache-2.0
 * A decode step: every sequence of the batch gets one token. Input metadata goes up in one pinned copy (ids, positions,
 * slots, block table: 24 bytes a sequence and 4 a block of 16 tokens), the sampled ids come back in one; then the host
 * goes on. With
 * --overlap the ids of step n are awaited in step n + 1, behind its launch (SGLang's and vLLM's overlapped scheduling).
 *
 * Graphs: full holds everything between the two copies; piecewise leaves the attention cores out (vLLM), one graph
 * between each two. The cache is read at its mean length, input + output / 2. */
#include <string.h>

#include "workloads/shape/cell.h"
#include "workloads/steps/template.h"

static int64_t cache_length(const struct cct_options *cell) {
  return cell->v[CCT_OPT_INPUT_LEN].i + cell->v[CCT_OPT_OUTPUT_LEN].i / 2;
}

static int64_t kv(const struct cct_options *cell, int64_t sequences, int64_t window) {
  int64_t length = cache_length(cell);
  return sequences * (window && window < length ? window : length);
}

static struct cct_pass pass(const struct cct_options *cell) {
  int64_t batch = cell->v[CCT_OPT_BATCH].i;
  return (struct cct_pass){.tokens = batch, .sequences = batch, .pairs = kv, .kv = kv};
}

static int64_t tokens(const struct cct_options *cell) {
  return cell->v[CCT_OPT_BATCH].i;
}

static void body(struct cct_emit *e, int is_piecewise) {
  cct_emit_embedding(e);
  cct_emit_layers(e, is_piecewise);
  cct_emit_head(e, cct_per_token(e, 1));
}

/* The graph, or outside of one the kernel, that ended the work so far. */
static int last_work(const struct cct_program *program) {
  int id = program->n_ops - 1;
  for (; id >= 0; id--) {
    const struct cct_op *op = &program->ops[id];
    if (op->kind == CCT_OP_END && program->ops[op->end.opens].kind == CCT_OP_GRAPH)
      return op->end.opens;
    if (op->kind != CCT_OP_END && op->kind != CCT_OP_PHASE)
      break;
  }
  return id;
}

static void read_back(struct cct_emit *e, int is_overlapped) {
  int64_t bytes = e->sequences * 4;
  if (!is_overlapped) {
    cct_emit_copy(e, "ids_back", CCT_COPY_D2H, bytes);
    cct_emit_sync(e, "ids_sync", e->compute);
    return;
  }
  /* the sync awaits the copy of the step before, so it stands in front of this step's copy */
  struct cct_wait sampled = {last_work(e->program), 0}, previous = {e->program->n_ops + 1, 1};
  struct cct_op sync = {
      .kind = CCT_OP_SYNC, .name = "ids_sync", .lane = e->readback, .host = e->host, .reads = {-1, -1}, .writes = -1};
  (void)cct_program_add(e->program, &sync, &previous, 1);
  int to = cct_program_add_buffer(e->program, "ids_back", cct_constant(bytes), CCT_MEM_PINNED, 0);
  struct cct_op copy = {.kind = CCT_OP_COPY,
                        .name = "ids_back",
                        .lane = e->readback,
                        .host = e->host,
                        .reads = {e->b_logits, -1},
                        .writes = to};
  copy.copy.direction = CCT_COPY_D2H;
  copy.copy.memory = CCT_MEM_PINNED;
  copy.copy.bytes = cct_constant(bytes);
  (void)cct_program_add(e->program, &copy, &sampled, 1);
}

static enum cct_status emit(struct cct_emit *e) {
  const char *graph = cct_cell_text(e->cell, CCT_OPT_GRAPH);
  int is_overlapped = !strcmp(e->cell->v[CCT_OPT_OVERLAP].s, "on"), is_graph = strcmp(graph, "none") != 0;
  double host_ns = e->cell->v[CCT_OPT_HOST_US].f * 1000;
  if (is_overlapped)
    e->readback = cct_program_add_lane(e->program, "readback", CCT_LANE_STREAM);
  if (host_ns > 0) {
    struct cct_op work = {
        .kind = CCT_OP_HOSTWORK, .name = "schedule", .lane = -1, .host = e->host, .reads = {-1, -1}, .writes = -1};
    work.hostwork.ns = (int64_t)(host_ns + 0.5);
    (void)cct_program_add(e->program, &work, NULL, 0);
  }
  int phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "input");
  cct_emit_copy(e, "input", CCT_COPY_H2D, e->sequences * (24 + 4 * cct_share(cache_length(e->cell), 16)));
  cct_emit_close_bracket(e, phase);
  phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "model");
  if (is_graph)
    cct_emit_open_bracket(e, CCT_OP_GRAPH, "decode");
  body(e, !strcmp(graph, "piecewise"));
  if (is_graph)
    cct_emit_close_bracket(e, e->graph);
  cct_emit_close_bracket(e, phase);
  phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "output");
  read_back(e, is_overlapped);
  cct_emit_close_bracket(e, phase);
  return CCT_OK;
}

const struct cct_template cct_template_decode = {"decode", pass, tokens, emit};
