/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_block.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum cct_status cct_run_block_read(const struct cct_agenda *agenda, const char *folder, int b, int is_partial,
                                   struct cct_block **block_out) {
  char path[4400], partial[4420];
  struct cct_block *block;
  cct_agenda_path(folder, b, path, sizeof path);
  snprintf(partial, sizeof partial, "%s.partial", path);
  enum cct_status status = cct_block_read(is_partial ? partial : path, is_partial, &block);
  if (status)
    return status;
  if (strcmp(block->head.run, agenda->digest))
    status = cct_fail(CCT_DAMAGED, "%s: a block of another run", block->path);
  else if (block->head.block != b)
    status = cct_fail(CCT_DAMAGED, "%s: block %d of the run under this one's name", block->path, block->head.block);
  else if (block->n_cells != agenda->n_cells)
    status = cct_fail(CCT_DAMAGED, "%s: %d cells, and its run has %d", block->path, block->n_cells, agenda->n_cells);
  if (status)
    cct_block_free(block);
  else
    *block_out = block;
  return status;
}
