/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/launch_scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

static int remove_entry(const char *path, const struct stat *facts, int type, struct FTW *at) {
  (void)facts;
  (void)type;
  (void)at;
  (void)remove(path); /* what cannot be removed now is tried again before the next block */
  return 0;
}

void cct_scratch_remove(const char *path) {
  nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static const char *scratch_base(void) {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

/* What front ends that were killed left: their lock on the folder went with them. */
static void remove_stale(const char *prefix) {
  DIR *folder = opendir(scratch_base());
  struct dirent *entry;
  while (folder && (entry = readdir(folder))) {
    char path[512];
    if (strncmp(entry->d_name, prefix, strlen(prefix)))
      continue;
    snprintf(path, sizeof path, "%s/%s", scratch_base(), entry->d_name);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
      cct_scratch_remove(path);
    if (fd >= 0)
      close(fd);
  }
  if (folder)
    closedir(folder);
}

enum cct_status cct_scratch_make(char out[64], int *lock_out) {
  char prefix[32];
  snprintf(prefix, sizeof prefix, "cctax-%u-", (unsigned)geteuid());
  remove_stale(prefix);
  snprintf(out, 64, "%s/%s%d", scratch_base(), prefix, (int)getpid());
  for (int tries = 0; tries < 3; tries++) { /* another sweep may come between making and locking it */
    if (mkdir(out, 0700) == 0 && (*lock_out = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0 &&
        flock(*lock_out, LOCK_EX | LOCK_NB) == 0)
      return CCT_OK;
    if (*lock_out >= 0)
      close(*lock_out);
    *lock_out = -1;
  }
  return cct_fail(CCT_IO, "%s: cannot be made: %s", out, strerror(errno));
}
