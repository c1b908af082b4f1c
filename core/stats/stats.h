/* SPDX-License-Identifier: Apache-2.0
 * The numbers under a verdict: medians, quantiles, t intervals, power, outliers and drift. Plain arrays of doubles in,
 * nothing kept, nothing drawn at random. GSL stands behind stats.c alone. Every interval here is two-sided, 95 %. */
#ifndef CCT_STATS_STATS_H
#define CCT_STATS_STATS_H

#include <stddef.h>

#define CCT_LEVEL 0.95 /* of every interval */
#define CCT_POWER 0.80 /* with which the smallest visible effect is seen */

/* Median of n > 0 values, mean of the middle two when n is even. Reorders `values`. */
double cct_median(double *values, size_t n);
/* Quantile 0..1 of n > 0 ascending values, linear between order statistics (Hyndman and Fan 1996, type 7). */
double cct_quantile(const double *sorted, size_t n, double fraction);
void cct_sort(double *values, size_t n);

struct cct_interval {
  double estimate, lo, hi; /* lo and hi hold only where df > 0 */
  double se, df;           /* standard error; degrees of freedom, 0: too few values for an interval */
};

/* The mean of n > 0 values, Student's t, n - 1 degrees. */
struct cct_interval cct_interval_mean(const double *values, size_t n);
/* mean(b) - mean(a), variance pooled, na + nb - 2 degrees. Both counts > 0. */
struct cct_interval cct_interval_difference(const double *a, size_t na, const double *b, size_t nb);

/* The median of n values between two of them in order, whatever their distribution: the `rank`-th smallest and largest,
 * the innermost pair that holds the true median in 93 % and more (the 2nd and 8th of 9: 96 %), or the outermost where
 * none does. */
#define CCT_ORDERED_LEVEL 0.93
struct cct_ordered {
  double median, lo, hi, coverage; /* NAN for n = 0 */
  size_t n, rank;
};
struct cct_ordered cct_interval_ordered(double *values, size_t n); /* reorders `values` */

struct cct_line { /* y = intercept + slope x */
  struct cct_interval intercept, slope;
  double worst; /* the largest |residual| / |y| */
};
/* Weighted least squares through n >= 2 points with at least two different x, Student's t, n - 2 degrees; a weight is
 * the inverse of a variance up to a common factor, which the residuals give. Weights 1/y^2 make it the relative error
 * that is least. */
struct cct_line cct_fit_line(const double *x, const double *y, const double *weights, size_t n);

/* The true effect that an experiment with this standard error and degrees of freedom calls different from zero with
 * probability CCT_POWER: se times the noncentrality at which a noncentral t leaves the CCT_LEVEL bounds that often. NAN
 * for df 0. The noncentral t is the normal law averaged over the chi-square law of the variance (Johnson, Kotz and
 * Balakrishnan 1995, chapter 31). */
double cct_smallest_visible(double se, double df);

/* How many of n values lie more than 5 scaled median absolute deviations (1.4826 MAD) from their median; none where the
 * MAD is 0. They are counted and told, never dropped. `scratch` has room for n. */
size_t cct_count_outliers(const double *values, size_t n, double *scratch);
/* log(median of the last third / median of the first third) of n positive values in time order; NAN below 6 values. */
double cct_drift(const double *values, size_t n, double *scratch);

#endif
