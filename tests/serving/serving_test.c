/* SPDX-License-Identifier: Apache-2.0
 * What holds for every workload: of random ones, and by hand where a number is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "serving_cases.h"
#include "workloads/serving/metrics.h"

#define CASES 3000

struct run { /* of one engine */
  struct cct_engine *engine;
  int64_t *begin_ns, *end_ns, n;
};

/* Runs it to its end with the times of serving_case_step_ns + extra, and checks what holds in every step. */
static void perform(uint64_t seed, int64_t extra, const struct cct_engine_plan *plan,
                    const struct cct_requests *requests, uint64_t *digest, struct run *run) {
  struct cct_engine_step step;
  int64_t now = 0, capacity = 0, last_at = -1;
  memset(run, 0, sizeof *run);
  assert_int_equal(cct_engine_new(plan, requests, &run->engine), CCT_OK);
  for (;; run->n++) {
    assert_int_equal(cct_engine_next(run->engine, now, &step), CCT_OK);
    if (step.is_over)
      break;
    assert_true(run->n < 1000000); /* nobody starves: every run ends */
    assert_true(step.at > last_at);
    last_at = step.at;
    if (run->n == capacity) {
      capacity = 2 * capacity + 64;
      run->begin_ns = realloc(run->begin_ns, capacity * sizeof *run->begin_ns);
      run->end_ns = realloc(run->end_ns, capacity * sizeof *run->end_ns);
    }
    run->begin_ns[run->n] = step.start_ns > now ? step.start_ns : now;
    for (int64_t i = 0; i < plan->together; i++) {
      const struct cct_batch *batch = &step.batches[i];
      int64_t tokens = 0, emitted = 0;
      assert_in_range(batch->blocks, 0, plan->limits.blocks);
      assert_in_range(batch->tokens, 0, plan->limits.tokens);
      assert_in_range(batch->n, 0, plan->limits.sequences);
      for (int64_t m = 0; m < batch->n; m++) {
        tokens += batch->members[m].given;
        emitted += batch->members[m].emitted;
        assert_int_equal(batch->members[m].request % plan->replicas, plan->first + i);
        *digest = *digest * 1099511628211u + (uint64_t)batch->members[m].request;
        *digest = *digest * 1099511628211u + (uint64_t)batch->members[m].given;
      }
      assert_int_equal(tokens, batch->tokens);
      assert_int_equal(emitted, batch->emitted);
      *digest = *digest * 1099511628211u + (uint64_t)batch->blocks;
    }
    now = run->begin_ns[run->n] + serving_case_step_ns(seed, run->n) + extra;
    run->end_ns[run->n] = now;
  }
}

static void release(struct run *run) {
  cct_engine_free(run->engine);
  free(run->begin_ns);
  free(run->end_ns);
}

/* When the tokens of each step became known. */
static int64_t *known(const struct run *run, int lag) {
  int64_t *ns = malloc((run->n + 1) * sizeof *ns);
  for (int64_t i = 0; i < run->n; i++)
    ns[i] = run->end_ns[i + lag < run->n ? i + lag : i];
  return ns;
}

static int ascending(const void *a, const void *b) {
  int64_t l = *(const int64_t *)a, r = *(const int64_t *)b;
  return (l > r) - (l < r);
}

/* Requests and tokens are conserved, and the time integral of how many
 * requests are there is the sum of how long each is: Little's law with nothing left out. */
