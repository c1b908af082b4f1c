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
      cmocka_unit_test(what_cannot_be_planned_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
