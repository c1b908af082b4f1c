/* SPDX-License-Identifier: Apache-2.0
 * Experiments of the CUDA backend against the twin: each cost or refusal that is set there is found, and what is not
 * set is not. The machine that runs tests is shared, which makes things slower and never faster: of a few tries the
 * best counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "fakes/twin_gpu.h"
#include "fakes/world_threads.h"
#include "workloads/backends/backend.h"
#include "workloads/program/program.h"
#include "workloads/steps/experiments.h"

struct cct_log_room;
const struct cct_backend_ops *cctax_cuda_ops(const struct cct_log_room *room);

#define TRIES      3
#define CHILD_DIES "CCTAX_TEST_CHILD_DIES"

struct asked {
  const char *text;
  int output;
  enum cct_status status;
  double least, median, most; /* of the tries */
  char said[160];             /* of rank 0's failure */
};

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void ask(const struct cct_world *world, void *argument) {
  struct asked *asked = argument;
  const struct cct_backend_ops *ops = cctax_cuda_ops(NULL);
  const struct cct_backend_options options = {.deadline_ns = 20000000000};
  struct cct_experiment_call call;
  struct cct_backend *backend = NULL;
  enum cct_status status = cct_experiment_parse(asked->text, &call);
  if (!status)
    status = ops->open(world, &options, &backend);
  double found[TRIES];
  for (int i = 0; !status && i < TRIES; i++) {
    double values[CCT_MOST_OUTPUTS];
    int n = 0;
    status = ops->experiment(backend, call.experiment->name, call.parameters, call.experiment->n_parameters, values,
                             CCT_MOST_OUTPUTS, &n);
    if (!status && n != cct_experiment_outputs(call.experiment))
      status = CCT_DAMAGED;
    found[i] = values[asked->output];
  }
  ops->close(backend);
  if (world->rank == 0) {
    asked->status = status;
    snprintf(asked->said, sizeof asked->said, "%s", cct_log_last());
    qsort(found, TRIES, sizeof *found, by_value);
    asked->least = found[0];
    asked->median = found[TRIES / 2];
    asked->most = found[TRIES - 1];
  }
}

static struct asked answer(const char *text, int output, int ranks) {
  struct asked asked = {.text = text, .output = output};
  assert_int_equal(cct_world_threads(ranks, ask, &asked), 0);
  if (asked.status)
    fail_msg("%s: %s", text, asked.said);
  return asked;
}
static double least_of(const char *text, int output, int ranks) {
  return answer(text, output, ranks).least;
}
static double median_of(const char *text, int output) {
  return answer(text, output, 1).median;
}

#define COST(name) offsetof(struct twin_costs, name)
static double *cost_at(size_t offset) {
  return (double *)((char *)&twin_costs + offset);
}

/* What takes time: more than before by what was set, at least, and on a machine with many others not by very much more.
 */
static void what_costs_more_is_found_to(void **state) {
  static const struct {
    const char *experiment;
    int output, ranks;
    size_t cost;
    double set, more; /* the value's unit */
  } rows[] = {
      {"bare_sync/50", 0, 1, COST(sync_us), 400, 400e3},
      {"bare_sync/50", 1, 1, COST(sync_us), 400, 400e3},
      {"bare_sync/50", 1, 1, COST(kernel_us), 500, 500e3},
      {"bare_sync/50", 2, 1, COST(sync_us), 400, 400e3},
      {"bare_launch/50", 1, 1, COST(kernel_us), 500, 500e3},
      {"graph_capture/20", 2, 1, COST(kernel_us), 2000, 20 * 2000e3},
      {"dispatch/64/7K", 0, 2, COST(row_us), 50, 64 * 50},
      {"short_write/10", 0, 2, COST(write_us), 800, 800},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double before = INFINITY, after = INFINITY;
    for (int attempt = 0; attempt < 4 && !(before < 0.5 * rows[i].more && after < 1.5 * rows[i].more); attempt++) {
      before = fmin(before, least_of(rows[i].experiment, rows[i].output, rows[i].ranks));
      *cost_at(rows[i].cost) = rows[i].set;
      after = fmin(after, least_of(rows[i].experiment, rows[i].output, rows[i].ranks));
      *cost_at(rows[i].cost) = 0;
    }
    print_message("%s: %.6g, and %.6g where %.6g are set\n", rows[i].experiment, before, after, rows[i].more);
    assert_true(before < 0.5 * rows[i].more && after >= 0.99 * rows[i].more && after < 1.5 * rows[i].more);
  }
}

