/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nccl_plugin/net/net_log.h"
#include "nccl_plugin/net/net_tls.h"

int cct_wire_fail(struct cct_wire *wire, enum cct_nccl result, const char *why) {
  if (!wire->result) {
    wire->result = result;
    snprintf(wire->why, sizeof wire->why, "%s", why);
  }
  return -1;
}

static int fail_errno(struct cct_wire *wire) {
  int is_remote = errno == ECONNRESET || errno == EPIPE || errno == ETIMEDOUT || errno == EHOSTUNREACH ||
                  errno == ENETUNREACH || errno == ENETDOWN || errno == ECONNABORTED || errno == ECONNREFUSED;
  return cct_wire_fail(wire, is_remote ? CCT_NCCL_REMOTE_ERROR : CCT_NCCL_SYSTEM_ERROR, strerror(errno));
}

ssize_t cct_wire_send(struct cct_wire *wire, const void *bytes, size_t n) {
  ssize_t moved;
  do
    moved = send(wire->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (moved < 0 && errno == EINTR);
  if (moved >= 0)
    return moved;
  return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : fail_errno(wire);
}

ssize_t cct_wire_recv(struct cct_wire *wire, void *bytes, size_t n) {
  ssize_t moved;
  do
    moved = recv(wire->fd, bytes, n, MSG_DONTWAIT);
  while (moved < 0 && errno == EINTR);
  if (moved > 0)
    return moved;
  if (moved == 0)
    return cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR, "the peer closed the connection");
  return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : fail_errno(wire);
}

static int plain_ready(struct cct_wire *wire) {
  (void)wire;
  return 1;
}

static void plain_close(struct cct_wire *wire) {
  (void)wire;
}

static const struct cct_wire_ops plain_ops = {plain_ready, cct_wire_send, plain_ready, cct_wire_recv, plain_close};

enum cct_nccl cct_wire_open(int fd, struct cct_tls *tls, int is_server, size_t buffer_bytes,
                            struct cct_wire **wire_out) {
  struct cct_wire *wire = calloc(1, sizeof *wire);
  if (!wire) {
    close(fd);
    return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "out of memory for a connection");
  }
  wire->fd = fd;
  wire->ops = &plain_ops;
  enum cct_nccl result = tls ? cct_tls_open(tls, is_server, buffer_bytes, wire) : CCT_NCCL_SUCCESS;
  if (result)
    cct_wire_close(wire);
  else
    *wire_out = wire;
  return result;
}

void cct_wire_close(struct cct_wire *wire) {
  if (!wire)
    return;
  wire->ops->close(wire);
  close(wire->fd);
  free(wire);
}

int cct_wire_is_dead(const struct cct_wire *wire, int dead_s) {
  struct tcp_info info;
  socklen_t bytes = sizeof info;
  int unsent = 0;
  return ioctl(wire->fd, SIOCOUTQ, &unsent) == 0 && unsent > 0 &&
         getsockopt(wire->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_last_ack_recv > 1000u * (unsigned)dead_s && (info.tcpi_unacked > 0 || info.tcpi_probes >= 2);
}

int cct_wire_socket_options(int fd, int dead_s) {
  int on = 1, idle = dead_s / 2 > 1 ? dead_s / 2 : 1, interval = dead_s / 6 > 1 ? dead_s / 6 : 1, probes = 3;
  return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
         setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) == 0 &&
         setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle) == 0 &&
         setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval) == 0 &&
         setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes) == 0;
}
