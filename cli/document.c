/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/document.h"

#include <stdio.h>

#include "base/text.h"

struct cct_json *cct_document_new(const char *command) {
  struct cct_json *document = cct_json_new_object();
  cct_json_set_i64(document, "schema", 1);
  cct_json_set_string(document, "tool", "cctax " CCT_VERSION);
  cct_json_set_string(document, "command", command);
  return document;
}

enum cct_status cct_document_print(struct cct_json *document) {
  struct cct_text text = {0};
  enum cct_status status = cct_json_print(document, &text);
  if (!status)
    puts(text.s);
  cct_text_free(&text);
  cct_json_free(document);
  return status;
}
