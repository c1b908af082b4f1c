/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/text.h"
#include "base/log.h"
#include "mpi_runner/agenda.h"
#include "mpi_runner/condition.h"
#include "tests/scratch.h"

static char suite[64], saved[64];

static struct cct_agenda *plan(const char *text, ...) {
  struct cct_options flags;
  struct cct_agenda *agenda = NULL;
  const char *words[16], *rest[16];
  int n = 0, n_rest;
  va_list args;
  va_start(args, text);
  while ((words[n] = va_arg(args, const char *)))
    n++;
  va_end(args);
  assert_int_equal(cct_write_file(suite, text, strlen(text)), CCT_OK);
  assert_int_equal(cct_options_init(&flags), CCT_OK);
  assert_int_equal(cct_options_parse(&flags, CCT_RUN, n, (char **)words, rest, &n_rest), CCT_OK);
  if (!flags.v[CCT_OPT_BACKEND].is_set)
    assert_int_equal(cct_option_set(&flags, CCT_OPT_BACKEND, "sim", "test"), CCT_OK);
  (void)!cct_agenda_plan(&flags, suite, "off", &agenda);
  cct_options_free(&flags);
  return agenda;
}

#define CELL       "\"defaults\":{\"model\":\"qwen3-0.6b\",\"workload\":\"decode\",\"layout\":\"dp=1\",\"layers\":1}"
#define THREE_ARMS "\"arms\":{\"factor\":\"condition\",\"values\":[\"off\",\"stripped\",\"emulated:b200x8-tdx\"]}"

static void lists_multiply_out_in_the_order_written(void **state) {
  (void)state;
  struct cct_agenda *agenda =
      plan("{\"schema\":1," CELL ",\"cells\":[{\"batch\":[4,2],\"input_len\":[10,20,30]},{\"batch\":7}]}", NULL);
  static const int64_t batch[] = {4, 4, 4, 2, 2, 2, 7}, input[] = {10, 20, 30, 10, 20, 30, 1024};
  assert_non_null(agenda);
  assert_int_equal(agenda->n_cells, 7);
  for (int i = 0; i < 7; i++) {
    assert_int_equal(agenda->cells[i].v[CCT_OPT_BATCH].i, batch[i]);
    assert_int_equal(agenda->cells[i].v[CCT_OPT_INPUT_LEN].i, input[i]);
  }
  assert_null(agenda->notes);
  cct_agenda_free(agenda);
}

static void flags_replace_and_say_so(void **state) {
  (void)state;
  struct cct_agenda *agenda = plan("{\"schema\":1,\"rounds\":7," CELL ",\"cells\":[{\"batch\":[4,2]}]}", "--batch",
                                   "1,3", "--rounds", "2", NULL);
  assert_non_null(agenda);
  assert_int_equal(agenda->n_cells, 2);
  assert_int_equal(agenda->cells[1].v[CCT_OPT_BATCH].i, 3);
  assert_int_equal(agenda->rounds, 2);
  assert_string_equal(agenda->notes, "--rounds 2 replaces the suite's 7\n--batch [1,3] replaces the suite's [4,2]\n");
  cct_agenda_free(agenda);
}

/* Over the rounds every arm stands in every place equally often; boots follow each other. */
static void arms_rotate(void **state) {
  (void)state;
  struct cct_agenda *agenda = plan("{\"schema\":1,\"rounds\":3," CELL "," THREE_ARMS ",\"cells\":[{}]}", NULL);
  int places[3][3] = {{0}};
  assert_non_null(agenda);
  assert_int_equal(cct_agenda_add_boot(agenda, "first", (int[]){0, 1, 2}, 3), CCT_OK);
  assert_int_equal(cct_agenda_add_boot(agenda, "second", (int[]){2}, 1), CCT_OK);
  assert_int_equal(cct_agenda_add_boot(agenda, "first", (int[]){0}, 1), CCT_USAGE);
  assert_int_equal(cct_agenda_blocks(agenda), 12);
  for (int b = 0; b < 9; b++) {
    struct cct_block_at at = cct_agenda_block(agenda, b);
    assert_int_equal(at.boot, 0);
    assert_int_equal(at.round, b / 3);
    places[at.arm][b % 3]++;
  }
  for (int i = 0; i < 9; i++)
    assert_int_equal(places[i / 3][i % 3], 1);
  for (int b = 9; b < 12; b++) {
    struct cct_block_at at = cct_agenda_block(agenda, b);
    assert_true(at.boot == 1 && at.arm == 2 && at.round == b - 9);
  }
  cct_agenda_free(agenda);
}

