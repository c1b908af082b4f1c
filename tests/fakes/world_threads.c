/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/world_threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"

struct message {
  struct message *next;
  uint64_t place; /* which world, and whether a collective or a message of it */
  int from, to, tag;
  size_t bytes;
  char data[];
};

struct board {
  pthread_mutex_t lock;
  struct message *first, **end;
};

struct member { /* a world as one of its processes sees it */
  struct board *board;
  uint64_t id;
  int n_collectives, n_splits;
};

enum kind {
  SENT,
  RECEIVED,
  GATHERED,
  REDUCED
};

struct cct_request {
  enum kind kind;
  void *into;
  size_t bytes, count;
  const size_t *parts; /* GATHERED: bytes from each; NULL: `bytes` from each */
  cct_combine_fn *combine;
  enum cct_result_at where;
  int peer, tag, n_got;
  char *got; /* REDUCED: contributions so far, in rank order */
};

static struct member *own(const struct cct_world *w) {
  return w->state;
}

static void post(const struct cct_world *w, int is_collective, const void *data, size_t bytes, int to, int tag) {
  struct board *board = own(w)->board;
  struct message *message = malloc(sizeof *message + bytes);
  if (!message)
    abort();
  *message = (struct message){NULL, own(w)->id * 2 + (uint64_t)is_collective, w->rank, to, tag, bytes};
  if (bytes)
    memcpy(message->data, data, bytes);
  pthread_mutex_lock(&board->lock);
  *board->end = message;
  board->end = &message->next;
  pthread_mutex_unlock(&board->lock);
}

/* The oldest message that fits, or NULL; the caller frees it. */
static struct message *take(const struct cct_world *w, int is_collective, int from, int tag) {
  struct board *board = own(w)->board;
  struct message *found = NULL;
  pthread_mutex_lock(&board->lock);
  for (struct message **at = &board->first; *at; at = &(*at)->next) {
    struct message *m = *at;
    if (m->place != own(w)->id * 2 + (uint64_t)is_collective || m->from != from || m->to != w->rank || m->tag != tag)
      continue;
    found = m;
    *at = m->next;
    if (board->end == &m->next)
      board->end = at;
    break;
  }
  pthread_mutex_unlock(&board->lock);
  return found;
}

static struct cct_request *request(enum kind kind) {
  struct cct_request *r = calloc(1, sizeof *r);
  if (!r)
    abort();
  r->kind = kind;
  return r;
}

static void finish_sum(const struct cct_world *w, struct cct_request *r) {
  size_t bytes = r->count * r->bytes, share = r->count / (size_t)w->size;
  char *total = r->got;
  for (int i = 1; i < w->size; i++)
    r->combine(total, r->got + (size_t)i * bytes, r->count);
  if (r->where == CCT_RESULT_SCATTER)
    memcpy(r->into, total + (size_t)w->rank * share * r->bytes, share * r->bytes);
  else if (bytes && (r->where == CCT_RESULT_ALL || w->rank == 0))
    memcpy(r->into, total, bytes);
}

/* Collectives take their parts in rank order, so a part that came early waits on the board. */
static int collect(const struct cct_world *w, struct cct_request *r) {
  for (; r->n_got < w->size; r->n_got++) {
    struct message *m = take(w, 1, r->n_got, r->tag);
    if (!m)
      return 0;
    size_t offset = 0;
    if (r->parts)
      for (int i = 0; i < r->n_got; i++)
        offset += r->parts[i];
    else
      offset = (size_t)r->n_got * (r->kind == REDUCED ? r->count * r->bytes : r->bytes);
    if (m->bytes)
      memcpy((r->kind == REDUCED ? r->got : (char *)r->into) + offset, m->data, m->bytes);
    free(m);
  }
  if (r->kind == REDUCED)
    finish_sum(w, r);
  return 1;
}

static enum cct_status threads_test(const struct cct_world *w, struct cct_request *r, int *done_out) {
  int is_done = 1;
  if (r->kind == RECEIVED) {
    struct message *m = take(w, 0, r->peer, r->tag);
    is_done = m != NULL;
    if (m && m->bytes)
      memcpy(r->into, m->data, m->bytes < r->bytes ? m->bytes : r->bytes);
    free(m);
  } else if (r->kind != SENT) {
    is_done = collect(w, r);
  }
  if (is_done) {
    free(r->got);
    free(r);
  }
  *done_out = is_done;
  return CCT_OK;
}

static enum cct_status finish(const struct cct_world *w, struct cct_request *r) {
  int is_done = 0;
  while (threads_test(w, r, &is_done), !is_done)
    sched_yield();
  return CCT_OK;
}

