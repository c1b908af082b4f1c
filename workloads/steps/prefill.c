/* SPDX-License-Identifier: Apache-2.0
 * A prefill step: each replica reads one prompt and makes its first token. Attention is causal: I (I + 1) / 2 query-key
 * pairs, fewer in a window. */
#include <string.h>

#include "workloads/shape/cell.h"
#include "workloads/steps/template.h"

static int64_t pairs(const struct cct_options *cell, int64_t sequences, int64_t window) {
  return sequences * cct_causal_pairs(cell->v[CCT_OPT_INPUT_LEN].i, window);
}

static int64_t kv(const struct cct_options *cell, int64_t sequences, int64_t window) {
  (void)window; /* every cache entry is read by some query */
  return sequences * cell->v[CCT_OPT_INPUT_LEN].i;
}

static struct cct_pass pass(const struct cct_options *cell) {
  return (struct cct_pass){.tokens = cell->v[CCT_OPT_INPUT_LEN].i, .sequences = 1, .pairs = pairs, .kv = kv};
}

static int64_t tokens(const struct cct_options *cell) {
  return cell->v[CCT_OPT_INPUT_LEN].i;
}

static enum cct_status emit(struct cct_emit *e) {
  const char *graph = cct_cell_text(e->cell, CCT_OPT_GRAPH);
  int is_piecewise = !strcmp(graph, "piecewise"), is_graph = strcmp(graph, "none") != 0;
  int phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "input");
  cct_emit_copy(e, "input", CCT_COPY_H2D, 24 * e->tokens);
  cct_emit_close_bracket(e, phase);
  phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "model");
  if (is_graph)
    cct_emit_open_bracket(e, CCT_OP_GRAPH, "prefill");
  cct_emit_embedding(e);
  cct_emit_layers(e, is_piecewise);
  cct_emit_head(e, cct_constant(e->sequences)); /* of the last token only */
  if (is_graph)
    cct_emit_close_bracket(e, e->graph);
  cct_emit_close_bracket(e, phase);
  phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "output");
  cct_emit_copy(e, "ids_back", CCT_COPY_D2H, e->sequences * 4);
  cct_emit_sync(e, "ids_sync", e->compute);
  cct_emit_close_bracket(e, phase);
  return CCT_OK;
}

const struct cct_template cct_template_prefill = {"prefill", pass, tokens, emit};
