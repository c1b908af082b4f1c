/* SPDX-License-Identifier: Apache-2.0
 * The part of NCCL that a tuner meets, for machines without a GPU: finding the library and the newest interface that
 * both know, and picking an algorithm from the cost table afterwards. Only tests link it. */
#ifndef CCT_CORE_EMULATOR_H
#define CCT_CORE_EMULATOR_H

#include "nccl_plugin/abi/nccl_tuner_abi.h"

enum cct_emulated_nccl { /* how a cell is picked */
  CCT_NCCL_TO_2_28,      /* cells >= 0 below 3.6e9; of equals the first */
  CCT_NCCL_TO_2_30,      /* the same without the bound */
  CCT_NCCL_LATER,        /* whatever was valid before the tuner, as it stands now; of equals the last */
};

struct cct_emulator {
  void *library;
  int api;             /* 0: no tuner, the job runs untuned */
  uint64_t comm_id;    /* of the communicators it inits; this and the next may be set after loading */
  int channels_preset; /* what *channels holds when the tuner is asked: 0 in every NCCL */
  const struct cct_nccl_tuner_v4 *v3_or_v4;
  const struct cct_nccl_tuner_v6 *v5_or_v6;
};

/* As NCCL does: dlopen, RTLD_NOW | RTLD_LOCAL, then the symbols from `newest` down to 3. A failure is silent. */
void cct_emulator_load(const char *path, int newest, struct cct_emulator *emulator_out);
void cct_emulator_unload(struct cct_emulator *emulator);

int cct_emulator_init(const struct cct_emulator *emulator, size_t ranks, size_t nodes, cct_nccl_logger *logger,
                      void **context_out);
int cct_emulator_get(const struct cct_emulator *emulator, void *context, int collective, size_t bytes, int pipe_ops,
                     int reg_buff, float *cost, int algorithms, int protocols, int *channels);
int cct_emulator_finalize(const struct cct_emulator *emulator, void *context);

/* The cell that is picked from `cost`, -1 if none; `before` is the table as the tuner got it. */
int cct_emulator_pick(enum cct_emulated_nccl nccl, const float *before, const float *cost, int cells);

#endif
