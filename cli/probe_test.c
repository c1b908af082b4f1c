/* SPDX-License-Identifier: Apache-2.0
 * Probes against known truths: sim plays a profile, and its probes give that profile back within their intervals; a
 * twin with one cost altered gives the alteration, and leaves all else where it was. Then repeats that disagree, and
 * copies throttled for real on the host backend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "cli/probe_suite.h"
#include "cli/profile_make.h"
#include "mpi_runner/suite.h"
#include "workloads/backends/backend.h"
#include "workloads/backends/measure.h"
#include "workloads/backends/predict.h"
#include "workloads/steps/workload.h"

#define REPEATS 3

static struct cct_options *cells;
static int n_cells;

static int expand(int np) {
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

static int expand_suite(void **state) {
  (void)state;
  return expand(2);
}

static int free_suite(void **state) {
  (void)state;
  for (int i = 0; i < n_cells; i++)
    cct_options_free(&cells[i]);
  free(cells);
  return 0;
}

static double noise(double spread, uint64_t seed, int cell, int block) {
  uint64_t bits = cct_random_fold(cct_random_fold(seed, (uint64_t)cell), (uint64_t)block);
  return 1 + spread * ((double)(bits >> 11) / 9007199254740992.0 * 2 - 1);
}

/* What sim's probes would record as one column. */
static void play(const struct cct_profile *machine, const struct cct_profile *emulated, unsigned mask, double spread,
                 uint64_t seed, struct cct_probe_set *set) {
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

static struct cct_profile *load(const char *name) {
  struct cct_profile *profile;
  assert_int_equal(cct_profile_load(name, &profile), CCT_OK);
  return profile;
}

/* The values of a column that are single numbers. */
struct value {
  const char *name;
  double truth;
  struct cct_estimate found;
};
#define MOST_VALUES 24

static int list_values(const struct cct_column *c, const struct cct_fitted *f, struct value *values) {
  static const char *const copies[2][2][2] = {
      {{"h2d pinned fixed", "h2d pinned rate"}, {"h2d pageable fixed", "h2d pageable rate"}},
      {{"d2h pinned fixed", "d2h pinned rate"}, {"d2h pageable fixed", "d2h pageable rate"}}};
  int n = 0;
  values[n++] = (struct value){"submission", c->submission.us.value, f->submission_us};
  values[n++] = (struct value){"graph", c->graph_launch.us.value, f->graph_us};
  values[n++] = (struct value){"node", c->graph_launch.us_per_node.value, f->graph_us_per_node};
  values[n++] = (struct value){"sync", c->sync_us.value, f->sync_us};
  values[n++] = (struct value){"floor", c->kernel_floor_us.value, f->floor_us};
  for (int d = 0; d < 2; d++)
    for (int m = 0; m < 2; m++) {
      values[n++] = (struct value){copies[d][m][0], c->copy[d][m].fixed_us.value, f->copy[d][m].fixed_us};
      values[n++] = (struct value){copies[d][m][1], c->copy[d][m].gb_s.value, f->copy[d][m].gb_s};
    }
  values[n++] = (struct value){"sm", c->p2p.sm_gb_s.value, f->sm_gb_s};
  values[n++] = (struct value){"short write", c->p2p.short_write_us.value, f->short_write_us};
  values[n++] = (struct value){"bf16", c->gemm_tflop_s[CCT_TYPE_BF16].value, f->gemm_tflop_s[CCT_TYPE_BF16]};
  values[n++] = (struct value){"fp8", c->gemm_tflop_s[CCT_TYPE_FP8].value, f->gemm_tflop_s[CCT_TYPE_FP8]};
  values[n++] = (struct value){"hbm", c->hbm_gb_s.value, f->hbm_gb_s};
  values[n++] = (struct value){"slowdown", c->cpu_slowdown.value, f->cpu_slowdown};
  return n;
}

static int is_within(const struct value *v) {
  return v->found.is_known && v->truth >= v->found.lo && v->truth <= v->found.hi;
}

static void expect_all_within(const struct cct_column *column, const struct cct_fitted *fitted, const char *what) {
  struct value values[MOST_VALUES];
  int n = list_values(column, fitted, values);
  for (int i = 0; i < n; i++)
    if (!is_within(&values[i]) || values[i].found.is_unstable)
      fail_msg("%s, %s: %.9g is not in [%.9g, %.9g]%s", what, values[i].name, values[i].truth, values[i].found.lo,
               values[i].found.hi, values[i].found.is_unstable ? ", unstable" : "");
}

static void sim_gives_the_profile_back(void **state) {
  static const char *const names[] = {"h200", "b200-tdx", "b200x8-tdx"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct cct_probe_points points = {0};
    struct cct_fitted *f = calloc(2, sizeof *f);
    struct cct_profile *profile = load(names[i]);
    play(profile, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CLEAR]);
    play(profile, profile, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CONFIDENTIAL]);
    cct_profile_fit(&points.sets[CCT_PROBE_CLEAR], &f[0]);
    cct_profile_fit(&points.sets[CCT_PROBE_CONFIDENTIAL], &f[1]);
    expect_all_within(&profile->clear, &f[0], names[i]);
    /* A confidential time below its clear one is no surcharge, so emulation leaves what is faster there. */
    expect_all_within(&profile->confidential, &f[1], "its confidential column");
    for (int d = 0; d < 2; d++)
      for (int m = 0; m < 2; m++) {
        assert_int_equal(f[0].copy[d][m].blocks, profile->clear.copy[d][m].blocks);
        assert_int_equal(f[1].copy[d][m].blocks, 1);
      }
    assert_int_equal(cct_profile_form(&f[0], &f[1]), CCT_FORM_HOST);
    cct_probe_points_free(&points);
    cct_profile_free(profile);
    free(f);
  }
}

