/* SPDX-License-Identifier: Apache-2.0
 * What one operation lasts on a profile's column: the durations sim runs on and the planner adds up.
 *  GEMM         max(2 m n k groups / gemm_tflop_s, operand bytes / hbm_gb_s, kernel_floor_us) unless the profile lists
 *               its shape (roofline: Williams, Waterman, Patterson, CACM 52(4), 2009)
 *  ATTENTION    max(flops / gemm_tflop_s, kv_bytes / hbm_gb_s, floor)
 *  ELEMENTWISE  max(bytes / hbm_gb_s, floor); a copy inside the device reads and writes: max(2 bytes / hbm_gb_s, floor)
 *  LAUNCH, STAMP  the floor
 *  COLLECTIVE   toll + bytes * factor(ranks) / busbw_gb_s (nccl-tests PERFORMANCE.md) on the cheapest row that the
 *               capabilities and the group's choice leave, among the rows of the nearest number of ranks; without a
 *               choice rows of the library's own number of channels, and where a probe gave any ("auto") those; with a
 *               traffic matrix the wire bytes are what the busiest member sends or receives; a group of one takes no
 *               time
 *  oneshot      2 short_write_us + (n-1) bytes / sm_gb_s: each member reads all of every other's
 *  twoshot      4 short_write_us + 2 (n-1)/n bytes / sm_gb_s: a reduce-scatter and an all-gather by reads
 *  SEND, RECV   short_write_us + bytes / sm_gb_s; a COPY from another's memory (p2p) short_write_us + bytes / ce_gb_s
 *  beyond the NVLink domain (platform.gpus) collectives and messages: net.us + wire bytes / net.gb_s
 *  COPY         fixed_us + bytes / gb_s; a bounce copy as the emulated profile's confidential column says, never less
 *  GRAPH        graph_launch.us + nodes * us_per_node on its host lane. Each duration is rounded to ns once. */
#ifndef CCT_WORKLOADS_PROGRAM_PRICE_H
#define CCT_WORKLOADS_PROGRAM_PRICE_H

#include "workloads/program/profile.h"
#include "workloads/program/program.h"

struct cct_pricing {
  const struct cct_profile *profile;
  const struct cct_column *column; /* the profile's clear column, always: confidential comes by emulate() */
  int has_multicast;               /* 0: rows that need NVLS are out */
  const struct cct_column
      *bounce; /* prices a bounce COPY: the emulated profile's confidential column; NULL: `column` */
};

struct cct_duration { /* ns, of one entry */
  int64_t submit_ns;  /* on its host lane; 0 inside GRAPH and GROUP, and for DELAY */
  int64_t run_ns;     /* on its lane; SYNC: sync time; GRAPH, GROUP, brackets: 0 */
  int is_blocking;    /* COPY: its host lane is held to its end, because it says so or this machine's copies do */
};

/* Nodes of the GRAPH at entry `id`: GPU operations inside, a GROUP counted once, DELAY not (law 6). */
int cct_graph_nodes(const struct cct_program *program, int id);

/* What the busiest member sends to, or receives from, the others. */
double cct_busiest_bytes(const struct cct_matrix *matrix);

/* How a COLLECTIVE, SEND, RECV or p2p COPY of `rank` is priced: time = fixed_us + wire_bytes / gb_s. */
struct cct_link_cost {
  double fixed_us, wire_bytes, gb_s;
};
/* CCT_UNSUPPORTED, without a line, when the column has no row for it. */
enum cct_status cct_price_link(const struct cct_pricing *pricing, const struct cct_job *job, const struct cct_op *op,
                               const struct cct_binding *binding, int rank, int in_graph,
                               struct cct_link_cost *cost_out) CCT_CHECKED;

/* Fills durations[0..n_ops-1], 0 for what the binding does not perform. CCT_UNSUPPORTED names the operation that the
 * profile cannot price, CCT_USAGE one that would last longer than 1000 s. */
enum cct_status cct_price(const struct cct_pricing *pricing, const struct cct_job *job,
                          const struct cct_program *program, const struct cct_binding *binding, int rank,
                          struct cct_duration *durations) CCT_CHECKED;

#endif
