/* SPDX-License-Identifier: Apache-2.0
 * Who reads which key: by workload, by what else the cell says, by backend. The one place that knows; cells' texts and
 * the refusal of what decides nothing both follow from it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "workloads/shape/cell.h"
#include "workloads/shape/model.h"

/* ---- what a cell says ---- */

/* 0: the layout is known, and its NAME= is 1. */
static int may_be_parallel(const struct cct_options *cell, const char *name, int unknown) {
  const char *layout = cell->v[CCT_OPT_LAYOUT].s;
  if (!layout || !strcmp(layout, "all"))
    return unknown;
  const char *at = strstr(layout, name);
  return at && strtol(at + 3, NULL, 10) > 1;
}

/* 0: the model is read, and none of its layers has experts. Whoever builds the step judges model and layout. */
static int may_have_experts(const struct cct_options *cell) {
  struct cct_model model = {0};
  if (!cell->v[CCT_OPT_MODEL].has_value || may_be_parallel(cell, "ep=", 0))
    return 1;
  cct_log_mute(1);
  int is_read =
      !cct_model_load(cell->v[CCT_OPT_MODEL].s, cell->v[CCT_OPT_ASSUME].s, cell->v[CCT_OPT_WEIGHTS].s, &model);
  if (is_read && cell->v[CCT_OPT_LAYERS].has_value)
    is_read = !cct_model_cut(&model, cell->v[CCT_OPT_LAYERS].i);
  cct_log_mute(0);
  int may = !is_read || cct_model_has_experts(&model);
  cct_model_free(&model);
  return may;
}

static int is_word(const struct cct_options *cell, enum cct_option_id id, const char *words) {
  const char *word = cell->v[id].s;
  size_t n = word ? strlen(word) : 0;
  for (const char *at = n ? strstr(words, word) : NULL; at; at = strstr(at + 1, word))
    if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
      return 1;
  return 0;
}

static int has_trace(const struct cct_options *cell) {
  return cct_cell_workload(cell) == CCT_WORKLOAD_SERVE && cell->v[CCT_OPT_TRACE].has_value;
}

/* Requests come by themselves. */
static int is_open(const struct cct_options *cell) {
  return cct_cell_workload(cell) == CCT_WORKLOAD_SERVE && strcmp(cct_cell_text(cell, CCT_OPT_ARRIVALS), "closed") != 0;
}

/* ---- by workload ---- */

enum {
  TRAIN = 1 << CCT_WORKLOAD_TRAIN,
  PREFILL = 1 << CCT_WORKLOAD_PREFILL,
  DECODE = 1 << CCT_WORKLOAD_DECODE,
  SERVE = 1 << CCT_WORKLOAD_SERVE,
  COLLECTIVE = 1 << CCT_WORKLOAD_COLLECTIVE,
  PROBE = 1 << CCT_WORKLOAD_PROBE,
  PROGRAM = 1 << CCT_WORKLOAD_NONE,
  MODEL = TRAIN | PREFILL | DECODE | SERVE,
  ALL = MODEL | COLLECTIVE | PROBE | PROGRAM
};

