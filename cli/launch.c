/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/launch_scratch.h"

#define GRACE_S           3 /* between asking processes to end and ending them */
#define BEYOND_DEADLINE_S 4 /* the ranks' own watchdogs, which know more, come first */

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) {
  stop_signal = number;
}

void cct_launch_prepare(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int cct_launch_is_stopped(void) {
  return stop_signal;
}

static int64_t seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

static void nap(void) {
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* ---- what the launcher says ---- */

struct stream { /* one pipe, cut into lines */
  int fd;
  char line[4096];
  size_t length;
};

struct listener {
  const struct cct_launch *launch;
  struct stream out, error;
  int64_t heard_s;       /* when process 0 last said anything */
  int has_reason;        /* a rank said why it ended */
  struct cct_text other; /* what the launcher itself said, kept in case nobody else does */
};

static void hear_line(struct listener *listener, const struct stream *from) {
  int done, total;
  if (from == &listener->out) {
    listener->heard_s = seconds();
    if (sscanf(from->line, "cell %d of %d", &done, &total) == 2 && listener->launch->progress)
      listener->launch->progress(listener->launch->context, done);
    return;
  }
  if (!strncmp(from->line, "cctax-rank", 10)) {
    listener->has_reason = 1;
    fprintf(stderr, "%s\n", from->line);
  } else if (from->line[0] && listener->other.length < 16384) {
    cct_text_add(&listener->other, "%s\n", from->line);
  }
}

/* 0 at the end of the stream. */
static int hear(struct listener *listener, struct stream *stream) {
  char bytes[4096];
  ssize_t n = read(stream->fd, bytes, sizeof bytes);
  if (n < 0)
    return errno == EINTR || errno == EAGAIN;
  for (ssize_t i = 0; i < n; i++) {
    if (bytes[i] != '\n' && stream->length + 1 < sizeof stream->line) {
      stream->line[stream->length++] = bytes[i];
      continue;
    }
    stream->line[stream->length] = '\0';
    hear_line(listener, stream);
    stream->length = 0;
  }
  return n > 0;
}

/* ---- starting and ending ---- */

static enum cct_status rank_program(char *out, size_t size) {
  ssize_t n = readlink("/proc/self/exe", out, size - 16);
  if (n <= 0)
    return cct_fail(CCT_IO, "where cctax is cannot be found out: %s", strerror(errno));
  out[n] = '\0';
  char *slash = strrchr(out, '/');
  strcpy(slash ? slash + 1 : out, "cctax-rank");
  return access(out, X_OK) == 0 ? CCT_OK : cct_fail(CCT_IO, "%s: missing; it is installed beside cctax", out);
}

static void set_default(const char *name, const char *value) {
  setenv(name, value, 0);
}

/* Open MPI's settings, each overridable from outside: more ranks than slots is normal here, and without `oversubscribe`
 * waiting ranks do not yield and are 1000 times slower; single_copy none avoids a warning where user namespaces differ;
 * ranks bind themselves, near their GPUs; and mpirun's own ranks meet on this machine, where the search for a fabric
 * takes 0.2 s a block and ends with ob1. */
static void set_environment(const char *scratch) {
  set_default("OMPI_MCA_rmaps_base_oversubscribe", "1");
  set_default("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
  set_default("OMPI_MCA_hwloc_base_binding_policy", "none");
  set_default("OPENBLAS_NUM_THREADS", "1");
  if (*scratch) {
    set_default("OMPI_MCA_pml", "ob1");
    setenv("OMPI_MCA_orte_tmpdir_base", scratch, 1);
    setenv("OMPI_MCA_btl_vader_backing_directory", scratch, 1);
  }
  if (geteuid() == 0) {
    set_default("OMPI_ALLOW_RUN_AS_ROOT", "1");
    set_default("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
}

static void add_quoted(struct cct_text *text, const char *word) {
  cct_text_add(text, " '");
  for (; *word; word++)
    if (*word == '\'')
      cct_text_add(text, "'\\''");
    else
      cct_text_append(text, word, 1);
  cct_text_add(text, "'");
}

/* "exec mpirun -np 8 '/usr/bin/cctax-rank' '/runs/a' --block 3 --deadline 600", for the shell. */
static enum cct_status command_line(const struct cct_launch *launch, struct cct_text *text) {
  const char *launcher = *launch->launcher ? launch->launcher : "mpirun -np {np}", *at;
  char program[4096];
  enum cct_status status = rank_program(program, sizeof program);
  if (status)
    return status;
  cct_text_add(text, "exec ");
  while ((at = strstr(launcher, "{np}"))) {
    cct_text_append(text, launcher, (size_t)(at - launcher));
    cct_text_add(text, "%d", launch->processes);
    launcher = at + 4;
  }
  cct_text_add(text, "%s", launcher);
  add_quoted(text, program);
  add_quoted(text, launch->run);
  cct_text_add(text, " --block %d --deadline %lld", launch->block, (long long)launch->deadline_s);
  return text->is_failed ? CCT_NOMEM : CCT_OK;
}

/* The child: a process group of its own, so that the terminal's Ctrl-C reaches the front end alone; it does not outlive
 * it. */
static void become_launcher(const char *command, int out, int error) {
  struct sigaction standard = {.sa_handler = SIG_DFL};
  sigset_t none;
  int null = open("/dev/null", O_RDONLY);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigaction(SIGPIPE, &standard, NULL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(error, STDERR_FILENO) < 0)
    _exit(126);
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  _exit(127);
}

static enum cct_status start(const char *command, struct listener *listener, pid_t *child_out) {
  int out[2] = {-1, -1}, error[2] = {-1, -1};
  if (pipe2(out, O_CLOEXEC) != 0)
    return cct_fail(CCT_NOMEM, "a pipe cannot be made: %s", strerror(errno));
  pid_t child = pipe2(error, O_CLOEXEC) == 0 ? fork() : -1;
  if (child == 0)
    become_launcher(command, out[1], error[1]);
  int reason = errno;
  close(out[1]);
  close(error[1]);
  if (child < 0) {
    close(out[0]);
    close(error[0]);
    return cct_fail(CCT_NOMEM, "the launcher cannot be started: %s", strerror(reason));
  }
  setpgid(child, child); /* whoever of the two comes first */
  listener->out.fd = out[0];
  listener->error.fd = error[0];
  *child_out = child;
  return CCT_OK;
}

/* Ends what the launcher left: as their subreaper this process is the parent of orphans. */
static void end_orphans(void) {
  for (int tries = 0; tries < 100; tries++) {
    char path[64];
    int pid, n = 0;
    while (waitpid(-1, NULL, WNOHANG) > 0)
      ;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "re");
    while (children && fscanf(children, "%d", &pid) == 1) {
      kill(pid, SIGKILL);
      n++;
    }
    if (children)
      fclose(children);
    if (!n)
      return;
    nap();
  }
}

static int is_ended(pid_t child, int *result) {
  pid_t pid = waitpid(child, result, WNOHANG);
  return pid == child || (pid < 0 && errno == ECHILD);
}

/* Asks the group to end, then ends it. */
static void end_group(pid_t child, int *result) {
  int64_t asked = seconds();
  kill(-child, SIGTERM);
  kill(-child, SIGCONT);
  while (!is_ended(child, result)) {
    if (seconds() - asked > GRACE_S)
      kill(-child, SIGKILL);
    nap();
  }
}

/* Until the launcher has ended, is to be ended, or is past its deadline. Returns CCT_OK when it ended by itself. */
static enum cct_status watch(struct listener *listener, pid_t child, int *result) {
  struct pollfd ends[2] = {{.fd = listener->out.fd, .events = POLLIN}, {.fd = listener->error.fd, .events = POLLIN}};
  int64_t limit = listener->launch->deadline_s + BEYOND_DEADLINE_S;
  listener->heard_s = seconds();
  for (;;) {
    int is_over = is_ended(child, result);
    if (poll(ends, 2, is_over ? 0 : 100) > 0) {
      if (ends[0].revents && !hear(listener, &listener->out))
        ends[0].fd = -1;
      if (ends[1].revents && !hear(listener, &listener->error))
        ends[1].fd = -1;
      if (is_over)
        continue; /* there may be more to hear */
    }
    if (is_over)
      return CCT_OK;
    if (ends[0].fd < 0 && ends[1].fd < 0)
      nap();
    if (stop_signal)
      return CCT_STOPPED;
    if (seconds() - listener->heard_s > limit) {
      listener->has_reason = 1;
      return cct_fail(CCT_STOPPED, "block %d: nothing was heard of it for %lld s; ended", listener->launch->block,
                      (long long)limit);
    }
  }
}

static enum cct_status judge(const struct listener *listener, int result) {
  int code = WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
  if (code == 0)
    return CCT_OK;
  if (code == 1 && !listener->has_reason)
    code = 127;
  if ((code == 126 || code == 127) && listener->other.length)
    fputs(listener->other.s, stderr);
  switch (code) {
  case 1:
    return CCT_FOUND;
  case 2:
    return listener->has_reason ? CCT_USAGE
                                : cct_fail(CCT_USAGE, "block %d: its launcher ended with 2", listener->launch->block);
  case 3:
    return CCT_STOPPED;
  case 77:
    return CCT_UNSUPPORTED;
  case 126:
  case 127:
    return cct_fail(CCT_STOPPED, "block %d: its ranks could not be started; is mpirun installed, or --launcher right?",
                    listener->launch->block);
  default:
    return cct_fail(CCT_STOPPED, "block %d: ended with %d: a rank or its launcher was killed or crashed",
                    listener->launch->block, code);
  }
}

enum cct_status cct_launch_block(const struct cct_launch *launch) {
  struct listener listener = {.launch = launch, .out.fd = -1, .error.fd = -1};
  struct cct_text command = {0};
  pid_t child;
  int result = 0, lock = -1;
  char scratch[64] = ""; /* of mpirun; another launcher may start ranks on other hosts */
  enum cct_status status = command_line(launch, &command);
  if (!status && !*launch->launcher)
    status = cct_scratch_make(scratch, &lock);
  if (!status) {
    set_environment(scratch);
    status = start(command.s, &listener, &child);
  }
  if (!status) {
    status = watch(&listener, child, &result);
    if (status)
      end_group(child, &result);
    end_orphans();
    if (!status)
      status = judge(&listener, result);
    close(listener.out.fd);
    close(listener.error.fd);
  }
  if (*scratch)
    cct_scratch_remove(scratch);
  if (lock >= 0)
    close(lock);
  cct_text_free(&command);
  cct_text_free(&listener.other);
  return status;
}

enum cct_status cct_launch_why_no_cuda(char *why_not_out, unsigned long size) {
  char program[4096], command[4200], line[512];
  enum cct_status status = rank_program(program, sizeof program);
  if (status)
    return status;
  snprintf(command, sizeof command, "exec '%s' --backends", program);
  FILE *lines = popen(command, "re");
  if (!lines)
    return cct_fail(CCT_IO, "%s: cannot be started: %s", program, strerror(errno));
  snprintf(why_not_out, size, "this build has no cuda backend");
  while (fgets(line, sizeof line, lines)) {
    line[strcspn(line, "\n")] = '\0';
    if (!strncmp(line, "cuda\tyes\t", 9))
      *why_not_out = '\0';
    else if (!strncmp(line, "cuda\tno\t", 8))
      snprintf(why_not_out, size, "%s", line + 8);
  }
  pclose(lines);
  return CCT_OK;
}
