/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_play.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t play_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct play_log *this_log;

static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  (void)flags, (void)file, (void)line;
  va_list args;
  va_start(args, format);
  char text[PLAY_LINE];
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (getenv("PLAY_LOUD"))
    fprintf(stderr, "%d %s\n", level, text);
  if (level != CCT_NCCL_LOG_WARN)
    return;
  int at = __atomic_fetch_add(&this_log->n_warnings, 1, __ATOMIC_SEQ_CST);
  if (at < PLAY_LINES)
    memcpy(this_log->warnings[at], text, sizeof text);
}

static int load(struct play *play) {
  const char *path = getenv("CCT_NET_PLUGIN");
  char name[64];
  void *lib = dlopen(path ? path : CCT_NET_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    fprintf(stderr, "%s\n", dlerror());
    return 0;
  }
  snprintf(name, sizeof name, "ncclNetPlugin_v%d", play->version);
  const void *table = dlsym(lib, name);
  if (!table)
    return 0;
  if (play->version == 10) {
    static struct cct_nccl_net_v12 shared; /* from accept on, v10 has the same members */
    play->v10 = table;
    memcpy(&shared.accept, &play->v10->accept,
           offsetof(struct cct_nccl_net_v12, make_vdevice) - offsetof(struct cct_nccl_net_v12, accept));
    play->net = &shared;
    return play->v10->init(logger, NULL) == CCT_NCCL_SUCCESS;
  }
  struct cct_nccl_net_comm_config config = {CCT_NCCL_ID_UNDEFINED};
  play->net = table;
  return play->net->init(&play->ctx, 0x1234abcd, &config, logger, NULL) == CCT_NCCL_SUCCESS;
}

static int side(const struct play_case *c, int role, int fd, pid_t other) {
  struct play play = {
      .role = role, .fd = fd, .other = other, .log = c->logs[role], .version = c->version ? c->version : 11};
  this_log = play.log;
  for (const char *const *e = c->env[role]; e && *e; e++)
    putenv((char *)*e);
  if (!getenv("NCCL_SOCKET_IFNAME"))
    putenv("NCCL_SOCKET_IFNAME=lo");
  const char *network = getenv("PLAY_NETWORK"); /* another network namespace, as another host */
  int fd_of_network = network ? open(network, O_RDONLY | O_CLOEXEC) : -1;
  if (network && (fd_of_network < 0 || setns(fd_of_network, CLONE_NEWNET) != 0))
    return 122;
  if (!load(&play)) {
    fprintf(stderr, "the plugin does not load or initialise\n");
    return 125;
  }
  int result = c->sides[role](&play);
  if (play.ctx && play.net->finalize(play.ctx) != CCT_NCCL_SUCCESS)
    result = 124;
  return result;
}

