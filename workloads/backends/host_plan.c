/* SPDX-License-Identifier: Apache-2.0
 * From a program to tracks, and what each entry waits for. */
#include "workloads/backends/host.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/text.h"

/* ---- tracks: who performs which entry ---- */

void cct_host_walk_to(struct cct_host_walk *walk, const struct cct_program *program, int id) {
  const struct cct_op *op = &program->ops[id];
  if (op->kind == CCT_OP_GRAPH)
    walk->graph = id;
  if (op->kind == CCT_OP_GROUP)
    walk->group = id;
}

void cct_host_walk_past(struct cct_host_walk *walk, const struct cct_program *program, int id) {
  const struct cct_op *op = &program->ops[id];
  if (op->kind == CCT_OP_END && op->end.opens == walk->graph)
    walk->graph = -1;
  if (op->kind == CCT_OP_END && op->end.opens == walk->group)
    walk->group = -1;
}

int cct_host_origin(const struct cct_program *program, const struct cct_host_walk *walk, const struct cct_op *op) {
  if (walk->graph < 0 || program->ops[walk->graph].lane == op->lane)
    return -1;
  return program->ops[walk->graph].lane;
}

static int is_on_lane(const struct cct_op *op) {
  return op->lane >= 0 && op->kind != CCT_OP_SYNC && op->kind != CCT_OP_END && op->kind != CCT_OP_PHASE;
}

static int find_track(const struct cct_executor *x, int lane, int origin) {
  for (int i = 0; i < x->n_tracks; i++)
    if (x->tracks[i].lane == lane && x->tracks[i].origin == origin)
      return i;
  return -1;
}

static enum cct_status make_track(struct cct_executor *x, int lane, int origin) {
  struct cct_host_track *track = &x->tracks[x->n_tracks];
  track->kind = origin >= 0                                       ? CCT_HOST_BRANCH
                : x->program->lanes[lane].kind == CCT_LANE_STREAM ? CCT_HOST_STREAM
                                                                  : CCT_HOST_LANE;
  track->lane = lane;
  track->origin = origin;
  track->x = x;
  track->entries = malloc(((size_t)x->program->n_ops + 1) * sizeof *track->entries);
  if (!track->entries)
    return cct_fail(CCT_NOMEM, "out of memory");
  x->n_tracks++;
  return CCT_OK;
}

static void give(struct cct_executor *x, int track, int id) {
  x->tracks[track].entries[x->tracks[track].n_entries++] = id;
}

static enum cct_status plan_tracks(struct cct_executor *x) {
  const struct cct_program *program = x->program;
  size_t n_lanes = (size_t)program->n_lanes;
  enum cct_status status = CCT_OK;
  if (!(x->tracks = calloc(n_lanes + n_lanes * n_lanes + 1, sizeof *x->tracks)))
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int lane = 0; !status && lane < program->n_lanes; lane++)
    status = make_track(x, lane, -1);
  struct cct_host_walk walk = {-1, -1};
  for (int id = 0; !status && id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    int in_group = walk.group >= 0;
    x->entries[id].track = -1;
    if (!in_group && op->kind != CCT_OP_END && op->kind != CCT_OP_PHASE) {
      int track = op->host;
      if (op->host >= 0)
        give(x, op->host, id); /* lanes are the first tracks, in their order */
      if (is_on_lane(op)) {
        int origin = cct_host_origin(program, &walk, op);
        if ((track = find_track(x, op->lane, origin)) < 0) {
          track = x->n_tracks;
          if ((status = make_track(x, op->lane, origin)))
            break;
        }
        give(x, track, id);
      }
      x->entries[id].track = track;
    }
    if (op->kind == CCT_OP_END && op->end.opens == walk.graph && walk.graph >= 0)
      give(x, x->entries[id].track = x->entries[walk.graph].track, id);
    cct_host_walk_to(&walk, program, id);
    cct_host_walk_past(&walk, program, id);
  }
  return status;
}

/* ---- needs: what an entry waits for ---- */

struct needs {
  struct cct_host_need *items;
  size_t capacity;
  int n;
};

static enum cct_status need(struct needs *needs, const cct_host_count *count, int is_previous, int id) {
  enum cct_status status =
      cct_grow((void **)&needs->items, &needs->capacity, (size_t)needs->n + 1, sizeof *needs->items);
  if (!status)
    needs->items[needs->n++] = (struct cct_host_need){count, is_previous, id};
  return status;
}

/* Last entries on each lane so far outside graphs, and, inside the open graph, on each track; -1: none. */
struct last {
  int *on_lane, *in_graph;
};

/* G(lane) for a SYNC: the lane's last entry before it, or of the repetition before when there is none yet. */
static int last_of_step(const struct cct_program *program, int lane) {
  struct cct_host_walk walk = {-1, -1};
  int found = -1;
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    if (walk.graph < 0 && walk.group < 0 && is_on_lane(op) && op->lane == lane)
      found = id;
    cct_host_walk_to(&walk, program, id);
    cct_host_walk_past(&walk, program, id);
  }
  return found;
}

