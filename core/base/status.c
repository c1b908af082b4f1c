/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

static const struct {
  const char *name, *text;
  int exit_code;
} statuses[] = {
#define ROW(status_name, code, meaning) {#status_name, meaning, code},
    CCT_STATUSES(ROW)
#undef ROW
};

const char *cct_status_name(enum cct_status status) {
  return statuses[status].name;
}

const char *cct_status_text(enum cct_status status) {
  return statuses[status].text;
}

int cct_status_exit(enum cct_status status) {
  return statuses[status].exit_code;
}
