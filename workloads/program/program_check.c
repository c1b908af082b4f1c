/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/program/program_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct check {
  const struct cct_job *job;
  const struct cct_program *program;
  int *graph_of, *group_of; /* of each entry: the GRAPH or GROUP it stands in, -1: none */
  int graph, group;         /* open now */
  int open[16], n_open;
};

static enum cct_status refuse(const struct check *c, int id, const char *why) {
  const struct cct_op *op = &c->program->ops[id];
  const char *kind = op->kind < CCT_OP_COUNT ? cct_op_name(op->kind) : "?";
  return cct_fail(CCT_USAGE, "program '%s': entry %d (%s '%s'): %s", c->program->name, id, kind, op->name, why);
}

int cct_quantity_standard(const struct cct_program *program, struct cct_quantity q, int64_t *value_out) {
  int64_t scaled = 0;
  if (q.slot < -1 || q.slot >= program->n_slots)
    return 0;
  if (q.slot >= 0 && __builtin_mul_overflow(q.per, program->slots[q.slot].value, &scaled))
    return 0;
  return !__builtin_add_overflow(q.base, scaled, value_out) && *value_out >= 0;
}

static int is_quantity(const struct check *c, struct cct_quantity q) {
  int64_t value;
  return cct_quantity_standard(c->program, q, &value);
}

static int is_lane(const struct check *c, int lane, enum cct_lane_kind kind) {
  return lane >= 0 && lane < c->program->n_lanes && c->program->lanes[lane].kind == kind;
}

static int is_group(const struct check *c, int group) {
  return group >= 0 && group < c->job->n_groups;
}

static enum cct_status check_lanes(const struct check *c, int id) {
  const struct cct_op *op = &c->program->ops[id];
  int is_sync = op->kind == CCT_OP_SYNC;
  if (cct_op_is_gpu(op) || cct_op_is_submission(op) || is_sync) {
    if (!is_lane(c, op->lane, CCT_LANE_STREAM))
      return refuse(c, id, "its lane is no GPU lane of this program");
  } else if (op->kind == CCT_OP_DELAY || op->kind == CCT_OP_HOSTWORK) {
    if (op->lane != -1)
      return refuse(c, id, "it runs on a host lane, so its lane has to be -1");
  } else {
    return CCT_OK; /* PHASE, CASE and END have no lanes */
  }
  if (c->graph >= 0)
    return op->host == -1 ? CCT_OK : refuse(c, id, "inside a graph nothing has a host lane: use -1");
  if (!is_lane(c, op->host, CCT_LANE_HOST))
    return refuse(c, id, "its host lane is no host lane of this program");
  return CCT_OK;
}

static int has_no_time(const struct cct_op *op) {
  return op->kind == CCT_OP_PHASE || op->kind == CCT_OP_CASE || op->kind == CCT_OP_END;
}

static enum cct_status check_waits(const struct check *c, int id) {
  const struct cct_program *p = c->program;
  const struct cct_op *op = &p->ops[id];
  if (op->n_waits && has_no_time(op))
    return refuse(c, id, "a phase, a case or an end cannot wait");
  if (op->n_waits && c->group >= 0)
    return refuse(c, id, "a member of a group has no waits of its own: let the group wait");
  for (int w = 0; w < op->n_waits; w++) {
    struct cct_wait wait = p->waits[op->first_wait + w];
    if (wait.id < 0 || wait.id >= p->n_ops)
      return refuse(c, id, "it waits for an entry that does not exist");
    if (!wait.is_previous && wait.id >= id)
      return refuse(c, id, "it waits for itself or a later entry: wait for an earlier one, or for prev:ID");
    if (has_no_time(&p->ops[wait.id]))
      return refuse(c, id, "it waits for a phase or an end, or a case: wait for the operation, graph or group itself");
    if (c->group_of[wait.id] >= 0)
      return refuse(c, id, "it waits for a member of a group: wait for the group");
    if (c->graph_of[wait.id] != c->graph || (wait.is_previous && c->graph >= 0))
      return refuse(c, id, "its wait crosses the edge of a graph");
  }
  return CCT_OK;
}

static const char *wrong_peer(const struct check *c, const struct cct_op *op) {
  if (!is_group(c, op->copy.group))
    return "its group does not exist";
  if (op->copy.peer < 0 || op->copy.peer >= c->job->groups[op->copy.group].size)
    return "its peer is no member of its group";
  if (c->graph >= 0)
    return "a copy from another's memory inside a graph";
  int buffer = op->reads[0];
  for (int r = 0; buffer >= 0 && r < c->job->n_roles; r++) {
    const struct cct_program *other = c->job->roles[r].program;
    if (buffer < other->n_buffers && other->buffers[buffer].memory != CCT_MEM_DEVICE)
      return "what it reads has to be device memory in every role";
    if (buffer >= other->n_buffers)
      return "what it reads is no buffer of every role";
  }
  return op->copy.is_blocking ? "a copy from another's memory does not block" : NULL;
}

