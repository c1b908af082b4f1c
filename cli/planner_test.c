/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/planner.h"

/* Options of "flag value" words. */
static struct cct_options options_of(const char *words) {
  struct cct_options options;
  char text[512], *save = NULL;
  assert_int_equal(cct_options_init(&options), CCT_OK);
  snprintf(text, sizeof text, "%s", words);
  for (char *name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save))
    assert_int_equal(cct_option_set(&options, cct_option_by_name(name), strtok_r(NULL, " ", &save), name), CCT_OK);
  return options;
}

struct plan {
  struct cct_options options;
  struct cct_planner *planner;
  struct cct_plan_row *rows;
  int n;
};

static enum cct_status try_plan(const char *words, struct plan *plan) {
  *plan = (struct plan){.options = options_of(words)};
  enum cct_status status = cct_planner_open(&plan->options, &plan->planner);
  return status ? status : cct_planner_rank(plan->planner, &plan->options, &plan->rows, &plan->n);
}

static struct plan plan_of(const char *words) {
  struct plan plan;
  if (try_plan(words, &plan))
    fail_msg("refused: %s", words);
  return plan;
}

static void free_plan(struct plan *plan) {
  free(plan->rows);
  cct_planner_close(plan->planner);
  cct_options_free(&plan->options);
}

static void layouts_are_ranked_by_confidential_throughput(void **state) {
  (void)state;
  struct plan plan = plan_of("model deepseek-r1 workload serve np 8 profile b200x8-tdx");
  assert_int_equal(plan.n, 13);
  for (int i = 0; i < plan.n; i++) {
    const struct cct_plan_row *row = &plan.rows[i];
    double sum = row->clear_ns + row->interaction_ns;
    for (int b = 0; b < CCT_BOUNDARY_COUNT; b++)
      sum += row->share_ns[b];
    assert_true(fabs(sum / row->confidential_ns - 1) < 1e-12);
    assert_true(row->clear_ns <= row->lo_ns && row->lo_ns <= row->confidential_ns &&
                row->confidential_ns <= row->hi_ns);
    assert_int_equal(row->fits, row->footprint.total <= row->room_bytes);
    assert_true(row->tokens == 32 * 1024);
    if (i == 0)
      continue;
    assert_true(row[-1].fits >= row->fits);
    if (row[-1].fits == row->fits)
      assert_true(row[-1].tokens / row[-1].confidential_ns >= row->tokens / row->confidential_ns);
  }
  free_plan(&plan);
}

/* C requests on dp replicas: ceil(C / dp) prompts, and O decode steps at that batch. */
static void serving_is_composed_of_its_steps(void **state) {
  (void)state;
  struct plan serve =
      plan_of("model qwen3-8b workload serve layouts tp=4,dp=2 concurrency 33 input-len 500 output-len 100 "
              "profile b200x8-tdx");
  struct plan decode = plan_of("model qwen3-8b workload decode layouts tp=4,dp=2 batch 17 input-len 500 output-len 100 "
                               "profile b200x8-tdx");
  struct plan prefill = plan_of("model qwen3-8b workload prefill layouts tp=4,dp=2 input-len 500 profile b200x8-tdx");
  double clear = 17 * prefill.rows->clear_ns + 100 * decode.rows->clear_ns;
  double confidential = 17 * prefill.rows->confidential_ns + 100 * decode.rows->confidential_ns;
  assert_true(fabs(serve.rows->clear_ns - clear) < 1);
  assert_true(fabs(serve.rows->confidential_ns - confidential) < 1);
  assert_true(serve.rows->tokens == 3300);
  assert_true(fabs(serve.rows->token_clear_ns - decode.rows->clear_ns) < 1);
  free_plan(&serve);
  free_plan(&decode);
  free_plan(&prefill);
}

