/* SPDX-License-Identifier: Apache-2.0
 * The CUDA backend's private header: what its files share. The backend is a module of its own (libcctax-cuda.so),
 * opened by cuda_door.c. One process drives one GPU and is one rank; every function is called from that rank's one
 * thread, and while a burst of a program with several host lanes runs (cuda_hosts.c) also from theirs. */
#ifndef CCT_WORKLOADS_BACKENDS_CUDA_ROOM_H
#define CCT_WORKLOADS_BACKENDS_CUDA_ROOM_H

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "workloads/backends/backend.h"
#include "workloads/backends/cuda/cuda_kernels.h"
#include "workloads/program/program.h"

/* The converters: each evaluates its call once, logs the line that names it, and gives our status; the caller jumps. */
#define CCT_CUDA(call)   cuda_status((call), #call)
#define CCT_CUBLAS(call) cublas_status((call), #call)
#define CCT_NCCL(call)   nccl_status((call), #call)
enum cct_status cct_cuda_failed(cudaError_t error, const char *call);
enum cct_status cct_cublas_failed(cublasStatus_t error, const char *call);
enum cct_status cct_nccl_failed(ncclResult_t error, const char *call);
static inline enum cct_status cuda_status(cudaError_t error, const char *call) {
  return error == cudaSuccess ? CCT_OK : cct_cuda_failed(error, call);
}
static inline enum cct_status cublas_status(cublasStatus_t error, const char *call) {
  return error == CUBLAS_STATUS_SUCCESS ? CCT_OK : cct_cublas_failed(error, call);
}
static inline enum cct_status nccl_status(ncclResult_t error, const char *call) {
  return error == ncclSuccess ? CCT_OK : cct_nccl_failed(error, call);
}

enum mode {   /* of walking a program */
  MODE_EAGER, /* as it is */
  MODE_WARM,  /* once, all eagerly: graphs opened up, so that every library has loaded what a capture may not load */
  MODE_GRAPH, /* inside a capture */
  MODE_COUNT, /* inside the capture that counts: without graphs, host entries, delays and blocking copies */
};

/* Of one group shape and choice on one GPU lane, kept for the block: NCCL runs what it is given on one communicator one
 * after the other, and lanes do not wait for each other. */
struct communicator {
  int size, stride;
  char choice[sizeof((struct cct_group *)0)->choice];
  int lane;       /* -1: of every lane */
  int is_copying; /* of collectives by copy engines: NCCL's policy of no thread blocks */
  ncclComm_t comm;
  int index;                   /* this rank's in it */
  struct cct_p2p_peers *peers; /* NULL until a one-shot or two-shot all-reduce needs them */
  void *opened[CCT_P2P_RANKS]; /* peers' areas mapped here */
};
#define MAX_COMMUNICATORS 64

struct cct_backend {
  const struct cct_world *world;
  struct cct_backend_options options;
  int device, sms;
  atomic_int is_dead;     /* an error after which nothing on this GPU works any more */
  atomic_llong waited_ns; /* by the host, in the burst that runs */
  int64_t submitting_ns;  /* of the last burst: what the host was busy with until all was submitted */
  int64_t l2_bytes, timer_step_ns;
  int64_t spin_cost_ns[2]; /* of a DELAY kernel itself, by mode eager and graph */
  double beside;           /* where programs are emulated: cuda_beside.c, of the slowest rank; 0: not measured */
  char uuid[48];
  struct cct_nvml *nvml; /* NULL: none here */
  cudaStream_t side;     /* for what is not part of a program */
  cublasLtHandle_t lt;
  struct cct_stamp_ring *ring;
  ncclComm_t base; /* of all ranks; NULL until a program communicates */
  struct communicator communicators[MAX_COMMUNICATORS];
  int n_communicators;
  struct storage *kept;    /* MOST_KEPT of them (cuda_register.c); NULL until one is */
  void *probe;             /* device memory of experiments, PROBE_BYTES */
  struct seal_state *seal; /* of bounce copies; NULL until one is needed */
};
#define PROBE_BYTES     ((size_t)1 << 20)

#define WORKSPACE_BYTES ((size_t)32 << 20) /* what cuBLAS asks for on Hopper and later */

