/* SPDX-License-Identifier: Apache-2.0
 * From what probes measured to the unit costs of one column. Each is the slope or the intercept of a weighted line
 * (least relative error) through the cells of all repeats, less the unit costs that its program pays beside it:
 * docs/probe.md states every formula. A value is unstable when its repeats, each from one block's cells alone, lie
 * further apart than that probe's stated spread, or when there are fewer than three. */
#ifndef CCT_CLI_PROFILE_FIT_H
#define CCT_CLI_PROFILE_FIT_H

#include "cli/probe_points.h"
#include "workloads/program/profile.h"

#define CCT_LEAST_REPEATS  3
#define CCT_SPREAD_CALLS   0.05 /* of launches, syncs and collectives, and of what takes less than 50 us */
#define CCT_SPREAD_BYTES   0.02 /* of copies and messages */
#define CCT_MOST_SEGMENTS  4
#define CCT_SEGMENT_ERROR  0.03 /* of a collective's line within a segment of sizes */
#define CCT_ENVELOPE_ERROR 0.15 /* of all its lines together: more is no such law */

struct cct_estimate {
  int is_known, is_unstable, repeats;
  double value, lo, hi; /* 95 %, and the nanosecond of the clock */
  double spread;        /* of the repeats: (largest - smallest) / `scale` */
  double scale;         /* the value; of what is left of a difference the value that something was taken from */
  double limit;         /* the stated spread: more is unstable */
  char from[64];        /* the probes it follows from */
};

struct cct_fitted_row { /* of a collective, for a range of sizes */
  enum cct_collective kind;
  int ranks, segment;
  int needs_multicast; /* of the clear column beside a stripped one */
  struct cct_estimate toll_us_eager, toll_us_graph, busbw_gb_s;
};

struct cct_fitted {
  struct cct_estimate submission_us, graph_us, graph_us_per_node, sync_us, floor_us;
  struct cct_estimate closing_us; /* of a burst, which no emulation changes */
  struct {
    struct cct_estimate fixed_us, gb_s;
    int blocks; /* -1: not known */
  } copy[2][2];
  struct cct_estimate ce_gb_s, sm_gb_s, short_write_us;
  struct cct_fitted_row rows[CCT_COLL_COUNT * 8 * CCT_MOST_SEGMENTS];
  int n_rows;
  struct cct_estimate gemm_tflop_s[CCT_TYPE_COUNT], hbm_gb_s, memory_bytes, reserved_bytes, cpu_slowdown;
  int host_register, gdr; /* -1: not known */
};

void cct_profile_fit(const struct cct_probe_set *set, struct cct_fitted *fitted_out);
/* Where a confidential submission's extra time is spent: in front of the kernel where kernels that queue behind other
 * work get slower by more than half of it. */
enum cct_submission_form cct_profile_form(const struct cct_fitted *clear, const struct cct_fitted *confidential);

#endif