static void a_surcharge_in_the_stream_is_told_from_one_on_the_host(void **state) {
  (void)state;
  struct cct_probe_points points = {0};
  struct cct_fitted *f = calloc(2, sizeof *f);
  struct cct_profile *profile = load("b200-tdx");
  profile->confidential.submission.form = CCT_FORM_STREAM;
  play(profile, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CLEAR]);
  play(profile, profile, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CONFIDENTIAL]);
  cct_profile_fit(&points.sets[CCT_PROBE_CLEAR], &f[0]);
  cct_profile_fit(&points.sets[CCT_PROBE_CONFIDENTIAL], &f[1]);
  assert_int_equal(cct_profile_form(&f[0], &f[1]), CCT_FORM_STREAM);
  cct_probe_points_free(&points);
  cct_profile_free(profile);
  free(f);
}

/* One cost altered: its probe says so, and no other does. */
static void each_probe_reports_its_altered_twin_and_nothing_else(void **state) {
  static const struct {
    const char *name;
    size_t offset;
    double factor;
  } twins[] = {
#define TWIN(name, field, factor) {name, offsetof(struct cct_column, field), factor}
      TWIN("submission", submission.us.value, 3.7),
      TWIN("graph", graph_launch.us.value, 2.2),
      TWIN("node", graph_launch.us_per_node.value, 30),
      TWIN("sync", sync_us.value, 1.5),
      TWIN("floor", kernel_floor_us.value, 1.2),
      TWIN("h2d pinned fixed", copy[0][0].fixed_us.value, 2),
      TWIN("h2d pinned rate", copy[0][0].gb_s.value, 0.1),
      TWIN("d2h pageable fixed", copy[1][1].fixed_us.value, 1.3),
      TWIN("d2h pageable rate", copy[1][1].gb_s.value, 0.97),
      TWIN("sm", p2p.sm_gb_s.value, 0.8),
      TWIN("short write", p2p.short_write_us.value, 4),
      TWIN("bf16", gemm_tflop_s[CCT_TYPE_BF16].value, 0.98),
      TWIN("hbm", hbm_gb_s.value, 0.95),
      TWIN("slowdown", cpu_slowdown.value, 1.015),
#undef TWIN
  };
  (void)state;
  struct cct_fitted *f = calloc(1, sizeof *f);
  for (size_t t = 0; t < sizeof twins / sizeof *twins; t++) {
    struct cct_probe_points points = {0};
    struct value values[MOST_VALUES];
    struct cct_profile *profile = load("h200");
    double *cost = (double *)((char *)&profile->clear + twins[t].offset), original = *cost;
    int is_found = 0;
    *cost *= twins[t].factor;
    play(profile, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CLEAR]);
    cct_profile_fit(&points.sets[CCT_PROBE_CLEAR], f);
    expect_all_within(&profile->clear, f, twins[t].name);
    int n = list_values(&profile->clear, f, values);
    for (int i = 0; i < n; i++)
      if (!strcmp(values[i].name, twins[t].name)) {
        is_found = 1;
        if (original >= values[i].found.lo && original <= values[i].found.hi)
          fail_msg("%s: the interval [%.9g, %.9g] still holds %.9g", twins[t].name, values[i].found.lo,
                   values[i].found.hi, original);
      }
    assert_true(is_found);
    cct_probe_points_free(&points);
    cct_profile_free(profile);
  }
  free(f);
}

