/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

/* ---- names ---- */

#define NAME(id, name, ...) [id] = name,
static const char *const op_names[] = {
#define ROW(id, name) NAME(CCT_OP_##id, name)
    CCT_OPS(ROW)
#undef ROW
};
static const char *const collective_names[] = {
#define ROW(id, name, factor) NAME(CCT_COLL_##id, name)
    CCT_COLLECTIVES(ROW)
#undef ROW
};
static const char *const algorithm_names[] = {
#define ROW(id, name) NAME(CCT_ALGORITHM_##id, name)
    CCT_ALGORITHMS(ROW)
#undef ROW
};
static const char *const reduction_names[] = {
#define ROW(id, name) NAME(CCT_REDUCTION_##id, name)
    CCT_REDUCTIONS(ROW)
#undef ROW
};
static const char *const registration_names[] = {
#define ROW(id, name) NAME(CCT_REGISTRATION_##id, name)
    CCT_REGISTRATIONS(ROW)
#undef ROW
};
static const char *const direction_names[] = {
#define ROW(id, name) NAME(CCT_COPY_##id, name)
    CCT_DIRECTIONS(ROW)
#undef ROW
};
static const char *const memory_names[] = {
#define ROW(id, name) NAME(CCT_MEM_##id, name)
    CCT_MEMORIES(ROW)
#undef ROW
};
static const struct {
  const char *name;
  int bits, significand_bits;
} types[] = {
#define ROW(id, name, bits, significand) [CCT_TYPE_##id] = {name, bits, significand},
    CCT_TYPES(ROW)
#undef ROW
};

const char *cct_op_name(enum cct_op_kind kind) {
  return op_names[kind];
}

const char *cct_type_name(enum cct_type type) {
  return types[type].name;
}

const char *cct_collective_name(enum cct_collective kind) {
  return collective_names[kind];
}

const char *cct_algorithm_name(enum cct_algorithm algorithm) {
  return algorithm_names[algorithm];
}

const char *cct_reduction_name(enum cct_reduction reduction) {
  return reduction_names[reduction];
}

const char *cct_registration_name(enum cct_registration registration) {
  return registration_names[registration];
}

const char *cct_direction_name(enum cct_direction direction) {
  return direction_names[direction];
}

const char *cct_memory_name(enum cct_memory memory) {
  return memory_names[memory];
}

int cct_type_bits(enum cct_type type) {
  return types[type].bits;
}

int cct_type_significand_bits(enum cct_type type) {
  return types[type].significand_bits;
}

int cct_collective_reduces(enum cct_collective kind) {
  return kind == CCT_COLL_ALL_REDUCE || kind == CCT_COLL_REDUCE_SCATTER || kind == CCT_COLL_REDUCE;
}

double cct_collective_factor(enum cct_collective kind, int n) {
  switch (kind) {
#define ROW(id, name, factor)                                                                                          \
  case CCT_COLL_##id:                                                                                                  \
    return factor;
    CCT_COLLECTIVES(ROW)
#undef ROW
  case CCT_COLL_COUNT:
    break;
  }
  return 0;
}

static int by_name(const char *name, const char *const *names, int n) {
  for (int i = 0; i < n; i++)
    if (!strcmp(names[i], name))
      return i;
  return -1;
}

int cct_op_by_name(const char *name) {
  return by_name(name, op_names, CCT_OP_COUNT);
}

int cct_collective_by_name(const char *name) {
  return by_name(name, collective_names, CCT_COLL_COUNT);
}

int cct_reduction_by_name(const char *name) {
  return by_name(name, reduction_names, CCT_REDUCTION_COUNT);
}

int cct_type_by_name(const char *name) {
  for (int i = 0; i < CCT_TYPE_COUNT; i++)
    if (!strcmp(types[i].name, name))
      return i;
  return -1;
}

/* ---- groups ---- */

int cct_group_index(const struct cct_group *group, int rank) {
  return rank / group->stride % group->size;
}

int cct_group_member(const struct cct_group *group, int rank, int index) {
  return rank + (index - cct_group_index(group, rank)) * group->stride;
}

int cct_op_peer(const struct cct_job *job, const struct cct_op *op, int rank) {
  if (op->kind == CCT_OP_COPY)
    return cct_group_member(&job->groups[op->copy.group], rank, op->copy.peer);
  const struct cct_group *group = &job->groups[op->p2p.group];
  int index = (cct_group_index(group, rank) + op->p2p.peer_offset % group->size + group->size) % group->size;
  return cct_group_member(group, rank, index);
}

/* ---- building ---- */

struct cct_name_block { /* names stay where they are while the arrays grow */
  struct cct_name_block *next;
  size_t used;
  char text[4096];
};

struct cct_program_store {
  size_t lanes, slots, buffers, ops, waits; /* capacities */
  struct cct_name_block *names;
  int open[16], n_open; /* brackets not yet closed, so that END knows what it closes */
};

