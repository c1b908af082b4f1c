/* SPDX-License-Identifier: Apache-2.0 */
#include "report/pair.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "stats/stats.h"

/* What of a block counts here: its arm, and a round that is unique within its boot (rounds of two runs are never the
 * same). */
struct place {
  int arm, round;
};

enum {
  ROUNDS_A_RUN = 1 << 20
};

static enum cct_status list_arms(const struct cct_runs *runs, struct cct_report *report, struct place *places) {
  int total = 0;
  for (int b = 0; b < runs->n_blocks; b++) {
    const struct cct_record_head *head = &runs->blocks[b]->head;
    int arm = 0;
    while (arm < total && strcmp(report->arms[arm], head->arm))
      arm++;
    if (arm == total && total == CCT_MAX_ARMS)
      return cct_fail(CCT_USAGE, "%s: more than %d arms; report fewer runs at once", runs->blocks[b]->path,
                      CCT_MAX_ARMS);
    if (arm == total)
      snprintf(report->arms[total++], sizeof *report->arms, "%s", head->arm);
    places[b] = (struct place){arm, runs->run_of[b] * ROUNDS_A_RUN + head->round};
  }
  report->n_arms = total;
  return CCT_OK;
}

/* The baseline is `off` where there is one, then `stripped`, else the first arm. */
static void put_baseline_first(struct cct_report *report, struct place *places, int n) {
  static const char *const clear[] = {"off", "stripped"};
  int best = 0;
  for (size_t k = 0; k < 2 && !best && !strcmp(report->factor, "condition"); k++)
    for (int arm = 0; arm < report->n_arms; arm++)
      if (!strcmp(report->arms[arm], clear[k])) {
        best = arm;
        k = 2;
        break;
      }
  if (!best)
    return;
  char name[sizeof *report->arms];
  memcpy(name, report->arms[best], sizeof name);
  memcpy(report->arms[best], report->arms[0], sizeof name);
  memcpy(report->arms[0], name, sizeof name);
  for (int b = 0; b < n; b++)
    places[b].arm = places[b].arm == best ? 0 : places[b].arm == 0 ? best : places[b].arm;
}

/* One arm only: the A/A report. Several runs are told apart by run; the blocks of one run by turn, neighbours paired.
 */
static enum cct_status split_null(const struct cct_runs *runs, struct cct_report *report, struct place *places) {
  char name[96];
  snprintf(name, sizeof name, "%.90s", report->arms[0]);
  report->is_null = 1;
  report->n_arms = runs->n_runs > 1 ? runs->n_runs : 2;
  if (report->n_arms > CCT_MAX_ARMS)
    return cct_fail(CCT_USAGE, "%d runs of one arm: more than %d in one report", runs->n_runs, CCT_MAX_ARMS);
  for (int arm = 0; arm < report->n_arms; arm++)
    snprintf(report->arms[arm], sizeof *report->arms, "%s, %s %d", name, runs->n_runs > 1 ? "run" : "turn", arm + 1);
  for (int b = 0, turn = 0; b < runs->n_blocks; b++) {
    turn = b && runs->boot_of[b] == runs->boot_of[b - 1] ? turn + 1 : 0;
    places[b] =
        runs->n_runs > 1 ? (struct place){runs->run_of[b], places[b].round} : (struct place){turn % 2, turn / 2};
  }
  return CCT_OK;
}

/* The CELL as canonical text without the member `factor`, in which arms are allowed to differ. */
static enum cct_status strip_key(const char *key, const char *factor, const char *path, struct cct_text *text) {
  char quoted[40];
  snprintf(quoted, sizeof quoted, "\"%s\":", factor);
  text->length = 0;
  if (!strstr(key, quoted)) {
    cct_text_append(text, key, strlen(key));
    return text->is_failed ? CCT_NOMEM : CCT_OK;
  }
  struct cct_json *document = NULL, *kept = cct_json_new_object();
  enum cct_status status = cct_json_parse(key, strlen(key), path, &document);
  void *iterator = NULL;
  const char *name;
  const struct cct_json *value;
  while (!status && cct_json_next(document, &iterator, &name, &value))
    if (strcmp(name, factor))
      cct_json_set(kept, name, cct_json_copy(value));
  if (!status)
    status = cct_json_canonical(kept, text);
  cct_json_free(document);
  cct_json_free(kept);
  return status;
}

static const char *member_text(const struct cct_json *object, const char *key) {
  const struct cct_json *value = cct_json_member(object, key);
  return value ? cct_json_string(value) : NULL;
}

