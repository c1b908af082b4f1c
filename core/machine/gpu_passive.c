/* SPDX-License-Identifier: Apache-2.0
 * The few NVML and driver calls are declared here, by their published signatures (nvml.h of CUDA 12.4, cuda.h of 12.1),
 * so that neither header is needed to build. */
#include "machine/gpu_passive.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "machine/look_up.h"

struct nvml_cc_state { /* nvmlConfComputeSystemState_t, since driver API 12.2 */
  unsigned environment, cc_feature, dev_tools_mode;
};
struct nvml_cc_settings { /* nvmlSystemConfComputeSettings_v1_t, since driver API 12.4 */
  unsigned version, environment, cc_feature, dev_tools_mode, multi_gpu_mode;
};
enum {
  NVML_OK = 0,
  NVML_CC_SETTINGS_V1 = (int)sizeof(struct nvml_cc_settings) | 1 << 24,
  CU_OK = 0,
  CU_MULTICAST_SUPPORTED = 132, /* CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED */
};
_Static_assert(NVML_CC_SETTINGS_V1 == 0x1000014, "NVML checks size and version by this number");

typedef int nvml_call(void);
typedef int nvml_state_call(struct nvml_cc_state *state);
typedef int nvml_settings_call(struct nvml_cc_settings *settings);
typedef int nvml_count_call(unsigned *count);
typedef int nvml_device_call(unsigned index, void **device);
typedef int nvml_name_call(void *device, char *name, unsigned length);
typedef int cu_init_call(unsigned flags);
typedef int cu_count_call(int *count);
typedef int cu_attribute_call(int *value, int attribute, int device);

/* The new call first: only it knows of protected PCIe and encrypted NVLink. A driver that has the call but refuses it
 * is asked the old way; one that refuses both leaves the answer open, where NCCL would take it for off. */
static const char *read_cc(void *nvml, struct cct_gpu_passive *facts) {
  struct nvml_cc_settings settings = {.version = NVML_CC_SETTINGS_V1};
  struct nvml_cc_state state = {0};
  nvml_settings_call *get_settings;
  nvml_state_call *get_state;
  LOOK_UP(nvml, "nvmlSystemGetConfComputeSettings", get_settings);
  if (get_settings && get_settings(&settings) == NVML_OK) {
    facts->multi_gpu = (int)settings.multi_gpu_mode;
    facts->cc = settings.cc_feature == 1 || settings.multi_gpu_mode != 0;
    facts->cc_feature = (int)settings.cc_feature;
    facts->environment = (int)settings.environment;
    facts->dev_tools = (int)settings.dev_tools_mode;
    return "nvmlSystemGetConfComputeSettings";
  }
  LOOK_UP(nvml, "nvmlSystemGetConfComputeState", get_state);
  if (get_state && get_state(&state) == NVML_OK) {
    facts->cc = state.cc_feature == 1;
    facts->cc_feature = (int)state.cc_feature;
    facts->environment = (int)state.environment;
    facts->dev_tools = (int)state.dev_tools_mode;
    return "nvmlSystemGetConfComputeState";
  }
  return get_settings || get_state ? "NVML refused" : "NVML has no such call";
}

static void read_names(void *nvml, struct cct_gpu_passive *facts) {
  nvml_count_call *get_count;
  nvml_device_call *get_device;
  nvml_name_call *get_name;
  unsigned count = 0;
  LOOK_UP(nvml, "nvmlDeviceGetCount_v2", get_count);
  LOOK_UP(nvml, "nvmlDeviceGetHandleByIndex_v2", get_device);
  LOOK_UP(nvml, "nvmlDeviceGetName", get_name);
  if (!get_count || !get_device || !get_name || get_count(&count) != NVML_OK)
    return;
  facts->gpus = (int)count;
  for (unsigned i = 0; i < count; i++) {
    char name[sizeof facts->gpu_name] = "";
    void *device;
    int is_known = get_device(i, &device) == NVML_OK && get_name(device, name, sizeof name) == NVML_OK;
    if (!is_known || (i && strcmp(name, facts->gpu_name) != 0)) {
      facts->gpu_name[0] = '\0';
      return;
    }
    memcpy(facts->gpu_name, name, sizeof name);
  }
}

static const char *read_nvml(struct cct_gpu_passive *facts) {
  void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!nvml)
    return "no NVML here";
  nvml_call *init, *shutdown;
  const char *why = "NVML does not start";
  LOOK_UP(nvml, "nvmlInit_v2", init);
  LOOK_UP(nvml, "nvmlShutdown", shutdown);
  if (init && shutdown && init() == NVML_OK) { /* counted: the application's own use is not disturbed */
    why = read_cc(nvml, facts);
    read_names(nvml, facts);
    shutdown();
  }
  dlclose(nvml);
  return why;
}

static int read_multicast(struct cct_gpu_passive *facts) {
  /* Kept open: a driver library that is unloaded again takes its exit handlers with it. */
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  cu_init_call *init;
  cu_count_call *get_count;
  cu_attribute_call *get_attribute;
  int count = 0, lowest = -1;
  if (!cuda)
    return -1;
  LOOK_UP(cuda, "cuInit", init);
  LOOK_UP(cuda, "cuDeviceGetCount", get_count);
  LOOK_UP(cuda, "cuDeviceGetAttribute", get_attribute);
  if (!init || !get_count || !get_attribute || init(0) != CU_OK || get_count(&count) != CU_OK)
    return -1;
  for (int device = 0; device < count; device++) { /* CUdevice is the ordinal */
    int value;
    if (get_attribute(&value, CU_MULTICAST_SUPPORTED, device) != CU_OK)
      return -1;
    lowest = lowest < 0 || value < lowest ? value : lowest;
  }
  facts->multicast = lowest;
  return count;
}

void cct_gpu_passive_read(struct cct_gpu_passive *facts_out) {
  struct cct_gpu_passive facts = {
      .cc = -1, .cc_feature = -1, .environment = -1, .dev_tools = -1, .multi_gpu = -1, .multicast = -1, .gpus = -1};
  const char *cc_why = read_nvml(&facts);
  int devices = read_multicast(&facts);
  if (devices < 0)
    snprintf(facts.why, sizeof facts.why, "cc: %s; multicast: the driver does not say", cc_why);
  else
    snprintf(facts.why, sizeof facts.why, "cc: %s; multicast: %d devices", cc_why, devices);
  *facts_out = facts;
}
