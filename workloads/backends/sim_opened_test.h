/* SPDX-License-Identifier: Apache-2.0
 * What the tests of sim share: a machine with costs to reckon by hand, one open backend, and the job that is loaded. */
#ifndef CCT_WORKLOADS_BACKENDS_SIM_OPENED_TEST_H
#define CCT_WORKLOADS_BACKENDS_SIM_OPENED_TEST_H

#include <stdlib.h>

#include "tests/job_text.h"
#include "workloads/backends/sim.h"

#define COST(v)                                                                                                        \
  { .value = (v), .lo = (v), .hi = (v), .source = "test" }
static struct cct_collective_cost rows[] = {{.kind = CCT_COLL_ALL_REDUCE,
                                             .ranks = 8,
                                             .algorithm = "Ring",
                                             .toll_us_eager = COST(5),
                                             .toll_us_graph = COST(4),
                                             .busbw_gb_s = COST(1000)}};
/* us: submission 3, graph 10 + 0.5 a node, sync 2, kernel 1; a copy 4 + bytes / 1 GB/s, pageable ones block */
static const struct cct_profile profile = {
    .name = "test",
    .has_clear = 1,
    .platform = {.gpus = 8192, .partition = 8192},
    .clear = {.submission = {.us = COST(3)},
              .graph_launch = {.us = COST(10), .us_per_node = COST(0.5)},
              .sync_us = COST(2),
              .kernel_floor_us = COST(1),
              .copy = {{{COST(4), COST(1), 0, 1}, {COST(4), COST(1), 1, 1}},
                       {{COST(4), COST(1), 0, 1}, {COST(4), COST(1), 1, 1}}},
              .p2p = {COST(1), COST(1), COST(6)},
              .collectives = rows,
              .n_collectives = 1,
              .gemm_tflop_s = {[CCT_TYPE_BF16] = COST(1)},
              .hbm_gb_s = COST(1),
              .cpu_slowdown = COST(1)},
};

static struct cct_job *job;
static struct cct_backend *backend;
static struct cct_executor *executor;
static int64_t *rank_ns;

/* Opens sim with noise, or without (NULL), and loads the job of this text. */
static inline enum cct_status open_noisy_job(const char *text, const char *noise_file, uint64_t seed) {
  struct cct_backend_options options = {
      .machine = &profile, .has_multicast = 1, .noise_file = noise_file, .noise_seed = seed};
  job = job_of_text(text);
  rank_ns = calloc((size_t)job->ranks, sizeof *rank_ns);
  enum cct_status status = cct_backend_sim.open(cct_world_self(), &options, &backend);
  return status ? status : cct_backend_sim.load(backend, job, &executor);
}

static inline void open_job(const char *text) {
  assert_int_equal(open_noisy_job(text, NULL, 0), CCT_OK);
}

static inline int teardown(void **state) {
  (void)state;
  cct_backend_sim.unload(executor);
  cct_backend_sim.close(backend);
  cct_job_free(job);
  free(rank_ns);
  executor = NULL;
  backend = NULL;
  job = NULL;
  rank_ns = NULL;
  return 0;
}

#endif
