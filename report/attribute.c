/* SPDX-License-Identifier: Apache-2.0 */
#include "report/attribute.h"

#include <stdio.h>

const char *cct_share_name(enum cct_boundary boundary) {
  static const char *const names[] = {
#define SHARE_NAME(id, name) name,
      CCT_BOUNDARIES(SHARE_NAME)
#undef SHARE_NAME
  };
  return names[boundary];
}

enum cct_status cct_attribute(struct cct_report *report) {
  for (int r = 0; r < report->n_results; r++)
    snprintf(report->results[r].attribution.why_not, sizeof report->results[r].attribution.why_not,
             "the arms are not off against an emulated profile");
  return CCT_OK;
}
