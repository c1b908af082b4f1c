/* SPDX-License-Identifier: Apache-2.0
 * What NCCL's plugin interfaces share, declared afresh from their documented binary layout: no NCCL header is needed to
 * build a plugin, and the numbers are held by the assertions of each interface's own header. */
#ifndef CCT_NCCL_COMMON_ABI_H
#define CCT_NCCL_COMMON_ABI_H

_Static_assert(sizeof(void *) == 8 && sizeof(int) == 4 && sizeof(float) == 4 && sizeof(double) == 8,
               "NCCL's plugin interfaces are defined for 64-bit machines");

/* ncclResult_t, as an int. */
enum {
  CCT_NCCL_SUCCESS = 0,
  CCT_NCCL_UNHANDLED_CUDA_ERROR = 1,
  CCT_NCCL_SYSTEM_ERROR = 2,
  CCT_NCCL_INTERNAL_ERROR = 3,
  CCT_NCCL_INVALID_ARGUMENT = 4,
  CCT_NCCL_INVALID_USAGE = 5,
  CCT_NCCL_REMOTE_ERROR = 6,
};

enum cct_nccl_level {
  CCT_NCCL_WARN = 2,
  CCT_NCCL_INFO = 3,
  CCT_NCCL_TRACE = 5,
};

/* NCCL_DEBUG_SUBSYS, as flags. */
enum {
  CCT_NCCL_INIT = 1,
  CCT_NCCL_NET = 16,
  CCT_NCCL_TUNING = 64,
};

/* NCCL's logger, one line a call without its end; may be NULL. Both leading numbers are ncclDebugLogLevel and a flag
 * set. */
typedef void cct_nccl_logger(int level, unsigned long flags, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
