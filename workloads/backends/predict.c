/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/predict.h"

#include <stdlib.h>

#include "base/log.h"
#include "workloads/backends/sim.h"

static enum cct_status longest_rank(const struct cct_job *job, const struct cct_backend_options *options,
                                    const struct cct_binding *bindings, int n, int64_t *burst_ns_out) {
  const struct cct_backend_ops *sim = &cct_backend_sim;
  struct cct_backend *backend = NULL;
  struct cct_executor *executor = NULL;
  struct cct_burst burst = {.rank_ns = malloc((size_t)job->ranks * sizeof(int64_t))};
  enum cct_status status = burst.rank_ns ? CCT_OK : cct_fail(CCT_NOMEM, "prediction: out of memory");
  if (!status)
    status = sim->open(cct_world_self(), options, &backend);
  if (!status)
    status = sim->load(backend, job, &executor);
  if (!status)
    status = sim->step(executor, bindings, n, &burst);
  int64_t longest = 0;
  for (int rank = 0; !status && rank < job->ranks; rank++)
    longest = burst.rank_ns[rank] > longest ? burst.rank_ns[rank] : longest;
  sim->unload(executor);
  sim->close(backend);
  free(burst.rank_ns);
  if (!status)
    *burst_ns_out = longest;
  return status;
}

enum cct_status cct_predict(const struct cct_job *job, const struct cct_profile *machine,
                            const struct cct_profile *emulated, unsigned mask, const struct cct_binding *bindings,
                            int n, int64_t *step_ns_out) {
  struct cct_job *with_surcharges = NULL;
  struct cct_backend_options options = {.machine = machine, .has_multicast = 1, .emulated = emulated, .scale = 1};
  enum cct_status status = CCT_OK;
  int64_t burst_ns = 0;
  if (emulated) {
    status = cct_emulate(job, emulated, mask, &with_surcharges);
    if ((mask >> CCT_BOUNDARY_CAPABILITY) & 1)
      options.has_multicast = emulated->capability.multicast;
  }
  if (!status)
    status = longest_rank(emulated ? with_surcharges : job, &options, bindings, n, &burst_ns);
  cct_job_free(with_surcharges);
  if (!status)
    *step_ns_out = (burst_ns + n / 2) / n;
  return status;
}
