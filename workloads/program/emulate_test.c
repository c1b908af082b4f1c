/* SPDX-License-Identifier: Apache-2.0
 * What emulate() puts where, form by form and boundary by boundary, and what it leaves alone. How much time it adds is
 * held against the profile in backends/predict_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "workloads/program/counts.h"
#include "workloads/program/emulate.h"

static struct cct_profile *profile;

static int setup(void **state) {
  (void)state;
  return cct_profile_load("b200x8-tdx", &profile) != CCT_OK;
}

static int teardown(void **state) {
  (void)state;
  cct_profile_free(profile);
  return 0;
}

#define ON "\"lane\":0,\"host\":2"
#define JOB(ops)                                                                                                       \
  "{\"schema\":1,\"ranks\":8,\"groups\":[{\"name\":\"tp\",\"size\":8,\"stride\":1}],\"roles\":[{\"first\":0,"          \
  "\"count\":8,"                                                                                                       \
  "\"program\":{\"name\":\"p\",\"lanes\":[{\"name\":\"main\",\"kind\":\"stream\"},{\"name\":\"side\",\"kind\":"        \
  "\"stream\"},{\"name\":\"cpu\",\"kind\":\"host\"}],\"slots\":[{\"name\":\"form\",\"value\":1}],\"buffers\":[],"      \
  "\"ops\":[" ops "]}}]}"
#define REDUCE "\"kind\":\"all_reduce\",\"group\":0,\"bytes\":100000000,\"type\":\"bf16\"}"

static struct cct_job *emulated_of(const char *text, unsigned mask) {
  struct cct_json *document;
  struct cct_job *job, *emulated;
  assert_int_equal(cct_json_parse(text, strlen(text), "test", &document), CCT_OK);
  struct cct_json_at at = cct_json_root(document, "test");
  assert_int_equal(cct_job_from_json(&at, &job), CCT_OK);
  assert_int_equal(cct_emulate(job, profile, mask, &emulated), CCT_OK);
  assert_int_equal(cct_job_check(emulated), CCT_OK);
  cct_job_free(job);
  cct_json_free(document);
  return emulated;
}

/* One word an entry: its kind, for a delay d:LANE:HOST:NS, and the ids it waits for. */
static void assert_ops(const char *text, unsigned mask, const char *wanted) {
  struct cct_job *job = emulated_of(text, mask);
  const struct cct_program *p = job->roles[0].program;
  char got[2048] = "";
  for (int id = 0; id < p->n_ops; id++) {
    const struct cct_op *op = &p->ops[id];
    size_t n = strlen(got);
    if (op->kind == CCT_OP_DELAY)
      n += (size_t)snprintf(got + n, sizeof got - n, "d:%d:%d:%lld", op->lane, op->host, (long long)op->delay.ns);
    else
      n += (size_t)snprintf(got + n, sizeof got - n, "%s", cct_op_name(op->kind));
    for (int w = 0; w < op->n_waits; w++)
      n += (size_t)snprintf(got + n, sizeof got - n, "%s%d", p->waits[op->first_wait + w].is_previous ? "<p" : "<",
                            p->waits[op->first_wait + w].id);
    snprintf(got + n, sizeof got - n, " ");
  }
  assert_string_equal(got, wanted);
  cct_job_free(job);
}

#define CHANNEL (1u << CCT_BOUNDARY_CHANNEL)
#define EVERY_SUBMISSION                                                                                               \
  JOB("{\"op\":\"launch\"," ON ",\"waits\":[\"prev:9\"]},{\"op\":\"group\"," ON "},{\"op\":\"collective\"," ON         \
      "," REDUCE ",{\"op\":\"end\"},{\"op\":\"graph\"," ON                                                             \
      "},{\"op\":\"launch\",\"lane\":0},{\"op\":\"launch\",\"lane\":1,\"waits\":[5]},"                                 \
      "{\"op\":\"end\"},{\"op\":\"hostwork\",\"host\":2,\"ns\":1000,\"waits\":[4]},{\"op\":\"copy\"," ON               \
      ",\"direction\":\"d2h\",\"memory\":\"pageable\",\"blocking\":true,\"bytes\":8},{\"op\":\"sync\"," ON "}")

static void test_channel_on_the_host(void **state) {
  (void)state;
  assert_ops(
      EVERY_SUBMISSION, CHANNEL,
      "d:-1:2:31000 launch<p13 d:-1:2:31000 group collective end d:-1:2:31000 graph launch launch<8 end hostwork<7 "
      "d:-1:2:31000 copy sync d:-1:2:50 ");
}

static void test_channel_in_the_stream(void **state) {
  (void)state;
  profile->confidential.submission.form = CCT_FORM_STREAM;
  assert_ops(EVERY_SUBMISSION, CHANNEL,
             "launch<p13 d:0:2:31000 group collective end d:0:2:31000 graph launch launch<7 end d:0:2:31000 "
             "hostwork<10 copy d:0:2:31000 d:-1:2:0<13 sync d:-1:2:50 ");
  profile->confidential.submission.form = CCT_FORM_HOST;
}

