/* SPDX-License-Identifier: Apache-2.0
 * The listening side of net_meet.h. */
#include "nccl_plugin/net/net_meet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "nccl_plugin/net/net_log.h"
#include "nccl_plugin/net/net_socket.h"

enum {
  MAX_WAITING = 256
}; /* sockets of a listener that are not a connection yet */

struct cct_net_listener {
  struct cct_net_context *context;
  int fd, dev;
  unsigned char id[CCT_NET_ID_BYTES];
  int64_t deadline_ns; /* of the accept under way; 0: none */
  int n_refused, n_waiting;
  struct cct_net_socket *waiting[MAX_WAITING]; /* in order of arrival */
};

static enum cct_nccl open_listener(struct cct_net_listener *l, union cct_net_address *address) {
  socklen_t bytes = cct_net_address_bytes(address);
  l->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  char text[CCT_NET_ADDRESS_TEXT];
  if (l->fd >= 0 && bind(l->fd, &address->any, bytes) == 0 && listen(l->fd, 16384) == 0 &&
      getsockname(l->fd, &address->any, &bytes) == 0 && getrandom(l->id, CCT_NET_ID_BYTES, 0) == CCT_NET_ID_BYTES)
    return CCT_NCCL_SUCCESS;
  return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "cannot listen on %s: %s", cct_net_address_text(address, 0, text),
                      cct_net_socket_fault());
}

enum cct_nccl cct_net_listen(struct cct_net_context *context, int dev, void *handle_out,
                             struct cct_net_listener **listener_out) {
  int n_ifaces;
  const struct cct_net_iface *ifaces = cct_net_context_ifaces(&n_ifaces);
  if (context->runtime->unusable)
    return context->runtime->unusable;
  if (dev < 0 || dev >= n_ifaces)
    return cct_net_fail(CCT_NCCL_INVALID_ARGUMENT, "there is no device %d", dev);
  struct cct_net_listener *l = calloc(1, sizeof *l);
  if (!l)
    return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "out of memory for a listener");
  struct cct_net_handle h;
  memset(&h, 0, sizeof h);
  h.address = ifaces[dev].address;
  l->dev = dev;
  enum cct_nccl result = open_listener(l, &h.address);
  if (result) {
    if (l->fd >= 0)
      close(l->fd);
    free(l);
    return result;
  }
  l->context = context;
  cct_net_context_hold(context);
  h.magic = CCT_NET_HANDLE_MAGIC;
  h.process = context->runtime->process;
  h.is_tls = (uint8_t)context->runtime->config.is_tls;
  h.n_streams = (uint8_t)context->runtime->config.sockets;
  memcpy(h.listener, l->id, CCT_NET_ID_BYTES);
  memset(handle_out, 0, CCT_NCCL_HANDLE_BYTES);
  memcpy(handle_out, &h, sizeof h);
  *listener_out = l;
  return CCT_NCCL_SUCCESS;
}

static void drop(struct cct_net_listener *l, int i) {
  struct cct_net_socket *s = l->waiting[i];
  memmove(&l->waiting[i], &l->waiting[i + 1], (size_t)(--l->n_waiting - i) * sizeof *l->waiting);
  cct_net_socket_close(s);
  free(s);
}

static void refuse(struct cct_net_listener *l, int i, const char *why) {
  char text[CCT_NET_ADDRESS_TEXT];
  const union cct_net_address *peer = &l->waiting[i]->peer;
  cct_net_warn("refused a connection from %s: %s", cct_net_address_text(peer, 1, text), why);
  const struct cct_net_counts refused = {.refused = 1};
  cct_net_context_count(l->context, cct_net_address_text(peer, 0, text), 0, &refused);
  l->n_refused++;
  drop(l, i);
}

/* Takes new sockets in. When a stranger fills the room, whoever has waited longest without a session goes. */
static enum cct_nccl take_in(struct cct_net_listener *l) {
  const struct cct_net_runtime *runtime = l->context->runtime;
  for (int i = 0; i < CCT_NET_MAX_WIRES; i++) {
    union cct_net_address peer = {0};
    socklen_t bytes = sizeof peer;
    int fd = accept4(l->fd, &peer.any, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 &&
        (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED || errno == EPROTO))
      return CCT_NCCL_SUCCESS;
    if (fd < 0)
      return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "cannot accept a connection: %s", cct_net_socket_fault());
    for (int oldest = 0; l->n_waiting == MAX_WAITING; oldest++)
      if (l->waiting[oldest]->state < CCT_NET_ANSWERING || oldest == MAX_WAITING - 1)
        refuse(l, oldest, "too many connections wait: the oldest goes");
    struct cct_net_socket *s = calloc(1, sizeof *s);
    if (!s || !cct_wire_socket_options(fd, runtime->config.dead_s)) {
      close(fd);
      free(s);
      return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "cannot take a connection in: %m");
    }
    s->peer = peer;
    s->state = CCT_NET_SHAKING;
    s->fd = -1;
    s->deadline_ns = cct_clock_ns() + runtime->config.connect_ns;
    enum cct_nccl result = cct_wire_open(fd, runtime->tls, 1, CCT_NET_BUFFER_BYTES, &s->wire);
    if (result) {
      free(s);
      return result;
    }
    l->waiting[l->n_waiting++] = s;
  }
  return CCT_NCCL_SUCCESS;
}

