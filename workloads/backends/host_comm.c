/* SPDX-License-Identifier: Apache-2.0
 * The funnel's side of an exchange: started operations of the world, and the test of all that a track waits for. */
#include "workloads/backends/host.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

enum {
  broadcast_tag = 1,
  patience_ns = 50000,
  n_alone = 7, /* repetitions of a measurement alone, of which the median counts */
};

/* Room for the request that the next world call of this exchange starts. */
static struct cct_request **next_request(struct cct_host_comm *comm, const struct cct_world *world) {
  comm->worlds[comm->n_requests] = world;
  return &comm->requests[comm->n_requests++];
}

/* The world starts no broadcast: the root sends to each. */
static enum cct_status start_broadcast(struct cct_host_track *track, const struct cct_host_entry *entry) {
  const struct cct_world *w = entry->world;
  enum cct_status status = CCT_OK;
  if (entry->me)
    return w->ops->irecv(w, track->to, entry->b.bytes, 0, broadcast_tag, next_request(&track->comm, w));
  for (int to = 1; !status && to < entry->n; to++)
    status = w->ops->isend(w, track->to, entry->b.bytes, to, broadcast_tag, next_request(&track->comm, w));
  return status;
}

static enum cct_status start_collective(struct cct_host_track *track, const struct cct_host_entry *entry,
                                        const struct cct_op *op) {
  static const enum cct_result_at result_at[CCT_COLL_COUNT] = {
      [CCT_COLL_ALL_REDUCE] = CCT_RESULT_ALL,
      [CCT_COLL_REDUCE] = CCT_RESULT_ROOT,
      [CCT_COLL_REDUCE_SCATTER] = CCT_RESULT_SCATTER,
  };
  const struct cct_world *w = entry->world;
  switch (op->collective.kind) {
  case CCT_COLL_BROADCAST:
    return start_broadcast(track, entry);
  case CCT_COLL_ALL_GATHER: {
    size_t part = (entry->b.bytes + (size_t)entry->n - 1) / (size_t)entry->n;
    const void *own = cct_host_is_in_place(op) ? track->to + (size_t)entry->me * part : track->from;
    return w->ops->iallgather(w, own, part, track->to, next_request(&track->comm, w));
  }
  case CCT_COLL_ALL_TO_ALL:
  case CCT_COLL_ALL_TO_ALLV:
    return w->ops->ialltoallv(w, track->from, entry->b.send_bytes, track->to, entry->b.recv_bytes,
                              next_request(&track->comm, w));
  default:
    return w->ops->ireduce_with(w, track->to, entry->b.elements, (size_t)cct_type_bits(op->collective.type) / 8,
                                cct_host_combine(op->collective.type, op->collective.reduction),
                                result_at[op->collective.kind], next_request(&track->comm, w));
  }
}

static enum cct_status start_message(struct cct_host_track *track, const struct cct_host_entry *entry,
                                     const struct cct_op *op) {
  const struct cct_world *w = entry->world;
  int peer = ((entry->me + op->p2p.peer_offset) % entry->n + entry->n) % entry->n;
  struct cct_request **request = next_request(&track->comm, w);
  if (op->kind == CCT_OP_SEND)
    return w->ops->isend(w, track->from + entry->b.offset, entry->b.bytes, peer, entry->tag, request);
  return w->ops->irecv(w, track->to + entry->b.offset, entry->b.bytes, peer, entry->tag, request);
}

enum cct_status cct_host_comm_start(struct cct_host_track *track) {
  struct cct_host_comm *comm = &track->comm;
  enum cct_status status = CCT_OK;
  comm->n_requests = 0;
  for (int id = comm->first; !status && id <= comm->last; id++) {
    const struct cct_host_entry *entry = &track->x->entries[id];
    const struct cct_op *op = &track->x->program->ops[id];
    status = op->kind == CCT_OP_COLLECTIVE ? start_collective(track, entry, op) : start_message(track, entry, op);
  }
  return status;
}

enum cct_status cct_host_comm_test(struct cct_host_track *track, int *done_out) {
  struct cct_host_comm *comm = &track->comm;
  int n_open = 0;
  for (int i = 0; i < comm->n_requests; i++) {
    int is_done = 0;
    if (!comm->requests[i])
      continue;
    enum cct_status status = comm->worlds[i]->ops->test(comm->worlds[i], comm->requests[i], &is_done);
    if (status)
      return status;
    if (is_done)
      comm->requests[i] = NULL;
    else
      n_open++;
  }
  *done_out = n_open == 0;
  return CCT_OK;
}

/* Yielding at once would be polite and slow: the scheduler may take a whole slice for it, a thousand times a message.
 */
