/* SPDX-License-Identifier: Apache-2.0 */
#include "report/spread.h"

#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "stats/stats.h"

enum cct_status cct_spread_of(const struct cct_report *report, int arm, int kind, struct cct_spread *spread_out) {
  double *effects = malloc(((size_t)report->n_cells + 1) * sizeof *effects);
  struct cct_spread spread = {.median = NAN};
  if (!effects)
    return cct_fail(CCT_NOMEM, "out of memory: the spread of %d cells", report->n_cells);
  for (int r = 0; r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    const struct cct_report_cell *cell = &report->cells[result->cell];
    if (result->arm != arm || result->verdict == CCT_VERDICT_REFUSED || !cell->is_primary ||
        (kind >= 0 ? cell->kind_index != kind : report->has_steps && !cell->model))
      continue;
    double effect = effects[spread.n++] = result->comparison.effect;
    if (!spread.least || effect < spread.least->comparison.effect)
      spread.least = result;
    if (!spread.most || effect > spread.most->comparison.effect)
      spread.most = result;
  }
  if (spread.n) {
    cct_sort(effects, (size_t)spread.n);
    spread.median = cct_quantile(effects, (size_t)spread.n, 0.5);
  }
  free(effects);
  *spread_out = spread;
  return CCT_OK;
}

int cct_spread_is_wide(const struct cct_spread *spread) {
  if (spread->n < 2)
    return 0;
  double lo = cct_time_overhead_pct(spread->least->comparison.effect),
         hi = cct_time_overhead_pct(spread->most->comparison.effect);
  return hi - lo > 5 && hi > 3 * lo;
}
