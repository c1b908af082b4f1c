/* SPDX-License-Identifier: Apache-2.0
 * The subcommands of `cctax`. One row makes a command known to dispatch, help, did-you-mean, the man page and
 * completion; its code is cct_cmd_NAME in cli/cmd_NAME.c. `args` are the words that are no flags. A command logs its
 * own error line and returns the status that becomes the exit code. */
#ifndef CCT_CLI_COMMAND_H
#define CCT_CLI_COMMAND_H

#include "base/option.h"
#include "base/status.h"

/* X(name, option bit, arguments, summary) */
#define CCT_COMMANDS(X)                                                                                                \
  X(doctor, CCT_DOCTOR, "", "what is this machine, and is it fit to be measured?")                                     \
  X(plan, CCT_PLAN, "", "rank layouts by what confidential computing costs them")                                      \
  X(run, CCT_RUN, "[SUITE]", "perform a suite's cells under every arm and record them")                                \
  X(probe, CCT_PROBE, "", "unit costs of every boundary")                                                              \
  X(profile, CCT_PROFILE, "OFF_RUN [ON_RUN]", "probe runs -> a profile, one or both columns")                          \
  X(coll, CCT_COLL, "", "collectives, timed and printed as nccl-tests does")                                           \
  X(report, CCT_REPORT, "RUN...", "pairs, figures, pages")                                                             \
  X(show, CCT_SHOW, "RUN|PROFILE", "a run or a profile as text")                                                       \
  X(check, CCT_CHECK, "RUN", "is everything in a run what was written")                                                \
  X(version, CCT_VERSION_COMMAND, "", "what this build has")

struct cct_cli_command {
  const char *name;
  enum cct_command bit;
  const char *arguments, *summary;
  enum cct_status (*run)(const struct cct_options *options, const char *const *args, int n_args);
};

#define CCT_COMMAND_DECLARE(name, ...)                                                                                 \
  enum cct_status cct_cmd_##name(const struct cct_options *options, const char *const *args, int n_args);
CCT_COMMANDS(CCT_COMMAND_DECLARE)
#undef CCT_COMMAND_DECLARE

#endif
