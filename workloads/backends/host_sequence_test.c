/* SPDX-License-Identifier: Apache-2.0
 * Sequences on the host backend: who waits for what is left out, lanes that lag, memory that grows, ranks that agree in
 * next() while exchanges are under way, and what ends one early. The order at large: tests/conformance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "fakes/world_threads.h"
#include "json/json.h"
#include "workloads/backends/host.h"
#include "workloads/backends/measure.h"

#define LANES                                                                                                          \
  "\"lanes\":[{\"name\":\"main\",\"kind\":\"stream\"},{\"name\":\"side\",\"kind\":\"stream\"},{\"name\":\"cpu\","      \
  "\"kind\":\"host\"},{\"name\":\"worker\",\"kind\":\"host\"}]"
#define PROGRAM(ops)                                                                                                   \
  "{\"name\":\"p\"," LANES                                                                                             \
  ",\"slots\":[{\"name\":\"form\",\"value\":1},{\"name\":\"kv\",\"value\":1}],\"buffers\":[],\"ops\":[" ops "]}"
#define ROLE(first, count, ops) "{\"first\":" first ",\"count\":" count ",\"program\":" PROGRAM(ops) "}"
#define JOB(ranks, roles)                                                                                              \
  "{\"schema\":1,\"ranks\":" ranks ",\"groups\":[{\"name\":\"all\",\"size\":" ranks                                    \
  ",\"stride\":1}],\"roles\":[" roles "]}"
#define ON          "\"lane\":0,\"host\":2"
#define CASE(value) "{\"op\":\"case\",\"slot\":0,\"value\":" value "}"
#define END         "{\"op\":\"end\"}"
#define DELAY(ns)   "{\"op\":\"delay\"," ON ",\"ns\":" ns "}"
#define REDUCE(bytes)                                                                                                  \
  "{\"op\":\"collective\"," ON ",\"kind\":\"all_reduce\",\"group\":0,\"bytes\":" bytes ",\"type\":\"bf16\"}"
#define SYNC "{\"op\":\"sync\"," ON "}"

enum {
  most = CCT_SEQUENCE_DEPTH + 4
};

struct play {
  const char *job;
  int steps, allowed, fails_at, agrees;
  int64_t form[most], kv[most], not_before_ns[most];
  /* of one process, as it went */
  struct sitting {
    const struct cct_world *world;
    const struct play *play;
    struct cct_executor *executor;
    struct cct_sequence sequence;
    int64_t slots[CCT_SEQUENCE_DEPTH][2], asked_ns[most + 1], ends[most * 2], rank_ns;
    struct cct_span spans[16];
    enum cct_status status;
  } sittings[2];
};

/* Both processes tell each other the step, while exchanges of lanes go on. */
static enum cct_status agree(struct sitting *s, int64_t index) {
  const struct cct_world *w = s->world;
  int64_t all[2];
  struct cct_request *request;
  int is_done = 0;
  enum cct_status status = w->ops->iallgather(w, &index, sizeof index, all, &request);
  while (!status && !is_done) {
    status = w->ops->test(w, request, &is_done);
    if (!status && !is_done)
      status = s->sequence.progress(s->executor);
  }
  return status ? status : all[0] == all[1] ? CCT_OK : CCT_USAGE;
}

static enum cct_status next(void *context, int64_t index, const int64_t *now_ns, struct cct_binding *bindings,
                            int64_t *not_before_ns, int *is_over) {
  struct sitting *s = context;
  const struct play *p = s->play;
  s->asked_ns[index] = *now_ns;
  if (p->fails_at && index == p->fails_at)
    return CCT_STOPPED;
  *is_over = index == p->steps;
  int64_t *slots = s->slots[index % CCT_SEQUENCE_DEPTH];
  slots[0] = p->form[index % most];
  slots[1] = p->kv[index % most];
  *not_before_ns = p->not_before_ns[index % most] ? *now_ns + p->not_before_ns[index % most] : 0;
  bindings->slots = slots;
  return p->agrees ? agree(s, index) : CCT_OK;
}

