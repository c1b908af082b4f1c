/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/thread_world.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct shared {
  pthread_barrier_t barrier;
  const void *sent[64];
  size_t bytes[64];
};

static void meet(const struct cct_world *w) {
  pthread_barrier_wait(&((struct shared *)w->state)->barrier);
}

static enum cct_status thread_barrier(const struct cct_world *w) {
  meet(w);
  return CCT_OK;
}

static enum cct_status thread_allgatherv(const struct cct_world *w, const void *send, size_t bytes, void *recv,
                                         const size_t *counts) {
  struct shared *shared = w->state;
  shared->sent[w->rank] = send;
  shared->bytes[w->rank] = bytes;
  meet(w);
  char *to = recv;
  for (int p = 0; p < w->size; p++) {
    if (counts && counts[p] != shared->bytes[p])
      abort();
    memcpy(to, shared->sent[p], shared->bytes[p]);
    to += shared->bytes[p];
  }
  meet(w);
  return CCT_OK;
}

static enum cct_status thread_allgather(const struct cct_world *w, const void *send, size_t bytes, void *recv) {
  return thread_allgatherv(w, send, bytes, recv, NULL);
}

static enum cct_status thread_allreduce_i64(const struct cct_world *w, int64_t *values, size_t n, enum cct_reduce how) {
  int64_t *all = malloc((size_t)w->size * n * sizeof *all);
  thread_allgather(w, values, n * sizeof *values, all);
  for (size_t i = 0; i < n; i++) {
    int64_t result = all[i];
    for (int p = 1; p < w->size; p++) {
      int64_t other = all[(size_t)p * n + i];
      result = how == CCT_REDUCE_SUM ? result + other : (how == CCT_REDUCE_MAX) == (other > result) ? other : result;
    }
    values[i] = result;
  }
  free(all);
  return CCT_OK;
}

static int64_t thread_now_ns(const struct cct_world *w) {
  (void)w;
  return cct_clock_ns();
}

static const struct cct_world_ops thread_ops = {
    .barrier = thread_barrier,
    .allgather = thread_allgather,
    .allgatherv = thread_allgatherv,
    .allreduce_i64 = thread_allreduce_i64,
    .now_ns = thread_now_ns,
};

struct thread {
  pthread_t id;
  struct cct_world world;
  enum cct_status (*body)(const struct cct_world *world, void *context);
  void *context;
  enum cct_status status;
};

static void *run_thread(void *argument) {
  struct thread *thread = argument;
  thread->status = thread->body(&thread->world, thread->context);
  return NULL;
}

enum cct_status thread_world_run(int size, enum cct_status (*body)(const struct cct_world *world, void *context),
                                 void *context) {
  struct shared shared;
  struct thread threads[64];
  enum cct_status status = CCT_OK;
  pthread_barrier_init(&shared.barrier, NULL, (unsigned)size);
  for (int p = 0; p < size; p++) {
    threads[p] = (struct thread){.body = body, .context = context};
    threads[p].world = (struct cct_world){.rank = p, .size = size, .ops = &thread_ops, .state = &shared};
    if (pthread_create(&threads[p].id, NULL, run_thread, &threads[p]))
      abort();
  }
  for (int p = 0; p < size; p++) {
    pthread_join(threads[p].id, NULL);
    status = status ? status : threads[p].status;
  }
  pthread_barrier_destroy(&shared.barrier);
  return status;
}
