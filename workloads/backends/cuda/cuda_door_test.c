/* SPDX-License-Identifier: Apache-2.0
 * The door hands on every call that a backend can have: one that it lacks is one that no GPU ever performs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/backends/backend.h"

extern const struct cct_backend_ops cct_backend_cuda;

static void test_every_call_is_handed_on(void **state) {
  (void)state;
  enum {
    n_calls = sizeof cct_backend_cuda / sizeof(void *)
  };
  void *calls[n_calls]; /* the struct holds pointers alone */
  memcpy(calls, &cct_backend_cuda, sizeof calls);
  for (int i = 0; i < n_calls; i++)
    if (!calls[i])
      fail_msg("pointer %d of struct cct_backend_ops is NULL in the door", i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_call_is_handed_on)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
