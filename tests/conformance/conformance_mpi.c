/* SPDX-License-Identifier: Apache-2.0
 * The suite over MPI: conformance_mpi host|cuda has a process a rank, conformance_mpi sim two ranks a process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/conformance.h"
#include "mpi_runner/world_mpi.h"

int main(int argc, char **argv) {
  struct cct_world *world;
  if (argc != 2 || cct_world_mpi_open(&argc, &argv, &world))
    return 2;
  int is_sim = !strcmp(argv[1], "sim"), is_cuda = !strcmp(argv[1], "cuda");
  struct cct_profile *machine = NULL;
  struct cct_suite suite = {.ops = cct_backend_by_name(argv[1]),
                            .options = {.has_multicast = 1, .scale = 1, .deadline_ns = 20000000000, .is_traced = 1},
                            .ranks = is_sim ? 2 * world->size : world->size,
                            .first_seed = 5000,
                            .n_seeds = is_cuda ? 30 : 6,
                            .n_entries = 14,
                            .budget_ns = 1000000000,
                            .unit_ns = 1000000,
                            .pageable_blocks = is_cuda,
                            .is_exact = is_sim};
  if (!suite.ops || (is_sim && cct_profile_load("h200", &machine)))
    return 2;
  suite.options.machine = machine;
  cct_conformance_order(world, &suite);
  if (!world->rank)
    printf("%s over MPI, %d processes: %d of %d random jobs broke the law\n", argv[1], world->size, suite.n_failed,
           suite.n_seeds);
  int n_broken = suite.n_failed;
  suite.n_failed = 0;
  suite.is_sequence = 1;
  suite.first_seed = 6000;
  suite.n_seeds = is_cuda ? 15 : 3;
  suite.early_ns = is_sim ? 0 : suite.unit_ns / 5; /* of some twenty holds in a row, each less its kernel's own cost */
  cct_conformance_order(world, &suite);
  if (!world->rank)
    printf("%s over MPI, %d processes: %d of %d random sequences broke the law\n", argv[1], world->size, suite.n_failed,
           suite.n_seeds);
  n_broken += suite.n_failed;
  suite.n_failed = suite.is_sequence = 0;
  suite.budget_ns = 500000000;
  suite.options.is_traced = 0;
  cct_conformance_surcharges(world, &suite);
  if (!world->rank)
    printf("%s over MPI, %d processes: %d surcharges were not recovered; not judged: %d jobs and surcharges\n", argv[1],
           world->size, suite.n_failed, suite.n_unjudged);
  int status = suite.n_failed + n_broken ? 1 : suite.n_unjudged ? 77 : 0;
  if (world->ops->bcast(world, &status, sizeof status, 0))
    status = 1;
  cct_world_mpi_close(world);
  cct_profile_free(machine);
  return status;
}
