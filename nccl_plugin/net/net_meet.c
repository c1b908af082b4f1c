/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_meet.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "nccl_plugin/net/net_format.h"
#include "nccl_plugin/net/net_log.h"

enum {
  ID_BYTES = CCT_NET_ID_BYTES,
  MAX_WIRES = 1 + CCT_NET_MAX_SOCKETS,
  MAX_WAITING = 256,        /* sockets of a listener that are not a connection yet */
  BUFFER_BYTES = 256 << 10, /* one system call under TLS */
  CALL_AGAIN = 34,          /* a refused call is tried again as often as NCCL's Socket does, */
};
static const int64_t call_again_ns = 100000000; /* and as slowly */

/* One socket on its way into a connection. */
struct socket {
  enum {
    UNCALLED, /* data sockets are called once the control socket was taken: a caller without the key is refused once */
    CALLING,
    SHAKING,
    SAYING, /* the hello: the caller writes, the listener reads */
    ANSWERING,
    READY,
  } state;
  int fd; /* until there is a wire */
  struct cct_wire *wire;
  union cct_net_address peer;
  struct cct_net_hello hello;
  uint64_t taken;
  size_t at; /* of hello or answer */
  int64_t deadline_ns, again_ns;
  int n_refused;
};

static void socket_close(struct socket *s) {
  if (s->wire)
    cct_wire_close(s->wire);
  else if (s->fd >= 0)
    close(s->fd);
  s->wire = NULL;
  s->fd = -1;
}

/* Moves exactly n bytes over several calls. 1 done, 0 again, -1 failed. */
static int exchange(struct cct_wire *wire, int is_write, void *bytes, size_t n, size_t *at) {
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

/* ---- the caller ---- */

struct cct_net_call {
  uint64_t id;
  struct cct_net_call *next;
  struct cct_net_context *context;
  int dev, n_streams;
  uint64_t peer_process;
  union cct_net_address address;
  struct socket sockets[MAX_WIRES];
};

static enum cct_nccl fail_call(const struct cct_net_call *call, enum cct_nccl result, const char *why) {
  char text[CCT_NET_ADDRESS_TEXT];
  return cct_net_fail(result, "cannot connect to %s: %s", cct_net_address_text(&call->address, 1, text), why);
}

static enum cct_nccl dial(struct cct_net_call *call, struct socket *s) {
  s->state = CALLING;
  s->again_ns = 0;
  if (!s->deadline_ns)
    s->deadline_ns = cct_clock_ns() + call->context->runtime->config.connect_ns;
  s->fd = socket(call->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (s->fd < 0)
    return fail_call(call, CCT_NCCL_SYSTEM_ERROR,
                     errno == EMFILE || errno == ENFILE ? "no file descriptor is left: raise 'ulimit -n'"
                                                        : strerror(errno));
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
static enum cct_nccl look_at_call(struct cct_net_call *call, struct socket *s) {
  struct pollfd fd = {s->fd, POLLOUT, 0};
  int error = 0;
  socklen_t bytes = sizeof error;
  if (s->again_ns) {
    if (cct_clock_ns() < s->again_ns)
      return CCT_NCCL_SUCCESS;
    if (++s->n_refused > CALL_AGAIN)
      return fail_call(call, CCT_NCCL_REMOTE_ERROR, strerror(ECONNREFUSED));
    socket_close(s);
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
    s->state = SHAKING;
    return cct_wire_open(connected, call->context->runtime->tls, 0, BUFFER_BYTES, &s->wire);
  }
  return CCT_NCCL_SUCCESS;
}

/* One step of one socket; its failure is said here. */
static enum cct_nccl step_call(struct cct_net_call *call, struct socket *s) {
  int done = 1;
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  if (s->state == UNCALLED && call->sockets[0].state == READY)
    result = dial(call, s);
  if (s->state == CALLING && !result)
    result = look_at_call(call, s);
  if (result || s->state == UNCALLED)
    return result;
  if (s->state == SHAKING && (done = s->wire->ops->handshake(s->wire)) > 0)
    s->state = SAYING;
  if (s->state == SAYING && (done = exchange(s->wire, 1, &s->hello, sizeof s->hello, &s->at)) > 0)
    s->state = ANSWERING;
  if (s->state == ANSWERING && (done = exchange(s->wire, 0, &s->taken, sizeof s->taken, &s->at)) > 0) {
    if (s->taken != CCT_NET_TAKEN_MAGIC)
      return fail_call(call, CCT_NCCL_REMOTE_ERROR, "it is not this plugin that answers");
    s->state = READY;
  }
  if (done < 0)
    return fail_call(call, s->wire->result, s->wire->why);
  if (s->state != READY && cct_clock_ns() > s->deadline_ns)
    return fail_call(call, CCT_NCCL_REMOTE_ERROR, "no answer within CCTAX_NET_CONNECT_TIMEOUT_S");
  return CCT_NCCL_SUCCESS;
}

static void call_free(struct cct_net_call *call) {
  if (!call)
    return;
  for (int i = 0; i <= call->n_streams; i++)
    socket_close(&call->sockets[i]);
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
      getrandom(hello.connection, ID_BYTES, 0) != ID_BYTES)
    result = cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "the system gives no random numbers: %m");
  call->id |= 1;
  memcpy(hello.listener, h->listener, ID_BYTES);
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
  struct cct_wire *wires[MAX_WIRES];
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
    if (call->sockets[i].state != READY)
      result = step_call(call, &call->sockets[i]);
    n_ready += call->sockets[i].state == READY;
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

/* ---- the listener ---- */

struct cct_net_listener {
  struct cct_net_context *context;
  int fd, dev;
  unsigned char id[ID_BYTES];
  int64_t deadline_ns; /* of the accept under way; 0: none */
  int n_refused, n_waiting;
  struct socket *waiting[MAX_WAITING]; /* in order of arrival */
};

static enum cct_nccl open_listener(struct cct_net_listener *l, union cct_net_address *address) {
  socklen_t bytes = cct_net_address_bytes(address);
  l->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  char text[CCT_NET_ADDRESS_TEXT];
  if (l->fd >= 0 && bind(l->fd, &address->any, bytes) == 0 && listen(l->fd, 16384) == 0 &&
      getsockname(l->fd, &address->any, &bytes) == 0 && getrandom(l->id, ID_BYTES, 0) == ID_BYTES)
    return CCT_NCCL_SUCCESS;
  return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "cannot listen on %s: %s", cct_net_address_text(address, 0, text),
                      errno == EMFILE || errno == ENFILE ? "no file descriptor is left: raise 'ulimit -n'"
                                                         : strerror(errno));
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
  memcpy(h.listener, l->id, ID_BYTES);
  memset(handle_out, 0, CCT_NCCL_HANDLE_BYTES);
  memcpy(handle_out, &h, sizeof h);
  *listener_out = l;
  return CCT_NCCL_SUCCESS;
}

static void drop(struct cct_net_listener *l, int i) {
  struct socket *s = l->waiting[i];
  memmove(&l->waiting[i], &l->waiting[i + 1], (size_t)(--l->n_waiting - i) * sizeof *l->waiting);
  socket_close(s);
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
  for (int i = 0; i < MAX_WIRES; i++) {
    union cct_net_address peer = {0};
    socklen_t bytes = sizeof peer;
    int fd = accept4(l->fd, &peer.any, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 &&
        (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED || errno == EPROTO))
      return CCT_NCCL_SUCCESS;
    if (fd < 0)
      return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "cannot accept a connection: %s",
                          errno == EMFILE || errno == ENFILE ? "no file descriptor is left: raise 'ulimit -n'"
                                                             : strerror(errno));
    for (int oldest = 0; l->n_waiting == MAX_WAITING; oldest++)
      if (l->waiting[oldest]->state < ANSWERING || oldest == MAX_WAITING - 1)
        refuse(l, oldest, "too many connections wait: the oldest goes");
    struct socket *s = calloc(1, sizeof *s);
    if (!s || !cct_wire_socket_options(fd, runtime->config.dead_s)) {
      close(fd);
      free(s);
      return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "cannot take a connection in: %m");
    }
    s->peer = peer;
    s->state = SHAKING;
    s->fd = -1;
    s->deadline_ns = cct_clock_ns() + runtime->config.connect_ns;
    enum cct_nccl result = cct_wire_open(fd, runtime->tls, 1, BUFFER_BYTES, &s->wire);
    if (result) {
      free(s);
      return result;
    }
    l->waiting[l->n_waiting++] = s;
  }
  return CCT_NCCL_SUCCESS;
}

