/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_socket.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void cct_net_socket_close(struct cct_net_socket *socket) {
  if (socket->wire)
    cct_wire_close(socket->wire);
  else if (socket->fd >= 0)
    close(socket->fd);
  socket->wire = NULL;
  socket->fd = -1;
}

int cct_net_socket_exchange(struct cct_wire *wire, int is_write, void *bytes, size_t n, size_t *at) {
  while (*at < n) {
    char *p = (char *)bytes + *at;
    ssize_t moved = is_write ? wire->ops->write(wire, p, n - *at) : wire->ops->read(wire, p, n - *at);
    if (moved <= 0)
      return (int)moved;
    *at += (size_t)moved;
  }
  int done = is_write ? wire->ops->flush(wire) : 1;
  if (done > 0)
    *at = 0;
  return done;
}

const char *cct_net_socket_fault(void) {
  return errno == EMFILE || errno == ENFILE ? "no file descriptor is left: raise 'ulimit -n'" : strerror(errno);
}
