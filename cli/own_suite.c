/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/own_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/launch.h"
#include "machine/gpu_passive.h"
#include "workloads/program/profile.h"

#define MOST_RANKS 8
#define HOST_RANKS 2

enum cct_status cct_own_backend(struct cct_options *options) {
  char why_not[256];
  if (strcmp(options->v[CCT_OPT_BACKEND].s, "auto"))
    return CCT_OK;
  enum cct_status status = cct_launch_why_no_cuda(why_not, sizeof why_not);
  if (!status && *why_not)
    cct_note("backend sim, the figures are predicted: %s", why_not);
  return status ? status : cct_option_set(options, CCT_OPT_BACKEND, *why_not ? "sim" : "cuda", "--backend");
}

enum cct_status cct_own_ranks(const struct cct_options *options, int *np_out) {
  const char *backend = options->v[CCT_OPT_BACKEND].s, *played = options->v[CCT_OPT_PROFILE_FILE].s;
  struct cct_gpu_passive gpus = {0};
  struct cct_profile *profile;
  int np = HOST_RANKS;
  if (options->v[CCT_OPT_NP].has_value) {
    np = (int)options->v[CCT_OPT_NP].i;
  } else if (!strcmp(backend, "cuda")) {
    cct_gpu_passive_read(&gpus);
    np = gpus.gpus > 0 ? gpus.gpus : 1;
  } else if (!strcmp(backend, "sim")) {
    enum cct_status status = cct_profile_load(played ? played : CCT_SIM_PLAYS, &profile);
    if (status)
      return status;
    np = profile->platform.gpus;
    cct_profile_free(profile);
  }
  *np_out = options->v[CCT_OPT_NP].has_value || np < MOST_RANKS ? np : MOST_RANKS;
  return CCT_OK;
}

int cct_own_goes_on(const struct cct_options *options) {
  int goes_on = options->v[CCT_OPT_RESUME].is_set || options->v[CCT_OPT_APPEND].is_set;
  for (int id = 0; goes_on && id < CCT_OPTION_COUNT; id++)
    goes_on = !options->v[id].is_set || cct_run_says_how((enum cct_option_id)id);
  return goes_on;
}

/* The run keeps the cells in its agenda; the file lives only until that is made. */
enum cct_status cct_own_perform(const struct cct_options *options, struct cct_json *suite, cct_run_print *print,
                                const char *again) {
  char path[] = CCT_OWN_SUITE "XXXXXX";
  struct cct_options own = {0};
  int fd = mkstemp(path);
  enum cct_status status =
      fd < 0 || !suite ? cct_fail(CCT_IO, "%s: a suite cannot be written there", path) : cct_json_save(suite, path);
  if (fd >= 0)
    close(fd);
  cct_json_free(suite);
  if (!status)
    status = cct_options_copy(options, &own);
  for (int id = 0; !status && id < CCT_OPTION_COUNT; id++)
    if (cct_option_table[id].scope == CCT_SCOPE_CELL)
      own.v[id].is_set = 0;
  if (!status)
    status = cct_run_perform(&own, path, print, again);
  cct_options_free(&own);
  if (fd >= 0)
    unlink(path);
  return status;
}
