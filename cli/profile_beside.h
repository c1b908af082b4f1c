/* SPDX-License-Identifier: Apache-2.0
 * What probes measure and no profile holds: copies at once, what 72 GB a GPU take, registered collectives, experiments.
 * Each has its interval and is stable or not, as a profile's values are; docs/probe.md states the formulas. */
#ifndef CCT_CLI_PROFILE_BESIDE_H
#define CCT_CLI_PROFILE_BESIDE_H

#include "cli/profile_make.h"

/* The model whose loading and saving is stated, whatever was measured. */
#define CCT_MODEL_BYTES 72e9

/* Adds lines, measured or unstable, behind the report's. `fitted` has a column for each of the points'. */
enum cct_status cct_profile_beside(const struct cct_probe_points *points, const struct cct_fitted *fitted,
                                   struct cct_profile_report *report) CCT_CHECKED;

#endif
