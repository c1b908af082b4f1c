/* SPDX-License-Identifier: Apache-2.0
 * What an arm's block gives NCCL, --arms net=socket,plain,tls above all, and that all of it is recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "mpi_runner/block.h"
#include "tests/scratch.h"
#include "workloads/program/profile.h"

static const char *const names[] = {"NCCL_NET_PLUGIN",     "NCCL_NET",
                                    "CCTAX_NET_MODE",      "NCCL_TUNER_PLUGIN",
                                    "NCCL_LOCAL_REGISTER", "NCCL_GRAPH_REGISTER",
                                    "NCCL_ALGO",           "NCCL_PROTO",
                                    "NCCL_MIN_CTAS",       "NCCL_MAX_CTAS",
                                    "NCCL_NVLS_ENABLE",    "NCCL_WORK_FIFO_BYTES"};
enum {
  N_NAMES = sizeof names / sizeof *names
};

static const char *recorded(const struct cct_fact_list *list, const char *name) {
  for (int i = 0; i < list->n; i++)
    if (!strcmp(list->items[i].name, name)) {
      assert_int_equal(list->items[i].fact_class, CCT_FACT_CONDITION);
      return list->items[i].value;
    }
  return NULL;
}

static int is_same(const char *a, const char *b) {
  return !a || !b ? a == b : !strncmp(a, b, sizeof((struct cct_record_fact *)0)->value - 1); /* a fact may be cut */
}

/* The arm sets `values` and nothing else (NULL: not set), and the facts of its block say so. */
static void expect_beside(const struct cct_profile *machine, const char *factor, const char *arm,
                          const char *const values[N_NAMES]) {
  struct cct_options cell = {0};
  struct cct_agenda agenda = {.condition = "off", .backend = "cuda", .n_arms = 1, .cells = &cell, .n_cells = 1};
  struct cct_block_at at = {0};
  static struct cct_fact_list facts;
  snprintf(agenda.factor, sizeof agenda.factor, "%s", factor);
  snprintf(agenda.arms[0], sizeof agenda.arms[0], "%s", arm);
  facts.n = 0;
  for (int i = 0; i < N_NAMES; i++)
    unsetenv(names[i]);
  assert_int_equal(cct_block_environment(&agenda, &at, "tuned-test/verify", machine, NULL), CCT_OK);
  cct_block_environment_facts(&facts);
  for (int i = 0; i < N_NAMES; i++)
    if (!is_same(getenv(names[i]), values[i]) || !is_same(recorded(&facts, names[i]), values[i]))
      fail_msg("%s=%s: %s is '%s', recorded '%s', expected '%s'", factor, arm, names[i],
               getenv(names[i]) ? getenv(names[i]) : "not set",
               recorded(&facts, names[i]) ? recorded(&facts, names[i]) : "not", values[i] ? values[i] : "not set");
}

static void expect(const char *factor, const char *arm, const char *const values[N_NAMES]) {
  expect_beside(NULL, factor, arm, values);
}

static void an_arm_of_net_is_what_it_says(void **state) {
  (void)state;
  char library[4200];
  ssize_t length = readlink("/proc/self/exe", library, 4096);
  library[length > 0 ? length : 0] = '\0';
  for (int up = 0; up < 2; up++)
    *strrchr(library, '/') = '\0';
  strcat(library, "/lib/libnccl-net-cctax.so"); /* beside bin/ where it was installed or built; else NCCL searches */
  const char *plugin = access(library, R_OK) == 0 ? library : "cctax";
  expect("net", "socket", (const char *[N_NAMES]){"none", "Socket"});
  expect("net", "plain", (const char *[N_NAMES]){plugin, "cctax", "plain"});
  expect("net", "tls", (const char *[N_NAMES]){plugin, "cctax", "tls"});
  expect("net", "ofi", (const char *[N_NAMES]){"ofi"});
}

