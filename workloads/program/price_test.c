/* SPDX-License-Identifier: Apache-2.0
 * Each closed formula of price.h by hand, on a column of round numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "workloads/program/price.h"

#define COST(v)                                                                                                        \
  { .value = (v), .lo = (v), .hi = (v), .source = "test" }
#define ROW(k, r, a, eager, graph, bw)                                                                                 \
  {                                                                                                                    \
    .kind = (k), .ranks = (r), .algorithm = a, .toll_us_eager = COST(eager), .toll_us_graph = COST(graph),             \
    .busbw_gb_s = COST(bw)                                                                                             \
  }

static struct cct_collective_cost rows[] = {
    ROW(CCT_COLL_ALL_REDUCE, 8, "NVLS", 30, 20, 800),
    ROW(CCT_COLL_ALL_REDUCE, 8, "Ring", 10, 5, 400),
    ROW(CCT_COLL_ALL_REDUCE, 2, "Ring", 4, 3, 350),
    ROW(CCT_COLL_ALL_TO_ALL, 8, "P2P", 12, 12, 500),
};
static struct cct_gemm_cost listed[] = {{.type = CCT_TYPE_BF16, .m = 8, .n = 64, .k = 32, .us = COST(77)}};
static const struct cct_profile profile = {
    .name = "test",
    .platform = {.gpus = 8, .partition = 8},
    .clear = {.submission = {.us = COST(3.45)},
              .graph_launch = {.us = COST(2.5), .us_per_node = COST(0.0015)},
              .sync_us = COST(1.62),
              .kernel_floor_us = COST(1),
              .copy = {{{COST(2), COST(50), 0, 1}, {COST(3), COST(5), 1, 1}},
                       {{COST(4), COST(40), 0, 1}, {COST(5), COST(4), 1, 1}}},
              .p2p = {COST(700), COST(500), COST(3)},
              .collectives = rows,
              .n_collectives = 4,
              .gemms = listed,
              .n_gemms = 1,
              .gemm_tflop_s = {[CCT_TYPE_BF16] = COST(1000)},
              .hbm_gb_s = COST(8000),
              .cpu_slowdown = COST(1)},
};

static struct cct_job *job;
static struct cct_program *program;
static struct cct_duration durations[64];

static int setup(void **state) {
  (void)state;
  assert_int_equal(cct_job_new(8, &job), CCT_OK);
  assert_int_equal(cct_program_new("p", &program), CCT_OK);
  assert_int_equal(cct_job_add_role(job, program, 0, 8), CCT_OK);
  cct_program_add_lane(program, "main", CCT_LANE_STREAM);
  cct_program_add_lane(program, "cpu", CCT_LANE_HOST);
  cct_job_add_group(job, "all", 8, 1);
  cct_job_add_group(job, "pair", 2, 1);
  cct_job_add_group(job, "self", 1, 1);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  cct_job_free(job);
  return 0;
}

static int add(struct cct_op op) {
  op.host = op.host ? op.host : 1;
  op.reads[0] = op.reads[1] = op.writes = -1;
  if (op.kind == CCT_OP_COLLECTIVE && op.collective.kind != CCT_COLL_ALL_TO_ALLV)
    op.collective.matrix = -1;
  return cct_program_add(program, &op, NULL, 0);
}

static enum cct_status price_with(int has_multicast, const struct cct_matrix *matrices) {
  struct cct_pricing pricing = {.profile = &profile, .column = &profile.clear, .has_multicast = has_multicast};
  struct cct_binding binding = {.matrices = matrices};
  return cct_price(&pricing, job, program, &binding, 0, durations);
}

static void price(void) {
  assert_int_equal(price_with(1, NULL), CCT_OK);
}

static int64_t run_of(struct cct_op op) {
  int id = add(op);
  price();
  return durations[id].run_ns;
}

static struct cct_op gemm(int64_t m, int64_t n, int64_t k, int groups) {
  return (struct cct_op){.kind = CCT_OP_GEMM, .gemm = {cct_constant(m), n, k, groups, CCT_TYPE_BF16}};
}

static struct cct_op collective(enum cct_collective kind, int group, int64_t bytes, enum cct_algorithm algorithm) {
  return (struct cct_op){.kind = CCT_OP_COLLECTIVE,
                         .collective = {kind, group, cct_constant(bytes), CCT_TYPE_BF16, algorithm, -1}};
}

static void test_gemm_roofline(void **state) {
  (void)state;
  assert_int_equal(run_of(gemm(8192, 8192, 8192, 1)), 1099512); /* 2 * 8192^3 / 1e15 s: bound by compute */
  assert_int_equal(run_of(gemm(8, 16384, 8192, 1)), 33604);     /* (8*8192 + 8192*16384 + 8*16384) * 2 bytes / 8e12 */
  assert_int_equal(run_of(gemm(8, 64, 64, 1)), 1000);           /* the floor */
  assert_int_equal(run_of(gemm(8, 64, 32, 1)), 77000);          /* listed */
  assert_int_equal(run_of(gemm(8, 64, 32, 2)), 1000);           /* grouped: a listed shape does not fit */
  assert_int_equal(run_of(gemm(8, 16384, 8192, 4)), 134414);    /* four times the bytes */
}

