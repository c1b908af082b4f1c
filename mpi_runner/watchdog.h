/* SPDX-License-Identifier: Apache-2.0
 * A thread that ends this process when it makes no progress: on expiry one line that names the last operation, then
 * _exit(3). A hung collective cannot be left otherwise, and a rank that ends takes the launcher's whole job with it.
 * Time is CLOCK_MONOTONIC: a stepped wall clock neither triggers nor delays it. */
#ifndef CCT_MPI_RUNNER_WATCHDOG_H
#define CCT_MPI_RUNNER_WATCHDOG_H

#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

enum cct_status cct_watchdog_start(int64_t deadline_s) CCT_CHECKED; /* one a process */
/* Progress: the deadline counts from here, and this is the last operation. */
void cct_watchdog_feed(const char *format, ...) CCT_PRINTF(1, 2);
void cct_watchdog_stop(void);

#endif
