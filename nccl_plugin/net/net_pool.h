/* SPDX-License-Identifier: Apache-2.0
 * Helper threads that move bulk data. A stream is one data socket of a connection; it belongs to one worker, so its
 * record layer is never used by two threads, and the ciphers of several streams run on several cores. Workers sleep
 * when nothing moves. */
#ifndef CCT_NCCL_NET_POOL_H
#define CCT_NCCL_NET_POOL_H

#include <stdatomic.h>

#include "nccl_plugin/net/net_wire.h"

struct cct_net_pool;
struct cct_net_worker;

/* What a connection's streams report to: written by workers, read by the connection's own thread. */
struct cct_net_flow {
  _Atomic(struct cct_wire *) failed; /* the first wire that failed; its `result` and `why` are final */
  atomic_ullong moved_bytes;
};

struct cct_net_task {
  char *data;
  size_t bytes, done;
  atomic_int *left; /* taken down by one when the task is done */
};

struct cct_net_stream {
  struct cct_wire *wire;
  struct cct_net_flow *flow;
  int is_send;
  struct cct_net_worker *worker;
  /* Under the worker's lock: */
  struct cct_net_task queue[CCT_NCCL_NET_REQUESTS];
  unsigned head, tail; /* tasks taken out, put in */
  int is_active, is_closing;
};

enum cct_nccl cct_net_pool_new(int threads, int64_t spin_ns, struct cct_net_pool **pool_out);
/* Ends the threads; streams stay, and drop what is posted. NULL-safe. */
void cct_net_pool_stop(struct cct_net_pool *pool);
void cct_net_pool_free(struct cct_net_pool *pool); /* NULL-safe; after every stream is detached */

/* Gives the stream a worker, in turn. */
enum cct_nccl cct_net_stream_attach(struct cct_net_pool *pool, struct cct_net_stream *stream);
/* Queues a task; a stream has room for one task of every outstanding request. A detached stream drops it. */
void cct_net_stream_post(struct cct_net_stream *stream, struct cct_net_task task);
/* Drops what is queued and returns once no worker touches the stream or its tasks' memory; takes one step of a worker
 * at most. */
void cct_net_stream_detach(struct cct_net_stream *stream);
/* Whether a queued task lies in [data, data + bytes). */
int cct_net_stream_uses(struct cct_net_stream *stream, const char *data, size_t bytes);

#endif
