/* SPDX-License-Identifier: Apache-2.0
 * Values, untimed. Each collective and message of the step is performed once by itself on inputs whose every sum is
 * exact, its output poisoned before, and each element of the result compared; products are compared with double at
 * random places; copies byte by byte, those from another's memory against what that rank put there. The step itself
 * then runs once more, as it is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "workloads/backends/cuda/cuda_room.h"

#define POISON 0xff /* a NaN in every floating type, -1 in the integers: never an expected value */

static struct cct_exact exact_of(enum cct_type type, int ranks, enum cct_reduction reduction) {
  static const enum cct_kernel_type kinds[CCT_TYPE_COUNT] = {
      [CCT_TYPE_FP32] = CCT_KERNEL_FP32,   [CCT_TYPE_BF16] = CCT_KERNEL_BF16,     [CCT_TYPE_FP16] = CCT_KERNEL_FP16,
      [CCT_TYPE_FP8] = CCT_KERNEL_E4M3,    [CCT_TYPE_FP8_E5M2] = CCT_KERNEL_E5M2, [CCT_TYPE_NVFP4] = CCT_KERNEL_INT8,
      [CCT_TYPE_INT32] = CCT_KERNEL_INT32, [CCT_TYPE_INT8] = CCT_KERNEL_INT8};
  return (struct cct_exact){kinds[type], ranks, cct_type_significand_bits(type), (enum cct_kernel_reduction)reduction};
}

/* Tests ask for one wrong element on one rank, or for one copy from its own memory in place of its peer's, to see it
 * found. */
static enum cct_status corrupt(struct cct_executor *x, void *at) {
  x->is_corrupting = 0;
  return CCT_CUDA(cudaMemsetAsync(at, POISON, 1, x->backend->side));
}

/* ---- one check on the device: n elements at `out` are those of (rank, first...), or with rank -1 all ranks' sum ----
 */

static enum cct_status check(struct cct_executor *x, int id, const void *out, int64_t n, struct cct_exact exact,
                             int rank, int64_t first, struct cct_wrong *wrong) {
  struct cct_check_result_device result = {0, ~0ull}, *device = x->backend->probe;
  const struct cct_op *op = &x->program->ops[id];
  cudaStream_t stream = x->backend->side;
  enum cct_status status = CCT_CUDA(cudaMemcpyAsync(device, &result, sizeof result, cudaMemcpyHostToDevice, stream));
  if (!status && n && x->is_corrupting)
    status = corrupt(x, (void *)(uintptr_t)out);
  if (!status && n)
    status = CCT_CUDA(cct_kernel_check(out, n, exact, rank, first, device, stream));
  if (!status)
    status = CCT_CUDA(cudaMemcpyAsync(&result, device, sizeof result, cudaMemcpyDeviceToHost, stream));
  if (!status)
    status = cct_cuda_wait_stream(x->backend, stream);
  if (status)
    return status;
  wrong->elements += n;
  if (result.wrong && !wrong->wrong)
    snprintf(wrong->first, sizeof wrong->first, "rank %d, entry %d '%s' (%s): element %llu of %lld, and %llu in all",
             x->rank, id, op->name, cct_op_name(op->kind), result.first, (long long)n, result.wrong);
  wrong->wrong += (int64_t)result.wrong;
  return CCT_OK;
}

static int64_t elements(int64_t bytes, enum cct_type type) {
  return type == CCT_TYPE_NVFP4 ? bytes : bytes * 8 / cct_type_bits(type);
}

/* What rank `from` sends begins with element `first` of its own sequence. */
static enum cct_status fill(struct cct_executor *x, void *in, int64_t n, struct cct_exact exact, int from,
                            int64_t first) {
  return n ? CCT_CUDA(cct_kernel_fill(in, n, exact, from, first, x->backend->side)) : CCT_OK;
}

static enum cct_status perform(struct cct_executor *x, int id, void *out, int64_t out_bytes) {
  const struct cct_op *op = &x->program->ops[id];
  enum cct_status status = CCT_OK;
  if (out && out_bytes)
    status = CCT_CUDA(cudaMemsetAsync(out, POISON, (size_t)out_bytes, x->backend->side));
  if (!status)
    status = cct_cuda_wait_stream(x->backend, x->backend->side);
  if (!status)
    status = cct_cuda_enqueue(x, id, 0, MODE_EAGER);
  return status ? status : cct_cuda_wait_stream(x->backend, x->lanes[op->lane].stream);
}

