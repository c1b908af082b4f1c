/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/serving/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct told {
  struct cct_notice what;
  int from;
  int64_t at_ns;
};

struct member {
  struct cct_engine *engine;
  struct told *inbox;
  size_t capacity;
  int64_t n_told, n_heard;
  int64_t *moved_ns; /* by step */
  size_t moved_capacity;
  int64_t n_moved_ns, looked_ns; /* looked_ns -1: not since its last step */
  int is_due;
};

struct cct_cluster {
  struct cct_cluster_plan plan;
  const struct cct_requests *requests;
  struct member *members;
  struct cct_cluster_clock *clocks;
  int n;
  char *hears; /* [to * n + from] */
  int64_t at;
};

struct cct_engine_plan cct_cluster_engine(const struct cct_cluster_plan *plan, int number) {
  int is_prefill = number < plan->prefills;
  struct cct_engine_plan out = {.limits = plan->limits,
                                .replicas = is_prefill ? plan->prefills : plan->decodes,
                                .first = is_prefill ? number : number - plan->prefills,
                                .together = 1,
                                .is_staged = plan->is_staged};
  out.limits.stage = is_prefill ? CCT_STAGE_PREFILL : CCT_STAGE_DECODE;
  return out;
}

int cct_cluster_hearer(const struct cct_cluster_plan *plan, const struct cct_notice *notice) {
  return (int)(notice->kind == CCT_NOTICE_READY ? plan->prefills + notice->request % plan->decodes
                                                : notice->request % plan->prefills);
}

int cct_cluster_is_clocked(const struct cct_requests *requests) {
  return requests->arrivals == CCT_ARRIVE_CLOSED || requests->arrivals == CCT_ARRIVE_SECONDS;
}

enum cct_status cct_cluster_new(const struct cct_cluster_plan *plan, const struct cct_requests *requests,
                                struct cct_cluster **cluster_out) {
  struct cct_cluster *c = calloc(1, sizeof *c);
  if (!c)
    return cct_fail(CCT_NOMEM, "out of memory");
  *c = (struct cct_cluster){.plan = *plan, .requests = requests, .n = (int)(plan->prefills + plan->decodes)};
  c->members = calloc((size_t)c->n, sizeof *c->members);
  c->clocks = calloc((size_t)c->n, sizeof *c->clocks);
  c->hears = calloc((size_t)(c->n * c->n), 1);
  enum cct_status status = c->members && c->clocks && c->hears ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; !status && i < c->n; i++) {
    const struct cct_engine_plan engine = cct_cluster_engine(plan, i);
    c->members[i].looked_ns = -1;
    status = cct_engine_new(&engine, requests, &c->members[i].engine);
  }
  if (status) {
    cct_cluster_free(c);
    return status;
  }
  *cluster_out = c;
  return CCT_OK;
}

void cct_cluster_free(struct cct_cluster *c) {
  if (!c)
    return;
  for (int i = 0; c->members && i < c->n; i++) {
    cct_engine_free(c->members[i].engine);
    free(c->members[i].inbox);
    free(c->members[i].moved_ns);
  }
  free(c->members);
  free(c->clocks);
  free(c->hears);
  free(c);
}

int cct_cluster_hears(const struct cct_cluster *c, int to, int from) {
  return c->hears[to * c->n + from];
}

const struct cct_engine *cct_cluster_at(const struct cct_cluster *c, int number) {
  return c->members[number].engine;
}

/* ---- looking and hearing ---- */

static int has_transfers(const struct cct_cluster *c, int i) {
  return i >= c->plan.prefills || c->plan.is_staged;
}

static enum cct_status look(struct cct_cluster *c, int i, int64_t moved, int64_t at_ns) {
  const struct cct_notice *notices;
  int64_t n;
  enum cct_status status = cct_engine_look(c->members[i].engine, has_transfers(c, i) ? moved : 0, &notices, &n);
  for (int64_t k = 0; !status && k < n; k++) {
    struct member *to = &c->members[cct_cluster_hearer(&c->plan, &notices[k])];
    status = cct_grow((void **)&to->inbox, &to->capacity, (size_t)to->n_told + 1, sizeof *to->inbox);
    if (!status)
      to->inbox[to->n_told++] = (struct told){notices[k], i, at_ns};
  }
  return status;
}

static enum cct_status hear(struct member *m, int64_t until_ns) {
  enum cct_status status = CCT_OK;
  for (; !status && m->n_heard < m->n_told && m->inbox[m->n_heard].at_ns <= until_ns; m->n_heard++)
    status = cct_engine_hear(m->engine, &m->inbox[m->n_heard].what);
  return status;
}

static int are_done(const struct cct_cluster *c) {
  int is_done = 1;
  for (int i = 0; i < c->n; i++)
    is_done &= cct_engine_is_done(c->members[i].engine);
  return is_done;
}

static enum cct_status end(const struct cct_cluster *c, struct cct_cluster_turn *turns) {
  for (int i = 0; i < c->n; i++)
    turns[i] = (struct cct_cluster_turn){.is_over = 1};
  return are_done(c) ? CCT_OK : cct_fail(CCT_STOPPED, "serve: requests are left and no replica can do anything");
}

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* ---- with a clock ---- */

static int64_t moved_until(const struct member *m, int64_t until_ns) {
  int64_t n = m->n_moved_ns;
  while (n > 0 && m->moved_ns[n - 1] > until_ns)
    n--;
  return n;
}

