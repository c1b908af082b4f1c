/* SPDX-License-Identifier: Apache-2.0
 * A job of a cmocka test from its JSON text; the caller frees it. */
#ifndef CCT_TESTS_JOB_TEXT_H
#define CCT_TESTS_JOB_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "json/json.h"
#include "workloads/program/program.h"

static inline struct cct_job *job_of_text(const char *text) {
  struct cct_json *document;
  struct cct_job *job;
  assert_int_equal(cct_json_parse(text, strlen(text), "test", &document), CCT_OK);
  struct cct_json_at at = cct_json_root(document, "test");
  assert_int_equal(cct_job_from_json(&at, &job), CCT_OK);
  cct_json_free(document);
  return job;
}

#endif
