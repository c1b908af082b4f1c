/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_pool.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "nccl_plugin/net/net_log.h"

enum {
  STEP_BYTES = 256 << 10
}; /* of one stream before the worker looks at the next */

struct cct_net_worker {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t detached;
  int wake_fd, is_started;
  int64_t spin_ns;
  /* Under the lock: */
  int is_asleep, is_stopping;
  struct cct_net_stream **active; /* streams with work */
  size_t n_active, n_attached, capacity;
  atomic_uint posts; /* also read without it, to spin on */
};

struct cct_net_pool {
  int n;
  atomic_uint next;
  struct cct_net_worker workers[];
};

/* Moves one stream on. 1: moved, 0: would block, -1: failed. *finished_out: its first task is done. */
static int step(struct cct_net_stream *s, struct cct_net_task *task, int *finished_out) {
  struct cct_wire *wire = s->wire;
  size_t budget = STEP_BYTES, before = task->done;
  ssize_t n = 1;
  while (task->done < task->bytes && budget > 0 && n > 0) {
    size_t want = task->bytes - task->done;
    n = s->is_send ? wire->ops->write(wire, task->data + task->done, want)
                   : wire->ops->read(wire, task->data + task->done, want);
    if (n > 0) {
      task->done += (size_t)n;
      budget -= (size_t)n < budget ? (size_t)n : budget;
    }
  }
  int flushed = n >= 0 && s->is_send && task->done == task->bytes ? wire->ops->flush(wire) : 1;
  if (task->done > before)
    atomic_fetch_add_explicit(&s->flow->moved_bytes, task->done - before, memory_order_relaxed);
  *finished_out = n >= 0 && flushed > 0 && task->done == task->bytes;
  return n < 0 || flushed < 0 ? -1 : n > 0 && flushed > 0;
}

/* With the worker's lock held: takes stream i out of the active ones and drops its tasks. */
static void deactivate(struct cct_net_worker *w, size_t i) {
  struct cct_net_stream *s = w->active[i];
  w->active[i] = w->active[--w->n_active];
  s->head = s->tail;
  s->is_active = 0;
  pthread_cond_broadcast(&w->detached);
}

/* One look at every active stream. Called and left with the lock held; returns whether anything moved. */
static int round_of(struct cct_net_worker *w) {
  int moved = 0;
  for (size_t i = 0; i < w->n_active;) {
    struct cct_net_stream *s = w->active[i];
    if (s->is_closing || s->head == s->tail || atomic_load(&s->flow->failed)) {
      deactivate(w, i);
      continue;
    }
    struct cct_net_task *task = &s->queue[s->head % CCT_NCCL_NET_REQUESTS];
    pthread_mutex_unlock(&w->lock);
    int finished, result = step(s, task, &finished);
    moved |= result > 0;
    struct cct_wire *none = NULL;
    if (result < 0)
      atomic_compare_exchange_strong(&s->flow->failed, &none, s->wire);
    pthread_mutex_lock(&w->lock);
    if (finished) {
      atomic_int *left = task->left;
      s->head++;
      atomic_fetch_sub_explicit(left, 1, memory_order_release);
    }
    i += result >= 0;
  }
  return moved;
}

/* Sleeps until a stream can move or a post or detach wakes it. Lock held on entry and return. */
static void sleep_until_work(struct cct_net_worker *w, struct pollfd **fds, size_t *capacity) {
  size_t n = w->n_active;
  if (cct_grow((void **)fds, capacity, n + 1, sizeof **fds) != CCT_OK)
    n = 0; /* without memory to wait for sockets, look again soon */
  for (size_t i = 0; i < n; i++)
    (*fds)[i + 1] = (struct pollfd){w->active[i]->wire->fd, w->active[i]->is_send ? POLLOUT : POLLIN, 0};
  struct pollfd alone = {w->wake_fd, POLLIN, 0};
  struct pollfd *set = *capacity > n ? *fds : &alone;
  set[0] = alone;
  int timeout_ms = n < w->n_active ? 1 : -1;
  w->is_asleep = 1;
  pthread_mutex_unlock(&w->lock);
  int64_t start = cct_clock_ns();
  poll(set, (nfds_t)n + 1, timeout_ms);
  int64_t slept_ns = cct_clock_ns() - start;
  uint64_t wakes;
  if (set[0].revents & POLLIN && read(w->wake_fd, &wakes, sizeof wakes) < 0)
    slept_ns = 0; /* cannot be: only this thread reads it */
  pthread_mutex_lock(&w->lock);
  w->is_asleep = 0;
  for (size_t i = 0; i < n && i < w->n_active; i++)
    CCT_NET_COUNT(w->active[i]->wire->counts.blocked_ns, slept_ns);
}

/* An idle worker watches for a post a little before it sleeps: waking a thread costs more than many a message. */
static void spin(struct cct_net_worker *w, int64_t since_ns) {
  unsigned seen = atomic_load(&w->posts);
  pthread_mutex_unlock(&w->lock);
  while (atomic_load_explicit(&w->posts, memory_order_acquire) == seen && cct_clock_ns() - since_ns < w->spin_ns)
    ;
  pthread_mutex_lock(&w->lock);
}