/* When it looks, or, if it has and can do nothing, when there is something to look for; INT64_MAX: never by itself. */
static int64_t due_ns(const struct cct_cluster *c, int i) {
  const struct member *m = &c->members[i];
  if (m->looked_ns < 0)
    return c->clocks[i].asked_ns;
  int64_t due = m->n_heard < m->n_told ? m->inbox[m->n_heard].at_ns : INT64_MAX;
  int64_t step = has_transfers(c, i) ? cct_engine_awaits(m->engine) : -1;
  if (step >= 0 && m->moved_ns[step] > m->looked_ns)
    due = earlier(due, m->moved_ns[step]);
  int64_t arrival = cct_engine_next_arrival(m->engine);
  return later(m->looked_ns, arrival > m->looked_ns ? earlier(due, arrival) : due);
}

static enum cct_status step_at(struct cct_cluster *c, int i, int64_t now_ns, struct cct_cluster_turn *turn) {
  struct member *m = &c->members[i];
  enum cct_status status = hear(m, now_ns);
  if (status)
    return status;
  cct_engine_enter(m->engine, now_ns);
  if (!cct_engine_can_step(m->engine))
    return CCT_OK;
  status = cct_engine_step(m->engine, &turn->step);
  turn->step.start_ns = now_ns;
  turn->is_passed = 0;
  m->looked_ns = -1;
  return status;
}

/* A step that was performed since has its transfers' end. */
static enum cct_status take_clocks(struct cct_cluster *c, const struct cct_cluster_clock *clocks) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < c->n; i++) {
    struct member *m = &c->members[i];
    c->clocks[i] = clocks[i];
    if (m->n_moved_ns == cct_engine_steps(m->engine))
      continue;
    status = cct_grow((void **)&m->moved_ns, &m->moved_capacity, (size_t)m->n_moved_ns + 1, sizeof *m->moved_ns);
    if (!status)
      m->moved_ns[m->n_moved_ns++] = clocks[i].moved_ns;
  }
  return status;
}

static enum cct_status next_by_clock(struct cct_cluster *c, struct cct_cluster_turn *turns) {
  enum cct_status status = CCT_OK;
  for (int has_step = 0; !status && !has_step;) {
    int64_t now_ns = INT64_MAX;
    for (int i = 0; i < c->n; i++)
      now_ns = earlier(now_ns, due_ns(c, i));
    if (now_ns == INT64_MAX)
      return end(c, turns);
    for (int i = 0; i < c->n; i++) {
      turns[i].is_passed = 1;
      c->members[i].is_due = due_ns(c, i) == now_ns;
    }
    for (int i = 0; !status && i < c->n; i++)
      if (c->members[i].is_due) {
        c->members[i].looked_ns = now_ns;
        status = look(c, i, moved_until(&c->members[i], now_ns), now_ns);
      }
    for (int i = 0; !status && i < c->n; i++)
      if (c->members[i].is_due) {
        status = step_at(c, i, now_ns, &turns[i]);
        has_step |= !turns[i].is_passed;
      }
  }
  return status;
}

/* ---- without ---- */

/* When the engine has asked, and its own transfers are done. */
static int64_t ready_ns(const struct cct_cluster *c, int i) {
  return has_transfers(c, i) ? later(c->clocks[i].asked_ns, c->clocks[i].moved_ns) : c->clocks[i].asked_ns;
}

static int can_step(struct cct_cluster *c) {
  int can = 0;
  for (int i = 0; i < c->n; i++) {
    cct_engine_enter(c->members[i].engine, c->at);
    can |= cct_engine_can_step(c->members[i].engine);
  }
  return can;
}

static enum cct_status next_by_step(struct cct_cluster *c, struct cct_cluster_turn *turns) {
  enum cct_status status = CCT_OK;
  int64_t arrival = INT64_MAX;
  for (int i = 0; !status && i < c->n; i++)
    status = look(c, i, cct_engine_steps(c->members[i].engine), 0);
  for (int i = 0; !status && i < c->n; i++) {
    const struct member *m = &c->members[i];
    turns[i].step.start_ns = ready_ns(c, i);
    memset(c->hears + i * c->n, 0, (size_t)c->n);
    for (int64_t k = m->n_heard; k < m->n_told; k++) {
      c->hears[i * c->n + m->inbox[k].from] = 1;
      turns[i].step.start_ns = later(turns[i].step.start_ns, ready_ns(c, m->inbox[k].from));
    }
    status = hear(&c->members[i], 0);
    arrival = earlier(arrival, cct_engine_next_arrival(m->engine));
  }
  if (status)
    return status;
  if (!can_step(c)) {
    c->at = arrival == INT64_MAX ? c->at : later(c->at, arrival);
    if (!can_step(c))
      return end(c, turns);
  }
  for (int i = 0; !status && i < c->n; i++) {
    int64_t start_ns = turns[i].step.start_ns;
    status = cct_engine_step(c->members[i].engine, &turns[i].step);
    turns[i].step.start_ns = start_ns;
    turns[i].step.at = c->at;
    turns[i].is_over = turns[i].is_passed = 0;
  }
  c->at++;
  return status;
}

enum cct_status cct_cluster_next(struct cct_cluster *c, const struct cct_cluster_clock *clocks,
                                 struct cct_cluster_turn *turns) {
  enum cct_status status = CCT_OK;
  for (int i = 0; i < c->n; i++)
    turns[i] = (struct cct_cluster_turn){0};
  if (!cct_cluster_is_clocked(c->requests)) {
    for (int i = 0; clocks && i < c->n; i++)
      c->clocks[i] = clocks[i];
    return next_by_step(c, turns);
  }
  status = take_clocks(c, clocks);
  return status ? status : next_by_clock(c, turns);
}
