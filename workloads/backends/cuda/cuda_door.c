/* SPDX-License-Identifier: Apache-2.0
 * The door to the CUDA backend, part of every build. The backend itself is a module beside the programs that link NCCL,
 * cuBLAS and the CUDA runtime; it is opened when a GPU is asked for, so that one build also plans and reports on
 * machines with no driver, and this door says why it stays shut. */
#include "workloads/backends/backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define MODULE "libcctax-cuda.so"
#define ENTRY  "cctax_cuda_ops"

static const struct cct_backend_ops *module_ops;
static char reason[512];

/* Build trees and installations both have bin/ (or tests/) beside lib/. */
static void module_path(char *path, size_t n) {
  ssize_t length = readlink("/proc/self/exe", path, n - 1);
  path[length > 0 ? length : 0] = '\0';
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(path, '/');
    if (slash)
      *slash = '\0';
  }
  size_t at = strlen(path);
  snprintf(path + at, n - at, "/lib/" MODULE);
}

static const struct cct_backend_ops *open_module(void) {
  if (module_ops || reason[0])
    return module_ops;
  char path[4096];
  module_path(path, sizeof path);
  int is_there = access(path, R_OK) == 0;
  void *module = dlopen(is_there ? path : MODULE, RTLD_NOW | RTLD_LOCAL);
  const struct cct_backend_ops *(*entry)(const struct cct_log_room *room) = NULL;
  if (module)
    *(void **)&entry = dlsym(module, ENTRY);
  if (entry)
    module_ops = entry(cct_log_room());
  else if (!is_there && !module)
    snprintf(reason, sizeof reason, "this build has no CUDA module (%s was not built or not installed)", MODULE);
  else
    snprintf(reason, sizeof reason, "the CUDA module cannot be loaded: %s", dlerror());
  return module_ops;
}

static int door_available(char *why, size_t n) {
  const struct cct_backend_ops *ops = open_module();
  if (ops)
    return ops->available(why, n);
  snprintf(why, n, "%s", reason);
  return 0;
}

static enum cct_status door_open(const struct cct_world *world, const struct cct_backend_options *options,
                                 struct cct_backend **backend_out) {
  const struct cct_backend_ops *ops = open_module();
  if (!ops)
    return cct_fail(CCT_UNSUPPORTED, "cuda: %s", reason);
  return ops->open(world, options, backend_out);
}

static void door_close(struct cct_backend *backend) {
  if (backend)
    module_ops->close(backend);
}
static int door_facts(struct cct_backend *backend, struct cct_fact *facts, int max) {
  return module_ops->facts(backend, facts, max);
}
static enum cct_status door_load(struct cct_backend *backend, const struct cct_job *job,
                                 struct cct_executor **executor_out) {
  return module_ops->load(backend, job, executor_out);
}
static void door_unload(struct cct_executor *executor) {
  if (executor)
    module_ops->unload(executor);
}
static void door_owned(const struct cct_executor *executor, int *first_out, int *count_out) {
  module_ops->owned(executor, first_out, count_out);
}
static enum cct_status door_step(struct cct_executor *executor, const struct cct_binding *bindings, int n,
                                 struct cct_burst *burst) {
  return module_ops->step(executor, bindings, n, burst);
}
static enum cct_status door_verify(struct cct_executor *executor, const struct cct_binding *bindings,
                                   struct cct_wrong *wrong_out) {
  return module_ops->verify(executor, bindings, wrong_out);
}
static enum cct_status door_counts(struct cct_executor *executor, struct cct_counts *counts_out) {
  return module_ops->counts(executor, counts_out);
}
static enum cct_status door_experiment(struct cct_backend *backend, const char *name, const double *parameters,
                                       int n_parameters, double *series, int max, int *n_out) {
  return module_ops->experiment(backend, name, parameters, n_parameters, series, max, n_out);
}

static enum cct_status door_trace(struct cct_executor *executor, int owned, struct cct_span *spans) {
  return module_ops->trace(executor, owned, spans);
}

static enum cct_status door_sequence(struct cct_executor *executor, struct cct_sequence *sequence,
                                     struct cct_burst *burst) {
  return module_ops->sequence ? module_ops->sequence(executor, sequence, burst)
                              : cct_fail(CCT_UNSUPPORTED, "cuda: this build performs no sequences of steps");
}

static enum cct_status door_choice(struct cct_executor *executor, char *text, size_t n) {
  return module_ops->choice(executor, text, n);
}

static void door_set_traced(struct cct_backend *backend, int is_traced) {
  module_ops->set_traced(backend, is_traced);
}

const struct cct_backend_ops cct_backend_cuda = {
    .name = "cuda",
    .available = door_available,
    .open = door_open,
    .close = door_close,
    .facts = door_facts,
    .load = door_load,
    .unload = door_unload,
    .owned = door_owned,
    .step = door_step,
    .verify = door_verify,
    .counts = door_counts,
    .experiment = door_experiment,
    .trace = door_trace,
    .sequence = door_sequence,
    .choice = door_choice,
    .set_traced = door_set_traced,
};
