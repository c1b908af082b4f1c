/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/serving/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int64_t arrival_of(const struct cct_requests *requests, const struct cct_history *history, int64_t request,
                          const struct cct_step_times *steps) {
  switch (requests->arrivals) {
  case CCT_ARRIVE_CLOSED:
    return history->room_steps[request] < 0 ? 0 : steps->known_ns[history->room_steps[request]];
  case CCT_ARRIVE_STEPS:
    return steps->begin_ns[history->arrival_steps[request]];
  case CCT_ARRIVE_SECONDS:
    return requests->items[request].arrival;
  case CCT_ARRIVE_ZERO:
    break;
  }
  return 0;
}

/* Adds to the gap of this length in the step, or begins another; `from` is the step's first. */
static void count_gap(struct cct_serve_times *times, int64_t from, const struct cct_gap *gap) {
  int64_t i = from;
  while (i < times->n_gaps && (times->gaps[i].replica != gap->replica || times->gaps[i].gap_ns != gap->gap_ns))
    i++;
  if (i == times->n_gaps)
    times->gaps[times->n_gaps++] = (struct cct_gap){gap->at_ns, gap->gap_ns, 0, gap->replica};
  times->gaps[i].n += gap->n;
}

enum cct_status cct_serve_times(const struct cct_requests *requests, const struct cct_history *history,
                                int64_t replicas, const struct cct_step_times *steps,
                                const struct cct_request_times *before, struct cct_serve_times *times_out) {
  struct cct_serve_times times = {.requests = malloc((size_t)requests->n * sizeof *times.requests),
                                  .gaps = malloc(((size_t)history->n_emissions + 1) * sizeof *times.gaps)};
  if (!times.requests || !times.gaps) {
    cct_serve_times_free(&times);
    return cct_fail(CCT_NOMEM, "out of memory: %lld requests", (long long)requests->n);
  }
  for (int64_t i = 0; i < requests->n; i++)
    times.requests[i] = (struct cct_request_times){-1, -1, -1, -1};
  int64_t from = 0;
  for (int64_t i = 0; i < history->n_emissions; i++) {
    const struct cct_emission *emission = &history->emissions[i];
    struct cct_request_times *request = &times.requests[emission->request];
    int64_t now = steps->known_ns[emission->step];
    if (i && emission->step != history->emissions[i - 1].step)
      from = times.n_gaps;
    if (request->first_ns < 0 && before) {
      *request = before[emission->request];
      request->last_ns = request->first_ns;
      request->moved_ns = steps->moved_ns[history->move_steps[emission->request]];
    }
    if (request->first_ns < 0) {
      request->arrival_ns = arrival_of(requests, history, emission->request, steps);
      request->first_ns = now;
    } else {
      const struct cct_gap gap = {now, now - request->last_ns, 1, emission->request % replicas};
      count_gap(&times, from, &gap);
    }
    request->last_ns = now;
  }
  *times_out = times;
  return CCT_OK;
}

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

void cct_serve_join(struct cct_request_times *all, const struct cct_request_times *one, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    all[i] =
        (struct cct_request_times){later(all[i].arrival_ns, one[i].arrival_ns), later(all[i].first_ns, one[i].first_ns),
                                   later(all[i].last_ns, one[i].last_ns), later(all[i].moved_ns, one[i].moved_ns)};
}

void cct_serve_arrive(struct cct_request_times *all, const int64_t *room_requests, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    all[i].arrival_ns = room_requests[i] < 0 ? 0 : all[room_requests[i]].last_ns;
}

void cct_serve_times_free(struct cct_serve_times *times) {
  if (!times)
    return;
  free(times->requests);
  free(times->gaps);
  memset(times, 0, sizeof *times);
}

/* ---- SLO ---- */

/* "200ms"; 0: none. */
static int64_t duration_of(const char *text) {
  static const struct {
    const char *unit;
    double ns;
  } units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  size_t length = strlen(text);
  for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
    size_t tail = strlen(units[u].unit);
    char number[32];
    double value;
    if (length <= tail || strcmp(text + length - tail, units[u].unit) != 0 || length - tail >= sizeof number)
      continue;
    snprintf(number, sizeof number, "%.*s", (int)(length - tail), text);
    if (cct_parse_f64(number, &value) && value > 0 && value * units[u].ns >= 1 && value * units[u].ns < 1e18)
      return (int64_t)(value * units[u].ns + 0.5);
  }
  return 0;
}

enum cct_status cct_slo_parse(const char *text, struct cct_slo *slo_out) {
  static const char *const names[] = {"ttft=", "tpot=", "e2e="};
  struct cct_slo slo = {0};
  int64_t *const limits[] = {&slo.ttft_ns, &slo.tpot_ns, &slo.e2e_ns};
  char *copy = strdup(text);
  if (!copy)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = CCT_OK;
  for (char *rest = copy, *word; !status && (word = strsep(&rest, ","));) {
    size_t i = 0;
    while (i < 3 && strncmp(word, names[i], strlen(names[i])) != 0)
      i++;
    int64_t ns = i < 3 ? duration_of(word + strlen(names[i])) : 0;
    if (!ns || *limits[i])
      status = cct_fail(CCT_USAGE, "--slo: '%s' is no limit such as ttft=200ms, tpot=50ms or e2e=20s, each once", word);
    else
      *limits[i] = ns;
  }
  free(copy);
  if (!status)
    *slo_out = slo;
  return status;
}

int cct_slo_is_kept(const struct cct_slo *slo, const struct cct_request *request,
                    const struct cct_request_times *times) {
  double tpot = request->output > 1 ? (double)(times->last_ns - times->first_ns) / (double)(request->output - 1) : 0;
  return (!slo->ttft_ns || times->first_ns - times->arrival_ns <= slo->ttft_ns) &&
         (!slo->tpot_ns || tpot <= (double)slo->tpot_ns) &&
         (!slo->e2e_ns || times->last_ns - times->arrival_ns <= slo->e2e_ns);
}
