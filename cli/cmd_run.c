/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "cli/command.h"
#include "cli/run.h"

enum cct_status cct_cmd_run(const struct cct_options *options, const char *const *args, int n_args) {
  if (n_args > 1)
    return cct_fail(CCT_USAGE, "'%s': one suite a run; a second was given", args[1]);
  return cct_run_perform(options, n_args ? args[0] : NULL, NULL, NULL);
}
