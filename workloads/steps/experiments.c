/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/steps/experiments.h"

#include <string.h>

#include "base/text.h"

/* Costly ones are performed a few times a block: the repeats that count are the blocks. */
static const struct cct_experiment experiments[] = {
    {"aes_rate", 1, 5, {{"aes", "GB/s", "higher"}}},
    {"aes_copy", 1, 5, {{"aes", "GB/s", "higher"}}},
    {"copy_rate", 1, 0, {{"memcpy", "GB/s", "higher"}}},
    {"seal_chunk", 1, 0, {{"seal", "us", "lower"}}},
    {"submission", 0, 0, {{"submission", "us", "lower"}}},
    {"clock", 1, 5, {{"host", "ns", "lower"}, {"globaltimer", "ns", "lower"}, {"event", "ns", "lower"}}},
    {"timer_step", 0, 1, {{"step", "ns", "lower"}}},
    {"bare_launch", 1, 0, {{"host", "ns", "lower"}, {"with_sync", "ns", "lower"}}},
    {"bare_sync", 1, 0, {{"idle", "ns", "lower"}, {"behind", "ns", "lower"}, {"query", "ns", "lower"}}},
    {"graph_capture",
     1,
     5,
     {{"capture", "ns", "lower"}, {"instantiate", "ns", "lower"}, {"first_replay", "ns", "lower"}}},
    {"host_register", 1, 5, {{"error", "code", "lower"}, {"call", "ns", "lower"}}},
    {"stale_memory", 1, 1, {{"stale_gpu", "reads", "lower"}, {"stale_host", "reads", "lower"}}},
    {"caller_blocked",
     2,
     3,
     {{"h2d_pinned", "ns", "lower"},
      {"d2h_pinned", "ns", "lower"},
      {"h2d_pageable", "ns", "lower"},
      {"d2h_pageable", "ns", "lower"}}},
    {"delay", 1, 5, {{"eager", "ns", "lower"}, {"graph", "ns", "lower"}}},
    {"rest", 4, 1, {{"in_a_row", "ns", "lower"}, {"behind_delay", "ns", "lower"}, {"after_idleness", "ns", "lower"}}},
    {"memory", 0, 1, {{"total", "bytes", "higher"}, {"reserved", "bytes", "lower"}, {"free", "bytes", "higher"}}},
    {"marker", 1, 1, {{"found", "words", "lower"}}},
    {"managed", 1, 5, {{"error", "code", "lower"}, {"first_touch", "ns", "lower"}}},
    {"pinned", 1, 5, {{"error", "code", "lower"}}},
    {"overlap", 1, 3, {{"kernels", "ratio", "lower"}, {"copy", "ratio", "lower"}}},
    {"mapped", 1, 5, {{"error", "code", "lower"}}},
    {"peer", 0, 1, {{"without_access", "pairs", "lower"}, {"ipc_error", "code", "lower"}}},
    {"p2p_copy", 3, 5, {{"rate", "GB/s", "higher"}}},
    {"short_write", 1, 5, {{"one_way", "us", "lower"}}},
    {"dispatch", 2, 5, {{"one_way", "us", "lower"}, {"rate", "GB/s", "higher"}}},
    {"processes", 2, 1, {{"rate", "GB/s", "higher"}}},
    {"context", 0, 1, {{"create", "ns", "lower"}}},
    {"communicator", 0, 3, {{"create", "ns", "lower"}}},
    {"gdr", 0, 1, {{"supported", "yes", "higher"}}},
    {"checkpoint", 0, 1, {{"supported", "yes", "higher"}}},
};
enum {
  n_experiments = sizeof experiments / sizeof *experiments
};

const struct cct_experiment *cct_experiment_at(int index) {
  return index >= 0 && index < n_experiments ? &experiments[index] : NULL;
}

int cct_experiment_outputs(const struct cct_experiment *experiment) {
  int n = 0;
  while (n < CCT_MOST_OUTPUTS && experiment->outputs[n].name)
    n++;
  return n;
}

static enum cct_status find(const char *text, const char *name, const struct cct_experiment **experiment_out) {
  const char *names[n_experiments];
  for (int i = 0; i < n_experiments; i++) {
    names[i] = experiments[i].name;
    if (!strcmp(names[i], name)) {
      *experiment_out = &experiments[i];
      return CCT_OK;
    }
  }
  const char *near = cct_closest(name, names, n_experiments);
  return cct_fail(CCT_USAGE, "experiment '%s': there is none of that name%s%s%s", text, near ? "; did you mean " : "",
                  near ? near : "", near ? "?" : ": docs/probe.md lists them");
}

enum cct_status cct_experiment_parse(const char *text, struct cct_experiment_call *call_out) {
  struct cct_experiment_call call = {0};
  char words[128], *next, *word;
  int n = 0;
  if (!text || strlen(text) >= sizeof words)
    return cct_fail(CCT_USAGE, "probe experiment: give it as NAME/PARAMETER/.., such as host_register/4096");
  memcpy(words, text, strlen(text) + 1);
  next = strchr(words, '/');
  if (next)
    *next++ = '\0';
  enum cct_status status = find(text, words, &call.experiment);
  for (; !status && (word = next); n++) {
    int64_t value;
    next = strchr(word, '/');
    if (next)
      *next++ = '\0';
    if (!cct_parse_bytes(word, &value) || value < 0)
      return cct_fail(CCT_USAGE, "experiment '%s': '%s' is no whole number", text, word);
    if (n < CCT_MOST_PARAMETERS)
      call.parameters[n] = (double)value;
  }
  if (!status && n != call.experiment->n_parameters)
    status =
        cct_fail(CCT_USAGE, "experiment '%s': it takes %d parameters, not %d", text, call.experiment->n_parameters, n);
  if (!status)
    *call_out = call;
  return status;
}
