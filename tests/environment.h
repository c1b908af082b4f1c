/* SPDX-License-Identifier: Apache-2.0
 * The environment of a test: variables, and stand-ins of the driver's libraries (tests/fakes), loaded before the
 * product opens them. */
#ifndef CCT_TESTS_ENVIRONMENT_H
#define CCT_TESTS_ENVIRONMENT_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* NULL: the variable is taken away. */
static inline void set(const char *name, const char *value) {
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

/* `folder`: nvml_new, nvml_old, nvml_none or cuda. Whether it is there. */
static inline int load_fake(const char *folder, const char *library) {
  char path[4096];
  snprintf(path, sizeof path, "%s/fakes/%s/%s.so.1", getenv("CCT_BINARY"), folder, library);
  return dlopen(path, RTLD_NOW) != NULL;
}

#endif
