/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "cli/coll.h"

/* nccl-tests 2.19.6: all_gather.cu, reduce_scatter.cu and alltoall.cu give each rank (count / nranks) & ~(16 / element
 * - 1). */
static void sizes_are_rounded_as_nccl_tests_rounds(void **state) {
  (void)state;
  static const struct {
    int kind;
    int64_t size;
    enum cct_type type;
    int ranks;
    int64_t bytes;
  } rows[] = {
      {CCT_COLL_ALL_REDUCE, 1024, CCT_TYPE_FP32, 8, 1024},       {CCT_COLL_ALL_REDUCE, 1027, CCT_TYPE_FP32, 8, 1024},
      {CCT_COLL_BROADCAST, 1027, CCT_TYPE_INT8, 3, 1027},        {-1, 1027, CCT_TYPE_FP16, 3, 1026},
      {CCT_COLL_ALL_GATHER, 1024, CCT_TYPE_FP32, 2, 1024},       {CCT_COLL_ALL_GATHER, 1024, CCT_TYPE_FP32, 3, 1008},
      {CCT_COLL_REDUCE_SCATTER, 8, CCT_TYPE_FP32, 2, 0},         {CCT_COLL_REDUCE_SCATTER, 127, CCT_TYPE_FP32, 8, 0},
      {CCT_COLL_ALL_TO_ALL, 1 << 20, CCT_TYPE_BF16, 7, 1048544}, {CCT_COLL_ALL_TO_ALLV, 65536, CCT_TYPE_INT8, 3, 65520},
      {CCT_COLL_ALL_GATHER, 33, CCT_TYPE_INT8, 2, 32},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_int_equal(cct_coll_bytes(rows[i].kind, rows[i].size, rows[i].type, rows[i].ranks), rows[i].bytes);
}

static void types_have_both_names(void **state) {
  (void)state;
  for (int type = 0; type < CCT_TYPE_COUNT; type++)
    if (type != CCT_TYPE_NVFP4) {
      assert_int_equal(cct_coll_type(cct_coll_type_name((enum cct_type)type)), type);
      assert_int_equal(cct_coll_type(cct_type_name((enum cct_type)type)), type);
    }
  assert_int_equal(cct_coll_type("int"), CCT_TYPE_INT32);
  assert_int_equal(cct_coll_type("nvfp4"), -1);
  assert_int_equal(cct_coll_type("double"), -1);
}

/* The suite's cells as one line each would be too long: how many, and the arms. */
static void suite_is(const char *flags, enum cct_status wanted, size_t cells, const char *arms) {
  struct cct_options options;
  struct cct_json *suite = NULL;
  char text[256], *argv[32];
  const char *rest[32];
  int argc = 0, n_rest;
  snprintf(text, sizeof text, "%s", flags);
  for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
    argv[argc++] = word;
  assert_int_equal(cct_options_init(&options), CCT_OK);
  assert_int_equal(cct_options_parse(&options, CCT_COLL, argc, argv, rest, &n_rest), CCT_OK);
  enum cct_status status = cct_coll_suite(&options, 4, &suite);
  if (status != wanted)
    fail_msg("%s: status %d, not %d", flags, status, wanted);
  if (!status && cct_json_size(cct_json_member(suite, "cells")) != cells)
    fail_msg("%s: %zu cells, not %zu", flags, cct_json_size(cct_json_member(suite, "cells")), cells);
  if (arms)
    assert_string_equal(options.v[CCT_OPT_ARMS].s, arms);
  if (!status)
    cct_json_free(suite);
  cct_options_free(&options);
}

static void flags_become_cells_and_arms(void **state) {
  (void)state;
  cct_log_mute(1);
  suite_is("", CCT_OK, 2, NULL);
  suite_is("-b 8 -e 128M -f 2", CCT_OK, 2 * 25, NULL);
  suite_is("-b 1M -e 4M -i 1M --place out", CCT_OK, 4, NULL);
  suite_is("-b 1K -e 1G -f 2097152 --place out", CCT_OK, 1, NULL); /* no overflow on the way to the end */
  suite_is("-b 8 -e 64 -f 2 --collective all_gather --place in", CCT_OK, 2, NULL); /* 0 of 8, 16, 32; 64 */
  suite_is("--collective all_reduce,broadcast -d all --op all", CCT_OK, 2 * (7 * 5 + 7), NULL);
  suite_is("-R 0,1,2,ce", CCT_OK, 2, "local-register=0,1,2,ce");
  suite_is("--algorithms ring,tree --channels default,8", CCT_OK, 2,
           "choice=ring/default/default,ring/default/8,tree/default/default,tree/default/8");
  suite_is("-b 2M -e 1M", CCT_USAGE, 0, NULL);
  suite_is("-b 0 -e 1M -f 2", CCT_USAGE, 0, NULL);
  suite_is("-b 0 -e 1G -i 1", CCT_USAGE, 0, NULL);
  suite_is("-d double", CCT_USAGE, 0, NULL);
  suite_is("--op sum,mulsum", CCT_USAGE, 0, NULL);
  suite_is("--op sum,sum", CCT_USAGE, 0, NULL);
  suite_is("--op max --collective all_gather,reduce", CCT_OK, 4, NULL);
  suite_is("--op max --collective all_gather", CCT_USAGE, 0, NULL);
  suite_is("-r 3 --collective all_reduce,broadcast", CCT_OK, 4, NULL);
  suite_is("-r 4 --collective broadcast", CCT_USAGE, 0, NULL);
  suite_is("-r 3,0 --collective reduce,all_reduce --op sum,max", CCT_OK, 2 * (2 * 2 + 2), NULL);
  suite_is("-r 0,4 --collective reduce", CCT_USAGE, 0, NULL);
  suite_is("-r 0", CCT_USAGE, 0, NULL);
  suite_is("-n 20,30", CCT_USAGE, 0, NULL);
  suite_is("--channels 0", CCT_USAGE, 0, NULL);
  suite_is("--channels 65", CCT_USAGE, 0, NULL);
  suite_is("-R 0,3", CCT_USAGE, 0, NULL);
  suite_is("-R 0,1 --algorithms ring", CCT_USAGE, 0, NULL);
  suite_is("--collective all_to_allv --skew /nowhere.json", CCT_IO, 0, NULL);
  cct_log_mute(0);
}

static void what_ran_is_held_against_what_was_forced(void **state) {
  (void)state;
  struct cct_agenda agenda = {.factor = "choice",
                              .arms = {"ring/default/8", "pat/default/default", "default/ll/default"}};
  char out[160];
  assert_string_equal(cct_coll_ran(&agenda, 0, "RING LL 8 channels, 64 B", out), "RING LL 8 channels, 64 B");
  assert_string_equal(cct_coll_ran(&agenda, 0, "RING LL 4 channels, 64 B", out),
                      "RING LL 4 channels, 64 B NOT ring/default/8");
  assert_string_equal(cct_coll_ran(&agenda, 1, "RING LL 4 channels, 64 B", out),
                      "RING LL 4 channels, 64 B NOT pat/default/default");
  assert_string_equal(cct_coll_ran(&agenda, 2, "TREE LL 4 channels, 64 B", out), "TREE LL 4 channels, 64 B");
  assert_string_equal(cct_coll_ran(&agenda, 2, "", out), "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes_are_rounded_as_nccl_tests_rounds),
      cmocka_unit_test(types_have_both_names),
      cmocka_unit_test(flags_become_cells_and_arms),
      cmocka_unit_test(what_ran_is_held_against_what_was_forced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
