/* SPDX-License-Identifier: Apache-2.0
 * The CUDA backend's entries: opening a GPU for a rank, loading a job, and the timed burst. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/nvml.h"
#include "workloads/backends/cuda/cuda_room.h"

static int cuda_available(char *why, size_t n) {
  int gpus = 0;
  cct_cuda_child_trial();
  cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error == cudaSuccess && gpus > 0)
    return 1;
  snprintf(why, n, "%s",
           error == cudaErrorInsufficientDriver ? "no NVIDIA driver, or one older than CUDA 13 needs (580)"
           : error == cudaSuccess || error == cudaErrorNoDevice ? "no GPU here"
                                                                : cudaGetErrorString(error));
  return 0;
}

/* ---- which GPU is this rank's ---- */

struct seat { /* what a rank tells the others */
  char host[64], uuid[16];
  int32_t gpus;
};

static void read_seat(struct seat *seat, int device) {
  struct cudaDeviceProp facts;
  memset(seat, 0, sizeof *seat);
  gethostname(seat->host, sizeof seat->host - 1);
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0 &&
      cudaGetDeviceProperties(&facts, device % gpus) == cudaSuccess)
    memcpy(seat->uuid, facts.uuid.bytes, sizeof seat->uuid);
  seat->gpus = gpus;
}

/* Ranks of a host take its GPUs in turn; two on one GPU are refused unless asked for. */
static enum cct_status take_seat(struct cct_backend *backend) {
  const struct cct_world *world = backend->world;
  struct seat own, *all = calloc((size_t)world->size, sizeof *all);
  if (!all)
    return cct_fail(CCT_NOMEM, "out of memory");
  read_seat(&own, 0);
  enum cct_status status = world->ops->allgather(world, &own, sizeof own, all);
  int local = 0;
  for (int i = 0; !status && i < world->rank; i++)
    local += strcmp(all[i].host, own.host) == 0;
  for (int i = 0; !status && i < world->size; i++)
    if (all[i].gpus == 0)
      status = i == world->rank ? cct_fail(CCT_UNSUPPORTED, "cuda: no GPU on %s", own.host) : CCT_UNSUPPORTED;
  backend->device = own.gpus ? local % own.gpus : 0;
  read_seat(&own, local);
  enum cct_status met = status ? status : world->ops->allgather(world, &own, sizeof own, all);
  for (int i = 0; !met && !backend->options.is_shared_gpu && i < world->size; i++)
    for (int j = 0; !met && j < i; j++)
      if (memcmp(all[i].uuid, all[j].uuid, sizeof own.uuid) == 0)
        met = world->rank ? CCT_UNSUPPORTED
                          : cct_fail(CCT_UNSUPPORTED,
                                     "cuda: ranks %d and %d would share one of %d GPUs on %s: use fewer "
                                     "ranks, or --shared-gpu for a functional run",
                                     j, i, all[i].gpus, all[i].host);
  free(all);
  return met;
}

static enum cct_status set_environment(const struct cct_backend *backend) {
  char host[32];
  /* Registering buffers while capturing makes a graph's collectives another path than the eager ones. */
  int failed = setenv("NCCL_GRAPH_REGISTER", "0", 0);
  if (backend->options.is_shared_gpu) { /* NCCL refuses two ranks of one host on one GPU */
    snprintf(host, sizeof host, "cctax-rank-%d", backend->world->rank);
    failed |= setenv("NCCL_HOSTID", host, 1);
  }
  return failed ? cct_fail(CCT_NOMEM, "out of memory") : CCT_OK;
}

