/* SPDX-License-Identifier: Apache-2.0
 * Where the cost comes from. Each boundary's share is what sim says the step loses when it alone is switched on, and
 * gains when it alone is switched off; what shares leave over is interaction; what sim leaves over is residual. */
#ifndef CCT_REPORT_ATTRIBUTE_H
#define CCT_REPORT_ATTRIBUTE_H

#include "base/status.h"
#include "report/report.h"

/* Fills the attribution of every result, or why it has none; a cell that sim cannot play is no error. An emulated arm
 * is played by its own profile, any other by `profile` (NULL: none given), each with as many repetitions a burst as its
 * samples had; the clear machine is `profile`, else what sim played, else the emulated one. A profile that is not the
 * one that was played (by its digest) attributes nothing. Of a baseline with surcharges of its own (emulated, stripped)
 * shares are the arm's less the baseline's. An arm that does not emulate is played with as many submissions and graph
 * nodes as its backend performed, where that is known. Also fills the cells' tokens. */
enum cct_status cct_attribute(struct cct_report *report, const char *profile) CCT_CHECKED;

#endif
