/* SPDX-License-Identifier: Apache-2.0
 * Experiments: probes that are no program. A backend performs one by its name (backend.h, experiment); this table says
 * what it takes and gives, docs/probe.md what it means. */
#ifndef CCT_WORKLOADS_STEPS_EXPERIMENTS_H
#define CCT_WORKLOADS_STEPS_EXPERIMENTS_H

#include "base/status.h"

#define CCT_MOST_OUTPUTS    4
#define CCT_MOST_PARAMETERS 4

/* Behind a DELAY of so long the GPU is the slower one: 400 submissions of 34.5 us, the dearest published, take 13.8 ms.
 */
#define CCT_PROBE_DELAY_NS 16000000
#define CCT_PROBE_WORK_NS  1000000
/* A model is loaded and saved in pieces of so many bytes: one 8192 x 1024 matrix in bf16. */
#define CCT_PROBE_TENSOR_BYTES (16 << 20)

struct cct_experiment {
  const char *name;
  int n_parameters; /* whole numbers */
  int most_samples; /* of a block; 0: as many as any cell */
  struct {
    const char *name, *unit, *better; /* as a metric of the record */
  } outputs[CCT_MOST_OUTPUTS];
};
const struct cct_experiment *cct_experiment_at(int index); /* NULL behind the last */
int cct_experiment_outputs(const struct cct_experiment *experiment);

struct cct_experiment_call {
  const struct cct_experiment *experiment;
  double parameters[CCT_MOST_PARAMETERS];
};
/* "NAME/PARAMETER/..", parameters as sizes are written: "host_register/4K". Refused in one line; NULL is refused too.
 */
enum cct_status cct_experiment_parse(const char *text, struct cct_experiment_call *call_out) CCT_CHECKED;

#endif
