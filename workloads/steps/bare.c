/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/steps/bare.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "workloads/shape/cell.h"

int cct_bare_add(struct cct_bare *bare, struct cct_op op, const char *name) {
  op.name = name;
  op.lane = bare->stream;
  op.host = bare->graph >= 0 ? -1 : bare->host;
  return cct_program_add(bare->program, &op, NULL, 0);
}

void cct_bare_end(struct cct_bare *bare, int bracket) {
  struct cct_op op = {.kind = CCT_OP_END, .name = "", .lane = -1, .host = -1, .reads = {-1, -1}, .writes = -1};
  op.end.opens = bracket;
  (void)cct_program_add(bare->program, &op, NULL, 0);
}

void cct_bare_close_graph(struct cct_bare *bare) {
  cct_bare_end(bare, bare->graph);
  bare->graph = -1;
}

void cct_bare_sync(struct cct_bare *bare, int stream) {
  struct cct_op op = {.kind = CCT_OP_SYNC, .name = "sync", .lane = stream, .host = bare->host, .reads = {-1, -1}};
  op.writes = -1;
  (void)cct_program_add(bare->program, &op, NULL, 0);
}

int cct_bare_buffer(struct cct_bare *bare, const char *name, int64_t bytes, enum cct_memory memory) {
  return cct_program_add_buffer(bare->program, name, cct_constant(bytes), memory, 0);
}

int cct_bare_group(struct cct_bare *bare, const char *name) {
  return cct_bare_add(bare, (struct cct_op){.kind = CCT_OP_GROUP, .reads = {-1, -1}, .writes = -1}, name);
}

void cct_bare_ring(struct cct_bare *bare, int64_t bytes, int from, int to) {
  struct cct_op op = {.kind = CCT_OP_SEND, .reads = {from, -1}, .writes = -1};
  op.p2p.group = bare->all;
  op.p2p.peer_offset = 1;
  op.p2p.bytes = cct_constant(bytes);
  (void)cct_bare_add(bare, op, "send");
  op.kind = CCT_OP_RECV;
  op.reads[0] = -1;
  op.writes = to;
  op.p2p.peer_offset = -1;
  (void)cct_bare_add(bare, op, "recv");
}

static enum cct_status open_bare(const struct cct_options *cell, const char *name, struct cct_bare *bare) {
  int ranks = (int)cell->v[CCT_OPT_NP].i;
  const char *close = cell->v[CCT_OPT_CLOSE].s;
  *bare = (struct cct_bare){.graph = -1, .all = -1, .is_closed = close && !strcmp(close, "call")};
  enum cct_status status = cct_job_new(ranks, &bare->job);
  if (!status)
    status = cct_program_new(name, &bare->program);
  if (status)
    return status;
  bare->stream = cct_program_add_lane(bare->program, "compute", CCT_LANE_STREAM);
  bare->host = cct_program_add_lane(bare->program, "main", CCT_LANE_HOST);
  bare->all = ranks > 1 || cct_cell_workload(cell) == CCT_WORKLOAD_COLLECTIVE
                  ? cct_job_add_group(bare->job, "all", ranks, 1)
                  : -1;
  return CCT_OK;
}

enum cct_status cct_bare_build(const struct cct_options *cell, struct cct_job **job_out,
                               struct cct_matrix *matrix_out) {
  struct cct_bare bare = {0};
  struct cct_matrix matrix = {0};
  int is_probe = cct_cell_workload(cell) == CCT_WORKLOAD_PROBE;
  if (!cell->v[CCT_OPT_NP].has_value)
    return cct_fail(CCT_USAGE, "a %s needs --np", is_probe ? "probe" : "collective");
  enum cct_status status =
      open_bare(cell, is_probe ? cell->v[CCT_OPT_PROBE_NAME].s : cell->v[CCT_OPT_COLLECTIVE].s, &bare);
  if (!status)
    status = is_probe ? cct_emit_probe_step(&bare, cell) : cct_emit_collective_step(&bare, cell, &matrix);
  if (!status)
    status = cct_job_add_role(bare.job, bare.program, 0, bare.job->ranks);
  if (!status)
    bare.program = NULL; /* the job's from here on */
  if (!status)
    status = cct_job_check(bare.job);
  if (!status) {
    *job_out = bare.job;
    *matrix_out = matrix;
    return CCT_OK;
  }
  free(matrix.bytes);
  cct_program_free(bare.program);
  cct_job_free(bare.job);
  return status;
}
