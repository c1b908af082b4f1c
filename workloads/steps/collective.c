/* SPDX-License-Identifier: Apache-2.0
 * The collective step: `calls` times one collective over all ranks, or (send_recv) a ring in which each rank sends to
 * the next and receives from the one before, as nccl-tests' sendrecv does. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "json/json.h"
#include "workloads/shape/cell.h"
#include "workloads/shape/routing.h"
#include "workloads/steps/bare.h"

static enum cct_status read_row(const struct cct_json_at *root, int n, int row, int64_t *bytes) {
  struct cct_json_at at = cct_json_at_index(root, (size_t)row);
  enum cct_status status = cct_json_expect(&at, CCT_JSON_ARRAY);
  if (!status && cct_json_size(at.value) != (size_t)n)
    status = cct_json_fail(&at, CCT_USAGE, "%zu numbers for %d ranks", cct_json_size(at.value), n);
  for (int i = 0; !status && i < n; i++) {
    struct cct_json_at one = cct_json_at_index(&at, (size_t)i);
    status = cct_json_read_i64(&one, 0, (int64_t)1 << 50, &bytes[i]);
  }
  return status;
}

/* A JSON array of n arrays: bytes from rank i to rank j. */
static enum cct_status read_matrix(const char *path, int n, int64_t *bytes) {
  struct cct_json *document = NULL;
  enum cct_status status = cct_json_load(path, &document);
  if (status)
    return status;
  struct cct_json_at root = cct_json_root(document, path);
  status = cct_json_expect(&root, CCT_JSON_ARRAY);
  if (!status && cct_json_size(root.value) != (size_t)n)
    status = cct_json_fail(&root, CCT_USAGE, "%zu rows for %d ranks", cct_json_size(root.value), n);
  for (int i = 0; !status && i < n; i++)
    status = read_row(&root, n, i, bytes + i * n);
  cct_json_free(document);
  return status;
}

/* zipf:S: each rank's bytes go to the ranks by their popularity, the sum exact. */
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
    int64_t until = j == n - 1 ? total : (int64_t)((double)total * seen / sum);
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
  return strncmp(skew, "zipf:", 5) ? read_matrix(skew, n, matrix->bytes) : spread_bytes(cell, n, matrix->bytes);
}

enum cct_status cct_emit_collective_step(struct cct_bare *bare, const struct cct_options *cell,
                                         struct cct_matrix *matrix) {
  const char *name = cell->v[CCT_OPT_COLLECTIVE].s, *who = cell->v[CCT_OPT_ALLREDUCE].s;
  int kind = cct_collective_by_name(name);
  int64_t bytes = cell->v[CCT_OPT_BYTES].i;
  if (bare->all < 0)
    return cct_fail(CCT_USAGE, "a collective needs two ranks or more, --np is 1");
  if (kind == CCT_COLL_ALL_TO_ALLV) {
    enum cct_status status = fill_matrix(cell, bare->job->ranks, matrix);
    if (status)
      return status;
  }
  bare->program->n_matrices = matrix->n ? 1 : 0;
  int from = cct_bare_buffer(bare, "send", bytes, CCT_MEM_DEVICE),
      to = cct_bare_buffer(bare, "recv", bytes, CCT_MEM_DEVICE);
  struct cct_op op = {.kind = CCT_OP_GRAPH, .reads = {-1, -1}, .writes = -1};
  if (!strcmp(cct_cell_text(cell, CCT_OPT_GRAPH), "full"))
    bare->graph = cct_bare_add(bare, op, "calls");
  op = (struct cct_op){.kind = CCT_OP_COLLECTIVE, .reads = {from, -1}, .writes = to};
  op.collective.kind = (enum cct_collective)(kind < 0 ? 0 : kind);
  op.collective.group = bare->all;
  op.collective.bytes = cct_constant(bytes);
  op.collective.type = (enum cct_type)cct_type_by_name(cell->v[CCT_OPT_TYPE].s);
  op.collective.matrix = matrix->n ? 0 : -1;
  if (kind == CCT_COLL_ALL_REDUCE)
    op.collective.algorithm = !strcmp(who, "oneshot")   ? CCT_ALGORITHM_ONESHOT
                              : !strcmp(who, "twoshot") ? CCT_ALGORITHM_TWOSHOT
                                                        : CCT_ALGORITHM_AUTO;
  int is_graph = bare->graph >= 0;
  for (int64_t i = 0; i < cell->v[CCT_OPT_CALLS].i; i++) {
    if (kind < 0)
      cct_bare_ring(bare, bytes, from, to);
    else
      (void)cct_bare_add(bare, op, name);
    if (bare->is_closed && !is_graph)
      cct_bare_sync(bare, bare->stream);
  }
  if (is_graph)
    cct_bare_close_graph(bare);
  if (bare->is_closed && is_graph)
    cct_bare_sync(bare, bare->stream);
  return CCT_OK;
}
