/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "record/record.h"
#include "tests/scratch.h"

#define N_CELLS 6
#define N_ROWS  700 /* more than two chunks */

static char path[256], partial[300];

static const struct cct_metric metrics[] = {{"step", "ns", "lower"}, {"throughput", "tok/s", "higher"}};
static const struct cct_record_head head = {.tool = "0.1.0",
                                            .run = "feed",
                                            .block = 3,
                                            .round = 1,
                                            .boot = 0,
                                            .factor = "condition",
                                            .arm = "off",
                                            .boot_id = "b-1"};
static const struct cct_record_fact facts[] = {{"gpu", CCT_FACT_IDENTITY, "none"}, {"tee", CCT_FACT_CONDITION, "none"}};

static struct cct_record *create(void) {
  struct cct_record_cell cells[N_CELLS];
  static char keys[N_CELLS][32];
  struct cct_record *record;
  for (int i = 0; i < N_CELLS; i++) {
    snprintf(keys[i], sizeof keys[i], "{\"batch\":%d}", i);
    cells[i] = (struct cct_record_cell){keys[i], "predicted", metrics, 2};
  }
  assert_int_equal(cct_record_create(path, &head, facts, 2, "a program", cells, N_CELLS, &record), CCT_OK);
  return record;
}

static struct cct_sample sample(int cell, int metric, int row) {
  return (struct cct_sample){row % 8, row / 8, 1, (int64_t)row << 33, cell * 1e6 + metric * 1e5 + row + 0.25};
}

static void append(struct cct_record *record, int cell, int metric, int first, int n) {
  struct cct_sample rows[N_ROWS];
  for (int i = 0; i < n; i++)
    rows[i] = sample(cell, metric, first + i);
  assert_int_equal(cct_record_append(record, cell, metric, rows, n), CCT_OK);
}

static void set_counts(struct cct_record *record, int cell) {
  const struct cct_cell_counts program = {20, 1, 16 + cell, 13}, performed = {21, 1, 17 + cell, 15};
  cct_record_set_counts(record, cell, &program, &performed);
}

static void fill_cell(struct cct_record *record, int cell) {
  append(record, cell, 0, 0, 300);
  append(record, cell, 0, 300, N_ROWS - 300);
  append(record, cell, 1, 0, 1);
  if (cell % 2 == 0) /* others have none, as in files of before they were kept */
    set_counts(record, cell);
  assert_int_equal(cct_record_set_state(record, cell, CCT_CELL_DONE, NULL), CCT_OK);
}

static void expect_cell(const struct cct_block_cell *cell, int index) {
  assert_int_equal(cell->state, CCT_CELL_DONE);
  assert_int_equal(cell->n_metrics, 2);
  assert_int_equal(cell->metrics[0].n_samples, N_ROWS);
  assert_int_equal(cell->metrics[1].n_samples, 1);
  assert_string_equal(cell->metrics[0].metric.unit, "ns");
  assert_int_equal(cell->program.nodes, index % 2 ? 0 : 16 + index);
  assert_int_equal(cell->performed.submissions, index % 2 ? 0 : 21);
  assert_int_equal(cell->performed.kernels, index % 2 ? 0 : 15);
  for (int i = 0; i < N_ROWS; i++) {
    struct cct_sample is = cell->metrics[0].samples[i], must = sample(index, 0, i);
    assert_true(is.rank == must.rank && is.index == must.index && is.n == must.n && is.start_ns == must.start_ns &&
                is.value == must.value);
  }
}

static void finish_whole(void) {
  struct cct_record *record = create();
  for (int i = 0; i < N_CELLS; i++)
    fill_cell(record, i);
  struct cct_record_fact drift = {"gpu_temperature_c", CCT_FACT_DRIFT, "40"};
  assert_int_equal(cct_record_add_facts(record, &drift, 1), CCT_OK);
  assert_int_equal(cct_record_finish(record), CCT_OK);
}

