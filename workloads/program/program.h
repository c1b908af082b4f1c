/* SPDX-License-Identifier: Apache-2.0
 * A step program: what one rank does in one step, as data. A workload builds a template once; binding a step writes its
 * slots and allocates nothing. From the one array follow running it, predicting it, the counts that explain its cost,
 * and what --dry-run prints.
 *
 * An operation runs on a LANE: a GPU stream or a host thread. A GPU operation is SUBMITTED by a host lane: one
 * submission, except that a GROUP or GRAPH is submitted once as a whole and DELAY never is (it stands for time, not for
 * work).
 *
 * When an operation starts and ends (every backend's order, and sim's exact law; times are int64 ns, each duration
 * rounded once, at binding). H(h) and G(l) are the end of what host lane h and GPU lane l did so far, 0 at the start of
 * a burst:
 * 1. A host lane runs its entries in array order. A submission takes its submission time there: H(h) += submit. A GPU
 *    lane's DELAY is handed over at H(h) and takes none.
 * 2. A GPU operation starts at max(end of its submission, G(lane), end of every wait); G(lane) = its end. Lanes do not
 *    slow each other. A blocking COPY (it says so, or this machine's copies of its kind block) moves H(h) to its own
 *    end. HOSTWORK and a host lane's DELAY start at max(H(h), waits).
 * 3. A wait names an earlier entry, or `prev:ID`: entry ID of the repetition before (no constraint in the first).
 * 4. A COLLECTIVE starts for all members of its group at the latest member's ready time and ends for all after the
 *    longest member's duration. The n-th of a group is the same on each member. SEND and RECV: the same with two
 *    members; the n-th SEND of a to b within a group meets the n-th RECV of b from a.
 * 5. GROUP holds only SEND and RECV, which run side by side from the group's start, or only COLLECTIVEs, which follow
 *    each other. Its members stand on its lane and host lane and have no waits of their own; the group's end is its
 *    last end.
 * 6. GRAPH: its host lane pays graph_launch + nodes * per_node (nodes: GPU operations inside, a GROUP counted once,
 *    DELAY not); it starts at max(that end, G(its lane), its waits). Inside, lanes are the graph's own branches, empty
 *    at its start: an operation starts at max(branch, waits). At its END G(its lane) = the last end inside; other lanes
 *    are untouched. Inside there is no SYNC, HOSTWORK, host DELAY, GRAPH, pageable, bounce or blocking COPY, and no
 *    wait crosses its edge.
 * 7. SYNC ends at max(H(h), G(named lane), waits) + sync; H(h) = that.
 * 8. Repetitions of a burst run on without a barrier; no limit on queued submissions (a real GPU takes about 1024). A
 *    burst ends at max over all lanes, plus one sync. Steps of a sequence (backend.h) follow each other in the same
 *    way, each with a binding of its own.
 * 9. CASE: what it holds is performed only where the bound value of `slot` is `value`. Elsewhere it is not there: no
 *    time, no submission, every wait on it satisfied (a prev: wait, when the repetition before did not perform it). It
 *    holds anything but a CASE and stands neither in a GRAPH nor in a GROUP; waits may cross its edges. The n-th of
 *    law 4 is counted within (slot, value), slots named by number; members of a group bind equal values to them. */
#ifndef CCT_WORKLOADS_PROGRAM_PROGRAM_H
#define CCT_WORKLOADS_PROGRAM_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* ID, name in JSON and messages */
#define CCT_OPS(X)                                                                                                     \
  X(GEMM, "gemm")               /* groups x (m x k)(k x n) */                                                          \
  X(ATTENTION, "attention")     /* flops, and the KV bytes it streams */                                               \
  X(ELEMENTWISE, "elementwise") /* bytes of HBM it reads and writes */                                                 \
  X(COLLECTIVE, "collective")                                                                                          \
  X(SEND, "send")                                                                                                      \
  X(RECV, "recv")                                                                                                      \
  X(COPY, "copy")                                                                                                      \
  X(LAUNCH, "launch")     /* an empty kernel */                                                                        \
  X(SYNC, "sync")         /* `host` waits for `lane` */                                                                \
  X(HOSTWORK, "hostwork") /* the host lane computes for `ns` */                                                        \
  X(DELAY, "delay")       /* the lane (or, lane -1, the host lane) is held */                                          \
  X(STAMP, "stamp")       /* a kernel that writes %globaltimer */                                                      \
  X(GRAPH, "graph")       /* brackets: an END closes the innermost */                                                  \
  X(PHASE, "phase")                                                                                                    \
  X(GROUP, "group")                                                                                                    \
  X(CASE, "case")                                                                                                      \
  X(END, "end")
