/* SPDX-License-Identifier: Apache-2.0
 * What a rank does whose peer does not come to a collective, or dies in one. Two ranks are forks of this process, so
 * that no launcher ends one for the other's sake. A burst stays shorter than the GPU's queue: beyond it the host is
 * held inside a submission, which the block's watchdog ends (lost_ranks.py). */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "fakes/world_forks.h"
#include "gpu_check.h"

#define RANKS       2
#define REPETITIONS 50 /* of 8 collectives */
#define DEADLINE_S  5
#define SPARED_S    5 /* beyond the deadline: until the fault comes, and to abort communicators */
#define LIMIT_S     45

struct fault {
  const struct gpu *gpu;
  int dies;
};

static int is_deadly;

/* In the midst of a burst, whatever the rank does. A late rank comes back when the other has given up. */
static void on_alarm(int number) {
  (void)number;
  if (is_deadly)
    raise(SIGKILL);
  nanosleep(&(struct timespec){.tv_sec = DEADLINE_S + SPARED_S + 2}, NULL);
  _exit(0);
}

/* The line must say what is known: NCCL notices a connection that ends, and nobody a GPU that falls silent. */
static int is_noticed(const struct gpu *gpu, int dies, enum cct_status status, double took_s) {
  const char *said = cct_log_last();
  const char *begin = dies && gpu->is_shared ? "nccl: " : "";
  return status == CCT_STOPPED && took_s < DEADLINE_S + SPARED_S && !strncmp(said, begin, strlen(begin));
}

static int survive(struct gpu *gpu, int dies) {
  struct build b;
  struct arm arm;
  int64_t took = 0;
  struct cct_burst burst = {0, &took};
  build_begin(&b, "lost rank", FORM_CLEAR, 0);
  for (int i = 0; i < 8; i++)
    build_collective(&b, CCT_COLL_ALL_REDUCE, 0, 1 << 20, CCT_TYPE_BF16, CCT_ALGORITHM_AUTO);
  build_sync(&b);
  arm_open(gpu, &arm, "lost rank", build_end(&b, gpu->world->size), 0);
  if (!arm.x)
    return 1;
  arms_time(gpu, &arm, 1, 3, 1, NULL);
  is_deadly = dies;
  if (gpu->world->rank) {
    signal(SIGALRM, on_alarm);
    alarm(1);
  }
  enum cct_status status = CCT_OK;
  int64_t start_ns = 0;
  while (!status) {
    start_ns = cct_clock_ns();
    status = gpu->ops->step(arm.x, NULL, REPETITIONS, &burst);
  }
  double took_s = (double)(cct_clock_ns() - start_ns) / 1e9;
  int is_good = is_noticed(gpu, dies, status, took_s);
  printf("%s  a rank that %s in a collective: %s after %.1f s (deadline %d s): %s\n", is_good ? "PASS" : "FAIL",
         dies ? "dies" : "is late", cct_status_name(status), took_s, DEADLINE_S, cct_log_last());
  fflush(stdout);
  return !is_good;
}

static int rank_of_fault(const struct cct_world *world, void *argument) {
  const struct fault *fault = argument;
  struct gpu gpu = *fault->gpu;
  char name[32], why[256] = "";
  gpu.world = world;
  gpu.options.deadline_ns = DEADLINE_S * INT64_C(1000000000);
  snprintf(name, sizeof name, "gpu_check %d", world->rank);
  cct_log_name(name);
  if (!gpu.ops->available(why, sizeof why)) {
    printf("skipped: %s\n", why);
    return 77;
  }
  return gpu.ops->open(world, &gpu.options, &gpu.backend) ? 1 : survive(&gpu, fault->dies);
}

static void others_must_stop(struct gpu *gpu, int dies) {
  struct fault fault = {gpu, dies};
  int statuses[RANKS] = {0};
  fflush(stdout); /* or every fork would write it again */
  cct_world_forks(RANKS, rank_of_fault, &fault, LIMIT_S, statuses);
  if (WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 77)
    _exit(77);
  int is_good = WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 0;
  is_good &= dies ? WIFSIGNALED(statuses[1]) && WTERMSIG(statuses[1]) == SIGKILL
                  : WIFEXITED(statuses[1]) && WEXITSTATUS(statuses[1]) == 0;
  gpu_check(gpu, is_good, "the ranks ended as they should: wait statuses %#x and %#x", (unsigned)statuses[0],
            (unsigned)statuses[1]);
}

void fault_late(struct gpu *gpu) {
  others_must_stop(gpu, 0);
}
void fault_lost(struct gpu *gpu) {
  others_must_stop(gpu, 1);
}
