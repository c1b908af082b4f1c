/* SPDX-License-Identifier: Apache-2.0
 * Starting one block's ranks and seeing them through: the launcher in a process group of its own, its output filtered
 * (progress from process 0, one line of what went wrong instead of the launcher's many), a deadline, signals, and no
 * process left behind. Linux only: what the launcher leaves is adopted (PR_SET_CHILD_SUBREAPER) and ended. */
#ifndef CCT_CLI_LAUNCH_H
#define CCT_CLI_LAUNCH_H

#include <stdint.h>

#include "base/status.h"

/* From here on SIGINT, SIGTERM and SIGHUP end a block in an orderly way; call it once. */
void cct_launch_prepare(void);
int cct_launch_is_stopped(void); /* the signal, or 0 */

struct cct_launch {
  const char *launcher; /* a shell command with {np}; "" for mpirun */
  const char *run;
  int block, processes;
  int64_t deadline_s;
  /* Told the number of cells done of the block; may be NULL. */
  void (*progress)(void *context, int cells_done);
  void *context;
};
/* CCT_OK, CCT_FOUND (a cell failed), or why it ended: CCT_STOPPED (logged) and the like. */
enum cct_status cct_launch_block(const struct cct_launch *launch) CCT_CHECKED;

/* Lines of `cctax-rank --backends`: fills why_cuda_not (size bytes), "" when cuda can work here. */
enum cct_status cct_launch_why_no_cuda(char *why_not_out, unsigned long size) CCT_CHECKED;

#endif
