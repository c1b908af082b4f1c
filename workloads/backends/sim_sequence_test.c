/* SPDX-License-Identifier: Apache-2.0
 * Sequences on sim by hand: who meets whom in a case, idling, ranks that are over before others, classes that split as
 * bindings differ, and what ends a sequence early. Times at large are held against a reference in tests/random. */
#include "workloads/backends/measure.h"
#include "workloads/backends/sim_opened_test.h"

enum {
  n_most = CCT_SEQUENCE_DEPTH + 8
};
static int64_t ends[n_most * 64];

/* Pairs meet, at 1 GB/s. */
static int setup(void **state) {
  (void)state;
  rows[0].ranks = 2;
  rows[0].busbw_gb_s.value = 1;
  return 0;
}

#define LANES                                                                                                          \
  "\"lanes\":[{\"name\":\"main\",\"kind\":\"stream\"},{\"name\":\"cpu\",\"kind\":\"host\"},{\"name\":\"worker\","      \
  "\"kind\":\"host\"}]"
#define PROGRAM(ops)                                                                                                   \
  "{\"name\":\"p\"," LANES                                                                                             \
  ",\"slots\":[{\"name\":\"form\",\"value\":1},{\"name\":\"us\",\"value\":10}],\"buffers\":[],\"ops\":[" ops "]}"
#define PAIRS(ranks, roles)                                                                                            \
  "{\"schema\":1,\"ranks\":" ranks ",\"groups\":[{\"name\":\"a\",\"size\":2,\"stride\":1}],\"roles\":[" roles "]}"
#define ROLE(first, count, ops) "{\"first\":" first ",\"count\":" count ",\"program\":" PROGRAM(ops) "}"
#define IN_CASE(value, ops)     "{\"op\":\"case\",\"slot\":0,\"value\":" value "}," ops ",{\"op\":\"end\"}"
#define REDUCE(us)                                                                                                     \
  "{\"op\":\"collective\",\"lane\":0,\"host\":1,\"kind\":\"all_reduce\",\"group\":0,\"bytes\":" us                     \
  "000,\"type\":\"bf16\"}"
#define WORK                                                                                                           \
  "{\"op\":\"elementwise\",\"lane\":0,\"host\":1,\"bytes\":{\"base\":0,\"per\":1000,\"slot\":1}},"                     \
  "{\"op\":\"sync\",\"lane\":0,\"host\":1}"
#define ON_WORKER ",{\"op\":\"hostwork\",\"host\":2,\"ns\":1000,\"waits\":[0]}"

/* A script: what each owned rank gets in each step. */
struct script {
  int ranks, calls, over_at[64], fails_at;
  int64_t form[n_most + 1], not_before_us[n_most + 1]; /* by step */
  int64_t us_of_odd_from, us_of_odd;                   /* from this step on ranks 2, 3 have other work */
  int64_t slots[CCT_SEQUENCE_DEPTH][64][2], now_ns[n_most + 1];
};

static enum cct_status next(void *context, int64_t index, const int64_t *now_ns, struct cct_binding *bindings,
                            int64_t *not_before_ns, int *is_over) {
  struct script *s = context;
  s->calls++;
  if (s->fails_at && index == s->fails_at)
    return CCT_STOPPED;
  s->now_ns[index] = now_ns[0];
  for (int i = 0; i < s->ranks; i++) {
    int64_t *slots = s->slots[index % CCT_SEQUENCE_DEPTH][i];
    is_over[i] = index >= s->over_at[i];
    not_before_ns[i] = s->not_before_us[index] * 1000;
    slots[0] = s->form[index];
    slots[1] = s->us_of_odd_from && index >= s->us_of_odd_from && i / 2 == 1 ? s->us_of_odd : 10;
    bindings[i].slots = slots;
  }
  return CCT_OK;
}

