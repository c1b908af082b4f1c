/* SPDX-License-Identifier: Apache-2.0 */
#include "base/option.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const struct cct_option cct_option_table[CCT_OPTION_COUNT] = {
#define ROW(id, name, letter, kind, min, max, standard, argument, commands, scope, help)                               \
  {name, letter, CCT_KIND_##kind, (double)(min), (double)(max), standard, argument, commands, CCT_SCOPE_##scope, help},
    CCT_OPTIONS(ROW)
#undef ROW
};

static int is_word_of(const char *word, const char *words) {
  size_t length = strlen(word);
  for (const char *at = words; length; at++) {
    if (!strncmp(at, word, length) && (at[length] == '|' || !at[length]))
      return 1;
    at = strchr(at, '|');
    if (!at)
      return 0;
  }
  return 0;
}

static enum cct_status check_range(const struct cct_option *row, double value, const char *text, const char *where) {
  if (value >= row->min && value <= row->max)
    return CCT_OK;
  if (row->max > 1e18) /* INT64_MAX, which no text reaches */
    return cct_fail(CCT_USAGE, "%s: %s is below %.15g", where, text, row->min);
  return cct_fail(CCT_USAGE, "%s: %s is outside %.15g to %.15g", where, text, row->min, row->max);
}

static enum cct_status set_value(const struct cct_option *row, struct cct_value *value, const char *text,
                                 const char *where) {
  struct cct_value next = {.has_value = 1};
  enum cct_status status = CCT_OK;
  switch (row->kind) {
  case CCT_KIND_FLAG:
    next.i = 1;
    break;
  case CCT_KIND_I64:
    if (!cct_parse_i64(text, &next.i))
      return cct_fail(CCT_USAGE, "%s: '%s' is not a whole number", where, text);
    status = check_range(row, (double)next.i, text, where);
    break;
  case CCT_KIND_F64:
    if (!cct_parse_f64(text, &next.f))
      return cct_fail(CCT_USAGE, "%s: '%s' is not a number", where, text);
    status = check_range(row, next.f, text, where);
    break;
  case CCT_KIND_BYTES:
    if (!cct_parse_bytes(text, &next.i))
      return cct_fail(CCT_USAGE, "%s: '%s' is not a size (such as 4096, 4K, 1M, 2G)", where, text);
    status = check_range(row, (double)next.i, text, where);
    break;
  case CCT_KIND_WORD:
    if (!is_word_of(text, row->argument))
      return cct_fail(CCT_USAGE, "%s: '%s' is none of %s", where, text, row->argument);
    break;
  case CCT_KIND_TEXT:
    if (!*text)
      return cct_fail(CCT_USAGE, "%s: empty; it takes %s", where, row->argument);
    break;
  }
  if (status)
    return status;
  if (text && !(next.s = strdup(text)))
    return cct_fail(CCT_NOMEM, "%s: out of memory", where);
  free(value->s);
  *value = next;
  return CCT_OK;
}

enum cct_status cct_options_init(struct cct_options *options) {
  memset(options, 0, sizeof *options);
  for (int id = 0; id < CCT_OPTION_COUNT; id++) {
    const struct cct_option *row = &cct_option_table[id];
    if (!row->standard)
      continue;
    enum cct_status status = set_value(row, &options->v[id], row->standard, row->name);
    if (status) {
      cct_options_free(options);
      return status;
    }
  }
  return CCT_OK;
}

enum cct_status cct_options_copy(const struct cct_options *from, struct cct_options *options_out) {
  struct cct_options copy = *from;
  for (int id = 0; id < CCT_OPTION_COUNT; id++)
    copy.v[id].s = NULL;
  for (int id = 0; id < CCT_OPTION_COUNT; id++)
    if (from->v[id].s && !(copy.v[id].s = strdup(from->v[id].s))) {
      cct_options_free(&copy);
      return cct_fail(CCT_NOMEM, "out of memory");
    }
  *options_out = copy;
  return CCT_OK;
}

void cct_options_free(struct cct_options *options) {
  for (int id = 0; id < CCT_OPTION_COUNT; id++)
    free(options->v[id].s);
  memset(options, 0, sizeof *options);
}

enum cct_status cct_option_copy(const struct cct_options *options, enum cct_option_id id, char *text, size_t size) {
  const char *value = options->v[id].s;
  if (value && strlen(value) >= size)
    return cct_fail(CCT_USAGE, "--%s: longer than %zu bytes", cct_option_table[id].name, size - 1);
  snprintf(text, size, "%s", value ? value : "");
  return CCT_OK;
}

