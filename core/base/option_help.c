/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "base/text.h"

#define LEFT  30  /* columns for the flag; a longer one has the first line to itself */
#define WIDTH 100 /* of a line */
#define SHORT 22  /* words of an argument that stay beside the flag */

const char *cct_option_group(enum cct_option_id id) {
  switch (id) {
  case CCT_OPT_OUTPUT:
    return "results";
  case CCT_OPT_MODEL:
    return "what is performed (also a cell's keys in suite.json, with _ for -)";
  case CCT_OPT_GRAPH:
    return "how a step is built (also a cell's keys)";
  case CCT_OPT_COLLECTIVE:
    return "collectives and probes";
  case CCT_OPT_BACKEND:
    return "machine and method";
  case CCT_OPT_DRY_RUN:
    return "the run";
  case CCT_OPT_SWEEP:
    return "the plan";
  case CCT_OPT_ALLOW:
    return "the report";
  case CCT_OPT_BEFORE_RUN:
    return "the machine";
  case CCT_OPT_RULES:
    return "the tuner";
  case CCT_OPT_JSON:
    return "every command";
  default:
    return NULL;
  }
}

const char *cct_option_argument(const struct cct_option *row) {
  return row->kind == CCT_KIND_WORD && strlen(row->argument) > SHORT ? "WORD" : row->argument;
}

void cct_option_text(const struct cct_option *row, int is_full, struct cct_text *text) {
  cct_text_add(text, "%s", row->help);
  if (row->kind == CCT_KIND_WORD && strlen(row->argument) > SHORT) {
    cct_text_add(text, "; one of ");
    for (const char *at = row->argument; *at; at++)
      cct_text_append(text, *at == '|' ? ", " : at, *at == '|' ? 2 : 1);
  }
  if (is_full && row->standard)
    cct_text_add(text, " [%s]", row->standard);
}

/* `text` by words, the first of them in column LEFT, like those of every further line. */
static void print_wrapped(FILE *out, const char *text) {
  size_t column = LEFT;
  for (const char *word = text; *word;) {
    size_t length = strcspn(word, " ");
    if (column > LEFT && column + 1 + length > WIDTH) {
      fprintf(out, "\n%*s", LEFT, "");
      column = LEFT;
    }
    column += (size_t)fprintf(out, "%s%.*s", column > LEFT ? " " : "", (int)length, word);
    word += length + strspn(word + length, " ");
  }
  fputc('\n', out);
}

enum cct_status cct_options_help(FILE *out, enum cct_command command, int is_full) {
  struct cct_text text = {0};
  const char *group = NULL;
  int is_failed = 0;
  for (int id = 0; id < CCT_OPTION_COUNT && !is_failed; id++) {
    const struct cct_option *row = &cct_option_table[id];
    const char *begun = cct_option_group((enum cct_option_id)id), *argument = cct_option_argument(row);
    group = begun ? begun : group;
    if (!(row->commands & (unsigned)command))
      continue;
    if (group)
      fprintf(out, "\n%s:\n", group);
    group = NULL;
    char letter[8] = "    ", left[80];
    if (row->letter)
      snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, row->name, argument ? " " : "", argument ? argument : "");
    fprintf(out, "%-*s", LEFT, left);
    if (strlen(left) >= LEFT)
      fprintf(out, "\n%*s", LEFT, "");
    text.length = 0;
    cct_option_text(row, is_full, &text);
    is_failed = text.is_failed;
    print_wrapped(out, is_failed ? "" : text.s);
  }
  cct_text_free(&text);
  return is_failed ? CCT_NOMEM : CCT_OK;
}
