/* SPDX-License-Identifier: Apache-2.0
 * cctax completion bash: what bash completes, from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"

static void put_flags(void) {
  puts("  case ${COMP_WORDS[1]} in");
  for (int i = 0; i < cct_n_cli_commands; i++) {
    printf("  %s) flags='", cct_cli_commands[i].name);
    for (int id = 0; id < CCT_OPTION_COUNT; id++)
      if (cct_option_table[id].commands & (unsigned)cct_cli_commands[i].bit)
        printf("--%s ", cct_option_table[id].name);
    puts("' ;;");
  }
  puts("  esac");
}

/* The words of those that have some; of the others, files or nothing. */
static void put_values(void) {
  puts("  case ${COMP_WORDS[COMP_CWORD - 1]} in");
  for (int id = 0; id < CCT_OPTION_COUNT; id++) {
    const struct cct_option *row = &cct_option_table[id];
    if (row->kind == CCT_KIND_FLAG)
      continue;
    printf("  --%s) ", row->name);
    if (row->kind == CCT_KIND_WORD) {
      fputs("COMPREPLY=($(compgen -W '", stdout);
      for (const char *at = row->argument; *at; at++)
        putchar(*at == '|' ? ' ' : *at);
      fputs("' -- \"$cur\")); ", stdout);
    } else if (row->kind == CCT_KIND_TEXT) {
      fputs("COMPREPLY=($(compgen -f -- \"$cur\")); ", stdout);
    }
    puts("return ;;");
  }
  puts("  esac");
}

enum cct_status cct_cmd_completion(const struct cct_options *options, const char *const *args, int n_args) {
  if (options->v[CCT_OPT_JSON].i)
    return cct_fail(CCT_USAGE, "--json: completion prints a shell script; leave it out");
  if (n_args != 1 || strcmp(args[0], "bash"))
    return cct_fail(CCT_USAGE, "completion takes the shell: bash");
  puts("_cctax() {\n  local cur=${COMP_WORDS[COMP_CWORD]} flags=");
  fputs("  if ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen -W '", stdout);
  for (int i = 0; i < cct_n_cli_commands; i++)
    printf("%s ", cct_cli_commands[i].name);
  puts("' -- \"$cur\"))\n    return\n  fi");
  put_values();
  put_flags();
  puts("  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"));\n"
       "  else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n}\ncomplete -o filenames -F _cctax cctax");
  return CCT_OK;
}
