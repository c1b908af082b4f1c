/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/probe_suite.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/program/program.h"

#define K INT64_C(1024)
#define M (1024 * K)
#define G (1024 * M)

/* ---- cells: key, value; numbers end with 0 ---- */

static struct cct_json *cell(struct cct_json *cells, const char *probe) {
  struct cct_json *object = cct_json_new_object();
  cct_json_set_string(object, "workload", "probe");
  cct_json_set_string(object, "probe", probe);
  cct_json_set_i64(object, "np", 1);
  cct_json_add(cells, object);
  return object;
}

static void set_numbers(struct cct_json *object, const char *key, const int64_t *values, int64_t most) {
  struct cct_json *list = cct_json_new_array();
  for (int i = 0; values[i]; i++)
    if (values[i] <= most)
      cct_json_add_i64(list, values[i]);
  cct_json_set(object, key, list);
}

static void set_words(struct cct_json *object, const char *key, const char *const *words) {
  struct cct_json *list = cct_json_new_array();
  for (int i = 0; words[i]; i++)
    cct_json_add_string(list, words[i]);
  cct_json_set(object, key, list);
}

#define NUMBERS(...) ((const int64_t[]){__VA_ARGS__, 0})
#define WORDS(...)   ((const char *const[]){__VA_ARGS__, NULL})

static void close_calls(struct cct_json *object) {
  cct_json_set_string(object, "close", "call");
}

static void add_channel(struct cct_json *cells) {
  set_numbers(cell(cells, "submission"), "calls", NUMBERS(1, 10, 100, 500), INT64_MAX);
  set_numbers(cell(cells, "bare-sync"), "calls", NUMBERS(1, 10, 100), INT64_MAX);
  set_numbers(cell(cells, "floor"), "calls", NUMBERS(100, 200, 400), INT64_MAX);
  struct cct_json *graph = cell(cells, "graph");
  set_numbers(graph, "calls", NUMBERS(1, 10, 100, 1000), INT64_MAX);
  close_calls(graph);
  cell(cells, "sync");
  cell(cells, "decode-loop");
  set_numbers(cell(cells, "hostwork"), "calls", NUMBERS(1, 4), INT64_MAX);
}

static void add_copies(struct cct_json *cells, int64_t most, int64_t most_both) {
  static const int64_t sizes[] = {256, 4 * K, 16 * K, 64 * K, 256 * K, M, 4 * M, 16 * M, 64 * M, 256 * M, G, 0};
  static const char *const memories[] = {"pinned", "pageable", "mapped"};
  for (int m = 0; m < 3; m++)
    for (int d = 0; d < 2; d++) {
      struct cct_json *copy = cell(cells, d ? "d2h" : "h2d");
      cct_json_set_string(copy, "memory", memories[m]);
      close_calls(copy);
      set_numbers(copy, "bytes", sizes, most);
    }
  struct cct_json *inside = cell(cells, "d2d"), *both = cell(cells, "both"), *streams = cell(cells, "streams"),
                  *threads = cell(cells, "threads"), *parts = cell(cells, "h2d");
  close_calls(inside);
  set_numbers(inside, "bytes", sizes, most);
  set_words(both, "memory", WORDS("pinned", "pageable"));
  set_numbers(both, "bytes", NUMBERS(M, 16 * M, 256 * M), most_both);
  cct_json_set_i64(streams, "bytes", 16 * M);
  set_numbers(streams, "calls", NUMBERS(1, 2, 4), INT64_MAX);
  cct_json_set_i64(threads, "bytes", 16 * M);
  set_words(threads, "memory", WORDS("pinned", "pageable"));
  set_numbers(threads, "calls", NUMBERS(1, 2, 4), INT64_MAX);
  cct_json_set_i64(parts, "bytes", 4 * K); /* 4 MiB in 1024 parts, beside one copy of 4 MiB */
  cct_json_set_i64(parts, "calls", 1024);
  for (int d = 0; d < 2; d++) {
    struct cct_json *blocked = cell(cells, d ? "blocked-d2h" : "blocked-h2d");
    set_words(blocked, "memory", WORDS("pinned", "pageable"));
    cct_json_set_i64(blocked, "bytes", 4 * K);
  }
}

/* Two sizes: what 72 GB take follows from the line through them. */
static void add_model(struct cct_json *cells, int is_small) {
  for (int d = 0; d < 2; d++) {
    struct cct_json *object = cell(cells, d ? "save" : "load");
    set_words(object, "memory", WORDS("pinned", "pageable"));
    set_numbers(object, "bytes", is_small ? NUMBERS(16 * M, 48 * M) : NUMBERS(128 * M, 512 * M), INT64_MAX);
  }
}

