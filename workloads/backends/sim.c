/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "workloads/backends/sim_meet.h"

struct cct_backend {
  const struct cct_world *world;
  struct cct_backend_options options;
  double *noise; /* ratios of a measured step to its median, from noise_file */
  int n_noise;
};

struct local { /* a class of which this process owns ranks */
  int class, is_announcer, is_queued;
  struct sim_state state;
};

struct cct_executor {
  struct cct_backend *backend;
  const struct cct_job *job;
  struct sim_plan **plans; /* by role */
  int first, count;        /* owned ranks */
  uint64_t *keys;          /* of all ranks, of the last step */
  size_t *key_bytes;       /* each process's contribution */
  struct sim_ranks *ranks;
  struct sim_meet *meet;
  struct local *locals;
  int *local_of; /* by class; -1: this process owns none of it */
  int n_locals;
  struct sim_arrival *outbox; /* announced, not yet told to all */
  size_t n_outbox, outbox_capacity;
  void *packets; /* one a process and round */
  int packet_arrivals;
  int64_t closing_sync_ns;
  int ran_n; /* repetitions of the last burst; 0: none yet with these bindings */
  uint64_t steps;
};

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

static void forget_ranks(struct cct_executor *x) {
  for (int i = 0; i < x->n_locals; i++)
    sim_state_release(&x->locals[i].state);
  free(x->locals);
  free(x->local_of);
  sim_meet_free(x->meet);
  sim_ranks_free(x->ranks);
  x->locals = NULL;
  x->local_of = NULL;
  x->meet = NULL;
  x->ranks = NULL;
  x->n_locals = x->ran_n = 0;
}

