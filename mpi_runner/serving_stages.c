/* SPDX-License-Identifier: Apache-2.0
 * Prompts and generation on different replicas (serving/cluster.h). Where time is a law's (sim) and where no clock
 * decides, every process has all engines, which decide alike everywhere; what holds a step in fact is waited for. Where
 * clocks decide each engine has its own, and they write to each other what became known. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "mpi_runner/serving_driver.h"

struct serving_stages {
  struct cct_cluster_plan plan;
  int n;
  struct cct_cluster *cluster; /* NULL: each engine has its own */
  struct cct_cluster_clock *clocks;
  struct cct_cluster_turn *turns;
  struct serving_letters *letters;
  struct cct_notice *heard; /* in front of the step in hand */
  int64_t n_heard, *left;   /* by engine: letters that are still to come */
};

static int is_replay(const struct serving_driver *d) {
  return d->run->heard != NULL;
}

/* Letters of engine `from` to engine `to`, in all. */
static int64_t n_letters(const struct serving_driver *d, int from, int to) {
  const struct cct_cluster_plan *plan = &d->stages->plan;
  const struct cct_requests *requests = d->run->requests;
  int is_ready = from < plan->prefills;
  int64_t n = 0, prefill = is_ready ? from : to, decode = (is_ready ? to : from) - plan->prefills;
  if (is_ready == (to < plan->prefills))
    return 0;
  for (int64_t i = 0; i < requests->n; i++)
    n += requests->items[i].output > 1 && i % plan->prefills == prefill && i % plan->decodes == decode;
  return is_ready || requests->arrivals != CCT_ARRIVE_CLOSED ? n : 2 * n;
}

enum cct_status cct_stages_open(struct serving_driver *d) {
  struct serving_stages *s = d->stages = calloc(1, sizeof *s);
  enum cct_status status = CCT_OK;
  if (!s)
    return cct_fail(CCT_NOMEM, "out of memory");
  s->plan = cct_serve_cluster(d->run->serve);
  s->n = cct_serve_engines(d->run->serve);
  s->clocks = calloc((size_t)s->n, sizeof *s->clocks);
  s->turns = calloc((size_t)s->n, sizeof *s->turns);
  s->left = calloc((size_t)s->n, sizeof *s->left);
  s->heard = calloc((size_t)(3 * d->run->requests->n) + 1, sizeof *s->heard);
  if (!s->clocks || !s->turns || !s->left || !s->heard)
    return cct_fail(CCT_NOMEM, "out of memory");
  status = cct_letters_open(d, &s->plan, &s->letters);
  for (int i = 0; !status && i < d->n_engines; i++) {
    struct cct_engine_plan plan = cct_serve_engine(d->run->serve, d->engines[i].number);
    status = cct_engine_new(&plan, d->run->requests, &d->engines[i].engine);
    for (int from = 0; from < s->n; from++)
      s->left[from] = n_letters(d, from, d->engines[i].number);
  }
  return status;
}

void cct_stages_close(struct serving_driver *d) {
  if (!d->stages)
    return;
  cct_cluster_free(d->stages->cluster);
  cct_letters_close(d->stages->letters);
  free(d->stages->clocks);
  free(d->stages->turns);
  free(d->stages->left);
  free(d->stages->heard);
  free(d->stages);
  d->stages = NULL;
}

/* ---- its own transfers ---- */

static int has_transfers(const struct serving_stages *s, int number) {
  return number >= s->plan.prefills || s->plan.is_staged;
}

/* When the engine's first rank was through with the transfers of its n-th step; -1: it is not. */
static int64_t moved_ns(const struct serving_driver *d, const struct serving_engine *e, int64_t n) {
  int mover = d->sequence->n_host_lanes - 1;
  return d->sequence->lane_end(d->run->executor, e->first_owned, mover, e->rows[n].index);
}

static void count_moved(const struct serving_driver *d, struct serving_engine *e) {
  while (has_transfers(d->stages, e->number) && e->moved < (int64_t)e->n && moved_ns(d, e, e->moved) >= 0)
    e->moved++;
}

/* ---- all engines in one place ---- */

/* Clocks of all engines: each is known to its leader. */
static enum cct_status gather_clocks(struct serving_driver *d, const int64_t *now_ns) {
  struct serving_stages *s = d->stages;
  const struct cct_world *world = d->run->world;
  memset(s->clocks, 0, (size_t)s->n * sizeof *s->clocks);
  for (int i = 0; i < d->n_engines; i++) {
    const struct serving_engine *e = &d->engines[i];
    if (e->is_leader)
      s->clocks[e->number] =
          (struct cct_cluster_clock){now_ns[e->first_owned], e->n ? moved_ns(d, e, (int64_t)e->n - 1) : 0};
  }
  if (world->size == 1)
    return CCT_OK;
  return world->ops->allreduce_i64(world, (int64_t *)(void *)s->clocks,
                                   (size_t)s->n * sizeof *s->clocks / sizeof(int64_t), CCT_REDUCE_MAX);
}

