/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/sim_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"

struct partition {
  const struct cct_job *job;
  struct sim_plan *const *plans;
  int *role_of, *colour; /* by rank */
  uint64_t *signature;   /* by rank; equal signatures (64 mixed bits) are taken for equal neighbourhoods */
  int *scratch, *order;  /* ranks ints each */
};

static int has_collectives(const struct sim_plan *plan, int group) {
  return plan->first_collective[group + 1] > plan->first_collective[group];
}

static int by_value(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

static int member_of(const struct cct_group *group, int rank, int offset) {
  int index = ((cct_group_index(group, rank) + offset) % group->size + group->size) % group->size;
  return cct_group_member(group, rank, index);
}

/* The distinct colours of the members of rank's instance of a group, sorted, into `colours`; how many. */
static int colours_met(const struct partition *p, const struct cct_group *group, int rank, int *colours) {
  int n = 0, distinct = 0;
  for (int i = 0; i < group->size; i++)
    colours[n++] = p->colour[cct_group_member(group, rank, i)];
  qsort(colours, (size_t)n, sizeof *colours, by_value);
  for (int i = 0; i < n; i++)
    if (i == 0 || colours[i] != colours[i - 1])
      colours[distinct++] = colours[i];
  return distinct;
}

static void sign_collectives(struct partition *p, int g) {
  const struct cct_group *group = &p->job->groups[g];
  for (int rank = 0; rank < p->job->ranks; rank++) {
    if (cct_group_index(group, rank) != 0)
      continue;
    int n = colours_met(p, group, rank, p->scratch);
    uint64_t met = cct_random_u64(1, (uint64_t)g);
    for (int i = 0; i < n; i++)
      met = cct_random_fold(met, (uint64_t)p->scratch[i]);
    for (int i = 0; i < group->size; i++) {
      int member = cct_group_member(group, rank, i);
      if (has_collectives(p->plans[p->role_of[member]], g))
        p->signature[member] = cct_random_fold(p->signature[member], met);
    }
  }
}

static void sign_messages(struct partition *p) {
  for (int rank = 0; rank < p->job->ranks; rank++) {
    const struct sim_plan *plan = p->plans[p->role_of[rank]];
    for (int m = 0; m < plan->n_messages; m++) {
      const struct cct_op *op = &plan->program->ops[plan->messages[m]];
      int peer = member_of(&p->job->groups[op->p2p.group], rank, op->p2p.peer_offset);
      p->signature[rank] = cct_random_fold(p->signature[rank], (uint64_t)p->colour[peer]);
    }
  }
}

static int by_signature(const void *a, const void *b, void *signatures) {
  int i = *(const int *)a, j = *(const int *)b;
  uint64_t x = ((const uint64_t *)signatures)[i], y = ((const uint64_t *)signatures)[j];
  return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

/* Ranks with equal signatures get one colour, colours numbered by their lowest rank. Returns how many. */
static int recolour(struct partition *p) {
  int n = p->job->ranks, colours = 0;
  for (int i = 0; i < n; i++)
    p->order[i] = i;
  qsort_r(p->order, (size_t)n, sizeof *p->order, by_signature, p->signature);
  for (int i = 0, lowest = 0; i < n; i++) { /* within equal signatures the order is by rank */
    if (i == 0 || p->signature[p->order[i]] != p->signature[p->order[i - 1]])
      lowest = p->order[i];
    p->scratch[p->order[i]] = lowest;
  }
  for (int rank = 0; rank < n; rank++)
    p->colour[rank] = p->scratch[rank] == rank ? colours++ : p->colour[p->scratch[rank]];
  return colours;
}

static int refine(struct partition *p, const uint64_t *keys) {
  for (int rank = 0; rank < p->job->ranks; rank++)
    p->signature[rank] = cct_random_fold(keys[rank], (uint64_t)p->role_of[rank]);
  int before = 0, colours = recolour(p);
  while (colours != before) {
    before = colours;
    for (int rank = 0; rank < p->job->ranks; rank++)
      p->signature[rank] = cct_random_u64(2, (uint64_t)p->colour[rank]);
    for (int g = 0; g < p->job->n_groups; g++)
      sign_collectives(p, g);
    sign_messages(p);
    colours = recolour(p);
  }
  return colours;
}

/* ---- what the classes meet ---- */

static enum cct_status find_meetings(struct partition *p, struct sim_ranks *r) {
  for (int c = 0; c < r->n_classes; c++) {
    struct sim_class *class = &r->classes[c];
    const struct sim_plan *plan = p->plans[class->role];
    for (int g = 0; g < p->job->n_groups; g++) {
      if (!has_collectives(plan, g) || class->meeting[g] >= 0)
        continue;
      int n = colours_met(p, &p->job->groups[g], class->rank, p->scratch);
      struct sim_meeting *grown = realloc(r->meetings, (size_t)(r->n_meetings + 1) * sizeof *grown);
      int *classes = malloc((size_t)n * sizeof *classes);
      r->meetings = grown ? grown : r->meetings;
      if (!grown || !classes) {
        free(classes);
        return CCT_NOMEM;
      }
      memcpy(classes, p->scratch, (size_t)n * sizeof *classes);
      r->meetings[r->n_meetings] =
          (struct sim_meeting){.group = g,
                               .n_classes = n,
                               .n_collectives = plan->first_collective[g + 1] - plan->first_collective[g],
                               .classes = classes};
      for (int i = 0; i < n; i++)
        r->classes[classes[i]].meeting[g] = r->n_meetings;
      r->n_meetings++;
    }
  }
  return CCT_OK;
}

/* How many earlier messages of `plan` have the case, kind, group and offset of message m; and the m-th such one back
 * again.
 */
static int nth_of(const struct sim_plan *plan, int m, int size) {
  const struct cct_op *op = &plan->program->ops[plan->messages[m]], *in = cct_op_case(plan->program, op);
  int n = 0;
  for (int i = 0; i < m; i++) {
    const struct cct_op *other = &plan->program->ops[plan->messages[i]];
    n += other->kind == op->kind && other->p2p.group == op->p2p.group &&
         (other->p2p.peer_offset - op->p2p.peer_offset) % size == 0 &&
         !cct_case_compare(cct_op_case(plan->program, other), in);
  }
  return n;
}

static int counterpart(const struct sim_plan *plan, const struct cct_op *op, const struct cct_op *in, int nth,
                       int size) {
  enum cct_op_kind wanted = op->kind == CCT_OP_SEND ? CCT_OP_RECV : CCT_OP_SEND;
  for (int i = 0; i < plan->n_messages; i++) {
    const struct cct_op *other = &plan->program->ops[plan->messages[i]];
    if (other->kind == wanted && other->p2p.group == op->p2p.group &&
        (other->p2p.peer_offset + op->p2p.peer_offset) % size == 0 &&
        !cct_case_compare(cct_op_case(plan->program, other), in) && nth-- == 0)
      return i;
  }
  return -1; /* cct_job_check refuses such a job */
}

static void find_peers(struct partition *p, struct sim_ranks *r) {
  for (int c = 0; c < r->n_classes; c++) {
    struct sim_class *class = &r->classes[c];
    const struct sim_plan *plan = p->plans[class->role];
    for (int m = 0; m < plan->n_messages; m++) {
      const struct cct_op *op = &plan->program->ops[plan->messages[m]];
      const struct cct_group *group = &p->job->groups[op->p2p.group];
      int peer = p->colour[member_of(group, class->rank, op->p2p.peer_offset)];
      class->peer[m] = peer;
      class->peer_message[m] = counterpart(p->plans[r->classes[peer].role], op, cct_op_case(plan->program, op),
                                           nth_of(plan, m, group->size), group->size);
    }
  }
}

static enum cct_status make_classes(struct partition *p, struct sim_ranks *r) {
  r->classes = calloc((size_t)r->n_classes, sizeof *r->classes);
  if (!r->classes)
    return CCT_NOMEM;
  for (int rank = p->job->ranks - 1; rank >= 0; rank--)
    r->classes[p->colour[rank]].rank = rank;
  for (int c = 0; c < r->n_classes; c++) {
    struct sim_class *class = &r->classes[c];
    class->role = p->role_of[class->rank];
    size_t messages = (size_t)p->plans[class->role]->n_messages + 1, groups = (size_t)p->job->n_groups + 1;
    class->meeting = malloc(groups * sizeof(int));
    class->peer = malloc(messages * sizeof(int));
    class->peer_message = malloc(messages * sizeof(int));
    if (!class->meeting || !class->peer || !class->peer_message)
      return CCT_NOMEM;
    for (size_t g = 0; g < groups; g++)
      class->meeting[g] = -1;
  }
  find_peers(p, r);
  return find_meetings(p, r);
}

enum cct_status sim_ranks_new(const struct cct_job *job, struct sim_plan *const *plans, const uint64_t *keys,
                              struct sim_ranks **ranks_out) {
  size_t n = (size_t)job->ranks;
  struct sim_ranks *r = calloc(1, sizeof *r);
  struct partition p = {.job = job, .plans = plans};
  p.role_of = malloc(n * sizeof(int));
  p.colour = malloc(n * sizeof(int));
  p.scratch = malloc(n * sizeof(int));
  p.order = malloc(n * sizeof(int));
  p.signature = malloc(n * sizeof(uint64_t));
  enum cct_status status = r && p.role_of && p.colour && p.scratch && p.order && p.signature ? CCT_OK : CCT_NOMEM;
  if (!status) {
    for (int i = 0; i < job->n_roles; i++)
      for (int k = 0; k < job->roles[i].count; k++)
        p.role_of[job->roles[i].first + k] = i;
    r->n_classes = refine(&p, keys);
    r->class_of = p.colour;
    status = make_classes(&p, r);
  }
  free(p.role_of);
  free(p.scratch);
  free(p.order);
  free(p.signature);
  if (!status) {
    *ranks_out = r;
    return CCT_OK;
  }
  if (!r || r->class_of != p.colour)
    free(p.colour);
  sim_ranks_free(r);
  return cct_fail(CCT_NOMEM, "sim: out of memory for %d ranks", job->ranks);
}

void sim_ranks_free(struct sim_ranks *r) {
  if (!r)
    return;
  for (int c = 0; r->classes && c < r->n_classes; c++) {
    free(r->classes[c].meeting);
    free(r->classes[c].peer);
    free(r->classes[c].peer_message);
  }
  for (int m = 0; m < r->n_meetings; m++)
    free(r->meetings[m].classes);
  free(r->class_of);
  free(r->classes);
  free(r->meetings);
  free(r);
}
