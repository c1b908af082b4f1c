/* SPDX-License-Identifier: Apache-2.0
 * Conditions against the machine: off, on and tee are detected, never claimed. off: GPU CC off, no CPU TEE; on: both;
 * tee: the CPU TEE alone; stripped and emulated stand on off. GPU CC without a TEE is a misconfiguration. The host
 * backend has no GPU and looks at the TEE alone; sim is no machine and takes off, stripped and emulated. */
#ifndef CCT_MPI_RUNNER_CONDITION_H
#define CCT_MPI_RUNNER_CONDITION_H

#include <stddef.h>

#include "base/status.h"

struct cct_machine_state {
  char tee[16]; /* as core/machine/host_facts.h names it */
  int cc;       /* of the GPUs: 1 on, 0 off, -1 not known */
  char gpu[96]; /* "" if none or not known */
};
void cct_machine_state_read(struct cct_machine_state *state_out);

/* "off", "on", "tee", "misconfigured", or "unknown". */
const char *cct_condition_detected(const char *backend, const struct cct_machine_state *state);
/* 1 if blocks of `condition` can be performed on this machine in its present state; else 0 and one line of why. */
int cct_condition_fits(const char *backend, const char *condition, const struct cct_machine_state *state, char *why,
                       size_t size);

/* The shipped profile whose capability says what CC takes away on GPUs of this NVML name: of those whose platform.gpu
 * the name begins with, the largest guest. None, or some that differ in it, is refused: --profile names one. */
enum cct_status cct_condition_stripped(const char *gpu, char *profile_out, size_t size) CCT_CHECKED;

#endif
