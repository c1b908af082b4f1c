/* SPDX-License-Identifier: Apache-2.0
 * The blocks of a run as commands read them. */
#ifndef CCT_CLI_RUN_BLOCK_H
#define CCT_CLI_RUN_BLOCK_H

#include "mpi_runner/agenda.h"
#include "record/record.h"

/* Block `b` of the run in `folder`, finished or, with `is_partial`, begun. One of another run, number or cells than the
 * agenda has there is CCT_DAMAGED: whoever reads goes by the agenda. */
enum cct_status cct_run_block_read(const struct cct_agenda *agenda, const char *folder, int b, int is_partial,
                                   struct cct_block **block_out) CCT_CHECKED;

#endif
