/* SPDX-License-Identifier: Apache-2.0
 * What is exported reads back: report.json and report.csv. */
#include "report/report_made_test.h"

static void json_reads_back(void **state) {
  (void)state;
  two_arms(0, KEY);
  make();
  struct cct_json *document = NULL, *again = NULL;
  struct cct_text text = {0};
  assert_int_equal(cct_report_to_json(&report, "out/index.html", &document), CCT_OK);
  assert_int_equal(cct_json_print(document, &text), CCT_OK);
  assert_int_equal(cct_json_parse(text.s, text.length, "report.json", &again), CCT_OK);
  assert_string_equal(cct_json_string(cct_json_member(again, "tool")), "cctax " CCT_VERSION);
  const struct cct_json *row = cct_json_element(cct_json_member(again, "cells"), 0);
  static const char *const keys[] = {"workload",
                                     "model",
                                     "layout",
                                     "parameters",
                                     "metric",
                                     "unit",
                                     "better",
                                     "factor",
                                     "baseline",
                                     "arm",
                                     "label",
                                     "n",
                                     "blocks",
                                     "boots",
                                     "baseline_median",
                                     "median",
                                     "time_overhead_pct",
                                     "throughput_loss_pct",
                                     "ci95_pct",
                                     "smallest_visible_pct",
                                     "verdict",
                                     "allowed",
                                     "boundaries_pct",
                                     "boundaries_off_pct",
                                     "interaction_pct",
                                     "residual_pct"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (!cct_json_member(row, keys[i]))
      fail_msg("%s is missing", keys[i]);
  double time = cct_json_number(cct_json_member(row, "time_overhead_pct"));
  double ratio =
      cct_json_number(cct_json_member(row, "median")) / cct_json_number(cct_json_member(row, "baseline_median"));
  near(100 * (ratio - 1), time, 1e-6);
  near(cct_json_number(cct_json_member(row, "throughput_loss_pct")), 100 - 100 / ratio, 1e-6);
  const struct cct_json *ci = cct_json_member(row, "ci95_pct");
  assert_true(cct_json_number(cct_json_element(ci, 0)) < time && time < cct_json_number(cct_json_element(ci, 1)));
  assert_int_equal(cct_json_size(cct_json_member(row, "boundaries_pct")), 5);
  assert_int_equal(cct_json_integer(cct_json_member(cct_json_member(row, "parameters"), "batch")), 8);
  assert_string_equal(cct_json_string(cct_json_member(again, "report")), "out/index.html");
  cct_text_free(&text);
  cct_json_free(document);
  cct_json_free(again);
}

static void csv_has_one_width(void **state) {
  (void)state;
  two_arms(0, "{\"layout\":\"tp=8\",\"model\":\"a,\\\"b\\\"\\nc\",\"workload\":\"decode\"}");
  make();
  struct cct_text csv = {0};
  assert_int_equal(cct_report_to_csv(&report, &csv), CCT_OK);
  int columns[2] = {1, 1}, row = 0, is_quoted = 0;
  for (const char *p = csv.s; *p && row < 2; p++) {
    is_quoted ^= *p == '"';
    columns[row] += *p == ',' && !is_quoted;
    row += *p == '\n' && !is_quoted;
  }
  assert_int_equal(row, 2);
  assert_int_equal(columns[0], columns[1]);
  assert_non_null(strstr(csv.s, "\"a,\"\"b\"\"\nc\""));
  cct_text_free(&csv);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(json_reads_back),
      TEST(csv_has_one_width),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
