/* SPDX-License-Identifier: Apache-2.0
 * Communicators of a program's exchanges: collectives of one group that stand on different lanes must not have to start
 * in one order. */
#include "workloads/backends/host.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

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
    struct cct_host_walk walk = {-1, -1};
    int n = 0;
    for (int id = 0; id < program->n_ops; id++) {
      const struct cct_op *op = &program->ops[id];
      if (op->kind == CCT_OP_COLLECTIVE && op->collective.group == group) {
        places->of[number_of(program, 1, id) * job->n_roles + r] =
            (op->lane * (program->n_lanes + 1) + cct_host_origin(program, &walk, op) + 1) * ROOTS + op->collective.root;
        n++;
      }
      cct_host_walk_to(&walk, program, id);
      cct_host_walk_past(&walk, program, id);
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

enum cct_status cct_host_plan_exchanges(struct cct_executor *x) {
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