enum cct_op_kind {
#define CCT_OP_ENUM(id, name) CCT_OP_##id,
  CCT_OPS(CCT_OP_ENUM)
#undef CCT_OP_ENUM
  CCT_OP_COUNT
};

#define CCT_TYPES(X) /* ID, name, bits an element, significand bits with the hidden one */                             \
  X(FP32, "fp32", 32, 24)                                                                                              \
  X(BF16, "bf16", 16, 8)                                                                                               \
  X(FP16, "fp16", 16, 11)                                                                                              \
  X(FP8, "fp8", 8, 4) /* e4m3 */                                                                                       \
  X(FP8_E5M2, "fp8_e5m2", 8, 3)                                                                                        \
  X(NVFP4, "nvfp4", 4, 2) /* its block scales are counted where it is stored, not here */                              \
  X(INT32, "int32", 32, 31)                                                                                            \
  X(INT8, "int8", 8, 7)
enum cct_type {
#define CCT_TYPE_ENUM(id, ...) CCT_TYPE_##id,
  CCT_TYPES(CCT_TYPE_ENUM)
#undef CCT_TYPE_ENUM
  CCT_TYPE_COUNT
};

/* ID, name, busbw factor for n ranks as nccl-tests defines it (PERFORMANCE.md): wire bytes = bytes * factor */
#define CCT_COLLECTIVES(X)                                                                                             \
  X(ALL_REDUCE, "all_reduce", 2.0 * (n - 1) / n)                                                                       \
  X(ALL_GATHER, "all_gather", (double)(n - 1) / n)                                                                     \
  X(REDUCE_SCATTER, "reduce_scatter", (double)(n - 1) / n)                                                             \
  X(ALL_TO_ALL, "all_to_all", (double)(n - 1) / n)                                                                     \
  X(ALL_TO_ALLV, "all_to_allv", (double)(n - 1) / n)                                                                   \
  X(BROADCAST, "broadcast", n > 1 ? 1.0 : 0.0)                                                                         \
  X(REDUCE, "reduce", n > 1 ? 1.0 : 0.0)
enum cct_collective {
#define CCT_COLLECTIVE_ENUM(id, ...) CCT_COLL_##id,
  CCT_COLLECTIVES(CCT_COLLECTIVE_ENUM)
#undef CCT_COLLECTIVE_ENUM
  CCT_COLL_COUNT
};

/* What a reducing collective makes of its inputs; the mean of integers is rounded towards zero, as NCCL's is. */
#define CCT_REDUCTIONS(X) X(SUM, "sum") X(PROD, "prod") X(MIN, "min") X(MAX, "max") X(AVG, "avg")
enum cct_reduction {
#define CCT_REDUCTION_ENUM(id, name) CCT_REDUCTION_##id,
  CCT_REDUCTIONS(CCT_REDUCTION_ENUM)
#undef CCT_REDUCTION_ENUM
  CCT_REDUCTION_COUNT
};

/* Who performs an all-reduce: the collective library, or a P2P kernel over IPC as serving engines use. */
#define CCT_ALGORITHMS(X) X(AUTO, "auto") X(ONESHOT, "oneshot") X(TWOSHOT, "twoshot")
enum cct_algorithm {
#define CCT_ALGORITHM_ENUM(id, name) CCT_ALGORITHM_##id,
  CCT_ALGORITHMS(CCT_ALGORITHM_ENUM)
#undef CCT_ALGORITHM_ENUM
  CCT_ALGORITHM_COUNT
};

/* p2p: from the memory of another member of a group, which has no part in it */
#define CCT_DIRECTIONS(X) X(H2D, "h2d") X(D2H, "d2h") X(D2D, "d2d") X(P2P, "p2p")
enum cct_direction {
#define CCT_DIRECTION_ENUM(id, name) CCT_COPY_##id,
  CCT_DIRECTIONS(CCT_DIRECTION_ENUM)
#undef CCT_DIRECTION_ENUM
  CCT_DIRECTION_COUNT
};

