/* SPDX-License-Identifier: Apache-2.0
 * Serving cells by load: which stand on one line, what of them is drawn, and what report.json says of it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/figure_parts.h"
#include "report/figures.h"
#include "report/load.h"
#include "report/report_made_test.h"
#include "tests/scratch.h"

#define MODEL "\"layout\":\"tp=1\",\"model\":\"qwen3-8b\",\"slo\":\"ttft=200ms,tpot=10ms\",\"workload\":\"serve\"}"

static struct cct_figures figures;

/* Blocks of one round lie 1 % above those of the round before; the arm takes twice the time and is never good. */
static void make_loads(const char *const *keys, int n_keys, int rounds) {
  for (int round = 0; round < rounds; round++)
    for (int arm = 0; arm < 2; arm++) {
      struct cct_block *block = fixture_block(arm ? "emulated:b200x8-tdx" : "off", 0, round);
      for (int k = 0; k < n_keys; k++) {
        double shift = pow(1.01, round) * (arm ? 2 : 1) * (1 + k);
        fixture_serving(block, keys[k], arm ? "emulated" : "measured", 20 * shift, 4 * shift, 30, 1000 / shift,
                        arm ? 0 : 5 / shift);
      }
      add(block);
    }
  make();
  assert_int_equal(cct_figures_make(&report, &figures), CCT_OK);
}

static int clear(void **state) {
  cct_figures_free(&figures);
  return tear_down(state);
}

/* Points come sorted; a cell that differs in more than the axis is on another line, and one point is no line. */
static void lines_hold_all_but_the_axis(void **state) {
  (void)state;
  static const char *const keys[] = {
      "{\"arrivals\":\"closed\",\"concurrency\":16," MODEL,
      "{\"arrivals\":\"closed\",\"concurrency\":4," MODEL,
      "{\"arrivals\":\"closed\",\"concurrency\":64," MODEL,
      "{\"arrivals\":\"closed\",\"concurrency\":4,\"host_us\":900," MODEL,
      "{\"arrivals\":\"closed\",\"concurrency\":8,\"host_us\":900," MODEL,
      "{\"arrivals\":\"closed\",\"concurrency\":8,\"host_us\":700," MODEL,
      "{\"arrivals\":\"seconds\",\"request_rate\":2.5," MODEL,
      "{\"arrivals\":\"seconds\",\"request_rate\":0.5," MODEL,
  };
  make_loads(keys, 8, 2);
  struct cct_loads loads;
  assert_int_equal(cct_loads_find(&report, &loads), CCT_OK);
  assert_int_equal(loads.n, 3);
  assert_string_equal(loads.items[0].axis, "concurrency");
  assert_int_equal(loads.items[0].n, 3);
  near(loads.items[0].points[0].x, 4, 0);
  near(loads.items[0].points[2].x, 64, 0);
  assert_int_equal(loads.items[1].n, 2);
  assert_non_null(strstr(loads.items[1].key, "\"host_us\":900"));
  assert_string_equal(loads.items[2].axis, "request_rate");
  near(loads.items[2].points[0].x, 0.5, 0);
  cct_loads_free(&loads);
  static const char *const names[] = {"load_concurrency", "load_concurrency_2", "load_request_rate"};
  for (int i = 0; i < 3; i++) {
    assert_string_equal(figures.items[i].name, names[i]); /* before every other figure */
    assert_non_null(strstr(figures.items[i].data.s, "limit 200"));
  }
  assert_null(strstr(figures.items[2].data.s, "host_us"));
  assert_non_null(strstr(figures.items[1].data.s, "qwen3-8b tp=1, host_us 900"));
  assert_non_null(strstr(figures.items[2].data.s, "requests that come a second"));
}

