/* SPDX-License-Identifier: Apache-2.0
 * What drifts on a GPU while it is measured: clocks, temperature, power, other programs. Read between cells, never
 * inside one. NVML is found by dlopen; nothing here changes a setting. A value that cannot be known is -1. (What never
 * changes, the confidential-computing settings and names, is gpu_passive.h's.) */
#ifndef CCT_MACHINE_NVML_H
#define CCT_MACHINE_NVML_H

struct cct_nvml; /* one GPU */

struct cct_nvml_reading {
  int sm_mhz, memory_mhz; /* current clocks */
  int temperature_c;
  int power_mw;
  int contexts;        /* processes that compute on this GPU, this one among them */
  long long slowed_by; /* NVML's bit mask of why clocks are below what was asked for; bit 0: idle */
};

/* `uuid` as nvidia-smi prints it, "GPU-...". NULL where there is no NVML or no such GPU. */
struct cct_nvml *cct_nvml_open(const char *uuid);
void cct_nvml_close(struct cct_nvml *nvml); /* NULL-safe */
/* NULL-safe: everything -1 then. Takes about a millisecond. */
void cct_nvml_read(const struct cct_nvml *nvml, struct cct_nvml_reading *reading_out);
/* Energy since the driver was loaded in mJ, and the share of the last second or so (NVML: 1/6 to 1 s) in which any
 * kernel ran, in per cent; each -1 where it is not told. NULL-safe. */
void cct_nvml_usage(const struct cct_nvml *nvml, long long *energy_mj_out, int *utilization_pct_out);
/* What the driver keeps of the GPU's memory for itself; 0: it does not tell. */
int cct_nvml_memory(const struct cct_nvml *nvml, long long *reserved_bytes_out);
/* "580.159.04", or "" */
const char *cct_nvml_driver(const struct cct_nvml *nvml);

#endif
