/* SPDX-License-Identifier: Apache-2.0
 * One socket on its way into a connection, as caller (net_call.c) and listener (net_listener.c) both see it. */
#ifndef CCT_NCCL_NET_SOCKET_H
#define CCT_NCCL_NET_SOCKET_H

#include "nccl_plugin/net/net_config.h"
#include "nccl_plugin/net/net_format.h"
#include "nccl_plugin/net/net_wire.h"

enum {
  CCT_NET_MAX_WIRES = 1 + CCT_NET_MAX_SOCKETS,
  CCT_NET_BUFFER_BYTES = 16 * (16384 + 22) + 64, /* one system call under TLS: 16 full records, and a key update */
};

struct cct_net_socket {
  enum {
    CCT_NET_UNCALLED, /* data sockets are called once the control socket was taken: a caller without the key is refused
                         once */
    CCT_NET_CALLING,
    CCT_NET_SHAKING,
    CCT_NET_SAYING, /* the hello: the caller writes, the listener reads */
    CCT_NET_ANSWERING,
    CCT_NET_READY,
  } state;
  int fd; /* until there is a wire */
  struct cct_wire *wire;
  union cct_net_address peer;
  struct cct_net_hello hello;
  uint64_t taken;
  size_t at; /* of hello or answer */
  int64_t deadline_ns, again_ns;
  int n_refused;
};

void cct_net_socket_close(struct cct_net_socket *socket);
/* Moves exactly n bytes over several calls. 1 done, 0 again, -1 failed. */
int cct_net_socket_exchange(struct cct_wire *wire, int is_write, void *bytes, size_t n, size_t *at);
/* errno of a call that opens a descriptor, in words with the remedy. */
const char *cct_net_socket_fault(void);

#endif
