/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/tuner/core_emulator.h"

#include <dlfcn.h>
#include <float.h>
#include <stdio.h>

void cct_emulator_load(const char *path, int newest, struct cct_emulator *emulator_out) {
  struct cct_emulator e = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
  for (int api = newest; e.library && api >= 3 && !e.api; api--) {
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclTunerPlugin_v%d", api);
    const void *found = dlsym(e.library, symbol);
    if (found) {
      e.api = api;
      *(api < 5 ? (const void **)&e.v3_or_v4 : (const void **)&e.v5_or_v6) = found;
    }
  }
  *emulator_out = e;
}

void cct_emulator_unload(struct cct_emulator *emulator) {
  if (emulator->library)
    dlclose(emulator->library);
  *emulator = (struct cct_emulator){0};
}

int cct_emulator_init(const struct cct_emulator *e, size_t ranks, size_t nodes, cct_nccl_logger *logger,
                      void **context_out) {
  if (e->api < 5)
    return e->v3_or_v4->init(ranks, nodes, logger, context_out);
  int gpus = (int)(ranks / nodes);
  struct cct_nccl_domains_v5 domains = {(int)nodes, gpus, gpus};
  struct cct_nccl_constants_v5 constants = {.base_latencies = {{6.8, 14, 8.4}, {6.6, 14, 8.4}}};
  return e->v5_or_v6->init(context_out, e->comm_id, ranks, nodes, logger, &domains, &constants);
}

int cct_emulator_get(const struct cct_emulator *e, void *context, int collective, size_t bytes, int pipe_ops,
                     int reg_buff, float *cost, int algorithms, int protocols, int *channels) {
  float **table = (float **)(void *)cost; /* NCCL's type for what is one array */
  *channels = e->channels_preset;
  if (e->api == 3)
    return ((const struct cct_nccl_tuner_v3 *)(const void *)e->v3_or_v4)
        ->get(context, collective, bytes, pipe_ops, table, algorithms, protocols, channels);
  cct_nccl_get_v4 *get = e->api == 4 ? e->v3_or_v4->get : e->v5_or_v6->get;
  return get(context, collective, bytes, pipe_ops, table, algorithms, protocols, reg_buff, channels);
}

int cct_emulator_finalize(const struct cct_emulator *e, void *context) {
  return e->api < 5 ? e->v3_or_v4->finalize(context) : e->v5_or_v6->finalize(context);
}

int cct_emulator_pick(enum cct_emulated_nccl nccl, const float *before, const float *cost, int cells) {
  float lowest = nccl == CCT_NCCL_TO_2_28 ? 3.6e9f : FLT_MAX;
  int picked = -1;
  for (int i = 0; i < cells; i++) {
    if (nccl == CCT_NCCL_LATER) {
      if (before[i] >= 0 && cost[i] <= lowest) {
        lowest = cost[i];
        picked = i;
      }
    } else if (cost[i] >= 0 && cost[i] < lowest) {
      lowest = cost[i];
      picked = i;
    }
  }
  return picked;
}
