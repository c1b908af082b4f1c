/* SPDX-License-Identifier: Apache-2.0
 * The probes that are programs; each step pays one unit cost `calls` times.
 *  submission  an empty kernel                     sync   an empty kernel and a synchronisation
 *  graph       one graph of `calls` empty kernels  gemm   one of MxNxK          hbm  a kernel that moves `bytes`
 *  decode-loop one graph of 8 kernels and an argmax, the id copied back and awaited
 *  h2d, d2h, d2d  a copy                           p2p    a ring of sends between GPUs
 *  bare-sync   a synchronisation alone             floor  empty kernels that queue behind CCT_PROBE_DELAY_NS
 *  both        h2d and d2h at once                 streams  `calls` h2d copies on as many streams
 *  blocked-*   a copy behind CCT_PROBE_DELAY_NS, and host work of that length behind its call: one delay if the call
 *              returns at once, two if it holds its caller
 *  threads     `calls` h2d copies by as many host threads, each on a stream of its own
 *  load, save  `bytes` between host and device in tensors of CCT_PROBE_TENSOR_BYTES, each in a place of its own
 *  hostwork    1 ms of work on the host            experiment  an empty kernel that stands for what is no program */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "workloads/steps/bare.h"
#include "workloads/steps/experiments.h"

#define MOST_STREAMS 16

static int read_shape(const char *text, int64_t shape[3]) {
  char word[64], *save = NULL, *part;
  int n = 0;
  if (strlen(text) >= sizeof word)
    return 0;
  memcpy(word, text, strlen(text) + 1);
  for (part = strtok_r(word, "x", &save); part && n < 3; part = strtok_r(NULL, "x", &save), n++)
    if (!cct_parse_i64(part, &shape[n]) || shape[n] < 1 || shape[n] > 1 << 20)
      return 0;
  return n == 3 && !part;
}

enum cct_status cct_bare_gemm(struct cct_bare *bare, const struct cct_options *cell, enum cct_type type,
                              struct cct_op *op) {
  int64_t shape[3];
  if (!read_shape(cell->v[CCT_OPT_GEMM_SHAPE].s, shape))
    return cct_fail(CCT_USAGE, "--gemm: '%s' is no MxNxK such as 8x4096x4096", cell->v[CCT_OPT_GEMM_SHAPE].s);
  op->kind = CCT_OP_GEMM;
  op->gemm.m = cct_constant(shape[0]);
  op->gemm.n = shape[1];
  op->gemm.k = shape[2];
  op->gemm.groups = 1;
  op->gemm.type = type;
  int64_t element = cct_type_bits(op->gemm.type) / 8;
  op->reads[0] = cct_bare_buffer(bare, "a", shape[0] * shape[2] * element, CCT_MEM_DEVICE);
  op->reads[1] = cct_bare_buffer(bare, "b", shape[1] * shape[2] * element, CCT_MEM_DEVICE);
  op->writes = cct_bare_buffer(bare, "c", shape[0] * shape[1] * 4, CCT_MEM_DEVICE);
  return CCT_OK;
}

static void set_copy(struct cct_bare *bare, enum cct_direction direction, enum cct_memory memory, int64_t bytes,
                     struct cct_op *op) {
  int far = cct_bare_buffer(bare, "host", bytes, direction == CCT_COPY_D2D ? CCT_MEM_DEVICE : memory);
  int near = cct_bare_buffer(bare, "device", bytes, CCT_MEM_DEVICE);
  op->kind = CCT_OP_COPY;
  op->reads[0] = direction == CCT_COPY_H2D ? far : near;
  op->writes = direction == CCT_COPY_H2D ? near : far;
  op->copy.direction = direction;
  op->copy.memory = direction == CCT_COPY_D2D ? CCT_MEM_DEVICE : memory;
  op->copy.bytes = cct_constant(bytes);
}

static void add_decode_loop(struct cct_bare *bare) {
  struct cct_op kernel = {.kind = CCT_OP_LAUNCH, .reads = {-1, -1}, .writes = -1};
  struct cct_op graph = {.kind = CCT_OP_GRAPH, .reads = {-1, -1}, .writes = -1}, copy = kernel;
  bare->graph = cct_bare_add(bare, graph, "loop");
  for (int i = 0; i < 8; i++)
    (void)cct_bare_add(bare, kernel, "kernel");
  (void)cct_bare_add(bare, kernel, "argmax");
  cct_bare_close_graph(bare);
  set_copy(bare, CCT_COPY_D2H, CCT_MEM_PINNED, 4, &copy);
  (void)cct_bare_add(bare, copy, "id_back");
  cct_bare_sync(bare, bare->stream);
}

static struct cct_op plain(enum cct_op_kind kind) {
  return (struct cct_op){.kind = kind, .reads = {-1, -1}, .writes = -1};
}

