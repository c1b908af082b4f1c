/* SPDX-License-Identifier: Apache-2.0
 * NCCL's profiler plugin interface, v4 (NCCL 2.27), v5 (2.28.3) and v6 (2.29.2), written afresh from the documented
 * layouts. An event's description begins alike in all three; only what this plugin reads is declared. */
#ifndef CCT_NCCL_PROFILER_ABI_H
#define CCT_NCCL_PROFILER_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "nccl_plugin/abi/nccl_common_abi.h"

enum { /* kinds of events, as bits of the mask that init fills */
  CCT_NCCL_EVENT_COLL = 1 << 1,
  CCT_NCCL_EVENT_P2P = 1 << 2,
  CCT_NCCL_EVENT_KERNEL_CH = 1 << 6,
  CCT_NCCL_EVENT_GROUP_API = 1 << 8,      /* since v5 */
  CCT_NCCL_EVENT_KERNEL_LAUNCH = 1 << 11, /* since v5 */
  CCT_NCCL_EVENT_CE_COLL = 1 << 12,       /* since v6: by copy engines */

  CCT_NCCL_STATE_KERNEL_CH_STOP = 22,
};

struct cct_nccl_coll { /* algo: RING, TREE, ...; proto: LL, LL128, SIMPLE: what NCCL chose */
  uint64_t seq;
  const char *func;
  const void *send;
  void *recv;
  size_t count;
  int root;
  const char *datatype;
  uint8_t channels, warps;
  const char *algo, *proto;
};

struct cct_nccl_ce_coll {
  uint64_t seq;
  const char *func;
  const void *send;
  void *recv;
  size_t count;
  int root;
  const char *datatype, *sync_strategy;
};

struct cct_nccl_p2p {
  const char *func;
  void *buffer;
  const char *datatype;
  size_t count;
  int peer;
  uint8_t channels;
};

struct cct_nccl_event {
  uint64_t type; /* in v4 only the first byte is one */
  void *parent;
  int rank;
  union {
    struct cct_nccl_coll coll;
    struct cct_nccl_ce_coll ce_coll;
    struct cct_nccl_p2p p2p;
    struct {
      _Bool is_captured; /* into a CUDA graph */
      int depth;
    } group;
    struct {
      uint8_t channel;
      uint64_t gpu_ns; /* %globaltimer */
    } kernel_ch;
  };
};

union cct_nccl_event_args {
  uint64_t gpu_ns;
};

#define CCT_NCCL_PROFILER_EVENTS                                                                                       \
  int (*start_event)(void *context, void **event_out, struct cct_nccl_event *description);                             \
  int (*stop_event)(void *event);                                                                                      \
  int (*record_event_state)(void *event, int state, union cct_nccl_event_args *args);                                  \
  int (*finalize)(void *context)

struct cct_nccl_profiler_v4 {
  const char *name;
  int (*init)(void **context_out, int *mask_out, const char *comm_name, uint64_t comm_id, int nodes, int ranks,
              int rank, cct_nccl_logger *logger);
  CCT_NCCL_PROFILER_EVENTS;
};

struct cct_nccl_profiler_v5 { /* v6 is the same */
  const char *name;
  int (*init)(void **context_out, uint64_t comm_id, int *mask_out, const char *comm_name, int nodes, int ranks,
              int rank, cct_nccl_logger *logger);
  CCT_NCCL_PROFILER_EVENTS;
};

#define CCT_ABI(type, member, at)                                                                                      \
  _Static_assert(offsetof(struct type, member) == (at), #type "." #member " is not where NCCL has it")
CCT_ABI(cct_nccl_profiler_v4, finalize, 40);
CCT_ABI(cct_nccl_profiler_v5, finalize, 40);
CCT_ABI(cct_nccl_event, parent, 8);
CCT_ABI(cct_nccl_event, rank, 16);
CCT_ABI(cct_nccl_event, coll, 24);
CCT_ABI(cct_nccl_coll, count, 32);
CCT_ABI(cct_nccl_coll, datatype, 48);
CCT_ABI(cct_nccl_coll, warps, 57);
CCT_ABI(cct_nccl_coll, algo, 64);
CCT_ABI(cct_nccl_coll, proto, 72);
CCT_ABI(cct_nccl_ce_coll, sync_strategy, 56);
CCT_ABI(cct_nccl_p2p, peer, 32);
CCT_ABI(cct_nccl_p2p, channels, 36);
#undef CCT_ABI

#endif
