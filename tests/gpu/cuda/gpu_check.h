/* SPDX-License-Identifier: Apache-2.0
 * What the GPU checks share: a table of what was found against its bar, timing of loaded jobs in turns, and short ways
 * to write programs. Times are ns a step. */
#ifndef CCT_TESTS_GPU_CHECK_H
#define CCT_TESTS_GPU_CHECK_H

#include "base/log.h"
#include "base/world.h"
#include "workloads/backends/backend.h"
#include "workloads/program/program.h"

struct gpu {
  const struct cct_world *world;
  const struct cct_backend_ops *ops;
  struct cct_backend *backend;
  struct cct_backend_options options; /* it was opened with */
  int failed, checks, is_shared;
};

/* One line of the table on rank 0: PASS or FAIL, what, and figures. Every rank must pass. */
void gpu_check(struct gpu *gpu, int is_good, const char *format, ...) CCT_PRINTF(3, 4);
void gpu_say(const struct gpu *gpu, const char *format, ...) CCT_PRINTF(2, 3);

/* ---- jobs ---- */
struct arm { /* one loaded job, and what its steps took: the slowest rank's time of each round */
  char name[48];
  struct cct_job *job;
  struct cct_executor *x;
  int submissions, rounds;
  double *ns, *submitting_ns; /* a step; and of it the host's own time until all was submitted */
};
/* Checks, loads and (with `verify`) verifies; a failure is one FAIL line, and arm->x is NULL. Takes the job. */
void arm_open(struct gpu *gpu, struct arm *arm, const char *name, struct cct_job *job, int verify);
void arm_close(struct gpu *gpu, struct arm *arm);
/* In each of `rounds` rounds one burst of `n` steps of every arm, in an order drawn anew, so that all arms meet the
 * same clocks, heat and neighbours; the first tenth is not kept. With `binding`, of that. */
void arms_time(struct gpu *gpu, struct arm *arms, int n_arms, int rounds, int n, const struct cct_binding *binding);
double arm_quantile(const struct arm *arm, double q); /* of ns */
double arm_median(const struct arm *arm);
double arm_submitting(const struct arm *arm); /* median */
/* The median over the rounds of arm's time less, or divided by, base's of the same round (less: ns). */
double arm_more(const struct arm *arm, const struct arm *base);
double arm_ratio(const struct arm *arm, const struct arm *base, double base_more_ns);
double quantile(double *values, int n, double q); /* sorts them */
/* The greatest over the ranks. */
double gpu_worst(const struct gpu *gpu, double value);

/* ---- programs: one host lane "host" and the stream "main", entries one after the other ---- */
enum form {
  FORM_CLEAR,
  FORM_STREAM,
  FORM_HOST
};
struct build {
  struct cct_program *program;
  int host, lane;
  enum form form; /* where a surcharge goes, for every submission, as emulated arms have it */
  int64_t surcharge_ns;
  int is_in_graph, submissions;
};
void build_begin(struct build *b, const char *name, enum form form, int64_t surcharge_ns);
int build_add(struct build *b, struct cct_op op); /* lane, host, buffers of -1 unless set */
void build_gemm(struct build *b, enum cct_type type, int64_t m, int64_t n, int64_t k, int groups);
void build_elementwise(struct build *b, int64_t bytes);
void build_attention(struct build *b, double flops, int64_t kv_bytes);
void build_copy(struct build *b, enum cct_direction direction, enum cct_memory memory, int64_t bytes, int is_blocking);
void build_collective(struct build *b, enum cct_collective kind, int group, int64_t bytes, enum cct_type type,
                      enum cct_algorithm algorithm);
int build_open(struct build *b, enum cct_op_kind bracket, int key); /* GRAPH (one submission), GROUP */
void build_close(struct build *b, int opened);
int build_delay(struct build *b, int lane, int64_t ns, const struct cct_wait *waits, int n);
void build_sync(struct build *b);
struct cct_job *build_end(struct build *b, int ranks); /* one role of all ranks; group 0: all of them */

/* ---- the parts of the run ---- */
void check_clocks(struct gpu *gpu);
void check_values(struct gpu *gpu);
void check_peers(struct gpu *gpu); /* copies from other ranks' memory; of check_values too */
void check_small(struct gpu *gpu); /* every kernel of the backend's own, for tools that slow it down */
void check_law(struct gpu *gpu);
void check_trials(struct gpu *gpu);
void check_sequence(struct gpu *gpu);
struct cct_job *sequence_job(int ranks); /* its program; slots: form (1: in a graph), tokens, KiB of cache, metadata */
void check_refusals(struct gpu *gpu);
void figures_overhead(struct gpu *gpu);
void figures_emulation(struct gpu *gpu);
void figures_collectives(struct gpu *gpu);
void figures_links(struct gpu *gpu);
void figures_forecast(struct gpu *gpu);
/* Two ranks of their own; `gpu` has no backend. */
void fault_late(struct gpu *gpu);
void fault_lost(struct gpu *gpu);

/* The programs that figures are about: opened as arms in a form, on one rank each. */
enum shape {
  DECODE,
  DECODE_64,
  EXPERTS,
  PREFILL,
  TRAIN,
  SHAPES
};
enum part { /* of a step */
  PART_ALL,
  PART_TAIL,       /* from the last large product to the read-back */
  PART_ALL_SYNCED, /* the host waits for the graph before it asks for the read-back */
};
extern const char *const shape_names[SHAPES];
struct cct_job *shape_job(struct gpu *gpu, enum shape shape, enum part part, int in_graph, enum form form, double us,
                          int *submissions_out);

#endif
