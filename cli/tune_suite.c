/* SPDX-License-Identifier: Apache-2.0
 * The cells of a tune's runs. One process measures every choice of every size, those of one size behind each other. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/tune.h"
#include "workloads/program/program.h"

/* How many collectives a graph holds, and how often a sample launches it: about a millisecond of an H200, but at least
 * two collectives. */
static void amounts(int64_t bytes, int64_t *iters_out, int64_t *launches_out) {
  *iters_out = bytes <= 1 << 20 ? 20 : bytes <= 16 << 20 ? 8 : bytes <= 128 << 20 ? 4 : 2;
  *launches_out = bytes <= 1 << 20 ? 5 : bytes <= 16 << 20 ? 2 : 1;
}

static struct cct_json *cell(const struct cct_tune_plan *plan, int kind, int64_t bytes, int64_t checks,
                             const char *choice) {
  struct cct_json *object = cct_json_new_object();
  int64_t iters, launches;
  amounts(bytes, &iters, &launches);
  cct_json_set_string(object, "workload", "collective");
  cct_json_set_string(object, "collective", cct_tune_kind_name(plan->kinds[kind]));
  cct_json_set_i64(object, "np", plan->ranks);
  cct_json_set_string(object, "type", plan->type);
  cct_json_set_i64(object, "bytes", bytes);
  cct_json_set_i64(object, "buffer_bytes", plan->bytes[plan->n_bytes - 1]);
  cct_json_set_string(object, "place", "out");
  cct_json_set_i64(object, "iters", iters);
  cct_json_set_i64(object, "cudagraph", launches);
  cct_json_set_i64(object, "check", checks);
  if (choice)
    cct_json_set_string(object, "comm_choice", choice);
  return object;
}

static struct cct_json *suite_of(const char *question, struct cct_json *cells) {
  struct cct_json *suite = cct_json_new_object();
  cct_json_set_i64(suite, "schema", 1);
  cct_json_set_string(suite, "question", question);
  cct_json_set(suite, "cells", cells);
  return suite;
}

/* Beside each collective a product in bf16 that takes about as long on an H200: 600 TFLOP/s against 350 GB/s. */
static void beside_shape(int64_t bytes, char out[48]) {
  double us = (double)bytes / 350e3;
  int64_t rows = (int64_t)(us * 600e6 / (2 * 8192.0 * 8192.0) / 128 + 0.5) * 128;
  snprintf(out, 48, "%lldx8192x8192", (long long)(rows < 128 ? 128 : rows));
}

/* The largest sizes come first: the first cells of a process are up to 3 % faster on an H200 where the GPU's own work
 * is the time, and that would be NCCL's default at the smallest size. */
struct cct_json *cct_tune_measure_suite(const struct cct_tune_plan *plan, const struct cct_tune_data *first) {
  struct cct_json *cells = cct_json_new_array();
  char choice[48], shape[48];
  for (int k = 0; k < plan->n_kinds; k++)
    for (int s = plan->n_bytes - 1; s >= 0; s--)
      for (int i = 0; i < plan->n_choices; i++) {
        int c = (i + s) % plan->n_choices; /* none always comes first */
        if (!cct_tune_is_measured(plan, first, k, s, c))
          continue;
        cct_json_add(cells, cell(plan, k, cct_tune_bytes(plan, k, plan->bytes[s]), 0,
                                 c ? cct_tune_choice_text(plan, c, choice) : NULL));
      }
  for (int k = 0; k < plan->n_kinds; k++)
    for (int s = 0; s < plan->n_beside; s++)
      for (int c = 0; c < plan->n_channels; c++) {
        if (!plan->is_usable[k][c * plan->each])
          continue;
        struct cct_json *object = cell(plan, k, cct_tune_bytes(plan, k, plan->beside[s]), 0,
                                       c ? cct_tune_choice_text(plan, c * plan->each, choice) : NULL);
        beside_shape(plan->beside[s], shape);
        cct_json_set_string(object, "gemm", shape);
        cct_json_add(cells, object);
      }
  return suite_of("Which choice of NCCL's is the fastest, by collective and size?", cells);
}

