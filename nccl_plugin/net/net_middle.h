/* SPDX-License-Identifier: Apache-2.0
 * For tests: a man in the middle of a plugin's connections, who passes records on, all but one, to which he does
 * something. */
#ifndef CCT_NCCL_PLUGIN_NET_NET_MIDDLE_H
#define CCT_NCCL_PLUGIN_NET_NET_MIDDLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "nccl_plugin/net/net_format.h"

enum attack {
  PASS,
  FLIP,
  DROP,
  REPEAT,
  SWAP,
  TRUNCATE,
  INJECT,
  FLIP_LENGTH
};
struct middle {
  enum attack attack;
  int victim; /* which of the connections: 0 control */
  int at;     /* which application record of it */
  union cct_net_address target;
  int fd;
  atomic_int has_struck;
  /* What the caller said on its first connection, to say it again later. */
  unsigned char tape[4000];
  size_t tape_bytes;
};

/* Listens in the place of the listener that the handle names, and has the handle name him; `thread` ends when `m->fd`
 * is shut down. 0: he could not. */
int net_middle_put(struct middle *m, char *handle, pthread_t *thread);
int net_middle_dial(const union cct_net_address *address); /* -1: nobody there */
int net_middle_write(int fd, const unsigned char *bytes, size_t n);

#endif
