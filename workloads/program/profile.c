/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/program/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data.h"
#include "base/log.h"
#include "base/text.h"
#include "crypt/digest.h"
#include "json/json.h"

static const char *const kind_names[] = {
#define ROW(id, name) name,
    CCT_COST_KINDS(ROW)
#undef ROW
};

const char *cct_cost_kind_name(enum cct_cost_kind kind) {
  return kind_names[kind];
}

/* The reader of one file: after the first error every reading function does nothing, so that one check ends a table. */
struct reader {
  enum cct_status status;
};

static int has(const struct cct_json_at *at, const char *key) {
  return at->value && cct_json_member(at->value, key) != NULL;
}

static void keys(struct reader *r, const struct cct_json_at *at, const char *const *known, size_t n) {
  if (!r->status)
    r->status = cct_json_known_keys(at, known, n);
}
#define KEYS(r, at, ...)                                                                                               \
  keys(r, at, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void text(struct reader *r, const struct cct_json_at *object, const char *key, char *out, size_t size) {
  struct cct_json_at at = cct_json_at_key(object, key);
  const char *read;
  if (r->status || (r->status = cct_json_read_string(&at, &read)) != CCT_OK)
    return;
  if (!*read || strlen(read) >= size)
    r->status = cct_json_fail(&at, CCT_USAGE, "empty, or longer than %zu bytes", size - 1);
  else
    memcpy(out, read, strlen(read) + 1);
}

static void integer(struct reader *r, const struct cct_json_at *object, const char *key, int min, int max, int *out) {
  struct cct_json_at at = cct_json_at_key(object, key);
  int64_t value = 0;
  if (!r->status)
    r->status = cct_json_read_i64(&at, min, max, &value);
  *out = (int)value;
}

static void boolean(struct reader *r, const struct cct_json_at *object, const char *key, int *out) {
  struct cct_json_at at = cct_json_at_key(object, key);
  if (!r->status)
    r->status = cct_json_read_bool(&at, out);
}

/* Index of a word among n, by path when it is none of them. */
static int word(struct reader *r, const struct cct_json_at *object, const char *key, const char *const *words,
                size_t n) {
  struct cct_json_at at = cct_json_at_key(object, key);
  const char *read;
  if (r->status || (r->status = cct_json_read_string(&at, &read)) != CCT_OK)
    return 0;
  for (size_t i = 0; i < n; i++)
    if (!strcmp(read, words[i]))
      return (int)i;
  const char *near = cct_closest(read, words, n);
  r->status = cct_json_fail(&at, CCT_USAGE, "unknown '%s'; did you mean '%s'?", read, near ? near : words[0]);
  return 0;
}

static void cost(struct reader *r, const struct cct_json_at *object, const char *key, double min, double max,
                 struct cct_cost *out) {
  struct cct_json_at at = cct_json_at_key(object, key);
  KEYS(r, &at, "value", "lo", "hi", "kind", "source");
  struct cct_json_at value = cct_json_at_key(&at, "value"), lo = cct_json_at_key(&at, "lo"),
                     hi = cct_json_at_key(&at, "hi"), source = cct_json_at_key(&at, "source");
  struct cct_cost read = {0};
  if (!r->status)
    r->status = cct_json_read_f64(&value, min, max, &read.value);
  if (!r->status)
    r->status = cct_json_read_f64(&lo, min, read.value, &read.lo);
  if (!r->status)
    r->status = cct_json_read_f64(&hi, read.value, max, &read.hi);
  read.kind = (enum cct_cost_kind)word(r, &at, "kind", kind_names, CCT_COST_KIND_COUNT);
  if (!r->status)
    r->status = cct_json_read_string(&source, &read.source);
  if (!r->status && !*read.source)
    r->status = cct_json_fail(&source, CCT_USAGE, "empty: say where the number is from");
  if (!r->status)
    *out = read;
}

/* Bounds that no machine leaves: a value outside is a wrong unit. */
static void time_us(struct reader *r, const struct cct_json_at *object, const char *key, struct cct_cost *out) {
  cost(r, object, key, 0, 1e7, out);
}

static void rate(struct reader *r, const struct cct_json_at *object, const char *key, struct cct_cost *out) {
  cost(r, object, key, 1e-6, 1e9, out);
}

static void read_copies(struct reader *r, const struct cct_json_at *column, struct cct_copy_cost copy[2][2]) {
  struct cct_json_at at = cct_json_at_key(column, "copy");
  KEYS(r, &at, "h2d", "d2h");
  for (int d = 0; d < 2; d++) {
    struct cct_json_at direction = cct_json_at_key(&at, cct_direction_name((enum cct_direction)d));
    KEYS(r, &direction, "pinned", "pageable");
    for (int m = 0; m < 2; m++) {
      struct cct_json_at memory = cct_json_at_key(&direction, cct_memory_name((enum cct_memory)m));
      KEYS(r, &memory, "fixed_us", "gb_s", "blocks", "waits_for_stream");
      time_us(r, &memory, "fixed_us", &copy[d][m].fixed_us);
      rate(r, &memory, "gb_s", &copy[d][m].gb_s);
      boolean(r, &memory, "blocks", &copy[d][m].blocks);
      boolean(r, &memory, "waits_for_stream", &copy[d][m].waits_for_stream);
    }
  }
}

static void read_collective_row(struct reader *r, const struct cct_json_at *row, struct cct_collective_cost *out) {
  KEYS(r, row, "ranks", "algorithm", "protocol", "channels", "toll_us_eager", "toll_us_graph", "busbw_gb_s");
  integer(r, row, "ranks", 2, 1 << 20, &out->ranks);
  text(r, row, "algorithm", out->algorithm, sizeof out->algorithm);
  if (has(row, "protocol"))
    text(r, row, "protocol", out->protocol, sizeof out->protocol);
  if (has(row, "channels"))
    integer(r, row, "channels", 0, 1024, &out->channels);
  time_us(r, row, "toll_us_eager", &out->toll_us_eager);
  time_us(r, row, "toll_us_graph", &out->toll_us_graph);
  rate(r, row, "busbw_gb_s", &out->busbw_gb_s);
}

static void *one_more(struct reader *r, void *items, int n, size_t size) {
  void *grown = r->status ? NULL : realloc(items, (size_t)(n + 1) * size);
  if (!grown && !r->status)
    r->status = cct_fail(CCT_NOMEM, "a profile: out of memory");
  return grown ? grown : items;
}

static void read_collectives(struct reader *r, const struct cct_json_at *column, struct cct_column *out) {
  struct cct_json_at at = cct_json_at_key(column, "collective");
  const char *names[CCT_COLL_COUNT];
  for (int kind = 0; kind < CCT_COLL_COUNT; kind++)
    names[kind] = cct_collective_name((enum cct_collective)kind);
  keys(r, &at, names, CCT_COLL_COUNT);
  for (int kind = 0; kind < CCT_COLL_COUNT && !r->status; kind++) {
    struct cct_json_at rows = cct_json_at_key(&at, names[kind]);
    if (!rows.value)
      continue;
    r->status = cct_json_expect(&rows, CCT_JSON_ARRAY);
    for (size_t i = 0; !r->status && i < cct_json_size(rows.value); i++) {
      struct cct_json_at row = cct_json_at_index(&rows, i);
      struct cct_collective_cost read = {.kind = (enum cct_collective)kind};
      read_collective_row(r, &row, &read);
      out->collectives = one_more(r, out->collectives, out->n_collectives, sizeof read);
      if (!r->status)
        out->collectives[out->n_collectives++] = read;
    }
  }
}

static void read_gemms(struct reader *r, const struct cct_json_at *column, struct cct_column *out) {
  struct cct_json_at rates = cct_json_at_key(column, "gemm_tflop_s"), shapes = cct_json_at_key(column, "gemm");
  const char *names[CCT_TYPE_COUNT];
  for (int type = 0; type < CCT_TYPE_COUNT; type++)
    names[type] = cct_type_name((enum cct_type)type);
  keys(r, &rates, names, CCT_TYPE_COUNT);
  if (shapes.value)
    keys(r, &shapes, names, CCT_TYPE_COUNT);
  for (int type = 0; type < CCT_TYPE_COUNT && !r->status; type++) {
    if (has(&rates, names[type]))
      rate(r, &rates, names[type], &out->gemm_tflop_s[type]);
    struct cct_json_at rows = cct_json_at_key(&shapes, names[type]);
    if (rows.value && !r->status)
      r->status = cct_json_expect(&rows, CCT_JSON_ARRAY);
    for (size_t i = 0; rows.value && !r->status && i < cct_json_size(rows.value); i++) {
      struct cct_json_at row = cct_json_at_index(&rows, i);
      struct cct_gemm_cost read = {.type = (enum cct_type)type};
      int m = 0, n = 0, k = 0;
      KEYS(r, &row, "m", "n", "k", "us");
      integer(r, &row, "m", 1, INT32_MAX, &m);
      integer(r, &row, "n", 1, INT32_MAX, &n);
      integer(r, &row, "k", 1, INT32_MAX, &k);
      time_us(r, &row, "us", &read.us);
      read.m = m;
      read.n = n;
      read.k = k;
      out->gemms = one_more(r, out->gemms, out->n_gemms, sizeof read);
      if (!r->status)
        out->gemms[out->n_gemms++] = read;
    }
  }
}

static void read_column(struct reader *r, const struct cct_json_at *at, struct cct_column *out) {
  static const char *const forms[] = {"host", "stream"};
  KEYS(r, at, "submission", "graph_launch", "sync", "kernel_floor_us", "copy", "p2p", "collective", "gemm",
       "gemm_tflop_s", "hbm_gb_s", "memory_bytes", "reserved_bytes", "cpu_slowdown", "net");
  struct cct_json_at submission = cct_json_at_key(at, "submission"), graph = cct_json_at_key(at, "graph_launch"),
                     sync = cct_json_at_key(at, "sync"), p2p = cct_json_at_key(at, "p2p"),
                     net = cct_json_at_key(at, "net");
  KEYS(r, &submission, "us", "form");
  time_us(r, &submission, "us", &out->submission.us);
  out->submission.form = (enum cct_submission_form)word(r, &submission, "form", forms, 2);
  KEYS(r, &graph, "us", "us_per_node");
  time_us(r, &graph, "us", &out->graph_launch.us);
  time_us(r, &graph, "us_per_node", &out->graph_launch.us_per_node);
  KEYS(r, &sync, "us");
  time_us(r, &sync, "us", &out->sync_us);
  time_us(r, at, "kernel_floor_us", &out->kernel_floor_us);
  read_copies(r, at, out->copy);
  KEYS(r, &p2p, "ce_gb_s", "sm_gb_s", "short_write_us");
  rate(r, &p2p, "ce_gb_s", &out->p2p.ce_gb_s);
  rate(r, &p2p, "sm_gb_s", &out->p2p.sm_gb_s);
  time_us(r, &p2p, "short_write_us", &out->p2p.short_write_us);
  read_collectives(r, at, out);
  read_gemms(r, at, out);
  rate(r, at, "hbm_gb_s", &out->hbm_gb_s);
  cost(r, at, "memory_bytes", 1e6, 1e15, &out->memory_bytes);
  cost(r, at, "reserved_bytes", 0, 1e15, &out->reserved_bytes);
  cost(r, at, "cpu_slowdown", 0.1, 100, &out->cpu_slowdown);
  if (!net.value)
    return;
  KEYS(r, &net, "us", "gb_s");
  time_us(r, &net, "us", &out->net.us);
  rate(r, &net, "gb_s", &out->net.gb_s);
}

static void read_profile(struct reader *r, const struct cct_json_at *at, struct cct_profile *p) {
  int schema;
  KEYS(r, at, "schema", "name", "platform", "clear", "confidential", "capability");
  integer(r, at, "schema", 1, 1, &schema);
  text(r, at, "name", p->name, sizeof p->name);
  struct cct_json_at platform = cct_json_at_key(at, "platform"), clear = cct_json_at_key(at, "clear"),
                     confidential = cct_json_at_key(at, "confidential"), capability = cct_json_at_key(at, "capability");
  KEYS(r, &platform, "gpu", "gpus", "partition", "cpu", "tee", "mode", "driver");
  text(r, &platform, "gpu", p->platform.gpu, sizeof p->platform.gpu);
  text(r, &platform, "cpu", p->platform.cpu, sizeof p->platform.cpu);
  text(r, &platform, "tee", p->platform.tee, sizeof p->platform.tee);
  text(r, &platform, "mode", p->platform.mode, sizeof p->platform.mode);
  text(r, &platform, "driver", p->platform.driver, sizeof p->platform.driver);
  integer(r, &platform, "gpus", 1, 1 << 20, &p->platform.gpus);
  integer(r, &platform, "partition", 1, 1 << 20, &p->platform.partition);
  p->has_clear = clear.value != NULL;
  p->has_confidential = confidential.value != NULL;
  if (!r->status && !p->has_clear && !p->has_confidential)
    r->status = cct_json_fail(at, CCT_USAGE, "neither a clear nor a confidential column");
  if (p->has_clear)
    read_column(r, &clear, &p->clear);
  if (p->has_confidential)
    read_column(r, &confidential, &p->confidential);
  KEYS(r, &capability, "multicast", "work_fifo", "async_copy", "host_register", "gdr");
  boolean(r, &capability, "multicast", &p->capability.multicast);
  boolean(r, &capability, "work_fifo", &p->capability.work_fifo);
  boolean(r, &capability, "async_copy", &p->capability.async_copy);
  boolean(r, &capability, "host_register", &p->capability.host_register);
  boolean(r, &capability, "gdr", &p->capability.gdr);
}

enum cct_status cct_profile_load(const char *name_or_file, struct cct_profile **profile_out) {
  char path[4096];
  struct reader r = {.status = cct_data_path("profiles", "profile", name_or_file, path, sizeof path)};
  struct cct_text canonical = {0};
  if (r.status)
    return r.status;
  struct cct_profile *profile = calloc(1, sizeof *profile);
  if (!profile)
    return cct_fail(CCT_NOMEM, "%s: out of memory", path);
  r.status = cct_json_load(path, &profile->document);
  if (r.status)
    goto out;
  struct cct_json_at root = cct_json_root(profile->document, path);
  read_profile(&r, &root, profile);
  if (!r.status)
    r.status = cct_json_canonical(profile->document, &canonical);
  if (!r.status)
    r.status = cct_digest_text(canonical.s, canonical.length, profile->digest);
out:
  cct_text_free(&canonical);
  if (r.status)
    cct_profile_free(profile);
  else
    *profile_out = profile;
  return r.status;
}

void cct_profile_free(struct cct_profile *profile) {
  if (!profile)
    return;
  free(profile->clear.collectives);
  free(profile->clear.gemms);
  free(profile->confidential.collectives);
  free(profile->confidential.gemms);
  cct_json_free(profile->document);
  free(profile);
}
