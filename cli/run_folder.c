/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/* block-NNNN.h5, with .partial (being performed, or interrupted) or .partial.partial (interrupted while going on). */
static int is_block_name(const char *name) {
  if (strncmp(name, "block-", 6))
    return 0;
  const char *at = name + 6;
  while (isdigit((unsigned char)*at))
    at++;
  return at - name >= 10 && (!strcmp(at, ".h5") || !strcmp(at, ".h5.partial") || !strcmp(at, ".h5.partial.partial"));
}

static int is_ours(const char *name) {
  return !strcmp(name, "run.json") || !strcmp(name, "run.json.partial") || is_block_name(name);
}

/* The first entry that is not a run's own, or any entry with `any`; "" if there is none. */
static enum cct_status find_entry(const char *path, int any, char found_out[NAME_MAX + 1]) {
  DIR *folder = opendir(path);
  struct dirent *entry;
  if (!folder)
    return cct_fail(CCT_IO, "%s: cannot be read: %s", path, strerror(errno));
  *found_out = '\0';
  while (!*found_out && (entry = readdir(folder)))
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && (any || !is_ours(entry->d_name)))
      snprintf(found_out, NAME_MAX + 1, "%s", entry->d_name);
  closedir(folder);
  return CCT_OK;
}

/* The lock is on the folder itself: nothing is left behind, and it ends with this process. */
static enum cct_status lock_folder(const char *path, int *lock_out) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return cct_fail(CCT_IO, "%s: cannot be read: %s", path, strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    int error = errno;
    close(fd);
    return error == EWOULDBLOCK ? cct_fail(CCT_USAGE, "%s: another cctax works on this run", path)
                                : cct_fail(CCT_IO, "%s: cannot be locked: %s", path, strerror(error));
  }
  *lock_out = fd;
  return CCT_OK;
}

static enum cct_status enter(const char *path, int is_made, struct cct_run_folder *folder_out) {
  struct cct_run_folder folder = {.lock = -1, .is_made = is_made};
  char *whole = realpath(path, NULL);
  if (!whole || strlen(whole) >= sizeof folder.path) {
    free(whole);
    return cct_fail(CCT_IO, "%s: cannot be entered: %s", path, strerror(whole ? ENAMETOOLONG : errno));
  }
  snprintf(folder.path, sizeof folder.path, "%s", whole);
  free(whole);
  enum cct_status status = lock_folder(folder.path, &folder.lock);
  if (!status)
    *folder_out = folder;
  return status;
}

enum cct_status cct_run_folder_make(const char *path, struct cct_run_folder *folder_out) {
  char found[NAME_MAX + 1], file[4096];
  int is_made = mkdir(path, 0777) == 0;
  if (!is_made && errno != EEXIST)
    return cct_fail(CCT_IO, "%s: cannot be made: %s", path, strerror(errno));
  snprintf(file, sizeof file, "%s/run.json", path);
  if (!is_made && access(file, F_OK) == 0)
    return cct_fail(CCT_USAGE,
                    "%s: holds a run; --resume finishes it, --append adds this boot to it, or give another -o", path);
  enum cct_status status = is_made ? CCT_OK : find_entry(path, 1, found);
  if (!status && !is_made && *found)
    return cct_fail(CCT_USAGE, "%s: holds other files ('%s'); give a new or empty folder", path, found);
  if (!status)
    status = enter(path, is_made, folder_out);
  if (status && is_made)
    rmdir(path);
  return status;
}

enum cct_status cct_run_folder_open(const char *path, struct cct_run_folder *folder_out) {
  char found[NAME_MAX + 1];
  enum cct_status status = find_entry(path, 0, found);
  if (!status && *found)
    return cct_fail(CCT_USAGE, "%s: holds a file that is no part of a run: '%s'; move it away", path, found);
  return status ? status : enter(path, 0, folder_out);
}

static int has_blocks(const char *path) {
  DIR *folder = opendir(path);
  struct dirent *entry;
  int found = !folder;
  while (!found && (entry = readdir(folder)))
    found = is_block_name(entry->d_name);
  if (folder)
    closedir(folder);
  return found;
}

void cct_run_folder_close(struct cct_run_folder *folder, int is_kept) {
  if (*folder->path && !is_kept && !has_blocks(folder->path)) {
    char file[4096];
    snprintf(file, sizeof file, "%s/run.json", folder->path);
    unlink(file);
    if (folder->is_made)
      rmdir(folder->path);
  }
  if (folder->lock >= 0)
    close(folder->lock);
  folder->lock = -1;
}
