/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/own_suite.h"
#include "cli/probe_suite.h"

enum cct_status cct_cmd_probe(const struct cct_options *options, const char *const *args, int n_args) {
  struct cct_options own = {0};
  int64_t start_ns = cct_clock_ns();
  char again[4096] = "";
  int np = 1;
  if (n_args)
    return cct_fail(CCT_USAGE, "'%s': probe has a suite of its own; cctax run %s -o RUN performs another", args[0],
                    args[0]);
  if (options->v[CCT_OPT_OUTPUT].s)
    snprintf(again, sizeof again, "cctax probe -o %.4000s --resume", options->v[CCT_OPT_OUTPUT].s);
  if (cct_own_goes_on(options)) {
    enum cct_status begun = cct_own_check_begun(options->v[CCT_OPT_OUTPUT].s, CCT_PROBE_QUESTION, "probe");
    return begun ? begun : cct_run_perform(options, NULL, NULL, again);
  }
  enum cct_status status = cct_options_copy(options, &own);
  if (!status)
    status = cct_own_backend(&own);
  if (!status)
    status = cct_own_ranks(&own, &np);
  if (!status)
    status = cct_own_perform(&own, cct_probe_suite(own.v[CCT_OPT_BACKEND].s, np), NULL, again);
  cct_options_free(&own);
  if (!status || status == CCT_FOUND)
    cct_note("probed in %.1f s", (double)(cct_clock_ns() - start_ns) / 1e9);
  return status;
}
