/* SPDX-License-Identifier: Apache-2.0
 * The built library, loaded as NCCL loads it. Conditions come from CCTAX_CONDITION or from fake driver libraries, so
 * that the tests say the same on machines with GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/text.h"
#include "nccl_plugin/tuner/core_emulator.h"
#include "tests/environment.h"
#include "tests/scratch.h"
#include "tuner/rules.h"

enum {
  CELLS = CCT_TUNER_ALGORITHMS * CCT_TUNER_PROTOCOLS,
  ALLREDUCE = CCT_TUNER_ALLREDUCE
};
static const enum cct_emulated_nccl nccls[] = {CCT_NCCL_TO_2_28, CCT_NCCL_TO_2_30, CCT_NCCL_LATER};
/* All-reduce of 4 MiB on two H200s without NVLS, as NCCL 2.28.3 hands it over (tests/data/h200x2). */
static const float sample[CELLS] = {76.7f, 37.7f, 36.0f, 37.8f, 31.0f, 27.1f, -1, -1, -1, -1, -1,
                                    -1,    -1,    -1,    -1,    -1,    -1,    -1, -1, -1, -1};

static char rules_path[sizeof scratch + 16];
static const char *plugin_path;
static atomic_int warnings;
static char last_warning[1024];

static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  va_list args;
  (void)flags, (void)file, (void)line;
  if (level != CCT_NCCL_WARN)
    return;
  va_start(args, format);
  vsnprintf(last_warning, sizeof last_warning, format, args);
  va_end(args);
  warnings++;
}

static void write_rules(const char *text) {
  assert_int_equal(cct_write_file(rules_path, text, strlen(text)), CCT_OK);
  set("CCTAX_TUNER_RULES", rules_path);
}

static int setup(void **state) {
  (void)state;
  static const char *const variables[] = {"CCTAX_TUNER_RULES", "NCCL_TUNER_CONFIG_FILE", "CCTAX_CONDITION",
                                          "CCTAX_TUNER_PROOF", "NCCL_NVLS_ENABLE",       "NCCL_ALGO",
                                          "NCCL_PROTO"};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    unsetenv(variables[i]);
  warnings = 0;
  last_warning[0] = '\0';
  return 0;
}

static struct cct_emulator load(int newest) {
  struct cct_emulator e;
  cct_emulator_load(plugin_path, newest, &e);
  assert_int_equal(e.api, newest);
  return e;
}

/* One call on a copy of `sample` after one init; the cell picked by every NCCL, which must agree. */
static int decide(size_t ranks, size_t nodes, int collective, size_t bytes, int *channels_out) {
  struct cct_emulator e = load(5);
  void *context = NULL;
  float cost[CELLS];
  memcpy(cost, sample, sizeof cost);
  assert_int_equal(cct_emulator_init(&e, ranks, nodes, logger, &context), 0);
  assert_int_equal(cct_emulator_get(&e, context, collective, bytes, 1, 0, cost, 7, 3, channels_out), 0);
  int cell = cct_emulator_pick(nccls[0], sample, cost, CELLS);
  for (size_t i = 1; i < 3; i++)
    assert_int_equal(cct_emulator_pick(nccls[i], sample, cost, CELLS), cell);
  assert_int_equal(cct_emulator_finalize(&e, context), 0);
  cct_emulator_unload(&e);
  return cell;
}

enum {
  TREE_LL = 0,
  RING_LL = 3,
  RING_LL128 = 4,
  RING_SIMPLE = 5
};

