/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_runner/condition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data.h"
#include "base/log.h"
#include "machine/gpu_passive.h"
#include "machine/host_facts.h"
#include "workloads/program/profile.h"

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

static int is_of(const struct cct_profile *profile, const char *gpu) {
  size_t length = strlen(profile->platform.gpu);
  return length && !strncmp(gpu, profile->platform.gpu, length) && (!gpu[length] || gpu[length] == ' ');
}

enum cct_status cct_condition_stripped(const char *gpu, char *profile_out, size_t size) {
  enum {
    MOST = 256
  };
  char *names[MOST];
  int n = cct_data_names("profiles", names, MOST);
  struct cct_profile *best = NULL;
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < n; i++) {
    struct cct_profile *profile = NULL;
    status = cct_profile_load(names[i], &profile);
    if (!status && is_of(profile, gpu)) {
      if (best && memcmp(&best->capability, &profile->capability, sizeof best->capability))
        status = cct_fail(CCT_USAGE,
                          "condition 'stripped': profiles %s and %s of '%s' differ in what CC takes away; "
                          "name one by --profile",
                          profile_out, names[i], gpu);
      if (!best || profile->platform.partition > best->platform.partition) {
        struct cct_profile *other = best;
        best = profile;
        profile = other;
        snprintf(profile_out, size, "%s", names[i]);
      }
    }
    cct_profile_free(profile);
  }
  if (!status && !best)
    status = cct_fail(CCT_USAGE,
                      "condition 'stripped': no shipped profile is of %s%s%s, so what CC takes away is not "
                      "known; name one by --profile",
                      *gpu ? "'" : "", *gpu ? gpu : "a GPU whose name is not known", *gpu ? "'" : "");
  cct_profile_free(best);
  while (n)
    free(names[--n]);
  return status;
}
