/* SPDX-License-Identifier: Apache-2.0
 * Traces of requests, line by line. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "json/json.h"
#include "workloads/serving/requests.h"

#define MOST_TOKENS ((int64_t)1 << 24)
#define MOST_BYTES  ((size_t)1 << 30)

enum {
  ARRIVAL,
  INPUT,
  OUTPUT,
  COLUMNS
};
static const char *const column_names[COLUMNS] = {"arrival", "input", "output"};

struct reading {
  const char *path;
  enum cct_arrivals arrivals;
  int is_timed;        /* arrivals count */
  int64_t line;        /* from 1 */
  int places[COLUMNS]; /* of the CSV's columns; -1: not there */
  int n_columns;
  struct cct_requests *requests;
  size_t capacity;
};

#define FAIL(r, ...) fail_at(r, __VA_ARGS__)
static enum cct_status fail_at(const struct reading *r, const char *format, ...) CCT_PRINTF(2, 3);
static enum cct_status fail_at(const struct reading *r, const char *format, ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return cct_fail(CCT_USAGE, "%s:%lld: %s", r->path, (long long)r->line, text);
}

static enum cct_status add(struct reading *r, double arrival, int64_t input, int64_t output) {
  struct cct_requests *requests = r->requests;
  const int64_t before = requests->n ? requests->items[requests->n - 1].arrival : 0;
  struct cct_request request = {.input = input, .output = output};
  if (input < 1 || input > MOST_TOKENS || output < 1 || output > MOST_TOKENS)
    return FAIL(r, "input %lld, output %lld: each is 1 to %lld tokens", (long long)input, (long long)output,
                (long long)MOST_TOKENS);
  if (r->is_timed) {
    if (!(arrival >= 0 && arrival <= 1e9))
      return FAIL(r, "arrival %g: from 0 to 1e9", arrival);
    if (r->arrivals == CCT_ARRIVE_STEPS && arrival != floor(arrival))
      return FAIL(r, "arrival %g: a step is a whole number", arrival);
    request.arrival = r->arrivals == CCT_ARRIVE_STEPS ? (int64_t)arrival : llround(arrival * 1e9);
    if (request.arrival < before)
      return FAIL(r, "arrival %g: before that of the line in front", arrival);
  }
  enum cct_status status =
      cct_grow((void **)&requests->items, &r->capacity, (size_t)requests->n + 1, sizeof *requests->items);
  if (!status)
    requests->items[requests->n++] = request;
  return status;
}

/* ---- CSV ---- */

static char *trim(char *text) {
  size_t length;
  text += strspn(text, " \t");
  length = strlen(text);
  while (length && strchr(" \t\r", text[length - 1]))
    text[--length] = '\0';
  return text;
}

static enum cct_status read_head(struct reading *r, char *line) {
  for (int c = 0; c < COLUMNS; c++)
    r->places[c] = -1;
  for (char *rest = line, *word; (word = strsep(&rest, ",")); r->n_columns++) {
    int c = 0;
    word = trim(word);
    while (c < COLUMNS && strcmp(word, column_names[c]))
      c++;
    if (c == COLUMNS)
      return FAIL(r, "column '%s': none of arrival, input, output", word);
    if (r->places[c] >= 0)
      return FAIL(r, "column '%s': twice", word);
    r->places[c] = r->n_columns;
  }
  for (int c = r->is_timed ? ARRIVAL : INPUT; c < COLUMNS; c++)
    if (r->places[c] < 0)
      return FAIL(r, "no column '%s'; the first line names arrival, input and output", column_names[c]);
  return CCT_OK;
}

static enum cct_status read_row(struct reading *r, char *line) {
  char *words[COLUMNS] = {NULL};
  int n = 0;
  double arrival = 0;
  int64_t lengths[COLUMNS] = {0};
  for (char *rest = line, *word; (word = strsep(&rest, ",")); n++)
    if (n < COLUMNS)
      words[n] = trim(word);
  if (n != r->n_columns)
    return FAIL(r, "%d values, and there are %d columns", n, r->n_columns);
  if (r->is_timed && !cct_parse_f64(words[r->places[ARRIVAL]], &arrival))
    return FAIL(r, "arrival '%s': no number", words[r->places[ARRIVAL]]);
  for (int c = INPUT; c < COLUMNS; c++)
    if (!cct_parse_i64(words[r->places[c]], &lengths[c]))
      return FAIL(r, "%s '%s': no whole number", column_names[c], words[r->places[c]]);
  return add(r, arrival, lengths[INPUT], lengths[OUTPUT]);
}

/* ---- JSONL ---- */

static enum cct_status read_object(struct reading *r, const char *line) {
  struct cct_json *document = NULL;
  char source[300];
  double arrival = 0;
  int64_t lengths[COLUMNS] = {0};
  snprintf(source, sizeof source, "%s:%lld", r->path, (long long)r->line);
  enum cct_status status = cct_json_parse(line, strlen(line), source, &document);
  if (status)
    return status;
  struct cct_json_at root = cct_json_root(document, source), at;
  status = cct_json_expect(&root, CCT_JSON_OBJECT);
  if (!status)
    status = cct_json_known_keys(&root, column_names, COLUMNS);
  at = cct_json_at_key(&root, column_names[ARRIVAL]);
  if (!status && (at.value || r->is_timed))
    status = cct_json_read_f64(&at, 0, 1e9, &arrival);
  for (int c = INPUT; !status && c < COLUMNS; c++) {
    at = cct_json_at_key(&root, column_names[c]);
    status = cct_json_read_i64(&at, 1, MOST_TOKENS, &lengths[c]);
  }
  cct_json_free(document);
  return status ? status : add(r, arrival, lengths[INPUT], lengths[OUTPUT]);
}

enum cct_status cct_requests_read(const char *path, enum cct_arrivals arrivals, struct cct_requests *requests_out) {
  struct cct_requests requests = {.arrivals = arrivals};
  struct reading r = {.path = path,
                      .arrivals = arrivals,
                      .is_timed = arrivals == CCT_ARRIVE_STEPS || arrivals == CCT_ARRIVE_SECONDS,
                      .requests = &requests};
  const char *dot = strrchr(path, '.');
  int is_csv = dot && !strcmp(dot, ".csv");
  char *text = NULL;
  size_t length;
  if (!is_csv && (!dot || strcmp(dot, ".jsonl") != 0))
    return cct_fail(CCT_USAGE, "%s: a trace is a .csv or a .jsonl file", path);
  enum cct_status status = cct_read_file(path, MOST_BYTES, &text, &length);
  char *begin = text && !strncmp(text, "\xef\xbb\xbf", 3) ? text + 3 : text; /* a byte order mark, as Excel writes */
  for (char *rest = begin, *line; !status && (line = strsep(&rest, "\n"));) {
    r.line++;
    if (!*trim(line) && (!rest || !*rest))
      break; /* what stands behind the last line's end */
    status = !is_csv ? read_object(&r, line) : r.line == 1 ? read_head(&r, line) : read_row(&r, line);
  }
  if (!status && !requests.n)
    status = cct_fail(CCT_USAGE, "%s: no requests", path);
  free(text);
  if (status) {
    cct_requests_free(&requests);
    return status;
  }
  *requests_out = requests;
  return CCT_OK;
}
