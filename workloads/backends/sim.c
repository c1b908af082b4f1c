/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "workloads/backends/sim_executor.h"

/* ---- opening ---- */

static int sim_available(char *why, size_t n) {
  if (n)
    *why = '\0';
  return 1;
}

static enum cct_status read_noise(struct cct_backend *be) {
  char *text, *rest;
  size_t length, capacity = 0;
  const char *path = be->options.noise_file;
  enum cct_status status = cct_read_file(path, 16 << 20, &text, &length);
  if (status)
    return status;
  int line_number = 0;
  for (char *line = strtok_r(text, "\n", &rest); line && !status; line = strtok_r(NULL, "\n", &rest)) {
    double ratio;
    line_number++;
    if (*line == '#')
      continue;
    if (!cct_parse_f64(line, &ratio) || ratio <= 0)
      status = cct_fail(CCT_USAGE, "%s:%d: '%.40s' is no ratio above 0", path, line_number, line);
    else if ((status = cct_grow((void **)&be->noise, &capacity, (size_t)be->n_noise + 1, sizeof ratio)) == CCT_OK)
      be->noise[be->n_noise++] = ratio;
  }
  free(text);
  if (!status && !be->n_noise)
    status = cct_fail(CCT_USAGE, "%s: no ratios in it; one a line, measured step over median step", path);
  return status;
}

static void sim_close(struct cct_backend *be) {
  if (!be)
    return;
  free(be->noise);
  free(be);
}

static enum cct_status sim_open(const struct cct_world *world, const struct cct_backend_options *options,
                                struct cct_backend **backend_out) {
  if (!options->machine)
    return cct_fail(CCT_USAGE, "sim: no machine to play; name one with --profile");
  if (!options->machine->has_clear)
    return cct_fail(CCT_USAGE, "sim: profile '%s' has no clear column to play", options->machine->name);
  struct cct_backend *be = calloc(1, sizeof *be);
  if (!be)
    return cct_fail(CCT_NOMEM, "sim: out of memory");
  be->world = world;
  be->options = *options;
  enum cct_status status = options->noise_file ? read_noise(be) : CCT_OK;
  if (status)
    sim_close(be);
  else
    *backend_out = be;
  return status;
}

static int sim_facts(struct cct_backend *be, struct cct_fact *facts, int max) {
  const struct cct_profile *machine = be->options.machine;
  struct cct_fact all[6];
  int n = 0;
#define FACT(class, key, ...)                                                                                          \
  do {                                                                                                                 \
    snprintf(all[n].name, sizeof all[n].name, "%s", key);                                                              \
    snprintf(all[n].fact_class, sizeof all[n].fact_class, "%s", class);                                                \
    snprintf(all[n++].value, sizeof all[0].value, __VA_ARGS__);                                                        \
  } while (0)
  FACT("identity", "sim_machine", "%s", machine->name);
  FACT("identity", "sim_machine_digest", "%s", machine->digest);
  FACT("identity", "gpu", "%s", machine->platform.gpu);
  FACT("condition", "multicast", "%d", be->options.has_multicast);
  FACT("condition", "emulated_profile", "%s", be->options.emulated ? be->options.emulated->name : "none");
  FACT("condition", "emulated_profile_digest", "%s", be->options.emulated ? be->options.emulated->digest : "none");
#undef FACT
  n = n < max ? n : max;
  memcpy(facts, all, (size_t)n * sizeof *facts);
  return n;
}

/* ---- loading ---- */

static void sim_unload(struct cct_executor *x) {
  if (!x)
    return;
  sim_forget_ranks(x);
  for (int i = 0; x->plans && i < x->job->n_roles; i++)
    sim_plan_free(x->plans[i]);
  free(x->plans);
  free(x->keys);
  free(x->key_bytes);
  free(x->outbox);
  free(x->packets);
  free(x);
}

static int first_rank(int ranks, int process, int processes) {
  return (int)((int64_t)process * ranks / processes);
}

static void warn_beyond_partition(const struct cct_backend *be, const struct cct_job *job) {
  static int is_said;
  const struct cct_profile *machine = be->options.machine;
  if (be->world->rank == 0 && job->ranks > machine->platform.partition && !is_said) {
    is_said = 1;
    cct_warn("profile '%s' was taken on a guest with %d GPU%s; %d ranks are priced by it all the same", machine->name,
             machine->platform.partition, machine->platform.partition == 1 ? "" : "s", job->ranks);
  }
}

static enum cct_status sim_load(struct cct_backend *be, const struct cct_job *job, struct cct_executor **executor_out) {
  enum cct_status status = cct_job_check(job);
  if (status)
    return status;
  struct cct_executor *x = calloc(1, sizeof *x);
  if (!x)
    return cct_fail(CCT_NOMEM, "sim: out of memory");
  int processes = be->world->size;
  x->backend = be;
  x->job = job;
  x->closing_sync_ns = llround(be->options.machine->clear.sync_us.value * 1e3);
  x->first = first_rank(job->ranks, be->world->rank, processes);
  x->count = first_rank(job->ranks, be->world->rank + 1, processes) - x->first;
  x->plans = calloc((size_t)job->n_roles, sizeof *x->plans);
  x->keys = calloc((size_t)job->ranks, sizeof *x->keys);
  x->key_bytes = calloc((size_t)processes, sizeof *x->key_bytes);
  if (!x->plans || !x->keys || !x->key_bytes)
    status = cct_fail(CCT_NOMEM, "sim: out of memory for %d ranks", job->ranks);
  for (int p = 0; p < processes && !status; p++)
    x->key_bytes[p] =
        (size_t)(first_rank(job->ranks, p + 1, processes) - first_rank(job->ranks, p, processes)) * sizeof *x->keys;
  for (int i = 0; i < job->n_roles && !status; i++)
    status = sim_plan_new(job, job->roles[i].program, &x->plans[i]);
  if (status) {
    sim_unload(x);
    return status;
  }
  warn_beyond_partition(be, job);
  *executor_out = x;
  return CCT_OK;
}

