/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/document.h"

enum cct_status cct_cmd_version(const struct cct_options *options, const char *const *args, int n_args) {
  if (n_args)
    return cct_fail(CCT_USAGE, "'%s': version takes no argument", args[0]);
  if (options->v[CCT_OPT_JSON].i) {
    struct cct_json *document = cct_document_new("version");
    cct_json_set_string(document, "version", CCT_VERSION);
    return cct_document_print(document);
  }
  printf("cctax %s\n", CCT_VERSION);
  return CCT_OK;
}