enum cct_status cct_program_new(const char *name, struct cct_program **program_out) {
  struct cct_program *program = calloc(1, sizeof *program);
  struct cct_program_store *store = calloc(1, sizeof *store);
  if (!program || !store) {
    free(program);
    free(store);
    return cct_fail(CCT_NOMEM, "program '%s': out of memory", name);
  }
  strncpy(program->name, name, sizeof program->name - 1);
  program->store = store;
  *program_out = program;
  return CCT_OK;
}

void cct_program_free(struct cct_program *program) {
  if (!program)
    return;
  for (struct cct_name_block *block = program->store->names, *next; block; block = next) {
    next = block->next;
    free(block);
  }
  free(program->lanes);
  free(program->slots);
  free(program->buffers);
  free(program->ops);
  free(program->waits);
  free(program->store);
  free(program);
}

static int reserve(struct cct_program *program, void **items, size_t *capacity, int need, size_t size) {
  if (!program->is_failed && cct_grow(items, capacity, (size_t)need, size) != CCT_OK)
    program->is_failed = 1;
  return !program->is_failed;
}

static const char *keep_name(struct cct_program *program, const char *name) {
  struct cct_name_block *block = program->store->names;
  size_t length = strnlen(name ? name : "", sizeof block->text - 1);
  if (!length)
    return "";
  if (!block || block->used + length + 1 > sizeof block->text) {
    block = malloc(sizeof *block);
    if (!block) {
      program->is_failed = 1;
      return "";
    }
    block->next = program->store->names;
    block->used = 0;
    program->store->names = block;
  }
  char *kept = block->text + block->used;
  memcpy(kept, name, length);
  kept[length] = '\0';
  block->used += length + 1;
  return kept;
}

int cct_program_add_lane(struct cct_program *program, const char *name, enum cct_lane_kind kind) {
  if (!reserve(program, (void **)&program->lanes, &program->store->lanes, program->n_lanes + 1, sizeof *program->lanes))
    return 0;
  struct cct_lane *lane = &program->lanes[program->n_lanes];
  *lane = (struct cct_lane){.kind = kind};
  strncpy(lane->name, name, sizeof lane->name - 1);
  return program->n_lanes++;
}

int cct_program_add_slot(struct cct_program *program, const char *name, int64_t value) {
  if (!reserve(program, (void **)&program->slots, &program->store->slots, program->n_slots + 1, sizeof *program->slots))
    return 0;
  struct cct_slot *slot = &program->slots[program->n_slots];
  *slot = (struct cct_slot){.value = value};
  strncpy(slot->name, name, sizeof slot->name - 1);
  return program->n_slots++;
}

int cct_program_add_buffer(struct cct_program *program, const char *name, struct cct_quantity bytes,
                           enum cct_memory memory, int is_weight) {
  if (!reserve(program, (void **)&program->buffers, &program->store->buffers, program->n_buffers + 1,
               sizeof *program->buffers))
    return 0;
  struct cct_buffer *buffer = &program->buffers[program->n_buffers];
  *buffer = (struct cct_buffer){.bytes = bytes, .memory = memory, .is_weight = is_weight};
  strncpy(buffer->name, name, sizeof buffer->name - 1);
  return program->n_buffers++;
}

void cct_program_set_buffer(struct cct_program *program, int buffer, int is_rotated,
                            enum cct_registration registration) {
  if (program->is_failed)
    return;
  program->buffers[buffer].is_rotated = is_rotated;
  program->buffers[buffer].registration = registration;
}

int cct_program_add(struct cct_program *program, const struct cct_op *op, const struct cct_wait *waits, int n_waits) {
  struct cct_program_store *store = program->store;
  if (!reserve(program, (void **)&program->ops, &store->ops, program->n_ops + 1, sizeof *program->ops) ||
      !reserve(program, (void **)&program->waits, &store->waits, program->n_waits + n_waits, sizeof *program->waits))
    return 0;
  struct cct_op *added = &program->ops[program->n_ops];
  *added = *op;
  added->name = keep_name(program, op->name);
  added->first_wait = program->n_waits;
  added->in_case = -1;
  for (int i = 0; i < store->n_open; i++)
    if (program->ops[store->open[i]].kind == CCT_OP_CASE)
      added->in_case = store->open[i];
  added->n_waits = n_waits;
  if (n_waits)
    memcpy(program->waits + program->n_waits, waits, (size_t)n_waits * sizeof *waits);
  program->n_waits += n_waits;
  int depth = (int)(sizeof store->open / sizeof *store->open);
  if (op->kind == CCT_OP_END)
    added->end.opens = store->n_open > 0 ? store->open[--store->n_open] : -1;
  else if ((op->kind == CCT_OP_GRAPH || op->kind == CCT_OP_PHASE || op->kind == CCT_OP_GROUP ||
            op->kind == CCT_OP_CASE) &&
           store->n_open < depth)
    store->open[store->n_open++] = program->n_ops;
  if (op->kind == CCT_OP_COLLECTIVE && op->collective.matrix >= program->n_matrices)
    program->n_matrices = op->collective.matrix + 1;
  return program->n_ops++;
}

