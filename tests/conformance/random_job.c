/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/random_job.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"

enum {
  n_streams = 3,
  n_hosts = 2,
  message_bytes = 96,
  left = 0, /* the buffer that other ranks read */
};

struct draw {
  struct cct_program *program;
  uint64_t shape, times; /* seeds: alike on all ranks, and this rank's own */
  uint64_t n_shape, n_times;
  int *candidates, n_candidates; /* what a wait may name */
  int ranks;
  unsigned allow;
  int64_t unit_ns;
  int graph_key;
};

static int pick(struct draw *d, int n) {
  return (int)cct_random_below(d->shape, d->n_shape++, n);
}

static int64_t some_time(struct draw *d) {
  return d->unit_ns * (1 + cct_random_below(d->times, d->n_times++, 4));
}

static struct cct_op blank(enum cct_op_kind kind, int lane, int host) {
  return (struct cct_op){.kind = kind, .lane = lane, .host = host, .reads = {-1, -1}, .writes = -1, .name = ""};
}

/* Some entries wait for an earlier one, or for one of the repetition before. */
static int add(struct draw *d, const struct cct_op *op) {
  struct cct_wait waits[2];
  int n = 0;
  while (d->n_candidates && n < 2 && pick(d, 3) == 0)
    waits[n++] = (struct cct_wait){d->candidates[pick(d, d->n_candidates)], pick(d, 4) == 0};
  int id = cct_program_add(d->program, op, waits, n);
  d->candidates[d->n_candidates++] = id;
  return id;
}

static void plain(struct draw *d, const struct cct_op *op) {
  cct_program_add(d->program, op, NULL, 0);
}

static struct cct_op small_op(struct draw *d, int lane, int host) {
  struct cct_op op = blank(CCT_OP_DELAY, lane, host);
  switch (pick(d, 6)) {
  case 0:
    op.kind = CCT_OP_LAUNCH;
    return op;
  case 1:
    op.kind = CCT_OP_ELEMENTWISE;
    op.elementwise.bytes = cct_constant(64);
    return op;
  case 2:
    op.kind = CCT_OP_GEMM;
    op.gemm.m = cct_constant(3);
    op.gemm.n = 5;
    op.gemm.k = 7;
    op.gemm.groups = 1;
    op.gemm.type = CCT_TYPE_BF16;
    return op;
  default:
    op.delay.ns = some_time(d);
    op.delay.of = -1;
    return op;
  }
}

static struct cct_op collective(struct draw *d, int lane, int host) {
  static const enum cct_collective kinds[] = {CCT_COLL_ALL_REDUCE, CCT_COLL_ALL_GATHER, CCT_COLL_REDUCE_SCATTER,
                                              CCT_COLL_ALL_TO_ALL, CCT_COLL_BROADCAST};
  struct cct_op op = blank(CCT_OP_COLLECTIVE, lane, host);
  op.collective.kind = kinds[pick(d, d->allow & CCT_RANDOM_ONE_WAY ? 5 : 4)];
  op.collective.group = d->ranks % 2 || d->ranks < 4 ? 0 : pick(d, 2);
  op.collective.bytes = cct_constant(message_bytes);
  op.collective.type = CCT_TYPE_BF16;
  op.collective.matrix = -1;
  return op;
}

static void end(struct draw *d, int opens) {
  struct cct_op op = blank(CCT_OP_END, -1, -1);
  op.end.opens = opens;
  plain(d, &op);
}

static void ring(struct draw *d, int lane, int host) {
  struct cct_op group = blank(CCT_OP_GROUP, lane, host), send = blank(CCT_OP_SEND, lane, host);
  send.p2p.group = 0;
  send.p2p.peer_offset = 1;
  send.p2p.bytes = cct_constant(message_bytes);
  struct cct_op receive = send;
  receive.kind = CCT_OP_RECV;
  receive.p2p.peer_offset = -1;
  int id = add(d, &group);
  plain(d, &send);
  plain(d, &receive);
  if (!(d->allow & CCT_RANDOM_ONE_WAY)) {
    send.p2p.peer_offset = -1;
    receive.p2p.peer_offset = 1;
    plain(d, &send);
    plain(d, &receive);
  }
  end(d, id);
}

static void collectives(struct draw *d, int lane, int host) {
  struct cct_op group = blank(CCT_OP_GROUP, lane, host);
  int id = add(d, &group);
  for (int i = 0; i < 2; i++) {
    struct cct_op op = collective(d, lane, host);
    plain(d, &op);
  }
  end(d, id);
}

/* Inside, waits name only what is inside. */
static void graph(struct draw *d, int lane, int host) {
  struct cct_op op = blank(CCT_OP_GRAPH, lane, host);
  op.graph.key = d->graph_key++;
  int id = add(d, &op), n_outside = d->n_candidates, *outside = d->candidates, n = 2 + pick(d, 5);
  d->candidates += n_outside;
  d->n_candidates = 0;
  for (int i = 0; i < n; i++) {
    struct cct_op inner = small_op(d, pick(d, n_streams), -1);
    struct cct_wait wait;
    int waits = d->n_candidates && pick(d, 2);
    if (waits)
      wait = (struct cct_wait){d->candidates[pick(d, d->n_candidates)], 0};
    d->candidates[d->n_candidates++] = cct_program_add(d->program, &inner, &wait, waits);
  }
  d->candidates = outside;
  d->n_candidates = n_outside;
  end(d, id);
}

