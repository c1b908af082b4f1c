/* SPDX-License-Identifier: Apache-2.0
 * Experiments that are no program. Names, parameters and values are docs/probe.md's; beside them, for the checks on
 * GPUs:
 *  stamps      -> id, ns, id, ns, ... of the STAMPs since the last call (at most max/2)
 *  submitting  -> ns of the last burst in which the host was busy, until all of it was submitted: without waits
 *  beside      -> how many times as long a product takes beside a DELAY as alone
 *  bare_gemm   m, n, k, reps -> host ns a call, ns a call: a plain loop of cublasGemmEx in bf16, weights in turn */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/backends/cuda/cuda_experiment.h"

static enum cct_status run_clock(struct experiment *e) {
  struct cct_backend *backend = e->backend;
  cudaEvent_t before = NULL, after = NULL;
  int64_t *out = backend->probe, at[2] = {0};
  float event_ms = 0;
  int64_t start_ns = 0, end_ns = 0;
  enum cct_status status = CCT_CUDA(cudaEventCreate(&before));
  if (!status)
    status = CCT_CUDA(cudaEventCreate(&after));
  for (int turn = 0; !status && turn < 2; turn++) { /* the first loads the kernel */
    start_ns = cct_clock_ns();
    status = CCT_CUDA(cudaEventRecord(before, backend->side));
    if (!status)
      status = CCT_CUDA(cct_kernel_cycles(turn ? (int64_t)e->parameters[0] : 1, out, backend->side));
    if (!status)
      status = CCT_CUDA(cudaEventRecord(after, backend->side));
    if (!status)
      status = cct_cuda_wait_stream(backend, backend->side);
    end_ns = cct_clock_ns();
  }
  if (!status)
    status = CCT_CUDA(cudaEventElapsedTime(&event_ms, before, after));
  if (!status)
    status = CCT_CUDA(cudaMemcpy(at, out, sizeof at, cudaMemcpyDeviceToHost));
  give(e, (double)(end_ns - start_ns));
  give(e, (double)(at[1] - at[0]));
  give(e, (double)event_ms * 1e6);
  if (before)
    cudaEventDestroy(before);
  if (after)
    cudaEventDestroy(after);
  return status;
}

static enum cct_status run_timer_step(struct experiment *e) {
  give(e, (double)e->backend->timer_step_ns);
  return CCT_OK;
}

static enum cct_status run_stamps(struct experiment *e) {
  struct cct_stamp *stamps = malloc(CCT_STAMP_CAPACITY * sizeof *stamps);
  int n = 0;
  if (!stamps)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = cct_cuda_stamps_read(e->backend, stamps, CCT_STAMP_CAPACITY, &n);
  for (int i = 0; !status && i < n && e->n + 1 < e->max; i++) {
    give(e, (double)stamps[i].id);
    give(e, (double)(stamps[i].ns - stamps[0].ns));
  }
  free(stamps);
  return status ? status : cct_cuda_stamps_reset(e->backend);
}

static enum cct_status run_submitting(struct experiment *e) {
  give(e, (double)e->backend->submitting_ns);
  return CCT_OK;
}

static enum cct_status run_bare_launch(struct experiment *e) {
  int n = (int)e->parameters[0];
  int64_t start_ns = cct_clock_ns();
  enum cct_status status = CCT_CUDA(cct_kernel_bare_launches(n, e->backend->side));
  int64_t submitted_ns = cct_clock_ns();
  if (!status)
    status = cct_cuda_wait_stream(e->backend, e->backend->side);
  give(e, (double)(submitted_ns - start_ns) / n);
  give(e, (double)(cct_clock_ns() - start_ns) / n);
  return status;
}

/* Synchronisations with nothing to wait for, behind an empty kernel each, and as SYNC asks: by a query. */
static enum cct_status run_bare_sync(struct experiment *e) {
  enum {
    IDLE,
    BEHIND,
    QUERY,
    N_WAYS
  };
  int n = (int)e->parameters[0];
  cudaStream_t stream = e->backend->side;
  enum cct_status status = CCT_OK;
  for (int way = 0; !status && way < N_WAYS; way++) {
    cudaError_t error = cudaSuccess;
    int64_t start_ns = 0;
    for (int i = -n / 10; error == cudaSuccess && i < n; i++) { /* the first warm up */
      if (i == 0)
        start_ns = cct_clock_ns();
      if (way == BEHIND)
        error = cct_kernel_bare_launches(1, stream);
      if (error == cudaSuccess)
        error = way == QUERY ? cudaStreamQuery(stream) : cudaStreamSynchronize(stream);
    }
    give(e, (double)(cct_clock_ns() - start_ns) / n);
    status = CCT_CUDA(error);
  }
  return status;
}

