/* SPDX-License-Identifier: Apache-2.0
 * Copies between host and device, and bounce copies: what a copy does under confidential computing, for real. It starts
 * when the stream's earlier work is done, one thread seals it in chunks with AES-256-GCM, the ciphertext is dropped and
 * the plaintext copied, and the host is held to its end. */
#include <stdlib.h>
#include <string.h>

#include "crypt/seal.h"
#include "workloads/backends/cuda/cuda_experiment.h"

/* What a host lane seals with: a counter and a cipher's state are one thread's. */
struct sealer {
  struct cct_seal *seal;
  unsigned char *cipher; /* CCT_SEAL_CHUNK_BYTES */
};

enum {
  MOST_SEALERS = 16
};

struct seal_state {
  struct sealer sealers[MOST_SEALERS]; /* by host lane; experiments use the first */
  double gb_s;                         /* what one thread seals here */
};

static enum cct_status sealer_open(struct cct_backend *backend, int lane) {
  if (lane >= MOST_SEALERS)
    return cct_fail(CCT_UNSUPPORTED, "cuda: bounce copies by lane %d of a program: the first %d lanes can have them",
                    lane, MOST_SEALERS);
  struct sealer *sealer = &backend->seal->sealers[lane];
  enum cct_status status = sealer->seal ? CCT_OK : cct_seal_new(NULL, &sealer->seal);
  if (!status && !sealer->cipher && !(sealer->cipher = malloc(CCT_SEAL_CHUNK_BYTES)))
    status = cct_fail(CCT_NOMEM, "out of memory");
  return status;
}

static enum cct_status seal_open(struct cct_backend *backend, int lane) {
  enum cct_status status = CCT_OK;
  if (!backend->seal) {
    if (!(backend->seal = calloc(1, sizeof *backend->seal)))
      return cct_fail(CCT_NOMEM, "out of memory");
    status = cct_seal_rate(CCT_SEAL_CHUNK_BYTES, 10000000, &backend->seal->gb_s);
  }
  if (!status)
    status = sealer_open(backend, lane);
  if (status)
    cct_cuda_seal_close(backend);
  return status;
}

void cct_cuda_seal_close(struct cct_backend *backend) {
  if (!backend->seal)
    return;
  for (int i = 0; i < MOST_SEALERS; i++) {
    cct_seal_free(backend->seal->sealers[i].seal);
    free(backend->seal->sealers[i].cipher);
  }
  free(backend->seal);
  backend->seal = NULL;
}

double cct_cuda_seal_gb_s(const struct cct_backend *backend) {
  return backend->seal ? backend->seal->gb_s : 0;
}

enum cct_status cct_cuda_bounce_prepare(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  if (!op->copy.is_bounce)
    return CCT_OK;
  int is_first = !x->backend->seal;
  enum cct_status status = seal_open(x->backend, op->host);
  const struct cct_profile *profile = x->backend->options.emulated;
  if (!status && is_first && profile && cct_copy_is_host(op->copy.direction)) {
    double wanted = cct_column_copy(&profile->confidential, op->copy.direction, op->copy.memory)->gb_s.value;
    if (wanted > x->backend->seal->gb_s && x->rank == 0)
      cct_warn("cuda: profile %s copies %.1f GB/s and one thread here seals %.1f GB/s: bounce copies are paced to the "
               "profile's rate, sealing what fits into its time",
               profile->name, wanted, x->backend->seal->gb_s);
  }
  return status;
}

static enum cudaMemcpyKind kind_of(enum cct_direction direction) {
  return direction == CCT_COPY_H2D   ? cudaMemcpyHostToDevice
         : direction == CCT_COPY_D2H ? cudaMemcpyDeviceToHost
                                     : cudaMemcpyDeviceToDevice;
}

struct operands {
  char *to;
  const char *from;
  int64_t bytes;
};

/* A copy that is not captured has its step's size; one that carries the binding comes from its step's block. */
static struct operands operands_of(const struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  struct cct_binding binding = {.slots = x->slots};
  struct operands c = {plan->out, plan->in[0],
                       plan->in_graph ? plan->bytes : cct_quantity_value(op->copy.bytes, &binding)};
  if (op->copy.carries_binding)
    c.from = x->carrier + x->block * x->carrier_bytes;
  return c;
}

/* One thread seals chunk by chunk, and a chunk is copied when it is sealed. A profile that is slower than this machine
 * holds the copy to its time; one that is faster leaves unsealed what cannot be sealed in its time, and that goes with
 * the next copy. Without a profile a copy takes what it takes. */
