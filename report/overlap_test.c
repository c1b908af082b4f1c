/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "report/overlap.h"
#include "report/report_fixture.h"
#include "report/verdict.h"

#define TRAIN                                                                                                          \
  "\"layers\":2,\"model\":\"qwen3-30b-a3b\",\"np\":2,\"overlap_grad_reduce\":\"off\",\"accumulation\":4,\"seq_len\":"  \
  "4096,\"workload\":\"train\"}"
static const char *const keys[] = {"{\"layout\":\"tp=2\",\"micro_batch\":2," TRAIN,
                                   "{\"layout\":\"ep=2,dp=2\",\"dispatch\":\"per-rank\"," TRAIN,
                                   "{\"layout\":\"ep=2,dp=2\",\"dispatch\":\"allgather\"," TRAIN,
                                   "{\"layout\":\"ep=2,dp=2\",\"dispatch\":\"per-expert\"," TRAIN};

static void add_metric(struct cct_block *block, const char *name, const double *values, int n) {
  struct cct_block_cell *cell = &block->cells[block->n_cells - 1];
  cell->metrics = realloc(cell->metrics, (size_t)(cell->n_metrics + 1) * sizeof *cell->metrics);
  struct cct_block_metric *metric = &cell->metrics[cell->n_metrics++];
  *metric = (struct cct_block_metric){.n_samples = n, .samples = calloc((size_t)n, sizeof *metric->samples)};
  snprintf(metric->metric.name, sizeof metric->metric.name, "%s", name);
  strcpy(metric->metric.unit, "us");
  strcpy(metric->metric.better, "lower");
  for (int i = 0; i < n; i++)
    metric->samples[i] = (struct cct_sample){.rank = i, .n = 1, .value = values[i]};
}

/* Two arms, `rounds` rounds, four cells, whose collectives move so many us, give or take 1 %. */
static void fill(struct cct_runs *runs, const double moved_us[4], int rounds, int with_checkpoint) {
  *runs = (struct cct_runs){0};
  for (int round = 0; round < rounds; round++)
    for (int arm = 0; arm < 2; arm++) {
      struct cct_block *block = fixture_block(arm ? "emulated:b200x8-tdx" : "off", 0, round);
      for (int c = 0; c < 4; c++) {
        double step[2] = {50000, 50000 * (1 + 0.001 * round)}, checkpoint[2] = {arm ? 650000 : 150000, checkpoint[0]};
        double spent[2] = {1000 + round, 3000 - round}, exposed[2] = {0, 1000};
        double moved = moved_us[c] * (1 + 0.005 * ((round * (c + 1) + arm) % 5 - 2));
        char key[400];
        snprintf(key, sizeof key, "%s", keys[c]);
        if (with_checkpoint)
          snprintf(key + strlen(key) - 1, sizeof key - strlen(key), ",\"checkpoint_every\":100}");
        (void)fixture_cell(block, key, "measured", step, 2, 1);
        if (with_checkpoint)
          add_metric(block, "checkpoint_step", checkpoint, 1);
        add_metric(block, "spent.all_reduce.tp", spent, 2);
        add_metric(block, "exposed.all_reduce.tp", exposed, 2);
        double parts[2] = {0.25 * moved, 0.75 * moved}, other = 5000;
        add_metric(block, "moved.all_gather.tp", parts, 1);
        add_metric(block, "moved.all_reduce.dp", &other, 1);
        add_metric(block, "moved.reduce_scatter.tp", parts + 1, 1);
      }
      assert_int_equal(cct_runs_add(runs, 0, "RUN", block), CCT_OK);
    }
}

static enum cct_order_verdict verdict_of(const struct cct_report *report, const struct cct_order *orders, int n,
                                         int less, int more) {
  const struct cct_overlap *o = report->overlap;
  for (int i = 0; i < n; i++)
    if (o->moved[orders[i].less].cell == less && o->moved[orders[i].more].cell == more && !o->moved[orders[i].less].arm)
      return orders[i].verdict;
  fail_msg("no pair %d, %d", less, more);
  return CCT_ORDER_TIE;
}