/* What a rested GPU loses is found in both ways of resting, and not among products in a row. */
static void rests_are_found(void **state) {
  static const double added_us = 8000;
  double ns[3] = {0};
  (void)state;
  twin_slow_products(1000000, 1);
  twin_costs.rest_us = added_us;
  for (int output = 0; output < 3; output++)
    ns[output] = least_of("rest/20000000/128/128/128", output, 1);
  twin_costs.rest_us = 0;
  double unrested = least_of("rest/20000000/128/128/128", 2, 1);
  twin_slow_products(0, 1);
  print_message("in a row %.0f, behind a delay %.0f, after idleness %.0f ns; without a cost %.0f\n", ns[0], ns[1],
                ns[2], unrested);
  for (int output = 0; output < 3; output++)
    assert_true(output ? ns[output] > 9e6 && ns[output] < 20e6 : ns[output] < 8e6);
  assert_true(unrested < 8e6);
}

/* A step of one SYNC, of a lane that nothing was given to, pays what a synchronisation of a stream in use does. */
static void time_sync(const struct cct_world *world, void *argument) {
  const struct cct_backend_ops *ops = cctax_cuda_ops(NULL);
  const struct cct_backend_options options = {.deadline_ns = 20000000000};
  struct cct_backend *backend = NULL;
  struct cct_executor *x = NULL;
  struct cct_program *program = NULL;
  struct cct_job *job = NULL;
  int64_t ns = -1;
  struct cct_burst burst = {0, &ns};
  assert_int_equal(cct_program_new("sync", &program), CCT_OK);
  int host = cct_program_add_lane(program, "host", CCT_LANE_HOST);
  int lane = cct_program_add_lane(program, "main", CCT_LANE_STREAM);
  struct cct_op sync = {
      .kind = CCT_OP_SYNC, .lane = lane, .host = host, .reads = {-1, -1}, .writes = -1, .name = "sync"};
  cct_program_add(program, &sync, NULL, 0);
  assert_int_equal(cct_job_new(1, &job), CCT_OK);
  assert_int_equal(cct_job_add_role(job, program, 0, 1), CCT_OK);
  assert_int_equal(cct_job_check(job), CCT_OK);
  if (!ops->open(world, &options, &backend) && !ops->load(backend, job, &x) && !ops->step(x, NULL, 20, &burst))
    *(double *)argument = (double)ns / 20;
  ops->unload(x);
  ops->close(backend);
  cct_job_free(job);
}
static void a_sync_of_an_idle_lane_costs_what_one_does(void **state) {
  double ns = 0;
  (void)state;
  twin_costs.sync_us = 2000;
  assert_int_equal(cct_world_threads(1, time_sync, &ns), 0);
  twin_costs.sync_us = 0;
  print_message("%.0f ns\n", ns);
  assert_true(ns > 1.99e6);
}

