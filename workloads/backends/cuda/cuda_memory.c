/* SPDX-License-Identifier: Apache-2.0
 * The buffers of a program: what each operation needs of them, their memory, and the slices of weights and KV caches.
 */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/text.h"
#include "workloads/backends/cuda/cuda_room.h"

int64_t cct_cuda_type_bytes(enum cct_type type, int64_t elements) {
  return elements * cct_type_bits(type) / 8;
}

enum cct_status cct_cuda_clear(void *at, int byte, size_t n) {
  enum cct_status status = CCT_CUDA(cudaMemset(at, byte, n));
  return status ? status : CCT_CUDA(cudaStreamSynchronize(NULL));
}

enum cct_status cct_cuda_upload(void *to, const void *from, size_t n) {
  enum cct_status status = CCT_CUDA(cudaMemcpy(to, from, n, cudaMemcpyHostToDevice));
  return status ? status : CCT_CUDA(cudaStreamSynchronize(NULL));
}

struct needs { /* bytes of an operation's operands */
  int64_t in[2], out;
};

static struct needs gemm_needs(const struct cct_op *op, int64_t m) {
  int is_fp8 = op->gemm.type == CCT_TYPE_FP8 || op->gemm.type == CCT_TYPE_FP8_E5M2;
  int64_t rows = is_fp8 && op->gemm.groups > 1 ? (m + 15) / 16 * 16 : m, groups = op->gemm.groups;
  return (struct needs){{cct_cuda_type_bytes(op->gemm.type, rows * op->gemm.k) * groups,
                         cct_cuda_type_bytes(op->gemm.type, op->gemm.n * op->gemm.k) * groups},
                        cct_cuda_type_bytes(is_fp8 ? CCT_TYPE_BF16 : op->gemm.type, rows * op->gemm.n) * groups};
}

static struct needs collective_needs(const struct cct_executor *x, const struct cct_op *op,
                                     const struct planned *plan) {
  const struct cct_group *group = &x->job->groups[op->collective.group];
  int64_t bytes = plan->bytes;
  switch (op->collective.kind) {
  case CCT_COLL_ALL_GATHER:
    return (struct needs){{bytes / group->size, 0}, bytes};
  case CCT_COLL_REDUCE_SCATTER:
    return (struct needs){{bytes, 0}, bytes / group->size};
  default:
    break;
  }
  struct needs needs = {{bytes, 0}, bytes};
  if (plan->matrix) {
    int n = plan->matrix->n, own = cct_group_index(group, x->rank);
    needs = (struct needs){0};
    for (int i = 0; i < n; i++) {
      needs.in[0] += plan->matrix->bytes[own * n + i];
      needs.out += plan->matrix->bytes[i * n + own];
    }
  }
  return needs;
}

/* Streaming wraps within what there is: of scratch it needs no more than what no cache holds. */
static int64_t streamed(const struct cct_executor *x, int64_t bytes) {
  int64_t enough = 8 * x->backend->l2_bytes;
  return bytes < enough ? bytes : enough;
}

static struct needs needs_of(const struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  int64_t square = 2 * (int64_t)plan->product * plan->product;
  if (plan->is_out)
    return (struct needs){0};
  switch (op->kind) {
  case CCT_OP_GEMM:
    return gemm_needs(op, plan->m);
  case CCT_OP_ATTENTION:
    return plan->product ? (struct needs){{square, square}, square} : (struct needs){{streamed(x, plan->bytes), 0}, 0};
  case CCT_OP_ELEMENTWISE:
    return (struct needs){{streamed(x, plan->bytes / 2), 0}, streamed(x, plan->bytes / 2)};
  case CCT_OP_COLLECTIVE:
    return collective_needs(x, op, plan);
  case CCT_OP_SEND:
    return (struct needs){{plan->bytes, 0}, 0};
  case CCT_OP_RECV:
    return (struct needs){{0, 0}, plan->bytes};
  case CCT_OP_COPY:
    return op->copy.carries_binding ? (struct needs){0} : (struct needs){{plan->bytes, 0}, plan->bytes};
  default:
    return (struct needs){0};
  }
}