static void what_is_written_is_read(void **state) {
  (void)state;
  struct cct_block *block;
  finish_whole();
  assert_int_equal(access(partial, F_OK), -1);
  assert_int_equal(cct_block_read(path, 0, &block), CCT_OK);
  assert_int_equal(block->n_cells, N_CELLS);
  assert_int_equal(block->head.block, 3);
  assert_string_equal(block->head.arm, "off");
  assert_string_equal(block->program, "a program");
  assert_int_equal(block->n_facts, 3);
  assert_int_equal(block->facts[2].fact_class, CCT_FACT_DRIFT);
  assert_string_equal(block->facts[2].value, "40");
  for (int i = 0; i < N_CELLS; i++)
    expect_cell(&block->cells[i], i);
  cct_block_free(block);
}

static void an_interrupted_block_goes_on(void **state) {
  (void)state;
  struct cct_block *block;
  struct cct_record *record = create();
  fill_cell(record, 0);
  assert_int_equal(cct_record_set_state(record, 1, CCT_CELL_REFUSED, "tp=8 does not divide 6 heads"), CCT_OK);
  append(record, 2, 0, 0, 500); /* an open cell's rows are dropped */
  cct_record_abandon(record);
  assert_int_equal(cct_record_reopen(path, &record), CCT_OK);
  assert_int_equal(cct_record_state(record, 0), CCT_CELL_DONE);
  assert_int_equal(cct_record_state(record, 1), CCT_CELL_REFUSED);
  assert_int_equal(cct_record_state(record, 2), CCT_CELL_OPEN);
  for (int i = 2; i < N_CELLS; i++)
    fill_cell(record, i);
  assert_int_equal(cct_record_finish(record), CCT_OK);
  assert_int_equal(cct_block_read(path, 0, &block), CCT_OK);
  assert_string_equal(block->cells[1].reason, "tp=8 does not divide 6 heads");
  for (int i = 0; i < N_CELLS; i++)
    if (i != 1)
      expect_cell(&block->cells[i], i);
  cct_block_free(block);
}

static void flip(const char *file, off_t at, unsigned char mask) {
  unsigned char byte;
  int fd = open(file, O_RDWR);
  assert_int_equal(pread(fd, &byte, 1, at), 1);
  byte ^= mask;
  assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  close(fd);
}

static int is_bad(const struct cct_check_result *result, int cell) {
  for (int i = 0; i < result->n_bad; i++)
    if (result->bad[i] == cell)
      return 1;
  return result->n_bad < 0;
}

/* Where cell `cell`'s first row stands: a damaged sample must be named as that cell and no other. */
static off_t find_row(const char *text, size_t length, int cell, int row) {
  struct cct_sample must = sample(cell, 0, row);
  unsigned char packed[28];
  memcpy(packed, &must, 12);
  memcpy(packed + 12, &must.start_ns, 16);
  const char *at = memmem(text, length, packed, sizeof packed);
  assert_non_null(at);
  return at - text;
}

static void every_flipped_byte_is_noticed(void **state) {
  (void)state;
  struct cct_check_result result;
  struct cct_block *block;
  char *text;
  size_t length;
  finish_whole();
  assert_int_equal(cct_record_check(path, &result), CCT_OK);
  assert_true(result.is_sound);
  assert_int_equal(cct_read_file(path, 1 << 26, &text, &length), CCT_OK);
  int n_named = 0, n_structure = 0, n_none = 0;
#ifdef __SANITIZE_ADDRESS__
  const uint64_t n_flips = 100; /* a child process each, and those are slow here */
#else
  const uint64_t n_flips = 1000;
#endif
  for (uint64_t i = 0; i < n_flips; i++) {
    off_t at = (off_t)cct_random_below(11, 2 * i, (int64_t)length);
    unsigned char mask = (unsigned char)(1 + cct_random_below(11, 2 * i + 1, 255));
    flip(path, at, mask);
    assert_int_equal(cct_record_check(path, &result), CCT_OK);
    if (result.is_sound)
      fail_msg("byte %lld flipped by %#x goes unnoticed", (long long)at, mask);
    n_named += result.n_bad > 0;
    n_structure += result.n_bad == 0;
    n_none += result.n_bad < 0;
    flip(path, at, mask);
  }
  print_message("of %d flipped bytes: %d name cells, %d affect none, %d keep the file from opening\n", (int)n_flips,
                n_named, n_structure, n_none);
  assert_true(n_named > 20 && n_structure > 10);
  for (int cell = 0; cell < N_CELLS; cell++) {
    off_t at = find_row(text, length, cell, 100 + cell);
    flip(path, at + 20, 4);
    assert_int_equal(cct_record_check(path, &result), CCT_OK);
    assert_int_equal(result.n_bad, 1);
    assert_true(is_bad(&result, cell));
    assert_int_equal(cct_block_read(path, 0, &block), CCT_DAMAGED);
    assert_int_equal(cct_block_read(path, 1, &block), CCT_OK); /* the rest stays readable */
    for (int i = 0; i < N_CELLS; i++)
      if (i == cell)
        assert_int_equal(block->cells[i].state, CCT_CELL_OPEN);
      else
        expect_cell(&block->cells[i], i);
    cct_block_free(block);
    flip(path, at + 20, 4);
  }
  free(text);
}

