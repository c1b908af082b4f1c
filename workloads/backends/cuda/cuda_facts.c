/* SPDX-License-Identifier: Apache-2.0
 * What a block records of this rank's GPU and the libraries that drive it. */
#include <stdarg.h>
#include <stdio.h>

#include "machine/nvml.h"
#include "workloads/backends/cuda/cuda_room.h"

struct facts {
  struct cct_fact *at;
  int n, max;
};

static void add(struct facts *facts, const char *name, const char *fact_class, const char *format, ...)
    CCT_PRINTF(4, 5);
static void add(struct facts *facts, const char *name, const char *fact_class, const char *format, ...) {
  if (facts->n == facts->max)
    return;
  struct cct_fact *fact = &facts->at[facts->n++];
  va_list args;
  va_start(args, format);
  snprintf(fact->name, sizeof fact->name, "%s", name);
  snprintf(fact->fact_class, sizeof fact->fact_class, "%s", fact_class);
  vsnprintf(fact->value, sizeof fact->value, format, args);
  va_end(args);
}

static void add_known(struct facts *facts, const char *name, long long value) {
  if (value >= 0)
    add(facts, name, "drift", "%lld", value);
}

int cct_cuda_facts(struct cct_backend *backend, struct cct_fact *out, int max) {
  struct facts facts = {out, 0, max};
  struct cudaDeviceProp gpu;
  int driver = 0, runtime = 0, nccl = 0, blas[3] = {0};
  if (cudaGetDeviceProperties(&gpu, backend->device) == cudaSuccess) {
    add(&facts, "gpu.name", "identity", "%s", gpu.name);
    add(&facts, "gpu.capability", "identity", "%d.%d", gpu.major, gpu.minor);
    add(&facts, "gpu.memory_bytes", "identity", "%zu", gpu.totalGlobalMem);
    add(&facts, "gpu.sms", "identity", "%d", gpu.multiProcessorCount);
    add(&facts, "gpu.ecc", "identity", "%d", gpu.ECCEnabled);
  }
  add(&facts, "gpu.uuid", "identity", "%s", backend->uuid);
  if (cudaDriverGetVersion(&driver) == cudaSuccess)
    add(&facts, "cuda.driver_api", "identity", "%d.%d", driver / 1000, driver % 1000 / 10);
  if (cudaRuntimeGetVersion(&runtime) == cudaSuccess)
    add(&facts, "cuda.runtime", "identity", "%d.%d", runtime / 1000, runtime % 1000 / 10);
  if (ncclGetVersion(&nccl) == ncclSuccess)
    add(&facts, "nccl", "identity", "%d", nccl);
  if (cublasGetProperty(MAJOR_VERSION, &blas[0]) == CUBLAS_STATUS_SUCCESS &&
      cublasGetProperty(MINOR_VERSION, &blas[1]) == CUBLAS_STATUS_SUCCESS &&
      cublasGetProperty(PATCH_LEVEL, &blas[2]) == CUBLAS_STATUS_SUCCESS) /* as cublasGetVersion, and without a handle */
    add(&facts, "cublas", "identity", "%d", 10000 * blas[0] + 100 * blas[1] + blas[2]);
  add(&facts, "gpu.timer_step_ns", "condition", "%lld", (long long)backend->timer_step_ns);
  add(&facts, "delay.own_ns.eager", "drift", "%lld", (long long)backend->spin_cost_ns[0]);
  add(&facts, "delay.own_ns.graph", "drift", "%lld", (long long)backend->spin_cost_ns[1]);
  if (backend->beside > 0)
    add(&facts, "delay.beside", "drift", "%.3f", backend->beside);
  if (cct_cuda_seal_gb_s(backend) > 0)
    add(&facts, "seal.gb_s", "drift", "%.2f", cct_cuda_seal_gb_s(backend));
  const struct cct_nvml *nvml = backend->nvml;
  struct cct_nvml_reading reading;
  cct_nvml_read(nvml, &reading);
  if (cct_nvml_driver(nvml)[0])
    add(&facts, "driver", "identity", "%s", cct_nvml_driver(nvml));
  add_known(&facts, "gpu.sm_mhz", reading.sm_mhz);
  add_known(&facts, "gpu.memory_mhz", reading.memory_mhz);
  add_known(&facts, "gpu.temperature_c", reading.temperature_c);
  add_known(&facts, "gpu.power_mw", reading.power_mw);
  add_known(&facts, "gpu.contexts", reading.contexts);
  add_known(&facts, "gpu.slowed_by", reading.slowed_by);
  return facts.n;
}
