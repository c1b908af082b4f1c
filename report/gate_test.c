/* SPDX-License-Identifier: Apache-2.0
 * The gate, over every identity fact that the product records: their names are read from the sources that record them,
 * so that a fact added there is flipped here. */
#define _XOPEN_SOURCE_EXTENDED
#include <ftw.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/text.h"
#include "report/report.h"
#include "report/report_fixture.h"

#define KEY "{\"layout\":\"tp=8\",\"model\":\"qwen3-8b\",\"workload\":\"decode\"}"

static char names[128][48];
static int n_names;

static void find_in(const char *text, const char *pattern) {
  regex_t regex;
  regmatch_t match[2];
  assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED), 0);
  for (const char *at = text; !regexec(&regex, at, 2, match, 0); at += match[1].rm_eo) {
    int length = (int)(match[1].rm_eo - match[1].rm_so), i = 0;
    char name[48];
    snprintf(name, sizeof name, "%.*s", length, at + match[1].rm_so);
    while (i < n_names && strcmp(names[i], name))
      i++;
    if (i == n_names && n_names < 128)
      memcpy(names[n_names++], name, sizeof name);
  }
  regfree(&regex);
}

static int read_source(const char *path, const struct stat *facts, int type, struct FTW *at) {
  (void)facts;
  (void)at;
  size_t length = strlen(path);
  char *text;
  if (type != FTW_F || length < 2 || strcmp(path + length - 2, ".c") || strstr(path, "_test.c"))
    return 0;
  assert_int_equal(cct_read_file(path, 1 << 24, &text, &length), CCT_OK);
  find_in(text, "FACT_IDENTITY, \"([A-Za-z0-9_.]+)\"");
  find_in(text, "\"identity\", \"([A-Za-z0-9_.]+)\"");
  find_in(text, "\"([A-Za-z0-9_.]+)\", \"identity\"");
  free(text);
  return 0;
}

static int read_schema(void **state) {
  (void)state;
  const char *source = getenv("CCT_SOURCE");
  static const char *const rooms[] = {"mpi_runner", "workloads/backends", "core/machine", "cli"};
  char path[1024];
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
    snprintf(path, sizeof path, "%s/%s", source ? source : ".", rooms[i]);
    if (nftw(path, read_source, 8, FTW_PHYS))
      return 1;
  }
  return 0;
}

/* Two arms of two rounds; the last block has `value` for the fact, the others "same"; NULL: the last has none. */
static void two_arms(struct cct_runs *runs, const char *name, enum cct_fact_class fact_class, const char *value,
                     const char *factor) {
  memset(runs, 0, sizeof *runs);
  for (int b = 0; b < 4; b++) {
    struct cct_block *block = fixture_block(b % 2 ? "on" : "off", 0, b / 2);
    snprintf(block->head.factor, sizeof block->head.factor, "%s", factor);
    if (b < 3 || value)
      fixture_fact(block, name, fact_class, b < 3 ? "same" : value);
    fixture_steps(block, KEY, "measured", 100, 0.5, 10, (uint64_t)b);
    assert_int_equal(cct_runs_add(runs, 0, "RUN", block), CCT_OK);
  }
}

static enum cct_status gate(struct cct_runs *runs, const char *allow, struct cct_gate *out) {
  memset(out, 0, sizeof *out);
  cct_log_mute(1);
  enum cct_status status = cct_gate_check(runs, allow, out);
  cct_log_mute(0);
  return status;
}

static void says(const char *word) {
  if (!strstr(cct_log_last(), word))
    fail_msg("'%s' does not say '%s'", cct_log_last(), word);
}

static void every_identity_fact(void **state) {
  (void)state;
  struct cct_runs runs;
  struct cct_gate found;
  if (n_names < 10)
    fail_msg("only %d identity facts found in the sources", n_names);
  for (int i = 0; i < n_names; i++) {
    two_arms(&runs, names[i], CCT_FACT_IDENTITY, "same", "condition");
    assert_int_equal(gate(&runs, NULL, &found), CCT_OK);
    cct_runs_free(&runs);
    two_arms(&runs, names[i], CCT_FACT_IDENTITY, "other", "condition");
    assert_int_equal(gate(&runs, NULL, &found), CCT_USAGE);
    says(names[i]);
    says("identity");
    says("'same'");
    says("'other'");
    assert_int_equal(gate(&runs, names[i], &found), CCT_OK);
    assert_int_equal(found.n_allowed, 1);
    assert_string_equal(found.allowed[0].name, names[i]);
    assert_string_equal(found.allowed[0].left, "same");
    assert_string_equal(found.allowed[0].right, "other");
    cct_runs_free(&runs);
    two_arms(&runs, names[i], CCT_FACT_IDENTITY, NULL, "condition");
    assert_int_equal(gate(&runs, NULL, &found), CCT_USAGE);
    says("'absent'");
    cct_runs_free(&runs);
  }
}

