/* SPDX-License-Identifier: Apache-2.0
 * What commands with a suite of their own (probe, coll) share: which backend, how many ranks, and the run. */
#ifndef CCT_CLI_OWN_SUITE_H
#define CCT_CLI_OWN_SUITE_H

#include "cli/run.h"
#include "json/json.h"

#define CCT_OWN_SUITE "/tmp/cctax-suite-" /* how the file of such a suite begins */
#define CCT_SIM_PLAYS "b200x8-tdx"        /* as a run without --profile does */

/* Replaces backend auto by cuda where it can work, else by sim, saying why. */
enum cct_status cct_own_backend(struct cct_options *options) CCT_CHECKED;
/* --np, or as many as there are GPUs, at most 8: of this machine, or of the one that sim plays; 2 on the host backend.
 */
enum cct_status cct_own_ranks(const struct cct_options *options, int *np_out) CCT_CHECKED;
/* --resume or --append alone, or beside flags that change no cell: the run goes on as it was begun. Where there are
 * others, the suite that they make is held against the run's. */
int cct_own_goes_on(const struct cct_options *options);
/* Refuses to go on with a run whose suite asks another question than that of `command`, which began none such. */
enum cct_status cct_own_check_begun(const char *folder, const char *question, const char *command) CCT_CHECKED;
/* 1: the cells of the run are those of the suite, in its order. */
int cct_own_has_cells(const struct cct_agenda *agenda, const struct cct_json *suite);
/* Performs `suite` (NULL: out of memory; freed) under flags that change none of its cells; `again` as of
 * cct_run_perform. */
enum cct_status cct_own_perform(const struct cct_options *options, struct cct_json *suite, cct_run_print *print,
                                const char *again) CCT_CHECKED;

#endif