static enum cct_status threads_isend(const struct cct_world *w, const void *buf, size_t bytes, int to, int tag,
                                     struct cct_request **request_out) {
  post(w, 0, buf, bytes, to, tag);
  *request_out = request(SENT);
  return CCT_OK;
}

static enum cct_status threads_irecv(const struct cct_world *w, void *buf, size_t bytes, int from, int tag,
                                     struct cct_request **request_out) {
  struct cct_request *r = request(RECEIVED);
  (void)w;
  r->into = buf;
  r->bytes = bytes;
  r->peer = from;
  r->tag = tag;
  *request_out = r;
  return CCT_OK;
}

static enum cct_status threads_ialltoallv(const struct cct_world *w, const void *send, const size_t *send_bytes,
                                          void *recv, const size_t *recv_bytes, struct cct_request **request_out) {
  struct cct_request *r = request(GATHERED);
  r->into = recv;
  r->parts = recv_bytes;
  r->tag = own(w)->n_collectives++;
  for (int i = 0; i < w->size; send = (const char *)send + send_bytes[i++])
    post(w, 1, send, send_bytes[i], i, r->tag);
  *request_out = r;
  return CCT_OK;
}

static enum cct_status threads_iallgather(const struct cct_world *w, const void *send, size_t bytes, void *recv,
                                          struct cct_request **request_out) {
  struct cct_request *r = request(GATHERED);
  r->into = recv;
  r->bytes = bytes;
  r->tag = own(w)->n_collectives++;
  for (int i = 0; i < w->size; i++)
    post(w, 1, send, bytes, i, r->tag);
  *request_out = r;
  return CCT_OK;
}

static enum cct_status threads_ireduce_with(const struct cct_world *w, void *buf, size_t count, size_t element_bytes,
                                            cct_combine_fn *combine, enum cct_result_at where,
                                            struct cct_request **request_out) {
  struct cct_request *r = request(REDUCED);
  r->into = buf;
  r->bytes = element_bytes;
  r->count = count;
  r->combine = combine;
  r->where = where;
  r->got = malloc(count * element_bytes * (size_t)w->size + 1);
  r->tag = own(w)->n_collectives++;
  for (int i = 0; i < w->size; i++)
    post(w, 1, buf, count * element_bytes, i, r->tag);
  *request_out = r;
  return CCT_OK;
}

static enum cct_status threads_send(const struct cct_world *w, const void *buf, size_t bytes, int to, int tag) {
  post(w, 0, buf, bytes, to, tag);
  return CCT_OK;
}

static enum cct_status threads_recv(const struct cct_world *w, void *buf, size_t bytes, int from, int tag) {
  struct cct_request *r;
  threads_irecv(w, buf, bytes, from, tag, &r);
  return finish(w, r);
}

static enum cct_status threads_allgather(const struct cct_world *w, const void *send, size_t bytes, void *recv) {
  struct cct_request *r;
  threads_iallgather(w, send, bytes, recv, &r);
  return finish(w, r);
}

static enum cct_status threads_allgatherv(const struct cct_world *w, const void *send, size_t bytes, void *recv,
                                          const size_t *counts) {
  struct cct_request *r;
  threads_iallgather(w, send, bytes, recv, &r);
  r->parts = counts;
  return finish(w, r);
}

static enum cct_status threads_gather(const struct cct_world *w, const void *send, size_t bytes, void *recv, int root) {
  char *all = malloc(bytes * (size_t)w->size + 1);
  enum cct_status status = threads_allgather(w, send, bytes, all);
  if (w->rank == root && bytes)
    memcpy(recv, all, bytes * (size_t)w->size);
  free(all);
  return status;
}

static enum cct_status threads_barrier(const struct cct_world *w) {
  return threads_allgather(w, NULL, 0, NULL);
}

static enum cct_status threads_bcast(const struct cct_world *w, void *buf, size_t bytes, int root) {
  char *all = malloc(bytes * (size_t)w->size + 1);
  enum cct_status status = threads_allgather(w, buf, bytes, all);
  if (bytes)
    memcpy(buf, all + (size_t)root * bytes, bytes);
  free(all);
  return status;
}

static enum cct_status threads_alltoallv(const struct cct_world *w, const void *send, const size_t *send_bytes,
                                         void *recv, const size_t *recv_bytes) {
  struct cct_request *r;
  threads_ialltoallv(w, send, send_bytes, recv, recv_bytes, &r);
  return finish(w, r);
}

static enum cct_status threads_reduce_with(const struct cct_world *w, void *buf, size_t count, size_t element_bytes,
                                           cct_combine_fn *combine, enum cct_result_at where) {
  struct cct_request *r;
  threads_ireduce_with(w, buf, count, element_bytes, combine, where, &r);
  return finish(w, r);
}

