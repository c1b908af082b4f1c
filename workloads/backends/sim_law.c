/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/sim_law.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static int64_t *new_times(int n) {
  return calloc((size_t)n + 1, sizeof(int64_t));
}

enum cct_status sim_state_init(struct sim_state *s, const struct sim_plan *plan) {
  int n = plan->program->n_ops;
  *s = (struct sim_state){.plan = plan};
  s->durations = calloc((size_t)n + 1, sizeof *s->durations);
  s->submitted = new_times(n);
  s->start = new_times(n);
  s->end = new_times(n);
  s->previous_end = new_times(n);
  s->clock = new_times(plan->n_tracks);
  s->clock_before = new_times(plan->n_tracks);
  s->next = sim_new_ints(plan->n_tracks, 0);
  s->is_held = sim_new_ints(plan->n_tracks, 0);
  s->announced = sim_new_ints(n, -1);
  s->is_out = calloc((size_t)n + 1, sizeof *s->is_out);
  if (s->durations && s->submitted && s->start && s->end && s->previous_end && s->clock && s->clock_before && s->next &&
      s->is_held && s->announced && s->is_out)
    return CCT_OK;
  sim_state_release(s);
  return cct_fail(CCT_NOMEM, "sim: out of memory");
}

void sim_state_release(struct sim_state *s) {
  free(s->durations);
  free(s->submitted);
  free(s->start);
  free(s->end);
  free(s->previous_end);
  free(s->clock);
  free(s->clock_before);
  free(s->next);
  free(s->is_held);
  free(s->announced);
  free(s->is_out);
  memset(s, 0, sizeof *s);
}

void sim_state_bind(struct sim_state *s, const struct cct_binding *binding) {
  const struct cct_program *p = s->plan->program;
  for (int id = 0; id < p->n_ops; id++)
    s->is_out[id] = !binding || !cct_op_is_performed(p, &p->ops[id], binding);
}

void sim_state_copy(struct sim_state *s, const struct sim_state *from) {
  size_t n = (size_t)s->plan->program->n_ops, tracks = (size_t)s->plan->n_tracks;
  memcpy(s->durations, from->durations, n * sizeof *s->durations);
  memcpy(s->submitted, from->submitted, n * sizeof *s->submitted);
  memcpy(s->start, from->start, n * sizeof *s->start);
  memcpy(s->end, from->end, n * sizeof *s->end);
  memcpy(s->is_out, from->is_out, n);
  memcpy(s->clock, from->clock, tracks * sizeof *s->clock);
  s->done = from->done;
}

void sim_state_start_burst(struct sim_state *s) {
  size_t n = (size_t)s->plan->program->n_ops;
  memset(s->clock, 0, (size_t)s->plan->n_tracks * sizeof *s->clock);
  memset(s->end, 0, n * sizeof *s->end); /* of the repetition before the first: no constraint */
  s->done = s->plan->program->n_lanes;
}

void sim_state_start_repetition(struct sim_state *s) {
  int n = s->plan->program->n_ops;
  int64_t *before = s->previous_end;
  s->previous_end = s->end;
  s->end = before;
  for (int id = 0; id < n; id++)
    s->submitted[id] = s->start[id] = s->end[id] = -1;
  for (int id = 0; id < n; id++)
    if (s->is_out[id])
      s->end[id] = 0; /* whoever waits for it has waited */
  memcpy(s->clock_before, s->clock, (size_t)s->plan->n_tracks * sizeof *s->clock);
  memset(s->next, 0, (size_t)s->plan->n_tracks * sizeof *s->next);
  memset(s->is_held, 0, (size_t)s->plan->n_tracks * sizeof *s->is_held);
  s->done = s->n_announced = 0;
}

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* The latest end of an entry's waits; -1: one is not known. */
static int64_t waits_end(const struct sim_state *s, const struct cct_op *op) {
  int64_t latest = 0;
  for (int w = 0; w < op->n_waits; w++) {
    struct cct_wait wait = s->plan->program->waits[op->first_wait + w];
    int64_t end = wait.is_previous ? s->previous_end[wait.id] : s->end[wait.id];
    if (end < 0)
      return -1;
    latest = later(latest, end);
  }
  return latest;
}

