/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static void bound_time(struct cct_cost *cost, const struct cct_cost *clear, int is_dear) {
  cost->value = is_dear ? cost->hi : fmin(cost->value, fmax(cost->lo, clear->value));
}

static void bound_rate(struct cct_cost *cost, const struct cct_cost *clear, int is_dear) {
  cost->value = is_dear ? cost->lo : fmax(cost->value, fmin(cost->hi, clear->value));
}

/* The clear row of the same operation, ranks, algorithm and protocol; a row without one is its own. */
static const struct cct_collective_cost *clear_row(const struct cct_profile *profile,
                                                   const struct cct_collective_cost *row) {
  for (int i = 0; i < profile->clear.n_collectives; i++) {
    const struct cct_collective_cost *clear = &profile->clear.collectives[i];
    if (clear->kind == row->kind && clear->ranks == row->ranks && !strcmp(clear->algorithm, row->algorithm) &&
        !strcmp(clear->protocol, row->protocol))
      return clear;
  }
  return row;
}

enum cct_status cct_profile_at_bound(const struct cct_profile *profile, int is_dear, struct cct_profile *bounded_out) {
  struct cct_profile bounded = *profile;
  struct cct_column *column = &bounded.confidential;
  const struct cct_column *clear = &profile->clear;
  size_t bytes = (size_t)column->n_collectives * sizeof *column->collectives;
  column->collectives = malloc(bytes + 1);
  if (!column->collectives)
    return cct_fail(CCT_NOMEM, "out of memory");
  memcpy(column->collectives, profile->confidential.collectives, bytes);
  bound_time(&column->submission.us, &clear->submission.us, is_dear);
  bound_time(&column->graph_launch.us, &clear->graph_launch.us, is_dear);
  bound_time(&column->graph_launch.us_per_node, &clear->graph_launch.us_per_node, is_dear);
  bound_time(&column->sync_us, &clear->sync_us, is_dear);
  bound_time(&column->cpu_slowdown, &clear->cpu_slowdown, is_dear);
  bound_time(&column->p2p.short_write_us, &clear->p2p.short_write_us, is_dear);
  bound_rate(&column->p2p.sm_gb_s, &clear->p2p.sm_gb_s, is_dear);
  bound_rate(&column->p2p.ce_gb_s, &clear->p2p.ce_gb_s, is_dear);
  for (int i = 0; i < 4; i++) {
    bound_time(&column->copy[i / 2][i % 2].fixed_us, &clear->copy[i / 2][i % 2].fixed_us, is_dear);
    bound_rate(&column->copy[i / 2][i % 2].gb_s, &clear->copy[i / 2][i % 2].gb_s, is_dear);
  }
  for (int i = 0; i < column->n_collectives; i++) {
    struct cct_collective_cost *row = &column->collectives[i];
    const struct cct_collective_cost *reference = clear_row(profile, &profile->confidential.collectives[i]);
    bound_time(&row->toll_us_eager, &reference->toll_us_eager, is_dear);
    bound_time(&row->toll_us_graph, &reference->toll_us_graph, is_dear);
    bound_rate(&row->busbw_gb_s, &reference->busbw_gb_s, is_dear);
  }
  *bounded_out = bounded;
  return CCT_OK;
}

void cct_bounded_free(struct cct_profile *bounded) {
  free(bounded->confidential.collectives);
  memset(bounded, 0, sizeof *bounded);
}