static void collectives_are_held_against_their_count(void **state) {
  (void)state;
  /* 1.41, 0.54, 0.54 and 2.15 GB are counted */
  static const struct {
    double moved_us[4];
    enum cct_order_verdict rank_tp, tp_expert, rank_gather, rank_expert;
  } rows[] = {
      {{1400, 1000, 1050, 2500}, CCT_ORDER_AS_COUNTED, CCT_ORDER_AS_COUNTED, CCT_ORDER_TIE, CCT_ORDER_AS_COUNTED},
      {{1300, 1400, 1450, 2500}, CCT_ORDER_AGAINST, CCT_ORDER_AS_COUNTED, CCT_ORDER_TIE, CCT_ORDER_AS_COUNTED},
      {{1400, 1400, 1450, 1400}, CCT_ORDER_UNCLEAR, CCT_ORDER_UNCLEAR, CCT_ORDER_TIE, CCT_ORDER_UNCLEAR},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_runs runs;
    struct cct_report report;
    struct cct_order *orders;
    int n;
    fill(&runs, rows[i].moved_us, 4, 0);
    assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
    assert_int_equal(report.n_cells, 4); /* what a trace tells is compared with nothing by the verdict */
    assert_int_equal(report.n_results, 4);
    assert_int_equal(cct_order_list(&report, &orders, &n), CCT_OK);
    assert_int_equal(n, 2 * 6);
    for (int k = 0; k < n; k++)
      assert_true(orders[k].counted >= 1 && orders[k].comparison.df > 0);
    assert_int_equal(verdict_of(&report, orders, n, 1, 0), rows[i].rank_tp);
    assert_int_equal(verdict_of(&report, orders, n, 0, 3), rows[i].tp_expert);
    assert_int_equal(verdict_of(&report, orders, n, 1, 2), rows[i].rank_gather);
    assert_int_equal(verdict_of(&report, orders, n, 1, 3), rows[i].rank_expert);
    free(orders);
    cct_report_free(&report);
    cct_runs_free(&runs);
  }
}

static void shares_and_speed_come_from_the_record(void **state) {
  (void)state;
  static const double moved_us[] = {1000, 1400, 1450, 2500};
  struct cct_runs runs;
  struct cct_report report;
  struct cct_training t;
  struct cct_json *document;
  struct cct_text html = {0};
  fill(&runs, moved_us, 3, 1);
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  assert_int_equal(report.overlap->n_exposed, 8);
  for (int i = 0; i < 8; i++) { /* means over ranks and blocks */
    assert_true(fabs(report.overlap->exposed[i].spent_us - 2000) < 1e-9);
    assert_true(fabs(report.overlap->exposed[i].exposed_us - 500) < 1e-9);
  }
  int steps = 0;
  for (int c = 0; c < report.n_cells; c++)
    if (cct_training_of(&report, c, 0, &t)) { /* 1 checkpoint of 0.1 s in 100 steps of 0.05 s */
      steps++;
      assert_true(fabs(t.step_s - 0.051) < 1e-4 && fabs(t.checkpoint_s - 0.1) < 1e-4);
      assert_true(fabs(t.tokens_s * t.step_s / (4 * 2 * 4096) - 1) < 1e-12);
      assert_true(t.hardware_tflop_s > t.model_tflop_s && t.model_tflop_s > 0);
    }
  assert_int_equal(steps, 4);
  cct_verdict_text(&report, CCT_VERDICT_HOW_MUCH, &html); /* (0.05 + 0.6 / 100) / 0.051 */
  assert_non_null(strstr(html.s, "With a step's part of its checkpoint: time +9.8 %"));
  html.length = 0;
  assert_int_equal(cct_report_to_json(&report, NULL, &document), CCT_OK);
  assert_int_equal(cct_json_size(cct_json_member(document, "training")), 8);
  assert_int_equal(cct_json_size(cct_json_member(document, "order")), 12);
  const struct cct_json *first = cct_json_element(cct_json_member(document, "collectives"), 0);
  assert_true(fabs(cct_json_number(cct_json_member(first, "hidden_pct")) - 75) < 1e-9);
  assert_int_equal(cct_page_steps(&report, &html), CCT_OK);
  assert_non_null(strstr(html.s, "all_reduce over tp"));
  assert_non_null(strstr(html.s, "as counted"));
  assert_non_null(strstr(html.s, ">25.0&#160;%"));
  cct_text_free(&html);
  cct_json_free(document);
  cct_report_free(&report);
  cct_runs_free(&runs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(collectives_are_held_against_their_count),
      cmocka_unit_test(shares_and_speed_come_from_the_record),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
