/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/sim_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

int sim_is_on_lane(const struct cct_op *op) {
  return cct_op_is_gpu(op) || cct_op_is_submission(op);
}

int *sim_new_ints(int n, int value) {
  int *ints = malloc(((size_t)n + 1) * sizeof *ints);
  for (int i = 0; ints && i <= n; i++)
    ints[i] = value;
  return ints;
}

/* Which track an entry stands on besides its host lane's; -1: none (it is in a group, or takes no lane). */
struct walk {
  int graph, group;
};

static void walk_past(struct walk *walk, const struct cct_program *p, int id) {
  const struct cct_op *op = &p->ops[id];
  if (op->kind == CCT_OP_GRAPH)
    walk->graph = id;
  else if (op->kind == CCT_OP_GROUP)
    walk->group = id;
  else if (op->kind == CCT_OP_END && op->end.opens == walk->group)
    walk->group = -1;
  else if (op->kind == CCT_OP_END && op->end.opens == walk->graph)
    walk->graph = -1;
}

/* Branches of a graph: one track for every lane, so that branch = first_branch + lane. */
static int branch_track(const struct sim_plan *plan, int graph, int lane) {
  return plan->first_branch[graph] + lane;
}

static void add_to_track(struct sim_track *track, int id, int is_counting) {
  if (!is_counting)
    track->ids[track->n] = id;
  track->n++;
}

/* First counts the items of every track, then, once the tracks have room, places them. */
static void place_items(struct sim_plan *plan, int is_counting) {
  const struct cct_program *p = plan->program;
  struct walk walk = {-1, -1};
  for (int t = 0; t < plan->n_tracks; t++)
    plan->tracks[t].n = 0;
  for (int id = 0; id < p->n_ops; id++) {
    const struct cct_op *op = &p->ops[id];
    if (walk.group < 0 && walk.graph < 0 && op->host >= 0 && op->kind != CCT_OP_PHASE && op->kind != CCT_OP_END)
      add_to_track(&plan->tracks[op->host], id, is_counting);
    if (walk.group < 0 && sim_is_on_lane(op))
      add_to_track(&plan->tracks[walk.graph < 0 ? op->lane : branch_track(plan, walk.graph, op->lane)], id,
                   is_counting);
    walk_past(&walk, p, id);
  }
}

static void note_brackets(struct sim_plan *plan) {
  const struct cct_program *p = plan->program;
  for (int id = 0; id < p->n_ops; id++) {
    const struct cct_op *op = &p->ops[id];
    if (op->kind == CCT_OP_END)
      plan->end_of[op->end.opens] = id;
    if (op->kind == CCT_OP_GRAPH) {
      plan->first_branch[id] = plan->n_tracks;
      plan->n_branches[id] = p->n_lanes;
      plan->n_tracks += p->n_lanes;
    }
  }
}

static void note_lanes(struct sim_plan *plan) {
  const struct cct_program *p = plan->program;
  for (int lane = 0; lane < p->n_lanes; lane++) {
    struct walk walk = {-1, -1};
    int on_lane = -1;
    for (int id = 0; id < p->n_ops; id++) {
      const struct cct_op *op = &p->ops[id];
      int takes_lane = walk.graph < 0 && walk.group < 0 && sim_is_on_lane(op);
      if (op->lane == lane && (takes_lane || op->kind == CCT_OP_SYNC))
        plan->before_on_lane[id] = on_lane;
      if (op->lane == lane && takes_lane)
        on_lane = id;
      walk_past(&walk, p, id);
    }
  }
}

static int by_case(const void *a, const void *b, void *program) {
  const struct cct_program *p = program;
  int i = *(const int *)a, j = *(const int *)b;
  int order = cct_case_compare(cct_op_case(p, &p->ops[i]), cct_op_case(p, &p->ops[j]));
  return order ? order : (i > j) - (i < j);
}

/* Members that meet have as many collectives in each case (cct_job_check), so that equal numbers meet (laws 4, 9). */
static void note_cross(struct sim_plan *plan, int n_groups) {
  const struct cct_program *p = plan->program;
  int n = 0;
  for (int g = 0; g < n_groups; g++) {
    int first = plan->first_collective[g] = n;
    for (int id = 0; id < p->n_ops; id++)
      if (p->ops[id].kind == CCT_OP_COLLECTIVE && p->ops[id].collective.group == g)
        plan->collectives[n++] = id;
    qsort_r(plan->collectives + first, (size_t)(n - first), sizeof(int), by_case, (void *)(uintptr_t)p);
    for (int i = first; i < n; i++)
      plan->number[plan->collectives[i]] = i - first;
  }
  plan->first_collective[n_groups] = n;
  plan->n_messages = 0;
  for (int id = 0; id < p->n_ops; id++)
    if (p->ops[id].kind == CCT_OP_SEND || p->ops[id].kind == CCT_OP_RECV) {
      plan->number[id] = plan->n_messages;
      plan->messages[plan->n_messages++] = id;
    }
  plan->n_peers = plan->n_messages;
  for (int id = 0; id < p->n_ops; id++)
    if (p->ops[id].kind == CCT_OP_COPY && p->ops[id].copy.direction == CCT_COPY_P2P)
      plan->messages[plan->n_peers++] = id;
}

enum cct_status sim_plan_new(const struct cct_job *job, const struct cct_program *program, struct sim_plan **plan_out) {
  struct sim_plan *plan = calloc(1, sizeof *plan);
  if (!plan)
    return cct_fail(CCT_NOMEM, "sim: out of memory");
  plan->program = program;
  plan->n_tracks = program->n_lanes;
  plan->end_of = sim_new_ints(program->n_ops, -1);
  plan->first_branch = sim_new_ints(program->n_ops, -1);
  plan->n_branches = sim_new_ints(program->n_ops, 0);
  plan->before_on_lane = sim_new_ints(program->n_ops, -1);
  plan->number = sim_new_ints(program->n_ops, -1);
  plan->collectives = sim_new_ints(program->n_ops, -1);
  plan->messages = sim_new_ints(program->n_ops, -1);
  if (!plan->end_of || !plan->first_branch || !plan->n_branches || !plan->before_on_lane || !plan->number ||
      !plan->collectives || !plan->messages)
    goto nomem;
  note_brackets(plan);
  note_lanes(plan);
  note_cross(plan, job->n_groups);
  plan->tracks = calloc((size_t)plan->n_tracks + 1, sizeof *plan->tracks);
  if (!plan->tracks)
    goto nomem;
  place_items(plan, 1);
  for (int t = 0; t < plan->n_tracks; t++)
    if (!(plan->tracks[t].ids = sim_new_ints(plan->tracks[t].n, -1)))
      goto nomem;
  place_items(plan, 0);
  *plan_out = plan;
  return CCT_OK;
nomem:
  sim_plan_free(plan);
  return cct_fail(CCT_NOMEM, "sim: out of memory");
}

void sim_plan_free(struct sim_plan *plan) {
  if (!plan)
    return;
  for (int t = 0; plan->tracks && t < plan->n_tracks; t++)
    free(plan->tracks[t].ids);
  free(plan->tracks);
  free(plan->end_of);
  free(plan->first_branch);
  free(plan->n_branches);
  free(plan->before_on_lane);
  free(plan->number);
  free(plan->collectives);
  free(plan->messages);
  free(plan);
}
