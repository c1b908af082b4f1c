/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "crypt/digest.h"

/* FIPS 180-2, appendix B.1 and B.2. */
static void published_vectors(void **state) {
  (void)state;
  char hex[65];
  assert_int_equal(cct_digest_text("abc", 3, hex), CCT_OK);
  assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  struct cct_digest *digest;
  unsigned char sum[32];
  assert_int_equal(cct_digest_new(&digest), CCT_OK);
  assert_int_equal(cct_digest_add(digest, "abcdbcdecdefdefgefghfghighijhi", 30), CCT_OK);
  assert_int_equal(cct_digest_add(digest, "jkijkljklmklmnlmnomnopnopq", 26), CCT_OK);
  assert_int_equal(cct_digest_end(digest, sum), CCT_OK);
  cct_digest_hex(sum, hex);
  assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(published_vectors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
