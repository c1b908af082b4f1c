/* SPDX-License-Identifier: Apache-2.0
 * What the host is: CPU, kernel, boot, CPU TEE; and where a rank runs. Read from /proc, /sys, /dev and hwloc, or
 * replayed: with CCTAX_MACHINE=FOLDER in the environment the same paths are read below FOLDER, and hwloc reads
 * FOLDER/hwloc.xml; what was replayed says so in `fixture`, and nothing is bound then. A text that cannot be known is
 * "unknown". */
#ifndef CCT_MACHINE_HOST_FACTS_H
#define CCT_MACHINE_HOST_FACTS_H

#include "base/status.h"

struct cct_host_facts {
  char cpu[96];     /* model name */
  char kernel[96];  /* of the guest: "Linux 6.8.0-60-generic" */
  char tee[16];     /* "none", "tdx", "sev-snp", "cca", "unknown" */
  char boot_id[64]; /* of this start of the machine */
  char fixture[96]; /* the replayed folder, or "" */
  int cores;        /* physical ones that this process may use; 0: not known */
  int gpus;         /* NVIDIA PCI devices that compute; -1: not known */
};
void cct_host_facts_read(struct cct_host_facts *facts_out);
void cct_host_boot_id(char id_out[64]); /* the same alone, without the time that the others take */

struct cct_binding_facts {
  int cores;    /* physical cores of this rank; 0: not bound, ranks share all of them */
  int near_gpu; /* they are those nearest to its GPU: 1 yes, 0 no, -1: no such GPU, or not known */
};
/* Binds this process, number `rank` of the `size` on this host, to its own share of the cores: those near GPU number
 * `rank` (by PCI address, as CUDA_DEVICE_ORDER=PCI_BUS_ID counts) where there is one. With more ranks than cores
 * nothing is bound. */
void cct_rank_bind(int rank, int size, struct cct_binding_facts *facts_out);

#endif