struct lane {
  cudaStream_t stream; /* NULL: a host lane */
  cublasHandle_t blas;
  void *workspace;
  cudaEvent_t join; /* ends its branch of a graph */
};

struct storage { /* one buffer of the program, or scratch */
  void *at;
  int64_t bytes, need, cursor; /* cursor: where the next slice of a weight or KV buffer begins */
  enum cct_memory memory;
  int is_nccls;                       /* from NCCL's allocator, as nccl-tests' buffers are */
  enum cct_registration registration; /* wanted */
  ncclComm_t known_to;                /* where it is registered; NULL: nowhere */
  void *registered;                   /* by ncclCommRegister */
  ncclWindow_t window;                /* by ncclCommWindowRegister */
};

struct lt_plan { /* a cublasLt product, made once for its shape */
  struct lt_plan *next;
  int64_t m, n, k;
  int groups;
  enum cct_type type;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, d;
  cublasLtMatmulAlgo_t algorithm;
};

struct edge { /* a wait on another lane's operation */
  int op, is_previous;
};

struct captured { /* one graph a key and shape */
  struct captured *next;
  int key;
  uint64_t shape;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  int64_t nodes, kernels;
};

/* Use k of a rotated buffer in a burst begins at (k mod steps) x size; an entry is use `ordinal` of `uses` a
 * repetition. */
struct turn {
  int64_t size, steps;
  int ordinal, uses;
};

struct planned {    /* an operation with this binding's values */
  int64_t bytes, m; /* of COPY, COLLECTIVE, SEND, RECV, ELEMENTWISE, ATTENTION; rows of GEMM */
  int64_t delay_ns; /* of DELAY: what it is to add to its lane */
  int64_t own_ns;   /* of DELAY: what its kernel costs there by itself */
  void *in[2], *out;
  int64_t in_capacity, out_capacity;
  struct turn turn; /* of COLLECTIVE, SEND, RECV; `in` and `out` are those of the first repetition */
  const struct cct_matrix *matrix;
  struct communicator *communicator; /* of COLLECTIVE, SEND, RECV */
  struct lt_plan *lt;
  void **pointers; /* grouped GEMM: device arrays of A, B and C pointers, one after the other */
  int product;     /* ATTENTION by arithmetic: the edge of its square product; 0: by bytes */
  int blocks;
  int is_out;              /* stands in a CASE that this binding does not choose */
  int sync_before;         /* SYNC: the lane's last operation before it in this step, -1: none */
  int in_graph, in_group;  /* stands inside a GRAPH, a GROUP */
  int end;                 /* brackets: id of the END */
  int first_edge, n_edges; /* waits that need an event */
  int n_host_waits;        /* HOSTWORK, SYNC, host DELAY: edges the host itself waits for */
  int event;               /* index of the events it records, -1: nobody on another lane waits for it */
  struct captured *captured;
};

/* An operation measured alone, for the DELAY behind it: ns + ns_per_byte x the busiest member's bytes (all-to-allv; its
 * matrix changes from step to step), and what the kernel of a DELAY costs behind it. */
struct clear_time {
  struct clear_time *next;
  uint64_t shape, family; /* family: the shape whatever its size, 0: of no other size */
  int64_t bytes;
  double ns, ns_per_byte;
  int64_t own_ns;
};

struct window { /* a buffer of another rank, mapped here, that p2p copies read; of a rank's own: its own memory */
  int rank, buffer;
  void *at;
  int64_t bytes;
  int is_mapped;
};

struct hosts; /* threads of the host lanes beyond the first */

struct last_unit { /* the last operation enqueued on a GPU lane; id -1: none */
  int id, rep;
};

/* Steps of a sequence that are under way at once: bound, or read by a lane that lags, whose waits reach one back. */
#define VIEWS (CCT_SEQUENCE_DEPTH + 2)