#define ALLREDUCE(name, unit)                                                                                          \
  static enum cct_status threads_allreduce_##name(const struct cct_world *w, unit *values, size_t n,                   \
                                                  enum cct_reduce how) {                                               \
    unit *all = malloc((n * (size_t)w->size + 1) * sizeof *all);                                                       \
    enum cct_status status = threads_allgather(w, values, n * sizeof *all, all);                                       \
    for (size_t i = 0; i < n; i++) {                                                                                   \
      values[i] = all[i];                                                                                              \
      for (size_t r = 1; r < (size_t)w->size; r++) {                                                                   \
        unit v = all[r * n + i];                                                                                       \
        values[i] = how == CCT_REDUCE_SUM                                     ? values[i] + v                          \
                    : (how == CCT_REDUCE_MAX ? v > values[i] : v < values[i]) ? v                                      \
                                                                              : values[i];                             \
      }                                                                                                                \
    }                                                                                                                  \
    free(all);                                                                                                         \
    return status;                                                                                                     \
  }
ALLREDUCE(i64, int64_t)
ALLREDUCE(f64, double)

static int64_t threads_now_ns(const struct cct_world *w) {
  (void)w;
  return cct_clock_ns();
}

static void threads_abort(const struct cct_world *w, int exit_code) {
  (void)w;
  _Exit(exit_code);
}

static enum cct_status threads_split(const struct cct_world *w, int colour, int key, struct cct_world **world_out);

static void threads_release(struct cct_world *w) {
  if (w)
    free(w->state);
  free(w);
}

static const struct cct_world_ops threads_ops = {
    .split = threads_split,
    .release = threads_release,
    .barrier = threads_barrier,
    .bcast = threads_bcast,
    .gather = threads_gather,
    .allgather = threads_allgather,
    .allgatherv = threads_allgatherv,
    .alltoallv = threads_alltoallv,
    .allreduce_i64 = threads_allreduce_i64,
    .allreduce_f64 = threads_allreduce_f64,
    .reduce_with = threads_reduce_with,
    .send = threads_send,
    .recv = threads_recv,
    .isend = threads_isend,
    .irecv = threads_irecv,
    .ireduce_with = threads_ireduce_with,
    .iallgather = threads_iallgather,
    .ialltoallv = threads_ialltoallv,
    .test = threads_test,
    .now_ns = threads_now_ns,
    .abort = threads_abort,
};

/* The new world's id follows from its parent's, the how manyth split this is and the colour, which all members know. */
static enum cct_status threads_split(const struct cct_world *w, int colour, int key, struct cct_world **world_out) {
  struct choice {
    int colour, key;
  } mine = {colour, key}, *all = malloc((size_t)w->size * sizeof *all);
  struct cct_world *sub = calloc(1, sizeof *sub);
  struct member *member = calloc(1, sizeof *member);
  if (!all || !sub || !member)
    abort();
  threads_allgather(w, &mine, sizeof mine, all);
  for (int r = 0; r < w->size; r++) {
    if (all[r].colour != colour)
      continue;
    sub->size++;
    sub->rank += all[r].key < key || (all[r].key == key && r < w->rank);
  }
  member->board = own(w)->board;
  uint64_t seed = cct_random_fold(own(w)->id, (uint64_t)own(w)->n_splits++);
  member->id = cct_random_fold(seed, (uint64_t)colour) >> 1;
  sub->ops = &threads_ops;
  sub->state = member;
  free(all);
  *world_out = sub;
  return CCT_OK;
}

struct process {
  pthread_t thread;
  struct cct_world world;
  struct member member;
  void (*body)(const struct cct_world *world, void *argument);
  void *argument;
};

static void *run_process(void *argument) {
  struct process *process = argument;
  process->body(&process->world, process->argument);
  return NULL;
}

int cct_world_threads(int n, void (*body)(const struct cct_world *world, void *argument), void *argument) {
  struct board board = {.first = NULL, .end = &board.first};
  struct process *all = calloc((size_t)n, sizeof *all);
  int n_left = 0;
  if (!all || pthread_mutex_init(&board.lock, NULL))
    abort();
  for (int i = 0; i < n; i++) {
    all[i].member = (struct member){.board = &board};
    all[i].world = (struct cct_world){i, n, &threads_ops, &all[i].member};
    all[i].body = body;
    all[i].argument = argument;
    if (pthread_create(&all[i].thread, NULL, run_process, &all[i]))
      abort();
  }
  for (int i = 0; i < n; i++)
    pthread_join(all[i].thread, NULL);
  while (board.first) {
    struct message *next = board.first->next;
    free(board.first);
    board.first = next;
    n_left++;
  }
  pthread_mutex_destroy(&board.lock);
  free(all);
  return n_left;
}