static enum cct_status read_device(struct cct_backend *backend) {
  struct cudaDeviceProp facts;
  enum cct_status status = CCT_CUDA(cudaSetDevice(backend->device));
  if (!status)
    status = CCT_CUDA(cudaGetDeviceProperties(&facts, backend->device));
  if (status)
    return status;
  backend->sms = facts.multiProcessorCount;
  backend->l2_bytes = facts.l2CacheSize;
  const unsigned char *u = (const unsigned char *)facts.uuid.bytes;
  snprintf(backend->uuid, sizeof backend->uuid,
           "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2], u[3], u[4],
           u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
  return CCT_OK;
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static enum cct_status measure_timer(struct cct_backend *backend) {
  enum {
    STEPS = 1001
  };
  int64_t at[STEPS];
  enum cct_status status = CCT_CUDA(cct_kernel_timer_steps(backend->probe, STEPS, backend->side));
  if (!status)
    status = CCT_CUDA(cudaStreamSynchronize(backend->side));
  if (!status)
    status = CCT_CUDA(cudaMemcpy(at, backend->probe, sizeof at, cudaMemcpyDeviceToHost));
  if (status)
    return status;
  for (int i = 0; i + 1 < STEPS; i++)
    at[i] = at[i + 1] - at[i];
  qsort(at, STEPS - 1, sizeof *at, by_value);
  backend->timer_step_ns = at[(STEPS - 1) / 2];
  return CCT_OK;
}

static void cuda_close(struct cct_backend *backend) {
  if (!backend)
    return;
  if (!backend->is_dead) { /* after a sticky error every call fails, and NCCL's would wait for peers */
    cct_cuda_buffers_forget(backend);
    cct_cuda_communicators_close(backend);
    if (backend->lt)
      cublasLtDestroy(backend->lt);
    cudaFree(backend->ring);
    cudaFree(backend->probe);
    if (backend->side)
      cudaStreamDestroy(backend->side);
  }
  cct_cuda_seal_close(backend);
  cct_nvml_close(backend->nvml);
  free(backend->kept);
  free(backend);
}

/* Every rank's own GPU; the worst counts. */
static enum cct_status check_beside(struct cct_backend *backend) {
  const struct cct_world *world = backend->world;
  if (!backend->options.emulated || backend->options.is_shared_gpu)
    return CCT_OK;
  enum cct_status status = cct_cuda_beside(backend, &backend->beside);
  enum cct_status met = world->ops->allreduce_f64(world, &backend->beside, 1, CCT_REDUCE_MAX);
  return status ? status : met;
}

static enum cct_status cuda_open(const struct cct_world *world, const struct cct_backend_options *options,
                                 struct cct_backend **backend_out) {
  struct cct_backend *backend = calloc(1, sizeof *backend);
  if (!backend)
    return cct_fail(CCT_NOMEM, "out of memory");
  backend->world = world;
  backend->options = *options;
  enum cct_status status = take_seat(backend);
  if (!status)
    status = set_environment(backend);
  if (!status)
    status = read_device(backend);
  if (!status)
    backend->nvml = cct_nvml_open(backend->uuid);
  if (!status)
    status = CCT_CUDA(cudaStreamCreateWithFlags(&backend->side, cudaStreamNonBlocking));
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&backend->ring, sizeof *backend->ring));
  if (!status)
    status = CCT_CUDA(cudaMalloc(&backend->probe, PROBE_BYTES));
  if (!status)
    status = CCT_CUBLAS(cublasLtCreate(&backend->lt));
  if (!status)
    status = measure_timer(backend);
  if (!status)
    status = cct_cuda_spin_cost(backend);
  if (!status)
    status = check_beside(backend);
  if (status) {
    cuda_close(backend);
    return status;
  }
  *backend_out = backend;
  return CCT_OK;
}

/* ---- jobs ---- */

static void cuda_unload(struct cct_executor *x) {
  if (!x)
    return;
  cct_cuda_hosts_close(x);
  if (!x->backend->is_dead) {
    (void)cudaDeviceSynchronize();
    cct_cuda_windows_close(x);
    cct_cuda_graphs_release(x);
    cct_cuda_cache_close(x);
    cct_cuda_carrier_close(x);
    cct_cuda_gemm_release(x);
    cct_cuda_release(x);
    for (int i = 0; x->events && i < x->n_events * x->events_each; i++)
      if (x->events[i])
        cudaEventDestroy(x->events[i]);
    for (int i = 0; x->lanes && i < x->program->n_lanes; i++) {
      if (x->lanes[i].join)
        cudaEventDestroy(x->lanes[i].join);
      if (x->lanes[i].stream)
        cudaStreamDestroy(x->lanes[i].stream);
    }
    cudaFree(x->device_slots);
    cudaFree(x->sink);
    cct_cuda_trace_close(x);
  }
  cct_cuda_clear_release(x);
  for (int i = 0; x->matrices && i < x->program->n_matrices; i++)
    free(x->matrices[i].bytes);
  free(x->matrices);
  free(x->events);
  free(x->edges);
  free(x->last_on_lane);
  free(x->slots);
  free(x->plan);
  free(x->buffers);
  free(x->lanes);
  free(x->spans);
  free(x);
}