static void test_an_entry_keeps_all_its_waits(void **state) {
  enum {
    MANY = 100
  };
  struct cct_op op = {.kind = CCT_OP_LAUNCH, .name = "", .lane = 1, .reads = {-1, -1}, .writes = -1};
  struct cct_wait waits[MANY];
  struct cct_program *p;
  struct cct_job *job, *emulated;
  (void)state;
  assert_int_equal(cct_job_new(1, &job), CCT_OK);
  assert_int_equal(cct_program_new("many", &p), CCT_OK);
  op.host = cct_program_add_lane(p, "host", CCT_LANE_HOST);
  cct_program_add_lane(p, "a", CCT_LANE_STREAM);
  cct_program_add_lane(p, "b", CCT_LANE_STREAM);
  for (int i = 0; i < MANY; i++)
    waits[i] = (struct cct_wait){.id = cct_program_add(p, &op, NULL, 0)};
  op.lane = 2;
  cct_program_add(p, &op, waits, MANY);
  assert_int_equal(cct_job_add_role(job, p, 0, 1), CCT_OK);
  assert_int_equal(cct_emulate(job, profile, CHANNEL, &emulated), CCT_OK);
  p = emulated->roles[0].program;
  int last = p->n_ops - 1; /* each has a delay of the host before it */
  assert_int_equal(p->ops[last].n_waits, MANY);
  assert_int_equal(p->waits[p->ops[last].first_wait + MANY - 1].id, 2 * MANY - 1);
  cct_job_free(job);
  cct_job_free(emulated);
}

static void test_nothing_is_added_without_a_surcharge(void **state) {
  (void)state;
  struct cct_column confidential = profile->confidential;
  profile->confidential = profile->clear;
  profile->confidential.submission.us.value = 1; /* below clear: no emulation makes a machine faster */
  assert_ops(EVERY_SUBMISSION, CCT_ALL_BOUNDARIES & ~(1u << CCT_BOUNDARY_COPIES),
             "launch<p9 group collective end graph launch launch<5 end hostwork<4 copy sync ");
  profile->confidential = confidential;
}

/* A surcharge stands in the case of what it belongs to, so that it is not there where that is not. */
static void test_surcharges_stay_in_their_case(void **state) {
  (void)state;
  profile->confidential.submission.form = CCT_FORM_STREAM;
  struct cct_job *job = emulated_of(JOB("{\"op\":\"case\",\"slot\":0,\"value\":1},{\"op\":\"graph\"," ON
                                        "},{\"op\":\"launch\",\"lane\":0},{\"op\":\"end\"},{\"op\":\"end\"},"
                                        "{\"op\":\"launch\"," ON ",\"waits\":[1]}"),
                                    CHANNEL);
  const struct cct_program *p = job->roles[0].program;
  assert_int_equal(p->ops[4].kind, CCT_OP_DELAY); /* case graph launch end delay end launch delay */
  assert_int_equal(p->ops[4].in_case, 0);
  assert_int_equal(p->ops[0].when.value, 1);
  assert_int_equal(p->ops[6].kind, CCT_OP_LAUNCH);
  assert_int_equal(p->ops[6].in_case, -1);
  assert_int_equal(p->waits[p->ops[6].first_wait].id, 4);
  assert_int_equal(p->ops[7].in_case, -1);
  cct_job_free(job);
  profile->confidential.submission.form = CCT_FORM_HOST;
}

/* 8 ranks, 100 MB: clear without NVLS Ring Simple, toll 56 us at 682.2 GB/s; confidential the same at times 156/185. */
static void test_nvlink(void **state) {
  (void)state;
  struct cct_job *job =
      emulated_of(JOB("{\"op\":\"collective\"," ON "," REDUCE ",{\"op\":\"launch\",\"lane\":1,\"host\":2,"
                      "\"waits\":[0]},{\"op\":\"sync\",\"lane\":1,\"host\":2}"),
                  1u << CCT_BOUNDARY_NVLINK);
  const struct cct_op *delay = &job->roles[0].program->ops[1];
  assert_int_equal(delay->kind, CCT_OP_DELAY);
  assert_int_equal(delay->delay.of, 0);
  assert_float_equal(delay->delay.stretch, 185.0 / 156 - 1, 1e-5);
  assert_int_equal(delay->delay.ns, -10410); /* 56 - 56 * 185/156 us: only the wire part is stretched */
  assert_int_equal(job->roles[0].program->waits[0].id, 1);
  cct_job_free(job);
  assert_ops(JOB("{\"op\":\"group\"," ON "},{\"op\":\"send\"," ON ",\"group\":0,\"peer_offset\":1,\"bytes\":1000},"
                 "{\"op\":\"recv\"," ON ",\"group\":0,\"peer_offset\":-1,\"bytes\":1000},{\"op\":\"end\"},"
                 "{\"op\":\"group\"," ON "},{\"op\":\"collective\"," ON "," REDUCE ",{\"op\":\"collective\"," ON
                 "," REDUCE ",{\"op\":\"end\"},{\"op\":\"launch\"," ON ",\"waits\":[0,4]}"),
             1u << CCT_BOUNDARY_NVLINK,
             "group send recv end d:0:2:9985 group collective collective end d:0:2:-10410 d:0:2:-10410 launch<4<10 ");
  assert_ops(JOB("{\"op\":\"copy\"," ON
                 ",\"direction\":\"p2p\",\"group\":0,\"peer\":3,\"bytes\":1000},{\"op\":\"launch\"," ON
                 ",\"waits\":[0]}"),
             1u << CCT_BOUNDARY_NVLINK | 1u << CCT_BOUNDARY_COPIES, "copy d:0:2:10296 launch<1 ");
}

