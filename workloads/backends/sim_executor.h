/* SPDX-License-Identifier: Apache-2.0
 * The sim backend inside: what a loaded job holds, binding (sim_bind.c), repetitions in rounds (sim_rounds.c),
 * sequences of them (sim_sequence.c). */
#ifndef CCT_WORKLOADS_BACKENDS_SIM_EXECUTOR_H
#define CCT_WORKLOADS_BACKENDS_SIM_EXECUTOR_H

#include "workloads/backends/sim_meet.h"

struct cct_backend {
  const struct cct_world *world;
  struct cct_backend_options options;
  double *noise; /* ratios of a measured step to its median, from noise_file */
  int n_noise;
};

struct sim_local { /* a class of which this process owns ranks */
  int class, is_announcer, is_queued;
  int rank;                /* the lowest owned of the class */
  uint64_t turn;           /* sequence: key of the binding that is priced */
  int is_bound, is_passed; /* sequence: that binding is in the state; it performs nothing at this index */
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
  struct sim_local *locals;
  int *local_of; /* by class; -1: this process owns none of it */
  int n_locals;
  struct sim_arrival *outbox; /* announced, not yet told to all */
  size_t n_outbox, outbox_capacity;
  void *packets; /* one a process and round */
  int packet_arrivals;
  int64_t closing_sync_ns;
  struct cct_sequence *sequence; /* under way; NULL: none */
  int ran_n;                     /* repetitions of the last burst; 0: none yet with these bindings */
  int is_in_sequence;            /* classes are of a sequence: no step finds its bindings among them */
  uint64_t steps;
};

static inline const struct cct_program *sim_program_of(const struct cct_executor *x, int rank) {
  return cct_job_role(x->job, rank)->program;
}

static inline size_t sim_packet_bytes(const struct cct_executor *x) {
  return ((size_t)x->packet_arrivals + 1) * sizeof(struct sim_arrival);
}

/* The defaults of a program's slots; the caller frees them. NULL, with its line: out of memory. */
int64_t *sim_default_slots(const struct cct_program *program);
/* Sorts all ranks into classes by their bindings and prices those of which this process owns ranks. Collective. What is
 * bound as before keeps its classes and durations. */
enum cct_status sim_bind(struct cct_executor *x, const struct cct_binding *bindings) CCT_CHECKED;
void sim_forget_ranks(struct cct_executor *x); /* and durations, and states */
uint64_t sim_fold_domains(const struct cct_executor *x, int rank, uint64_t key);
uint64_t sim_binding_key(const struct cct_executor *x, int rank, const struct cct_binding *binding);
/* Sorts all ranks into classes by x->keys, and makes a state for each of which this process owns ranks. */
enum cct_status sim_sort_ranks(struct cct_executor *x) CCT_CHECKED;
/* Binds and prices one class; NULL: the program's defaults. */
enum cct_status sim_price_local(struct cct_executor *x, struct sim_local *local,
                                const struct cct_binding *binding) CCT_CHECKED;
double sim_noise_factor(const struct cct_executor *x, int rank);
const struct sim_local *sim_local_of_owned(const struct cct_executor *x, int owned);
enum cct_status sim_sequence(struct cct_executor *x, struct cct_sequence *sequence,
                             struct cct_burst *burst) CCT_CHECKED;
/* One repetition of all ranks. Collective; CCT_USAGE, in one line of one process, when ranks wait for each other for
 * ever. */
enum cct_status sim_run_repetition(struct cct_executor *x) CCT_CHECKED;

#endif