/* One-sided: whose memory it reads is this rank's own draw, and may be its own. */
static struct cct_op peer_copy(struct draw *d, int lane, int host) {
  struct cct_op op = blank(CCT_OP_COPY, lane, host);
  op.reads[0] = left;
  op.copy.direction = CCT_COPY_P2P;
  op.copy.memory = CCT_MEM_DEVICE;
  op.copy.bytes = cct_constant(message_bytes);
  op.copy.group = d->ranks % 2 || d->ranks < 4 ? 0 : pick(d, 2);
  op.copy.peer = (int)cct_random_below(d->times, d->n_times++, op.copy.group ? 2 : d->ranks);
  return op;
}

static void entry(struct draw *d) {
  int lane = pick(d, n_streams), host = n_streams + pick(d, n_hosts), what = pick(d, 17);
  struct cct_op op = blank(CCT_OP_SYNC, lane, host);
  if (what == 0 && d->allow & CCT_RANDOM_HOSTWORK) {
    op = blank(CCT_OP_HOSTWORK, -1, host);
    op.hostwork.ns = some_time(d);
    add(d, &op);
  } else if (what == 1) {
    op = blank(CCT_OP_DELAY, -1, host);
    op.delay.ns = some_time(d);
    op.delay.of = -1;
    add(d, &op);
  } else if (what == 2) {
    add(d, &op);
  } else if (what == 16) {
    op = peer_copy(d, lane, host);
    add(d, &op);
  } else if (what == 3) {
    op.kind = CCT_OP_COPY;
    op.copy.direction = (enum cct_direction)pick(d, 2);
    op.copy.memory = (enum cct_memory)pick(d, 2);
    op.copy.bytes = cct_constant(message_bytes);
    op.copy.is_blocking = pick(d, 2);
    if (d->allow & CCT_RANDOM_PAGEABLE_BLOCKS && op.copy.memory == CCT_MEM_PAGEABLE)
      op.copy.is_blocking = 1;
    add(d, &op);
  } else if (what < 6) {
    op = collective(d, lane, host);
    add(d, &op);
  } else if (what == 6 && d->ranks > 1) {
    ring(d, lane, host);
  } else if (what == 7) {
    collectives(d, lane, host);
  } else if (what == 8 || what == 9) {
    graph(d, lane, host);
  } else {
    op = small_op(d, lane, host);
    add(d, &op);
  }
}

static void in_case(struct draw *d, int64_t value, int n) {
  struct cct_op op = blank(CCT_OP_CASE, -1, -1);
  op.when.slot = 0;
  op.when.value = value;
  int id = cct_program_add(d->program, &op, NULL, 0);
  while (n--)
    entry(d);
  end(d, id);
}

static struct cct_program *random_program(uint64_t seed, int rank, int ranks, int n_entries, int64_t unit_ns,
                                          unsigned allow) {
  struct draw d = {.shape = seed,
                   .times = cct_random_fold(seed, (uint64_t)rank + 1),
                   .ranks = ranks,
                   .allow = allow,
                   .unit_ns = unit_ns};
  int *room = malloc(48 * (size_t)n_entries * sizeof *room);
  char name[32];
  snprintf(name, sizeof name, "random %llu", (unsigned long long)seed);
  if (!room || cct_program_new(name, &d.program))
    abort();
  d.candidates = room;
  for (int i = 0; i < n_streams; i++)
    cct_program_add_lane(d.program, "stream", CCT_LANE_STREAM);
  for (int i = 0; i < n_hosts; i++)
    cct_program_add_lane(d.program, "host", CCT_LANE_HOST);
  cct_program_add_buffer(d.program, "left", cct_constant(message_bytes), CCT_MEM_DEVICE, 0);
  if (allow & CCT_RANDOM_CASES)
    cct_program_add_slot(d.program, "form", 1);
  for (int i = 0; i < n_entries; i++)
    if (allow & CCT_RANDOM_CASES && pick(&d, 4) == 0)
      in_case(&d, pick(&d, 2), 1 + pick(&d, 3));
    else
      entry(&d);
  for (int lane = 0; lane < n_streams; lane++) {
    struct cct_op op = blank(CCT_OP_SYNC, lane, n_streams);
    plain(&d, &op);
  }
  free(room);
  return d.program;
}

struct cct_job *cct_random_job(uint64_t seed, int ranks, int n_entries, int64_t unit_ns, unsigned allow) {
  struct cct_job *job;
  if (cct_job_new(ranks, &job))
    abort();
  cct_job_add_group(job, "all", ranks, 1);
  if (ranks % 2 == 0 && ranks > 2)
    cct_job_add_group(job, "far", 2, ranks / 2);
  for (int rank = 0; rank < ranks; rank++)
    if (cct_job_add_role(job, random_program(seed, rank, ranks, n_entries, unit_ns, allow), rank, 1))
      abort();
  return job;
}
