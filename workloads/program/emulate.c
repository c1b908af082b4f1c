/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/program/emulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "workloads/program/price.h"

const char *cct_boundary_name(enum cct_boundary boundary) {
  static const char *const names[] = {
#define ROW(id, name) name,
      CCT_BOUNDARIES(ROW)
#undef ROW
  };
  return names[boundary];
}

struct place { /* what an entry stands in; -1: nothing */
  int graph, group;
};

/* One program on its way into another. Entry `id` of the old one becomes `to[id]`; who waited for it waits for
 * `done[id]`, the last delay behind it. Both are known before anything is added, since prev: waits name later entries.
 */
struct emulation {
  const struct cct_job *job;
  const struct cct_profile *profile;
  const struct cct_program *old;
  struct cct_program *new;
  unsigned mask;
  int rank;                   /* of the role, to price its links */
  struct cct_binding binding; /* the template's defaults choose the rows */
  int *to, *done;
  struct cct_wait *waits; /* of the entry in hand: room for all of the old program */
  int n;                  /* entries of the new program so far */
  int is_counting;
  struct place place;
};

static int has(const struct emulation *e, enum cct_boundary boundary) {
  return ((e->mask >> boundary) & 1) != 0;
}

static int64_t surcharge_ns(struct cct_cost clear, struct cct_cost confidential) {
  double us = confidential.value - clear.value;
  return us > 0 ? llround(us * 1e3) : 0; /* no emulation makes a machine faster */
}

static int add(struct emulation *e, const struct cct_op *op, const struct cct_wait *waits, int n_waits) {
  if (!e->is_counting)
    cct_program_add(e->new, op, waits, n_waits);
  return e->n++;
}

static int add_delay(struct emulation *e, const char *name, int lane, int host, int64_t ns, double stretch, int of,
                     const struct cct_wait *wait) {
  struct cct_op op = {.kind = CCT_OP_DELAY, .lane = lane, .host = host, .reads = {-1, -1}, .writes = -1, .name = name};
  op.delay.ns = ns;
  op.delay.stretch = stretch;
  op.delay.of = of;
  return add(e, &op, wait, wait != NULL);
}

/* ---- channel ---- */

static int64_t channel_ns(const struct emulation *e, const struct cct_op *op, int id) {
  const struct cct_column *clear = &e->profile->clear, *cc = &e->profile->confidential;
  if (!has(e, CCT_BOUNDARY_CHANNEL) || !cct_op_is_submission(op))
    return 0;
  if (op->kind != CCT_OP_GRAPH)
    return surcharge_ns(clear->submission.us, cc->submission.us);
  double a_node_us = cc->graph_launch.us_per_node.value - clear->graph_launch.us_per_node.value;
  double us = cc->graph_launch.us.value - clear->graph_launch.us.value + cct_graph_nodes(e->old, id) * a_node_us;
  return us > 0 ? llround(us * 1e3) : 0;
}

static int is_blocking_copy(const struct emulation *e, const struct cct_op *op) {
  return op->kind == CCT_OP_COPY &&
         (op->copy.is_blocking || (cct_copy_is_host(op->copy.direction) &&
                                   cct_column_copy(&e->profile->clear, op->copy.direction, op->copy.memory)->blocks));
}

/* Behind the work rather than in front of it: so it begins no earlier than the work's own submission allows, and
 * whatever follows the work follows the delay, which comes to the same. A blocking copy's caller is held as well. */
static void add_stream_surcharge(struct emulation *e, const struct cct_op *op, int id, int64_t ns) {
  e->done[id] = add_delay(e, "channel", op->lane, op->host, ns, 0, -1, NULL);
  struct cct_wait wait = {.id = e->done[id]};
  if (is_blocking_copy(e, op))
    add_delay(e, "channel", -1, op->host, 0, 0, -1, &wait);
}

/* ---- nvlink ---- */

static int is_peer_copy(const struct cct_op *op) {
  return op->kind == CCT_OP_COPY && op->copy.direction == CCT_COPY_P2P;
}

/* toll + (1/k - 1) t with t = fixed + wire/bw clear: the confidential time is fixed' + wire/bw', so with k = bw'/bw the
 * toll is fixed' - fixed/k. It may be negative; the delay as a whole is not, unless confidential is faster. */
static enum cct_status add_link_surcharge(struct emulation *e, const struct cct_op *op, int id, int of, int place_of) {
  const struct cct_profile *p = e->profile;
  struct cct_pricing pricing = {.profile = p, .column = &p->clear, .has_multicast = p->capability.multicast};
  struct cct_link_cost clear, cc;
  int in_graph = e->place.graph >= 0;
  enum cct_status status = cct_price_link(&pricing, e->job, op, &e->binding, e->rank, in_graph, &clear);
  pricing.column = &p->confidential;
  if (!status)
    status = cct_price_link(&pricing, e->job, op, &e->binding, e->rank, in_graph, &cc);
  if (status)
    return cct_fail(status, "profile '%s': no row prices entry %d (%s '%s') of '%s' in both columns", p->name, id,
                    cct_op_name(op->kind), op->name, e->old->name);
  double inverse_k = clear.gb_s / cc.gb_s;
  int64_t toll_ns = llround((cc.fixed_us - clear.fixed_us * inverse_k) * 1e3);
  if (toll_ns || inverse_k != 1)
    e->done[place_of] = add_delay(e, "nvlink", op->lane, op->host, toll_ns, inverse_k - 1, e->to[of], NULL);
  return CCT_OK;
}

