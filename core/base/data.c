/* SPDX-License-Identifier: Apache-2.0 */
#include "base/data.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static int is_json_name(const char *name) {
  size_t length = strlen(name);
  return length > 5 && !strcmp(name + length - 5, ".json");
}

static void data_folder(char *folder, size_t size) {
  const char *given = getenv("CCTAX_DATA");
  char program[2048];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (given && *given) {
    snprintf(folder, size, "%s", given);
    return;
  }
  program[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(program, '/');
  if (slash) {
    *slash = '\0';
    snprintf(folder, size, "%s/../share/cctax", program);
    if (!access(folder, R_OK))
      return;
  }
  snprintf(folder, size, "%s", CCT_SOURCE_DATA);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

int cct_data_names(const char *kind, char **names_out, int most) {
  char root[2200], folder[2300];
  int n = 0;
  data_folder(root, sizeof root);
  snprintf(folder, sizeof folder, "%s/%s", root, kind);
  DIR *directory = opendir(folder);
  struct dirent *entry;
  while (directory && n < most && (entry = readdir(directory)))
    if (is_json_name(entry->d_name) && (names_out[n] = strndup(entry->d_name, strlen(entry->d_name) - 5)))
      n++;
  if (directory)
    closedir(directory);
  qsort(names_out, (size_t)n, sizeof *names_out, compare_names);
  return n;
}

static enum cct_status refuse_name(const char *kind, const char *folder, const char *noun, const char *name) {
  enum {
    MOST = 256
  };
  char *names[MOST];
  int n = cct_data_names(kind, names, MOST);
  const char *near = cct_closest(name, (const char *const *)names, (size_t)n);
  enum cct_status status =
      near ? cct_fail(CCT_USAGE, "%s '%s': not known; did you mean '%s'? (known ones are in %s)", noun, name, near,
                      folder)
           : cct_fail(CCT_USAGE, "%s '%s': not known; give a file (with a / or ending in .json) or a name in %s", noun,
                      name, folder);
  while (n)
    free(names[--n]);
  return status;
}

enum cct_status cct_data_path(const char *kind, const char *noun, const char *name_or_file, char *path_out,
                              size_t size) {
  char root[2200], folder[2300], path[2600];
  if (strchr(name_or_file, '/') || is_json_name(name_or_file)) {
    if ((size_t)snprintf(path_out, size, "%s", name_or_file) >= size)
      return cct_fail(CCT_USAGE, "%s: path too long", name_or_file);
    return CCT_OK;
  }
  data_folder(root, sizeof root);
  snprintf(folder, sizeof folder, "%s/%s", root, kind);
  int length = snprintf(path, sizeof path, "%s/%s.json", folder, name_or_file);
  if ((size_t)length >= sizeof path || (size_t)length >= size || access(path, F_OK))
    return refuse_name(kind, folder, noun, name_or_file);
  memcpy(path_out, path, (size_t)length + 1);
  return CCT_OK;
}