static void add_device(struct cct_json *cells, int is_small) {
  struct cct_json *gemm = cell(cells, "gemm"), *hbm = cell(cells, "hbm");
  close_calls(gemm);
  close_calls(hbm);
  cct_json_set_string(gemm, "gemm", is_small ? "512x512x512" : "8192x8192x8192");
  if (is_small)
    cct_json_set_string(gemm, "type", "fp32");
  else
    set_words(gemm, "type", WORDS("bf16", "fp16", "fp8", "fp32"));
  /* Half of it is written over the half that is read: from 1 GiB on L2 does not hold it. */
  set_numbers(hbm, "bytes", is_small ? NUMBERS(16 * M, 32 * M, 64 * M) : NUMBERS(G, 2 * G, 4 * G), INT64_MAX);
}

static void add_ranks(struct cct_json *cells, int np, int64_t most) {
  static const int64_t sizes[] = {K, 8 * K, 64 * K, 512 * K, 4 * M, 32 * M, 256 * M, 0};
  struct cct_json *message = cell(cells, "p2p");
  cct_json_set_i64(message, "np", 2);
  close_calls(message);
  set_numbers(message, "bytes", sizes, most);
  struct cct_json *together = cell(cells, "h2d"); /* processes and GPUs at once */
  int64_t counts[16] = {0};
  for (int ranks = 2, i = 0; ranks <= np && i < 15; ranks *= 2)
    counts[i++] = ranks;
  set_numbers(together, "np", counts, INT64_MAX);
  cct_json_set_i64(together, "bytes", most < 64 * M ? most : 64 * M);
  close_calls(together);
  for (int ranks = 2; ranks <= np; ranks *= 2)
    for (int is_graph = 0; is_graph < 2; is_graph++) {
      struct cct_json *object = cct_json_new_object();
      cct_json_set_string(object, "workload", "collective");
      cct_json_set_i64(object, "np", ranks);
      set_words(object, "collective", WORDS("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"));
      cct_json_set_string(object, "graph", is_graph ? "full" : "none");
      cct_json_set_i64(object, "calls", is_graph ? 8 : 1);
      close_calls(object);
      set_numbers(object, "bytes", sizes, most);
      cct_json_add(cells, object);
    }
}

static void add_experiments(struct cct_json *cells, const char *backend, int np) {
  static const char *const host[] = {"aes_rate/16M", "copy_rate/64M", "seal_chunk/512K", "submission", NULL};
  static const char *const cuda[] = {"aes_rate/16M",
                                     "aes_copy/64M",
                                     "clock/100000000",
                                     "timer_step",
                                     "bare_launch/500",
                                     "bare_sync/500",
                                     "graph_capture/10",
                                     "graph_capture/100",
                                     "graph_capture/1000",
                                     "host_register/4K",
                                     "host_register/1M",
                                     "stale_memory/500",
                                     "caller_blocked/4K/20000000",
                                     "caller_blocked/256M/20000000",
                                     "caller_blocked/64M/0",
                                     "overlap/64M",
                                     "delay/10000",
                                     "rest/20500/2048/9728/2560",
                                     "memory",
                                     "managed/2M",
                                     "mapped/64M",
                                     "processes/1/16M",
                                     "processes/2/16M",
                                     "context",
                                     "gdr",
                                     "checkpoint",
                                     "marker/0",
                                     "marker/1",
                                     NULL};
  static const char *const pair[] = {"peer",
                                     "p2p_copy/1G/0/1",
                                     "p2p_copy/1G/1/1",
                                     "p2p_copy/1G/2/1",
                                     "p2p_copy/1G/3/1",
                                     "p2p_copy/1G/0/2",
                                     "p2p_copy/1G/1/2",
                                     "p2p_copy/1G/2/2",
                                     "p2p_copy/1G/3/2",
                                     "short_write/1000",
                                     "dispatch/128/7K",
                                     "dispatch/4K/7K",
                                     "communicator",
                                     NULL};
  const char *const *lists[] = {!strcmp(backend, "host") ? host : cuda, pair};
  if (!strcmp(backend, "sim"))
    return;
  for (int l = 0; l < (strcmp(backend, "cuda") || np < 2 ? 1 : 2); l++)
    for (int i = 0; lists[l][i]; i++) {
      struct cct_json *object = cell(cells, "experiment");
      cct_json_set_string(object, "experiment", lists[l][i]);
      cct_json_set_i64(object, "np", 1 + l);
    }
}

struct cct_json *cct_probe_suite(const char *backend, int np) {
  int is_small = !strcmp(backend, "host");
  struct cct_json *suite = cct_json_new_object(), *cells = cct_json_new_array();
  cct_json_set_i64(suite, "schema", 1);
  cct_json_set_string(suite, "question", CCT_PROBE_QUESTION);
  cct_json_set_i64(suite, "rounds", 3);
  cct_json_set_i64(suite, "samples", 20);
  cct_json_set_i64(suite, "warmup", 3);
  add_channel(cells);
  add_copies(cells, is_small ? 16 * M : G, is_small ? 16 * M : 256 * M);
  add_model(cells, is_small);
  add_device(cells, is_small);
  if (np > 1)
    add_ranks(cells, np, is_small ? 4 * M : 256 * M);
  add_experiments(cells, backend, np);
  cct_json_set(suite, "cells", cells);
  return suite;
}