static void every_interface_decides_and_the_estimate_names_the_cell(void **state) {
  (void)state;
  write_rules("allreduce,0,-1,ring,ll128,-1,-1,-1,-1,1\nallreduce,0,-1,ring,ll,8,-1,-1\n");
  for (int api = 3; api <= 6; api++) {
    struct cct_emulator e = load(api);
    void *context = NULL;
    int channels;
    float cost[CELLS];
    memcpy(cost, sample, sizeof cost);
    assert_string_equal(api < 5 ? e.v3_or_v4->name : e.v5_or_v6->name, "cctax");
    assert_int_equal(cct_emulator_init(&e, 8, 1, logger, &context), 0);
    assert_int_equal(cct_emulator_get(&e, context, ALLREDUCE, 1 << 22, 1, 1, cost, 7, 3, &channels), 0);
    int cell = api == 3 ? RING_LL : RING_LL128; /* interface 3 does not say that buffers are registered */
    assert_int_equal(channels, api == 3 ? 8 : 0);
    for (size_t i = 0; i < 3; i++)
      assert_int_equal(cct_emulator_pick(nccls[i], sample, cost, CELLS), cell);
    assert_true(fabsf(cost[cell] - 1e-3f * (float)(cell + 1)) < 1e-9f);
    if (api == 6)
      assert_null(e.v5_or_v6->chunk);
    assert_int_equal(cct_emulator_finalize(&e, context), 0);
    cct_emulator_unload(&e);
  }
}

static void nothing_fails_without_context_logger_table_or_sense(void **state) {
  (void)state;
  write_rules("allreduce,0,-1,ring,ll128,4,-1,-1\n");
  for (int api = 3; api <= 6; api++) {
    struct cct_emulator e = load(api);
    void *context = NULL;
    float cost[CELLS], ignored[CELLS];
    int channels;
    for (int i = 0; i < CELLS; i++)
      ignored[i] = i % 2 ? -1 : -1024;
    memcpy(cost, ignored, sizeof cost);
    assert_int_equal(cct_emulator_get(&e, NULL, ALLREDUCE, 1, 1, 0, cost, 7, 3, &channels), 0);
    assert_int_equal(cct_emulator_finalize(&e, NULL), 0);
    assert_int_equal(cct_emulator_init(&e, 1, 1, NULL, &context), 0);
    assert_int_equal(cct_emulator_get(&e, context, ALLREDUCE, 1, 1, 0, cost, 7, 3, &channels), 0);
    assert_memory_equal(cost, ignored, sizeof cost);
    assert_int_equal(channels, 0);
    assert_int_equal(cct_emulator_get(&e, context, ALLREDUCE, 1, 1, 0, NULL, 7, 3, &channels), 0);
    assert_int_equal(cct_emulator_get(&e, context, 1234, 1, 1, 0, cost, 7, 3, &channels), 0);
    memcpy(cost, sample, sizeof cost);
    assert_int_equal(cct_emulator_get(&e, context, ALLREDUCE, SIZE_MAX, 1, 7, cost, 1, 3, &channels), 0);
    assert_memory_equal(cost, sample, sizeof cost); /* only Tree's row is there, and no rule names it */
    if (api >= 5)
      assert_int_equal(e.v5_or_v6->init(NULL, 0, 8, 1, NULL, NULL, NULL), 0);
    assert_int_equal(cct_emulator_finalize(&e, context), 0);
    assert_int_equal(cct_emulator_init(&e, 0, 1, NULL, &context), 0);
    assert_int_equal(cct_emulator_finalize(&e, context), 0);
    cct_emulator_unload(&e);
  }
}

static struct cct_emulator shared_emulator;
static void *shared_context;
static void *thread_run(void *wrong) {
  void *own = NULL;
  cct_emulator_init(&shared_emulator, 8, 1, logger, &own);
  for (int i = 0; i < 1000; i++) {
    float cost[CELLS];
    int channels;
    memcpy(cost, sample, sizeof cost);
    cct_emulator_get(&shared_emulator, i % 2 ? own : shared_context, ALLREDUCE, (size_t)i, 1, 0, cost, 7, 3, &channels);
    if (cct_emulator_pick(CCT_NCCL_LATER, sample, cost, CELLS) != (i < 500 ? RING_LL : RING_LL128))
      atomic_fetch_add((atomic_int *)wrong, 1);
  }
  cct_emulator_finalize(&shared_emulator, own);
  return NULL;
}

/* The counters are text in the folder's files; the sum over them, by the word that follows the digits. */
static long counted(const char *what, int *files_out) {
  long sum = 0;
  int files = 0;
  DIR *dir = opendir(scratch);
  for (struct dirent *entry; (entry = readdir(dir));) {
    char path[sizeof scratch + 300], *text = NULL;
    size_t length;
    if (!strstr(entry->d_name, ".proof"))
      continue;
    snprintf(path, sizeof path, "%s/%s", scratch, entry->d_name);
    assert_int_equal(cct_read_file(path, 1 << 20, &text, &length), CCT_OK);
    const char *at = strstr(text, what);
    sum += at && at - text >= 9 ? atol(at - 9) : 0;
    files += at != NULL;
    free(text);
  }
  closedir(dir);
  if (files_out)
    *files_out = files;
  return sum;
}

