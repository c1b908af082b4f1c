/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/log.h"
#include "cli/command.h"

enum cct_status cct_cmd_version(const struct cct_options *options, const char *const *args, int n_args) {
  (void)options;
  if (n_args)
    return cct_fail(CCT_USAGE, "'%s': version takes no argument", args[0]);
  printf("cctax %s\n", CCT_VERSION);
  return CCT_OK;
}