static enum cct_status perform(struct script *s, int64_t most, int64_t *steps_out) {
  const struct cct_measure_options options = {0};
  struct cct_sequence sequence = {.context = s, .next = next, .most_steps = most, .lane_end_ns = ends};
  struct cct_burst burst = {.rank_ns = rank_ns};
  s->ranks = job->ranks;
  enum cct_status status =
      cct_measure_sequence(cct_world_self(), &cct_backend_sim, executor, &sequence, &options, &burst);
  *steps_out = sequence.steps;
  return status;
}

static void assert_span(int rank, int id, int64_t start_us, int64_t end_us) {
  struct cct_span spans[16];
  assert_int_equal(cct_backend_sim.trace(executor, rank, spans), CCT_OK);
  assert_int_equal(spans[id].start_ns, start_us < 0 ? -1 : start_us * 1000);
  assert_int_equal(spans[id].end_ns, end_us < 0 ? -1 : end_us * 1000);
}

/* Two roles state their cases in opposite orders: the n-th of a case still meets the n-th of that case. */
static void test_cases_meet_by_value(void **state) {
  (void)state;
  struct script s = {.form = {1, 2, 0}, .over_at = {3, 3}};
  int64_t steps;
  open_job(PAIRS("2", ROLE("0", "1", IN_CASE("1", REDUCE("10")) "," IN_CASE("2", REDUCE("20"))) "," ROLE(
                          "1", "1", IN_CASE("2", REDUCE("20")) "," IN_CASE("1", REDUCE("10")))));
  assert_int_equal(perform(&s, 3, &steps), CCT_OK);
  assert_int_equal(steps, 3);
  assert_int_equal(s.calls, 4);
  assert_span(0, 1, -1, -1); /* the third step performs nothing */
  /* 3 + 5 + 10 us; the second is submitted by 6, and lasts 5 + 20 behind it; nothing; a sync */
  assert_int_equal(rank_ns[0], 18000 + 25000 + 2000);
  assert_int_equal(rank_ns[1], rank_ns[0]);
  assert_int_equal(s.now_ns[1], 3000);
  assert_int_equal(s.now_ns[2], 6000);
  assert_int_equal(s.now_ns[3], 6000);
}

/* The first host lane idles until it has something to serve; the worker lane waits for what it reads alone. */
static void test_idling_and_a_worker_lane(void **state) {
  (void)state;
  struct script s = {.form = {1, 1}, .over_at = {2, 2}, .not_before_us = {0, 100}};
  int64_t steps;
  open_job(PAIRS("2", ROLE("0", "2", WORK ON_WORKER)));
  assert_int_equal(perform(&s, 2, &steps), CCT_OK);
  assert_int_equal(s.now_ns[1], 15000); /* 3 + 10 + 2 */
  assert_int_equal(ends[0], 15000);     /* step 0, rank 0, the first lane */
  assert_int_equal(ends[1], 14000);     /* its worker: 13 + 1 */
  assert_int_equal(ends[4], 115000);
  assert_int_equal(ends[5], 114000);
  assert_span(0, 0, 103, 113);
  assert_int_equal(rank_ns[0], 117000);
}

/* The worker is held for 200 us in the third step; the first lane takes 15 us a step, and goes on. */
static void test_a_lane_held_for_ten_steps_holds_no_other(void **state) {
  (void)state;
  struct script s = {.form = {0, 0, 1}, .over_at = {14, 14}};
  int64_t steps;
  open_job(PAIRS("2", ROLE("0", "2", WORK "," IN_CASE("1", "{\"op\":\"delay\",\"host\":2,\"ns\":200000}"))));
  assert_int_equal(perform(&s, 14, &steps), CCT_OK);
  assert_int_equal(ends[2 * 4 + 1], 230000); /* 2 x 15 + 200 */
  for (int step = 0; step < 14; step++)
    assert_int_equal(s.now_ns[step], step * 15000); /* 3 + 10 + 2 each */
  assert_int_equal(ends[13 * 4 + 1], 230000);
  assert_int_equal(rank_ns[0], 232000);
}