static enum cct_status plan_entry_needs(struct cct_executor *x, struct needs *needs, struct last *last,
                                        const struct cct_host_walk *walk, int id) {
  const struct cct_op *op = &x->program->ops[id];
  struct cct_host_entry *entries = x->entries;
  enum cct_status status = CCT_OK;
  entries[id].first_need = needs->n;
  if (is_on_lane(op) && walk->graph >= 0)
    status = need(needs, &entries[walk->graph].begun, 0, walk->graph);
  else if (is_on_lane(op) && op->host >= 0)
    status = need(needs, &entries[id].submitted, 0, id);
  for (int i = 0; !status && i < op->n_waits; i++) {
    const struct cct_wait *wait = &x->program->waits[op->first_wait + i];
    status = need(needs, &entries[wait->id].done, wait->is_previous, wait->id);
  }
  if (!status && op->kind == CCT_OP_SYNC && op->lane >= 0) {
    int before = last->on_lane[op->lane], wrapped = last_of_step(x->program, op->lane);
    if (before >= 0)
      status = need(needs, &entries[before].done, 0, -1);
    else if (wrapped >= 0)
      status = need(needs, &entries[wrapped].done, 1, -1);
  }
  if (op->kind == CCT_OP_END)
    for (int i = 0; !status && i < x->n_tracks; i++)
      if (last->in_graph[i] >= 0)
        status = need(needs, &entries[last->in_graph[i]].done, 0, -1);
  entries[id].n_needs = needs->n - entries[id].first_need;
  return status;
}

static enum cct_status plan_needs(struct cct_executor *x) {
  const struct cct_program *program = x->program;
  struct needs needs = {0};
  struct cct_host_walk walk = {-1, -1};
  struct last last = {malloc(((size_t)program->n_lanes + 1) * sizeof(int)),
                      malloc(((size_t)x->n_tracks + 1) * sizeof(int))};
  enum cct_status status = last.on_lane && last.in_graph ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; !status && i < program->n_lanes; i++)
    last.on_lane[i] = -1;
  for (int id = 0; !status && id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    int track = x->entries[id].track;
    if (track >= 0)
      status = plan_entry_needs(x, &needs, &last, &walk, id);
    if (op->kind == CCT_OP_GRAPH)
      for (int i = 0; i < x->n_tracks; i++)
        last.in_graph[i] = -1;
    else if (track >= 0 && walk.graph >= 0 && is_on_lane(op))
      last.in_graph[track] = id;
    if (track >= 0 && walk.graph < 0 && is_on_lane(op))
      last.on_lane[op->lane] = id;
    cct_host_walk_to(&walk, program, id);
    cct_host_walk_past(&walk, program, id);
  }
  free(last.on_lane);
  free(last.in_graph);
  x->needs = needs.items;
  x->n_needs = needs.n;
  return status;
}

enum cct_status cct_host_plan(struct cct_executor *x) {
  x->entries = calloc((size_t)x->program->n_ops + 1, sizeof *x->entries);
  enum cct_status status = x->entries ? plan_tracks(x) : cct_fail(CCT_NOMEM, "out of memory");
  if (!status)
    status = plan_needs(x);
  if (!status)
    status = cct_host_plan_exchanges(x);
  x->wanted = calloc((size_t)x->n_tracks + 1, sizeof *x->wanted);
  x->wanted_own = calloc((size_t)x->program->n_ops + 1, sizeof *x->wanted_own);
  if (!status && !(x->wanted && x->wanted_own))
    status = cct_fail(CCT_NOMEM, "out of memory");
  return status ? status : cct_host_make_set(x, &x->sets[0]);
}

void cct_host_unplan(struct cct_executor *x) {
  for (int i = 0; i < x->n_tracks; i++) {
    struct cct_host_track *track = &x->tracks[i];
    int is_done = 1;
    if (track->comm.is_started && (cct_host_comm_test(track, &is_done) || !is_done))
      track->from = track->to = NULL; /* a burst was stopped, and the library may still write there */
    free(track->entries);
    free(track->comm.requests);
    free(track->comm.worlds);
    free(track->from);
    free(track->to);
    free(track->cipher);
    cct_seal_free(track->seal);
  }
  for (int id = 0; x->entries && id < x->program->n_ops; id++)
    free(x->entries[id].own);
  for (int i = 0; i < CCT_HOST_SETS; i++)
    cct_host_free_set(x, &x->sets[i]);
  free(x->wanted);
  free(x->wanted_own);
  for (int i = x->n_worlds - 1; i >= 0; i--)
    x->backend->world->ops->release(x->worlds[i]);
  free(x->worlds);
  free(x->tracks);
  free(x->entries);
  free(x->needs);
}