static void add_delay(struct cct_bare *bare) {
  struct cct_op op = plain(CCT_OP_DELAY);
  op.delay.ns = CCT_PROBE_DELAY_NS;
  op.delay.of = -1;
  (void)cct_bare_add(bare, op, "delay");
}

static void add_hostwork(struct cct_bare *bare, int64_t ns) {
  struct cct_op op = plain(CCT_OP_HOSTWORK);
  op.name = "work";
  op.lane = -1;
  op.host = bare->host;
  op.hostwork.ns = ns;
  (void)cct_program_add(bare->program, &op, NULL, 0);
}

/* Copies on streams of their own, all awaited at the end. */
static void add_copies(struct cct_bare *bare, const struct cct_op *copies, int n) {
  int first = bare->program->n_lanes;
  for (int i = 0; i < n; i++) {
    char name[24];
    snprintf(name, sizeof name, "copies%d", i);
    cct_program_add_lane(bare->program, name, CCT_LANE_STREAM);
  }
  for (int i = 0; i < n; i++) {
    struct cct_op op = copies[n > 2 ? 0 : i];
    op.lane = first + i;
    op.host = bare->host;
    op.name = "copy";
    (void)cct_program_add(bare->program, &op, NULL, 0);
  }
  for (int i = 0; i < n; i++)
    cct_bare_sync(bare, first + i);
}

/* Copies by host lanes of their own, each of which awaits its own. */
static void add_threads(struct cct_bare *bare, enum cct_memory memory, int64_t bytes, int n) {
  int first_stream = bare->program->n_lanes, first_host = first_stream + n;
  for (int i = 0; i < 2 * n; i++) {
    char name[24];
    snprintf(name, sizeof name, "%s%d", i < n ? "copies" : "thread", i % n);
    cct_program_add_lane(bare->program, name, i < n ? CCT_LANE_STREAM : CCT_LANE_HOST);
  }
  for (int i = 0; i < n; i++) {
    struct cct_op copy = plain(CCT_OP_COPY), sync = plain(CCT_OP_SYNC);
    set_copy(bare, CCT_COPY_H2D, memory, bytes, &copy);
    copy.name = "copy";
    sync.name = "sync";
    copy.lane = sync.lane = first_stream + i;
    copy.host = sync.host = first_host + i;
    (void)cct_program_add(bare->program, &copy, NULL, 0);
    (void)cct_program_add(bare->program, &sync, NULL, 0);
  }
}

static void add_tensors(struct cct_bare *bare, enum cct_direction direction, enum cct_memory memory, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += CCT_PROBE_TENSOR_BYTES) {
    struct cct_op op = plain(CCT_OP_COPY);
    int64_t left = bytes - at;
    set_copy(bare, direction, memory, left < CCT_PROBE_TENSOR_BYTES ? left : CCT_PROBE_TENSOR_BYTES, &op);
    (void)cct_bare_add(bare, op, "tensor");
  }
}

static enum cct_memory memory_of(const struct cct_options *cell) {
  const char *memory = cell->v[CCT_OPT_MEMORY].s;
  return !strcmp(memory, "pageable") ? CCT_MEM_PAGEABLE : !strcmp(memory, "mapped") ? CCT_MEM_MAPPED : CCT_MEM_PINNED;
}

/* The probes that are no repeated operation; 0: this one is. */
static int emit_whole(struct cct_bare *bare, const struct cct_options *cell, const char *probe) {
  int64_t bytes = cell->v[CCT_OPT_BYTES].i, calls = cell->v[CCT_OPT_CALLS].i;
  struct cct_op copies[2] = {plain(CCT_OP_COPY), plain(CCT_OP_COPY)};
  if (!strcmp(probe, "bare-sync")) {
    for (int64_t i = 0; i < calls; i++)
      cct_bare_sync(bare, bare->stream);
  } else if (!strcmp(probe, "floor")) {
    add_delay(bare);
    for (int64_t i = 0; i < calls; i++)
      (void)cct_bare_add(bare, plain(CCT_OP_LAUNCH), "kernel");
  } else if (!strncmp(probe, "blocked-", 8)) {
    set_copy(bare, !strcmp(probe, "blocked-h2d") ? CCT_COPY_H2D : CCT_COPY_D2H, memory_of(cell), bytes, copies);
    add_delay(bare);
    (void)cct_bare_add(bare, copies[0], "copy");
    add_hostwork(bare, CCT_PROBE_DELAY_NS);
  } else if (!strcmp(probe, "both")) {
    set_copy(bare, CCT_COPY_H2D, memory_of(cell), bytes, &copies[0]);
    set_copy(bare, CCT_COPY_D2H, memory_of(cell), bytes, &copies[1]);
    add_copies(bare, copies, 2);
  } else if (!strcmp(probe, "streams")) {
    set_copy(bare, CCT_COPY_H2D, CCT_MEM_PINNED, bytes, &copies[0]);
    copies[1] = copies[0];
    add_copies(bare, copies, (int)calls);
  } else if (!strcmp(probe, "threads")) {
    add_threads(bare, memory_of(cell), bytes, (int)calls);
  } else if (!strcmp(probe, "load") || !strcmp(probe, "save")) {
    add_tensors(bare, *probe == 'l' ? CCT_COPY_H2D : CCT_COPY_D2H, memory_of(cell), bytes);
  } else if (!strcmp(probe, "hostwork")) {
    for (int64_t i = 0; i < calls; i++)
      add_hostwork(bare, CCT_PROBE_WORK_NS);
  } else if (!strcmp(probe, "experiment")) {
    (void)cct_bare_add(bare, plain(CCT_OP_LAUNCH), "experiment");
  } else {
    return 0;
  }
  return 1;
}