static void what_is_saved_is_loaded_and_a_change_is_noticed(void **state) {
  (void)state;
  struct cct_agenda *agenda = plan("{\"schema\":1,\"question\":\"why?\"," CELL "," THREE_ARMS
                                   ",\"cells\":[{\"batch\":[1,2]}]}",
                                   "--deadline", "9", NULL),
                    *again;
  char *text, *at;
  size_t length;
  assert_non_null(agenda);
  assert_int_equal(cct_agenda_add_boot(agenda, "first", (int[]){0, 2}, 2), CCT_OK);
  assert_int_equal(cct_agenda_save(agenda, scratch), CCT_OK);
  assert_int_equal(cct_agenda_load(scratch, &again), CCT_OK);
  assert_string_equal(again->digest, agenda->digest);
  assert_string_equal(again->question, "why?");
  assert_int_equal(again->deadline_s, 9);
  assert_int_equal(again->boots[0].arms[1], 2);
  assert_string_equal(again->programs[1], agenda->programs[1]);
  assert_string_equal(again->emulated[2], agenda->emulated[2]);
  assert_int_equal(cct_agenda_seal(again), CCT_OK);
  assert_string_equal(again->digest, agenda->digest);
  cct_agenda_free(again);
  assert_int_equal(cct_read_file(saved, 1 << 20, &text, &length), CCT_OK);
  at = strstr(text, "\"batch\": 2");
  assert_non_null(at);
  at[9] = '3';
  assert_int_equal(cct_write_file(saved, text, length), CCT_OK);
  assert_int_equal(cct_agenda_load(scratch, &again), CCT_DAMAGED);
  free(text);
  cct_agenda_free(agenda);
}

static void a_cell_key_can_be_the_factor(void **state) {
  (void)state;
  struct cct_options cell;
  struct cct_agenda *agenda =
      plan("{\"schema\":1," CELL ",\"cells\":[{}]}", "--arms", "graph=full,none", "--condition", "stripped", NULL);
  assert_non_null(agenda);
  assert_string_equal(cct_agenda_condition(agenda, 1), "stripped");
  assert_int_equal(cct_agenda_cell(agenda, 0, 1, &cell), CCT_OK);
  assert_string_equal(cell.v[CCT_OPT_GRAPH].s, "none");
  assert_null(agenda->cells[0].v[CCT_OPT_GRAPH].s);
  cct_options_free(&cell);
  cct_agenda_free(agenda);
  assert_null(plan("{\"schema\":1," CELL ",\"cells\":[{\"graph\":\"full\"}]}", "--arms", "graph=full,none", NULL));
}

/* ---- stripped ---- */

static void a_gpu_names_what_cc_takes_from_it(void **state) {
  (void)state;
  static const struct {
    const char *gpu, *profile;
  } rows[] = {{"NVIDIA H200", "h200"},
              {"NVIDIA B200", "b200x8-tdx"}, /* the larger guest of two */
              {"NVIDIA B300 SXM6 AC", "b300-sev-snp"},
              {"NVIDIA H2000", NULL},
              {"NVIDIA H20", NULL},
              {"", NULL}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char profile[256] = "";
    enum cct_status status = cct_condition_stripped(rows[i].gpu, profile, sizeof profile);
    assert_int_equal(status, rows[i].profile ? CCT_OK : CCT_USAGE);
    if (rows[i].profile)
      assert_string_equal(profile, rows[i].profile);
    else
      assert_non_null(strstr(cct_log_last(), *rows[i].gpu ? rows[i].gpu : "a GPU whose name is not known"));
  }
}

static void a_stripped_arm_on_gpus_has_a_profile(void **state) {
  (void)state;
  static const char text[] = "{\"schema\":1," CELL "," THREE_ARMS ",\"cells\":[{}]}";
  struct cct_agenda *agenda = plan(text, "--backend", "cuda", "--profile", "h200", NULL), *loaded;
  assert_non_null(agenda);
  assert_string_equal(agenda->profile, ""); /* nothing is played */
  assert_string_equal(cct_agenda_arm_profile(agenda, 0), "");
  assert_string_equal(cct_agenda_arm_profile(agenda, 1), "h200");
  assert_string_equal(cct_agenda_arm_profile(agenda, 2), "b200x8-tdx");
  assert_int_equal(strlen(agenda->emulated[1]), 64);
  assert_int_equal(cct_agenda_add_boot(agenda, "boot", (int[]){0, 1, 2}, 3), CCT_OK);
  assert_int_equal(cct_agenda_save(agenda, scratch), CCT_OK);
  assert_int_equal(cct_agenda_load(scratch, &loaded), CCT_OK);
  assert_string_equal(cct_agenda_arm_profile(loaded, 1), "h200");
  assert_string_equal(loaded->emulated[1], agenda->emulated[1]);
  assert_string_equal(loaded->digest, agenda->digest);
  cct_agenda_free(loaded);
  cct_agenda_free(agenda);
  assert_null(plan(text, "--backend", "cuda", "--profile", "none-such", NULL));
  assert_non_null(strstr(cct_log_last(), "profile 'none-such'"));
  agenda = plan(text, NULL); /* sim takes it from the machine that it plays */
  assert_string_equal(cct_agenda_arm_profile(agenda, 1), "");
  cct_agenda_free(agenda);
}

static int name_files(void **state) {
  int failed = scratch_make(state);
  snprintf(suite, sizeof suite, "%s/suite.json", scratch);
  snprintf(saved, sizeof saved, "%s/run.json", scratch);
  return failed;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_multiply_out_in_the_order_written),
      cmocka_unit_test(flags_replace_and_say_so),
      cmocka_unit_test(arms_rotate),
      cmocka_unit_test(what_is_saved_is_loaded_and_a_change_is_noticed),
      cmocka_unit_test(a_cell_key_can_be_the_factor),
      cmocka_unit_test(a_gpu_names_what_cc_takes_from_it),
      cmocka_unit_test(a_stripped_arm_on_gpus_has_a_profile),
  };
  return cmocka_run_group_tests(tests, name_files, scratch_remove);
}
