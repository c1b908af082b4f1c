/* SPDX-License-Identifier: Apache-2.0
 * The world of one process: everything it exchanges, it exchanges with itself. */
#include "base/world.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

static enum cct_status self_split(const struct cct_world *w, int colour, int key, struct cct_world **world_out) {
  (void)colour;
  (void)key;
  struct cct_world *copy = malloc(sizeof *copy);
  if (!copy)
    return cct_fail(CCT_NOMEM, "out of memory");
  *copy = *w;
  *world_out = copy;
  return CCT_OK;
}

static void self_release(struct cct_world *w) {
  free(w);
}

static enum cct_status self_barrier(const struct cct_world *w) {
  (void)w;
  return CCT_OK;
}

static enum cct_status self_bcast(const struct cct_world *w, void *buf, size_t bytes, int root) {
  (void)w;
  (void)buf;
  (void)bytes;
  (void)root;
  return CCT_OK;
}

static enum cct_status self_allgather(const struct cct_world *w, const void *send, size_t bytes, void *recv) {
  (void)w;
  if (bytes)
    memmove(recv, send, bytes);
  return CCT_OK;
}

static enum cct_status self_gather(const struct cct_world *w, const void *send, size_t bytes, void *recv, int root) {
  (void)root;
  return self_allgather(w, send, bytes, recv);
}

static enum cct_status self_allgatherv(const struct cct_world *w, const void *send, size_t bytes, void *recv,
                                       const size_t *counts) {
  (void)counts;
  return self_allgather(w, send, bytes, recv);
}

static enum cct_status self_alltoallv(const struct cct_world *w, const void *send, const size_t *send_bytes, void *recv,
                                      const size_t *recv_bytes) {
  (void)recv_bytes;
  return self_allgather(w, send, send_bytes[0], recv);
}

static enum cct_status self_allreduce_i64(const struct cct_world *w, int64_t *values, size_t n, enum cct_reduce how) {
  (void)w;
  (void)values;
  (void)n;
  (void)how;
  return CCT_OK;
}

static enum cct_status self_allreduce_f64(const struct cct_world *w, double *values, size_t n, enum cct_reduce how) {
  (void)w;
  (void)values;
  (void)n;
  (void)how;
  return CCT_OK;
}

static enum cct_status self_reduce_with(const struct cct_world *w, void *buf, size_t count, size_t element_bytes,
                                        cct_combine_fn *combine, enum cct_result_at where) {
  (void)w;
  (void)buf;
  (void)count;
  (void)element_bytes;
  (void)combine;
  (void)where;
  return CCT_OK;
}

/* A process that sends to itself keeps the message until it receives it: first in, first out, by tag. */
struct cct_request {
  struct cct_request *next;
  void *into;
  size_t bytes;
  int tag;
  char data[];
};
static struct cct_request *mailbox;

static enum cct_status self_send(const struct cct_world *w, const void *buf, size_t bytes, int to, int tag) {
  (void)w;
  if (to != 0)
    return cct_fail(CCT_USAGE, "send to process %d of a world of one", to);
  struct cct_request *message = malloc(sizeof *message + bytes);
  if (!message)
    return cct_fail(CCT_NOMEM, "out of memory");
  *message = (struct cct_request){.bytes = bytes, .tag = tag};
  memcpy(message->data, buf, bytes);
  struct cct_request **end = &mailbox;
  while (*end)
    end = &(*end)->next;
  *end = message;
  return CCT_OK;
}

static int take_message(void *buf, size_t bytes, int tag) {
  for (struct cct_request **at = &mailbox; *at; at = &(*at)->next) {
    struct cct_request *message = *at;
    if (message->tag != tag || message->bytes != bytes)
      continue;
    *at = message->next;
    memcpy(buf, message->data, bytes);
    free(message);
    return 1;
  }
  return 0;
}

static enum cct_status self_recv(const struct cct_world *w, void *buf, size_t bytes, int from, int tag) {
  (void)w;
  if (from != 0 || !take_message(buf, bytes, tag))
    return cct_fail(CCT_USAGE, "receive of %zu bytes from process %d, tag %d: never sent", bytes, from, tag);
  return CCT_OK;
}

static enum cct_status started(struct cct_request **request_out, void *into, size_t bytes, int tag) {
  struct cct_request *request = malloc(sizeof *request);
  if (!request)
    return cct_fail(CCT_NOMEM, "out of memory");
  *request = (struct cct_request){.into = into, .bytes = bytes, .tag = tag};
  *request_out = request;
  return CCT_OK;
}

static enum cct_status self_isend(const struct cct_world *w, const void *buf, size_t bytes, int to, int tag,
                                  struct cct_request **request_out) {
  enum cct_status status = self_send(w, buf, bytes, to, tag);
  return status ? status : started(request_out, NULL, 0, 0);
}

static enum cct_status self_irecv(const struct cct_world *w, void *buf, size_t bytes, int from, int tag,
                                  struct cct_request **request_out) {
  (void)w;
  (void)from;
  return started(request_out, buf, bytes, tag);
}

static enum cct_status self_ireduce_with(const struct cct_world *w, void *buf, size_t count, size_t element_bytes,
                                         cct_combine_fn *combine, enum cct_result_at where,
                                         struct cct_request **request_out) {
  enum cct_status status = self_reduce_with(w, buf, count, element_bytes, combine, where);
  return status ? status : started(request_out, NULL, 0, 0);
}

static enum cct_status self_iallgather(const struct cct_world *w, const void *send, size_t bytes, void *recv,
                                       struct cct_request **request_out) {
  enum cct_status status = self_allgather(w, send, bytes, recv);
  return status ? status : started(request_out, NULL, 0, 0);
}

static enum cct_status self_ialltoallv(const struct cct_world *w, const void *send, const size_t *send_bytes,
                                       void *recv, const size_t *recv_bytes, struct cct_request **request_out) {
  enum cct_status status = self_alltoallv(w, send, send_bytes, recv, recv_bytes);
  return status ? status : started(request_out, NULL, 0, 0);
}

static enum cct_status self_test(const struct cct_world *w, struct cct_request *request, int *done_out) {
  (void)w;
  *done_out = !request->into || take_message(request->into, request->bytes, request->tag);
  if (*done_out)
    free(request);
  return CCT_OK;
}

static int64_t self_now_ns(const struct cct_world *w) {
  (void)w;
  return cct_clock_ns();
}

static void self_abort(const struct cct_world *w, int exit_code) {
  (void)w;
  _Exit(exit_code);
}

static const struct cct_world_ops self_ops = {
    .split = self_split,
    .release = self_release,
    .barrier = self_barrier,
    .bcast = self_bcast,
    .gather = self_gather,
    .allgather = self_allgather,
    .allgatherv = self_allgatherv,
    .alltoallv = self_alltoallv,
    .allreduce_i64 = self_allreduce_i64,
    .allreduce_f64 = self_allreduce_f64,
    .reduce_with = self_reduce_with,
    .send = self_send,
    .recv = self_recv,
    .isend = self_isend,
    .irecv = self_irecv,
    .ireduce_with = self_ireduce_with,
    .iallgather = self_iallgather,
    .ialltoallv = self_ialltoallv,
    .test = self_test,
    .now_ns = self_now_ns,
    .abort = self_abort,
};

const struct cct_world *cct_world_self(void) {
  static const struct cct_world world = {.rank = 0, .size = 1, .ops = &self_ops};
  return &world;
}
