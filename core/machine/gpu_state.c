/* SPDX-License-Identifier: Apache-2.0
 * The few NVML calls are declared here by their published signatures (nvml.h of CUDA 12.4), so that no header is
 * needed.
 */
#include "machine/gpu_state.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "machine/look_up.h"
#include "machine/nvml.h"

struct nvml_memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct nvml_cc_memory { /* nvmlConfComputeMemSizeInfo_t */
  unsigned long long protected_kib, unprotected_kib;
};
struct nvml_cc_caps { /* nvmlConfComputeSystemCaps_t */
  unsigned cpu, gpus;
};
struct nvml_fabric { /* nvmlGpuFabricInfo_t */
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
};
enum {
  NVML_OK = 0,
  NVML_INSUFFICIENT_SIZE = 7,
  NVML_MEMORY_V2 = (int)sizeof(struct nvml_memory_v2) | 2 << 24,
  FABRIC_COMPLETED = 3,
};
_Static_assert(NVML_MEMORY_V2 == 0x2000028, "NVML checks size and version by this number");
_Static_assert(sizeof(struct nvml_fabric) == 28, "NVML writes so much");

static double lowest(double known, double value) {
  return known < 0 || value < known ? value : known;
}

static double highest(double known, double value) {
  return value > known ? value : known;
}

/* A call `name`(device, unsigned *) of NVML. */
static int ask(void *nvml, const char *name, void *device, unsigned *value_out) {
  int (*call)(void *device, unsigned *value);
  LOOK_UP(nvml, name, call);
  return call && call(device, value_out) == NVML_OK;
}

static void read_system(void *nvml, struct cct_gpu_state *s) {
  int (*version)(char *, unsigned), (*cuda)(int *), (*caps)(struct nvml_cc_caps *), (*ready)(unsigned *);
  struct nvml_cc_caps can;
  unsigned is_ready;
  LOOK_UP(nvml, "nvmlSystemGetDriverVersion", version);
  LOOK_UP(nvml, "nvmlSystemGetCudaDriverVersion_v2", cuda);
  LOOK_UP(nvml, "nvmlSystemGetConfComputeCapabilities", caps);
  LOOK_UP(nvml, "nvmlSystemGetConfComputeGpusReadyState", ready);
  if (!version || version(s->driver, sizeof s->driver) != NVML_OK)
    s->driver[0] = '\0';
  if (!cuda || cuda(&s->cuda) != NVML_OK)
    s->cuda = -1;
  if (caps && caps(&can) == NVML_OK) {
    s->cpu_tee = (int)can.cpu;
    s->is_capable = (int)can.gpus;
  }
  if (ready && ready(&is_ready) == NVML_OK)
    s->is_ready = is_ready != 0;
}

static void read_memory(void *nvml, void *device, struct cct_gpu_state *s) {
  struct nvml_memory_v2 memory = {.version = (unsigned)NVML_MEMORY_V2};
  struct nvml_cc_memory cc;
  int (*get_memory)(void *, struct nvml_memory_v2 *), (*get_cc)(void *, struct nvml_cc_memory *);
  LOOK_UP(nvml, "nvmlDeviceGetMemoryInfo_v2", get_memory);
  LOOK_UP(nvml, "nvmlDeviceGetConfComputeMemSizeInfo", get_cc);
  if (get_memory && get_memory(device, &memory) == NVML_OK) {
    s->memory_bytes = lowest(s->memory_bytes, (double)memory.total);
    s->reserved_bytes = highest(s->reserved_bytes, (double)memory.reserved);
  }
  if (get_cc && get_cc(device, &cc) == NVML_OK) {
    s->protected_bytes = lowest(s->protected_bytes, (double)cc.protected_kib * 1024);
    s->unprotected_bytes = lowest(s->unprotected_bytes, (double)cc.unprotected_kib * 1024);
  }
}

static void read_fabric(void *nvml, void *device, struct cct_gpu_state *s) {
  struct nvml_fabric fabric;
  int (*get)(void *, struct nvml_fabric *);
  LOOK_UP(nvml, "nvmlDeviceGetGpuFabricInfo", get);
  if (!get || get(device, &fabric) != NVML_OK)
    return;
  s->fabric = (int)lowest(s->fabric, fabric.state);
  if (fabric.state == FABRIC_COMPLETED && s->fabric_status <= 0)
    s->fabric_status = fabric.status;
}

