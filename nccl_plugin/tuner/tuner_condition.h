/* SPDX-License-Identifier: Apache-2.0
 * What a communicator's rules may count on: the facts read on this machine, what all ranks agreed on, and why NVLS is
 * missing. Ranks that decide differently hang a job, so on more than one node what was read here decides nothing; there
 * the launcher agrees on a condition and passes it to all ranks as CCTAX_CONDITION: `cc` or `clear`, `no-multicast`,
 * `gpu=NAME`, with commas between. Where it is set it decides, on one node too. */
#ifndef CCT_TUNER_CONDITION_H
#define CCT_TUNER_CONDITION_H

#include <stddef.h>

#include "base/status.h"
#include "machine/gpu_passive.h"

/* Why NCCL has no NVLS, the first that holds. CC is the cause only if NVML says on and the attribute is 0. */
#define CCT_NVLS_CAUSES(X)                                                                                             \
  X(NONE, "no cause for it to be missing")                                                                             \
  X(CC, "missing: confidential computing is on, and the driver offers no multicast")                                   \
  X(DRIVER, "missing: the driver offers no multicast")                                                                 \
  X(ENVIRONMENT, "missing: NCCL_NVLS_ENABLE=0")                                                                        \
  X(FEW_GPUS, "missing: fewer than 3 GPUs in an NVLink domain")                                                        \
  X(FILTER, "missing: NCCL_ALGO or NCCL_PROTO leaves it out")                                                          \
  X(UNKNOWN, "not known: the driver does not say")

enum cct_nvls_cause {
#define CCT_NVLS_CAUSE_ENUM(name, text) CCT_NVLS_##name,
  CCT_NVLS_CAUSES(CCT_NVLS_CAUSE_ENUM)
#undef CCT_NVLS_CAUSE_ENUM
};
const char *cct_nvls_cause_text(enum cct_nvls_cause cause);

struct cct_tuner_environment { /* values of the variables of these names; NULL: not set */
  const char *cctax_condition, *nccl_nvls_enable, *nccl_algo, *nccl_proto;
};

struct cct_tuner_condition {
  int cc;               /* what rules go by: 1 on, 0 off, -1 nothing agreed or known */
  int is_multicast_off; /* agreed; otherwise each call's cost table says */
  char gpu[96];         /* what rules go by; "": nothing agreed or known */
  const char *source;   /* "read here", "CCTAX_CONDITION", ... */
  enum cct_nvls_cause cause;
};

/* `gpus` is the number of this communicator's GPUs in an NVLink domain. CCT_USAGE, with one line in `why_out` (`size`
 * bytes), for a CCTAX_CONDITION that is not understood; the condition is then one that nothing is known of. */
enum cct_status cct_tuner_condition_find(const struct cct_gpu_passive *facts, const struct cct_tuner_environment *env,
                                         size_t nodes, size_t gpus, struct cct_tuner_condition *condition_out,
                                         char *why_out, size_t size) CCT_CHECKED;

#endif
