/* SPDX-License-Identifier: Apache-2.0 */
#include "report/remarks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/runs.h"

static void add(char *out, size_t size, const char *separator, const char *text) {
  size_t length = strlen(out);
  snprintf(out + length, size - length, "%s%s", length ? separator : "", text);
}

void cct_counts_remark(const struct cct_cell_counts *program, const struct cct_cell_counts *performed, char *out,
                       size_t size) {
  const struct {
    const char *name;
    long long says, is;
  } counts[] = {{"submissions", program->submissions, performed->submissions},
                {"graphs", program->graphs, performed->graphs},
                {"nodes in graphs", program->nodes, performed->nodes},
                {"kernels", program->kernels, performed->kernels}};
  char part[80];
  *out = '\0';
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if (counts[i].says == counts[i].is)
      continue;
    snprintf(part, sizeof part, "%lld %s (its program says %lld)", counts[i].is, counts[i].name, counts[i].says);
    if (*out)
      add(out, size, ", ", part);
    else
      snprintf(out, size, "a step performed %s", part);
  }
}

/* "1.004" or "1.004 to 1.031": the greatest. */
static double most_of(const char *value) {
  const char *to = strstr(value, " to ");
  return strtod(to ? to + 4 : value, NULL);
}

/* NVML's reasons why clocks are held down; idling and what was asked for are none. */
#define HELD_DOWN (0x4 | 0x8 | 0x20 | 0x40 | 0x80)

static int is_shared(const struct cct_block *block) {
  return block->n_cells > 0 && block->cells[0].label && strstr(block->cells[0].label, "shared-gpu") != NULL;
}

void cct_block_mark(const struct cct_block *block, char *out, size_t size) {
  const char *beside = cct_block_fact(block, "delay.beside"), *slowed = cct_block_fact(block, "gpu.slowed_by"),
             *contexts = cct_block_fact(block, "gpu.contexts");
  char part[120];
  *out = '\0';
  if (beside && most_of(beside) > 1.02) {
    snprintf(part, sizeof part, "a delay slows a full GEMM on another lane to x%.3f (bar 1.02)", most_of(beside));
    add(out, size, "; ", part);
  }
  if (slowed && (long)most_of(slowed) & HELD_DOWN) {
    snprintf(part, sizeof part, "the GPU's clocks were held down (NVML reasons %.40s)", slowed);
    add(out, size, "; ", part);
  }
  if (contexts && most_of(contexts) > 1 && !is_shared(block)) {
    snprintf(part, sizeof part, "%.40s processes used the GPU", contexts);
    add(out, size, "; ", part);
  }
}