static void sim_unload(struct cct_executor *x) {
  if (!x)
    return;
  forget_ranks(x);
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
    cct_warn("profile '%s' was taken on a guest with %d GPUs; %d ranks are priced by it all the same", machine->name,
             machine->platform.partition, job->ranks);
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

/* ---- binding ---- */

static const struct cct_program *program_of(const struct cct_executor *x, int rank) {
  return cct_job_role(x->job, rank)->program;
}

/* A message or collective beyond the NVLink domain costs more, which depends on the rank as well as on the binding. */
static uint64_t fold_domains(const struct cct_executor *x, int rank, uint64_t key) {
  int gpus = x->backend->options.machine->platform.gpus;
  if (x->job->ranks <= gpus)
    return key;
  for (int g = 0; g < x->job->n_groups; g++) {
    const struct cct_group *group = &x->job->groups[g];
    int first = cct_group_member(group, rank, 0), last = cct_group_member(group, rank, group->size - 1);
    key = cct_random_fold(key, first / gpus != last / gpus);
  }
  const struct sim_plan *plan = x->plans[cct_job_role(x->job, rank) - x->job->roles];
  for (int m = 0; m < plan->n_messages; m++) {
    const struct cct_op *op = &plan->program->ops[plan->messages[m]];
    const struct cct_group *group = &x->job->groups[op->p2p.group];
    int index = (cct_group_index(group, rank) + op->p2p.peer_offset % group->size + group->size) % group->size;
    key = cct_random_fold(key, cct_group_member(group, rank, index) / gpus != rank / gpus);
  }
  return key;
}

static uint64_t binding_key(const struct cct_executor *x, int rank, const struct cct_binding *binding) {
  const struct cct_program *p = program_of(x, rank);
  uint64_t key = 0;
  for (int i = 0; i < p->n_slots; i++)
    key = cct_random_fold(key, (uint64_t)(binding ? binding->slots[i] : p->slots[i].value));
  for (int i = 0; binding && binding->matrices && i < p->n_matrices; i++) {
    const struct cct_matrix *matrix = &binding->matrices[i];
    key = cct_random_fold(key, (uint64_t)matrix->n);
    for (int k = 0; k < matrix->n * matrix->n; k++)
      key = cct_random_fold(key, (uint64_t)matrix->bytes[k]);
  }
  return fold_domains(x, rank, key);
}

static int64_t *default_slots(const struct cct_program *p) {
  int64_t *slots = malloc(((size_t)p->n_slots + 1) * sizeof *slots);
  for (int i = 0; slots && i < p->n_slots; i++)
    slots[i] = p->slots[i].value;
  if (!slots)
    (void)cct_fail(CCT_NOMEM, "sim: out of memory");
  return slots;
}

static enum cct_status price_local(struct cct_executor *x, struct local *local, int rank,
                                   const struct cct_binding *bindings) {
  const struct cct_backend_options *o = &x->backend->options;
  const struct cct_program *p = program_of(x, rank);
  struct cct_pricing pricing = {.profile = o->machine,
                                .column = &o->machine->clear,
                                .has_multicast = o->has_multicast,
                                .bounce = o->emulated ? &o->emulated->confidential : NULL};
  int64_t *defaults = default_slots(p);
  if (!defaults)
    return CCT_NOMEM;
  struct cct_binding standard = {.slots = defaults};
  enum cct_status status =
      cct_price(&pricing, x->job, p, bindings ? &bindings[rank - x->first] : &standard, rank, local->state.durations);
  free(defaults);
  return status;
}

static size_t packet_bytes(const struct cct_executor *x) {
  return ((size_t)x->packet_arrivals + 1) * sizeof(struct sim_arrival);
}

/* A packet has room for two arrivals of each class that one process can own; the rest follows in the next round. */
static enum cct_status make_packets(struct cct_executor *x) {
  int processes = x->backend->world->size, owned = (x->job->ranks + processes - 1) / processes;
  x->packet_arrivals = 2 * (owned < x->ranks->n_classes ? owned : x->ranks->n_classes) + 30;
  free(x->packets);
  x->packets = malloc(((size_t)processes + 1) * packet_bytes(x));
  return x->packets ? CCT_OK : cct_fail(CCT_NOMEM, "sim: out of memory for %d ranks", x->job->ranks);
}

/* Sorts all ranks into classes and prices those of which this process owns ranks. */
static enum cct_status sort_ranks(struct cct_executor *x, const struct cct_binding *bindings) {
  forget_ranks(x);
  enum cct_status status = sim_ranks_new(x->job, x->plans, x->keys, &x->ranks);
  if (!status)
    status = sim_meet_new(x->ranks, x->plans, &x->meet);
  if (!status)
    status = make_packets(x);
  if (status)
    return status;
  x->local_of = malloc((size_t)x->ranks->n_classes * sizeof *x->local_of);
  x->locals = calloc((size_t)(x->count < x->ranks->n_classes ? x->count : x->ranks->n_classes) + 1, sizeof *x->locals);
  if (!x->local_of || !x->locals)
    return cct_fail(CCT_NOMEM, "sim: out of memory for %d ranks", x->job->ranks);
  for (int c = 0; c < x->ranks->n_classes; c++)
    x->local_of[c] = -1;
  for (int rank = x->first; rank < x->first + x->count && !status; rank++) {
    int class = x->ranks->class_of[rank];
    if (x->local_of[class] >= 0)
      continue;
    x->local_of[class] = x->n_locals;
    struct local *local = &x->locals[x->n_locals];
    local->class = class;
    local->is_announcer = x->ranks->classes[class].rank == rank;
    status = sim_state_init(&local->state, x->plans[x->ranks->classes[class].role]);
    if (status)
      return status;
    x->n_locals++;
    status = price_local(x, local, rank, bindings);
  }
  return status;
}

/* Keys of all ranks' bindings; what is bound as in the step before keeps its classes and durations. */
static enum cct_status bind(struct cct_executor *x, const struct cct_binding *bindings) {
  const struct cct_world *world = x->backend->world;
  size_t n = (size_t)x->job->ranks;
  uint64_t *keys = calloc(n + (size_t)x->count + 1, sizeof *keys), *mine = keys + n;
  if (!keys)
    return cct_fail(CCT_NOMEM, "sim: out of memory for %d ranks", x->job->ranks);
  const struct cct_program *last = NULL;
  for (int i = 0; i < x->count; i++) {
    const struct cct_program *p = program_of(x, x->first + i);
    int is_same = !bindings && p == last && x->job->ranks <= x->backend->options.machine->platform.gpus;
    mine[i] = is_same ? mine[i - 1] : binding_key(x, x->first + i, bindings ? &bindings[i] : NULL);
    last = p;
  }
  enum cct_status status = world->ops->allgatherv(world, mine, (size_t)x->count * sizeof *mine, keys, x->key_bytes);
  int is_new = !x->ranks || memcmp(keys, x->keys, n * sizeof *keys) != 0;
  memcpy(x->keys, keys, n * sizeof *keys);
  free(keys);
  if (status || !is_new)
    return status;
  status = sort_ranks(x, bindings);
  int64_t worst = status; /* a rank that cannot be priced is known to its owner alone */
  enum cct_status told = world->ops->allreduce_i64(world, &worst, 1, CCT_REDUCE_MAX);
  status = told ? told : (enum cct_status)worst;
  if (status)
    forget_ranks(x);
  return status;
}

/* ---- a repetition, in rounds ---- */

struct packet { /* of one process in one round; arrivals follow */
  int32_t n, n_left, is_done, is_failed;
  int32_t stuck_rank, stuck_id; /* the lowest rank here that waits for others; -1: none */
};

static enum cct_status run_local(struct cct_executor *x, struct local *local) {
  struct sim_state *s = &local->state;
  local->is_queued = 0;
  sim_state_run(s);
  if (!local->is_announcer)
    return CCT_OK;
  enum cct_status status =
      cct_grow((void **)&x->outbox, &x->outbox_capacity, x->n_outbox + (size_t)s->n_announced, sizeof *x->outbox);
  for (int i = 0; i < s->n_announced && !status; i++) {
    int id = s->announced[i];
    x->outbox[x->n_outbox++] = (struct sim_arrival){local->class, id, s->start[id], s->durations[id].run_ns};
  }
  return status;
}

static void take_arrivals(struct cct_executor *x, const struct sim_arrival *arrivals, int n) {
  for (int i = 0; i < n; i++) {
    const struct sim_decision *decisions;
    int decided = sim_meet_take(x->meet, &arrivals[i], &decisions);
    for (int k = 0; k < decided; k++) {
      int local = x->local_of[decisions[k].class];
      if (local < 0)
        continue;
      sim_state_tell(&x->locals[local].state, decisions[k].id, decisions[k].start_ns, decisions[k].end_ns);
      x->locals[local].is_queued = 1;
    }
  }
}

static void fill_packet(const struct cct_executor *x, enum cct_status status, struct packet *packet) {
  *packet = (struct packet){.is_done = 1, .is_failed = status != CCT_OK, .stuck_rank = -1, .stuck_id = -1};
  packet->n = (int32_t)(x->n_outbox < (size_t)x->packet_arrivals ? x->n_outbox : (size_t)x->packet_arrivals);
  packet->n_left = (int32_t)(x->n_outbox - (size_t)packet->n);
  for (int i = 0; i < x->n_locals; i++)
    if (!sim_state_is_done(&x->locals[i].state)) {
      packet->is_done = 0;
      if (packet->n == 0 && packet->stuck_rank < 0) {
        packet->stuck_rank = x->ranks->classes[x->locals[i].class].rank;
        packet->stuck_id = sim_state_waits_at(&x->locals[i].state);
      }
    }
  if (packet->n)
    memcpy((struct sim_arrival *)(void *)packet + 1, x->outbox, (size_t)packet->n * sizeof *x->outbox);
}

/* Nobody can go on: ranks wait for each other. The process that owns the first of them says so. */
static enum cct_status refuse_deadlock(const struct cct_executor *x, const char *packets) {
  const struct packet *first = NULL, *second = NULL;
  int owner = 0;
  for (int p = 0; p < x->backend->world->size; p++) {
    const struct packet *packet = (const void *)(packets + (size_t)p * packet_bytes(x));
    if (packet->stuck_id < 0)
      continue;
    if (!first) {
      first = packet;
      owner = p;
    } else if (!second && packet->stuck_rank != first->stuck_rank) {
      second = packet;
    }
  }
  int other_rank = second ? second->stuck_rank : -1, other_id = second ? second->stuck_id : -1;
  for (int i = 0; first && i < x->n_locals && !second;
       i++) { /* in one process the second is another class of its own */
    int rank = x->ranks->classes[x->locals[i].class].rank;
    if (rank == first->stuck_rank || sim_state_is_done(&x->locals[i].state) || other_rank >= 0)
      continue;
    other_rank = rank;
    other_id = sim_state_waits_at(&x->locals[i].state);
  }
  if (x->backend->world->rank != owner)
    return CCT_USAGE;
  if (!first)
    return cct_fail(CCT_USAGE, "deadlock in '%s': no rank can go on", x->job->roles[0].program->name);
  const struct cct_program *p = program_of(x, first->stuck_rank);
  const struct cct_op *op = &p->ops[first->stuck_id];
  if (other_id < 0)
    return cct_fail(CCT_USAGE, "deadlock in '%s': rank %d waits for others in entry %d (%s '%s') that never come",
                    p->name, first->stuck_rank, first->stuck_id, cct_op_name(op->kind), op->name);
  const struct cct_program *q = program_of(x, other_rank);
  return cct_fail(CCT_USAGE,
                  "deadlock in '%s': rank %d waits in entry %d (%s '%s'), rank %d in entry %d (%s '%s') of '%s'",
                  p->name, first->stuck_rank, first->stuck_id, cct_op_name(op->kind), op->name, other_rank, other_id,
                  cct_op_name(q->ops[other_id].kind), q->ops[other_id].name, q->name);
}

/* One round: everyone runs as far as it can, one all-gather tells who stands ready where. *done_out: the repetition is.
 */
static enum cct_status run_round(struct cct_executor *x, int *done_out) {
  const struct cct_world *world = x->backend->world;
  size_t bytes = packet_bytes(x);
  char *all = x->packets, *mine = world->size > 1 ? all + (size_t)world->size * bytes : all;
  enum cct_status status = CCT_OK;
  for (int i = 0; i < x->n_locals && !status; i++)
    if (x->locals[i].is_queued)
      status = run_local(x, &x->locals[i]);
  fill_packet(x, status, (struct packet *)(void *)mine);
  x->n_outbox -= (size_t)((struct packet *)(void *)mine)->n;
  if (x->n_outbox)
    memmove(x->outbox, x->outbox + ((struct packet *)(void *)mine)->n, x->n_outbox * sizeof *x->outbox);
  enum cct_status gathered = world->size > 1 ? world->ops->allgather(world, mine, bytes, all) : CCT_OK;
  if (status || gathered)
    return status ? status : gathered;
  int is_done = 1, is_moving = 0;
  for (int p = 0; p < world->size; p++) {
    const struct packet *packet = (const void *)(all + (size_t)p * bytes);
    if (packet->is_failed)
      return CCT_NOMEM;
    is_done &= packet->is_done;
    is_moving |= packet->n > 0 || packet->n_left > 0;
    take_arrivals(x, (const struct sim_arrival *)(const void *)packet + 1, packet->n);
  }
  *done_out = is_done;
  return is_done || is_moving ? CCT_OK : refuse_deadlock(x, all);
}

static enum cct_status run_repetition(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  sim_meet_clear(x->meet);
  x->n_outbox = 0;
  for (int i = 0; i < x->n_locals; i++) {
    sim_state_start_repetition(&x->locals[i].state);
    x->locals[i].is_queued = 1;
  }
  for (int is_done = 0; !is_done && !status;)
    status = run_round(x, &is_done);
  return status;
}

/* ---- steps ---- */

static double noise_factor(const struct cct_executor *x, int rank) {
  const struct cct_backend *be = x->backend;
  if (!be->n_noise)
    return 1;
  uint64_t seed = cct_random_fold(cct_random_fold(be->options.noise_seed, x->steps), (uint64_t)rank);
  return be->noise[cct_random_below(seed, 0, be->n_noise)];
}

/* Every rank's clock runs through n repetitions. A burst is a function of its bindings and n: the one that ran last is
 * not computed again. */
static enum cct_status run_burst(struct cct_executor *x, const struct cct_binding *bindings, int n) {
  enum cct_status status = bind(x, bindings);
  if (status || x->ran_n == n)
    return status;
  x->closing_sync_ns = llround(x->backend->options.machine->clear.sync_us.value * 1e3);
  for (int i = 0; i < x->n_locals; i++)
    sim_state_start_burst(&x->locals[i].state);
  for (int repetition = 0; repetition < n && !status; repetition++)
    status = run_repetition(x);
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
    const struct local *local = &x->locals[x->local_of[x->ranks->class_of[x->first + i]]];
    int64_t ns = sim_state_last_ns(&local->state) + x->closing_sync_ns;
    burst->rank_ns[i] = x->backend->n_noise ? llround((double)ns * noise_factor(x, x->first + i)) : ns;
  }
  burst->start_ns = start_ns;
  x->steps++;
  return CCT_OK;
}

