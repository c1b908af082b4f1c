/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/text.h"
#include "nccl_plugin/net/net_log.h"
#include "nccl_plugin/net/net_meet.h"

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
/* Under process_lock: */
static struct cct_net_runtime *shared;
static struct cct_net_context *standing;
static pid_t process_id; /* a fork's child has the memory and not the threads */
static struct cct_net_iface ifaces[CCT_NET_MAX_IFACES];
static int n_ifaces;

static void runtime_free(struct cct_net_runtime *r) {
  cct_net_pool_free(r->pool);
  cct_tls_free(r->tls);
  free(r);
}

static void write_stats(struct cct_net_context *context);

/* A program may end with communicators standing: helper threads must not meet OpenSSL's own end, and what was counted
 * is written. */
static void at_exit(void) {
  if (getpid() != process_id)
    return;
  pthread_mutex_lock(&process_lock);
  if (shared)
    cct_net_pool_stop(shared->pool);
  for (struct cct_net_context *c = standing; c; c = c->next) {
    pthread_mutex_lock(&c->lock);
    write_stats(c);
    pthread_mutex_unlock(&c->lock);
  }
  pthread_mutex_unlock(&process_lock);
}

/* With process_lock held. */
static enum cct_nccl runtime_start(void) {
  struct cct_net_runtime *r = calloc(1, sizeof *r);
  if (!r)
    return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "out of memory");
  enum cct_nccl result = cct_net_config_read(&r->config);
  if (!result)
    result = cct_net_ifaces_find(ifaces, &n_ifaces);
  if (!result && r->config.is_tls)
    result = cct_tls_new(&r->config, &r->tls);
  if (!result)
    result = cct_net_pool_new(r->config.threads, r->config.spin_ns, &r->pool);
  if (!result && getrandom(&r->process, sizeof r->process, 0) != sizeof r->process)
    result = cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "the system gives no random numbers: %m");
  r->unusable = result;
  if (result && n_ifaces == 0) {
    memcpy(ifaces[0].name, "unusable", sizeof "unusable");
    ifaces[0].speed_mbps = 1;
    n_ifaces = 1;
  }
  if (!result)
    cct_net_info("%s, %d helper threads, %d data sockets a connection, %d interface(s), first %s",
                 r->config.is_tls ? r->config.cipher : "PLAINTEXT", r->config.threads, r->config.sockets, n_ifaces,
                 ifaces[0].name);
  shared = r;
  static int is_registered;
  process_id = getpid();
  if (!is_registered)
    is_registered = atexit(at_exit) == 0;
  return CCT_NCCL_SUCCESS;
}

enum cct_nccl cct_net_context_new(uint64_t comm_id, struct cct_net_context **context_out) {
  struct cct_net_context *context = calloc(1, sizeof *context);
  if (!context)
    return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "out of memory");
  context->comm_id = comm_id;
  context->holders = 1;
  pthread_mutex_init(&context->lock, NULL);
  pthread_mutex_lock(&process_lock);
  enum cct_nccl result = shared ? CCT_NCCL_SUCCESS : runtime_start();
  if (!result) {
    shared->n_contexts++;
    context->runtime = shared;
    context->next = standing;
    standing = context;
  }
  pthread_mutex_unlock(&process_lock);
  if (result) {
    pthread_mutex_destroy(&context->lock);
    free(context);
    return result;
  }
  *context_out = context;
  return CCT_NCCL_SUCCESS;
}

void cct_net_context_hold(struct cct_net_context *context) {
  pthread_mutex_lock(&context->lock);
  context->holders++;
  pthread_mutex_unlock(&context->lock);
}

