/* SPDX-License-Identifier: Apache-2.0
 * The host backend's time: holds last as long as they say, collectives are stretched, bounce copies paced. */
#include <string.h>

#include "workloads/backends/host_built_test.h"

static void holds_take_their_time(void **state) {
  (void)state;
  struct built b = build(1);
  put_delay(&b, 400000, 0, -1);
  put_delay(&b, 50000, 0, -1);
  struct cct_op op = on(&b, CCT_OP_HOSTWORK);
  op.lane = -1;
  op.hostwork.ns = 2000000;
  put(&b, op);
  struct use use = used(&b, 1, 10);
  assert_true(use.step_ns >= 20000000);
  b = build(1);
  put_delay(&b, 400000, 0, -1);
  put_delay(&b, 50000, 0, -1);
  use = used(&b, 1, 10);
  assert_true(use.step_ns >= 4500000);
}

/* A DELAY stretches what the collective took alone. The shortest of several tries: neighbours only lengthen. */
static void a_collective_is_stretched(void **state) {
  (void)state;
  enum {
    ranks = 2,
    n_tries = 8
  };
  int64_t shortest_ns[2] = {INT64_MAX, INT64_MAX};
  for (int i = 0; i < 2 * n_tries; i++) {
    int stretch = i % 2;
    struct built b = build(ranks);
    int id = put_collective(&b, CCT_COLL_ALL_REDUCE, CCT_TYPE_FP8, cct_constant(1 << 16), -1);
    put_delay(&b, 0, 9 * stretch, id);
    struct use use = used(&b, ranks, 1);
    shortest_ns[stretch] = use.step_ns < shortest_ns[stretch] ? use.step_ns : shortest_ns[stretch];
  }
  assert_true(shortest_ns[1] > 4 * shortest_ns[0]);
}

static void a_bounce_copy_keeps_the_profiles_time(void **state) {
  (void)state;
  enum {
    bytes = 4 << 20
  };
  static const double gb_s[] = {0.2, 500}; /* slower and faster than any core seals */
  for (int i = 0; i < 2; i++) {
    struct cct_profile profile = {.name = "test", .has_confidential = 1};
    struct cct_copy_cost *cost = &profile.confidential.copy[CCT_COPY_H2D][CCT_MEM_PINNED];
    cost->fixed_us.value = 500;
    cost->gb_s.value = gb_s[i];
    profile.confidential.copy[CCT_COPY_H2D][CCT_MEM_PAGEABLE] = profile.confidential.copy[CCT_COPY_D2H][0] =
        profile.confidential.copy[CCT_COPY_D2H][1] = *cost;
    struct built b = build(1);
    put_copy(&b, bytes, 1);
    struct use use = {.options = plain, .job = b.job, .n = 1};
    use.options.emulated = &profile;
    double profile_ns = 500e3 + bytes / gb_s[i];
    for (int tries = 0; !tries || (tries < 8 && use.step_ns >= 3 * profile_ns); tries++) /* of a busy machine */
      assert_int_equal(cct_world_threads(1, use_job, &use), 0);
    assert_true(use.step_ns >= (int64_t)profile_ns);
    assert_int_equal(use.wrong.wrong, 0);
    if (i == 0)
      assert_true(use.step_ns < 3 * profile_ns);
    struct cct_backend *backend;
    struct cct_fact facts[32];
    assert_int_equal(cct_backend_host.open(cct_world_self(), &use.options, &backend), CCT_OK);
    int n = cct_backend_host.facts(backend, facts, 32), n_paced = 0;
    for (int f = 0; f < n; f++)
      n_paced += !strncmp(facts[f].name, "bounce_", 7) && !strncmp(facts[f].value, "paced", 5) &&
                 !strstr(facts[f].value, "unsealed") == (i == 0);
    assert_int_equal(n_paced, 4);
    cct_backend_host.close(backend);
    cct_job_free(b.job);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(holds_take_their_time),
      cmocka_unit_test(a_collective_is_stretched),
      cmocka_unit_test(a_bounce_copy_keeps_the_profiles_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
