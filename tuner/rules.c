/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

const char *const cct_tuner_collectives[] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
const char *const cct_tuner_algorithms[] = {"tree",      "ring", "collnet_direct", "collnet_chain", "nvls",
                                            "nvls_tree", "pat"};
const char *const cct_tuner_protocols[] = {"ll", "ll128", "simple"};
static const char *const conditions[] = {"any", "cc", "clear", "no-multicast"};
static const char *const headers[] = {"collective", "collective_type", "colltype"};
#define COUNT(words) (sizeof(words) / sizeof *(words))

enum {
  FIELDS_MIN = 8,
  FIELDS_MAX = 12
};
static const char *const field_names[FIELDS_MAX] = {"collective", "min bytes", "max bytes", "algorithm",
                                                    "protocol",   "channels",  "nodes",     "ranks",
                                                    "numPipeOps", "regBuff",   "condition", "GPU name"};

struct reader {
  const char *name;
  int line;
  char *why;
};

static enum cct_status refuse(const struct reader *reader, const char *format, ...) CCT_PRINTF(2, 3);
static enum cct_status refuse(const struct reader *reader, const char *format, ...) {
  va_list args;
  int n = snprintf(reader->why, CCT_RULES_WHY, "%s:%d: ", reader->name, reader->line);
  if (n > 0 && n < CCT_RULES_WHY) {
    va_start(args, format);
    vsnprintf(reader->why + n, (size_t)(CCT_RULES_WHY - n), format, args);
    va_end(args);
  }
  return CCT_USAGE;
}

static enum cct_status word_index(const struct reader *reader, int field, const char *word, const char *const *words,
                                  size_t n, int *index_out) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(word, words[i])) {
      *index_out = (int)i;
      return CCT_OK;
    }
  const char *near = cct_closest(word, words, n);
  return refuse(reader, "unknown %s '%.40s'%s%s%s", field_names[field], word, near ? ", did you mean '" : "",
                near ? near : "", near ? "'" : "");
}

/* A byte count up to 2^64 - 1, digits only; -1 as a maximum is "no end", as NVIDIA's example reads it. */
static enum cct_status bytes_field(const struct reader *reader, int field, const char *s, uint64_t *bytes_out) {
  char *end;
  if (field == 2 && !strcmp(s, "-1")) {
    *bytes_out = UINT64_MAX;
    return CCT_OK;
  }
  errno = 0;
  unsigned long long value = strtoull(s, &end, 10);
  if (*s < '0' || *s > '9' || *end || errno)
    return refuse(reader, "%s '%.40s' is not a number of bytes", field_names[field], s);
  *bytes_out = value;
  return CCT_OK;
}

/* An int in [low, high], or -1. */
static enum cct_status int_field(const struct reader *reader, int field, const char *s, int low, int high,
                                 int *value_out) {
  int64_t value;
  if (!cct_parse_i64(s, &value))
    return refuse(reader, "%s '%.40s' is not a number", field_names[field], s);
  if (value != -1 && (value < low || value > high))
    return refuse(reader, "%s %lld is neither -1 nor within %d..%d", field_names[field], (long long)value, low, high);
  *value_out = (int)value;
  return CCT_OK;
}

static enum cct_status rule_read(const struct reader *reader, char *const *fields, int n, struct cct_rule *rule_out) {
  struct cct_rule r = {.pipe_ops = -1, .reg_buff = -1, .line = reader->line};
  int condition = CCT_RULE_ANY;
  enum cct_status status;
  if ((status = word_index(reader, 0, fields[0], cct_tuner_collectives, CCT_TUNER_COLLECTIVES, &r.collective)) ||
      (status = bytes_field(reader, 1, fields[1], &r.min_bytes)) ||
      (status = bytes_field(reader, 2, fields[2], &r.max_bytes)) ||
      (status = word_index(reader, 3, fields[3], cct_tuner_algorithms, CCT_TUNER_ALGORITHMS, &r.algorithm)) ||
      (status = word_index(reader, 4, fields[4], cct_tuner_protocols, CCT_TUNER_PROTOCOLS, &r.protocol)) ||
      (status = int_field(reader, 5, fields[5], 0, CCT_TUNER_CHANNELS_MAX, &r.channels)) ||
      (status = int_field(reader, 6, fields[6], 1, INT_MAX, &r.nodes)) ||
      (status = int_field(reader, 7, fields[7], 1, INT_MAX, &r.ranks)) ||
      (n > 8 && (status = int_field(reader, 8, fields[8], 1, INT_MAX, &r.pipe_ops))) ||
      (n > 9 && (status = int_field(reader, 9, fields[9], 0, 1, &r.reg_buff))) ||
      (n > 10 && (status = word_index(reader, 10, fields[10], conditions, COUNT(conditions), &condition))))
    return status;
  if (r.min_bytes > r.max_bytes)
    return refuse(reader, "min bytes %s is more than max bytes %s", fields[1], fields[2]);
  if (n > 11 && (!*fields[11] || strlen(fields[11]) >= sizeof r.gpu))
    return refuse(reader, "GPU name must have 1 to %zu characters, or be 'any'", sizeof r.gpu - 1);
  if (n > 11 && strcmp(fields[11], "any") != 0)
    memcpy(r.gpu, fields[11], strlen(fields[11]) + 1);
  r.condition = (enum cct_rule_condition)condition;
  r.channels = r.channels == -1 ? 0 : r.channels;
  *rule_out = r;
  return CCT_OK;
}

