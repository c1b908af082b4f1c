/* SPDX-License-Identifier: Apache-2.0
 * A sequence: the funnel asks for each step's binding between two looks at exchanges, as soon as the first host lane is
 * through with the step before and no track is so far behind that it still reads the set to be written; tracks take a
 * bound set over when they come to its step. */
#include "workloads/backends/host.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

/* The first host lane is through with the step before, all with the one CCT_SEQUENCE_DEPTH before; and no track reads
 * any more, for a prev: wait neither, what this step's set holds. */
static int is_due(const struct cct_executor *x, int64_t index) {
  int is_first = 1;
  for (int i = 0; i < x->n_tracks; i++) {
    const struct cct_host_track *track = &x->tracks[i];
    int64_t lag = track->kind != CCT_HOST_LANE ? CCT_HOST_SETS - 1 : is_first ? 1 : CCT_SEQUENCE_DEPTH;
    is_first &= track->kind != CCT_HOST_LANE;
    if (atomic_load(&track->through) < index - lag + 1)
      return 0;
  }
  return 1;
}

static void raise_to(struct cct_executor *x, cct_host_count *count, int64_t value) {
  atomic_store(count, value);
  cct_host_wake(x, count);
}

enum cct_status cct_host_next_step(struct cct_executor *x, int *moved_out) {
  struct cct_sequence *sequence = x->sequence;
  int64_t index = atomic_load(&x->n_bound), not_before_ns = 0;
  struct cct_binding binding = {0};
  int is_over = 0;
  if (index == INT64_MAX || !is_due(x, index))
    return CCT_OK;
  *moved_out = 1;
  int64_t now_ns = cct_clock_ns() - x->start_ns;
  enum cct_status status = sequence->next(sequence->context, index, &now_ns, &binding, &not_before_ns, &is_over);
  if (status)
    return status;
  if (is_over) {
    sequence->steps = index;
    atomic_store(&x->last, index);
    raise_to(x, &x->n_bound, INT64_MAX);
    return CCT_OK;
  }
  if (index >= sequence->most_steps)
    return cct_fail(CCT_USAGE, "%s: a sequence of more than %lld steps", x->program->name,
                    (long long)sequence->most_steps);
  int64_t from_ns = cct_clock_ns();
  status = cct_host_bind_set(x, &x->sets[index % CCT_HOST_SETS], &binding);
  if (status)
    return status;
  x->not_before_ns[index % CCT_HOST_SETS] = not_before_ns;
  raise_to(x, &x->n_bound, index + 1);
  x->binding_ns[index] = cct_clock_ns() - from_ns;
  return CCT_OK;
}

static int is_first_host(const struct cct_host_track *track) {
  for (const struct cct_host_track *earlier = track->x->tracks; earlier < track; earlier++)
    if (earlier->kind == CCT_HOST_LANE)
      return 0;
  return track->kind == CCT_HOST_LANE;
}

int cct_host_begin_step(struct cct_host_track *track, int64_t step) {
  struct cct_executor *x = track->x;
  if (!cct_host_wait(track, &x->n_bound, step + 1) || step >= atomic_load(&x->last))
    return 0;
  enum cct_status status = cct_host_adopt(track, cct_host_set_of(x, step));
  if (status) {
    cct_host_stop(x, status);
    return 0;
  }
  if (is_first_host(track) && x->not_before_ns[step % CCT_HOST_SETS] > 0)
    cct_host_sleep_until(x->start_ns + x->not_before_ns[step % CCT_HOST_SETS]);
  track->ended_ns = cct_clock_ns() - x->start_ns;
  return 1;
}

void cct_host_end_step(struct cct_host_track *track, int64_t step) {
  struct cct_executor *x = track->x;
  int lane = 0;
  if (track->kind != CCT_HOST_LANE)
    return;
  for (const struct cct_host_track *earlier = x->tracks; earlier < track; earlier++)
    lane += earlier->kind == CCT_HOST_LANE;
  x->sequence->lane_end_ns[step * x->sequence->n_host_lanes + lane] = track->ended_ns;
}

static int64_t lane_end(struct cct_executor *x, int owned, int lane, int64_t step) {
  (void)owned;
  for (int i = 0, k = 0; i < x->n_tracks; i++)
    if (x->tracks[i].kind == CCT_HOST_LANE && k++ == lane)
      return atomic_load(&x->tracks[i].through) > step
                 ? x->sequence->lane_end_ns[step * x->sequence->n_host_lanes + lane]
                 : -1;
  return -1;
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

enum cct_status cct_host_sequence(struct cct_executor *x, struct cct_sequence *sequence, struct cct_burst *burst) {
  enum cct_status status = CCT_OK;
  sequence->n_host_lanes = cct_job_host_lanes(x->job);
  sequence->progress = cct_host_progress;
  sequence->lane_end = lane_end;
  sequence->is_virtual = 0;
  sequence->steps = 0;
  sequence->binding_us = 0;
  for (int64_t i = 0; i < sequence->most_steps * sequence->n_host_lanes; i++)
    sequence->lane_end_ns[i] = -1;
  for (int i = 0; i < CCT_HOST_SETS && !status; i++)
    status = cct_host_make_set(x, &x->sets[i]);
  x->binding_ns = calloc((size_t)sequence->most_steps + 1, sizeof *x->binding_ns);
  if (!status && !x->binding_ns)
    status = cct_fail(CCT_NOMEM, "out of memory");
  if (status)
    goto out;
  x->sequence = sequence;
  atomic_store(&x->n_bound, 0);
  atomic_store(&x->last, INT64_MAX);
  status = cct_host_burst(x, 1, &burst->rank_ns[0]);
  burst->start_ns = x->start_ns;
  if (!status && sequence->steps) {
    qsort(x->binding_ns, (size_t)sequence->steps, sizeof *x->binding_ns, by_value);
    sequence->binding_us = (double)x->binding_ns[sequence->steps / 2] / 1e3;
  }
out:
  x->sequence = NULL;
  free(x->binding_ns);
  x->binding_ns = NULL;
  return status;
}
