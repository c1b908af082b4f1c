/* SPDX-License-Identifier: Apache-2.0
 * What a step costs by count: the figures that explain its time, derived from the program alone. One step of one rank,
 * without the CASEs that `binding` does not choose. */
#ifndef CCT_WORKLOADS_PROGRAM_COUNTS_H
#define CCT_WORKLOADS_PROGRAM_COUNTS_H

#include <stdint.h>

#include "workloads/program/program.h"

struct cct_counts {
  int64_t submissions;   /* on the command channel: kernels, groups, graphs, asynchronous copies */
  int64_t graphs, nodes; /* graph launches among them, and the nodes they hold */
  int64_t kernels;       /* GPU operations that are kernels, in graphs or not */
  int64_t syncs;
  double flops;     /* GEMM and attention, a multiply-add counted as 2 */
  double hbm_bytes; /* GEMM operands and results once each, KV bytes, elementwise bytes */
  int64_t copies[CCT_DIRECTION_COUNT];
  double copy_bytes[CCT_DIRECTION_COUNT];
  int64_t collectives[CCT_COLL_COUNT];
  double collective_bytes[CCT_COLL_COUNT]; /* as the program states them */
  double wire_bytes[CCT_COLL_COUNT];       /* cct_wire_bytes of each */
  int64_t messages;                        /* sends */
  double message_bytes;
  double memory_bytes[CCT_MEMORY_COUNT]; /* buffers by kind */
  double weight_bytes;
};

/* What a COLLECTIVE has one rank send: its bytes times the busbw factor of the group's size, and (n - 1) times where
 * all read all of each (oneshot); a traffic matrix counts as uniform traffic of its size. */
double cct_wire_bytes(const struct cct_job *job, const struct cct_op *op, const struct cct_binding *binding);

void cct_count_program(const struct cct_job *job, const struct cct_program *program, const struct cct_binding *binding,
                       struct cct_counts *counts_out);

#endif