/* Behind a GROUP: a delay for each of its collectives, which follow each other, or one for its longest message. */
static enum cct_status add_group_surcharge(struct emulation *e, int group) {
  const struct cct_op *ops = e->old->ops, *longest = NULL;
  int longest_id = -1;
  for (int id = group + 1; ops[id].kind != CCT_OP_END; id++) {
    const struct cct_op *op = &ops[id];
    if (op->kind == CCT_OP_COLLECTIVE) {
      enum cct_status status = add_link_surcharge(e, op, id, id, group);
      if (status)
        return status;
    } else if (!longest ||
               cct_quantity_value(op->p2p.bytes, &e->binding) > cct_quantity_value(longest->p2p.bytes, &e->binding)) {
      longest = op;
      longest_id = id;
    }
  }
  return longest ? add_link_surcharge(e, longest, longest_id, group, group) : CCT_OK;
}

/* ---- entries ---- */

static enum cct_status make_bounce(const struct emulation *e, int id, struct cct_op *op) {
  if (op->kind != CCT_OP_COPY || !cct_copy_is_host(op->copy.direction) || !has(e, CCT_BOUNDARY_COPIES))
    return CCT_OK;
  if (e->place.graph >= 0)
    return cct_fail(CCT_UNSUPPORTED,
                    "program '%s': entry %d (copy '%s'): a bounce copy cannot stand inside a graph; emulate "
                    "without graphs",
                    e->old->name, id, op->name);
  op->copy.is_bounce = 1;
  op->copy.is_blocking |= cct_column_copy(&e->profile->confidential, op->copy.direction, op->copy.memory)->blocks;
  return CCT_OK;
}

static void add_entry(struct emulation *e, int id, const struct cct_op *changed) {
  struct cct_op op = *changed;
  for (int w = 0; w < op.n_waits && !e->is_counting; w++) {
    e->waits[w] = e->old->waits[op.first_wait + w];
    e->waits[w].id = e->done[e->waits[w].id];
  }
  if (op.kind == CCT_OP_DELAY && op.delay.of >= 0)
    op.delay.of = e->to[op.delay.of];
  e->to[id] = e->done[id] = add(e, &op, e->waits, op.n_waits);
}

/* What follows an entry that is complete: for a bracket, behind its END. `id` is the operation, GRAPH or GROUP. */
static enum cct_status add_behind(struct emulation *e, int id, const struct cct_op *op) {
  const struct cct_column *clear = &e->profile->clear, *cc = &e->profile->confidential;
  enum cct_status status = CCT_OK;
  if (has(e, CCT_BOUNDARY_NVLINK) && op->kind == CCT_OP_GROUP)
    status = add_group_surcharge(e, id);
  else if (has(e, CCT_BOUNDARY_NVLINK) && (op->kind == CCT_OP_COLLECTIVE || is_peer_copy(op)))
    status = add_link_surcharge(e, op, id, id, id);
  if (status || e->place.graph >= 0)
    return status;
  int64_t ns = cc->submission.form == CCT_FORM_STREAM ? channel_ns(e, op, id) : 0;
  if (ns)
    add_stream_surcharge(e, op, id, ns);
  int64_t sync_ns =
      has(e, CCT_BOUNDARY_CHANNEL) && op->kind == CCT_OP_SYNC ? surcharge_ns(clear->sync_us, cc->sync_us) : 0;
  if (sync_ns)
    e->done[id] = add_delay(e, "channel", -1, op->host, sync_ns, 0, -1, NULL);
  return CCT_OK;
}