static void clear_proofs(void) {
  char command[sizeof scratch + 64];
  snprintf(command, sizeof command, "rm -f %s/*.proof", scratch);
  assert_int_equal(system(command), 0);
}

static void sixty_four_threads_decide_and_count_without_loss(void **state) {
  (void)state;
  pthread_t threads[64];
  atomic_int wrong = 0;
  int files;
  clear_proofs();
  write_rules("allreduce,0,499,ring,ll,-1,-1,-1\nallreduce,500,-1,ring,ll128,-1,-1,-1\n");
  set("CCTAX_TUNER_PROOF", scratch);
  shared_emulator = load(5);
  cct_emulator_init(&shared_emulator, 8, 1, logger, &shared_context);
  for (size_t i = 0; i < 64; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, thread_run, &wrong), 0);
  for (size_t i = 0; i < 64; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(wrong, 0);
  assert_int_equal(counted("line 1:", &files), 64 * 500);
  assert_int_equal(files, 65);
  assert_int_equal(counted("line 2:", NULL), 64 * 500);
  cct_emulator_finalize(&shared_emulator, shared_context);
  cct_emulator_unload(&shared_emulator);
  clear_proofs();
}

static void a_refused_file_is_one_warning_with_its_line_and_changes_nothing(void **state) {
  (void)state;
  int channels;
  char wanted[256];
  write_rules("allreduce,0,-1,ring,ll128,-1,-1,-1\nallreduce,0,-1,ring,ll12,-1,-1,-1\n");
  set("CCTAX_CONDITION", "clear,no-multicast,gpu=NVIDIA H200"); /* built-in rules would hold, and must not step in */
  struct cct_emulator e = load(5);                              /* held, so that the process's memory of warnings is */
  for (int i = 0; i < 3; i++)
    assert_int_equal(decide(2, 1, ALLREDUCE, 4 << 20, &channels), RING_SIMPLE);
  assert_int_equal(channels, 0);
  assert_int_equal(warnings, 1);
  snprintf(wanted, sizeof wanted, "%s:2: unknown protocol 'll12', did you mean 'll128'", rules_path);
  assert_non_null(strstr(last_warning, wanted));
  cct_emulator_unload(&e);
  set("CCTAX_TUNER_RULES", "/nonexistent/rules.csv");
  assert_int_equal(decide(2, 1, ALLREDUCE, 4 << 20, &channels), RING_SIMPLE);
  assert_non_null(strstr(last_warning, "/nonexistent/rules.csv: cannot be read"));
}

/* As of a program that holds NCCL itself. */
int ncclGetVersion(int *version_out);
int ncclGetVersion(int *version_out) {
  *version_out = 22809;
  return 0;
}