static enum cct_status verify_exchange(struct cct_executor *x, int id, struct cct_wrong *wrong) {
  const struct planned *plan = &x->plan[id];
  const struct communicator *c = plan->communicator;
  const struct cct_matrix *m = plan->matrix;
  struct cct_exact exact = exact_of(CCT_TYPE_INT8, c->size, CCT_REDUCTION_SUM);
  int64_t sent = 0, all_received = 0, received = 0, each = plan->bytes / c->size;
  for (int peer = 0; peer < c->size; peer++) {
    sent += m ? m->bytes[c->index * m->n + peer] : each;
    all_received += m ? m->bytes[peer * m->n + c->index] : each;
  }
  if (plan->out == plan->in[0])
    return CCT_OK; /* in place there is nothing left to compare with */
  enum cct_status status = fill(x, plan->in[0], sent, exact, c->index, 0);
  if (!status)
    status = perform(x, id, plan->out, all_received);
  for (int peer = 0; !status && peer < c->size; peer++) {
    int64_t n = m ? m->bytes[peer * m->n + c->index] : each, first = 0;
    for (int i = 0; i < c->index; i++)
      first += m ? m->bytes[peer * m->n + i] : each;
    status = check(x, id, (char *)plan->out + received, n, exact, peer, first, wrong);
    received += n;
  }
  return status;
}

static enum cct_status verify_collective(struct cct_executor *x, int id, struct cct_wrong *wrong) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  const struct communicator *c = plan->communicator;
  enum cct_collective kind = op->collective.kind;
  if (kind == CCT_COLL_ALL_TO_ALL || kind == CCT_COLL_ALL_TO_ALLV)
    return verify_exchange(x, id, wrong);
  struct cct_exact exact = exact_of(op->collective.type, c->size, op->collective.reduction);
  int64_t n = elements(plan->bytes, op->collective.type), share = n / c->size;
  if (n == 0)
    return CCT_OK;
  int64_t in = kind == CCT_COLL_ALL_GATHER ? share : n, out = kind == CCT_COLL_REDUCE_SCATTER ? share : n;
  enum cct_status status = CCT_OK;
  if (kind == CCT_COLL_ALL_GATHER && cct_cuda_is_in_place(op)) /* the others' parts */
    status = CCT_CUDA(cudaMemsetAsync(plan->out, POISON, (size_t)plan->bytes, x->backend->side));
  if (!status)
    status = fill(x, plan->in[0], in, exact, c->index, 0);
  if (!status)
    status = perform(x, id, cct_cuda_is_in_place(op) ? NULL : plan->out, plan->bytes / n * out);
  if (status)
    return status;
  switch (kind) {
  case CCT_COLL_ALL_GATHER:
    for (int i = 0; !status && i < c->size; i++)
      status = check(x, id, (char *)plan->out + i * (plan->bytes / c->size), share, exact, i, 0, wrong);
    return status;
  case CCT_COLL_REDUCE_SCATTER:
    return check(x, id, plan->out, share, exact, -1, c->index * share, wrong);
  case CCT_COLL_BROADCAST:
    return check(x, id, plan->out, n, exact, op->collective.root, 0, wrong);
  case CCT_COLL_REDUCE:
    return c->index != op->collective.root ? CCT_OK : check(x, id, plan->out, n, exact, -1, 0, wrong);
  default:
    return check(x, id, plan->out, n, exact, -1, 0, wrong);
  }
}

/* A message's bytes are those of its sender, whatever its place in the group. */
static enum cct_status verify_messages(struct cct_executor *x, int id, struct cct_wrong *wrong) {
  enum cct_status status = CCT_OK;
  if (x->program->ops[id + 1].reads[0] >= 0 && x->program->ops[id + 1].reads[0] == x->program->ops[id + 2].writes)
    return CCT_OK;                                  /* in place there is nothing left to compare with */
  for (int pass = 0; !status && pass < 2; pass++) { /* fill before, check after */
    for (int member = id + 1; !status && member < x->plan[id].end; member++) {
      const struct cct_op *op = &x->program->ops[member];
      const struct planned *plan = &x->plan[member];
      const struct communicator *c = plan->communicator;
      int peer = ((c->index + op->p2p.peer_offset) % c->size + c->size) % c->size;
      struct cct_exact exact = exact_of(CCT_TYPE_INT8, c->size, CCT_REDUCTION_SUM);
      if (op->kind == CCT_OP_SEND && pass == 0)
        status = fill(x, plan->in[0], plan->bytes, exact, c->index, 0);
      else if (op->kind == CCT_OP_RECV && pass == 0)
        status = CCT_CUDA(cudaMemsetAsync(plan->out, POISON, (size_t)plan->bytes, x->backend->side));
      else if (op->kind == CCT_OP_RECV)
        status = check(x, member, plan->out, plan->bytes, exact, peer, 0, wrong);
    }
    if (!status && pass == 0)
      status = perform(x, id, NULL, 0);
  }
  return status;
}