enum cct_status cct_stages_ask(struct serving_driver *d, const int64_t *now_ns) {
  struct serving_stages *s = d->stages;
  enum cct_status status = CCT_OK;
  int is_virtual = d->sequence->is_virtual;
  if (is_replay(d) || (!is_virtual && cct_serve_is_clocked(d->run->serve)))
    return CCT_OK;
  if (!s->cluster)
    status = cct_cluster_new(&s->plan, d->run->requests, &s->cluster);
  if (!status && is_virtual)
    status = gather_clocks(d, now_ns);
  return status ? status : cct_cluster_next(s->cluster, is_virtual ? s->clocks : NULL, s->turns);
}

/* ---- waiting in fact ---- */

/* What goes on goes on meanwhile; and other processes get this core. */
static enum cct_status give_way(struct serving_driver *d) {
  nanosleep(&(struct timespec){.tv_nsec = 5000}, NULL);
  return d->sequence->progress(d->run->executor);
}

struct watch { /* the time since the start, going on from what next() was told */
  int64_t told_ns, from_ns;
};
static struct watch start_watch(int64_t now_ns) {
  return (struct watch){now_ns, cct_clock_ns()};
}
static int64_t read_watch(const struct watch *watch) {
  return watch->told_ns + cct_clock_ns() - watch->from_ns;
}

static enum cct_status drain(struct serving_driver *d) {
  int is_drained = 0;
  enum cct_status status = cct_letters_drain(d->stages->letters, &is_drained);
  while (!status && !is_drained) {
    status = give_way(d);
    if (!status)
      status = cct_letters_drain(d->stages->letters, &is_drained);
  }
  return status;
}

/* Without a clock: its own transfers are done, and those that it hears something from have asked for this step. */
static enum cct_status await(struct serving_driver *d, struct serving_engine *e) {
  struct serving_stages *s = d->stages;
  const struct cct_notice asked = {CCT_NOTICE_MOVED, (int64_t)e->n};
  enum cct_status status = CCT_OK;
  count_moved(d, e);
  while (!status && has_transfers(s, e->number) && e->moved < (int64_t)e->n) {
    status = give_way(d);
    count_moved(d, e);
  }
  for (int to = 0; !status && to < s->n; to++)
    if (cct_cluster_hears(s->cluster, to, e->number))
      status = cct_letters_send(s->letters, e->number, to, &asked);
  for (int from = 0; !status && from < s->n; from++) {
    struct cct_notice letter;
    int has_letter = !cct_cluster_hears(s->cluster, e->number, from);
    while (!status && !has_letter) {
      status = cct_letters_take(s->letters, from, &letter, &has_letter);
      if (!status && !has_letter)
        status = give_way(d);
    }
  }
  int ignored;
  return status ? status : cct_letters_drain(s->letters, &ignored);
}

static enum cct_status next_alike(struct serving_driver *d, struct serving_engine *e, int64_t *now_ns,
                                  struct cct_engine_step *step) {
  const struct cct_cluster_turn *turn = &d->stages->turns[e->number];
  struct watch watch = start_watch(*now_ns);
  enum cct_status status = CCT_OK;
  *step = turn->step;
  step->is_over = turn->is_over;
  step->start_ns = 0;
  if (turn->is_over)
    return e->is_leader ? drain(d) : CCT_OK;
  if (e->is_leader)
    status = await(d, e);
  *now_ns = read_watch(&watch);
  return status ? status : cct_serving_agree(d, e, now_ns);
}

/* ---- by letters ---- */

static enum cct_status look(struct serving_driver *d, struct serving_engine *e) {
  struct serving_stages *s = d->stages;
  const struct cct_notice *notices;
  int64_t n;
  if (!is_replay(d))
    count_moved(d, e);
  enum cct_status status = cct_engine_look(e->engine, e->moved, &notices, &n);
  for (int64_t i = 0; !status && e->is_leader && !is_replay(d) && i < n; i++)
    status = cct_letters_send(s->letters, e->number, cct_cluster_hearer(&s->plan, &notices[i]), &notices[i]);
  return status;
}

