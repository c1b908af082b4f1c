/* SPDX-License-Identifier: Apache-2.0
 * libnccl-profiler-cctax.so: writes what NCCL really chose for each collective (algorithm, protocol, channels), as
 * lines of JSON to CCTAX_PROFILER_FILE. It never fails a job: what it cannot do it says once, and records nothing.
 *
 * Times are the host's: a collective's end is that of its enqueueing, not of its work. KernelCh events
 * (CCTAX_PROFILER_MASK) carry the GPU's own clock, and cost NCCL's proxy thread a poll. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "nccl_plugin/profiler/profiler_abi.h"

enum {
  FLUSH_BYTES = 64 << 10,
  BLOCK_EVENTS = 256,
  MASK_V4 = CCT_NCCL_EVENT_COLL | CCT_NCCL_EVENT_P2P | CCT_NCCL_EVENT_KERNEL_CH,
  MASK_V5 = MASK_V4 | CCT_NCCL_EVENT_GROUP_API | CCT_NCCL_EVENT_KERNEL_LAUNCH,
  MASK_V6 = MASK_V5 | CCT_NCCL_EVENT_CE_COLL,
  MASK_DEFAULT = CCT_NCCL_EVENT_COLL | CCT_NCCL_EVENT_GROUP_API | CCT_NCCL_EVENT_KERNEL_LAUNCH | CCT_NCCL_EVENT_CE_COLL,
};

/* An event between start and stop. Its memory stays until finalize, so a handle that NCCL uses too late is harmless. */
struct event {
  struct profile *profile;
  int is_live;
  struct cct_nccl_event is; /* NCCL's strings are constants of its own */
  int64_t start_ns;
  uint64_t gpu_end_ns;
  struct event *next_free;
};

struct block {
  struct block *next;
  struct event events[BLOCK_EVENTS];
};

struct profile { /* of one communicator */
  pthread_mutex_t lock;
  cct_nccl_logger *logger;
  uint64_t comm_id;
  int nodes, ranks, rank, fd;
  struct cct_text text;
  struct block *blocks;
  struct event *free;
};

static void warn(cct_nccl_logger *logger, const char *what, const char *path) {
  if (logger)
    logger(CCT_NCCL_WARN, CCT_NCCL_INIT, "cctax", 0, "PROFILER/cctax: %s '%s': %s; nothing is recorded", what, path,
           strerror(errno));
}

/* With the lock held: whole lines by one write, so that processes may share a file. */
static void flush(struct profile *p) {
  if (p->text.length && !cct_write_pipe(p->fd, p->text.s, p->text.length))
    warn(p->logger, "cannot write", "CCTAX_PROFILER_FILE");
  cct_text_free(&p->text);
  p->text = (struct cct_text){0};
}

static struct event *take_event(struct profile *p) {
  if (!p->free) {
    struct block *block = calloc(1, sizeof *block);
    if (!block)
      return NULL;
    block->next = p->blocks;
    p->blocks = block;
    for (int i = 0; i < BLOCK_EVENTS; i++) {
      block->events[i].profile = p;
      block->events[i].next_free = p->free;
      p->free = &block->events[i];
    }
  }
  struct event *e = p->free;
  p->free = e->next_free;
  e->is_live = 1;
  return e;
}

static const char *or_none(const char *text) {
  return text ? text : "";
}

static void add_line(struct profile *p, const struct event *e) {
  const struct cct_nccl_event *is = &e->is;
  struct cct_text *t = &p->text;
  cct_text_add(t, "{\"comm\":\"%016llx\",\"rank\":%d,\"ranks\":%d,\"nodes\":%d,", (unsigned long long)p->comm_id,
               p->rank, p->ranks, p->nodes);
  if (is->type == CCT_NCCL_EVENT_COLL)
    cct_text_add(
        t,
        "\"event\":\"coll\",\"seq\":%llu,\"func\":\"%s\",\"count\":%zu,\"datatype\":\"%s\",\"root\":%d,\"algo\":\"%s\","
        "\"proto\":\"%s\",\"channels\":%d,\"warps\":%d,",
        (unsigned long long)is->coll.seq, or_none(is->coll.func), is->coll.count, or_none(is->coll.datatype),
        is->coll.root, or_none(is->coll.algo), or_none(is->coll.proto), is->coll.channels, is->coll.warps);
  else if (is->type == CCT_NCCL_EVENT_CE_COLL)
    cct_text_add(
        t, "\"event\":\"ce_coll\",\"seq\":%llu,\"func\":\"%s\",\"count\":%zu,\"datatype\":\"%s\",\"sync\":\"%s\",",
        (unsigned long long)is->ce_coll.seq, or_none(is->ce_coll.func), is->ce_coll.count,
        or_none(is->ce_coll.datatype), or_none(is->ce_coll.sync_strategy));
  else if (is->type == CCT_NCCL_EVENT_P2P)
    cct_text_add(t, "\"event\":\"p2p\",\"func\":\"%s\",\"count\":%zu,\"datatype\":\"%s\",\"peer\":%d,\"channels\":%d,",
                 or_none(is->p2p.func), is->p2p.count, or_none(is->p2p.datatype), is->p2p.peer, is->p2p.channels);
  else if (is->type == CCT_NCCL_EVENT_GROUP_API)
    cct_text_add(t, "\"event\":\"group\",\"graph\":%s,\"depth\":%d,", is->group.is_captured ? "true" : "false",
                 is->group.depth);
  else if (is->type == CCT_NCCL_EVENT_KERNEL_CH)
    cct_text_add(t, "\"event\":\"kernel_channel\",\"channel\":%d,\"gpu_start_ns\":%llu,\"gpu_end_ns\":%llu,",
                 is->kernel_ch.channel, (unsigned long long)is->kernel_ch.gpu_ns, (unsigned long long)e->gpu_end_ns);
  else
    cct_text_add(t, "\"event\":\"launch\",");
  cct_text_add(t, "\"start_ns\":%lld,\"end_ns\":%lld}\n", (long long)e->start_ns, (long long)cct_clock_ns());
}