static const struct local *local_of_owned(const struct cct_executor *x, int owned) {
  return &x->locals[x->local_of[x->ranks->class_of[x->first + owned]]];
}

static enum cct_status sim_trace(struct cct_executor *x, int owned, struct cct_span *spans) {
  if (!x->ranks || owned < 0 || owned >= x->count)
    return cct_fail(CCT_USAGE, "sim: no step was taken, or rank %d is not owned here", x->first + owned);
  const struct sim_state *s = &local_of_owned(x, owned)->state;
  for (int id = 0; id < s->plan->program->n_ops; id++)
    spans[id] = (struct cct_span){s->start[id], s->end[id]};
  return CCT_OK;
}

const struct cct_duration *cct_sim_durations(const struct cct_executor *x, int owned, int64_t *closing_sync_ns_out) {
  *closing_sync_ns_out = x->closing_sync_ns;
  return local_of_owned(x, owned)->state.durations;
}

int cct_sim_classes(const struct cct_executor *x) {
  return x->ranks ? x->ranks->n_classes : 0;
}

/* Clocks have no values: there is nothing that could be wrong. */
static enum cct_status sim_verify(struct cct_executor *x, struct cct_wrong *wrong_out) {
  (void)x;
  *wrong_out = (struct cct_wrong){0};
  return CCT_OK;
}

static enum cct_status sim_counts(struct cct_executor *x, struct cct_counts *counts_out) {
  const struct cct_program *p = program_of(x, x->count ? x->first : 0);
  int64_t *slots = default_slots(p);
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
    .verify = sim_verify,
    .counts = sim_counts,
    .experiment = sim_experiment,
    .trace = sim_trace,
};
