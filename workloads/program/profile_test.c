/* SPDX-License-Identifier: Apache-2.0
 * The shipped profiles are read whole; what is missing or wrong in one is refused by its JSON path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "json/json.h"
#include "tests/heard.h"
#include "tests/scratch.h"
#include "workloads/program/profile.h"

static enum cct_status load(const char *name, struct cct_profile **profile_out) {
  listen();
  enum cct_status status = cct_profile_load(name, profile_out);
  hear();
  return status;
}

static void test_shipped_profiles_are_read(void **state) {
  (void)state;
  static const char *const names[] = {"b200-tdx", "b200x8-tdx", "b300-sev-snp", "rtx-pro-6000-sev-snp", "h200"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct cct_profile *profile;
    assert_int_equal(cct_profile_load(names[i], &profile), CCT_OK);
    assert_string_equal(profile->name, names[i]);
    assert_true(profile->has_clear && profile->has_confidential);
    assert_int_equal(strlen(profile->digest), 64);
    assert_non_null(profile->clear.submission.us.source);
    cct_profile_free(profile);
  }
}

/* Published figures by row id of data/published.tsv; B200 by 8 GPUs: 838.0 with and 682.2 GB/s without NVLS. */
static void test_published_figures(void **state) {
  (void)state;
  struct cct_profile *one, *eight;
  assert_int_equal(cct_profile_load("b200-tdx", &one), CCT_OK);
  assert_int_equal(cct_profile_load("b200x8-tdx", &eight), CCT_OK);
  assert_float_equal(one->clear.submission.us.value, 3.45, 1e-9);
  assert_float_equal(one->confidential.submission.us.value, 15.7, 1e-9);
  assert_float_equal(eight->confidential.submission.us.value, 34.45, 1e-9);
  assert_int_equal(eight->confidential.submission.form, CCT_FORM_HOST);
  assert_int_equal(eight->confidential.submission.us.kind, CCT_COST_PUBLISHED);
  assert_int_equal(one->platform.partition, 1);
  assert_int_equal(eight->platform.partition, 8);
  assert_float_equal(eight->clear.copy[CCT_COPY_H2D][CCT_MEM_PINNED].gb_s.value, 51.6, 1e-9);
  assert_true(eight->confidential.copy[CCT_COPY_D2H][CCT_MEM_PINNED].blocks);
  assert_false(eight->clear.copy[CCT_COPY_D2H][CCT_MEM_PINNED].blocks);
  double nvls = 0, ring = 0, encrypted = 0;
  for (int i = 0; i < eight->clear.n_collectives; i++) {
    const struct cct_collective_cost *row = &eight->clear.collectives[i];
    if (row->kind == CCT_COLL_ALL_REDUCE && row->ranks == 8 && !strcmp(row->protocol, "Simple"))
      *(strcmp(row->algorithm, "NVLS") ? &ring : &nvls) = row->busbw_gb_s.value;
  }
  for (int i = 0; i < eight->confidential.n_collectives; i++) {
    const struct cct_collective_cost *row = &eight->confidential.collectives[i];
    assert_string_not_equal(row->algorithm, "NVLS");
    if (row->kind == CCT_COLL_ALL_REDUCE && row->ranks == 8 && !strcmp(row->protocol, "Simple"))
      encrypted = row->busbw_gb_s.value;
  }
  assert_float_equal(nvls, 838.0, 1e-9);
  assert_float_equal(ring, 682.2, 1e-9);
  assert_float_equal(encrypted, 682.2 * 156 / 185, 0.01);
  assert_false(eight->capability.multicast);
  cct_profile_free(one);
  cct_profile_free(eight);
}

