/* SPDX-License-Identifier: Apache-2.0
 * cctax: dispatch, help, exit code. */
#include "cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

const struct cct_cli_command cct_cli_commands[] = {
#define ROW(name, bit, arguments, summary) {#name, bit, arguments, summary, cct_cmd_##name},
    CCT_COMMANDS(ROW)
#undef ROW
};
enum {
  n_commands = sizeof cct_cli_commands / sizeof *cct_cli_commands
};
const int cct_n_cli_commands = n_commands;

static void overview(void) {
  puts("cctax: what confidential computing costs in AI training and serving\n\nusage: cctax COMMAND [FLAGS]\n");
  for (int i = 0; i < n_commands; i++)
    printf("  %-10s  %s\n", cct_cli_commands[i].name, cct_cli_commands[i].summary);
  puts("\ncctax COMMAND -h lists a command's flags; --help adds their defaults and the exit codes");
}

static enum cct_status command_help(const struct cct_cli_command *command, int is_full) {
  printf("usage: cctax %s%s%s [FLAGS]\n%s\n", command->name, *command->arguments ? " " : "", command->arguments,
         command->summary);
  enum cct_status status = cct_options_help(stdout, command->bit, is_full);
  if (!status && is_full)
    puts("\nexit codes:\n"
         "  0   done\n"
         "  1   done, and something wrong was found: a failed cell, damage, an unfit machine\n"
         "  2   bad input, or arms that may not be compared; nothing is written\n"
         "  3   ended by deadline, signal, lost rank or full disk; finished cells are kept, --resume goes on\n"
         "  77  nothing here can do it");
  return status;
}

static const struct cct_cli_command *find(const char *word) {
  const char *names[n_commands];
  for (int i = 0; i < n_commands; i++) {
    if (!strcmp(cct_cli_commands[i].name, word))
      return &cct_cli_commands[i];
    names[i] = cct_cli_commands[i].name;
  }
  const char *near = cct_closest(word, names, n_commands);
  if (near)
    cct_fail(CCT_USAGE, "'%s': unknown command; did you mean %s?", word, near);
  else
    cct_fail(CCT_USAGE, "'%s': unknown command; cctax --help lists them", word);
  return NULL;
}

static enum cct_status run_command(const struct cct_cli_command *command, int argc, char **argv) {
  struct cct_options options;
  const char **rest = malloc((size_t)(argc + 1) * sizeof *rest);
  int n_rest = 0;
  if (!rest)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = cct_options_init(&options);
  if (status)
    goto out;
  status = cct_options_parse(&options, command->bit, argc, argv, rest, &n_rest);
  if (status)
    goto out;
  cct_log_quiet((int)options.v[CCT_OPT_QUIET].i);
  if (options.v[CCT_OPT_HELP].is_set) {
    int is_full = 0;
    for (int i = 0; i < argc; i++)
      is_full |= !strcmp(argv[i], "--help");
    status = command_help(command, is_full);
    goto out;
  }
  status = command->run(&options, rest, n_rest);
out:
  cct_options_free(&options);
  free(rest);
  return status;
}

/* Output that did not reach its reader is a failure too: `cctax plan > /dev/full` must not end with 0. */
static enum cct_status flush_stdout(enum cct_status status) {
  if (fflush(stdout) == 0 && !ferror(stdout))
    return status;
  return status ? status : cct_fail(CCT_IO, "standard output cannot be written: %s", strerror(errno));
}

int main(int argc, char **argv) {
  if (argc < 2)
    return cct_status_exit(cct_fail(CCT_USAGE, "no command; cctax --help lists them"));
  if (!strcmp(argv[1], "help") && argc > 2) {
    const struct cct_cli_command *asked = find(argv[2]);
    return cct_status_exit(asked ? flush_stdout(command_help(asked, 1)) : CCT_USAGE);
  }
  if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
    overview();
    return cct_status_exit(flush_stdout(CCT_OK));
  }
  const struct cct_cli_command *command = find(strcmp(argv[1], "--version") ? argv[1] : "version");
  if (!command)
    return cct_status_exit(CCT_USAGE);
  return cct_status_exit(flush_stdout(run_command(command, argc - 2, argv + 2)));
}