/* What cctax tune states of the machine against what a tuner can know of this one: once, whatever the communicators. */
static void rules_of_another_machine_are_one_warning(void **state) {
  (void)state;
  static const struct {
    const char *origin, *warning; /* NULL: none */
  } rows[] = {{"measured: ranks=8; nccl=22809; driver=1", NULL},
              {"measured: gpu=none; ranks=8; nccl=none", NULL},
              {"measured: ", NULL},
              {"predicted: gpu=none; ranks=8; nccl=none", "(by a simulator): tune this machine"},
              {"measured: ranks=8; nccl=22803; x=1", "(NCCL 22803, here 22809): tune this machine"},
              {"measured: gpu=NVIDIA H200; ranks=2; nccl=22809", "(2 ranks, here 8): tune this machine"},
              {"measured: ranks=2; nccl=22803", "(2 ranks, here 8; NCCL 22803, here 22809)"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[512];
    int channels;
    snprintf(text, sizeof text, "# of tune\n# %s\nallreduce,0,-1,ring,ll,-1,1,-1\n", rows[i].origin);
    write_rules(text);
    warnings = 0;
    struct cct_emulator e = load(5); /* held, so that the process's memory of warnings is */
    for (int n = 0; n < 3; n++)
      assert_int_equal(decide(8, 1, ALLREDUCE, 100, &channels), RING_LL);
    cct_emulator_unload(&e);
    if (warnings != (rows[i].warning != NULL) || (rows[i].warning && !strstr(last_warning, rows[i].warning)))
      fail_msg("'%s': %d warnings, '%s'", rows[i].origin, warnings, last_warning);
  }
}

static void an_unreachable_rule_is_one_warning_with_both_lines(void **state) {
  (void)state;
  int channels;
  write_rules("# rules\nallreduce,0,-1,ring,ll,-1,-1,-1\nallreduce,5,9,ring,simple,-1,-1,-1\n");
  assert_int_equal(decide(2, 1, ALLREDUCE, 7, &channels), RING_LL);
  assert_int_equal(warnings, 1);
  assert_non_null(strstr(last_warning, ":3: no size can reach this rule, line 2 comes first"));
}

static void files_are_found_by_either_variable_and_gaps_keep_nccls_choice(void **state) {
  (void)state;
  int channels;
  write_rules("allreduce,0,100,tree,ll,2,1,-1\nallreduce,0,200,ring,ll128,-1,-1,-1\n");
  set("NCCL_TUNER_CONFIG_FILE", "/nonexistent/other.csv"); /* CCTAX_TUNER_RULES comes first */
  assert_int_equal(decide(8, 1, ALLREDUCE, 100, &channels), TREE_LL);
  assert_int_equal(channels, 2);
  assert_int_equal(decide(8, 2, ALLREDUCE, 100, &channels), RING_LL128);
  assert_int_equal(channels, 0);
  assert_int_equal(decide(8, 1, ALLREDUCE, 201, &channels), RING_SIMPLE);
  assert_int_equal(decide(8, 1, CCT_TUNER_ALLGATHER, 100, &channels), RING_SIMPLE);
  set("CCTAX_TUNER_RULES", NULL);
  set("NCCL_TUNER_CONFIG_FILE", rules_path);
  assert_int_equal(decide(8, 1, ALLREDUCE, 100, &channels), TREE_LL);
  set("CCTAX_TUNER_RULES", "none");
  assert_int_equal(decide(8, 1, ALLREDUCE, 100, &channels), RING_SIMPLE);
  assert_int_equal(warnings, 0);
}

static void on_several_nodes_only_an_agreed_condition_decides(void **state) {
  (void)state;
  int channels;
  write_rules("allreduce,0,-1,tree,ll,-1,-1,-1,-1,-1,cc\nallreduce,0,-1,ring,ll,-1,-1,-1,-1,-1,clear\n"
              "allreduce,0,-1,ring,ll128,-1,-1,-1,-1,-1,any,NVIDIA H200\n");
  assert_int_equal(decide(8, 2, ALLREDUCE, 1, &channels), RING_SIMPLE);
  set("CCTAX_CONDITION", "clear");
  assert_int_equal(decide(8, 2, ALLREDUCE, 1, &channels), RING_LL);
  set("CCTAX_CONDITION", "no-multicast,cc");
  assert_int_equal(decide(8, 2, ALLREDUCE, 1, &channels), TREE_LL);
  set("CCTAX_CONDITION", "gpu=NVIDIA H200 NVL");
  assert_int_equal(decide(8, 2, ALLREDUCE, 1, &channels), RING_LL128);
  assert_int_equal(warnings, 0);
  set("CCTAX_CONDITION", "on");
  assert_int_equal(decide(8, 1, ALLREDUCE, 1, &channels), RING_SIMPLE);
  assert_int_equal(warnings, 1);
  assert_non_null(strstr(last_warning, "CCTAX_CONDITION: 'on' is not understood"));
}

static void cells_that_the_user_filtered_out_stay_out(void **state) {
  (void)state;
  struct cct_emulator e = load(5);
  void *context = NULL;
  int channels;
  float cost[CELLS], before[CELLS];
  write_rules("allreduce,0,-1,ring,ll128,-1,-1,-1\nallreduce,0,-1,ring,ll,-1,-1,-1\n");
  cct_emulator_init(&e, 8, 1, logger, &context);
  memcpy(before, sample, sizeof before);
  before[RING_LL128] = before[RING_LL] = before[TREE_LL] = before[1] = -1; /* NCCL_PROTO=Simple */
  memcpy(cost, before, sizeof cost);
  cct_emulator_get(&e, context, ALLREDUCE, 1, 1, 0, cost, 7, 3, &channels);
  assert_memory_equal(cost, before, sizeof cost);
  before[RING_LL] = 30; /* NCCL_PROTO=^LL128: the next rule */
  memcpy(cost, before, sizeof cost);
  cct_emulator_get(&e, context, ALLREDUCE, 1, 1, 0, cost, 7, 3, &channels);
  assert_int_equal(cct_emulator_pick(CCT_NCCL_TO_2_28, before, cost, CELLS), RING_LL);
  cct_emulator_finalize(&e, context);
  cct_emulator_unload(&e);
}

/* Killed, with a communicator open: the file is whole and counts the last call. */
static void the_proof_is_readable_during_the_job_and_after_a_kill(void **state) {
  (void)state;
  int pipe_ends[2], status, files;
  char go;
  clear_proofs();
  write_rules("allreduce,0,-1,ring,ll128,-1,-1,-1\n");
  set("CCTAX_TUNER_PROOF", scratch);
  assert_int_equal(pipe(pipe_ends), 0);
  pid_t pid = fork();
  if (pid == 0) {
    struct cct_emulator e = load(5);
    void *context = NULL;
    int channels;
    float cost[CELLS];
    cct_emulator_init(&e, 8, 1, NULL, &context);
    for (int i = 0; i < 12345; i++) {
      memcpy(cost, sample, sizeof cost);
      cct_emulator_get(&e, context, i < 45 ? CCT_TUNER_REDUCE : ALLREDUCE, 1, 1, 0, cost, 7, 3, &channels);
    }
    if (write(pipe_ends[1], "x", 1) == 1)
      pause();
    _exit(9);
  }
  assert_int_equal(read(pipe_ends[0], &go, 1), 1);
  assert_int_equal(counted("line 1: allreduce,0,18446744073709551615,ring,ll128", &files), 12300);
  assert_int_equal(files, 1);
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  assert_int_equal(counted("line 1: allreduce", NULL), 12300);
  assert_int_equal(counted("calls that no rule covers", NULL), 45);
  assert_int_equal(counted("allreduce calls in which NVLS is not usable", NULL), 12300);
  counted("state   running ", &files);
  assert_int_equal(files, 1);
  clear_proofs();
  set("CCTAX_TUNER_PROOF", "/nonexistent/folder");
  int channels;
  assert_int_equal(decide(8, 1, ALLREDUCE, 1, &channels), RING_LL128);
  assert_int_equal(warnings, 1);
  assert_non_null(strstr(last_warning, "no proof can be written to '/nonexistent/folder': No such file"));
}

static int group_setup(void **state) {
  (void)state;
  static char path[4096];
  if (scratch_make(state))
    return -1;
  snprintf(rules_path, sizeof rules_path, "%s/rules.csv", scratch);
  snprintf(path, sizeof path, "%s/lib/libnccl-tuner-cctax.so", getenv("CCT_BINARY"));
  plugin_path = path;
  return 0;
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, setup)
  const struct CMUnitTest tests[] = {
      TEST(every_interface_decides_and_the_estimate_names_the_cell),
      TEST(nothing_fails_without_context_logger_table_or_sense),
      TEST(sixty_four_threads_decide_and_count_without_loss),
      TEST(a_refused_file_is_one_warning_with_its_line_and_changes_nothing),
      TEST(rules_of_another_machine_are_one_warning),
      TEST(an_unreachable_rule_is_one_warning_with_both_lines),
      TEST(files_are_found_by_either_variable_and_gaps_keep_nccls_choice),
      TEST(on_several_nodes_only_an_agreed_condition_decides),
      TEST(cells_that_the_user_filtered_out_stay_out),
      TEST(the_proof_is_readable_during_the_job_and_after_a_kill),
  };
  return cmocka_run_group_tests(tests, group_setup, scratch_remove);
}
