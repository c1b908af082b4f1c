/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "mpi_runner/watchdog.h"

static void wait_ms(long ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* A child that is fed `times` times, 300 ms apart, under a deadline of 1 s, and then hangs, or ends where `ends`.
 * Returns its exit code and what it said. */
static int child(int times, int ends, char said[512]) {
  int pipes[2], result = 0;
  assert_int_equal(pipe(pipes), 0);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(pipes[1], STDERR_FILENO);
    if (cct_watchdog_start(1))
      _exit(9);
    for (int i = 0; i < times; i++) {
      cct_watchdog_feed("operation %d", i);
      wait_ms(300);
    }
    if (!ends)
      wait_ms(60000);
    cct_watchdog_stop();
    _exit(0);
  }
  close(pipes[1]);
  ssize_t n = read(pipes[0], said, 511);
  said[n > 0 ? n : 0] = '\0';
  close(pipes[0]);
  waitpid(pid, &result, 0);
  return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static void progress_keeps_it_quiet(void **state) {
  (void)state;
  char said[512];
  assert_int_equal(child(5, 1, said), 0); /* 1.5 s in all, longer than the deadline */
  assert_string_equal(said, "");
}

static void a_hang_is_ended_with_its_last_operation(void **state) {
  (void)state;
  char said[512];
  assert_int_equal(child(2, 0, said), 3);
  assert_non_null(strstr(said, "no progress for 1 s, last in operation 1"));
  assert_int_equal(strcspn(said, "\n") + 1, strlen(said)); /* one line */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(progress_keeps_it_quiet),
      cmocka_unit_test(a_hang_is_ended_with_its_last_operation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
