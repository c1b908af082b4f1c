/* SPDX-License-Identifier: Apache-2.0
 * The CUDA backend on a machine with GPUs: gpu_check [PART...], alone or under mpirun with a process a GPU. Prints a
 * table; exit 0: all passed, 1: something failed, 77: nothing here could run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gpu_check.h"
#include "mpi_runner/world_mpi.h"

extern const struct cct_backend_ops cct_backend_cuda;

static const struct {
  const char *name;
  void (*run)(struct gpu *gpu);
} parts[] = {
    {"clocks", check_clocks},
    {"values", check_values},
    {"law", check_law},
    {"refusals", check_refusals},
    {"overhead", figures_overhead},
    {"emulation", figures_emulation},
    {"collectives", figures_collectives},
};

static int is_asked(int argc, char **argv, const char *name) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0)
      return 1;
  return argc == 1;
}

static void print_facts(struct gpu *gpu) {
  struct cct_fact facts[64];
  int n = gpu->ops->facts(gpu->backend, facts, 64);
  for (int i = 0; i < n; i++)
    gpu_say(gpu, "      %-24s %-10s %s\n", facts[i].name, facts[i].fact_class, facts[i].value);
}

static void run_parts(struct gpu *gpu, int argc, char **argv) {
  print_facts(gpu);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (is_asked(argc, argv, parts[i].name)) {
      int64_t start_ns = cct_clock_ns();
      gpu_say(gpu, "---- %s, %d ranks%s\n", parts[i].name, gpu->world->size, gpu->is_shared ? " on shared GPUs" : "");
      parts[i].run(gpu);
      gpu_say(gpu, "      %.1f s\n", (double)(cct_clock_ns() - start_ns) / 1e9);
    }
  print_facts(gpu);
}

int main(int argc, char **argv) {
  char why[256] = "", name[32];
  struct cct_world *mpi = NULL;
  struct gpu gpu = {.world = cct_world_self(), .ops = &cct_backend_cuda};
  struct cct_backend_options options = {.deadline_ns = 60000000000,
                                        .is_shared_gpu = is_asked(argc, argv, "--shared-gpu")};
  options.is_shared_gpu = options.is_shared_gpu && argc > 1;
  if (getenv("OMPI_COMM_WORLD_SIZE")) {
    if (cct_world_mpi_open(&argc, &argv, &mpi))
      return 1;
    gpu.world = mpi;
  }
  gpu.is_shared = options.is_shared_gpu;
  snprintf(name, sizeof name, "gpu_check %d", gpu.world->rank);
  cct_log_name(name);
  int is_open = gpu.ops->available(why, sizeof why);
  if (!is_open)
    printf("skipped: %s\n", why);
  else if (gpu.ops->open(gpu.world, &options, &gpu.backend)) {
    if (mpi)
      cct_world_mpi_close(mpi);
    return 1;
  } else {
    run_parts(&gpu, argc, argv);
    gpu.ops->close(gpu.backend);
    gpu_say(&gpu, "%d of %d checks failed\n", gpu.failed, gpu.checks);
  }
  if (mpi)
    cct_world_mpi_close(mpi);
  return !is_open ? 77 : gpu.failed ? 1 : 0;
}