int cct_tune_is_measured(const struct cct_tune_plan *plan, const struct cct_tune_data *first, int kind, int size,
                         int choice) {
  if (!plan->is_usable[kind][choice])
    return 0;
  if (!first || choice % plan->each == 0)
    return 1;
  struct cct_tune_grid grid = cct_tune_alone(plan, first, kind);
  return !cct_tune_is_hopeless(&grid, size, choice, 0);
}

#define MOST_CHECKED ((int64_t)16 << 20) /* elements are compared on the host */

struct cct_json *cct_tune_verify_suite(const struct cct_tune_plan *plan, const struct cct_tune_decision *decision,
                                       const struct cct_tune_cells *only) {
  struct cct_json *cells = cct_json_new_array();
  char choice[48];
  for (int k = 0; k < plan->n_kinds; k++)
    for (int s = 0; s < plan->n_bytes; s++) {
      int64_t bytes = cct_tune_bytes(plan, k, plan->bytes[s]), checks = bytes <= MOST_CHECKED;
      if (only && !only->is_in[k][s])
        continue;
      cct_json_add(cells, cell(plan, k, bytes, checks, NULL));
      if (!cct_tune_verifies_by_plugin(plan)) /* without NCCL the choice itself stands for the rule that makes it */
        cct_json_add(
            cells, cell(plan, k, bytes, checks,
                        cct_tune_choice_text(plan, decision->settings[decision->channels].picks[k][s].choice, choice)));
    }
  return suite_of("Do the rules of a tune hold against NCCL's own choice?", cells);
}

int cct_tune_verifies_by_plugin(const struct cct_tune_plan *plan) {
  return !strcmp(plan->backend, "cuda");
}

static enum cct_status set(struct cct_options *flags, enum cct_option_id id, const char *text) {
  return cct_option_set(flags, id, text, cct_option_table[id].name);
}

static enum cct_status set_number(struct cct_options *flags, enum cct_option_id id, int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)value);
  return set(flags, id, text);
}

enum cct_status cct_tune_flags(const struct cct_tune_plan *plan, const struct cct_options *flags, const char *folder,
                               int64_t rounds, struct cct_options *flags_out) {
  static const enum cct_option_id launching[] = {CCT_OPT_DEADLINE, CCT_OPT_LAUNCHER, CCT_OPT_PROCS, CCT_OPT_QUIET};
  struct cct_options own;
  enum cct_status status = cct_options_init(&own);
  if (status)
    return status;
  for (size_t i = 0; !status && i < sizeof launching / sizeof *launching; i++) {
    const struct cct_value *value = &flags->v[launching[i]];
    if (value->is_set && cct_option_table[launching[i]].kind == CCT_KIND_TEXT)
      status = set(&own, launching[i], value->s);
    else if (value->is_set)
      status = set_number(&own, launching[i], value->i);
  }
  if (!status)
    status = set(&own, CCT_OPT_OUTPUT, folder);
  if (!status)
    status = set(&own, CCT_OPT_BACKEND, plan->backend);
  if (!status && *plan->condition)
    status = set(&own, CCT_OPT_CONDITION, plan->condition);
  if (!status && *plan->noise)
    status = set(&own, CCT_OPT_NOISE, plan->noise);
  if (!status && *plan->profile && (!strcmp(plan->backend, "sim") || !strcmp(plan->condition, "stripped")))
    status = set(&own, CCT_OPT_PROFILE_FILE, plan->profile);
  if (!status && plan->is_shared_gpu)
    status = set(&own, CCT_OPT_SHARED_GPU, "1");
  if (!status)
    status = set_number(&own, CCT_OPT_ROUNDS, rounds);
  if (!status)
    status = set_number(&own, CCT_OPT_SAMPLES, plan->samples);
  if (!status)
    status = set_number(&own, CCT_OPT_WARMUP, plan->warmup);
  if (!status)
    status = set_number(&own, CCT_OPT_SEED, plan->seed);
  if (status) {
    cct_options_free(&own);
    return status;
  }
  *flags_out = own;
  return CCT_OK;
}
