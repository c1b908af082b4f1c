/* SPDX-License-Identifier: Apache-2.0
 * What a rank does whose peer does not come to a collective, or dies in one. The process ends itself: exit 0, the
 * others noticed in time and said so; 1, they did not. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpu_check.h"

#define REPETITIONS 200000 /* a burst of many seconds */
#define SPARED_S    5      /* beyond the deadline: to abort communicators, and until the fault comes */

static int is_deadly, sleep_s;

/* In the midst of a burst, whatever the rank does. */
static void on_alarm(int number) {
  (void)number;
  if (is_deadly)
    raise(SIGKILL);
  nanosleep(&(struct timespec){.tv_sec = sleep_s}, NULL);
  _exit(0);
}

static void others_must_stop(struct gpu *gpu, int dies) {
  struct build b;
  struct arm arm;
  build_begin(&b, "lost rank", FORM_CLEAR, 0);
  for (int i = 0; i < 8; i++)
    build_collective(&b, CCT_COLL_ALL_REDUCE, 0, 1 << 20, CCT_TYPE_BF16, CCT_ALGORITHM_AUTO);
  build_sync(&b);
  arm_open(gpu, &arm, "lost rank", build_end(&b, gpu->world->size), 0);
  arms_time(gpu, &arm, 1, 3, 1, NULL);
  int is_last = gpu->world->rank == gpu->world->size - 1;
  int64_t deadline_ns = gpu->options.deadline_ns, took = 0;
  struct cct_burst burst = {0, &took};
  is_deadly = dies;
  sleep_s = (int)(deadline_ns / 1000000000) + SPARED_S + 2;
  if (is_last) {
    signal(SIGALRM, on_alarm);
    alarm(1);
  }
  int64_t start_ns = cct_clock_ns();
  enum cct_status status = gpu->ops->step(arm.x, NULL, REPETITIONS, &burst);
  int64_t until_ns = cct_clock_ns() - start_ns;
  int is_good = status == CCT_STOPPED && until_ns < deadline_ns + SPARED_S * INT64_C(1000000000);
  if (gpu->world->rank == 0)
    printf("%s  a rank that %s in a collective: %s after %.1f s (deadline %.0f s): %s\n", is_good ? "PASS" : "FAIL",
           dies ? "dies" : "is late", cct_status_name(status), (double)until_ns / 1e9, (double)deadline_ns / 1e9,
           cct_log_last());
  fflush(stdout);
  _exit(!is_good);
}

void fault_late(struct gpu *gpu) {
  others_must_stop(gpu, 0);
}
void fault_lost(struct gpu *gpu) {
  others_must_stop(gpu, 1);
}
