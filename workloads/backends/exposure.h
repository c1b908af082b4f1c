/* SPDX-License-Identifier: Apache-2.0
 * What of a step's collectives is hidden behind compute, from the spans of one repetition.
 *
 * Of one rank: `spent` is the sum of its collectives' spans, each with the delay that emulation put behind it;
 * `exposed` is what of them no GEMM, ATTENTION or ELEMENTWISE of the same rank covers, on whatever lane. Hidden is the
 * rest. A span holds waiting for the other members, which is exposed or hidden like transfer. `moved` of a collective
 * is the shortest span of all ranks: that of the last to come, which waited for nobody. On sim all of it is exact.
 *
 * A traced run costs launches of its own where the backend stamps (cuda), so it is for attribution, never for a time.
 */
#ifndef CCT_WORKLOADS_BACKENDS_EXPOSURE_H
#define CCT_WORKLOADS_BACKENDS_EXPOSURE_H

#include "workloads/backends/backend.h"

#define CCT_MOST_EXPOSURES 24
struct cct_exposure { /* all collectives of one kind over one group */
  enum cct_collective kind;
  int group, n;
  double spent_ns, exposed_ns;
};

/* The kinds and groups of `program`'s collectives in the order of their first use; returns how many. What comes beyond
 * CCT_MOST_EXPOSURES is left out. 0 also for a program without compute, where nothing could hide anything. */
int cct_exposure_list(const struct cct_program *program, struct cct_exposure exposures[CCT_MOST_EXPOSURES]);
/* Which of them the COLLECTIVE belongs to; -1: none. */
int cct_exposure_find(const struct cct_exposure *exposures, int n, const struct cct_op *op);
/* "all_reduce.tp". Returns `out`. */
char *cct_exposure_name(const struct cct_job *job, const struct cct_exposure *exposure, char out[32]);

/* Adds the spans (n_ops of them, as trace() gives them) to the listed exposures. `moved_ns`: of each collective in the
 * order of the program, the lesser of what stands there and its span; NULL: not wanted. CCT_NOMEM alone. */
enum cct_status cct_exposure_add(const struct cct_program *program, const struct cct_span *spans,
                                 struct cct_exposure *exposures, int n, double *moved_ns) CCT_CHECKED;
int cct_exposure_collectives(const struct cct_program *program); /* that moved_ns has */

/* Metrics of a record, with a name behind them: spent and exposed, us a step of each rank; moved, us a step. */
#define CCT_METRIC_SPENT   "spent."
#define CCT_METRIC_EXPOSED "exposed."
#define CCT_METRIC_MOVED   "moved."
int cct_exposure_is_metric(const char *name);

#endif
