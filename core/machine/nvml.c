/* SPDX-License-Identifier: Apache-2.0
 * The few NVML calls are declared here by their published signatures (nvml.h of CUDA 12), so that no header is needed.
 */
#include "machine/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "machine/look_up.h"

struct process { /* nvmlProcessInfo_t of the _v3 calls */
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct process) == 24, "NVML writes an array of these");

struct memory { /* nvmlMemory_v2_t */
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct utilization { /* nvmlUtilization_t: per cent */
  unsigned gpu, memory;
};

enum {
  NVML_OK = 0,
  NVML_INSUFFICIENT_SIZE = 7,
  NVML_CLOCK_SM = 1,
  NVML_CLOCK_MEMORY = 2,
  NVML_SENSOR_GPU = 0
};

struct cct_nvml {
  void *library, *device;
  int (*shutdown)(void);
  int (*clock)(void *device, int type, unsigned *mhz);
  int (*temperature)(void *device, int sensor, unsigned *celsius);
  int (*power)(void *device, unsigned *milliwatts);
  int (*processes)(void *device, unsigned *count, struct process *processes);
  int (*reasons)(void *device, unsigned long long *mask);
  int (*memory)(void *device, struct memory *memory);
  int (*energy)(void *device, unsigned long long *millijoules);
  int (*utilization)(void *device, struct utilization *utilization);
  char driver[80];
};

struct cct_nvml *cct_nvml_open(const char *uuid) {
  int (*init)(void), (*by_uuid)(const char *, void **), (*version)(char *, unsigned);
  struct cct_nvml *n = calloc(1, sizeof *n);
  if (!n)
    return NULL;
  n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!n->library) {
    free(n);
    return NULL;
  }
  LOOK_UP(n->library, "nvmlInit_v2", init);
  LOOK_UP(n->library, "nvmlDeviceGetHandleByUUID", by_uuid);
  LOOK_UP(n->library, "nvmlSystemGetDriverVersion", version);
  LOOK_UP(n->library, "nvmlShutdown", n->shutdown);
  LOOK_UP(n->library, "nvmlDeviceGetClockInfo", n->clock);
  LOOK_UP(n->library, "nvmlDeviceGetTemperature", n->temperature);
  LOOK_UP(n->library, "nvmlDeviceGetPowerUsage", n->power);
  LOOK_UP(n->library, "nvmlDeviceGetComputeRunningProcesses_v3", n->processes);
  LOOK_UP(n->library, "nvmlDeviceGetCurrentClocksThrottleReasons", n->reasons);
  LOOK_UP(n->library, "nvmlDeviceGetMemoryInfo_v2", n->memory);
  LOOK_UP(n->library, "nvmlDeviceGetTotalEnergyConsumption", n->energy);
  LOOK_UP(n->library, "nvmlDeviceGetUtilizationRates", n->utilization);
  if (!init || !by_uuid || !n->shutdown || init() != NVML_OK) {
    dlclose(n->library);
    free(n);
    return NULL;
  }
  if (by_uuid(uuid, &n->device) != NVML_OK) {
    cct_nvml_close(n);
    return NULL;
  }
  if (!version || version(n->driver, sizeof n->driver) != NVML_OK)
    n->driver[0] = '\0';
  return n;
}

void cct_nvml_close(struct cct_nvml *nvml) {
  if (!nvml)
    return;
  nvml->shutdown();
  dlclose(nvml->library);
  free(nvml);
}

void cct_nvml_read(const struct cct_nvml *nvml, struct cct_nvml_reading *reading_out) {
  struct cct_nvml_reading r = {-1, -1, -1, -1, -1, -1};
  unsigned value = 0;
  unsigned long long mask = 0;
  if (nvml) {
    if (nvml->clock && nvml->clock(nvml->device, NVML_CLOCK_SM, &value) == NVML_OK)
      r.sm_mhz = (int)value;
    if (nvml->clock && nvml->clock(nvml->device, NVML_CLOCK_MEMORY, &value) == NVML_OK)
      r.memory_mhz = (int)value;
    if (nvml->temperature && nvml->temperature(nvml->device, NVML_SENSOR_GPU, &value) == NVML_OK)
      r.temperature_c = (int)value;
    if (nvml->power && nvml->power(nvml->device, &value) == NVML_OK)
      r.power_mw = (int)value;
    value = 0; /* asks for the number alone */
    int status = nvml->processes ? nvml->processes(nvml->device, &value, NULL) : -1;
    if (status == NVML_OK || status == NVML_INSUFFICIENT_SIZE)
      r.contexts = (int)value;
    if (nvml->reasons && nvml->reasons(nvml->device, &mask) == NVML_OK)
      r.slowed_by = (long long)mask;
  }
  *reading_out = r;
}

void cct_nvml_usage(const struct cct_nvml *nvml, long long *energy_mj_out, int *utilization_pct_out) {
  unsigned long long energy = 0;
  struct utilization utilization = {0, 0};
  int has_energy = nvml && nvml->energy && nvml->energy(nvml->device, &energy) == NVML_OK;
  int has_share = nvml && nvml->utilization && nvml->utilization(nvml->device, &utilization) == NVML_OK;
  *energy_mj_out = has_energy ? (long long)energy : -1;
  *utilization_pct_out = has_share ? (int)utilization.gpu : -1;
}

int cct_nvml_memory(const struct cct_nvml *nvml, long long *reserved_bytes_out) {
  struct memory memory = {.version = (unsigned)sizeof memory | 2u << 24};
  if (!nvml || !nvml->memory || nvml->memory(nvml->device, &memory) != NVML_OK)
    return 0;
  *reserved_bytes_out = (long long)memory.reserved;
  return 1;
}

const char *cct_nvml_driver(const struct cct_nvml *nvml) {
  return nvml ? nvml->driver : "";
}
