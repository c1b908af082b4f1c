/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_runner/watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static struct {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int is_running;
  int64_t deadline_s;
  struct timespec fed;
  char operation[160];
} dog = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int is_past(const struct timespec *when) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > when->tv_sec || (now.tv_sec == when->tv_sec && now.tv_nsec >= when->tv_nsec);
}

static void *watch(void *unused) {
  (void)unused;
  pthread_mutex_lock(&dog.mutex);
  while (dog.is_running) {
    struct timespec when = dog.fed;
    when.tv_sec += dog.deadline_s;
    if (is_past(&when)) {
      (void)cct_fail(CCT_STOPPED,
                     "no progress for %lld s, last in %s; ended (finished cells are kept: --resume goes on, --deadline "
                     "allows more)",
                     (long long)dog.deadline_s, dog.operation);
      _exit(cct_status_exit(CCT_STOPPED));
    }
    pthread_cond_timedwait(&dog.changed, &dog.mutex, &when);
  }
  pthread_mutex_unlock(&dog.mutex);
  return NULL;
}

enum cct_status cct_watchdog_start(int64_t deadline_s) {
  pthread_condattr_t attributes;
  sigset_t all, before;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&dog.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  dog.deadline_s = deadline_s;
  dog.is_running = 1;
  cct_watchdog_feed("start");
  /* Signals are the main thread's. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&dog.thread, NULL, watch, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!error)
    return CCT_OK;
  dog.is_running = 0;
  return cct_fail(CCT_NOMEM, "the watchdog thread cannot be started");
}

void cct_watchdog_feed(const char *format, ...) {
  va_list args;
  va_start(args, format);
  pthread_mutex_lock(&dog.mutex);
  vsnprintf(dog.operation, sizeof dog.operation, format, args);
  clock_gettime(CLOCK_MONOTONIC, &dog.fed);
  pthread_mutex_unlock(&dog.mutex);
  va_end(args);
}

void cct_watchdog_stop(void) {
  pthread_mutex_lock(&dog.mutex);
  int was_running = dog.is_running;
  dog.is_running = 0;
  pthread_cond_signal(&dog.changed);
  pthread_mutex_unlock(&dog.mutex);
  if (!was_running)
    return;
  pthread_join(dog.thread, NULL);
  pthread_cond_destroy(&dog.changed);
}
