/* SPDX-License-Identifier: Apache-2.0
 * Two arms of one cell, from block medians to an effect with its interval. The unit is the logarithm of a block's
 * median time; the effect is a difference of such logarithms, so exp() of it is the ratio of medians. Blocks are
 * grouped by boot, because the boot is the outermost level of replication. Which interval, and why: docs/statistics.md.
 */
#ifndef CCT_STATS_COMPARE_H
#define CCT_STATS_COMPARE_H

#include <stddef.h>

#include "base/status.h"
#include "stats/stats.h"

struct cct_unit {  /* one block of one cell */
  int boot, round; /* any numbers that tell boots, and rounds within a boot, apart */
  double value;    /* log of the block's median time; finite */
};

#define CCT_DESIGNS(X) /* ID, name, what the interval is made of */                                                    \
  X(ROUNDS, "rounds", "t on per-round log ratios of one boot")                                                         \
  X(PAIRED_BOOTS, "paired-boots", "t on per-boot medians of per-round log ratios")                                     \
  X(BOOTS, "boots", "pooled t on per-boot log medians")                                                                \
  X(BLOCKS, "blocks", "pooled t on log medians of blocks; one boot an arm")
enum cct_design {
#define CCT_DESIGN_ENUM(id, ...) CCT_DESIGN_##id,
  CCT_DESIGNS(CCT_DESIGN_ENUM)
#undef CCT_DESIGN_ENUM
};
const char *cct_design_name(enum cct_design design);
const char *cct_design_text(enum cct_design design);

struct cct_comparison {
  enum cct_design design;
  int is_within_boot;      /* the interval holds what one boot shows; the difference between boots is not in it */
  int boots[2], blocks[2]; /* of baseline and arm, as used */
  int unpaired;            /* blocks left out because their round has no partner */
  double centre[2];        /* log medians of baseline and arm; centre[1] - centre[0] is the effect */
  double effect, lo, hi;   /* log ratio of times; lo and hi hold only where df > 0 */
  double se, df;
};

/* Compares arm `b` with baseline `a`, both with at least one unit:
 *  - rounds that both arms share within their boots: by cell and round; one boot: t over its rounds; several: t over
 * boots;
 *  - no shared round, at least three boots together: pooled t over boots;
 *  - else one boot an arm: pooled t over blocks. */
enum cct_status cct_compare(const struct cct_unit *a, size_t na, const struct cct_unit *b, size_t nb,
                            struct cct_comparison *comparison_out) CCT_CHECKED;

/* One arm alone: the mean of its boots' medians and t over them; of one boot, of its blocks. */
enum cct_status cct_estimate(const struct cct_unit *units, size_t n, struct cct_interval *estimate_out) CCT_CHECKED;

/* The A/A null of one arm: every second block of a boot against its neighbour, so that slow drift cancels, by the same
 * rule as two arms. df 0 where the arm has too few blocks. */
enum cct_status cct_compare_halves(const struct cct_unit *units, size_t n, struct cct_comparison *null_out) CCT_CHECKED;

#endif
