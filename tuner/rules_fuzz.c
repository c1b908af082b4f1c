/* SPDX-License-Identifier: Apache-2.0
 * The libFuzzer target: build/NAME/tests/rules_fuzz CORPUS. */
#include "tuner/rules_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  cct_rules_fuzz(bytes, length);
  return 0;
}
