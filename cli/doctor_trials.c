/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_trials.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/launch.h"
#include "cli/own_suite.h"
#include "cli/profile_cloud.h"

#define SHORT_LOOP "clock/10000000" /* cycles */
#define LONG_LOOP  "clock/100000000"
#define LOOPS      10
#define IDLE       "caller_blocked/64M/0"
#define BEHIND     "caller_blocked/4K/20000000"

/* An experiment's value that is a fact as it stands; the others are made of several. */
static const struct {
  const char *experiment, *metric;
  enum cct_machine_id fact;
  int np;
} trials[] = {
    {"pinned/2M", "error", CCT_MACHINE_TRY_PINNED, 1},
    {"mapped/2M", "error", CCT_MACHINE_TRY_MAPPED, 1},
    {"managed/2M", "error", CCT_MACHINE_TRY_MANAGED, 1},
    {"host_register/1M", "error", CCT_MACHINE_TRY_REGISTER, 1},
    {"stale_memory/1000", "stale_gpu", CCT_MACHINE_TRY_STALE_GPU, 1},
    {"stale_memory/1000", "stale_host", CCT_MACHINE_TRY_STALE_HOST, 1},
    {"overlap/64M", "kernels", CCT_MACHINE_TRY_KERNELS, 1},
    {"overlap/64M", "copy", CCT_MACHINE_TRY_COPY, 1},
    {"checkpoint", "supported", CCT_MACHINE_TRY_CHECKPOINT, 1},
    {"gdr", "supported", CCT_MACHINE_TRY_GDR, 1},
    {"peer", "without_access", CCT_MACHINE_TRY_NO_PEER, 2},
    {"peer", "ipc_error", CCT_MACHINE_TRY_IPC, 2},
};
static const char *const made_of[] = {SHORT_LOOP, LONG_LOOP, IDLE, BEHIND};

static void add(struct cct_json *cells, const char *experiment, int np) {
  struct cct_json *cell = cct_json_new_object();
  cct_json_set_string(cell, "workload", "probe");
  cct_json_set_string(cell, "probe", "experiment");
  cct_json_set_string(cell, "experiment", experiment);
  cct_json_set_i64(cell, "np", np);
  cct_json_add(cells, cell);
}

/* One sample each: a median would hide the one stale read of many. */
static struct cct_json *suite_of(int gpus) {
  struct cct_json *suite = cct_json_new_object(), *cells = cct_json_new_array();
  cct_json_set_i64(suite, "schema", 1);
  cct_json_set_string(suite, "question", "What can this machine do?");
  cct_json_set_i64(suite, "rounds", 1);
  cct_json_set_i64(suite, "samples", 1);
  cct_json_set_i64(suite, "warmup", 0);
  for (size_t i = 0; i < sizeof made_of / sizeof *made_of; i++)
    add(cells, made_of[i], 1);
  for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
    if (trials[i].np <= gpus && (!i || strcmp(trials[i].experiment, trials[i - 1].experiment)))
      add(cells, trials[i].experiment, trials[i].np);
  cct_json_set(suite, "cells", cells);
  return suite;
}

static double value_of(const struct cct_probe_set *set, const char *experiment, const char *metric) {
  struct cct_estimate e = cct_experiment_value(set, experiment, metric);
  return e.is_known ? e.value : NAN;
}

static void set(struct cct_machine *machine, enum cct_machine_id fact, double value) {
  cct_machine_set_number(machine, fact, isfinite(value) ? value : -1);
}

static double off_pct(double value, double truth) {
  return 100 * fabs(value / truth - 1);
}

void cct_doctor_trial_facts(const struct cct_probe_set *points, struct cct_machine *machine) {
  for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
    set(machine, trials[i].fact, value_of(points, trials[i].experiment, trials[i].metric));
  double timer = value_of(points, LONG_LOOP, "globaltimer");
  set(machine, CCT_MACHINE_TRY_TIMER, off_pct(timer, value_of(points, LONG_LOOP, "host")));
  set(machine, CCT_MACHINE_TRY_EVENTS, off_pct(value_of(points, LONG_LOOP, "event"), timer));
  set(machine, CCT_MACHINE_TRY_CYCLES, off_pct(LOOPS * value_of(points, SHORT_LOOP, "globaltimer"), timer));
  set(machine, CCT_MACHINE_TRY_HOLD_IDLE,
      fmax(value_of(points, IDLE, "h2d_pinned"), value_of(points, IDLE, "d2h_pinned")) / 1e3);
  set(machine, CCT_MACHINE_TRY_HOLD_BEHIND,
      fmax(value_of(points, BEHIND, "h2d_pinned"), value_of(points, BEHIND, "d2h_pinned")) / 1e3);
}

static enum cct_status print_nothing(const struct cct_agenda *agenda, const char *folder,
                                     const struct cct_options *flags, enum cct_status ended) {
  (void)agenda;
  (void)folder;
  (void)flags;
  (void)ended;
  return CCT_OK;
}

static enum cct_status perform(const struct cct_options *options, int gpus, const char *run) {
  struct cct_options own = {0};
  enum cct_status status = cct_options_copy(options, &own);
  if (!status)
    status = cct_option_set(&own, CCT_OPT_BACKEND, "cuda", "--backend");
  if (!status)
    status = cct_option_set(&own, CCT_OPT_OUTPUT, run, "--output");
  own.v[CCT_OPT_QUIET].i = 1;
  cct_log_quiet(1);
  if (!status)
    status = cct_own_perform(&own, suite_of(gpus), print_nothing, NULL);
  cct_options_free(&own);
  cct_log_quiet((int)options->v[CCT_OPT_QUIET].i);
  return status == CCT_FOUND ? CCT_OK : status; /* what failed is not known, and was told */
}

static void remove_run(const char *folder, const char *run) {
  static const char *const files[] = {"block-0000.h5", "block-0000.h5.partial", "run.json"};
  char path[128];
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/%s", run, files[i]);
    unlink(path);
  }
  rmdir(run);
  rmdir(folder);
}

enum cct_status cct_doctor_try(const struct cct_options *options, struct cct_machine *machine) {
  char folder[] = "/tmp/cctax-try-XXXXXX", run[64], why_not[256];
  const struct cct_machine_value *known = &machine->v[CCT_MACHINE_GPU_COUNT];
  struct cct_probe_points *points = calloc(1, sizeof *points);
  enum cct_status status = points ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  if (!status)
    status = cct_launch_why_no_cuda(why_not, sizeof why_not);
  if (!status && *why_not)
    status = cct_fail(CCT_UNSUPPORTED, "--try: nothing can be tried here: %s", why_not);
  if (!status && !mkdtemp(folder))
    status = cct_fail(CCT_IO, "%s: cannot be made", folder);
  if (!status) {
    snprintf(run, sizeof run, "%s/run", folder);
    status = perform(options, known->is_known ? (int)known->number : 1, run);
    if (!status)
      status = cct_probe_points_add(points, run);
    for (int c = 0; !status && c < CCT_PROBE_COLUMNS; c++)
      if (points->sets[c].n)
        cct_doctor_trial_facts(&points->sets[c], machine);
    remove_run(folder, run);
  }
  if (points)
    cct_probe_points_free(points);
  free(points);
  return status;
}