/* ---- products against double ---- */

static double decode(const unsigned char *at, enum cct_type type) {
  uint32_t word = 0;
  float value;
  switch (type) {
  case CCT_TYPE_FP32:
    memcpy(&value, at, sizeof value);
    return value;
  case CCT_TYPE_BF16:
    word = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    memcpy(&value, &word, sizeof value);
    return value;
  default:
    break;
  }
  /* sign, exponent, fraction of fp16 (5, 10), e5m2 (5, 2), e4m3 (4, 3) */
  int fraction_bits = type == CCT_TYPE_FP16 ? 10 : type == CCT_TYPE_FP8 ? 3 : 2;
  int exponent_bits = type == CCT_TYPE_FP8 ? 4 : 5, bias = (1 << (exponent_bits - 1)) - 1;
  word = type == CCT_TYPE_FP16 ? (uint32_t)at[0] | (uint32_t)at[1] << 8 : at[0];
  int exponent = (int)(word >> fraction_bits) & ((1 << exponent_bits) - 1);
  double fraction = (double)(word & ((1u << fraction_bits) - 1)) / (1 << fraction_bits);
  double magnitude = exponent ? ldexp(1 + fraction, exponent - bias) : ldexp(fraction, 1 - bias);
  return word >> (fraction_bits + exponent_bits) & 1 ? -magnitude : magnitude;
}

#define SPOTS 24

/* |error| <= 2^-8 |value|, the rounding of a bf16 result, + 2^-11 sum |x w|: Hopper's 8-bit products add in about 14
 * bits. */
static enum cct_status check_spot(struct cct_executor *x, int id, int64_t group, int64_t row, int64_t column, int64_t m,
                                  unsigned char *xs, struct cct_wrong *wrong) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  enum cct_type type = op->gemm.type;
  int is_fp8 = type == CCT_TYPE_FP8 || type == CCT_TYPE_FP8_E5M2;
  enum cct_type w_type = is_fp8 ? CCT_TYPE_FP8 : type, y_type = is_fp8 ? CCT_TYPE_BF16 : type;
  int64_t k = op->gemm.k, n = op->gemm.n, bytes = cct_cuda_type_bytes(type, k);
  unsigned char y[4], *ws = xs + bytes;
  const char *row_at = (char *)plan->in[0] + cct_cuda_type_bytes(type, (group * m + row) * k);
  const char *column_at = (char *)plan->in[1] + cct_cuda_type_bytes(w_type, (group * n + column) * k);
  const char *y_at = (char *)plan->out + cct_cuda_type_bytes(y_type, (group * m + row) * n + column);
  enum cct_status status = CCT_CUDA(cudaMemcpy(xs, row_at, (size_t)bytes, cudaMemcpyDeviceToHost));
  if (!status)
    status = CCT_CUDA(cudaMemcpy(ws, column_at, (size_t)bytes, cudaMemcpyDeviceToHost));
  if (!status)
    status = CCT_CUDA(cudaMemcpy(y, y_at, (size_t)cct_cuda_type_bytes(y_type, 1), cudaMemcpyDeviceToHost));
  if (status)
    return status;
  double sum = 0, size = 0, step = (double)cct_cuda_type_bytes(type, 1);
  for (int64_t i = 0; i < k; i++) {
    double product = decode(xs + (int64_t)step * i, type) * decode(ws + (int64_t)step * i, w_type);
    sum += product;
    size += fabs(product);
  }
  double got = decode(y, y_type);
  wrong->elements++;
  if (!(fabs(got - sum) <= ldexp(fabs(sum), -8) + ldexp(size, -11))) {
    if (!wrong->wrong++)
      snprintf(wrong->first, sizeof wrong->first, "rank %d, entry %d '%s': product (%lld, %lld) is %g, not %g", x->rank,
               id, op->name, (long long)row, (long long)column, got, sum);
  }
  return CCT_OK;
}

