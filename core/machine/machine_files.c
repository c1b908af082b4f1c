/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/machine_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *cct_machine_fixture(void) {
  const char *folder = getenv("CCTAX_MACHINE");
  return folder ? folder : "";
}

char *cct_machine_place(const char *path, char out[512]) {
  snprintf(out, 512, "%s%s", cct_machine_fixture(), path);
  return out;
}

int cct_machine_exists(const char *path) {
  char at[512];
  return access(cct_machine_place(path, at), F_OK) == 0;
}

FILE *cct_machine_open(const char *path) {
  char at[512];
  return fopen(cct_machine_place(path, at), "re");
}

int cct_machine_line(const char *path, char *out, size_t size) {
  FILE *file = cct_machine_open(path);
  int is_read = file && fgets(out, (int)size, file) != NULL;
  if (file)
    fclose(file);
  if (!is_read)
    out[0] = '\0';
  out[strcspn(out, "\n")] = '\0';
  return is_read;
}

int cct_machine_number(const char *path, double *value_out) {
  char line[64], *end;
  if (!cct_machine_line(path, line, sizeof line))
    return 0;
  double value = strtod(line, &end);
  if (end == line)
    return 0;
  *value_out = value;
  return 1;
}
