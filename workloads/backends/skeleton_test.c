/* SPDX-License-Identifier: Apache-2.0
 * The source's decode skeleton (arXiv 2608.26575 section 5.2, published.tsv skel-eager: 181 submissions a step, 2644 us
 * clear, 6358 us confidential), in the readings that its own unit costs allow: examples/decode-skeleton.json spreads
 * the clear step evenly over the submissions, and the surcharge of each is spent on the host or in the stream. Long
 * bursts, so that the step is what each repetition adds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "json/json.h"
#include "workloads/backends/predict.h"

enum {
  REPETITIONS = 1000,
};

static struct cct_job *load_skeleton(void) {
  char path[4096];
  struct cct_json *document;
  struct cct_job *job;
  snprintf(path, sizeof path, "%s/examples/decode-skeleton.json", getenv("CCT_SOURCE"));
  assert_int_equal(cct_json_load(path, &document), CCT_OK);
  struct cct_json_at at = cct_json_root(document, path);
  assert_int_equal(cct_job_from_json(&at, &job), CCT_OK);
  cct_json_free(document);
  return job;
}

static void test_readings_of_the_skeleton(void **state) {
  (void)state;
  static const struct {
    const char *profile;
    enum cct_submission_form form;
    unsigned mask;
    int step_us;
    const char *what;
  } readings[] = {
      {"b200x8-tdx", CCT_FORM_HOST, 0, 2644, "clear"},
      {"b200x8-tdx", CCT_FORM_HOST, 1u << CCT_BOUNDARY_CHANNEL, 6235, "host form, +31 us a submission"},
      {"b200-tdx", CCT_FORM_STREAM, 1u << CCT_BOUNDARY_CHANNEL, 4861, "stream form, +12.25 us a submission"},
      {"b200x8-tdx", CCT_FORM_STREAM, 1u << CCT_BOUNDARY_CHANNEL, 8255, "stream form, +31 us a submission"},
  };
  struct cct_job *job = load_skeleton();
  print_message("decode skeleton, 181 submissions a step: the source measured 2644 us clear, 6358 us confidential\n");
  for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
    struct cct_profile *profile;
    int64_t ns;
    assert_int_equal(cct_profile_load(readings[i].profile, &profile), CCT_OK);
    profile->confidential.submission.form = readings[i].form;
    assert_int_equal(cct_predict(job, profile, profile, readings[i].mask, NULL, REPETITIONS, &ns), CCT_OK);
    print_message("  %-38s %5lld us, x%.2f (predicted)\n", readings[i].what, (long long)(ns / 1000),
                  (double)ns / 2644e3);
    assert_int_equal(ns / 1000, readings[i].step_us);
    cct_profile_free(profile);
  }
  cct_job_free(job);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_readings_of_the_skeleton)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
