/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "crypt/seal.h"

static struct cct_seal *with_zero_key(void) {
  static const unsigned char key[32];
  struct cct_seal *seal;
  assert_int_equal(cct_seal_new(key, &seal), CCT_OK);
  return seal;
}

/* McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, test case 14; its nonce of zeros is chunk 0. */
static void published_answer(void **state) {
  (void)state;
  static const unsigned char plain[16];
  static const unsigned char cipher[16] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e,
                                           0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d, 0x18};
  static const unsigned char tag[16] = {0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0,
                                        0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};
  unsigned char sealed[16];
  struct cct_seal_mark mark;
  struct cct_seal *seal = with_zero_key();
  assert_int_equal(cct_seal_chunk(seal, plain, 16, sealed, &mark), CCT_OK);
  assert_memory_equal(sealed, cipher, 16);
  assert_memory_equal(mark.tag, tag, 16);
  assert_int_equal(mark.nonce, 0);
  cct_seal_free(seal);
}

static void chunks_come_back(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 15, 16, 17, 4096, CCT_SEAL_CHUNK_BYTES};
  struct cct_seal *seal;
  assert_int_equal(cct_seal_new(NULL, &seal), CCT_OK);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t n = sizes[i];
    unsigned char *plain = malloc(n + 1), *sealed = malloc(n + 1), *opened = calloc(n + 1, 1);
    struct cct_seal_mark mark;
    for (size_t j = 0; j <= n; j++)
      plain[j] = (unsigned char)(j * 37 + i);
    sealed[n] = opened[n] = 0x5a;
    assert_int_equal(cct_seal_chunk(seal, plain, n, sealed, &mark), CCT_OK);
    assert_int_equal(mark.nonce, i);
    assert_true(n < 16 || memcmp(plain, sealed, n) != 0);
    assert_int_equal(cct_seal_open(seal, sealed, n, &mark, opened), CCT_OK);
    assert_memory_equal(plain, opened, n);
    assert_int_equal(sealed[n], 0x5a);
    assert_int_equal(opened[n], 0x5a);
    free(plain);
    free(sealed);
    free(opened);
  }
  cct_seal_free(seal);
}

static void equal_chunks_differ(void **state) {
  (void)state;
  unsigned char plain[64] = {0}, first[64], second[64];
  struct cct_seal_mark mark;
  struct cct_seal *seal = with_zero_key();
  assert_int_equal(cct_seal_chunk(seal, plain, 64, first, &mark), CCT_OK);
  assert_int_equal(cct_seal_chunk(seal, plain, 64, second, &mark), CCT_OK);
  assert_memory_not_equal(first, second, 64);
  cct_seal_free(seal);
}

/* One flipped bit anywhere (ciphertext, tag, nonce, length) is refused, and nothing of the plaintext is handed out. */
static void tampering_is_refused(void **state) {
  (void)state;
  unsigned char plain[100], sealed[100], opened[100];
  static const unsigned char zeros[100];
  struct cct_seal_mark mark, bad;
  struct cct_seal *seal = with_zero_key();
  memset(plain, 0x77, sizeof plain);
  assert_int_equal(cct_seal_chunk(seal, plain, 100, sealed, &mark), CCT_OK);
  for (int what = 0; what < 4; what++) {
    bad = mark;
    sealed[50] ^= what == 0;
    bad.tag[15] ^= what == 1;
    bad.nonce += what == 2;
    size_t length = what == 3 ? 99 : 100;
    memset(opened, 0x11, sizeof opened);
    assert_int_equal(cct_seal_open(seal, sealed, length, &bad, opened), CCT_DAMAGED);
    assert_memory_equal(opened, zeros, length);
    sealed[50] ^= what == 0;
  }
  assert_int_equal(cct_seal_open(seal, sealed, 100, &mark, opened), CCT_OK);
  assert_int_equal(cct_seal_chunk(seal, plain, (size_t)INT_MAX + 1, sealed, &mark), CCT_USAGE);
  assert_int_equal(cct_seal_open(seal, sealed, (size_t)INT_MAX + 1, &mark, opened), CCT_USAGE);
  cct_seal_free(seal);
}

static void rate_is_measured(void **state) {
  (void)state;
  double gb_s = 0;
  assert_int_equal(cct_seal_rate(CCT_SEAL_CHUNK_BYTES, 2000000, &gb_s), CCT_OK);
  assert_true(gb_s > 0.001 && gb_s < 1000);
  print_message("one core: %.2f GB/s with %s\n", gb_s, cct_seal_library());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(published_answer),     cmocka_unit_test(chunks_come_back), cmocka_unit_test(equal_chunks_differ),
      cmocka_unit_test(tampering_is_refused), cmocka_unit_test(rate_is_measured),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
