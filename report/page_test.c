/* SPDX-License-Identifier: Apache-2.0
 * The whole report on disk, from names that try to become commands: gnuplot's system(), the shell's backticks, HTML.
 * argv[1], where given, is a folder in which the report and its run directory stay, for tests that open the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "report/report.h"
#include "report/report_fixture.h"

static char folder[256];

/* Each of these leaves a file `pwned` somewhere if anything ever runs it. */
static const char *const hostile[] = {
    "`touch pwned`",
    "$(touch pwned)",
    "'; system('touch pwned'); '",
    "\\\"; system(\\\"touch pwned\\\"); #",
    "<script>document.title='pwned'</script>",
    "\\n! touch pwned\\nplot '< touch pwned'",
    "@touch {/Symbol a}_b^c",
    "%s%n %d",
    "</svg><img src=x onerror=alert(1)>",
};
enum {
  n_hostile = sizeof hostile / sizeof *hostile
};

static void fill(struct cct_block *block, int arm, int round) {
  char key[512];
  for (int k = 0; k < n_hostile; k++) {
    snprintf(key, sizeof key, "{\"batch\":%d,\"layout\":\"tp=8\",\"model\":\"%s\",\"workload\":\"decode\"}", 1 << k,
             hostile[k]);
    fixture_steps(block, key, arm ? "emulated" : "measured", arm ? 100 + 7 * k : 100, 0.6, 12,
                  (uint64_t)(1000 * k + 10 * round + arm));
  }
}

static void write_run(const char *run) {
  mkdir(run, 0777);
  for (int round = 0; round < 5; round++)
    for (int arm = 0; arm < 2; arm++) {
      struct cct_block *block = fixture_block(arm ? "emulated:`touch pwned`<b>" : "off", 0, round);
      fixture_fact(block, "note", CCT_FACT_DRIFT, "<i>\"`touch pwned`\"</i>");
      fill(block, arm, round);
      fixture_write(block, run, 2 * round + arm);
      cct_block_free(block);
    }
}

static int contains(const char *path, const char *word) {
  char *text;
  size_t length;
  assert_int_equal(cct_read_file(path, (size_t)64 << 20, &text, &length), CCT_OK);
  int found = strstr(text, word) != NULL;
  free(text);
  return found;
}

static void nothing_becomes_a_command(void **state) {
  (void)state;
  char run[300], out[300], path[400];
  snprintf(run, sizeof run, "%s/run", folder);
  snprintf(out, sizeof out, "%s/out", folder);
  write_run(run);
  struct cct_runs runs = {0};
  struct cct_report report = {0};
  const char *const directories[] = {run};
  assert_int_equal(cct_runs_load(directories, 1, &runs), CCT_OK);
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  assert_int_equal(report.n_results, n_hostile);
  assert_int_equal(cct_report_write(&report, out), CCT_OK);
  static const char *const made[] = {"index.html",
                                     "report.csv",
                                     "report.json",
                                     "figures/overhead.svg",
                                     "figures/overhead-narrow.svg",
                                     "figures/overhead.png",
                                     "figures/overhead.pdf",
                                     "figures/overhead.dat",
                                     "figures/overhead.gp",
                                     "figures/style.gp"};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    snprintf(path, sizeof path, "%s/%s", out, made[i]);
    if (access(path, R_OK) != 0)
      fail_msg("%s is missing", path);
  }
  snprintf(path, sizeof path, "%s/index.html", out);
  assert_false(contains(path, "<script"));
  assert_false(contains(path, "<img"));
  assert_false(contains(path, "<b>\""));
  assert_true(contains(path, "&lt;script&gt;"));
  snprintf(path, sizeof path, "%s/figures/overhead.gp", out);
  assert_false(contains(path, "touch")); /* no text of a run stands in a script */
  static const char *const places[] = {".", "out", "out/figures", "run"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    snprintf(path, sizeof path, "%s/%s/pwned", folder, places[i]);
    assert_int_not_equal(access(path, F_OK), 0);
  }
  assert_int_not_equal(access("pwned", F_OK), 0);
  cct_report_free(&report);
  cct_runs_free(&runs);
}

