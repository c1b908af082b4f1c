/* SPDX-License-Identifier: Apache-2.0
 * What a doctor can only know by trying: experiments of the CUDA backend in a block of cctax-rank, as facts of a
 * machine. Nothing is set, no multicast object made, and no more than 2 MiB of managed memory. */
#ifndef CCT_CLI_DOCTOR_TRIALS_H
#define CCT_CLI_DOCTOR_TRIALS_H

#include "base/option.h"
#include "cli/probe_points.h"
#include "machine/machine.h"

/* Sets the TRY facts of `machine`, of which it reads how many GPUs there are. What a GPU refused stays not known.
 * CCT_UNSUPPORTED, with a line, where nothing can be tried. */
enum cct_status cct_doctor_try(const struct cct_options *options, struct cct_machine *machine) CCT_CHECKED;
/* The same from what was measured. */
void cct_doctor_trial_facts(const struct cct_probe_set *set, struct cct_machine *machine);

#endif