static void test_copies_bounce_and_block(void **state) {
  (void)state;
  struct cct_job *job =
      emulated_of(JOB("{\"op\":\"copy\"," ON ",\"direction\":\"h2d\",\"bytes\":8},{\"op\":\"copy\"," ON
                      ",\"direction\":\"d2d\",\"bytes\":8}"),
                  1u << CCT_BOUNDARY_COPIES);
  const struct cct_op *ops = job->roles[0].program->ops;
  assert_true(ops[0].copy.is_bounce && ops[0].copy.is_blocking);
  assert_false(ops[1].copy.is_bounce || ops[1].copy.is_blocking);
  cct_job_free(job);
}

static void test_a_bounce_copy_in_a_graph_is_refused(void **state) {
  (void)state;
  static const char text[] =
      JOB("{\"op\":\"graph\"," ON "},{\"op\":\"copy\",\"lane\":0,\"direction\":\"h2d\",\"bytes\":8},"
          "{\"op\":\"end\"}");
  struct cct_json *document;
  struct cct_job *job, *emulated = NULL;
  assert_int_equal(cct_json_parse(text, strlen(text), "test", &document), CCT_OK);
  struct cct_json_at at = cct_json_root(document, "test");
  assert_int_equal(cct_job_from_json(&at, &job), CCT_OK);
  assert_int_equal(cct_emulate(job, profile, 1u << CCT_BOUNDARY_COPIES, &emulated), CCT_UNSUPPORTED);
  assert_null(emulated);
  cct_job_free(job);
  cct_json_free(document);
}

static void test_cpu(void **state) {
  (void)state;
  struct cct_job *job = emulated_of(JOB("{\"op\":\"hostwork\",\"host\":2,\"ns\":1000000}"), 1u << CCT_BOUNDARY_CPU);
  assert_int_equal(job->roles[0].program->ops[0].hostwork.ns, 1015000);
  cct_job_free(job);
}

/* Law 6 counts DELAY as no node, and counts.h as no submission: emulation changes no count. */
static void test_counts_stay(void **state) {
  (void)state;
  for (int form = 0; form < 2; form++) {
    profile->confidential.submission.form = (enum cct_submission_form)form;
    struct cct_job *before = emulated_of(EVERY_SUBMISSION, 0),
                   *after = emulated_of(EVERY_SUBMISSION, CCT_ALL_BOUNDARIES);
    struct cct_counts a, b;
    int64_t slots[] = {1};
    struct cct_binding binding = {.slots = slots};
    cct_count_program(before, before->roles[0].program, &binding, &a);
    cct_count_program(after, after->roles[0].program, &binding, &b);
    assert_memory_equal(&a, &b, sizeof a);
    cct_job_free(before);
    cct_job_free(after);
  }
  profile->confidential.submission.form = CCT_FORM_HOST;
}

static void test_environment(void **state) {
  (void)state;
  struct cct_environment environment;
  cct_capability_environment(profile, 22803, &environment);
  assert_int_equal(environment.n, 2);
  assert_string_equal(environment.pairs[0], "NCCL_NVLS_ENABLE=0");
  assert_string_equal(environment.pairs[1], "NCCL_WORK_FIFO_BYTES=0");
  cct_capability_environment(profile, 22902, &environment);
  assert_int_equal(environment.n, 3);
  assert_string_equal(environment.pairs[2], "NCCL_ALLGATHERV_ENABLE=0");
  profile->capability.multicast = profile->capability.work_fifo = 1;
  cct_capability_environment(profile, 0, &environment);
  assert_int_equal(environment.n, 0);
  profile->capability.multicast = profile->capability.work_fifo = 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_channel_on_the_host),
      cmocka_unit_test(test_channel_in_the_stream),
      cmocka_unit_test(test_an_entry_keeps_all_its_waits),
      cmocka_unit_test(test_nothing_is_added_without_a_surcharge),
      cmocka_unit_test(test_surcharges_stay_in_their_case),
      cmocka_unit_test(test_nvlink),
      cmocka_unit_test(test_copies_bounce_and_block),
      cmocka_unit_test(test_a_bounce_copy_in_a_graph_is_refused),
      cmocka_unit_test(test_cpu),
      cmocka_unit_test(test_counts_stay),
      cmocka_unit_test(test_environment),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