static void check_run(const struct cct_engine_plan *plan, const struct cct_requests *requests, const struct run *run) {
  struct cct_history history = cct_engine_history(run->engine);
  struct cct_serve_times times;
  int64_t *ns = known(run, plan->limits.lag), n = 0;
  int64_t *generated = calloc(requests->n, sizeof *generated);
  assert_int_equal(history.steps, run->n);
  for (int64_t i = 0; i < history.n_emissions; i++) {
    assert_true(history.emissions[i].step + plan->limits.lag < run->n); /* all became known */
    generated[history.emissions[i].request] += history.emissions[i].tokens;
  }
  assert_int_equal(cct_serve_times(requests, &history, plan->replicas,
                                   &(struct cct_step_times){run->begin_ns, ns, NULL}, NULL, &times),
                   CCT_OK);
  int64_t *arrivals = malloc(requests->n * sizeof *arrivals), *ends = malloc(requests->n * sizeof *ends);
  int64_t residence = 0, gaps = 0;
  for (int64_t i = 0; i < requests->n; i++) {
    int64_t replica = i % plan->replicas;
    int is_own = replica >= plan->first && replica < plan->first + plan->together;
    assert_int_equal(generated[i], is_own ? requests->items[i].output : 0);
    if (!is_own)
      continue;
    const struct cct_request_times *t = &times.requests[i];
    assert_true(t->arrival_ns >= 0 && t->first_ns > t->arrival_ns && t->last_ns >= t->first_ns);
    arrivals[n] = t->arrival_ns;
    ends[n++] = t->last_ns;
    residence += t->last_ns - t->arrival_ns;
    gaps -= t->last_ns - t->first_ns;
  }
  for (int64_t i = 0; i < times.n_gaps; i++)
    gaps += times.gaps[i].gap_ns * times.gaps[i].n;
  assert_int_equal(gaps, 0); /* the gaps of a request fill the time from its first token to its last */
  qsort(arrivals, n, sizeof *arrivals, ascending);
  qsort(ends, n, sizeof *ends, ascending);
  int64_t present = 0, at = 0, integral = 0;
  for (int64_t a = 0, e = 0; e < n;) {
    int64_t next = a < n && arrivals[a] <= ends[e] ? arrivals[a] : ends[e];
    integral += present * (next - at);
    at = next;
    if (a < n && arrivals[a] <= ends[e]) {
      present++;
      a++;
    } else {
      present--;
      e++;
    }
    assert_true(present >= 0);
  }
  assert_int_equal(present, 0);
  assert_int_equal(integral, residence);
  cct_serve_times_free(&times);
  free(ns);
  free(generated);
  free(arrivals);
  free(ends);
}

static void random_workloads_keep_the_law(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    struct serving_case c;
    struct cct_requests requests;
    serving_case_make(seed, &c);
    assert_int_equal(cct_requests_make(&c.plan, &requests), CCT_OK);
    for (int64_t at = 0; at < c.engine.replicas; at += c.engine.together) {
      struct run run;
      uint64_t digest = 1, slower = 1;
      c.engine.first = at;
      perform(seed, 0, &c.engine, &requests, &digest, &run);
      check_run(&c.engine, &requests, &run);
      release(&run);
      if (requests.arrivals == CCT_ARRIVE_SECONDS)
        continue;
      perform(seed + 1, 12345, &c.engine, &requests, &slower, &run); /* another clock, the same steps */
      release(&run);
      assert_true(digest == slower);
    }
    cct_requests_free(&requests);
  }
}

/* Admission is first come, first served: of two requests of a replica the later one is never scheduled first. And the
 * cache is empty at the end. */
static void first_come_is_first_served(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    struct serving_case c;
    struct cct_requests requests;
    struct cct_scheduler *s;
    struct cct_batch batch;
    int64_t last = -1;
    serving_case_make(seed, &c);
    assert_int_equal(cct_requests_make(&c.plan, &requests), CCT_OK);
    assert_int_equal(cct_scheduler_new(&c.engine.limits, &requests, 0, 1, &s), CCT_OK);
    for (int64_t step = 0; cct_scheduler_ended(s) < requests.n; step++) {
      cct_scheduler_enter(s, 1 + step / 2);
      cct_scheduler_step(s, &batch);
      for (int64_t m = 0; m < batch.n; m++)
        if (batch.members[m].request > last) {
          assert_int_equal(batch.members[m].request, last + 1);
          last++;
        }
    }
    for (int i = 0; i < 2; i++) { /* what ended by drafts may run once more where that is known late */
      cct_scheduler_step(s, &batch);
      assert_true(batch.n == 0 || (!i && c.engine.limits.lag && c.engine.limits.drafts));
      assert_int_equal(batch.emitted, 0);
    }
    cct_scheduler_step(s, &batch);
    assert_int_equal(batch.blocks, 0);
    cct_scheduler_free(s);
    cct_requests_free(&requests);
  }
}

