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
/* Plain sentences, no markup. */
void cct_verdict_text(const struct cct_report *report, enum cct_verdict_part part, struct cct_text *text);

/* "31.2 %", "0.4 %": signed, with as many digits as the interval's half width supports (at least one). */
char *cct_percent_text(double percent, double half_width, char out[32]);
/* A metric's value with four digits, times in the unit that reads best: "1.081 s", "424.3 us"; "-" where it is not
 * finite. */
char *cct_value_text(double value, const char *unit, char out[48]);
/* "+31.2 % [+30.8, +31.6]", of the time */
char *cct_effect_text(const struct cct_comparison *comparison, char out[96]);

#endif
