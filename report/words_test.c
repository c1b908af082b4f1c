/* SPDX-License-Identifier: Apache-2.0
 * What a reader reads: names that tell cells apart, what is said once, and when a mean is not given. */
#include <math.h>
#include <stdio.h>

#include "report/figures.h"
#include "report/names.h"
#include "report/report_made_test.h"
#include "report/verdict.h"

#define STEP(workload, model, layout, rest)                                                                            \
  "{\"allreduce\":\"nccl\",\"layout\":\"" layout "\",\"model\":\"" model "\",\"np\":8," rest                           \
  ",\"workload\":\"" workload "\"}"
#define DECODE(layout, batch, graph)                                                                                   \
  STEP("decode", "minimax-m2", layout, "\"batch\":" #batch ",\"combine_type\":\"bf16\",\"graph\":\"" graph "\"")

struct cell {
  const char *key;
  double added; /* per cent */
};

static void predict(const struct cell *cells, int n) {
  for (int round = 0; round < 2; round++)
    for (int arm = 0; arm < 2; arm++) {
      struct cct_block *block = fixture_block(arm ? "emulated:b200x8-tdx" : "off", 0, round);
      for (int i = 0; i < n; i++) {
        double value = 1000 * (arm ? 1 + cells[i].added / 100 : 1);
        fixture_cell(block, cells[i].key, "predicted", (const double[]){value, value}, 2, 2);
      }
      add(block);
    }
  make();
}

static const struct cell some[] = {
    {DECODE("tp=8", 8, "full"), 4},
    {DECODE("ep=8,dp=8", 8, "full"), 1},
    {DECODE("tp=2,ep=8,dp=4", 8, "full"), 2},
    {DECODE("tp=8", 32, "full"), 5},
    {DECODE("tp=8", 8, "none"), 700},
    {STEP("train", "minimax-m2", "tp=8", "\"graph\":\"none\",\"seq_len\":4096"), 3},
    {STEP("train", "qwen3-8b", "tp=8", "\"graph\":\"none\",\"seq_len\":4096"), 6},
};
enum {
  N_SOME = sizeof some / sizeof *some
};

static void names_say_what_differs(void **state) {
  (void)state;
  static const char *const titles[] = {"decode minimax-m2 tp=8",
                                       "decode minimax-m2 ep=8,dp=8",
                                       "decode minimax-m2 tp=2,ep=8,dp=4",
                                       "decode minimax-m2 tp=8, batch 32",
                                       "decode minimax-m2 tp=8, graph none",
                                       "train minimax-m2 tp=8",
                                       "train qwen3-8b tp=8"};
  predict(some, N_SOME);
  for (int i = 0; i < N_SOME; i++)
    assert_string_equal(report.cells[i].title, titles[i]);
  struct cct_text shared = {0};
  char name[160];
  cct_names_shared(&report, &shared);
  assert_string_equal(shared.s,
                      "all cells: allreduce nccl, combine_type bf16, graph none (train), np 8, seq_len 4096; unless "
                      "named: batch 8, graph full (decode)");
  cct_cell_name(&report, 2, "layout", name, sizeof name);
  assert_string_equal(name, "decode minimax-m2");
  cct_text_free(&shared);
}

/* Cells that differ only in whether they have a key at all: leaving the usual value out would make them one. */
static void a_missing_key_tells_too(void **state) {
  (void)state;
  static const struct cell cells[] = {
      {STEP("decode", "m", "tp=8", "\"batch\":8"), 1},
      {STEP("decode", "m", "tp=4,dp=2", "\"batch\":8"), 1},
      {STEP("decode", "m", "tp=8", "\"graph\":\"full\""), 1},
  };
  predict(cells, 3);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < i; j++)
      assert_string_not_equal(report.cells[i].title, report.cells[j].title);
}

/* What a cell lacks is not said of all cells. */
static void what_some_lack_is_not_of_all(void **state) {
  (void)state;
  static const struct cell cells[] = {
      {STEP("serve", "m", "dp=4", "\"batch\":4"), 1},
      {STEP("serve", "m", "dp=4", "\"disaggregate\":\"2:2\",\"kv_route\":\"host\",\"batch\":4"), 1},
      {STEP("serve", "m", "dp=4", "\"disaggregate\":\"2:2\",\"kv_route\":\"p2p\",\"batch\":4"), 1},
  };
  struct cct_text shared = {0};
  predict(cells, 3);
  cct_names_shared(&report, &shared);
  assert_string_equal(
      shared.s, "all cells: serve, m, dp=4, allreduce nccl, batch 4, np 8; where a cell has one: disaggregate 2:2");
  cct_text_free(&shared);
}

