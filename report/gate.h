/* SPDX-License-Identifier: Apache-2.0
 * May these blocks be compared at all? Every fact has a class (record.h). Identity facts must be equal in all blocks.
 * Condition facts must be equal within an arm; between arms they may differ only where the arms' factor sets them, and
 * there they must be what the arm says. Replicate facts are levels, drift facts are reported. */
#ifndef CCT_REPORT_GATE_H
#define CCT_REPORT_GATE_H

#include "base/status.h"
#include "report/runs.h"

struct cct_gate_finding { /* a difference that --allow let through */
  char name[48];
  enum cct_fact_class fact_class;
  char left[128], right[128]; /* the two values, "absent" where a block lacks the fact */
};

struct cct_gate {
  struct cct_gate_finding allowed[32];
  int n_allowed;
};

/* Refuses (CCT_USAGE, one line: fact, class, both values) unless `allow` ("FACT,FACT" or NULL) names the fact. A name
 * in `allow` that is no fact of the runs is refused too. */
enum cct_status cct_gate_check(const struct cct_runs *runs, const char *allow, struct cct_gate *gate_out) CCT_CHECKED;

/* Whether arms of `factor` may differ in the condition fact `name`. */
int cct_factor_sets(const char *factor, const char *name);

#endif