/* The first sentence of the source: eager decoding pays by submission, one graph does not. */
static void eager_decode_pays_by_submission_and_one_graph_does_not(void **state) {
  (void)state;
  struct plan eager = plan_of("model qwen3-8b workload decode layouts tp=1 graph none profile b200x8-tdx");
  struct plan graph = plan_of("model qwen3-8b workload decode layouts tp=1 graph full profile b200x8-tdx");
  double eager_cost = eager.rows->confidential_ns / eager.rows->clear_ns;
  double graph_cost = graph.rows->confidential_ns / graph.rows->clear_ns;
  assert_true(eager_cost > 2 && graph_cost < 1.05);
  char text[256];
  assert_int_equal(cct_plan_advice(&eager.options, eager.rows, 1, text, sizeof text), 1);
  assert_non_null(strstr(text, "--graph full"));
  assert_int_equal(cct_plan_advice(&graph.options, graph.rows, 1, text, sizeof text), 0);
  free_plan(&eager);
  free_plan(&graph);
}

static void a_latency_limits_the_requests(void **state) {
  (void)state;
  struct plan loose =
      plan_of("model qwen3-8b workload serve layouts tp=8 concurrency 64 slo tpot=1000ms price 4 profile b200x8-tdx");
  struct plan tight =
      plan_of("model qwen3-8b workload serve layouts tp=8 concurrency 64 slo tpot=1us profile b200x8-tdx");
  assert_int_equal(loose.rows->slo_clear.concurrency, 64);
  assert_int_equal(loose.rows->slo_confidential.concurrency, 64);
  assert_true(loose.rows->slo_confidential.gpus > 8 && loose.rows->slo_clear.gpus == 8);
  assert_true(fabs(loose.rows->slo_confidential.price / loose.rows->slo_confidential.gpus - 4) < 1e-9);
  assert_int_equal(tight.rows->slo_clear.concurrency, 0);
  char words[200];
  double between = loose.rows->token_clear_ns; /* of 64 requests, clear: the confidential column serves fewer */
  snprintf(words, sizeof words,
           "model qwen3-8b workload serve layouts tp=8 concurrency 64 slo tpot=%.3fus profile b200x8-tdx",
           between / 1000);
  struct plan exact = plan_of(words);
  assert_int_equal(exact.rows->slo_clear.concurrency, 64);
  assert_true(exact.rows->slo_confidential.concurrency < 64);
  free_plan(&loose);
  free_plan(&tight);
  free_plan(&exact);
}

/* Closed forms of what a rank sends over tp and ep for a token in the last layer, the whole step: with n ranks an
 * all-reduce 2 (n-1)/n, one half of one (n-1)/n, of hidden states in bf16. Korthikanti et al. 2022, section 4.2.2: 8
 * halves are 4 all-reduces; with sequence parallelism two more, the gathers again. Dispatch and combine as in
 * docs/models.md, each way. */
