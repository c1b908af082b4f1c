/* SPDX-License-Identifier: Apache-2.0
 * Plays NCCL to the built profiler: every version, several threads, and what it must survive. */
#include <setjmp.h>
#include <stdarg.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "nccl_plugin/profiler/profiler_abi.h"

static char path[] = "/tmp/cct-profiler-test-XXXXXX";
static int n_warnings;

static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  (void)flags, (void)file, (void)line, (void)format;
  n_warnings += level == CCT_NCCL_WARN;
}

static const void *table(const char *name) {
  void *lib = dlopen(CCT_PROFILER_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(lib);
  const void *found = dlsym(lib, name);
  assert_non_null(found);
  return found;
}

static struct cct_nccl_event all_reduce(uint64_t type, uint64_t seq) {
  struct cct_nccl_event e = {.type = type, .rank = 1};
  e.coll = (struct cct_nccl_coll){.seq = seq,
                                  .func = "AllReduce",
                                  .count = 1024,
                                  .datatype = "ncclFloat32",
                                  .channels = 16,
                                  .warps = 20,
                                  .algo = "RING",
                                  .proto = "LL128"};
  return e;
}

static int lines_with(const char *text) {
  char line[2000];
  int n = 0;
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) {
    assert_true(line[0] == '{' && strcmp(line + strlen(line) - 2, "}\n") == 0);
    n += strstr(line, text) != NULL;
  }
  if (file)
    fclose(file);
  return n;
}

static void v4_records_what_nccl_chose(void **state) {
  (void)state;
  const struct cct_nccl_profiler_v4 *v4 = table("ncclProfiler_v4");
  void *context, *event;
  int mask = -1;
  truncate(path, 0);
  assert_int_equal(v4->init(&context, &mask, "name", 0xabc, 2, 16, 1, logger), CCT_NCCL_SUCCESS);
  assert_int_equal(mask, CCT_NCCL_EVENT_COLL); /* the other defaults came with v5 */
  struct cct_nccl_event e =
      all_reduce(0xdeadbeef00000000u | CCT_NCCL_EVENT_COLL, 7); /* v4's type is one byte, then padding */
  assert_int_equal(v4->start_event(context, &event, &e), CCT_NCCL_SUCCESS);
  assert_int_equal(v4->stop_event(event), CCT_NCCL_SUCCESS);
  assert_int_equal(v4->stop_event(event), CCT_NCCL_SUCCESS); /* twice is harmless */
  assert_int_equal(v4->finalize(context), CCT_NCCL_SUCCESS);
  assert_int_equal(
      lines_with("{\"comm\":\"0000000000000abc\",\"rank\":1,\"ranks\":16,\"nodes\":2,\"event\":\"coll\",\"seq\":7,"
                 "\"func\":\"AllReduce\",\"count\":1024,\"datatype\":\"ncclFloat32\",\"root\":0,\"algo\":\"RING\","
                 "\"proto\":\"LL128\",\"channels\":16,\"warps\":20,\"start_ns\":"),
      1);
  assert_int_equal(lines_with(""), 1);
}

