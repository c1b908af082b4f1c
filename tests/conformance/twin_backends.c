/* SPDX-License-Identifier: Apache-2.0
 * Lets a test of host and sim be one of cuda and sim: whoever asks for host gets the CUDA backend over the twin. */
#include <pthread.h>
#include <string.h>

#include "workloads/backends/backend.h"

struct cct_log_room;
const struct cct_backend_ops *cctax_cuda_ops(const struct cct_log_room *room);
const struct cct_backend_ops *cct_twin_backend_by_name(const char *name);
extern const struct cct_backend_ops cct_backend_sim;

static const struct cct_backend_ops *cuda;

static void join(void) {
  cuda = cctax_cuda_ops(NULL);
}

const struct cct_backend_ops *cct_twin_backend_by_name(const char *name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, join);
  return strcmp(name, "host") ? &cct_backend_sim : cuda;
}
