/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/train.h"

#define PART_BYTES (256 << 20) /* of staging memory: what one copy carries at most */

struct saving {
  struct cct_train *t;
  int lane, host_buffer, last; /* the last copy */
  int begun;                   /* this step's first entry of the compute lane: the update of the step before is over */
  enum cct_memory memory;
};

static void copy_part(struct saving *s, const char *name, int64_t bytes) {
  struct cct_emit *e = s->t->e;
  struct cct_op op = {.kind = CCT_OP_COPY,
                      .name = name,
                      .lane = s->lane,
                      .host = e->host,
                      .reads = {s->t->optimizer, -1},
                      .writes = s->host_buffer};
  op.copy.direction = CCT_COPY_D2H;
  op.copy.memory = s->memory;
  op.copy.bytes = cct_constant(bytes);
  struct cct_wait begun = {s->begun, 0};
  s->last = cct_program_add(e->program, &op, &begun, s->last < 0 && s->lane != e->compute);
}

static void copy(struct saving *s, int bucket, const char *what, double bytes) {
  char name[40];
  cct_layer_name(name, bucket, what);
  for (int64_t left = (int64_t)(bytes + 0.5); left > 0; left -= PART_BYTES)
    copy_part(s, name, left < PART_BYTES ? left : PART_BYTES);
}

enum cct_status cct_train_checkpoint(struct cct_train *t) {
  static const char *const state[] = {"save_master", "save_moment1", "save_moment2"};
  struct cct_emit *e = t->e;
  const char *memory = e->cell->v[CCT_OPT_MEMORY].s;
  int is_async = !strcmp(e->cell->v[CCT_OPT_CHECKPOINT].s, "async");
  if (is_async && !strcmp(cct_cell_text(e->cell, CCT_OPT_GRAPH), "full"))
    return cct_fail(CCT_USAGE, "--checkpoint async: the optimizer inside a full graph cannot wait for copies outside: "
                               "--graph none, or --checkpoint sync");
  struct saving s = {.t = t, .lane = e->compute, .last = -1, .begun = cct_emit_last(e), .memory = CCT_MEM_PINNED};
  if (!strcmp(memory, "pageable"))
    s.memory = CCT_MEM_PAGEABLE;
  else if (!strcmp(memory, "mapped"))
    return cct_fail(CCT_USAGE, "--memory mapped: a checkpoint is copied to pinned or pageable memory");
  if (is_async)
    s.lane = cct_program_add_lane(e->program, "checkpoint", CCT_LANE_STREAM);
  s.host_buffer = cct_program_add_buffer(e->program, "staging", cct_constant(PART_BYTES), s.memory, 0);
  int phase = cct_emit_open_bracket(e, CCT_OP_PHASE, "checkpoint");
  for (int b = 0; b < t->n_buckets; b++) {
    const struct cct_bucket *bucket = &t->buckets[b];
    double own = bucket->parameters / (double)(bucket->is_expert ? cct_expert_replicas(&e->layout) : e->layout.dp);
    copy(&s, b, "save_weights", 2 * own);
    for (int i = 0; i < 3; i++)
      copy(&s, b, state[i], 4 * own);
  }
  if (is_async)
    t->saved = s.last;
  else
    cct_emit_sync(e, "save_sync", e->compute);
  cct_emit_close_bracket(e, phase);
  return CCT_OK;
}
