/* SPDX-License-Identifier: Apache-2.0
 * Every case in a process of its own, since a process keeps the libraries it found first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "machine/gpu_passive.h"
#include "tests/environment.h"

struct row {
  const char *nvml, *cc, *gpus, *multicast; /* NULL: not there */
  int want_cc, want_multi_gpu, want_multicast;
  const char *want_name;
};

static const struct row rows[] = {
    {NULL, NULL, NULL, NULL, -1, -1, -1, ""},
    {"nvml_new", "0,0", "NVIDIA H200;NVIDIA H200", "11", 0, 0, 1, "NVIDIA H200"},
    {"nvml_new", "0,0", "NVIDIA H200", "0", 0, 0, 0, "NVIDIA H200"},
    {"nvml_new", "1,0", "NVIDIA B200", "0", 1, 0, 0, "NVIDIA B200"},
    {"nvml_new", "1,0", "NVIDIA B200", "1", 1, 0, 1, "NVIDIA B200"},
    {"nvml_new", "0,1", "NVIDIA H200", "1", 1, 1, 1, "NVIDIA H200"}, /* protected PCIe alone is CC too */
    {"nvml_new", "1,2", "NVIDIA B200;NVIDIA B200", "10", 1, 2, 0, "NVIDIA B200"},
    {"nvml_new", "refused", "NVIDIA B200;NVIDIA H200", "refused", -1, -1, -1, ""},
    {"nvml_new", "refused", "", "", -1, -1, -1, ""},
    {"nvml_old", "1,2", "NVIDIA H100", "1", 1, -1, 1, "NVIDIA H100"},
    {"nvml_old", "0,0", "NVIDIA H100", "0", 0, -1, 0, "NVIDIA H100"},
    {"nvml_old", "refused", "NVIDIA H100", "0", -1, -1, 0, "NVIDIA H100"},
    {"nvml_none", "1,0", "NVIDIA A100", "0", -1, -1, 0, "NVIDIA A100"},
    {"nvml_none", "0,0", "NVIDIA A100", NULL, -1, -1, -1, "NVIDIA A100"},
};

/* In a child: 0 if the facts are the row's. */
static int child(const struct row *row) {
  struct cct_gpu_passive facts;
  set("FAKE_CC", row->cc);
  set("FAKE_GPUS", row->gpus);
  set("FAKE_MULTICAST", row->multicast);
  if ((row->nvml && !load_fake(row->nvml, "libnvidia-ml")) || (row->multicast && !load_fake("cuda", "libcuda")))
    return 2;
  cct_gpu_passive_read(&facts);
  int is_right = facts.cc == row->want_cc && facts.multi_gpu == row->want_multi_gpu &&
                 facts.multicast == row->want_multicast && !strcmp(facts.gpu_name, row->want_name) && facts.why[0];
  if (!is_right)
    fprintf(stderr, "cc %d multi_gpu %d multicast %d name '%s' why '%s'\n", facts.cc, facts.multi_gpu, facts.multicast,
            facts.gpu_name, facts.why);
  return !is_right;
}

static int in_child(const struct row *row, const char *name, const char *value) {
  int status = 0;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    if (name)
      setenv(name, value, 1);
    _exit(child(row));
  }
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void what_the_libraries_say_is_read_and_what_they_do_not_say_stays_open(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int rc = in_child(&rows[i], NULL, NULL);
    if (rc)
      fail_msg("row %zu: child says %d", i, rc);
  }
}

static void a_refused_new_call_falls_back_to_the_old_one(void **state) {
  (void)state;
  const struct row row = {"nvml_new", "1,2", "NVIDIA B200", "0", 1, -1, 0, "NVIDIA B200"};
  assert_int_equal(in_child(&row, "FAKE_SETTINGS_REFUSED", "1"), 0);
}

static void an_nvml_that_does_not_start_says_nothing(void **state) {
  (void)state;
  const struct row row = {"nvml_new", "1,2", "NVIDIA B200", "0", -1, -1, 0, ""};
  assert_int_equal(in_child(&row, "FAKE_NVML_FAILS", "1"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_the_libraries_say_is_read_and_what_they_do_not_say_stays_open),
      cmocka_unit_test(a_refused_new_call_falls_back_to_the_old_one),
      cmocka_unit_test(an_nvml_that_does_not_start_says_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
