/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/backends/exposure.h"
#include "workloads/backends/sim.h"

/* A collective and compute of a known length beside it, before it, or both. DELAYs, whose times are given, stand in for
 * what a profile would price: spans are laid by hand. */
enum {
  COMPUTE,
  COMM,
  HOST
};

static struct cct_program *new_program(void) {
  struct cct_program *p;
  assert_int_equal(cct_program_new("overlap", &p), CCT_OK);
  assert_int_equal(cct_program_add_lane(p, "compute", CCT_LANE_STREAM), COMPUTE);
  assert_int_equal(cct_program_add_lane(p, "comm", CCT_LANE_STREAM), COMM);
  assert_int_equal(cct_program_add_lane(p, "main", CCT_LANE_HOST), HOST);
  return p;
}

static int add(struct cct_program *p, enum cct_op_kind kind, int lane, int64_t bytes, int wait) {
  struct cct_op op = {
      .kind = kind, .name = cct_op_name(kind), .lane = lane, .host = HOST, .reads = {-1, -1}, .writes = -1};
  struct cct_wait waits = {wait, 0};
  if (kind == CCT_OP_COLLECTIVE) {
    op.collective.kind = CCT_COLL_ALL_REDUCE;
    op.collective.bytes = cct_constant(bytes);
    op.collective.type = CCT_TYPE_BF16;
    op.collective.matrix = -1;
  } else if (kind == CCT_OP_ELEMENTWISE) {
    op.elementwise.bytes = cct_constant(bytes);
  }
  return cct_program_add(p, &op, &waits, wait >= 0);
}

static void spans_by_hand(void **state) {
  (void)state;
  static const struct {
    struct cct_span compute[3], collective;
    double hidden;
  } rows[] = {
      {{{0, 100}, {100, 200}, {-1, -1}}, {200, 300}, 0},    /* behind each other */
      {{{0, 100}, {100, 300}, {300, 350}}, {100, 300}, 1},  /* beside */
      {{{0, 50}, {0, 150}, {400, 500}}, {100, 200}, 0.5},   /* half beside */
      {{{0, 120}, {140, 160}, {155, 180}}, {100, 200}, 0.6} /* in pieces, two of which overlap */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_program *p = new_program();
    struct cct_exposure exposures[CCT_MOST_EXPOSURES];
    struct cct_span spans[4];
    double moved = INFINITY;
    for (int k = 0; k < 3; k++) {
      add(p, CCT_OP_ELEMENTWISE, COMPUTE, 1, -1);
      spans[k] = rows[i].compute[k];
    }
    add(p, CCT_OP_COLLECTIVE, COMM, 1, -1);
    spans[3] = rows[i].collective;
    assert_int_equal(cct_exposure_list(p, exposures), 1);
    assert_int_equal(cct_exposure_add(p, spans, exposures, 1, &moved), CCT_OK);
    double length = (double)(spans[3].end_ns - spans[3].start_ns);
    assert_true(exposures[0].spent_ns == length && exposures[0].n == 1 && moved == length);
    assert_true(fabs(exposures[0].exposed_ns - (1 - rows[i].hidden) * length) < 1e-9);
    cct_program_free(p);
  }
}

/* What sim makes of 0, 50 and 100 %: by the law, so exact to the nanosecond. `beside`: compute that runs while the
 * collective does, in multiples of its time. */
