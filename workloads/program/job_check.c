/* SPDX-License-Identifier: Apache-2.0
 * The one judge of what can be performed: every program alone, then what members of a group must agree on. */
#include <stddef.h>
#include <stdlib.h>

#include "base/log.h"
#include "workloads/program/program_check.h"

#define RANKS_LIMIT (1 << 20)

static int in_graph(const struct cct_program *p, int id) {
  for (int i = id; i >= 0; i--)
    if (p->ops[i].kind == CCT_OP_GRAPH)
      return 1;
    else if (p->ops[i].kind == CCT_OP_END && p->ops[p->ops[i].end.opens].kind == CCT_OP_GRAPH)
      return 0;
  return 0;
}

/* What a binding may have performed: entries in no CASE, and in those of up to two slots' values (law 9). Entries that
 * agree for each two agree for any choice, since of any two entries some two tell which comes first. */
struct choice {
  const struct cct_op *cases[2];
};

static int is_chosen(const struct cct_program *p, const struct cct_op *op, const struct choice *choice) {
  const struct cct_op *in = cct_op_case(p, op);
  return !in || !cct_case_compare(in, choice->cases[0]) || !cct_case_compare(in, choice->cases[1]);
}

#define MOST_CASES 64

/* Adds the cases of `p` that are not known yet; 0: there are more than MOST_CASES. */
static int add_cases(const struct cct_program *p, const struct cct_op **cases, int *n) {
  for (int id = 0; id < p->n_ops; id++) {
    int is_known = p->ops[id].kind != CCT_OP_CASE;
    for (int i = 0; i < *n && !is_known; i++)
      is_known = !cct_case_compare(cases[i], &p->ops[id]);
    if (is_known)
      continue;
    if (*n == MOST_CASES)
      return 0;
    cases[(*n)++] = &p->ops[id];
  }
  return 1;
}

typedef enum cct_status (*judge_fn)(const struct cct_job *job, int group, const struct cct_program *a,
                                    const struct cct_program *b, const struct choice *choice, int offset);

/* Judges two programs that meet under each choice that their cases leave a binding. */
static enum cct_status judge_choices(judge_fn judge, const struct cct_job *job, int group, const struct cct_program *a,
                                     const struct cct_program *b, int offset) {
  const struct cct_op *cases[MOST_CASES];
  int n = 0;
  if (!add_cases(a, cases, &n) || !add_cases(b, cases, &n))
    return cct_fail(CCT_USAGE, "programs '%s' and '%s': they tell more than %d cases apart", a->name, b->name,
                    MOST_CASES);
  struct choice none = {{NULL, NULL}};
  enum cct_status status = judge(job, group, a, b, &none, offset);
  for (int i = 0; i < n; i++)
    for (int k = i; k < n && !status; k++) {
      struct choice two = {{cases[i], cases[k]}};
      if (k == i || cases[i]->when.slot != cases[k]->when.slot)
        status = judge(job, group, a, b, &two, offset);
    }
  return status;
}

static int next_collective(const struct cct_program *p, int id, int group, const struct choice *choice) {
  for (id++; id < p->n_ops; id++)
    if (p->ops[id].kind == CCT_OP_COLLECTIVE && p->ops[id].collective.group == group &&
        is_chosen(p, &p->ops[id], choice))
      return id;
  return -1;
}

static enum cct_status check_collectives(const struct cct_job *job, int group, const struct cct_program *a,
                                         const struct cct_program *b, const struct choice *c, int offset) {
  const char *name = job->groups[group].name;
  (void)offset;
  for (int n = 0, i = next_collective(a, -1, group, c), j = next_collective(b, -1, group, c); i >= 0 || j >= 0;
       n++, i = next_collective(a, i, group, c), j = next_collective(b, j, group, c)) {
    if (i < 0 || j < 0)
      return cct_fail(CCT_USAGE, "programs '%s' and '%s': group '%s': collective %d has no counterpart", a->name,
                      b->name, name, n);
    const struct cct_op *x = &a->ops[i], *y = &b->ops[j];
    int64_t bytes_x = 0, bytes_y = 0;
    if (x->collective.kind != CCT_COLL_ALL_TO_ALLV)
      (void)(cct_quantity_standard(a, x->collective.bytes, &bytes_x) &&
             cct_quantity_standard(b, y->collective.bytes, &bytes_y));
    if (x->collective.kind != y->collective.kind || x->collective.type != y->collective.type ||
        x->collective.algorithm != y->collective.algorithm || x->collective.reduction != y->collective.reduction ||
        x->collective.root != y->collective.root || bytes_x != bytes_y)
      return cct_fail(CCT_USAGE, "programs '%s' and '%s': group '%s': collective %d differs (entries %d and %d)",
                      a->name, b->name, name, n, i, j);
    if (in_graph(a, i) != in_graph(b, j))
      return cct_fail(
          CCT_USAGE, "programs '%s' and '%s': group '%s': collective %d is inside a graph in one, outside in the other",
          a->name, b->name, name, n);
  }
  return CCT_OK;
}

static int is_p2p(const struct cct_op *op, int group) {
  return (op->kind == CCT_OP_SEND || op->kind == CCT_OP_RECV) && op->p2p.group == group;
}

/* The `n`-th entry of `kind` with this offset, modulo the group's size; -1: none. */
static int nth_p2p(const struct cct_program *p, enum cct_op_kind kind, int group, int size, int offset, int n,
                   const struct choice *choice) {
  for (int id = 0; id < p->n_ops; id++)
    if (p->ops[id].kind == kind && p->ops[id].p2p.group == group && (p->ops[id].p2p.peer_offset - offset) % size == 0 &&
        is_chosen(p, &p->ops[id], choice) && n-- == 0)
      return id;
  return -1;
}