static void sit(const struct cct_world *world, void *argument) {
  struct play *play = argument;
  struct sitting *s = &play->sittings[world->rank];
  const struct cct_backend_options options = {.has_multicast = 1, .scale = 1, .deadline_ns = 10000000000};
  const struct cct_measure_options measure = {.patience_ns = 1000000000};
  struct cct_burst burst = {.rank_ns = &s->rank_ns};
  struct cct_backend *backend = NULL;
  struct cct_json *document = NULL;
  struct cct_job *job = NULL;
  struct cct_world *apart = NULL; /* next() and lanes of one thread, but no message of one for the other */
  *s = (struct sitting){.world = world, .play = play, .status = CCT_USAGE};
  s->sequence = (struct cct_sequence){.context = s, .next = next, .most_steps = play->allowed, .lane_end_ns = s->ends};
  if (cct_json_parse(play->job, strlen(play->job), "test", &document))
    return;
  struct cct_json_at at = cct_json_root(document, "test");
  s->status = cct_job_from_json(&at, &job);
  if (!s->status)
    s->status = world->ops->split(world, 0, world->rank, &apart);
  if (!s->status)
    s->status = cct_backend_host.open(apart, &options, &backend);
  if (!s->status)
    s->status = cct_backend_host.load(backend, job, &s->executor);
  if (!s->status)
    s->status = cct_measure_sequence(world, &cct_backend_host, s->executor, &s->sequence, &measure, &burst);
  if (!s->status)
    s->status = cct_backend_host.trace(s->executor, 0, s->spans);
  cct_backend_host.unload(s->executor);
  cct_backend_host.close(backend);
  world->ops->release(apart);
  cct_job_free(job);
  cct_json_free(document);
}

static const struct sitting *perform(struct play *play, int ranks) {
  play->allowed = play->allowed ? play->allowed : play->steps;
  cct_world_threads(ranks, sit, play);
  return play->sittings;
}

/* A step that leaves out entry 2 lets entry 4 go, although the lane of entry 2 is held for long. */
static void nobody_waits_for_what_is_left_out(void **state) {
  (void)state;
  struct play play = {
      .job = JOB("1", ROLE("0", "1",
                           DELAY("60000000") "," CASE("1") ",{\"op\":\"launch\"," ON "}," END
                                                           ",{\"op\":\"launch\",\"lane\":1,\"host\":2,\"waits\":[2]},"
                                                           "{\"op\":\"sync\",\"lane\":1,\"host\":2}," SYNC)),
      .steps = 2,
      .form = {1, 0}};
  const struct sitting *s = perform(&play, 1);
  assert_int_equal(s->status, CCT_OK);
  assert_int_equal(s->sequence.steps, 2);
  assert_int_equal(s->sequence.n_host_lanes, 2);
  assert_int_equal(s->spans[2].end_ns, -1);
  assert_true(s->spans[4].end_ns >= s->asked_ns[1]);
  assert_true(s->spans[4].end_ns < s->spans[0].end_ns);
  assert_true(s->asked_ns[1] >= 60000000); /* the first step synchronised with the lane */
  assert_true(s->rank_ns >= 120000000);
  assert_true(s->sequence.binding_us > 0);
}

/* The worker lane is held for 10 ms in every third step, the first lane never: it is asked on as far as bindings are
 * kept, and the worker has those of its own steps still. */
static void a_worker_lane_lags_as_far_as_bindings_are_kept(void **state) {
  (void)state;
  struct play play = {.job = JOB("1", ROLE("0", "1",
                                           CASE("1") ",{\"op\":\"delay\",\"host\":3,\"ns\":10000000}," END
                                                     ",{\"op\":\"launch\"," ON "}")),
                      .steps = most};
  for (int step = 0; step < most; step += 3)
    play.form[step] = 1;
  const struct sitting *s = perform(&play, 1);
  assert_int_equal(s->status, CCT_OK);
  for (int step = CCT_SEQUENCE_DEPTH; step < most; step++)
    assert_true(s->asked_ns[step] >= s->ends[(step - CCT_SEQUENCE_DEPTH) * 2 + 1]);
  assert_true(s->asked_ns[CCT_SEQUENCE_DEPTH - 1] < s->ends[(CCT_SEQUENCE_DEPTH - 1) * 2 + 1]);
  for (int step = 3; step < most; step += 3)
    assert_true(s->ends[step * 2 + 1] - s->ends[step * 2 - 1] >= 10000000);
}

/* The worker lane is held for 200 ms in the third step; the first lane has all its steps meanwhile, of which each also
 * waits for its stream. */
static void a_lane_held_for_ten_steps_holds_no_other(void **state) {
  (void)state;
  struct play play = {
      .job =
          JOB("1", ROLE("0", "1",
                        DELAY("100000") "," SYNC "," CASE("1") ",{\"op\":\"delay\",\"host\":3,\"ns\":200000000}," END)),
      .steps = 14,
      .form = {0, 0, 1}};
  const struct sitting *s = perform(&play, 1);
  assert_int_equal(s->status, CCT_OK);
  assert_int_equal(s->sequence.steps, 14);
  assert_true(s->ends[2 * 2 + 1] >= 200000000);
  assert_true(s->ends[13 * 2] < s->ends[2 * 2 + 1]);
  assert_true(s->rank_ns >= 200000000);
}