/* The operation that the probe repeats; kind CCT_OP_END: none, it is written down otherwise. */
static enum cct_status choose_op(struct cct_bare *bare, const struct cct_options *cell, struct cct_op *op) {
  const char *probe = cell->v[CCT_OPT_PROBE_NAME].s;
  enum cct_memory kind = memory_of(cell);
  int64_t bytes = cell->v[CCT_OPT_BYTES].i;
  *op = (struct cct_op){.kind = CCT_OP_LAUNCH, .reads = {-1, -1}, .writes = -1};
  if (!strcmp(probe, "gemm"))
    return cct_bare_gemm(bare, cell, (enum cct_type)cct_type_by_name(cell->v[CCT_OPT_TYPE].s), op);
  if (!strcmp(probe, "h2d") || !strcmp(probe, "d2h") || !strcmp(probe, "d2d"))
    set_copy(bare, !strcmp(probe, "d2d") ? CCT_COPY_D2D : *probe == 'h' ? CCT_COPY_H2D : CCT_COPY_D2H, kind, bytes, op);
  if (!strcmp(probe, "hbm")) {
    op->kind = CCT_OP_ELEMENTWISE;
    op->elementwise.bytes = cct_constant(bytes);
    op->reads[0] = op->writes = cct_bare_buffer(bare, "moved", bytes, CCT_MEM_DEVICE);
  }
  return CCT_OK;
}

enum cct_status cct_emit_probe_step(struct cct_bare *bare, const struct cct_options *cell) {
  const char *probe = cell->v[CCT_OPT_PROBE_NAME].s;
  int64_t calls = cell->v[CCT_OPT_CALLS].i, bytes = cell->v[CCT_OPT_BYTES].i;
  int is_graph = !strcmp(probe, "graph"), is_ring = !strcmp(probe, "p2p"), is_loop = !strcmp(probe, "decode-loop");
  struct cct_op op, graph = {.kind = CCT_OP_GRAPH, .reads = {-1, -1}, .writes = -1};
  int from = -1, to = -1;
  if (is_ring && bare->all < 0)
    return cct_fail(CCT_USAGE, "the p2p probe needs two ranks or more, --np is 1");
  if ((!strcmp(probe, "streams") || !strcmp(probe, "threads")) && calls > MOST_STREAMS)
    return cct_fail(CCT_USAGE, "the %s probe takes up to %d %s, --calls is %lld", probe, MOST_STREAMS, probe,
                    (long long)calls);
  if (emit_whole(bare, cell, probe))
    return CCT_OK;
  enum cct_status status = choose_op(bare, cell, &op);
  if (status)
    return status;
  if (is_graph)
    bare->graph = cct_bare_add(bare, graph, "nodes");
  if (is_ring) {
    from = cct_bare_buffer(bare, "send", bytes, CCT_MEM_DEVICE);
    to = cct_bare_buffer(bare, "recv", bytes, CCT_MEM_DEVICE);
  }
  for (int64_t i = 0; i < calls; i++) {
    int group = is_ring ? cct_bare_group(bare, "ring") : -1;
    if (is_loop)
      add_decode_loop(bare);
    else if (is_ring)
      cct_bare_ring(bare, bytes, from, to);
    else
      (void)cct_bare_add(bare, op, probe);
    if (is_ring)
      cct_bare_end(bare, group);
    if (!strcmp(probe, "sync") || (bare->is_closed && !is_graph && !is_loop))
      cct_bare_sync(bare, bare->stream);
  }
  if (is_graph)
    cct_bare_close_graph(bare);
  if (is_graph && bare->is_closed)
    cct_bare_sync(bare, bare->stream);
  return CCT_OK;
}
