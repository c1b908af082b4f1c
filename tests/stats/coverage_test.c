/* SPDX-License-Identifier: Apache-2.0
 * The truth test of the intervals: simulated experiments with a known effect; how often does the 95 % interval hold it,
 * how often are two arms of one condition called different, and is the smallest visible effect seen with its power?
 *   coverage_test DATA [EXPERIMENTS]: 20000 by default, as docs/statistics.md prints them; ctest takes fewer.
 * Exit 1 where a bound is missed. The bounds are widened by three standard errors of a proportion when fewer than 20000
 * experiments are drawn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats/compare.h"
#include "stats/stats.h"
#include "tests/stats/noise_generator.h"

enum {
  FULL = 20000,
  MAX_UNITS = 128
};

struct scenario {
  const char *name;
  struct noise_setting setting;
  double least, most; /* bounds of coverage in per cent; 0: printed, not judged */
};

#define SETTING_OF(b, sd, noisy, joint, most_drift)                                                                    \
  { .boots = b, .blocks = 5, .boot_sd = sd, .scale = {1, noisy}, .drift = most_drift, .is_interleaved = joint }
#define SETTING(b, sd, noisy, joint) SETTING_OF(b, sd, noisy, joint, 0.006)
static const struct scenario scenarios[] = {
    {"boot shift 0.5 %", SETTING(2, 0.005, 1, 0), 0, 0},
    {"boot shift 0.5 %", SETTING(3, 0.005, 1, 0), 93.5, 96.5},
    {"boot shift 0.5 %", SETTING(5, 0.005, 1, 0), 93.5, 96.5},
    {"boot shift 0.5 %", SETTING(10, 0.005, 1, 0), 93.5, 96.5},
    {"boot shift 1 %", SETTING(2, 0.01, 1, 0), 0, 0},
    {"boot shift 1 %", SETTING(3, 0.01, 1, 0), 93.5, 96.5},
    {"boot shift 1 %", SETTING(5, 0.01, 1, 0), 93.5, 96.5},
    {"boot shift 1 %", SETTING(10, 0.01, 1, 0), 93.5, 96.5},
    {"no boot shift", SETTING(2, 0, 1, 0), 0, 0},
    {"no boot shift", SETTING(3, 0, 1, 0), 93.5, 98.5},
    {"no boot shift", SETTING(5, 0, 1, 0), 93.5, 98.5},
    {"no boot shift", SETTING(10, 0, 1, 0), 93.5, 98.5},
    /* Printed: a fifth of the data's residuals is exactly 0, so that without drift medians tie and t covers too much.
     */
    {"no boot shift, no drift", SETTING_OF(3, 0, 1, 0, 0), 0, 0},
    {"no boot shift, no drift", SETTING_OF(5, 0, 1, 0, 0), 0, 0},
    {"no boot shift, no drift", SETTING_OF(10, 0, 1, 0, 0), 0, 0},
    {"arm twice as noisy, shift 0.5 %", SETTING(2, 0.005, 2, 0), 0, 0},
    {"arm twice as noisy, shift 0.5 %", SETTING(3, 0.005, 2, 0), 92.5, 100},
    {"arm twice as noisy, shift 0.5 %", SETTING(5, 0.005, 2, 0), 92.5, 100},
    {"arm twice as noisy, shift 0.5 %", SETTING(10, 0.005, 2, 0), 92.5, 100},
    {"arm twice as noisy, shift 1 %", SETTING(3, 0.01, 2, 0), 92.5, 100},
    {"arm twice as noisy, shift 1 %", SETTING(5, 0.01, 2, 0), 92.5, 100},
    {"arm twice as noisy, shift 1 %", SETTING(10, 0.01, 2, 0), 92.5, 100},
    {"arm twice as noisy, no shift", SETTING(3, 0, 2, 0), 92.5, 100},
    {"arm twice as noisy, no shift", SETTING(5, 0, 2, 0), 92.5, 100},
    {"arm twice as noisy, no shift", SETTING(10, 0, 2, 0), 92.5, 100},
    /* Both arms in each boot, by rounds. Printed: the requirement is about boots of their own. */
    {"interleaved, shift 1 %", SETTING(1, 0.01, 1, 1), 0, 0},
    {"interleaved, shift 1 %", SETTING(3, 0.01, 1, 1), 0, 0},
    {"interleaved, shift 1 %", SETTING(5, 0.01, 1, 1), 0, 0},
};