/* 1 % of noise, a hundred and more values: about 95 % of the intervals hold the truth. */
static void intervals_hold_the_truth_under_noise(void **state) {
  (void)state;
  struct cct_profile *profile = load("h200");
  struct cct_fitted *f = calloc(1, sizeof *f);
  int held = 0, all = 0;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    struct cct_probe_points points = {0};
    struct value values[MOST_VALUES];
    play(profile, NULL, CCT_ALL_BOUNDARIES, 0.01, seed, &points.sets[CCT_PROBE_CLEAR]);
    cct_profile_fit(&points.sets[CCT_PROBE_CLEAR], f);
    int n = list_values(&profile->clear, f, values);
    for (int i = 0; i < n; i++)
      held += is_within(&values[i]);
    all += n;
    cct_probe_points_free(&points);
  }
  print_message("%d of %d intervals hold the truth\n", held, all);
  assert_true(held >= 0.90 * all);
  cct_profile_free(profile);
  free(f);
}

static struct cct_profile *make(struct cct_probe_points *points, const struct cct_profile *base,
                                struct cct_profile_report *report) {
  char path[] = "/tmp/cctax-profile-XXXXXX.json";
  struct cct_json *document;
  struct cct_profile *made = NULL;
  assert_int_equal(cct_profile_make(points, base, "made", report, &document), CCT_OK);
  if (!report->n_lost) {
    close(mkstemps(path, 5));
    assert_int_equal(cct_json_save(document, path), CCT_OK);
    assert_int_equal(cct_profile_load(path, &made), CCT_OK);
    unlink(path);
  }
  cct_json_free(document);
  return made;
}

/* What was made predicts what was played: every probe, in both columns. */
static void a_made_profile_plays_like_the_one_it_was_measured_on(void **state) {
  (void)state;
  struct cct_probe_points points = {0}, again = {0};
  struct cct_profile_report report;
  struct cct_profile *profile = load("h200");
  play(profile, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CLEAR]);
  play(profile, profile, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CONFIDENTIAL]);
  struct cct_profile *made = make(&points, profile, &report);
  assert_non_null(made);
  play(made, NULL, CCT_ALL_BOUNDARIES, 0, 0, &again.sets[CCT_PROBE_CLEAR]);
  play(made, made, CCT_ALL_BOUNDARIES, 0, 0, &again.sets[CCT_PROBE_CONFIDENTIAL]);
  for (int s = 0; s < CCT_PROBE_COLUMNS; s++)
    for (size_t i = 0; i < points.sets[s].n; i++) {
      const struct cct_options *cell = &points.sets[s].points[i].cell;
      double is = again.sets[s].points[i].value, was = points.sets[s].points[i].value;
      int is_collective = !strcmp(cell->v[CCT_OPT_WORKLOAD].s, "collective");
      if (!(fabs(is - was) <= (is_collective ? 0.05 : 0.002) * was))
        fail_msg("column %d, %s %s %lld bytes: %.6g us, it was %.6g", s, cell->v[CCT_OPT_WORKLOAD].s,
                 cell->v[is_collective ? CCT_OPT_COLLECTIVE : CCT_OPT_PROBE_NAME].s,
                 (long long)cell->v[CCT_OPT_BYTES].i, is, was);
    }
  assert_int_equal(made->capability.async_copy, 0);
  assert_int_equal(made->capability.work_fifo, 0);
  assert_int_equal(made->clear.submission.us.kind, CCT_COST_DERIVED); /* sim measures nothing */
  cct_profile_report_free(&report);
  cct_probe_points_free(&points);
  cct_probe_points_free(&again);
  cct_profile_free(made);
  cct_profile_free(profile);
}

static const struct cct_profile_line *line_of(const struct cct_profile_report *report, const char *path) {
  for (size_t i = 0; i < report->n; i++)
    if (!strcmp(report->lines[i].path, path))
      return &report->lines[i];
  fail_msg("no line '%s'", path);
  return NULL;
}