/* A writer acknowledges each finished cell over a pipe and is killed at a random instant: what it acknowledged is kept.
 */
static void a_killed_writer_loses_no_finished_cell(void **state) {
  (void)state;
  int lost = 0, n_kills = getenv("CCT_LONG") ? 2000 : 40, n_kept = 0;
  for (int k = 0; k < n_kills; k++) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    unlink(path);
    unlink(partial);
    pid_t child = fork();
    if (child == 0) {
      struct cct_record *record = create();
      char byte = '+';
      for (int i = 0; i < N_CELLS; i++) {
        for (int at = 0; at < N_ROWS; at += 50) {
          append(record, i, 0, at, 50);
          usleep(100);
        }
        append(record, i, 1, 0, 1);
        if (cct_record_set_state(record, i, CCT_CELL_DONE, NULL) || write(ends[1], &byte, 1) != 1)
          _exit(1);
      }
      _exit(0);
    }
    close(ends[1]);
    char acknowledged[N_CELLS];
    ssize_t waited = 0, n; /* every second writer has finished a cell, however slow this machine is */
    if (k % 2)
      waited = read(ends[0], acknowledged, 1);
    usleep((useconds_t)cct_random_below(5, (uint64_t)k, 30000));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    n = read(ends[0], acknowledged, sizeof acknowledged);
    n = waited + (n > 0 ? n : 0);
    close(ends[0]);
    struct cct_record *record;
    if (n <= 0)
      continue;
    n_kept += (int)n;
    if (cct_record_reopen(path, &record) != CCT_OK) {
      lost++;
      continue;
    }
    for (int i = 0; i < n; i++)
      lost += cct_record_state(record, i) != CCT_CELL_DONE;
    cct_record_abandon(record);
  }
  print_message("%d kills, %d finished cells, %d lost\n", n_kills, n_kept, lost);
  assert_true(n_kept >= n_kills / 2);
  assert_int_equal(lost, 0);
}

static void a_full_disk_and_a_wrong_place_are_told(void **state) {
  (void)state;
  struct cct_record *record;
  struct cct_record_cell cell = {"{}", "predicted", metrics, 1};
  assert_int_equal(cct_record_create("/nowhere/b.h5", &head, facts, 2, "", &cell, 1, &record), CCT_IO);
  assert_int_equal(cct_record_create("/dev/full/b.h5", &head, facts, 2, "", &cell, 1, &record), CCT_IO);
  struct cct_block *block;
  assert_int_equal(cct_block_read("/etc/passwd", 0, &block), CCT_DAMAGED);
  assert_int_equal(cct_block_read("/etc/passwd", 1, &block), CCT_DAMAGED);
  assert_int_equal(cct_block_read("/nowhere/b.h5", 0, &block), CCT_IO);
}

static int name_files(void **state) {
  int failed = scratch_make(state);
  snprintf(path, sizeof path, "%s/block.h5", scratch);
  snprintf(partial, sizeof partial, "%s.partial", path);
  return failed;
}

int main(int argc, char **argv) {
  if (argc > 1) { /* writes one block there, for the reader in Python */
    snprintf(path, sizeof path, "%s", argv[1]);
    finish_whole();
    return 0;
  }

  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read),
      cmocka_unit_test(an_interrupted_block_goes_on),
      cmocka_unit_test(every_flipped_byte_is_noticed),
      cmocka_unit_test(a_killed_writer_loses_no_finished_cell),
      cmocka_unit_test(a_full_disk_and_a_wrong_place_are_told),
  };
  return cmocka_run_group_tests(tests, name_files, scratch_remove);
}
