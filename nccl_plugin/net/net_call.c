/* SPDX-License-Identifier: Apache-2.0
 * The calling side of net_meet.h. */
#include "nccl_plugin/net/net_meet.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "nccl_plugin/net/net_log.h"
#include "nccl_plugin/net/net_socket.h"

enum {
  CALL_AGAIN = 34
};                                              /* a refused call is tried again as often as NCCL's Socket does, */
static const int64_t call_again_ns = 100000000; /* and as slowly */

struct cct_net_call {
  uint64_t id;
  struct cct_net_call *next;
  struct cct_net_context *context;
  int dev, n_streams;
  uint64_t peer_process;
  union cct_net_address address;
  struct cct_net_socket sockets[CCT_NET_MAX_WIRES];
};

static enum cct_nccl fail_call(const struct cct_net_call *call, enum cct_nccl result, const char *why) {
  char text[CCT_NET_ADDRESS_TEXT];
  return cct_net_fail(result, "cannot connect to %s: %s", cct_net_address_text(&call->address, 1, text), why);
}

static enum cct_nccl dial(struct cct_net_call *call, struct cct_net_socket *s) {
  s->state = CCT_NET_CALLING;
  s->again_ns = 0;
  if (!s->deadline_ns)
    s->deadline_ns = cct_clock_ns() + call->context->runtime->config.connect_ns;
  s->fd = socket(call->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (s->fd < 0)
    return fail_call(call, CCT_NCCL_SYSTEM_ERROR, cct_net_socket_fault());
  if (!cct_wire_socket_options(s->fd, call->context->runtime->config.dead_s))
    return fail_call(call, CCT_NCCL_SYSTEM_ERROR, strerror(errno));
  if (connect(s->fd, &call->address.any, cct_net_address_bytes(&call->address)) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    if (errno != ECONNREFUSED)
      return fail_call(call, CCT_NCCL_REMOTE_ERROR, strerror(errno));
    s->again_ns = cct_clock_ns() + call_again_ns;
  }
  return CCT_NCCL_SUCCESS;
}

/* Whether the connection stands. A refusal is tried again: a listener whose queue is full may refuse too. */
static enum cct_nccl look_at_call(struct cct_net_call *call, struct cct_net_socket *s) {
  struct pollfd fd = {s->fd, POLLOUT, 0};
  int error = 0;
  socklen_t bytes = sizeof error;
  if (s->again_ns) {
    if (cct_clock_ns() < s->again_ns)
      return CCT_NCCL_SUCCESS;
    if (++s->n_refused > CALL_AGAIN)
      return fail_call(call, CCT_NCCL_REMOTE_ERROR, strerror(ECONNREFUSED));
    cct_net_socket_close(s);
    return dial(call, s);
  }
  if (poll(&fd, 1, 0) <= 0)
    return CCT_NCCL_SUCCESS;
  if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
    error = errno;
  if (error == ECONNREFUSED || error == ECONNRESET)
    s->again_ns = cct_clock_ns() + call_again_ns;
  else if (error)
    return fail_call(call, CCT_NCCL_REMOTE_ERROR, strerror(error));
  else {
    int connected = s->fd;
    s->fd = -1;
    s->state = CCT_NET_SHAKING;
    return cct_wire_open(connected, call->context->runtime->tls, 0, CCT_NET_BUFFER_BYTES, &s->wire);
  }
  return CCT_NCCL_SUCCESS;
}

/* One step of one socket; its failure is said here. */
static enum cct_nccl step_call(struct cct_net_call *call, struct cct_net_socket *s) {
  int done = 1;
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  if (s->state == CCT_NET_UNCALLED && call->sockets[0].state == CCT_NET_READY)
    result = dial(call, s);
  if (s->state == CCT_NET_CALLING && !result)
    result = look_at_call(call, s);
  if (result || s->state == CCT_NET_UNCALLED)
    return result;
  if (s->state == CCT_NET_SHAKING && (done = s->wire->ops->handshake(s->wire)) > 0)
    s->state = CCT_NET_SAYING;
  if (s->state == CCT_NET_SAYING &&
      (done = cct_net_socket_exchange(s->wire, 1, &s->hello, sizeof s->hello, &s->at)) > 0)
    s->state = CCT_NET_ANSWERING;
  if (s->state == CCT_NET_ANSWERING &&
      (done = cct_net_socket_exchange(s->wire, 0, &s->taken, sizeof s->taken, &s->at)) > 0) {
    if (s->taken != CCT_NET_TAKEN_MAGIC)
      return fail_call(call, CCT_NCCL_REMOTE_ERROR, "it is not this plugin that answers");
    s->state = CCT_NET_READY;
  }
  if (done < 0)
    return fail_call(call, s->wire->result, s->wire->why);
  if (s->state != CCT_NET_READY && cct_clock_ns() > s->deadline_ns)
    return fail_call(call, CCT_NCCL_REMOTE_ERROR, "no answer within CCTAX_NET_CONNECT_TIMEOUT_S");
  return CCT_NCCL_SUCCESS;
}

static void call_free(struct cct_net_call *call) {
  if (!call)
    return;
  for (int i = 0; i <= call->n_streams; i++)
    cct_net_socket_close(&call->sockets[i]);
  free(call);
}

void cct_net_calls_free(struct cct_net_context *context) {
  for (struct cct_net_call *next, *call = context->calls; call; call = next) {
    next = call->next;
    call_free(call);
  }
  context->calls = NULL;
}

static enum cct_nccl check_handle(const struct cct_net_context *context, int dev, const struct cct_net_handle *h) {
  int n_ifaces;
  cct_net_context_ifaces(&n_ifaces);
  if (dev < 0 || dev >= n_ifaces)
    return cct_net_fail(CCT_NCCL_INVALID_ARGUMENT, "there is no device %d", dev);
  if (h->magic != CCT_NET_HANDLE_MAGIC || h->n_streams < 1 || h->n_streams > CCT_NET_MAX_SOCKETS ||
      (h->address.any.sa_family != AF_INET && h->address.any.sa_family != AF_INET6))
    return cct_net_fail(CCT_NCCL_REMOTE_ERROR,
                        "a peer's handle is not of this plugin and version: do all ranks use it?");
  if (h->is_tls != context->runtime->config.is_tls)
    return cct_net_fail(CCT_NCCL_INVALID_USAGE,
                        "a peer has CCTAX_NET_MODE=%s, and this rank has not: set it alike on all",
                        h->is_tls ? "tls" : "plain");
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl call_new(struct cct_net_context *context, int dev, struct cct_net_handle *h,
                              struct cct_net_call **call_out) {
  int n_ifaces;
  struct cct_net_call *call = calloc(1, sizeof *call);
  struct cct_net_hello hello = {.magic = CCT_NET_HELLO_MAGIC, .process = context->runtime->process};
  if (!call)
    return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "out of memory for a connection");
  call->context = context;
  call->dev = dev;
  call->n_streams = h->n_streams < context->runtime->config.sockets ? h->n_streams : context->runtime->config.sockets;
  call->peer_process = h->process;
  call->address = h->address;
  if (call->address.any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&call->address.v6.sin6_addr))
    call->address.v6.sin6_scope_id =
        if_nametoindex(cct_net_context_ifaces(&n_ifaces)[dev].name); /* ours, not the listener's */
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  for (int i = 0; i <= call->n_streams; i++)
    call->sockets[i].fd = -1;
  if (getrandom(&call->id, sizeof call->id, 0) != sizeof call->id ||
      getrandom(hello.connection, CCT_NET_ID_BYTES, 0) != CCT_NET_ID_BYTES)
    result = cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "the system gives no random numbers: %m");
  call->id |= 1;
  memcpy(hello.listener, h->listener, CCT_NET_ID_BYTES);
  hello.n_streams = (uint8_t)call->n_streams;
  for (int i = 0; i <= call->n_streams && !result; i++) {
    hello.index = (uint8_t)i;
    call->sockets[i].hello = hello;
  }
  if (!result)
    result = dial(call, &call->sockets[0]);
  if (result) {
    call_free(call);
    return result;
  }
  pthread_mutex_lock(&context->lock);
  call->next = context->calls;
  context->calls = call;
  pthread_mutex_unlock(&context->lock);
  h->call = call->id;
  *call_out = call;
  return CCT_NCCL_SUCCESS;
}

