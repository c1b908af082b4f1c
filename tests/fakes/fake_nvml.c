/* SPDX-License-Identifier: Apache-2.0
 * A libnvidia-ml.so.1 for machines without one. Built with FAKE_OLD it lacks the call of driver API 12.4, with
 * FAKE_NONE both. FAKE_CC is "FEATURE,MULTI_GPU_MODE" ("1,2"), or "refused"; FAKE_GPUS a list of names with ';'
 * between. FAKE_DRIVER is a version, FAKE_READY 0 or 1; FAKE_FABRIC and FAKE_WATTS hold a digit a GPU: its fabric's
 * state, and its power limit in hundreds of watts of 7. What is not set is not supported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int started;

__attribute__((unused)) static int read_cc(unsigned *feature, unsigned *mode) {
  const char *cc = getenv("FAKE_CC");
  if (started <= 0)
    return 1;                                                   /* NVML_ERROR_UNINITIALIZED */
  return cc && sscanf(cc, "%u,%u", feature, mode) == 2 ? 0 : 3; /* NVML_ERROR_NOT_SUPPORTED */
}

static const char *gpu(unsigned index, size_t *length) {
  const char *at = getenv("FAKE_GPUS");
  while (at && *at) {
    *length = strcspn(at, ";");
    if (index-- == 0)
      return at;
    at += *length + (at[*length] == ';');
  }
  return NULL;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetName(void *device, char *name, unsigned length);

int nvmlInit_v2(void) {
  started++;
  return getenv("FAKE_NVML_FAILS") ? 9 : 0; /* NVML_ERROR_DRIVER_NOT_LOADED */
}
int nvmlShutdown(void) {
  return started-- > 0 ? 0 : 1;
}
int nvmlDeviceGetCount_v2(unsigned *count) {
  size_t length;
  for (*count = 0; gpu(*count, &length);)
    ++*count;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  size_t length;
  *device = (void *)gpu(index, &length);
  return *device ? 0 : 2;
}
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
  snprintf(name, length, "%.*s", (int)strcspn(device, ";"), (const char *)device);
  return 0;
}

static unsigned digit(const char *name, const void *device, unsigned *value) {
  const char *digits = getenv(name);
  unsigned index = 0;
  for (const char *at = getenv("FAKE_GPUS"); at && at < (const char *)device; at++)
    index += *at == ';';
  if (!digits || index >= strlen(digits))
    return 3;
  *value = (unsigned)(digits[index] - '0');
  return 0;
}

struct fabric {
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
};
int nvmlSystemGetDriverVersion(char *version, unsigned length);
int nvmlSystemGetConfComputeGpusReadyState(unsigned *ready);
int nvmlDeviceGetGpuFabricInfo(void *device, struct fabric *fabric);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts);
int nvmlDeviceGetPowerManagementDefaultLimit(void *device, unsigned *milliwatts);

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
  const char *driver = getenv("FAKE_DRIVER");
  snprintf(version, length, "%s", driver ? driver : "");
  return driver ? 0 : 3;
}
int nvmlSystemGetConfComputeGpusReadyState(unsigned *ready) {
  const char *says = getenv("FAKE_READY");
  *ready = says && *says == '1';
  return says ? 0 : 3;
}
int nvmlDeviceGetGpuFabricInfo(void *device, struct fabric *fabric) {
  unsigned state = 0;
  int status = (int)digit("FAKE_FABRIC", device, &state);
  *fabric = (struct fabric){.state = (unsigned char)state};
  return status;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
  int status = (int)digit("FAKE_WATTS", device, milliwatts);
  *milliwatts *= 100000;
  return status;
}
int nvmlDeviceGetPowerManagementDefaultLimit(void *device, unsigned *milliwatts) {
  (void)device;
  *milliwatts = 700000;
  return getenv("FAKE_WATTS") ? 0 : 3;
}

#ifndef FAKE_NONE
struct state {
  unsigned environment, feature, tools;
};
int nvmlSystemGetConfComputeState(struct state *state);
int nvmlSystemGetConfComputeState(struct state *state) {
  unsigned mode;
  state->environment = state->tools = 0;
  return read_cc(&state->feature, &mode);
}
#ifndef FAKE_OLD
struct settings {
  unsigned version, environment, feature, tools, mode;
};
int nvmlSystemGetConfComputeSettings(struct settings *settings);
int nvmlSystemGetConfComputeSettings(struct settings *settings) {
  if (settings->version != 0x1000014u)
    return 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
  if (getenv("FAKE_SETTINGS_REFUSED"))
    return 3;
  settings->environment = settings->tools = 0;
  return read_cc(&settings->feature, &settings->mode);
}
#endif
#endif