static enum cct_status open_lanes(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < x->program->n_lanes; i++) {
    if (x->program->lanes[i].kind == CCT_LANE_HOST) {
      x->n_hosts++;
      continue;
    }
    status = CCT_CUDA(cudaStreamCreateWithFlags(&x->lanes[i].stream, cudaStreamNonBlocking));
    if (!status)
      status = CCT_CUDA(cudaEventCreateWithFlags(&x->lanes[i].join, cudaEventDisableTiming));
    /* A stream that was never used says in a quarter of the time that it is idle (H200): a SYNC that no work came
     * before would be too cheap. */
    if (!status)
      status = CCT_CUDA(cct_kernel_empty(x->lanes[i].stream));
    if (!status)
      status = cct_cuda_wait_stream(x->backend, x->lanes[i].stream);
  }
  return status;
}

static enum cct_status check_collective(const struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  ncclDataType_t type;
  int adds = op->collective.kind == CCT_COLL_ALL_REDUCE || op->collective.kind == CCT_COLL_REDUCE_SCATTER ||
             op->collective.kind == CCT_COLL_REDUCE;
  enum cct_type t = op->collective.type;
  if (adds && !cct_cuda_nccl_type(t, &type))
    return cct_fail(CCT_UNSUPPORTED, "cuda: %s: entry %d '%s': %s values cannot be added", x->program->name, id,
                    op->name, cct_type_name(t));
  if (op->collective.algorithm == CCT_ALGORITHM_AUTO)
    return CCT_OK;
  if (op->collective.kind != CCT_COLL_ALL_REDUCE || (t != CCT_TYPE_BF16 && t != CCT_TYPE_FP16 && t != CCT_TYPE_FP32))
    return cct_fail(CCT_UNSUPPORTED, "cuda: %s: entry %d '%s': %s is for all-reduces of bf16, fp16 and fp32",
                    x->program->name, id, op->name, cct_algorithm_name(op->collective.algorithm));
  return CCT_OK;
}

static enum cct_status load_program(struct cct_executor *x) {
  const struct cct_program *program = x->program;
  size_t n = (size_t)program->n_slots + 1;
  x->lanes = calloc((size_t)program->n_lanes + 1, sizeof *x->lanes);
  x->buffers = calloc((size_t)program->n_buffers + 1, sizeof *x->buffers);
  x->plan = calloc((size_t)program->n_ops + 1, sizeof *x->plan);
  x->slots = calloc(n, sizeof *x->slots);
  if (!x->lanes || !x->buffers || !x->plan || !x->slots)
    return cct_fail(CCT_NOMEM, "out of memory");
  x->before = x->plan;
  enum cct_status status = CCT_OK;
  for (int id = 0; !status && id < program->n_ops; id++)
    if (program->ops[id].kind == CCT_OP_COLLECTIVE)
      status = check_collective(x, id);
  if (!status)
    status = open_lanes(x);
  if (!status)
    status = CCT_CUDA(cudaMalloc((void **)&x->device_slots, n * sizeof *x->device_slots));
  if (!status)
    status = CCT_CUDA(cudaMalloc(&x->sink, 256));
  if (!status)
    status = cct_cuda_plan_edges(x);
  if (!status)
    status = cct_cuda_trace_open(x);
  return status ? status : cct_cuda_hosts_open(x);
}

