/* SPDX-License-Identifier: Apache-2.0
 * The folder of a run: what may be in it, and that one command at a time works in it. */
#ifndef CCT_CLI_RUN_FOLDER_H
#define CCT_CLI_RUN_FOLDER_H

#include "base/status.h"

struct cct_run_folder {
  char path[3800]; /* absolute */
  int lock;        /* descriptor that holds the lock; -1: none */
  int is_made;     /* this command made it: remove it again if nothing comes of the run */
};

/* A new run: PATH must not exist, or be an empty folder. */
enum cct_status cct_run_folder_make(const char *path, struct cct_run_folder *folder_out) CCT_CHECKED;
/* An existing one, which holds run.json, blocks and nothing else. */
enum cct_status cct_run_folder_open(const char *path, struct cct_run_folder *folder_out) CCT_CHECKED;
/* Leaves it and unlocks it. A run of which nothing was performed or begun (`is_kept` 0) is taken away again. */
void cct_run_folder_close(struct cct_run_folder *folder, int is_kept);

#endif
