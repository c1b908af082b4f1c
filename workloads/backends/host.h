/* SPDX-License-Identifier: Apache-2.0
 * Private to the host backend: a job performed for real on CPUs, one process a rank.
 *
 * Every lane of the rank's program is a TRACK, a worker thread with the entries it performs in array order: a host
 * lane's submissions, syncs and work; a stream's operations; and, for each other lane inside a GRAPH, that graph's own
 * branch. The timing law's order (program/program.h) becomes counts that only grow: an entry is submitted, begun (a
 * GRAPH) and done so many times in this burst, and an entry starts when the counts it waits for are reached. So the
 * order needs no queue and a burst no allocation.
 *
 * The caller's thread is the FUNNEL: the only one that calls the world. A track posts what its operation exchanges; the
 * funnel starts it and tests all that is started, so lanes never wait for each other's messages. Two lanes of one group
 * have communicators of their own (host_exchange.c), so neither does the order in which they post. */
#ifndef CCT_WORKLOADS_BACKENDS_HOST_H
#define CCT_WORKLOADS_BACKENDS_HOST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "crypt/seal.h"
#include "workloads/backends/backend.h"

struct cct_backend {
  const struct cct_world *world;
  struct cct_backend_options options;
  int cores;                      /* this process may run on */
  int processes_here, cores_here; /* of the world on this host, and the cores those may run on */
  int is_oversubscribed;          /* more of the one than of the other */
  double seal_gb_s;               /* what one core here seals, measured at open */
};

typedef _Atomic int64_t cct_host_count;

struct cct_host_need { /* an entry waits until `count` reaches the repetition's number, or the one before */
  const cct_host_count *count;
  int is_previous;
  int id; /* the entry that raises it: there is no wait where that is left out; -1: passing it counts too */
};

struct cct_host_bound { /* what a binding makes of an entry */
  int is_out;           /* it is not performed */
  int64_t gemm_m, gemm_n, gemm_k;
  double flops;
  size_t bytes;                    /* scaled: what the program states, or what its buffer takes */
  size_t elements;                 /* of a sum, padded to a multiple of n where it is scattered */
  size_t *send_bytes, *recv_bytes; /* all-to-all: n each; the set's */
  size_t offset;                   /* SEND, RECV: of its part in the track's buffers */
  int64_t hold_ns;                 /* HOSTWORK, DELAY */
  double busiest_bytes;            /* what its duration is fitted on */
  size_t own;                      /* what it streams */
};

struct cct_host_room { /* what a track's operations read and write */
  size_t from, to;
};

struct cct_host_set { /* one binding, whole; written by the caller's thread, then read by tracks until all are through
                       */
  struct cct_host_bound *bound; /* by entry; NULL: not made yet */
  struct cct_host_room *rooms;  /* by track */
};
enum { /* of a sequence: streams may lag so many steps, the one before theirs included */
  CCT_HOST_SETS = CCT_SEQUENCE_DEPTH + 4
};

struct cct_host_entry {
  cct_host_count submitted, begun, done; /* repetitions of this burst */
  int track;                             /* performs it; -1: a bracket without time, or a member of a GROUP */
  int first_need, n_needs;
  struct cct_world *world;            /* of its group and track; owned by the executor */
  int n, me;                          /* members of its group; this rank's index, counted from the root */
  int tag;                            /* SEND, RECV: the how manyth with this peer */
  struct cct_host_bound b;            /* of the step its track is at */
  double alone_ns, alone_ns_per_byte; /* measured alone, where a DELAY stretches it */
  float *own;                         /* what it streams: weights, keys and values */
  size_t own_bytes;
  struct cct_span span;
};

struct cct_host_comm { /* what a track's operation exchanges: one COLLECTIVE, or the SENDs and RECVs of a GROUP */
  cct_host_count posted, completed;
  int first, last; /* entries */
  int is_started;  /* the funnel's */
  struct cct_request **requests;
  const struct cct_world **worlds;
  int n_requests, capacity;
};

enum cct_host_kind {
  CCT_HOST_LANE,   /* a host lane */
  CCT_HOST_STREAM, /* a GPU lane */
  CCT_HOST_BRANCH, /* a lane inside the graphs of another */
};