static unsigned readers_of(enum cct_option_id id) {
  static const struct {
    unsigned workloads;
    enum cct_option_id ids[24]; /* ends at CCT_OPT_OUTPUT, which is no CELL key */
  } rows[] = {
      {ALL, {CCT_OPT_WORKLOAD, CCT_OPT_PROGRAM, CCT_OPT_NP, CCT_OPT_CHECK, CCT_OPT_SCALE}},
      {MODEL,
       {CCT_OPT_MODEL, CCT_OPT_LAYOUT, CCT_OPT_WEIGHTS, CCT_OPT_LAYERS, CCT_OPT_DISPATCH, CCT_OPT_ROUTING,
        CCT_OPT_COMBINE_TYPE, CCT_OPT_DISPATCH_TYPE, CCT_OPT_CAPACITY, CCT_OPT_ASSUME}},
      {MODEL | COLLECTIVE, {CCT_OPT_GRAPH, CCT_OPT_ALLREDUCE, CCT_OPT_SKEW}},
      {DECODE, {CCT_OPT_BATCH}},
      {PREFILL | DECODE | SERVE, {CCT_OPT_INPUT_LEN}},
      {DECODE | SERVE, {CCT_OPT_OUTPUT_LEN, CCT_OPT_OVERLAP, CCT_OPT_HOST_US}},
      {SERVE,
       {CCT_OPT_CONCURRENCY,
        CCT_OPT_READBACK,
        CCT_OPT_MIXED_GRAPH,
        CCT_OPT_ARRIVALS,
        CCT_OPT_REQUEST_RATE,
        CCT_OPT_BURSTINESS,
        CCT_OPT_TRACE,
        CCT_OPT_NUM_PROMPTS,
        CCT_OPT_RANDOM_RANGE_RATIO,
        CCT_OPT_MAX_BATCHED_TOKENS,
        CCT_OPT_MAX_SEQS,
        CCT_OPT_CHUNKED_PREFILL,
        CCT_OPT_KV_TOKENS,
        CCT_OPT_GPU_MEMORY,
        CCT_OPT_PREEMPT,
        CCT_OPT_SPECULATE,
        CCT_OPT_ACCEPTANCE,
        CCT_OPT_SLO,
        CCT_OPT_DISAGGREGATE,
        CCT_OPT_KV_ROUTE}},
      {TRAIN,
       {CCT_OPT_SEQ_LEN, CCT_OPT_MICRO_BATCH, CCT_OPT_ACCUMULATION, CCT_OPT_OPTIMIZER, CCT_OPT_RECOMPUTE,
        CCT_OPT_SEQUENCE_PARALLEL, CCT_OPT_GRAD_TYPE, CCT_OPT_BUCKET_BYTES, CCT_OPT_OVERLAP_GRAD, CCT_OPT_OVERLAP_PARAM,
        CCT_OPT_CHECKPOINT_EVERY, CCT_OPT_CHECKPOINT}},
      {TRAIN | PROBE, {CCT_OPT_MEMORY}},
      {COLLECTIVE,
       {CCT_OPT_COLLECTIVE, CCT_OPT_ITERS, CCT_OPT_AGG_ITERS, CCT_OPT_CUDAGRAPH, CCT_OPT_ROOT, CCT_OPT_REDUCTION,
        CCT_OPT_PLACE, CCT_OPT_LOCAL_REGISTER, CCT_OPT_COMM_CHOICE, CCT_OPT_BUFFER_BYTES}},
      {PROBE, {CCT_OPT_PROBE_NAME, CCT_OPT_EXPERIMENT}},
      {COLLECTIVE | PROBE, {CCT_OPT_CLOSE, CCT_OPT_BYTES, CCT_OPT_TYPE, CCT_OPT_GEMM_SHAPE}},
      {COLLECTIVE | PROBE | PROGRAM, {CCT_OPT_CALLS}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int k = 0; rows[i].ids[k] != CCT_OPT_OUTPUT; k++)
      if (rows[i].ids[k] == id)
        return rows[i].workloads;
  return 0;
}

/* ---- by what else the cell says; each is asked of cells whose workload reads the key ---- */

static int probe_reads(const struct cct_options *cell, enum cct_option_id id) {
  switch (id) {
  case CCT_OPT_CALLS:
    return !is_word(cell, CCT_OPT_PROBE_NAME, "experiment blocked-h2d blocked-d2h both load save");
  case CCT_OPT_BYTES:
    return is_word(cell, CCT_OPT_PROBE_NAME,
                   "h2d d2h d2d p2p hbm blocked-h2d blocked-d2h both streams threads load save");
  case CCT_OPT_MEMORY:
    return is_word(cell, CCT_OPT_PROBE_NAME, "h2d d2h blocked-h2d blocked-d2h both threads load save");
  case CCT_OPT_CLOSE:
    return is_word(cell, CCT_OPT_PROBE_NAME, "submission graph h2d d2h d2d p2p gemm hbm");
  case CCT_OPT_TYPE:
  case CCT_OPT_GEMM_SHAPE:
    return is_word(cell, CCT_OPT_PROBE_NAME, "gemm");
  default:
    return 1;
  }
}

static const char *collective_lacks(const struct cct_options *cell, enum cct_option_id id) {
  switch (id) {
  case CCT_OPT_ALLREDUCE:
    return is_word(cell, CCT_OPT_COLLECTIVE, "all_reduce") ? NULL : "no collective is an all_reduce";
  case CCT_OPT_SKEW:
    return is_word(cell, CCT_OPT_COLLECTIVE, "all_to_allv") ? NULL : "no collective is an all_to_allv";
  case CCT_OPT_ROOT:
    return is_word(cell, CCT_OPT_COLLECTIVE, "broadcast reduce") ? NULL : "broadcast and reduce alone have one";
  case CCT_OPT_REDUCTION:
    return is_word(cell, CCT_OPT_COLLECTIVE, "all_reduce reduce_scatter reduce")
               ? NULL
               : "all_reduce, reduce_scatter and reduce alone reduce";
  default:
    return NULL;
  }
}

static const char *model_lacks(const struct cct_options *cell, enum cct_option_id id) {
  const struct cct_value *v = cell->v;
  switch (id) {
  case CCT_OPT_CONCURRENCY:
    return !is_open(cell) ? NULL
                          : "nothing holds requests back that come by themselves; --max-seqs limits those at work, "
                            "--num-prompts says how many come";
  case CCT_OPT_INPUT_LEN:
  case CCT_OPT_OUTPUT_LEN:
  case CCT_OPT_RANDOM_RANGE_RATIO:
    return has_trace(cell) ? "--trace says how long requests are" : NULL;
  case CCT_OPT_BURSTINESS:
    return v[CCT_OPT_REQUEST_RATE].has_value ? NULL : "needs --request-rate";
  case CCT_OPT_ACCEPTANCE:
    return v[CCT_OPT_SPECULATE].i > 0 ? NULL : "needs --speculate";
  case CCT_OPT_KV_ROUTE:
    return v[CCT_OPT_DISAGGREGATE].has_value ? NULL : "needs --disaggregate";
  case CCT_OPT_GPU_MEMORY:
    return v[CCT_OPT_KV_TOKENS].has_value ? "--kv-tokens says already what the cache holds" : NULL;
  case CCT_OPT_CHECKPOINT:
  case CCT_OPT_MEMORY:
    return v[CCT_OPT_CHECKPOINT_EVERY].has_value ? NULL : "needs --checkpoint-every";
  case CCT_OPT_ALLREDUCE:
  case CCT_OPT_SEQUENCE_PARALLEL:
    return may_be_parallel(cell, "tp=", 1) ? NULL : "needs a layout with tp above 1";
  case CCT_OPT_OVERLAP_PARAM:
    if (!is_word(cell, CCT_OPT_OPTIMIZER, "adam-zero1"))
      return "needs --optimizer adam-zero1";
    return may_be_parallel(cell, "dp=", 1) ? NULL : "needs a layout with dp above 1";
  case CCT_OPT_BUCKET_BYTES:
    if (!is_word(cell, CCT_OPT_OVERLAP_GRAD, "on"))
      return "needs --overlap-grad-reduce on";
    return may_be_parallel(cell, "dp=", 1) || v[CCT_OPT_CHECKPOINT_EVERY].has_value
               ? NULL
               : "needs a layout with dp above 1, or --checkpoint-every";
  case CCT_OPT_OPTIMIZER: /* Adam is what is performed, with any layout */
    return !is_word(cell, CCT_OPT_OPTIMIZER, "adam-zero1") || may_be_parallel(cell, "dp=", 1)
               ? NULL
               : "adam-zero1 needs a layout with dp above 1";
  case CCT_OPT_OVERLAP_GRAD:
    return may_be_parallel(cell, "dp=", 1) ? NULL : "needs a layout with dp above 1";
  case CCT_OPT_DISPATCH:
  case CCT_OPT_ROUTING:
  case CCT_OPT_DISPATCH_TYPE:
  case CCT_OPT_COMBINE_TYPE:
    if (!may_be_parallel(cell, "ep=", 1))
      return "needs a layout with ep above 1";
    return may_have_experts(cell) ? NULL : "the model has no experts";
  case CCT_OPT_SKEW:
  case CCT_OPT_CAPACITY:
    return may_have_experts(cell) ? NULL : "the model has no experts";
  default:
    return NULL;
  }
}

/* Why nothing follows from the key beside the cell's other settings; NULL: something may. */
static const char *lacks(const struct cct_options *cell, enum cct_option_id id) {
  enum cct_workload workload = cct_cell_workload(cell);
  if (workload == CCT_WORKLOAD_PROBE && id == CCT_OPT_EXPERIMENT)
    return is_word(cell, CCT_OPT_PROBE_NAME, "experiment") ? NULL : "needs --probe experiment";
  if (workload == CCT_WORKLOAD_PROBE)
    return probe_reads(cell, id) ? NULL : "the probe does not read it";
  if (workload == CCT_WORKLOAD_COLLECTIVE)
    return collective_lacks(cell, id);
  return workload == CCT_WORKLOAD_NONE ? NULL : model_lacks(cell, id);
}

/* ---- together ---- */

/* "decode and serve alone read it", and what a cell of one is: "of serve", "of these", "one". */
static void name_readers(unsigned workloads, char why[128], const char **of_out) {
  static const char *const names[] = {"train", "prefill", "decode", "serve", "collective", "probe", "a program"};
  static const char *const of[] = {"of train",      "of prefill", "of decode",   "of serve",
                                   "of collective", "of probe",   "of a program"};
  const char *what = "of these";
  size_t length = 0;
  int all = 0, n = 0;
  for (int w = 0; w <= CCT_WORKLOAD_NONE; w++)
    all += (workloads >> w & 1) != 0;
  if (workloads == MODEL) {
    length = (size_t)snprintf(why, 128, "steps of a model");
    what = "one";
  }
  for (int w = 0; workloads != MODEL && w <= CCT_WORKLOAD_NONE; w++) {
    if (!(workloads >> w & 1))
      continue;
    const char *before = !n ? "" : n < all - 1 ? ", " : " and ";
    length += (size_t)snprintf(why + length, 128 - length, "%s%s", before, names[w]);
    n++;
    what = all == 1 ? of[w] : what;
  }
  snprintf(why + length, 128 - length, all == 1 ? " alone reads it" : " alone read it");
  if (of_out)
    *of_out = what;
}

enum cct_reading cct_cell_reads(const struct cct_options *cell, enum cct_option_id id, char why[128],
                                const char **of_out) {
  unsigned workloads = readers_of(id);
  if (!(workloads >> cct_cell_workload(cell) & 1)) {
    name_readers(workloads, why, of_out);
    return CCT_OF_OTHER_WORKLOADS;
  }
  const char *lack = lacks(cell, id);
  snprintf(why, 128, "%s", lack ? lack : "");
  return lack ? CCT_OF_OTHER_SETTINGS : CCT_READ;
}

int cct_cells_ignore(const struct cct_options *cells, int n, enum cct_option_id id, char why[200]) {
  enum cct_reading reading = CCT_READ;
  char one[128];
  const char *of = "";
  int n_set = 0, n_other = 0;
  for (int c = 0; c < n; c++) {
    if (!cells[c].v[id].is_set)
      continue;
    enum cct_reading here = cct_cell_reads(&cells[c], id, one, &of);
    if (here == CCT_READ)
      return 0;
    if (!n_set++ || here == CCT_OF_OTHER_SETTINGS) { /* the nearer miss */
      reading = here;
      snprintf(why, 200, "%s", one);
    }
    n_other += here == CCT_OF_OTHER_WORKLOADS;
  }
  size_t length = n_set ? strlen(why) : 0;
  if (reading == CCT_OF_OTHER_WORKLOADS && n_other == n)
    snprintf(why + length, 200 - length, ", and no cell is %s", of);
  else if (reading == CCT_OF_OTHER_WORKLOADS)
    snprintf(why + length, 200 - length, ", and the cells that set it are of other workloads");
  return n_set > 0;
}

/* A default that asks for nothing where its key could be read. */
static int is_idle(const struct cct_options *cell, enum cct_option_id id) {
  enum cct_workload workload = cct_cell_workload(cell);
  switch (id) {
  case CCT_OPT_SCALE:
    return 1;
  case CCT_OPT_GEMM_SHAPE:
    return workload == CCT_WORKLOAD_COLLECTIVE;
  case CCT_OPT_DISPATCH:
  case CCT_OPT_ROUTING:
  case CCT_OPT_COMBINE_TYPE:
  case CCT_OPT_SKEW:
    return workload < CCT_WORKLOAD_COLLECTIVE && !may_be_parallel(cell, "ep=", 0);
  case CCT_OPT_OVERLAP_GRAD:
  case CCT_OPT_OVERLAP_PARAM:
    return !may_be_parallel(cell, "dp=", 0);
  default:
    return workload == CCT_WORKLOAD_NONE;
  }
}

int cct_cell_matters(const struct cct_options *cell, enum cct_option_id id) {
  char why[128];
  if (cct_option_table[id].scope != CCT_SCOPE_CELL || !cct_cell_text(cell, id))
    return 0;
  if (id == CCT_OPT_CONCURRENCY && is_open(cell)) /* all that is left to it is the default of --num-prompts */
    return cell->v[id].is_set && !cell->v[CCT_OPT_NUM_PROMPTS].has_value && !has_trace(cell);
  if (cell->v[id].is_set)
    return 1;
  return !is_idle(cell, id) && cct_cell_reads(cell, id, why, NULL) == CCT_READ;
}

/* ---- by backend ---- */

const char *cct_only_backend(enum cct_option_id id, const char **neutral_out) {
  static const struct {
    enum cct_option_id id;
    const char *backend, *neutral;
  } rows[] = {
      {CCT_OPT_SCALE, "host", "1"}, {CCT_OPT_LOCAL_REGISTER, "cuda", "0"}, {CCT_OPT_SHARED_GPU, "cuda", NULL},
      {CCT_OPT_PROCS, "sim", NULL}, {CCT_OPT_NOISE, "sim", NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].id == id) {
      *neutral_out = rows[i].neutral;
      return rows[i].backend;
    }
  return NULL;
}

int cct_has_in_place(const char *collective, const char *backend) {
  return strcmp(backend, "host") || (strncmp(collective, "all_to_all", 10) && strcmp(collective, "send_recv"));
}
