/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_runner/agenda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_runner/agenda_arms.h"
#include "mpi_runner/condition.h"
#include "mpi_runner/suite.h"
#include "mpi_runner/unread.h"
#include "workloads/backends/measure.h"
#include "workloads/program/profile.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/workload.h"

#define DEFAULT_PROFILE    "b200x8-tdx"
#define MOST_SIM_PROCESSES 8

void cct_agenda_free(struct cct_agenda *agenda) {
  if (!agenda)
    return;
  for (int i = 0; agenda->cells && i < agenda->n_cells; i++)
    cct_options_free(&agenda->cells[i]);
  free(agenda->cells);
  free(agenda->programs);
  free(agenda->ranks);
  free(agenda->notes);
  free(agenda);
}

/* ---- profiles and programs ---- */

static enum cct_status profile_digest(const char *name, char digest_out[65]) {
  struct cct_profile *profile;
  enum cct_status status = cct_profile_load(name, &profile);
  if (status)
    return status;
  snprintf(digest_out, 65, "%s", profile->digest);
  cct_profile_free(profile);
  return CCT_OK;
}

/* What a stripped arm on GPUs lacks: by --profile, else by the profile of these GPUs. */
static enum cct_status plan_stripped(const char *given, int arm, struct cct_agenda *agenda) {
  struct cct_machine_state state;
  enum cct_status status = CCT_OK;
  if (given && strlen(given) >= sizeof agenda->stripped)
    return cct_fail(CCT_USAGE, "--profile: the path is too long");
  if (given) {
    snprintf(agenda->stripped, sizeof agenda->stripped, "%s", given);
  } else {
    cct_machine_state_read(&state);
    status = cct_condition_stripped(state.gpu, agenda->stripped, sizeof agenda->stripped);
  }
  return status ? status : profile_digest(agenda->stripped, agenda->emulated[arm]);
}

static enum cct_status plan_profiles(const struct cct_options *flags, struct cct_agenda *agenda) {
  const char *machine = flags->v[CCT_OPT_PROFILE_FILE].s;
  int is_sim = !strcmp(agenda->backend, "sim");
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < agenda->n_arms; i++) {
    const char *condition = cct_agenda_condition(agenda, i);
    if (strncmp(condition, CCT_EMULATED, strlen(CCT_EMULATED))) {
      if (is_sim && (!strcmp(condition, "on") || !strcmp(condition, "tee")))
        status = cct_fail(CCT_USAGE, "condition '%s': sim plays a clear machine; ask for emulated:PROFILE", condition);
      if (!strcmp(agenda->backend, "host") && !strcmp(condition, "stripped"))
        status = cct_fail(CCT_USAGE, "condition 'stripped': the host backend has no GPU capability to lose; compare "
                                     "tee or emulated:PROFILE");
      if (!status && !strcmp(agenda->backend, "cuda") && !strcmp(condition, "stripped"))
        status = plan_stripped(flags->v[CCT_OPT_PROFILE_FILE].s, i, agenda);
      continue;
    }
    status = profile_digest(condition + strlen(CCT_EMULATED), agenda->emulated[i]);
    if (!machine)
      machine = condition + strlen(CCT_EMULATED);
  }
  if (status || !is_sim)
    return status;
  if (!machine)
    machine = DEFAULT_PROFILE;
  if (strlen(machine) >= sizeof agenda->profile)
    return cct_fail(CCT_USAGE, "--profile: the path is too long");
  snprintf(agenda->profile, sizeof agenda->profile, "%s", machine);
  return profile_digest(machine, agenda->profile_digest);
}

