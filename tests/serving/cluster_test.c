/* SPDX-License-Identifier: Apache-2.0
 * Prompts and generation on different replicas: what holds for every workload, of random ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "serving_cases.h"
#include "workloads/serving/metrics.h"

#define CASES   3000
#define ENGINES 6

struct times { /* of one engine's steps */
  int64_t *begin_ns, *end_ns, *moved_ns, n, capacity;
};

struct run {
  struct cluster_case c;
  struct cct_requests requests;
  struct cct_cluster *cluster;
  struct cct_cluster_clock clocks[ENGINES];
  struct times times[ENGINES];
  int n;
  uint64_t digest;
  int64_t preempted, transfers;
};

static void note_times(struct times *t, int64_t begin_ns, const struct cct_cluster_clock *clock) {
  if (t->n == t->capacity) {
    t->capacity = 2 * t->capacity + 64;
    t->begin_ns = realloc(t->begin_ns, t->capacity * sizeof *t->begin_ns);
    t->end_ns = realloc(t->end_ns, t->capacity * sizeof *t->end_ns);
    t->moved_ns = realloc(t->moved_ns, t->capacity * sizeof *t->moved_ns);
  }
  t->begin_ns[t->n] = begin_ns;
  t->end_ns[t->n] = clock->asked_ns;
  t->moved_ns[t->n++] = clock->moved_ns;
}

static void check_step(struct run *run, int e, const struct cct_engine_step *step) {
  const struct cct_limits *limits = &run->c.cluster.limits;
  const struct cct_batch *batch = step->batches;
  int64_t tokens = 0;
  assert_in_range(batch->blocks, 0, limits->blocks);
  assert_in_range(batch->tokens, 0, limits->tokens);
  assert_in_range(batch->n, 0, limits->sequences);
  for (int64_t m = 0; m < batch->n; m++) {
    const struct cct_member *member = &batch->members[m];
    int is_prefill = e < run->c.cluster.prefills;
    int64_t owner = is_prefill ? member->request % run->c.cluster.prefills
                               : run->c.cluster.prefills + member->request % run->c.cluster.decodes;
    assert_int_equal(owner, e);
    assert_false(is_prefill && member->is_decode);
    tokens += member->given;
    run->digest = run->digest * 1099511628211u + (uint64_t)(member->request * 8 + e);
    run->digest = run->digest * 1099511628211u + (uint64_t)member->given;
  }
  assert_int_equal(tokens, batch->tokens);
  run->digest = run->digest * 1099511628211u + (uint64_t)(batch->blocks * 64 + batch->n_moves);
  run->preempted += batch->preempted;
  run->transfers += e < run->c.cluster.prefills ? 0 : batch->n_moves;
}

static void perform(uint64_t seed, uint64_t clock_seed, struct run *run) {
  memset(run, 0, sizeof *run);
  cluster_case_make(seed, &run->c);
  run->n = (int)(run->c.cluster.prefills + run->c.cluster.decodes);
  run->digest = 1;
  assert_int_equal(cct_requests_make(&run->c.plan, &run->requests), CCT_OK);
  assert_int_equal(cct_cluster_new(&run->c.cluster, &run->requests, &run->cluster), CCT_OK);
  for (int64_t turn = 0;; turn++) {
    struct cct_cluster_turn turns[ENGINES];
    assert_int_equal(cct_cluster_next(run->cluster, run->clocks, turns), CCT_OK);
    if (turns[0].is_over)
      break;
    assert_true(turn < 100000);
    for (int e = 0; e < run->n; e++) {
      if (turns[e].is_passed)
        continue;
      const struct cct_engine_step *step = &turns[e].step;
      assert_true(step->start_ns >= run->clocks[e].asked_ns);
      check_step(run, e, step);
      run->clocks[e] = cluster_case_clock(clock_seed, e, run->times[e].n, step, run->clocks[e].moved_ns);
      note_times(&run->times[e], step->start_ns, &run->clocks[e]);
    }
  }
}

static void release(struct run *run) {
  cct_cluster_free(run->cluster);
  cct_requests_free(&run->requests);
  for (int e = 0; e < run->n; e++) {
    free(run->times[e].begin_ns);
    free(run->times[e].end_ns);
    free(run->times[e].moved_ns);
  }
}

