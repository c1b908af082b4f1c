/* SPDX-License-Identifier: Apache-2.0
 * cctax man: the manual page, from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"

/* `text` as roff prints it unchanged. */
static void put(const char *text) {
  for (const char *at = text; *at; at++) {
    if (*at == '\\' || *at == '-')
      putchar('\\');
    else if (at == text && (*at == '.' || *at == '\''))
      fputs("\\&", stdout);
    putchar(*at == '\\' ? 'e' : *at);
  }
}

static void put_commands(void) {
  puts(".SH COMMANDS");
  for (int i = 0; i < cct_n_cli_commands; i++) {
    const struct cct_cli_command *command = &cct_cli_commands[i];
    printf(".TP\n\\fB%s\\fR%s%s\n", command->name, *command->arguments ? " " : "", command->arguments);
    put(command->summary);
    putchar('\n');
  }
}

static void put_takers(const struct cct_option *row) {
  const char *separator = "Of ";
  int n = 0;
  for (int i = 0; i < cct_n_cli_commands; i++)
    n += (row->commands & (unsigned)cct_cli_commands[i].bit) != 0;
  if (n == cct_n_cli_commands)
    return;
  for (int i = 0; i < cct_n_cli_commands; i++) {
    if (!(row->commands & (unsigned)cct_cli_commands[i].bit))
      continue;
    printf("%s\\fB%s\\fR", separator, cct_cli_commands[i].name);
    separator = ", ";
  }
  puts(n ? "." : "A cell's key alone.");
}

static enum cct_status put_options(void) {
  struct cct_text text = {0};
  puts(".SH OPTIONS\nA value follows its flag as a word or behind \\fB=\\fR. In brackets: the default.");
  for (int id = 0; id < CCT_OPTION_COUNT && !text.is_failed; id++) {
    const struct cct_option *row = &cct_option_table[id];
    const char *group = cct_option_group((enum cct_option_id)id), *argument = cct_option_argument(row);
    if (group)
      printf(".SS \"%s\"\n", group);
    fputs(".TP\n", stdout);
    if (row->letter)
      printf("\\fB\\-%c\\fR, ", row->letter);
    fputs("\\fB\\-\\-", stdout);
    put(row->name);
    fputs("\\fR \\fI", stdout);
    put(argument ? argument : "");
    puts("\\fR");
    text.length = 0;
    cct_option_text(row, 1, &text);
    put(text.is_failed ? "" : text.s);
    puts(".");
    put_takers(row);
  }
  enum cct_status status = text.is_failed ? CCT_NOMEM : CCT_OK;
  cct_text_free(&text);
  return status;
}

static void put_exit_codes(void) {
  static const enum cct_status codes[] = {CCT_OK, CCT_FOUND, CCT_USAGE, CCT_STOPPED, CCT_UNSUPPORTED};
  puts(".SH EXIT STATUS");
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    printf(".TP\n\\fB%d\\fR\n", cct_status_exit(codes[i]));
    put(cct_status_text(codes[i]));
    puts(".");
  }
}

enum cct_status cct_cmd_man(const struct cct_options *options, const char *const *args, int n_args) {
  if (options->v[CCT_OPT_JSON].i)
    return cct_fail(CCT_USAGE, "--json: man prints a manual page; leave it out");
  if (n_args)
    return cct_fail(CCT_USAGE, "'%s': man takes no argument", args[0]);
  puts(".TH CCTAX 1 \"\" \"cctax " CCT_VERSION "\" \"User Commands\"\n"
       ".SH NAME\ncctax \\- what confidential computing costs in AI training and serving\n"
       ".SH SYNOPSIS\n\\fBcctax\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]");
  put_commands();
  enum cct_status status = put_options();
  put_exit_codes();
  puts(".SH ENVIRONMENT\n.TP\n\\fBCCTAX_DATA\\fR\nThe folder of models and profiles.");
  return status;
}
