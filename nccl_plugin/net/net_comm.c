/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "nccl_plugin/net/net_format.h"
#include "nccl_plugin/net/net_log.h"

enum {
  BOX_BYTES = CCT_NET_INLINE_MAX_BYTES + sizeof(struct cct_net_frame),
  RECORD_BYTES = 16384,        /* stripes are whole TLS records */
  MIN_STRIPE_BYTES = 64 << 10, /* waking one more thread must pay */
  WATCH_EVERY = 64,            /* fruitless tests between two looks at the clock */
};

struct request {
  struct cct_net_comm *comm;
  int is_used, is_matched;
  char *data;
  size_t bytes;     /* posted; once matched: true size */
  size_t inline_at; /* of an inline message: received so far */
  int is_inline;
  atomic_int left; /* stripes under way */
  int64_t posted_ns;
};

struct cct_net_comm {
  struct cct_net_context *context;
  int is_send, n_streams;
  enum cct_nccl result;    /* final once set */
  atomic_int is_abandoned; /* its memory was taken away by forget */
  char peer_text[CCT_NET_ADDRESS_TEXT];
  struct cct_wire *control;
  struct cct_net_flow flow;
  struct cct_net_live live; /* its counters */
  struct request requests[CCT_NCCL_NET_REQUESTS];
  unsigned n_outstanding, next_slot;
  uint32_t sequence;
  unsigned next_stream;
  /* Receives that wait for their frame, in order. */
  struct request *posted[CCT_NCCL_NET_REQUESTS];
  unsigned posted_head, posted_tail;
  /* Send: the frame on its way out. Receive: what came in and was not used yet. */
  unsigned char box[BOX_BYTES];
  size_t box_at, box_end;
  int is_unflushed;
  /* Watching for a peer that is gone or stuck. */
  unsigned n_fruitless;
  unsigned long long moved_seen;
  uint64_t control_moved;
  int64_t progress_ns, checked_ns;
  struct cct_net_stream streams[CCT_NET_MAX_SOCKETS];
};

/* ---- the end of a connection ---- */

static void quiesce(struct cct_net_comm *comm) {
  for (int i = 0; i < comm->n_streams; i++)
    cct_net_stream_detach(&comm->streams[i]);
}

static enum cct_nccl lose(struct cct_net_comm *comm, enum cct_nccl result, const char *why) {
  if (!comm->result) {
    comm->result =
        cct_net_fail(result, "connection %s %s is lost: %s", comm->is_send ? "to" : "from", comm->peer_text, why);
    quiesce(comm);
  }
  return comm->result;
}

static enum cct_nccl lose_wire(struct cct_net_comm *comm, const struct cct_wire *wire) {
  return lose(comm, wire->result, wire->why);
}

static enum cct_nccl check(struct cct_net_comm *comm) {
  const struct cct_wire *failed = atomic_load(&comm->flow.failed);
  if (comm->result)
    return comm->result;
  if (failed)
    return lose_wire(comm, failed);
  if (atomic_load(&comm->is_abandoned))
    return lose(comm, CCT_NCCL_INTERNAL_ERROR, "its memory was deregistered during a transfer");
  return CCT_NCCL_SUCCESS;
}

/* Called on a fruitless test. A request makes no progress for one of three reasons: the peer is late (for stall_ns that
 * is its right), its machine is gone (keepalive and unacknowledged data tell), or the network is. */
static enum cct_nccl watch(struct cct_net_comm *comm) {
  const struct cct_net_config *config = &comm->context->runtime->config;
  if (++comm->n_fruitless % WATCH_EVERY != 0)
    return CCT_NCCL_SUCCESS;
  int64_t now = cct_clock_ns();
  unsigned long long moved = atomic_load_explicit(&comm->flow.moved_bytes, memory_order_relaxed) + comm->control_moved;
  if (moved != comm->moved_seen || comm->progress_ns == 0) {
    comm->moved_seen = moved;
    comm->progress_ns = now;
  }
  if (config->stall_ns && now - comm->progress_ns > config->stall_ns)
    return lose(comm, CCT_NCCL_REMOTE_ERROR, "nothing moved for CCTAX_NET_STALL_S");
  if (!comm->is_send || now - comm->checked_ns < 1000000000)
    return CCT_NCCL_SUCCESS;
  comm->checked_ns = now;
  int is_dead = cct_wire_is_dead(comm->control, config->dead_s);
  for (int i = 0; i < comm->n_streams && !is_dead; i++)
    is_dead = cct_wire_is_dead(comm->streams[i].wire, config->dead_s);
  return is_dead ? lose(comm, CCT_NCCL_REMOTE_ERROR, "the peer's machine is silent for CCTAX_NET_DEAD_S")
                 : CCT_NCCL_SUCCESS;
}

