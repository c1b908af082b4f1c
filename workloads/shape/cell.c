/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/shape/cell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum cct_workload cct_cell_workload(const struct cct_options *cell) {
  static const char *const names[] = {"train", "prefill", "decode", "serve", "collective", "probe"};
  const char *name = cell->v[CCT_OPT_WORKLOAD].s;
  for (int i = 0; name && i < CCT_WORKLOAD_NONE; i++)
    if (!strcmp(name, names[i]))
      return (enum cct_workload)i;
  return CCT_WORKLOAD_NONE;
}

const char *cct_cell_text(const struct cct_options *cell, enum cct_option_id id) {
  const struct cct_value *value = &cell->v[id];
  enum cct_workload workload = cct_cell_workload(cell);
  if (value->has_value)
    return value->s;
  if (workload == CCT_WORKLOAD_NONE)
    return NULL;
  if (id == CCT_OPT_GRAPH)
    return workload == CCT_WORKLOAD_DECODE || workload == CCT_WORKLOAD_SERVE ? "full" : "none";
  if (id == CCT_OPT_DISPATCH)
    return workload == CCT_WORKLOAD_TRAIN ? "per-expert" : "per-rank";
  if (id == CCT_OPT_ARRIVALS && workload == CCT_WORKLOAD_SERVE)
    return cell->v[CCT_OPT_REQUEST_RATE].has_value || cell->v[CCT_OPT_TRACE].has_value ? "seconds" : "closed";
  if (id == CCT_OPT_MIXED_GRAPH && workload == CCT_WORKLOAD_SERVE)
    return strcmp(cct_cell_text(cell, CCT_OPT_GRAPH), "piecewise") ? "none" : "piecewise";
  return NULL;
}

static int is_expert_parallel(const struct cct_options *cell) {
  const char *layout = cell->v[CCT_OPT_LAYOUT].s, *ep = layout ? strstr(layout, "ep=") : NULL;
  return ep && strtol(ep + 3, NULL, 10) > 1;
}

static int has_replicas(const struct cct_options *cell) {
  const char *layout = cell->v[CCT_OPT_LAYOUT].s, *dp = layout ? strstr(layout, "dp=") : NULL;
  return dp && strtol(dp + 3, NULL, 10) > 1;
}

static int is_word(const struct cct_options *cell, enum cct_option_id id, const char *words) {
  const char *word = cell->v[id].s, *at = word ? strstr(words, word) : NULL;
  return at && (at == words || at[-1] == ' ') && (at[strlen(word)] == ' ' || !at[strlen(word)]);
}

/* Whether a collective or a probe reads the key's default. */
static int is_read_bare(const struct cct_options *cell, enum cct_option_id id, int is_probe) {
  switch (id) {
  case CCT_OPT_CALLS:
    return !is_probe || !is_word(cell, CCT_OPT_PROBE_NAME, "experiment blocked-h2d blocked-d2h both load save");
  case CCT_OPT_COLLECTIVE:
  case CCT_OPT_GRAPH:
    return !is_probe;
  case CCT_OPT_ALLREDUCE:
    return !is_probe && is_word(cell, CCT_OPT_COLLECTIVE, "all_reduce");
  case CCT_OPT_SKEW:
    return !is_probe && is_word(cell, CCT_OPT_COLLECTIVE, "all_to_allv");
  case CCT_OPT_BYTES:
    return !is_probe || is_word(cell, CCT_OPT_PROBE_NAME,
                                "h2d d2h d2d p2p hbm blocked-h2d blocked-d2h both streams threads load save");
  case CCT_OPT_TYPE:
    return !is_probe || is_word(cell, CCT_OPT_PROBE_NAME, "gemm");
  case CCT_OPT_PROBE_NAME:
    return is_probe;
  case CCT_OPT_MEMORY:
    return is_probe && is_word(cell, CCT_OPT_PROBE_NAME, "h2d d2h blocked-h2d blocked-d2h both threads load save");
  case CCT_OPT_GEMM_SHAPE:
    return is_probe && is_word(cell, CCT_OPT_PROBE_NAME, "gemm");
  default:
    return 0;
  }
}

