/* SPDX-License-Identifier: Apache-2.0
 * Where the cost comes from. Each boundary's share is what sim says the step loses when it alone is switched on, and
 * gains when it alone is switched off; what shares leave over is interaction; what sim leaves over is residual. */
#ifndef CCT_REPORT_ATTRIBUTE_H
#define CCT_REPORT_ATTRIBUTE_H

#include "base/status.h"
#include "report/report.h"

/* Fills the attribution of every result, or why it has none. A cell that sim cannot play costs no error. */
enum cct_status cct_attribute(struct cct_report *report) CCT_CHECKED;

/* "command_channel", ... */
const char *cct_share_name(enum cct_boundary boundary);

#endif
