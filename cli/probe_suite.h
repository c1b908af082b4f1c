/* SPDX-License-Identifier: Apache-2.0
 * The cells of `cctax probe`: every unit cost that a profile holds, and the experiments of the backend. */
#ifndef CCT_CLI_PROBE_SUITE_H
#define CCT_CLI_PROBE_SUITE_H

#include "json/json.h"

#define CCT_PROBE_QUESTION "What does each boundary of this machine cost by the piece?"

/* A suite.json document for `backend`, with collectives and messages over 2, 4, .. up to `np` ranks; NULL when out of
 * memory. Sizes are smaller on the host backend, whose work is the CPU's. */
struct cct_json *cct_probe_suite(const char *backend, int np);

#endif
