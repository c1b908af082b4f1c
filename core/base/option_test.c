/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/option.h"

#define PARSE(...) parse((const char *[]){__VA_ARGS__, NULL})

static struct cct_options options;
static const char *rest[16];
static int n_rest;

static enum cct_status parse(const char **words) {
  int n = 0;
  while (words[n])
    n++;
  cct_options_free(&options);
  assert_int_equal(cct_options_init(&options), CCT_OK);
  return cct_options_parse(&options, CCT_RUN, n, (char **)words, rest, &n_rest);
}

static void values_land_typed(void **state) {
  (void)state;
  assert_int_equal(PARSE("suite.json", "-o", "RUN", "--np=8", "--graph", "full", "--dry-run"), CCT_OK);
  assert_int_equal(n_rest, 1);
  assert_string_equal(options.v[CCT_OPT_OUTPUT].s, "RUN");
  assert_int_equal(options.v[CCT_OPT_NP].i, 8);
  assert_string_equal(options.v[CCT_OPT_GRAPH].s, "full");
  assert_int_equal(options.v[CCT_OPT_DRY_RUN].i, 1);
  assert_int_equal(options.v[CCT_OPT_BATCH].i, 8);
  assert_false(options.v[CCT_OPT_BATCH].is_set);
  assert_int_equal(PARSE("--batch", "8,16"), CCT_OK);
  assert_string_equal(options.v[CCT_OPT_BATCH].s, "8,16");
}

static void bad_flags_are_refused(void **state) {
  (void)state;
  assert_int_equal(PARSE("--ouput", "x"), CCT_USAGE);
  assert_int_equal(PARSE("--np", "0"), CCT_USAGE);
  assert_int_equal(PARSE("--np", "8x"), CCT_USAGE);
  assert_int_equal(PARSE("--np", "99999999999999999999"), CCT_USAGE);
  assert_int_equal(PARSE("--np"), CCT_USAGE);
  assert_int_equal(PARSE("--np", "8", "--np", "8"), CCT_USAGE);
  assert_int_equal(PARSE("--graph", "ful"), CCT_USAGE);
  assert_int_equal(PARSE("--graph", "full|none"), CCT_USAGE);
  assert_int_equal(PARSE("--graph", ""), CCT_USAGE);
  assert_int_equal(PARSE("--dry-run=1"), CCT_USAGE);
  assert_int_equal(PARSE("--model", ""), CCT_USAGE);
  assert_int_equal(PARSE("--price", "3"), CCT_USAGE); /* another command's */
  assert_int_equal(PARSE("-x"), CCT_USAGE);
}

static void every_row_is_well_formed(void **state) {
  (void)state;
  char key[32];
  for (int id = 0; id < CCT_OPTION_COUNT; id++) {
    const struct cct_option *row = &cct_option_table[id];
    assert_int_equal(cct_option_by_name(row->name), id);
    assert_int_equal(cct_option_by_key(cct_option_key((enum cct_option_id)id, key)), id);
    assert_true(strlen(row->name) < 32);
    assert_true((row->kind == CCT_KIND_FLAG) == (row->argument == NULL));
    assert_non_null(row->help);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_land_typed),
      cmocka_unit_test(bad_flags_are_refused),
      cmocka_unit_test(every_row_is_well_formed),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cct_options_free(&options);
  return failed;
}