#define CCT_MEMORIES(X) X(PINNED, "pinned") X(PAGEABLE, "pageable") X(MAPPED, "mapped") X(DEVICE, "device")
enum cct_memory {
#define CCT_MEMORY_ENUM(id, name) CCT_MEM_##id,
  CCT_MEMORIES(CCT_MEMORY_ENUM)
#undef CCT_MEMORY_ENUM
  CCT_MEMORY_COUNT
};

/* How the collective library knows a buffer; nccl-tests' -R, and with `ce` also copy engines instead of kernels. */
#define CCT_REGISTRATIONS(X) X(NONE, "0") X(LOCAL, "1") X(SYMMETRIC, "2") X(COPY_ENGINE, "ce")
enum cct_registration {
#define CCT_REGISTRATION_ENUM(id, name) CCT_REGISTRATION_##id,
  CCT_REGISTRATIONS(CCT_REGISTRATION_ENUM)
#undef CCT_REGISTRATION_ENUM
  CCT_REGISTRATION_COUNT
};

const char *cct_op_name(enum cct_op_kind kind);
const char *cct_type_name(enum cct_type type);
const char *cct_collective_name(enum cct_collective kind);
const char *cct_algorithm_name(enum cct_algorithm algorithm);
const char *cct_reduction_name(enum cct_reduction reduction);
const char *cct_registration_name(enum cct_registration registration);
const char *cct_direction_name(enum cct_direction direction);
const char *cct_memory_name(enum cct_memory memory);
int cct_type_bits(enum cct_type type);
int cct_type_significand_bits(enum cct_type type);
int cct_collective_reduces(enum cct_collective kind); /* its inputs are added up, or otherwise reduced */
double cct_collective_factor(enum cct_collective kind, int n);
/* The id of a name, or -1. */
int cct_op_by_name(const char *name);
int cct_type_by_name(const char *name);
int cct_collective_by_name(const char *name);
int cct_reduction_by_name(const char *name);

/* base + per * slot value; slot -1 means the constant `base`. */
struct cct_quantity {
  int64_t base, per;
  int slot;
};
static inline struct cct_quantity cct_constant(int64_t value) {
  return (struct cct_quantity){value, 0, -1};
}
static inline struct cct_quantity cct_per_slot(int64_t per, int slot) {
  return (struct cct_quantity){0, per, slot};
}

/* Ranks r whose r / stride / size agree and whose r % stride agree: `size` members, `stride` apart. In tp-fastest order
 * the TP group is (tp, 1), EP (ep, 1), DP (dp, tp), the replicas of an expert shard (ranks/ep, ep). */
struct cct_group {
  char name[16];
  int size, stride;
  char choice[40]; /* what its communicator leaves the library no choice of, ALGORITHM/PROTOCOL/CHANNELS, each may be
                      "default"; "": nothing */
};

struct cct_choice {
  char algorithm[16], protocol[16]; /* "": the library's own */
  int channels;                     /* 0: the library's own number */
};
/* Reads "ring/ll128/32"; "" is the library's own everything. 0: it is of no such form. */
int cct_choice_parse(const char *text, struct cct_choice *choice_out);
int cct_group_index(const struct cct_group *group, int rank); /* 0..size-1 */
int cct_group_member(const struct cct_group *group, int rank,
                     int index); /* the rank of member `index` of rank's group */

struct cct_wait {
  int id;
  int is_previous; /* of the repetition before */
};