static void test_other_work(void **state) {
  (void)state;
  assert_int_equal(
      run_of((struct cct_op){.kind = CCT_OP_ATTENTION,
                             .attention = {cct_constant(5000000000), cct_constant(8000000), CCT_TYPE_BF16}}),
      5000);
  assert_int_equal(run_of((struct cct_op){.kind = CCT_OP_ATTENTION,
                                          .attention = {cct_constant(1000), cct_constant(80000000), CCT_TYPE_BF16}}),
                   10000);
  assert_int_equal(run_of((struct cct_op){.kind = CCT_OP_ELEMENTWISE, .elementwise = {cct_constant(80000000)}}), 10000);
  assert_int_equal(run_of((struct cct_op){.kind = CCT_OP_LAUNCH}), 1000);
  assert_int_equal(run_of((struct cct_op){.kind = CCT_OP_STAMP}), 1000);
  assert_int_equal(run_of((struct cct_op){.kind = CCT_OP_SYNC}), 1620);
  assert_int_equal(run_of((struct cct_op){.kind = CCT_OP_HOSTWORK, .lane = -1, .hostwork = {500}}), 500);
}

static void test_copies(void **state) {
  (void)state;
  struct cct_op op = {.kind = CCT_OP_COPY, .copy = {CCT_COPY_H2D, CCT_MEM_PINNED, cct_constant(1000000), 0, 0}};
  int id = add(op);
  op.copy.memory = CCT_MEM_PAGEABLE;
  int pageable = add(op);
  op.copy.direction = CCT_COPY_D2D;
  int inside = add(op);
  price();
  assert_int_equal(durations[id].run_ns, 22000); /* 2 us + 1e6 / 50e9 s */
  assert_false(durations[id].is_blocking);
  assert_int_equal(durations[pageable].run_ns, 203000);
  assert_true(durations[pageable].is_blocking); /* this machine's pageable copies do */
  assert_int_equal(durations[inside].run_ns, 1000);
  assert_false(durations[inside].is_blocking);
}

/* wire bytes = bytes * 2(n-1)/n, as nccl-tests' PERFORMANCE.md */
static void test_collective_rows(void **state) {
  (void)state;
  int big = add(collective(CCT_COLL_ALL_REDUCE, 0, 80000000, CCT_ALGORITHM_AUTO));
  int small = add(collective(CCT_COLL_ALL_REDUCE, 0, 8000, CCT_ALGORITHM_AUTO));
  int pair = add(collective(CCT_COLL_ALL_REDUCE, 1, 3500000, CCT_ALGORITHM_AUTO));
  int self = add(collective(CCT_COLL_ALL_REDUCE, 2, 3500000, CCT_ALGORITHM_AUTO));
  price();
  assert_int_equal(durations[big].run_ns, 205000);  /* NVLS: 30 + 140e6 / 800e9 */
  assert_int_equal(durations[small].run_ns, 10035); /* ring: 10 + 14e3 / 400e9 */
  assert_int_equal(durations[pair].run_ns, 14000);  /* 4 + 3.5e6 / 350e9 */
  assert_int_equal(durations[self].run_ns, 0);
  assert_int_equal(price_with(0, NULL), CCT_OK);
  assert_int_equal(durations[big].run_ns, 360000); /* without multicast the ring: 10 + 140e6 / 400e9 */
}

