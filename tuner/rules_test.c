/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/random.h"
#include "tuner/decision.h"
#include "tuner/rules.h"
#include "tuner/rules_fuzz.h"

/* The form of NVIDIA's example file: comments, blank lines, 8, 9 and 10 fields, a header row, spaces, and gaps. */
static const char nvidia_form[] = "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"
                                  "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"
                                  "\n"
                                  "allreduce,0,65536,tree,simple,2,1,-1,-1,1\n"
                                  "allreduce, 65537 ,1048576,ring,simple,4,4,32,1,0\r\n"
                                  "allgather,0,4294967295,ring,simple,4,2,-1\n"
                                  "  # indented\n"
                                  "reducescatter,131073,18446744073709551615,ring,ll128,-1,-1,-1,2\n"
                                  "reduce,0,-1,tree,ll,0,-1,-1,-1,-1,cc,NVIDIA B200\n"
                                  "broadcast,0,0,ring,ll,-1,-1,-1,-1,-1,no-multicast,any";

static void a_file_of_nvidias_form_is_read(void **state) {
  (void)state;
  struct cct_rules rules;
  char why[CCT_RULES_WHY] = "";
  if (cct_rules_parse("f.csv", nvidia_form, strlen(nvidia_form), &rules, why) != CCT_OK)
    fail_msg("%s", why);
  assert_int_equal(rules.n, 6);
  const struct cct_rule *r = rules.items;
  assert_true(r[0].collective == CCT_TUNER_ALLREDUCE && r[0].min_bytes == 0 && r[0].max_bytes == 65536);
  assert_true(r[0].algorithm == CCT_TUNER_TREE && r[0].protocol == CCT_TUNER_SIMPLE && r[0].channels == 2);
  assert_true(r[0].nodes == 1 && r[0].ranks == -1 && r[0].pipe_ops == -1 && r[0].reg_buff == 1 && r[0].line == 4);
  assert_true(r[1].min_bytes == 65537 && r[1].ranks == 32 && r[1].reg_buff == 0);
  assert_true(r[3].max_bytes == UINT64_MAX && r[3].channels == 0 && r[3].pipe_ops == 2 && r[3].reg_buff == -1);
  assert_true(r[4].condition == CCT_RULE_CC && r[4].max_bytes == UINT64_MAX && r[4].channels == 0);
  assert_string_equal(r[4].gpu, "NVIDIA B200");
  assert_true(r[5].condition == CCT_RULE_NO_MULTICAST && r[5].gpu[0] == '\0' && r[5].line == 10);
  char text[CCT_RULE_TEXT];
  assert_string_equal(cct_rule_text(&r[4], text),
                      "reduce,0,18446744073709551615,tree,ll,-1,-1,-1,-1,-1,cc,NVIDIA B200");
  cct_rules_free(&rules);
}

static void a_files_origin_is_read(void **state) {
  (void)state;
  static const char text[] = "# rules\n# measured: gpu=NVIDIA H200; ranks=2; nccl=22803; driver=580; condition=off\r\n"
                             "# measured: gpu=other; ranks=3\n";
  struct cct_rules_origin o;
  assert_int_equal(cct_rules_origin(text, strlen(text), &o), 1);
  assert_string_equal(o.gpu, "NVIDIA H200");
  assert_string_equal(o.nccl, "22803");
  assert_string_equal(o.condition, "off");
  assert_int_equal(o.ranks, 2);
  static const char none[] = "# measured: gpu=none; ranks=x; nccl=";
  assert_int_equal(cct_rules_origin(none, strlen(none), &o), 1);
  assert_true(!*o.gpu && !*o.nccl && !*o.condition && !o.ranks);
  static const char predicted[] = "# predicted: gpu=NVIDIA B200; ranks=8; nccl=none";
  assert_int_equal(o.is_predicted, 0);
  assert_int_equal(cct_rules_origin(predicted, strlen(predicted), &o), 1);
  assert_true(o.is_predicted && !strcmp(o.gpu, "NVIDIA B200") && o.ranks == 8);
  assert_int_equal(cct_rules_origin("", 0, &o), 0);
  assert_int_equal(cct_rules_origin(nvidia_form, strlen(nvidia_form), &o), 0);
}