static enum cct_status verify_gemm(struct cct_executor *x, int id, struct cct_wrong *wrong) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  int64_t m = plan->lt ? plan->lt->m : plan->m, in_bytes = cct_cuda_type_bytes(op->gemm.type, m * op->gemm.k);
  if (plan->m <= 0)
    return CCT_OK;
  unsigned char *rows = malloc(2 * (size_t)cct_cuda_type_bytes(op->gemm.type, op->gemm.k));
  if (!rows)
    return cct_fail(CCT_NOMEM, "out of memory");
  /* earlier entries left sums there, too large for 8 bits and for a check against their size */
  enum cct_status status =
      CCT_CUDA(cct_kernel_random(plan->in[0], in_bytes * op->gemm.groups, (uint64_t)id, x->backend->side));
  if (!status)
    status = perform(x, id, plan->out == plan->in[0] ? NULL : plan->out,
                     cct_cuda_type_bytes(plan->lt ? CCT_TYPE_BF16 : op->gemm.type, m * op->gemm.n) * op->gemm.groups);
  for (int64_t spot = 0; !status && spot < SPOTS && plan->out != plan->in[0]; spot++) {
    uint64_t seed = cct_random_fold(7, (uint64_t)id);
    status = check_spot(x, id, cct_random_below(seed, (uint64_t)(3 * spot), op->gemm.groups),
                        cct_random_below(seed, (uint64_t)(3 * spot + 1), plan->m),
                        cct_random_below(seed, (uint64_t)(3 * spot + 2), op->gemm.n), m, rows, wrong);
  }
  free(rows);
  return status;
}

/* ---- copies ---- */

#define COMPARED ((int64_t)1 << 24) /* bytes of a copy: the first 16 MiB */

static enum cct_status verify_copy(struct cct_executor *x, int id, struct cct_wrong *wrong) {
  const struct planned *plan = &x->plan[id];
  const struct cct_op *op = &x->program->ops[id];
  if (plan->bytes <= 0 || plan->out == plan->in[0])
    return CCT_OK;
  size_t n = (size_t)(plan->bytes < COMPARED ? plan->bytes : COMPARED);
  unsigned char *from = malloc(2 * n), *to = from + n;
  if (!from)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = CCT_OK;
  if (op->copy.direction == CCT_COPY_D2H)
    memset(plan->out, POISON, n);
  else
    status = cct_cuda_clear(plan->out, POISON, n);
  if (!status)
    status = perform(x, id, NULL, 0);
  if (!status)
    status = CCT_CUDA(cudaMemcpy(from, plan->in[0], n, cudaMemcpyDefault));
  if (!status)
    status = CCT_CUDA(cudaMemcpy(to, plan->out, n, cudaMemcpyDefault));
  for (size_t i = 0; !status && i < n; i++)
    if (from[i] != to[i] && !wrong->wrong++)
      snprintf(wrong->first, sizeof wrong->first, "rank %d, entry %d '%s': byte %zu of the copy", x->rank, id, op->name,
               i);
  wrong->elements += (int64_t)n;
  free(from);
  return status;
}

/* ---- copies from another's memory ---- */

/* What a rank has in a buffer that others read, from a seed of both; never POISON. */
static uint64_t seed_of(int rank, int buffer) {
  return cct_random_fold(cct_random_fold(11, (uint64_t)rank), (uint64_t)buffer);
}
static unsigned char byte_at(uint64_t seed, int64_t i) {
  return (unsigned char)(cct_random_u64(seed, (uint64_t)i) % POISON);
}

static enum cct_status fill_windows(struct cct_executor *x) {
  unsigned char *values = malloc((size_t)COMPARED);
  enum cct_status status = values ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (int buffer = 0; !status && buffer < x->program->n_buffers; buffer++) {
    const struct storage *s = &x->buffers[buffer];
    int64_t n = s->bytes < COMPARED ? s->bytes : COMPARED;
    if (!cct_cuda_window_is_read(x, buffer))
      continue;
    uint64_t seed = seed_of(x->rank, buffer);
    for (int64_t i = 0; i < n; i++)
      values[i] = byte_at(seed, i);
    status = cct_cuda_upload(s->at, values, (size_t)n);
  }
  free(values);
  return status;
}