static enum cct_status plan_programs(struct cct_agenda *agenda) {
  enum cct_status status = CCT_OK;
  agenda->programs = calloc((size_t)agenda->n_cells, sizeof *agenda->programs);
  agenda->ranks = calloc((size_t)agenda->n_cells, sizeof *agenda->ranks);
  if (!agenda->programs || !agenda->ranks)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; !status && i < agenda->n_cells; i++) {
    struct cct_step step;
    status = cct_step_build(&agenda->cells[i], &step);
    if (status)
      return status == CCT_UNSUPPORTED ? CCT_USAGE : status;
    if (cct_cell_workload(&agenda->cells[i]) == CCT_WORKLOAD_NONE &&
        agenda->cells[i].v[CCT_OPT_CALLS].i > CCT_MOST_REPETITIONS)
      status = cct_fail(CCT_USAGE, "--calls %lld: a burst repeats a program up to %d times",
                        (long long)agenda->cells[i].v[CCT_OPT_CALLS].i, CCT_MOST_REPETITIONS);
    agenda->ranks[i] = step.job->ranks;
    if (!status)
      status = cct_job_digest(step.job, agenda->programs[i]);
    cct_step_free(&step);
  }
  return status;
}

enum cct_status cct_agenda_cell(const struct cct_agenda *agenda, int index, int arm, struct cct_options *cell_out) {
  struct cct_options cell;
  enum cct_option_id id = cct_agenda_cell_factor(agenda);
  enum cct_status status = cct_options_copy(&agenda->cells[index], &cell);
  if (status)
    return status;
  if (id != CCT_OPTION_COUNT)
    status = cct_option_set(&cell, id, agenda->arms[arm], agenda->factor);
  if (status) {
    cct_options_free(&cell);
    return status;
  }
  *cell_out = cell;
  return CCT_OK;
}

int cct_agenda_most_ranks(const struct cct_agenda *agenda) {
  int most = 1;
  for (int i = 0; i < agenda->n_cells; i++)
    most = agenda->ranks[i] > most ? agenda->ranks[i] : most;
  return most;
}

int cct_agenda_processes(const struct cct_agenda *agenda) {
  int ranks = cct_agenda_most_ranks(agenda);
  if (strcmp(agenda->backend, "sim"))
    return ranks;
  int most = agenda->procs ? (int)agenda->procs : MOST_SIM_PROCESSES;
  /* A serving step is bound anew each time, and processes would meet in each of its collectives; one process simulates
   * ranks that are bound alike once (tp=8, 62 layers: 0.7 s for a run that takes eight processes 29 s). */
  for (int i = 0; i < agenda->n_cells && !agenda->procs; i++)
    most = cct_cell_workload(&agenda->cells[i]) == CCT_WORKLOAD_SERVE ? 1 : most;
  return ranks < most ? ranks : most;
}

/* ---- planning ---- */

static int is_stated(const struct cct_suite *suite, const struct cct_options *flags, enum cct_option_id id) {
  char key[32];
  return flags->v[id].is_set || cct_json_member(suite->document, cct_option_key(id, key));
}

/* A serving cell's sample is a whole run of requests, so one is enough, and one warm-up captures its graphs. */
static enum cct_status plan_serving(const struct cct_suite *suite, const struct cct_options *flags,
                                    struct cct_agenda *agenda) {
  int n = 0;
  for (int i = 0; i < agenda->n_cells; i++)
    n += cct_cell_workload(&agenda->cells[i]) == CCT_WORKLOAD_SERVE;
  int is_said = is_stated(suite, flags, CCT_OPT_SAMPLES);
  if (n && n < agenda->n_cells && !is_said)
    return cct_fail(CCT_USAGE, "--samples: a sample of serve is a whole run of requests, of other workloads a step; "
                               "with both say how many");
  if (n && !is_said)
    agenda->samples = 1;
  if (n && !is_stated(suite, flags, CCT_OPT_WARMUP))
    agenda->warmup = 1;
  return CCT_OK;
}

