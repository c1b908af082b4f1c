/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/coll.h"
#include "cli/command.h"
#include "cli/own_suite.h"
#include "workloads/program/profile.h"

/* nccl-tests' -o is the reduction; here -o is output, as in every command. */
static enum cct_status check_output(const struct cct_options *options) {
  static const char *const reductions[] = {"sum", "prod", "min", "max", "avg", "all"};
  const char *output = options->v[CCT_OPT_OUTPUT].s;
  for (size_t i = 0; output && i < sizeof reductions / sizeof *reductions; i++)
    if (!strcmp(output, reductions[i]))
      return cct_fail(CCT_USAGE, "-o %s: -o is the folder of the run; did you mean --op %s?", output, output);
  return CCT_OK;
}

/* Before anything is measured: it is read when the table is printed. */
static enum cct_status check_profile(const struct cct_options *options) {
  struct cct_profile *profile = NULL;
  if (!options->v[CCT_OPT_PROFILE_FILE].is_set)
    return CCT_OK;
  if (!strcmp(options->v[CCT_OPT_BACKEND].s, "host"))
    return cct_fail(CCT_USAGE,
                    "--profile: bandwidths are held against its link, and ranks of the host backend share no GPU's");
  enum cct_status status = cct_profile_load(options->v[CCT_OPT_PROFILE_FILE].s, &profile);
  cct_profile_free(profile);
  return status;
}

static enum cct_status print(const struct cct_agenda *agenda, const char *folder, const struct cct_options *flags,
                             enum cct_status ended) {
  const char *profile = flags->v[CCT_OPT_PROFILE_FILE].is_set ? flags->v[CCT_OPT_PROFILE_FILE].s : NULL;
  const struct cct_options *sizes = flags->v[CCT_OPT_RESUME].is_set || flags->v[CCT_OPT_APPEND].is_set ? NULL : flags;
  struct cct_coll_result result = {0};
  struct cct_text text = {0};
  enum cct_status status = cct_coll_read(agenda, folder, *agenda->profile ? agenda->profile : profile, &result);
  if (status)
    return status;
  if (flags->v[CCT_OPT_JSON].is_set) {
    struct cct_json *document = cct_coll_json(&result, sizes, ended);
    status = document ? cct_json_print(document, &text) : cct_fail(CCT_NOMEM, "out of memory");
    cct_json_free(document);
  } else {
    cct_coll_print(&result, sizes, &text);
  }
  if (!status && !text.is_failed && text.s)
    fputs(text.s, stdout);
  if (!status && flags->v[CCT_OPT_JSON].is_set)
    putchar('\n');
  cct_text_free(&text);
  cct_coll_free(&result);
  return status;
}

/* nccl-tests measures once; the seconds that this takes are the measure of what a default may take. */
static void set_defaults(struct cct_options *options) {
  if (!options->v[CCT_OPT_ROUNDS].is_set)
    options->v[CCT_OPT_ROUNDS].i = 1;
  if (!options->v[CCT_OPT_SAMPLES].is_set)
    options->v[CCT_OPT_SAMPLES].i = 5;
}

enum cct_status cct_cmd_coll(const struct cct_options *options, const char *const *args, int n_args) {
  struct cct_options own = {0};
  struct cct_json *suite = NULL;
  int ranks = 1;
  if (n_args)
    return cct_fail(CCT_USAGE, "'%s': coll takes flags alone; cctax run %s -o RUN performs a suite", args[0], args[0]);
  enum cct_status status = check_output(options);
  if (status)
    return status;
  if (cct_own_goes_on(options)) {
    status = cct_own_check_begun(options->v[CCT_OPT_OUTPUT].s, CCT_COLL_QUESTION, "coll");
    return status ? status : cct_run_perform(options, NULL, print, NULL);
  }
  status = cct_options_copy(options, &own);
  if (!status)
    status = cct_own_backend(&own);
  if (!status)
    status = check_profile(&own);
  if (!status)
    status = cct_own_ranks(&own, &ranks);
  if (!status)
    status = cct_coll_suite(&own, ranks, &suite);
  if (!status) {
    set_defaults(&own);
    status = cct_own_perform(&own, suite, print, NULL);
  }
  cct_options_free(&own);
  return status;
}