static enum cct_status emulate_entry(struct emulation *e, int id) {
  struct cct_op op = e->old->ops[id];
  int is_outside = e->place.graph < 0 && e->place.group < 0;
  enum cct_status status = make_bounce(e, id, &op);
  if (status)
    return status;
  if (op.kind == CCT_OP_HOSTWORK && has(e, CCT_BOUNDARY_CPU))
    op.hostwork.ns = llround((double)op.hostwork.ns * e->profile->confidential.cpu_slowdown.value /
                             e->profile->clear.cpu_slowdown.value);
  int64_t ns = is_outside && e->profile->confidential.submission.form == CCT_FORM_HOST ? channel_ns(e, &op, id) : 0;
  if (ns)
    add_delay(e, "channel", -1, op.host, ns, 0, -1, NULL);
  add_entry(e, id, &op);
  if (op.kind == CCT_OP_GRAPH) {
    e->place.graph = id;
  } else if (op.kind == CCT_OP_GROUP) {
    e->place.group = id;
  } else if (op.kind == CCT_OP_END && op.end.opens == e->place.group) {
    e->place.group = -1;
    return add_behind(e, op.end.opens, &e->old->ops[op.end.opens]);
  } else if (op.kind == CCT_OP_END && op.end.opens == e->place.graph) {
    e->place.graph = -1;
    return add_behind(e, op.end.opens, &e->old->ops[op.end.opens]);
  } else if (e->place.group < 0 && op.kind != CCT_OP_END && op.kind != CCT_OP_PHASE && op.kind != CCT_OP_CASE) {
    return add_behind(e, id, &op);
  }
  return CCT_OK;
}

static enum cct_status emulate_program(struct emulation *e) {
  const struct cct_program *old = e->old;
  for (int i = 0; i < old->n_lanes; i++)
    cct_program_add_lane(e->new, old->lanes[i].name, old->lanes[i].kind);
  for (int i = 0; i < old->n_slots; i++)
    cct_program_add_slot(e->new, old->slots[i].name, old->slots[i].value);
  for (int i = 0; i < old->n_buffers; i++) {
    const struct cct_buffer *buffer = &old->buffers[i];
    int id = cct_program_add_buffer(e->new, buffer->name, buffer->bytes, buffer->memory, buffer->is_weight);
    cct_program_set_buffer(e->new, id, buffer->is_rotated, buffer->registration);
  }
  enum cct_status status = CCT_OK;
  for (e->is_counting = 1; e->is_counting >= 0 && !status; e->is_counting--) {
    e->n = 0;
    e->place = (struct place){-1, -1};
    for (int id = 0; id < old->n_ops && !status; id++)
      status = emulate_entry(e, id);
  }
  if (!status && e->new->is_failed)
    status = cct_fail(CCT_NOMEM, "program '%s': out of memory", old->name);
  return status;
}

static enum cct_status emulate_role(const struct cct_job *job, const struct cct_role *role,
                                    const struct cct_profile *profile, unsigned mask, struct cct_job *into) {
  const struct cct_program *old = role->program;
  int64_t *slots = malloc(((size_t)old->n_slots + 1) * sizeof *slots);
  struct emulation e = {.job = job, .profile = profile, .old = old, .mask = mask, .rank = role->first};
  e.to = malloc(((size_t)old->n_ops + 1) * sizeof *e.to);
  e.done = malloc(((size_t)old->n_ops + 1) * sizeof *e.done);
  e.waits = malloc(((size_t)old->n_waits + 1) * sizeof *e.waits);
  enum cct_status status = slots && e.to && e.done && e.waits
                               ? cct_program_new(old->name, &e.new)
                               : cct_fail(CCT_NOMEM, "program '%s': out of memory", old->name);
  if (status)
    goto out;
  for (int i = 0; i < old->n_slots; i++)
    slots[i] = old->slots[i].value;
  e.binding.slots = slots;
  status = emulate_program(&e);
  e.new->n_matrices = old->n_matrices;
  if (!status)
    status = cct_job_add_role(into, e.new, role->first, role->count);
  if (status)
    cct_program_free(e.new);
out:
  free(slots);
  free(e.to);
  free(e.done);
  free(e.waits);
  return status;
}

enum cct_status cct_emulate(const struct cct_job *job, const struct cct_profile *profile, unsigned mask,
                            struct cct_job **job_out) {
  struct cct_job *emulated;
  if (!profile->has_clear || !profile->has_confidential)
    return cct_fail(CCT_USAGE, "profile '%s': emulation needs both columns, clear and confidential", profile->name);
  enum cct_status status = cct_job_new(job->ranks, &emulated);
  if (status)
    return status;
  memcpy(emulated->groups, job->groups, sizeof emulated->groups);
  emulated->n_groups = job->n_groups;
  for (int i = 0; i < job->n_roles && !status; i++)
    status = emulate_role(job, &job->roles[i], profile, mask, emulated);
  if (status)
    cct_job_free(emulated);
  else
    *job_out = emulated;
  return status;
}

void cct_capability_environment(const struct cct_profile *profile, int nccl_version, struct cct_environment *out) {
  out->n = 0;
  if (!profile->capability.multicast)
    out->pairs[out->n++] = "NCCL_NVLS_ENABLE=0";
  if (!profile->capability.work_fifo)
    out->pairs[out->n++] = "NCCL_WORK_FIFO_BYTES=0";
  /* NCCL gives up its all-gather-v path together with the work FIFO; the variable is known from 2.29.2 on */
  if (!profile->capability.work_fifo && (nccl_version == 0 || nccl_version >= 22902))
    out->pairs[out->n++] = "NCCL_ALLGATHERV_ENABLE=0";
}
