/* SPDX-License-Identifier: Apache-2.0
 * For tests of what probes find: the cells of the probe's suite, and what sim's probes would record on a machine. */
#ifndef CCT_CLI_PROBE_PLAYED_TEST_H
#define CCT_CLI_PROBE_PLAYED_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/random.h"
#include "cli/probe_suite.h"
#include "cli/profile_make.h"
#include "mpi_runner/suite.h"
#include "workloads/backends/predict.h"
#include "workloads/steps/step_fixture.h"

#define REPEATS 3

static struct cct_options *cells;
static int n_cells;

static inline int expand(int np) {
  char path[] = "/tmp/cctax-suite-XXXXXX";
  struct cct_json *document = cct_probe_suite("sim", np);
  struct cct_options flags;
  struct cct_suite suite;
  struct cct_text notes = {0};
  close(mkstemp(path));
  int failed = cct_json_save(document, path) || cct_options_init(&flags) || cct_suite_load(path, &notes, &suite) ||
               cct_suite_cells(&suite, &flags, &cells, &n_cells);
  unlink(path);
  cct_suite_free(&suite);
  cct_text_free(&notes);
  cct_options_free(&flags);
  cct_json_free(document);
  return failed ? -1 : 0;
}

static inline int expand_suite(void **state) {
  (void)state;
  return expand(2);
}

static inline int free_suite(void **state) {
  (void)state;
  for (int i = 0; i < n_cells; i++)
    cct_options_free(&cells[i]);
  free(cells);
  return 0;
}

static inline double noise(double spread, uint64_t seed, int cell, int block) {
  uint64_t bits = cct_random_fold(cct_random_fold(seed, (uint64_t)cell), (uint64_t)block);
  return 1 + spread * ((double)(bits >> 11) / 9007199254740992.0 * 2 - 1);
}

/* What sim's probes would record as one column. */
static inline void play(const struct cct_profile *machine, const struct cct_profile *emulated, unsigned mask,
                        double spread, uint64_t seed, struct cct_probe_set *set) {
  snprintf(set->condition, sizeof set->condition, "%s", emulated ? "emulated:twin" : "off");
  snprintf(set->backend, sizeof set->backend, "sim");
  for (int i = 0; i < n_cells; i++) {
    struct cct_step step;
    int64_t ns;
    assert_int_equal(cct_step_build(&cells[i], &step), CCT_OK);
    assert_int_equal(cct_predict(step.job, machine, emulated, mask, step.bindings, 1, &ns), CCT_OK);
    for (int block = 0; block < REPEATS; block++)
      assert_int_equal(cct_probe_set_add(set, &cells[i], "step", "us", block, 1,
                                         (double)ns / 1e3 * (spread > 0 ? noise(spread, seed, i, block) : 1)),
                       CCT_OK);
    cct_step_free(&step);
  }
}

/* Exactly, without noise: the machine in the clear, and as its own confidential self beside it. */
static inline void play_clear(const struct cct_profile *machine, struct cct_probe_points *points) {
  play(machine, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points->sets[CCT_PROBE_CLEAR]);
}

static inline void play_both(const struct cct_profile *machine, struct cct_probe_points *points) {
  play_clear(machine, points);
  play(machine, machine, CCT_ALL_BOUNDARIES, 0, 0, &points->sets[CCT_PROBE_CONFIDENTIAL]);
}

static inline struct cct_profile *load(const char *name) {
  struct cct_profile *profile;
  assert_int_equal(cct_profile_load(name, &profile), CCT_OK);
  return profile;
}

#endif
