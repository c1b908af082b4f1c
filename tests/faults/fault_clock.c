/* SPDX-License-Identifier: Apache-2.0
 * Preloaded by the fault campaign: the wall clock jumps by up to a day, to and fro, at every look. Monotonic clocks
 * stay. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long jump(void) {
  static unsigned seed = 1;
  return (long)(rand_r(&seed) % 172800) - 86400;
}

int clock_gettime(clockid_t id, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real)
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, now);
  if (id == CLOCK_REALTIME)
    now->tv_sec += jump();
  return result;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec at;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &at);
  now->tv_sec = at.tv_sec;
  now->tv_usec = at.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  if (out)
    *out = at.tv_sec;
  return at.tv_sec;
}