static const char *wrong_copy(const struct check *c, const struct cct_op *op) {
  if (op->copy.direction >= CCT_DIRECTION_COUNT || op->copy.memory >= CCT_MEMORY_COUNT)
    return "its direction or memory is unknown";
  if (!is_quantity(c, op->copy.bytes))
    return "its bytes are no size, or name a slot that does not exist";
  int is_host = cct_copy_is_host(op->copy.direction);
  if (is_host && op->copy.memory == CCT_MEM_DEVICE)
    return "a host-device copy needs pinned, pageable or mapped memory";
  if (!is_host && op->copy.is_bounce)
    return "a copy that crosses no host memory is no bounce copy";
  if (op->copy.direction == CCT_COPY_P2P)
    return wrong_peer(c, op);
  if (c->graph >= 0 && is_host && op->copy.memory == CCT_MEM_PAGEABLE)
    return "a pageable copy inside a graph";
  if (c->graph >= 0 && (op->copy.is_blocking || op->copy.is_bounce))
    return "a blocking or bounce copy inside a graph";
  if (!op->copy.carries_binding)
    return NULL;
  int64_t bytes;
  if (c->graph >= 0 || op->copy.direction != CCT_COPY_H2D || op->copy.memory != CCT_MEM_PINNED)
    return "what carries the binding is an h2d copy of pinned memory, outside graphs";
  if (!cct_quantity_standard(c->program, op->copy.bytes, &bytes) || bytes < 8 * (int64_t)c->program->n_slots)
    return "it carries the binding, so its bytes have to be at least 8 a slot";
  return NULL;
}

static const char *wrong_delay(const struct check *c, int id, const struct cct_op *op) {
  int of = op->delay.of;
  if (of < 0)
    return of == -1 && op->delay.ns >= 0 ? NULL : "its delay is negative";
  if (of >= id)
    return "it stretches itself or a later entry";
  const struct cct_op *stretched = &c->program->ops[of];
  if (stretched->kind != CCT_OP_GROUP && (!cct_op_is_gpu(stretched) || stretched->kind == CCT_OP_DELAY))
    return "it stretches an entry that is no operation and no group";
  if (stretched->in_case >= 0 && stretched->in_case != op->in_case)
    return "it stretches an entry of a case that it does not stand in";
  return isfinite(op->delay.stretch) ? NULL : "its stretch is not finite";
}

static const char *wrong_collective(const struct check *c, const struct cct_op *op) {
  if (op->collective.kind >= CCT_COLL_COUNT || op->collective.type >= CCT_TYPE_COUNT ||
      op->collective.algorithm >= CCT_ALGORITHM_COUNT)
    return "its kind, type or algorithm is unknown";
  if (!is_group(c, op->collective.group))
    return "its group does not exist";
  if (!is_quantity(c, op->collective.bytes))
    return "its bytes are no size, or name a slot that does not exist";
  if (op->collective.algorithm != CCT_ALGORITHM_AUTO && op->collective.kind != CCT_COLL_ALL_REDUCE)
    return "oneshot and twoshot are algorithms of all_reduce alone";
  if (op->collective.reduction >= CCT_REDUCTION_COUNT)
    return "its reduction is unknown";
  if (op->collective.reduction != CCT_REDUCTION_SUM &&
      (!cct_collective_reduces(op->collective.kind) || op->collective.algorithm != CCT_ALGORITHM_AUTO))
    return "what moves data reduces nothing, and oneshot and twoshot add: its reduction has to be sum";
  if (op->collective.root < 0 || op->collective.root >= c->job->groups[op->collective.group].size)
    return "its root is no member of its group";
  if (op->collective.root && op->collective.kind != CCT_COLL_BROADCAST && op->collective.kind != CCT_COLL_REDUCE)
    return "a root belongs to broadcast and reduce alone";
  if (op->collective.matrix < -1 || op->collective.matrix >= c->program->n_matrices)
    return "its traffic matrix does not exist";
  if (op->collective.matrix >= 0 && op->collective.kind != CCT_COLL_ALL_TO_ALLV)
    return "a traffic matrix belongs to all_to_allv alone";
  return NULL;
}

