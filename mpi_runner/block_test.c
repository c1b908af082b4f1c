/* SPDX-License-Identifier: Apache-2.0
 * A block over a backend that is sim but for what a test makes it do otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/text.h"
#include "mpi_runner/block.h"
#include "tests/fakes/world_threads.h"
#include "tests/scratch.h"

extern const struct cct_backend_ops cct_backend_sim;

static struct {
  int refused_size;
  atomic_int refusals;      /* opening on so many processes is refused so many times */
  int step_fails_at;        /* the how manyth load's steps fail; 0: none */
  int submissions, kernels; /* performed beside the program's own */
  atomic_int loads;
} fake;

static enum cct_status fake_open(const struct cct_world *world, const struct cct_backend_options *options,
                                 struct cct_backend **backend_out) {
  int is_refused = world->size == fake.refused_size && atomic_load(&fake.refusals) > 0;
  (void)world->ops->barrier(world); /* all read before one counts */
  if (is_refused) {
    atomic_fetch_sub(&fake.refusals, world->rank == 0);
    return cct_fail(CCT_UNSUPPORTED, "ranks 0 and 1 would share a GPU");
  }
  return cct_backend_sim.open(world, options, backend_out);
}

static enum cct_status fake_load(struct cct_backend *backend, const struct cct_job *job,
                                 struct cct_executor **executor_out) {
  atomic_fetch_add(&fake.loads, 1);
  return cct_backend_sim.load(backend, job, executor_out);
}

static enum cct_status fake_step(struct cct_executor *executor, const struct cct_binding *bindings, int n,
                                 struct cct_burst *burst) {
  if (fake.step_fails_at == atomic_load(&fake.loads))
    return cct_fail(CCT_STOPPED, "nccl: group of 2 ranks: remote process exited");
  return cct_backend_sim.step(executor, bindings, n, burst);
}

static _Thread_local int fake_rank, n_reads;

/* A GPU that gets a degree warmer from reading to reading, rank 1's by ten more; and what is no number. */
static int fake_facts(struct cct_backend *backend, struct cct_fact *facts, int max) {
  int n = cct_backend_sim.facts(backend, facts, max - 2);
  facts[n] = (struct cct_fact){"gpu.temperature_c", "drift", ""};
  snprintf(facts[n++].value, sizeof facts->value, "%d", 40 + 10 * fake_rank + n_reads++);
  facts[n++] = (struct cct_fact){"gpu.mood", "drift", "calm"};
  return n;
}

static enum cct_status fake_counts(struct cct_executor *executor, struct cct_counts *counts_out) {
  enum cct_status status = cct_backend_sim.counts(executor, counts_out);
  counts_out->submissions += fake.submissions;
  counts_out->kernels += fake.kernels;
  return status;
}

/* In place of the build's registry. */
static struct cct_backend_ops ops;
const struct cct_backend_ops *const cct_backends[] = {&ops, NULL};
const struct cct_backend_ops *cct_backend_by_name(const char *name) {
  (void)name;
  return &ops;
}
static void set_ops(void) {
  ops = cct_backend_sim;
  ops.open = fake_open;
  ops.load = fake_load;
  ops.step = fake_step;
  ops.facts = fake_facts;
  ops.counts = fake_counts;
}

/* libudev, which a process asks for its GPUs, seeds its hash by two threads at once where two read the machine. */
static void needs_processes(void) {
#ifdef __SANITIZE_THREAD__
  skip();
#endif
}

static char suite[64], path[64], partial[80];
static struct cct_agenda *agenda;
static atomic_int statuses[2];
static char said[512]; /* by process 0, last */

static void perform(const struct cct_world *world, void *unused) {
  (void)unused;
  fake_rank = world->rank;
  n_reads = 0;
  atomic_store(&statuses[world->rank], (int)cct_block_perform(world, scratch, agenda, 0));
  if (world->rank == 0)
    snprintf(said, sizeof said, "%s", cct_log_last());
}

static void plan(const char *cells) {
  struct cct_options flags;
  char text[1024];
  snprintf(text, sizeof text,
           "{\"schema\":1,\"rounds\":1,\"samples\":3,\"warmup\":1,\"defaults\":{\"model\":\"qwen3-0.6b\",\"workload\":"
           "\"decode\",\"layers\":1},\"cells\":[%s]}",
           cells);
  memset(&fake, 0, sizeof fake);
  unlink(path);
  unlink(partial);
  cct_agenda_free(agenda);
  agenda = NULL;
  assert_int_equal(cct_write_file(suite, text, strlen(text)), CCT_OK);
  assert_int_equal(cct_options_init(&flags), CCT_OK);
  assert_int_equal(cct_option_set(&flags, CCT_OPT_BACKEND, "sim", "test"), CCT_OK);
  assert_int_equal(cct_agenda_plan(&flags, suite, "off", &agenda), CCT_OK);
  cct_options_free(&flags);
  assert_int_equal(cct_agenda_add_boot(agenda, "boot", (int[]){0}, 1), CCT_OK);
}

static struct cct_block *read_block(const char *file, int is_partial) {
  struct cct_block *block = NULL;
  assert_int_equal(cct_block_read(file, is_partial, &block), CCT_OK);
  return block;
}

