/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/world_forks.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define MOST_BYTES ((size_t)64 << 10)
#define MEETING_NS INT64_C(30000000000)

struct member { /* in shared memory, at two phases of a meeting: all have brought, all have taken */
  atomic_int brought, taken;
  char bytes[MOST_BYTES];
};

static enum cct_status wait_for_all(const struct cct_world *w, int is_taken, int turn) {
  struct member *all = w->state;
  int64_t start_ns = cct_clock_ns();
  for (int i = 0; i < w->size; i++)
    while (atomic_load(is_taken ? &all[i].taken : &all[i].brought) < turn) {
      if (cct_clock_ns() - start_ns > MEETING_NS)
        return cct_fail(CCT_STOPPED, "rank %d did not come to a meeting", i);
      sched_yield();
    }
  return CCT_OK;
}

static enum cct_status forks_allgather(const struct cct_world *w, const void *send, size_t bytes, void *recv) {
  struct member *all = w->state, *own = &all[w->rank];
  int turn = atomic_load(&own->brought) + 1;
  if (bytes > MOST_BYTES)
    return cct_fail(CCT_USAGE, "a contribution of %zu bytes", bytes);
  if (bytes)
    memcpy(own->bytes, send, bytes);
  atomic_store(&own->brought, turn);
  enum cct_status status = wait_for_all(w, 0, turn);
  for (int i = 0; !status && bytes && i < w->size; i++)
    memcpy((char *)recv + (size_t)i * bytes, all[i].bytes, bytes);
  atomic_store(&own->taken, turn);
  return status ? status : wait_for_all(w, 1, turn);
}

static enum cct_status forks_barrier(const struct cct_world *w) {
  return forks_allgather(w, NULL, 0, NULL);
}

static enum cct_status forks_bcast(const struct cct_world *w, void *buf, size_t bytes, int root) {
  char *all = malloc(bytes * (size_t)w->size + 1);
  enum cct_status status = all ? forks_allgather(w, buf, bytes, all) : CCT_NOMEM;
  if (!status)
    memcpy(buf, all + (size_t)root * bytes, bytes);
  free(all);
  return status;
}

#define ALLREDUCE(name, unit)                                                                                          \
  static enum cct_status forks_allreduce_##name(const struct cct_world *w, unit *values, size_t n,                     \
                                                enum cct_reduce how) {                                                 \
    unit *all = malloc((n * (size_t)w->size + 1) * sizeof *all);                                                       \
    enum cct_status status = all ? forks_allgather(w, values, n * sizeof *all, all) : CCT_NOMEM;                       \
    for (size_t i = 0; !status && i < n * (size_t)w->size; i++) {                                                      \
      unit v = all[i], *to = &values[i % n];                                                                           \
      int is_better = how == CCT_REDUCE_MAX ? v > *to : v < *to;                                                       \
      *to = i < n ? v : how == CCT_REDUCE_SUM ? *to + v : is_better ? v : *to;                                         \
    }                                                                                                                  \
    free(all);                                                                                                         \
    return status;                                                                                                     \
  }
ALLREDUCE(i64, int64_t)
ALLREDUCE(f64, double)

static const struct cct_world_ops forks_ops = {
    .barrier = forks_barrier,
    .bcast = forks_bcast,
    .allgather = forks_allgather,
    .allreduce_i64 = forks_allreduce_i64,
    .allreduce_f64 = forks_allreduce_f64,
};

void cct_world_forks(int n, int (*body)(const struct cct_world *world, void *argument), void *argument, int limit_s,
                     int *statuses_out) {
  size_t bytes = (size_t)n * sizeof(struct member);
  struct member *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t *children = calloc((size_t)n, sizeof *children);
  if (all == MAP_FAILED || !children)
    abort();
  for (int i = 0; i < n; i++) {
    children[i] = fork();
    if (children[i] < 0)
      abort();
    if (children[i] == 0) {
      const struct cct_world world = {i, n, &forks_ops, all};
      _exit(body(&world, argument));
    }
  }
  int64_t start_ns = cct_clock_ns();
  for (int n_left = n; n_left;) {
    if (cct_clock_ns() - start_ns > limit_s * INT64_C(1000000000))
      for (int i = 0; i < n; i++)
        if (children[i])
          kill(children[i], SIGKILL);
    for (int i = 0; i < n; i++)
      if (children[i] && waitpid(children[i], &statuses_out[i], WNOHANG) == children[i]) {
        children[i] = 0;
        n_left--;
      }
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  munmap(all, bytes);
  free(children);
}