static const char *fault_of_hello(const struct cct_net_listener *l, const struct cct_net_socket *s) {
  const struct cct_net_hello *h = &s->hello;
  if (h->magic != CCT_NET_HELLO_MAGIC || h->n_streams < 1 || h->n_streams > CCT_NET_MAX_SOCKETS ||
      h->index > h->n_streams)
    return "it does not speak this plugin's protocol";
  if (memcmp(h->listener, l->id, CCT_NET_ID_BYTES) != 0)
    return "it means another listener: the connection was reflected or led astray";
  for (int i = 0; i < l->n_waiting; i++) {
    const struct cct_net_socket *other = l->waiting[i];
    if (other != s && other->state >= CCT_NET_ANSWERING &&
        memcmp(other->hello.connection, h->connection, CCT_NET_ID_BYTES) == 0 &&
        (other->hello.index == h->index || other->hello.n_streams != h->n_streams))
      return "it contradicts another socket of its connection";
  }
  return NULL;
}

/* One step of socket i; says and drops what fails. Returns whether it is still there. */
static int step_waiting(struct cct_net_listener *l, int i) {
  struct cct_net_socket *s = l->waiting[i];
  const char *fault = NULL;
  int done = 1;
  if (s->state == CCT_NET_SHAKING && (done = s->wire->ops->handshake(s->wire)) > 0)
    s->state = CCT_NET_SAYING;
  if (s->state == CCT_NET_SAYING &&
      (done = cct_net_socket_exchange(s->wire, 0, &s->hello, sizeof s->hello, &s->at)) > 0) {
    fault = fault_of_hello(l, s);
    s->state = fault ? CCT_NET_SAYING : CCT_NET_ANSWERING;
    s->taken = CCT_NET_TAKEN_MAGIC;
  }
  if (s->state == CCT_NET_ANSWERING &&
      (done = cct_net_socket_exchange(s->wire, 1, &s->taken, sizeof s->taken, &s->at)) > 0)
    s->state = CCT_NET_READY;
  if (done < 0)
    fault = s->wire->why;
  else if (!fault && cct_clock_ns() > s->deadline_ns)
    fault = "it said nothing for CCTAX_NET_CONNECT_TIMEOUT_S";
  if (fault)
    refuse(l, i, fault);
  return !fault;
}

static int belongs(const struct cct_net_socket *s, const struct cct_net_hello *hello) {
  return s->state == CCT_NET_READY && memcmp(s->hello.connection, hello->connection, CCT_NET_ID_BYTES) == 0;
}

/* The comm of a connection whose sockets are all here, if there is one. */
static enum cct_nccl assemble(struct cct_net_listener *l, struct cct_net_comm **comm_out) {
  for (int first = 0; first < l->n_waiting; first++) {
    const struct cct_net_hello hello = l->waiting[first]->hello;
    if (l->waiting[first]->state != CCT_NET_READY)
      continue;
    struct cct_wire *wires[CCT_NET_MAX_WIRES] = {NULL};
    int n = 0;
    for (int i = first; i < l->n_waiting; i++) {
      const struct cct_net_socket *s = l->waiting[i];
      if (belongs(s, &hello)) {
        wires[s->hello.index] = s->wire;
        n++;
      }
    }
    if (n <= hello.n_streams)
      continue;
    enum cct_nccl result =
        cct_net_comm_new(l->context, 0, &l->waiting[first]->peer, hello.process, hello.n_streams, wires, comm_out);
    for (int i = l->n_waiting - 1; i >= first && !result; i--)
      if (belongs(l->waiting[i], &hello)) {
        l->waiting[i]->wire = NULL; /* the comm's now */
        drop(l, i);
      }
    return result;
  }
  return CCT_NCCL_SUCCESS;
}

enum cct_nccl cct_net_accept(struct cct_net_listener *listener, struct cct_net_comm **comm_out) {
  struct cct_net_listener *l = listener;
  *comm_out = NULL;
  if (!l->deadline_ns)
    l->deadline_ns = cct_clock_ns() + l->context->runtime->config.connect_ns;
  enum cct_nccl result = take_in(l);
  if (result)
    return result;
  for (int i = 0; i < l->n_waiting;)
    i += l->waiting[i]->state == CCT_NET_READY ? 1 : step_waiting(l, i);
  result = assemble(l, comm_out);
  if (*comm_out)
    l->deadline_ns = 0;
  else if (!result && cct_clock_ns() > l->deadline_ns)
    result = cct_net_fail(CCT_NCCL_REMOTE_ERROR,
                          "no peer connected within CCTAX_NET_CONNECT_TIMEOUT_S; %d were refused", l->n_refused);
  return result;
}

void cct_net_listener_close(struct cct_net_listener *listener) {
  if (!listener)
    return;
  while (listener->n_waiting > 0)
    refuse(listener, 0, "it was no peer by the time the listener closed");
  close(listener->fd);
  cct_net_context_release(listener->context);
  free(listener);
}
