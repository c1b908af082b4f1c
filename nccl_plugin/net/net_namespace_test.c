/* SPDX-License-Identifier: Apache-2.0
 * Two network namespaces as two hosts, over a veth pair and both families. All that crosses it is captured and
 * searched: a known payload is there in plain mode, and not under TLS. Then the link goes down in mid-message. Skipped
 * (77) where a user may not make namespaces. */
#include <setjmp.h>
#include <stdarg.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <arpa/inet.h>
#include <unistd.h>
#include <cmocka.h>

#include "nccl_plugin/net/net_play.h"

static const char marker[] = "cctax-secret-16B"; /* repeated, so that every packet of it holds some */
enum {
  PAYLOAD = 4 << 20,
  MESSAGES = 3
};
static char network[64], psk[200];
static int is_root;

static int sender(struct play *play) {
  void *send, *request = NULL;
  char *data = malloc(PAYLOAD);
  int got;
  for (size_t i = 0; i < PAYLOAD; i++)
    data[i] = marker[i % 16];
  PLAY_CHECK(play_meet(play, 1, &send, NULL) == CCT_NCCL_SUCCESS);
  for (int i = 0; i < MESSAGES; i++) {
    size_t n = i ? PAYLOAD : 64; /* inline and striped */
    for (request = NULL; !request;)
      PLAY_CHECK(play->net->isend(send, data, n, 0, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
    PLAY_CHECK(play_wait(play, request, &got, 60) == CCT_NCCL_SUCCESS);
  }
  play_barrier(play);
  free(data);
  return (int)play->net->close_send(send);
}

static int receiver(struct play *play) {
  void *recv, *request, *data = malloc(PAYLOAD);
  size_t room = PAYLOAD;
  int tag = 0, got;
  PLAY_CHECK(play_meet(play, 1, NULL, &recv) == CCT_NCCL_SUCCESS);
  for (int i = 0; i < MESSAGES; i++) {
    PLAY_CHECK(play->net->irecv(recv, 1, &data, &room, &tag, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
    PLAY_CHECK(play_wait(play, request, &got, 60) == CCT_NCCL_SUCCESS && got == (i ? PAYLOAD : 64));
    PLAY_CHECK(memcmp(data, marker, 16) == 0 && memcmp((char *)data + got - 16, marker, 16) == 0);
  }
  play_barrier(play);
  free(data);
  return (int)play->net->close_recv(recv);
}

/* Filled by a process of its own: the sides are forked, and a fork must not meet a thread. */
struct capture {
  int fd;
  atomic_int is_over;
  size_t bytes, markers;
  unsigned dropped;
};

static void listen_in(struct capture *c) {
  static char packet[1 << 17];
  while (!atomic_load(&c->is_over)) {
    ssize_t n = recv(c->fd, packet, sizeof packet, 0);
    if (n <= 0)
      continue;
    c->bytes += (size_t)n;
    c->markers += memmem(packet, (size_t)n, marker, 16) != NULL;
  }
  struct tpacket_stats stats = {0};
  socklen_t bytes = sizeof stats;
  getsockopt(c->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &bytes);
  c->dropped = stats.tp_drops;
}

static struct capture captured(const char *mode, const char *family) {
  struct capture *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct timeval wait = {0, 50000};
  int room = 64 << 20;
  assert_ptr_not_equal(c, MAP_FAILED);
  c->fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
  assert_true(c->fd >= 0);
  setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt(c->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  pid_t listener = fork();
  if (listener == 0) {
    listen_in(c);
    _exit(0);
  }
  const char *near[] = {mode, psk, "NCCL_SOCKET_IFNAME=cctax", family, NULL};
  const char *far[] = {mode, psk, "NCCL_SOCKET_IFNAME=cctax", family, network, NULL};
  struct play_case play = {.sides = {sender, receiver}, .env = {near, far}};
  int is_good = play_run(&play);
  play_free(&play);
  usleep(100000);
  atomic_store(&c->is_over, 1);
  waitpid(listener, NULL, 0);
  struct capture result = *c;
  close(c->fd);
  munmap(c, sizeof *c);
  assert_true(is_good);
  return result;
}

static void what_crosses_the_wire_is_sealed(void **state) {
  (void)state;
  const char *families[] = {"NCCL_SOCKET_FAMILY=AF_INET", "NCCL_SOCKET_FAMILY=AF_INET6"};
  for (int i = 0; i < 2; i++) {
    struct capture c = captured("CCTAX_NET_MODE=plain", families[i]);
    assert_true(c.markers > 10); /* the search finds it where it is */
    c = captured("CCTAX_NET_MODE=tls", families[i]);
    /* Root's capture is whole; other users' buffers are small, and what they miss is not searched. */
    if (c.bytes < (is_root ? (MESSAGES - 1) * (size_t)PAYLOAD : PAYLOAD / 8) || (is_root && c.dropped))
      fail_msg("captured %zu bytes, %u packets dropped", c.bytes, c.dropped);
    assert_int_equal(c.markers, 0);
  }
}

/* ---- the link goes down in mid-message ---- */

static atomic_int *is_met; /* in memory that sides and cutter share */

static int cut_off(struct play *play) { /* sends or receives until the wire is cut, and is told so */
  void *comm, *request = NULL;
  static char data[PAYLOAD];
  void *in = data;
  size_t n = PAYLOAD;
  int tag = 0, got;
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  PLAY_CHECK(play_meet(play, 1, play->role ? NULL : &comm, play->role ? &comm : NULL) == CCT_NCCL_SUCCESS);
  atomic_store(is_met, 1);
  int64_t start = play_now_ns();
  while (!result && play_now_ns() - start < 20000000000) {
    request = NULL;
    result = play->role ? play->net->irecv(comm, 1, &in, &n, &tag, NULL, NULL, &request)
                        : play->net->isend(comm, data, n, 0, NULL, NULL, &request);
    if (!result && request)
      result = play_wait(play, request, &got, 60);
  }
  PLAY_CHECK(result == CCT_NCCL_REMOTE_ERROR && play->log->n_warnings == 1);
  return (int)(play->role ? play->net->close_recv(comm) : play->net->close_send(comm));
}

static pid_t cut_soon(void) {
  pid_t cutter = fork();
  if (cutter == 0) {
    while (!atomic_load(is_met))
      usleep(10000);
    usleep(300000);
    _exit(system("ip link set cctax1 down") != 0);
  }
  return cutter;
}

static void a_link_that_goes_down_is_an_error_on_both_sides(void **state) {
  (void)state;
  int status = -1;
  const char *near[] = {psk, "NCCL_SOCKET_IFNAME=cctax", "CCTAX_NET_DEAD_S=2", NULL};
  const char *far[] = {psk, "NCCL_SOCKET_IFNAME=cctax", "CCTAX_NET_DEAD_S=2", network, NULL};
  struct play_case play = {.sides = {cut_off, cut_off}, .env = {near, far}};
  is_met = mmap(NULL, sizeof *is_met, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(is_met, MAP_FAILED);
  pid_t cutter = cut_soon();
  int is_good = play_run(&play);
  atomic_store(is_met, 1); /* where they never met, the cutter must still end */
  waitpid(cutter, &status, 0);
  play_free(&play);
  munmap(is_met, sizeof *is_met);
  assert_true(is_good && status == 0);
}

/* ---- two hosts ---- */

static int write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  int is_good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0)
    close(fd);
  return is_good;
}

static int set_up(pid_t *host_out) {
  char text[1000], mapping[64];
  int ready[2];
  snprintf(mapping, sizeof mapping, "0 %u 1", (unsigned)geteuid());
  if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET) != 0)
    return 0;
  if (geteuid() != 0 && (!write_file("/proc/self/setgroups", "deny") || !write_file("/proc/self/uid_map", mapping)))
    return 0;
  if (pipe(ready) != 0)
    return 0;
  *host_out = fork();
  if (*host_out == 0) {
    int result = unshare(CLONE_NEWNET);
    if (write(ready[1], &result, sizeof result) < 0 || result != 0)
      _exit(1);
    for (;;)
      pause();
  }
  int result = -1;
  if (read(ready[0], &result, sizeof result) != sizeof result || result != 0)
    return 0;
  snprintf(network, sizeof network, "PLAY_NETWORK=/proc/%d/ns/net", (int)*host_out);
  snprintf(
      text, sizeof text,
      "ip link add cctax1 type veth peer name cctax2 netns %d && ip addr add 10.77.7.1/24 dev cctax1 && "
      "ip -6 addr add fd77::1/64 dev cctax1 nodad && ip link set cctax1 up && "
      "nsenter -t %d -n sh -c 'ip addr add 10.77.7.2/24 dev cctax2 && ip -6 addr add fd77::2/64 dev cctax2 nodad && "
      "ip link set cctax2 up'",
      (int)*host_out, (int)*host_out);
  return system(text) == 0;
}

int main(void) {
  pid_t host = 0;
  is_root = geteuid() == 0;
  char path[] = "/tmp/cct-net-namespace-XXXXXX";
  if (!set_up(&host)) {
    fprintf(stderr, "skipped: network namespaces with a veth pair are not to be had here\n");
    if (host > 0)
      kill(host, SIGKILL);
    return 77;
  }
  int fd = mkstemp(path);
  if (fd < 0 || write(fd, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 64) != 64)
    return 1;
  close(fd);
  snprintf(psk, sizeof psk, "CCTAX_NET_PSK_FILE=%s", path);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_crosses_the_wire_is_sealed),
      cmocka_unit_test(a_link_that_goes_down_is_an_error_on_both_sides),
  };
  int result = cmocka_run_group_tests(tests, NULL, NULL);
  kill(host, SIGKILL);
  unlink(path);
  return result;
}