static void announce(struct sim_state *s, int id, int64_t ready_ns) {
  s->start[id] = ready_ns;
  s->announced[s->n_announced++] = id;
}

/* Law 5. Messages run side by side from the group's start; collectives follow each other. The end, -1: not known. */
static int64_t run_group(struct sim_state *s, int group) {
  const struct cct_op *ops = s->plan->program->ops;
  int64_t at = s->start[group], last = at;
  for (int id = group + 1; id < s->plan->end_of[group]; id++) {
    if (s->start[id] < 0)
      announce(s, id, at);
    if (ops[id].kind == CCT_OP_COLLECTIVE) {
      if (s->end[id] < 0)
        return -1;
      at = s->end[id];
    }
    last = s->end[id] < 0 || last < 0 ? -1 : later(last, s->end[id]);
  }
  return last;
}

static int advance_lane(struct sim_state *s, int track);

/* Law 6. Branches start empty at the graph's start; the graph's end is the last end inside. */
static int64_t run_graph(struct sim_state *s, int graph) {
  int first = s->plan->first_branch[graph], n = s->plan->n_branches[graph], is_moving = 1, open = 0;
  int64_t last = s->start[graph];
  while (is_moving) {
    is_moving = 0;
    for (int t = first; t < first + n; t++)
      is_moving |= advance_lane(s, t);
  }
  for (int t = first; t < first + n; t++) {
    open += s->next[t] < s->plan->tracks[t].n;
    last = later(last, s->clock[t]);
  }
  return open ? -1 : last;
}

/* Law 2: when an operation on a GPU lane may start; -1: not known. */
static int64_t ready_at(const struct sim_state *s, int track, int id) {
  const struct cct_op *op = &s->plan->program->ops[id];
  int64_t waits = waits_end(s, op), submitted = op->host < 0 ? 0 : s->submitted[id];
  return waits < 0 || submitted < 0 ? -1 : later(later(submitted, s->clock[track]), waits);
}

static int start_operation(struct sim_state *s, int track, int id) {
  const struct cct_op *op = &s->plan->program->ops[id];
  int64_t ready = ready_at(s, track, id);
  if (ready < 0)
    return 0;
  if (op->kind == CCT_OP_COLLECTIVE) {
    announce(s, id, ready);
    return 1;
  }
  s->start[id] = ready;
  if (op->kind == CCT_OP_GRAPH)
    for (int b = 0; b < s->plan->n_branches[id]; b++)
      s->clock[s->plan->first_branch[id] + b] = ready;
  else if (op->kind != CCT_OP_GROUP)
    s->end[id] = ready + s->durations[id].run_ns;
  return 1;
}

/* Runs a GPU lane, or a branch of a graph, as far as known; 1 if it moved. */
static int advance_lane(struct sim_state *s, int t) {
  const struct sim_track *track = &s->plan->tracks[t];
  int has_moved = 0;
  while (s->next[t] < track->n) {
    int id = track->ids[s->next[t]];
    const struct cct_op *op = &s->plan->program->ops[id];
    if (s->is_out[id]) {
      s->next[t]++;
      continue;
    }
    if (s->start[id] < 0 && !start_operation(s, t, id))
      break;
    if (s->end[id] < 0 && op->kind == CCT_OP_GROUP)
      s->end[id] = run_group(s, id);
    if (s->end[id] < 0 && op->kind == CCT_OP_GRAPH)
      s->end[id] = run_graph(s, id);
    if (s->end[id] < 0)
      break;
    s->clock[t] = s->end[id];
    s->next[t]++;
    has_moved = 1;
  }
  return has_moved;
}