enum cct_status cct_option_set(struct cct_options *options, enum cct_option_id id, const char *text,
                               const char *where) {
  enum cct_status status = set_value(&cct_option_table[id], &options->v[id], text, where);
  if (!status)
    options->v[id].is_set = 1;
  return status;
}

enum cct_option_id cct_option_by_name(const char *name) {
  int id = 0;
  while (id < CCT_OPTION_COUNT && strcmp(cct_option_table[id].name, name))
    id++;
  return (enum cct_option_id)id;
}

char *cct_option_key(enum cct_option_id id, char out[32]) {
  snprintf(out, 32, "%s", cct_option_table[id].name);
  for (char *p = out; (p = strchr(p, '-'));)
    *p = '_';
  return out;
}

enum cct_option_id cct_option_by_key(const char *key) {
  char own[32];
  int id = 0;
  while (id < CCT_OPTION_COUNT && strcmp(cct_option_key((enum cct_option_id)id, own), key))
    id++;
  return (enum cct_option_id)id;
}

static enum cct_status refuse_unknown(enum cct_command command, const char *flag, const char *name) {
  const char *names[CCT_OPTION_COUNT];
  size_t n = 0;
  for (int id = 0; id < CCT_OPTION_COUNT; id++)
    if (cct_option_table[id].commands & (unsigned)command)
      names[n++] = cct_option_table[id].name;
  const char *near = cct_closest(name, names, n);
  if (near)
    return cct_fail(CCT_USAGE, "%s: unknown flag; did you mean --%s?", flag, near);
  return cct_fail(CCT_USAGE, "%s: unknown flag; --help lists the flags", flag);
}

/* Splits "--name=value", "--name" and "-x"; finds the row. */
static enum cct_status find_row(enum cct_command command, const char *word, enum cct_option_id *id_out,
                                const char **value_out) {
  char name[64];
  int id = CCT_OPTION_COUNT;
  *value_out = NULL;
  if (word[1] == '-') {
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), word + 2);
    id = (int)cct_option_by_name(name);
    *value_out = equals ? equals + 1 : NULL;
  } else {
    snprintf(name, sizeof name, "%s", word + 1);
    for (id = 0; id < CCT_OPTION_COUNT; id++)
      if (cct_option_table[id].letter && cct_option_table[id].letter == word[1] && !word[2])
        break;
  }
  if (id == CCT_OPTION_COUNT || !(cct_option_table[id].commands & (unsigned)command))
    return refuse_unknown(command, word, name);
  *id_out = (enum cct_option_id)id;
  return CCT_OK;
}

static enum cct_status take_flag(struct cct_options *options, enum cct_option_id id, const char *word,
                                 const char *text) {
  const struct cct_option *row = &cct_option_table[id];
  struct cct_value *value = &options->v[id];
  if (value->is_set)
    return cct_fail(CCT_USAGE, "%s: given twice", word);
  if (row->scope == CCT_SCOPE_CELL && row->kind != CCT_KIND_TEXT && text && strchr(text, ',')) {
    char *list = strdup(text);
    if (!list)
      return cct_fail(CCT_NOMEM, "%s: out of memory", word);
    free(value->s);
    *value = (struct cct_value){.is_set = 1, .has_value = 1, .s = list};
    return CCT_OK;
  }
  return cct_option_set(options, id, text, word);
}

enum cct_status cct_options_parse(struct cct_options *options, enum cct_command command, int argc, char **argv,
                                  const char **rest, int *n_rest_out) {
  int n_rest = 0, only_rest = 0;
  for (int i = 0; i < argc; i++) {
    const char *word = argv[i], *text;
    enum cct_option_id id = 0; /* find_row sets it where it succeeds, which gcc 12 at -O3 does not see */
    if (only_rest || word[0] != '-' || !word[1]) {
      rest[n_rest++] = word;
      continue;
    }
    if (!strcmp(word, "--")) {
      only_rest = 1;
      continue;
    }
    enum cct_status status = find_row(command, word, &id, &text);
    if (status)
      return status;
    char flag[72];
    snprintf(flag, sizeof flag, "--%s", cct_option_table[id].name);
    if (cct_option_table[id].kind == CCT_KIND_FLAG) {
      if (text)
        return cct_fail(CCT_USAGE, "%s: takes no value", flag);
    } else if (!text) {
      if (++i == argc)
        return cct_fail(CCT_USAGE, "%s: takes %s", flag, cct_option_table[id].argument);
      text = argv[i];
    }
    status = take_flag(options, id, flag, text);
    if (status)
      return status;
  }
  *n_rest_out = n_rest;
  return CCT_OK;
}