static void bad_files_are_refused_with_file_and_line(void **state) {
  (void)state;
  static const struct {
    const char *text, *why;
  } rows[] = {
      {"allreduce,0,1,ring,ll,-1,-1,-1\nall_reduce,0,1,ring,ll,-1,-1,-1",
       "f:2: unknown collective 'all_reduce', did you mean 'allreduce'"},
      {"allreduce,0,1,rings,ll,-1,-1,-1", "f:1: unknown algorithm 'rings', did you mean 'ring'"},
      {"allreduce,0,1,ring,Simple,-1,-1,-1", "f:1: unknown protocol 'Simple', did you mean 'simple'"},
      {"#\n\nallreduce,0,4K,ring,ll,-1,-1,-1", "f:3: max bytes '4K' is not a number of bytes"},
      {"allreduce,-1,4,ring,ll,-1,-1,-1", "f:1: min bytes '-1' is not a number of bytes"},
      {"allreduce,,4,ring,ll,-1,-1,-1", "f:1: min bytes '' is not a number of bytes"},
      {"allreduce,0,18446744073709551616,ring,ll,-1,-1,-1",
       "f:1: max bytes '18446744073709551616' is not a number of bytes"},
      {"allreduce,5,4,ring,ll,-1,-1,-1", "f:1: min bytes 5 is more than max bytes 4"},
      {"allreduce,0,4,ring,ll,x,-1,-1", "f:1: channels 'x' is not a number"},
      {"allreduce,0,4,ring,ll,65,-1,-1", "f:1: channels 65 is neither -1 nor within 0..64"},
      {"allreduce,0,4,ring,ll,-1,0,-1", "f:1: nodes 0 is neither -1 nor within 1..2147483647"},
      {"allreduce,0,4,ring,ll,-1,-1,8.5", "f:1: ranks '8.5' is not a number"},
      {"allreduce,0,4,ring,ll,-1,-1,-1,-1,2", "f:1: regBuff 2 is neither -1 nor within 0..1"},
      {"allreduce,0,4,ring,ll,-1,-1,-1,-1,-1,on", "f:1: unknown condition 'on'"},
      {"allreduce,0,4,ring,ll,-1,-1,-1,-1,-1,any,", "f:1: GPU name must have 1 to 63 characters, or be 'any'"},
      {"allreduce,0,4,ring,ll,-1,-1,-1,-1,-1,any,any,1", "f:1: more than 12 fields"},
      {"allreduce,0,4,ring,ll,-1,-1",
       "f:1: 7 fields, at least 8 are needed: collective,min,max,algorithm,protocol,channels,nodes,ranks"},
      {"allreduce,0,1,ring,ll,-1,-1,-1\ncollective,min,max,algorithm,protocol,channels,nodes,ranks",
       "f:2: unknown collective 'collective'"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_rules rules = {(void *)1, 7, 9};
    char why[CCT_RULES_WHY] = "";
    enum cct_status status = cct_rules_parse("f", rows[i].text, strlen(rows[i].text), &rules, why);
    if (status != CCT_USAGE || strcmp(why, rows[i].why) != 0 || rules.n != 7)
      fail_msg("'%s': %d, '%s', not '%s'", rows[i].text, status, why, rows[i].why);
  }
  struct cct_rules rules;
  char why[CCT_RULES_WHY];
  assert_int_equal(cct_rules_parse("f", "a\0b\n", 4, &rules, why), CCT_USAGE);
  assert_string_equal(why, "f:1: a zero byte: not a text file");
  char *text;
  size_t length;
  assert_int_equal(cct_rules_read("/nonexistent/rules.csv", &text, &length, why), CCT_IO);
  assert_string_equal(why, "/nonexistent/rules.csv: cannot be read: No such file or directory");
  assert_int_equal(cct_rules_read("/dev/zero", &text, &length, why), CCT_IO);
}

static void a_rule_that_no_size_can_reach_is_found(void **state) {
  (void)state;
#define R(sizes, cell, rest) "allreduce," sizes "," cell ",-1" rest "\n"
  static const struct {
    const char *text;
    size_t n, rule, by;
  } rows[] = {
      {R("0,100", "ring,ll", ",-1,-1") R("5,50", "tree,ll", ",-1,-1"), 1, 1, 0},
      {R("0,100", "ring,ll", ",-1,-1") R("5,101", "tree,ll", ",-1,-1"), 0, 0, 0},
      {R("0,100", "nvls,simple", ",-1,-1") R("5,50", "ring,ll", ",-1,-1"), 0, 0, 0}, /* its fallback */
      {R("0,100", "nvls,simple", ",-1,-1") R("5,50", "nvls,simple", ",-1,-1"), 1, 1, 0},
      {R("0,10", "ring,ll", ",-1,-1") R("11,20", "tree,ll", ",-1,-1") R("5,15", "ring,simple", ",-1,-1"), 1, 2, 0},
      {R("0,10", "ring,ll", ",-1,-1") R("12,20", "tree,ll", ",-1,-1") R("5,15", "ring,simple", ",-1,-1"), 0, 0, 0},
      {R("0,100", "ring,ll", ",1,-1") R("5,50", "tree,ll", ",-1,-1"), 0, 0, 0},
      {R("0,100", "ring,ll", ",-1,-1") R("5,50", "tree,ll", ",1,8,1,1,cc,NVIDIA H200"), 1, 1, 0},
      {R("0,100", "ring,ll", ",-1,-1,-1,-1,cc") R("5,50", "tree,ll", ",-1,-1,-1,-1,clear"), 0, 0, 0},
      {R("0,100", "ring,ll", ",-1,-1,-1,-1,any,NVIDIA") R("5,50", "tree,ll", ",-1,-1,-1,-1,any,NVIDIA H200"), 1, 1, 0},
      {R("0,100", "ring,ll", ",-1,-1,-1,-1,any,NVIDIA H200") R("5,50", "tree,ll", ",-1,-1,-1,-1,any,NVIDIA"), 0, 0, 0},
      {R("0,-1", "ring,ll", ",-1,-1") R("0,-1", "ring,ll", ",-1,-1") R("7,-1", "ring,ll", ",-1,-1"), 2, 1, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_rules rules;
    char why[CCT_RULES_WHY];
    size_t rule = 0, by = 0;
    assert_int_equal(cct_rules_parse("f", rows[i].text, strlen(rows[i].text), &rules, why), CCT_OK);
    size_t n = cct_rules_unreachable(&rules, &rule, &by);
    if (n != rows[i].n || (n && (rule != rows[i].rule || by != rows[i].by)))
      fail_msg("row %zu: %zu unreachable, the first %zu by %zu", i, n, rule, by);
    cct_rules_free(&rules);
  }
}

/* Mutations of a good file: bytes changed, cut out, doubled. What parses must also build and decide (rules_fuzz.h). */
static void mutated_files_are_read_or_refused(void **state) {
  (void)state;
  static const char alphabet[] = "0123456789,,,,\n\n-#\r\t aeglnrt_\377\0";
  size_t read = 0, refused = 0;
  for (uint64_t round = 0; round < 20000; round++) {
    char text[2 * sizeof nvidia_form];
    size_t length = sizeof nvidia_form - 1;
    memcpy(text, nvidia_form, length);
    for (uint64_t edits = (uint64_t)cct_random_below(round, 0, 6) + 1; edits > 0; edits--) {
      uint64_t seed = cct_random_fold(round, edits);
      size_t at = (size_t)cct_random_below(seed, 1, (int64_t)length);
      size_t run = 1 + (size_t)cct_random_below(seed, 2, 20);
      int64_t what = cct_random_below(seed, 3, 4);
      run = run < length - at ? run : length - at;
      if (what < 2) {
        text[at] = alphabet[cct_random_below(seed, 4, sizeof alphabet - 1)];
      } else if (what == 2 && length > 2 * run) {
        memmove(text + at, text + at + run, length - at - run);
        length -= run;
      } else if (what == 3 && length + run <= sizeof text) {
        memmove(text + at + run, text + at, length - at);
        length += run;
      }
    }
    *(cct_rules_fuzz((const uint8_t *)text, length) ? &read : &refused) += 1;
  }
  print_message("%zu mutations read, %zu refused\n", read, refused);
  assert_true(read > 500 && refused > 5000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_of_nvidias_form_is_read),
      cmocka_unit_test(a_files_origin_is_read),
      cmocka_unit_test(bad_files_are_refused_with_file_and_line),
      cmocka_unit_test(a_rule_that_no_size_can_reach_is_found),
      cmocka_unit_test(mutated_files_are_read_or_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