struct cct_executor {
  struct cct_backend *backend;
  const struct cct_job *job;
  const struct cct_program *program;
  int rank;
  struct lane *lanes;
  struct storage *buffers, scratch[3]; /* scratch: what operations without a buffer read and write */
  struct storage host[3];              /* by pinned, pageable, mapped: the host side of copies without a buffer */
  struct planned *plan;
  const struct planned *before; /* of the step before; of a burst: `plan` */
  int *last_on_lane;            /* the last operation of a step on each GPU lane, -1: none */
  struct edge *edges;
  int n_edges;
  /* Of each entry that another lane awaits, taken in turn by its repetitions: VIEWS of them where a host lane may be so
   * far ahead of another, and otherwise 2, since waits reach one back. */
  cudaEvent_t *events;
  int n_events, events_each;
  int64_t *slots, *device_slots;
  /* Copies that carry the binding: VIEWS pinned blocks, each with the slots in front, and what tells that one was read
   * (cuda_sequence.c). */
  char *carrier;
  int64_t carrier_bytes;
  cudaEvent_t carried[VIEWS];
  int block;                /* this step's */
  struct plan_cache *cache; /* NULL until a sequence may come */
  /* Of a step of a sequence alone, which a copy of the executor performs that has a plan and slots of its own. */
  int is_in_sequence;
  const struct last_unit *earlier; /* by lane, before this step */
  struct cct_matrix *matrices;
  struct lt_plan *lt_plans;
  struct captured *graphs;
  struct clear_time *clear;
  void *sink; /* device word that streaming kernels may write */
  struct hosts *hosts;
  int n_hosts; /* host lanes */
  int has_p2p, is_bound, is_warm;
  struct window *windows; /* NULL until the first binding, and where no copy of the job reads another's memory */
  int n_windows;
  int is_corrupting; /* tests: the next check finds a wrong element on this rank */
  struct cct_counts performed;
  /* Traced alone: %globaltimer around each entry, on the device, and the spans made of it. */
  int64_t *marks, start_ns, clock_ns; /* clock_ns: what turns %globaltimer into host time */
  struct cct_span *spans;
};

/* cuda_wait.c: waiting for the GPU, and for errors that come asynchronously, within the deadline. A deadline missed or
 * an asynchronous error aborts the communicators, marks the backend dead and is CCT_STOPPED. */
enum cct_status cct_cuda_wait_stream(struct cct_backend *backend, cudaStream_t stream) CCT_CHECKED;
enum cct_status cct_cuda_wait_event(struct cct_backend *backend, cudaEvent_t event) CCT_CHECKED;

/* cuda_plan.c: resolves a binding: values, pointers, communicators, graph shapes. */
enum cct_status cct_cuda_plan_edges(struct cct_executor *x) CCT_CHECKED; /* once */
enum cct_status cct_cuda_bind(struct cct_executor *x, const struct cct_binding *binding) CCT_CHECKED;
/* CCT_OK where every rank's `status` is; a rank that is well gets the status of one that is not. */
enum cct_status cct_cuda_agree(const struct cct_backend *backend, enum cct_status status) CCT_CHECKED;
uint64_t cct_cuda_fold(uint64_t seed, uint64_t value);
/* What identifies op's duration: kind, sizes, type, group, algorithm and mode. */
uint64_t cct_cuda_op_shape(const struct cct_executor *x, int id);

/* Sets what the binding in x->slots makes of each entry; touches no memory of the GPU. */
void cct_cuda_plan_values(struct cct_executor *x);
/* Prepares entries for being enqueued: handles, products, pointer arrays. */
enum cct_status cct_cuda_plan_entries(struct cct_executor *x) CCT_CHECKED;
int cct_cuda_attention_edge(double flops, int64_t kv_bytes); /* of its square product; 0: it streams */
int cct_cuda_blocks(const struct cct_backend *backend, int64_t bytes);

/* cuda_memory.c: buffers sized for the plan; refuses what does not fit, with the bytes. */
enum cct_status cct_cuda_allocate(struct cct_executor *x) CCT_CHECKED;
enum cct_status cct_cuda_place(struct cct_executor *x) CCT_CHECKED;  /* operands, in the memory there is */
enum cct_status cct_cuda_refill(struct cct_executor *x) CCT_CHECKED; /* random values, after a check left others */
void cct_cuda_release(struct cct_executor *x);
int64_t cct_cuda_type_bytes(enum cct_type type, int64_t elements);
/* cudaMemset and a small cudaMemcpy return before the device is done, and the lanes' streams do not wait for the
 * default one: after these two they may read what was written. */
enum cct_status cct_cuda_clear(void *at, int byte, size_t n) CCT_CHECKED;
enum cct_status cct_cuda_upload(void *to, const void *from, size_t n) CCT_CHECKED;