static char *trimmed(char *s) {
  s += strspn(s, " \t\r");
  char *end = s + strlen(s);
  while (end > s && strchr(" \t\r", end[-1]))
    end--;
  *end = '\0';
  return s;
}

/* One line, which it cuts up; nothing for blank lines, comments, and a header before the first rule. */
static enum cct_status line_read(const struct reader *reader, char *line, struct cct_rules *rules) {
  char *fields[FIELDS_MAX], *rest = trimmed(line);
  int n = 0;
  if (!*rest || *rest == '#')
    return CCT_OK;
  while (rest) {
    char *field = strsep(&rest, ",");
    if (n == FIELDS_MAX)
      return refuse(reader, "more than %d fields", FIELDS_MAX);
    fields[n++] = trimmed(field);
  }
  for (size_t i = 0; i < COUNT(headers) && rules->n == 0; i++)
    if (!strcmp(fields[0], headers[i]))
      return CCT_OK;
  if (n < FIELDS_MIN)
    return refuse(reader,
                  "%d fields, at least %d are needed: collective,min,max,algorithm,protocol,channels,nodes,ranks", n,
                  FIELDS_MIN);
  if (rules->n == CCT_RULES_MAX)
    return refuse(reader, "more than %d rules", CCT_RULES_MAX);
  enum cct_status status = cct_grow((void **)&rules->items, &rules->capacity, rules->n + 1, sizeof *rules->items);
  if (!status && !(status = rule_read(reader, fields, n, &rules->items[rules->n])))
    rules->n++;
  return status;
}

enum cct_status cct_rules_parse(const char *name, const char *text, size_t length, struct cct_rules *rules_out,
                                char why_out[CCT_RULES_WHY]) {
  struct cct_rules rules = {0};
  struct reader reader = {.name = name, .why = why_out};
  enum cct_status status = CCT_OK;
  char *copy = malloc(length + 1);
  if (!copy) {
    snprintf(why_out, CCT_RULES_WHY, "%s: out of memory", name);
    return CCT_NOMEM;
  }
  memcpy(copy, text, length);
  copy[length] = '\0';
  for (char *line = copy, *end = copy + length; line && line <= end && !status;) {
    char *next = memchr(line, '\n', (size_t)(end - line));
    if (next)
      *next = '\0';
    reader.line++;
    if (strlen(line) != (size_t)((next ? next : end) - line))
      status = refuse(&reader, "a zero byte: not a text file");
    else
      status = line_read(&reader, line, &rules);
    line = next ? next + 1 : NULL;
  }
  free(copy);
  if (status) {
    if (status == CCT_NOMEM)
      snprintf(why_out, CCT_RULES_WHY, "%s: out of memory", name);
    cct_rules_free(&rules);
    return status;
  }
  *rules_out = rules;
  return CCT_OK;
}

enum cct_status cct_rules_read(const char *path, char **text_out, size_t *length_out, char why_out[CCT_RULES_WHY]) {
  struct stat facts;
  enum cct_status status = CCT_IO;
  char *text = NULL;
  size_t got = 0, size = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || fstat(fd, &facts) != 0)
    snprintf(why_out, CCT_RULES_WHY, "%s: cannot be read: %s", path, strerror(errno));
  else if (!S_ISREG(facts.st_mode) || facts.st_size > CCT_RULES_FILE_MAX)
    snprintf(why_out, CCT_RULES_WHY, "%s: not a regular file of at most %d bytes", path, CCT_RULES_FILE_MAX);
  else if (!(text = malloc((size = (size_t)facts.st_size) + 1)))
    snprintf(why_out, CCT_RULES_WHY, "%s: out of memory", path);
  else
    status = CCT_OK;
  while (!status && got < size) {
    ssize_t n = read(fd, text + got, size - got);
    if (n > 0) {
      got += (size_t)n;
    } else if (n == 0 || errno != EINTR) {
      snprintf(why_out, CCT_RULES_WHY, "%s: cannot be read: %s", path, n ? strerror(errno) : "it shrank meanwhile");
      status = CCT_IO;
    }
  }
  if (fd >= 0)
    close(fd);
  if (status) {
    free(text);
    return status;
  }
  text[got] = '\0';
  *text_out = text;
  *length_out = got;
  return CCT_OK;
}