/* ---- requests ---- */

static struct request *take_request(struct cct_net_comm *comm, const void *data, size_t bytes) {
  for (unsigned i = 0; i < CCT_NCCL_NET_REQUESTS; i++) {
    struct request *r = &comm->requests[(comm->next_slot + i) % CCT_NCCL_NET_REQUESTS];
    if (r->is_used)
      continue;
    comm->next_slot += i + 1;
    r->comm = comm;
    r->is_used = 1;
    r->is_matched = r->is_inline = 0;
    r->data = (char *)data;
    r->bytes = bytes;
    r->inline_at = 0;
    atomic_store_explicit(&r->left, 0, memory_order_relaxed);
    if (comm->n_outstanding++ == 0)
      comm->progress_ns = 0;
    return r;
  }
  return NULL;
}

/* Cuts a message into whole records over some of the data sockets; a function of its size, so a frame can say it. */
static uint32_t stripe_of(size_t bytes, int n_streams) {
  size_t parts = bytes / MIN_STRIPE_BYTES;
  parts = parts < 1 ? 1 : parts > (size_t)n_streams ? (size_t)n_streams : parts;
  size_t stripe = (bytes + parts - 1) / parts;
  return (uint32_t)((stripe + RECORD_BYTES - 1) / RECORD_BYTES * RECORD_BYTES);
}

static unsigned parts_of(const struct cct_net_frame *f) {
  return (unsigned)((f->bytes + f->stripe_bytes - 1) / f->stripe_bytes);
}

static void post_stripes(struct cct_net_comm *comm, struct request *r, const struct cct_net_frame *f) {
  unsigned parts = parts_of(f);
  atomic_store_explicit(&r->left, (int)parts, memory_order_relaxed);
  for (unsigned i = 0; i < parts; i++) {
    size_t at = (size_t)i * f->stripe_bytes, rest = f->bytes - at;
    struct cct_net_task task = {r->data + at, rest < f->stripe_bytes ? rest : f->stripe_bytes, 0, &r->left};
    cct_net_stream_post(&comm->streams[(f->first_stream + i) % (unsigned)comm->n_streams], task);
  }
}

/* ---- sending ---- */

static enum cct_nccl push_box(struct cct_net_comm *comm) {
  struct cct_wire *wire = comm->control;
  while (comm->box_at < comm->box_end) {
    ssize_t n = wire->ops->write(wire, comm->box + comm->box_at, comm->box_end - comm->box_at);
    if (n < 0)
      return lose_wire(comm, wire);
    if (n == 0)
      return CCT_NCCL_SUCCESS;
    comm->box_at += (size_t)n;
    comm->control_moved += (size_t)n;
  }
  return CCT_NCCL_SUCCESS;
}

/* Moves the frame on; it is gone when neither box nor record layer holds any of it. */
static enum cct_nccl push_frame(struct cct_net_comm *comm) {
  struct cct_wire *wire = comm->control;
  enum cct_nccl result = push_box(comm);
  if (!result && comm->box_at == comm->box_end && comm->is_unflushed) {
    int gone = wire->ops->flush(wire);
    if (gone < 0)
      return lose_wire(comm, wire);
    comm->is_unflushed = !gone;
  }
  return result;
}

/* The frame with the message's first bytes, as one record; the others straight from the caller's memory, but for what
 * does not go out at once. */
static enum cct_nccl start_frame(struct cct_net_comm *comm, const struct cct_net_frame *f, const char *data, size_t n) {
  size_t first = n < RECORD_BYTES - sizeof *f ? n : RECORD_BYTES - sizeof *f, more = n - first;
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  memcpy(comm->box, f, sizeof *f);
  if (first)
    memcpy(comm->box + sizeof *f, data, first);
  comm->box_at = 0;
  comm->box_end = sizeof *f + first;
  comm->is_unflushed = 1;
  if (more)
    result = push_box(comm);
  while (!result && more && comm->box_at == comm->box_end) {
    ssize_t moved = comm->control->ops->write(comm->control, data + n - more, more);
    if (moved < 0)
      return lose_wire(comm, comm->control);
    if (moved == 0)
      break;
    more -= (size_t)moved;
    comm->control_moved += (size_t)moved;
  }
  if (more) {
    memcpy(comm->box + comm->box_end, data + n - more, more);
    comm->box_end += more;
  }
  return result ? result : push_frame(comm);
}

static int has_frame(const struct cct_net_comm *comm) {
  return comm->box_at < comm->box_end || comm->is_unflushed;
}

