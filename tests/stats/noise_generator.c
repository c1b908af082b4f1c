/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/stats/noise_generator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int noise_pool_read(const char *path, struct noise_pool *pool_out) {
  FILE *file = fopen(path, "re");
  char line[512];
  struct noise_pool pool = {0};
  if (!file)
    return 0;
  while (fgets(line, sizeof line, file)) {
    double x[5], sorted[5];
    char *times = strrchr(line, '\t');
    if (!times || sscanf(times, "%lf %lf %lf %lf %lf", &x[0], &x[1], &x[2], &x[3], &x[4]) != 5)
      continue;
    double *grown = realloc(pool.residual, (size_t)(pool.n + 5) * sizeof *grown);
    if (!grown)
      break;
    pool.residual = grown;
    memcpy(sorted, x, sizeof x);
    qsort(sorted, 5, sizeof *sorted, by_value);
    for (int i = 0; i < 5; i++)
      pool.residual[pool.n++] = log(x[i] / sorted[2]);
  }
  fclose(file);
  *pool_out = pool;
  return pool.n > 0;
}

double noise_block(const struct noise_pool *pool, const struct noise_setting *setting, uint64_t seed, int experiment,
                   int arm, int boot, int block) {
  uint64_t world = cct_random_fold(seed, (uint64_t)experiment);
  uint64_t machine = cct_random_fold(world, (uint64_t)(setting->is_interleaved ? boot : 2 * boot + arm));
  uint64_t here = cct_random_fold(cct_random_fold(machine, (uint64_t)arm + 2), (uint64_t)block);
  double shift = setting->boot_sd * cct_random_normal(machine, 0);
  double noise = pool->residual[cct_random_below(here, 0, pool->n)] * (cct_random_unit(here, 1) < 0.5 ? -1 : 1);
  double drift = setting->drift * (2 * cct_random_unit(here, 2) - 1) / 2;
  return 3 + (arm ? setting->effect : 0) + setting->scale[arm] * (shift + noise) + drift;
}
