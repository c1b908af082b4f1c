/* SPDX-License-Identifier: Apache-2.0
 * Files of a cmocka test: a folder of the program's own under /tmp, which is gone behind the group with all that is in
 * it, and single files of a given text. */
#ifndef CCT_TESTS_SCRATCH_H
#define CCT_TESTS_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char scratch[] = "/tmp/cctax-test-XXXXXX";

/* The group's set-up and tear-down. */
static inline int scratch_make(void **state) {
  (void)state;
  return mkdtemp(scratch) ? 0 : -1;
}

static inline int scratch_remove(void **state) {
  char command[sizeof scratch + 16];
  (void)state;
  snprintf(command, sizeof command, "rm -rf %s", scratch);
  return system(command);
}

/* Makes the file whose name is `path`'s, XXXXXX replaced. */
static inline void write_temporary(char *path, const char *text) {
  int fd = mkstemps(path, (int)(strlen(path) - 6 - (size_t)(strstr(path, "XXXXXX") - path)));
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
}

#endif
