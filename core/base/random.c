/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <math.h>

static const uint64_t golden_gamma = 0x9e3779b97f4a7c15u;

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t cct_random_u64(uint64_t seed, uint64_t counter) {
  return mix(mix(seed) + golden_gamma * (counter + 1));
}

uint64_t cct_random_fold(uint64_t seed, uint64_t coordinate) {
  return cct_random_u64(seed ^ golden_gamma, coordinate);
}

double cct_random_unit(uint64_t seed, uint64_t counter) {
  return (double)(cct_random_u64(seed, counter) >> 11) * 0x1p-53;
}

int64_t cct_random_below(uint64_t seed, uint64_t counter, int64_t bound) {
  return (int64_t)(((unsigned __int128)cct_random_u64(seed, counter) * (uint64_t)bound) >> 64);
}

double cct_random_normal(uint64_t seed, uint64_t counter) {
  double u = 1.0 - cct_random_unit(seed, 2 * counter); /* (0, 1]: the logarithm stays finite */
  double v = cct_random_unit(seed, 2 * counter + 1);
  return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