static void add(uint64_t *to, const uint64_t *from, size_t bytes) {
  for (size_t i = 0; i < bytes / sizeof *to; i++)
    to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/* With the context's lock held. Counters are nothing but 64-bit numbers. */
static void count(struct cct_net_context *context, const char *address, uint64_t process,
                  const struct cct_net_counts *counts) {
  struct cct_net_peer *p = context->peers;
  while (p && (p->process != process || strcmp(p->address, address) != 0))
    p = p->next;
  if (!p && (p = calloc(1, sizeof *p))) {
    memcpy(p->address, address, strlen(address) + 1);
    p->process = process;
    p->next = context->peers;
    context->peers = p;
  }
  if (p)
    add((uint64_t *)&p->counts, (const uint64_t *)counts, sizeof *counts);
}

void cct_net_context_count(struct cct_net_context *context, const char *address, uint64_t process,
                           const struct cct_net_counts *counts) {
  pthread_mutex_lock(&context->lock);
  count(context, address, process, counts);
  pthread_mutex_unlock(&context->lock);
}

/* With the context's lock held. */
static void count_live(struct cct_net_context *context, const struct cct_net_live *live) {
  struct cct_net_counts sum = {0};
  add((uint64_t *)&sum, (const uint64_t *)&live->counts, sizeof sum);
  for (int i = 0; i < live->n_wires; i++)
    add((uint64_t *)&sum.wire, (const uint64_t *)&live->wires[i]->counts, sizeof sum.wire);
  count(context, live->address, live->process, &sum);
}

void cct_net_context_begin(struct cct_net_context *context, struct cct_net_live *live) {
  pthread_mutex_lock(&context->lock);
  context->holders++;
  live->next = context->live;
  context->live = live;
  pthread_mutex_unlock(&context->lock);
}

void cct_net_context_end(struct cct_net_context *context, struct cct_net_live *live) {
  pthread_mutex_lock(&context->lock);
  struct cct_net_live **at = &context->live;
  while (*at != live)
    at = &(*at)->next;
  *at = live->next;
  count_live(context, live);
  pthread_mutex_unlock(&context->lock);
}

/* One line of JSON a peer, appended by one write, so that several processes may share a file; once a context. Numbers
 * and addresses alone need no escaping. */
static void write_stats(struct cct_net_context *context) {
  const struct cct_net_config *config = &context->runtime->config;
  if (!*config->stats_file || context->is_written)
    return;
  context->is_written = 1;
  for (const struct cct_net_live *live = context->live; live; live = live->next)
    count_live(context, live);
  struct cct_text text = {0};
  for (const struct cct_net_peer *p = context->peers; p; p = p->next) {
    const struct cct_net_counts *c = &p->counts;
    cct_text_add(&text,
                 "{\"pid\":%d,\"comm\":\"%016llx\",\"mode\":\"%s\",\"peer\":\"%s\",\"peer_process\":\"%016llx\","
                 "\"connections\":%llu,"
                 "\"refused\":%llu,\"messages_sent\":%llu,\"messages_received\":%llu,\"bytes_sent\":%llu,\"bytes_"
                 "received\":%llu,",
                 (int)getpid(), (unsigned long long)context->comm_id, config->is_tls ? "tls" : "plain", p->address,
                 (unsigned long long)p->process, (unsigned long long)c->connections, (unsigned long long)c->refused,
                 (unsigned long long)c->messages_out, (unsigned long long)c->messages_in,
                 (unsigned long long)c->bytes_out, (unsigned long long)c->bytes_in);
    cct_text_add(
        &text,
        "\"records_sent\":%llu,\"records_received\":%llu,\"key_updates_sent\":%llu,\"key_updates_received\":%llu,"
        "\"crypto_ns\":%lld,\"blocked_ns\":%lld,\"late_ns\":%lld}\n",
        (unsigned long long)c->wire.records_out, (unsigned long long)c->wire.records_in,
        (unsigned long long)c->wire.key_updates_out, (unsigned long long)c->wire.key_updates_in,
        (long long)c->wire.crypto_ns, (long long)c->wire.blocked_ns, (long long)c->late_ns);
  }
  if (text.s) {
    int fd = open(config->stats_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
    if (fd < 0 || !cct_write_pipe(fd, text.s, text.length))
      cct_net_warn("CCTAX_NET_STATS: cannot write '%s': %m", config->stats_file);
    if (fd >= 0)
      close(fd);
  }
  cct_text_free(&text);
}

void cct_net_context_release(struct cct_net_context *context) {
  if (!context)
    return;
  pthread_mutex_lock(&context->lock);
  int is_last = --context->holders == 0;
  pthread_mutex_unlock(&context->lock);
  if (!is_last)
    return;
  cct_net_calls_free(context);
  pthread_mutex_lock(&context->lock);
  write_stats(context);
  pthread_mutex_unlock(&context->lock);
  for (struct cct_net_peer *next, *p = context->peers; p; p = next) {
    next = p->next;
    free(p);
  }
  pthread_mutex_lock(&process_lock);
  struct cct_net_context **at = &standing;
  while (*at && *at != context)
    at = &(*at)->next;
  if (*at)
    *at = context->next;
  if (--shared->n_contexts == 0) {
    runtime_free(shared);
    shared = NULL;
  }
  pthread_mutex_unlock(&process_lock);
  pthread_mutex_destroy(&context->lock);
  free(context);
}

const struct cct_net_iface *cct_net_context_ifaces(int *n_out) {
  pthread_mutex_lock(&process_lock);
  *n_out = n_ifaces;
  pthread_mutex_unlock(&process_lock);
  return ifaces;
}
