/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/run.h"

void cct_progress_start(struct cct_progress *progress, int n_blocks, int n_cells, int is_quiet) {
  *progress = (struct cct_progress){.n_blocks = n_blocks, .n_cells = n_cells, .is_quiet = is_quiet};
  progress->is_terminal = isatty(STDERR_FILENO);
  progress->start_ns = cct_clock_ns();
}

/* "12 s", "3 min 20 s", "2 h 5 min" */
static char *time_text(double seconds, char out[32]) {
  long long s = (long long)(seconds + 0.5);
  if (s < 60)
    snprintf(out, 32, "%lld s", s);
  else if (s < 3600)
    snprintf(out, 32, "%lld min %lld s", s / 60, s % 60);
  else
    snprintf(out, 32, "%lld h %lld min", s / 3600, s % 3600 / 60);
  return out;
}

void cct_progress_cell(void *context, int cells_done) {
  const struct cct_progress *progress = context;
  double done = (double)progress->block * progress->n_cells + cells_done;
  double total = (double)progress->n_blocks * progress->n_cells;
  double elapsed_s = (double)(cct_clock_ns() - progress->start_ns) / 1e9;
  char left[32];
  if (!progress->is_terminal || progress->is_quiet || done <= 0)
    return;
  fprintf(stderr, "\r\033[Kblock %d of %d (%s): cell %d of %d, %s left", progress->block + 1, progress->n_blocks,
          progress->text, cells_done, progress->n_cells, time_text(elapsed_s * (total - done) / done, left));
}

void cct_progress_end_block(struct cct_progress *progress, double block_s, int is_done) {
  char took[32], left[32];
  double elapsed_s = (double)(cct_clock_ns() - progress->start_ns) / 1e9;
  progress->block++;
  if (progress->is_quiet)
    return;
  if (progress->is_terminal)
    fprintf(stderr, "\r\033[K");
  if (!is_done)
    return;
  snprintf(took, sizeof took, "%.1f s", block_s);
  fprintf(stderr, "block %d of %d (%s): %s, %s left\n", progress->block, progress->n_blocks, progress->text, took,
          time_text(elapsed_s * (progress->n_blocks - progress->block) / progress->block, left));
}
