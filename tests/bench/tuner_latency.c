/* SPDX-License-Identifier: Apache-2.0
 * tuner_latency LIBRARY [RULES]: what a decision and an init of the built tuner take, printed. The calls fall on all
 * the rules in random order, so that the branch predictor and the caches get no help that a training job does not give.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "nccl_plugin/tuner/core_emulator.h"

enum {
  BURST = 64,
  BURSTS = 4000,
  INITS = 200,
  CALLS = 4096
};
static const float sample[21] = {76.7f, 37.7f, 36.0f, 37.8f, 31.0f, 27.1f, -1, -1, -1, -1, -1,
                                 -1,    -1,    -1,    -1,    -1,    -1,    -1, -1, -1, -1};

/* The program's own malloc is the one that the loaded library finds, so its allocations are counted too. */
static atomic_ulong allocations;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t size);
void *malloc(size_t size) {
  allocations++;
  return __libc_malloc(size);
}
extern void *__libc_calloc(size_t n, size_t size);
void *calloc(size_t n, size_t size) {
  allocations++;
  return __libc_calloc(n, size);
}
#endif

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print(const char *what, double *ns, size_t n) {
  char a[32], b[32], c[32];
  qsort(ns, n, sizeof *ns, compare);
  printf("%-34s median %9s   p1 %9s   p99 %9s\n", what, cct_ns_text(ns[n / 2], a), cct_ns_text(ns[n / 100], b),
         cct_ns_text(ns[n - 1 - n / 100], c));
}

/* Returns how many allocations the decisions made: none, or the tuner is broken. */
static unsigned long measure(const struct cct_emulator *e, const char *what, const size_t *sizes) {
  static double init_ns[INITS], ns[BURSTS];
  char line[64];
  void *context = NULL;
  size_t next = 0;
  unsigned long allocated = 0;
  for (int i = 0; i < INITS; i++) {
    int64_t start = cct_clock_ns();
    cct_emulator_init(e, 8, 1, NULL, &context);
    init_ns[i] = (double)(cct_clock_ns() - start);
    if (i + 1 < INITS)
      cct_emulator_finalize(e, context);
  }
  for (int b = 0; b < BURSTS; b++) {
    float cost[BURST][21];
    int channels;
    for (int i = 0; i < BURST; i++)
      memcpy(cost[i], sample, sizeof sample);
    unsigned long before = allocations;
    int64_t start = cct_clock_ns();
    for (int i = 0; i < BURST; i++)
      cct_emulator_get(e, context, 4, sizes[next++ % CALLS], 1, 0, cost[i], 7, 3, &channels);
    ns[b] = (double)(cct_clock_ns() - start) / BURST;
    allocated += allocations - before;
  }
  cct_emulator_finalize(e, context);
  snprintf(line, sizeof line, "decision, %s", what);
  print(line, ns, BURSTS);
  snprintf(line, sizeof line, "init, %s", what);
  print(line, init_ns, INITS);
  return allocated;
}

int main(int argc, char **argv) {
  int rules = argc > 2 ? atoi(argv[2]) : 500;
  char folder[] = "/tmp/cctax-tuner-latency.XXXXXX", path[64], command[64];
  static size_t sizes[CALLS];
  struct cct_emulator e;
  struct cct_text text = {0};
  if (argc < 2 || rules < 1 || !mkdtemp(folder))
    return 2;
  snprintf(path, sizeof path, "%s/rules.csv", folder);
  for (int i = 0; i < rules; i++)
    cct_text_add(&text, "allreduce,%d,%d,%s,%s,-1,-1,-1\n", 1000 * i, 1000 * i + 999, i % 2 ? "ring" : "tree",
                 i % 3 ? "ll128" : "simple");
  for (uint64_t i = 0; i < CALLS; i++)
    sizes[i] = (size_t)cct_random_below(1, i, 1000L * rules);
  if (cct_write_file(path, text.s, text.length) != CCT_OK)
    return 2;
  cct_text_free(&text);
  setenv("CCTAX_TUNER_RULES", path, 1);
  unsetenv("CCTAX_TUNER_PROOF");
  cct_emulator_load(argv[1], 5, &e);
  if (!e.api)
    return 2;
  printf("%d rules, %s, bursts of %d\n", rules, argv[1], BURST);
  unsigned long allocated = measure(&e, "no proof file", sizes);
  setenv("CCTAX_TUNER_PROOF", folder, 1);
  allocated += measure(&e, "proof file", sizes);
  printf("allocations in all %lu, by %d decisions %lu\n", (unsigned long)allocations, 2 * BURSTS * BURST, allocated);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0 || allocated != 0;
}
