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
  X(doctor, CCT_DOCTOR, "", "say what this machine is, and whether it is fit to be measured")                          \
  X(plan, CCT_PLAN, "", "rank layouts by what confidential computing costs them")                                      \
  X(run, CCT_RUN, "[SUITE]", "perform a suite's cells under every arm and record them")                                \
  X(probe, CCT_PROBE, "", "measure the unit costs of every boundary")                                                  \
  X(profile, CCT_PROFILE, "OFF_RUN [ON_RUN]", "make a profile, one or both columns, of probe runs")                    \
  X(coll, CCT_COLL, "", "time collectives under nccl-tests' flags, and print its table")                               \
  X(tune, CCT_TUNE, "", "rules for NCCL's tuner plugin: never slower than its default, faster where shown")            \
  X(report, CCT_REPORT, "RUN...", "compare the arms of runs: table, figures, one self-contained page")                 \
  X(show, CCT_SHOW, "RUN|PROFILE", "print a run or a profile, as text or as JSON")                                     \
  X(check, CCT_CHECK, "RUN", "hold everything in a run against its digests")                                           \
  X(version, CCT_SELF, "", "the version of this program")                                                              \
  X(man, CCT_SELF, "", "the manual page: cctax man | man -l -")                                                        \
  X(completion, CCT_SELF, "bash", "completion for the shell: source <(cctax completion bash)")

struct cct_cli_command {
  const char *name;
  enum cct_command bit;
  const char *arguments, *summary;
  enum cct_status (*run)(const struct cct_options *options, const char *const *args, int n_args);
};

extern const struct cct_cli_command cct_cli_commands[];
extern const int cct_n_cli_commands;

#define CCT_COMMAND_DECLARE(name, ...)                                                                                 \
  enum cct_status cct_cmd_##name(const struct cct_options *options, const char *const *args, int n_args);
CCT_COMMANDS(CCT_COMMAND_DECLARE)
#undef CCT_COMMAND_DECLARE

#endif
