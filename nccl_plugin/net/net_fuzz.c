/* SPDX-License-Identifier: Apache-2.0
 * Feeds the wire with what no peer would say: net_fuzz [INPUTS [SEED]]. Targets in turn: the frames of a standing
 * connection (over socket pairs), the hello of a listener and the handle of a connect (over loopback), each from
 * well-formed bytes with a few changed. Nothing may crash, hang or write beyond a receive; with plain wires, since
 * under TLS none of this reaches the parser without the key. Every 64th hello goes to a TLS listener, where OpenSSL
 * reads it. And TLS records by themselves, which nobody without the key may make or change. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "nccl_plugin/net/net_format.h"
#include "nccl_plugin/net/net_log.h"
#include "nccl_plugin/net/net_meet.h"
#include "nccl_plugin/net/net_record.h"

static uint64_t seed, drawn;
static struct cct_net_context *contexts[2]; /* plain, TLS */

static uint64_t draw(uint64_t n) {
  return (uint64_t)cct_random_below(seed, drawn++, (int64_t)n);
}

static void no_log(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  (void)level, (void)flags, (void)file, (void)line, (void)format;
}

static void spoil(unsigned char *bytes, size_t n) {
  static const unsigned char edges[] = {0, 1, 0x7f, 0x80, 0xff};
  for (uint64_t i = draw(4); i > 0; i--)
    bytes[draw(n)] = draw(2) ? edges[draw(sizeof edges)] : (unsigned char)draw(256);
}

static int must(int condition, const char *what) {
  if (!condition)
    fprintf(stderr, "net_fuzz: %s (seed %llu)\n", what, (unsigned long long)seed);
  return condition;
}

/* Frames, good and bad, with stripes on two data sockets that may hold too little. */
static int fuzz_frames(void) {
  enum {
    ROOM = 70000,
    GUARD = 64
  };
  static unsigned char memory[ROOM + GUARD];
  int pairs[3][2];
  struct cct_wire *wires[3];
  struct cct_net_comm *comm = NULL;
  union cct_net_address peer = {.v4 = {.sin_family = AF_INET}};
  for (int i = 0; i < 3; i++)
    if (!must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]) == 0, "no socket pair") ||
        cct_wire_open(pairs[i][1], NULL, 1, 0, &wires[i]))
      return 0;
  if (cct_net_comm_new(contexts[0], 0, &peer, 1, 2, wires, &comm))
    return 0;
  memset(memory + ROOM, 0xa5, GUARD);
  uint64_t n = 1 + draw(4);
  for (uint64_t i = 0; i < n; i++) {
    static const uint32_t some[] = {0, 1, 100, 16384, 40000, ROOM};
    static unsigned char body[40000];
    struct cct_net_frame f = {CCT_NET_FRAME_MAGIC, (uint32_t)i,       some[draw(6)],
                              some[draw(5)] & ~1u, (uint16_t)draw(2), 0};
    unsigned char bytes[sizeof f];
    memcpy(bytes, &f, sizeof f);
    if (draw(3) == 0)
      spoil(bytes, sizeof bytes);
    ssize_t gone = send(pairs[0][0], bytes, draw(8) ? sizeof bytes : draw(sizeof bytes), MSG_NOSIGNAL);
    for (int k = 0; k < 3 && gone > 0; k++)
      gone = send(pairs[k][0], body, 1 + draw(sizeof body - 1), MSG_NOSIGNAL);
  }
  for (int i = 0; i < 3; i++)
    if (draw(2))
      shutdown(pairs[i][0], SHUT_WR);
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  for (uint64_t i = 0; i <= n && !result; i++) {
    void *request;
    int done = 0;
    size_t bytes = 0, room = draw(2) ? ROOM : draw(ROOM);
    result = cct_net_comm_recv(comm, memory + ROOM - room, room, &request);
    for (int k = 0; k < 20 && !result && !done && request; k++)
      result = cct_net_comm_test(request, &done, &bytes);
    if (!must(bytes <= room, "more arrived than there was room for"))
      return 0;
  }
  cct_net_comm_close(comm);
  for (int i = 0; i < 3; i++)
    close(pairs[i][0]);
  for (int i = 0; i < GUARD; i++)
    if (!must(memory[ROOM + i] == 0xa5, "written beyond a receive"))
      return 0;
  return 1;
}

/* A hello, or worse, to a listener. */
static int fuzz_hello(struct cct_net_context *context) {
  struct cct_net_handle h;
  char handle[CCT_NCCL_HANDLE_BYTES];
  struct cct_net_listener *listener;
  struct cct_net_comm *comm = NULL;
  if (cct_net_listen(context, 0, handle, &listener))
    return 0;
  memcpy(&h, handle, sizeof h);
  int fds[3];
  for (int i = 0; i < 3; i++) {
    struct cct_net_hello hello = {.magic = CCT_NET_HELLO_MAGIC, .index = (uint8_t)(i % 2), .n_streams = 1};
    memcpy(hello.listener, h.listener, CCT_NET_ID_BYTES);
    unsigned char bytes[sizeof hello + 8];
    memcpy(bytes, &hello, sizeof hello);
    if (i == 0 || draw(2))
      spoil(bytes, sizeof hello);
    if (context == contexts[1])
      memcpy(bytes, "\x16\x03\x01\x00\x30\x01\x00\x00\x2c\x03\x03", draw(12));
    fds[i] = socket(AF_INET, SOCK_STREAM, 0);
    struct linger at_once = {1, 0}; /* no TIME_WAIT: a million inputs would use up the ports */
    setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (!must(connect(fds[i], &h.address.any, sizeof h.address.v4) == 0, "cannot connect") ||
        send(fds[i], bytes, draw(6) ? sizeof hello : draw(sizeof bytes), MSG_NOSIGNAL) < 0)
      return 0;
  }
  for (int k = 0; k < 6 && !comm; k++)
    if (!must(cct_net_accept(listener, &comm) == CCT_NCCL_SUCCESS, "a stranger ended the listener"))
      return 0;
  cct_net_comm_close(comm);
  cct_net_listener_close(listener);
  for (int i = 0; i < 3; i++)
    close(fds[i]);
  return 1;
}

