/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "crypt/digest.h"
#include "machine/host_facts.h"
#include "mpi_runner/block.h"
#include "mpi_runner/condition.h"
#include "mpi_runner/world_mpi.h"
#include "workloads/program/profile.h"

#define MOST_BACKEND_FACTS 64

extern char **environ;

void cct_fact_add(struct cct_fact_list *list, enum cct_fact_class fact_class, const char *name, const char *format,
                  ...) {
  if (list->n == (int)(sizeof list->items / sizeof *list->items))
    return;
  struct cct_record_fact *fact = &list->items[list->n++];
  *fact = (struct cct_record_fact){.fact_class = fact_class};
  snprintf(fact->name, sizeof fact->name, "%s", name);
  va_list args;
  va_start(args, format);
  vsnprintf(fact->value, sizeof fact->value, format, args);
  va_end(args);
}

/* ---- agreement ---- */

struct word { /* one thing that must be the same everywhere */
  char name[48], value[128];
};

/* `n` words a process; the first that differs from process 0's is named, by process 0 alone. */
static enum cct_status compare(const struct cct_world *world, const struct word *mine, int n) {
  struct word *all = calloc((size_t)world->size * (size_t)n + 1, sizeof *all);
  if (!all)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = world->ops->allgather(world, mine, (size_t)n * sizeof *mine, all);
  for (int r = 1; !status && r < world->size; r++)
    for (int i = 0; !status && i < n; i++) {
      const struct word *theirs = &all[r * n + i], *ours = &all[i];
      if (!strcmp(theirs->name, ours->name) && !strcmp(theirs->value, ours->value))
        continue;
      status = CCT_USAGE;
      if (world->rank == 0)
        (void)cct_fail(CCT_USAGE, "rank %d disagrees with rank 0 on %s: '%s', not '%s'", r,
                       *theirs->name ? theirs->name : ours->name, theirs->value, ours->value);
    }
  free(all);
  return status;
}

static void say(struct word *word, const char *name, const char *value) {
  snprintf(word->name, sizeof word->name, "%s", name);
  snprintf(word->value, sizeof word->value, "%s", value);
}

/* What this process reads under the profile's name; the agenda holds what it was when the run began. */
static void say_profile(struct word *word, const char *name, const char *profile_name) {
  struct cct_profile *profile = NULL;
  say(word, name, "");
  if (!*profile_name)
    return;
  cct_log_mute(1);
  enum cct_status status = cct_profile_load(profile_name, &profile);
  cct_log_mute(0);
  say(word, name, status ? cct_log_last() : profile->digest);
  if (!status)
    cct_profile_free(profile);
}

enum cct_status cct_block_agree(const struct cct_world *world, const struct cct_agenda *agenda) {
  struct word words[4 + CCT_MOST_ARMS] = {0};
  char version[96], name[64];
  int n = 0;
  say(&words[n++], "cctax version", CCT_VERSION);
  say(&words[n++], "agenda digest", agenda->digest);
  say(&words[n++], "MPI library", cct_world_mpi_version(version, sizeof version));
  say_profile(&words[n++], "profile digest", agenda->profile);
  for (int i = 0; i < agenda->n_arms; i++) {
    snprintf(name, sizeof name, "profile digest of arm %d", i);
    say_profile(&words[n++], name, cct_agenda_arm_profile(agenda, i));
  }
  enum cct_status status = compare(world, words, n);
  for (int i = 0; !status && i <= agenda->n_arms; i++) {
    const char *expected = i ? agenda->emulated[i - 1] : agenda->profile_digest;
    if (strcmp(words[3 + i].value, expected))
      status = world->rank ? CCT_USAGE
                           : cct_fail(CCT_USAGE, "%s is '%s', and was '%s' when the run began", words[3 + i].name,
                                      words[3 + i].value, expected);
  }
  return status;
}

/* ---- the backend's facts ---- */

static int is_by_rank(const char *name) {
  return strstr(name, "uuid") != NULL;
}

static void add_backend_fact(struct cct_fact_list *list, const struct cct_fact *fact) {
  int fact_class = cct_fact_class_by_name(fact->fact_class);
  if (fact_class >= 0 && fact_class != CCT_FACT_DRIFT && !is_by_rank(fact->name))
    cct_fact_add(list, (enum cct_fact_class)fact_class, fact->name, "%s", fact->value);
}

