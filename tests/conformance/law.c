/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/law.h"

#include <stdlib.h>

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

struct rank {
  const struct cct_program *program;
  const struct cct_duration *durations;
  struct cct_span *spans;         /* this repetition's */
  int64_t *previous;              /* ends of the repetition before; 0: none */
  int64_t *lanes, *branches;      /* H and G of every lane; inside a GRAPH its own branches */
  int64_t graph_start, ready;     /* of the open GRAPH; of the exchange it stands at */
  int id, repetition, graph;      /* where it stands; graph -1: outside */
  int64_t group_start, group_end; /* of the open GROUP */
  int group;
  const int64_t *forms; /* of a sequence, by step modulo their number; NULL: a burst */
  int n_forms;
};

/* Law 9. */
static int is_out(const struct rank *r, int id) {
  const struct cct_op *in = cct_op_case(r->program, &r->program->ops[id]);
  return in &&
         in->when.value != (r->forms ? r->forms[r->repetition % r->n_forms] : r->program->slots[in->when.slot].value);
}

/* A step of a sequence is asked for when the first host lane is past the one before; no host lane begins it earlier. */
static void ask(struct rank *r) {
  int64_t asked = -1;
  for (int pass = 0; r->forms && pass < 2; pass++)
    for (int lane = 0; lane < r->program->n_lanes; lane++) {
      if (r->program->lanes[lane].kind != CCT_LANE_HOST)
        continue;
      if (asked < 0)
        asked = r->lanes[lane];
      r->lanes[lane] = later(r->lanes[lane], asked);
    }
}

static int64_t waits_end(const struct rank *r, const struct cct_op *op) {
  int64_t end = 0;
  for (int i = 0; i < op->n_waits; i++) {
    const struct cct_wait *wait = &r->program->waits[op->first_wait + i];
    end = later(end, wait->is_previous ? r->previous[wait->id] : r->spans[wait->id].end_ns);
  }
  return end;
}

static int64_t *lane_of(struct rank *r, int lane) {
  return r->graph >= 0 ? &r->branches[lane] : &r->lanes[lane];
}

/* When a GPU entry could start: its submission paid, its lane free, its waits done. */
static int64_t ready(struct rank *r, int id) {
  const struct cct_op *op = &r->program->ops[id];
  if (r->group >= 0)
    return r->program->ops[r->group + 1].kind == CCT_OP_COLLECTIVE ? r->group_end : r->group_start;
  int64_t at = later(*lane_of(r, op->lane), waits_end(r, op));
  if (r->graph >= 0)
    return later(at, r->graph_start);
  r->lanes[op->host] += r->durations[id].submit_ns;
  return later(at, r->lanes[op->host]);
}

static void span(struct rank *r, int id, int64_t start_ns, int64_t end_ns) {
  r->spans[id] = (struct cct_span){start_ns, end_ns};
}

static void finish(struct rank *r, int id, int64_t start_ns, int64_t end_ns) {
  const struct cct_op *op = &r->program->ops[id];
  span(r, id, start_ns, end_ns);
  if (r->group >= 0) {
    r->group_end = later(r->group_end, end_ns);
    return;
  }
  *lane_of(r, op->lane) = end_ns;
  if (r->durations[id].is_blocking)
    r->lanes[op->host] = end_ns;
}

static void open_bracket(struct rank *r, int id) {
  const struct cct_op *op = &r->program->ops[id];
  int64_t start = op->kind == CCT_OP_PHASE || op->kind == CCT_OP_CASE ? 0 : ready(r, id);
  if (op->kind == CCT_OP_GRAPH) {
    r->graph = id;
    r->graph_start = start;
    for (int i = 0; i < r->program->n_lanes; i++)
      r->branches[i] = start;
  } else if (op->kind == CCT_OP_GROUP) {
    r->group = id;
    r->group_start = r->group_end = start;
  }
}

static void close_bracket(struct rank *r, int opens) {
  const struct cct_op *op = &r->program->ops[opens];
  if (opens == r->graph) {
    int64_t end = r->graph_start;
    for (int i = 0; i < r->program->n_lanes; i++)
      end = later(end, r->branches[i]);
    r->graph = -1;
    span(r, opens, r->graph_start, end);
    r->lanes[op->lane] = end;
  } else if (opens == r->group) {
    r->group = -1;
    span(r, opens, r->group_start, r->group_end);
    *lane_of(r, op->lane) = r->group_end;
  }
}

static void on_host(struct rank *r, int id) {
  const struct cct_op *op = &r->program->ops[id];
  int64_t start = later(r->lanes[op->host], waits_end(r, op)), end;
  if (op->kind == CCT_OP_SYNC)
    end = later(start, r->lanes[op->lane]) + r->durations[id].run_ns;
  else
    end = start + r->durations[id].run_ns;
  span(r, id, start, end);
  r->lanes[op->host] = end;
}

static int is_exchange(const struct cct_op *op) {
  return op->kind == CCT_OP_COLLECTIVE || op->kind == CCT_OP_SEND || op->kind == CCT_OP_RECV;
}