/* A throttled copy: its rate, or a time of its bytes. */
static void what_copies_slower_is_found_to(void **state) {
  static const struct {
    const char *experiment;
    int output, ranks;
    double gb_s, wanted_gb_s;
  } rows[] = {
      {"p2p_copy/2M/0/1", 0, 2, 0.4, 0.4}, {"p2p_copy/2M/1/1", 0, 2, 0.4, 0.4}, {"p2p_copy/2M/2/1", 0, 2, 0.4, 0.4},
      {"p2p_copy/2M/3/1", 0, 2, 0.4, 0.4}, {"p2p_copy/2M/0/2", 0, 2, 0.4, 0.8}, {"aes_copy/8M", 0, 1, 0.1, 0.1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    twin_costs.copy_gb_s = rows[i].gb_s;
    double found = answer(rows[i].experiment, rows[i].output, rows[i].ranks).most;
    twin_costs.copy_gb_s = 0;
    print_message("%s: %.4g GB/s\n", rows[i].experiment, found);
    assert_true(found > 0.4 * rows[i].wanted_gb_s && found < 1.05 * rows[i].wanted_gb_s);
  }
}

/* What was refused once is refused again, and works once it may: nothing half open is left behind. */
static void write_thrice(const struct cct_world *world, void *argument) {
  static const double refusals[] = {801, 801, 0};
  const struct cct_backend_ops *ops = cctax_cuda_ops(NULL);
  const struct cct_backend_options options = {.deadline_ns = 20000000000};
  struct cct_backend *backend = NULL;
  enum cct_status *found = argument;
  if (ops->open(world, &options, &backend))
    return;
  for (int i = 0; i < 3; i++) {
    double n = 10, value;
    int got;
    (void)world->ops->barrier(world);
    if (world->rank == 0)
      twin_costs.ipc_error = refusals[i];
    (void)world->ops->barrier(world);
    found[3 * world->rank + i] = ops->experiment(backend, "short_write", &n, 1, &value, 1, &got);
  }
  ops->close(backend);
}

static void areas_that_were_refused_are_not_used(void **state) {
  enum cct_status found[6] = {0};
  (void)state;
  cct_log_mute(1);
  assert_int_equal(cct_world_threads(2, write_thrice, found), 0);
  cct_log_mute(0);
  for (int i = 0; i < 6; i++)
    assert_int_equal(found[i], i % 3 < 2 ? CCT_UNSUPPORTED : CCT_OK);
}

static void what_is_refused_is_told(void **state) {
  static const struct {
    const char *experiment;
    int output, ranks;
    size_t cost;
    double set, without, with;
  } rows[] = {
      {"pinned/64K", 0, 1, COST(pinned_error), 2, 0, 2},
      {"mapped/64K", 0, 1, COST(mapped_error), 801, 0, 801},
      {"managed/64K", 0, 1, COST(managed_error), 801, 0, 801},
      {"host_register/4K", 0, 1, COST(register_error), 801, 0, 801},
      {"peer", 0, 2, COST(no_peer), 1, 0, 28}, /* the twin has 8 GPUs */
      {"peer", 1, 2, COST(ipc_error), 217, 0, 217},
      {"gdr", 0, 1, COST(gdr), 1, 0, 1},
      {"stale_memory/20", 0, 1, COST(stale), 1, 0, 20},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double without = least_of(rows[i].experiment, rows[i].output, rows[i].ranks);
    *cost_at(rows[i].cost) = rows[i].set;
    double with = least_of(rows[i].experiment, rows[i].output, rows[i].ranks);
    *cost_at(rows[i].cost) = 0;
    if (without != rows[i].without || with != rows[i].with)
      fail_msg("%s: %g without and %g with, wanted %g and %g", rows[i].experiment, without, with, rows[i].without,
               rows[i].with);
  }
}

/* Clocks, and what runs beside what. */
static void clocks_and_order_are_told(void **state) {
  (void)state;
  double host = least_of("clock/20000000", 0, 1), timer = least_of("clock/20000000", 1, 1);
  assert_true(host >= 20e6 && timer >= 20e6 && timer <= host * 1.5);
  twin_costs.event_factor = 3;
  assert_true(least_of("clock/20000000", 2, 1) >= 60e6);
  twin_costs.event_factor = 0;
  twin_costs.timer_factor = 0.25;
  assert_true(least_of("clock/200000000", 1, 1) < 120e6);
  twin_costs.timer_factor = 0;
  twin_costs.copy_gb_s = 0.1; /* 4 MiB: 42 ms */
  double held = least_of("caller_blocked/4M/0", 0, 1), behind = least_of("caller_blocked/4K/30000000", 1, 1);
  assert_true(held < 20e6 && behind < 20e6);
  twin_costs.holds = 1;
  held = least_of("caller_blocked/4M/0", 0, 1);
  behind = least_of("caller_blocked/4K/30000000", 1, 1);
  assert_true(held > 30e6 && behind > 20e6);
  twin_costs.holds = 0;
  double kernels = median_of("overlap/2M", 0), copy = median_of("overlap/2M", 1);
  twin_costs.one_at_once = 1;
  double kernels_apart = median_of("overlap/2M", 0), copy_apart = median_of("overlap/2M", 1);
  twin_costs.one_at_once = 0;
  twin_costs.copy_gb_s = 0;
  print_message("beside each other %.2f and %.2f, one after the other %.2f and %.2f\n", kernels, copy, kernels_apart,
                copy_apart);
  assert_true(copy < 1.5 && copy_apart > 1.5 && kernels < kernels_apart);
}

/* Each is a process of its own over a twin of its own, throttled by the environment. */
static void processes_copy_each_by_themselves(void **state) {
  (void)state;
  assert_int_equal(setenv("TWIN_COSTS", "copy_gb_s=0.1", 1), 0);
  double one = answer("processes/1/1M", 0, 1).most, two = answer("processes/2/1M", 0, 1).most;
  unsetenv("TWIN_COSTS");
  print_message("one process %.4f GB/s, two %.4f\n", one, two);
  assert_true(one > 0.04 && one < 0.105 && two > one && two < 0.21);
  assert_true(least_of("context", 0, 1) > 0);
}

/* One that says it is ready and is killed before it hears that it may copy. */
static void a_process_that_dies_ends_its_experiment_alone(void **state) {
  struct asked asked = {.text = "processes/2/1M"};
  (void)state;
  assert_int_equal(setenv(CHILD_DIES, "1", 1), 0);
  cct_log_mute(1);
  assert_int_equal(cct_world_threads(1, ask, &asked), 0);
  cct_log_mute(0);
  unsetenv(CHILD_DIES);
  assert_int_equal(asked.status, CCT_UNSUPPORTED);
  assert_string_equal(asked.said, "cuda: process 1 of 2 is gone");
}

/* A trial of nothing among it, which would find nothing and say that all is well. */
static void what_makes_no_sense_is_refused(void **state) {
  static const char *const texts[] = {"managed/64M",     "p2p_copy/8/0/1", "p2p_copy/1M/4/1", "p2p_copy/1M/0/3",
                                      "dispatch/1/24",   "dispatch/8K/7K", "dispatch/0/1K",   "processes/0/1M",
                                      "processes/17/1M", "bare_sync/0",    "bare_launch/0",   "graph_capture/0",
                                      "stale_memory/0",  "pinned/0",       "mapped/0",        "managed/0",
                                      "host_register/0", "overlap/0",      "aes_rate/0",      "caller_blocked/0/0",
                                      "clock/0",         "short_write/0",  "rest/0/8/8/8",    "rest/1000/8/0/8"};
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct asked asked = {.text = texts[i]};
    int is_pair = !strncmp(texts[i], "p2p", 3) || !strncmp(texts[i], "dis", 3) || !strncmp(texts[i], "short", 5);
    cct_log_mute(1);
    assert_int_equal(cct_world_threads(is_pair ? 2 : 1, ask, &asked), 0);
    cct_log_mute(0);
    if (asked.status != CCT_USAGE)
      fail_msg("%s: status %d", texts[i], asked.status);
  }
}

static void die(void) {
  close(0);
  if (write(1, "r", 1) == 1)
    raise(SIGKILL);
}

int main(void) {
  char why[64];
  if (getenv(CHILD_DIES))
    die();
  (void)cctax_cuda_ops(NULL)->available(why, sizeof why); /* the child of an experiment ends here */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_costs_more_is_found_to),
      cmocka_unit_test(rests_are_found),
      cmocka_unit_test(a_sync_of_an_idle_lane_costs_what_one_does),
      cmocka_unit_test(what_copies_slower_is_found_to),
      cmocka_unit_test(areas_that_were_refused_are_not_used),
      cmocka_unit_test(what_is_refused_is_told),
      cmocka_unit_test(clocks_and_order_are_told),
      cmocka_unit_test(processes_copy_each_by_themselves),
      cmocka_unit_test(a_process_that_dies_ends_its_experiment_alone),
      cmocka_unit_test(what_makes_no_sense_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
