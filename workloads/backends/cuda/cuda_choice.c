/* SPDX-License-Identifier: Apache-2.0
 * What NCCL chose, in its own words: its log of TUNING, which names algorithm, protocol and channels of each collective
 * that it enqueues, read from a file during one collective that nobody times. Only rank 0 of a communicator logs;
 * messages are not logged at all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workloads/backends/cuda/cuda_room.h"

/* Takes a changed NCCL_DEBUG into account: deprecated, and all there is. An NCCL without it tells nothing. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma weak ncclResetDebugInit
static void (*const reset_debug)(void) = ncclResetDebugInit;

static const char *const names[] = {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"};
enum {
  n_names = 3
};

static enum cct_status set_log(const char *const values[n_names]) {
  int failed = 0;
  for (int i = 0; i < n_names; i++)
    failed |= values[i] ? setenv(names[i], values[i], 1) : unsetenv(names[i]);
  reset_debug();
  return failed ? cct_fail(CCT_NOMEM, "out of memory") : CCT_OK;
}

/* "...: AllReduce: 1048576 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..23}"; a rank's bytes. */
static void read_log(const char *path, int ranks, char *text, size_t n) {
  char line[1024];
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file)) {
    const char *at = strstr(line, " Bytes -> Algo ");
    char algorithm[32], protocol[32];
    long long bytes = 0;
    int lo, hi;
    if (!at ||
        sscanf(at, " Bytes -> Algo %31s proto %31s channel{Lo..Hi}={%d..%d}", algorithm, protocol, &lo, &hi) != 4)
      continue;
    while (at > line && at[-1] >= '0' && at[-1] <= '9')
      at--;
    sscanf(at, "%lld", &bytes);
    int is_share = strstr(line, "AllGather") || strstr(line, "ReduceScatter");
    snprintf(text, n, "%s %s %d channels, %lld B", algorithm, protocol, hi - lo + 1, bytes * (is_share ? ranks : 1));
  }
  if (file)
    fclose(file);
}

/* As the program performs it: inside a capture where it stands in a graph, whose buffers NCCL may register. */
static enum cct_status perform_first(struct cct_executor *x) {
  for (int id = 0; id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    if (x->plan[id].is_out)
      continue;
    if (op->kind == CCT_OP_GRAPH)
      return cct_cuda_graph_try(x, id);
    if (op->kind != CCT_OP_COLLECTIVE && op->kind != CCT_OP_GROUP)
      continue;
    enum cct_status status = cct_cuda_enqueue(x, id, 0, MODE_EAGER);
    return status ? status : cct_cuda_wait_stream(x->backend, x->lanes[op->lane].stream);
  }
  return CCT_OK;
}

/* The log's variables as they were; 0: out of memory. */
static int keep(char *before[n_names]) {
  int is_kept = 1;
  for (int i = 0; i < n_names; i++) {
    const char *value = getenv(names[i]);
    before[i] = value ? strdup(value) : NULL;
    is_kept &= !value || before[i];
  }
  return is_kept;
}

/* All ranks perform the collective, whether or not this one has a file for what NCCL says of it. */
enum cct_status cct_cuda_choice(struct cct_executor *x, char *text, size_t n) {
  char path[] = "/tmp/cctax-choice-XXXXXX", *before[n_names] = {NULL};
  int fd = -1;
  *text = '\0';
  if (!reset_debug)
    return CCT_OK;
  if (keep(before))
    fd = mkstemp(path);
  enum cct_status logged = fd >= 0 ? set_log((const char *const[]){"INFO", "TUNING", path}) : CCT_OK;
  enum cct_status status = perform_first(x);
  if (fd >= 0) {
    enum cct_status restored = set_log((const char *const *)before);
    status = status ? status : logged ? logged : restored;
    read_log(path, x->job->ranks, text, n);
    close(fd);
    unlink(path);
  }
  for (int i = 0; i < n_names; i++)
    free(before[i]);
  return status;
}