/* A worker that takes 2 ms a step falls behind as far as it may, and holds no other lane: that is of clocks alone. */
static void test_no_lane_is_held_by_the_room_for_bindings(void **state) {
  (void)state;
  struct script s = {.over_at = {n_most, n_most}};
  int64_t steps;
  open_job(PAIRS("2", ROLE("0", "2", WORK ",{\"op\":\"delay\",\"host\":2,\"ns\":2000000}")));
  assert_int_equal(perform(&s, n_most, &steps), CCT_OK);
  for (int step = 0; step < n_most; step++)
    assert_int_equal(s.now_ns[step], step * 15000);
}

static void test_a_rank_may_be_over_before_others(void **state) {
  (void)state;
  struct script s = {.form = {1, 1, 1}, .over_at = {1, 3, 3, 3}};
  int64_t steps;
  open_job(PAIRS("4", ROLE("0", "4", WORK)));
  assert_int_equal(perform(&s, 3, &steps), CCT_OK);
  assert_int_equal(steps, 3);
  assert_int_equal(ends[8 + 0], -1);
  assert_int_equal(ends[8 + 2], 30000);
  assert_int_equal(rank_ns[0], 17000);
  assert_int_equal(rank_ns[1], 47000);
}

/* What had the same turns is simulated once; from where they differ it goes on apart, its clocks where they were. */
static void test_classes_split_with_their_bindings(void **state) {
  (void)state;
  struct script s = {.us_of_odd_from = 2, .us_of_odd = 30};
  int64_t steps;
  for (int i = 0; i < 64; i++)
    s.over_at[i] = 2;
  open_job(PAIRS("64", ROLE("0", "64", WORK "," REDUCE("10"))));
  assert_int_equal(perform(&s, 2, &steps), CCT_OK);
  assert_int_equal(cct_sim_classes(executor), 1);
  int64_t two_ns = rank_ns[0];
  for (int i = 0; i < 64; i++)
    s.over_at[i] = 3;
  memset(ends, 0, sizeof ends);
  static int64_t more[3 * 64 * 2];
  const struct cct_measure_options options = {0};
  struct cct_sequence sequence = {.context = &s, .next = next, .most_steps = 3, .lane_end_ns = more};
  struct cct_burst burst = {.rank_ns = rank_ns};
  assert_int_equal(cct_measure_sequence(cct_world_self(), &cct_backend_sim, executor, &sequence, &options, &burst),
                   CCT_OK);
  assert_int_equal(cct_sim_classes(executor), 2);
  assert_int_equal(rank_ns[2], rank_ns[3]);
  assert_int_equal(rank_ns[2], rank_ns[0] + 20000); /* its last step's work lasts 30 us instead of 10 */
  assert_int_equal(rank_ns[63], rank_ns[0]);
  assert_true(rank_ns[0] > two_ns);
}

static void test_what_ends_a_sequence_early(void **state) {
  (void)state;
  struct script s = {.form = {1, 1, 1, 1}, .over_at = {4, 4}};
  int64_t steps;
  open_job(PAIRS("2", ROLE("0", "2", WORK)));
  assert_int_equal(perform(&s, 3, &steps), CCT_USAGE);
  s.fails_at = 2;
  assert_int_equal(perform(&s, 4, &steps), CCT_STOPPED);
  struct cct_burst burst = {.rank_ns = rank_ns};
  assert_int_equal(cct_backend_sim.step(executor, NULL, 1, &burst), CCT_OK); /* as if there had been none */
  assert_int_equal(rank_ns[0], 17000);
  assert_int_equal(cct_sim_classes(executor), 1);
}

int main(void) {
#define CASE(test) cmocka_unit_test_teardown(test, teardown)
  const struct CMUnitTest tests[] = {
      CASE(test_cases_meet_by_value),
      CASE(test_idling_and_a_worker_lane),
      CASE(test_a_lane_held_for_ten_steps_holds_no_other),
      CASE(test_no_lane_is_held_by_the_room_for_bindings),
      CASE(test_a_rank_may_be_over_before_others),
      CASE(test_classes_split_with_their_bindings),
      CASE(test_what_ends_a_sequence_early),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