int cct_op_is_gpu(const struct cct_op *op) {
  switch (op->kind) {
  case CCT_OP_GEMM:
  case CCT_OP_ATTENTION:
  case CCT_OP_ELEMENTWISE:
  case CCT_OP_COLLECTIVE:
  case CCT_OP_SEND:
  case CCT_OP_RECV:
  case CCT_OP_COPY:
  case CCT_OP_LAUNCH:
  case CCT_OP_STAMP:
    return 1;
  case CCT_OP_DELAY:
    return op->lane >= 0;
  default:
    return 0;
  }
}

int cct_op_is_submission(const struct cct_op *op) {
  return op->kind == CCT_OP_GRAPH || op->kind == CCT_OP_GROUP || (cct_op_is_gpu(op) && op->kind != CCT_OP_DELAY);
}

int cct_case_compare(const struct cct_op *a, const struct cct_op *b) {
  if (!a || !b)
    return (a != NULL) - (b != NULL);
  if (a->when.slot != b->when.slot)
    return a->when.slot < b->when.slot ? -1 : 1;
  return (a->when.value > b->when.value) - (a->when.value < b->when.value);
}

int cct_program_host_lanes(const struct cct_program *program) {
  int n = 0;
  for (int lane = 0; lane < program->n_lanes; lane++)
    n += program->lanes[lane].kind == CCT_LANE_HOST;
  return n;
}

/* ---- jobs ---- */

enum cct_status cct_job_new(int ranks, struct cct_job **job_out) {
  struct cct_job *job = calloc(1, sizeof *job);
  if (!job)
    return cct_fail(CCT_NOMEM, "job of %d ranks: out of memory", ranks);
  job->ranks = ranks;
  *job_out = job;
  return CCT_OK;
}

void cct_job_free(struct cct_job *job) {
  if (!job)
    return;
  for (int i = 0; i < job->n_roles; i++)
    cct_program_free(job->roles[i].program);
  free(job->roles);
  free(job);
}

int cct_choice_parse(const char *text, struct cct_choice *choice_out) {
  struct cct_choice choice = {.channels = 0};
  char channels[16] = "", rest = '\0';
  int64_t n = 0;
  *choice_out = choice;
  if (!*text)
    return 1;
  if (sscanf(text, "%15[a-zA-Z0-9_]/%15[a-zA-Z0-9_]/%15[a-z0-9]%c", choice.algorithm, choice.protocol, channels,
             &rest) != 3)
    return 0;
  if (strcmp(channels, "default") && (!cct_parse_i64(channels, &n) || n < 1 || n > 64))
    return 0;
  choice.channels = (int)n;
  if (!strcmp(choice.algorithm, "default"))
    choice.algorithm[0] = '\0';
  if (!strcmp(choice.protocol, "default"))
    choice.protocol[0] = '\0';
  *choice_out = choice;
  return 1;
}

int cct_job_add_group(struct cct_job *job, const char *name, int size, int stride) {
  for (int i = 0; i < job->n_groups; i++)
    if (job->groups[i].size == size && job->groups[i].stride == stride && !*job->groups[i].choice &&
        !strcmp(job->groups[i].name, name))
      return i;
  if (job->n_groups == (int)(sizeof job->groups / sizeof *job->groups))
    return -1;
  struct cct_group *group = &job->groups[job->n_groups];
  *group = (struct cct_group){.size = size, .stride = stride};
  strncpy(group->name, name, sizeof group->name - 1);
  return job->n_groups++;
}

enum cct_status cct_job_add_role(struct cct_job *job, struct cct_program *program, int first, int count) {
  struct cct_role *roles = realloc(job->roles, (size_t)(job->n_roles + 1) * sizeof *roles);
  if (!roles)
    return cct_fail(CCT_NOMEM, "program '%s': out of memory", program->name);
  job->roles = roles;
  job->roles[job->n_roles++] = (struct cct_role){.program = program, .first = first, .count = count};
  return CCT_OK;
}

const struct cct_role *cct_job_role(const struct cct_job *job, int rank) {
  for (int i = 0; i < job->n_roles; i++)
    if (rank >= job->roles[i].first && rank - job->roles[i].first < job->roles[i].count)
      return &job->roles[i];
  return NULL;
}

int cct_job_host_lanes(const struct cct_job *job) {
  int most = 0;
  for (int i = 0; i < job->n_roles; i++) {
    int n = cct_program_host_lanes(job->roles[i].program);
    most = n > most ? n : most;
  }
  return most;
}