static double hidden_in_sim(double beside, double *spent_out) {
  struct cct_profile *machine;
  struct cct_backend *backend;
  struct cct_executor *executor;
  struct cct_job *job;
  struct cct_span spans[16], again[16];
  struct cct_exposure exposures[CCT_MOST_EXPOSURES];
  int64_t rank_ns[2], length = 1000000;
  struct cct_burst burst = {.rank_ns = rank_ns};
  assert_int_equal(cct_profile_load("b200x8-tdx", &machine), CCT_OK);
  struct cct_backend_options options = {.machine = machine, .has_multicast = 1, .scale = 1};
  for (int pass = 0; pass < 2; pass++) { /* the first says how long the collective takes, and a byte of compute */
    struct cct_program *p = new_program();
    assert_int_equal(cct_job_new(2, &job), CCT_OK);
    assert_int_equal(cct_job_add_group(job, "tp", 2, 1), 0);
    int before = add(p, CCT_OP_ELEMENTWISE, COMPUTE, 400 << 20, -1);
    int collective = add(p, CCT_OP_COLLECTIVE, COMM, 64 << 20, before);
    if (beside > 0)
      add(p, CCT_OP_ELEMENTWISE, COMPUTE, pass ? length : 400 << 20, -1);
    add(p, CCT_OP_ELEMENTWISE, COMPUTE, 100 << 20, collective); /* behind the collective: hides nothing of it */
    assert_int_equal(cct_job_add_role(job, p, 0, 2), CCT_OK);
    assert_int_equal(cct_job_check(job), CCT_OK);
    assert_int_equal(cct_backend_sim.open(cct_world_self(), &options, &backend), CCT_OK);
    assert_int_equal(cct_backend_sim.load(backend, job, &executor), CCT_OK);
    assert_int_equal(cct_backend_sim.step(executor, NULL, 1, &burst), CCT_OK);
    assert_int_equal(cct_backend_sim.trace(executor, 0, spans), CCT_OK);
    assert_int_equal(cct_backend_sim.trace(executor, 1, again), CCT_OK);
    if (!pass) {
      double ns_a_byte = (double)(spans[0].end_ns - spans[0].start_ns) / (400 << 20);
      length = (int64_t)((double)(spans[1].end_ns - spans[1].start_ns) * beside / ns_a_byte);
    } else {
      assert_int_equal(cct_exposure_list(p, exposures), 1);
      assert_int_equal(cct_exposure_add(p, spans, exposures, 1, NULL), CCT_OK);
    }
    cct_backend_sim.unload(executor);
    cct_backend_sim.close(backend);
    cct_job_free(job);
  }
  cct_profile_free(machine);
  *spent_out = exposures[0].spent_ns;
  return 1 - exposures[0].exposed_ns / exposures[0].spent_ns;
}

static void known_overlaps_come_back_from_sim(void **state) {
  (void)state;
  static const double beside[] = {0, 0.5, 2}, hidden[] = {0, 0.5, 1};
  for (int i = 0; i < 3; i++) {
    double spent, is = hidden_in_sim(beside[i], &spent);
    if (fabs(is - hidden[i]) > 0.02)
      fail_msg("compute of %.1f of the collective's %.0f ns hides %.3f of it", beside[i], spent, is);
  }
}

/* Emulation's delay behind a collective is the collective's time. */
static void an_added_delay_is_the_collectives(void **state) {
  (void)state;
  struct cct_program *p = new_program();
  struct cct_exposure exposures[CCT_MOST_EXPOSURES];
  struct cct_span spans[3] = {{0, 150}, {100, 200}, {200, 260}};
  double moved = 1000;
  add(p, CCT_OP_ELEMENTWISE, COMPUTE, 1, -1);
  int collective = add(p, CCT_OP_COLLECTIVE, COMM, 1, -1);
  struct cct_op delay = {
      .kind = CCT_OP_DELAY, .name = "toll", .lane = COMM, .host = HOST, .reads = {-1, -1}, .writes = -1};
  delay.delay.of = collective;
  (void)cct_program_add(p, &delay, NULL, 0);
  assert_int_equal(cct_exposure_list(p, exposures), 1);
  assert_int_equal(cct_exposure_add(p, spans, exposures, 1, &moved), CCT_OK);
  assert_true(exposures[0].spent_ns == 160 && exposures[0].exposed_ns == 110 && exposures[0].n == 1 && moved == 160);
  cct_program_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spans_by_hand),
      cmocka_unit_test(known_overlaps_come_back_from_sim),
      cmocka_unit_test(an_added_delay_is_the_collectives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
