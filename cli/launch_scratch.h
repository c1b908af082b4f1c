/* SPDX-License-Identifier: Apache-2.0
 * Where the launcher keeps its session and the shared memory of its ranks. */
#ifndef CCT_CLI_LAUNCH_SCRATCH_H
#define CCT_CLI_LAUNCH_SCRATCH_H

#include "base/status.h"

/* One folder a front end, in memory where that can be, locked while it is used: ranks and a launcher that are killed
 * leave their shared memory behind, which then goes with the folder, at the latest when another front end sweeps. */
enum cct_status cct_scratch_make(char out[64], int *lock_out) CCT_CHECKED;
void cct_scratch_remove(const char *path); /* as far as it can be now */

#endif
