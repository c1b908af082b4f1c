/* SPDX-License-Identifier: Apache-2.0
 * cctax-rank RUN --block N: one process of a block, started by `cctax run` or by hand with mpirun.
 * cctax-rank --backends: which backends can work here, one line each: NAME, yes or no, why not. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "mpi_runner/block.h"
#include "mpi_runner/watchdog.h"
#include "mpi_runner/world_mpi.h"

/* How long a process of an interrupted block may take to die before its successor gives up. */
#define LOCK_SECONDS 10

struct request {
  const char *run;
  int64_t block, deadline_s;
  int is_backends;
};

static enum cct_status parse(int argc, char **argv, struct request *request_out) {
  static const struct option longs[] = {{"block", required_argument, NULL, 'b'},
                                        {"deadline", required_argument, NULL, 'd'},
                                        {"backends", no_argument, NULL, 'l'},
                                        {NULL, 0, NULL, 0}};
  struct request request = {.block = -1};
  int letter, ok = 1;
  opterr = 0;
  while ((letter = getopt_long(argc, argv, "", longs, NULL)) != -1) {
    if (letter == 'b')
      ok &= cct_parse_i64(optarg, &request.block) && request.block >= 0 && request.block < 1 << 24;
    else if (letter == 'd')
      ok &= cct_parse_i64(optarg, &request.deadline_s) && request.deadline_s > 0;
    else if (letter == 'l')
      request.is_backends = 1;
    else
      ok = 0;
  }
  request.run = optind < argc ? argv[optind] : NULL;
  if (!ok || (!request.is_backends && (!request.run || request.block < 0 || optind + 1 != argc)))
    return cct_fail(CCT_USAGE, "usage: cctax-rank RUN --block N [--deadline SECONDS], started by cctax run or mpirun");
  *request_out = request;
  return CCT_OK;
}

static enum cct_status list_backends(void) {
  for (int i = 0; cct_backends[i]; i++) {
    char why[256] = "";
    int is_available = cct_backends[i]->available(why, sizeof why);
    printf("%s\t%s\t%s\n", cct_backends[i]->name, is_available ? "yes" : "no", why);
  }
  return fflush(stdout) == 0 ? CCT_OK : CCT_IO;
}

/* One block at a time writes into a run. A predecessor that is just being ended gets a moment. */
static enum cct_status lock_run(const char *run, int *fd_out) {
  char path[4096];
  snprintf(path, sizeof path, "%s/run.json", run);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return cct_fail(CCT_IO, "%s: cannot be read: %s", path, strerror(errno));
  for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; tries++) {
    if (tries < LOCK_SECONDS * 10) {
      nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
      continue;
    }
    close(fd);
    return cct_fail(CCT_USAGE, "%s: another cctax-rank works on this run; wait for it or end it", path);
  }
  *fd_out = fd;
  return CCT_OK;
}

static enum cct_status perform(const struct cct_world *world, const struct request *request) {
  struct cct_agenda *agenda = NULL;
  int lock = -1;
  cct_log_mute(world->rank > 0);
  enum cct_status status = cct_agenda_load(request->run, &agenda);
  cct_log_mute(0);
  if (!status && request->deadline_s)
    agenda->deadline_s = request->deadline_s;
  if (!status)
    status = cct_watchdog_start(agenda->deadline_s);
  if (!status && world->rank == 0)
    status = lock_run(request->run, &lock);
  status = cct_world_agree(world, status, "the start", 0);
  if (!status)
    status = cct_block_perform(world, request->run, agenda, (int)request->block);
  cct_watchdog_feed("end");
  if (lock >= 0)
    close(lock);
  cct_agenda_free(agenda);
  return status;
}

int main(int argc, char **argv) {
  struct cct_world *world;
  struct request request;
  char name[32];
  /* Ranks do not outlive the launcher, however it ends. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  cct_log_name("cctax-rank");
  enum cct_status status = parse(argc, argv, &request);
  if (status)
    return cct_status_exit(status);
  if (request.is_backends)
    return cct_status_exit(list_backends());
  status = cct_world_mpi_open(&argc, &argv, &world);
  if (status)
    return cct_status_exit(status);
  snprintf(name, sizeof name, "cctax-rank %d", world->rank);
  cct_log_name(name);
  status = perform(world, &request);
  cct_world_mpi_close(world);
  cct_watchdog_stop();
  return cct_status_exit(status);
}