void cct_rules_free(struct cct_rules *rules) {
  free(rules->items);
  *rules = (struct cct_rules){0};
}

static void take_field(const char *line, const char *key, char *out, size_t size) {
  const char *at = strstr(line, key);
  size_t n = at ? strcspn(at + strlen(key), ";\r") : 0;
  *out = '\0';
  if (n && n < size && strncmp(at + strlen(key), "none", n))
    snprintf(out, size, "%.*s", (int)n, at + strlen(key));
}

int cct_rules_origin(const char *text, size_t length, struct cct_rules_origin *origin_out) {
  static const char *const marks[] = {"# measured:", "# predicted:"};
  struct cct_rules_origin origin = {.ranks = 0};
  const char *end = text + length, *next;
  for (const char *at = text; at < end; at = next) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    char line[512], ranks[16];
    next = newline ? newline + 1 : end;
    int mark = 0;
    while (mark < 2 && ((size_t)(next - at) <= strlen(marks[mark]) || memcmp(at, marks[mark], strlen(marks[mark]))))
      mark++;
    if (mark == 2)
      continue;
    size_t n = (size_t)((newline ? newline : end) - at);
    n = n < sizeof line ? n : sizeof line - 1;
    memcpy(line, at, n);
    line[n] = '\0';
    take_field(line, " gpu=", origin.gpu, sizeof origin.gpu);
    take_field(line, " nccl=", origin.nccl, sizeof origin.nccl);
    take_field(line, " condition=", origin.condition, sizeof origin.condition);
    take_field(line, " ranks=", ranks, sizeof ranks);
    origin.ranks = atoi(ranks);
    origin.is_predicted = mark;
    *origin_out = origin;
    return 1;
  }
  return 0;
}

/* Every machine has Ring, and Tree for all-reduce; LL128, NVLS, CollNet and PAT depend on it. */
static int is_everywhere(const struct cct_rule *r) {
  return r->protocol != CCT_TUNER_LL128 &&
         (r->algorithm == CCT_TUNER_RING || (r->algorithm == CCT_TUNER_TREE && r->collective == CCT_TUNER_ALLREDUCE));
}

static int covers(int wide, int narrow) {
  return wide == -1 || wide == narrow;
}

/* Whether `early` holds wherever `late` does and leaves it no chance, sizes apart. */
static int hides(const struct cct_rule *early, const struct cct_rule *late) {
  return early->collective == late->collective && covers(early->nodes, late->nodes) &&
         covers(early->ranks, late->ranks) && covers(early->pipe_ops, late->pipe_ops) &&
         covers(early->reg_buff, late->reg_buff) &&
         (early->condition == CCT_RULE_ANY || early->condition == late->condition) &&
         !strncmp(early->gpu, late->gpu, strlen(early->gpu)) &&
         (is_everywhere(early) || (early->algorithm == late->algorithm && early->protocol == late->protocol));
}

/* The rule before `i` that covers `bytes` and hides it; `i` if there is none. */
static size_t hider(const struct cct_rules *rules, size_t i, uint64_t bytes) {
  for (size_t j = 0; j < i; j++)
    if (rules->items[j].min_bytes <= bytes && bytes <= rules->items[j].max_bytes &&
        hides(&rules->items[j], &rules->items[i]))
      return j;
  return i;
}

size_t cct_rules_unreachable(const struct cct_rules *rules, size_t *rule_out, size_t *by_out) {
  size_t n = 0;
  for (size_t i = 0; i < rules->n; i++) {
    const struct cct_rule *rule = &rules->items[i];
    size_t first = hider(rules, i, rule->min_bytes), j = first;
    while (j < i && rules->items[j].max_bytes < rule->max_bytes)
      j = hider(rules, i, rules->items[j].max_bytes + 1);
    if (j == i)
      continue;
    if (n++ == 0) {
      *rule_out = i;
      *by_out = first;
    }
  }
  return n;
}

char *cct_rule_text(const struct cct_rule *r, char out[CCT_RULE_TEXT]) {
  snprintf(out, CCT_RULE_TEXT, "%s,%llu,%llu,%s,%s,%d,%d,%d,%d,%d,%s,%s", cct_tuner_collectives[r->collective],
           (unsigned long long)r->min_bytes, (unsigned long long)r->max_bytes, cct_tuner_algorithms[r->algorithm],
           cct_tuner_protocols[r->protocol], r->channels ? r->channels : -1, r->nodes, r->ranks, r->pipe_ops,
           r->reg_buff, conditions[r->condition], r->gpu[0] ? r->gpu : "any");
  return out;
}