/* By hand, all drafts accepted: 20 tokens, then 1 + 3 a step, and, where they are known late, one step more. */
static void drafts_that_are_known_late(void **state) {
  (void)state;
  static const struct {
    int lag;
    int64_t output, steps, given[4], emitted[4], blocks[4];
  } rows[] = {
      {0, 5, 2, {20, 4}, {1, 4}, {2, 2}},
      {0, 6, 3, {20, 4, 4}, {1, 4, 1}, {2, 2, 2}},
      {1, 5, 3, {20, 4, 4}, {1, 4, 0}, {2, 2, 2}},
      {1, 6, 3, {20, 4, 4}, {1, 4, 1}, {2, 2, 2}}, /* its last token was sure */
      {1, 9, 4, {20, 4, 4, 4}, {1, 4, 4, 0}, {2, 2, 2, 2}},
      {1, 10, 4, {20, 4, 4, 4}, {1, 4, 4, 1}, {2, 2, 2, 2}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_request item = {.input = 20, .output = rows[i].output};
    const struct cct_requests requests = {.arrivals = CCT_ARRIVE_ZERO, .items = &item, .n = 1};
    const struct cct_limits limits = {
        .tokens = 64, .sequences = 4, .blocks = 8, .is_chunked = 1, .lag = rows[i].lag, .drafts = 3, .acceptance = 1};
    struct cct_scheduler *s;
    struct cct_batch batch;
    assert_int_equal(cct_scheduler_new(&limits, &requests, 0, 1, &s), CCT_OK);
    cct_scheduler_enter(s, 1);
    for (int64_t step = 0; step < rows[i].steps; step++) {
      cct_scheduler_step(s, &batch);
      if (batch.tokens != rows[i].given[step] || batch.emitted != rows[i].emitted[step] ||
          batch.blocks != rows[i].blocks[step])
        fail_msg("row %zu, step %lld: %lld tokens, %lld emitted, %lld blocks", i, (long long)step,
                 (long long)batch.tokens, (long long)batch.emitted, (long long)batch.blocks);
    }
    assert_int_equal(cct_scheduler_ended(s), 1);
    cct_scheduler_step(s, &batch);
    assert_int_equal(batch.n, 0);
    cct_scheduler_step(s, &batch);
    assert_int_equal(batch.blocks, 0);
    cct_scheduler_free(s);
  }
}

/* A draft that is not accepted was taken for one: 27 tokens computed, 3 places of the step before, and 4 for this one.
 */
static void places_of_drafts_are_held(void **state) {
  (void)state;
  for (int lag = 0; lag < 2; lag++) {
    struct cct_request item = {.input = 25, .output = 20};
    const struct cct_requests requests = {.arrivals = CCT_ARRIVE_ZERO, .items = &item, .n = 1};
    const struct cct_limits limits = {
        .tokens = 64, .sequences = 4, .blocks = 8, .is_chunked = 1, .lag = lag, .drafts = 3, .acceptance = 0};
    struct cct_scheduler *s;
    struct cct_batch batch;
    assert_int_equal(cct_scheduler_new(&limits, &requests, 0, 1, &s), CCT_OK);
    cct_scheduler_enter(s, 1);
    for (int step = 0; step <= 3; step++)
      cct_scheduler_step(s, &batch);
    assert_int_equal(batch.members[0].computed, 27);
    assert_int_equal(batch.blocks, lag ? 3 : 2);
    cct_scheduler_free(s);
  }
}

static void arrivals_and_lengths_are_as_asked(void **state) {
  (void)state;
  struct cct_requests requests;
  struct cct_request_plan plan = {.arrivals = CCT_ARRIVE_SECONDS,
                                  .n = 40000,
                                  .rate = 50,
                                  .burstiness = 1,
                                  .input = 100,
                                  .output = 10,
                                  .range_ratio = 0.25,
                                  .seed = 3};
  static const double shapes[] = {0.25, 1, 4};
  for (int k = 0; k < 3; k++) {
    double mean = 0, square = 0;
    int64_t low = 1000, high = 0;
    plan.burstiness = shapes[k];
    assert_int_equal(cct_requests_make(&plan, &requests), CCT_OK);
    for (int64_t i = 1; i < plan.n; i++) {
      double gap = (requests.items[i].arrival - requests.items[i - 1].arrival) / 1e9;
      mean += gap / (plan.n - 1);
      square += gap * gap / (plan.n - 1);
      low = requests.items[i].input < low ? requests.items[i].input : low;
      high = requests.items[i].input > high ? requests.items[i].input : high;
      assert_in_range(requests.items[i].output, 7, 13);
    }
    assert_true(fabs(mean * plan.rate - 1) < 0.04);                                   /* 4 standard errors */
    assert_true(fabs((square - mean * mean) / (mean * mean) * shapes[k] - 1) < 0.15); /* variance of a gamma */
    assert_int_equal(low, 75);
    assert_int_equal(high, 125);
    cct_requests_free(&requests);
  }
}

static void write_trace(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  fputs(text, file);
  fclose(file);
}

static void traces_are_read_strictly(void **state) {
  (void)state;
  static const struct {
    const char *ending, *text, *said; /* said NULL: two requests of (1.5 s, 3, 2) and (2 s, 4, 1) */
  } rows[] = {
      {".csv", "arrival,input,output\n1.5,3,2\n2,4,1\n", NULL},
      {".csv", "output, input ,arrival\r\n2,3,1.5\r\n1, 4,2", NULL},
      {".jsonl", "{\"arrival\":1.5,\"input\":3,\"output\":2}\n{\"output\":1,\"arrival\":2,\"input\":4}\n", NULL},
      {".csv",
       "\xef\xbb\xbf"
       "arrival,input,output\n1.5,3,2\n2,4,1\n",
       NULL},
      {".csv", "arrival,input\n1,3\n", ":1: no column 'output'"},
      {".csv", "arrival,input,output,id\n", ":1: column 'id'"},
      {".csv", "arrival,input,output\n1,3\n", ":2: 2 values, and there are 3 columns"},
      {".csv", "arrival,input,output\n1,3,2\n\n2,3,2\n", ":3: 1 values"},
      {".csv", "arrival,input,output\n1,3.5,2\n", ":2: input '3.5': no whole number"},
      {".csv", "arrival,input,output\n1,0,2\n", ":2: input 0, output 2: each is 1"},
      {".csv", "arrival,input,output\nx,1,2\n", ":2: arrival 'x': no number"},
      {".csv", "arrival,input,output\n2,1,2\n1,1,2\n", ":3: arrival 1: before"},
      {".csv", "arrival,input,output\n", "no requests"},
      {".jsonl", "{\"arrival\":1,\"input\":3}\n", ":1: $.output"},
      {".jsonl", "{\"arrival\":1,\"input\":3,\"output\":2,\"x\":1}\n", ":1: $"},
      {".jsonl", "{\"arrival\":1,\"input\":3,\"output\":2}\n[]\n", ":2: $"},
      {".txt", "", "a trace is a .csv or a .jsonl file"},
  };
  cct_log_mute(1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_requests requests;
    char path[64];
    snprintf(path, sizeof path, "/tmp/cctax-serving-%d%s", (int)getpid(), rows[i].ending);
    write_trace(path, rows[i].text);
    enum cct_status status = cct_requests_read(path, CCT_ARRIVE_SECONDS, &requests);
    remove(path);
    assert_int_equal(status, rows[i].said ? CCT_USAGE : CCT_OK);
    if (rows[i].said) {
      if (!strstr(cct_log_last(), rows[i].said))
        fail_msg("'%s' is not in '%s'", rows[i].said, cct_log_last());
      continue;
    }
    assert_int_equal(requests.n, 2);
    assert_int_equal(requests.items[0].arrival, 1500000000);
    assert_int_equal(requests.items[1].input, 4);
    assert_int_equal(requests.items[1].output, 1);
    cct_requests_free(&requests);
  }
  cct_log_mute(0);
}

static void limits_are_read_and_held(void **state) {
  (void)state;
  struct cct_slo slo;
  assert_int_equal(cct_slo_parse("ttft=200ms,tpot=50us,e2e=1.5s", &slo), CCT_OK);
  assert_int_equal(slo.ttft_ns, 200000000);
  assert_int_equal(slo.tpot_ns, 50000);
  assert_int_equal(slo.e2e_ns, 1500000000);
  static const char *const bad[] = {"", "ttft", "ttft=5", "ttft=-5ms", "tpot=1ms,tpot=2ms", "itl=5ms", "ttft=5ms,"};
  cct_log_mute(1);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(cct_slo_parse(bad[i], &slo), CCT_USAGE);
  cct_log_mute(0);
  const struct cct_request request = {0, 8, 5};
  const struct cct_request_times times = {0, 100, 500, -1};
  assert_true(cct_slo_is_kept(&(struct cct_slo){100, 100, 500}, &request, &times));
  assert_false(cct_slo_is_kept(&(struct cct_slo){99, 100, 500}, &request, &times));
  assert_false(cct_slo_is_kept(&(struct cct_slo){100, 99, 500}, &request, &times));
  assert_false(cct_slo_is_kept(&(struct cct_slo){100, 100, 499}, &request, &times));
  assert_true(cct_slo_is_kept(&(struct cct_slo){0}, &request, &times));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_workloads_keep_the_law),     cmocka_unit_test(first_come_is_first_served),
      cmocka_unit_test(drafts_that_are_known_late),        cmocka_unit_test(places_of_drafts_are_held),
      cmocka_unit_test(arrivals_and_lengths_are_as_asked), cmocka_unit_test(traces_are_read_strictly),
      cmocka_unit_test(limits_are_read_and_held),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