static int is_probe(const struct cct_probe_point *point, const char *name) {
  return !strcmp(point->cell.v[CCT_OPT_WORKLOAD].s, "probe") && !strcmp(point->cell.v[CCT_OPT_PROBE_NAME].s, name);
}

static void repeats_that_disagree_never_enter_a_profile_silently(void **state) {
  (void)state;
  struct cct_probe_points points = {0};
  struct cct_profile_report report;
  struct cct_profile *profile = load("h200"), *made;
  play(profile, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CLEAR]);
  struct cct_probe_set *set = &points.sets[CCT_PROBE_CLEAR];
  for (size_t i = 0; i < set->n; i++)
    if (is_probe(&set->points[i], "submission") && set->points[i].block == 2)
      set->points[i].value *= 1.08;
  assert_null(make(&points, NULL, &report)); /* no base: nothing is made */
  assert_int_equal(line_of(&report, "clear.submission.us")->state, CCT_VALUE_UNSTABLE);
  assert_int_equal(line_of(&report, "clear.sync.us")->state, CCT_VALUE_MEASURED);
  assert_int_equal(line_of(&report, "clear.memory_bytes")->state, CCT_VALUE_MISSING);
  cct_profile_report_free(&report);
  made = make(&points, profile, &report);
  assert_non_null(made);
  assert_int_equal(line_of(&report, "clear.submission.us")->state, CCT_VALUE_REPLACED);
  assert_int_equal(made->clear.submission.us.kind, CCT_COST_ASSUMED);
  assert_non_null(strstr(made->clear.submission.us.source, "unstable here; profile h200"));
  assert_true(made->clear.submission.us.value == profile->clear.submission.us.value);
  cct_profile_free(made);
  cct_profile_report_free(&report);
  cct_probe_points_free(&points);
  cct_profile_free(profile);
}

/* ---- beside the profile ---- */

static int64_t predict_cell(const struct cct_profile *machine, const char *probe, const char *memory,
                            const char *bytes) {
  struct cct_options cell;
  struct cct_step step;
  int64_t ns;
  assert_int_equal(cct_options_init(&cell), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_WORKLOAD, "probe", "test"), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_PROBE_NAME, probe, "test"), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_MEMORY, memory, "test"), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_BYTES, bytes, "test"), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_NP, "1", "test"), CCT_OK);
  assert_int_equal(cct_step_build(&cell, &step), CCT_OK);
  assert_int_equal(cct_predict(step.job, machine, NULL, CCT_ALL_BOUNDARIES, NULL, 1, &ns), CCT_OK);
  cct_step_free(&step);
  cct_options_free(&cell);
  return ns;
}

static void report_of(const struct cct_profile *machine, const struct cct_profile *base,
                      struct cct_profile_report *report) {
  struct cct_probe_points points = {0};
  play(machine, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CLEAR]);
  cct_profile_free(make(&points, base, report));
  cct_probe_points_free(&points);
}

/* The line through what was measured is where 72 GB lie; an altered copy alters what it loads or saves, and no other.
 */
static void what_72_gb_take_follows_from_the_sizes_measured(void **state) {
  static const char *const probes[] = {"load", "save"}, *const memories[] = {"pinned", "pageable"};
  (void)state;
  struct cct_profile *profile = load("h200"), *twin = load("h200");
  struct cct_profile_report report, altered;
  report_of(profile, profile, &report);
  twin->clear.copy[1][1].gb_s.value *= 0.7;
  report_of(twin, profile, &altered);
  for (int p = 0; p < 2; p++)
    for (int m = 0; m < 2; m++) {
      char path[64];
      snprintf(path, sizeof path, "clear.%s.%s.s_at_72_gb", probes[p], memories[m]);
      const struct cct_estimate *e = &line_of(&report, path)->estimate, *a = &line_of(&altered, path)->estimate;
      double truth = (double)predict_cell(profile, probes[p], memories[m], "72000000000") / 1e9;
      double other = (double)predict_cell(twin, probes[p], memories[m], "72000000000") / 1e9;
      if (fabs(e->value - truth) > 1e-3 * truth || fabs(a->value - other) > 1e-3 * other)
        fail_msg("%s: %.6g s and %.6g s, they take %.6g and %.6g", path, e->value, a->value, truth, other);
      int is_altered = a->lo > e->hi || a->hi < e->lo;
      assert_int_equal(is_altered, p == 1 && m == 1);
      assert_int_equal(line_of(&report, path)->state, CCT_VALUE_MEASURED);
    }
  cct_profile_report_free(&report);
  cct_profile_report_free(&altered);
  cct_profile_free(profile);
  cct_profile_free(twin);
}

