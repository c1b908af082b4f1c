/* SPDX-License-Identifier: Apache-2.0
 * The collective step: `calls` times one collective over all ranks, or (send_recv) a ring in which each rank sends to
 * the next and receives from the one before, as nccl-tests' sendrecv does. With `iters` it is what nccl-tests times:
 * eager, `agg_iters` collectives in one group, which the timing loop repeats `iters` times; or, with `cudagraph`, one
 * graph of all of them. With `gemm` a product in bf16 runs beside each of them, on another branch of the graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "json/json.h"
#include "workloads/shape/cell.h"
#include "workloads/shape/routing.h"
#include "workloads/steps/bare.h"

static enum cct_status read_row(const struct cct_json_at *root, int n, int row, int64_t each, int64_t *bytes) {
  struct cct_json_at at = cct_json_at_index(root, (size_t)row);
  int64_t sum = 0;
  enum cct_status status = cct_json_expect(&at, CCT_JSON_ARRAY);
  if (!status && cct_json_size(at.value) != (size_t)n)
    status = cct_json_fail(&at, CCT_USAGE, "%zu numbers for %d ranks", cct_json_size(at.value), n);
  for (int i = 0; !status && i < n; i++) {
    struct cct_json_at one = cct_json_at_index(&at, (size_t)i);
    status = cct_json_read_i64(&one, 0, (int64_t)1 << 40, &bytes[i]);
    sum += status ? 0 : bytes[i];
  }
  if (!status && sum != each)
    status = cct_json_fail(&at, CCT_USAGE, "rank %d sends %lld bytes in all, not the %lld of the cell (--bytes)", row,
                           (long long)sum, (long long)each);
  return status;
}

/* A JSON array of n arrays: bytes from rank i to rank j; each row sums to what a rank sends. */
static enum cct_status read_matrix(const char *path, int n, int64_t each, int64_t *bytes) {
  struct cct_json *document = NULL;
  enum cct_status status = cct_json_load(path, &document);
  if (status)
    return status;
  struct cct_json_at root = cct_json_root(document, path);
  status = cct_json_expect(&root, CCT_JSON_ARRAY);
  if (!status && cct_json_size(root.value) != (size_t)n)
    status = cct_json_fail(&root, CCT_USAGE, "%zu rows for %d ranks", cct_json_size(root.value), n);
  for (int i = 0; !status && i < n; i++)
    status = read_row(&root, n, i, each, bytes + i * n);
  cct_json_free(document);
  return status;
}

/* zipf:S: each rank's bytes go to the ranks by their popularity, in whole 16 bytes but for the rest, the sum exact. */
static enum cct_status spread_bytes(const struct cct_options *cell, int n, int64_t *bytes) {
  double *popularity = NULL, sum = 0;
  int64_t total = cell->v[CCT_OPT_BYTES].i;
  enum cct_status status =
      cct_routing_popularity(cell->v[CCT_OPT_SKEW].s, n, (uint64_t)cell->v[CCT_OPT_SEED].i, &popularity);
  for (int i = 0; !status && i < n; i++)
    sum += popularity[i];
  double seen = 0;
  int64_t given = 0;
  for (int j = 0; !status && j < n; j++) {
    seen += popularity[j];
    int64_t until = j == n - 1 ? total : (int64_t)((double)total * seen / sum) & ~(int64_t)15;
    for (int i = 0; i < n; i++)
      bytes[i * n + j] = until - given;
    given = until;
  }
  free(popularity);
  return status;
}

static enum cct_status fill_matrix(const struct cct_options *cell, int n, struct cct_matrix *matrix) {
  const char *skew = cell->v[CCT_OPT_SKEW].s;
  if (!strcmp(skew, "uniform"))
    return CCT_OK;
  matrix->bytes = calloc((size_t)n * (size_t)n, sizeof *matrix->bytes);
  if (!matrix->bytes)
    return cct_fail(CCT_NOMEM, "out of memory");
  matrix->n = n;
  return strncmp(skew, "zipf:", 5) ? read_matrix(skew, n, cell->v[CCT_OPT_BYTES].i, matrix->bytes)
                                   : spread_bytes(cell, n, matrix->bytes);
}