static int has_trace(const struct cct_options *cell) {
  return cct_cell_workload(cell) == CCT_WORKLOAD_SERVE && cell->v[CCT_OPT_TRACE].has_value;
}

/* Requests come by themselves. */
static int is_open(const struct cct_options *cell) {
  return cct_cell_workload(cell) == CCT_WORKLOAD_SERVE && strcmp(cct_cell_text(cell, CCT_OPT_ARRIVALS), "closed") != 0;
}

/* Whether the workload reads the key's default. */
static int is_read(const struct cct_options *cell, enum cct_option_id id) {
  enum cct_workload w = cct_cell_workload(cell);
  int is_serving = w == CCT_WORKLOAD_DECODE || w == CCT_WORKLOAD_PREFILL || w == CCT_WORKLOAD_SERVE;
  if (w == CCT_WORKLOAD_NONE)
    return 0;
  if (w == CCT_WORKLOAD_COLLECTIVE || w == CCT_WORKLOAD_PROBE)
    return is_read_bare(cell, id, w == CCT_WORKLOAD_PROBE);
  switch (id) {
  case CCT_OPT_BATCH:
    return w == CCT_WORKLOAD_DECODE;
  case CCT_OPT_INPUT_LEN:
    return is_serving && !has_trace(cell);
  case CCT_OPT_OUTPUT_LEN:
    return (w == CCT_WORKLOAD_DECODE || w == CCT_WORKLOAD_SERVE) && !has_trace(cell);
  case CCT_OPT_RANDOM_RANGE_RATIO:
    return w == CCT_WORKLOAD_SERVE && !has_trace(cell);
  case CCT_OPT_CONCURRENCY:
    return w == CCT_WORKLOAD_SERVE && !is_open(cell);
  case CCT_OPT_OVERLAP:
  case CCT_OPT_HOST_US:
    return w == CCT_WORKLOAD_DECODE || w == CCT_WORKLOAD_SERVE;
  case CCT_OPT_READBACK:
  case CCT_OPT_MAX_BATCHED_TOKENS:
  case CCT_OPT_MAX_SEQS:
  case CCT_OPT_CHUNKED_PREFILL:
  case CCT_OPT_PREEMPT:
  case CCT_OPT_SPECULATE:
  case CCT_OPT_ARRIVALS:
  case CCT_OPT_MIXED_GRAPH:
    return w == CCT_WORKLOAD_SERVE;
  case CCT_OPT_BURSTINESS:
    return w == CCT_WORKLOAD_SERVE && cell->v[CCT_OPT_REQUEST_RATE].has_value;
  case CCT_OPT_GPU_MEMORY:
    return w == CCT_WORKLOAD_SERVE && !cell->v[CCT_OPT_KV_TOKENS].has_value;
  case CCT_OPT_ACCEPTANCE:
    return w == CCT_WORKLOAD_SERVE && cell->v[CCT_OPT_SPECULATE].i > 0;
  case CCT_OPT_KV_ROUTE:
    return w == CCT_WORKLOAD_SERVE && cell->v[CCT_OPT_DISAGGREGATE].has_value;
  case CCT_OPT_SEQ_LEN:
  case CCT_OPT_MICRO_BATCH:
  case CCT_OPT_ACCUMULATION:
  case CCT_OPT_OPTIMIZER:
  case CCT_OPT_RECOMPUTE:
  case CCT_OPT_SEQUENCE_PARALLEL:
    return w == CCT_WORKLOAD_TRAIN;
  case CCT_OPT_GRAD_TYPE:
    return w == CCT_WORKLOAD_TRAIN;
  case CCT_OPT_OVERLAP_GRAD:
    return w == CCT_WORKLOAD_TRAIN && has_replicas(cell);
  case CCT_OPT_OVERLAP_PARAM:
    return w == CCT_WORKLOAD_TRAIN && has_replicas(cell) && is_word(cell, CCT_OPT_OPTIMIZER, "adam-zero1");
  case CCT_OPT_CHECKPOINT:
  case CCT_OPT_MEMORY:
    return w == CCT_WORKLOAD_TRAIN && cell->v[CCT_OPT_CHECKPOINT_EVERY].has_value;
  case CCT_OPT_GRAPH:
  case CCT_OPT_ALLREDUCE:
    return 1;
  case CCT_OPT_DISPATCH:
  case CCT_OPT_ROUTING:
  case CCT_OPT_SKEW:
  case CCT_OPT_COMBINE_TYPE:
    return is_expert_parallel(cell);
  default:
    return 0;
  }
}

