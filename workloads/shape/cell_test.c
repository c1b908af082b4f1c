/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/shape/cell.h"

/* The canonical text of what `text` reads as; "refused" if it does not. */
static const char *round_trip(const char *text, struct cct_text *out) {
  struct cct_json *document = NULL, *json = NULL;
  struct cct_options cell;
  cct_text_free(out);
  assert_int_equal(cct_json_parse(text, strlen(text), "test", &document), CCT_OK);
  struct cct_json_at at = cct_json_root(document, "test");
  enum cct_status status = cct_cell_from_json(&at, &cell);
  if (!status) {
    assert_int_equal(cct_cell_to_json(&cell, &json), CCT_OK);
    assert_int_equal(cct_json_canonical(json, out), CCT_OK);
    cct_options_free(&cell);
  } else {
    cct_text_add(out, "refused");
  }
  cct_json_free(json);
  cct_json_free(document);
  return out->s;
}

static void a_cell_keeps_what_matters(void **state) {
  (void)state;
  static const struct {
    const char *in, *out;
  } rows[] = {
      {"{\"model\":\"qwen3-8b\",\"workload\":\"decode\",\"layout\":\"tp=8\",\"np\":8}",
       "{\"allreduce\":\"nccl\",\"batch\":8,\"graph\":\"full\",\"host_us\":0.0,\"input_len\":1024,\"layout\":\"tp=8\","
       "\"model\":\"qwen3-8b\","
       "\"np\":8,\"output_len\":1024,\"overlap\":\"off\",\"workload\":\"decode\"}"},
      {"{\"workload\":\"train\",\"model\":\"m\",\"layout\":\"ep=8,dp=8\",\"seq_len\":128}",
       "{\"accumulation\":1,\"combine_type\":\"bf16\",\"dispatch\":\"per-expert\",\"grad_type\":"
       "\"bf16\",\"graph\":"
       "\"none\",\"layout\":\"ep=8,dp=8\","
       "\"micro_batch\":1,\"model\":\"m\",\"optimizer\":\"adam\",\"overlap_grad_reduce\":\"on\",\"recompute\":\"none\","
       "\"routing\":\"padded\",\"seq_"
       "len\":128,"
       "\"skew\":\"uniform\",\"workload\":\"train\"}"},
      {"{\"workload\":\"collective\",\"np\":8}", "{\"allreduce\":\"nccl\",\"bytes\":1048576,\"calls\":1,\"collective\":"
                                                 "\"all_reduce\",\"graph\":\"none\",\"np\":8,"
                                                 "\"type\":\"bf16\",\"workload\":\"collective\"}"},
      {"{\"workload\":\"probe\",\"np\":1,\"probe\":\"h2d\",\"bytes\":4096}",
       "{\"bytes\":4096,\"calls\":1,\"memory\":\"pinned\",\"np\":1,\"probe\":\"h2d\",\"workload\":\"probe\"}"},
      {"{\"workload\":\"serve\",\"model\":\"m\",\"layout\":\"tp=1\",\"request_rate\":5,\"kv_tokens\":4096,"
       "\"speculate\":2,\"acceptance\":0.5}",
       "{\"acceptance\":0.5,\"arrivals\":\"seconds\",\"burstiness\":1.0,\"chunked_prefill\":"
       "\"on\","
       "\"graph\":\"full\",\"host_us\":0.0,\"input_len\":1024,\"kv_tokens\":4096,\"layout\":\"tp="
       "1\","
       "\"max_batched_tokens\":8192,\"max_seqs\":256,\"mixed_graph\":\"none\",\"model\":\"m\",\"output_len\":1024,"
       "\"overlap\":\"off\",\"preempt\":\"recompute\",\"random_range_ratio\":0.0,\"readback\":\"sync\",\"request_"
       "rate\":5.0,"
       "\"speculate\":2,\"workload\":\"serve\"}"},
      {"{\"workload\":\"serve\",\"trace\":\"t.csv\",\"concurrency\":7,\"kv_tokens\":4096}",
       "{\"allreduce\":\"nccl\",\"arrivals\":\"seconds\",\"chunked_prefill\":\"on\",\"graph\":\"full\",\"host_us\":0.0,"
       "\"kv_tokens\":4096,\"max_batched_tokens\":8192,\"max_seqs\":256,\"mixed_graph\":\"none\",\"overlap\":\"off\","
       "\"preempt\":\"recompute\",\"readback\":\"sync\",\"speculate\":0,\"trace\":\"t.csv\",\"workload\":\"serve\"}"},
      {"{\"program\":\"p.json\"}", "{\"program\":\"p.json\"}"},
      {"{\"program\":\"p.json\",\"batch\":4}", "{\"batch\":4,\"program\":\"p.json\"}"},
  };
  struct cct_text text = {0}, again = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_string_equal(round_trip(rows[i].in, &text), rows[i].out);
    assert_string_equal(round_trip(rows[i].out, &again), rows[i].out);
  }
  cct_text_free(&text);
  cct_text_free(&again);
}

