/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/sim_executor.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"

struct packet { /* of one process in one round; arrivals follow */
  int32_t n, n_left, is_done, is_failed;
  int32_t stuck_rank, stuck_id; /* the lowest rank here that waits for others; -1: none */
};

static enum cct_status run_local(struct cct_executor *x, struct sim_local *local) {
  struct sim_state *s = &local->state;
  local->is_queued = 0;
  sim_state_run(s);
  if (!local->is_announcer)
    return CCT_OK;
  enum cct_status status =
      cct_grow((void **)&x->outbox, &x->outbox_capacity, x->n_outbox + (size_t)s->n_announced, sizeof *x->outbox);
  for (int i = 0; i < s->n_announced && !status; i++) {
    int id = s->announced[i];
    x->outbox[x->n_outbox++] = (struct sim_arrival){local->class, id, s->start[id], s->durations[id].run_ns};
  }
  return status;
}

static void take_arrivals(struct cct_executor *x, const struct sim_arrival *arrivals, int n) {
  for (int i = 0; i < n; i++) {
    const struct sim_decision *decisions;
    int decided = sim_meet_take(x->meet, &arrivals[i], &decisions);
    for (int k = 0; k < decided; k++) {
      int local = x->local_of[decisions[k].class];
      if (local < 0)
        continue;
      sim_state_tell(&x->locals[local].state, decisions[k].id, decisions[k].start_ns, decisions[k].end_ns);
      x->locals[local].is_queued = 1;
    }
  }
}

static void fill_packet(const struct cct_executor *x, enum cct_status status, struct packet *packet) {
  *packet = (struct packet){.is_done = 1, .is_failed = status != CCT_OK, .stuck_rank = -1, .stuck_id = -1};
  packet->n = (int32_t)(x->n_outbox < (size_t)x->packet_arrivals ? x->n_outbox : (size_t)x->packet_arrivals);
  packet->n_left = (int32_t)(x->n_outbox - (size_t)packet->n);
  for (int i = 0; i < x->n_locals; i++)
    if (!sim_state_is_done(&x->locals[i].state)) {
      packet->is_done = 0;
      if (packet->n == 0 && packet->stuck_rank < 0) {
        packet->stuck_rank = x->ranks->classes[x->locals[i].class].rank;
        packet->stuck_id = sim_state_waits_at(&x->locals[i].state);
      }
    }
  if (packet->n)
    memcpy((struct sim_arrival *)(void *)packet + 1, x->outbox, (size_t)packet->n * sizeof *x->outbox);
}

/* Nobody can go on: ranks wait for each other. The process that owns the first of them says so. */
static enum cct_status refuse_deadlock(const struct cct_executor *x, const char *packets) {
  const struct packet *first = NULL, *second = NULL;
  int owner = 0;
  for (int p = 0; p < x->backend->world->size; p++) {
    const struct packet *packet = (const void *)(packets + (size_t)p * sim_packet_bytes(x));
    if (packet->stuck_id < 0)
      continue;
    if (!first) {
      first = packet;
      owner = p;
    } else if (!second && packet->stuck_rank != first->stuck_rank) {
      second = packet;
    }
  }
  int other_rank = second ? second->stuck_rank : -1, other_id = second ? second->stuck_id : -1;
  for (int i = 0; first && i < x->n_locals && !second;
       i++) { /* in one process the second is another class of its own */
    int rank = x->ranks->classes[x->locals[i].class].rank;
    if (rank == first->stuck_rank || sim_state_is_done(&x->locals[i].state) || other_rank >= 0)
      continue;
    other_rank = rank;
    other_id = sim_state_waits_at(&x->locals[i].state);
  }
  if (x->backend->world->rank != owner)
    return CCT_USAGE;
  if (!first)
    return cct_fail(CCT_USAGE, "deadlock in '%s': no rank can go on", x->job->roles[0].program->name);
  const struct cct_program *p = sim_program_of(x, first->stuck_rank);
  const struct cct_op *op = &p->ops[first->stuck_id];
  if (other_id < 0)
    return cct_fail(CCT_USAGE, "deadlock in '%s': rank %d waits for others in entry %d (%s '%s') that never come",
                    p->name, first->stuck_rank, first->stuck_id, cct_op_name(op->kind), op->name);
  const struct cct_program *q = sim_program_of(x, other_rank);
  return cct_fail(CCT_USAGE,
                  "deadlock in '%s': rank %d waits in entry %d (%s '%s'), rank %d in entry %d (%s '%s') of '%s'",
                  p->name, first->stuck_rank, first->stuck_id, cct_op_name(op->kind), op->name, other_rank, other_id,
                  cct_op_name(q->ops[other_id].kind), q->ops[other_id].name, q->name);
}

/* One round: everyone runs as far as it can, one all-gather tells who stands ready where. *done_out: the repetition is.
 */
static enum cct_status run_round(struct cct_executor *x, int *done_out) {
  const struct cct_world *world = x->backend->world;
  size_t bytes = sim_packet_bytes(x);
  char *all = x->packets, *mine = world->size > 1 ? all + (size_t)world->size * bytes : all;
  enum cct_status status = CCT_OK;
  for (int i = 0; i < x->n_locals && !status; i++)
    if (x->locals[i].is_queued)
      status = run_local(x, &x->locals[i]);
  fill_packet(x, status, (struct packet *)(void *)mine);
  x->n_outbox -= (size_t)((struct packet *)(void *)mine)->n;
  if (x->n_outbox)
    memmove(x->outbox, x->outbox + ((struct packet *)(void *)mine)->n, x->n_outbox * sizeof *x->outbox);
  enum cct_status gathered = world->size > 1 ? world->ops->allgather(world, mine, bytes, all) : CCT_OK;
  if (status || gathered)
    return status ? status : gathered;
  int is_done = 1, is_moving = 0;
  for (int p = 0; p < world->size; p++) {
    const struct packet *packet = (const void *)(all + (size_t)p * bytes);
    if (packet->is_failed)
      return CCT_NOMEM;
    is_done &= packet->is_done;
    is_moving |= packet->n > 0 || packet->n_left > 0;
    take_arrivals(x, (const struct sim_arrival *)(const void *)packet + 1, packet->n);
  }
  *done_out = is_done;
  return is_done || is_moving ? CCT_OK : refuse_deadlock(x, all);
}

enum cct_status sim_run_repetition(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  sim_meet_clear(x->meet);
  x->n_outbox = 0;
  for (int i = 0; i < x->n_locals; i++) {
    x->locals[i].is_queued = !x->locals[i].is_passed;
    if (!x->locals[i].is_passed)
      sim_state_start_repetition(&x->locals[i].state);
  }
  for (int is_done = 0; !is_done && !status;)
    status = run_round(x, &is_done);
  return status;
}
