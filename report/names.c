/* SPDX-License-Identifier: Apache-2.0 */
#include "report/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum {
  MAX_KEYS = 64,
  N_LEADING = 3
};

enum telling {
  ABSENT, /* no cell of the kind has the key */
  SHARED, /* all have it, and one value */
  PARTLY, /* some have it, and one value */
  USUAL,  /* all have it, and one value twice as often as any other: only the others name theirs */
  TOLD,
};

struct use { /* of one key in the cells of one kind */
  enum telling telling;
  char *usual; /* owned: the word of all but ABSENT and TOLD */
};

struct cct_names {
  char keys[MAX_KEYS][40]; /* the leading ones first */
  int n_keys, n_kinds;
  int *first;                /* owned: a kind's first cell */
  int *size;                 /* owned: its cells */
  int is_leading[N_LEADING]; /* not every cell has the same */
  struct use *uses;          /* owned: n_kinds times n_keys */
};

static const char *const leading[N_LEADING] = {"workload", "model", "layout"};

void cct_names_free(struct cct_names *names) {
  if (!names)
    return;
  for (int i = 0; names->uses && i < names->n_kinds * names->n_keys; i++)
    free(names->uses[i].usual);
  free(names->uses);
  free(names->first);
  free(names->size);
  free(names);
}

int cct_names_kinds(const struct cct_report *report) {
  return report->names->n_kinds;
}

const char *cct_kind_name(const struct cct_report *report, int kind) {
  return report->cells[report->names->first[kind]].kind;
}

static struct use *use_of(const struct cct_names *names, int kind, int key) {
  return &names->uses[kind * names->n_keys + key];
}

/* The parameter that names the cell's kind: "collective" of workload collective. */
static int names_kind(const struct cct_report_cell *cell, const char *key) {
  return cell->workload && !strcmp(key, cell->workload);
}

