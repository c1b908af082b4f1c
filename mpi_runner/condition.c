/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_runner/condition.h"

#include <stdio.h>
#include <string.h>

#include "machine/gpu_passive.h"
#include "machine/host_facts.h"

void cct_machine_state_read(struct cct_machine_state *state_out) {
  struct cct_host_facts host;
  struct cct_gpu_passive gpu;
  struct cct_machine_state state = {0};
  cct_host_facts_read(&host);
  cct_gpu_passive_read(&gpu);
  memcpy(state.tee, host.tee, sizeof state.tee);
  state.cc = gpu.cc;
  memcpy(state.gpu, gpu.gpu_name, sizeof state.gpu);
  *state_out = state;
}

const char *cct_condition_detected(const char *backend, const struct cct_machine_state *state) {
  int is_tee = strcmp(state->tee, "none") != 0, is_cc = !strcmp(backend, "cuda") && state->cc == 1;
  if (is_cc)
    return is_tee ? "on" : "misconfigured";
  if (!strcmp(state->tee, "unknown"))
    return "unknown";
  return is_tee ? "tee" : "off";
}

int cct_condition_fits(const char *backend, const char *condition, const struct cct_machine_state *state, char *why,
                       size_t size) {
  int is_built = !strcmp(condition, "stripped") || !strncmp(condition, "emulated:", 9);
  if (!strcmp(backend, "sim")) {
    if (is_built || !strcmp(condition, "off"))
      return 1;
    snprintf(why, size, "sim plays a clear machine; ask for emulated:PROFILE");
    return 0;
  }
  const char *detected = cct_condition_detected(backend, state), *needed = is_built ? "off" : condition;
  if (!strcmp(detected, needed))
    return 1;
  if (!strcmp(detected, "misconfigured"))
    snprintf(why, size, "the GPUs' confidential computing is on and the CPU has no TEE: a misconfiguration");
  else
    snprintf(why, size, "%s needs a machine that is '%s'; this one is '%s' (CPU TEE %s, GPU CC %s)", condition, needed,
             detected, state->tee,
             state->cc == 1   ? "on"
             : state->cc == 0 ? "off"
                              : "not known");
  return 0;
}