/* Copies at once, by streams and by threads, in one process or two: bytes of all over the time. */
static void copies_at_once_are_told_as_rates(void **state) {
  (void)state;
  struct cct_profile *profile = load("h200");
  struct cct_profile_report report;
  report_of(profile, profile, &report);
  double pinned = profile->clear.copy[0][0].gb_s.value, pageable = profile->clear.copy[0][1].gb_s.value;
  const struct {
    const char *path;
    double most; /* copies of sim share nothing */
  } rows[] = {{"clear.streams.pinned.16777216x4.np1.gb_s", 4 * pinned},
              {"clear.threads.pinned.16777216x4.np1.gb_s", 4 * pinned},
              {"clear.threads.pageable.16777216x2.np1.gb_s", 2 * pageable},
              {"clear.h2d.pinned.67108864x1.np2.gb_s", 2 * pinned}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double value = line_of(&report, rows[i].path)->estimate.value;
    if (!(value < rows[i].most && value > 0.9 * rows[i].most))
      fail_msg("%s: %.6g GB/s, wanted a little less than %.6g", rows[i].path, value, rows[i].most);
  }
  cct_profile_report_free(&report);
  cct_profile_free(profile);
}

/* What is unstable beside the profile is told so, and keeps no profile from being made. */
static void what_is_unstable_beside_the_profile_is_marked(void **state) {
  (void)state;
  struct cct_probe_points points = {0};
  struct cct_profile_report report;
  struct cct_profile *profile = load("h200"), *made;
  play(profile, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CLEAR]);
  play(profile, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CLEAR_REGISTERED]);
  for (int c = 0; c < CCT_PROBE_COLUMNS; c += CCT_PROBE_CLEAR_REGISTERED)
    for (size_t i = 0; i < points.sets[c].n; i++) {
      struct cct_probe_point *point = &points.sets[c].points[i];
      int is_collective = !strcmp(point->cell.v[CCT_OPT_WORKLOAD].s, "collective") && c;
      if (point->block == 2 && (is_probe(point, "load") || is_probe(point, "threads") || is_collective))
        point->value *= 1.09;
    }
  made = make(&points, profile, &report);
  assert_non_null(made);
  assert_int_equal(line_of(&report, "clear.load.pinned.s_at_72_gb")->state, CCT_VALUE_UNSTABLE);
  assert_int_equal(line_of(&report, "clear.threads.pinned.16777216x2.np1.gb_s")->state, CCT_VALUE_UNSTABLE);
  assert_int_equal(line_of(&report, "clear.registered.all_reduce.2.range1.busbw_gb_s")->state, CCT_VALUE_UNSTABLE);
  assert_int_equal(line_of(&report, "clear.collective.all_reduce.2.range1.busbw_gb_s")->state, CCT_VALUE_MEASURED);
  assert_int_equal(line_of(&report, "clear.save.pinned.s_at_72_gb")->state, CCT_VALUE_MEASURED);
  assert_int_equal(line_of(&report, "clear.streams.pinned.16777216x2.np1.gb_s")->state, CCT_VALUE_MEASURED);
  assert_int_equal(report.n_lost, 0);
  cct_profile_report_free(&report);
  cct_probe_points_free(&points);
  cct_profile_free(made);
  cct_profile_free(profile);
}

static void two_repeats_are_too_few(void **state) {
  (void)state;
  struct cct_probe_points points = {0};
  struct cct_fitted *f = calloc(1, sizeof *f);
  struct cct_profile *profile = load("h200");
  play(profile, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CLEAR]);
  struct cct_probe_set *set = &points.sets[CCT_PROBE_CLEAR];
  size_t kept = 0;
  for (size_t i = 0; i < set->n; i++)
    if (set->points[i].block < 2)
      set->points[kept++] = set->points[i];
    else
      cct_options_free(&set->points[i].cell);
  set->n = kept;
  cct_profile_fit(set, f);
  assert_true(f->submission_us.is_known && f->submission_us.is_unstable);
  assert_int_equal(f->submission_us.repeats, 2);
  cct_probe_points_free(&points);
  cct_profile_free(profile);
  free(f);
}