static void test_p2p_kernels(void **state) {
  (void)state;
  assert_int_equal(run_of(collective(CCT_COLL_ALL_REDUCE, 0, 100000, CCT_ALGORITHM_ONESHOT)),
                   7400); /* 2*3 + 7*1e5/500e9 */
  assert_int_equal(run_of(collective(CCT_COLL_ALL_REDUCE, 0, 1000000, CCT_ALGORITHM_TWOSHOT)),
                   15500); /* 4*3 + 1.75e6/5e11 */
}

static void test_traffic_matrix(void **state) {
  (void)state;
  int64_t bytes[64] = {0};
  for (int j = 0; j < 8; j++)
    bytes[j * 8 + 3] = 1000000; /* all send to member 3, itself included, which receives 7e6 from the others */
  struct cct_matrix matrix = {.n = 8, .bytes = bytes};
  struct cct_op op = collective(CCT_COLL_ALL_TO_ALLV, 0, 8000000, CCT_ALGORITHM_AUTO);
  op.collective.matrix = 0;
  int id = add(op);
  assert_int_equal(price_with(1, &matrix), CCT_OK);
  assert_int_equal(durations[id].run_ns, 26000); /* all_to_all's row: 12 + 7e6 / 500e9 */
  price();
  assert_int_equal(durations[id].run_ns, 26000); /* uniform: 12 + 8e6 * 7/8 / 500e9 */
}

/* 16 ranks on NVLink domains of 8: what stays inside is priced by its row, what leaves by net.us + wire bytes /
 * net.gb_s. */
static void test_beyond_the_nvlink_domain(void **state) {
  (void)state;
  struct cct_profile wide = profile;
  wide.clear.net.us = (struct cct_cost)COST(20);
  wide.clear.net.gb_s = (struct cct_cost)COST(50);
  struct cct_pricing pricing = {.profile = &wide, .column = &wide.clear, .has_multicast = 1};
  struct cct_binding binding = {0};
  job->ranks = job->roles[0].count = 16;
  int everyone = cct_job_add_group(job, "everyone", 16, 1), across = cct_job_add_group(job, "across", 2, 8);
  int inside = add(collective(CCT_COLL_ALL_REDUCE, 1, 3500000, CCT_ALGORITHM_AUTO));
  int all = add(collective(CCT_COLL_ALL_REDUCE, everyone, 8000000, CCT_ALGORITHM_AUTO));
  int pair = add(collective(CCT_COLL_ALL_REDUCE, across, 1000000, CCT_ALGORITHM_ONESHOT));
  add((struct cct_op){.kind = CCT_OP_GROUP});
  int next = add((struct cct_op){.kind = CCT_OP_SEND, .p2p = {everyone, 1, cct_constant(500000)}});
  int back = add((struct cct_op){.kind = CCT_OP_RECV, .p2p = {everyone, -1, cct_constant(500000)}});
  add((struct cct_op){.kind = CCT_OP_END});
  struct cct_op copy = {.kind = CCT_OP_COPY, .copy = {.direction = CCT_COPY_P2P, .bytes = cct_constant(500000)}};
  copy.copy.group = everyone;
  copy.copy.peer = 9;
  int near = add(copy);
  copy.copy.peer = 7;
  int far = add(copy);
  assert_int_equal(cct_price(&pricing, job, program, &binding, 8, durations), CCT_OK);
  assert_int_equal(durations[near].run_ns, 3714); /* 3 + 5e5 / 700e9 */
  assert_int_equal(durations[far].run_ns, 30000); /* rank 8 reads rank 7: 20 + 5e5 / 50e9 */
  assert_int_equal(durations[inside].run_ns, 14000);
  assert_int_equal(durations[all].run_ns, 320000); /* 20 + 8e6 * 30/16 / 50e9 */
  assert_int_equal(durations[pair].run_ns, 40000); /* 20 + 1e6 / 50e9 */
  assert_int_equal(durations[next].run_ns, 4000);  /* rank 8 to 9: 3 + 5e5 / 500e9 */
  assert_int_equal(durations[back].run_ns, 30000); /* rank 7 to 8: 20 + 5e5 / 50e9 */
}

