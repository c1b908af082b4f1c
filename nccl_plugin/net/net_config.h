/* SPDX-License-Identifier: Apache-2.0
 * What the environment asks of the net plugin. A word or number that cannot be meant is an error with one line, never a
 * default; docs/net.md lists the variables. */
#ifndef CCT_NCCL_NET_CONFIG_H
#define CCT_NCCL_NET_CONFIG_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "nccl_plugin/net/net_abi.h"

enum {
  CCT_NET_MAX_SOCKETS = 16, /* data sockets of a connection, beside its control socket */
  CCT_NET_MAX_THREADS = 64,
  CCT_NET_KEY_RECORDS = 1 << 23, /* records under one key: below the 2^24.5 of RFC 8446 section 5.5 */
};

struct cct_net_config {
  int is_tls;
  int sockets, threads;
  /* Messages up to this travel on the control socket, by the caller's own thread: beside others of the process, for
   * which it is wanted; and alone, where waking a helper would cost more than it takes off. */
  size_t inline_bytes, alone_bytes;
  uint64_t key_records;
  int64_t connect_ns, stall_ns, spin_ns; /* stall_ns 0: wait for ever */
  int dead_s;                            /* silence of the peer's kernel that means it is gone */
  int speed_mbps;                        /* 0: what the kernel says of the interface */
  const char *cipher;                    /* TLS 1.3 suite */
  char psk_file[PATH_MAX], cert_file[PATH_MAX], key_file[PATH_MAX], ca_file[PATH_MAX], stats_file[PATH_MAX];
};

enum cct_nccl cct_net_config_read(struct cct_net_config *config_out);

#endif