void cct_host_pause(int64_t moved_at_ns) {
  if (cct_clock_ns() - moved_at_ns > patience_ns)
    sched_yield();
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static enum cct_status exchange_alone(struct cct_host_track *track, int first, int last) {
  int is_done = 0;
  int64_t start_ns = cct_clock_ns(), deadline_ns = track->x->backend->options.deadline_ns;
  track->comm.first = first;
  track->comm.last = last;
  enum cct_status status = cct_host_comm_start(track);
  while (!status && !is_done) {
    status = cct_host_comm_test(track, &is_done);
    if (!status && !is_done && deadline_ns > 0 && cct_clock_ns() - start_ns > deadline_ns)
      status = cct_fail(CCT_STOPPED, "entry %d '%s': no peer answered within the deadline", first,
                        track->x->program->ops[first].name);
    if (!is_done)
      cct_host_pause(start_ns);
  }
  return status;
}

/* Once, as its track would perform it, by this thread. */
static enum cct_status once_alone(struct cct_executor *x, int id) {
  const struct cct_op *ops = x->program->ops;
  int owner = id;
  while (x->entries[owner].track < 0)
    owner--; /* a GROUP's members stand behind it and are its track's */
  struct cct_host_track *track = &x->tracks[x->entries[owner].track];
  if (ops[id].kind == CCT_OP_COLLECTIVE)
    return exchange_alone(track, id, id);
  if (ops[id].kind != CCT_OP_GROUP)
    return cct_host_perform(track, id);
  int last = id + 1;
  while (ops[last].kind != CCT_OP_END)
    last++;
  if (ops[id + 1].kind != CCT_OP_COLLECTIVE)
    return last > id + 1 ? exchange_alone(track, id + 1, last - 1) : CCT_OK;
  enum cct_status status = CCT_OK;
  for (int i = id + 1; !status && i < last; i++)
    status = exchange_alone(track, i, i);
  return status;
}

/* The median over repetitions, each begun together; the longest of the members, so that all stretch it alike. */
static enum cct_status time_alone(struct cct_executor *x, int id, double *ns_out) {
  double ns[n_alone];
  const struct cct_op *op = &x->program->ops[id];
  const struct cct_world *w = x->entries[op->kind == CCT_OP_GROUP ? id + 1 : id].world;
  enum cct_status status = once_alone(x, id);
  for (int i = 0; !status && i < n_alone; i++) {
    if (w)
      status = w->ops->barrier(w);
    int64_t start_ns = cct_clock_ns();
    if (!status)
      status = once_alone(x, id);
    ns[i] = (double)(cct_clock_ns() - start_ns);
  }
  if (status)
    return status;
  qsort(ns, n_alone, sizeof *ns, by_value);
  *ns_out = ns[n_alone / 2];
  return w ? w->ops->allreduce_f64(w, ns_out, 1, CCT_REDUCE_MAX) : CCT_OK;
}

static int changes_size(const struct cct_op *op) {
  if (op->kind == CCT_OP_COLLECTIVE)
    return op->collective.bytes.slot >= 0 || op->collective.matrix >= 0;
  return (op->kind == CCT_OP_SEND || op->kind == CCT_OP_RECV) && op->p2p.bytes.slot >= 0;
}

/* What a binding can resize: a line through its time at the default sizes and at a quarter of them. */
static enum cct_status fit_alone(struct cct_executor *x, int id) {
  struct cct_host_entry *entry = &x->entries[id];
  const struct cct_op *ops = x->program->ops;
  int64_t scale = x->backend->options.scale;
  double whole_bytes = entry->b.busiest_bytes, quarter_ns;
  int is_fitted = changes_size(&ops[id]);
  for (int i = id + 1; ops[id].kind == CCT_OP_GROUP && ops[i].kind != CCT_OP_END; i++)
    is_fitted |= changes_size(&ops[i]);
  enum cct_status status = time_alone(x, id, &entry->alone_ns);
  if (status || !is_fitted)
    return status;
  x->backend->options.scale = scale * 4;
  status = cct_host_bind(x, NULL);
  double quarter_bytes = entry->b.busiest_bytes;
  if (!status)
    status = time_alone(x, id, &quarter_ns);
  x->backend->options.scale = scale;
  if (!status)
    status = cct_host_bind(x, NULL);
  if (!status && whole_bytes > quarter_bytes && quarter_ns < entry->alone_ns) {
    double ns_per_byte = (entry->alone_ns - quarter_ns) / (whole_bytes - quarter_bytes);
    double most = entry->alone_ns / whole_bytes; /* nothing of it a start-up */
    entry->alone_ns_per_byte = ns_per_byte < most ? ns_per_byte : most;
    entry->alone_ns -= entry->alone_ns_per_byte * whole_bytes;
  }
  return status;
}

/* An earlier collective of the same group and sizes that was measured: decided alike by all members, whose n-th agree.
 */
static int measured_like(const struct cct_executor *x, const int *is_wanted, int id) {
  const struct cct_op *op = &x->program->ops[id];
  for (int i = 0; i < id; i++) {
    const struct cct_op *other = &x->program->ops[i];
    if (is_wanted[i] && op->kind == CCT_OP_COLLECTIVE && other->kind == CCT_OP_COLLECTIVE &&
        op->collective.kind == other->collective.kind && op->collective.group == other->collective.group &&
        op->collective.type == other->collective.type && op->collective.matrix == other->collective.matrix &&
        op->collective.bytes.base == other->collective.bytes.base &&
        op->collective.bytes.per == other->collective.bytes.per &&
        op->collective.bytes.slot == other->collective.bytes.slot)
      return i;
  }
  return -1;
}

enum cct_status cct_host_measure_alone(struct cct_executor *x) {
  const struct cct_program *program = x->program;
  enum cct_status status = CCT_OK;
  int *is_wanted = calloc((size_t)program->n_ops + 1, sizeof *is_wanted);
  if (!is_wanted)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int id = 0; id < program->n_ops; id++)
    if (program->ops[id].kind == CCT_OP_DELAY && program->ops[id].delay.of >= 0)
      is_wanted[program->ops[id].delay.of] = 1;
  for (int id = 0; !status && id < program->n_ops; id++) {
    int like = is_wanted[id] ? measured_like(x, is_wanted, id) : -1;
    if (like >= 0) {
      x->entries[id].alone_ns = x->entries[like].alone_ns;
      x->entries[id].alone_ns_per_byte = x->entries[like].alone_ns_per_byte;
    } else if (is_wanted[id]) {
      status = fit_alone(x, id);
    }
  }
  free(is_wanted);
  return status ? status : cct_host_bind(x, NULL);
}