/* Goes on until an exchange or the end of the burst; 1: it stands at an exchange, `ready` says since when. */
static int advance(struct rank *r, int n) {
  for (;;) {
    if (r->id == r->program->n_ops) {
      if (r->repetition == n - 1)
        return 0;
      r->repetition++;
      ask(r);
      for (int id = 0; id < r->program->n_ops; id++)
        r->previous[id] = r->spans[id].end_ns;
      r->id = 0;
      continue;
    }
    const struct cct_op *op = &r->program->ops[r->id];
    if (is_out(r, r->id)) {
      span(r, r->id++, -1, -1);
      continue;
    }
    if (is_exchange(op)) {
      if (r->ready < 0)
        r->ready = ready(r, r->id);
      return 1;
    }
    if (op->kind == CCT_OP_GRAPH || op->kind == CCT_OP_GROUP || op->kind == CCT_OP_PHASE || op->kind == CCT_OP_CASE)
      open_bracket(r, r->id);
    else if (op->kind == CCT_OP_END)
      close_bracket(r, op->end.opens);
    else if (op->lane < 0 || op->kind == CCT_OP_SYNC)
      on_host(r, r->id);
    else {
      int64_t start = ready(r, r->id);
      finish(r, r->id, start, start + r->durations[r->id].run_ns);
    }
    r->id++;
  }
}

static void go_past(struct rank *r, int64_t start_ns, int64_t end_ns) {
  finish(r, r->id, start_ns, end_ns);
  r->id++;
  r->ready = -1;
}

/* A whole GROUP of messages is one meeting of all members at once: in the random jobs each member's GROUP holds as many
 * sends as receives, and every pair of the ring meets in it. */
static int64_t peers_ready(const struct cct_job *job, const struct rank *ranks, int rank, int id) {
  const struct cct_op *op = &ranks[rank].program->ops[id];
  const struct cct_group *group = &job->groups[op->p2p.group];
  int me = cct_group_index(group, rank), size = group->size;
  int peer = cct_group_member(group, rank, ((me + op->p2p.peer_offset) % size + size) % size);
  return later(ranks[rank].group_start, ranks[peer].group_start);
}

static int resolve_collective(const struct cct_job *job, struct rank *ranks, int rank) {
  const struct cct_op *op = &ranks[rank].program->ops[ranks[rank].id];
  const struct cct_group *group = &job->groups[op->collective.group];
  int64_t start = 0, longest = 0;
  for (int i = 0; i < group->size; i++) {
    struct rank *r = &ranks[cct_group_member(group, rank, i)];
    const struct cct_op *theirs = r->id < r->program->n_ops ? &r->program->ops[r->id] : NULL;
    if (!theirs || theirs->kind != CCT_OP_COLLECTIVE || theirs->collective.group != op->collective.group ||
        r->ready < 0 || r->repetition != ranks[rank].repetition)
      return 0;
    start = later(start, r->ready);
    longest = later(longest, r->durations[r->id].run_ns);
  }
  for (int i = 0; i < group->size; i++)
    go_past(&ranks[cct_group_member(group, rank, i)], start, start + longest);
  return 1;
}

static int resolve(const struct cct_job *job, struct rank *ranks, int rank) {
  struct rank *r = &ranks[rank];
  if (r->program->ops[r->id].kind == CCT_OP_COLLECTIVE)
    return resolve_collective(job, ranks, rank);
  /* All members must stand in the GROUP before one leaves it, since they read each other's start. */
  for (int i = 0; i < job->ranks; i++)
    if (ranks[i].group != r->group || ranks[i].repetition != r->repetition)
      return 0;
  for (int i = 0; i < job->ranks; i++) {
    struct rank *each = &ranks[i];
    for (int id = each->group + 1; each->program->ops[id].kind != CCT_OP_END; id++) {
      int64_t start = peers_ready(job, ranks, i, id);
      span(each, id, start, start + each->durations[id].run_ns);
    }
  }
  for (int i = 0; i < job->ranks; i++) {
    struct rank *each = &ranks[i];
    for (each->id = each->group + 1; each->program->ops[each->id].kind != CCT_OP_END; each->id++)
      each->group_end = later(each->group_end, each->spans[each->id].end_ns);
    each->ready = -1;
  }
  return 1;
}

int64_t cct_law(const struct cct_job *job, struct cct_duration *const *durations, int n, const int64_t *forms,
                int n_forms, struct cct_span *const *spans, int64_t *rank_ends) {
  struct rank *ranks = calloc((size_t)job->ranks, sizeof *ranks);
  int64_t end = 0;
  if (!ranks)
    abort();
  for (int i = 0; i < job->ranks; i++) {
    const struct cct_program *program = cct_job_role(job, i)->program;
    ranks[i] = (struct rank){.program = program,
                             .durations = durations[i],
                             .spans = spans[i],
                             .forms = forms,
                             .n_forms = n_forms,
                             .ready = -1,
                             .graph = -1,
                             .group = -1,
                             .previous = calloc((size_t)program->n_ops + 1, sizeof(int64_t)),
                             .lanes = calloc((size_t)program->n_lanes + 1, sizeof(int64_t)),
                             .branches = calloc((size_t)program->n_lanes + 1, sizeof(int64_t))};
    for (int id = 0; id < program->n_ops; id++)
      spans[i][id] = (struct cct_span){-1, -1};
  }
  int n_blocked, has_moved;
  do {
    n_blocked = has_moved = 0;
    for (int i = 0; i < job->ranks; i++)
      n_blocked += advance(&ranks[i], n);
    for (int i = 0; i < job->ranks; i++)
      if (ranks[i].id < ranks[i].program->n_ops && ranks[i].ready >= 0)
        has_moved |= resolve(job, ranks, i);
  } while (n_blocked && has_moved);
  for (int i = 0; i < job->ranks; i++) {
    rank_ends[i] = 0;
    for (int lane = 0; lane < ranks[i].program->n_lanes; lane++)
      rank_ends[i] = later(rank_ends[i], ranks[i].lanes[lane]);
    end = later(end, rank_ends[i]);
    free(ranks[i].previous);
    free(ranks[i].lanes);
    free(ranks[i].branches);
  }
  free(ranks);
  return n_blocked ? -1 : end;
}