static enum cct_status new_cell(struct cct_report *report, const struct cct_block *block, const char *key,
                                const struct cct_metric *metric, int is_primary) {
  struct cct_report_cell cell = {.metric = *metric, .is_primary = is_primary};
  size_t capacity = (size_t)report->n_cells;
  if ((capacity & (capacity - 1)) == 0) { /* a power of two is a full table */
    void *grown = realloc(report->cells, (capacity ? capacity * 2 : 1) * sizeof *report->cells);
    if (!grown)
      return cct_fail(CCT_NOMEM, "out of memory: %d cells", report->n_cells);
    report->cells = grown;
  }
  cell.key = strdup(key);
  cell.arms = calloc((size_t)report->n_arms, sizeof *cell.arms);
  enum cct_status status = cell.key && cell.arms ? cct_json_parse(key, strlen(key), block->path, &cell.parameters)
                                                 : cct_fail(CCT_NOMEM, "out of memory: %d cells", report->n_cells);
  if (status) {
    free(cell.key);
    free(cell.arms);
    return status;
  }
  cell.workload = member_text(cell.parameters, "workload");
  cell.model = member_text(cell.parameters, "model");
  cell.layout = member_text(cell.parameters, "layout");
  report->cells[report->n_cells++] = cell;
  return CCT_OK;
}

/* Index of the cell, made where it is new. `hint`: where it is if this block lists its cells as the one before did. */
static enum cct_status find_cell(struct cct_report *report, const struct cct_block *block, const char *key,
                                 const struct cct_block_metric *metric, int is_primary, int hint, int *index_out) {
  for (int k = 0; k < report->n_cells; k++) {
    int i = (hint + k) % report->n_cells;
    if (!strcmp(report->cells[i].metric.name, metric->metric.name) && !strcmp(report->cells[i].key, key)) {
      *index_out = i;
      return CCT_OK;
    }
  }
  *index_out = report->n_cells;
  return new_cell(report, block, key, &metric->metric, is_primary);
}

static void refuse(struct cct_series *series, const struct cct_block *block, const char *why) {
  if (!*series->refusal)
    snprintf(series->refusal, sizeof series->refusal, "%.110s: %.80s", block->path, why);
}

/* A word that one block's label has holds for the whole series. */
static void add_label(struct cct_series *series, const char *label) {
  if (!strcmp(series->label, label))
    return;
  char copy[64], *rest = copy;
  snprintf(copy, sizeof copy, "%s", label);
  for (char *word; (word = strsep(&rest, ", "));) {
    size_t length = strlen(series->label);
    if (*word && !strstr(series->label, word))
      snprintf(series->label + length, sizeof series->label - length, "%s%s", length ? "," : "", word);
  }
}

struct work { /* memory that every series shares */
  double *steps, *scratch;
  size_t capacity, n_blocks;
};

/* Folds one block's samples into a series; spread and drift are settled in finish_series. */
static enum cct_status add_block(struct cct_series *series, const struct cct_block *block,
                                 const struct cct_block_cell *cell, const struct cct_block_metric *metric, int boot,
                                 int round, struct work *work) {
  char why[160] = "";
  size_t need = (size_t)metric->n_samples + 1, capacity = work->capacity;
  enum cct_status status = cct_grow((void **)&work->steps, &capacity, need, sizeof *work->steps);
  if (!status)
    status = cct_grow((void **)&work->scratch, &work->capacity, need, sizeof *work->scratch);
  if (status)
    return status;
  if (cell->state == CCT_CELL_FAILED || cell->state == CCT_CELL_REFUSED) {
    snprintf(why, sizeof why, "%s: %.120s", cell->state == CCT_CELL_FAILED ? "failed" : "refused", cell->reason);
    refuse(series, block, why);
    return CCT_OK;
  }
  int n = cct_reduce_samples(metric, work->steps, why, sizeof why);
  if (!n) {
    refuse(series, block, why);
    return CCT_OK;
  }
  if (!series->units) { /* at most one value a block */
    series->units = malloc(work->n_blocks * sizeof *series->units);
    series->drifts = malloc(work->n_blocks * sizeof *series->drifts);
    if (!series->units || !series->drifts)
      return cct_fail(CCT_NOMEM, "out of memory: %zu blocks", work->n_blocks);
  }
  size_t count = (size_t)n;
  series->outliers += (int)cct_count_outliers(work->steps, count, work->scratch);
  memcpy(work->scratch, work->steps, count * sizeof *work->steps);
  cct_sort(work->scratch, count);
  double median = cct_quantile(work->scratch, count, 0.5);
  int is_flat = work->scratch[0] == work->scratch[n - 1];
  series->is_flat =
      is_flat && (!series->n_units || (series->is_flat && fabs(series->units[0].value) == fabs(log(median))));
  series->spread += (cct_quantile(work->scratch, count, 0.9) - cct_quantile(work->scratch, count, 0.1)) / median;
  series->drifts[series->n_units] = cct_drift(work->steps, count, work->scratch);
  int sign = strcmp(metric->metric.better, "higher") ? 1 : -1;
  series->units[series->n_units++] = (struct cct_unit){boot, round, sign * log(median)};
  series->n_samples += n;
  if (!series->n_repetitions)
    series->n_repetitions = metric->samples[0].n > 0 ? metric->samples[0].n : 1;
  add_label(series, cell->label ? cell->label : "");
  return CCT_OK;
}

