/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "mpi_runner/serving_driver.h"

#define LETTER_TAG 80
#define SHARE_TAG  81

struct letter { /* started, and not yet known to be sent */
  struct letter *next;
  struct cct_notice notice;
  struct cct_request *request;
};

struct awaited { /* from one engine: at most one is asked for at a time */
  struct cct_notice notice;
  struct cct_request *request;
};

struct serving_letters {
  struct serving_driver *driver;
  int *leaders; /* by engine */
  struct awaited *from;
  struct letter *sent;
};

enum cct_status cct_letters_open(struct serving_driver *d, const struct cct_cluster_plan *plan,
                                 struct serving_letters **letters_out) {
  struct serving_letters *l = calloc(1, sizeof *l);
  int n = (int)(plan->prefills + plan->decodes), ranks = (int)d->run->serve->tp;
  if (!l)
    return cct_fail(CCT_NOMEM, "out of memory");
  l->driver = d;
  l->leaders = calloc((size_t)n, sizeof *l->leaders);
  l->from = calloc((size_t)n, sizeof *l->from);
  if (!l->leaders || !l->from) {
    cct_letters_close(l);
    return cct_fail(CCT_NOMEM, "out of memory");
  }
  for (int e = 0, p = 0; e < n; e++) {
    while (d->owners[p + 1] <= e * ranks)
      p++;
    l->leaders[e] = p;
  }
  *letters_out = l;
  return CCT_OK;
}

void cct_letters_close(struct serving_letters *l) {
  if (!l)
    return;
  while (l->sent) {
    struct letter *next = l->sent->next;
    free(l->sent);
    l->sent = next;
  }
  free(l->leaders);
  free(l->from);
  free(l);
}

enum cct_status cct_letters_send(struct serving_letters *l, int from, int to, const struct cct_notice *notice) {
  const struct cct_world *world = l->driver->run->world;
  struct letter *letter = calloc(1, sizeof *letter);
  (void)from;
  if (!letter)
    return cct_fail(CCT_NOMEM, "out of memory");
  letter->notice = *notice;
  enum cct_status status =
      world->ops->isend(world, &letter->notice, sizeof letter->notice, l->leaders[to], LETTER_TAG, &letter->request);
  letter->next = l->sent;
  l->sent = letter;
  return status;
}

enum cct_status cct_letters_take(struct serving_letters *l, int from, struct cct_notice *notice_out, int *has_out) {
  const struct cct_world *world = l->driver->run->world;
  struct awaited *a = &l->from[from];
  enum cct_status status = CCT_OK;
  *has_out = 0;
  if (!a->request)
    status = world->ops->irecv(world, &a->notice, sizeof a->notice, l->leaders[from], LETTER_TAG, &a->request);
  if (!status)
    status = world->ops->test(world, a->request, has_out);
  if (status || !*has_out)
    return status;
  a->request = NULL;
  *notice_out = a->notice;
  return CCT_OK;
}

enum cct_status cct_letters_drain(struct serving_letters *l, int *is_drained_out) {
  const struct cct_world *world = l->driver->run->world;
  enum cct_status status = CCT_OK;
  for (struct letter **at = &l->sent; !status && *at;) {
    struct letter *letter = *at;
    int is_done = 0;
    status = world->ops->test(world, letter->request, &is_done);
    if (!is_done) {
      at = &letter->next;
      continue;
    }
    *at = letter->next;
    free(letter);
  }
  *is_drained_out = !l->sent;
  return status;
}

/* ---- within an engine ---- */

struct share {
  int64_t now_ns, moved, n;
};

static enum cct_status send_to(struct serving_letters *l, int to, struct share *share, struct cct_notice *heard) {
  const struct cct_world *world = l->driver->run->world;
  struct cct_request *request;
  enum cct_status status = world->ops->isend(world, share, sizeof *share, to, SHARE_TAG, &request);
  if (!status)
    status = cct_serving_finish(l->driver, request);
  if (status || share->n <= 0)
    return status;
  status = world->ops->isend(world, heard, (size_t)share->n * sizeof *heard, to, SHARE_TAG, &request);
  return status ? status : cct_serving_finish(l->driver, request);
}

enum cct_status cct_letters_share(struct serving_letters *l, const struct serving_engine *e, int64_t *now_ns,
                                  int64_t *moved, struct cct_notice *heard, int64_t *n) {
  struct serving_driver *d = l->driver;
  const struct cct_world *world = d->run->world;
  struct share share = {*now_ns, *moved, *n};
  struct cct_request *request;
  enum cct_status status = CCT_OK;
  if (e->is_leader) {
    for (int p = 0; !status && p < world->size; p++)
      if (p != world->rank && d->owners[p + 1] > e->first_rank && d->owners[p] < e->first_rank + e->ranks)
        status = send_to(l, p, &share, heard);
    return status;
  }
  status = world->ops->irecv(world, &share, sizeof share, e->leader, SHARE_TAG, &request);
  if (!status)
    status = cct_serving_finish(d, request);
  if (!status && share.n > 0)
    status = world->ops->irecv(world, heard, (size_t)share.n * sizeof *heard, e->leader, SHARE_TAG, &request);
  if (!status && share.n > 0)
    status = cct_serving_finish(d, request);
  *now_ns = share.now_ns;
  *moved = share.moved;
  *n = share.n;
  return status;
}