static enum cct_status check_messages(const struct cct_job *job, int group, const struct cct_program *a,
                                      const struct cct_program *b, const struct choice *c, int offset) {
  int size = job->groups[group].size;
  for (int way = 0; way < 2; way++) {
    enum cct_op_kind mine = way ? CCT_OP_RECV : CCT_OP_SEND, theirs = way ? CCT_OP_SEND : CCT_OP_RECV;
    for (int n = 0;; n++) {
      int i = nth_p2p(a, mine, group, size, offset, n, c), j = nth_p2p(b, theirs, group, size, -offset, n, c);
      if (i < 0 && j < 0)
        break;
      if (i < 0 || j < 0)
        return cct_fail(CCT_USAGE, "programs '%s' and '%s': group '%s': message %d at offset %d has no %s", a->name,
                        b->name, job->groups[group].name, n, offset, (i < 0) == (way == 0) ? "send" : "receive");
      int64_t x = 0, y = 0;
      if (cct_quantity_standard(a, a->ops[i].p2p.bytes, &x) && cct_quantity_standard(b, b->ops[j].p2p.bytes, &y) &&
          x != y)
        return cct_fail(CCT_USAGE, "programs '%s' and '%s': group '%s': message %d at offset %d: %lld bytes, but %lld",
                        a->name, b->name, job->groups[group].name, n, offset, (long long)x, (long long)y);
    }
  }
  return CCT_OK;
}

static int uses_p2p(const struct cct_program *p, int group) {
  for (int id = 0; id < p->n_ops; id++)
    if (is_p2p(&p->ops[id], group))
      return 1;
  return 0;
}

/* Messages of one rank. `judged` has the peer role that each entry was last held against, so that the ranks of a role,
 * which lie side by side, cost one judgement. */
static enum cct_status check_rank_messages(const struct cct_job *job, int g, int rank, const struct cct_role *role,
                                           const struct cct_role **judged) {
  const struct cct_group *group = &job->groups[g];
  for (int id = 0; id < role->program->n_ops; id++) {
    const struct cct_op *op = &role->program->ops[id];
    if (!is_p2p(op, g))
      continue;
    int offset = (op->p2p.peer_offset % group->size + group->size) % group->size;
    int index = (cct_group_index(group, rank) + offset) % group->size;
    const struct cct_role *peer = cct_job_role(job, cct_group_member(group, rank, index));
    if (judged[id] == peer)
      continue;
    judged[id] = peer;
    enum cct_status status = judge_choices(check_messages, job, g, role->program, peer->program, offset);
    if (status)
      return status;
  }
  return CCT_OK;
}

/* Collectives against the first member's, each pair of roles once (`seen`, n_roles squared); messages against the
 * peer's. */
static enum cct_status check_group(const struct cct_job *job, int g, char *seen) {
  enum cct_status status = CCT_OK;
  for (int i = 0; i < job->n_roles && !status; i++) {
    const struct cct_role *role = &job->roles[i];
    const struct cct_role **judged = calloc((size_t)role->program->n_ops + 1, sizeof *judged);
    if (!judged)
      return cct_fail(CCT_NOMEM, "job of %d ranks: out of memory", job->ranks);
    int has_messages = uses_p2p(role->program, g);
    for (int rank = role->first; rank < role->first + role->count && !status; rank++) {
      const struct cct_role *first = cct_job_role(job, cct_group_member(&job->groups[g], rank, 0));
      char *pair = seen + (ptrdiff_t)i * job->n_roles + (first - job->roles);
      if (role != first && !*pair) {
        *pair = 1;
        status = judge_choices(check_collectives, job, g, first->program, role->program, 0);
      }
      if (!status && has_messages)
        status = check_rank_messages(job, g, rank, role, judged);
    }
    free(judged);
  }
  return status;
}

static enum cct_status check_shape(const struct cct_job *job) {
  if (job->ranks < 1 || job->ranks > RANKS_LIMIT)
    return cct_fail(CCT_USAGE, "job: %d ranks, outside 1 to %d", job->ranks, RANKS_LIMIT);
  int next = 0;
  for (int i = 0; i < job->n_roles; i++) {
    const struct cct_role *role = &job->roles[i];
    if (role->first != next || role->count < 1 || role->count > job->ranks - next)
      return cct_fail(CCT_USAGE, "job: role %d (program '%s'): ranks %d and %d more do not continue at rank %d of %d",
                      i, role->program->name, role->first, role->count - 1, next, job->ranks);
    next += role->count;
  }
  if (next != job->ranks)
    return cct_fail(CCT_USAGE, "job: no role for rank %d of %d", next, job->ranks);
  for (int g = 0; g < job->n_groups; g++) {
    int64_t span = (int64_t)job->groups[g].size * job->groups[g].stride;
    if (job->groups[g].size < 1 || job->groups[g].stride < 1 || span > job->ranks || job->ranks % span)
      return cct_fail(CCT_USAGE, "job: group '%s': %d members, %d apart, do not divide %d ranks", job->groups[g].name,
                      job->groups[g].size, job->groups[g].stride, job->ranks);
  }
  return CCT_OK;
}

enum cct_status cct_job_check(const struct cct_job *job) {
  enum cct_status status = check_shape(job);
  for (int i = 0; i < job->n_roles && !status; i++)
    status = cct_program_check(job, job->roles[i].program);
  for (int g = 0; g < job->n_groups && !status; g++) {
    char *seen = calloc((size_t)job->n_roles, (size_t)job->n_roles);
    status = seen ? check_group(job, g, seen) : cct_fail(CCT_NOMEM, "job of %d ranks: out of memory", job->ranks);
    free(seen);
  }
  return status;
}