/* The storage behind operand `which` (0, 1: inputs, 2: output) of an operation. */
static struct storage *storage_of(struct cct_executor *x, const struct cct_op *op, int which) {
  int buffer = which < 2 ? op->reads[which] : op->writes;
  int is_host_side = op->kind == CCT_OP_COPY && ((op->copy.direction == CCT_COPY_H2D && which == 0) ||
                                                 (op->copy.direction == CCT_COPY_D2H && which == 2));
  enum cct_memory memory = is_host_side ? op->copy.memory : CCT_MEM_DEVICE;
  if (buffer >= 0 && x->buffers[buffer].memory == memory)
    return &x->buffers[buffer];
  return memory == CCT_MEM_DEVICE ? &x->scratch[which] : &x->host[memory];
}

/* GEMM's weights and ATTENTION's KV cache are read from where the last reader of the buffer stopped, so that one buffer
 * that holds a whole model is read through once a step. */
static void *slice(struct storage *s, int64_t need) {
  need = (need + 255) / 256 * 256;
  if (s->cursor + need > s->bytes)
    s->cursor = 0;
  void *at = (char *)s->at + s->cursor;
  if (s->cursor + need <= s->bytes)
    s->cursor += need;
  return at;
}

static void require(struct storage *s, int64_t bytes) {
  bytes = (bytes + 255) / 256 * 256;
  if (bytes > s->need)
    s->need = bytes;
}

static void require_all(struct cct_executor *x) {
  struct cct_binding binding = {x->slots, x->matrices};
  for (int i = 0; i < x->program->n_buffers; i++)
    require(&x->buffers[i], cct_quantity_value(x->program->buffers[i].bytes, &binding));
  for (int id = 0; id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    struct needs needs = needs_of(x, id);
    for (int which = 0; which < 3; which++) {
      int64_t bytes = which < 2 ? needs.in[which] : needs.out;
      struct storage *s = bytes ? storage_of(x, op, which) : NULL;
      if (s)
        require(s, bytes);
      if (s == &x->scratch[1]) /* weights of no buffer rotate through more than the cache holds */
        require(s, 4 * x->backend->l2_bytes + bytes);
    }
  }
}

static enum cct_status host_allocate(struct storage *s) {
  if (s->memory == CCT_MEM_PAGEABLE) {
    s->at = aligned_alloc(4096, (size_t)(s->need + 4095) / 4096 * 4096);
    if (!s->at)
      return cct_fail(CCT_UNSUPPORTED, "cuda: %lld bytes of host memory cannot be had", (long long)s->need);
  } else {
    unsigned flags = s->memory == CCT_MEM_MAPPED ? cudaHostAllocMapped : cudaHostAllocDefault;
    enum cct_status status = CCT_CUDA(cudaHostAlloc(&s->at, (size_t)s->need, flags));
    if (status)
      return status;
  }
  uint64_t *words = s->at;
  for (int64_t i = 0; i < s->need / 8; i++)
    words[i] = cct_random_u64(1, (uint64_t)i) & 0x8077807780778077ull;
  return CCT_OK;
}

static void storage_free(struct storage *s) {
  if (s->is_nccls)
    cct_cuda_buffer_free(s);
  else if (s->at && s->memory == CCT_MEM_PAGEABLE)
    free(s->at);
  else if (s->at && s->memory != CCT_MEM_DEVICE)
    cudaFreeHost(s->at);
  else
    cudaFree(s->at);
  s->at = NULL;
  s->bytes = 0;
}

static enum cct_status storage_allocate(struct cct_executor *x, struct storage *s) {
  enum cct_status status = CCT_OK;
  if (s->memory != CCT_MEM_DEVICE) {
    status = host_allocate(s);
  } else {
    if (!s->at)
      status = s->is_nccls ? cct_cuda_buffer_allocate(s, s->need) : CCT_CUDA(cudaMalloc(&s->at, (size_t)s->need));
    if (!status)
      status = CCT_CUDA(cct_kernel_random(s->at, s->need, (uint64_t)s->need, x->backend->side));
  }
  if (!status)
    s->bytes = s->need;
  return status;
}

static struct storage *storage_at(struct cct_executor *x, int i);

enum cct_status cct_cuda_refill(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  struct storage *s;
  for (int i = 0; !status && (s = storage_at(x, i)); i++)
    if (s->memory == CCT_MEM_DEVICE && s->at)
      status = CCT_CUDA(cct_kernel_random(s->at, s->bytes, (uint64_t)s->bytes, x->backend->side));
  return status ? status : cct_cuda_wait_stream(x->backend, x->backend->side);
}