static void v5_and_v6_record_groups_launches_and_copy_engines(void **state) {
  (void)state;
  for (int version = 5; version <= 6; version++) {
    const struct cct_nccl_profiler_v5 *v = table(version == 5 ? "ncclProfiler_v5" : "ncclProfiler_v6");
    void *context, *event;
    int mask = -1;
    const uint64_t types[] = {CCT_NCCL_EVENT_COLL, CCT_NCCL_EVENT_GROUP_API, CCT_NCCL_EVENT_KERNEL_LAUNCH,
                              CCT_NCCL_EVENT_CE_COLL, 1 << 3 /* not ours */};
    truncate(path, 0);
    assert_int_equal(v->init(&context, 1, &mask, NULL, 1, 2, 0, NULL), CCT_NCCL_SUCCESS);
    assert_int_equal(mask & CCT_NCCL_EVENT_CE_COLL, version == 6 ? CCT_NCCL_EVENT_CE_COLL : 0);
    assert_int_equal(mask & (CCT_NCCL_EVENT_KERNEL_CH | CCT_NCCL_EVENT_P2P), 0); /* these only when asked for */
    for (int i = 0; i < 5; i++) {
      struct cct_nccl_event e = all_reduce(types[i], 1);
      if (types[i] == CCT_NCCL_EVENT_CE_COLL)
        e.ce_coll.sync_strategy = "MC";
      else if (types[i] == CCT_NCCL_EVENT_GROUP_API)
        e.group.is_captured = 1;
      assert_int_equal(v->start_event(context, &event, &e), CCT_NCCL_SUCCESS);
      assert_int_equal(event != NULL, i < 4);
      assert_int_equal(v->record_event_state(event, 23, NULL), CCT_NCCL_SUCCESS);
      assert_int_equal(v->stop_event(event), CCT_NCCL_SUCCESS);
    }
    assert_int_equal(v->finalize(context), CCT_NCCL_SUCCESS);
    assert_int_equal(lines_with("\"event\":\"coll\""), 1);
    assert_int_equal(lines_with("\"event\":\"group\",\"graph\":true"), 1);
    assert_int_equal(lines_with("\"event\":\"launch\""), 1);
    assert_int_equal(lines_with("\"event\":\"ce_coll\",\"seq\":1,\"func\":\"AllReduce\""), 1);
  }
}

static void kernel_channels_carry_the_gpus_clock(void **state) {
  (void)state;
  const struct cct_nccl_profiler_v5 *v5 = table("ncclProfiler_v5");
  void *context, *event;
  int mask;
  truncate(path, 0);
  setenv("CCTAX_PROFILER_MASK", "66", 1);
  assert_int_equal(v5->init(&context, 1, &mask, NULL, 1, 2, 0, NULL), CCT_NCCL_SUCCESS);
  assert_int_equal(mask, 66);
  struct cct_nccl_event e = {.type = CCT_NCCL_EVENT_KERNEL_CH, .kernel_ch = {3, 1000}};
  union cct_nccl_event_args args = {2500};
  assert_int_equal(v5->start_event(context, &event, &e), CCT_NCCL_SUCCESS);
  assert_int_equal(v5->record_event_state(event, CCT_NCCL_STATE_KERNEL_CH_STOP, &args), CCT_NCCL_SUCCESS);
  assert_int_equal(v5->stop_event(event), CCT_NCCL_SUCCESS);
  assert_int_equal(v5->finalize(context), CCT_NCCL_SUCCESS);
  assert_int_equal(lines_with("\"channel\":3,\"gpu_start_ns\":1000,\"gpu_end_ns\":2500"), 1);
  unsetenv("CCTAX_PROFILER_MASK");
}

enum {
  THREADS = 4,
  EVENTS = 3000
};

static void *hammer(void *context) {
  const struct cct_nccl_profiler_v5 *v5 = table("ncclProfiler_v5");
  void *events[8];
  for (int i = 0; i < EVENTS / 8; i++) {
    for (int k = 0; k < 8; k++) {
      struct cct_nccl_event e = all_reduce(CCT_NCCL_EVENT_COLL, (uint64_t)i);
      v5->start_event(context, &events[k], &e);
    }
    for (int k = 7; k >= 0; k--)
      v5->stop_event(events[k]);
  }
  return NULL;
}

static void threads_lose_no_line(void **state) {
  (void)state;
  const struct cct_nccl_profiler_v5 *v5 = table("ncclProfiler_v5");
  void *contexts[2];
  pthread_t threads[THREADS];
  int mask;
  truncate(path, 0);
  for (int i = 0; i < 2; i++)
    assert_int_equal(v5->init(&contexts[i], (uint64_t)i, &mask, NULL, 1, 2, i, logger), CCT_NCCL_SUCCESS);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, hammer, contexts[i % 2]);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; i++)
    assert_int_equal(v5->finalize(contexts[i]), CCT_NCCL_SUCCESS);
  assert_int_equal(lines_with("\"algo\":\"RING\""), THREADS * EVENTS);
}