static void what_is_no_cell_is_refused(void **state) {
  (void)state;
  static const char *const rows[] = {
      "[]",
      "{\"modle\":\"m\"}",
      "{\"output\":\"dir\"}", /* a flag, but no CELL key */
      "{\"batch\":[1,2]}",
      "{\"batch\":\"8\"}",
      "{\"batch\":0}",
      "{\"batch\":1.5}",
      "{\"graph\":\"half\"}",
      "{\"model\":\"\"}",
      "{\"workload\":null}",
  };
  struct cct_text text = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_string_equal(round_trip(rows[i], &text), "refused");
  cct_text_free(&text);
}

/* A key that no workload reads would be refused everywhere. */
static void every_key_has_a_reader(void **state) {
  (void)state;
  static const char *const names[] = {"train", "prefill", "decode", "serve", "collective", "probe", NULL};
  char why[128];
  for (int id = 0; id < CCT_OPTION_COUNT; id++) {
    int n = 0;
    for (int w = 0; w < 7 && cct_option_table[id].scope == CCT_SCOPE_CELL; w++) {
      struct cct_options cell;
      assert_int_equal(cct_options_init(&cell), CCT_OK);
      if (names[w])
        assert_int_equal(cct_option_set(&cell, CCT_OPT_WORKLOAD, names[w], "test"), CCT_OK);
      n += cct_cell_reads(&cell, (enum cct_option_id)id, why, NULL) != CCT_OF_OTHER_WORKLOADS;
      cct_options_free(&cell);
    }
    if (!n && cct_option_table[id].scope == CCT_SCOPE_CELL)
      fail_msg("no workload reads --%s", cct_option_table[id].name);
  }
}

static int ignored(const char *const *cells, int n, enum cct_option_id id, char why[200]) {
  struct cct_options read[4];
  struct cct_json *document;
  for (int i = 0; i < n; i++) {
    assert_int_equal(cct_json_parse(cells[i], strlen(cells[i]), "test", &document), CCT_OK);
    struct cct_json_at at = cct_json_root(document, "test");
    assert_int_equal(cct_cell_from_json(&at, &read[i]), CCT_OK);
    cct_json_free(document);
  }
  int is_ignored = cct_cells_ignore(read, n, id, why);
  for (int i = 0; i < n; i++)
    cct_options_free(&read[i]);
  return is_ignored;
}

static void what_no_cell_reads_is_known(void **state) {
  (void)state;
  static const char *const cells[] = {"{\"workload\":\"train\",\"speculate\":2}", "{\"workload\":\"serve\"}",
                                      "{\"workload\":\"serve\",\"acceptance\":0.5,\"speculate\":0}",
                                      "{\"workload\":\"decode\",\"acceptance\":0.5}"};
  char why[200];
  assert_int_equal(ignored(cells, 4, CCT_OPT_SPECULATE, why), 0); /* the third reads it */
  assert_int_equal(ignored(cells, 2, CCT_OPT_SPECULATE, why), 1);
  assert_string_equal(why, "serve alone reads it, and the cells that set it are of other workloads");
  assert_int_equal(ignored(cells, 1, CCT_OPT_SPECULATE, why), 1);
  assert_string_equal(why, "serve alone reads it, and no cell is of serve");
  assert_int_equal(ignored(cells, 4, CCT_OPT_ACCEPTANCE, why), 1);
  assert_string_equal(why, "needs --speculate");
  assert_int_equal(ignored(cells, 4, CCT_OPT_BATCH, why), 0); /* none sets it */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_cell_keeps_what_matters),
      cmocka_unit_test(what_is_no_cell_is_refused),
      cmocka_unit_test(every_key_has_a_reader),
      cmocka_unit_test(what_no_cell_reads_is_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