static enum cct_status add_cells(struct cct_report *report, const struct cct_runs *runs, int b,
                                 const struct place *place, struct cct_text *key, struct work *work) {
  const struct cct_block *block = runs->blocks[b];
  enum cct_status status = CCT_OK;
  int at = 0;
  for (int c = 0; !status && c < block->n_cells; c++) {
    const struct cct_block_cell *cell = &block->cells[c];
    if (cell->state == CCT_CELL_OPEN)
      continue; /* the deadline came first: this block says nothing about this cell */
    status = strip_key(cell->key, report->factor, block->path, key);
    for (int m = 0; !status && m < cell->n_metrics; m++) {
      status = find_cell(report, block, key->s, &cell->metrics[m], m == 0, at, &at);
      if (!status)
        status = add_block(&report->cells[at].arms[place->arm], block, cell, &cell->metrics[m], runs->boot_of[b],
                           place->round, work);
      at++;
    }
  }
  return status;
}

static enum cct_status finish_series(struct cct_series *series) {
  if (!series->n_units)
    return CCT_OK;
  series->spread /= series->n_units;
  series->is_flat = series->is_flat && series->n_samples > 1;
  struct cct_interval drift = cct_interval_mean(series->drifts, (size_t)series->n_units);
  series->drift = drift.estimate;
  series->is_drifting = drift.df > 0 && fabs(drift.estimate) > 0.005 && (drift.lo > 0 || drift.hi < 0);
  if (*series->refusal || series->n_units < 2)
    return CCT_OK;
  enum cct_status status = cct_compare_halves(series->units, (size_t)series->n_units, &series->null);
  series->has_null = !status && series->null.df > 0 && series->null.se > 0;
  return status;
}

/* ---- titles ---- */

static int same_text(const char *a, const char *b) {
  return a == b || (a && b && !strcmp(a, b));
}

/* Whether cells of one workload differ in this parameter: only then it says something in their titles. Cells without it
 * (dispatch, in a layout without experts) count only with `is_strict`. */
static int varies(const struct cct_report *report, const char *key, const char *workload, int is_strict) {
  struct cct_text first = {0}, other = {0};
  int found = 0, seen = 0;
  for (int c = 0; c < report->n_cells && !found; c++) {
    const struct cct_json *value = cct_json_member(report->cells[c].parameters, key);
    if (!same_text(report->cells[c].workload, workload) || (!value && !is_strict))
      continue;
    struct cct_text *text = seen ? &other : &first;
    text->length = 0;
    if (!value || cct_json_canonical(value, text) != CCT_OK)
      cct_text_append(text, "-", 1);
    found = seen && first.s && other.s && strcmp(first.s, other.s) != 0;
    seen = 1;
  }
  cct_text_free(&first);
  cct_text_free(&other);
  return found;
}