/* Tokens are conserved, each on its replica, and no cache is read before it is there, or used before it is here. */
static void check_history(const struct run *run, int e, int64_t *generated) {
  struct cct_history history = cct_engine_history(cct_cluster_at(run->cluster, e));
  int is_prefill = e < run->c.cluster.prefills;
  for (int64_t i = 0; i < history.n_emissions; i++) {
    const struct cct_emission *emission = &history.emissions[i];
    generated[emission->request] += emission->tokens;
    assert_true(emission->step + run->c.cluster.limits.lag < history.steps); /* all became known */
    if (is_prefill)
      assert_int_equal(emission->tokens, 1);
    else
      assert_true(run->times[e].begin_ns[emission->step] >=
                  run->times[e].moved_ns[history.move_steps[emission->request]]);
  }
  for (int64_t i = 0; i < history.n_heard; i++) {
    const struct cct_heard *heard = &history.heard[i];
    int64_t at_ns = run->times[e].begin_ns[heard->step < history.steps ? heard->step : history.steps - 1];
    int64_t request = heard->what.request;
    if (heard->what.kind == CCT_NOTICE_MOVED || heard->step == history.steps)
      continue;
    int other = is_prefill ? (int)(run->c.cluster.prefills + request % run->c.cluster.decodes)
                           : (int)(request % run->c.cluster.prefills);
    struct cct_history far = cct_engine_history(cct_cluster_at(run->cluster, other));
    if (heard->what.kind == CCT_NOTICE_READ)
      assert_true(at_ns >= run->times[other].moved_ns[far.move_steps[request]]);
    else if (heard->what.kind == CCT_NOTICE_READY && run->c.cluster.is_staged)
      assert_true(at_ns >= run->times[other].moved_ns[far.move_steps[request]]);
  }
}

static int ascending(const void *a, const void *b) {
  int64_t l = *(const int64_t *)a, r = *(const int64_t *)b;
  return (l > r) - (l < r);
}

/* Little's law: the time integral of how many requests are there is the sum of how long each is. */
static void check_law_of_little(const struct cct_request_times *all, int64_t n, int64_t most) {
  int64_t *arrivals = malloc(n * sizeof *arrivals), *ends = malloc(n * sizeof *ends), residence = 0;
  for (int64_t i = 0; i < n; i++) {
    assert_true(all[i].arrival_ns >= 0 && all[i].first_ns >= all[i].arrival_ns && all[i].last_ns >= all[i].first_ns);
    arrivals[i] = all[i].arrival_ns;
    ends[i] = all[i].last_ns;
    residence += all[i].last_ns - all[i].arrival_ns;
  }
  qsort(arrivals, n, sizeof *arrivals, ascending);
  qsort(ends, n, sizeof *ends, ascending);
  int64_t present = 0, at = 0, integral = 0;
  for (int64_t a = 0, e = 0; e < n;) { /* of one time, ends come first: they make room */
    int is_arrival = a < n && arrivals[a] < ends[e];
    int64_t next = is_arrival ? arrivals[a] : ends[e];
    integral += present * (next - at);
    at = next;
    present += is_arrival ? 1 : -1;
    a += is_arrival;
    e += !is_arrival;
    assert_true(present <= most);
  }
  assert_int_equal(integral, residence);
  free(arrivals);
  free(ends);
}

static void check_times(const struct run *run) {
  int64_t n = run->requests.n, lag = run->c.cluster.limits.lag;
  struct cct_request_times *all = malloc(n * sizeof *all);
  int64_t *rooms = malloc(n * sizeof *rooms), gaps = 0;
  memset(all, 0xff, n * sizeof *all);
  for (int e = 0; e < run->n; e++) {
    struct cct_history history = cct_engine_history(cct_cluster_at(run->cluster, e));
    const struct times *t = &run->times[e];
    int is_prefill = e < run->c.cluster.prefills;
    int64_t *known = malloc((t->n + 1) * sizeof *known);
    struct cct_serve_times times;
    for (int64_t i = 0; i < t->n; i++)
      known[i] = t->end_ns[i + lag < t->n ? i + lag : i];
    const struct cct_step_times steps = {t->begin_ns, known, t->moved_ns};
    assert_int_equal(cct_serve_times(&run->requests, &history, 1, &steps, is_prefill ? NULL : all, &times), CCT_OK);
    for (int64_t i = 0; i < n; i++) {
      if (is_prefill && i % run->c.cluster.prefills == e)
        rooms[i] = history.room_requests[i];
      if (is_prefill || times.requests[i].first_ns < 0)
        continue;
      assert_true(times.requests[i].moved_ns >= times.requests[i].first_ns);
      gaps -= times.requests[i].last_ns - times.requests[i].first_ns;
    }
    for (int64_t k = 0; k < times.n_gaps; k++)
      gaps += times.gaps[k].gap_ns * times.gaps[k].n;
    cct_serve_join(all, times.requests, n);
    cct_serve_times_free(&times);
    free(known);
  }
  assert_int_equal(gaps, 0);
  if (run->requests.arrivals == CCT_ARRIVE_CLOSED)
    cct_serve_arrive(all, rooms, n);
  check_law_of_little(all, n, run->requests.arrivals == CCT_ARRIVE_CLOSED ? run->requests.concurrency : n);
  free(all);
  free(rooms);
}

