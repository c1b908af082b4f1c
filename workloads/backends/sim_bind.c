/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/sim_executor.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"

void sim_forget_ranks(struct cct_executor *x) {
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

/* A message or collective beyond the NVLink domain costs more, which depends on the rank as well as on the binding. */
uint64_t sim_fold_domains(const struct cct_executor *x, int rank, uint64_t key) {
  int gpus = x->backend->options.machine->platform.gpus;
  if (x->job->ranks <= gpus)
    return key;
  for (int g = 0; g < x->job->n_groups; g++) {
    const struct cct_group *group = &x->job->groups[g];
    int first = cct_group_member(group, rank, 0), last = cct_group_member(group, rank, group->size - 1);
    key = cct_random_fold(key, first / gpus != last / gpus);
  }
  const struct sim_plan *plan = x->plans[cct_job_role(x->job, rank) - x->job->roles];
  for (int i = 0; i < plan->n_peers; i++) {
    const struct cct_op *op = &plan->program->ops[plan->messages[i]];
    key = cct_random_fold(key, cct_op_peer(x->job, op, rank) / gpus != rank / gpus);
  }
  return key;
}

uint64_t sim_binding_key(const struct cct_executor *x, int rank, const struct cct_binding *binding) {
  const struct cct_program *p = sim_program_of(x, rank);
  uint64_t key = 0;
  for (int i = 0; i < p->n_slots; i++)
    key = cct_random_fold(key, (uint64_t)(binding ? binding->slots[i] : p->slots[i].value));
  for (int i = 0; binding && binding->matrices && i < p->n_matrices; i++) {
    const struct cct_matrix *matrix = &binding->matrices[i];
    key = cct_random_fold(key, (uint64_t)matrix->n);
    for (int k = 0; k < matrix->n * matrix->n; k++)
      key = cct_random_fold(key, (uint64_t)matrix->bytes[k]);
  }
  return sim_fold_domains(x, rank, key);
}

int64_t *sim_default_slots(const struct cct_program *p) {
  int64_t *slots = malloc(((size_t)p->n_slots + 1) * sizeof *slots);
  for (int i = 0; slots && i < p->n_slots; i++)
    slots[i] = p->slots[i].value;
  if (!slots)
    (void)cct_fail(CCT_NOMEM, "sim: out of memory");
  return slots;
}

enum cct_status sim_price_local(struct cct_executor *x, struct sim_local *local, const struct cct_binding *binding) {
  const struct cct_backend_options *o = &x->backend->options;
  const struct cct_program *p = sim_program_of(x, local->rank);
  struct cct_pricing pricing = {.profile = o->machine,
                                .column = &o->machine->clear,
                                .has_multicast = o->has_multicast,
                                .bounce = o->emulated ? &o->emulated->confidential : NULL};
  int64_t *defaults = binding ? NULL : sim_default_slots(p);
  if (!binding && !defaults)
    return CCT_NOMEM;
  struct cct_binding standard = {.slots = defaults};
  binding = binding ? binding : &standard;
  sim_state_bind(&local->state, binding);
  enum cct_status status = cct_price(&pricing, x->job, p, binding, local->rank, local->state.durations);
  free(defaults);
  return status;
}

/* A packet has room for two arrivals of each class that one process can own; the rest follows in the next round. */
static enum cct_status make_packets(struct cct_executor *x) {
  int processes = x->backend->world->size, owned = (x->job->ranks + processes - 1) / processes;
  x->packet_arrivals = 2 * (owned < x->ranks->n_classes ? owned : x->ranks->n_classes) + 30;
  free(x->packets);
  x->packets = malloc(((size_t)processes + 1) * sim_packet_bytes(x));
  return x->packets ? CCT_OK : cct_fail(CCT_NOMEM, "sim: out of memory for %d ranks", x->job->ranks);
}

enum cct_status sim_sort_ranks(struct cct_executor *x) {
  sim_forget_ranks(x);
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
    struct sim_local *local = &x->locals[x->n_locals];
    local->class = class;
    local->rank = rank;
    local->is_announcer = x->ranks->classes[class].rank == rank;
    status = sim_state_init(&local->state, x->plans[x->ranks->classes[class].role]);
    x->n_locals += !status;
  }
  return status;
}

/* Keys of all ranks' bindings; what is bound as in the step before keeps its classes and durations. */
enum cct_status sim_bind(struct cct_executor *x, const struct cct_binding *bindings) {
  const struct cct_world *world = x->backend->world;
  size_t n = (size_t)x->job->ranks;
  uint64_t *keys = calloc(n + (size_t)x->count + 1, sizeof *keys), *mine = keys + n;
  if (!keys)
    return cct_fail(CCT_NOMEM, "sim: out of memory for %d ranks", x->job->ranks);
  const struct cct_program *last = NULL;
  for (int i = 0; i < x->count; i++) {
    const struct cct_program *p = sim_program_of(x, x->first + i);
    int is_same = !bindings && p == last && x->job->ranks <= x->backend->options.machine->platform.gpus;
    mine[i] = is_same ? mine[i - 1] : sim_binding_key(x, x->first + i, bindings ? &bindings[i] : NULL);
    last = p;
  }
  enum cct_status status = world->ops->allgatherv(world, mine, (size_t)x->count * sizeof *mine, keys, x->key_bytes);
  int is_new = !x->ranks || x->is_in_sequence || memcmp(keys, x->keys, n * sizeof *keys) != 0;
  memcpy(x->keys, keys, n * sizeof *keys);
  free(keys);
  if (status || !is_new)
    return status;
  x->is_in_sequence = 0;
  status = sim_sort_ranks(x);
  for (int i = 0; i < x->n_locals && !status; i++)
    status = sim_price_local(x, &x->locals[i], bindings ? &bindings[x->locals[i].rank - x->first] : NULL);
  int64_t worst = status; /* a rank that cannot be priced is known to its owner alone */
  enum cct_status told = world->ops->allreduce_i64(world, &worst, 1, CCT_REDUCE_MAX);
  status = told ? told : (enum cct_status)worst;
  if (status)
    sim_forget_ranks(x);
  return status;
}