/* One row, of a cell that is only a program: gnuplot 5.4 ends by a signal on a plot of labels whose points are all
 * undefined. With three arms, one of which lacks the cell, the row still has its name. */
static void one_cell_of_one_program(void **state) {
  (void)state;
  char key[4200], out[300], path[400];
  snprintf(out, sizeof out, "%s/one", folder);
  snprintf(key, sizeof key, "{\"program\":\"%s/examples/decode-skeleton.json\"}", getenv("CCT_SOURCE"));
  for (int arms = 2; arms <= 3; arms++) {
    struct cct_runs runs = {0};
    struct cct_report report = {0};
    static const char *const names[] = {"off", "on", "emulated:b200x8-tdx"};
    for (int arm = 0; arm < arms; arm++)
      for (int round = 0; round < 2; round++) {
        struct cct_block *block = fixture_block(names[arm], 0, round);
        fixture_steps(block, arms == 3 && arm == 1 ? "{\"program\":\"other.json\"}" : key, "measured", 100 + 7 * arm,
                      0.6, 12, (uint64_t)(10 * round + arm));
        assert_int_equal(cct_runs_add(&runs, 0, "RUN", block), CCT_OK);
      }
    assert_int_equal(cct_report_make(&runs, NULL, "b200x8-tdx", &report), CCT_OK);
    assert_int_equal(cct_report_write(&report, out), CCT_OK);
    snprintf(path, sizeof path, "%s/figures/overhead-narrow.svg", out);
    assert_true(contains(path, "program"));
    cct_report_free(&report);
    cct_runs_free(&runs);
  }
}

static void output_that_cannot_be_made(void **state) {
  (void)state;
  struct cct_runs runs = {0};
  struct cct_report report = {0};
  char run[300];
  snprintf(run, sizeof run, "%s/run", folder);
  const char *const directories[] = {run};
  assert_int_equal(cct_runs_load(directories, 1, &runs), CCT_OK);
  assert_int_equal(cct_report_make(&runs, NULL, NULL, &report), CCT_OK);
  assert_int_equal(cct_report_write(&report, "/nonexistent/deep/out"), CCT_IO);
  assert_int_equal(cct_report_write(&report, "/dev/null"), CCT_IO);
  cct_report_free(&report);
  cct_runs_free(&runs);
}

static void run_directories_that_are_none(void **state) {
  (void)state;
  struct cct_runs runs = {0};
  char path[400], twice[300];
  const char *nowhere[] = {"/nonexistent"}, *empty[] = {"/proc/self/fdinfo"};
  assert_int_equal(cct_runs_load(nowhere, 1, &runs), CCT_IO);
  assert_int_equal(cct_runs_load(empty, 1, &runs), CCT_USAGE);
  snprintf(twice, sizeof twice, "%s/run", folder);
  const char *both[] = {twice, twice};
  assert_int_equal(cct_runs_load(both, 2, &runs), CCT_USAGE);
  snprintf(path, sizeof path, "%s/run/foreign.h5", folder);
  assert_int_equal(cct_write_file(path, "x", 1), CCT_OK);
  assert_int_equal(cct_runs_load(both, 1, &runs), CCT_USAGE);
  unlink(path);
  snprintf(path, sizeof path, "%s/run/block-0099.h5", folder);
  assert_int_equal(cct_write_file(path, "no block", 8), CCT_OK);
  assert_int_not_equal(cct_runs_load(both, 1, &runs), CCT_OK);
  unlink(path);
}

int main(int argc, char **argv) {
  snprintf(folder, sizeof folder, "%s", argc > 1 ? argv[1] : "/tmp/cctax-page-XXXXXX");
  if (argc > 1)
    mkdir(folder, 0777);
  else if (!mkdtemp(folder))
    return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_becomes_a_command),
      cmocka_unit_test(one_cell_of_one_program),
      cmocka_unit_test(output_that_cannot_be_made),
      cmocka_unit_test(run_directories_that_are_none),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char command[400];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return argc > 1 ? failed : system(command) ? 1 : failed;
}
