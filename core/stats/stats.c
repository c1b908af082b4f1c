/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

double cct_median(double *values, size_t n) {
  return gsl_stats_median(values, 1, n);
}

double cct_quantile(const double *sorted, size_t n, double fraction) {
  return gsl_stats_quantile_from_sorted_data(sorted, 1, n, fraction);
}

void cct_sort(double *values, size_t n) {
  gsl_sort(values, 1, n);
}

/* GSL's own handler aborts the process; with it off a quantile that does not converge is NAN, and the interval says so.
 */
static double t_quantile(double tail, double df) {
  gsl_set_error_handler_off();
  return gsl_cdf_tdist_Qinv(tail, df);
}

/* GSL's inverse fails to converge for large df, where Wilson and Hilferty's cube (1931) is right to 1e-4. */
static double chi_square_quantile(double fraction, double df) {
  if (df <= 100)
    return gsl_cdf_chisq_Pinv(fraction, df);
  double v = 2 / (9 * df), cube = 1 - v + gsl_cdf_ugaussian_Pinv(fraction) * sqrt(v);
  return df * cube * cube * cube;
}

static struct cct_interval around(double estimate, double se, double df) {
  double half = t_quantile((1 - CCT_LEVEL) / 2, df) * se;
  return (struct cct_interval){estimate, estimate - half, estimate + half, se, df};
}

struct cct_interval cct_interval_mean(const double *values, size_t n) {
  double mean = gsl_stats_mean(values, 1, n);
  if (n < 2)
    return (struct cct_interval){mean, NAN, NAN, NAN, 0};
  return around(mean, sqrt(gsl_stats_variance_m(values, 1, n, mean) / (double)n), (double)(n - 1));
}

/* David and Nagaraja, Order Statistics (2003), 7.1: the number of values below the median is binomial with 1/2. */
struct cct_ordered cct_interval_ordered(double *values, size_t n) {
  struct cct_ordered ordered = {NAN, NAN, NAN, NAN, n, 1};
  if (!n)
    return ordered;
  cct_sort(values, n);
  for (size_t k = 1; k <= n / 2 || k == 1; k++) {
    double coverage = 1 - 2 * gsl_cdf_binomial_P((unsigned)(k - 1), 0.5, (unsigned)n);
    if (k > 1 && coverage < CCT_ORDERED_LEVEL)
      break;
    ordered.rank = k;
    ordered.coverage = coverage;
  }
  ordered.lo = values[ordered.rank - 1];
  ordered.hi = values[n - ordered.rank];
  ordered.median = gsl_stats_median_from_sorted_data(values, 1, n);
  return ordered;
}

struct cct_interval cct_interval_difference(const double *a, size_t na, const double *b, size_t nb) {
  double difference = gsl_stats_mean(b, 1, nb) - gsl_stats_mean(a, 1, na);
  if (na + nb < 3)
    return (struct cct_interval){difference, NAN, NAN, NAN, 0};
  double squares = (na > 1 ? gsl_stats_variance(a, 1, na) * (double)(na - 1) : 0) +
                   (nb > 1 ? gsl_stats_variance(b, 1, nb) * (double)(nb - 1) : 0);
  double df = (double)(na + nb - 2);
  return around(difference, sqrt(squares / df * (1 / (double)na + 1 / (double)nb)), df);
}

struct cct_line cct_fit_line(const double *x, const double *y, const double *weights, size_t n) {
  double a, b, var_a, cov, var_b, squares;
  struct cct_line line = {.worst = 0};
  gsl_fit_wlinear(x, 1, weights, 1, y, 1, n, &a, &b, &var_a, &cov, &var_b, &squares);
  line.intercept = (struct cct_interval){a, NAN, NAN, NAN, 0};
  line.slope = (struct cct_interval){b, NAN, NAN, NAN, 0};
  if (n > 2) {
    double df = (double)(n - 2), factor = squares / df;
    line.intercept = around(a, sqrt(var_a * factor), df);
    line.slope = around(b, sqrt(var_b * factor), df);
  }
  for (size_t i = 0; i < n; i++)
    line.worst = fmax(line.worst, fabs(y[i] - a - b * x[i]) / fabs(y[i]));
  return line;
}

enum {
  NODES = 64
}; /* midpoints of the chi-square law; power is then right to 1e-4 (stats_test.c) */

double cct_smallest_visible(double se, double df) {
  if (!(df > 0))
    return NAN;
  double bound[NODES], critical = t_quantile((1 - CCT_LEVEL) / 2, df);
  for (int i = 0; i < NODES; i++)
    bound[i] = critical * sqrt(chi_square_quantile((i + 0.5) / NODES, df) / df);
  double lo = 0, hi = 64 * critical;
  for (int step = 0; step < 48; step++) {
    double middle = (lo + hi) / 2, power = 0;
    for (int i = 0; i < NODES; i++)
      power += (gsl_cdf_ugaussian_P(middle - bound[i]) + gsl_cdf_ugaussian_P(-middle - bound[i])) / NODES;
    *(power < CCT_POWER ? &lo : &hi) = middle;
  }
  return (lo + hi) / 2 * se;
}

size_t cct_count_outliers(const double *values, size_t n, double *scratch) {
  if (n < 3)
    return 0;
  memcpy(scratch, values, n * sizeof *values);
  double median = cct_median(scratch, n);
  for (size_t i = 0; i < n; i++)
    scratch[i] = fabs(values[i] - median);
  double bound = 5 * 1.4826 * cct_median(scratch, n);
  size_t count = 0;
  for (size_t i = 0; i < n && bound > 0; i++)
    count += fabs(values[i] - median) > bound;
  return count;
}

double cct_drift(const double *values, size_t n, double *scratch) {
  if (n < 6)
    return NAN;
  size_t third = n / 3;
  memcpy(scratch, values, third * sizeof *values);
  double first = cct_median(scratch, third);
  memcpy(scratch, values + n - third, third * sizeof *values);
  return log(cct_median(scratch, third) / first);
}
