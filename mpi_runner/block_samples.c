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

enum cct_status cct_block_collect(const struct cct_world *world, struct cct_record *record, int cell,
                                  const struct cct_measured *measured, int64_t operations) {
  struct cct_sample *rows = rows_of(measured, operations);
  int64_t n = rows ? (int64_t)measured->count * measured->samples : -1;
  enum cct_status status = rows ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  if (world->rank) {
    enum cct_status sent = world->ops->send(world, &n, sizeof n, 0, SAMPLES_TAG);
    if (!sent && n > 0)
      sent = world->ops->send(world, rows, (size_t)n * sizeof *rows, 0, SAMPLES_TAG);
    free(rows);
    return status ? status : sent;
  }
  if (!status)
    status = cct_record_append(record, cell, 0, rows, (int)n);
  free(rows);
  for (int p = 1; p < world->size; p++) {
    enum cct_status got = world->ops->recv(world, &n, sizeof n, p, SAMPLES_TAG);
    if (got)
      return got;
    if (n <= 0)
      continue;
    rows = malloc((size_t)n * sizeof *rows);
    if (!rows)
      return cct_fail(CCT_NOMEM, "out of memory");
    got = world->ops->recv(world, rows, (size_t)n * sizeof *rows, p, SAMPLES_TAG);
    if (!got && !status)
      status = cct_record_append(record, cell, 0, rows, (int)n);
    free(rows);
    if (got)
      return got;
  }
  return status;
}
