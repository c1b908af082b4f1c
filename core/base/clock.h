/* SPDX-License-Identifier: Apache-2.0
 * The host clock of every measurement: CLOCK_MONOTONIC_RAW, which NTP does not steer and clock steps do not touch. */
#ifndef CCT_BASE_CLOCK_H
#define CCT_BASE_CLOCK_H

#include <stdint.h>

int64_t cct_clock_ns(void);

#endif