enum cct_nccl cct_net_comm_send(struct cct_net_comm *comm, const void *data, size_t bytes, void **request_out) {
  struct cct_net_runtime *runtime = comm->context->runtime;
  *request_out = NULL;
  enum cct_nccl result = check(comm);
  if (!result && has_frame(comm))
    result = push_frame(comm);
  if (result || has_frame(comm))
    return result;
  if (bytes / CCT_NET_MAX_SOCKETS > UINT32_MAX / 2)
    return lose(comm, CCT_NCCL_INVALID_ARGUMENT, "a message beyond the size the plugin offers");
  struct request *r = take_request(comm, data, bytes);
  if (!r)
    return CCT_NCCL_SUCCESS;
  int is_alone = atomic_fetch_add_explicit(&runtime->sends, 1, memory_order_relaxed) == 0;
  int is_inline = bytes <= (is_alone ? runtime->config.alone_bytes : runtime->config.inline_bytes);
  struct cct_net_frame f = {
      CCT_NET_FRAME_MAGIC, comm->sequence++, bytes, is_inline ? 0 : stripe_of(bytes, comm->n_streams), 0, 0};
  if (!is_inline) {
    f.first_stream = (uint16_t)comm->next_stream;
    comm->next_stream = (comm->next_stream + parts_of(&f)) % (unsigned)comm->n_streams;
    post_stripes(comm, r, &f);
  }
  CCT_NET_COUNT(comm->live.counts.messages_out, 1);
  CCT_NET_COUNT(comm->live.counts.bytes_out, bytes);
  result = start_frame(comm, &f, data, is_inline ? bytes : 0);
  if (!result)
    *request_out = r;
  return result;
}

/* ---- receiving ---- */

/* Reads into the box until it holds `need` bytes. 1: it does; 0: not yet; -1: lost. */
static int box_has(struct cct_net_comm *comm, size_t need) {
  struct cct_wire *wire = comm->control;
  while (comm->box_end - comm->box_at < need) {
    memmove(comm->box, comm->box + comm->box_at, comm->box_end - comm->box_at);
    comm->box_end -= comm->box_at;
    comm->box_at = 0;
    size_t room = sizeof comm->box - comm->box_end; /* not more: a long message is read to where it belongs */
    ssize_t n = wire->ops->read(wire, comm->box + comm->box_end, room < RECORD_BYTES ? room : RECORD_BYTES);
    if (n <= 0)
      return n == 0 ? 0 : (lose_wire(comm, wire), -1);
    comm->box_end += (size_t)n;
    comm->control_moved += (size_t)n;
  }
  return 1;
}

static enum cct_nccl match(struct cct_net_comm *comm, struct request *r) {
  struct cct_net_frame f;
  memcpy(&f, comm->box + comm->box_at, sizeof f);
  comm->box_at += sizeof f;
  int is_sane = f.magic == CCT_NET_FRAME_MAGIC && f.sequence == comm->sequence && f.reserved == 0;
  if (f.stripe_bytes == 0)
    is_sane = is_sane && f.bytes <= CCT_NET_INLINE_MAX_BYTES;
  else
    is_sane = is_sane && f.bytes > 0 && f.bytes <= SIZE_MAX / 2 && f.first_stream < comm->n_streams &&
              (f.bytes - 1) / f.stripe_bytes < (unsigned)comm->n_streams;
  if (!is_sane)
    return lose(comm, CCT_NCCL_REMOTE_ERROR, "what it sends is not this plugin's protocol");
  if (f.bytes > r->bytes)
    return lose(comm, CCT_NCCL_INVALID_USAGE,
                "it sends more than the receive has room for: do all ranks call the same collective?");
  comm->sequence++;
  r->is_matched = 1;
  r->bytes = f.bytes;
  r->is_inline = f.stripe_bytes == 0;
  CCT_NET_COUNT(comm->live.counts.messages_in, 1);
  CCT_NET_COUNT(comm->live.counts.bytes_in, f.bytes);
  CCT_NET_COUNT(comm->live.counts.late_ns, cct_clock_ns() - r->posted_ns);
  if (!r->is_inline)
    post_stripes(comm, r, &f);
  return CCT_NCCL_SUCCESS;
}

/* Takes the inline message out of the box, and the rest from the wire. 1: complete; 0: not yet; -1: lost. */
static int take_inline(struct cct_net_comm *comm, struct request *r) {
  size_t have = comm->box_end - comm->box_at, want = r->bytes - r->inline_at, take = have < want ? have : want;
  if (take)
    memcpy(r->data + r->inline_at, comm->box + comm->box_at, take);
  comm->box_at += take;
  r->inline_at += take;
  while (r->inline_at < r->bytes) {
    ssize_t n = comm->control->ops->read(comm->control, r->data + r->inline_at, r->bytes - r->inline_at);
    if (n <= 0)
      return n == 0 ? 0 : (lose_wire(comm, comm->control), -1);
    r->inline_at += (size_t)n;
    comm->control_moved += (size_t)n;
  }
  return 1;
}