static void values_are_the_arms_own(void **state) {
  (void)state;
  static const char *const keys[] = {"{\"arrivals\":\"closed\",\"concurrency\":1," MODEL,
                                     "{\"arrivals\":\"closed\",\"concurrency\":2," MODEL};
  struct cct_loads loads;
  struct cct_load_seen seen;
  make_loads(keys, 2, 5);
  assert_int_equal(cct_loads_find(&report, &loads), CCT_OK);
  const struct cct_load_point *point = &loads.items[0].points[1];
  double half = 2.776445 * log(1.01) * sqrt(2.5 / 5); /* t of 4 degrees, blocks 1 % apart */
  assert_int_equal(cct_load_see(&report, point, CCT_LOAD_TTFT, 1, &seen), CCT_OK);
  near(seen.value, 80 * 1.01 * 1.01, 1e-9); /* the middle of five rounds */
  near(log(seen.hi / seen.value), half, 1e-6);
  near(log(seen.value / seen.lo), half, 1e-6);
  assert_int_equal(cct_load_see(&report, point, CCT_LOAD_OUTPUT_TOK_S, 1, &seen), CCT_OK);
  near(seen.value, 250 / 1.01 / 1.01, 1e-9);
  near(log(seen.hi / seen.value), half, 1e-6);
  near(log(seen.value / seen.lo), half, 1e-6);
  assert_int_equal(cct_load_see(&report, point, CCT_LOAD_TTFT_P99, 0, &seen), CCT_OK);
  near(seen.value, 40 * 1.0201 * (1 + 29 * 0.98), 1e-6);
  /* Where no request kept its limits that is none a second, no gap in the line, and no ratio in the table. */
  for (int r = 0; r < report.n_results; r++)
    if (!strcmp(report.cells[report.results[r].cell].metric.name, "goodput")) {
      assert_int_equal(report.results[r].verdict, CCT_VERDICT_REFUSED);
      assert_non_null(strstr(report.results[r].reason, "0 in 5 of 5 blocks of arm 'emulated:b200x8-tdx'"));
      near(exp(-report.results[r].comparison.centre[1]), 0, 0);
    }
  assert_false(cct_report_has_failures(&report));
  assert_int_equal(cct_load_see(&report, point, CCT_LOAD_GOODPUT, 1, &seen), CCT_OK);
  near(seen.value, 0, 0);
  assert_true(isnan(seen.lo));
  assert_int_equal(cct_load_see(&report, point, CCT_LOAD_GOODPUT, 0, &seen), CCT_OK);
  near(seen.value, 2.5 / 1.0201, 1e-9);
  cct_loads_free(&loads);
}

static void report_json_has_the_rows(void **state) {
  (void)state;
  static const char *const keys[] = {"{\"arrivals\":\"closed\",\"concurrency\":1," MODEL,
                                     "{\"arrivals\":\"closed\",\"concurrency\":2," MODEL};
  struct cct_json *document;
  make_loads(keys, 2, 2);
  assert_int_equal(cct_report_to_json(&report, NULL, &document), CCT_OK);
  const struct cct_json *rows = cct_json_member(document, "load"), *row = cct_json_element(rows, 3);
  assert_int_equal(cct_json_size(rows), 4);
  assert_string_equal(cct_json_string(cct_json_member(row, "axis")), "concurrency");
  near(cct_json_number(cct_json_member(row, "concurrency")), 2, 0);
  assert_string_equal(cct_json_string(cct_json_member(row, "arm")), "emulated:b200x8-tdx");
  near(cct_json_number(cct_json_member(row, "ttft")), 80 * sqrt(1.01), 1e-9);
  near(cct_json_number(cct_json_member(row, "goodput")), 0, 0);
  assert_int_equal(cct_json_size(cct_json_member(row, "ttft_ci95")), 2);
  assert_int_equal(cct_json_type(cct_json_member(row, "goodput_ci95")), CCT_JSON_NULL);
  assert_string_equal(cct_json_string(cct_json_member(cct_json_member(row, "parameters"), "model")), "qwen3-8b");
  cct_json_free(document);
}

