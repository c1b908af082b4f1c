/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/show_steps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "mpi_runner/totals.h"
#include "report/numbers.h"
#include "workloads/backends/exposure.h"

void cct_show_training(const struct cct_agenda *agenda, int cell, int arm, double step_us, double checkpoint_us) {
  struct cct_options options;
  struct cct_step step;
  struct cct_counts counts;
  if (!isfinite(step_us) || cct_agenda_cell(agenda, cell, arm, &options))
    return;
  cct_log_mute(1); /* a cell that makes no step has no such figures */
  enum cct_status status = cct_step_build(&options, &step);
  cct_log_mute(0);
  cct_options_free(&options);
  if (status)
    return;
  if (step.model_flops > 0 && !cct_step_totals(&step, 0, &counts)) {
    double s = step_us / 1e6;
    if (step.checkpoint_every && isfinite(checkpoint_us)) {
      printf("    a checkpoint adds %.4g s to its step", (checkpoint_us - step_us) / 1e6);
      s += (checkpoint_us - step_us) / 1e6 / (double)step.checkpoint_every;
      printf(", 1 in %lld: %.6g s a step\n", (long long)step.checkpoint_every, s);
    }
    char tokens[32];
    printf("    %s tokens/s; %.4g model TFLOP/s a GPU, %.4g hardware TFLOP/s\n",
           cct_digits_text((double)step.tokens / s, 5, tokens), step.model_flops / step.job->ranks / s / 1e12,
           counts.flops / s / 1e12);
  }
  cct_step_free(&step);
}

/* The mean over ranks, steps and blocks of the arm; NAN: no value. */
static double mean_of(const struct cct_agenda *agenda, struct cct_block *const *blocks, int n_blocks, int cell, int arm,
                      const char *name) {
  double sum = 0;
  int n = 0;
  for (int b = 0; b < n_blocks; b++) {
    if (!blocks[b] || cct_agenda_block(agenda, b).arm != arm || blocks[b]->cells[cell].state != CCT_CELL_DONE)
      continue;
    for (int m = 0; m < blocks[b]->cells[cell].n_metrics; m++) {
      const struct cct_block_metric *metric = &blocks[b]->cells[cell].metrics[m];
      for (int i = 0; !strcmp(metric->metric.name, name) && i < metric->n_samples; i++, n++)
        sum += metric->samples[i].value;
    }
  }
  return n ? sum / n : NAN;
}

void cct_show_exposed(const struct cct_agenda *agenda, struct cct_block *const *blocks, int n_blocks, int cell,
                      int arm) {
  const struct cct_block_cell *known = NULL;
  for (int b = 0; b < n_blocks && !known; b++)
    if (blocks[b] && cct_agenda_block(agenda, b).arm == arm && blocks[b]->cells[cell].state == CCT_CELL_DONE)
      known = &blocks[b]->cells[cell];
  for (int m = 0; known && m < known->n_metrics; m++) {
    const char *name = known->metrics[m].metric.name, *what = name + strlen(CCT_METRIC_SPENT), *dot = strchr(what, '.');
    char other[64];
    if (strncmp(name, CCT_METRIC_SPENT, strlen(CCT_METRIC_SPENT)) || !dot)
      continue;
    snprintf(other, sizeof other, "%s%s", CCT_METRIC_EXPOSED, what);
    double spent = mean_of(agenda, blocks, n_blocks, cell, arm, name);
    double exposed = mean_of(agenda, blocks, n_blocks, cell, arm, other);
    if (spent > 0)
      printf("    %.*s over %s: %.6g us, %.1f %% exposed\n", (int)(dot - what), what, dot + 1, spent,
             100 * exposed / spent);
  }
}