/* One of nccl-tests' iterations: the collective, or a group of `agg_iters`. */
static void add_iteration(struct cct_bare *bare, struct cct_op op, const char *name, int kind, int64_t grouped) {
  int is_group = grouped > 1 || kind < 0;
  int id = is_group ? cct_bare_group(bare, kind < 0 ? "ring" : "group") : -1;
  for (int64_t i = 0; i < grouped; i++)
    if (kind < 0)
      cct_bare_ring(bare, op.collective.bytes.base, op.reads[0], op.writes);
    else
      (void)cct_bare_add(bare, op, name);
  if (is_group)
    cct_bare_end(bare, id);
}

/* The send and the receive buffer: two of the collective's size, or rotated ones, or in place one. */
static enum cct_status add_buffers(struct cct_bare *bare, const struct cct_options *cell, struct cct_op *op) {
  const char *place = cell->v[CCT_OPT_PLACE].s, *known = cell->v[CCT_OPT_LOCAL_REGISTER].s;
  int64_t bytes = cell->v[CCT_OPT_BYTES].i, whole = bytes;
  int is_rotated = cell->v[CCT_OPT_BUFFER_BYTES].has_value;
  enum cct_registration registration = CCT_REGISTRATION_NONE;
  for (int i = 0; known && i < CCT_REGISTRATION_COUNT; i++)
    if (!strcmp(known, cct_registration_name((enum cct_registration)i)))
      registration = (enum cct_registration)i;
  if (is_rotated)
    whole = cell->v[CCT_OPT_BUFFER_BYTES].i;
  if (whole < bytes)
    return cct_fail(CCT_USAGE, "a collective of %lld bytes does not fit into buffers of %lld (--buffer-bytes)",
                    (long long)bytes, (long long)whole);
  op->reads[0] = cct_bare_buffer(bare, "send", whole, CCT_MEM_DEVICE);
  op->writes = op->reads[0];
  if (!place || strcmp(place, "in"))
    op->writes = cct_bare_buffer(bare, "recv", whole, CCT_MEM_DEVICE);
  cct_program_set_buffer(bare->program, op->reads[0], is_rotated, registration);
  cct_program_set_buffer(bare->program, op->writes, is_rotated, registration);
  return CCT_OK;
}

static enum cct_status describe(const struct cct_bare *bare, const struct cct_options *cell, int kind,
                                struct cct_op *op) {
  const char *who = cell->v[CCT_OPT_ALLREDUCE].s, *reduction = cell->v[CCT_OPT_REDUCTION].s;
  *op = (struct cct_op){.kind = CCT_OP_COLLECTIVE, .reads = {-1, -1}, .writes = -1};
  op->collective.kind = (enum cct_collective)(kind < 0 ? 0 : kind);
  op->collective.group = bare->all;
  op->collective.bytes = cct_constant(cell->v[CCT_OPT_BYTES].i);
  op->collective.type = (enum cct_type)cct_type_by_name(cell->v[CCT_OPT_TYPE].s);
  op->collective.root = (int)cell->v[CCT_OPT_ROOT].i;
  if (kind == CCT_COLL_ALL_REDUCE)
    op->collective.algorithm = !strcmp(who, "oneshot")   ? CCT_ALGORITHM_ONESHOT
                               : !strcmp(who, "twoshot") ? CCT_ALGORITHM_TWOSHOT
                                                         : CCT_ALGORITHM_AUTO;
  if (!reduction)
    return CCT_OK;
  int id = cct_reduction_by_name(reduction);
  if (id < 0)
    return cct_fail(CCT_USAGE, "op '%s': a cell has one of sum, prod, min, max, avg", reduction);
  op->collective.reduction = (enum cct_reduction)id;
  return CCT_OK;
}

/* The collective's communicator, where the cell leaves the library no choice of its algorithm, protocol or channels. */
static enum cct_status set_choice(struct cct_bare *bare, const struct cct_options *cell) {
  const char *text = cell->v[CCT_OPT_COMM_CHOICE].has_value ? cell->v[CCT_OPT_COMM_CHOICE].s : "";
  struct cct_group *group = &bare->job->groups[bare->all];
  struct cct_choice choice;
  if (strlen(text) >= sizeof group->choice || !cct_choice_parse(text, &choice))
    return cct_fail(CCT_USAGE,
                    "comm-choice '%s': give ALGORITHM/PROTOCOL/CHANNELS, each a name or default; channels "
                    "1 to 64",
                    text);
  snprintf(group->choice, sizeof group->choice, "%s", text);
  return CCT_OK;
}

