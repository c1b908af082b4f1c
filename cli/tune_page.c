/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tune.h"

enum cct_status cct_tune_page(const struct cct_tune *tune) {
  (void)tune;
  return CCT_OK;
}
