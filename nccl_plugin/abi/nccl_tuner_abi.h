/* SPDX-License-Identifier: Apache-2.0
 * NCCL's tuner interface, versions 3 to 6, declared afresh from its documented binary layout.
 *   version  first NCCL  what changed
 *   3        2.22.3      the cost table
 *   4        2.24.3      getCollInfo is told whether the buffers are registered
 *   5        2.28.3      init is told the communicator's id, the NVLink domains, and the model's constants
 *   6        2.30.3      getChunkSize, which may be NULL
 * The cost table is passed as float ** but is one float[algorithms][protocols]; a cell < 0 is ignored by NCCL. */
#ifndef CCT_NCCL_TUNER_ABI_H
#define CCT_NCCL_TUNER_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "nccl_plugin/abi/nccl_common_abi.h"

struct cct_nccl_domains_v5 { /* ncclNvlDomainInfo_v5_t */
  int count, min_ranks, max_ranks;
};

struct cct_nccl_constants_v5 { /* ncclTunerConstants_v5_t: us and GB/s; [7] algorithms, [3] protocols */
  double base_latencies[7][3], hw_latencies[3][7][3];
  double ll_max_bws[4][3], ring_ll128_bws[4][3], tree_ll128_bws[4][3], tree_bws[4][3], nvls_tree_bws[4][3];
};

typedef int cct_nccl_init_v3(size_t ranks, size_t nodes, cct_nccl_logger *logger, void **context_out);
typedef int cct_nccl_init_v5(void **context_out, uint64_t comm_id, size_t ranks, size_t nodes, cct_nccl_logger *logger,
                             struct cct_nccl_domains_v5 *domains, struct cct_nccl_constants_v5 *constants);
typedef int cct_nccl_get_v3(void *context, int collective, size_t bytes, int pipe_ops, float **cost, int algorithms,
                            int protocols, int *channels);
typedef int cct_nccl_get_v4(void *context, int collective, size_t bytes, int pipe_ops, float **cost, int algorithms,
                            int protocols, int reg_buff, int *channels);
typedef int cct_nccl_finalize(void *context);
typedef int cct_nccl_chunk_v6(void *context, int collective, size_t bytes, int algorithm, int protocol, int channels,
                              size_t *chunk_bytes);

struct cct_nccl_tuner_v3 {
  const char *name;
  cct_nccl_init_v3 *init;
  cct_nccl_get_v3 *get;
  cct_nccl_finalize *finalize;
};
struct cct_nccl_tuner_v4 {
  const char *name;
  cct_nccl_init_v3 *init;
  cct_nccl_get_v4 *get;
  cct_nccl_finalize *finalize;
};
struct cct_nccl_tuner_v5 {
  const char *name;
  cct_nccl_init_v5 *init;
  cct_nccl_get_v4 *get;
  cct_nccl_finalize *finalize;
};
struct cct_nccl_tuner_v6 {
  const char *name;
  cct_nccl_init_v5 *init;
  cct_nccl_get_v4 *get;
  cct_nccl_finalize *finalize;
  cct_nccl_chunk_v6 *chunk;
};

#define CCT_NCCL_AT(type, member, at) _Static_assert(offsetof(struct type, member) == (at), #type "." #member)
#define CCT_NCCL_TUNER_LAYOUT(type, size)                                                                              \
  _Static_assert(sizeof(struct type) == (size), #type);                                                                \
  CCT_NCCL_AT(type, name, 0);                                                                                          \
  CCT_NCCL_AT(type, init, 8);                                                                                          \
  CCT_NCCL_AT(type, get, 16);                                                                                          \
  CCT_NCCL_AT(type, finalize, 24)
CCT_NCCL_TUNER_LAYOUT(cct_nccl_tuner_v3, 32);
CCT_NCCL_TUNER_LAYOUT(cct_nccl_tuner_v4, 32);
CCT_NCCL_TUNER_LAYOUT(cct_nccl_tuner_v5, 32);
CCT_NCCL_TUNER_LAYOUT(cct_nccl_tuner_v6, 40);
CCT_NCCL_AT(cct_nccl_tuner_v6, chunk, 32);
_Static_assert(sizeof(struct cct_nccl_domains_v5) == 12, "three ints");
_Static_assert(sizeof(struct cct_nccl_constants_v5) == 1152, "144 doubles");
CCT_NCCL_AT(cct_nccl_constants_v5, hw_latencies, 168);
CCT_NCCL_AT(cct_nccl_constants_v5, ll_max_bws, 672);
CCT_NCCL_AT(cct_nccl_constants_v5, nvls_tree_bws, 1056);

#endif