/* The product beside the collectives; its kind is COLLECTIVE where the cell has none. */
static enum cct_status describe_beside(struct cct_bare *bare, const struct cct_options *cell, int is_graph,
                                       struct cct_op *op) {
  *op = (struct cct_op){.kind = CCT_OP_COLLECTIVE, .name = "beside", .host = -1, .reads = {-1, -1}, .writes = -1};
  if (!cell->v[CCT_OPT_GEMM_SHAPE].is_set)
    return CCT_OK;
  if (!is_graph)
    return cct_fail(CCT_USAGE, "--gemm beside a collective stands in its graph: give --iters and --cudagraph");
  op->lane = cct_program_add_lane(bare->program, "beside", CCT_LANE_STREAM);
  return cct_bare_gemm(bare, cell, CCT_TYPE_BF16, op);
}

static enum cct_status check_timing(const struct cct_bare *bare, const struct cct_options *cell) {
  int is_counted = cell->v[CCT_OPT_ITERS].has_value;
  if (!is_counted && (cell->v[CCT_OPT_AGG_ITERS].has_value || cell->v[CCT_OPT_CUDAGRAPH].has_value))
    return cct_fail(CCT_USAGE, "agg_iters and cudagraph are of what --iters counts: give --iters");
  if (is_counted &&
      (cell->v[CCT_OPT_CALLS].i > 1 || bare->is_closed || !strcmp(cct_cell_text(cell, CCT_OPT_GRAPH), "full")))
    return cct_fail(CCT_USAGE, "with --iters a step is one iteration of nccl-tests' or --cudagraph's graph of them: no "
                               "--calls, --close or --graph");
  return CCT_OK;
}

enum cct_status cct_emit_collective_step(struct cct_bare *bare, const struct cct_options *cell,
                                         struct cct_matrix *matrix) {
  const char *name = cell->v[CCT_OPT_COLLECTIVE].s;
  int kind = cct_collective_by_name(name), is_counted = cell->v[CCT_OPT_ITERS].has_value;
  int64_t grouped = cell->v[CCT_OPT_AGG_ITERS].has_value ? cell->v[CCT_OPT_AGG_ITERS].i : 1;
  int64_t n = !is_counted ? cell->v[CCT_OPT_CALLS].i : cell->v[CCT_OPT_CUDAGRAPH].i ? cell->v[CCT_OPT_ITERS].i : 1;
  struct cct_op op, beside,
      graph = {.kind = CCT_OP_GRAPH, .reads = {-1, -1}, .writes = -1, .graph.is_fresh = is_counted};
  if (kind < 0 && bare->job->ranks == 1)
    return cct_fail(CCT_USAGE, "send_recv needs two ranks or more, --np is 1");
  enum cct_status status = check_timing(bare, cell);
  if (!status && kind == CCT_COLL_ALL_TO_ALLV)
    status = fill_matrix(cell, bare->job->ranks, matrix);
  if (!status)
    status = set_choice(bare, cell);
  if (!status)
    status = describe(bare, cell, kind, &op);
  if (!status)
    status = add_buffers(bare, cell, &op);
  if (!status)
    status = describe_beside(bare, cell, cell->v[CCT_OPT_CUDAGRAPH].i > 0, &beside);
  if (status)
    return status;
  bare->program->n_matrices = matrix->n ? 1 : 0;
  op.collective.matrix = matrix->n ? 0 : -1;
  int is_graph = cell->v[CCT_OPT_CUDAGRAPH].i > 0 || !strcmp(cct_cell_text(cell, CCT_OPT_GRAPH), "full");
  if (is_graph)
    bare->graph = cct_bare_add(bare, graph, "calls");
  for (int64_t i = 0; i < n; i++) {
    add_iteration(bare, op, name, kind, grouped);
    if (beside.kind == CCT_OP_GEMM)
      (void)cct_program_add(bare->program, &beside, NULL, 0);
    if (bare->is_closed && !is_graph)
      cct_bare_sync(bare, bare->stream);
  }
  if (is_graph)
    cct_bare_close_graph(bare);
  if (bare->is_closed && is_graph)
    cct_bare_sync(bare, bare->stream);
  return CCT_OK;
}
