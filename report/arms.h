/* SPDX-License-Identifier: Apache-2.0
 * Which arm each block belongs to. */
#ifndef CCT_REPORT_ARMS_H
#define CCT_REPORT_ARMS_H

#include "report/report.h"

/* What of a block counts in pairing: its arm, and a round that is unique within its boot (rounds of two runs are never
 * the same). */
struct cct_place {
  int arm, round;
};

/* Fills factor, arms and is_null of the report, and the place of each block. Two arms of one condition (one arm name in
 * several runs, or alone) become an A/A report, whose arms are told apart by run or by turn. */
enum cct_status cct_arms_find(const struct cct_runs *runs, struct cct_report *report,
                              struct cct_place *places) CCT_CHECKED;

#endif