static void random_workloads_keep_the_law(void **state) {
  (void)state;
  int64_t preempted = 0, transfers = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    struct run run, slower;
    perform(seed, seed, &run);
    int64_t *generated = calloc(run.requests.n, sizeof *generated);
    for (int e = 0; e < run.n; e++)
      check_history(&run, e, generated);
    for (int64_t i = 0; i < run.requests.n; i++)
      assert_int_equal(generated[i], run.requests.items[i].output);
    check_times(&run);
    preempted += run.preempted;
    transfers += run.transfers;
    if (!cct_cluster_is_clocked(&run.requests)) {
      perform(seed, seed + 12345, &slower); /* other clocks, the same steps */
      assert_true(run.digest == slower.digest);
      release(&slower);
    }
    release(&run);
    free(generated);
  }
  assert_true(preempted > 1000 && transfers > 10000);
}

/* One request through both routes, by hand: a prompt of 20 tokens in steps of 10, two tokens out. */
static void one_request_by_hand(void **state) {
  (void)state;
  for (int is_staged = 0; is_staged < 2; is_staged++) {
    struct cct_request item = {0, 20, 3};
    struct cct_requests requests = {.arrivals = CCT_ARRIVE_SECONDS, .items = &item, .n = 1};
    struct cct_cluster_plan plan = {.limits = {.tokens = 10, .sequences = 4, .blocks = 8, .is_chunked = 1},
                                    .prefills = 1,
                                    .decodes = 1,
                                    .is_staged = is_staged};
    struct cct_cluster_clock clocks[2] = {{0, 0}, {0, 0}};
    struct cct_cluster_turn turns[2];
    struct cct_cluster *cluster;
    /* engine, start, tokens, moves; its next step may be asked for 100 later, its transfers take 1000 */
    const int64_t wanted[][4] = {{0, 0, 10, 0},
                                 {0, 100, 10, 1},
                                 {1, is_staged ? 1100 : 200, 0, 1},
                                 {1, is_staged ? 2100 : 1200, 1, 0},
                                 {1, is_staged ? 2200 : 1300, 1, 0}};
    assert_int_equal(cct_cluster_new(&plan, &requests, &cluster), CCT_OK);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
      int e = (int)wanted[i][0];
      assert_int_equal(cct_cluster_next(cluster, clocks, turns), CCT_OK);
      assert_true(!turns[e].is_over && !turns[e].is_passed && turns[1 - e].is_passed);
      assert_int_equal(turns[e].step.start_ns, wanted[i][1]);
      assert_int_equal(turns[e].step.batches->tokens, wanted[i][2]);
      assert_int_equal(turns[e].step.batches->n_moves, wanted[i][3]);
      clocks[e].asked_ns = turns[e].step.start_ns + 100;
      clocks[e].moved_ns = turns[e].step.start_ns + (wanted[i][3] ? 1000 : 0) > clocks[e].moved_ns
                               ? turns[e].step.start_ns + (wanted[i][3] ? 1000 : 0)
                               : clocks[e].moved_ns;
    }
    assert_int_equal(cct_cluster_next(cluster, clocks, turns), CCT_OK);
    assert_true(turns[0].is_over && turns[1].is_over);
    cct_cluster_free(cluster);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_workloads_keep_the_law),
                                     cmocka_unit_test(one_request_by_hand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
