/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/calm.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

/* The second number of a thread's schedstat; -1: none. */
static int64_t waited_ns(const char *thread) {
  char path[300];
  long long ran, waited = -1;
  snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread);
  FILE *file = fopen(path, "re");
  if (file && fscanf(file, "%lld %lld", &ran, &waited) != 2)
    waited = -1;
  if (file)
    fclose(file);
  return waited;
}

/* What the host of a virtual machine took: ticks of all cores. */
static int64_t stolen_ns(void) {
  long long stolen = 0;
  FILE *file = fopen("/proc/stat", "re");
  if (file && fscanf(file, "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &stolen) != 1)
    stolen = 0;
  if (file)
    fclose(file);
  return stolen * (1000000000 / sysconf(_SC_CLK_TCK));
}

void cct_calm_begin(struct cct_calm *calm) {
  DIR *threads = opendir("/proc/self/task");
  struct dirent *entry;
  struct rusage usage;
  calm->n = 0;
  calm->stolen_ns = stolen_ns();
  while (threads && (entry = readdir(threads)) && calm->n < CCT_MOST_THREADS) {
    int64_t waited = entry->d_name[0] == '.' ? -1 : waited_ns(entry->d_name);
    if (waited < 0)
      continue;
    calm->threads[calm->n].id = atoi(entry->d_name);
    calm->threads[calm->n++].waited_ns = waited;
  }
  if (threads)
    closedir(threads);
  if (!calm->n && getrusage(RUSAGE_SELF, &usage) == 0) {
    calm->threads[0].id = 0;
    calm->threads[calm->n++].waited_ns = usage.ru_nivcsw * 1000000000;
  }
}

int64_t cct_calm_end(const struct cct_world *world, const struct cct_calm *begun) {
  struct cct_calm now;
  cct_calm_begin(&now);
  int64_t longest = 0;
  for (int i = 0; i < now.n; i++) {
    int64_t ns = now.threads[i].waited_ns;
    for (int k = 0; k < begun->n; k++)
      ns -= begun->threads[k].id == now.threads[i].id ? begun->threads[k].waited_ns : 0;
    longest = ns > longest ? ns : longest;
  }
  longest += now.stolen_ns - begun->stolen_ns;
  if (world->ops->allreduce_i64(world, &longest, 1, CCT_REDUCE_MAX))
    abort();
  return longest;
}

int cct_is_before(const struct cct_world *world, int64_t end_ns) {
  int is_before = cct_clock_ns() < end_ns;
  if (world->ops->bcast(world, &is_before, sizeof is_before, 0))
    abort();
  return is_before;
}
