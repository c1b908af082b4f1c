/* SPDX-License-Identifier: Apache-2.0
 * What a reader must know of a cell or block beside its times. Texts are one line, "" where there is nothing. */
#ifndef CCT_REPORT_REMARKS_H
#define CCT_REPORT_REMARKS_H

#include <stddef.h>

#include "record/record.h"

/* Where the backend performed another number of submissions, graphs, nodes or kernels than the program counts: an
 * operation that a library performs by several kernels, or by none. */
void cct_counts_remark(const struct cct_cell_counts *program, const struct cct_cell_counts *performed, char *out,
                       size_t size);
/* The mark of a block of which a drift fact left its bounds: what was measured in it is kept, and to be read with care.
 */
void cct_block_mark(const struct cct_block *block, char *out, size_t size);

#endif