static enum cct_status receive(struct serving_driver *d, struct serving_engine *e) {
  struct serving_stages *s = d->stages;
  enum cct_status status = CCT_OK;
  for (int from = 0; !status && from < s->n; from++)
    for (int has_letter = 1; !status && has_letter && s->left[from];) {
      struct cct_notice *letter = &s->heard[s->n_heard];
      status = cct_letters_take(s->letters, from, letter, &has_letter);
      if (status || !has_letter)
        continue;
      s->left[from]--;
      s->n_heard++;
      status = cct_engine_hear(e->engine, letter);
    }
  return status;
}

/* Until it can do something, or there is nothing left: *is_over_out. */
static enum cct_status lead(struct serving_driver *d, struct serving_engine *e, int64_t *now_ns, int *is_over_out) {
  struct watch watch = start_watch(*now_ns);
  enum cct_status status = CCT_OK;
  int is_drained = 0;
  for (*is_over_out = 0;;) {
    *now_ns = read_watch(&watch);
    status = look(d, e);
    if (!status)
      status = receive(d, e);
    if (!status)
      status = cct_letters_drain(d->stages->letters, &is_drained);
    if (status)
      return status;
    cct_engine_enter(e->engine, *now_ns);
    if (cct_engine_can_step(e->engine))
      return CCT_OK;
    if (cct_engine_is_done(e->engine) && is_drained) {
      *is_over_out = 1;
      return CCT_OK;
    }
    status = give_way(d);
    if (status)
      return status;
  }
}

static enum cct_status follow(struct serving_driver *d, struct serving_engine *e, int64_t now_ns) {
  enum cct_status status = look(d, e);
  for (int64_t i = 0; !status && i < d->stages->n_heard; i++)
    status = cct_engine_hear(e->engine, &d->stages->heard[i]);
  cct_engine_enter(e->engine, now_ns);
  return status;
}

static enum cct_status next_by_letters(struct serving_driver *d, struct serving_engine *e, int64_t *now_ns,
                                       struct cct_engine_step *step) {
  struct serving_stages *s = d->stages;
  enum cct_status status = CCT_OK;
  int is_over = 0;
  s->n_heard = 0;
  if (e->is_leader)
    status = lead(d, e, now_ns, &is_over);
  int64_t n = is_over ? -1 : s->n_heard;
  if (!status)
    status = cct_letters_share(s->letters, e, now_ns, &e->moved, s->heard, &n);
  *step = (struct cct_engine_step){.is_over = 1};
  if (status || n < 0)
    return status;
  s->n_heard = n;
  if (!e->is_leader)
    status = follow(d, e, *now_ns);
  return status ? status : cct_engine_step(e->engine, step);
}

/* ---- told what another run heard ---- */

static enum cct_status next_told(struct serving_driver *d, struct serving_engine *e, int64_t index, int64_t *now_ns,
                                 struct cct_engine_step *step) {
  int64_t n = 0, steps = 0;
  const struct cct_heard *heard = d->run->heard(d->run->clock_context, e->number, &n, &steps);
  enum cct_status status = CCT_OK;
  *step = (struct cct_engine_step){.is_over = 1};
  if (index >= steps)
    return CCT_OK;
  for (int64_t i = 0; i < n; i++)
    if (heard[i].step == index && heard[i].what.kind == CCT_NOTICE_MOVED)
      e->moved = heard[i].what.request + 1;
  status = look(d, e);
  for (int64_t i = 0; !status && i < n; i++)
    if (heard[i].step == index && heard[i].what.kind != CCT_NOTICE_MOVED)
      status = cct_engine_hear(e->engine, &heard[i].what);
  cct_engine_enter(e->engine, *now_ns);
  return status ? status : cct_engine_step(e->engine, step);
}

enum cct_status cct_stages_next(struct serving_driver *d, struct serving_engine *e, int64_t *now_ns,
                                struct cct_engine_step *step, int *passed_out) {
  *passed_out = 0;
  if (is_replay(d))
    return next_told(d, e, cct_engine_steps(e->engine), now_ns, step);
  if (d->sequence->is_virtual) {
    const struct cct_cluster_turn *turn = &d->stages->turns[e->number];
    *step = turn->step;
    step->is_over = turn->is_over;
    *passed_out = turn->is_passed;
    return CCT_OK;
  }
  return cct_serve_is_clocked(d->run->serve) ? next_by_letters(d, e, now_ns, step) : next_alike(d, e, now_ns, step);
}

struct cct_history cct_stages_history(const struct serving_driver *d, const struct serving_engine *e) {
  return cct_engine_history(d->stages->cluster ? cct_cluster_at(d->stages->cluster, e->number) : e->engine);
}
