/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic(cct_nccl_logger *) logger;

void cct_net_log_to(cct_nccl_logger *nccl_logger) {
  atomic_store(&logger, nccl_logger);
}

static void say(int level, const char *format, va_list args) {
  char text[512];
  vsnprintf(text, sizeof text, format, args);
  cct_nccl_logger *out = atomic_load(&logger);
  if (out)
    out(level, CCT_NCCL_SUBSYS_INIT | CCT_NCCL_SUBSYS_NET, "cctax", 0, "NET/cctax: %s", text);
  else if (level == CCT_NCCL_LOG_WARN)
    fprintf(stderr, "NET/cctax: %s\n", text);
}

enum cct_nccl cct_net_fail(enum cct_nccl result, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(CCT_NCCL_LOG_WARN, format, args);
  va_end(args);
  return result;
}

void cct_net_warn(const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(CCT_NCCL_LOG_WARN, format, args);
  va_end(args);
}

void cct_net_info(const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(CCT_NCCL_LOG_INFO, format, args);
  va_end(args);
}