static enum cct_status bounce(struct cct_executor *x, int id, const struct operands *c) {
  const struct cct_op *op = &x->program->ops[id];
  const struct seal_state *s = x->backend->seal;
  const struct sealer *sealer = &s->sealers[op->host];
  cudaStream_t stream = x->lanes[op->lane].stream;
  const struct cct_profile *profile = x->backend->options.emulated;
  int is_outside = cct_copy_is_host(op->copy.direction);
  const struct cct_copy_cost *cost =
      profile && is_outside ? cct_column_copy(&profile->confidential, op->copy.direction, op->copy.memory) : NULL;
  const char *host = op->copy.direction == CCT_COPY_D2H ? c->to : c->from;
  enum cct_status status = cct_cuda_wait_stream(x->backend, stream);
  int64_t start_ns = cct_clock_ns(), due_ns = start_ns, copied = 0;
  for (int64_t end = 0; !status && end < c->bytes;) {
    int64_t at = end, left = c->bytes - at;
    int64_t chunk = left < CCT_SEAL_CHUNK_BYTES ? left : CCT_SEAL_CHUNK_BYTES;
    struct cct_seal_mark mark;
    end += chunk;
    if (cost)
      due_ns = start_ns + (int64_t)(cost->fixed_us.value * 1e3 + (double)end / cost->gb_s.value);
    int is_sealed = is_outside && (!cost || cct_clock_ns() + (int64_t)((double)chunk / s->gb_s) <= due_ns);
    if (is_sealed)
      status = cct_seal_chunk(sealer->seal, host + at, (size_t)chunk, sealer->cipher, &mark);
    if (!status && (is_sealed || end == c->bytes)) {
      status = CCT_CUDA(cudaMemcpyAsync(c->to + copied, c->from + copied, (size_t)(end - copied),
                                        kind_of(op->copy.direction), stream));
      copied = end;
    }
  }
  if (!status)
    status = cct_cuda_wait_stream(x->backend, stream);
  while (!status && cct_clock_ns() < due_ns) {
  }
  return status;
}

enum cct_status cct_cuda_copy(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  const struct planned *plan = &x->plan[id];
  cudaStream_t stream = x->lanes[op->lane].stream;
  struct operands c = operands_of(x, id);
  enum cct_status status;
  if (op->copy.is_bounce)
    status = bounce(x, id, &c);
  else if (op->copy.memory == CCT_MEM_MAPPED &&
           cct_copy_is_host(op->copy.direction)) /* the GPU's own loads and stores */
    status = CCT_CUDA(cct_kernel_copy(c.to, c.from, c.bytes,
                                      plan->in_graph ? plan->blocks : cct_cuda_blocks(x->backend, c.bytes), stream));
  else
    status = CCT_CUDA(cudaMemcpyAsync(c.to, c.from, (size_t)c.bytes, kind_of(op->copy.direction), stream));
  if (!status && op->copy.carries_binding)
    status = cct_cuda_carried(x, stream);
  if (!status && op->copy.is_blocking)
    status = cct_cuda_wait_stream(x->backend, stream);
  return status;
}

/* ---- experiments ---- */

enum cct_status cct_cuda_run_aes_rate(struct experiment *e) {
  double gb_s = 0;
  enum cct_status status = cct_seal_rate((size_t)e->parameters[0], 2000000, &gb_s);
  give(e, gb_s);
  return status;
}

static enum cct_status seal_and_copy(struct cct_backend *backend, char *device, const char *plain, size_t bytes) {
  const struct sealer *sealer = backend->seal->sealers;
  struct cct_seal_mark mark;
  enum cct_status status = CCT_OK;
  for (size_t at = 0; !status && at < bytes; at += CCT_SEAL_CHUNK_BYTES) {
    size_t chunk = bytes - at < CCT_SEAL_CHUNK_BYTES ? bytes - at : CCT_SEAL_CHUNK_BYTES;
    status = cct_seal_chunk(sealer->seal, plain + at, chunk, sealer->cipher, &mark);
    if (!status)
      status = CCT_CUDA(cudaMemcpyAsync(device + at, plain + at, chunk, cudaMemcpyHostToDevice, backend->side));
  }
  return status ? status : cct_cuda_wait_stream(backend, backend->side);
}

/* What one core seals and sends on, chunk by chunk: a copy path whose cipher is software. */
enum cct_status cct_cuda_run_aes_copy(struct experiment *e) {
  struct cct_backend *backend = e->backend;
  size_t bytes = (size_t)e->parameters[0];
  void *device = NULL, *pinned = NULL;
  int64_t took_ns = 0;
  enum cct_status status = seal_open(backend, 0);
  if (!status)
    status = CCT_CUDA(cudaMalloc(&device, bytes));
  if (!status)
    status = CCT_CUDA(cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault));
  if (!status)
    memset(pinned, 1, bytes);
  for (int turn = 0; !status && turn < 2; turn++) { /* the first warms up */
    int64_t start_ns = cct_clock_ns();
    status = seal_and_copy(backend, device, pinned, bytes);
    took_ns = cct_clock_ns() - start_ns;
  }
  give(e, took_ns > 0 ? (double)bytes / (double)took_ns : 0);
  cudaFreeHost(pinned);
  cudaFree(device);
  return status;
}
