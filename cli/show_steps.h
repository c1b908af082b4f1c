/* SPDX-License-Identifier: Apache-2.0
 * What cctax show says of a step beside its time. */
#ifndef CCT_CLI_SHOW_STEPS_H
#define CCT_CLI_SHOW_STEPS_H

#include "mpi_runner/agenda.h"
#include "record/record.h"

/* Of a training step: tokens/s and TFLOP/s a GPU (workloads/shape/flops.h), from the medians of a step and of one with
 * a checkpoint (NAN: there is none). Nothing for other cells. */
void cct_show_training(const struct cct_agenda *agenda, int cell, int arm, double step_us, double checkpoint_us);
/* A line for each kind and group of collectives: what a rank spends in it, and how much of that is exposed. */
void cct_show_exposed(const struct cct_agenda *agenda, struct cct_block *const *blocks, int n_blocks, int cell,
                      int arm);

#endif
