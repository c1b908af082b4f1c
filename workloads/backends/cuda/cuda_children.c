/* SPDX-License-Identifier: Apache-2.0
 * Experiments of processes that this one starts: a process with a context cannot fork another with one, so the child is
 * this program again. It opens the CUDA module, sees CHILD_TRIAL ("DEVICE BYTES"), creates a context and ends; or, with
 * bytes, says that it is ready, waits for a word from its parent, and tells how fast it copied. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "workloads/backends/cuda/cuda_experiment.h"

#define CHILD_TRIAL    "CCTAX_CHILD_TRIAL"
#define COPYING_NS     300000000
#define CHILD_SECONDS  60 /* one that hangs ends itself */
#define MOST_CHILDREN  16
#define COPIES_A_WAIT  4
#define MOST_VARIABLES 512

extern char **environ;

struct child {
  pid_t pid;
  int to, from; /* pipes; -1: closed */
};

static int spawn(struct child *child, int device, size_t bytes, const int to[2], const int from[2]) {
  char trial[80], *arguments[] = {"cctax-rank", "--backends", NULL}, *variables[MOST_VARIABLES];
  posix_spawn_file_actions_t actions;
  int n = 0;
  snprintf(trial, sizeof trial, CHILD_TRIAL "=%d %zu", device, bytes);
  variables[n++] = trial;
  for (int i = 0; environ[i] && n < MOST_VARIABLES - 1; i++)
    variables[n++] = environ[i];
  variables[n] = NULL;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  int error = posix_spawn(&child->pid, "/proc/self/exe", &actions, NULL, arguments, variables);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

static enum cct_status start(struct child *child, int device, size_t bytes) {
  int to[2] = {-1, -1}, from[2] = {-1, -1};
  *child = (struct child){.pid = -1, .to = -1, .from = -1};
  int failed = pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC) || spawn(child, device, bytes, to, from);
  if (to[0] >= 0)
    close(to[0]);
  if (from[1] >= 0)
    close(from[1]);
  child->to = to[1];
  child->from = from[0];
  return failed ? cct_fail(CCT_UNSUPPORTED, "cuda: a child process could not be started") : CCT_OK;
}

/* Waits for its end, which is its answer; what went wrong before has been said. */
static enum cct_status finish(struct child *child, enum cct_status before) {
  int code = -1;
  if (child->to >= 0)
    close(child->to);
  if (child->from >= 0)
    close(child->from);
  if (child->pid <= 0) /* its start has said why */
    return before;
  int is_done = waitpid(child->pid, &code, 0) == child->pid && WIFEXITED(code) && !WEXITSTATUS(code);
  return before || is_done ? before : cct_fail(CCT_UNSUPPORTED, "cuda: a child process could not use the GPU");
}

enum cct_status cct_cuda_run_context(struct experiment *e) {
  struct child child;
  int64_t start_ns = cct_clock_ns();
  enum cct_status status = start(&child, e->backend->device, 0);
  status = finish(&child, status);
  give(e, (double)(cct_clock_ns() - start_ns));
  return status;
}

/* All are ready before any copies. */
static enum cct_status let_copy(const struct child *children, int n, double *gb_s_out) {
  char text[32];
  for (int i = 0; i < n; i++)
    if (read(children[i].from, text, 1) != 1)
      return cct_fail(CCT_UNSUPPORTED, "cuda: process %d of %d could not use the GPU", i + 1, n);
  for (int i = 0; i < n; i++)
    if (!cct_write_pipe(children[i].to, "g", 1))
      return cct_fail(CCT_UNSUPPORTED, "cuda: process %d of %d is gone", i + 1, n);
  *gb_s_out = 0;
  for (int i = 0; i < n; i++) {
    ssize_t got = read(children[i].from, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    *gb_s_out += strtod(text, NULL);
  }
  return CCT_OK;
}

enum cct_status cct_cuda_run_processes(struct experiment *e) {
  int n = (int)e->parameters[0], n_started = 0;
  struct child children[MOST_CHILDREN];
  double gb_s = 0;
  enum cct_status status = CCT_OK;
  if (n > MOST_CHILDREN || e->parameters[1] < 1)
    return cct_fail(CCT_USAGE, "cuda: processes/N/BYTES: 1 to %d processes, 1 byte or more", MOST_CHILDREN);
  for (; !status && n_started < n; n_started++)
    status = start(&children[n_started], e->backend->device, (size_t)e->parameters[1]);
  if (!status)
    status = let_copy(children, n, &gb_s);
  for (int i = 0; i < n_started; i++)
    status = finish(&children[i], status);
  give(e, gb_s);
  return status;
}

/* ---- in the child ---- */

static cudaError_t copy_a_while(void *device, void *pinned, size_t bytes, double *gb_s_out) {
  int64_t start_ns = cct_clock_ns(), now_ns = start_ns, copied = 0;
  cudaError_t error = cudaSuccess;
  while (error == cudaSuccess && now_ns - start_ns < COPYING_NS) {
    for (int i = 0; error == cudaSuccess && i < COPIES_A_WAIT; i++)
      error = cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, NULL);
    if (error == cudaSuccess)
      error = cudaStreamSynchronize(NULL);
    copied += COPIES_A_WAIT * (int64_t)bytes;
    now_ns = cct_clock_ns();
  }
  *gb_s_out = (double)copied / (double)(now_ns - start_ns);
  return error;
}

static cudaError_t child_copies(size_t bytes) {
  void *device = NULL, *pinned = NULL;
  double gb_s = 0;
  char word;
  cudaError_t error = cudaMalloc(&device, bytes);
  if (error == cudaSuccess)
    error = cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault);
  if (error == cudaSuccess)
    error = cudaMemcpy(device, pinned, bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess && (write(1, "r", 1) != 1 || read(0, &word, 1) != 1))
    error = cudaErrorUnknown; /* the parent is gone */
  if (error == cudaSuccess)
    error = copy_a_while(device, pinned, bytes, &gb_s);
  return error == cudaSuccess && dprintf(1, "%.6g", gb_s) < 0 ? cudaErrorUnknown : error;
}

void cct_cuda_child_trial(void) {
  const char *trial = getenv(CHILD_TRIAL);
  char *rest;
  if (!trial)
    return;
  alarm(CHILD_SECONDS);
  cudaError_t error = cudaSetDevice((int)strtol(trial, &rest, 10));
  size_t bytes = strtoull(rest, NULL, 10);
  void *memory = NULL;
  if (error == cudaSuccess)
    error = cudaMalloc(&memory, 256);
  if (error == cudaSuccess)
    error = cct_kernel_empty(NULL);
  if (error == cudaSuccess)
    error = cudaStreamSynchronize(NULL);
  if (error == cudaSuccess && bytes)
    error = child_copies(bytes);
  _Exit(error != cudaSuccess);
}