/* cuda_run.c: enqueues entries [first, last) in array order, as repetition `rep` of a burst. */
enum cct_status cct_cuda_walk(struct cct_executor *x, int first, int last, int rep, enum mode mode) CCT_CHECKED;
/* One entry of a GPU lane (a GROUP or GRAPH whole) behind what it waits for, and the events others wait for. */
enum cct_status cct_cuda_unit(struct cct_executor *x, int id, int rep, enum mode mode) CCT_CHECKED;
/* SYNC, HOSTWORK or a host lane's DELAY, once what it waits for is enqueued. */
enum cct_status cct_cuda_host_entry(struct cct_executor *x, int id, int rep) CCT_CHECKED;
/* Reads its bytes on the device. */
int cct_cuda_streams(const struct cct_executor *x, int id, struct cct_quantity *bytes_out);
int cct_cuda_is_host_entry(const struct cct_program *program, const struct cct_op *op);
/* Entry `id` alone, without its waits: a GROUP whole. */
enum cct_status cct_cuda_enqueue(struct cct_executor *x, int id, int rep, enum mode mode) CCT_CHECKED;
enum cct_status cct_cuda_drain(struct cct_executor *x) CCT_CHECKED; /* waits for every lane */

/* cuda_hosts.c: a burst of a program with several host lanes. `begin`, before the clock starts, wakes the threads. */
enum cct_status cct_cuda_hosts_open(struct cct_executor *x) CCT_CHECKED;
void cct_cuda_hosts_close(struct cct_executor *x);
void cct_cuda_hosts_begin(struct cct_executor *x, int n);
enum cct_status cct_cuda_hosts_run(struct cct_executor *x) CCT_CHECKED;
/* A sequence, step by step, by the rank's own thread, which is the first host lane: until all lanes are near enough for
 * `step` to be asked for; once it is bound in views[step % VIEWS]; its entries; the end of all lanes. */
void cct_cuda_hosts_sequence(struct cct_executor *x, struct cct_executor *views, struct cct_sequence *sequence);
enum cct_status cct_cuda_hosts_await(struct cct_executor *x, int step) CCT_CHECKED;
enum cct_status cct_cuda_hosts_quiet(struct cct_executor *x,
                                     int step) CCT_CHECKED; /* all lanes are through those before */
void cct_cuda_hosts_bound(struct cct_executor *x, int step);
enum cct_status cct_cuda_hosts_status(const struct cct_executor *x); /* of a lane that failed meanwhile */
/* Of a host lane, in lane order: when it was through with the step; -1: it is not, or there is but one lane. */
int64_t cct_cuda_hosts_lane_end(const struct cct_executor *x, int lane, int64_t step);
enum cct_status cct_cuda_hosts_step(struct cct_executor *x, int step) CCT_CHECKED;
enum cct_status cct_cuda_hosts_end(struct cct_executor *x, int steps, enum cct_status status) CCT_CHECKED;

/* cuda_cache.c: plans of bindings, found by what in them the host plans for. */
enum cct_status cct_cuda_cache_open(struct cct_executor *x) CCT_CHECKED; /* once */
void cct_cuda_cache_clear(struct cct_executor *x);                       /* addresses or graphs changed */
void cct_cuda_cache_close(struct cct_executor *x);
/* Gives `view`, whose slots are bound, its plan. A graph that is missing, since memory grew after its capture, is
 * captured when all is quiet; CCT_USAGE where memory or measurements are, which all ranks would have to stop for. */
enum cct_status cct_cuda_cache_plan(struct cct_executor *x, struct cct_executor *view, int step,
                                    const struct cct_binding *binding) CCT_CHECKED;

/* cuda_sequence.c */
/* Room for the largest copy that carries the binding; *grown_out: addresses changed. */
enum cct_status cct_cuda_carrier_provide(struct cct_executor *x, int *grown_out) CCT_CHECKED;
void cct_cuda_carrier_close(struct cct_executor *x);
enum cct_status cct_cuda_carried(struct cct_executor *x, cudaStream_t stream) CCT_CHECKED; /* the block, once there */
enum cct_status cct_cuda_sequence(struct cct_executor *x, struct cct_sequence *sequence,
                                  struct cct_burst *burst) CCT_CHECKED;