static struct storage *storage_at(struct cct_executor *x, int i) {
  int n = x->program->n_buffers;
  return i < n ? &x->buffers[i] : i < n + 3 ? &x->scratch[i - n] : i < n + 6 ? &x->host[i - n - 3] : NULL;
}

static enum cct_status check_fits(struct cct_executor *x) {
  int64_t wanted = 0;
  struct storage *s;
  for (int i = 0; (s = storage_at(x, i)); i++)
    if (s->memory == CCT_MEM_DEVICE && s->need > s->bytes && !s->at)
      wanted += s->need;
  size_t left = 0, all = 0;
  enum cct_status status = CCT_CUDA(cudaMemGetInfo(&left, &all));
  int64_t reserve = (int64_t)512 << 20; /* cuBLAS workspaces, NCCL channels, kernels */
  char wanted_text[32], left_text[32];
  if (!status && wanted + reserve > (int64_t)left)
    status = cct_fail(CCT_UNSUPPORTED,
                      "cuda: %s needs %lld bytes (%s) of GPU memory and %lld (%s) are free: use more ranks, a smaller "
                      "batch, or --layers N",
                      x->program->name, (long long)wanted, cct_bytes_text((double)wanted, wanted_text), (long long)left,
                      cct_bytes_text((double)left, left_text));
  return status;
}

/* As nccl-tests places them: a rotated operand in its turn; in place, an all-gather's input in its rank's part of the
 * output, and a reduce-scatter's output in that of the input. */
static void place_operands(struct cct_executor *x, int id, const struct needs *needs) {
  const struct cct_op *op = &x->program->ops[id];
  struct planned *plan = &x->plan[id];
  int buffer = op->reads[0] >= 0 ? op->reads[0] : op->writes;
  int64_t size = needs->in[0] > needs->out ? needs->in[0] : needs->out;
  plan->turn = (struct turn){.size = size, .steps = 1};
  if (buffer >= 0 && x->program->buffers[buffer].is_rotated && size > 0) {
    plan->turn.steps = x->buffers[buffer].bytes / size;
    for (int i = 0; i < x->program->n_ops; i++) {
      plan->turn.ordinal += i < id && x->program->ops[i].kind == op->kind;
      plan->turn.uses += x->program->ops[i].kind == op->kind;
    }
  }
  int64_t first = plan->turn.steps > 1 ? plan->turn.ordinal % plan->turn.steps * size : 0;
  if (op->kind == CCT_OP_COLLECTIVE && cct_cuda_is_in_place(op)) {
    if (op->collective.kind == CCT_COLL_ALL_GATHER)
      plan->in[0] = (char *)plan->out + plan->communicator->index * needs->in[0];
    if (op->collective.kind == CCT_COLL_REDUCE_SCATTER)
      plan->out = (char *)plan->in[0] + plan->communicator->index * needs->out;
  }
  plan->in[0] = plan->in[0] ? (char *)plan->in[0] + first : NULL;
  plan->out = plan->out ? (char *)plan->out + first : NULL;
}

