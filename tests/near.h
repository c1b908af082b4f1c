/* SPDX-License-Identifier: Apache-2.0
 * A double of a cmocka test is what it should be, but for so much. */
#ifndef CCT_TESTS_NEAR_H
#define CCT_TESTS_NEAR_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static inline void near(double is, double wanted, double within) {
  if (!(fabs(is - wanted) <= within))
    fail_msg("%.9g where %.9g is expected, within %g", is, wanted, within);
}

#endif