/* Matches frames with receives as far as what has arrived allows. */
static enum cct_nccl pull_frames(struct cct_net_comm *comm) {
  int more = 1;
  while (more > 0 && comm->posted_head != comm->posted_tail) {
    struct request *r = comm->posted[comm->posted_head % CCT_NCCL_NET_REQUESTS];
    if (!r->is_matched) {
      more = box_has(comm, sizeof(struct cct_net_frame));
      if (more > 0 && match(comm, r))
        return comm->result;
    }
    if (more > 0 && r->is_inline)
      more = take_inline(comm, r);
    comm->posted_head += more > 0;
  }
  return comm->result;
}

enum cct_nccl cct_net_comm_recv(struct cct_net_comm *comm, void *data, size_t bytes, void **request_out) {
  *request_out = NULL;
  enum cct_nccl result = check(comm);
  struct request *r = result ? NULL : take_request(comm, data, bytes);
  if (!r)
    return result;
  r->posted_ns = cct_clock_ns();
  comm->posted[comm->posted_tail++ % CCT_NCCL_NET_REQUESTS] = r;
  *request_out = r;
  return CCT_NCCL_SUCCESS;
}

enum cct_nccl cct_net_comm_test(void *request, int *done_out, size_t *bytes_out) {
  struct request *r = request;
  struct cct_net_comm *comm = r->comm;
  *done_out = 0;
  enum cct_nccl result = check(comm);
  if (!result)
    result = comm->is_send ? push_frame(comm) : pull_frames(comm);
  if (result)
    return result;
  int is_through = comm->is_send ? !has_frame(comm) : r->is_matched && (!r->is_inline || r->inline_at == r->bytes);
  if (!is_through || atomic_load_explicit(&r->left, memory_order_acquire) != 0)
    return watch(comm);
  *done_out = 1;
  *bytes_out = r->bytes;
  r->is_used = 0;
  comm->n_outstanding--;
  comm->n_fruitless = 0;
  if (comm->is_send)
    atomic_fetch_sub_explicit(&comm->context->runtime->sends, 1, memory_order_relaxed);
  return CCT_NCCL_SUCCESS;
}

/* ---- life ---- */

enum cct_nccl cct_net_comm_new(struct cct_net_context *context, int is_send, const union cct_net_address *peer,
                               uint64_t peer_process, int n_streams, struct cct_wire *const *wires,
                               struct cct_net_comm **comm_out) {
  struct cct_net_comm *comm = calloc(1, sizeof *comm);
  if (!comm)
    return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "out of memory for a connection");
  comm->is_send = is_send;
  comm->control = wires[0];
  comm->live = (struct cct_net_live){
      .address = comm->peer_text, .process = peer_process, .counts.connections = 1, .n_wires = 1 + n_streams};
  for (int i = 0; i <= n_streams; i++)
    comm->live.wires[i] = wires[i];
  cct_net_address_text(peer, 0, comm->peer_text);
  for (; comm->n_streams < n_streams; comm->n_streams++) {
    struct cct_net_stream *s = &comm->streams[comm->n_streams];
    s->wire = wires[1 + comm->n_streams];
    s->flow = &comm->flow;
    s->is_send = is_send;
    enum cct_nccl result = cct_net_stream_attach(context->runtime->pool, s);
    if (result) {
      quiesce(comm);
      free(comm);
      return result;
    }
  }
  comm->context = context;
  cct_net_context_begin(context, &comm->live);
  *comm_out = comm;
  return CCT_NCCL_SUCCESS;
}

void cct_net_comm_close(struct cct_net_comm *comm) {
  if (!comm)
    return;
  quiesce(comm);
  if (comm->is_send)
    atomic_fetch_sub_explicit(&comm->context->runtime->sends, (int)comm->n_outstanding, memory_order_relaxed);
  cct_net_context_end(comm->context, &comm->live);
  cct_wire_close(comm->control);
  for (int i = 0; i < comm->n_streams; i++)
    cct_wire_close(comm->streams[i].wire);
  cct_net_context_release(comm->context);
  free(comm);
}

void cct_net_comm_forget(struct cct_net_comm *comm, const void *data, size_t bytes) {
  int is_used = 0;
  for (int i = 0; i < comm->n_streams && !is_used; i++)
    is_used = cct_net_stream_uses(&comm->streams[i], data, bytes);
  if (is_used) {
    atomic_store(&comm->is_abandoned, 1);
    quiesce(comm);
  }
}