int cct_cell_matters(const struct cct_options *cell, enum cct_option_id id) {
  if (id == CCT_OPT_CONCURRENCY && is_open(cell)) /* all that is left to it is the default of --num-prompts */
    return cell->v[id].is_set && !cell->v[CCT_OPT_NUM_PROMPTS].has_value && !has_trace(cell);
  return cct_option_table[id].scope == CCT_SCOPE_CELL && cct_cell_text(cell, id) &&
         (cell->v[id].is_set || is_read(cell, id));
}

#define OF(workload) (1U << CCT_WORKLOAD_##workload)
#define OF_SERVING   (OF(PREFILL) | OF(DECODE) | OF(SERVE))
#define OF_A_MODEL   (OF(TRAIN) | OF_SERVING)

/* The workloads that read a key which others have no use for; 0: all do. */
static unsigned readers(enum cct_option_id id) {
  switch (id) {
  case CCT_OPT_CONCURRENCY:
  case CCT_OPT_READBACK:
  case CCT_OPT_RANDOM_RANGE_RATIO:
  case CCT_OPT_MAX_BATCHED_TOKENS:
  case CCT_OPT_MAX_SEQS:
  case CCT_OPT_CHUNKED_PREFILL:
  case CCT_OPT_KV_TOKENS:
  case CCT_OPT_GPU_MEMORY:
  case CCT_OPT_PREEMPT:
  case CCT_OPT_SPECULATE:
  case CCT_OPT_ACCEPTANCE:
  case CCT_OPT_DISAGGREGATE:
  case CCT_OPT_KV_ROUTE:
  case CCT_OPT_ARRIVALS:
  case CCT_OPT_REQUEST_RATE:
  case CCT_OPT_BURSTINESS:
  case CCT_OPT_TRACE:
  case CCT_OPT_NUM_PROMPTS:
  case CCT_OPT_MIXED_GRAPH:
    return OF(SERVE);
  case CCT_OPT_SEQ_LEN:
  case CCT_OPT_MICRO_BATCH:
  case CCT_OPT_ACCUMULATION:
  case CCT_OPT_OPTIMIZER:
  case CCT_OPT_RECOMPUTE:
  case CCT_OPT_SEQUENCE_PARALLEL:
  case CCT_OPT_GRAD_TYPE:
  case CCT_OPT_BUCKET_BYTES:
  case CCT_OPT_OVERLAP_GRAD:
  case CCT_OPT_OVERLAP_PARAM:
  case CCT_OPT_CHECKPOINT_EVERY:
  case CCT_OPT_CHECKPOINT:
    return OF(TRAIN);
  case CCT_OPT_BATCH:
    return OF(DECODE);
  case CCT_OPT_OUTPUT_LEN:
  case CCT_OPT_OVERLAP:
  case CCT_OPT_HOST_US:
    return OF(DECODE) | OF(SERVE);
  case CCT_OPT_INPUT_LEN:
    return OF_SERVING;
  case CCT_OPT_MODEL:
  case CCT_OPT_LAYOUT:
  case CCT_OPT_WEIGHTS:
  case CCT_OPT_LAYERS:
  case CCT_OPT_DISPATCH:
  case CCT_OPT_ROUTING:
  case CCT_OPT_CAPACITY:
  case CCT_OPT_DISPATCH_TYPE:
  case CCT_OPT_COMBINE_TYPE:
    return OF_A_MODEL;
  case CCT_OPT_SKEW:
  case CCT_OPT_ALLREDUCE:
  case CCT_OPT_GRAPH:
    return OF_A_MODEL | OF(COLLECTIVE);
  case CCT_OPT_COLLECTIVE:
  case CCT_OPT_ITERS:
  case CCT_OPT_AGG_ITERS:
  case CCT_OPT_CUDAGRAPH:
  case CCT_OPT_ROOT:
  case CCT_OPT_REDUCTION:
  case CCT_OPT_PLACE:
  case CCT_OPT_LOCAL_REGISTER:
  case CCT_OPT_COMM_CHOICE:
  case CCT_OPT_BUFFER_BYTES:
    return OF(COLLECTIVE);
  case CCT_OPT_PROBE_NAME:
  case CCT_OPT_EXPERIMENT:
    return OF(PROBE);
  case CCT_OPT_BYTES:
  case CCT_OPT_TYPE:
  case CCT_OPT_CALLS:
  case CCT_OPT_CLOSE:
  case CCT_OPT_GEMM_SHAPE:
    return OF(COLLECTIVE) | OF(PROBE);
  case CCT_OPT_MEMORY:
    return OF(TRAIN) | OF(PROBE);
  default:
    return 0;
  }
}

