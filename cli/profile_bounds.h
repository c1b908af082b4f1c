/* SPDX-License-Identifier: Apache-2.0
 * A profile at the bounds of its confidential costs: all at their dear end, or all at their cheap end, never cheaper
 * than the clear cost, since a surcharge is not negative. */
#ifndef CCT_CLI_PROFILE_BOUNDS_H
#define CCT_CLI_PROFILE_BOUNDS_H

#include "workloads/program/profile.h"

/* Borrows from `profile`; release with cct_bounded_free before it. */
enum cct_status cct_profile_at_bound(const struct cct_profile *profile, int is_dear,
                                     struct cct_profile *bounded_out) CCT_CHECKED;
void cct_bounded_free(struct cct_profile *bounded);

#endif