static void sim_owned(const struct cct_executor *x, int *first_out, int *count_out) {
  *first_out = x->first;
  *count_out = x->count;
}

/* ---- steps ---- */

double sim_noise_factor(const struct cct_executor *x, int rank) {
  const struct cct_backend *be = x->backend;
  if (!be->n_noise)
    return 1;
  uint64_t seed = cct_random_fold(cct_random_fold(be->options.noise_seed, x->steps), (uint64_t)rank);
  return be->noise[cct_random_below(seed, 0, be->n_noise)];
}

/* Every rank's clock runs through n repetitions. A burst is a function of its bindings and n: the one that ran last is
 * not computed again. */
static enum cct_status run_burst(struct cct_executor *x, const struct cct_binding *bindings, int n) {
  enum cct_status status = sim_bind(x, bindings);
  if (status || x->ran_n == n)
    return status;
  for (int i = 0; i < x->n_locals; i++)
    sim_state_start_burst(&x->locals[i].state);
  for (int repetition = 0; repetition < n && !status; repetition++)
    status = sim_run_repetition(x);
  x->ran_n = status ? 0 : n;
  return status;
}

static enum cct_status sim_step(struct cct_executor *x, const struct cct_binding *bindings, int n,
                                struct cct_burst *burst) {
  int64_t start_ns = x->backend->world->ops->now_ns(x->backend->world);
  enum cct_status status = run_burst(x, bindings, n);
  if (status)
    return status;
  for (int i = 0; i < x->count; i++) {
    const struct sim_local *local = &x->locals[x->local_of[x->ranks->class_of[x->first + i]]];
    int64_t ns = sim_state_last_ns(&local->state) + x->closing_sync_ns;
    burst->rank_ns[i] = x->backend->n_noise ? llround((double)ns * sim_noise_factor(x, x->first + i)) : ns;
  }
  burst->start_ns = start_ns;
  x->steps++;
  return CCT_OK;
}

const struct sim_local *sim_local_of_owned(const struct cct_executor *x, int owned) {
  return &x->locals[x->local_of[x->ranks->class_of[x->first + owned]]];
}

static enum cct_status sim_trace(struct cct_executor *x, int owned, struct cct_span *spans) {
  if (!x->ranks || owned < 0 || owned >= x->count)
    return cct_fail(CCT_USAGE, "sim: no step was taken, or rank %d is not owned here", x->first + owned);
  const struct sim_state *s = &sim_local_of_owned(x, owned)->state;
  for (int id = 0; id < s->plan->program->n_ops; id++)
    spans[id] = s->is_out[id] ? (struct cct_span){-1, -1} : (struct cct_span){s->start[id], s->end[id]};
  return CCT_OK;
}

const struct cct_duration *cct_sim_durations(const struct cct_executor *x, int owned, int64_t *closing_sync_ns_out) {
  *closing_sync_ns_out = x->closing_sync_ns;
  return sim_local_of_owned(x, owned)->state.durations;
}

int cct_sim_classes(const struct cct_executor *x) {
  return x->ranks ? x->ranks->n_classes : 0;
}

/* Clocks have no values: there is nothing that could be wrong. */
static enum cct_status sim_verify(struct cct_executor *x, const struct cct_binding *bindings,
                                  struct cct_wrong *wrong_out) {
  (void)bindings;
  (void)x;
  *wrong_out = (struct cct_wrong){0};
  return CCT_OK;
}

static enum cct_status sim_counts(struct cct_executor *x, struct cct_counts *counts_out) {
  const struct cct_program *p = sim_program_of(x, x->count ? x->first : 0);
  int64_t *slots = sim_default_slots(p);
  if (!slots)
    return CCT_NOMEM;
  struct cct_binding binding = {.slots = slots};
  cct_count_program(x->job, p, &binding, counts_out);
  free(slots);
  return CCT_OK;
}

static enum cct_status sim_experiment(struct cct_backend *be, const char *name, const double *parameters,
                                      int n_parameters, double *series, int max, int *n_out) {
  (void)be;
  (void)parameters;
  (void)n_parameters;
  (void)series;
  (void)max;
  *n_out = 0;
  return cct_fail(CCT_UNSUPPORTED, "sim: experiment '%s' needs a machine; sim plays programs alone", name);
}

const struct cct_backend_ops cct_backend_sim = {
    .name = "sim",
    .available = sim_available,
    .open = sim_open,
    .close = sim_close,
    .facts = sim_facts,
    .load = sim_load,
    .unload = sim_unload,
    .owned = sim_owned,
    .step = sim_step,
    .sequence = sim_sequence,
    .verify = sim_verify,
    .counts = sim_counts,
    .experiment = sim_experiment,
    .trace = sim_trace,
};
