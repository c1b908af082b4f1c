/* SPDX-License-Identifier: Apache-2.0
 * sim by hand: one small program for each rule of the law, ranks that behave alike, deadlocks by name, noise by
 * counter. The law at large is held against an independent reference in tests/random. */
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/heard.h"
#include "tests/scratch.h"
#include "workloads/backends/sim_opened_test.h"

static enum cct_status step(int n) {
  struct cct_burst burst = {.rank_ns = rank_ns};
  return cct_backend_sim.step(executor, NULL, n, &burst);
}

#define LANES                                                                                                          \
  "\"lanes\":[{\"name\":\"main\",\"kind\":\"stream\"},{\"name\":\"side\",\"kind\":\"stream\"},{\"name\":\"cpu\","      \
  "\"kind\":\"host\"},{\"name\":\"cpu2\",\"kind\":\"host\"}]"
#define PROGRAM(ops) "{\"name\":\"p\"," LANES ",\"slots\":[],\"buffers\":[],\"ops\":[" ops "]}"
#define GROUPS       "\"groups\":[{\"name\":\"a\",\"size\":2,\"stride\":1},{\"name\":\"b\",\"size\":2,\"stride\":1}]"
#define JOB2(a, b)                                                                                                     \
  "{\"schema\":1,\"ranks\":2," GROUPS ",\"roles\":[{\"first\":0,\"count\":1,\"program\":" PROGRAM(                     \
      a) "},{\"first\":1,\"count\":1,\"program\":" PROGRAM(b) "}]}"
#define ALONE(ops)                                                                                                     \
  "{\"schema\":1,\"ranks\":1,\"groups\":[],\"roles\":[{\"first\":0,\"count\":1,\"program\":" PROGRAM(ops) "}]}"
#define LAUNCH(lane, host, more) "{\"op\":\"launch\",\"lane\":" #lane ",\"host\":" #host more "}"
#define BYTES(lane, host, us, more)                                                                                    \
  "{\"op\":\"elementwise\",\"lane\":" #lane ",\"host\":" #host ",\"bytes\":" #us "000" more "}"
#define SYNC(lane, host) "{\"op\":\"sync\",\"lane\":" #lane ",\"host\":" #host "}"

static void assert_span(int rank, int id, int64_t start_us, int64_t end_us) {
  struct cct_span spans[64];
  assert_int_equal(cct_backend_sim.trace(executor, rank, spans), CCT_OK);
  if (spans[id].start_ns != start_us * 1000 || spans[id].end_ns != end_us * 1000)
    fail_msg("rank %d entry %d: %lld to %lld ns, not %lld to %lld us", rank, id, (long long)spans[id].start_ns,
             (long long)spans[id].end_ns, (long long)start_us, (long long)end_us);
}

/* Rules 1 and 2: host lanes submit side by side, a lane runs in order, a wait joins lanes. */
static void test_submissions_lanes_and_waits(void **state) {
  (void)state;
  open_job(ALONE(BYTES(0, 2, 10, "") "," LAUNCH(0, 2, "") "," BYTES(1, 3, 20, "") "," LAUNCH(
      0, 2, ",\"waits\":[2]") "," SYNC(1, 3)));
  assert_int_equal(step(1), CCT_OK);
  assert_span(0, 0, 3, 13);
  assert_span(0, 1, 13, 14);
  assert_span(0, 2, 3, 23);
  assert_span(0, 3, 23, 24);
  assert_span(0, 4, 23, 25);           /* rule 7 */
  assert_int_equal(rank_ns[0], 27000); /* rule 8: the last end on any lane, and a sync */
}

/* A blocking copy holds its host lane; host work and a host delay run there. */
static void test_blocking_copy_and_host_work(void **state) {
  (void)state;
  open_job(
      ALONE("{\"op\":\"copy\",\"lane\":0,\"host\":2,\"direction\":\"h2d\",\"memory\":\"pageable\",\"bytes\":6000},"
            "{\"op\":\"copy\",\"lane\":0,\"host\":2,\"direction\":\"h2d\",\"bytes\":6000},"
            "{\"op\":\"hostwork\",\"host\":2,\"ns\":7000},{\"op\":\"delay\",\"host\":2,\"ns\":5000,\"waits\":[1]}"));
  assert_int_equal(step(1), CCT_OK);
  assert_span(0, 0, 3, 13);
  assert_span(0, 1, 16, 26);
  assert_span(0, 2, 16, 23);
  assert_span(0, 3, 26, 31);
}