/* A time that spans decades has a logarithmic axis, on which 0 has no place; throughput begins at 0. */
static void axes_fit_what_they_show(void **state) {
  (void)state;
  static const char *const keys[] = {"{\"arrivals\":\"closed\",\"concurrency\":1," MODEL,
                                     "{\"arrivals\":\"closed\",\"concurrency\":2," MODEL};
  make_loads(keys, 2, 2);
  const struct cct_figure *figure = cct_figures_find(&figures, "load_concurrency");
  assert_non_null(strstr(figure->numbers.s, "array LOGY[4] = [1, 1, 0, 0]"));
  assert_non_null(strstr(figure->numbers.s, "array LIMIT[4] = [200, 10, 0, 0]"));
  assert_non_null(strstr(figure->numbers.s, "LOG = 0"));
  assert_non_null(strstr(figure->numbers.s, "array TICK[2] = [1, 2]"));
  /* A sweep names the metric whose time it shows, and an axis its ends, of values that stand too near each other. */
  assert_non_null(strstr(cct_figures_find(&figures, "sweep_concurrency")->data.s, ", output_tok_s"));
  double values[] = {4, 8, 16, 32, 64, 96, 128}, ticks[CCT_MOST_TICKS];
  assert_int_equal(cct_choose_ticks(values, 7, 1, 0.11, ticks), 6);
  near(ticks[4], 64, 0);
  near(ticks[5], 128, 0);
}

/* The places of the vertical lines of the first arm's colour above `bottom`: of solid ones, of dashed ones. */
static void find_intervals(const char *svg, double bottom, double places[2][64], int n[2]) {
  n[0] = n[1] = 0;
  for (const char *path = svg; (path = strstr(path, "<path stroke='rgb(  0, 114, 178)'")); path++) {
    const char *end = strchr(path, '>'), *dash = strstr(path, "stroke-dasharray");
    int is_dashed = dash && dash < end;
    for (const char *at = path; (at = strchr(at, 'M')) && at < end; at++) {
      double x[2], y[2];
      if (sscanf(at, "M%lf,%lf L%lf,%lf", &x[0], &y[0], &x[1], &y[1]) == 4 && fabs(x[0] - x[1]) < 1e-9 && y[0] < bottom)
        places[is_dashed][n[is_dashed]++] = x[0];
    }
  }
}

/* The intervals of a median and of its 99th percentile stand side by side, the latter dashed: they may overlap. */
static void a_tail_is_told_from_its_median(void **state) {
  (void)state;
  static const char *const keys[] = {"{\"arrivals\":\"closed\",\"concurrency\":1," MODEL,
                                     "{\"arrivals\":\"closed\",\"concurrency\":2," MODEL};
  char path[128], *svg;
  double places[2][64];
  size_t length;
  int n[2];
  make_loads(keys, 2, 3);
  assert_int_equal(cct_figure_draw(&figures.items[0], scratch), CCT_OK);
  snprintf(path, sizeof path, "%s/load_concurrency.svg", scratch);
  assert_int_equal(cct_read_file(path, 1 << 24, &svg, &length), CCT_OK);
  find_intervals(svg, figures.items[0].height / 2, places, n);
  free(svg);
  assert_int_equal(n[0], 4); /* two panels in the upper half, of two points each */
  assert_int_equal(n[1], 4);
  for (int i = 0; i < n[1]; i++)
    for (int k = 0; k < n[0]; k++)
      assert_true(fabs(places[1][i] - places[0][k]) > 2.5);
}

/* More lines than a page has room for are counted. */
static void what_has_no_room_is_said(void **state) {
  (void)state;
  static char keys[12][300];
  const char *borrowed[12];
  for (int i = 0; i < 12; i++) {
    snprintf(keys[i], sizeof keys[i], "{\"arrivals\":\"closed\",\"concurrency\":%d,\"host_us\":%d," MODEL, 1 + i % 2,
             i / 2);
    borrowed[i] = keys[i];
  }
  make_loads(borrowed, 12, 2);
  assert_non_null(cct_figures_find(&figures, "load_concurrency_4"));
  assert_null(cct_figures_find(&figures, "load_concurrency_5"));
  assert_non_null(strstr(cct_figures_find(&figures, "load_concurrency_4")->caption.s, "2 further sweeps of load"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(lines_hold_all_but_the_axis, set_up, clear),
      cmocka_unit_test_setup_teardown(values_are_the_arms_own, set_up, clear),
      cmocka_unit_test_setup_teardown(report_json_has_the_rows, set_up, clear),
      cmocka_unit_test_setup_teardown(axes_fit_what_they_show, set_up, clear),
      cmocka_unit_test_setup_teardown(a_tail_is_told_from_its_median, set_up, clear),
      cmocka_unit_test_setup_teardown(what_has_no_room_is_said, set_up, clear),
  };
  return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
