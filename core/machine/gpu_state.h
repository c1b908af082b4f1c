/* SPDX-License-Identifier: Apache-2.0
 * What NVML says of the GPUs' state beyond gpu_passive.h: readiness and protected memory under confidential computing,
 * fabric, power limits, and what each GPU has done since its driver was loaded. Over all GPUs, the worst value of each.
 * Only asked, never set: no context is created and no state changed. What is not known is -1, or "". */
#ifndef CCT_MACHINE_GPU_STATE_H
#define CCT_MACHINE_GPU_STATE_H

struct cct_gpu_state {
  int is_nvml;     /* 1: it answers; 0: it is not here, or does not start */
  int gpus;        /* that it lists */
  char driver[80]; /* "580.159.04" */
  int cuda;        /* the newest CUDA that the driver takes, 13000 for 13.0 */
  int is_ready;    /* under CC: 1 takes work, 0 does not yet */
  int cpu_tee;     /* what NVML takes the CPU for: 0 none, 1 SEV, 2 TDX, 3 SEV-SNP, 4 SEV-SNP with vTOM */
  int is_capable;  /* of confidential computing */
  double memory_bytes, reserved_bytes;       /* the least memory of a GPU; the most that the driver keeps of it */
  double protected_bytes, unprotected_bytes; /* the least of a GPU */
  int fabric;                                /* the least: 0 has none, 1 not started, 2 in progress, 3 completed */
  int fabric_status;                         /* NVML's error of a completed registration; 0: none */
  int is_persistent;                         /* persistence mode, on all GPUs */
  int is_mig;                                /* on any GPU */
  double power_limit_w, power_default_w;     /* of the GPU whose limit is lowest beside its default */
  double power_w, energy_j;                  /* of the GPU that used most since the driver was loaded */
  int sm_mhz_lowest, sm_mhz_highest, temperature_c;
  int contexts;        /* processes that compute now, over all GPUs */
  int past_processes;  /* that ended since the driver was loaded; -1 also where NVML's accounting is off */
  long long slowed_by; /* NVML's mask of why clocks are lower than asked for, of all GPUs */
};

/* About as long as nvmlInit and some milliseconds a GPU. */
void cct_gpu_state_read(struct cct_gpu_state *state_out);

#endif
