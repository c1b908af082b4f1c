/* SPDX-License-Identifier: Apache-2.0
 * Simulated experiments whose true effect is known: block medians of two arms in boots. Written from the requirement
 * alone, knowing nothing of how intervals are computed:
 *   - a boot shifts everything measured in it by a normal factor of given standard deviation;
 *   - a block's noise is replayed from measured times of collectives on two H200 (tests/data/h200x2): log(time / median
 * of its row), each drawn with a random sign, so that it is centred and has that data's outliers;
 *   - within a block times drift: from its start to its end by a random amount up to `drift`, of which the median sees
 * half. All draws come from a counter-based generator keyed by (seed, experiment, arm, boot, block). */
#ifndef CCT_TESTS_STATS_NOISE_GENERATOR_H
#define CCT_TESTS_STATS_NOISE_GENERATOR_H

#include <stdint.h>

struct noise_pool {
  double *residual; /* log(time / its row's median) */
  int n;
};

struct noise_setting {
  int boots, blocks;  /* an arm; blocks a boot */
  double boot_sd;     /* standard deviation of a boot's log shift */
  double scale[2];    /* factor on boot shift and block noise of baseline and arm */
  double drift;       /* most that a block drifts from start to end, as a log ratio */
  double effect;      /* true log ratio */
  int is_interleaved; /* both arms in each boot, in the same rounds; else boots of their own */
};

/* Reads the time columns of nccl-tests-graph-grid.tsv; 0 on failure. The caller frees `residual`. */
int noise_pool_read(const char *path, struct noise_pool *pool_out);

/* The log of one block's median time. */
double noise_block(const struct noise_pool *pool, const struct noise_setting *setting, uint64_t seed, int experiment,
                   int arm, int boot, int block);

#endif
