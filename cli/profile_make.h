/* SPDX-License-Identifier: Apache-2.0
 * A profile's document from fitted columns. A value that was not measured, or is unstable, is taken from a base
 * profile, marked assumed, and told; without a base it is missing and no profile is made of it. */
#ifndef CCT_CLI_PROFILE_MAKE_H
#define CCT_CLI_PROFILE_MAKE_H

#include "cli/profile_fit.h"
#include "json/json.h"

enum cct_value_state {
  CCT_VALUE_MEASURED,
  CCT_VALUE_DERIVED,  /* of sim, or an emulated arm */
  CCT_VALUE_TAKEN,    /* from the base: not measured */
  CCT_VALUE_REPLACED, /* from the base: measured, and unstable */
  CCT_VALUE_UNSTABLE, /* and no base */
  CCT_VALUE_MISSING,
};
struct cct_profile_line { /* what became of one value */
  char path[96];          /* "clear.copy.h2d.pinned.gb_s" */
  enum cct_value_state state;
  struct cct_estimate estimate;
};

struct cct_profile_report {
  struct cct_profile_line *lines; /* owned; then, from n_values on, what was measured and has no place in a profile */
  size_t n, capacity, n_values;
  int n_lost; /* unstable without a base, or missing */
  struct {    /* bytes at which moving them costs as much as the call, by column, direction and memory; 0: not known */
    double crossover_bytes[2][2];
  } copies[2];
};

/* `points` has a clear column, and may have the others. *document_out is whole only with n_lost 0. */
enum cct_status cct_profile_make(const struct cct_probe_points *points, const struct cct_profile *base,
                                 const char *name, struct cct_profile_report *report_out,
                                 struct cct_json **document_out) CCT_CHECKED;
void cct_profile_report_free(struct cct_profile_report *report);
const char *cct_value_state_name(enum cct_value_state state);

#endif
