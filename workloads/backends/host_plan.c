/* SPDX-License-Identifier: Apache-2.0
 * From a program to tracks, needs and communicators. */
#include "workloads/backends/host.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

/* ---- tracks: who performs which entry ---- */

struct walk {       /* where a pass over the program stands */
  int graph, group; /* the open bracket's entry, -1: none */
};

static void walk_to(struct walk *walk, const struct cct_program *program, int id) {
  const struct cct_op *op = &program->ops[id];
  if (op->kind == CCT_OP_GRAPH)
    walk->graph = id;
  if (op->kind == CCT_OP_GROUP)
    walk->group = id;
}

static void walk_past(struct walk *walk, const struct cct_program *program, int id) {
  const struct cct_op *op = &program->ops[id];
  if (op->kind == CCT_OP_END && op->end.opens == walk->graph)
    walk->graph = -1;
  if (op->kind == CCT_OP_END && op->end.opens == walk->group)
    walk->group = -1;
}

/* The lane whose graphs hold the entry; -1: it stands on its lane itself. */
static int origin_of(const struct cct_program *program, const struct walk *walk, const struct cct_op *op) {
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
  struct walk walk = {-1, -1};
  for (int id = 0; !status && id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    int in_group = walk.group >= 0;
    x->entries[id].track = -1;
    if (!in_group && op->kind != CCT_OP_END && op->kind != CCT_OP_PHASE) {
      int track = op->host;
      if (op->host >= 0)
        give(x, op->host, id); /* lanes are the first tracks, in their order */
      if (is_on_lane(op)) {
        int origin = origin_of(program, &walk, op);
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
    walk_to(&walk, program, id);
    walk_past(&walk, program, id);
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
  struct walk walk = {-1, -1};
  int found = -1;
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    if (walk.graph < 0 && walk.group < 0 && is_on_lane(op) && op->lane == lane)
      found = id;
    walk_to(&walk, program, id);
    walk_past(&walk, program, id);
  }
  return found;
}

static enum cct_status plan_entry_needs(struct cct_executor *x, struct needs *needs, struct last *last,
                                        const struct walk *walk, int id) {
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
  struct walk walk = {-1, -1};
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
    walk_to(&walk, program, id);
    walk_past(&walk, program, id);
  }
  free(last.on_lane);
  free(last.in_graph);
  x->needs = needs.items;
  x->n_needs = needs.n;
  return status;
}

/* ---- communicators: collectives of one group that stand on different lanes must not have to start in one order ----
 */

#define ROOTS 65536 /* more than a job has ranks */

/* Where a role's n-th collective of a group stands, and its root: one number a (lane, origin, root), -1 beyond its
 * last. */
struct places {
  int *of; /* [n * n_roles + role] */
  int n, n_roles;
};

/* The how manyth it is of its group's collectives, or of its peer's messages of its kind, in order of cases (law 9):
 * who meets has as many in each, so that equal numbers meet. */
static int number_of(const struct cct_program *program, int size, int id) {
  const struct cct_op *op = &program->ops[id];
  int n = 0;
  for (int i = 0; i < program->n_ops; i++) {
    const struct cct_op *other = &program->ops[i];
    if (other->kind != op->kind ||
        (op->kind == CCT_OP_COLLECTIVE
             ? other->collective.group != op->collective.group
             : other->p2p.group != op->p2p.group || (other->p2p.peer_offset - op->p2p.peer_offset) % size))
      continue;
    int order = cct_case_compare(cct_op_case(program, other), cct_op_case(program, op));
    n += order < 0 || (order == 0 && i < id);
  }
  return n;
}

static enum cct_status places_of(const struct cct_job *job, int group, struct places *places) {
  size_t longest = 0;
  for (int r = 0; r < job->n_roles; r++)
    longest = (size_t)job->roles[r].program->n_ops > longest ? (size_t)job->roles[r].program->n_ops : longest;
  *places = (struct places){.n_roles = job->n_roles};
  if (!(places->of = malloc((longest * (size_t)job->n_roles + 1) * sizeof(int))))
    return cct_fail(CCT_NOMEM, "out of memory");
  memset(places->of, -1, (longest * (size_t)job->n_roles + 1) * sizeof(int));
  for (int r = 0; r < job->n_roles; r++) {
    const struct cct_program *program = job->roles[r].program;
    struct walk walk = {-1, -1};
    int n = 0;
    for (int id = 0; id < program->n_ops; id++) {
      const struct cct_op *op = &program->ops[id];
      if (op->kind == CCT_OP_COLLECTIVE && op->collective.group == group) {
        places->of[number_of(program, 1, id) * job->n_roles + r] =
            (op->lane * (program->n_lanes + 1) + origin_of(program, &walk, op) + 1) * ROOTS + op->collective.root;
        n++;
      }
      walk_to(&walk, program, id);
      walk_past(&walk, program, id);
    }
    places->n = n > places->n ? n : places->n;
  }
  return CCT_OK;
}

/* The first n whose collectives stand where the n-th ones do: the same on every rank, since it follows from the job. */
static int first_alike(const struct places *places, int n) {
  size_t row = (size_t)places->n_roles;
  for (int i = 0; i < n; i++)
    if (!memcmp(places->of + (size_t)i * row, places->of + (size_t)n * row, row * sizeof(int)))
      return i;
  return n;
}

static int root_of(const struct places *places, int n) {
  int r = 0;
  while (r + 1 < places->n_roles && places->of[n * places->n_roles + r] < 0)
    r++;
  return places->of[n * places->n_roles + r] < 0 ? 0 : places->of[n * places->n_roles + r] % ROOTS;
}

/* The place of this rank in the order that begins with the root: a world's own root is its rank 0. */
static int index_from(const struct cct_executor *x, int group, int root) {
  const struct cct_group *g = &x->job->groups[group];
  return (cct_group_index(g, x->rank) - root + g->size) % g->size;
}

static enum cct_status split(struct cct_executor *x, int group, int root, struct cct_world **world_out) {
  const struct cct_world *world = x->backend->world;
  const struct cct_group *g = &x->job->groups[group];
  struct cct_world **grown = realloc(x->worlds, ((size_t)x->n_worlds + 1) * sizeof *grown);
  if (!grown)
    return cct_fail(CCT_NOMEM, "out of memory");
  x->worlds = grown;
  enum cct_status status =
      world->ops->split(world, cct_group_member(g, x->rank, 0), index_from(x, group, root), &x->worlds[x->n_worlds]);
  if (!status)
    *world_out = x->worlds[x->n_worlds++];
  return status;
}

static void join(struct cct_executor *x, int id, int group, int root, struct cct_world *world) {
  struct cct_host_entry *entry = &x->entries[id];
  entry->world = world;
  entry->n = x->job->groups[group].size;
  entry->me = index_from(x, group, root);
}

static enum cct_status plan_group(struct cct_executor *x, int group) {
  const struct cct_program *program = x->program;
  struct places places = {0};
  struct cct_world **of_place = NULL, *mail = NULL;
  int has_mail = 0;
  enum cct_status status = places_of(x->job, group, &places);
  for (int r = 0; r < x->job->n_roles; r++)
    for (int id = 0; id < x->job->roles[r].program->n_ops; id++) {
      const struct cct_op *op = &x->job->roles[r].program->ops[id];
      has_mail |= (op->kind == CCT_OP_SEND || op->kind == CCT_OP_RECV) && op->p2p.group == group;
    }
  if (!status && !(of_place = calloc((size_t)places.n + 1, sizeof(struct cct_world *))))
    status = cct_fail(CCT_NOMEM, "out of memory");
  if (!status && has_mail)
    status = split(x, group, 0, &mail);
  for (int i = 0; !status && i < places.n; i++) {
    int alike = first_alike(&places, i);
    if (alike < i)
      of_place[i] = of_place[alike];
    else
      status = split(x, group, root_of(&places, i), &of_place[i]);
  }
  for (int id = 0; !status && id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    if (op->kind == CCT_OP_COLLECTIVE && op->collective.group == group)
      join(x, id, group, op->collective.root, of_place[number_of(program, 1, id)]);
    if ((op->kind == CCT_OP_SEND || op->kind == CCT_OP_RECV) && op->p2p.group == group)
      join(x, id, group, 0, mail);
  }
  free(places.of);
  free(of_place);
  return status;
}

/* The how manyth message between the two this is, as its tag: then two lanes' messages cannot be mistaken. */
static void plan_tags(struct cct_executor *x) {
  const struct cct_program *program = x->program;
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    if (op->kind != CCT_OP_SEND && op->kind != CCT_OP_RECV)
      continue;
    x->entries[id].tag = number_of(program, x->entries[id].n, id) & 0x3fff; /* MPI promises 15 bits */
  }
}