/* Lanes are through when their entries are, not when their threads come to say so: who waited for one is so no earlier.
 */
static void who_waits_for_a_lane_is_through_no_earlier(void **state) {
  (void)state;
  struct play play = {.job = JOB("1", ROLE("0", "1",
                                           "{\"op\":\"delay\",\"host\":3,\"ns\":1000},"
                                           "{\"op\":\"delay\",\"host\":2,\"ns\":0,\"waits\":[0]}")),
                      .steps = most};
  for (int n = 0; n < 40; n++) {
    const struct sitting *s = perform(&play, 1);
    assert_int_equal(s->status, CCT_OK);
    for (int step = 0; step < most; step++)
      assert_true(s->ends[step * 2 + 1] <= s->ends[step * 2]);
  }
}

static void the_first_lane_idles_and_memory_grows(void **state) {
  (void)state;
  struct play play = {
      .job = JOB("2", ROLE("0", "2",
                           "{\"op\":\"attention\"," ON ",\"flops\":0,\"kv_bytes\":{\"base\":0,\"per\":1024,\"slot\":1},"
                           "\"type\":\"bf16\"}," CASE("1") "," REDUCE("{\"base\":0,\"per\":64,\"slot\":1}") "," END
                                                                                                            "," SYNC)),
      .steps = most,
      .agrees = 1};
  play.not_before_ns[5] = 20000000;
  for (int i = 0; i < most; i++) {
    play.form[i] = i % 3 != 0;
    play.kv[i] = 1 + (int64_t)i * i;
  }
  const struct sitting *s = perform(&play, 2);
  for (int rank = 0; rank < 2; rank++) {
    assert_int_equal(s[rank].status, CCT_OK);
    assert_int_equal(s[rank].sequence.steps, most);
    assert_true(s[rank].ends[5 * 2] >= s[rank].asked_ns[5] + 20000000);
    for (int step = 1; step < most; step++)
      assert_true(s[rank].ends[step * 2] >= s[rank].ends[(step - 1) * 2]);
  }
}

/* Rank 0 has sent and agrees on the next step already; rank 1 comes to that only when the message has come. */
static void exchanges_go_on_in_next(void **state) {
  (void)state;
#define GROUP "{\"op\":\"group\"," ON "}"
  struct play play = {
      .job = JOB("2",
                 ROLE("0", "1",
                      DELAY("3000000") "," GROUP ",{\"op\":\"send\"," ON ",\"group\":0,\"peer_offset\":1,\"bytes\":64}"
                                       "," END) "," ROLE("1", "1",
                                                         GROUP ",{\"op\":\"recv\"," ON ",\"group\":0,\"peer_offset\":"
                                                               "1,\"bytes\":64}," END "," SYNC)),
      .steps = 6,
      .agrees = 1};
  const struct sitting *s = perform(&play, 2);
  assert_int_equal(s[0].status, CCT_OK);
  assert_int_equal(s[1].status, CCT_OK);
  assert_true(s[1].ends[5 * 2] >= 18000000);
}

static void what_ends_a_sequence_early(void **state) {
  (void)state;
  struct play failing = {.job = JOB("1", ROLE("0", "1", DELAY("100000") "," SYNC)), .steps = 6, .fails_at = 3};
  assert_int_equal(perform(&failing, 1)->status, CCT_STOPPED);
  struct play longer = {.job = failing.job, .steps = 6, .allowed = 4};
  assert_int_equal(perform(&longer, 1)->status, CCT_USAGE);
  struct play none = {.job = failing.job, .steps = 0};
  assert_int_equal(perform(&none, 1)->status, CCT_OK);
  assert_int_equal(none.sittings[0].sequence.steps, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nobody_waits_for_what_is_left_out),
      cmocka_unit_test(a_worker_lane_lags_as_far_as_bindings_are_kept),
      cmocka_unit_test(a_lane_held_for_ten_steps_holds_no_other),
      cmocka_unit_test(who_waits_for_a_lane_is_through_no_earlier),
      cmocka_unit_test(the_first_lane_idles_and_memory_grows),
      cmocka_unit_test(exchanges_go_on_in_next),
      cmocka_unit_test(what_ends_a_sequence_early),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
