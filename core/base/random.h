/* SPDX-License-Identifier: Apache-2.0
 * Counter-based random numbers: a value is a function of (seed, counter), so that a draw does not depend on how many
 * processes share the work or in which order they draw. The mixing function is SplitMix64's finaliser (Steele, Lea and
 * Flood, OOPSLA 2014, "Fast splittable pseudorandom number generators", section 4). */
#ifndef CCT_BASE_RANDOM_H
#define CCT_BASE_RANDOM_H

#include <stdint.h>

uint64_t cct_random_u64(uint64_t seed, uint64_t counter);
/* Folds another coordinate (a rank, a step) into a seed. */
uint64_t cct_random_fold(uint64_t seed, uint64_t coordinate);
double cct_random_unit(uint64_t seed, uint64_t counter);                  /* uniform in [0, 1) */
int64_t cct_random_below(uint64_t seed, uint64_t counter, int64_t bound); /* uniform in [0, bound); bound > 0 */
double cct_random_normal(uint64_t seed, uint64_t counter);                /* standard normal (Box-Muller) */

#endif