static enum cct_status verify_read(struct cct_executor *x, int id, struct cct_wrong *wrong) {
  const struct cct_op *op = &x->program->ops[id];
  struct planned *plan = &x->plan[id];
  void *from = plan->in[0];
  int peer = cct_op_peer(x->job, op, x->rank), buffer = op->reads[0];
  int64_t n = plan->bytes < COMPARED ? plan->bytes : COMPARED;
  uint64_t seed = seed_of(peer, buffer);
  if (n <= 0 || plan->out == from)
    return CCT_OK;
  unsigned char *to = malloc((size_t)n);
  enum cct_status status = to ? cct_cuda_clear(plan->out, POISON, (size_t)n) : cct_fail(CCT_NOMEM, "out of memory");
  if (x->is_corrupting && peer != x->rank) {
    x->is_corrupting = 0;
    plan->in[0] = x->buffers[buffer].at;
  }
  if (!status)
    status = perform(x, id, NULL, 0);
  plan->in[0] = from;
  if (!status)
    status = CCT_CUDA(cudaMemcpy(to, plan->out, (size_t)n, cudaMemcpyDeviceToHost));
  for (int64_t i = 0; !status && i < n; i++)
    if (to[i] != byte_at(seed, i) && !wrong->wrong++)
      snprintf(wrong->first, sizeof wrong->first, "rank %d, entry %d '%s': byte %lld of '%s' of rank %d", x->rank, id,
               op->name, (long long)i, x->program->buffers[buffer].name, peer);
  wrong->elements += n;
  free(to);
  return status;
}

/* In turn, since a copy may write what others read. All ranks, whatever became of each so far. */
static enum cct_status verify_reads(struct cct_executor *x, enum cct_status status, struct cct_wrong *wrong) {
  if (!status)
    status = fill_windows(x);
  for (int turn = 0; turn < x->job->ranks; turn++) {
    status = cct_cuda_agree(x->backend, status);
    if (status)
      return status;
    for (int id = 0; !status && turn == x->rank && id < x->program->n_ops; id++) {
      const struct cct_op *op = &x->program->ops[id];
      if (op->kind != CCT_OP_COPY || op->copy.direction != CCT_COPY_P2P || x->plan[id].is_out)
        continue;
      status = verify_read(x, id, wrong);
      if (!status && op->writes >= 0 && cct_cuda_window_is_read(x, op->writes))
        status = fill_windows(x);
    }
  }
  return cct_cuda_agree(x->backend, status);
}

enum cct_status cct_cuda_verify(struct cct_executor *x, const struct cct_binding *bindings,
                                struct cct_wrong *wrong_out) {
  struct cct_wrong wrong = {0};
  const char *corrupted = getenv("CCTAX_TEST_CORRUPT");
  x->is_corrupting = corrupted && atoi(corrupted) == x->rank;
  enum cct_status status = cct_cuda_bind(x, bindings);
  for (int id = 0; !status && id < x->program->n_ops; id++) {
    if (x->plan[id].is_out)
      continue;
    switch (x->program->ops[id].kind) {
    case CCT_OP_GEMM:
      status = verify_gemm(x, id, &wrong);
      break;
    case CCT_OP_COLLECTIVE:
      status = verify_collective(x, id, &wrong);
      break;
    case CCT_OP_COPY:
      if (x->program->ops[id].copy.direction != CCT_COPY_P2P)
        status = verify_copy(x, id, &wrong);
      break;
    case CCT_OP_GROUP:
      if (x->program->ops[id + 1].kind == CCT_OP_SEND || x->program->ops[id + 1].kind == CCT_OP_RECV) {
        status = verify_messages(x, id, &wrong);
        id = x->plan[id].end;
      }
      break;
    default:
      break;
    }
  }
  if (x->windows)
    status = verify_reads(x, status, &wrong);
  if (!status)
    status = cct_cuda_refill(x);
  if (!status)
    status = cct_cuda_walk(x, 0, x->program->n_ops, 0, MODE_EAGER);
  if (!status)
    status = cct_cuda_drain(x);
  if (!status)
    *wrong_out = wrong;
  return status;
}