/* A run with a stripped arm: rows that need multicast stand beside those that do not. */
static void stripped_rows_are_told_from_those_with_multicast(void **state) {
  struct cct_options *cells_of_two = cells;
  struct cct_probe_points points = {0};
  struct cct_profile_report report;
  struct cct_profile *profile = load("b200x8-tdx"), *made;
  int n_of_two = n_cells, n_nvls = 0;
  (void)state;
  assert_int_equal(expand(8), 0);
  play(profile, NULL, 1u << CCT_BOUNDARY_CAPABILITY, 0, 0, &points.sets[CCT_PROBE_CLEAR]);
  play(profile, profile, 1u << CCT_BOUNDARY_CAPABILITY, 0, 0, &points.sets[CCT_PROBE_STRIPPED]);
  play(profile, profile, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CONFIDENTIAL]);
  made = make(&points, profile, &report);
  assert_non_null(made);
  for (int i = 0; i < made->clear.n_collectives; i++)
    n_nvls += !strncmp(made->clear.collectives[i].algorithm, "NVLS", 4);
  assert_true(n_nvls > 0 && n_nvls < made->clear.n_collectives);
  made->capability.multicast = 0;
  for (int is_stripped = 0; is_stripped < 2; is_stripped++)
    for (int i = 0; i < n_cells; i++) {
      struct cct_step step;
      int64_t was, is;
      if (strcmp(cells[i].v[CCT_OPT_WORKLOAD].s, "collective"))
        continue;
      assert_int_equal(cct_step_build(&cells[i], &step), CCT_OK);
      unsigned mask = 1u << CCT_BOUNDARY_CAPABILITY;
      assert_int_equal(cct_predict(step.job, profile, is_stripped ? profile : NULL, mask, NULL, 1, &was), CCT_OK);
      assert_int_equal(cct_predict(step.job, made, is_stripped ? made : NULL, mask, NULL, 1, &is), CCT_OK);
      if (!(fabs((double)(is - was)) <= 0.06 * (double)was))
        fail_msg("%s of %lld bytes, %d ranks: %lld ns, it was %lld", cells[i].v[CCT_OPT_COLLECTIVE].s,
                 (long long)cells[i].v[CCT_OPT_BYTES].i, (int)cells[i].v[CCT_OPT_NP].i, (long long)is, (long long)was);
      cct_step_free(&step);
    }
  free_suite(NULL);
  cells = cells_of_two;
  n_cells = n_of_two;
  cct_profile_report_free(&report);
  cct_probe_points_free(&points);
  cct_profile_free(made);
  cct_profile_free(profile);
}

/* What a GPU's own experiments say goes before what the library's messages say. */
static void experiments_enter_the_profile(void **state) {
  static const struct {
    const char *experiment, *metric;
    double value;
  } rows[] = {{"host_register/4K", "error", 0},     {"gdr", "supported", 1},          {"memory", "total", 150e9},
              {"memory", "reserved", 600e6},        {"p2p_copy/1G/0/1", "rate", 396}, {"p2p_copy/1G/1/1", "rate", 373},
              {"short_write/1000", "one_way", 0.69}};
  struct cct_probe_set set = {0};
  struct cct_fitted *f = calloc(1, sizeof *f);
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_options cell;
    assert_int_equal(cct_options_init(&cell), CCT_OK);
    assert_int_equal(cct_option_set(&cell, CCT_OPT_WORKLOAD, "probe", "test"), CCT_OK);
    assert_int_equal(cct_option_set(&cell, CCT_OPT_PROBE_NAME, "experiment", "test"), CCT_OK);
    assert_int_equal(cct_option_set(&cell, CCT_OPT_EXPERIMENT, rows[i].experiment, "test"), CCT_OK);
    for (int block = 0; block < REPEATS; block++)
      assert_int_equal(cct_probe_set_add(&set, &cell, rows[i].metric, "", block, 1, rows[i].value * (1 + 0.01 * block)),
                       CCT_OK);
    cct_options_free(&cell);
  }
  cct_profile_fit(&set, f);
  assert_int_equal(f->host_register, 1);
  assert_int_equal(f->gdr, 1);
  assert_true(f->memory_bytes.is_known && !f->memory_bytes.is_unstable && f->memory_bytes.lo == 150e9);
  assert_true(f->ce_gb_s.hi > 403 && f->ce_gb_s.hi < 405);
  assert_true(f->sm_gb_s.is_known && f->short_write_us.is_known && f->reserved_bytes.is_known);
  assert_true(!f->hbm_gb_s.is_known && f->copy[0][0].blocks < 0);
  struct cct_probe_points points = {.sets[CCT_PROBE_CLEAR] = set};
  cct_probe_points_free(&points);
  free(f);
}

