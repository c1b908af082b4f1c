/* SPDX-License-Identifier: Apache-2.0 */
#include "report/numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/series.h"

char *cct_percent_text(double percent, double half_width, char out[32]) {
  int digits = isfinite(half_width) && half_width > 0 ? (int)ceil(-log10(half_width)) : 1;
  digits = digits < 1 ? 1 : digits > 3 ? 3 : digits;
  if (fabs(percent) >= 100 && digits > 1)
    digits = 1;
  /* A true minus sign would be handsomer; a hyphen is what other tools read back. */
  snprintf(out, 32, "%+.*f %%", digits, percent == 0 ? 0.0 : percent);
  return out;
}

char *cct_digits_text(double value, int digits, char out[32]) {
  int places = value != 0 && isfinite(value) ? digits - 1 - (int)floor(log10(fabs(value))) : 0;
  if (fabs(value) >= 1e15 || places > 9)
    snprintf(out, 32, "%.*g", digits, value);
  else
    snprintf(out, 32, "%.*f", places > 0 ? places : 0, value);
  return out;
}

/* Four digits, those behind the point too: 3.090 beside 2.887. */
static int decimals(double value) {
  double size = fabs(value);
  return size >= 999.95 || size == 0 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
}

char *cct_value_text(double value, const char *unit, char out[48]) {
  static const struct {
    const char *unit;
    double seconds;
  } times[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  if (!isfinite(value)) {
    snprintf(out, 48, "-");
    return out;
  }
  for (size_t i = 0; i < sizeof times / sizeof *times; i++)
    if (!strcmp(unit, times[i].unit)) { /* in the largest unit of which there is at least one */
      double seconds = value * times[i].seconds;
      size_t k = 0;
      while (k + 1 < sizeof times / sizeof *times && seconds < 0.99995 * times[k].seconds)
        k++;
      snprintf(out, 48, "%.*f %s", decimals(seconds / times[k].seconds), seconds / times[k].seconds, times[k].unit);
      return out;
    }
  char number[32];
  if (fabs(value) < 9999.5)
    snprintf(number, sizeof number, "%.4g", value);
  snprintf(out, 48, "%.15s %.24s", fabs(value) < 9999.5 ? number : cct_digits_text(value, 4, number), unit);
  return out;
}

char *cct_effect_text(const struct cct_comparison *c, char out[96]) {
  char middle[32], lo[32], hi[32];
  if (!isfinite(c->effect))
    return strcpy(out, "refused");
  double half = c->df > 0 ? (cct_time_overhead_pct(c->hi) - cct_time_overhead_pct(c->lo)) / 2 : NAN;
  cct_percent_text(cct_time_overhead_pct(c->effect), half, middle);
  if (!(c->df > 0) || !(c->se > 1e-12)) { /* nothing known of the spread, or none: sim */
    snprintf(out, 96, "%s", middle);
    return out;
  }
  cct_percent_text(cct_time_overhead_pct(c->lo), half, lo);
  cct_percent_text(cct_time_overhead_pct(c->hi), half, hi);
  snprintf(out, 96, "%s [%.*s, %.*s]", middle, (int)strlen(lo) - 2, lo, (int)strlen(hi) - 2, hi);
  return out;
}

struct cct_comparison cct_change_of(const struct cct_report_cell *cell, const struct cct_comparison *comparison) {
  struct cct_comparison change = *comparison;
  if (!strcmp(cell->metric.better, "higher")) {
    change.effect = -comparison->effect;
    change.lo = -comparison->hi;
    change.hi = -comparison->lo;
  }
  return change;
}

void cct_tell_result(const struct cct_report *report, const struct cct_result *result, struct cct_told *told_out) {
  const struct cct_report_cell *cell = &report->cells[result->cell];
  const struct cct_comparison *c = &result->comparison, change = cct_change_of(cell, c);
  const enum cct_measure measure = cct_metric_measure(&cell->metric);
  const char *verdict = cct_verdict_name(result->verdict);
  char text[96];
  int is_known = result->verdict != CCT_VERDICT_REFUSED;
  *told_out = (struct cct_told){"-", "-", ""};
  snprintf(told_out->verdict, sizeof told_out->verdict, "%s", verdict);
  if (measure != CCT_MEASURE_COUNT)
    cct_effect_text(c, told_out->time);
  else if (is_known)
    snprintf(told_out->verdict, sizeof told_out->verdict, "%s, %s", verdict, cct_effect_text(&change, text));
  if (measure == CCT_MEASURE_WORK && is_known)
    cct_percent_text(-cct_throughput_loss_pct(c->effect), NAN, told_out->throughput);
}
