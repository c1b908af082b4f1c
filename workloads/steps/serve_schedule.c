/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/text.h"
#include "workloads/steps/serve.h"

struct cct_engine_plan cct_serve_engine(const struct cct_serve *serve, int number) {
  return (struct cct_engine_plan){
      .limits = serve->limits,
      .replicas = serve->replicas,
      .first = number * serve->together,
      .together = serve->together,
  };
}

struct cct_serve_row cct_serve_row_of(const struct cct_serve *serve, const struct cct_engine_step *step) {
  struct cct_serve_step what = cct_serve_step_of(serve, step);
  struct cct_serve_row row = {.form = what.form, .padded = what.tokens};
  for (int64_t i = 0; i < serve->together; i++) {
    const struct cct_batch *batch = &step->batches[i];
    row.tokens = batch->tokens > row.tokens ? batch->tokens : row.tokens;
    row.sequences = batch->n > row.sequences ? batch->n : row.sequences;
    row.blocks += batch->blocks;
    row.preempted += batch->preempted;
  }
  return row;
}

enum cct_status cct_serve_schedule(const struct cct_serve *serve, const struct cct_requests *requests, int number,
                                   struct cct_serve_row **rows_out, int64_t *n_out) {
  const struct cct_engine_plan plan = cct_serve_engine(serve, number);
  struct cct_engine *engine;
  struct cct_engine_step step;
  struct cct_serve_row *rows = NULL;
  size_t n = 0, capacity = 0;
  if (requests->arrivals == CCT_ARRIVE_SECONDS)
    return cct_fail(CCT_USAGE, "requests that arrive in seconds are scheduled by the clock of a run");
  enum cct_status status = cct_engine_new(&plan, requests, &engine);
  if (status)
    return status;
  while (!(status = cct_engine_next(engine, 0, &step)) && !step.is_over &&
         !(status = cct_grow((void **)&rows, &capacity, n + 1, sizeof *rows)))
    rows[n++] = cct_serve_row_of(serve, &step);
  cct_engine_free(engine);
  if (status) {
    free(rows);
    return status;
  }
  *rows_out = rows;
  *n_out = (int64_t)n;
  return CCT_OK;
}