static enum cct_status plan(const struct cct_options *flags, const struct cct_suite *suite, const char *condition,
                            struct cct_agenda *agenda) {
  const char *question = cct_json_string(cct_json_member(suite->document, "question"));
  snprintf(agenda->question, sizeof agenda->question, "%s", question ? question : "");
  agenda->deadline_s = flags->v[CCT_OPT_DEADLINE].i;
  agenda->procs = flags->v[CCT_OPT_PROCS].i;
  agenda->is_shared_gpu = (int)flags->v[CCT_OPT_SHARED_GPU].i;
  enum cct_status status = cct_option_copy(flags, CCT_OPT_BACKEND, agenda->backend, sizeof agenda->backend);
  if (!status)
    status = cct_option_copy(flags, CCT_OPT_NOISE, agenda->noise, sizeof agenda->noise);
  if (!status)
    status = cct_option_copy(flags, CCT_OPT_LAUNCHER, agenda->launcher, sizeof agenda->launcher);
  if (!status)
    status = cct_suite_number(suite, flags, CCT_OPT_ROUNDS, &agenda->rounds);
  if (!status)
    status = cct_suite_number(suite, flags, CCT_OPT_SAMPLES, &agenda->samples);
  if (!status)
    status = cct_suite_number(suite, flags, CCT_OPT_WARMUP, &agenda->warmup);
  if (!status)
    status = cct_suite_number(suite, flags, CCT_OPT_SEED, &agenda->seed);
  if (!status)
    status = cct_suite_cells(suite, flags, &agenda->cells, &agenda->n_cells);
  if (!status)
    status = plan_serving(suite, flags, agenda);
  if (!status)
    status = cct_agenda_plan_arms(suite, flags, condition, agenda);
  if (!status)
    status = cct_unread_refuse(flags, suite->root.source, agenda);
  if (!status)
    status = plan_profiles(flags, agenda);
  if (!status)
    status = plan_programs(agenda);
  return status ? status : cct_agenda_seal(agenda);
}

enum cct_status cct_agenda_plan(const struct cct_options *flags, const char *suite_path, const char *condition,
                                struct cct_agenda **agenda_out) {
  struct cct_suite suite;
  struct cct_text notes = {0};
  enum cct_status status = cct_suite_load(suite_path, &notes, &suite);
  if (status)
    return status;
  struct cct_agenda *agenda = calloc(1, sizeof *agenda);
  status = agenda ? plan(flags, &suite, condition, agenda) : cct_fail(CCT_NOMEM, "out of memory");
  cct_suite_free(&suite);
  if (status) {
    cct_text_free(&notes);
    cct_agenda_free(agenda);
    return status;
  }
  agenda->notes = notes.s;
  *agenda_out = agenda;
  return CCT_OK;
}

/* ---- blocks ---- */

enum cct_status cct_agenda_add_boot(struct cct_agenda *agenda, const char *id, const int *arms, int n_arms) {
  for (int b = 0; b < agenda->n_boots; b++)
    if (!strcmp(agenda->boots[b].id, id))
      return cct_fail(CCT_USAGE, "this boot (%s) is already boot %d of the run; --resume finishes it", id, b);
  if (agenda->n_boots == CCT_MAX_BOOTS)
    return cct_fail(CCT_USAGE, "the run has %d boots already; begin another run", CCT_MAX_BOOTS);
  struct cct_boot *boot = &agenda->boots[agenda->n_boots++];
  snprintf(boot->id, sizeof boot->id, "%s", id);
  memcpy(boot->arms, arms, (size_t)n_arms * sizeof *arms);
  boot->n_arms = n_arms;
  return CCT_OK;
}

int cct_agenda_blocks(const struct cct_agenda *agenda) {
  int n = 0;
  for (int b = 0; b < agenda->n_boots; b++)
    n += (int)agenda->rounds * agenda->boots[b].n_arms;
  return n;
}

struct cct_block_at cct_agenda_block(const struct cct_agenda *agenda, int block) {
  struct cct_block_at at = {.block = block};
  int rest = block;
  while (rest >= (int)agenda->rounds * agenda->boots[at.boot].n_arms)
    rest -= (int)agenda->rounds * agenda->boots[at.boot++].n_arms;
  const struct cct_boot *boot = &agenda->boots[at.boot];
  at.round = rest / boot->n_arms;
  at.arm = boot->arms[(rest % boot->n_arms + at.round) % boot->n_arms];
  return at;
}

char *cct_agenda_path(const char *run, int block, char *out, size_t size) {
  snprintf(out, size, "%s/block-%04d.h5", run, block);
  return out;
}
