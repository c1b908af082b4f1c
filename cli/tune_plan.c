/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/coll.h"
#include "cli/own_suite.h"
#include "cli/tune.h"
#include "mpi_runner/condition.h"
#include "mpi_runner/suite.h"
#include "workloads/program/price.h"

#define LEAST_BYTES 1024
#define MOST_BYTES  ((int64_t)1 << 30)
#define FACTOR      2
#define SAMPLES     5
#define WARMUP      1

const char *cct_tune_kind_name(int kind) {
  return kind < 0 ? "send_recv" : cct_collective_name((enum cct_collective)kind);
}

int cct_tune_tuned(int kind) {
  switch (kind) {
  case CCT_COLL_BROADCAST:
    return CCT_TUNER_BROADCAST;
  case CCT_COLL_REDUCE:
    return CCT_TUNER_REDUCE;
  case CCT_COLL_ALL_GATHER:
    return CCT_TUNER_ALLGATHER;
  case CCT_COLL_REDUCE_SCATTER:
    return CCT_TUNER_REDUCESCATTER;
  case CCT_COLL_ALL_REDUCE:
    return CCT_TUNER_ALLREDUCE;
  default:
    return -1;
  }
}

int64_t cct_tune_bytes(const struct cct_tune_plan *plan, int kind, int64_t size) {
  return cct_coll_bytes(plan->kinds[kind], size, (enum cct_type)cct_type_by_name(plan->type), plan->ranks);
}

char *cct_tune_choice_text(const struct cct_tune_plan *plan, int choice, char *out) {
  const struct cct_tune_choice *c = &plan->choices[choice];
  int n = snprintf(out, 48, "%s/%s/", *c->algorithm ? c->algorithm : "default", *c->protocol ? c->protocol : "default");
  if (plan->channels[c->channels])
    snprintf(out + n, (size_t)(48 - n), "%d", plan->channels[c->channels]);
  else
    snprintf(out + n, (size_t)(48 - n), "default");
  return out;
}

/* ---- which choices there are ---- */

/* What NCCL itself would refuse: all-reduce alone has trees, only Ring and Tree have LL and LL128, PAT is of all-gather
 * and reduce-scatter. */
static int is_nccls(int kind, const struct cct_tune_choice *choice) {
  const char *a = choice->algorithm;
  int is_simple = !*choice->protocol || !strcasecmp(choice->protocol, "simple");
  if (!*a)
    return !*choice->protocol;
  if (cct_tune_tuned(kind) < 0)
    return 0;
  if (!strcasecmp(a, "ring"))
    return 1;
  if (!strcasecmp(a, "tree"))
    return kind == CCT_COLL_ALL_REDUCE;
  if (!strcasecmp(a, "pat"))
    return is_simple && (kind == CCT_COLL_ALL_GATHER || kind == CCT_COLL_REDUCE_SCATTER);
  return is_simple && (kind == CCT_COLL_ALL_REDUCE || kind == CCT_COLL_ALL_GATHER || kind == CCT_COLL_REDUCE_SCATTER);
}

/* sim: whether the profile has a row of it. */
static int is_priced(const struct cct_tune_plan *plan, const struct cct_profile *profile, int kind, int choice) {
  struct cct_job job = {.ranks = plan->ranks, .n_groups = 1, .groups = {{.size = plan->ranks, .stride = 1}}};
  struct cct_pricing pricing = {.profile = profile, .column = &profile->clear, .has_multicast = 1};
  struct cct_op op = {.kind = CCT_OP_COLLECTIVE};
  struct cct_binding binding = {0};
  struct cct_link_cost cost;
  if (kind < 0)
    return 1;
  op.collective.kind = (enum cct_collective)kind;
  op.collective.bytes = cct_constant(1 << 20);
  op.collective.matrix = -1;
  cct_tune_choice_text(plan, choice, job.groups[0].choice);
  return !cct_price_link(&pricing, &job, &op, &binding, 0, 1, &cost);
}