static enum cct_status cuda_load(struct cct_backend *backend, const struct cct_job *job,
                                 struct cct_executor **executor_out) {
  const struct cct_world *world = backend->world;
  if (job->ranks != world->size)
    return cct_fail(CCT_UNSUPPORTED, "cuda: a job of %d ranks on %d processes: one process is one rank", job->ranks,
                    world->size);
  const struct cct_role *role = cct_job_role(job, world->rank);
  struct cct_executor *x = calloc(1, sizeof *x);
  if (!role || !x) {
    free(x);
    return cct_fail(role ? CCT_NOMEM : CCT_USAGE, role ? "out of memory" : "cuda: rank %d has no role", world->rank);
  }
  *x = (struct cct_executor){.backend = backend, .job = job, .program = role->program, .rank = world->rank};
  enum cct_status status = cct_cuda_agree(backend, load_program(x));
  if (!status)
    status = cct_cuda_agree(backend, cct_cuda_communicators_open(x));
  if (!status)
    status = cct_cuda_bind(x, NULL);
  if (!status)
    status = cct_cuda_agree(backend, cct_cuda_count_nodes(x));
  if (status) {
    cuda_unload(x);
    return status;
  }
  *executor_out = x;
  return CCT_OK;
}

static void cuda_set_traced(struct cct_backend *backend, int is_traced) {
  backend->options.is_traced = is_traced;
}

static void cuda_owned(const struct cct_executor *x, int *first_out, int *count_out) {
  *first_out = x->rank;
  *count_out = 1;
}

static enum cct_status cuda_step(struct cct_executor *x, const struct cct_binding *bindings, int n,
                                 struct cct_burst *burst) {
  if (x->backend->is_dead)
    return cct_fail(CCT_STOPPED, "cuda: rank %d: the GPU or a communicator failed earlier in this block", x->rank);
  struct cct_backend *backend = x->backend;
  enum cct_status status = cct_cuda_bind(x, bindings);
  if (!status)
    status = cct_cuda_graphs_renew(x);
  if (!status)
    status = cct_cuda_trace_begin(x);
  if (status)
    return status;
  if (x->hosts)
    cct_cuda_hosts_begin(x, n);
  atomic_store(&backend->waited_ns, 0);
  int64_t start_ns = x->start_ns = cct_clock_ns();
  if (x->hosts)
    status = cct_cuda_hosts_run(x);
  for (int rep = 0; !status && !x->hosts && rep < n; rep++)
    status = cct_cuda_walk(x, 0, x->program->n_ops, rep, MODE_EAGER);
  backend->submitting_ns = cct_clock_ns() - start_ns - atomic_load(&backend->waited_ns);
  if (!status)
    status = cct_cuda_drain(x);
  int64_t end_ns = cct_clock_ns();
  if (status)
    return status;
  burst->start_ns = start_ns;
  burst->rank_ns[0] = end_ns - start_ns;
  return CCT_OK;
}

static enum cct_status cuda_sequence(struct cct_executor *x, struct cct_sequence *sequence, struct cct_burst *burst) {
  if (x->backend->is_dead)
    return cct_fail(CCT_STOPPED, "cuda: rank %d: the GPU or a communicator failed earlier in this block", x->rank);
  return cct_cuda_sequence(x, sequence, burst);
}

static enum cct_status cuda_counts(struct cct_executor *x, struct cct_counts *counts_out) {
  *counts_out = x->performed;
  return CCT_OK;
}

static const struct cct_backend_ops cuda_ops = {
    .name = "cuda",
    .available = cuda_available,
    .open = cuda_open,
    .close = cuda_close,
    .facts = cct_cuda_facts,
    .load = cuda_load,
    .unload = cuda_unload,
    .owned = cuda_owned,
    .step = cuda_step,
    .sequence = cuda_sequence,
    .verify = cct_cuda_verify,
    .counts = cuda_counts,
    .experiment = cct_cuda_experiment,
    .trace = cct_cuda_trace,
    .set_traced = cuda_set_traced,
    .choice = cct_cuda_choice,
};

/* The module's one exported name. The module has its own copy of the rooms it uses; its lines are the program's. */
__attribute__((visibility("default"))) const struct cct_backend_ops *cctax_cuda_ops(const struct cct_log_room *room);
const struct cct_backend_ops *cctax_cuda_ops(const struct cct_log_room *room) {
  cct_log_join(room);
  return &cuda_ops;
}
