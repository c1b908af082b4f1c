/* SPDX-License-Identifier: Apache-2.0
 * Messages of the net plugin through NCCL's logger (NCCL_DEBUG=WARN shows them), or on stderr before NCCL has given
 * one. Whoever decides an error says one line; everyone above passes the result on. */
#ifndef CCT_NCCL_NET_LOG_H
#define CCT_NCCL_NET_LOG_H

#include "base/log.h"
#include "nccl_plugin/net/net_abi.h"

void cct_net_log_to(cct_nccl_logger *logger); /* NULL: stderr */
/* Logs one WARN line and returns `result`. */
enum cct_nccl cct_net_fail(enum cct_nccl result, const char *format, ...) CCT_PRINTF(2, 3);
void cct_net_warn(const char *format, ...) CCT_PRINTF(1, 2);
void cct_net_info(const char *format, ...) CCT_PRINTF(1, 2); /* nothing without a logger */

#endif