static int fuzz_handle(void) {
  char handle[CCT_NCCL_HANDLE_BYTES];
  struct cct_net_listener *listener;
  struct cct_net_comm *comm = NULL;
  struct cct_net_handle h;
  if (cct_net_listen(contexts[0], 0, handle, &listener))
    return 0;
  memcpy(&h, handle, sizeof h);
  union cct_net_address address = h.address;
  spoil((unsigned char *)&h, sizeof h);
  if (h.address.any.sa_family == AF_INET || h.address.any.sa_family == AF_INET6)
    h.address = address; /* loopback alone is called */
  memcpy(handle, &h, sizeof h);
  if (cct_net_connect(contexts[0], 0, handle, &comm) == CCT_NCCL_SUCCESS && !comm) {
    struct cct_net_comm *taken = NULL;
    if (cct_net_accept(listener, &taken) || cct_net_connect(contexts[0], 0, handle, &comm))
      comm = NULL;
    cct_net_comm_close(taken);
  }
  cct_net_comm_close(comm);
  cct_net_listener_close(listener);
  cct_net_calls_free(contexts[0]);
  return 1;
}

/* A record with a few bytes changed opens only if nothing was. */
static int fuzz_record(void) {
  static unsigned char content[CCT_NET_RECORD_BYTES], record[CCT_NET_RECORD_ROOM], spoilt[CCT_NET_RECORD_ROOM],
      opened[CCT_NET_RECORD_ROOM];
  const unsigned char secret[48] = {1};
  size_t n = draw(2) ? draw(100) : draw(sizeof content + 1), length = n + CCT_NET_RECORD_MORE, secret_bytes = 32;
  int type = 0, is_whole, is_good;
  secret_bytes += draw(2) ? 16 : 0;
  struct cct_net_key *seal = cct_net_key_new(1, secret, secret_bytes), *open = cct_net_key_new(0, secret, secret_bytes);
  is_good = seal && open && cct_net_seal(seal, CCT_NET_DATA, content, n, record);
  memcpy(spoilt, record, length);
  spoil(spoilt, draw(2) ? CCT_NET_RECORD_HEADER : length);
  size_t said = cct_net_record_length(spoilt);
  is_whole = memcmp(spoilt, record, length) == 0;
  if (is_good && said > 0) {
    ptrdiff_t got = cct_net_open(open, spoilt, said, opened, &type);
    is_good = is_whole ? got == (ptrdiff_t)n && type == CCT_NET_DATA && memcmp(opened, content, n) == 0 : got == -1;
  }
  cct_net_key_free(seal);
  cct_net_key_free(open);
  return must(is_good, "a changed record was opened, or a whole one was not");
}

int main(int argc, char **argv) {
  char path[] = "/tmp/cct-net-fuzz-XXXXXX";
  long n = argc > 1 ? atol(argv[1]) : 3000, i = 0;
  seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  signal(SIGALRM, SIG_DFL);
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  setenv("CCTAX_NET_MODE", "plain", 1);
  setenv("CCTAX_NET_THREADS", "1", 1);
  cct_net_log_to(no_log);
  if (cct_net_context_new(1, &contexts[0]))
    return 1;
  int fd = mkstemp(path); /* a second, TLS, runtime is not to be had in one process: give this one its key material */
  if (fd < 0 || write(fd, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 64) != 64)
    return 1;
  close(fd);
  struct cct_net_runtime tls = *contexts[0]->runtime;
  tls.config.is_tls = 1;
  tls.config.cipher = "TLS_AES_256_GCM_SHA384";
  snprintf(tls.config.psk_file, sizeof tls.config.psk_file, "%s", path);
  struct cct_net_context with_tls = *contexts[0];
  with_tls.runtime = &tls;
  with_tls.holders = 2; /* never the last */
  with_tls.peers = NULL;
  contexts[1] = &with_tls;
  int is_good = cct_tls_new(&tls.config, &tls.tls) == CCT_NCCL_SUCCESS;
  for (; i < n && is_good; i++) {
    alarm(20); /* a hang is a failure */
    is_good = i % 4 == 3    ? fuzz_hello(contexts[i % 64 == 63])
              : i % 16 == 2 ? fuzz_handle()
              : i % 4 == 1  ? fuzz_record()
                            : fuzz_frames();
  }
  alarm(0);
  unlink(path);
  cct_tls_free(tls.tls);
  free(with_tls.peers);
  cct_net_context_release(contexts[0]);
  printf("%ld inputs\n", i);
  return !is_good;
}