static const char *wrong_fields(const struct check *c, int id) {
  const struct cct_op *op = &c->program->ops[id];
  switch (op->kind) {
  case CCT_OP_GEMM:
    if (op->gemm.type >= CCT_TYPE_COUNT || op->gemm.n < 1 || op->gemm.k < 1 || op->gemm.groups < 1)
      return "its n, k, groups have to be at least 1 and its type known";
    return is_quantity(c, op->gemm.m) ? NULL : "its m is no count, or names a slot that does not exist";
  case CCT_OP_ATTENTION:
    return op->attention.type < CCT_TYPE_COUNT && is_quantity(c, op->attention.flops) &&
                   is_quantity(c, op->attention.kv_bytes)
               ? NULL
               : "its flops, KV bytes or type are no such, or name a slot that does not exist";
  case CCT_OP_ELEMENTWISE:
    return is_quantity(c, op->elementwise.bytes) ? NULL : "its bytes are no size, or name a slot that does not exist";
  case CCT_OP_COLLECTIVE:
    return wrong_collective(c, op);
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    if (c->group < 0)
      return "a send or receive outside a group";
    if (!is_group(c, op->p2p.group))
      return "its group does not exist";
    if (op->p2p.peer_offset % c->job->groups[op->p2p.group].size == 0)
      return "a rank cannot send to itself";
    return is_quantity(c, op->p2p.bytes) ? NULL : "its bytes are no size, or name a slot that does not exist";
  case CCT_OP_COPY:
    return wrong_copy(c, op);
  case CCT_OP_HOSTWORK:
    return op->hostwork.ns >= 0 ? NULL : "its time is negative";
  case CCT_OP_DELAY:
    return wrong_delay(c, id, op);
  case CCT_OP_CASE:
    return op->when.slot >= 0 && op->when.slot < c->program->n_slots ? NULL : "it names a slot that does not exist";
  default:
    return NULL;
  }
}

/* What may stand inside the brackets that are open. */
static const char *wrong_place(const struct check *c, const struct cct_op *op) {
  const struct cct_program *p = c->program;
  int is_p2p = op->kind == CCT_OP_SEND || op->kind == CCT_OP_RECV;
  if (c->group >= 0 && op->kind != CCT_OP_END) {
    if (!is_p2p && op->kind != CCT_OP_COLLECTIVE)
      return "a group holds only sends and receives, or only collectives";
    if (op->lane != p->ops[c->group].lane || op->host != p->ops[c->group].host)
      return "a member of a group has to stand on the group's lane and host lane";
    const struct cct_op *first = &p->ops[c->group + 1];
    if ((first->kind == CCT_OP_COLLECTIVE) != (op->kind == CCT_OP_COLLECTIVE))
      return "a group holds sends and receives, or collectives, never both";
  }
  if (c->graph >= 0 && (op->kind == CCT_OP_SYNC || op->kind == CCT_OP_HOSTWORK || op->kind == CCT_OP_GRAPH ||
                        (op->kind == CCT_OP_DELAY && op->lane < 0)))
    return "a graph holds no sync, host work, host delay or other graph";
  if (op->kind == CCT_OP_CASE && (c->graph >= 0 || op->in_case >= 0))
    return "a case stands inside a graph or another case";
  return NULL;
}

static enum cct_status follow_brackets(struct check *c, int id) {
  const struct cct_op *op = &c->program->ops[id];
  if (op->kind == CCT_OP_GRAPH || op->kind == CCT_OP_PHASE || op->kind == CCT_OP_GROUP || op->kind == CCT_OP_CASE) {
    if (c->n_open == (int)(sizeof c->open / sizeof *c->open))
      return refuse(c, id, "brackets deeper than 16");
    c->open[c->n_open++] = id;
    c->graph = op->kind == CCT_OP_GRAPH ? id : c->graph;
    c->group = op->kind == CCT_OP_GROUP ? id : c->group;
  } else if (op->kind == CCT_OP_END) {
    if (!c->n_open || op->end.opens != c->open[c->n_open - 1])
      return refuse(c, id, "it closes nothing, or not the innermost bracket");
    int closed = c->open[--c->n_open];
    c->graph = closed == c->graph ? -1 : c->graph;
    c->group = closed == c->group ? -1 : c->group;
  }
  return CCT_OK;
}

static enum cct_status check_entry(struct check *c, int id) {
  const struct cct_op *op = &c->program->ops[id];
  if (op->kind >= CCT_OP_COUNT)
    return refuse(c, id, "its kind is unknown");
  c->graph_of[id] = c->graph;
  c->group_of[id] = c->group;
  const char *why = wrong_place(c, op);
  enum cct_status status = why ? refuse(c, id, why) : check_lanes(c, id);
  if (!status)
    status = check_waits(c, id);
  if (!status && (why = wrong_fields(c, id)) != NULL)
    status = refuse(c, id, why);
  for (int i = 0; !status && i < 3; i++) {
    int buffer = i < 2 ? op->reads[i] : op->writes;
    if (buffer < -1 || buffer >= c->program->n_buffers)
      status = refuse(c, id, "it names a buffer that does not exist");
  }
  return status ? status : follow_brackets(c, id);
}

