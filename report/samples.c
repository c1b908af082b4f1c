/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/series.h"

enum {
  MAX_RANK = 1 << 16
};

static int by_index(const void *left, const void *right) {
  const struct cct_sample *a = left, *b = right;
  return (a->index > b->index) - (a->index < b->index);
}

int cct_metric_is_counted(const struct cct_metric *metric) {
  return !strcmp(metric->name, "itl");
}

int cct_metric_has_tail(const struct cct_metric *metric) {
  static const char *const names[] = {"ttft", "tpot", "itl", "e2e", "kv_transfer"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(metric->name, names[i]))
      return 1;
  return 0;
}

enum cct_measure cct_metric_measure(const struct cct_metric *metric) {
  static const char *const times[] = {"s", "ms", "us", "ns"};
  struct cct_metric body = *metric;
  size_t unit = strlen(metric->unit), name = strlen(metric->name);
  if (name > 4 && !strcmp(metric->name + name - 4, "_p99"))
    body.name[name - 4] = '\0';
  if (cct_metric_has_tail(&body))
    return CCT_MEASURE_WAIT;
  int is_speed = unit > 2 && !strcmp(metric->unit + unit - 2, "/s") && strcmp(metric->name, "goodput") != 0;
  for (size_t i = 0; i < sizeof times / sizeof *times; i++)
    is_speed |= !strcmp(metric->unit, times[i]);
  return is_speed ? CCT_MEASURE_WORK : CCT_MEASURE_COUNT;
}

int cct_metric_may_be_zero(const struct cct_metric *metric) {
  return !strcmp(metric->name, "goodput");
}

/* What makes a sample unusable, NULL if nothing does. Samples come in the order of their indices. Requests are numbered
 * before they come, so that theirs may start in any order; and none a second may keep its limits. */
static const char *fault(const struct cct_metric *metric, const struct cct_sample *s, int n_ranks,
                         int64_t *last_start) {
  int is_of_request = cct_metric_has_tail(metric) && !cct_metric_is_counted(metric);
  if (isnan(s->value))
    return "is not a number";
  if (isinf(s->value))
    return "is infinite";
  if (s->value < 0)
    return "is negative: the clock went back";
  if (s->value == 0 && !cct_metric_may_be_zero(metric))
    return "is zero: below what the clock can tell";
  if (s->rank < 0 || s->rank >= n_ranks)
    return "has an impossible rank";
  if (s->start_ns < last_start[s->rank] && !is_of_request)
    return "started before the one before it: the clock went back";
  last_start[s->rank] = s->start_ns;
  return NULL;
}

static int times_of(const struct cct_block_metric *metric, const struct cct_sample *sample) {
  return cct_metric_is_counted(&metric->metric) && sample->n > 1 ? sample->n : 1;
}

size_t cct_metric_values(const struct cct_block_metric *metric) {
  size_t n = 0;
  for (int i = 0; i < metric->n_samples; i++)
    n += (size_t)times_of(metric, &metric->samples[i]);
  return n;
}

int cct_reduce_samples(const struct cct_block_metric *metric, double *steps_out, char *refusal, size_t refusal_size) {
  int n = metric->n_samples, steps = 0, is_lower = strcmp(metric->metric.better, "higher") != 0;
  struct cct_sample *sorted = malloc(((size_t)n + 1) * sizeof *sorted);
  int n_ranks = 0;
  for (int i = 0; i < n; i++)
    if (metric->samples[i].rank >= n_ranks && metric->samples[i].rank < MAX_RANK)
      n_ranks = metric->samples[i].rank + 1;
  int64_t *last_start = malloc(((size_t)n_ranks + 1) * sizeof *last_start);
  if (!sorted || !last_start) {
    snprintf(refusal, refusal_size, "out of memory");
    goto out;
  }
  memcpy(sorted, metric->samples, (size_t)n * sizeof *sorted);
  int is_sorted = 1;
  for (int i = 1; i < n && is_sorted; i++)
    is_sorted = sorted[i - 1].index <= sorted[i].index;
  if (!is_sorted)
    qsort(sorted, (size_t)n, sizeof *sorted, by_index);
  for (int r = 0; r < n_ranks; r++)
    last_start[r] = INT64_MIN;
  for (int i = 0; i < n; i++) {
    const struct cct_sample *s = &sorted[i];
    const char *why = fault(&metric->metric, s, n_ranks, last_start);
    if (why) {
      snprintf(refusal, refusal_size, "sample %d of rank %d %s", s->index, s->rank, why);
      steps = 0;
      goto out;
    }
    if (i == 0 || s->index != sorted[i - 1].index)
      for (int k = times_of(metric, s); k > 0; k--)
        steps_out[steps++] = s->value;
    else if (is_lower ? s->value > steps_out[steps - 1] : s->value < steps_out[steps - 1])
      steps_out[steps - 1] = s->value;
  }
  if (!steps)
    snprintf(refusal, refusal_size, "no samples");
out:
  free(sorted);
  free(last_start);
  return steps;
}
