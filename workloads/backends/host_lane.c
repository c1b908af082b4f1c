/* SPDX-License-Identifier: Apache-2.0
 * The threads: tracks that perform their entries, and the funnel that exchanges for them. */
#include "workloads/backends/host.h"

#include <sched.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/log.h"

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int is_stopped(struct cct_executor *x) {
  return atomic_load(&x->is_stopped) || atomic_load(&x->is_ending);
}

/* A waiter first says what it waits for and then looks; who raises a count first raises it and then asks who waits: one
 * of the two always sees the other. Both are sequentially consistent, which this needs. */
int cct_host_wait(struct cct_host_track *track, const cct_host_count *count, int64_t value) {
  enum {
    n_looks = 400
  }; /* before it sleeps: some ten microseconds, in which most waits end */
  struct cct_executor *x = track->x;
  for (int i = 0; i < n_looks && !x->is_crowded; i++) {
    if (atomic_load_explicit(count, memory_order_acquire) >= value)
      return 1;
    relax();
  }
  pthread_mutex_lock(&track->lock);
  atomic_store(&track->waits_for, count);
  while (atomic_load(count) < value && !is_stopped(x))
    pthread_cond_wait(&track->woken, &track->lock);
  atomic_store(&track->waits_for, NULL);
  pthread_mutex_unlock(&track->lock);
  return atomic_load(count) >= value;
}

static void wake(struct cct_host_track *track) {
  pthread_mutex_lock(&track->lock);
  pthread_cond_signal(&track->woken);
  pthread_mutex_unlock(&track->lock);
}

void cct_host_wake(struct cct_executor *x, const cct_host_count *count) {
  for (int i = 0; i < x->n_tracks; i++)
    if (atomic_load(&x->tracks[i].waits_for) == count)
      wake(&x->tracks[i]);
  if (atomic_load(&x->funnel.waits_for) == count)
    wake(&x->funnel);
}

static void wake_all(struct cct_executor *x) {
  for (int i = 0; i < x->n_tracks; i++)
    if (x->tracks[i].has_lock)
      wake(&x->tracks[i]);
  wake(&x->funnel);
}

void cct_host_stop(struct cct_executor *x, enum cct_status status) {
  enum cct_status none = CCT_OK;
  atomic_compare_exchange_strong(&x->status, &none, status);
  atomic_store(&x->is_stopped, 1);
  wake_all(x);
}

static void raise_to(struct cct_executor *x, cct_host_count *count, int64_t value) {
  atomic_store(count, value);
  cct_host_wake(x, count);
}

static int wait_needs(struct cct_host_track *track, const struct cct_host_entry *entry, int64_t repetition) {
  for (int i = 0; i < entry->n_needs; i++) {
    const struct cct_host_need *need = &track->x->needs[entry->first_need + i];
    if (need->is_previous && !repetition)
      continue;
    if (need->id >= 0 && cct_host_set_of(track->x, repetition - need->is_previous)->bound[need->id].is_out)
      continue;
    if (!cct_host_wait(track, need->count, repetition + !need->is_previous))
      return 0;
  }
  return 1;
}

static int64_t since_start(const struct cct_executor *x) {
  return cct_clock_ns() - x->start_ns;
}

/* What the binding leaves out: a SYNC that waits for the lane still hears that the lane is past it. */
static int pass(struct cct_host_track *track, int id, int64_t repetition) {
  struct cct_executor *x = track->x;
  const struct cct_op *op = &x->program->ops[id];
  for (int i = id;; i++) { /* a GROUP with its members */
    x->entries[i].span = (struct cct_span){-1, -1};
    if (op->kind != CCT_OP_GROUP || x->program->ops[i].kind == CCT_OP_END)
      break;
  }
  if (op->kind == CCT_OP_END)
    raise_to(x, &x->entries[op->end.opens].done, repetition + 1);
  else if (op->kind != CCT_OP_GRAPH)
    raise_to(x, &x->entries[id].done, repetition + 1);
  return 1;
}

