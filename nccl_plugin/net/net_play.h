/* SPDX-License-Identifier: Apache-2.0
 * A test double that plays NCCL: two processes load the built plugin as NCCL does (dlopen, RTLD_NOW | RTLD_LOCAL), pass
 * each other handles over a socket pair, and drive it through its exported table. A case that hangs is killed and
 * fails. */
#ifndef CCT_NCCL_NET_PLAY_H
#define CCT_NCCL_NET_PLAY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "nccl_plugin/net/net_abi.h"

enum {
  PLAY_LINES = 400,
  PLAY_LINE = 300
};

/* What the plugin said in a side's process, in memory the test shares with it. */
struct play_log {
  int n_warnings;
  char warnings[PLAY_LINES][PLAY_LINE];
};

/* One side of a case: NCCL's view of the plugin, whichever version was asked for. */
struct play {
  int role; /* 0 or 1 */
  int fd;   /* to the other side */
  pid_t other;
  struct play_log *log;
  int version;
  const struct cct_nccl_net_v10 *v10;
  const struct cct_nccl_net_v12 *net; /* v11 and v12; for v10 the members they share are found through it too */
  void *ctx;
};

typedef int play_side(struct play *play); /* 0: all as it should be */

struct play_case {
  play_side *sides[2];
  int version; /* 10, 11, 12; 0: 11 */
  int timeout_s;
  const char *const *env[2]; /* NAME=VALUE, NULL-terminated */
  int ends[2];               /* expected: exit status, or -signal */
  struct play_log *logs[2];  /* filled by play_run; freed by the test with play_free */
};

/* Runs both sides; 1 if both ended as expected in time. */
int play_run(struct play_case *c);
void play_free(struct play_case *c);

/* Fails a side: prints where and returns 1. */
#define PLAY_CHECK(condition)                                                                                          \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: side %d: %s\n", __FILE__, __LINE__, play->role, #condition);                             \
      return 1;                                                                                                        \
    }                                                                                                                  \
  } while (0)

enum cct_nccl play_listen(struct play *play, void *handle, void **listen_out);
/* Calls once. */
enum cct_nccl play_connect_once(struct play *play, void *handle, void **send_out);
/* Calls until there is a comm, an error or `timeout_s` has passed (then CCT_NCCL_INTERNAL_ERROR). */
enum cct_nccl play_connect(struct play *play, void *handle, void **send_out, int timeout_s);
enum cct_nccl play_accept(struct play *play, void *listen, void **recv_out, int timeout_s);
/* Listens, trades handles, connects and accepts `n` connections each way (or one way, where an array is NULL on this
 * side). */
enum cct_nccl play_meet(struct play *play, int n, void **sends, void **recvs);
void play_trade(struct play *play, const void *mine, void *theirs, size_t bytes); /* with the other side */
void play_barrier(struct play *play);

/* Bytes [0, n) of message `message`; check returns the first wrong byte, or n. */
void play_fill(unsigned char *bytes, size_t n, uint64_t message);
size_t play_check(const unsigned char *bytes, size_t n, uint64_t message);

int64_t play_now_ns(void);
/* Tests until done, an error, or timeout (CCT_NCCL_INTERNAL_ERROR). */
enum cct_nccl play_wait(struct play *play, void *request, int *bytes_out, int timeout_s);

#endif