/* cuda_gemm.c */
enum cct_status cct_cuda_gemm_prepare(struct cct_executor *x, int id) CCT_CHECKED; /* handles, plans, pointer arrays */
enum cct_status cct_cuda_gemm(struct cct_executor *x, int id) CCT_CHECKED;
enum cct_status cct_cuda_attention_product(struct cct_executor *x, int id) CCT_CHECKED;
void cct_cuda_gemm_release(struct cct_executor *x);

/* cuda_nccl.c */
enum cct_status cct_cuda_communicator(struct cct_backend *backend, const struct cct_group *group, int lane,
                                      int is_copying,
                                      struct communicator **communicator_out) CCT_CHECKED; /* all ranks */
/* How far from its place in the first repetition an operand lies in repetition `rep`. */
int64_t cct_cuda_moved(const struct planned *plan, int rep);
int cct_cuda_is_in_place(const struct cct_op *op);
/* Those that the job needs, and each operation's; all ranks. */
enum cct_status cct_cuda_communicators_open(struct cct_executor *x) CCT_CHECKED;
enum cct_status cct_cuda_collective(struct cct_executor *x, int id, int rep) CCT_CHECKED;
enum cct_status cct_cuda_group(struct cct_executor *x, int id, int rep) CCT_CHECKED;
/* cuda_register.c: buffers made known to NCCL. All ranks. */
enum cct_status cct_cuda_buffer_allocate(struct storage *s, int64_t bytes) CCT_CHECKED;
void cct_cuda_buffer_free(struct storage *s);
void cct_cuda_buffer_keep(struct cct_backend *backend, struct storage *s); /* or frees it */
int cct_cuda_buffer_take(struct cct_backend *backend, struct storage *s);  /* one of s->need bytes; 0: none is kept */
void cct_cuda_buffers_forget(struct cct_backend *backend);
enum cct_status cct_cuda_buffers_register(struct cct_executor *x) CCT_CHECKED;
/* cuda_choice.c: what NCCL says about the program's first collective. All ranks. */
enum cct_status cct_cuda_choice(struct cct_executor *x, char *text, size_t n) CCT_CHECKED;
void cct_cuda_communicators_close(struct cct_backend *backend);
int cct_cuda_nccl_type(enum cct_type type, ncclDataType_t *type_out); /* 0: NCCL cannot add it */

/* cuda_p2p.c: the areas of one-shot and two-shot all-reduces, mapped by CUDA IPC. All ranks. */
enum cct_status cct_cuda_p2p_open(struct cct_backend *backend, struct communicator *c) CCT_CHECKED;
void cct_cuda_p2p_close(struct communicator *c);
enum cct_status cct_cuda_p2p_check(struct cct_executor *x) CCT_CHECKED; /* did every peer come in time? */

/* cuda_window.c: buffers that p2p copies read in other ranks' memory. Once, by all ranks, when buffers are there; from
 * then on those have their size. */
int cct_cuda_windows_wanted(const struct cct_executor *x);
int cct_cuda_window_is_read(const struct cct_executor *x, int buffer); /* by some rank */
enum cct_status cct_cuda_windows_open(struct cct_executor *x) CCT_CHECKED;
void cct_cuda_windows_close(struct cct_executor *x);
/* What the copy at entry `id` reads, if it is one; CCT_UNSUPPORTED: more than there is. */
enum cct_status cct_cuda_window_place(struct cct_executor *x, int id) CCT_CHECKED;

/* cuda_copy.c */
enum cct_status cct_cuda_bounce_prepare(struct cct_executor *x, int id) CCT_CHECKED;
double cct_cuda_seal_gb_s(const struct cct_backend *backend); /* 0: no bounce copy yet */
enum cct_status cct_cuda_copy(struct cct_executor *x, int id) CCT_CHECKED;
void cct_cuda_seal_close(struct cct_backend *backend);