static void counts_of(int submissions, int kernels) {
  plan("{\"layout\":\"dp=1\",\"graph\":[\"none\",\"full\"]}");
  fake.submissions = submissions;
  fake.kernels = kernels;
  cct_world_threads(1, perform, NULL);
  assert_int_equal(statuses[0], CCT_OK);
  struct cct_block *block = read_block(path, 0);
  for (int i = 0; i < 2; i++) {
    const struct cct_cell_counts *p = &block->cells[i].program, *is = &block->cells[i].performed;
    assert_true(p->submissions > 0 && p->graphs == i && (p->nodes > 0) == i && p->kernels > 0);
    assert_true(is->submissions == p->submissions + submissions && is->kernels == p->kernels + kernels);
    assert_true(is->graphs == p->graphs && is->nodes == p->nodes);
  }
  cct_block_free(block);
}

static void counts_are_kept_as_performed(void **state) {
  (void)state;
  counts_of(0, 0);
  counts_of(3, 5);
}

/* Cells of two processes that cannot open: the first is followed by one of the same size, which opens again. */
static void a_cell_that_did_not_open_leaves_the_next_one_its_own(void **state) {
  (void)state;
  static const enum cct_cell_state expected[] = {CCT_CELL_DONE, CCT_CELL_REFUSED, CCT_CELL_REFUSED, CCT_CELL_DONE,
                                                 CCT_CELL_DONE};
  needs_processes();
  plan("{\"layout\":\"dp=1\"},{\"layout\":\"dp=2\",\"batch\":[1,2,4]},{\"layout\":\"dp=1\",\"batch\":2}");
  fake.refused_size = 2;
  fake.refusals = 2;
  cct_world_threads(2, perform, NULL);
  assert_true(statuses[0] == CCT_OK && statuses[1] == CCT_OK); /* refused is not failed */
  struct cct_block *block = read_block(path, 0);
  assert_int_equal(block->n_cells, 5);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(block->cells[i].state, expected[i]);
    if (expected[i] == CCT_CELL_REFUSED)
      assert_non_null(strstr(block->cells[i].reason, "would share a GPU"));
    else
      assert_int_equal(block->cells[i].metrics[0].n_samples, 3 * agenda->ranks[i]);
  }
  cct_block_free(block);
}

static const char *fact_of(const struct cct_block *block, const char *name, int *n_out) {
  const char *value = "";
  *n_out = 0;
  for (int i = 0; i < block->n_facts; i++)
    if (!strcmp(block->facts[i].name, name)) {
      value = block->facts[i].value;
      ++*n_out;
    }
  return value;
}

/* Read once when the block begins, which does not count, and after each of three cells, on both ranks. */
static void drift_is_the_range_over_cells_and_ranks(void **state) {
  (void)state;
  int n;
  needs_processes();
  plan("{\"layout\":\"dp=2\",\"batch\":[1,2,4]}");
  cct_world_threads(2, perform, NULL);
  assert_true(statuses[0] == CCT_OK && statuses[1] == CCT_OK);
  struct cct_block *block = read_block(path, 0);
  assert_string_equal(fact_of(block, "gpu.temperature_c", &n), "41 to 53");
  assert_int_equal(n, 1);
  assert_string_equal(fact_of(block, "gpu.mood", &n), "calm");
  cct_block_free(block);
}

/* As a communicator in error is: the block ends, what was finished stays, and the next session goes on from there. */
static void what_ends_a_block_keeps_its_finished_cells(void **state) {
  (void)state;
  plan("{\"layout\":\"dp=1\",\"batch\":[1,2,4]}");
  fake.step_fails_at = 2;
  cct_world_threads(1, perform, NULL);
  assert_int_equal(statuses[0], CCT_STOPPED);
  assert_non_null(strstr(said, "remote process exited"));
  assert_int_equal(access(path, F_OK), -1);
  struct cct_block *block = read_block(partial, 1);
  struct cct_sample kept = block->cells[0].metrics[0].samples[0];
  assert_true(block->cells[0].state == CCT_CELL_DONE && block->cells[1].state == CCT_CELL_OPEN);
  cct_block_free(block);
  fake.step_fails_at = 0;
  cct_world_threads(1, perform, NULL);
  assert_int_equal(statuses[0], CCT_OK);
  assert_int_equal(fake.loads, 4); /* the finished cell was not performed again */
  block = read_block(path, 0);
  for (int i = 0; i < 3; i++)
    assert_int_equal(block->cells[i].state, CCT_CELL_DONE);
  assert_memory_equal(&kept, &block->cells[0].metrics[0].samples[0], sizeof kept);
  cct_block_free(block);
}

static int set_up(void **state) {
  int failed = scratch_make(state);
  snprintf(suite, sizeof suite, "%s/suite.json", scratch);
  snprintf(path, sizeof path, "%s/block-0000.h5", scratch);
  snprintf(partial, sizeof partial, "%s.partial", path);
  set_ops();
  return failed;
}

static int tear_down(void **state) {
  cct_agenda_free(agenda);
  return scratch_remove(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_are_kept_as_performed),
      cmocka_unit_test(a_cell_that_did_not_open_leaves_the_next_one_its_own),
      cmocka_unit_test(drift_is_the_range_over_cells_and_ranks),
      cmocka_unit_test(what_ends_a_block_keeps_its_finished_cells),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