static void it_never_fails_a_job(void **state) {
  (void)state;
  const struct cct_nccl_profiler_v5 *v5 = table("ncclProfiler_v5");
  void *context = &n_warnings, *event = &n_warnings;
  struct cct_nccl_event e = all_reduce(CCT_NCCL_EVENT_COLL, 1);
  const struct {
    const char *file, *mask;
    int warnings;
  } rows[] = {{"/nowhere/file", NULL, 1}, {path, "none", 1}, {path, "-2", 1}, {path, "8", 1}, {NULL, NULL, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int mask = -1;
    n_warnings = 0;
    rows[i].file ? setenv("CCTAX_PROFILER_FILE", rows[i].file, 1) : unsetenv("CCTAX_PROFILER_FILE");
    rows[i].mask ? setenv("CCTAX_PROFILER_MASK", rows[i].mask, 1) : unsetenv("CCTAX_PROFILER_MASK");
    assert_int_equal(v5->init(&context, 1, &mask, NULL, 1, 2, 0, logger), CCT_NCCL_SUCCESS);
    assert_int_equal(mask, 0);
    assert_null(context);
    assert_int_equal(n_warnings, rows[i].warnings);
    assert_int_equal(v5->start_event(context, &event, &e), CCT_NCCL_SUCCESS);
    assert_null(event);
    assert_int_equal(v5->stop_event(NULL) + v5->record_event_state(NULL, 22, NULL) + v5->finalize(NULL),
                     CCT_NCCL_SUCCESS);
  }
}

/* A pipe by name, whose reader is not there, or goes. */
static void a_pipe_without_a_reader_ends_no_job(void **state) {
  (void)state;
  const struct cct_nccl_profiler_v5 *v5 = table("ncclProfiler_v5");
  void *context = NULL, *event = NULL;
  struct cct_nccl_event e = all_reduce(CCT_NCCL_EVENT_COLL, 1);
  char name[80];
  int mask = -1;
  snprintf(name, sizeof name, "%s.pipe", path);
  assert_int_equal(mkfifo(name, 0600), 0);
  setenv("CCTAX_PROFILER_FILE", name, 1);
  unsetenv("CCTAX_PROFILER_MASK");
  n_warnings = 0;
  assert_int_equal(v5->init(&context, 1, &mask, NULL, 1, 2, 0, logger), CCT_NCCL_SUCCESS);
  assert_null(context);
  assert_int_equal(n_warnings, 1);
  int reader = open(name, O_RDONLY | O_NONBLOCK);
  assert_int_equal(v5->init(&context, 1, &mask, NULL, 1, 2, 0, logger), CCT_NCCL_SUCCESS);
  assert_non_null(context);
  assert_int_equal(v5->start_event(context, &event, &e) + v5->stop_event(event), CCT_NCCL_SUCCESS);
  close(reader);
  assert_int_equal(v5->finalize(context), CCT_NCCL_SUCCESS);
  assert_int_equal(n_warnings, 2);
  unlink(name);
}

int main(void) {
  close(mkstemp(path));
  setenv("CCTAX_PROFILER_FILE", path, 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(v4_records_what_nccl_chose),
      cmocka_unit_test(v5_and_v6_record_groups_launches_and_copy_engines),
      cmocka_unit_test(kernel_channels_carry_the_gpus_clock),
      cmocka_unit_test(threads_lose_no_line),
      cmocka_unit_test(it_never_fails_a_job),
      cmocka_unit_test(a_pipe_without_a_reader_ends_no_job),
  };
  int result = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(path);
  return result;
}