static void other_factors_set_their_own(void **state) {
  (void)state;
  expect("tuner", "cctax", (const char *[N_NAMES]){NULL, NULL, NULL, "cctax"});
  expect("registration", "off", (const char *[N_NAMES]){NULL, NULL, NULL, NULL, "0", "0"});
  expect("registration", "on", (const char *[N_NAMES]){NULL, NULL, NULL, NULL, "1", "1"});
  expect("choice", "ring/default/4",
         (const char *[N_NAMES]){NULL, NULL, NULL, NULL, NULL, NULL, "ring", NULL, "4", "4"});
  expect("condition", "off", (const char *[N_NAMES]){NULL});
}

/* A stripped arm on GPUs is without what its profile says CC takes away; without a profile it is no arm. */
static void a_stripped_arm_is_without_what_cc_takes(void **state) {
  (void)state;
  struct cct_profile *profile;
  struct cct_options cell = {0};
  struct cct_agenda agenda = {
      .factor = "condition", .backend = "cuda", .arms = {"stripped"}, .n_arms = 1, .cells = &cell, .n_cells = 1};
  struct cct_block_at at = {0};
  assert_int_equal(cct_profile_load("h200", &profile), CCT_OK);
  const char *values[N_NAMES] = {[10] = "0", [11] = "0"};
  expect_beside(profile, "condition", "stripped", values);
  profile->capability.multicast = 1;
  values[10] = NULL;
  expect_beside(profile, "condition", "stripped", values);
  expect_beside(profile, "condition", "off", (const char *[N_NAMES]){NULL});
  cct_profile_free(profile);
  assert_int_equal(cct_block_environment(&agenda, &at, "run", NULL, NULL), CCT_USAGE);
  assert_non_null(strstr(cct_log_last(), "names no profile of what CC takes away"));
}

/* The arm `tuned` is what cctax tune left above the run; without it no block goes on as if it were there. */
static void a_tuned_arm_is_the_file_above_its_run(void **state) {
  (void)state;
  struct cct_options cell = {0};
  struct cct_agenda agenda = {.factor = "tuner",
                              .condition = "off",
                              .backend = "cuda",
                              .arms = {"tuned"},
                              .n_arms = 1,
                              .cells = &cell,
                              .n_cells = 1};
  struct cct_block_at at = {0};
  mkdir("tuned-test", 0777);
  mkdir("tuned-test/verify", 0777);
  unlink("tuned-test/nccl.conf");
  assert_int_equal(cct_block_environment(&agenda, &at, "tuned-test/verify", NULL, NULL), CCT_IO);
  FILE *file = fopen("tuned-test/nccl.conf", "w");
  fputs("# A=B\nNCCL_TUNER_PLUGIN=/p/lib.so\nCCTAX_TUNER_RULES=/r s/rules.csv\nNCCL_MIN_CTAS=32\nNCCL_MAX_CTAS=32\n",
        file);
  fclose(file);
  expect("tuner", "tuned", (const char *[N_NAMES]){NULL, NULL, NULL, "/p/lib.so", NULL, NULL, NULL, NULL, "32", "32"});
  assert_string_equal(getenv("CCTAX_TUNER_RULES"), "/r s/rules.csv");
  unsetenv("CCTAX_TUNER_RULES");
}

static void a_key_is_recorded_as_where_it_is(void **state) {
  (void)state;
  static struct cct_fact_list facts;
  setenv("CCTAX_NET_PSK_FILE", "/root/job.psk", 1);
  cct_block_environment_facts(&facts);
  assert_string_equal(recorded(&facts, "CCTAX_NET_PSK_FILE"), "/root/job.psk");
  assert_null(recorded(&facts, "HOME"));
}

/* What the test writes stays out of the folder that it is started in. */
static int enter_a_folder(void **state) {
  return scratch_make(state) || chdir(scratch);
}

static int leave_it(void **state) {
  return chdir("/") || scratch_remove(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_arm_of_net_is_what_it_says),
      cmocka_unit_test(other_factors_set_their_own),
      cmocka_unit_test(a_stripped_arm_is_without_what_cc_takes),
      cmocka_unit_test(a_tuned_arm_is_the_file_above_its_run),
      cmocka_unit_test(a_key_is_recorded_as_where_it_is),
  };
  return cmocka_run_group_tests(tests, enter_a_folder, leave_it);
}