/* Rule 3, and rule 8 without a barrier: repetition 2 waits only where it says so. */
static void test_previous_repetition(void **state) {
  (void)state;
  open_job(ALONE(BYTES(0, 2, 10, "") "," LAUNCH(1, 3, ",\"waits\":[\"prev:0\"]") "," SYNC(1, 3)));
  assert_int_equal(step(1), CCT_OK);
  assert_span(0, 1, 3, 4);
  assert_int_equal(step(2), CCT_OK);
  assert_span(0, 0, 13, 23);
  assert_span(0, 1, 13, 14);
}

/* Rule 4: all start at the latest ready time and end together. */
static void test_collectives_meet(void **state) {
  (void)state;
#define REDUCE(lane, group)                                                                                            \
  "{\"op\":\"collective\",\"lane\":" #lane ",\"host\":2,\"kind\":\"all_reduce\",\"group\":" #group                     \
  ",\"bytes\":1000000,\"type\":\"bf16\"}"
  open_job(JOB2(REDUCE(0, 0), BYTES(0, 2, 50, "") "," REDUCE(0, 0)));
  assert_int_equal(step(1), CCT_OK);
  assert_span(0, 0, 53, 59); /* 5 us and 1 MB at 1000 GB/s */
  assert_span(1, 1, 53, 59);
  assert_int_equal(rank_ns[0], 61000);
}

/* Rule 5: messages of a group run side by side from its start, collectives follow each other. */
static void test_groups(void **state) {
  (void)state;
#define GROUP    "{\"op\":\"group\",\"lane\":0,\"host\":2},"
#define END      "{\"op\":\"end\"}"
#define SEND(us) "{\"op\":\"send\",\"lane\":0,\"host\":2,\"group\":0,\"peer_offset\":1,\"bytes\":" #us "000}"
#define RECV(us) "{\"op\":\"recv\",\"lane\":0,\"host\":2,\"group\":0,\"peer_offset\":1,\"bytes\":" #us "000}"
  open_job(JOB2(GROUP SEND(10) "," RECV(30) "," END "," GROUP REDUCE(0, 0) "," REDUCE(0, 0) "," END,
                BYTES(0, 2, 1, "") "," GROUP SEND(30) "," RECV(10) "," END
                                                                   "," GROUP REDUCE(0, 0) "," REDUCE(0, 0) "," END));
  assert_int_equal(step(1), CCT_OK);
  assert_span(0, 1, 6, 22); /* rank 1's group starts at 6; 6 + 10 us */
  assert_span(0, 2, 6, 42);
  assert_span(0, 0, 3, 42);
  assert_span(1, 1, 6, 42);
  assert_span(0, 5, 42, 48);
  assert_span(0, 6, 48, 54);
  assert_span(0, 4, 42, 54);
}

/* Rule 6: one launch by nodes, branches empty at its start, its lane goes on after the last of them, others are
 * untouched. */
static void test_graphs(void **state) {
  (void)state;
  open_job(ALONE(
      BYTES(1, 3, 100, "") ",{\"op\":\"graph\",\"lane\":0,\"host\":2},{\"op\":\"launch\",\"lane\":0},{\"op\":"
                           "\"elementwise\",\"lane\":1,\"bytes\":9000,\"waits\":[2]},{\"op\":\"launch\",\"lane\":0},{"
                           "\"op\":\"delay\","
                           "\"lane\":0,\"ns\":3000}," END "," LAUNCH(0, 2, "") "," LAUNCH(1, 3, "") "," SYNC(1, 3)));
  rows[0].toll_us_graph.value = 4;
  assert_int_equal(step(1), CCT_OK);
  struct cct_span spans[16];
  assert_int_equal(cct_backend_sim.trace(executor, 0, spans), CCT_OK);
  assert_int_equal(spans[1].start_ns, 11500); /* 10 + 3 nodes of 0.5; a delay is none */
  assert_int_equal(spans[2].end_ns, 12500);
  assert_int_equal(spans[3].start_ns, 12500); /* although lane 1 outside is busy until 103 */
  assert_int_equal(spans[3].end_ns, 21500);
  assert_int_equal(spans[5].end_ns, 16500);
  assert_int_equal(spans[1].end_ns, 21500);
  assert_int_equal(spans[7].start_ns, 21500);
  assert_int_equal(spans[8].start_ns, 103000);
  assert_int_equal(spans[6].start_ns, -1); /* an END takes no time of its own */
}

