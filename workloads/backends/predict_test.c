/* SPDX-License-Identifier: Apache-2.0
 * Known surcharges come out of a prediction: 0, 0.5, 1, 3 and 17 % put in at each boundary alone and at all of them, in
 * both submission forms, and -5 % by giving the baseline the surcharge, to 0.01 points. The program is serial: its
 * clear step is a sum, so that a surcharge of x % of it, spread over the entries of one boundary, is x % of the step.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "tests/job_text.h"
#include "workloads/backends/predict.h"

enum {
  LAUNCHES = 20,
  COPIES = 4,
  REDUCES = 6,
  COPY_BYTES = 4000000,
  REDUCE_BYTES = 100000000,
  HOSTWORK_NS = 300000,
  REPETITIONS = 10,
};
static const double wire_us = REDUCE_BYTES * 1.75 / 838.0e9 * 1e6;

static struct cct_profile *profile; /* the machine, and with a confidential column of the test's the emulated one */
static struct cct_profile machine;
static struct cct_job *job;
static double step_us; /* clear */

static void add_serial(struct cct_text *text, int n, const char *op) {
  for (int i = 0; i < n; i++)
    cct_text_add(text, "%s,{\"op\":\"sync\",\"lane\":0,\"host\":1},", op);
}

static struct cct_job *serial_job(void) {
  struct cct_text text = {0};
  char op[256];
  cct_text_add(&text, "{\"schema\":1,\"ranks\":8,\"groups\":[{\"name\":\"tp\",\"size\":8,\"stride\":1}],\"roles\":[{"
                      "\"first\":0,\"count\":8,\"program\":{\"name\":\"serial\",\"lanes\":[{\"name\":\"main\",\"kind\":"
                      "\"stream\"},{\"name\":\"cpu\",\"kind\":\"host\"}],\"slots\":[],\"buffers\":[],\"ops\":[");
  add_serial(&text, LAUNCHES, "{\"op\":\"launch\",\"lane\":0,\"host\":1}");
  snprintf(op, sizeof op, "{\"op\":\"copy\",\"lane\":0,\"host\":1,\"direction\":\"h2d\",\"bytes\":%d}", COPY_BYTES);
  add_serial(&text, COPIES, op);
  snprintf(op, sizeof op,
           "{\"op\":\"collective\",\"lane\":0,\"host\":1,\"kind\":\"all_reduce\",\"group\":0,\"bytes\":%d,"
           "\"type\":\"bf16\"}",
           REDUCE_BYTES);
  add_serial(&text, REDUCES, op);
  cct_text_add(&text, "{\"op\":\"hostwork\",\"host\":1,\"ns\":%d}]}}]}", HOSTWORK_NS);
  struct cct_job *made = job_of_text(text.s);
  cct_text_free(&text);
  return made;
}

static double predict_us(const struct cct_profile *emulated, unsigned mask) {
  int64_t ns;
  assert_int_equal(cct_predict(job, &machine, emulated, mask, NULL, REPETITIONS, &ns), CCT_OK);
  return (double)ns * 1e-3;
}

static int setup(void **state) {
  (void)state;
  assert_int_equal(cct_profile_load("b200x8-tdx", &profile), CCT_OK);
  machine = *profile;
  job = serial_job();
  step_us = predict_us(NULL, 0);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  cct_job_free(job);
  cct_profile_free(profile);
  return 0;
}

/* A profile whose confidential column costs `pct` per cent of the clear step more at each boundary in `mask`.
 * Capability: the ring that is left without multicast is slower by that; where capability is not in the mask it is as
 * fast as NVLS. */
struct made {
  struct cct_profile machine, emulated;
  struct cct_collective_cost clear[2], confidential[1];
};