struct cct_host_track {
  struct cct_executor *x;
  enum cct_host_kind kind;
  int lane, origin; /* origin: the lane its graphs are launched on; -1: none */
  int *entries, n_entries;
  pthread_t thread;
  int has_lock, is_running;
  pthread_mutex_t lock;
  pthread_cond_t woken;
  _Atomic(const cct_host_count *) waits_for;
  cct_host_count through; /* steps of a sequence that it has performed */
  int64_t ended_ns;       /* its last entry, since the start: noted before those hear of it who wait for the entry */
  struct cct_host_comm comm;
  unsigned char *from, *to, *cipher; /* its operations read and write; a sealed chunk */
  size_t from_bytes, to_bytes;
  struct cct_seal *seal;
  int64_t elements, wrong; /* verify */
  char first_wrong[160];
};

struct cct_executor {
  struct cct_backend *backend;
  const struct cct_job *job;
  const struct cct_program *program; /* of this rank */
  int rank;
  int64_t *slots; /* the template's default binding */
  struct cct_binding defaults;
  struct cct_host_entry *entries;
  struct cct_host_need *needs;
  int n_needs;
  struct cct_host_set
      sets[CCT_HOST_SETS];      /* a step is bound in the first; step i of a sequence in i modulo their number */
  struct cct_host_room *wanted; /* by track: the most of all bindings so far, */
  size_t *wanted_own;           /* and by entry */
  struct cct_host_track *tracks;
  int n_tracks;
  struct cct_host_track funnel; /* its thread is the caller's */
  struct cct_world **worlds;    /* split from the backend's */
  int n_worlds;
  int is_crowded; /* more threads than cores: a track sleeps without looking first */
  cct_host_count burst, posts, finished;
  atomic_int is_stopped, is_ending;
  enum cct_status _Atomic status;              /* why it stopped */
  int repetitions, is_verifying, is_corrupted; /* the last: tests */
  int64_t start_ns;
  struct cct_sequence *sequence;        /* under way; NULL: a burst */
  int64_t not_before_ns[CCT_HOST_SETS]; /* of its steps; the first host lane idles until then */
  int64_t *binding_ns;                  /* by step */
  cct_host_count n_bound, last;         /* its steps bound so far; how many there are, once that is known */
};

/* Where a pass over a program stands: the entry of the open bracket, -1: none. */
struct cct_host_walk {
  int graph, group;
};

/* host_plan.c: from a program to tracks, needs and communicators. */
void cct_host_walk_to(struct cct_host_walk *walk, const struct cct_program *program, int id);
void cct_host_walk_past(struct cct_host_walk *walk, const struct cct_program *program, int id);
/* The lane whose graphs hold the entry; -1: it stands on its lane itself. */
int cct_host_origin(const struct cct_program *program, const struct cct_host_walk *walk, const struct cct_op *op);
enum cct_status cct_host_plan(struct cct_executor *x) CCT_CHECKED;
void cct_host_unplan(struct cct_executor *x);

/* host_exchange.c: communicators, tags and room for what is under way. */
enum cct_status cct_host_plan_exchanges(struct cct_executor *x) CCT_CHECKED;

/* host_lane.c: the threads. */
enum cct_status cct_host_start(struct cct_executor *x) CCT_CHECKED;
void cct_host_end(struct cct_executor *x);
enum cct_status cct_host_burst(struct cct_executor *x, int n, int64_t *ns_out) CCT_CHECKED;
void cct_host_stop(struct cct_executor *x, enum cct_status status);
/* Waits until `count` is at least `value`; 0: the burst was stopped. */
int cct_host_wait(struct cct_host_track *track, const cct_host_count *count, int64_t value);
void cct_host_sleep_until(int64_t due_ns); /* the last of it spinning */
/* Wakes the track that waits for `count`, which the caller has just raised. */
void cct_host_wake(struct cct_executor *x, const cct_host_count *count);

/* host_sequence.c: steps with a binding each; what the funnel does for one between two looks at exchanges. */
enum cct_status cct_host_sequence(struct cct_executor *x, struct cct_sequence *sequence,
                                  struct cct_burst *burst) CCT_CHECKED;
