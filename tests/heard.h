/* SPDX-License-Identifier: Apache-2.0
 * What a test's callee writes to stderr: between listen() and hear(), which leaves it in `said`. */
#ifndef CCT_TESTS_HEARD_H
#define CCT_TESTS_HEARD_H

#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

static char said[2048];
static int stderr_before = -1;

static inline void listen(void) {
  fflush(stderr);
  stderr_before = dup(2);
  FILE *file = tmpfile();
  dup2(fileno(file), 2);
  fclose(file);
}

static inline void hear(void) {
  fflush(stderr);
  off_t end = lseek(2, 0, SEEK_END);
  size_t n = (size_t)end < sizeof said - 1 ? (size_t)end : sizeof said - 1;
  ssize_t got = pread(2, said, n, 0);
  said[got > 0 ? got : 0] = '\0';
  dup2(stderr_before, 2);
  close(stderr_before);
}

#endif
