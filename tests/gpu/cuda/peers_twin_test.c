/* SPDX-License-Identifier: Apache-2.0
 * Copies from another rank's memory without a GPU: the values part of the GPU checks over the twin, its ranks as
 * threads of one process; and what follows where a driver refuses CUDA IPC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fakes/world_threads.h"
#include "gpu_check.h"

struct cct_log_room;
const struct cct_backend_ops *cctax_cuda_ops(const struct cct_log_room *room);

static const struct cct_backend_ops *ops;
static int is_one_gpu;

static void sit(const struct cct_world *world, void *failed) {
  struct gpu gpu = {.world = world, .ops = ops, .is_shared = 1}; /* its times tell nothing */
  gpu.options.deadline_ns = 20000000000;
  gpu.options.is_shared_gpu = is_one_gpu;
  if (gpu.ops->open(world, &gpu.options, &gpu.backend)) {
    ((int *)failed)[world->rank] = 1000;
    return;
  }
  check_peers(&gpu);
  gpu.ops->close(gpu.backend);
  ((int *)failed)[world->rank] = gpu.failed;
}

static void values_on_one_to_three_ranks(void **state) {
  (void)state;
  for (int i = 0; i < 6; i++) {
    int failed[3] = {0}, ranks = 1 + i % 3;
    is_one_gpu = i >= 3;
    assert_int_equal(cct_world_threads(ranks, sit, failed), 0);
    assert_int_equal(failed[0] + failed[1] + failed[2], 0);
  }
}

int main(void) {
  ops = cctax_cuda_ops(NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(values_on_one_to_three_ranks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