static const char *who_reads(unsigned workloads) {
  static const struct {
    unsigned workloads;
    const char *text;
  } rows[] = {
      {OF(SERVE), "serve alone reads it, and no cell is of serve"},
      {OF(TRAIN), "train alone reads it, and no cell is of train"},
      {OF(DECODE), "decode alone reads it, and no cell is of decode"},
      {OF(COLLECTIVE), "collective alone reads it, and no cell is of collective"},
      {OF(PROBE), "probe alone reads it, and no cell is of probe"},
      {OF(DECODE) | OF(SERVE), "decode and serve alone read it, and no cell is of these"},
      {OF_SERVING, "prefill, decode and serve alone read it, and no cell is of these"},
      {OF_A_MODEL, "steps of a model alone read it, and no cell is one"},
      {OF_A_MODEL | OF(COLLECTIVE), "probes do not read it, and all cells are probes"},
      {OF(COLLECTIVE) | OF(PROBE), "collective and probe alone read it, and no cell is of these"},
      {OF(TRAIN) | OF(PROBE), "train and probe alone read it, and no cell is of these"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].workloads == workloads)
      return rows[i].text;
  return "no cell reads it";
}

const char *cct_cell_unread(const struct cct_options *cell, enum cct_option_id id) {
  enum cct_workload workload = cct_cell_workload(cell);
  const struct cct_value *v = cell->v;
  unsigned by = readers(id);
  if (workload == CCT_WORKLOAD_NONE)
    return NULL;
  if (by && !(by >> workload & 1))
    return who_reads(by);
  if (id == CCT_OPT_CONCURRENCY && is_open(cell))
    return "nothing holds requests back that come by themselves; --max-seqs limits those at work, --num-prompts says "
           "how many come";
  if ((id == CCT_OPT_INPUT_LEN || id == CCT_OPT_OUTPUT_LEN || id == CCT_OPT_RANDOM_RANGE_RATIO) && has_trace(cell))
    return "--trace says how long requests are";
  if (id == CCT_OPT_BURSTINESS && !v[CCT_OPT_REQUEST_RATE].has_value)
    return "needs --request-rate";
  if (id == CCT_OPT_ACCEPTANCE && v[CCT_OPT_SPECULATE].i == 0)
    return "needs --speculate";
  if (id == CCT_OPT_KV_ROUTE && !v[CCT_OPT_DISAGGREGATE].has_value)
    return "needs --disaggregate";
  if (id == CCT_OPT_GPU_MEMORY && v[CCT_OPT_KV_TOKENS].has_value)
    return "--kv-tokens says already what the cache holds";
  if (id == CCT_OPT_CHECKPOINT && !v[CCT_OPT_CHECKPOINT_EVERY].has_value)
    return "needs --checkpoint-every";
  if (id == CCT_OPT_MEMORY && workload == CCT_WORKLOAD_TRAIN && !v[CCT_OPT_CHECKPOINT_EVERY].has_value)
    return "is a checkpoint's; needs --checkpoint-every";
  if (id == CCT_OPT_OVERLAP_PARAM && !is_word(cell, CCT_OPT_OPTIMIZER, "adam-zero1"))
    return "needs --optimizer adam-zero1";
  if ((id == CCT_OPT_DISPATCH || id == CCT_OPT_ROUTING || id == CCT_OPT_DISPATCH_TYPE || id == CCT_OPT_COMBINE_TYPE) &&
      v[CCT_OPT_LAYOUT].has_value && strcmp(v[CCT_OPT_LAYOUT].s, "all") != 0 && !is_expert_parallel(cell))
    return "needs a layout with ep above 1";
  return NULL;
}

