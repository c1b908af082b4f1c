/* SPDX-License-Identifier: Apache-2.0
 * Buffers as nccl-tests has them: from NCCL's own allocator, and known to the communicator that uses them where the
 * program asks for it. Symmetric windows and copy engines are NCCL's business behind one registration (2.27 and 2.28).
 */
#include <stdlib.h>
#include <string.h>

#include "workloads/backends/cuda/cuda_room.h"

enum cct_status cct_cuda_buffer_allocate(struct storage *s, int64_t bytes) {
  return CCT_NCCL(ncclMemAlloc(&s->at, (size_t)bytes));
}

static void deregister(struct storage *s) {
  if (s->window)
    (void)ncclCommWindowDeregister(s->known_to, s->window);
  else if (s->registered)
    (void)ncclCommDeregister(s->known_to, s->registered);
  s->window = NULL;
  s->registered = NULL;
  s->known_to = NULL;
}

void cct_cuda_buffer_free(struct storage *s) {
  deregister(s);
  if (s->at)
    (void)ncclMemFree(s->at);
  s->at = NULL;
}

/* Buffers from NCCL's allocator outlive their cell, registered as they are: the next one's are mostly as large, 1 GiB
 * takes longer to map than to use, and NCCL lets go of what a graph registered only some time after the graph is gone:
 * a peer would write to what was at this address before. */
#define MOST_KEPT 4

void cct_cuda_buffer_keep(struct cct_backend *backend, struct storage *s) {
  if (s->at && !backend->kept)
    backend->kept = calloc(MOST_KEPT, sizeof *backend->kept);
  for (int i = 0; backend->kept && s->at && i < MOST_KEPT; i++)
    if (!backend->kept[i].at) {
      backend->kept[i] = *s;
      s->at = s->registered = NULL;
      s->window = NULL;
      s->known_to = NULL;
    }
  cct_cuda_buffer_free(s);
}

int cct_cuda_buffer_take(struct cct_backend *backend, struct storage *s) {
  for (int i = 0; backend->kept && i < MOST_KEPT; i++) {
    struct storage *kept = &backend->kept[i];
    if (!kept->at || kept->bytes != s->need || kept->registration != s->registration)
      continue;
    s->at = kept->at;
    s->registered = kept->registered;
    s->window = kept->window;
    s->known_to = kept->known_to;
    kept->at = NULL;
    return 1;
  }
  return 0;
}

void cct_cuda_buffers_forget(struct cct_backend *backend) {
  for (int i = 0; backend->kept && i < MOST_KEPT; i++)
    if (backend->kept[i].at)
      cct_cuda_buffer_free(&backend->kept[i]);
}

static ncclComm_t user_of(const struct cct_executor *x, int buffer) {
  for (int id = 0; id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    if (x->plan[id].communicator && (op->reads[0] == buffer || op->writes == buffer))
      return x->plan[id].communicator->comm;
  }
  return NULL;
}

enum cct_status cct_cuda_buffers_register(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < x->program->n_buffers; i++) {
    struct storage *s = &x->buffers[i];
    enum cct_registration registration = x->program->buffers[i].registration;
    ncclComm_t comm = user_of(x, i);
    if (registration == CCT_REGISTRATION_NONE || s->known_to == comm || !comm)
      continue;
    deregister(s);
    if (registration == CCT_REGISTRATION_LOCAL)
      status = CCT_NCCL(ncclCommRegister(comm, s->at, (size_t)s->bytes, &s->registered));
    else
      status = CCT_NCCL(ncclCommWindowRegister(comm, s->at, (size_t)s->bytes, &s->window, NCCL_WIN_COLL_SYMMETRIC));
    if (!status && registration != CCT_REGISTRATION_LOCAL && !s->window)
      status =
          cct_fail(CCT_UNSUPPORTED, "nccl: no symmetric window can be had here (NCCL_WIN_ENABLE, NCCL_CUMEM_ENABLE)");
    if (!status)
      s->known_to = comm;
  }
  return status;
}