enum cct_status cct_cuda_allocate(struct cct_executor *x) {
  struct storage *s;
  int is_growing = 0;
  for (int i = 0; (s = storage_at(x, i)); i++) {
    s->is_nccls =
        i < x->program->n_buffers && (x->program->buffers[i].is_rotated || x->program->buffers[i].registration);
    s->registration = i < x->program->n_buffers ? x->program->buffers[i].registration : CCT_REGISTRATION_NONE;
    s->memory = i < x->program->n_buffers       ? x->program->buffers[i].memory
                : i < x->program->n_buffers + 3 ? CCT_MEM_DEVICE
                                                : (enum cct_memory)(i - x->program->n_buffers - 3);
    s->need = s->bytes; /* not what a binding that was refused wanted */
  }
  require_all(x);
  for (int i = 0; x->windows && i < x->program->n_buffers; i++)
    if (x->buffers[i].need > x->buffers[i].bytes && cct_cuda_window_is_read(x, i))
      return cct_fail(CCT_UNSUPPORTED,
                      "cuda: %s: buffer '%s' would grow to %lld bytes, and other ranks have it mapped: give it its "
                      "largest size",
                      x->program->name, x->program->buffers[i].name, (long long)x->buffers[i].need);
  for (int i = 0; (s = storage_at(x, i)); i++)
    if (s->need > s->bytes) {
      is_growing = 1;
      storage_free(s);
      if (s->is_nccls)
        (void)cct_cuda_buffer_take(x->backend, s);
    }
  if (is_growing)
    cct_cuda_buffers_forget(x->backend); /* of another size: the memory is wanted now */
  enum cct_status status = is_growing ? check_fits(x) : CCT_OK;
  int has_moved = 0;
  if (!status)
    status = cct_cuda_carrier_provide(x, &has_moved);
  if (is_growing || has_moved)
    cct_cuda_graphs_release(x); /* they hold the old addresses */
  for (int i = 0; !status && (s = storage_at(x, i)); i++)
    if (s->need > s->bytes)
      status = storage_allocate(x, s);
  if (!status && is_growing)
    status = CCT_CUDA(cudaStreamSynchronize(x->backend->side));
  if (!status && is_growing)
    status = cct_cuda_buffers_register(x);
  return status ? status : cct_cuda_place(x);
}

/* What streams wraps, and is content with less than it was given when its step is under way already. */
static int wraps(const struct cct_executor *x, int id) {
  enum cct_op_kind kind = x->program->ops[id].kind;
  return kind == CCT_OP_ELEMENTWISE || (kind == CCT_OP_ATTENTION && !x->plan[id].product);
}

/* Of a step of a sequence: copies outside graphs have the sizes of each step, so that their place is all there is. */
static int is_resized(const struct cct_executor *x, int id) {
  return x->is_in_sequence && x->program->ops[id].kind == CCT_OP_COPY && !x->plan[id].in_graph;
}

static enum cct_status refuse_growth(const struct cct_executor *x, int id, int64_t bytes) {
  return cct_fail(
      CCT_USAGE,
      "cuda: %s: entry %d '%s' of a sequence needs %lld bytes of a buffer that no step before it was given: "
      "perform the largest step once before",
      x->program->name, id, x->program->ops[id].name, (long long)bytes);
}

enum cct_status cct_cuda_place(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  struct storage *s;
  for (int i = 0; (s = storage_at(x, i)); i++)
    s->cursor = 0;
  for (int id = 0; !status && id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    struct planned *plan = &x->plan[id];
    struct needs needs = needs_of(x, id);
    if (op->kind == CCT_OP_COPY && op->copy.carries_binding) {
      plan->in[0] = x->carrier;
      plan->out = x->device_slots;
      plan->in_capacity = plan->out_capacity = x->carrier_bytes;
      continue;
    }
    for (int which = 0; which < 3; which++) {
      int64_t bytes = which < 2 ? needs.in[which] : needs.out;
      if (!bytes && !(which != 1 && !plan->is_out && is_resized(x, id)))
        continue;
      s = storage_of(x, op, which);
      if (x->is_in_sequence && wraps(x, id) && s->bytes && bytes > s->bytes)
        bytes = s->bytes;
      int is_sliced = (op->kind == CCT_OP_GEMM && which == 1) || (op->kind == CCT_OP_ATTENTION && which == 0);
      void *at = is_sliced ? slice(s, bytes) : s->at;
      int64_t capacity = s->bytes - ((char *)at - (char *)s->at);
      if (x->is_in_sequence && bytes > capacity)
        return refuse_growth(x, id, bytes);
      if (which < 2) {
        plan->in[which] = at;
        plan->in_capacity = which ? plan->in_capacity : capacity;
      } else {
        plan->out = at;
        plan->out_capacity = capacity;
      }
    }
    if (op->kind == CCT_OP_COLLECTIVE || op->kind == CCT_OP_SEND || op->kind == CCT_OP_RECV)
      place_operands(x, id, &needs);
    status = cct_cuda_window_place(x, id);
  }
  return status;
}

void cct_cuda_release(struct cct_executor *x) {
  struct storage *s;
  for (int i = 0; x->buffers && (s = storage_at(x, i)); i++) {
    if (s->is_nccls)
      cct_cuda_buffer_keep(x->backend, s);
    storage_free(s);
  }
}