/* The entry itself, on the track that performs it. */
static int perform(struct cct_host_track *track, int id, int64_t repetition) {
  struct cct_executor *x = track->x;
  struct cct_host_entry *entry = &x->entries[id];
  const struct cct_op *op = &x->program->ops[id];
  if (entry->b.is_out)
    return pass(track, id, repetition);
  if (!wait_needs(track, entry, repetition))
    return 0;
  if (op->kind == CCT_OP_END) { /* of a GRAPH: all inside is done */
    struct cct_host_entry *graph = &x->entries[op->end.opens];
    graph->span.end_ns = since_start(x);
    raise_to(x, &graph->done, repetition + 1);
    return 1;
  }
  entry->span.start_ns = since_start(x);
  if (op->kind == CCT_OP_GRAPH) {
    raise_to(x, &entry->begun, repetition + 1);
    return 1;
  }
  enum cct_status status = cct_host_perform(track, id);
  entry->span.end_ns = track->ended_ns = since_start(x);
  if (status) {
    cct_host_stop(x, status);
    return 0;
  }
  raise_to(x, &entry->done, repetition + 1);
  return 1;
}

/* On its host lane: what belongs to a stream is submitted; a blocking copy holds the lane to its end. */
static int submit(struct cct_host_track *track, int id, int64_t repetition) {
  struct cct_host_entry *entry = &track->x->entries[id];
  if (cct_host_set_of(track->x, repetition)->bound[id].is_out)
    return 1;
  const struct cct_op *op = &track->x->program->ops[id];
  track->ended_ns = since_start(track->x);
  raise_to(track->x, &entry->submitted, repetition + 1);
  if (op->kind != CCT_OP_COPY || !op->copy.is_blocking)
    return 1;
  int is_done = cct_host_wait(track, &entry->done, repetition + 1);
  track->ended_ns = since_start(track->x);
  return is_done;
}

static int perform_once(struct cct_host_track *track, int64_t repetition) {
  struct cct_executor *x = track->x;
  int is_host = track->kind == CCT_HOST_LANE;
  for (int i = 0; i < track->n_entries; i++) {
    int id = track->entries[i], is_own = &x->tracks[x->entries[id].track] == track;
    if (is_stopped(x) || !(is_host && !is_own ? submit : perform)(track, id, repetition))
      return 0;
  }
  return 1;
}

static void perform_sequence(struct cct_host_track *track) {
  struct cct_executor *x = track->x;
  for (int64_t step = 0; cct_host_begin_step(track, step) && perform_once(track, step); step++) {
    cct_host_end_step(track, step);
    raise_to(x, &track->through, step + 1);
    atomic_fetch_add(&x->posts, 1);
    cct_host_wake(x, &x->posts);
  }
}

static void perform_all(struct cct_host_track *track) {
  if (track->x->sequence)
    perform_sequence(track);
  else
    for (int64_t repetition = 0; repetition < track->x->repetitions && perform_once(track, repetition); repetition++)
      ;
}

static void *run_track(void *argument) {
  struct cct_host_track *track = argument;
  struct cct_executor *x = track->x;
  prctl(PR_SET_TIMERSLACK, 1); /* a DELAY sleeps part of its time: the default slack is 50 us */
  for (int64_t burst = 1; cct_host_wait(track, &x->burst, burst); burst++) {
    perform_all(track);
    atomic_fetch_add(&x->finished, 1);
    atomic_fetch_add(&x->posts, 1);
    cct_host_wake(x, &x->posts);
  }
  return NULL;
}

/* `open_out`: how many exchanges are under way. */
static enum cct_status serve(struct cct_executor *x, int *open_out, int *moved_out) {
  enum cct_status status = CCT_OK;
  *open_out = *moved_out = 0;
  for (int i = 0; !status && i < x->n_tracks; i++) {
    struct cct_host_track *track = &x->tracks[i];
    struct cct_host_comm *comm = &track->comm;
    int64_t posted = atomic_load(&comm->posted);
    int is_done = 0;
    if (posted == atomic_load(&comm->completed))
      continue;
    if (!comm->is_started) {
      status = cct_host_comm_start(track);
      comm->is_started = 1;
      *moved_out = 1;
    }
    if (!status)
      status = cct_host_comm_test(track, &is_done);
    if (!status && is_done) {
      comm->is_started = 0;
      raise_to(x, &comm->completed, posted);
      *moved_out = 1;
    }
    *open_out += !is_done;
  }
  return status;
}