enum cct_status cct_tune_find_usable(struct cct_tune_plan *plan) {
  struct cct_profile *profile = NULL;
  int is_sim = !strcmp(plan->backend, "sim"), is_host = !strcmp(plan->backend, "host");
  enum cct_status status = is_sim ? cct_profile_load(plan->profile, &profile) : CCT_OK;
  if (profile)
    snprintf(plan->gpu, sizeof plan->gpu, "%s", profile->platform.gpu);
  for (int k = 0; !status && k < plan->n_kinds; k++)
    for (int c = 0; c < plan->n_choices; c++)
      plan->is_usable[k][c] = (char)(is_nccls(plan->kinds[k], &plan->choices[c]) && (!is_host || c == 0) &&
                                     (!is_sim || is_priced(plan, profile, plan->kinds[k], c)));
  for (int k = 0; !status && is_sim && k < plan->n_kinds; k++)
    if (!plan->is_usable[k][0])
      status = cct_fail(CCT_USAGE, "profile '%s': no row prices %s over %d ranks", plan->profile,
                        cct_tune_kind_name(plan->kinds[k]), plan->ranks);
  if (profile)
    cct_profile_free(profile);
  return status;
}

/* ---- from flags ---- */

struct names {
  char at[CCT_TUNE_MOST_NAMES][16];
  int n;
};

static enum cct_status add_name(void *context, const char *part) {
  struct names *names = context;
  if (!*part || strlen(part) >= sizeof names->at[0] || strchr(part, '/') || strchr(part, '^') || strchr(part, ':'))
    return cct_fail(CCT_USAGE, "'%s': no name of an algorithm or protocol", part);
  if (names->n == CCT_TUNE_MOST_NAMES)
    return cct_fail(CCT_USAGE, "'%s': more than %d of them", part, CCT_TUNE_MOST_NAMES);
  for (int i = 0; i < names->n; i++)
    if (!strcasecmp(names->at[i], part))
      return cct_fail(CCT_USAGE, "'%s': given twice", part);
  snprintf(names->at[names->n++], sizeof names->at[0], "%s", part);
  return CCT_OK;
}

