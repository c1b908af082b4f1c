/* SPDX-License-Identifier: Apache-2.0
 * What can be asked of the GPUs without touching them: NVML's confidential-computing settings and GPU names, and the
 * driver's multicast attribute. Both libraries are found by dlopen; no context is created, no memory allocated, nothing
 * bound, and above all no multicast object: a failed bind can take a host's GPUs out of service.
 * What cannot be known is -1, never a guess; nothing is logged, and `why` says what was asked and what it said. */
#ifndef CCT_MACHINE_GPU_PASSIVE_H
#define CCT_MACHINE_GPU_PASSIVE_H

struct cct_gpu_passive {
  int cc;            /* 1: confidential computing is on in any of its modes; 0: off; -1: not known */
  int cc_feature;    /* as NVML words it: protected PCIe reads 0 here and is CC; -1: not known */
  int environment;   /* 0: unavailable, 1: simulation, 2: production; -1: not known */
  int dev_tools;     /* 1: devtools mode, whose memory and counters are open; -1: not known */
  int multi_gpu;     /* 0: none, 1: protected PCIe, 2: encrypted NVLink; -1: not known (before driver API 12.4) */
  int multicast;     /* the attribute, the lowest over the devices that this process sees; -1: not known */
  int gpus;          /* that NVML lists; -1: not known */
  char gpu_name[96]; /* of all of them; "" if not known or if they differ */
  char why[160];     /* "cc: nvmlSystemGetConfComputeSettings; multicast: 8 devices" */
};

/* About as long as nvmlInit takes. Any thread; call it once and keep the answer, which does not change in a process. */
void cct_gpu_passive_read(struct cct_gpu_passive *facts_out);

#endif