struct tally {
  int held, different, seen;
  double squares; /* of the smallest visible effect that was said */
};

static int experiment(const struct noise_pool *pool, const struct noise_setting *setting, int number,
                      struct tally *tally) {
  struct cct_unit units[2][MAX_UNITS];
  int n = setting->boots * setting->blocks;
  for (int arm = 0; arm < 2; arm++)
    for (int i = 0; i < n; i++) {
      int boot = i / setting->blocks, block = i % setting->blocks;
      units[arm][i] = (struct cct_unit){setting->is_interleaved ? boot : 2 * boot + arm, block,
                                        noise_block(pool, setting, 20261130, number, arm, boot, block)};
    }
  struct cct_comparison c;
  if (cct_compare(units[0], (size_t)n, units[1], (size_t)n, &c) != CCT_OK)
    return 0;
  const double rounding = 1e-12; /* of an interval of zero width, where all medians tie */
  tally->held += c.lo - rounding <= setting->effect && setting->effect <= c.hi + rounding;
  tally->different += c.lo > rounding || c.hi < -rounding;
  tally->squares += c.se * c.se;
  tally->seen++;
  return 1;
}

static int run(const struct noise_pool *pool, const struct scenario *scenario, int experiments) {
  struct noise_setting setting = scenario->setting;
  struct tally with = {0}, null = {0}, power = {0};
  double slack = experiments < FULL ? 300 * sqrt(0.05 * 0.95 / experiments) : 0;
  for (int i = 0; i < experiments; i++) {
    setting.effect = log(1.02); /* an effect of the size that is looked for */
    if (!experiment(pool, &setting, i, &with))
      return 0;
    setting.effect = 0; /* two arms of one condition, in other experiments */
    if (!experiment(pool, &setting, FULL + i, &null))
      return 0;
  }
  int n = setting.boots * setting.blocks, joint = setting.is_interleaved;
  double df = joint ? (setting.boots > 1 ? setting.boots - 1 : n - 1) : 2 * setting.boots - 2;
  double visible = cct_smallest_visible(sqrt(null.squares / experiments), df);
  setting.effect = visible;
  for (int i = 0; i < experiments; i++)
    if (!experiment(pool, &setting, 2 * FULL + i, &power))
      return 0;
  double covered = 100.0 * with.held / experiments, different = 100.0 * null.different / experiments;
  double seen = 100.0 * power.different / experiments;
  int is_judged = scenario->most > 0;
  int is_right =
      !is_judged || (covered >= scenario->least - slack && covered <= scenario->most + slack &&
                     different <= 100 - scenario->least + slack && different >= 100 - scenario->most - slack);
  /* The smallest visible effect promises 80 % where noise is near normal; outliers only make it a promise kept more
   * often. */
  int keeps_power = !is_judged || seen >= 80 - 1.5 - 2 * slack;
  printf("| %s | %d | %.1f %% | %.1f %% | %.2f %% | %.1f %% |%s\n", scenario->name, setting.boots, covered, different,
         100 * expm1(visible), seen, is_right && keeps_power ? "" : " MISSED");
  return is_right && keeps_power;
}

int main(int argc, char **argv) {
  struct noise_pool pool;
  int experiments = argc > 2 ? atoi(argv[2]) : FULL, failed = 0;
  if (argc < 2 || experiments < 1 || !noise_pool_read(argv[1], &pool)) {
    fprintf(stderr, "usage: coverage_test nccl-tests-graph-grid.tsv [EXPERIMENTS]\n");
    return 2;
  }
  printf("| noise | boots | interval holds the truth | one condition called different | smallest visible | seen with "
         "it |\n"
         "|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
    failed += !run(&pool, &scenarios[i], experiments);
  free(pool.residual);
  return failed != 0;
}