/* "graph none", "64 MiB", "no overlap", "qwen3-8b": one line wherever it stands; 0: the cell has no such key. */
int cct_cell_word(const struct cct_report_cell *cell, const char *key, char *out, size_t size) {
  const struct cct_json *value = cct_json_member(cell->parameters, key);
  if (!value)
    return 0;
  int is_bare = names_kind(cell, key);
  for (int k = 0; k < N_LEADING; k++)
    is_bare |= !strcmp(key, leading[k]);
  const char *text = cct_json_string(value), *name = is_bare ? "" : key, *space = is_bare ? "" : " ";
  char bytes[32];
  if (text)
    snprintf(out, size, "%s%s%s", name, space, text);
  else if (!strcmp(key, "bytes"))
    snprintf(out, size, "%s", cct_bytes_text(cct_json_number(value), bytes));
  else if (cct_json_type(value) == CCT_JSON_BOOL)
    snprintf(out, size, "%s%s", cct_json_is_true(value) ? "" : "no ", key);
  else
    snprintf(out, size, "%s%s%.15g", name, space, cct_json_number(value));
  for (char *p = out; *p; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      *p = ' ';
  return 1;
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* With `is_strict` a cell that lacks a key counts as a value, and no value as usual. */
static enum cct_status judge_key(const struct cct_report *report, int kind, int key, int is_strict, char **words) {
  const struct cct_names *names = report->names;
  struct use *use = use_of(names, kind, key);
  char word[128];
  int n = 0, best = 0, second = 0, best_at = 0;
  for (int c = names->first[kind]; c < report->n_cells; c++) {
    if (report->cells[c].kind_index != kind || !cct_cell_word(&report->cells[c], names->keys[key], word, sizeof word))
      continue;
    if (!(words[n] = strdup(word)))
      return cct_fail(CCT_NOMEM, "out of memory: names of %d cells", report->n_cells);
    n++;
  }
  if (n)
    qsort(words, (size_t)n, sizeof *words, by_text);
  for (int i = 0, j; i < n; i = j) {
    for (j = i; j < n && !strcmp(words[j], words[i]); j++)
      ;
    if (j - i > best) {
      second = best;
      best = j - i;
      best_at = i;
    } else if (j - i > second) {
      second = j - i;
    }
  }
  free(use->usual);
  use->usual = NULL;
  use->telling = !n                                                                    ? ABSENT
                 : best == n && n == names->size[kind]                                 ? SHARED
                 : best == n && !is_strict                                             ? PARTLY
                 : best >= 2 * second && n > 2 && n == names->size[kind] && !is_strict ? USUAL
                                                                                       : TOLD;
  for (int i = 0; i < n; i++)
    if (i == best_at && use->telling != TOLD)
      use->usual = words[i];
    else
      free(words[i]);
  return CCT_OK;
}

void cct_cell_name(const struct cct_report *report, int at, const char *without, char *out, size_t size) {
  const struct cct_names *names = report->names;
  const struct cct_report_cell *cell = &report->cells[at];
  char word[128];
  *out = '\0';
  /* What tells it; where nothing does, what it is; where that has no name, all there is. */
  for (int pass = 0; pass < 3 && !*out; pass++)
    for (int k = 0; k < names->n_keys; k++) {
      const char *key = names->keys[k];
      const struct use *use = use_of(names, cell->kind_index, k);
      int is_kind = !strcmp(key, "workload") || names_kind(cell, key);
      /* The workload's own parameter speaks for it: "all_reduce", not "collective all_reduce". */
      if (!strcmp(key, without) || (is_kind && !strcmp(without, "workload")) ||
          (!strcmp(key, "workload") && cell->workload && cct_json_member(cell->parameters, cell->workload)))
        continue;
      int is_lead = k < N_LEADING || is_kind;
      int is_told = k < N_LEADING ? names->is_leading[k] : use->telling == TOLD || use->telling == USUAL;
      is_told = is_told || (is_kind && names->is_leading[0]) || (pass == 1 && is_lead) || pass == 2;
      if (!is_told || !cct_cell_word(cell, key, word, sizeof word) ||
          (pass < 2 && k >= N_LEADING && use->telling == USUAL && !strcmp(word, use->usual)))
        continue;
      size_t length = strlen(out);
      snprintf(out + length, size - length, "%s%s", !length ? "" : is_lead ? " " : ", ", word);
    }
  if (!*out)
    snprintf(out, size, "%s", cell->kind);
}

int cct_cell_names_metric(const struct cct_report_cell *cell) {
  return !cell->is_primary || (cell->workload && !strcmp(cell->workload, "serve"));
}

static void write_titles(struct cct_report *report) {
  for (int c = 0; c < report->n_cells; c++) {
    struct cct_report_cell *cell = &report->cells[c];
    cct_cell_name(report, c, "", cell->title, sizeof cell->title);
    size_t length = strlen(cell->title);
    if (cct_cell_names_metric(cell))
      snprintf(cell->title + length, sizeof cell->title - length, ", %s", cell->metric.name);
  }
}

static int titles_are_distinct(const struct cct_report *report, char **titles) {
  int is_distinct = 1;
  for (int c = 0; c < report->n_cells; c++)
    titles[c] = report->cells[c].title;
  qsort(titles, (size_t)report->n_cells, sizeof *titles, by_text);
  for (int c = 1; c < report->n_cells && is_distinct; c++)
    is_distinct = strcmp(titles[c - 1], titles[c]) != 0;
  return is_distinct;
}

/* Kinds in the order of their first cells. */
static void find_kinds(struct cct_report *report, struct cct_names *names) {
  for (int c = 0; c < report->n_cells; c++) {
    struct cct_report_cell *cell = &report->cells[c];
    int kind = 0;
    while (kind < names->n_kinds && strcmp(report->cells[names->first[kind]].kind, cell->kind))
      kind++;
    if (kind == names->n_kinds)
      names->first[names->n_kinds++] = c;
    names->size[kind]++;
    cell->kind_index = kind;
  }
}

static int by_key(const void *a, const void *b) {
  return strcmp(a, b);
}

static void add_key(struct cct_names *names, const char *key) {
  int k = 0;
  while (k < names->n_keys && strcmp(names->keys[k], key))
    k++;
  if (k == names->n_keys && k < MAX_KEYS && strlen(key) < sizeof *names->keys)
    snprintf(names->keys[names->n_keys++], sizeof *names->keys, "%s", key);
}

/* The leading keys, those that name a kind, then the others by name. */
static void find_keys(const struct cct_report *report, struct cct_names *names) {
  for (int k = 0; k < N_LEADING; k++)
    add_key(names, leading[k]);
  for (int kind = 0; kind < names->n_kinds; kind++) {
    const struct cct_report_cell *cell = &report->cells[names->first[kind]];
    if (cell->workload && cct_json_member(cell->parameters, cell->workload))
      add_key(names, cell->workload);
  }
  int sorted = names->n_keys;
  for (int c = 0; c < report->n_cells; c++) {
    void *iterator = NULL;
    const char *key;
    const struct cct_json *value;
    while (cct_json_next(report->cells[c].parameters, &iterator, &key, &value))
      add_key(names, key);
  }
  qsort(names->keys[sorted], (size_t)(names->n_keys - sorted), sizeof *names->keys, by_key);
  char word[128], other[128];
  for (int k = 0; k < N_LEADING; k++)
    for (int c = 1; c < report->n_cells; c++) {
      int has = cct_cell_word(&report->cells[0], leading[k], word, sizeof word);
      names->is_leading[k] |=
          has != cct_cell_word(&report->cells[c], leading[k], other, sizeof other) || (has && strcmp(word, other) != 0);
    }
  names->is_leading[0] |= names->n_kinds > 1;
}

enum cct_status cct_names_make(struct cct_report *report) {
  struct cct_names *names = report->names = calloc(1, sizeof *names);
  size_t n = (size_t)report->n_cells;
  char **words = malloc(n * sizeof *words);
  enum cct_status status = CCT_OK;
  if (names) {
    names->first = malloc(n * sizeof *names->first);
    names->size = calloc(n, sizeof *names->size);
  }
  if (!names || !words || !names->first || !names->size) {
    status = cct_fail(CCT_NOMEM, "out of memory: names of %d cells", report->n_cells);
    goto out;
  }
  find_kinds(report, names);
  find_keys(report, names);
  names->uses = calloc((size_t)names->n_kinds * (size_t)names->n_keys, sizeof *names->uses);
  if (!names->uses)
    status = cct_fail(CCT_NOMEM, "out of memory: names of %d cells", report->n_cells);
  for (int is_strict = 0; !status && is_strict < 2; is_strict++) {
    for (int kind = 0; !status && kind < names->n_kinds; kind++)
      for (int k = 0; !status && k < names->n_keys; k++)
        status = judge_key(report, kind, k, is_strict, words);
    if (!status)
      write_titles(report);
    if (!status && titles_are_distinct(report, words))
      break;
  }
out:
  free(words);
  return status;
}

/* ---- what is said once ---- */

static int is_same_use(const struct use *a, const struct use *b) {
  return a->telling == b->telling && a->usual && b->usual && !strcmp(a->usual, b->usual);
}

/* One value of a key, with the kinds that share it where others have another. */
static void add_shared(const struct cct_names *names, const struct cct_report *report, int key, int kind,
                       const char *separator, struct cct_text *text) {
  int is_of_all = 1, n = 0;
  const struct use *use = use_of(names, kind, key);
  for (int j = 0; j < names->n_kinds; j++)
    is_of_all &= use_of(names, j, key)->telling == ABSENT || is_same_use(use_of(names, j, key), use);
  cct_text_add(text, "%s%s", separator, use->usual);
  for (int j = kind; j < names->n_kinds && !is_of_all; j++)
    if (is_same_use(use_of(names, j, key), use))
      cct_text_add(text, "%s%s", n++ ? ", " : " (", cct_kind_name(report, j));
  cct_text_add(text, is_of_all ? "" : ")");
}

void cct_names_shared(const struct cct_report *report, struct cct_text *text) {
  const struct cct_names *names = report->names;
  for (enum telling telling = SHARED; telling <= USUAL; telling++) {
    static const char *const heads[] = {
        [SHARED] = "all cells: ", [PARTLY] = "where a cell has one: ", [USUAL] = "unless named: "};
    char head[40];
    snprintf(head, sizeof head, "%s%s", text->length ? "; " : "", heads[telling]);
    const char *separator = head;
    for (int k = 0; k < names->n_keys; k++)
      for (int kind = 0; kind < names->n_kinds; kind++) {
        const struct use *use = use_of(names, kind, k);
        int is_told =
            k < N_LEADING ? names->is_leading[k] : names_kind(&report->cells[names->first[kind]], names->keys[k]);
        for (int j = 0; j < kind; j++)
          is_told |= is_same_use(use_of(names, j, k), use);
        if (use->telling != telling || is_told)
          continue;
        add_shared(names, report, k, kind, separator, text);
        separator = ", ";
      }
  }
}
