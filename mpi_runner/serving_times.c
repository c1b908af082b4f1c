/* SPDX-License-Identifier: Apache-2.0
 * When what happened: of the steps of an engine, and of requests that are read in one engine and generated in another.
 */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "machine/host_facts.h"
#include "mpi_runner/serving_driver.h"

#define BESIDE_NS 1000000 /* between being let go and beginning, on a real clock */

/* 1 on all processes where they have one clock. */
static enum cct_status find_machines(const struct cct_world *world, int *is_one_out) {
  char boot_id[64];
  int64_t least, most;
  uint64_t digest = 0;
  cct_host_boot_id(boot_id);
  for (const char *at = boot_id; *at; at++)
    digest = cct_random_fold(digest, (uint64_t)*at);
  least = most = (int64_t)(digest >> 1);
  enum cct_status status = world->ops->allreduce_i64(world, &least, 1, CCT_REDUCE_MIN);
  if (!status)
    status = world->ops->allreduce_i64(world, &most, 1, CCT_REDUCE_MAX);
  *is_one_out = least == most;
  return status;
}

enum cct_status cct_serving_find_origin(struct serving_driver *d, struct cct_serving_result *result) {
  const struct cct_world *world = d->run->world;
  int64_t first_ns = result->start_ns;
  int is_one = 0;
  enum cct_status status = find_machines(world, &is_one);
  if (!status)
    status = world->ops->allreduce_i64(world, &first_ns, 1, CCT_REDUCE_MIN);
  result->is_virtual = d->sequence->is_virtual;
  if (result->is_virtual) /* a law's times begin together */
    result->start_ns = first_ns;
  result->origin_ns = is_one ? first_ns : result->start_ns;
  d->offset_ns = result->start_ns - result->origin_ns;
  return status;
}

