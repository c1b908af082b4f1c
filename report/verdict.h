/* SPDX-License-Identifier: Apache-2.0
 * What a report says in words: how much, how sure, where from, what to do. One place, for the terminal and the page. */
#ifndef CCT_REPORT_VERDICT_H
#define CCT_REPORT_VERDICT_H

#include "base/text.h"
#include "report/report.h"

#define CCT_VERDICT_PARTS(X)                                                                                           \
  X(HOW_MUCH, "How much") X(HOW_SURE, "How sure") X(WHERE_FROM, "Where from") X(WHAT_TO_DO, "What to do")
enum cct_verdict_part {
#define CCT_VERDICT_PART_ENUM(id, title) CCT_VERDICT_##id,
  CCT_VERDICT_PARTS(CCT_VERDICT_PART_ENUM)
#undef CCT_VERDICT_PART_ENUM
  CCT_VERDICT_PART_COUNT
};
const char *cct_verdict_title(enum cct_verdict_part part);
/* Plain sentences, no markup; a line each that stands alone. */
void cct_verdict_text(const struct cct_report *report, enum cct_verdict_part part, struct cct_text *text);

/* " over the 3 whose requests do not come at a rate"; "" where that is all that the mean is over. */
#define CCT_SCOPE_TEXT 80
char *cct_throughput_scope(const struct cct_report *report, int arm, char out[CCT_SCOPE_TEXT]);

#endif