static void *work(void *arg) {
  struct cct_net_worker *w = arg;
  struct pollfd *fds = NULL;
  size_t capacity = 0;
  int64_t moved_ns = cct_clock_ns();
  pthread_mutex_lock(&w->lock);
  while (!w->is_stopping) {
    if (round_of(w)) {
      moved_ns = w->spin_ns ? cct_clock_ns() : 0;
    } else if (w->spin_ns && cct_clock_ns() - moved_ns < w->spin_ns) {
      if (w->n_active == 0)
        spin(w, moved_ns);
    } else {
      sleep_until_work(w, &fds, &capacity);
      moved_ns = w->spin_ns ? cct_clock_ns() : 0;
    }
  }
  while (w->n_active > 0)
    deactivate(w, 0);
  pthread_mutex_unlock(&w->lock);
  free(fds);
  return NULL;
}

static void wake(struct cct_net_worker *w) {
  uint64_t one = 1;
  while (write(w->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

static int start(struct cct_net_worker *w, int64_t spin_ns) {
  w->spin_ns = spin_ns;
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->detached, NULL);
  w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (w->wake_fd < 0)
    return 0;
  sigset_t all, before; /* the program's signals are for its own threads */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&w->thread, NULL, work, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  w->is_started = error == 0;
  if (w->is_started)
    pthread_setname_np(w->thread, "cctax-net");
  errno = error;
  return w->is_started;
}

enum cct_nccl cct_net_pool_new(int threads, int64_t spin_ns, struct cct_net_pool **pool_out) {
  struct cct_net_pool *pool = calloc(1, sizeof *pool + (size_t)threads * sizeof *pool->workers);
  if (!pool)
    return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "out of memory for %d helper threads", threads);
  for (; pool->n < threads; pool->n++)
    if (!start(&pool->workers[pool->n], spin_ns)) {
      enum cct_nccl result = cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "cannot start helper thread %d: %m", pool->n);
      pool->n++;
      cct_net_pool_free(pool);
      return result;
    }
  *pool_out = pool;
  return CCT_NCCL_SUCCESS;
}

void cct_net_pool_stop(struct cct_net_pool *pool) {
  for (int i = 0; pool && i < pool->n; i++) {
    struct cct_net_worker *w = &pool->workers[i];
    if (!w->is_started)
      continue;
    pthread_mutex_lock(&w->lock);
    w->is_stopping = 1;
    pthread_mutex_unlock(&w->lock);
    wake(w);
    pthread_join(w->thread, NULL);
    w->is_started = 0;
  }
}

void cct_net_pool_free(struct cct_net_pool *pool) {
  if (!pool)
    return;
  cct_net_pool_stop(pool);
  for (int i = 0; i < pool->n; i++) {
    struct cct_net_worker *w = &pool->workers[i];
    if (w->wake_fd >= 0)
      close(w->wake_fd);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->detached);
    free(w->active);
  }
  free(pool);
}

enum cct_nccl cct_net_stream_attach(struct cct_net_pool *pool, struct cct_net_stream *stream) {
  struct cct_net_worker *w = &pool->workers[atomic_fetch_add(&pool->next, 1) % (unsigned)pool->n];
  pthread_mutex_lock(&w->lock);
  enum cct_status status = cct_grow((void **)&w->active, &w->capacity, w->n_attached + 1, sizeof *w->active);
  if (!status) {
    w->n_attached++;
    stream->worker = w;
  }
  pthread_mutex_unlock(&w->lock);
  return status ? cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "out of memory for a data socket") : CCT_NCCL_SUCCESS;
}

void cct_net_stream_post(struct cct_net_stream *stream, struct cct_net_task task) {
  struct cct_net_worker *w = stream->worker;
  pthread_mutex_lock(&w->lock);
  int is_open = !stream->is_closing && !w->is_stopping;
  if (is_open)
    stream->queue[stream->tail++ % CCT_NCCL_NET_REQUESTS] = task;
  int is_new = is_open && !stream->is_active, should_wake = is_new && w->is_asleep;
  if (is_new) {
    stream->is_active = 1;
    w->active[w->n_active++] = stream;
    atomic_fetch_add_explicit(&w->posts, 1, memory_order_release);
  }
  if (should_wake)
    w->is_asleep = 0; /* one wake is enough for several posts */
  pthread_mutex_unlock(&w->lock);
  if (should_wake)
    wake(w);
}

void cct_net_stream_detach(struct cct_net_stream *stream) {
  struct cct_net_worker *w = stream->worker;
  if (!w)
    return;
  pthread_mutex_lock(&w->lock);
  int is_first = !stream->is_closing;
  stream->is_closing = 1;
  if (stream->is_active)
    wake(w);
  while (stream->is_active)
    pthread_cond_wait(&w->detached, &w->lock);
  w->n_attached -= (size_t)is_first;
  pthread_mutex_unlock(&w->lock);
}

int cct_net_stream_uses(struct cct_net_stream *stream, const char *data, size_t bytes) {
  struct cct_net_worker *w = stream->worker;
  int is_used = 0;
  if (!w)
    return 0;
  pthread_mutex_lock(&w->lock);
  for (unsigned i = stream->head; i != stream->tail; i++) {
    const struct cct_net_task *task = &stream->queue[i % CCT_NCCL_NET_REQUESTS];
    is_used |= task->data < data + bytes && data < task->data + task->bytes;
  }
  pthread_mutex_unlock(&w->lock);
  return is_used;
}