/* cuda_graph.c */
int cct_cuda_graphs_missing(struct cct_executor *x);
enum cct_status cct_cuda_graphs_prepare(struct cct_executor *x) CCT_CHECKED; /* captures what this binding lacks */
enum cct_status cct_cuda_graphs_capture(struct cct_executor *x) CCT_CHECKED; /* the same, whatever is held */
enum cct_status cct_cuda_count_nodes(struct cct_executor *x) CCT_CHECKED;
enum cct_status
cct_cuda_graphs_renew(struct cct_executor *x) CCT_CHECKED; /* the fresh ones, before a burst; all ranks */
/* Captures the graph of entry `id` and throws it away. */
enum cct_status cct_cuda_graph_try(struct cct_executor *x, int id) CCT_CHECKED;
void cct_cuda_graphs_release(struct cct_executor *x);
/* Captures what `enqueue` enqueues on `stream` into a graph ready to launch. */
typedef enum cct_status cct_cuda_enqueue_fn(struct cct_executor *x, void *context);
enum cct_status cct_cuda_capture(struct cct_executor *x, cudaStream_t stream, cct_cuda_enqueue_fn *enqueue,
                                 void *context, cudaGraph_t *graph_out) CCT_CHECKED;

/* cuda_stamp.c: durations measured alone, for DELAY; and what the DELAY kernel itself costs. */
int cct_cuda_delays_missing(const struct cct_executor *x);
/* A DELAY's duration and own cost into its plan; without its stretch while `of` has not been measured. */
void cct_cuda_delay_plan(struct cct_executor *x, int id);
enum cct_status cct_cuda_delays_prepare(struct cct_executor *x) CCT_CHECKED;
void cct_cuda_clear_release(struct cct_executor *x);
/* Median ns that a spin kernel of `spin_ns` adds to its stream behind another kernel. */
enum cct_status cct_cuda_time_spin(struct cct_backend *backend, int64_t spin_ns, int in_graph,
                                   double *ns_out) CCT_CHECKED;
enum cct_status cct_cuda_spin_cost(struct cct_backend *backend) CCT_CHECKED;

/* cuda_beside.c: how many times as long a product takes beside a DELAY on another lane as alone; 0: no room to tell. */
enum cct_status cct_cuda_beside(struct cct_backend *backend, double *ratio_out) CCT_CHECKED;

/* What STAMP kernels wrote, in order. */
enum cct_status cct_cuda_stamps_reset(struct cct_backend *backend) CCT_CHECKED;
enum cct_status cct_cuda_stamps_read(struct cct_backend *backend, struct cct_stamp *stamps, int max,
                                     int *n_out) CCT_CHECKED;
/* The time between the two stamps that were written since the reset, once they are; CCT_STOPPED: there are not two. */
enum cct_status cct_cuda_stamps_between(struct cct_backend *backend, double *ns_out) CCT_CHECKED;

/* cuda_trace.c */
enum cct_status cct_cuda_trace_open(struct cct_executor *x) CCT_CHECKED;
enum cct_status cct_cuda_trace_begin(struct cct_executor *x) CCT_CHECKED;   /* before a burst */
void cct_cuda_trace_host(struct cct_executor *x, int id, int64_t start_ns); /* of a host entry that ends now */
enum cct_status cct_cuda_trace(struct cct_executor *x, int owned, struct cct_span *spans);
void cct_cuda_trace_close(struct cct_executor *x);

/* cuda_children.c. In a child of an experiment: does what it was started for and ends the process. Else nothing. */
void cct_cuda_child_trial(void);

/* cuda_facts.c, cuda_verify.c, cuda_experiment.c: the backend's entries of the same names */
int cct_cuda_facts(struct cct_backend *backend, struct cct_fact *facts, int max);
enum cct_status cct_cuda_verify(struct cct_executor *x, const struct cct_binding *bindings,
                                struct cct_wrong *wrong_out);
enum cct_status cct_cuda_experiment(struct cct_backend *backend, const char *name, const double *parameters,
                                    int n_parameters, double *series, int max, int *n_out);

static inline int is_gpu_lane(const struct cct_program *program, int lane) {
  return lane >= 0 && program->lanes[lane].kind == CCT_LANE_STREAM;
}
/* What this step, or the one before, leaves out: nobody waits for it. */
static inline int is_left_out(const struct cct_executor *x, int id, int is_previous) {
  return is_previous ? x->before[id].is_out : x->plan[id].is_out;
}
/* What a host lane hands to a GPU lane as a whole. */
static inline int is_unit(const struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  return (cct_op_is_gpu(op) || cct_op_is_submission(op)) && !x->plan[id].in_graph && !x->plan[id].in_group;
}

#endif
