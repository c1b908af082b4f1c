/* SPDX-License-Identifier: Apache-2.0
 * A profile made of probes: it plays like the machine it was measured on, repeats that disagree enter it only by name,
 * and its report says what stands beside it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/probe_played_test.h"

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

/* What was made predicts what was played: every probe, in both columns. */
static void a_made_profile_plays_like_the_one_it_was_measured_on(void **state) {
  (void)state;
  struct cct_probe_points points = {0}, again = {0};
  struct cct_profile_report report;
  struct cct_profile *profile = load("h200");
  play_both(profile, &points);
  struct cct_profile *made = make(&points, profile, &report);
  assert_non_null(made);
  play_both(made, &again);
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

static void repeats_that_disagree_never_enter_a_profile_silently(void **state) {
  (void)state;
  struct cct_probe_points points = {0};
  struct cct_profile_report report;
  struct cct_profile *profile = load("h200"), *made;
  play_clear(profile, &points);
  struct cct_probe_set *set = &points.sets[CCT_PROBE_CLEAR];
  for (size_t i = 0; i < set->n; i++)
    if (is_probe(&set->points[i], "submission") && set->points[i].block == 2)
      set->points[i].value *= 1.08;
  assert_null(make(&points, NULL, &report)); /* no base: nothing is made */
  assert_int_equal(line_of(&report, "clear.submission.us")->state, CCT_VALUE_UNSTABLE);
  assert_int_equal(line_of(&report, "clear.sync.us")->state, CCT_VALUE_DERIVED);
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

static int64_t predict_cell(const struct cct_profile *machine, const char *probe, const char *memory) {
  char words[160];
  struct cct_step step;
  int64_t ns;
  snprintf(words, sizeof words, "workload probe np 1 probe %s memory %s bytes 72000000000", probe, memory);
  assert_int_equal(cct_fixture_build(words, &step), CCT_OK);
  assert_int_equal(cct_predict(step.job, machine, NULL, CCT_ALL_BOUNDARIES, NULL, 1, &ns), CCT_OK);
  cct_step_free(&step);
  return ns;
}

static void report_of(const struct cct_profile *machine, const struct cct_profile *base,
                      struct cct_profile_report *report) {
  struct cct_probe_points points = {0};
  play_clear(machine, &points);
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
      double truth = (double)predict_cell(profile, probes[p], memories[m]) / 1e9;
      double other = (double)predict_cell(twin, probes[p], memories[m]) / 1e9;
      if (fabs(e->value - truth) > 1e-3 * truth || fabs(a->value - other) > 1e-3 * other)
        fail_msg("%s: %.6g s and %.6g s, they take %.6g and %.6g", path, e->value, a->value, truth, other);
      int is_altered = a->lo > e->hi || a->hi < e->lo;
      assert_int_equal(is_altered, p == 1 && m == 1);
      assert_int_equal(line_of(&report, path)->state, CCT_VALUE_DERIVED);
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
  play_clear(profile, &points);
  play(profile, NULL, CCT_ALL_BOUNDARIES, 0, 0, &points.sets[CCT_PROBE_CLEAR_REGISTERED]);
  for (int c = 0; c < CCT_PROBE_COLUMNS; c += CCT_PROBE_CLEAR_REGISTERED)
    for (size_t i = 0; i < points.sets[c].n; i++) {
      struct cct_probe_point *point = &points.sets[c].points[i];
      int is_collective = !strcmp(point->cell.v[CCT_OPT_WORKLOAD].s, "collective") && c;
      if (is_probe(point, "save"))
        point->value *= 1 + 0.004 * point->block; /* within what is stated */
      if (point->block == 2 && (is_probe(point, "load") || is_probe(point, "threads") || is_collective))
        point->value *= is_probe(point, "load") ? 5 : 1.09;
    }
  made = make(&points, profile, &report);
  assert_non_null(made);
  assert_int_equal(line_of(&report, "clear.load.pinned.s_at_72_gb")->state, CCT_VALUE_UNSTABLE);
  assert_true(line_of(&report, "clear.load.pinned.s_at_72_gb")->estimate.lo >= 0); /* no seconds below none */
  assert_int_equal(line_of(&report, "clear.threads.pinned.16777216x2.np1.gb_s")->state, CCT_VALUE_UNSTABLE);
  assert_int_equal(line_of(&report, "clear.registered.all_reduce.2.range1.busbw_gb_s")->state, CCT_VALUE_UNSTABLE);
  assert_int_equal(line_of(&report, "clear.collective.all_reduce.2.range1.busbw_gb_s")->state, CCT_VALUE_DERIVED);
  assert_int_equal(line_of(&report, "clear.save.pinned.s_at_72_gb")->state, CCT_VALUE_DERIVED);
  assert_true(fabs(line_of(&report, "clear.save.pinned.s_at_72_gb")->estimate.spread - 0.008) < 0.001);
  assert_int_equal(line_of(&report, "clear.streams.pinned.16777216x2.np1.gb_s")->state, CCT_VALUE_DERIVED);
  assert_int_equal(report.n_lost, 0);
  cct_profile_report_free(&report);
  cct_probe_points_free(&points);
  cct_profile_free(made);
  cct_profile_free(profile);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_made_profile_plays_like_the_one_it_was_measured_on),
      cmocka_unit_test(repeats_that_disagree_never_enter_a_profile_silently),
      cmocka_unit_test(what_72_gb_take_follows_from_the_sizes_measured),
      cmocka_unit_test(copies_at_once_are_told_as_rates),
      cmocka_unit_test(what_is_unstable_beside_the_profile_is_marked),
      cmocka_unit_test(stripped_rows_are_told_from_those_with_multicast),
  };
  return cmocka_run_group_tests(tests, expand_suite, free_suite);
}
