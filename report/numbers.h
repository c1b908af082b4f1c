/* SPDX-License-Identifier: Apache-2.0
 * Numbers as readers see them, the same in the terminal, the page and the figures. */
#ifndef CCT_REPORT_NUMBERS_H
#define CCT_REPORT_NUMBERS_H

#include "report/report.h"

/* "31.2 %", "0.4 %": signed, with as many digits as the interval's half width supports (at least one). */
char *cct_percent_text(double percent, double half_width, char out[32]);
/* At least so many digits, without an exponent: "86468", "320", "0.0041". */
char *cct_digits_text(double value, int digits, char out[32]);
/* A metric's value with four digits, times in the unit that reads best: "1.081 s", "424.3 us"; "-" where it is not
 * finite. */
char *cct_value_text(double value, const char *unit, char out[48]);
/* "+31.2 % [+30.8, +31.6]", of the time */
char *cct_effect_text(const struct cct_comparison *comparison, char out[96]);
/* Of the metric's value what a comparison says of its time. */
struct cct_comparison cct_change_of(const struct cct_report_cell *cell, const struct cct_comparison *comparison);
/* What tables say of a row. */
struct cct_told {
  char time[96], throughput[32]; /* "-": it has none */
  char verdict[128];             /* of what is no speed with its change: "fewer, -25.0 %" */
};
void cct_tell_result(const struct cct_report *report, const struct cct_result *result, struct cct_told *told_out);

#endif
