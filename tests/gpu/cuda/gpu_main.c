/* SPDX-License-Identifier: Apache-2.0
 * The CUDA backend on a machine with GPUs: gpu_check [--shared-gpu] [PART...], alone or under mpirun with a process a
 * GPU; the parts late and lost alone, with ranks that it forks. Prints a table; exit 0: all passed, 1: something
 * failed, 77: nothing here could run. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpu_check.h"
#include "mpi_runner/world_mpi.h"

extern const struct cct_backend_ops cct_backend_cuda;

static const struct {
  const char *name;
  void (*run)(struct gpu *gpu);
  int only_by_name;
} parts[] = {
    {"clocks", check_clocks, 0},
    {"values", check_values, 0},
    {"law", check_law, 0},
    {"sequence", check_sequence, 0},
    {"refusals", check_refusals, 0},
    {"trials", check_trials, 0},
    {"overhead", figures_overhead, 0},
    {"forecast", figures_forecast, 0},
    {"emulation", figures_emulation, 0},
    {"collectives", figures_collectives, 0},
    {"links", figures_links, 0},
    {"small", check_small, 1},
    {"peers", check_peers, 1},
};
static const struct {
  const char *name;
  void (*run)(struct gpu *gpu);
} faults[] = {{"late", fault_late}, {"lost", fault_lost}};

static int is_named(int argc, char **argv, const char *name) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0)
      return 1;
  return 0;
}

static int is_asked(int argc, char **argv, size_t part) {
  int n_named = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    n_named += is_named(argc, argv, parts[i].name);
  return n_named ? is_named(argc, argv, parts[part].name) : !parts[part].only_by_name;
}

/* Their ranks open GPUs of their own; this process must not have done so before. */
static int run_faults(struct gpu *gpu, int argc, char **argv) {
  int n = 0;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (is_named(argc, argv, faults[i].name)) {
      faults[i].run(gpu);
      n++;
    }
  return n;
}

/* Four cores a rank where there are enough: a rank that wanders between cores pays other prices. */
static void bind_rank(int rank, int ranks) {
  int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t own;
  CPU_ZERO(&own);
  for (int i = 0; i < 4; i++)
    CPU_SET((size_t)(4 * rank + i), &own);
  if (4 * ranks <= cores)
    (void)sched_setaffinity(0, sizeof own, &own);
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
    if (is_asked(argc, argv, i)) {
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
  gpu.options.deadline_ns = 60000000000;
  gpu.options.is_shared_gpu = gpu.is_shared = is_named(argc, argv, "--shared-gpu");
  if (run_faults(&gpu, argc, argv))
    return gpu.failed ? 1 : 0;
  if (getenv("OMPI_COMM_WORLD_SIZE")) {
    if (cct_world_mpi_open(&argc, &argv, &mpi))
      return 1;
    gpu.world = mpi;
  }
  snprintf(name, sizeof name, "gpu_check %d", gpu.world->rank);
  cct_log_name(name);
  bind_rank(gpu.world->rank, gpu.world->size);
  int is_open = gpu.ops->available(why, sizeof why);
  if (!is_open)
    printf("skipped: %s\n", why);
  else if (gpu.ops->open(gpu.world, &gpu.options, &gpu.backend)) {
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
