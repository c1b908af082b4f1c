/* SPDX-License-Identifier: Apache-2.0
 * Steps without a model: a collective, and the probes that are programs. `calls` of the operation a step, eager or
 * (graph full) as one graph; a synchronisation of their own with `close` call alone, since a burst is closed by one.
 * Private to this room. */
#ifndef CCT_WORKLOADS_STEPS_BARE_H
#define CCT_WORKLOADS_STEPS_BARE_H

#include "base/option.h"
#include "workloads/program/program.h"

/* What both have: a job of np ranks with a group of all, and one program in hand with a stream and a host lane. */
struct cct_bare {
  struct cct_job *job;
  struct cct_program *program;
  int stream, host, all; /* lanes; the group, -1 for a probe of one rank */
  int graph;             /* the open graph: then operations have no host lane */
  int is_closed;         /* each call is followed by a synchronisation */
};
int cct_bare_add(struct cct_bare *bare, struct cct_op op, const char *name);
void cct_bare_sync(struct cct_bare *bare, int stream);
int cct_bare_group(struct cct_bare *bare, const char *name); /* opens it */
void cct_bare_end(struct cct_bare *bare, int bracket);       /* closes it */
void cct_bare_close_graph(struct cct_bare *bare);
int cct_bare_buffer(struct cct_bare *bare, const char *name, int64_t bytes, enum cct_memory memory);

/* "MxNxK" of --gemm. */
enum cct_status cct_bare_gemm(struct cct_bare *bare, const struct cct_options *cell, enum cct_type type,
                              struct cct_op *op) CCT_CHECKED;

/* Members of the open group: each rank sends to the next and receives from the one before. */
void cct_bare_ring(struct cct_bare *bare, int64_t bytes, int from, int to);

/* Builds the job of a `collective` or `probe` cell; `matrix_out` (bytes owned by the caller) is filled, n > 0, for a
 * skewed all_to_allv. */
enum cct_status cct_bare_build(const struct cct_options *cell, struct cct_job **job_out,
                               struct cct_matrix *matrix_out) CCT_CHECKED;

enum cct_status cct_emit_collective_step(struct cct_bare *bare, const struct cct_options *cell,
                                         struct cct_matrix *matrix) CCT_CHECKED;
enum cct_status cct_emit_probe_step(struct cct_bare *bare, const struct cct_options *cell) CCT_CHECKED;

#endif
