/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/text.h"
#include "workloads/steps/serve.h"

int cct_serve_engines(const struct cct_serve *serve) {
  return (int)(serve->replicas / serve->together);
}

struct cct_cluster_plan cct_serve_cluster(const struct cct_serve *serve) {
  return (struct cct_cluster_plan){serve->limits, serve->prefills, serve->decodes, serve->is_staged};
}

int cct_serve_is_clocked(const struct cct_serve *serve) {
  return serve->requests.arrivals == CCT_ARRIVE_SECONDS ||
         (serve->prefills && serve->requests.arrivals == CCT_ARRIVE_CLOSED);
}

struct cct_engine_plan cct_serve_engine(const struct cct_serve *serve, int number) {
  const struct cct_cluster_plan cluster = cct_serve_cluster(serve);
  if (serve->prefills)
    return cct_cluster_engine(&cluster, number);
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
    row.moved += batch->n_moves;
    row.moved_blocks += batch->moved_blocks;
  }
  return row;
}

enum cct_status cct_serve_walk_open(const struct cct_serve *serve, const struct cct_requests *requests, int number,
                                    struct cct_serve_walk *walk) {
  const struct cct_engine_plan plan = cct_serve_engine(serve, number);
  const struct cct_cluster_plan cluster = cct_serve_cluster(serve);
  *walk = (struct cct_serve_walk){.number = number};
  if (cct_serve_is_clocked(serve))
    return cct_fail(CCT_USAGE, "these requests are scheduled by the clock of a run");
  if (!serve->prefills)
    return cct_engine_new(&plan, requests, &walk->engine);
  walk->turns = calloc((size_t)cct_serve_engines(serve), sizeof *walk->turns);
  if (!walk->turns)
    return cct_fail(CCT_NOMEM, "out of memory");
  return cct_cluster_new(&cluster, requests, &walk->cluster);
}

enum cct_status cct_serve_walk_next(struct cct_serve_walk *walk, struct cct_engine_step *step_out) {
  if (walk->engine)
    return cct_engine_next(walk->engine, 0, step_out);
  enum cct_status status = cct_cluster_next(walk->cluster, NULL, walk->turns);
  *step_out = walk->turns[walk->number].step;
  step_out->is_over = walk->turns[walk->number].is_over;
  return status;
}

void cct_serve_walk_close(struct cct_serve_walk *walk) {
  cct_engine_free(walk->engine);
  cct_cluster_free(walk->cluster);
  free(walk->turns);
}

enum cct_status cct_serve_schedule(const struct cct_serve *serve, const struct cct_requests *requests, int number,
                                   struct cct_serve_row **rows_out, int64_t *n_out) {
  struct cct_serve_walk walk;
  struct cct_engine_step step;
  struct cct_serve_row *rows = NULL;
  size_t n = 0, capacity = 0;
  enum cct_status status = cct_serve_walk_open(serve, requests, number, &walk);
  while (!status && !(status = cct_serve_walk_next(&walk, &step)) && !step.is_over &&
         !(status = cct_grow((void **)&rows, &capacity, n + 1, sizeof *rows)))
    rows[n++] = cct_serve_row_of(serve, &step);
  cct_serve_walk_close(&walk);
  if (status) {
    free(rows);
    return status;
  }
  *rows_out = rows;
  *n_out = (int64_t)n;
  return CCT_OK;
}