/* Facts that each process has its own of, such as its GPU's uuid, as one digest in rank order. */
static enum cct_status add_joined(const struct cct_world *world, const struct cct_fact *facts, int n,
                                  struct cct_fact_list *list) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < n; i++) {
    char hex[65], (*all)[128];
    if (!is_by_rank(facts[i].name))
      continue;
    if (!(all = calloc((size_t)world->size, sizeof *all)))
      return cct_fail(CCT_NOMEM, "out of memory");
    status = world->ops->allgather(world, facts[i].value, sizeof facts[i].value, all);
    if (!status)
      status = cct_digest_text(all, (size_t)world->size * sizeof *all, hex);
    if (!status)
      cct_fact_add(list, CCT_FACT_IDENTITY, facts[i].name, "%d: %.32s", world->size, hex);
    free(all);
  }
  return status;
}

static enum cct_status backend_facts(const struct cct_world *world, const struct cct_backend_ops *ops,
                                     struct cct_backend *backend, struct cct_fact_list *list) {
  struct cct_fact facts[MOST_BACKEND_FACTS] = {0};
  struct word words[MOST_BACKEND_FACTS] = {0};
  int n = ops->facts(backend, facts, MOST_BACKEND_FACTS);
  for (int i = 0; i < n; i++) {
    if (!strcmp(facts[i].fact_class, "identity"))
      say(&words[i], facts[i].name, is_by_rank(facts[i].name) ? "" : facts[i].value);
    add_backend_fact(list, &facts[i]);
  }
  enum cct_status status = compare(world, words, MOST_BACKEND_FACTS);
  return status ? status : add_joined(world, facts, n, list);
}

/* ---- drift ---- */

/* "38", "38 to 47"; 0: no number. */
static int read_range(const char *text, double range_out[2]) {
  char *rest;
  range_out[0] = range_out[1] = strtod(text, &rest);
  if (rest == text)
    return 0;
  if (!strncmp(rest, " to ", 4))
    range_out[1] = strtod(rest + 4, NULL);
  return 1;
}

/* Of numbers the range that was seen, of anything else what was seen first. */
static void note(struct cct_block_drift *drift, const char *name, const char *value) {
  int i = 0;
  while (i < drift->n && strcmp(drift->items[i].name, name))
    i++;
  if (i == CCT_MOST_DRIFT)
    return;
  struct cct_record_fact *fact = &drift->items[i];
  double had[2], seen[2];
  if (i == drift->n) {
    *fact = (struct cct_record_fact){.fact_class = CCT_FACT_DRIFT};
    snprintf(fact->name, sizeof fact->name, "%s", name);
    snprintf(fact->value, sizeof fact->value, "%s", value);
    drift->n++;
  } else if (read_range(fact->value, had) && read_range(value, seen) && (seen[0] < had[0] || seen[1] > had[1])) {
    snprintf(fact->value, sizeof fact->value, "%.10g to %.10g", seen[0] < had[0] ? seen[0] : had[0],
             seen[1] > had[1] ? seen[1] : had[1]);
  }
}

void cct_block_drift_read(const struct cct_backend_ops *ops, struct cct_backend *backend,
                          struct cct_block_drift *drift) {
  struct cct_fact facts[MOST_BACKEND_FACTS] = {0};
  int n = ops->facts(backend, facts, MOST_BACKEND_FACTS);
  for (int i = 0; i < n; i++)
    if (!strcmp(facts[i].fact_class, "drift"))
      note(drift, facts[i].name, facts[i].value);
}

enum cct_status cct_block_drift_gather(const struct cct_world *world, struct cct_block_drift *drift) {
  struct cct_block_drift *all = world->rank ? NULL : calloc((size_t)world->size, sizeof *all);
  enum cct_status status = world->rank || all ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  status = cct_world_agree(world, status, "the end", 0);
  if (!status)
    status = world->ops->gather(world, drift, sizeof *drift, all, 0);
  for (int p = 1; !status && all && p < world->size; p++)
    for (int i = 0; i < all[p].n; i++)
      note(drift, all[p].items[i].name, all[p].items[i].value);
  free(all);
  return status;
}

/* ---- the machine's facts ---- */

enum cct_status cct_block_bind(const struct cct_world *world, struct cct_block_binding *binding_out) {
  struct cct_binding_facts own;
  int rank, size;
  enum cct_status status = cct_world_mpi_local(world, &rank, &size);
  if (status)
    return status;
  cct_rank_bind(rank, size, &own);
  int64_t least[3] = {own.cores, own.near_gpu, -own.cores};
  status = world->ops->allreduce_i64(world, least, 3, CCT_REDUCE_MIN);
  if (!status)
    *binding_out = (struct cct_block_binding){(int)least[0], (int)-least[2], (int)least[1]};
  return status;
}