static int start_event(void *context, void **event_out, struct cct_nccl_event *description, uint64_t type) {
  struct profile *p = context;
  *event_out = NULL;
  if (!p || !(type & MASK_V6) || (type & (type - 1)))
    return CCT_NCCL_SUCCESS;
  pthread_mutex_lock(&p->lock);
  struct event *e = take_event(p);
  if (e) {
    e->is = *description;
    e->is.type = type;
    e->gpu_end_ns = 0;
    e->start_ns = cct_clock_ns();
    *event_out = e;
  }
  pthread_mutex_unlock(&p->lock);
  return CCT_NCCL_SUCCESS;
}

static int start_event_v4(void *context, void **event_out, struct cct_nccl_event *description) {
  return start_event(context, event_out, description, description->type & 0xff);
}

static int start_event_v5(void *context, void **event_out, struct cct_nccl_event *description) {
  return start_event(context, event_out, description, description->type);
}

static int stop_event(void *event) {
  struct event *e = event;
  if (!e)
    return CCT_NCCL_SUCCESS;
  struct profile *p = e->profile;
  pthread_mutex_lock(&p->lock);
  if (e->is_live) {
    add_line(p, e);
    if (p->text.length > FLUSH_BYTES)
      flush(p);
    e->is_live = 0;
    e->next_free = p->free;
    p->free = e;
  }
  pthread_mutex_unlock(&p->lock);
  return CCT_NCCL_SUCCESS;
}

static int record_event_state(void *event, int state, union cct_nccl_event_args *args) {
  struct event *e = event;
  if (!e || !args || state != CCT_NCCL_STATE_KERNEL_CH_STOP)
    return CCT_NCCL_SUCCESS;
  pthread_mutex_lock(&e->profile->lock);
  if (e->is.type == CCT_NCCL_EVENT_KERNEL_CH)
    e->gpu_end_ns = args->gpu_ns;
  pthread_mutex_unlock(&e->profile->lock);
  return CCT_NCCL_SUCCESS;
}

static int finalize(void *context) {
  struct profile *p = context;
  if (!p)
    return CCT_NCCL_SUCCESS;
  flush(p);
  close(p->fd);
  for (struct block *next, *b = p->blocks; b; b = next) {
    next = b->next;
    free(b);
  }
  pthread_mutex_destroy(&p->lock);
  free(p);
  return CCT_NCCL_SUCCESS;
}

/* The events to record; 0 with a line where the environment asks for none that there is. */
static int read_mask(int known, cct_nccl_logger *logger) {
  const char *text = getenv("CCTAX_PROFILER_MASK");
  int64_t mask = MASK_DEFAULT & known;
  if (text && (!cct_parse_i64(text, &mask) || mask <= 0 || (mask & ~(int64_t)MASK_V6) != 0)) {
    errno = EINVAL;
    warn(logger, "CCTAX_PROFILER_MASK", text);
    return 0;
  }
  return (int)mask & known;
}

static int init(void **context_out, int *mask_out, uint64_t comm_id, int nodes, int ranks, int rank,
                cct_nccl_logger *logger, int known) {
  const char *path = getenv("CCTAX_PROFILER_FILE");
  *context_out = NULL;
  *mask_out = 0;
  int mask = path && *path ? read_mask(known, logger) : 0;
  if (!mask)
    return CCT_NCCL_SUCCESS;
  struct profile *p = calloc(1, sizeof *p);
  int fd = p ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644) : -1;
  if (fd < 0) {
    warn(logger, "CCTAX_PROFILER_FILE", path);
    free(p);
    return CCT_NCCL_SUCCESS;
  }
  pthread_mutex_init(&p->lock, NULL);
  p->logger = logger;
  p->comm_id = comm_id;
  p->nodes = nodes;
  p->ranks = ranks;
  p->rank = rank;
  p->fd = fd;
  *context_out = p;
  *mask_out = mask;
  return CCT_NCCL_SUCCESS;
}

static int init_v4(void **context_out, int *mask_out, const char *comm_name, uint64_t comm_id, int nodes, int ranks,
                   int rank, cct_nccl_logger *logger) {
  (void)comm_name;
  return init(context_out, mask_out, comm_id, nodes, ranks, rank, logger, MASK_V4);
}

static int init_v5(void **context_out, uint64_t comm_id, int *mask_out, const char *comm_name, int nodes, int ranks,
                   int rank, cct_nccl_logger *logger) {
  (void)comm_name;
  return init(context_out, mask_out, comm_id, nodes, ranks, rank, logger, MASK_V5);
}

static int init_v6(void **context_out, uint64_t comm_id, int *mask_out, const char *comm_name, int nodes, int ranks,
                   int rank, cct_nccl_logger *logger) {
  (void)comm_name;
  return init(context_out, mask_out, comm_id, nodes, ranks, rank, logger, MASK_V6);
}

#define EXPORT __attribute__((visibility("default")))
EXPORT const struct cct_nccl_profiler_v4 ncclProfiler_v4 = {
    "cctax", init_v4, start_event_v4, stop_event, record_event_state, finalize};
EXPORT const struct cct_nccl_profiler_v5 ncclProfiler_v5 = {
    "cctax", init_v5, start_event_v5, stop_event, record_event_state, finalize};
EXPORT const struct cct_nccl_profiler_v5 ncclProfiler_v6 = {
    "cctax", init_v6, start_event_v5, stop_event, record_event_state, finalize};