static void test_a_bounce_copy_is_priced_by_the_emulated_column(void **state) {
  (void)state;
  struct cct_column confidential = profile.clear;
  confidential.copy[CCT_COPY_H2D][CCT_MEM_PINNED].gb_s.value = 5;
  confidential.copy[CCT_COPY_D2H][CCT_MEM_PINNED].gb_s.value = 80;
  struct cct_pricing pricing = {
      .profile = &profile, .column = &profile.clear, .has_multicast = 1, .bounce = &confidential};
  struct cct_binding binding = {0};
  struct cct_op op = {.kind = CCT_OP_COPY, .copy = {CCT_COPY_H2D, CCT_MEM_PINNED, cct_constant(1000000), 1, 1}};
  int slower = add(op);
  op.copy.direction = CCT_COPY_D2H;
  int faster = add(op);
  op.copy.is_bounce = 0;
  op.copy.direction = CCT_COPY_H2D;
  int plain = add(op);
  assert_int_equal(cct_price(&pricing, job, program, &binding, 0, durations), CCT_OK);
  assert_int_equal(durations[slower].run_ns, 202000);
  assert_int_equal(durations[faster].run_ns, 29000); /* never less than this machine's clear copy: 4 + 25 us */
  assert_int_equal(durations[plain].run_ns, 22000);
}

static void test_brackets_and_delays(void **state) {
  (void)state;
  int graph = add((struct cct_op){.kind = CCT_OP_GRAPH});
  int inner = add((struct cct_op){.kind = CCT_OP_LAUNCH, .host = -1});
  int reduce = add(collective(CCT_COLL_ALL_REDUCE, 0, 8000, CCT_ALGORITHM_AUTO));
  add((struct cct_op){.kind = CCT_OP_DELAY, .host = -1, .delay = {5, 0, -1}});
  add((struct cct_op){.kind = CCT_OP_GROUP, .host = -1});
  add(collective(CCT_COLL_ALL_REDUCE, 0, 8000, CCT_ALGORITHM_AUTO));
  add(collective(CCT_COLL_ALL_REDUCE, 0, 8000, CCT_ALGORITHM_AUTO));
  add((struct cct_op){.kind = CCT_OP_END});
  add((struct cct_op){.kind = CCT_OP_END});
  int group = add((struct cct_op){.kind = CCT_OP_GROUP});
  int send = add((struct cct_op){.kind = CCT_OP_SEND, .p2p = {0, 1, cct_constant(500000)}});
  add((struct cct_op){.kind = CCT_OP_RECV, .p2p = {0, -1, cct_constant(1000000)}});
  add((struct cct_op){.kind = CCT_OP_END});
  int delay = add((struct cct_op){.kind = CCT_OP_DELAY, .delay = {-1000, 0.5, group}});
  int negative = add((struct cct_op){.kind = CCT_OP_DELAY, .delay = {-100000, 0.5, group}});
  price();
  assert_int_equal(durations[graph].submit_ns, 2505); /* 2.5 + 3 nodes * 0.0015, rounded once: 2504.5 up */
  assert_int_equal(durations[inner].submit_ns, 0);
  assert_int_equal(durations[reduce].run_ns, 5035); /* the toll in graphs */
  assert_int_equal(durations[group].submit_ns, 3450);
  assert_int_equal(durations[send].submit_ns, 0);
  assert_int_equal(durations[send].run_ns, 4000);  /* 3 + 5e5 / 500e9 */
  assert_int_equal(durations[delay].run_ns, 1500); /* -1 + half of the longer message's 5 us */
  assert_int_equal(durations[delay].submit_ns, 0);
  assert_int_equal(durations[negative].run_ns, 0);
}