static int64_t earlier(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* When each step began and its tokens became known, on this process's clock: also into the engine's rows, with when its
 * thread was through. */
static void note_times(const struct serving_driver *d, struct serving_engine *e, int64_t *begin_ns, int64_t *known_ns) {
  const struct cct_serve *serve = d->run->serve;
  const struct cct_sequence *sequence = d->sequence;
  int64_t lanes = sequence->n_host_lanes, known_lane = serve->is_worker ? 1 : 0;
  int64_t later = serve->is_overlapped && !serve->is_worker, n = (int64_t)e->n;
  for (int64_t s = 0; s < n; s++) {
    const int64_t *ends = sequence->lane_end_ns + e->first_owned * lanes;
    const struct cct_serve_row *known = &e->rows[s + later < n ? s + later : s];
    begin_ns[s] = e->rows[s].begin_ns;
    e->rows[s].end_ns = ends[e->rows[s].index * d->count * lanes];
    known_ns[s] = ends[known->index * d->count * lanes + known_lane];
    /* What a worker read was known when the engine had awaited it, whenever its own thread wrote down that it was. */
    if (serve->is_worker && s + serve->is_overlapped < n)
      known_ns[s] = earlier(known_ns[s], ends[e->rows[s + serve->is_overlapped].index * d->count * lanes]);
    e->rows[s].known_ns = known_ns[s];
  }
}

/* A step that would have waited for requests anyway was not held. */
double cct_serving_held(const struct serving_driver *d, const struct serving_engine *e) {
  int64_t lanes = d->sequence->n_host_lanes, held_ns = 0;
  const int64_t *ends = d->sequence->lane_end_ns + e->first_owned * lanes;
  for (size_t s = CCT_SEQUENCE_DEPTH; s < e->n; s++) {
    int64_t through_ns = 0;
    for (int64_t lane = 0; lane < lanes; lane++) {
      int64_t end_ns = ends[e->rows[s - CCT_SEQUENCE_DEPTH].index * d->count * lanes + lane];
      through_ns = end_ns > through_ns ? end_ns : through_ns;
    }
    int64_t ready_ns = ends[e->rows[s - 1].index * d->count * lanes];
    if (through_ns > ready_ns && e->rows[s].begin_ns <= through_ns + BESIDE_NS)
      held_ns += through_ns - ready_ns;
  }
  return e->n && e->rows[e->n - 1].end_ns > 0 ? (double)held_ns / (double)e->rows[e->n - 1].end_ns : 0;
}

/* Since the run began. `before`: as for cct_serve_times. */
static enum cct_status times_of(const struct serving_driver *d, struct serving_engine *e,
                                const struct cct_history *history, int64_t replicas,
                                const struct cct_request_times *before, struct cct_serve_times *times) {
  const struct cct_requests *requests = d->run->requests;
  int64_t n = (int64_t)e->n, *ns = calloc((size_t)(3 * n + 1), sizeof *ns), lanes = d->sequence->n_host_lanes;
  const struct cct_step_times steps = {ns, ns + n, ns + 2 * n};
  if (!ns)
    return cct_fail(CCT_NOMEM, "out of memory");
  note_times(d, e, ns, ns + n);
  for (int64_t i = 0; d->stages && i < n; i++) /* the mover is the last host lane */
    ns[2 * n + i] = d->sequence->lane_end_ns[(e->rows[i].index * d->count + e->first_owned + 1) * lanes - 1];
  for (int64_t i = 0; i < 3 * n; i++)
    ns[i] += d->offset_ns;
  enum cct_status status = cct_serve_times(requests, history, replicas, &steps, before, times);
  free(ns);
  for (int64_t i = 0; !status && !before && requests->arrivals == CCT_ARRIVE_SECONDS && i < requests->n; i++)
    if (times->requests[i].first_ns >= 0)
      times->requests[i].arrival_ns += d->offset_ns; /* by the clock of whom it came to */
  return status;
}

enum cct_status cct_serving_take_times(const struct serving_driver *d, struct serving_engine *e,
                                       struct cct_serve_times *times_out) {
  struct cct_history history = cct_engine_history(e->engine);
  return times_of(d, e, &history, d->run->serve->replicas, NULL, times_out);
}

/* ---- prompts and generation apart ---- */

struct joint { /* of all requests */
  struct cct_request_times *all;
  int64_t *rooms;
};

static enum cct_status join(const struct serving_driver *d, struct joint *joint) {
  const struct cct_world *world = d->run->world;
  size_t n = (size_t)d->run->requests->n;
  enum cct_status status = world->ops->allreduce_i64(world, (int64_t *)(void *)joint->all,
                                                     n * sizeof *joint->all / sizeof(int64_t), CCT_REDUCE_MAX);
  return status ? status : world->ops->allreduce_i64(world, joint->rooms, n, CCT_REDUCE_MAX);
}

/* The engine's part of what becomes known of requests. */
static enum cct_status add_engine(const struct serving_driver *d, struct serving_engine *e, struct joint *joint,
                                  struct cct_serve_times *times) {
  const struct cct_cluster_plan plan = cct_serve_cluster(d->run->serve);
  const struct cct_requests *requests = d->run->requests;
  struct cct_history history = cct_stages_history(d, e);
  int is_prefill = e->number < plan.prefills;
  enum cct_status status =
      times_of(d, e, &history, is_prefill ? plan.prefills : plan.decodes, is_prefill ? NULL : joint->all, times);
  if (status)
    return status;
  for (int64_t i = 0; is_prefill && i < requests->n; i++) {
    struct cct_request_times *t = &times->requests[i];
    if (t->first_ns < 0)
      continue;
    joint->rooms[i] = history.room_requests[i];
    t->last_ns = requests->items[i].output > 1 ? -1 : t->last_ns;
  }
  cct_serve_join(joint->all, times->requests, requests->n);
  return CCT_OK;
}

/* Every engine of one of the two kinds, and then what is known to all. */
static enum cct_status add_engines(struct serving_driver *d, int is_prefill, struct joint *joint,
                                   struct cct_serving_result *result) {
  enum cct_status status = CCT_OK;
  for (int i = 0, k = 0; i < d->n_engines; i++) {
    if (!d->engines[i].is_leader)
      continue;
    if (!status && (d->engines[i].number < d->run->serve->prefills) == is_prefill)
      status = add_engine(d, &d->engines[i], joint, &result->engines[k].times);
    k++;
  }
  status = cct_world_agree(d->run->world, status, d->run->measure.name, d->run->measure.patience_ns);
  return status ? status : join(d, joint);
}

/* A request is the engine's that made its last token. */
static void give_out(const struct serving_driver *d, const struct joint *joint, const struct serving_engine *e,
                     struct cct_serve_times *times) {
  int is_prefill = e->number < d->run->serve->prefills;
  for (int64_t i = 0; i < d->run->requests->n; i++) {
    int is_served = times->requests[i].first_ns >= 0 && (!is_prefill || d->run->requests->items[i].output == 1);
    times->requests[i] = is_served ? joint->all[i] : (struct cct_request_times){-1, -1, -1, -1};
  }
}

static enum cct_status keep_heard(const struct serving_driver *d, const struct serving_engine *e,
                                  struct cct_serving_engine *out) {
  struct cct_history history = cct_stages_history(d, e);
  out->heard = malloc((size_t)(history.n_heard + 1) * sizeof *out->heard);
  if (!out->heard)
    return cct_fail(CCT_NOMEM, "out of memory");
  if (history.n_heard)
    memcpy(out->heard, history.heard, (size_t)history.n_heard * sizeof *out->heard);
  out->n_heard = history.n_heard;
  return CCT_OK;
}

enum cct_status cct_stages_times(struct serving_driver *d, struct cct_serving_result *result) {
  size_t n = (size_t)d->run->requests->n;
  struct joint joint = {.all = malloc(n * sizeof *joint.all), .rooms = malloc(n * sizeof *joint.rooms)};
  enum cct_status status = joint.all && joint.rooms ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  status = cct_world_agree(d->run->world, status, d->run->measure.name, d->run->measure.patience_ns);
  if (!status) {
    memset(joint.all, 0xff, n * sizeof *joint.all);
    memset(joint.rooms, 0xff, n * sizeof *joint.rooms);
  }
  if (!status)
    status = add_engines(d, 1, &joint, result);
  if (!status)
    status = add_engines(d, 0, &joint, result);
  if (!status && d->run->requests->arrivals == CCT_ARRIVE_CLOSED)
    cct_serve_arrive(joint.all, joint.rooms, (int64_t)n);
  for (int i = 0, k = 0; !status && i < d->n_engines; i++)
    if (d->engines[i].is_leader) {
      give_out(d, &joint, &d->engines[i], &result->engines[k].times);
      status = keep_heard(d, &d->engines[i], &result->engines[k++]);
    }
  free(joint.all);
  free(joint.rooms);
  return status;
}
