/* SPDX-License-Identifier: Apache-2.0
 * Probes against known truths: sim plays a profile, and its probes give that profile back within their intervals; a
 * twin with one cost altered gives the alteration, and leaves all else where it was. Then what GPUs' experiments say,
 * and copies throttled for real on the host backend. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/probe_played_test.h"
#include "workloads/backends/backend.h"
#include "workloads/backends/measure.h"
#include "workloads/shape/cell.h"

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
    play_both(profile, &points);
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
  play_both(profile, &points);
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
    play_clear(profile, &points);
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

/* The medians of repeats lie on a line whatever the repeats do; the interval has to know of these. */
static void a_range_is_no_surer_than_its_repeats(void **state) {
  (void)state;
  struct cct_probe_points points = {0};
  struct cct_fitted *f = calloc(1, sizeof *f);
  struct cct_profile *profile = load("h200");
  int n = 0;
  play_clear(profile, &points);
  struct cct_probe_set *set = &points.sets[CCT_PROBE_CLEAR];
  for (size_t i = 0; i < set->n; i++)
    if (cct_cell_workload(&set->points[i].cell) == CCT_WORKLOAD_COLLECTIVE)
      set->points[i].value *= set->points[i].block == 0 ? 0.7 : set->points[i].block == 2 ? 1.4 : 1;
  cct_profile_fit(set, f);
  for (int r = 0; r < f->n_rows; r++, n++)
    if (f->rows[r].busbw_gb_s.hi < 1.2 * f->rows[r].busbw_gb_s.lo)
      fail_msg("row %d: [%g, %g] of repeats that lie apart by 70 %%", r, f->rows[r].busbw_gb_s.lo,
               f->rows[r].busbw_gb_s.hi);
  assert_true(n > 4);
  cct_probe_points_free(&points);
  cct_profile_free(profile);
  free(f);
}

/* Repeats by block of the values that `disturbs` says. */
static void fit_disturbed(int (*disturbs)(const struct cct_options *cell), const double *factors,
                          struct cct_fitted *f) {
  struct cct_probe_points points = {0};
  struct cct_profile *profile = load("h200");
  play_clear(profile, &points);
  struct cct_probe_set *set = &points.sets[CCT_PROBE_CLEAR];
  for (size_t i = 0; i < set->n; i++)
    if (disturbs(&set->points[i].cell))
      set->points[i].value *= factors[set->points[i].block];
  cct_profile_fit(set, f);
  cct_probe_points_free(&points);
  cct_profile_free(profile);
}
static int is_probe(const struct cct_options *cell, const char *name) {
  return cct_cell_workload(cell) == CCT_WORKLOAD_PROBE && !strcmp(cell->v[CCT_OPT_PROBE_NAME].s, name);
}
static int is_call(const struct cct_options *cell) {
  return is_probe(cell, "submission") || is_probe(cell, "bare-sync");
}
static int is_short_copy(const struct cct_options *cell) {
  return is_probe(cell, "h2d") && cell->v[CCT_OPT_BYTES].i < 1 << 22;
}
static int is_long_copy(const struct cct_options *cell) {
  return is_probe(cell, "h2d") && cell->v[CCT_OPT_BYTES].i >= 1 << 22;
}

/* Calls that differ by a third from block to block say nothing against a product a thousand times as long, nor short
 * copies against the rate of long ones; what differs itself is unstable. */
static void what_disagrees_unsettles_what_it_matters_to(void **state) {
  static const double factors[REPEATS] = {1, 1.3, 0.9}, few[REPEATS] = {1, 1.03, 0.99};
  struct cct_fitted *f = calloc(1, sizeof *f);
  (void)state;
  fit_disturbed(is_call, factors, f);
  assert_true(f->submission_us.is_unstable && f->sync_us.is_unstable && f->copy[0][0].fixed_us.is_unstable);
  assert_true(!f->gemm_tflop_s[CCT_TYPE_BF16].is_unstable && f->gemm_tflop_s[CCT_TYPE_BF16].spread < 0.01);
  assert_true(!f->hbm_gb_s.is_unstable && !f->floor_us.is_unstable && !f->copy[0][0].gb_s.is_unstable);
  fit_disturbed(is_short_copy, factors, f);
  struct cct_estimate rate = f->copy[0][0].gb_s;
  print_message("h2d beside short copies that differ: %.4g [%.4g, %.4g], repeats within %.2f %%\n", rate.value, rate.lo,
                rate.hi, 100 * rate.spread);
  assert_true(!rate.is_unstable && rate.lo <= 55.25 && rate.hi >= 55.25 && rate.hi < 1.02 * rate.lo);
  assert_true(f->copy[0][0].fixed_us.is_unstable && !f->copy[1][0].fixed_us.is_unstable);
  fit_disturbed(is_long_copy, few, f);
  assert_true(f->copy[0][0].gb_s.is_unstable && f->copy[0][0].gb_s.spread > 0.02);
  free(f);
}

static void two_repeats_are_too_few(void **state) {
  (void)state;
  struct cct_probe_points points = {0};
  struct cct_fitted *f = calloc(1, sizeof *f);
  struct cct_profile *profile = load("h200");
  play_clear(profile, &points);
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
    char words[80];
    snprintf(words, sizeof words, "workload probe probe experiment experiment %s", rows[i].experiment);
    struct cct_options cell = cct_fixture_cell(words);
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
  struct cct_step step;
  struct cct_job *job;
  struct cct_backend *backend;
  struct cct_executor *executor;
  struct cct_measured measured;
  char words[80];
  const struct cct_backend_options options = {
      .emulated = emulated, .has_multicast = 1, .scale = 1, .deadline_ns = 60000000000};
  const struct cct_measure_options how = {.warmup = 1, .samples = 40};
  snprintf(words, sizeof words, "workload probe np 1 probe h2d close call bytes %lld", (long long)bytes);
  assert_int_equal(cct_fixture_build(words, &step), CCT_OK);
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
      cmocka_unit_test(a_range_is_no_surer_than_its_repeats),
      cmocka_unit_test(what_disagrees_unsettles_what_it_matters_to),
      cmocka_unit_test(two_repeats_are_too_few),
      cmocka_unit_test(experiments_enter_the_profile),
      cmocka_unit_test(a_throttled_copy_shows_its_rate),
  };
  return cmocka_run_group_tests(tests, expand_suite, free_suite);
}