enum cct_status cct_host_progress(struct cct_executor *x) {
  int n_open, has_moved;
  enum cct_status stopped = atomic_load(&x->status); /* by a track: whoever waits for its peers waits in vain */
  return stopped ? stopped : serve(x, &n_open, &has_moved);
}

static void run_funnel(struct cct_executor *x) {
  int64_t deadline_ns = x->backend->options.deadline_ns, moved_at_ns = cct_clock_ns();
  while (atomic_load(&x->finished) < x->n_tracks && !atomic_load(&x->is_stopped)) {
    int64_t seen = atomic_load(&x->posts);
    int n_open, has_moved;
    enum cct_status status = serve(x, &n_open, &has_moved);
    if (!status && x->sequence)
      status = cct_host_next_step(x, &has_moved);
    if (!n_open || has_moved)
      moved_at_ns = cct_clock_ns();
    if (!status && deadline_ns > 0 && cct_clock_ns() - moved_at_ns > deadline_ns)
      status = cct_fail(CCT_STOPPED, "%s: no peer answered within the deadline of %.1f s", x->program->name,
                        (double)deadline_ns / 1e9);
    if (status)
      cct_host_stop(x, status);
    else if (n_open)
      cct_host_pause(moved_at_ns);
    else if (atomic_load(&x->finished) < x->n_tracks)
      cct_host_wait(&x->funnel, &x->posts, seen + 1);
  }
  while (atomic_load(&x->finished) < x->n_tracks) /* stopped: each track ends at its next look */
    sched_yield();
}

enum cct_status cct_host_burst(struct cct_executor *x, int n, int64_t *ns_out) {
  if (atomic_load(&x->status))
    return atomic_load(&x->status);
  for (int id = 0; id < x->program->n_ops; id++) {
    struct cct_host_entry *entry = &x->entries[id];
    atomic_store(&entry->submitted, 0);
    atomic_store(&entry->begun, 0);
    atomic_store(&entry->done, 0);
    entry->span = (struct cct_span){-1, -1};
  }
  for (int i = 0; i < x->n_tracks; i++)
    atomic_store(&x->tracks[i].through, 0);
  atomic_store(&x->finished, 0);
  x->repetitions = n;
  x->start_ns = cct_clock_ns();
  raise_to(x, &x->burst, atomic_load(&x->burst) + 1);
  run_funnel(x);
  *ns_out = since_start(x);
  return atomic_load(&x->status);
}

static enum cct_status make_lock(struct cct_host_track *track) {
  if (pthread_mutex_init(&track->lock, NULL))
    return cct_fail(CCT_NOMEM, "out of memory");
  if (pthread_cond_init(&track->woken, NULL)) {
    pthread_mutex_destroy(&track->lock);
    return cct_fail(CCT_NOMEM, "out of memory");
  }
  track->has_lock = 1;
  return CCT_OK;
}

enum cct_status cct_host_start(struct cct_executor *x) {
  x->funnel.x = x;
  enum cct_status status = make_lock(&x->funnel);
  for (int i = 0; !status && i < x->n_tracks; i++)
    status = make_lock(&x->tracks[i]);
  for (int i = 0; !status && i < x->n_tracks; i++) {
    if (pthread_create(&x->tracks[i].thread, NULL, run_track, &x->tracks[i]))
      return cct_fail(CCT_NOMEM, "%s: no thread for lane '%s'", x->program->name,
                      x->program->lanes[x->tracks[i].lane].name);
    x->tracks[i].is_running = 1;
  }
  return status;
}

void cct_host_end(struct cct_executor *x) {
  if (!x->funnel.has_lock)
    return;
  atomic_store(&x->is_ending, 1);
  wake_all(x);
  struct cct_host_track *tracks = x->tracks;
  for (int i = 0; i < x->n_tracks; i++)
    if (tracks[i].is_running)
      pthread_join(tracks[i].thread, NULL);
  for (int i = 0; i <= x->n_tracks; i++) {
    struct cct_host_track *track = i < x->n_tracks ? &tracks[i] : &x->funnel;
    if (track->has_lock) {
      pthread_cond_destroy(&track->woken);
      pthread_mutex_destroy(&track->lock);
    }
  }
}