static enum cct_status check_known(const struct names *names, const char *flag, const char *const *known, size_t n) {
  for (int i = 0; i < names->n; i++) {
    size_t k = 0;
    while (k < n && strcasecmp(names->at[i], known[k]))
      k++;
    const char *near = k < n ? NULL : cct_closest(names->at[i], known, n);
    if (k == n)
      return cct_fail(CCT_USAGE, "--%s: '%s' is none that a rule can name%s%s%s", flag, names->at[i],
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
  }
  return CCT_OK;
}

enum cct_status cct_tune_add_kind(void *plan_context, const char *part) {
  struct cct_tune_plan *plan = plan_context;
  struct cct_options checked = {0};
  enum cct_status status = cct_option_set(&checked, CCT_OPT_COLLECTIVE, part, "--collective");
  cct_options_free(&checked);
  if (status)
    return status;
  if (!strcmp(part, "all_to_allv"))
    return cct_fail(CCT_USAGE, "--collective: tune measures all_to_all for all_to_allv");
  if (plan->n_kinds == CCT_TUNE_MOST_KINDS)
    return cct_fail(CCT_USAGE, "--collective: more than %d", CCT_TUNE_MOST_KINDS);
  int kind = cct_collective_by_name(part);
  for (int i = 0; i < plan->n_kinds; i++)
    if (plan->kinds[i] == kind)
      return cct_fail(CCT_USAGE, "--collective: %s is given twice", part);
  plan->kinds[plan->n_kinds++] = kind;
  return CCT_OK;
}

static enum cct_status add_channels(void *context, const char *part) {
  struct cct_tune_plan *plan = context;
  int64_t n = 0;
  if (!strcmp(part, "default"))
    return CCT_OK; /* it is always the first */
  if (!cct_parse_i64(part, &n) || n < 1 || n > CCT_TUNER_CHANNELS_MAX)
    return cct_fail(CCT_USAGE, "--channels: '%s' is neither default nor 1 to %d", part, CCT_TUNER_CHANNELS_MAX);
  for (int i = 1; i < plan->n_channels; i++)
    if (plan->channels[i] == n)
      return cct_fail(CCT_USAGE, "--channels: %s is given twice", part);
  if (plan->n_channels == CCT_TUNE_MOST_CHANNELS)
    return cct_fail(CCT_USAGE, "--channels: more than %d", CCT_TUNE_MOST_CHANNELS);
  plan->channels[plan->n_channels++] = (int)n;
  return CCT_OK;
}

static const char *given(const struct cct_options *flags, enum cct_option_id id, const char *standard) {
  return flags->v[id].is_set ? flags->v[id].s : standard;
}

static enum cct_status plan_choices(const struct cct_options *flags, struct cct_tune_plan *plan) {
  struct names algorithms = {.n = 0}, protocols = {.n = 0};
  int is_host = !strcmp(plan->backend, "host");
  plan->channels[plan->n_channels++] = 0;
  enum cct_status status = cct_split(given(flags, CCT_OPT_ALGORITHMS, "ring,tree"), ',', add_name, &algorithms);
  if (!status)
    status = cct_split(given(flags, CCT_OPT_PROTOCOLS, "ll,ll128,simple"), ',', add_name, &protocols);
  if (!status)
    status = check_known(&algorithms, "algorithms", cct_tuner_algorithms, CCT_TUNER_ALGORITHMS);
  if (!status)
    status = check_known(&protocols, "protocols", cct_tuner_protocols, CCT_TUNER_PROTOCOLS);
  if (!status && !is_host)
    status = cct_split(given(flags, CCT_OPT_CHANNELS, "default,16,32"), ',', add_channels, plan);
  plan->each = is_host ? 1 : 1 + algorithms.n * protocols.n;
  if (!status && plan->each * plan->n_channels > CCT_TUNE_MOST_CHOICES)
    return cct_fail(CCT_USAGE, "%d choices are more than %d: name fewer algorithms, protocols or channels",
                    plan->each * plan->n_channels, CCT_TUNE_MOST_CHOICES);
  for (int c = 0; !status && c < plan->n_channels; c++)
    for (int i = 0; i < plan->each; i++) {
      struct cct_tune_choice *choice = &plan->choices[plan->n_choices++];
      *choice = (struct cct_tune_choice){.channels = c};
      if (!i)
        continue;
      snprintf(choice->algorithm, sizeof choice->algorithm, "%s", algorithms.at[(i - 1) / protocols.n]);
      snprintf(choice->protocol, sizeof choice->protocol, "%s", protocols.at[(i - 1) % protocols.n]);
    }
  return status;
}

static enum cct_status plan_sizes(const struct cct_options *flags, struct cct_tune_plan *plan) {
  int64_t least = flags->v[CCT_OPT_MIN_BYTES].is_set ? flags->v[CCT_OPT_MIN_BYTES].i : LEAST_BYTES;
  int64_t most = flags->v[CCT_OPT_MAX_BYTES].is_set ? flags->v[CCT_OPT_MAX_BYTES].i : MOST_BYTES;
  int64_t factor = flags->v[CCT_OPT_STEP_FACTOR].is_set ? flags->v[CCT_OPT_STEP_FACTOR].i : FACTOR;
  static const int64_t beside[] = {(int64_t)16 << 20, (int64_t)64 << 20, (int64_t)256 << 20};
  if (least < 256 || least > most)
    return cct_fail(CCT_USAGE, "sizes from -b %lld to -e %lld: -b is at least 256 and at most -e", (long long)least,
                    (long long)most);
  if (factor < 2)
    return cct_fail(CCT_USAGE, "-f %lld: sizes of a tune grow by a factor of 2 or more", (long long)factor);
  for (int64_t size = least; size <= most; size *= factor) {
    if (plan->n_bytes == CCT_TUNE_MOST_SIZES)
      return cct_fail(CCT_USAGE, "more than %d sizes from -b to -e; raise -f", CCT_TUNE_MOST_SIZES);
    plan->bytes[plan->n_bytes++] = size;
    if (size > most / factor)
      break;
  }
  for (size_t i = 0; plan->n_channels > 1 && i < sizeof beside / sizeof *beside; i++)
    if (beside[i] >= least && beside[i] <= most)
      plan->beside[plan->n_beside++] = beside[i];
  if (plan->n_channels > 1 && !plan->n_beside)
    plan->beside[plan->n_beside++] = plan->bytes[plan->n_bytes - 1];
  return CCT_OK;
}

/* Of the standard numbers of channels those that the profile prices. */
static void drop_unplayed(struct cct_tune_plan *plan) {
  int kept = 1;
  for (int c = 1; c < plan->n_channels; c++) {
    int from = c * plan->each, to = kept * plan->each, is_played = 0;
    for (int k = 0; k < plan->n_kinds; k++)
      is_played |= memchr(plan->is_usable[k] + from, 1, (size_t)plan->each) != NULL;
    if (!is_played)
      continue;
    for (int k = 0; k < plan->n_kinds; k++)
      memmove(plan->is_usable[k] + to, plan->is_usable[k] + from, (size_t)plan->each);
    memmove(plan->choices + to, plan->choices + from, (size_t)plan->each * sizeof *plan->choices);
    for (int i = to; i < to + plan->each; i++)
      plan->choices[i].channels = kept;
    plan->channels[kept++] = plan->channels[c];
  }
  plan->n_channels = kept;
  plan->n_choices = kept * plan->each;
  plan->n_beside = kept > 1 ? plan->n_beside : 0;
}

/* The library beside this program, where it was built or installed; "" if it is not there. */
static enum cct_status find_plugin(const struct cct_options *flags, struct cct_tune_plan *plan) {
  char path[4096], *whole;
  if (flags->v[CCT_OPT_PLUGIN].is_set) {
    whole = realpath(flags->v[CCT_OPT_PLUGIN].s, NULL);
    int is_fitting = whole && strlen(whole) < sizeof plan->plugin;
    if (is_fitting)
      snprintf(plan->plugin, sizeof plan->plugin, "%s", whole);
    free(whole);
    return is_fitting ? CCT_OK : cct_fail(CCT_USAGE, "--plugin %s: no such file", flags->v[CCT_OPT_PLUGIN].s);
  }
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
  path[length > 0 ? length : 0] = '\0';
  for (int up = 0; up < 2 && strrchr(path, '/'); up++)
    *strrchr(path, '/') = '\0';
  strcat(path, "/lib/libnccl-tuner-cctax.so");
  if (access(path, R_OK) == 0 && strlen(path) < sizeof plan->plugin)
    snprintf(plan->plugin, sizeof plan->plugin, "%s", path);
  if (!*plan->plugin && !strcmp(plan->backend, "cuda") && strcmp(flags->v[CCT_OPT_VERIFY].s, "no"))
    return cct_fail(CCT_USAGE, "%s: not there; --plugin FILE names the tuner plugin, --verify no does without", path);
  return CCT_OK;
}

static enum cct_status plan_type(const struct cct_options *flags, struct cct_tune_plan *plan) {
  const char *text = flags->v[CCT_OPT_DATATYPE].s;
  int type = cct_coll_type(text);
  if (type < 0)
    return cct_fail(CCT_USAGE, "--datatype: '%s': tune measures one type, by the names of cctax coll", text);
  snprintf(plan->type, sizeof plan->type, "%s", cct_type_name((enum cct_type)type));
  return CCT_OK;
}

/* What sim plays, or what a stripped machine lacks. */
static enum cct_status plan_profile(const struct cct_options *flags, struct cct_tune_plan *plan) {
  struct cct_machine_state state;
  enum cct_status status = cct_option_copy(flags, CCT_OPT_PROFILE_FILE, plan->profile, sizeof plan->profile);
  if (status || *plan->profile)
    return status;
  if (!strcmp(plan->backend, "sim"))
    snprintf(plan->profile, sizeof plan->profile, "%s",
             strncmp(plan->condition, "emulated:", 9) ? CCT_SIM_PLAYS : plan->condition + 9);
  if (strcmp(plan->backend, "cuda") || strcmp(plan->condition, "stripped"))
    return CCT_OK;
  cct_machine_state_read(&state);
  return cct_condition_stripped(state.gpu, plan->profile, sizeof plan->profile);
}

enum cct_status cct_tune_plan_make(const struct cct_options *flags, struct cct_tune_plan *plan_out) {
  struct cct_tune_plan *plan = plan_out;
  const struct cct_value *rounds = &flags->v[CCT_OPT_ROUNDS];
  *plan = (struct cct_tune_plan){.warmup = flags->v[CCT_OPT_WARMUP].is_set ? flags->v[CCT_OPT_WARMUP].i : WARMUP,
                                 .samples = flags->v[CCT_OPT_SAMPLES].is_set ? flags->v[CCT_OPT_SAMPLES].i : SAMPLES,
                                 .rounds = rounds->is_set ? rounds->i : CCT_TUNE_LEAST_PROCESSES,
                                 .seed = flags->v[CCT_OPT_SEED].i,
                                 .is_shared_gpu = (int)flags->v[CCT_OPT_SHARED_GPU].i};
  if (plan->rounds < CCT_TUNE_LEAST_PROCESSES || plan->rounds > CCT_TUNE_MOST_PROCESSES)
    return cct_fail(CCT_USAGE, "--rounds %lld: at least %d processes, 5 to choose and 4 to judge, at most %d",
                    (long long)plan->rounds, CCT_TUNE_LEAST_PROCESSES, CCT_TUNE_MOST_PROCESSES);
  enum cct_status status = cct_option_copy(flags, CCT_OPT_BACKEND, plan->backend, sizeof plan->backend);
  if (!status)
    status = cct_option_copy(flags, CCT_OPT_CONDITION, plan->condition, sizeof plan->condition);
  if (!status && strchr(plan->condition, ','))
    status = cct_fail(CCT_USAGE, "--condition %s: rules are of one condition", plan->condition);
  if (!status)
    status = cct_option_copy(flags, CCT_OPT_NOISE, plan->noise, sizeof plan->noise);
  if (!status)
    status = plan_profile(flags, plan);
  if (!status)
    status = cct_option_copy(flags, CCT_OPT_OBJECTIVE, plan->objective, sizeof plan->objective);
  if (!status)
    status = cct_option_copy(flags, CCT_OPT_RULES, plan->rules, sizeof plan->rules);
  if (!status)
    status = plan_type(flags, plan);
  if (!status)
    status = cct_own_ranks(flags, &plan->ranks);
  if (!status && plan->ranks < 2)
    status = cct_fail(CCT_USAGE, "one rank has nothing to tune: give -g");
  if (!status)
    status = cct_split(given(flags, CCT_OPT_COLLECTIVE, "all_reduce,all_gather,reduce_scatter"), ',', cct_tune_add_kind,
                       plan);
  if (!status)
    status = plan_choices(flags, plan);
  if (!status)
    status = plan_sizes(flags, plan);
  if (!status)
    status = find_plugin(flags, plan);
  if (!status)
    status = cct_tune_find_usable(plan);
  if (!status && !strcmp(plan->backend, "sim") && !flags->v[CCT_OPT_CHANNELS].is_set)
    drop_unplayed(plan);
  return status;
}
