/* SPDX-License-Identifier: Apache-2.0
 * The built library on machines that fake driver libraries play: what it says about them in its proof, which rules hold
 * there, and the built-in rules on the measured grid. A machine is a child process, since the library asks only once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <dlfcn.h>
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
  TREE_LL = 0,
  RING_LL = 3,
  RING_LL128 = 4,
  NVLS_SIMPLE = 14
};

struct machine {
  const char *nvml, *cc, *gpus, *multicast; /* as in tests/fakes; nvml or multicast NULL: that library is not there */
};
static const struct machine h200 = {"nvml_new", "0,0", "NVIDIA H200;NVIDIA H200", "11"};

/* Runs `job` on the machine; 0 if it returned 0. */
static int on_machine(const struct machine *m, int (*job)(const struct cct_emulator *e, const void *argument),
                      const void *argument) {
  int status = 0;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    struct cct_emulator e;
    char path[4096];
    set("FAKE_CC", m->cc);
    set("FAKE_GPUS", m->gpus);
    set("FAKE_MULTICAST", m->multicast);
    snprintf(path, sizeof path, "%s/lib/libnccl-tuner-cctax.so", getenv("CCT_BINARY"));
    if ((m->nvml && !load_fake(m->nvml, "libnvidia-ml")) || (m->multicast && !load_fake("cuda", "libcuda")))
      _exit(90);
    cct_emulator_load(path, 5, &e);
    _exit(e.api ? job(&e, argument) : 91);
  }
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* The cell that every NCCL picks for one call, -1 if they differ. */
static int pick(const struct cct_emulator *e, size_t ranks, int collective, size_t bytes, const float before[CELLS]) {
  void *context = NULL;
  int channels;
  float cost[CELLS];
  memcpy(cost, before, sizeof cost);
  cct_emulator_init(e, ranks, 1, NULL, &context);
  cct_emulator_get(e, context, collective, bytes, 1, 0, cost, 7, 3, &channels);
  cct_emulator_finalize(e, context);
  int cell = cct_emulator_pick(CCT_NCCL_TO_2_28, before, cost, CELLS);
  return cct_emulator_pick(CCT_NCCL_LATER, before, cost, CELLS) == cell && channels == 0 ? cell : -1;
}

struct sight {
  struct machine machine;
  const char *nvls_enable;
  int nvls_is_usable, want_cell;
  const char *want[4]; /* in the proof */
};

static int look(const struct cct_emulator *e, const void *argument) {
  const struct sight *s = argument;
  float before[CELLS];
  for (int i = 0; i < CELLS; i++)
    before[i] = i < 6 ? 10.0f + (float)i : -1;
  if (s->nvls_is_usable)
    before[NVLS_SIMPLE] = 5;
  set("NCCL_NVLS_ENABLE", s->nvls_enable);
  int cell = pick(e, 8, CCT_TUNER_ALLREDUCE, 4096, before);
  if (cell != s->want_cell)
    fprintf(stderr, "picks cell %d, not %d\n", cell, s->want_cell);
  return cell != s->want_cell;
}

/* Removes the one proof in the folder and returns its text. */
static char *take_proof(void) {
  char path[sizeof scratch + 300], *text = NULL;
  size_t length;
  DIR *dir = opendir(scratch);
  for (struct dirent *entry; (entry = readdir(dir));)
    if (strstr(entry->d_name, ".proof")) {
      snprintf(path, sizeof path, "%s/%s", scratch, entry->d_name);
      assert_null(text);
      assert_int_equal(cct_read_file(path, 1 << 20, &text, &length), CCT_OK);
      unlink(path);
    }
  closedir(dir);
  assert_non_null(text);
  return text;
}

