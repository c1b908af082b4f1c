/* SPDX-License-Identifier: Apache-2.0
 * What communicators share in a process (settings, key material, helper threads, interfaces), and one communicator's
 * context with its counters per peer.
 *
 * NCCL tries its own plaintext Socket when a plugin's init or devices fails. So a plugin that cannot be used as asked
 * (no key, a key others may read, no interface) still initialises, says why in one line, and fails at listen and
 * connect: the job ends. */
#ifndef CCT_NCCL_NET_CONTEXT_H
#define CCT_NCCL_NET_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "nccl_plugin/net/net_config.h"
#include "nccl_plugin/net/net_ifaces.h"
#include "nccl_plugin/net/net_pool.h"
#include "nccl_plugin/net/net_tls.h"

struct cct_net_runtime {
  enum cct_nccl unusable; /* why nothing may be sent; CCT_NCCL_SUCCESS when all is well */
  struct cct_net_config config;
  struct cct_tls *tls; /* NULL in plain mode */
  struct cct_net_pool *pool;
  uint64_t process; /* random: tells two processes of one host apart in the counters */
  int n_contexts;
  atomic_int sends; /* messages of all connections that are on their way out */
};

struct cct_net_counts {
  uint64_t connections, refused, messages_out, messages_in, bytes_out, bytes_in;
  int64_t late_ns; /* receives: from posted until the peer's message began to arrive */
  struct cct_wire_counts wire;
};

struct cct_net_peer {
  char address[CCT_NET_ADDRESS_TEXT];
  uint64_t process;
  struct cct_net_counts counts;
  struct cct_net_peer *next;
};

/* A connection that stands: what it has counted is found also where the program ends without closing it. */
struct cct_net_live {
  struct cct_net_live *next;
  const char *address;
  uint64_t process;
  struct cct_net_counts counts; /* its wires' own excluded */
  int n_wires;
  const struct cct_wire *wires[1 + CCT_NET_MAX_SOCKETS];
};

struct cct_net_call; /* a connect under way (net_call.c) */

struct cct_net_context {
  struct cct_net_runtime *runtime;
  uint64_t comm_id;
  pthread_mutex_t lock;
  /* Under the lock: */
  int holders; /* NCCL, and every comm and listener */
  struct cct_net_peer *peers;
  struct cct_net_live *live;
  struct cct_net_call *calls;
  int is_written;               /* its counters */
  struct cct_net_context *next; /* under the process's lock */
};

enum cct_nccl cct_net_context_new(uint64_t comm_id, struct cct_net_context **context_out);
void cct_net_context_hold(struct cct_net_context *context);
/* The last one out writes the counters to CCTAX_NET_STATS (the end of a program does it for contexts that stand); the
 * last context of the process ends the helper threads. NULL-safe. */
void cct_net_context_release(struct cct_net_context *context);

/* A connection begins (it holds the context), and ends: its counters go to its peer, and it releases the context when
 * its wires are closed. */
void cct_net_context_begin(struct cct_net_context *context, struct cct_net_live *live);
void cct_net_context_end(struct cct_net_context *context, struct cct_net_live *live);
/* Adds to the counters of the peer at `address`. */
void cct_net_context_count(struct cct_net_context *context, const char *address, uint64_t process,
                           const struct cct_net_counts *counts);

/* The interfaces of the process; `n_out` is at least 1 (an unusable plugin shows one that cannot be listened on). */
const struct cct_net_iface *cct_net_context_ifaces(int *n_out);

#endif