struct cct_op {
  enum cct_op_kind kind;
  int lane; /* index of a GPU lane; -1: none (HOSTWORK, a host DELAY, PHASE, CASE) */
  int host; /* index of the host lane that submits or performs it; -1 inside a GRAPH and for PHASE, CASE, END */
  int first_wait, n_waits; /* in cct_program.waits */
  int reads[2], writes;    /* buffer ids, -1: none */
  int in_case;             /* id of the CASE it stands in, -1: none; set by cct_program_add */
  const char *name;        /* in the program's arena; never NULL */
  union {
    struct {
      struct cct_quantity m;
      int64_t n, k;
      int groups; /* 1: a plain GEMM; more: grouped experts, m rows EACH */
      enum cct_type type;
    } gemm;
    struct {
      struct cct_quantity flops, kv_bytes;
      enum cct_type type;
    } attention;
    struct {
      struct cct_quantity bytes;
    } elementwise;
    struct { /* bytes as nccl-tests counts them: all-gather and reduce-scatter the total, all-to-all what a rank sends
              */
      enum cct_collective kind;
      int group;
      struct cct_quantity bytes;
      enum cct_type type;
      enum cct_algorithm algorithm;
      enum cct_reduction reduction;
      int root;   /* BROADCAST, REDUCE: a member's index */
      int matrix; /* ALL_TO_ALLV: id of the traffic matrix in the binding; -1: uniform */
    } collective;
    struct { /* SEND, RECV: peer = member (own index + offset) mod size */
      int group, peer_offset;
      struct cct_quantity bytes;
    } p2p;
    struct {
      enum cct_direction direction;
      enum cct_memory memory; /* the host side's kind */
      struct cct_quantity bytes;
      int is_blocking; /* the call returns at its end */
      int is_bounce;   /* set by emulate(): encrypted in chunks by one thread */
      /* H2D, pinned: brings the step's bound slots to where kernels read them; in a sequence its source is one of a
       * ring of blocks that begin with the slots, so that they change in stream order. */
      int carries_binding;
      /* P2P: reads buffer reads[0], in the GPU memory of member `peer` of the group, which does not wait for it and is
       * not waited for: whoever binds the step knows that what is read is there. */
      int group, peer;
    } copy;
    struct {
      int64_t ns;
    } hostwork;
    struct { /* duration = ns + stretch * duration of `of` measured alone; `of` -1: ns only */
      int64_t ns;
      double stretch;
      int of;
    } delay;
    struct {
      int key;      /* one captured graph a key */
      int is_fresh; /* instantiated anew before each burst, so that its first launch pays what a first launch pays */
    } graph;
    struct { /* CASE: what it holds is performed where the bound value of `slot` is `value` */
      int slot;
      int64_t value;
    } when;
    struct {
      int opens; /* id of the bracket it closes */
    } end;
  };
};

enum cct_lane_kind {
  CCT_LANE_STREAM,
  CCT_LANE_HOST,
};
struct cct_lane {
  char name[24];
  enum cct_lane_kind kind;
};

struct cct_slot {
  char name[24];
  int64_t value; /* the template's default binding */
};

struct cct_buffer {
  char name[32];
  struct cct_quantity bytes;
  enum cct_memory memory;
  int is_weight; /* counted as weights; larger than L2 together, so that no step reads a warm cache */
  /* Of collectives: use k of a burst, counted over entries and repetitions, begins at (k mod (bytes / size)) x size. */
  int is_rotated;
  enum cct_registration registration;
};

/* One role of rank. Lanes, slots, buffers and entries are indexed from 0 in the order they were added. */
struct cct_program {
  char name[48];
  struct cct_lane *lanes;
  struct cct_slot *slots;
  struct cct_buffer *buffers;
  struct cct_op *ops;
  struct cct_wait *waits;
  int n_lanes, n_slots, n_buffers, n_ops, n_waits, n_matrices;
  int is_failed; /* an allocation failed while building; cct_program_check says so */
  struct cct_program_store *store;
};

/* ranks first .. first+count-1 perform `program` */
struct cct_role {
  struct cct_program *program; /* owned by the job */
  int first, count;
};

/* What all ranks of a cell do. */
struct cct_job {
  int ranks;
  struct cct_group groups[12];
  int n_groups;
  struct cct_role *roles;
  int n_roles;
};

/* A traffic matrix: bytes[i * n + j] from group member i to member j. */
struct cct_matrix {
  int n;
  int64_t *bytes;
};

/* The values of one step: n_slots of them, and n_matrices matrices. Borrowed. */
struct cct_binding {
  const int64_t *slots;
  const struct cct_matrix *matrices;
};

