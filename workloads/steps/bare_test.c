/* SPDX-License-Identifier: Apache-2.0
 * Steps without a model: one collective, probes, and what a sample of them counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/program/counts.h"
#include "workloads/steps/step_fixture.h"

/* A collective and the probes: what is counted is what was asked for, eager and in one graph. */
static void bare_steps_hold_what_was_asked(void **state) {
  (void)state;
  static const struct {
    const char *words;
    int submissions, graphs, syncs, collectives;
  } rows[] = {
      {"workload collective np 8 collective all_reduce bytes 1M calls 20", 20, 0, 0, 20},
      {"workload collective np 8 collective all_gather bytes 1M calls 20 graph full", 1, 1, 0, 20},
      {"workload collective np 4 collective send_recv bytes 4K calls 3", 3, 0, 0, 0},
      {"workload collective np 4 collective all_reduce allreduce oneshot type fp32", 1, 0, 0, 1},
      {"workload collective np 1", 1, 0, 0, 1},
      {"workload collective np 4 iters 20", 1, 0, 0, 1},
      {"workload collective np 4 iters 20 agg-iters 3 op max place in", 1, 0, 0, 3},
      {"workload collective np 4 iters 20 agg-iters 3 cudagraph 5", 1, 1, 0, 60},
      {"workload collective np 4 collective send_recv iters 2 agg-iters 3 cudagraph 5", 1, 1, 0, 0},
      {"workload collective np 4 collective broadcast root 3 iters 1 buffer-bytes 1G local-register ce", 1, 0, 0, 1},
      {"workload probe np 1 probe submission calls 100", 100, 0, 0, 0},
      {"workload probe np 1 probe sync calls 2", 2, 0, 2, 0},
      {"workload probe np 1 probe graph calls 64", 1, 1, 0, 0},
      {"workload probe np 2 probe decode-loop", 2, 1, 1, 0},
      {"workload probe np 1 probe h2d bytes 64K memory pageable", 1, 0, 0, 0},
      {"workload probe np 1 probe d2h memory mapped", 1, 0, 0, 0},
      {"workload probe np 1 probe d2d", 1, 0, 0, 0},
      {"workload probe np 2 probe p2p bytes 1G", 1, 0, 0, 0},
      {"workload probe np 1 probe gemm gemm 128x4096x1024 type fp8", 1, 0, 0, 0},
      {"workload probe np 1 probe hbm bytes 1G", 1, 0, 0, 0},
      {"workload collective np 8 collective all_reduce calls 3 close call", 3, 0, 3, 3},
      {"workload collective np 8 collective all_reduce calls 3 close call graph full", 1, 1, 1, 3},
      {"workload probe np 1 probe h2d close call calls 2", 2, 0, 2, 0},
      {"workload probe np 1 probe graph calls 64 close call", 1, 1, 1, 0},
      {"workload probe np 1 probe bare-sync calls 5", 0, 0, 5, 0},
      {"workload probe np 1 probe floor calls 7", 7, 0, 0, 0},
      {"workload probe np 1 probe blocked-d2h memory pageable", 1, 0, 0, 0},
      {"workload probe np 1 probe both bytes 4K", 2, 0, 2, 0},
      {"workload probe np 1 probe streams bytes 4K calls 3", 3, 0, 3, 0},
      {"workload probe np 1 probe hostwork calls 2", 0, 0, 0, 0},
      {"workload probe np 1 probe experiment experiment host_register/4K", 1, 0, 0, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_counts c = cct_fixture_count(rows[i].words, NULL);
    int64_t collectives = 0;
    for (int k = 0; k < CCT_COLL_COUNT; k++)
      collectives += c.collectives[k];
    if (c.submissions != rows[i].submissions || c.graphs != rows[i].graphs || c.syncs != rows[i].syncs ||
        collectives != rows[i].collectives)
      fail_msg("%s: %d submissions, %d graphs, %d syncs, %d collectives", rows[i].words, (int)c.submissions,
               (int)c.graphs, (int)c.syncs, (int)collectives);
  }
  struct cct_counts gemm = cct_fixture_count("workload probe np 1 probe gemm gemm 128x4096x1024 type fp8", NULL);
  cct_fixture_same(gemm.flops, 2.0 * 128 * 4096 * 1024, "flops");
  static const char *const bad[] = {"workload collective collective all_reduce",
                                    "workload collective np 1 collective send_recv",
                                    "workload collective np 4 op all",
                                    "workload collective np 4 collective broadcast root 4",
                                    "workload collective np 4 collective all_gather op max",
                                    "workload collective np 4 root 1",
                                    "workload collective np 4 agg-iters 2",
                                    "workload collective np 4 iters 2 calls 2",
                                    "workload collective np 4 iters 2 bytes 2M buffer-bytes 1M",
                                    "workload probe np 1 probe p2p",
                                    "workload probe np 1 probe streams calls 17",
                                    "workload probe np 1 probe experiment",
                                    "workload probe np 1 probe experiment experiment host_registre/4K",
                                    "workload probe np 1 probe experiment experiment host_register",
                                    "workload probe np 1 probe experiment experiment host_register/x",
                                    "workload probe np 1 probe gemm gemm 8x8",
                                    "workload probe np 1 probe gemm gemm 8x8x0",
                                    "workload probe np 1 probe gemm gemm 1x1x1x1",
                                    "workload collective np 4 gemm 8x64x64",
                                    "workload collective np 4 iters 1 gemm 8x64x64",
                                    "workload collective np 4 iters 1 cudagraph 1 gemm 8x64",
                                    "workload collective np 4 comm-choice ring",
                                    "workload collective np 4 comm-choice ring/ll/65",
                                    "workload collective np 4 comm-choice ring/ll/4/4",
                                    "workload collective np 4 comm-choice ring//4",
                                    "workload collective np 4 collective all_to_allv skew /nowhere.json"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct cct_step step;
    if (!cct_fixture_build(bad[i], &step))
      fail_msg("accepted: %s", bad[i]);
  }
}

static void a_skewed_exchange_binds_its_matrix(void **state) {
  (void)state;
  struct cct_step step;
  assert_int_equal(
      cct_fixture_build("workload collective np 4 collective all_to_allv bytes 1000003 skew zipf:1", &step), CCT_OK);
  const struct cct_matrix *matrix = step.bindings[3].matrices;
  int64_t sum = 0, most = 0;
  for (int j = 0; j < 4; j++) {
    sum += matrix->bytes[j];
    most = matrix->bytes[j] > most ? matrix->bytes[j] : most;
    assert_int_equal(matrix->bytes[j], matrix->bytes[12 + j]);
  }
  assert_int_equal(sum, 1000003);
  assert_true(most > 450000); /* 1 / (1 + 1/2 + 1/3 + 1/4) = 0.48 */
  cct_step_free(&step);
}

/* Eager, a sample repeats one iteration; with a graph its launches, each of all iterations. */
static void a_sample_counts_as_nccl_tests_does(void **state) {
  (void)state;
  struct cct_step step;
  assert_int_equal(cct_fixture_build("workload collective np 4 iters 20 agg-iters 3", &step), CCT_OK);
  assert_true(step.repetitions == 20 && step.operations == 3 && step.checks == 1);
  assert_false(step.job->roles[0].program->buffers[0].is_rotated);
  cct_step_free(&step);
  assert_int_equal(
      cct_fixture_build("workload collective np 4 iters 20 agg-iters 3 cudagraph 5 check 0 buffer-bytes 8M", &step),
      CCT_OK);
  assert_true(step.repetitions == 5 && step.operations == 60 && step.checks == 0);
  assert_true(step.job->roles[0].program->buffers[0].is_rotated && step.job->roles[0].program->ops[0].graph.is_fresh);
  cct_step_free(&step);
}

/* The choice is the communicator's; the product is no part of the count that a sample is divided by. */
static void a_collective_can_be_chosen_and_have_company(void **state) {
  (void)state;
  struct cct_step step;
  struct cct_choice choice;
  assert_int_equal(
      cct_fixture_build("workload collective np 4 iters 3 cudagraph 2 gemm 128x256x512 type fp32 comm-choice "
                        "tree/default/32",
                        &step),
      CCT_OK);
  const struct cct_program *program = step.job->roles[0].program;
  assert_true(step.repetitions == 2 && step.operations == 3);
  assert_int_equal(program->n_ops, 1 + 3 * 2 + 1);
  assert_true(program->ops[2].kind == CCT_OP_GEMM && program->ops[2].gemm.type == CCT_TYPE_BF16);
  assert_int_not_equal(program->ops[1].lane, program->ops[2].lane);
  assert_true(cct_choice_parse(step.job->groups[0].choice, &choice));
  assert_string_equal(choice.algorithm, "tree");
  assert_string_equal(choice.protocol, "");
  assert_int_equal(choice.channels, 32);
  cct_step_free(&step);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bare_steps_hold_what_was_asked),
      cmocka_unit_test(a_skewed_exchange_binds_its_matrix),
      cmocka_unit_test(a_sample_counts_as_nccl_tests_does),
      cmocka_unit_test(a_collective_can_be_chosen_and_have_company),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