static void one_collective_speaks_for_its_workload(void **state) {
  (void)state;
  static const struct cell cells[] = {
      {"{\"bytes\":4096,\"collective\":\"all_reduce\",\"np\":8,\"workload\":\"collective\"}", 10},
      {"{\"bytes\":1048576,\"collective\":\"all_reduce\",\"np\":8,\"workload\":\"collective\"}", 20},
      {"{\"bytes\":4096,\"collective\":\"all_to_all\",\"np\":8,\"workload\":\"collective\"}", 30},
  };
  predict(cells, 3);
  assert_int_equal(cct_names_kinds(&report), 2);
  assert_string_equal(report.cells[1].title, "all_reduce, 1 MiB");
  assert_string_equal(cct_kind_name(&report, 1), "all_to_all");
}

static void table_fits_a_terminal(void **state) {
  (void)state;
  struct cct_text text = {0};
  predict(some, N_SOME);
  cct_report_to_table(&report, &text);
  for (const char *line = text.s; *line; line += strcspn(line, "\n") + 1)
    if (strcspn(line, "\n") > 80)
      fail_msg("%.*s", (int)strcspn(line, "\n"), line);
  assert_null(strstr(strstr(text.s, "predicted") + 1, "slower   predicted"));
  cct_text_free(&text);
}

static char *verdict_of(enum cct_verdict_part part, char *out, size_t size) {
  struct cct_text text = {0};
  cct_verdict_text(&report, part, &text);
  snprintf(out, size, "%s", text.s);
  cct_text_free(&text);
  return out;
}

static void no_mean_over_what_differs_much(void **state) {
  (void)state;
  char text[4096];
  predict(some, N_SOME);
  verdict_of(CCT_VERDICT_HOW_MUCH, text, sizeof text);
  assert_null(strstr(text, "mean over 7"));
  assert_non_null(strstr(text, "decode: time +1.0 to +700.0 %, median +4.0 %, over 5 cells"));
  assert_non_null(strstr(text, "Most: decode minimax-m2 tp=8, graph none, time +700.0 %, throughput -87.5 %"));
  assert_non_null(strstr(text, "pays 700 times what the cheapest pays"));
}

static void a_mean_over_what_is_alike(void **state) {
  (void)state;
  char text[4096];
  predict(some, 4);
  assert_non_null(
      strstr(verdict_of(CCT_VERDICT_HOW_MUCH, text, sizeof text), "Geometric mean over 4 steps: time +3.0 %"));
}

static void what_is_predicted_has_no_interval(void **state) {
  (void)state;
  char text[4096];
  struct cct_json *document = NULL;
  predict(some, N_SOME);
  assert_null(strchr(verdict_of(CCT_VERDICT_HOW_MUCH, text, sizeof text), '['));
  assert_non_null(strstr(verdict_of(CCT_VERDICT_HOW_SURE, text, sizeof text), "No intervals"));
  assert_int_equal(cct_report_to_json(&report, NULL, &document), CCT_OK);
  const struct cct_json *row = cct_json_element(cct_json_member(document, "cells"), 0);
  assert_int_equal(cct_json_type(cct_json_member(row, "ci95_pct")), CCT_JSON_NULL);
  assert_int_equal(cct_json_type(cct_json_member(row, "smallest_visible_pct")), CCT_JSON_NULL);
  assert_string_equal(cct_json_string(cct_json_member(row, "verdict")), "slower");
  cct_json_free(document);
}

#define SERVE(rest) "{" rest "\"layout\":\"tp=1\",\"model\":\"m\",\"workload\":\"serve\"}"

/* Cells of which one has requests that come at a rate: `open` and `closed` per cent more time a token, and of e2e. */
static void serve(double closed, double open) {
  for (int i = 0; i < 4; i++) {
    int arm = i % 2;
    struct cct_block *block = fixture_block(arm ? "emulated:b200x8-tdx" : "off", 0, i / 2);
    double c = arm ? 1 + closed / 100 : 1, o = arm ? 1 + open / 100 : 1;
    fixture_serving(block, SERVE("\"arrivals\":\"closed\",\"concurrency\":4,"), "predicted", 20 * c, 4 * c, 2, 1000 / c,
                    arm ? 4 : 5);
    fixture_metric(block, (struct cct_metric){"submissions", "a step", "lower"}, (const double[]){arm ? 30 : 3}, 1);
    fixture_metric(block, (struct cct_metric){"reserved", "bytes", "lower"}, (const double[]){arm ? 30 : 40}, 1);
    fixture_serving(block, SERVE("\"arrivals\":\"seconds\",\"request_rate\":4,"), "predicted", 20 * o, 4 * o, 2, 100,
                    4);
    add(block);
  }
  make();
}