static void every_machine_is_seen_as_it_is(void **state) {
  (void)state;
  static const char rules[] = "# measured: gpu=NVIDIA B200; ranks=8; nccl=none; condition=on\n"
                              "allreduce,0,-1,tree,ll,-1,-1,-1,-1,-1,cc\n"
                              "allreduce,0,-1,ring,ll128,-1,-1,-1,-1,-1,no-multicast,NVIDIA B\n"
                              "allreduce,0,-1,ring,ll,-1,-1,-1,-1,-1,clear\n";
  static const char cc_cause[] = "\nnvls missing: confidential computing is on, and the driver offers no multicast\n",
                    driver_cause[] = "\nnvls missing: the driver offers no multicast\n",
                    no_cause[] = "\nnvls no cause for it to be missing\n",
                    env_cause[] = "\nnvls missing: NCCL_NVLS_ENABLE=0\n";
  /* Where no rule holds, Tree with LL is NCCL's own choice. */
  static const struct sight sights[] = {
      {{"nvml_new", "1,2", "NVIDIA B200", "0"},
       NULL,
       0,
       TREE_LL,
       {"\ncc on\n", cc_cause, "\nmulti-gpu-cc encrypted NVLink\n", "\nrules-measured no difference known\n"}},
      {{"nvml_new", "1,0", "NVIDIA B200", "1"}, NULL, 1, TREE_LL, {"\ncc on\n", no_cause, "\nmulticast 1\n"}},
      {{"nvml_new", "0,0", "NVIDIA B200", "0"}, NULL, 0, RING_LL128, {"\ncc off\n", driver_cause, "\nmulticast 0\n"}},
      {{"nvml_new", "0,0", "NVIDIA B200", "1"}, NULL, 1, RING_LL, {"\ncc off\n", no_cause, "\ngpu NVIDIA B200\n"}},
      {{"nvml_new", "0,0", "NVIDIA B200", "1"},
       "0",
       0,
       RING_LL128,
       {"\ncc off\n", env_cause, "\nNCCL_NVLS_ENABLE 0\n"}},
      {{"nvml_old", "1,0", "NVIDIA H100", "0"},
       NULL,
       0,
       TREE_LL,
       {"\ncc on\n", cc_cause, "\nmulti-gpu-cc not known\n"}},
      {{"nvml_old", "0,0", "NVIDIA H100", "1"},
       NULL,
       1,
       RING_LL,
       {"\ncc off\n", no_cause, "nvmlSystemGetConfComputeState",
        "\nrules-measured GPU 'NVIDIA B200', here 'NVIDIA H100'; condition on, here confidential computing is off\n"}},
      {{"nvml_none", "1,0", "NVIDIA A100", "0"},
       NULL,
       0,
       TREE_LL,
       {"\ncc not known\n", driver_cause, "NVML has no such call"}},
      {{NULL, NULL, NULL, NULL},
       NULL,
       0,
       TREE_LL,
       {"\ncc not known\n", "\nnvls not known: the driver does not say\n", "no NVML here"}},
  };
  char path[sizeof scratch + 16];
  snprintf(path, sizeof path, "%s/rules.csv", scratch);
  assert_int_equal(cct_write_file(path, rules, sizeof rules - 1), CCT_OK);
  set("CCTAX_TUNER_RULES", path);
  set("CCTAX_TUNER_PROOF", scratch);
  for (size_t i = 0; i < sizeof sights / sizeof *sights; i++) {
    struct sight s = sights[i];
    int rc = on_machine(&s.machine, look, &s);
    if (rc)
      fail_msg("machine %zu: %d", i, rc);
    char *text = take_proof();
    for (size_t w = 0; w < 4; w++)
      if (s.want[w] && !strstr(text, s.want[w]))
        fail_msg("machine %zu: no '%s' in\n%s", i, s.want[w], text);
    free(text);
  }
  set("CCTAX_TUNER_RULES", NULL);
  set("CCTAX_TUNER_PROOF", NULL);
}

static int words(char *line, char separator, char **words_out, int most) {
  int n = 0;
  line[strcspn(line, "\n")] = '\0';
  for (char *word; n < most && (word = strsep(&line, (char[]){separator, '\0'}));)
    words_out[n++] = word;
  return n;
}

static FILE *open_data(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/tests/data/h200x2/%s", getenv("CCT_SOURCE"), name);
  return fopen(path, "r");
}

/* The measured grid at default channels: medians by operation, cell (CELLS: NCCL's own choice) and size, 0 if not
 * there. */
enum {
  OPERATIONS = 3,
  SIZES = 10
};
static const char *const operations[OPERATIONS] = {"all_reduce", "all_gather", "reduce_scatter"};
static const int collectives[OPERATIONS] = {CCT_TUNER_ALLREDUCE, CCT_TUNER_ALLGATHER, CCT_TUNER_REDUCESCATTER};
static double grid[OPERATIONS][CELLS + 1][SIZES];