static int end_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int play_run(struct play_case *c) {
  int fds[2], status[2] = {0}, ends[2] = {1000, 1000};
  pid_t pids[2] = {0};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
    return 0;
  for (int i = 0; i < 2; i++)
    c->logs[i] = mmap(NULL, sizeof *c->logs[i], PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  fflush(NULL);
  for (int i = 0; i < 2; i++) {
    pids[i] = fork();
    if (pids[i] == 0) {
      close(fds[1 - i]);
      pid_t mine = getpid(), other = 0;
      if (send(fds[i], &mine, sizeof mine, MSG_NOSIGNAL) < 0 || read(fds[i], &other, sizeof other) < 0)
        _exit(126);
      int result = side(c, i, fds[i], other);
      fflush(NULL);
      exit(result);
    }
  }
  close(fds[0]);
  close(fds[1]);
  int64_t deadline = play_now_ns() + (int64_t)(c->timeout_s ? c->timeout_s : 120) * 1000000000;
  for (int left = 2; left > 0;) {
    for (int i = 0; i < 2; i++)
      if (ends[i] == 1000 && waitpid(pids[i], &status[i], WNOHANG) == pids[i]) {
        ends[i] = end_of(status[i]);
        left--;
      }
    if (left > 0 && play_now_ns() > deadline) {
      fprintf(stderr, "a side hangs: killed\n");
      for (int i = 0; i < 2; i++)
        if (ends[i] == 1000)
          kill(pids[i], SIGKILL);
    }
    usleep(2000);
  }
  int is_good = ends[0] == c->ends[0] && ends[1] == c->ends[1];
  if (!is_good)
    fprintf(stderr, "sides ended with %d and %d, expected %d and %d\n", ends[0], ends[1], c->ends[0], c->ends[1]);
  for (int i = 0; i < 2 && !is_good; i++)
    for (int k = 0; k < c->logs[i]->n_warnings && k < 8; k++)
      fprintf(stderr, "side %d said: %s\n", i, c->logs[i]->warnings[k]);
  return is_good;
}

void play_free(struct play_case *c) {
  for (int i = 0; i < 2; i++)
    if (c->logs[i])
      munmap(c->logs[i], sizeof *c->logs[i]);
}

enum cct_nccl play_listen(struct play *play, void *handle, void **listen_out) {
  return play->v10 ? play->v10->listen(0, handle, listen_out) : play->net->listen(play->ctx, 0, handle, listen_out);
}

enum cct_nccl play_connect_once(struct play *play, void *handle, void **send_out) {
  struct cct_nccl_net_comm_config config = {CCT_NCCL_ID_UNDEFINED};
  void *device = NULL;
  return play->v10 ? play->v10->connect(0, &config, handle, send_out, &device)
                   : play->net->connect(play->ctx, 0, handle, send_out, &device);
}

enum cct_nccl play_connect(struct play *play, void *handle, void **send_out, int timeout_s) {
  int64_t deadline = play_now_ns() + (int64_t)timeout_s * 1000000000;
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  for (*send_out = NULL; !result && !*send_out && play_now_ns() < deadline; sched_yield())
    result = play_connect_once(play, handle, send_out);
  return result || *send_out ? result : CCT_NCCL_INTERNAL_ERROR;
}

enum cct_nccl play_accept(struct play *play, void *listen, void **recv_out, int timeout_s) {
  int64_t deadline = play_now_ns() + (int64_t)timeout_s * 1000000000;
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  for (*recv_out = NULL; !result && !*recv_out && play_now_ns() < deadline; sched_yield())
    result = play->net->accept(listen, recv_out, NULL);
  return result || *recv_out ? result : CCT_NCCL_INTERNAL_ERROR;
}

void play_trade(struct play *play, const void *mine, void *theirs, size_t bytes) {
  if (send(play->fd, mine, bytes, MSG_NOSIGNAL) != (ssize_t)bytes ||
      recv(play->fd, theirs, bytes, MSG_WAITALL) != (ssize_t)bytes)
    exit(123); /* the other side is gone */
}

void play_barrier(struct play *play) {
  char mine = 1, theirs;
  play_trade(play, &mine, &theirs, 1);
}

enum cct_nccl play_meet(struct play *play, int n, void **sends, void **recvs) {
  enum {
    MAX = 64
  };
  static char mine[MAX][CCT_NCCL_HANDLE_BYTES], theirs[MAX][CCT_NCCL_HANDLE_BYTES];
  void *listens[MAX] = {NULL};
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  for (int i = 0; i < n && recvs && !result; i++)
    result = play_listen(play, mine[i], &listens[i]);
  if (result)
    return result;
  play_trade(play, mine, theirs, sizeof mine);
  int64_t deadline = play_now_ns() + 60000000000;
  for (int i = 0; i < n; i++) {
    if (sends)
      sends[i] = NULL;
    if (recvs)
      recvs[i] = NULL;
  }
  int left = 1;
  while (left && !result) { /* as NCCL's service thread does: all of them in turn, until all are there */
    left = 0;
    for (int i = 0; i < n && !result; i++) {
      if (sends && !sends[i])
        result = play_connect_once(play, theirs[i], &sends[i]);
      if (recvs && !recvs[i] && !result)
        result = play->net->accept(listens[i], &recvs[i], NULL);
      left |= (sends && !sends[i]) || (recvs && !recvs[i]);
    }
    if (play_now_ns() > deadline)
      result = CCT_NCCL_INTERNAL_ERROR;
    sched_yield();
  }
  for (int i = 0; i < n && recvs; i++)
    play->net->close_listen(listens[i]);
  return result;
}

static uint64_t word(uint64_t message, uint64_t i) {
  uint64_t z = message * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u + 1;
  return (z ^ z >> 31) * 0x94d049bb133111ebu;
}

void play_fill(unsigned char *bytes, size_t n, uint64_t message) {
  for (size_t i = 0; i < n; i += 8) {
    uint64_t w = word(message, i / 8);
    memcpy(bytes + i, &w, n - i < 8 ? n - i : 8);
  }
}

size_t play_check(const unsigned char *bytes, size_t n, uint64_t message) {
  for (size_t i = 0; i < n; i += 8) {
    uint64_t w = word(message, i / 8);
    if (memcmp(bytes + i, &w, n - i < 8 ? n - i : 8) != 0)
      return i;
  }
  return n;
}

enum cct_nccl play_wait(struct play *play, void *request, int *bytes_out, int timeout_s) {
  int64_t deadline = play_now_ns() + (int64_t)timeout_s * 1000000000;
  int done = 0;
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  while (!result && !done && play_now_ns() < deadline) {
    result = play->net->test(request, &done, bytes_out);
    sched_yield();
  }
  return result || done ? result : CCT_NCCL_INTERNAL_ERROR;
}
