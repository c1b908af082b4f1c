/* SPDX-License-Identifier: Apache-2.0
 * The CUDA backend on a machine with GPUs: gpu_check [PART...], alone or under mpirun with a process a GPU. Prints a
 * table; exit 0: all passed, 1: something failed, 77: nothing here could run. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "gpu_check.h"

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

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--has-mpi") == 0)
    return 1; /* this build knows the world of one process alone */
  char why[256] = "";
  struct gpu gpu = {.world = cct_world_self(), .ops = &cct_backend_cuda};
  if (!gpu.ops->available(why, sizeof why)) {
    printf("skipped: %s\n", why);
    return 77;
  }
  struct cct_backend_options options = {.deadline_ns = 60000000000};
  if (gpu.ops->open(gpu.world, &options, &gpu.backend))
    return 1;
  print_facts(&gpu);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (is_asked(argc, argv, parts[i].name)) {
      int64_t start_ns = cct_clock_ns();
      gpu_say(&gpu, "---- %s\n", parts[i].name);
      parts[i].run(&gpu);
      gpu_say(&gpu, "      %.1f s\n", (double)(cct_clock_ns() - start_ns) / 1e9);
    }
  print_facts(&gpu);
  gpu.ops->close(gpu.backend);
  gpu_say(&gpu, "%d of %d checks failed\n", gpu.failed, gpu.checks);
  return gpu.failed ? 1 : 0;
}