static int compare_double(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int cell_named(const char *name) {
  for (int a = 0; a < CCT_TUNER_ALGORITHMS; a++)
    for (int p = 0; p < CCT_TUNER_PROTOCOLS; p++) {
      char cell[40];
      snprintf(cell, sizeof cell, "%s:%s", cct_tuner_algorithms[a], cct_tuner_protocols[p]);
      if (!strcasecmp(cell, name))
        return 3 * a + p;
    }
  return CELLS;
}

static int read_grid(void **state) {
  (void)state;
  char line[256], *field[5], *time[5];
  FILE *file = open_data("nccl-tests-graph-grid.tsv");
  int rows = 0;
  while (file && fgets(line, sizeof line, file)) {
    if (line[0] == '#' || words(line, '\t', field, 5) != 5 || strcmp(field[2], "default") != 0)
      continue;
    double us[5];
    int size = 0, n = words(field[4], ' ', time, 5);
    for (int i = 0; i < n; i++)
      us[i] = atof(time[i]);
    qsort(us, (size_t)n, sizeof *us, compare_double);
    while (size < SIZES && 1024L << 2 * size != atol(field[3]))
      size++;
    for (int o = 0; o < OPERATIONS; o++)
      if (!strcmp(operations[o], field[0]) && size < SIZES && n == 5) {
        grid[o][cell_named(field[1])][size] = us[2];
        rows++;
      }
  }
  if (file)
    fclose(file);
  return rows == 150 ? scratch_make(state) : -1;
}

/* The built-in rules on the grid; NULL argument: with NVLS usable, where nothing may change. */
static int replay(const struct cct_emulator *e, const void *argument) {
  int wrong = 0, changed = 0;
  for (int o = 0; o < OPERATIONS; o++)
    for (int s = 0; s < SIZES; s++) {
      float before[CELLS];
      size_t bytes = 1024UL << 2 * s;
      for (int c = 0; c < CELLS; c++)
        before[c] = grid[o][c][s] > 0 ? 20.0f + (float)c : -1;
      before[NVLS_SIMPLE] = argument ? -1.0f : 10.0f;
      int own = cct_emulator_pick(CCT_NCCL_TO_2_28, before, before, CELLS);
      int cell = pick(e, 2, collectives[o], bytes, before);
      double was = grid[o][CELLS][s], is = cell == own ? was : grid[o][cell][s];
      changed += cell != own;
      if (argument && (cell < 0 || is > 1.02 * was)) {
        fprintf(stderr, "%s %zu: cell %d takes %.2f us, NCCL's own choice %.2f\n", operations[o], bytes, cell, is, was);
        wrong++;
      }
      if (argument && bytes == 4 << 20 && o < 2 && (cell != RING_LL128 || was / is < (o ? 1.20 : 1.09))) {
        fprintf(stderr, "%s 4 MiB: cell %d, %.1f %% gained\n", operations[o], cell, 100 * (was / is - 1));
        wrong++;
      }
    }
  if (changed != (argument ? 2 : 0))
    fprintf(stderr, "%d cells of the grid changed\n", changed);
  return wrong || changed != (argument ? 2 : 0);
}

static void without_a_file_h200_without_nvls_gains_and_loses_nowhere(void **state) {
  (void)state;
  struct machine m = h200;
  assert_int_equal(on_machine(&m, replay, "no NVLS"), 0);
  m.cc = "0,1"; /* protected PCIe: the same crossings */
  m.multicast = "00";
  assert_int_equal(on_machine(&m, replay, "no NVLS"), 0);
  assert_int_equal(on_machine(&h200, replay, NULL), 0);
}

static int changes_nothing(const struct cct_emulator *e, const void *argument) {
  const size_t *ranks = argument;
  float before[CELLS];
  for (int i = 0; i < CELLS; i++)
    before[i] = i < 6 ? 10.0f + (float)i : -1;
  return pick(e, *ranks, CCT_TUNER_ALLREDUCE, 4 << 20, before) != TREE_LL;
}

static void without_a_file_other_machines_are_left_alone(void **state) {
  (void)state;
  const size_t two = 2, eight = 8;
  const struct machine b200 = {"nvml_new", "0,0", "NVIDIA B200;NVIDIA B200", "00"};
  const struct machine nvl = {"nvml_new", "0,0", "NVIDIA H200 NVL;NVIDIA H200 NVL", "00"};
  const struct machine mixed = {"nvml_new", "0,0", "NVIDIA H200;NVIDIA B200", "00"};
  const struct machine nothing = {NULL, NULL, NULL, NULL};
  assert_int_equal(on_machine(&b200, changes_nothing, &two), 0);
  assert_int_equal(on_machine(&nvl, changes_nothing, &two), 0);
  assert_int_equal(on_machine(&mixed, changes_nothing, &two), 0);
  assert_int_equal(on_machine(&nothing, changes_nothing, &two), 0);
  assert_int_equal(on_machine(&h200, changes_nothing, &eight), 0); /* measured with two ranks only */
  assert_int_equal(on_machine(&h200, changes_nothing, &two), 1);
}

/* The calls of a real communicator, all-reduce of 8 B to 1 GiB, as NCCL 2.28.3 made them. */
static int recorded(const struct cct_emulator *e, const void *argument) {
  char line[4096];
  int calls = 0, forced = 0;
  FILE *file = open_data("tuner-calls-allreduce.jsonl");
  (void)argument;
  while (file && fgets(line, sizeof line, file)) {
    const char *bytes = strstr(line, "\"nBytes\": "), *at = strstr(line, "\"cost\": [");
    float before[CELLS];
    if (!bytes || !at)
      continue;
    at += strlen("\"cost\": [");
    for (int i = 0; i < CELLS; i++) {
      char *end;
      before[i] = strtof(at, &end);
      at = end + 1;
    }
    size_t size = strtoull(bytes + strlen("\"nBytes\": "), NULL, 10);
    int in_window = size >= 2 << 20 && size <= 6 << 20, cell = pick(e, 2, CCT_TUNER_ALLREDUCE, size, before);
    if (cell != (in_window ? RING_LL128 : cct_emulator_pick(CCT_NCCL_TO_2_28, before, before, CELLS)))
      return 2;
    calls++;
    forced += in_window;
  }
  if (file)
    fclose(file);
  return calls == 28 && forced == 2 ? 0 : 1;
}

static void recorded_calls_are_decided_as_the_rules_say(void **state) {
  (void)state;
  assert_int_equal(on_machine(&h200, recorded, NULL), 0);
}

/* Inside a built-in window the straight lines between the grid's points have LL128 below LL and Simple, at every MiB.
 */
static void the_built_in_windows_follow_from_the_grid(void **state) {
  (void)state;
  char path[4096], why[CCT_RULES_WHY], *text;
  size_t length;
  struct cct_rules rules;
  snprintf(path, sizeof path, "%s/data/profiles/rules/h200-no-multicast.csv", getenv("CCT_SOURCE"));
  assert_int_equal(cct_rules_read(path, &text, &length, why), CCT_OK);
  assert_int_equal(cct_rules_parse(path, text, length, &rules, why), CCT_OK);
  assert_int_equal(rules.n, 2);
  for (size_t r = 0; r < rules.n; r++) {
    int o = rules.items[r].collective == CCT_TUNER_ALLREDUCE ? 0 : 1;
    assert_int_equal(rules.items[r].collective, collectives[o]);
    for (uint64_t bytes = rules.items[r].min_bytes; bytes <= rules.items[r].max_bytes; bytes += 1 << 20) {
      int s = 0;
      double us[3];
      while (s + 2 < SIZES && 1024UL << 2 * (s + 1) <= bytes)
        s++;
      double low = (double)(1024UL << 2 * s), part = ((double)bytes - low) / (3 * low);
      for (int p = 0; p < 3; p++)
        us[p] = grid[o][RING_LL + p][s] + part * (grid[o][RING_LL + p][s + 1] - grid[o][RING_LL + p][s]);
      if (us[1] > us[0] || us[1] > us[2])
        fail_msg("%s %llu: LL %.2f LL128 %.2f Simple %.2f us", operations[o], (unsigned long long)bytes, us[0], us[1],
                 us[2]);
    }
  }
  cct_rules_free(&rules);
  free(text);
}

int main(void) {
  unsetenv("NCCL_NVLS_ENABLE");
  unsetenv("NCCL_ALGO");
  unsetenv("NCCL_PROTO");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_machine_is_seen_as_it_is),
      cmocka_unit_test(without_a_file_h200_without_nvls_gains_and_loses_nowhere),
      cmocka_unit_test(without_a_file_other_machines_are_left_alone),
      cmocka_unit_test(recorded_calls_are_decided_as_the_rules_say),
      cmocka_unit_test(the_built_in_windows_follow_from_the_grid),
  };
  return cmocka_run_group_tests(tests, read_grid, scratch_remove);
}
