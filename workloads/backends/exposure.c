/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/backends/exposure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static int is_compute(const struct cct_op *op) {
  return op->kind == CCT_OP_GEMM || op->kind == CCT_OP_ATTENTION || op->kind == CCT_OP_ELEMENTWISE;
}

int cct_exposure_find(const struct cct_exposure *exposures, int n, const struct cct_op *op) {
  for (int i = 0; i < n; i++)
    if (exposures[i].kind == op->collective.kind && exposures[i].group == op->collective.group)
      return i;
  return -1;
}

int cct_exposure_list(const struct cct_program *program, struct cct_exposure exposures[CCT_MOST_EXPOSURES]) {
  int n = 0, has_compute = 0;
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    has_compute |= is_compute(op);
    if (op->kind == CCT_OP_COLLECTIVE && cct_exposure_find(exposures, n, op) < 0 && n < CCT_MOST_EXPOSURES)
      exposures[n++] = (struct cct_exposure){.kind = op->collective.kind, .group = op->collective.group};
  }
  return has_compute ? n : 0;
}

char *cct_exposure_name(const struct cct_job *job, const struct cct_exposure *exposure, char out[32]) {
  snprintf(out, 32, "%s.%s", cct_collective_name(exposure->kind), job->groups[exposure->group].name);
  return out;
}

int cct_exposure_collectives(const struct cct_program *program) {
  int n = 0;
  for (int id = 0; id < program->n_ops; id++)
    n += program->ops[id].kind == CCT_OP_COLLECTIVE;
  return n;
}

int cct_exposure_is_metric(const char *name) {
  return !strncmp(name, CCT_METRIC_SPENT, strlen(CCT_METRIC_SPENT)) ||
         !strncmp(name, CCT_METRIC_EXPOSED, strlen(CCT_METRIC_EXPOSED)) ||
         !strncmp(name, CCT_METRIC_MOVED, strlen(CCT_METRIC_MOVED));
}

static int by_start(const void *a, const void *b) {
  const struct cct_span *x = a, *y = b;
  return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The times at which the rank computes, apart and ascending; returns how many spans. */
static int merge(struct cct_span *spans, int n) {
  int merged = 0;
  qsort(spans, (size_t)n, sizeof *spans, by_start);
  for (int i = 0; i < n; i++) {
    if (merged && spans[i].start_ns <= spans[merged - 1].end_ns) {
      if (spans[i].end_ns > spans[merged - 1].end_ns)
        spans[merged - 1].end_ns = spans[i].end_ns;
    } else {
      spans[merged++] = spans[i];
    }
  }
  return merged;
}

/* How much of `span` the ascending `busy` cover. */
static int64_t covered(const struct cct_span *busy, int n, const struct cct_span *span) {
  int lo = 0, hi = n; /* the first that ends behind the span's start */
  int64_t sum = 0;
  while (lo < hi) {
    int middle = (lo + hi) / 2;
    if (busy[middle].end_ns > span->start_ns)
      hi = middle;
    else
      lo = middle + 1;
  }
  for (int i = lo; i < n && busy[i].start_ns < span->end_ns; i++) {
    int64_t from = busy[i].start_ns > span->start_ns ? busy[i].start_ns : span->start_ns;
    int64_t to = busy[i].end_ns < span->end_ns ? busy[i].end_ns : span->end_ns;
    sum += to > from ? to - from : 0;
  }
  return sum;
}

/* The collective that the entry is, or whose added time it stands for; -1: neither. */
static int collective_of(const struct cct_program *program, int id) {
  const struct cct_op *op = &program->ops[id];
  if (op->kind == CCT_OP_DELAY && op->delay.of >= 0)
    id = op->delay.of;
  return program->ops[id].kind == CCT_OP_COLLECTIVE ? id : -1;
}

enum cct_status cct_exposure_add(const struct cct_program *program, const struct cct_span *spans,
                                 struct cct_exposure *exposures, int n, double *moved_ns) {
  struct cct_span *busy = malloc(((size_t)program->n_ops + 1) * sizeof *busy);
  int *place = malloc(((size_t)program->n_ops + 1) * sizeof *place); /* of a collective in moved_ns */
  double *own_ns = calloc((size_t)program->n_ops + 1, sizeof *own_ns);
  int n_busy = 0, n_collectives = 0;
  if (!busy || !place || !own_ns) {
    free(busy);
    free(place);
    free(own_ns);
    return cct_fail(CCT_NOMEM, "out of memory: %d spans", program->n_ops);
  }
  for (int id = 0; id < program->n_ops; id++) {
    place[id] = program->ops[id].kind == CCT_OP_COLLECTIVE ? n_collectives++ : -1;
    if (is_compute(&program->ops[id]) && spans[id].end_ns > spans[id].start_ns)
      busy[n_busy++] = spans[id];
  }
  n_busy = merge(busy, n_busy);
  for (int id = 0; id < program->n_ops; id++) {
    int of = collective_of(program, id);
    int i = of < 0 ? -1 : cct_exposure_find(exposures, n, &program->ops[of]);
    if (of < 0 || spans[id].end_ns < spans[id].start_ns)
      continue;
    int64_t length = spans[id].end_ns - spans[id].start_ns;
    own_ns[place[of]] += (double)length;
    if (i < 0)
      continue;
    exposures[i].n += of == id;
    exposures[i].spent_ns += (double)length;
    exposures[i].exposed_ns += (double)(length - covered(busy, n_busy, &spans[id]));
  }
  for (int k = 0; moved_ns && k < n_collectives; k++)
    moved_ns[k] = own_ns[k] < moved_ns[k] ? own_ns[k] : moved_ns[k];
  free(busy);
  free(place);
  free(own_ns);
  return CCT_OK;
}
