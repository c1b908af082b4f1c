/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/log.h"
#include "mpi_runner/block.h"

#define SAMPLES_TAG 77

/* This process's bursts as rows, by rank, then by sample: the same rows however many processes share the ranks. */
static struct cct_sample *rows_of(const struct cct_measured *measured, int64_t operations) {
  struct cct_sample *rows = calloc((size_t)measured->count * (size_t)measured->samples + 1, sizeof *rows);
  for (int r = 0; rows && r < measured->count; r++)
    for (int64_t s = 0; s < measured->samples; s++)
      rows[r * measured->samples + s] = (struct cct_sample){
          .rank = measured->first + r,
          .index = (int32_t)s,
          .n = (int32_t)(measured->n * operations),
          .start_ns = measured->start_ns[s],
          .value = (double)measured->burst_ns[s * measured->count + r] / (double)(measured->n * operations) / 1e3,
      };
  return rows;
}

enum cct_status cct_block_append(const struct cct_world *world, struct cct_record *record, int cell, int metric,
                                 const struct cct_sample *rows, int64_t n) {
  struct cct_sample *others;
  if (world->rank) {
    enum cct_status sent = world->ops->send(world, &n, sizeof n, 0, SAMPLES_TAG);
    return sent || n <= 0 ? sent : world->ops->send(world, rows, (size_t)n * sizeof *rows, 0, SAMPLES_TAG);
  }
  enum cct_status status = n > 0 ? cct_record_append(record, cell, metric, rows, (int)n) : CCT_OK;
  for (int p = 1; p < world->size; p++) {
    enum cct_status got = world->ops->recv(world, &n, sizeof n, p, SAMPLES_TAG);
    if (got)
      return got;
    if (n <= 0)
      continue;
    others = malloc((size_t)n * sizeof *others);
    if (!others)
      return cct_fail(CCT_NOMEM, "out of memory");
    got = world->ops->recv(world, others, (size_t)n * sizeof *others, p, SAMPLES_TAG);
    if (!got && !status)
      status = cct_record_append(record, cell, metric, others, (int)n);
    free(others);
    if (got)
      return got;
  }
  return status;
}

enum cct_status cct_block_collect(const struct cct_world *world, struct cct_record *record, int cell, int metric,
                                  const struct cct_measured *measured, int64_t operations) {
  struct cct_sample *rows = rows_of(measured, operations);
  int64_t n = rows ? (int64_t)measured->count * measured->samples : -1;
  enum cct_status status = rows ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status appended = cct_block_append(world, record, cell, metric, rows, n);
  free(rows);
  return status ? status : appended;
}