/* ---- building: ids are returned; a failed allocation sets is_failed and later calls do nothing ---- */
enum cct_status cct_program_new(const char *name, struct cct_program **program_out) CCT_CHECKED;
void cct_program_free(struct cct_program *program); /* NULL-safe */
int cct_program_add_lane(struct cct_program *program, const char *name, enum cct_lane_kind kind);
int cct_program_add_slot(struct cct_program *program, const char *name, int64_t value);
int cct_program_add_buffer(struct cct_program *program, const char *name, struct cct_quantity bytes,
                           enum cct_memory memory, int is_weight);
/* Sets what cct_program_add_buffer leaves 0. */
void cct_program_set_buffer(struct cct_program *program, int buffer, int is_rotated,
                            enum cct_registration registration);
/* Appends a copy of `op` (its first_wait and n_waits are set here, its name is copied) with `n_waits` waits. */
int cct_program_add(struct cct_program *program, const struct cct_op *op, const struct cct_wait *waits, int n_waits);

enum cct_status cct_job_new(int ranks, struct cct_job **job_out) CCT_CHECKED;
void cct_job_free(struct cct_job *job); /* NULL-safe; frees the programs */
/* Id of the group; -1 when there are already 12. An equal one of that name is reused. */
int cct_job_add_group(struct cct_job *job, const char *name, int size, int stride);
enum cct_status cct_job_add_role(struct cct_job *job, struct cct_program *program, int first, int count) CCT_CHECKED;
const struct cct_role *cct_job_role(const struct cct_job *job, int rank);
int cct_program_host_lanes(const struct cct_program *program);
int cct_job_host_lanes(const struct cct_job *job); /* the most that a role has */

static inline int64_t cct_quantity_value(struct cct_quantity quantity, const struct cct_binding *binding) {
  return quantity.base + (quantity.slot < 0 ? 0 : quantity.per * binding->slots[quantity.slot]);
}
/* Law 9: it stands in no CASE, or in one whose slot is bound to its value. */
static inline int cct_op_is_performed(const struct cct_program *program, const struct cct_op *op,
                                      const struct cct_binding *binding) {
  const struct cct_op *in = op->in_case < 0 ? NULL : &program->ops[op->in_case];
  return !in || binding->slots[in->when.slot] == in->when.value;
}
/* The CASE that it stands in, NULL: none; and the order of two such by slot and value, none first. */
static inline const struct cct_op *cct_op_case(const struct cct_program *program, const struct cct_op *op) {
  return op->in_case < 0 ? NULL : &program->ops[op->in_case];
}
int cct_case_compare(const struct cct_op *a, const struct cct_op *b);
/* The copy crosses between host and device: what bounces, blocks and has a kind of host memory. */
static inline int cct_copy_is_host(enum cct_direction direction) {
  return direction == CCT_COPY_H2D || direction == CCT_COPY_D2H;
}
/* The rank that a SEND, RECV or p2p COPY of `rank` names. */
int cct_op_peer(const struct cct_job *job, const struct cct_op *op, int rank);
int cct_op_is_gpu(const struct cct_op *op);        /* runs on a GPU lane (not SYNC, brackets) */
int cct_op_is_submission(const struct cct_op *op); /* costs a submission when outside GRAPH and GROUP */

/* Refuses what cannot be performed, naming program, entry and reason in one line (CCT_USAGE): ids out of range, waits
 * on later entries or on PHASE/CASE/END, broken brackets, what law 5, 6 and 9 forbid, a SEND or RECV outside a GROUP, a
 * pageable copy in a graph, a COLLECTIVE inside a GRAPH and its group elsewhere outside, members of a group whose n-th
 * collectives differ, sends without their receives, and an unjoined lane: a GPU lane, other than the program's first,
 * whose last operation no SYNC, no wait of another lane and no prev: wait names; each of these for every value that
 * CASEs tell apart. */
enum cct_status cct_job_check(const struct cct_job *job) CCT_CHECKED;

/* JSON: as --dry-run --json prints a job, and read back with every error by path. program_json.c */
struct cct_json;
enum cct_status cct_job_to_json(const struct cct_job *job, struct cct_json **document_out) CCT_CHECKED;
struct cct_json_at;
enum cct_status cct_job_from_json(const struct cct_json_at *at, struct cct_job **job_out) CCT_CHECKED;
/* SHA-256 of the canonical JSON: the program digest. */
enum cct_status cct_job_digest(const struct cct_job *job, char hex_out[65]) CCT_CHECKED;

#endif