static int is_chosen(const struct cct_program *p, const struct cct_op *op, int chosen) {
  return op->in_case < 0 || (chosen >= 0 && !cct_case_compare(cct_op_case(p, op), &p->ops[chosen]));
}

static int is_first_of_its_kind(const struct cct_program *p, int id) {
  for (int i = 0; i < id; i++)
    if (p->ops[i].kind == CCT_OP_CASE && !cct_case_compare(&p->ops[i], &p->ops[id]))
      return 0;
  return 1;
}

/* A lane is joined when a SYNC on it follows its last operation, or another lane or the next repetition waits for that.
 * `chosen`: one of the cases, -1: what stands in none is judged alone. */
static enum cct_status check_joined(const struct check *c, int chosen) {
  const struct cct_program *p = c->program;
  int is_first = 1;
  for (int lane = 0; lane < p->n_lanes; lane++) {
    if (p->lanes[lane].kind != CCT_LANE_STREAM)
      continue;
    int last = -1, is_joined = is_first;
    is_first = 0;
    for (int id = 0; id < p->n_ops; id++) {
      const struct cct_op *op = &p->ops[id];
      if ((cct_op_is_gpu(op) || cct_op_is_submission(op)) && op->lane == lane && c->graph_of[id] < 0 &&
          c->group_of[id] < 0 && is_chosen(p, op, chosen))
        last = id;
    }
    for (int id = 0; last >= 0 && !is_joined && id < p->n_ops; id++) {
      const struct cct_op *op = &p->ops[id];
      if (!is_chosen(p, op, chosen))
        continue;
      if (op->kind == CCT_OP_SYNC && op->lane == lane && id > last)
        is_joined = 1;
      for (int w = 0; w < op->n_waits; w++) {
        struct cct_wait wait = p->waits[op->first_wait + w];
        if (wait.id == last && (wait.is_previous || op->lane != lane || op->kind == CCT_OP_SYNC))
          is_joined = 1;
      }
    }
    if (last >= 0 && !is_joined)
      return refuse(c, last, "the last of an unjoined lane: no sync, no other lane and no prev: waits for it");
  }
  return CCT_OK;
}

enum cct_status cct_program_check(const struct cct_job *job, const struct cct_program *p) {
  if (p->is_failed)
    return cct_fail(CCT_NOMEM, "program '%s': out of memory while it was built", p->name);
  enum cct_status status = CCT_OK;
  struct check c = {.job = job, .program = p, .graph = -1, .group = -1};
  c.graph_of = calloc((size_t)p->n_ops + 1, sizeof *c.graph_of);
  c.group_of = calloc((size_t)p->n_ops + 1, sizeof *c.group_of);
  if (!c.graph_of || !c.group_of) {
    status = cct_fail(CCT_NOMEM, "program '%s': out of memory", p->name);
    goto out;
  }
  /* a prev: wait may name a later entry, so where each entry stands is known first */
  for (int id = 0, graph = -1, group = -1; id < p->n_ops; id++) {
    const struct cct_op *op = &p->ops[id];
    int closes = op->kind == CCT_OP_END ? op->end.opens : -1;
    c.graph_of[id] = graph;
    c.group_of[id] = group;
    graph = op->kind == CCT_OP_GRAPH ? id : closes >= 0 && closes == graph ? -1 : graph;
    group = op->kind == CCT_OP_GROUP ? id : closes >= 0 && closes == group ? -1 : group;
  }
  for (int i = 0; i < p->n_buffers; i++)
    if (!is_quantity(&c, p->buffers[i].bytes) || p->buffers[i].memory >= CCT_MEMORY_COUNT) {
      status = cct_fail(CCT_USAGE, "program '%s': buffer %d ('%s'): no size, or no such memory", p->name, i,
                        p->buffers[i].name);
      goto out;
    }
  for (int id = 0; id < p->n_ops && !status; id++)
    status = check_entry(&c, id);
  if (!status && c.n_open)
    status = refuse(&c, c.open[c.n_open - 1], "it is never closed");
  if (!status)
    status = check_joined(&c, -1);
  for (int id = 0; id < p->n_ops && !status; id++)
    if (p->ops[id].kind == CCT_OP_CASE && is_first_of_its_kind(p, id))
      status = check_joined(&c, id);
out:
  free(c.graph_of);
  free(c.group_of);
  return status;
}