/* A throughput that is the rate at which requests come is no cell's cost, and takes nobody else's away. */
static void each_kind_by_its_own(void **state) {
  (void)state;
  char text[4096];
  struct cct_json *document = NULL;
  serve(25, 10);
  verdict_of(CCT_VERDICT_HOW_MUCH, text, sizeof text);
  assert_non_null(strstr(text, "serve: time +25.0 %, one cell."));
  assert_non_null(strstr(text, "serve at a rate: time +10.0 %, one cell."));
  assert_non_null(strstr(text, "output_tok_s, time +25.0 %, throughput -20.0 %.\n"));
  assert_non_null(
      strstr(text, "Geometric mean over 2 cells: time +17.3 %, throughput -20.0 % over the 1 whose requests do not "
                   "come at a rate.\n"));
  assert_int_equal(cct_report_to_json(&report, NULL, &document), CCT_OK);
  const struct cct_json *mean =
      cct_json_element(cct_json_member(cct_json_member(document, "summary"), "geometric_mean"), 0);
  near(cct_json_number(cct_json_member(mean, "throughput_loss_pct")), 20, 1e-9);
  assert_int_equal(cct_json_integer(cct_json_member(mean, "throughput_cells")), 1);
  cct_json_free(document);
  start_again();
  serve(10, 25); /* the costliest is the one at a rate */
  verdict_of(CCT_VERDICT_HOW_MUCH, text, sizeof text);
  assert_non_null(strstr(text, "e2e, time +25.0 %.\n"));
}

static const struct cct_json *row_of(const struct cct_json *document, const char *metric) {
  const struct cct_json *rows = cct_json_member(document, "cells");
  size_t i = 0;
  while (strcmp(cct_json_string(cct_json_member(cct_json_element(rows, i), "metric")), metric))
    i++;
  return cct_json_element(rows, i);
}

/* What is no time and no rate of work is more or fewer by what its value changed; only work has a throughput. */
static void counts_are_more_or_fewer(void **state) {
  (void)state;
  static const struct {
    const char *metric, *verdict, *line;
    double change, time, throughput; /* NAN: null */
  } rows[] = {
      {"submissions", "more", "more, +900.0 %", 900, NAN, NAN},
      {"reserved", "fewer", "fewer, -25.0 %", -25, NAN, NAN},
      {"goodput", "fewer", "fewer, -20.0 %", -20, NAN, NAN},
      {"ttft", "slower", "slower", 25, 25, NAN},
      {"ttft_p99", "slower", "slower", 25, 25, NAN},
      {"output_tok_s", "slower", "slower", -20, 25, 20},
  };
  struct cct_json *document = NULL;
  struct cct_text table = {0};
  char text[4096];
  serve(25, 10);
  assert_int_equal(cct_report_to_json(&report, NULL, &document), CCT_OK);
  cct_report_to_table(&report, &table);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct cct_json *row = row_of(document, rows[i].metric);
    const double expected[] = {rows[i].change, rows[i].time, rows[i].throughput};
    static const char *const keys[] = {"change_pct", "time_overhead_pct", "throughput_loss_pct"};
    assert_string_equal(cct_json_string(cct_json_member(row, "verdict")), rows[i].verdict);
    for (int k = 0; k < 3; k++)
      if (isnan(expected[k]))
        assert_int_equal(cct_json_type(cct_json_member(row, keys[k])), CCT_JSON_NULL);
      else
        near(cct_json_number(cct_json_member(row, keys[k])), expected[k], 1e-9);
    char name[64];
    snprintf(name, sizeof name, ", %s ", rows[i].metric);
    const char *line = strstr(table.s, name);
    assert_non_null(line);
    const char *verdict = strstr(line, rows[i].line);
    assert_true(verdict && verdict < strchr(line, '\n'));
  }
  cct_json_free(document);
  cct_text_free(&table);
  verdict_of(CCT_VERDICT_HOW_SURE, text, sizeof text);
  assert_non_null(strstr(text, "slower, 0 faster, 1 more, 2 fewer, 2 not told apart (~)"));
}

static void a_name_loses_its_middle(void **state) {
  (void)state;
  struct cct_figure figure = {0};
  cct_figure_field(&figure, "decode a-very-long-model-name tp=2,ep=8,dp=4, batch 128", 21, "\n");
  assert_string_equal(figure.data.s, "decode a-v\u2026 batch 128\n");
  cct_figure_free(&figure);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(names_say_what_differs),       TEST(a_missing_key_tells_too),
      TEST(what_some_lack_is_not_of_all), TEST(one_collective_speaks_for_its_workload),
      TEST(table_fits_a_terminal),        TEST(no_mean_over_what_differs_much),
      TEST(a_mean_over_what_is_alike),    TEST(what_is_predicted_has_no_interval),
      TEST(each_kind_by_its_own),         TEST(counts_are_more_or_fewer),
      TEST(a_name_loses_its_middle),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
