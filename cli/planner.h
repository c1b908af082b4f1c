/* SPDX-License-Identifier: Apache-2.0
 * Pricing layouts before the machine exists: every figure is predicted by the sim backend from a profile's unit costs.
 *
 * serve is composed of its steps: C requests at once over dp replicas, ceil(C / dp) prompts read one after the other,
 * then O decode steps at that batch; tok/s = C x O / time. One token's time is a decode step's. A boundary's share is
 * the step with it alone less the clear step; interaction is all of them together less the clear step less the sum of
 * the shares. lo and hi come from the bounds of the profile's confidential costs, all moved at once, never below the
 * clear cost. */
#ifndef CCT_CLI_PLANNER_H
#define CCT_CLI_PLANNER_H

#include "base/option.h"
#include "workloads/program/emulate.h"
#include "workloads/shape/footprint.h"

struct cct_slo_point { /* what one column can serve within --slo */
  int64_t concurrency; /* the largest at which a token takes no longer; 0: not even one request */
  double tokens_per_s, gpus, price;
};

struct cct_plan_row {
  struct cct_layout layout;
  char text[64];
  struct cct_footprint footprint;
  double room_bytes; /* what the profile leaves a rank: memory less reserve */
  int fits;
  double clear_ns, confidential_ns, lo_ns, hi_ns; /* of a step, or of all requests (serve) */
  double token_clear_ns, token_confidential_ns;   /* of a decode step; 0 for other workloads */
  double share_ns[CCT_BOUNDARY_COUNT], interaction_ns;
  double tokens;     /* that the time above makes */
  double link_bytes; /* that a rank sends over tp and ep for a token in the last layer, in all passes of the step */
  int is_scaled, is_stand_in;
  struct cct_slo_point slo_clear, slo_confidential;
};

struct cct_planner; /* a model on a profile, with the profile's bounds */

enum cct_status cct_planner_open(const struct cct_options *options, struct cct_planner **planner_out) CCT_CHECKED;
void cct_planner_close(struct cct_planner *planner); /* NULL-safe */
const struct cct_model *cct_planner_model(const struct cct_planner *planner);
const struct cct_profile *cct_planner_profile(const struct cct_planner *planner);

/* Prices every layout of `cell` (layouts and np from its options), best confidential throughput first, what does not
 * fit last. free() the rows. */
enum cct_status cct_planner_rank(const struct cct_planner *planner, const struct cct_options *cell,
                                 struct cct_plan_row **rows_out, int *n_out) CCT_CHECKED;
/* One layout. */
enum cct_status cct_planner_price(const struct cct_planner *planner, const struct cct_options *cell,
                                  const struct cct_layout *layout, struct cct_plan_row *row_out) CCT_CHECKED;

/* One sentence where the figures support it (the bounds do not overlap), else 0 and nothing written. */
int cct_plan_advice(const struct cct_options *cell, const struct cct_plan_row *rows, int n, char *text, size_t size);

static inline double cct_per_second(double tokens, double ns) {
  return tokens / (ns * 1e-9);
}
static inline double cct_per_cent(double part_ns, double whole_ns) {
  return 100 * part_ns / whole_ns;
}

#endif