/* A shipped profile with one text replaced by another. */
static void assert_refused(const char *old, const char *new, const char *why) {
  char path[] = "/tmp/cctax_profile_XXXXXX.json", *text;
  size_t length;
  char source[4096];
  struct cct_profile *profile = NULL;
  struct cct_text changed = {0};
  snprintf(source, sizeof source, "%s/profiles/rtx-pro-6000-sev-snp.json", getenv("CCTAX_DATA"));
  assert_int_equal(cct_read_file(source, 1 << 20, &text, &length), CCT_OK);
  char *at = strstr(text, old);
  assert_non_null(at);
  cct_text_append(&changed, text, (size_t)(at - text));
  cct_text_add(&changed, "%s%s", new, at + strlen(old));
  write_temporary(path, changed.s);
  enum cct_status status = load(path, &profile);
  unlink(path);
  if (status != CCT_USAGE || !strstr(said, why) || !strchr(said, '\n') || strchr(said, '\n')[1])
    fail_msg("'%s' for '%s': status %d, said: %s", new, old, status, said);
  cct_text_free(&changed);
  free(text);
}

static void test_wrong_profiles_are_refused_by_path(void **state) {
  (void)state;
  assert_refused("\"schema\": 1", "\"schema\": 2", "$.schema: 2 is outside 1 to 1");
  assert_refused("\"gpu\": \"NVIDIA RTX PRO 6000 Blackwell\"", "\"gpu\": 6000",
                 "$.platform.gpu: an integer where a string");
  assert_refused("\"gpus\": 1,", "\"gpus\": 0,", "$.platform.gpus: 0 is outside");
  assert_refused("\"form\": \"host\"", "\"form\": \"hots\"",
                 "$.clear.submission.form: unknown 'hots'; did you mean 'host'?");
  assert_refused("\"value\": 3.45", "\"value\": -3.45", "$.clear.submission.us.value: -3.45 is outside");
  assert_refused("\"lo\": 3,", "\"lo\": 4,", "$.clear.submission.us.lo: 4 is outside");
  assert_refused("\"kind\": \"assumed\"", "\"kind\": \"guessed\"", "$.clear.submission.us.kind: unknown 'guessed'");
  assert_refused("\"sync\": {", "\"sink\": {", "$.clear: unknown key 'sink'; did you mean 'sync'?");
  assert_refused("\"us_per_node\"", "\"us\"", "not JSON: duplicate object key");
  assert_refused("\"blocks\": false", "\"blocks\": 0", "copy.h2d.pinned.blocks: an integer where a boolean");
  assert_refused("\"multicast\": false", "\"multicast\": null", "$.capability.multicast: null where a boolean");
  assert_refused("\"hbm_gb_s\"", "\"hbm_tb_s\"", "unknown key 'hbm_tb_s'; did you mean 'hbm_gb_s'?");
}

static void test_unknown_profile_is_refused(void **state) {
  (void)state;
  struct cct_profile *profile;
  assert_int_equal(load("b200x8-tdxx", &profile), CCT_USAGE);
  assert_non_null(strstr(said, "did you mean 'b200x8-tdx'"));
}

static void test_show(void **state) {
  (void)state;
  struct cct_profile *profile;
  char *text = NULL;
  size_t size = 0;
  assert_int_equal(cct_profile_load("b200x8-tdx", &profile), CCT_OK);
  FILE *out = open_memstream(&text, &size);
  cct_profile_show(profile, out);
  fclose(out);
  const char *line = strstr(text, "\nsubmission ");
  assert_non_null(line);
  char wanted[] = "submission us 3.45 34.45 (15.7..34.45) +31 published [1] [2]\n", got[256];
  size_t n = 0;
  for (const char *c = line + 1; n + 1 < sizeof got && (n == 0 || got[n - 1] != '\n'); c++)
    if (*c != ' ' || c[1] != ' ') /* as it stands but for the width of columns */
      got[n++] = *c;
  got[n] = '\0';
  assert_string_equal(got, wanted);
  assert_non_null(strstr(text, "all_reduce x8 NVLS/Simple busbw"));
  assert_non_null(strstr(text, "[1] arXiv 2608.26575"));
  free(text);
  cct_profile_free(profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shipped_profiles_are_read),
      cmocka_unit_test(test_published_figures),
      cmocka_unit_test(test_wrong_profiles_are_refused_by_path),
      cmocka_unit_test(test_unknown_profile_is_refused),
      cmocka_unit_test(test_show),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