static const char *fault_of_hello(const struct cct_net_listener *l, const struct socket *s) {
  const struct cct_net_hello *h = &s->hello;
  if (h->magic != CCT_NET_HELLO_MAGIC || h->n_streams < 1 || h->n_streams > CCT_NET_MAX_SOCKETS ||
      h->index > h->n_streams)
    return "it does not speak this plugin's protocol";
  if (memcmp(h->listener, l->id, ID_BYTES) != 0)
    return "it means another listener: the connection was reflected or led astray";
  for (int i = 0; i < l->n_waiting; i++) {
    const struct socket *other = l->waiting[i];
    if (other != s && other->state >= ANSWERING && memcmp(other->hello.connection, h->connection, ID_BYTES) == 0 &&
        (other->hello.index == h->index || other->hello.n_streams != h->n_streams))
      return "it contradicts another socket of its connection";
  }
  return NULL;
}

/* One step of socket i; says and drops what fails. Returns whether it is still there. */
static int step_waiting(struct cct_net_listener *l, int i) {
  struct socket *s = l->waiting[i];
  const char *fault = NULL;
  int done = 1;
  if (s->state == SHAKING && (done = s->wire->ops->handshake(s->wire)) > 0)
    s->state = SAYING;
  if (s->state == SAYING && (done = exchange(s->wire, 0, &s->hello, sizeof s->hello, &s->at)) > 0) {
    fault = fault_of_hello(l, s);
    s->state = fault ? SAYING : ANSWERING;
    s->taken = CCT_NET_TAKEN_MAGIC;
  }
  if (s->state == ANSWERING && (done = exchange(s->wire, 1, &s->taken, sizeof s->taken, &s->at)) > 0)
    s->state = READY;
  if (done < 0)
    fault = s->wire->why;
  else if (!fault && cct_clock_ns() > s->deadline_ns)
    fault = "it said nothing for CCTAX_NET_CONNECT_TIMEOUT_S";
  if (fault)
    refuse(l, i, fault);
  return !fault;
}

static int belongs(const struct socket *s, const struct cct_net_hello *hello) {
  return s->state == READY && memcmp(s->hello.connection, hello->connection, ID_BYTES) == 0;
}

/* The comm of a connection whose sockets are all here, if there is one. */
static enum cct_nccl assemble(struct cct_net_listener *l, struct cct_net_comm **comm_out) {
  for (int first = 0; first < l->n_waiting; first++) {
    const struct cct_net_hello hello = l->waiting[first]->hello;
    if (l->waiting[first]->state != READY)
      continue;
    struct cct_wire *wires[MAX_WIRES] = {NULL};
    int n = 0;
    for (int i = first; i < l->n_waiting; i++) {
      const struct socket *s = l->waiting[i];
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
    i += l->waiting[i]->state == READY ? 1 : step_waiting(l, i);
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
