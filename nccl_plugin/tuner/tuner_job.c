/* SPDX-License-Identifier: Apache-2.0
 * A job as far as a tuner can tell: tuner_job RANKS [UNTUNED_RANK]. Each rank is a process that loads NCCL_TUNER_PLUGIN
 * as NCCL does, and like NCCL carries on untuned and without a word when that fails; UNTUNED_RANK does not look for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl_plugin/tuner/core_emulator.h"

static int rank_run(const char *plugin, size_t ranks) {
  struct cct_emulator e;
  void *context = NULL;
  int channels;
  cct_emulator_load(plugin, 5, &e);
  if (!e.api)
    return 0;
  e.comm_id = 0xcc7a;
  if (cct_emulator_init(&e, ranks, 1, NULL, &context) != 0)
    return 1;
  for (size_t bytes = 8; bytes <= 1 << 20; bytes *= 2) {
    float cost[21] = {8, 16, 16, 7, 17, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    if (cct_emulator_get(&e, context, 4, bytes, 1, 0, cost, 7, 3, &channels) != 0)
      return 1;
  }
  return cct_emulator_finalize(&e, context);
}

int main(int argc, char **argv) {
  int ranks = argc > 1 ? atoi(argv[1]) : 2, untuned = argc > 2 ? atoi(argv[2]) : -1, failed = 0, status;
  const char *plugin = getenv("NCCL_TUNER_PLUGIN");
  for (int rank = 0; rank < ranks; rank++)
    if (fork() == 0)
      _exit(rank_run(rank == untuned || !plugin ? "libnccl-tuner.so" : plugin, (size_t)ranks));
  while (wait(&status) > 0)
    failed |= status;
  return failed != 0;
}