static void link_bytes_are_those_of_the_step(void **state) {
  (void)state;
  const double dense = 2 * 4096, sparse = 2 * 2048; /* hidden states of a token */
  double none = 1; /* of a token's 8 experts of 128 is on a rank with 16 of them: C(112, 8) / C(128, 8) */
  for (int i = 0; i < 8; i++)
    none *= (112.0 - i) / (128.0 - i);
  const double per_rank = 8 * (1 - none), per_expert = 8;
  static const char *const train = "workload train seq-len 64 accumulation 2 profile b200x8-tdx";
  const struct {
    const char *words;
    double bytes;
  } rows[] = {
      {"model qwen3-8b layers 3 layouts tp=8 workload decode profile b200x8-tdx", 4 * 7 / 8. * dense},
      {"model qwen3-8b layers 3 layouts tp=8 workload prefill input-len 64 profile b200x8-tdx", 4 * 7 / 8. * dense},
      {"model qwen3-8b layers 3 layouts tp=8 workload serve profile b200x8-tdx", 4 * 7 / 8. * dense},
      {"model qwen3-8b layers 3 layouts tp=4,dp=2 workload decode allreduce oneshot profile b200x8-tdx", 2 * 3 * dense},
      {"model qwen3-8b layers 3 layouts tp=8", 10 * 7 / 8. * dense},
      {"model qwen3-8b layers 3 sequence-parallel off layouts tp=8", 8 * 7 / 8. * dense},
      {"model qwen3-8b layers 3 recompute full layouts tp=4,dp=2", 14 * 3 / 4. * dense},
      {"model qwen3-8b layers 3 weights fp8 layouts tp=8", (6 / 2. + 4) * 7 / 8. * dense},
      {"model qwen3-8b layers 3 layouts dp=8", 0},
      {"model qwen3-30b-a3b layers 3 layouts ep=8,dp=8 workload decode profile b200x8-tdx",
       2 * 7 / 8. * per_rank / 8 * sparse},
      {"model qwen3-30b-a3b layers 3 layouts ep=8,dp=8", 4 * 7 / 8. * per_expert / 8 * sparse},
      /* of 8 ranks' tokens a pair of tp has 2/8: attention's 5 halves */
      {"model qwen3-30b-a3b layers 3 layouts tp=2,ep=8,dp=4",
       4 * 7 / 8. * per_expert / 8 * sparse + 5 / 2. * sparse * 2 / 8},
      {"model qwen3-30b-a3b layers 3 layouts tp=2,ep=8,dp=4 workload prefill input-len 64 profile b200x8-tdx",
       2 * 7 / 8. * per_rank / 8 * sparse + 3 / 2. * sparse * 2 / 8},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char words[400];
    snprintf(words, sizeof words, "%s %s", rows[i].words, strstr(rows[i].words, "workload") ? "" : train);
    struct plan plan = plan_of(words);
    if (fabs(plan.rows->link_bytes - rows[i].bytes) > 1e-3 * rows[i].bytes)
      fail_msg("%s: %g bytes, not %g", words, plan.rows->link_bytes, rows[i].bytes);
    free_plan(&plan);
  }
}

static void what_cannot_be_planned_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *words;
    enum cct_status status;
  } rows[] = {
      {"model qwen3-8b workload decode profile b200x8-tdx", CCT_USAGE},
      {"model qwen3-8b workload decode profile b200x8-tdx np 7", CCT_OK},     /* seven replicas */
      {"model qwen3-8b workload decode profile b200x8-tdx np 16", CCT_USAGE}, /* no network in the profile */
      {"model qwen3-8b workload decode profile b200x8-tdx layouts tp=8 np 4", CCT_USAGE},
      {"model qwen3-8b workload decode profile b200x8-tdx layouts tp=5", CCT_USAGE},
      {"model qwen3-8b workload decode profile b200x8-tdx layouts tp=8/", CCT_USAGE},
      {"model qwen3-8b workload decode profile b200x8-tdx layouts tp=2,pp=2", CCT_UNSUPPORTED},
      {"model qwen3-8b workload serve profile b200x8-tdx np 8 slo tpot=50", CCT_USAGE},
      {"model qwen3-8b workload serve profile b200x8-tdx np 8 slo ttft=50ms", CCT_USAGE},
      {"model nothing workload decode profile b200x8-tdx np 8", CCT_USAGE},
      {"model qwen3-8b workload decode profile nothing np 8", CCT_USAGE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct plan plan;
    enum cct_status status = try_plan(rows[i].words, &plan);
    if (status != rows[i].status)
      fail_msg("%s: %s", rows[i].words, cct_status_name(status));
    free_plan(&plan);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layouts_are_ranked_by_confidential_throughput),
      cmocka_unit_test(serving_is_composed_of_its_steps),
      cmocka_unit_test(eager_decode_pays_by_submission_and_one_graph_does_not),
      cmocka_unit_test(a_latency_limits_the_requests),
      cmocka_unit_test(link_bytes_are_those_of_the_step),
      cmocka_unit_test(what_cannot_be_planned_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
