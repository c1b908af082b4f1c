/* SPDX-License-Identifier: Apache-2.0
 * One socket with its record layer: plain, or TLS 1.3 (net_tls.c). Everything above this header is the same in both
 * modes. Nothing blocks. A wire is used by one thread at a time. After a failure `why` says what happened in words fit
 * for a log line and `result` which NCCL error it is; the wire then only takes close. */
#ifndef CCT_NCCL_NET_WIRE_H
#define CCT_NCCL_NET_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "nccl_plugin/net/net_abi.h"

struct cct_wire_counts { /* of one wire, or summed over a peer's */
  uint64_t records_out, records_in, key_updates_out, key_updates_in;
  int64_t crypto_ns;  /* inside the TLS library, its system calls excluded */
  int64_t blocked_ns; /* a data socket had work but could not move */
};

/* One thread counts; another may read meanwhile. */
#define CCT_NET_COUNT(counter, n) __atomic_store_n(&(counter), (counter) + (n), __ATOMIC_RELAXED)

struct cct_wire;
struct cct_wire_ops {
  /* All three: > 0 progress (write and read: bytes), 0 would block, -1 failed. */
  int (*handshake)(struct cct_wire *wire);
  ssize_t (*write)(struct cct_wire *wire, const void *bytes, size_t n);
  int (*flush)(struct cct_wire *wire); /* what write took may still be here; 1: the kernel has it all */
  ssize_t (*read)(struct cct_wire *wire, void *bytes, size_t n);
  void (*close)(struct cct_wire *wire); /* says goodbye and frees `record`; the socket is closed by cct_wire_close */
};

struct cct_wire {
  const struct cct_wire_ops *ops;
  int fd;
  void *record; /* the record layer's own */
  struct cct_wire_counts counts;
  enum cct_nccl result;
  char why[160];
};

struct cct_tls;
/* Takes over `fd` (non-blocking) also on failure. tls NULL: plain. buffer_bytes: how much a system call may carry under
 * TLS. */
enum cct_nccl cct_wire_open(int fd, struct cct_tls *tls, int is_server, size_t buffer_bytes,
                            struct cct_wire **wire_out);
void cct_wire_close(struct cct_wire *wire); /* NULL-safe */

/* For record layers: note a failure, and read or write the socket with those answers. */
int cct_wire_fail(struct cct_wire *wire, enum cct_nccl result, const char *why);
ssize_t cct_wire_send(struct cct_wire *wire, const void *bytes, size_t n);
ssize_t cct_wire_recv(struct cct_wire *wire, void *bytes, size_t n);

/* Whether the peer's kernel has left data of ours unacknowledged for more than `dead_s` seconds. A receiver that does
 * not read still acknowledges, so a slow peer is not a dead one (TCP_USER_TIMEOUT would end both). */
int cct_wire_is_dead(const struct cct_wire *wire, int dead_s);
/* No delay, close on exec, keepalive that gives an idle peer's kernel up after about `dead_s` seconds. */
int cct_wire_socket_options(int fd, int dead_s);

#endif
