/* SPDX-License-Identifier: Apache-2.0
 * The points behind a value of probes: which cells, whether their repeats agree, and the line through them. Private to
 * what makes profiles. Times are us, sizes bytes. */
#ifndef CCT_CLI_PROFILE_CLOUD_H
#define CCT_CLI_PROFILE_CLOUD_H

#include "cli/profile_fit.h"
#include "stats/stats.h"

#define CCT_MOST_POINTS 512
#define CCT_CLOCK_US    0.001 /* every duration is a whole number of nanoseconds */

/* Which cells: option and text; ends with a NULL text. */
struct cct_want {
  enum cct_option_id id;
  const char *text;
};
#define CCT_MOST_WANTS 6
#define CCT_WANT_PROBE(name, ...)                                                                                      \
  ((const struct cct_want[CCT_MOST_WANTS]){{CCT_OPT_WORKLOAD, "probe"}, {CCT_OPT_PROBE_NAME, (name)}, ##__VA_ARGS__})
#define CCT_WANT_CLOSED                                                                                                \
  { CCT_OPT_CLOSE, "call" }
#define CCT_WANT_ALONE                                                                                                 \
  { CCT_OPT_NP, "1" }
int cct_is_wanted(const struct cct_options *cell, const struct cct_want *wants);
int cct_is_same_cell(const struct cct_options *a, const struct cct_options *b);

struct cct_cloud { /* the points of one line */
  double x[CCT_MOST_POINTS], y[CCT_MOST_POINTS];
  double weight[CCT_MOST_POINTS]; /* 1 / (y x spread)^2, the spread being the stated one, or its cell's where that is
                                     more */
  int block[CCT_MOST_POINTS];
  size_t n;
  double limit;             /* the stated spread */
  double spread;            /* of the repeats of the cell whose lie furthest apart */
  int repeats, is_unstable; /* of the cell with fewest; beyond `limit`, or too few */
};
enum cct_axis {
  CCT_BY_CALLS, /* x: calls of the burst, y: us of the burst */
  CCT_BY_NODES, /* x: calls of a repetition, y: us of a repetition without the closing synchronisation */
  CCT_BY_BYTES, /* x: bytes, y: us of a repetition without the closing synchronisation */
  CCT_BY_VALUE, /* x: 0, y: the value */
};
/* `limit`: the stated spread. */
void cct_cloud_gather(const struct cct_probe_set *set, const struct cct_want *wants, const char *metric,
                      enum cct_axis axis, double closing_us, double limit, struct cct_cloud *cloud);

/* One more point (x, y): repeat `at` of a cell of the set. */
void cct_cloud_point(const struct cct_probe_set *set, size_t at, double limit, double x, double y,
                     struct cct_cloud *cloud);

double cct_interval_half(struct cct_interval interval); /* NAN without degrees of freedom */
struct cct_estimate cct_cloud_estimate(const struct cct_cloud *cloud, double value, double half, const char *from);
/* The median of y, between the least and the most; sorts y. */
struct cct_estimate cct_cloud_median(struct cct_cloud *cloud, const char *from);
struct cct_fitted_line { /* both parts of one line; not known: fewer than two x */
  struct cct_estimate fixed, slope;
};
/* Spread and repeats are those of the lines through each block's points alone. */
struct cct_fitted_line cct_cloud_fit(const struct cct_cloud *cloud, double clock_us, const char *from);

/* The same in another unit, or with the other sign. */
struct cct_estimate cct_estimate_scaled(struct cct_estimate e, double by);
/* a - b: what is left of a sum when its known parts are taken away. */
struct cct_estimate cct_estimate_less(struct cct_estimate a, struct cct_estimate b);
/* No time is negative; an interval that is all below zero says that the law does not hold. */
struct cct_estimate cct_estimate_not_negative(struct cct_estimate e);
/* scale / slope: GB/s of us a byte with 1e-3; TFLOP/s of us a Mflop. */
struct cct_estimate cct_estimate_rate(struct cct_estimate slope, double scale);
/* A metric of an experiment, by its name or its whole text; spread as that of calls. */
struct cct_estimate cct_experiment_value(const struct cct_probe_set *set, const char *experiment, const char *metric);

#endif