/* A submission, and what a blocking copy does to the lane: laws 1 and 2. 1 when the lane is past it. */
static int submit_from_host(struct sim_state *s, int t, int id, int *has_moved) {
  if (!s->is_held[t]) {
    s->submitted[id] = s->clock[t] += s->durations[id].submit_ns;
    *has_moved = 1;
  }
  s->is_held[t] = s->durations[id].is_blocking && s->end[id] < 0;
  if (s->durations[id].is_blocking && !s->is_held[t])
    s->clock[t] = s->end[id];
  return !s->is_held[t];
}

/* HOSTWORK, a host lane's DELAY, and SYNC: laws 2 and 7. */
static int work_on_host(struct sim_state *s, int t, int id) {
  const struct cct_op *op = &s->plan->program->ops[id];
  int64_t from = waits_end(s, op);
  if (from < 0)
    return 0;
  if (op->kind == CCT_OP_SYNC) {
    int last = s->plan->before_on_lane[id];
    while (last >= 0 && s->is_out[last])
      last = s->plan->before_on_lane[last];
    int64_t lane_ns = last < 0 ? s->clock_before[op->lane] : s->end[last];
    if (lane_ns < 0)
      return 0;
    from = later(from, lane_ns);
  }
  s->start[id] = later(s->clock[t], from);
  s->end[id] = s->clock[t] = s->start[id] + s->durations[id].run_ns;
  return 1;
}

static int advance_host(struct sim_state *s, int t) {
  const struct sim_track *track = &s->plan->tracks[t];
  int has_moved = 0;
  while (s->next[t] < track->n) {
    int id = track->ids[s->next[t]];
    if (s->is_out[id]) {
      s->next[t]++;
      continue;
    }
    int is_past =
        sim_is_on_lane(&s->plan->program->ops[id]) ? submit_from_host(s, t, id, &has_moved) : work_on_host(s, t, id);
    if (!is_past)
      break;
    s->next[t]++;
    has_moved = 1;
  }
  return has_moved;
}

void sim_state_run(struct sim_state *s) {
  const struct cct_program *p = s->plan->program;
  s->n_announced = 0;
  for (int is_moving = 1; is_moving;) {
    is_moving = 0;
    s->done = 0;
    for (int lane = 0; lane < p->n_lanes; lane++) {
      is_moving |= p->lanes[lane].kind == CCT_LANE_HOST ? advance_host(s, lane) : advance_lane(s, lane);
      s->done += s->next[lane] == s->plan->tracks[lane].n;
    }
  }
}

void sim_state_tell(struct sim_state *s, int id, int64_t start_ns, int64_t end_ns) {
  s->start[id] = start_ns;
  s->end[id] = end_ns;
}

int sim_state_is_done(const struct sim_state *s) {
  return s->done == s->plan->program->n_lanes;
}

int64_t sim_state_last_ns(const struct sim_state *s) {
  int64_t last = 0;
  for (int lane = 0; lane < s->plan->program->n_lanes; lane++)
    last = later(last, s->clock[lane]);
  return last;
}

int sim_state_host_ns(const struct sim_state *s, int64_t *host_ns) {
  int n = 0;
  for (int lane = 0; lane < s->plan->program->n_lanes; lane++)
    if (s->plan->program->lanes[lane].kind == CCT_LANE_HOST)
      host_ns[n++] = s->clock[lane];
  return n;
}

void sim_state_hold(struct sim_state *s, int64_t asked_ns, int64_t not_before_ns) {
  int is_first = 1;
  for (int lane = 0; lane < s->plan->program->n_lanes; lane++) {
    if (s->plan->program->lanes[lane].kind != CCT_LANE_HOST)
      continue;
    s->clock[lane] = later(s->clock[lane], is_first ? later(asked_ns, not_before_ns) : asked_ns);
    is_first = 0;
  }
}

int sim_state_waits_at(const struct sim_state *s) {
  for (int id = 0; id < s->plan->program->n_ops; id++) {
    enum cct_op_kind kind = s->plan->program->ops[id].kind;
    if (s->start[id] >= 0 && s->end[id] < 0 &&
        (kind == CCT_OP_COLLECTIVE || kind == CCT_OP_SEND || kind == CCT_OP_RECV))
      return id;
  }
  return -1;
}