static void condition_facts(void **state) {
  (void)state;
  static const struct {
    const char *factor, *name;
    int is_refused;
  } rows[] = {
      {"condition", "guest_kernel", 1}, /* block 3 against block 1, of the same arm */
      {"condition", "NCCL_ALGO", 1},    /* no condition sets it */
      {"net", "NCCL_NET_PLUGIN", 1},    /* within an arm it has to agree */
      {"tuner", "NCCL_TUNER_PLUGIN", 1}, {"tuner", "NCCL_MIN_CTAS", 1}, {"tuner", "NCCL_ALGO", 0},
  };
  struct cct_runs runs;
  struct cct_gate found;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    two_arms(&runs, rows[i].name, CCT_FACT_CONDITION, "other", rows[i].factor);
    assert_int_equal(gate(&runs, NULL, &found), CCT_USAGE);
    says("condition fact");
    cct_runs_free(&runs);
  }
}

/* Both blocks of an arm differ from both of the other. */
static void what_the_factor_sets_may_differ(void **state) {
  (void)state;
  static const struct {
    const char *factor, *name;
    enum cct_status status;
  } rows[] = {
      {"condition", "guest_kernel", CCT_OK},
      {"condition", "NCCL_NVLS_ENABLE", CCT_OK},
      {"condition", "NCCL_PROTO", CCT_USAGE},
      {"net", "NCCL_NET_PLUGIN", CCT_OK},
      {"net", "guest_kernel", CCT_USAGE},
      {"tuner", "NCCL_TUNER_PLUGIN", CCT_OK},
      {"tuner", "NCCL_ALGO", CCT_USAGE},
      {"registration", "NCCL_LOCAL_REGISTER", CCT_OK},
      {"graph", "graph", CCT_OK},
  };
  struct cct_runs runs;
  struct cct_gate found;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    two_arms(&runs, rows[i].name, CCT_FACT_CONDITION, "same", rows[i].factor);
    for (int b = 1; b < 4; b += 2)
      snprintf(runs.blocks[b]->facts[runs.blocks[b]->n_facts - 1].value, 16, "other");
    if (gate(&runs, NULL, &found) != rows[i].status)
      fail_msg("%s, %s: %s", rows[i].factor, rows[i].name, cct_log_last());
    cct_runs_free(&runs);
  }
}

static void an_arm_is_what_it_says(void **state) {
  (void)state;
  struct cct_runs runs;
  struct cct_gate found;
  static const struct {
    int block;
    const char *name, *value;
    enum cct_status status;
  } rows[] = {{0, "gpu_cc", "off", CCT_OK},      {0, "gpu_cc", "on", CCT_USAGE},  {1, "gpu_cc", "on", CCT_OK},
              {1, "gpu_cc", "off", CCT_USAGE},   {0, "condition", "off", CCT_OK}, {0, "condition", "on", CCT_USAGE},
              {1, "gpu_cc", "not known", CCT_OK}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    memset(&runs, 0, sizeof runs);
    struct cct_block *block = fixture_block(rows[i].block ? "on" : "off", 0, 0);
    fixture_fact(block, rows[i].name, CCT_FACT_CONDITION, rows[i].value);
    assert_int_equal(cct_runs_add(&runs, 0, "RUN", block), CCT_OK);
    if (gate(&runs, NULL, &found) != rows[i].status)
      fail_msg("row %zu: %s", i, cct_log_last());
    cct_runs_free(&runs);
  }
}

static void drift_and_replicate_pass(void **state) {
  (void)state;
  struct cct_runs runs;
  struct cct_gate found;
  two_arms(&runs, "clock", CCT_FACT_DRIFT, "other", "condition");
  assert_int_equal(gate(&runs, NULL, &found), CCT_OK);
  cct_runs_free(&runs);
  two_arms(&runs, "start", CCT_FACT_REPLICATE, "other", "condition");
  assert_int_equal(gate(&runs, NULL, &found), CCT_OK);
  assert_int_equal(gate(&runs, "no_such_fact", &found), CCT_USAGE);
  says("no_such_fact");
  cct_runs_free(&runs);
  two_arms(&runs, "x", CCT_FACT_DRIFT, "same", "condition");
  snprintf(runs.blocks[3]->head.factor, sizeof runs.blocks[3]->head.factor, "net");
  assert_int_equal(gate(&runs, NULL, &found), CCT_USAGE);
  says("two factors");
  cct_runs_free(&runs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_identity_fact),
      cmocka_unit_test(condition_facts),
      cmocka_unit_test(what_the_factor_sets_may_differ),
      cmocka_unit_test(an_arm_is_what_it_says),
      cmocka_unit_test(drift_and_replicate_pass),
  };
  return cmocka_run_group_tests(tests, read_schema, NULL);
}
