/* SPDX-License-Identifier: Apache-2.0
 * What an agenda compares: the factor and its arms, from a suite and the flags that replace its own. */
#ifndef CCT_MPI_RUNNER_AGENDA_ARMS_H
#define CCT_MPI_RUNNER_AGENDA_ARMS_H

#include "mpi_runner/agenda.h"
#include "mpi_runner/suite.h"

#define CCT_EMULATED "emulated:" /* opens a condition that names a profile */

/* `standard`: the condition where neither says one. The agenda's backend and cells are known. */
enum cct_status cct_agenda_plan_arms(const struct cct_suite *suite, const struct cct_options *flags,
                                     const char *standard, struct cct_agenda *agenda) CCT_CHECKED;
/* The key of a cell that the arms set; CCT_OPTION_COUNT: they are of another factor. */
enum cct_option_id cct_agenda_cell_factor(const struct cct_agenda *agenda);

#endif