static void test_what_a_binding_leaves_out_costs_nothing(void **state) {
  (void)state;
  int64_t slots[] = {1};
  struct cct_binding binding = {.slots = slots};
  struct cct_pricing pricing = {.profile = &profile, .column = &profile.clear, .has_multicast = 1};
  add((struct cct_op){.kind = CCT_OP_CASE, .when = {cct_program_add_slot(program, "form", 1), 1}});
  int graph = add((struct cct_op){.kind = CCT_OP_GRAPH});
  int inner = add((struct cct_op){.kind = CCT_OP_LAUNCH, .host = -1});
  add((struct cct_op){.kind = CCT_OP_END});
  add((struct cct_op){.kind = CCT_OP_END});
  int outside = add((struct cct_op){.kind = CCT_OP_LAUNCH});
  assert_int_equal(cct_price(&pricing, job, program, &binding, 0, durations), CCT_OK);
  int64_t launch_ns = durations[graph].submit_ns;
  assert_true(launch_ns > 0 && durations[inner].run_ns > 0);
  slots[0] = 2;
  assert_int_equal(cct_price(&pricing, job, program, &binding, 0, durations), CCT_OK);
  assert_int_equal(durations[graph].submit_ns, 0);
  assert_int_equal(durations[inner].run_ns, 0);
  assert_true(durations[outside].run_ns > 0 && durations[outside].submit_ns > 0);
}

static void test_refusals(void **state) {
  (void)state;
  struct cct_op op = gemm(8, 64, 64, 1);
  op.gemm.type = CCT_TYPE_NVFP4;
  int id = add(op);
  assert_int_equal(price_with(1, NULL), CCT_UNSUPPORTED);
  program->ops[id].gemm.type = CCT_TYPE_BF16;
  id = add(collective(CCT_COLL_REDUCE, 0, 8, CCT_ALGORITHM_AUTO));
  assert_int_equal(price_with(1, NULL), CCT_UNSUPPORTED);
  program->ops[id].collective.kind = CCT_COLL_ALL_REDUCE;
  id = add(gemm(INT64_C(1) << 60, 4096, 4096, 1));
  assert_int_equal(price_with(1, NULL), CCT_USAGE);
  program->ops[id].gemm.m = cct_constant(8);
  job->ranks = job->roles[0].count = 16;
  assert_int_equal(price_with(1, NULL), CCT_UNSUPPORTED); /* 16 ranks, 8 GPUs, no net */
}

/* Without a choice the library's own number of channels, and what a probe called its own; with one just its rows. */
static void test_a_choice_leaves_its_rows(void **state) {
  (void)state;
  static const struct {
    const char *choice;
    int64_t ns; /* of 7e6 wire bytes among 8; 0: no row */
  } expected[] = {{"", 40000},
                  {"default/default/default", 40000},
                  {"ring/default/default", 22500},
                  {"RING/ll/default", 22500},
                  {"default/ll/default", 22500},
                  {"ring/simple/default", 0},
                  {"default/default/32", 14000},
                  {"ring/ll/32", 14000},
                  {"tree/ll/32", 0}};
  struct cct_collective_cost chosen[] = {ROW(CCT_COLL_ALL_REDUCE, 8, "auto", 5, 5, 200),
                                         ROW(CCT_COLL_ALL_REDUCE, 8, "Ring", 5, 5, 400),
                                         ROW(CCT_COLL_ALL_REDUCE, 8, "Ring", 4, 4, 700)};
  struct cct_profile own = profile;
  strcpy(chosen[1].protocol, "LL");
  strcpy(chosen[2].protocol, "LL");
  chosen[2].channels = 32;
  own.clear.collectives = chosen;
  own.clear.n_collectives = 3;
  int id = add(collective(CCT_COLL_ALL_REDUCE, 0, 4000000, CCT_ALGORITHM_AUTO));
  struct cct_pricing pricing = {.profile = &own, .column = &own.clear};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    strcpy(job->groups[0].choice, expected[i].choice);
    enum cct_status status = cct_price(&pricing, job, program, &(struct cct_binding){0}, 0, durations);
    if (status != (expected[i].ns ? CCT_OK : CCT_UNSUPPORTED) || (!status && durations[id].run_ns != expected[i].ns))
      fail_msg("'%s': %d, %lld ns", expected[i].choice, status, (long long)durations[id].run_ns);
  }
}

int main(void) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(test_gemm_roofline),
      CASE(test_a_choice_leaves_its_rows),
      CASE(test_other_work),
      CASE(test_copies),
      CASE(test_collective_rows),
      CASE(test_p2p_kernels),
      CASE(test_traffic_matrix),
      CASE(test_beyond_the_nvlink_domain),
      CASE(test_a_bounce_copy_is_priced_by_the_emulated_column),
      CASE(test_brackets_and_delays),
      CASE(test_what_a_binding_leaves_out_costs_nothing),
      CASE(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