static void add_word(struct cct_report_cell *cell, const char *key, const struct cct_json *value) {
  char word[96] = "", bytes[32];
  const char *text = cct_json_string(value);
  if (text)
    snprintf(word, sizeof word, "%s%s%.60s", key, *key ? " " : "", text);
  else if (!strcmp(key, "bytes"))
    snprintf(word, sizeof word, "%s", cct_bytes_text(cct_json_number(value), bytes));
  else if (cct_json_type(value) == CCT_JSON_BOOL)
    snprintf(word, sizeof word, "%s%s", cct_json_is_true(value) ? "" : "no ", key);
  else
    snprintf(word, sizeof word, "%s %.10g", key, cct_json_number(value));
  size_t length = strlen(cell->title);
  snprintf(cell->title + length, sizeof cell->title - length, "%s%s", length ? ", " : "", word);
  for (char *p = cell->title + length; *p; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      *p = ' '; /* a title is one line wherever it stands */
}

enum {
  MAX_KEYS = 64
};

/* The keys that any cell has, in the order of their appearance, but those that lead every title. */
static int list_keys(const struct cct_report *report, char keys[MAX_KEYS][40]) {
  int n = 0;
  for (int c = 0; c < report->n_cells; c++) {
    void *iterator = NULL;
    const char *key;
    const struct cct_json *value;
    while (cct_json_next(report->cells[c].parameters, &iterator, &key, &value)) {
      int k = 0;
      while (k < n && strcmp(keys[k], key))
        k++;
      if (k == n && n < MAX_KEYS && strlen(key) < 40 && strcmp(key, "workload") && strcmp(key, "model") &&
          strcmp(key, "layout"))
        snprintf(keys[n++], 40, "%s", key);
    }
  }
  return n;
}

static void add_leading(struct cct_report_cell *cell) {
  static const char *const leading[] = {"workload", "model", "layout"};
  for (int k = 0; k < 3; k++) {
    const struct cct_json *value = cct_json_member(cell->parameters, leading[k]);
    if (value)
      add_word(cell, "", value);
  }
}

static int by_title(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int titles_are_distinct(const struct cct_report *report) {
  const char **titles = malloc((size_t)report->n_cells * sizeof *titles);
  int is_distinct = 1;
  for (int c = 0; titles && c < report->n_cells; c++)
    titles[c] = report->cells[c].title;
  if (titles)
    qsort(titles, (size_t)report->n_cells, sizeof *titles, by_title);
  for (int c = 1; titles && c < report->n_cells && is_distinct; c++)
    is_distinct = strcmp(titles[c - 1], titles[c]) != 0;
  free(titles);
  return is_distinct;
}

static void write_titles(struct cct_report *report, int is_strict) {
  char keys[MAX_KEYS][40];
  int n_keys = list_keys(report, keys), shown[MAX_KEYS];
  for (int c = 0; c < report->n_cells; c++) {
    struct cct_report_cell *cell = &report->cells[c];
    /* Cells come in runs of one workload; what varies within it is looked up once a run. */
    if (c == 0 || !same_text(report->cells[c - 1].workload, cell->workload))
      for (int k = 0; k < n_keys; k++)
        shown[k] = varies(report, keys[k], cell->workload, is_strict);
    *cell->title = '\0';
    add_leading(cell);
    for (int k = 0; k < n_keys; k++) {
      const struct cct_json *value = shown[k] ? cct_json_member(cell->parameters, keys[k]) : NULL;
      if (value)
        add_word(cell, keys[k], value);
    }
    if (!*cell->title)
      snprintf(cell->title, sizeof cell->title, "%.150s", cell->key);
    if (!cell->is_primary) {
      size_t length = strlen(cell->title);
      snprintf(cell->title + length, sizeof cell->title - length, ", %s", cell->metric.name);
    }
  }
}

static void make_titles(struct cct_report *report) {
  write_titles(report, 0);
  if (!titles_are_distinct(report))
    write_titles(report, 1);
}

enum cct_status cct_pair_cells(const struct cct_runs *runs, struct cct_report *report) {
  struct cct_text key = {0};
  struct work work = {.n_blocks = (size_t)runs->n_blocks};
  struct place *places = calloc((size_t)runs->n_blocks, sizeof *places);
  report->arm_of = calloc((size_t)runs->n_blocks, sizeof *report->arm_of);
  if (!places || !report->arm_of) {
    free(places);
    return cct_fail(CCT_NOMEM, "out of memory: %d blocks", runs->n_blocks);
  }
  snprintf(report->factor, sizeof report->factor, "%s", runs->blocks[0]->head.factor);
  enum cct_status status = list_arms(runs, report, places);
  if (!status && report->n_arms > 1)
    put_baseline_first(report, places, runs->n_blocks);
  else if (!status)
    status = split_null(runs, report, places);
  for (int b = 0; b < runs->n_blocks; b++)
    report->arm_of[b] = places[b].arm;
  for (int b = 0; !status && b < runs->n_blocks; b++)
    status = add_cells(report, runs, b, &places[b], &key, &work);
  for (int c = 0; !status && c < report->n_cells; c++)
    for (int a = 0; !status && a < report->n_arms; a++)
      status = finish_series(&report->cells[c].arms[a]);
  if (!status)
    make_titles(report);
  cct_text_free(&key);
  free(work.steps);
  free(work.scratch);
  free(places);
  return status;
}

void cct_pair_free(struct cct_report *report) {
  for (int c = 0; c < report->n_cells; c++) {
    struct cct_report_cell *cell = &report->cells[c];
    for (int a = 0; cell->arms && a < report->n_arms; a++) {
      free(cell->arms[a].units);
      free(cell->arms[a].drifts);
    }
    free(cell->arms);
    free(cell->key);
    cct_json_free(cell->parameters);
  }
  free(report->cells);
  free(report->arm_of);
}