/* A graph of n empty kernels: captured, made ready to launch, and launched once. */
static enum cct_status run_graph_capture(struct experiment *e) {
  cudaStream_t stream = e->backend->side;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  int64_t at_ns[4];
  int n = (int)e->parameters[0];
  enum cct_status status = CCT_CUDA(cct_kernel_empty(stream));
  if (!status)
    status = cct_cuda_wait_stream(e->backend, stream);
  at_ns[0] = cct_clock_ns();
  if (!status)
    status = CCT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  if (!status) {
    cudaError_t launched = cct_kernel_bare_launches(n, stream);
    status = CCT_CUDA(cudaStreamEndCapture(stream, &graph));
    status = status ? status : CCT_CUDA(launched);
  }
  at_ns[1] = cct_clock_ns();
  if (!status)
    status = CCT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  at_ns[2] = cct_clock_ns();
  if (!status)
    status = CCT_CUDA(cudaGraphLaunch(exec, stream));
  if (!status)
    status = cct_cuda_wait_stream(e->backend, stream);
  at_ns[3] = cct_clock_ns();
  for (int i = 0; i < 3; i++)
    give(e, (double)(at_ns[i + 1] - at_ns[i]));
  if (exec)
    cudaGraphExecDestroy(exec);
  if (graph)
    cudaGraphDestroy(graph);
  return status;
}

static enum cct_status run_host_register(struct experiment *e) {
  size_t bytes = ((size_t)e->parameters[0] + 4095) / 4096 * 4096;
  char *memory = aligned_alloc(4096, bytes);
  if (!memory)
    return cct_fail(CCT_NOMEM, "out of memory");
  memset(memory, 1, bytes);
  int64_t start_ns = cct_clock_ns();
  cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterDefault);
  give(e, (double)error);
  give(e, (double)(cct_clock_ns() - start_ns));
  if (error == cudaSuccess)
    cudaHostUnregister(memory);
  (void)cudaGetLastError(); /* a refusal is the answer, not an error of what follows */
  free(memory);
  return CCT_OK;
}

/* The GPU must see what the host wrote before the launch, and the host what a finished kernel wrote. */
static enum cct_status run_stale_memory(struct experiment *e) {
  struct cct_backend *backend = e->backend;
  uint64_t *mapped = NULL, seen = 0;
  int stale[2] = {0, 0};
  enum cct_status status = CCT_CUDA(cudaHostAlloc((void **)&mapped, 4096, cudaHostAllocMapped));
  for (uint64_t trial = 1; !status && trial <= (uint64_t)e->parameters[0]; trial++) {
    *(volatile uint64_t *)mapped = trial;
    status = CCT_CUDA(cct_kernel_copy(backend->probe, mapped, 16, 1, backend->side));
    if (!status)
      status = CCT_CUDA(cudaMemcpyAsync(&seen, backend->probe, sizeof seen, cudaMemcpyDeviceToHost, backend->side));
    if (!status)
      status = cct_cuda_wait_stream(backend, backend->side);
    stale[0] += seen != trial;
    ((volatile uint64_t *)mapped)[4] = 0;
    if (!status)
      status = CCT_CUDA(cct_kernel_copy(mapped + 4, backend->probe, 16, 1, backend->side));
    if (!status)
      status = cct_cuda_wait_stream(backend, backend->side);
    stale[1] += ((volatile uint64_t *)mapped)[4] != seen;
  }
  give(e, stale[0]);
  give(e, stale[1]);
  cudaFreeHost(mapped);
  return status;
}

static enum cct_status time_copy(struct experiment *e, void *to, const void *from, enum cudaMemcpyKind kind) {
  struct cct_backend *backend = e->backend;
  int64_t busy_ns = (int64_t)e->parameters[1];
  enum cct_status status = CCT_CUDA(cudaMemcpyAsync(to, from, 1, kind, backend->side)); /* opens the way */
  if (!status)
    status = cct_cuda_wait_stream(backend, backend->side);
  if (!status && busy_ns)
    status = CCT_CUDA(cct_kernel_spin(busy_ns, backend->side));
  int64_t start_ns = cct_clock_ns();
  if (!status)
    status = CCT_CUDA(cudaMemcpyAsync(to, from, (size_t)e->parameters[0], kind, backend->side));
  give(e, (double)(cct_clock_ns() - start_ns));
  return status ? status : cct_cuda_wait_stream(backend, backend->side);
}

