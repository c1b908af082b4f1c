/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakes/world_threads.h"
#include "workloads/backends/measure.h"

/* A backend of two ranks whose step lasts a known time, and which counts what it is asked for. */
static struct {
  int64_t step_ns;
  int calls, repetitions, fails_at, told;
} fake;

static void fake_owned(const struct cct_executor *executor, int *first_out, int *count_out) {
  (void)executor;
  *first_out = 4;
  *count_out = 2;
}

static enum cct_status fake_step(struct cct_executor *executor, const struct cct_binding *bindings, int n,
                                 struct cct_burst *burst) {
  (void)executor;
  (void)bindings;
  if (++fake.calls == fake.fails_at)
    return CCT_STOPPED;
  fake.repetitions += n;
  burst->start_ns = fake.calls;
  burst->rank_ns[0] = fake.step_ns * n;
  burst->rank_ns[1] = fake.step_ns * n + 1;
  return CCT_OK;
}

static enum cct_status fake_sequence(struct cct_executor *executor, struct cct_sequence *sequence,
                                     struct cct_burst *burst) {
  (void)executor;
  fake.calls++;
  sequence->steps = sequence->most_steps;
  burst->rank_ns[0] = burst->rank_ns[1] = fake.step_ns;
  return CCT_OK;
}

static void told(void *context, const char *phase, int64_t index) {
  (void)context;
  (void)phase;
  (void)index;
  fake.told++;
}

static const struct cct_backend_ops ops = {.owned = fake_owned, .step = fake_step};

static enum cct_status measure(int64_t step_ns, int64_t burst_ns, struct cct_measured *measured) {
  const struct cct_measure_options options = {.warmup = 5, .samples = 7, .burst_ns = burst_ns, .progress = told};
  fake.step_ns = step_ns;
  fake.calls = fake.repetitions = fake.told = 0;
  return cct_measure(cct_world_self(), &ops, NULL, NULL, &options, measured);
}

static void a_sequence_is_timed_once_where_the_backend_has_it(void **state) {
  (void)state;
  const struct cct_backend_ops with = {.name = "fake", .owned = fake_owned, .sequence = fake_sequence};
  const struct cct_measure_options options = {.progress = told};
  int64_t rank_ns[2] = {0, 0};
  struct cct_sequence sequence = {.most_steps = 9};
  struct cct_burst burst = {.rank_ns = rank_ns};
  fake.calls = fake.told = 0;
  fake.step_ns = 70;
  assert_int_equal(cct_measure_sequence(cct_world_self(), &with, NULL, &sequence, &options, &burst), CCT_OK);
  assert_int_equal(fake.calls, 1);
  assert_int_equal(fake.told, 1);
  assert_int_equal(sequence.steps, 9);
  assert_int_equal(rank_ns[1], 70);
  const struct cct_backend_ops without = {.name = "fake", .owned = fake_owned};
  assert_int_equal(cct_measure_sequence(cct_world_self(), &without, NULL, &sequence, &options, &burst),
                   CCT_UNSUPPORTED);
}

static void a_step_is_timed_one_by_one(void **state) {
  (void)state;
  struct cct_measured measured;
  assert_int_equal(measure(1000, 0, &measured), CCT_OK);
  assert_int_equal(fake.calls, 5 + 7);
  assert_int_equal(fake.repetitions, 12);
  assert_int_equal(fake.told, 12);
  assert_true(measured.first == 4 && measured.count == 2 && measured.n == 1 && measured.samples == 7);
  for (int s = 0; s < 7; s++) {
    assert_int_equal(measured.start_ns[s], 6 + s); /* the warm-ups are not among them */
    assert_int_equal(measured.burst_ns[2 * s], 1000);
    assert_int_equal(measured.burst_ns[2 * s + 1], 1001);
  }
  cct_measured_free(&measured);
}

static void short_steps_are_repeated_until_a_burst_is_long(void **state) {
  (void)state;
  struct cct_measured measured;
  assert_int_equal(measure(999, 200000, &measured), CCT_OK); /* the slower rank takes 1000 */
  assert_int_equal(measured.n, 200);
  assert_int_equal(measured.burst_ns[0], 999 * 200);
  assert_int_equal(fake.repetitions, 5 + 3 + (1 + 7) * 200); /* one burst more, untimed */
  cct_measured_free(&measured);
  assert_int_equal(measure(3, 200000, &measured), CCT_OK);
  assert_int_equal(measured.n, CCT_MOST_REPETITIONS);
  cct_measured_free(&measured);
  assert_int_equal(measure(1000000, 200000, &measured), CCT_OK);
  assert_int_equal(measured.n, 1);
  cct_measured_free(&measured);
}

static void a_failure_is_passed_on(void **state) {
  (void)state;
  struct cct_measured measured;
  fake.fails_at = 9;
  assert_int_equal(measure(1000, 0, &measured), CCT_STOPPED);
  assert_int_equal(fake.calls, 9);
  fake.fails_at = 0;
}

/* ---- one rank of three fails alone ---- */

static struct { _Atomic int calls, n_told[2], waits; } alone;

static enum cct_status lonely_step(struct cct_executor *executor, const struct cct_binding *bindings, int n,
                                   struct cct_burst *burst) {
  const struct cct_world *world = (const struct cct_world *)executor;
  (void)bindings;
  (void)n;
  burst->rank_ns[0] = burst->rank_ns[1] = 1000;
  if (alone.calls++ < 6) /* three ranks, two steps */
    return CCT_OK;
  if (world->rank == 1)
    return CCT_FOUND;
  while (alone.waits)
    usleep(1000);
  return CCT_OK;
}

static const struct cct_backend_ops lonely_ops = {.owned = fake_owned, .step = lonely_step};

static void measure_alone(const struct cct_world *world, void *argument) {
  (void)argument;
  struct cct_measured measured;
  const struct cct_measure_options options = {.samples = 7, .name = "cell 5", .patience_ns = 300000000};
  enum cct_status status =
      cct_measure(world, &lonely_ops, (struct cct_executor *)(uintptr_t)world, NULL, &options, &measured);
  if (!status)
    cct_measured_free(&measured);
  alone.n_told[status == CCT_FOUND]++;
}

static void all_ranks_hear_of_one_that_fails(void **state) {
  (void)state;
  alone.calls = alone.waits = alone.n_told[0] = alone.n_told[1] = 0;
  assert_int_equal(cct_world_threads(3, measure_alone, NULL), 0);
  assert_int_equal(alone.n_told[1], 3);
  assert_int_equal(alone.calls, 9);
}

static void one_that_fails_ends_those_that_wait_for_it(void **state) {
  (void)state;
  int result, status, ends[2];
  char said[512] = "";
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    dup2(ends[1], STDERR_FILENO);
    alone.calls = 0;
    alone.waits = 1;
    cct_world_threads(3, measure_alone, NULL);
    _exit(0);
  }
  close(ends[1]);
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result));
  status = WEXITSTATUS(result);
  assert_true(read(ends[0], said, sizeof said - 1) > 0);
  close(ends[0]);
  assert_int_equal(status, 3);
  assert_non_null(strstr(said, "cell 5: failed here while other ranks still wait for this one"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sequence_is_timed_once_where_the_backend_has_it),
      cmocka_unit_test(a_step_is_timed_one_by_one),
      cmocka_unit_test(short_steps_are_repeated_until_a_burst_is_long),
      cmocka_unit_test(a_failure_is_passed_on),
      cmocka_unit_test(all_ranks_hear_of_one_that_fails),
      cmocka_unit_test(one_that_fails_ends_those_that_wait_for_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