/* ---- the host backend: copies that are throttled for real ---- */

static double probe_on_host(const struct cct_profile *emulated, int64_t bytes) {
  const struct cct_backend_ops *host = cct_backend_by_name("host");
  struct cct_options cell;
  struct cct_step step;
  struct cct_job *job;
  struct cct_backend *backend;
  struct cct_executor *executor;
  struct cct_measured measured;
  char text[32];
  const struct cct_backend_options options = {
      .emulated = emulated, .has_multicast = 1, .scale = 1, .deadline_ns = 60000000000};
  const struct cct_measure_options how = {.warmup = 1, .samples = 40};
  snprintf(text, sizeof text, "%lld", (long long)bytes);
  assert_int_equal(cct_options_init(&cell), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_WORKLOAD, "probe", "test"), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_PROBE_NAME, "h2d", "test"), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_CLOSE, "call", "test"), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_NP, "1", "test"), CCT_OK);
  assert_int_equal(cct_option_set(&cell, CCT_OPT_BYTES, text, "test"), CCT_OK);
  assert_int_equal(cct_step_build(&cell, &step), CCT_OK);
  assert_int_equal(cct_emulate(step.job, emulated, 1u << CCT_BOUNDARY_COPIES, &job), CCT_OK);
  assert_int_equal(host->open(cct_world_self(), &options, &backend), CCT_OK);
  assert_int_equal(host->load(backend, job, &executor), CCT_OK);
  assert_int_equal(cct_measure(cct_world_self(), host, executor, NULL, &how, &measured), CCT_OK);
  double fastest = INFINITY; /* the machine that runs tests is shared; throttling never makes a copy faster */
  for (int64_t s = 0; s < measured.samples; s++)
    fastest = fmin(fastest, (double)measured.burst_ns[s] / 1e3);
  cct_measured_free(&measured);
  host->unload(executor);
  host->close(backend);
  cct_job_free(job);
  cct_step_free(&step);
  cct_options_free(&cell);
  return fastest;
}

/* A process that takes the core away makes copies slower, never faster: one quiet try of a few must show the rate. */
static void a_throttled_copy_shows_its_rate(void **state) {
  static const double rates[] = {0.1, 0.03};
  struct cct_profile *profile = load("h200");
  (void)state;
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    double gb_s = 0;
    profile->confidential.copy[0][0].gb_s.value = rates[i];
    for (int attempt = 0; attempt < 6 && !(fabs(gb_s - rates[i]) <= 0.05 * rates[i]); attempt++) {
      double small = probe_on_host(profile, 1 << 15), large = probe_on_host(profile, 1 << 17);
      gb_s = ((1 << 17) - (1 << 15)) / (large - small) * 1e-3;
    }
    print_message("throttled to %.2f GB/s, probed %.3f GB/s\n", rates[i], gb_s);
    assert_true(fabs(gb_s - rates[i]) <= 0.05 * rates[i]);
  }
  cct_profile_free(profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sim_gives_the_profile_back),
      cmocka_unit_test(a_surcharge_in_the_stream_is_told_from_one_on_the_host),
      cmocka_unit_test(each_probe_reports_its_altered_twin_and_nothing_else),
      cmocka_unit_test(intervals_hold_the_truth_under_noise),
      cmocka_unit_test(a_made_profile_plays_like_the_one_it_was_measured_on),
      cmocka_unit_test(repeats_that_disagree_never_enter_a_profile_silently),
      cmocka_unit_test(what_72_gb_take_follows_from_the_sizes_measured),
      cmocka_unit_test(copies_at_once_are_told_as_rates),
      cmocka_unit_test(what_is_unstable_beside_the_profile_is_marked),
      cmocka_unit_test(two_repeats_are_too_few),
      cmocka_unit_test(stripped_rows_are_told_from_those_with_multicast),
      cmocka_unit_test(experiments_enter_the_profile),
      cmocka_unit_test(a_throttled_copy_shows_its_rate),
  };
  return cmocka_run_group_tests(tests, expand_suite, free_suite);
}