static void make(struct made *m, unsigned mask, double pct, enum cct_submission_form form) {
  double extra_us = step_us * pct / 100, ring_us = 25 + wire_us, cc_us;
  m->machine = machine;
  m->emulated = machine;
  memset(m->clear, 0, sizeof m->clear);
  struct cct_collective_cost *nvls = &m->clear[0], *ring = &m->clear[1], *cc = &m->confidential[0];
  *nvls = (struct cct_collective_cost){.kind = CCT_COLL_ALL_REDUCE, .ranks = 8, .algorithm = "NVLS"};
  nvls->toll_us_eager.value = nvls->toll_us_graph.value = 25;
  nvls->busbw_gb_s.value = 838.0;
  *ring = *nvls;
  memcpy(ring->algorithm, "Ring", 5);
  if (mask & (1u << CCT_BOUNDARY_CAPABILITY))
    ring_us += extra_us / REDUCES;
  cc_us = ring_us + (mask & (1u << CCT_BOUNDARY_NVLINK) ? extra_us / REDUCES : 0);
  ring->busbw_gb_s.value = REDUCE_BYTES * 1.75e-3 / (ring_us - 25);
  *cc = *ring;
  cc->busbw_gb_s.value = REDUCE_BYTES * 1.75e-3 / (cc_us - 25);
  m->machine.clear.collectives = m->emulated.clear.collectives = m->clear;
  m->machine.clear.n_collectives = m->emulated.clear.n_collectives = 2;
  m->emulated.confidential = m->machine.clear;
  m->emulated.confidential.collectives = m->confidential;
  m->emulated.confidential.n_collectives = 1;
  m->emulated.confidential.submission.form = form;
  if (mask & (1u << CCT_BOUNDARY_CHANNEL))
    m->emulated.confidential.submission.us.value += extra_us / (LAUNCHES + COPIES + REDUCES);
  if (mask & (1u << CCT_BOUNDARY_COPIES))
    m->emulated.confidential.copy[CCT_COPY_H2D][CCT_MEM_PINNED].fixed_us.value += extra_us / COPIES;
  if (mask & (1u << CCT_BOUNDARY_CPU))
    m->emulated.confidential.cpu_slowdown.value += extra_us * 1e3 / HOSTWORK_NS;
}

static const double truths[] = {0, 0.5, 1, 3, 17};

static double time_overhead_pct(const struct made *m, unsigned mask, int is_swapped) {
  struct cct_profile before = machine;
  machine = m->machine;
  double off = predict_us(NULL, 0), on = predict_us(&m->emulated, mask);
  machine = before;
  return is_swapped ? 100 * (off / on - 1) : 100 * (on / off - 1);
}

static void test_each_boundary_alone(void **state) {
  (void)state;
  for (int boundary = 0; boundary < CCT_BOUNDARY_COUNT; boundary++)
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++)
      for (int form = 0; form < 2; form++) {
        struct made m;
        make(&m, 1u << boundary, truths[i], (enum cct_submission_form)form);
        double alone = time_overhead_pct(&m, 1u << boundary, 0), all = time_overhead_pct(&m, CCT_ALL_BOUNDARIES, 0);
        if (fabs(alone - truths[i]) > 0.01 || fabs(all - truths[i]) > 0.01)
          fail_msg("%s, form %d: %.4f alone and %.4f with all on, for %g %%",
                   cct_boundary_name((enum cct_boundary)boundary), form, alone, all, truths[i]);
        /* the other boundaries, alone, cost nothing */
        for (int other = 0; other < CCT_BOUNDARY_COUNT; other++)
          if (other != boundary && boundary != CCT_BOUNDARY_CAPABILITY)
            assert_float_equal(time_overhead_pct(&m, 1u << other, 0), 0, 0.01);
      }
}

static void test_all_boundaries_mixed(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof truths / sizeof *truths; i++)
    for (int form = 0; form < 2; form++) {
      struct made m;
      make(&m, CCT_ALL_BOUNDARIES, truths[i], (enum cct_submission_form)form);
      assert_float_equal(time_overhead_pct(&m, CCT_ALL_BOUNDARIES, 0), 5 * truths[i], 0.01);
    }
}

/* 17 % more time is 14.5 % less throughput. */
static void test_throughput_form(void **state) {
  (void)state;
  struct made m;
  make(&m, 1u << CCT_BOUNDARY_CHANNEL, 17, CCT_FORM_HOST);
  double pct = time_overhead_pct(&m, CCT_ALL_BOUNDARIES, 0);
  assert_float_equal(100 * (1 - 1 / (1 + pct / 100)), 14.53, 0.01);
}

static void test_baseline_with_the_surcharge(void **state) {
  (void)state;
  for (int boundary = 0; boundary < CCT_BOUNDARY_COUNT; boundary++) {
    struct made m;
    make(&m, 1u << boundary, 100 * (1 / 0.95 - 1), CCT_FORM_HOST);
    assert_float_equal(time_overhead_pct(&m, CCT_ALL_BOUNDARIES, 1), -5, 0.01);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_boundary_alone),
      cmocka_unit_test(test_all_boundaries_mixed),
      cmocka_unit_test(test_throughput_form),
      cmocka_unit_test(test_baseline_with_the_surcharge),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