enum cct_status cct_cell_to_json(const struct cct_options *cell, struct cct_json **json_out) {
  struct cct_json *json = cct_json_new_object();
  if (!json)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; i < CCT_OPTION_COUNT; i++) {
    enum cct_option_id id = (enum cct_option_id)i;
    char key[32];
    if (!cct_cell_matters(cell, id))
      continue;
    switch (cct_option_table[id].kind) {
    case CCT_KIND_FLAG:
      cct_json_set_bool(json, cct_option_key(id, key), 1);
      break;
    case CCT_KIND_I64:
    case CCT_KIND_BYTES:
      cct_json_set_i64(json, cct_option_key(id, key), cell->v[id].i);
      break;
    case CCT_KIND_F64:
      cct_json_set_f64(json, cct_option_key(id, key), cell->v[id].f);
      break;
    case CCT_KIND_TEXT:
    case CCT_KIND_WORD:
      cct_json_set_string(json, cct_option_key(id, key), cct_cell_text(cell, id));
      break;
    }
  }
  *json_out = json;
  return CCT_OK;
}

/* The value as a user would write it on the command line, so that the one option table checks it. */
static enum cct_status value_text(const struct cct_json_at *at, enum cct_option_kind kind, char number[40],
                                  const char **text_out) {
  int64_t i = 0;
  double f = 0;
  int is_true = 0;
  enum cct_status status = CCT_OK;
  *text_out = number;
  switch (kind) {
  case CCT_KIND_I64:
  case CCT_KIND_BYTES:
    status = cct_json_read_i64(at, INT64_MIN, INT64_MAX, &i);
    snprintf(number, 40, "%" PRId64, i);
    return status;
  case CCT_KIND_F64:
    status = cct_json_read_f64(at, -1e308, 1e308, &f);
    snprintf(number, 40, "%.17g", f);
    return status;
  case CCT_KIND_FLAG:
    status = cct_json_read_bool(at, &is_true);
    if (!is_true)
      *text_out = NULL;
    return status;
  case CCT_KIND_TEXT:
  case CCT_KIND_WORD:
    break;
  }
  return cct_json_read_string(at, text_out);
}

static enum cct_status refuse_key(const struct cct_json_at *at, const char *key) {
  char keys[CCT_OPTION_COUNT][32];
  const char *names[CCT_OPTION_COUNT];
  size_t n = 0;
  for (int id = 0; id < CCT_OPTION_COUNT; id++)
    if (cct_option_table[id].scope == CCT_SCOPE_CELL) {
      names[n] = cct_option_key((enum cct_option_id)id, keys[n]);
      n++;
    }
  const char *near = cct_closest(key, names, n);
  return near ? cct_json_fail(at, CCT_USAGE, "unknown key; did you mean '%s'?", near)
              : cct_json_fail(at, CCT_USAGE, "unknown key; a cell's keys are run's long flags with _ for -");
}

enum cct_status cct_cell_from_json(const struct cct_json_at *at, struct cct_options *cell_out) {
  struct cct_options cell;
  void *iterator = NULL;
  const char *key;
  const struct cct_json *value;
  enum cct_status status = cct_json_expect(at, CCT_JSON_OBJECT);
  if (!status)
    status = cct_options_init(&cell);
  if (status)
    return status;
  while (!status && cct_json_next(at->value, &iterator, &key, &value)) {
    struct cct_json_at place = cct_json_at_key(at, key);
    enum cct_option_id id = cct_option_by_key(key);
    char number[40], where[512];
    const char *text;
    if (id == CCT_OPTION_COUNT || cct_option_table[id].scope != CCT_SCOPE_CELL) {
      status = refuse_key(&place, key);
      continue;
    }
    snprintf(where, sizeof where, "%s: %s", place.source, place.path);
    status = value_text(&place, cct_option_table[id].kind, number, &text);
    if (!status && text)
      status = cct_option_set(&cell, id, text, where);
  }
  if (status) {
    cct_options_free(&cell);
    return status;
  }
  *cell_out = cell;
  return CCT_OK;
}