static enum cct_status plan_exchanges(struct cct_executor *x) {
  const struct cct_program *program = x->program;
  enum cct_status status = CCT_OK;
  size_t most = 1;
  for (int group = 0; !status && group < x->job->n_groups; group++)
    status = plan_group(x, group);
  if (status)
    return status;
  plan_tags(x);
  for (int id = 0; id < program->n_ops; id++) {
    struct cct_host_entry *entry = &x->entries[id];
    const struct cct_op *op = &program->ops[id];
    size_t parts = (size_t)entry->n;
    const char *choice = op->kind == CCT_OP_COLLECTIVE ? x->job->groups[op->collective.group].choice : "";
    struct cct_choice chosen;
    if (!cct_choice_parse(choice, &chosen) || *chosen.algorithm || *chosen.protocol || chosen.channels)
      return cct_fail(CCT_UNSUPPORTED, "%s: entry %d '%s': %s is a choice of NCCL's, and MPI moves this", program->name,
                      id, op->name, choice);
    if (op->kind == CCT_OP_GROUP)
      for (parts = 0; program->ops[id + 1 + (int)parts].kind != CCT_OP_END; parts++)
        ;
    most = parts > most ? parts : most;
    int is_sum = op->kind == CCT_OP_COLLECTIVE &&
                 (op->collective.kind == CCT_COLL_ALL_REDUCE || op->collective.kind == CCT_COLL_REDUCE ||
                  op->collective.kind == CCT_COLL_REDUCE_SCATTER);
    if (is_sum && !cct_host_combine(op->collective.type, op->collective.reduction))
      return cct_fail(CCT_UNSUPPORTED, "%s: entry %d '%s': %s has no sums, use bf16", program->name, id, op->name,
                      cct_type_name(op->collective.type));
  }
  for (int i = 0; i < x->n_tracks; i++) {
    struct cct_host_comm *comm = &x->tracks[i].comm;
    comm->capacity = (int)most;
    comm->requests = calloc(most, sizeof(struct cct_request *));
    comm->worlds = calloc(most, sizeof(const struct cct_world *));
    if (!comm->requests || !comm->worlds)
      return cct_fail(CCT_NOMEM, "out of memory");
  }
  return CCT_OK;
}

enum cct_status cct_host_plan(struct cct_executor *x) {
  x->entries = calloc((size_t)x->program->n_ops + 1, sizeof *x->entries);
  enum cct_status status = x->entries ? plan_tracks(x) : cct_fail(CCT_NOMEM, "out of memory");
  if (!status)
    status = plan_needs(x);
  if (!status)
    status = plan_exchanges(x);
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