enum cct_status cct_host_next_step(struct cct_executor *x, int *moved_out) CCT_CHECKED;
/* A track's first and last act of a step; 0: there is no such step, or the burst was stopped. */
int cct_host_begin_step(struct cct_host_track *track, int64_t step);
void cct_host_end_step(struct cct_host_track *track, int64_t step);
/* Starts what tracks posted and tests what was started. */
enum cct_status cct_host_progress(struct cct_executor *x) CCT_CHECKED;

/* host_comm.c: the funnel's side of an exchange. */
enum cct_status cct_host_comm_start(struct cct_host_track *track) CCT_CHECKED;
enum cct_status cct_host_comm_test(struct cct_host_track *track, int *done_out) CCT_CHECKED;
/* Between two tests, of which something last moved at `moved_at_ns`: lets others run when it is a while ago. */
void cct_host_pause(int64_t moved_at_ns);
/* Measures alone every operation that a DELAY stretches. */
enum cct_status cct_host_measure_alone(struct cct_executor *x) CCT_CHECKED;

/* host_size.c: a binding's sizes, and the memory they need. Of the default binding (NULL) all entries have their sizes,
 * those too that it leaves out. While tracks run, a set is bound by the caller's thread and taken over by each track.
 */
enum cct_status cct_host_bind(struct cct_executor *x, const struct cct_binding *binding) CCT_CHECKED;
enum cct_status cct_host_make_set(struct cct_executor *x, struct cct_host_set *set) CCT_CHECKED;
void cct_host_free_set(const struct cct_executor *x, struct cct_host_set *set);
enum cct_status cct_host_bind_set(struct cct_executor *x, struct cct_host_set *set,
                                  const struct cct_binding *binding) CCT_CHECKED;
enum cct_status cct_host_adopt(struct cct_host_track *track, const struct cct_host_set *set) CCT_CHECKED;
static inline const struct cct_host_set *cct_host_set_of(const struct cct_executor *x, int64_t step) {
  return &x->sets[x->sequence ? step % CCT_HOST_SETS : 0];
}
int64_t cct_host_scaled(int64_t value, int64_t scale); /* value / scale, at least 1; 0 stays 0 */
/* The entry with its bound and scaled sizes as constants. */
void cct_host_scale_op(const struct cct_executor *x, int id, struct cct_op *op_out);

/* A reduction or broadcast whose result goes to another buffer than its input: copied there (a broadcast's by the
 * root alone), and performed in place. */
int cct_host_is_copied(const struct cct_op *op);
/* An all-gather whose input is this rank's part of the output. */
int cct_host_is_in_place(const struct cct_op *op);
/* host_work.c: one operation of a track; host_check.c: its inputs and poisoned outputs before, its values after. */
enum cct_status cct_host_perform(struct cct_host_track *track, int id) CCT_CHECKED;
void cct_host_prepare(struct cct_host_track *track, int id);
void cct_host_check(struct cct_host_track *track, int id);
enum {
  CCT_HOST_TILE = 64
}; /* attention's flops beyond its stream are products of tiles of this edge */

/* What the emulated profile asks of a bounce copy; NULL: nothing, it goes as fast as this core seals. */
const struct cct_copy_cost *cct_host_bounce_cost(const struct cct_backend *backend, enum cct_direction direction,
                                                 enum cct_memory memory);

/* host_value.c: elements of every type, their sums, and inputs whose every partial sum is exact. */
cct_combine_fn *cct_host_combine(enum cct_type type, enum cct_reduction reduction); /* NULL: this type has no sums */
void cct_host_divide(enum cct_type type, void *buf, size_t count, int n);           /* what AVG does after its sum */
void cct_host_put(enum cct_type type, void *buf, size_t index, int value);
int cct_host_is(enum cct_type type, const void *buf, size_t index, int value);
uint32_t cct_host_hash(uint32_t about, size_t index, uint32_t bound); /* 0..bound-1 */
/* What member of n puts in, chosen so that the result is exact, and that result. */
int cct_host_input(enum cct_type type, enum cct_reduction reduction, int n, int member, size_t index);
int cct_host_result(enum cct_type type, enum cct_reduction reduction, int n, size_t index);
unsigned char cct_host_byte(int sender, int receiver, size_t index); /* what is only moved; never the poison 0xff */

/* host_blas.c */
void cct_host_sgemm(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);
void cct_host_blas_threads(int n);
const char *cct_host_blas_library(void);

extern const struct cct_backend_ops cct_backend_host;

#endif
