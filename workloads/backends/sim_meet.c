/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/sim_meet.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct gathering { /* one collective of one meeting */
  int arrived;
  int64_t ready_ns, run_ns; /* the latest ready, the longest duration so far */
};

struct message { /* one SEND or RECV of one class */
  int has_come;
  int64_t ready_ns, run_ns;
};

struct sim_meet {
  const struct sim_ranks *ranks;
  struct sim_plan *const *plans;
  struct gathering *gatherings;
  struct message *messages;
  size_t *first_gathering; /* by meeting */
  size_t *first_message;   /* by class */
  size_t n_gatherings, n_messages;
  struct sim_decision *decisions; /* room for the largest meeting, or a pair */
};

enum cct_status sim_meet_new(const struct sim_ranks *ranks, struct sim_plan *const *plans, struct sim_meet **meet_out) {
  struct sim_meet *m = calloc(1, sizeof *m);
  if (!m)
    return cct_fail(CCT_NOMEM, "sim: out of memory");
  m->ranks = ranks;
  m->plans = plans;
  m->first_gathering = calloc((size_t)ranks->n_meetings + 1, sizeof(size_t));
  m->first_message = calloc((size_t)ranks->n_classes + 1, sizeof(size_t));
  if (!m->first_gathering || !m->first_message)
    goto nomem;
  size_t largest = 2;
  for (int i = 0; i < ranks->n_meetings; i++) {
    m->first_gathering[i] = m->n_gatherings;
    m->n_gatherings += (size_t)ranks->meetings[i].n_collectives;
    if ((size_t)ranks->meetings[i].n_classes > largest)
      largest = (size_t)ranks->meetings[i].n_classes;
  }
  for (int c = 0; c < ranks->n_classes; c++) {
    m->first_message[c] = m->n_messages;
    m->n_messages += (size_t)plans[ranks->classes[c].role]->n_messages;
  }
  m->gatherings = calloc(m->n_gatherings + 1, sizeof *m->gatherings);
  m->messages = calloc(m->n_messages + 1, sizeof *m->messages);
  m->decisions = calloc(largest, sizeof *m->decisions);
  if (!m->gatherings || !m->messages || !m->decisions)
    goto nomem;
  *meet_out = m;
  return CCT_OK;
nomem:
  sim_meet_free(m);
  return cct_fail(CCT_NOMEM, "sim: out of memory");
}

void sim_meet_free(struct sim_meet *m) {
  if (!m)
    return;
  free(m->gatherings);
  free(m->messages);
  free(m->first_gathering);
  free(m->first_message);
  free(m->decisions);
  free(m);
}

void sim_meet_clear(struct sim_meet *m) {
  memset(m->gatherings, 0, m->n_gatherings * sizeof *m->gatherings);
  memset(m->messages, 0, m->n_messages * sizeof *m->messages);
}

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int take_collective(struct sim_meet *m, const struct sim_arrival *a) {
  const struct sim_class *class = &m->ranks->classes[a->class];
  const struct sim_plan *plan = m->plans[class->role];
  int group = plan->program->ops[a->id].collective.group, number = plan->number[a->id];
  const struct sim_meeting *meeting = &m->ranks->meetings[class->meeting[group]];
  struct gathering *g = &m->gatherings[m->first_gathering[class->meeting[group]] + (size_t)number];
  g->ready_ns = later(g->ready_ns, a->ready_ns);
  g->run_ns = later(g->run_ns, a->run_ns);
  if (++g->arrived < meeting->n_classes)
    return 0;
  for (int i = 0; i < meeting->n_classes; i++) {
    const struct sim_plan *theirs = m->plans[m->ranks->classes[meeting->classes[i]].role];
    int id = theirs->collectives[theirs->first_collective[group] + number];
    m->decisions[i] = (struct sim_decision){meeting->classes[i], id, g->ready_ns, g->ready_ns + g->run_ns};
  }
  return meeting->n_classes;
}

/* The two ends may be of one class, which stands for both: then it takes both decisions. */
static int take_message(struct sim_meet *m, const struct sim_arrival *a) {
  const struct sim_class *class = &m->ranks->classes[a->class];
  int number = m->plans[class->role]->number[a->id];
  int peer = class->peer[number], peer_number = class->peer_message[number];
  struct message *mine = &m->messages[m->first_message[a->class] + (size_t)number];
  const struct message *theirs = &m->messages[m->first_message[peer] + (size_t)peer_number];
  *mine = (struct message){1, a->ready_ns, a->run_ns};
  if (!theirs->has_come)
    return 0;
  int64_t start_ns = later(mine->ready_ns, theirs->ready_ns), end_ns = start_ns + later(mine->run_ns, theirs->run_ns);
  int peer_id = m->plans[m->ranks->classes[peer].role]->messages[peer_number];
  m->decisions[0] = (struct sim_decision){a->class, a->id, start_ns, end_ns};
  m->decisions[1] = (struct sim_decision){peer, peer_id, start_ns, end_ns};
  return 2;
}

int sim_meet_take(struct sim_meet *m, const struct sim_arrival *arrival, const struct sim_decision **decisions_out) {
  const struct sim_plan *plan = m->plans[m->ranks->classes[arrival->class].role];
  *decisions_out = m->decisions;
  return plan->program->ops[arrival->id].kind == CCT_OP_COLLECTIVE ? take_collective(m, arrival)
                                                                   : take_message(m, arrival);
}
