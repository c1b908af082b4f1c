/* SPDX-License-Identifier: Apache-2.0
 * What one operation lasts on a profile's column: the durations sim runs on and the planner adds up. Rooflines:
 * GEMM max(2 m n k groups / gemm_tflop_s, operand bytes / hbm_gb_s, kernel_floor_us) unless the profile lists its shape;
 * ATTENTION max(flops / gemm_tflop_s, kv_bytes / hbm_gb_s, floor); ELEMENTWISE max(bytes / hbm_gb_s, floor);
 * COLLECTIVE toll + bytes * factor(ranks) / busbw_gb_s on the cheapest row its capabilities leave. */
#ifndef CCT_WORKLOADS_PROGRAM_PRICE_H
#define CCT_WORKLOADS_PROGRAM_PRICE_H

#include "workloads/program/profile.h"
#include "workloads/program/program.h"

struct cct_pricing {
  const struct cct_profile *profile;
  const struct cct_column *column; /* the profile's clear column, always: confidential comes by emulate() */
  int has_multicast;               /* 0: rows that need NVLS are out */
};

struct cct_duration { /* ns, of one entry */
  int64_t submit_ns;  /* on its host lane; 0 inside GRAPH and GROUP, and for DELAY */
  int64_t run_ns;     /* on its lane; SYNC: sync time; GRAPH, GROUP, brackets: 0 */
};

/* Fills durations[0..n_ops-1]. CCT_UNSUPPORTED names the operation that the profile cannot price. */
enum cct_status cct_price(const struct cct_pricing *pricing, const struct cct_job *job,
                          const struct cct_program *program, const struct cct_binding *binding, int rank,
                          struct cct_duration *durations) CCT_CHECKED;

#endif