/* Two lanes may meet in different orders on two ranks; where one lane does, nobody can go on. */
static void test_deadlock_is_named(void **state) {
  (void)state;
  open_job(JOB2(REDUCE(0, 0) "," REDUCE(1, 1) "," SYNC(1, 2), REDUCE(1, 1) "," REDUCE(0, 0) "," SYNC(1, 2)));
  assert_int_equal(step(2), CCT_OK);
  teardown(NULL);
  open_job(JOB2(REDUCE(0, 0) "," REDUCE(0, 1), REDUCE(0, 1) "," REDUCE(0, 0)));
  listen();
  enum cct_status status = step(1);
  hear();
  assert_int_equal(status, CCT_USAGE);
  assert_non_null(
      strstr(said, "deadlock in 'p': rank 0 waits in entry 0 (collective ''), rank 1 in entry 0 (collective '')"));
}

static void test_ranks_alike_are_simulated_once(void **state) {
  (void)state;
  static const char ring[] =
      "{\"schema\":1,\"ranks\":4096,\"groups\":[{\"name\":\"a\",\"size\":8,\"stride\":1},{\"name\":\"d\",\"size\":512,"
      "\"stride\":8}],\"roles\":[{\"first\":0,\"count\":4096,\"program\":" PROGRAM(
          GROUP SEND(5) ",{\"op\":\"recv\",\"lane\":0,\"host\":2,\"group\":0,\"peer_offset\":-1,\"bytes\":5000}," END
                        "," REDUCE(0, 1)) "}]}";
  open_job(ring);
  assert_int_equal(step(3), CCT_OK);
  assert_int_equal(cct_sim_classes(executor), 1);
  teardown(NULL);
  static const char halves[] =
      "{\"schema\":1,\"ranks\":4096,\"groups\":[{\"name\":\"a\",\"size\":8,\"stride\":1}],\"roles\":[{\"first\":0,"
      "\"count\":2048,"
      "\"program\":" PROGRAM(REDUCE(0, 0)) "},{\"first\":2048,\"count\":2048,\"program\":" PROGRAM(
          BYTES(0, 2, 9, "") "," REDUCE(0, 0)) "}]}";
  open_job(halves);
  assert_int_equal(step(1), CCT_OK);
  assert_int_equal(cct_sim_classes(executor), 2);
  assert_int_equal(rank_ns[2047] + 9000, rank_ns[2048]);
}

static void test_noise_is_drawn_by_counter(void **state) {
  (void)state;
  char path[] = "/tmp/cctax_noise_XXXXXX";
  write_temporary(path, "# ratios\n0.9\n1\n1.25\n");
  int64_t first[64], again[64];
  int seen[3] = {0};
  for (int round = 0; round < 2; round++) {
    assert_int_equal(open_noisy_job(ALONE(LAUNCH(0, 2, "")), path, 7), CCT_OK);
    for (int i = 0; i < 64; i++) {
      assert_int_equal(step(1), CCT_OK);
      (round ? again : first)[i] = rank_ns[0];
      seen[0] += rank_ns[0] == 5400; /* 6 us times each ratio */
      seen[1] += rank_ns[0] == 6000;
      seen[2] += rank_ns[0] == 7500;
    }
    teardown(NULL);
  }
  assert_memory_equal(first, again, sizeof first);
  assert_int_equal(seen[0] + seen[1] + seen[2], 128);
  assert_true(seen[0] > 10 && seen[1] > 10 && seen[2] > 10);
  assert_int_equal(open_noisy_job(ALONE(LAUNCH(0, 2, "")), path, 8), CCT_OK);
  for (int i = 0; i < 64; i++) {
    assert_int_equal(step(1), CCT_OK);
    again[i] = rank_ns[0];
  }
  assert_memory_not_equal(first, again, sizeof first);
  unlink(path);
}

static void test_bad_noise_is_refused(void **state) {
  (void)state;
  char path[] = "/tmp/cctax_noise_XXXXXX";
  write_temporary(path, "1\n-1\n");
  assert_int_equal(open_noisy_job(ALONE(LAUNCH(0, 2, "")), path, 7), CCT_USAGE);
  unlink(path);
}

int main(void) {
#define CASE(test) cmocka_unit_test_teardown(test, teardown)
  const struct CMUnitTest tests[] = {
      CASE(test_submissions_lanes_and_waits),
      CASE(test_blocking_copy_and_host_work),
      CASE(test_previous_repetition),
      CASE(test_collectives_meet),
      CASE(test_groups),
      CASE(test_graphs),
      CASE(test_deadlock_is_named),
      CASE(test_ranks_alike_are_simulated_once),
      CASE(test_noise_is_drawn_by_counter),
      CASE(test_bad_noise_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