/* Energy counts from the load of the driver, so a GPU that has worked since shows a mean power above its idle one. */
static void read_power(void *nvml, void *device, int now_mw, struct cct_gpu_state *s) {
  unsigned limit, standard;
  unsigned long long energy_mj;
  int (*get_energy)(void *, unsigned long long *);
  if (ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", device, &limit) &&
      ask(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", device, &standard) &&
      (s->power_limit_w < 0 || (double)limit * s->power_default_w < (double)standard * s->power_limit_w)) {
    s->power_limit_w = limit / 1e3;
    s->power_default_w = standard / 1e3;
  }
  LOOK_UP(nvml, "nvmlDeviceGetTotalEnergyConsumption", get_energy);
  if (now_mw >= 0 && get_energy && get_energy(device, &energy_mj) == NVML_OK && (double)energy_mj / 1e3 > s->energy_j) {
    s->energy_j = (double)energy_mj / 1e3;
    s->power_w = now_mw / 1e3;
  }
}

static void read_past(void *nvml, void *device, struct cct_gpu_state *s) {
  unsigned is_on = 0, count = 0;
  int (*get)(void *, unsigned *, unsigned *);
  LOOK_UP(nvml, "nvmlDeviceGetAccountingPids", get);
  if (!get || !ask(nvml, "nvmlDeviceGetAccountingMode", device, &is_on) || !is_on)
    return;
  int status = get(device, &count, NULL);
  if (status == NVML_OK || status == NVML_INSUFFICIENT_SIZE)
    s->past_processes = (s->past_processes < 0 ? 0 : s->past_processes) + (int)count;
}

static void read_now(const char *uuid, struct cct_nvml_reading *now_out, struct cct_gpu_state *s) {
  struct cct_nvml *one = cct_nvml_open(uuid);
  cct_nvml_read(one, now_out);
  cct_nvml_close(one);
  s->sm_mhz_lowest = (int)lowest(s->sm_mhz_lowest, now_out->sm_mhz);
  s->sm_mhz_highest = (int)highest(s->sm_mhz_highest, now_out->sm_mhz);
  s->temperature_c = (int)highest(s->temperature_c, now_out->temperature_c);
  if (now_out->contexts >= 0)
    s->contexts = (s->contexts < 0 ? 0 : s->contexts) + now_out->contexts;
  if (now_out->slowed_by >= 0)
    s->slowed_by = (s->slowed_by < 0 ? 0 : s->slowed_by) | now_out->slowed_by;
}

static void read_device(void *nvml, void *device, struct cct_gpu_state *s) {
  char uuid[96] = "";
  unsigned value, pending;
  struct cct_nvml_reading now = {-1, -1, -1, -1, -1, -1};
  int (*get_uuid)(void *, char *, unsigned), (*get_mig)(void *, unsigned *, unsigned *);
  LOOK_UP(nvml, "nvmlDeviceGetUUID", get_uuid);
  LOOK_UP(nvml, "nvmlDeviceGetMigMode", get_mig);
  if (get_uuid && get_uuid(device, uuid, sizeof uuid) == NVML_OK)
    read_now(uuid, &now, s);
  read_memory(nvml, device, s);
  read_fabric(nvml, device, s);
  read_power(nvml, device, now.power_mw, s);
  read_past(nvml, device, s);
  if (ask(nvml, "nvmlDeviceGetPersistenceMode", device, &value))
    s->is_persistent = (int)lowest(s->is_persistent, value);
  if (get_mig && get_mig(device, &value, &pending) == NVML_OK)
    s->is_mig = (int)highest(s->is_mig, value);
}

void cct_gpu_state_read(struct cct_gpu_state *state_out) {
  struct cct_gpu_state s = {0,  -1, "", -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                            -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  int (*init)(void), (*shutdown)(void), (*get_count)(unsigned *), (*get_device)(unsigned, void **);
  unsigned count = 0;
  void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!nvml)
    goto out;
  LOOK_UP(nvml, "nvmlInit_v2", init);
  LOOK_UP(nvml, "nvmlShutdown", shutdown);
  LOOK_UP(nvml, "nvmlDeviceGetCount_v2", get_count);
  LOOK_UP(nvml, "nvmlDeviceGetHandleByIndex_v2", get_device);
  if (!init || !shutdown || init() != NVML_OK)
    goto out;
  s.is_nvml = 1;
  read_system(nvml, &s);
  if (get_count && get_device && get_count(&count) == NVML_OK)
    s.gpus = (int)count;
  for (unsigned i = 0; i < count; i++) {
    void *device;
    if (get_device(i, &device) == NVML_OK)
      read_device(nvml, device, &s);
  }
  shutdown();
out:
  if (nvml)
    dlclose(nvml);
  *state_out = s;
}