static struct cct_net_call *call_find(struct cct_net_context *context, uint64_t id) {
  pthread_mutex_lock(&context->lock);
  struct cct_net_call *call = context->calls;
  while (call && call->id != id)
    call = call->next;
  pthread_mutex_unlock(&context->lock);
  return call;
}

static void call_unlink(struct cct_net_context *context, struct cct_net_call *call) {
  pthread_mutex_lock(&context->lock);
  struct cct_net_call **at = &context->calls;
  while (*at != call)
    at = &(*at)->next;
  *at = call->next;
  pthread_mutex_unlock(&context->lock);
}

enum cct_nccl cct_net_connect(struct cct_net_context *context, int dev, void *handle, struct cct_net_comm **comm_out) {
  struct cct_net_handle h; /* NCCL promises no alignment */
  struct cct_wire *wires[CCT_NET_MAX_WIRES];
  *comm_out = NULL;
  if (context->runtime->unusable)
    return context->runtime->unusable;
  memcpy(&h, handle, sizeof h);
  enum cct_nccl result = check_handle(context, dev, &h);
  if (result)
    return result;
  struct cct_net_call *call = call_find(context, h.call);
  if (!call) {
    result = call_new(context, dev, &h, &call);
    memcpy(handle, &h, sizeof h);
    if (result)
      return result;
  }
  int n_ready = 0;
  for (int i = 0; i <= call->n_streams && !result; i++) {
    if (call->sockets[i].state != CCT_NET_READY)
      result = step_call(call, &call->sockets[i]);
    n_ready += call->sockets[i].state == CCT_NET_READY;
    wires[i] = call->sockets[i].wire;
  }
  if (!result && n_ready <= call->n_streams)
    return CCT_NCCL_SUCCESS;
  if (!result)
    result = cct_net_comm_new(context, 1, &call->address, call->peer_process, call->n_streams, wires, comm_out);
  for (int i = 0; i <= call->n_streams && !result; i++)
    call->sockets[i].wire = NULL; /* the comm's now */
  call_unlink(context, call);
  call_free(call);
  return result;
}