static enum cct_status run_caller_blocked(struct experiment *e) {
  size_t bytes = (size_t)e->parameters[0];
  void *device = NULL, *pinned = NULL, *pageable = malloc(bytes);
  enum cct_status status = pageable ? CCT_CUDA(cudaMalloc(&device, bytes)) : cct_fail(CCT_NOMEM, "out of memory");
  if (!status)
    memset(pageable, 1, bytes); /* or its first touch would be part of the copy */
  if (!status)
    status = CCT_CUDA(cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault));
  if (!status)
    status = time_copy(e, device, pinned, cudaMemcpyHostToDevice);
  if (!status)
    status = time_copy(e, pinned, device, cudaMemcpyDeviceToHost);
  if (!status)
    status = time_copy(e, device, pageable, cudaMemcpyHostToDevice);
  if (!status)
    status = time_copy(e, pageable, device, cudaMemcpyDeviceToHost);
  cudaFreeHost(pinned);
  cudaFree(device);
  free(pageable);
  return status;
}

static enum cct_status run_beside(struct experiment *e) {
  double ratio = 0;
  enum cct_status status = cct_cuda_beside(e->backend, &ratio);
  give(e, ratio);
  return status;
}

static enum cct_status run_delay(struct experiment *e) {
  for (int in_graph = 0; in_graph < 2; in_graph++) {
    double ns = 0;
    int64_t own_ns = e->backend->spin_cost_ns[in_graph];
    enum cct_status status = cct_cuda_time_spin(e->backend, (int64_t)e->parameters[0] - own_ns, in_graph, &ns);
    if (status)
      return status;
    give(e, ns);
  }
  return CCT_OK;
}

enum cct_status cct_cuda_experiment(struct cct_backend *backend, const char *name, const double *parameters,
                                    int n_parameters, double *series, int max, int *n_out) {
  static const struct {
    const char *name;
    int n_parameters, least; /* of the first parameter: trying nothing is no trial */
    enum cct_status (*run)(struct experiment *e);
  } experiments[] = {
      {"clock", 1, 1, run_clock},
      {"timer_step", 0, 0, run_timer_step},
      {"stamps", 0, 0, run_stamps},
      {"submitting", 0, 0, run_submitting},
      {"bare_launch", 1, 1, run_bare_launch},
      {"bare_sync", 1, 1, run_bare_sync},
      {"graph_capture", 1, 1, run_graph_capture},
      {"bare_gemm", 4, 1, cct_cuda_run_bare_gemm},
      {"rest", 4, 1, cct_cuda_run_rest},
      {"aes_rate", 1, 1, cct_cuda_run_aes_rate},
      {"aes_copy", 1, 1, cct_cuda_run_aes_copy},
      {"host_register", 1, 1, run_host_register},
      {"stale_memory", 1, 1, run_stale_memory},
      {"caller_blocked", 2, 1, run_caller_blocked},
      {"delay", 1, 0, run_delay},
      {"beside", 0, 0, run_beside},
      {"p2p_copy", 3, 16, cct_cuda_run_p2p_copy},
      {"short_write", 1, 1, cct_cuda_run_short_write},
      {"dispatch", 2, 1, cct_cuda_run_dispatch},
      {"peer", 0, 0, cct_cuda_run_peer},
      {"communicator", 0, 0, cct_cuda_run_communicator},
      {"memory", 0, 0, cct_cuda_run_memory},
      {"marker", 1, 0, cct_cuda_run_marker},
      {"managed", 1, 1, cct_cuda_run_managed},
      {"pinned", 1, 1, cct_cuda_run_pinned},
      {"mapped", 1, 1, cct_cuda_run_mapped},
      {"overlap", 1, 1, cct_cuda_run_overlap},
      {"processes", 2, 1, cct_cuda_run_processes},
      {"context", 0, 0, cct_cuda_run_context},
      {"gdr", 0, 0, cct_cuda_run_gdr},
      {"checkpoint", 0, 0, cct_cuda_run_checkpoint},
  };
  for (size_t i = 0; i < sizeof experiments / sizeof *experiments; i++) {
    if (strcmp(name, experiments[i].name) != 0)
      continue;
    if (n_parameters != experiments[i].n_parameters)
      return cct_fail(CCT_USAGE, "cuda: experiment '%s' has %d parameters, not %d", name, experiments[i].n_parameters,
                      n_parameters);
    if (n_parameters && parameters[0] < experiments[i].least)
      return cct_fail(CCT_USAGE, "cuda: experiment '%s': its first parameter is %.0f, and has to be %d at least", name,
                      parameters[0], experiments[i].least);
    struct experiment e = {backend, parameters, series, max, 0};
    enum cct_status status = experiments[i].run(&e);
    if (!status)
      *n_out = e.n;
    return status;
  }
  return cct_fail(CCT_UNSUPPORTED, "cuda: no experiment '%s'", name);
}
