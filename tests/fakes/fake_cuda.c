/* SPDX-License-Identifier: Apache-2.0
 * A libcuda.so.1 for machines without one. FAKE_MULTICAST holds one digit a device ("11111111", "10"), or "refused". */
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuMulticastCreate(void);

int cuInit(unsigned flags) {
  return flags || !getenv("FAKE_MULTICAST") ? 100 : 0; /* CUDA_ERROR_NO_DEVICE */
}
int cuDeviceGetCount(int *count) {
  const char *devices = getenv("FAKE_MULTICAST");
  *count = devices && strcmp(devices, "refused") != 0 ? (int)strlen(devices) : 2;
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  const char *devices = getenv("FAKE_MULTICAST");
  if (!devices || !strcmp(devices, "refused") || attribute != 132)
    return 1;
  *value = devices[device] - '0';
  return 0;
}
/* Nothing may ever ask for this: a failed bind can take a host's GPUs out of service. */
int cuMulticastCreate(void) {
  abort();
}