static void binding_facts(const struct cct_block_binding *binding, struct cct_fact_list *list) {
  static const char *const near[] = {"no gpu", "no", "yes"};
  if (!binding->most_cores)
    cct_fact_add(list, CCT_FACT_IDENTITY, "cores_a_rank", "shared");
  else if (binding->least_cores == binding->most_cores)
    cct_fact_add(list, CCT_FACT_IDENTITY, "cores_a_rank", "%d", binding->most_cores);
  else
    cct_fact_add(list, CCT_FACT_IDENTITY, "cores_a_rank", "%d to %d", binding->least_cores, binding->most_cores);
  cct_fact_add(list, CCT_FACT_IDENTITY, "near_its_gpu", "%s", near[binding->near_gpu + 1]);
}

static void machine_facts(const struct cct_block_binding *binding, struct cct_fact_list *list) {
  struct cct_host_facts host;
  struct cct_machine_state state;
  cct_host_facts_read(&host);
  cct_machine_state_read(&state);
  cct_fact_add(list, CCT_FACT_IDENTITY, "cpu", "%s", host.cpu);
  cct_fact_add(list, CCT_FACT_IDENTITY, "cores", "%d", host.cores);
  cct_fact_add(list, CCT_FACT_CONDITION, "guest_kernel", "%s", host.kernel);
  cct_fact_add(list, CCT_FACT_CONDITION, "tee", "%s", host.tee);
  cct_fact_add(list, CCT_FACT_CONDITION, "gpu_cc", "%s", state.cc == 1 ? "on" : state.cc == 0 ? "off" : "not known");
  if (*host.fixture)
    cct_fact_add(list, CCT_FACT_IDENTITY, "replayed_machine", "%s", host.fixture);
  binding_facts(binding, list);
}

static enum cct_status program_fact(const struct cct_agenda *agenda, struct cct_fact_list *list) {
  char hex[65];
  enum cct_status status = cct_digest_text(agenda->programs, (size_t)agenda->n_cells * sizeof *agenda->programs, hex);
  if (!status)
    cct_fact_add(list, CCT_FACT_IDENTITY, "programs", "%s", hex);
  return status;
}

static void replicate_facts(const struct cct_block_at *at, const char *boot_id, struct cct_fact_list *list) {
  time_t now = time(NULL);
  struct tm utc;
  char text[32] = "";
  if (gmtime_r(&now, &utc))
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  cct_fact_add(list, CCT_FACT_REPLICATE, "boot", "%d", at->boot);
  cct_fact_add(list, CCT_FACT_REPLICATE, "boot_id", "%s", boot_id);
  cct_fact_add(list, CCT_FACT_REPLICATE, "round", "%d", at->round);
  cct_fact_add(list, CCT_FACT_REPLICATE, "block", "%d", at->block);
  cct_fact_add(list, CCT_FACT_REPLICATE, "start", "%s", text);
}

enum cct_status cct_block_facts(const struct cct_world *world, const struct cct_agenda *agenda,
                                const struct cct_block_at *at, const struct cct_backend_ops *ops,
                                struct cct_backend *backend, const struct cct_block_binding *binding,
                                struct cct_fact_list *facts_out) {
  char version[96];
  facts_out->n = 0;
  cct_fact_add(facts_out, CCT_FACT_IDENTITY, "tool", "%s", CCT_VERSION);
  cct_fact_add(facts_out, CCT_FACT_IDENTITY, "backend", "%s", agenda->backend);
  cct_fact_add(facts_out, CCT_FACT_CONDITION, "condition", "%s", cct_agenda_condition(agenda, at->arm));
  if (!strcmp(cct_agenda_condition(agenda, at->arm), "stripped") && *agenda->stripped)
    cct_fact_add(facts_out, CCT_FACT_CONDITION, "stripped_by", "%s %.16s", agenda->stripped, agenda->emulated[at->arm]);
  if (strcmp(agenda->factor, "condition"))
    cct_fact_add(facts_out, CCT_FACT_CONDITION, agenda->factor, "%s", agenda->arms[at->arm]);
  if (*agenda->noise)
    cct_fact_add(facts_out, CCT_FACT_IDENTITY, "noise", "%s", agenda->noise);
  enum cct_status status = program_fact(agenda, facts_out);
  if (status)
    return status;
  if (strcmp(agenda->backend, "sim")) { /* whose figures do not depend on the machine it runs on */
    cct_fact_add(facts_out, CCT_FACT_IDENTITY, "mpi", "%s", cct_world_mpi_version(version, sizeof version));
    machine_facts(binding, facts_out);
    cct_block_environment_facts(facts_out);
  }
  if (!status)
    status = backend_facts(world, ops, backend, facts_out);
  replicate_facts(at, agenda->boots[at->boot].id, facts_out);
  return status;
}
