/* SPDX-License-Identifier: Apache-2.0
 * The rules against NCCL's default, in alternating blocks: one ratio a pair, an interval of the ordered ratios a cell.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/run_block.h"
#include "cli/tune.h"
#include "mpi_runner/agenda.h"
#include "record/record.h"

#define SHARE_OF_GAIN 0.9
#define NO_GAIN       0.995 /* a grid that gains less has nothing to lose a tenth of; then the mean may be noise above 1 */

/* us[(kind * n_bytes + size) * rounds + round] of NCCL's default (0) and of the tuned (1). */
struct pairs {
  double *us[2];
  int rounds;
};

static enum cct_status take(const struct cct_tune_plan *plan, const struct cct_agenda *agenda, int b, const char *run,
                            struct pairs *pairs, struct cct_tune_data *facts, int *n_wrong) {
  struct cct_block_at at = cct_agenda_block(agenda, b);
  struct cct_block *block;
  enum cct_status status = cct_run_block_read(agenda, run, b, 0, &block);
  if (status)
    return status;
  cct_tune_facts_read(block, facts);
  for (int i = 0; i < block->n_cells && i < agenda->n_cells; i++) {
    struct cct_tune_place place = cct_tune_place_of(plan, &agenda->cells[i]);
    int is_tuned = cct_tune_verifies_by_plugin(plan) ? at.arm : place.is_chosen;
    if (place.kind < 0 || at.round >= pairs->rounds)
      continue;
    *n_wrong += block->cells[i].state == CCT_CELL_FAILED;
    pairs->us[is_tuned != 0][(place.kind * plan->n_bytes + place.size) * pairs->rounds + at.round] =
        cct_tune_cell_us(&block->cells[i]);
  }
  cct_block_free(block);
  return CCT_OK;
}

static void conclude(const struct cct_tune_plan *plan, const struct pairs *pairs, struct cct_tune_held held_out[]) {
  for (int k = 0; k < plan->n_kinds; k++)
    for (int s = 0; s < plan->n_bytes; s++) {
      struct cct_tune_held *held = &held_out[k * plan->n_bytes + s];
      double ratios[CCT_TUNE_MOST_PROCESSES], times[2][CCT_TUNE_MOST_PROCESSES];
      size_t n = 0;
      for (int r = 0; r < pairs->rounds; r++) {
        int64_t at = (int64_t)(k * plan->n_bytes + s) * pairs->rounds + r;
        double ratio = pairs->us[1][at] / pairs->us[0][at];
        if (!isfinite(ratio))
          continue;
        times[0][n] = pairs->us[0][at];
        times[1][n] = pairs->us[1][at];
        ratios[n++] = ratio;
      }
      *held = (struct cct_tune_held){.us = {NAN, NAN}, .ratio = cct_interval_ordered(ratios, n)};
      for (int i = 0; n && i < 2; i++)
        held->us[i] = cct_median(times[i], n);
    }
}

enum cct_status cct_tune_verify_read(const struct cct_tune_plan *plan, const char *run, struct cct_tune_data *facts,
                                     struct cct_tune_held held_out[], int *n_failed_out) {
  struct cct_agenda *agenda;
  struct pairs pairs = {.rounds = 0};
  enum cct_status status = cct_agenda_load(run, &agenda);
  if (status)
    return status;
  pairs.rounds = (int)(agenda->rounds < CCT_TUNE_MOST_PROCESSES ? agenda->rounds : CCT_TUNE_MOST_PROCESSES);
  size_t n = (size_t)plan->n_kinds * (size_t)plan->n_bytes * (size_t)pairs.rounds;
  for (int i = 0; i < 2; i++) {
    pairs.us[i] = malloc((n + 1) * sizeof(double));
    for (size_t v = 0; pairs.us[i] && v < n; v++)
      pairs.us[i][v] = NAN;
  }
  if (!pairs.us[0] || !pairs.us[1])
    status = cct_fail(CCT_NOMEM, "out of memory");
  for (int b = 0; !status && b < cct_agenda_blocks(agenda); b++)
    status = take(plan, agenda, b, run, &pairs, facts, n_failed_out);
  if (!status)
    conclude(plan, &pairs, held_out);
  free(pairs.us[0]);
  free(pairs.us[1]);
  cct_agenda_free(agenda);
  return status;
}

static int is_slower(const struct cct_ordered *ratio) {
  return ratio->n && ratio->lo > CCT_TUNE_SLOWER;
}

void cct_tune_missed(const struct cct_tune_plan *plan, const struct cct_tune_verdict *verdict,
                     struct cct_tune_cells *missed_out) {
  memset(missed_out, 0, sizeof *missed_out);
  for (int k = 0; k < plan->n_kinds; k++)
    for (int s = 0; s < plan->n_bytes; s++)
      if (is_slower(&verdict->first[k * plan->n_bytes + s].ratio)) {
        missed_out->is_in[k][s] = 1;
        missed_out->n++;
      }
}

void cct_tune_judge(const struct cct_tune_plan *plan, const struct cct_tune_decision *decision,
                    struct cct_tune_verdict *verdict) {
  struct cct_tune_mean mean = {0};
  verdict->n_missed = verdict->n_still = verdict->n_unknown = 0;
  for (int i = 0; i < plan->n_kinds * plan->n_bytes; i++) {
    const struct cct_tune_held *first = &verdict->first[i], *again = &verdict->again[i];
    int is_missed = is_slower(&first->ratio);
    verdict->n_missed += is_missed;
    verdict->n_still += is_missed && (!again->ratio.n || is_slower(&again->ratio));
    verdict->n_unknown += !first->ratio.n;
    if (!first->ratio.n)
      continue;
    mean.sum += log(first->ratio.median);
    mean.n++;
  }
  verdict->gain = exp(cct_tune_log_mean(&mean));
  verdict->is_gain_held = decision->grid_gain < NO_GAIN ? log(verdict->gain) <= SHARE_OF_GAIN * log(decision->grid_gain)
                                                        : verdict->gain < 2 - NO_GAIN;
  verdict->is_held = mean.n && !verdict->n_unknown && !verdict->n_failed && verdict->is_gain_held && !verdict->n_still;
}
