/* SPDX-License-Identifier: Apache-2.0
 * What tests of the host backend share: jobs built entry by entry, and what processes of threads make of them. */
#ifndef CCT_WORKLOADS_BACKENDS_HOST_BUILT_TEST_H
#define CCT_WORKLOADS_BACKENDS_HOST_BUILT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "fakes/world_threads.h"
#include "workloads/backends/host.h"

static const struct cct_backend_options plain = {.has_multicast = 1, .scale = 1, .deadline_ns = 10000000000};

struct built {
  struct cct_job *job;
  struct cct_program *program;
  int stream, host;
};

static inline struct built build(int ranks) {
  struct built b;
  assert_int_equal(cct_program_new("test", &b.program), CCT_OK);
  b.stream = cct_program_add_lane(b.program, "stream", CCT_LANE_STREAM);
  b.host = cct_program_add_lane(b.program, "host", CCT_LANE_HOST);
  assert_int_equal(cct_job_new(ranks, &b.job), CCT_OK);
  cct_job_add_group(b.job, "all", ranks, 1);
  assert_int_equal(cct_job_add_role(b.job, b.program, 0, ranks), CCT_OK);
  return b;
}

static inline struct cct_op on(const struct built *b, enum cct_op_kind kind) {
  return (struct cct_op){.kind = kind, .lane = b->stream, .host = b->host, .reads = {-1, -1}, .writes = -1, .name = ""};
}

static inline int put(const struct built *b, struct cct_op op) {
  return cct_program_add(b->program, &op, NULL, 0);
}

static inline void put_gemm(const struct built *b, int m, int n, int k, int groups) {
  struct cct_op op = on(b, CCT_OP_GEMM);
  op.gemm.m = cct_constant(m);
  op.gemm.n = n;
  op.gemm.k = k;
  op.gemm.groups = groups;
  op.gemm.type = CCT_TYPE_BF16;
  put(b, op);
}

static inline void put_copy(const struct built *b, int64_t bytes, int is_bounce) {
  struct cct_op op = on(b, CCT_OP_COPY);
  op.copy.direction = CCT_COPY_H2D;
  op.copy.bytes = cct_constant(bytes);
  op.copy.is_blocking = op.copy.is_bounce = is_bounce;
  put(b, op);
}

static inline int put_placed(const struct built *b, enum cct_collective kind, enum cct_type type, int64_t bytes,
                             int from, int to) {
  struct cct_op op = on(b, CCT_OP_COLLECTIVE);
  op.collective.kind = kind;
  op.collective.type = type;
  op.collective.bytes = cct_constant(bytes);
  op.collective.matrix = -1;
  op.reads[0] = from;
  op.writes = to;
  return put(b, op);
}

static inline int put_collective(const struct built *b, enum cct_collective kind, enum cct_type type,
                                 struct cct_quantity bytes, int matrix) {
  struct cct_op op = on(b, CCT_OP_COLLECTIVE);
  op.collective.kind = kind;
  op.collective.type = type;
  op.collective.bytes = bytes;
  op.collective.matrix = matrix;
  return put(b, op);
}

static inline int put_delay(const struct built *b, int64_t ns, double stretch, int of) {
  struct cct_op op = on(b, CCT_OP_DELAY);
  op.delay.ns = ns;
  op.delay.stretch = stretch;
  op.delay.of = of;
  return put(b, op);
}

/* What one process does with a job. */
struct use {
  struct cct_backend_options options;
  const struct cct_job *job;
  const struct cct_binding *binding;
  int n, is_roomy;        /* as on a machine with a core for every thread */
  struct cct_wrong wrong; /* of process 0 */
  int64_t step_ns;        /* of process 0, the best of 3 */
  struct cct_counts counts;
};

static inline void use_job(const struct cct_world *world, void *argument) {
  struct use *use = argument;
  struct cct_backend *backend;
  struct cct_executor *x;
  struct cct_wrong wrong;
  struct cct_counts counts;
  int64_t ns, best = INT64_MAX;
  struct cct_burst burst = {.rank_ns = &ns};
  if (cct_backend_host.open(world, &use->options, &backend))
    abort();
  if (use->is_roomy)
    backend->cores = backend->cores_here = 64;
  if (cct_backend_host.load(backend, use->job, &x))
    abort();
  for (int i = 0; i < 3; i++) {
    if (cct_backend_host.step(x, use->binding, use->n, &burst))
      abort();
    best = ns < best ? ns : best;
  }
  if (cct_backend_host.verify(x, NULL, &wrong) || cct_backend_host.counts(x, &counts))
    abort();
  if (world->rank == 0) {
    use->wrong = wrong;
    use->step_ns = best;
    use->counts = counts;
  } else if (wrong.wrong) {
    printf("rank %d: %s\n", world->rank, wrong.first);
    abort();
  }
  cct_backend_host.unload(x);
  cct_backend_host.close(backend);
}

static inline struct use used(struct built *b, int ranks, int n) {
  struct use use = {.options = plain, .job = b->job, .n = n};
  assert_int_equal(cct_world_threads(ranks, use_job, &use), 0);
  cct_job_free(b->job);
  return use;
}

#endif
