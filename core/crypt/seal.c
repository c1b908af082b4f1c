/* SPDX-License-Identifier: Apache-2.0 */
#include "crypt/seal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "crypt/evp.h"

enum {
  key_bytes = 32,
  nonce_bytes = 12, /* what GCM takes without hashing it (NIST SP 800-38D, section 8.2) */
};

struct cct_seal {
  EVP_CIPHER_CTX *to, *from;
  uint64_t n_sealed;
};

enum cct_status cct_seal_new(const unsigned char *key, struct cct_seal **seal_out) {
  unsigned char fresh[key_bytes];
  struct cct_seal *seal = calloc(1, sizeof *seal);
  if (!seal || !(seal->to = EVP_CIPHER_CTX_new()) || !(seal->from = EVP_CIPHER_CTX_new()) ||
      (!key && RAND_bytes(fresh, sizeof fresh) != 1) ||
      EVP_EncryptInit_ex(seal->to, EVP_aes_256_gcm(), NULL, key ? key : fresh, NULL) != 1 ||
      EVP_DecryptInit_ex(seal->from, EVP_aes_256_gcm(), NULL, key ? key : fresh, NULL) != 1) {
    cct_seal_free(seal);
    return cct_fail(CCT_NOMEM, "AES-256-GCM cannot be started");
  }
  OPENSSL_cleanse(fresh, sizeof fresh);
  *seal_out = seal;
  return CCT_OK;
}

void cct_seal_free(struct cct_seal *seal) {
  if (!seal)
    return;
  EVP_CIPHER_CTX_free(seal->to);
  EVP_CIPHER_CTX_free(seal->from);
  free(seal);
}

/* The chunk's number in the last 8 bytes, big-endian: the deterministic construction of SP 800-38D, section 8.2.1. */
static void nonce_of(uint64_t number, unsigned char nonce_out[nonce_bytes]) {
  memset(nonce_out, 0, nonce_bytes);
  for (int i = 0; i < 8; i++)
    nonce_out[nonce_bytes - 1 - i] = (unsigned char)(number >> (8 * i));
}

enum cct_status cct_seal_chunk(struct cct_seal *seal, const void *plain, size_t bytes, void *cipher_out,
                               struct cct_seal_mark *mark_out) {
  unsigned char nonce[nonce_bytes];
  int written;
  if (bytes > INT_MAX)
    return cct_fail(CCT_USAGE, "a chunk of %zu bytes is more than %d", bytes, INT_MAX);
  struct cct_seal_mark mark = {.nonce = seal->n_sealed++};
  nonce_of(mark.nonce, nonce);
  if (EVP_EncryptInit_ex(seal->to, NULL, NULL, NULL, nonce) != 1 ||
      EVP_EncryptUpdate(seal->to, cipher_out, &written, plain, (int)bytes) != 1 ||
      EVP_EncryptFinal_ex(seal->to, (unsigned char *)cipher_out + written, &written) != 1 ||
      EVP_CIPHER_CTX_ctrl(seal->to, EVP_CTRL_GCM_GET_TAG, sizeof mark.tag, mark.tag) != 1)
    return cct_fail(CCT_NOMEM, "AES-256-GCM failed on a chunk of %zu bytes", bytes);
  *mark_out = mark;
  return CCT_OK;
}

enum cct_status cct_seal_open(struct cct_seal *seal, const void *cipher, size_t bytes, const struct cct_seal_mark *mark,
                              void *plain_out) {
  unsigned char nonce[nonce_bytes], tag[16];
  int written;
  if (bytes > INT_MAX)
    return cct_fail(CCT_USAGE, "a chunk of %zu bytes is more than %d", bytes, INT_MAX);
  nonce_of(mark->nonce, nonce);
  memcpy(tag, mark->tag, sizeof tag);
  if (EVP_DecryptInit_ex(seal->from, NULL, NULL, NULL, nonce) != 1 ||
      EVP_CIPHER_CTX_ctrl(seal->from, EVP_CTRL_GCM_SET_TAG, sizeof tag, tag) != 1 ||
      EVP_DecryptUpdate(seal->from, plain_out, &written, cipher, (int)bytes) != 1 ||
      EVP_DecryptFinal_ex(seal->from, (unsigned char *)plain_out + written, &written) != 1) {
    memset(plain_out, 0, bytes);
    return cct_fail(CCT_DAMAGED, "chunk %llu of %zu bytes: its tag does not fit", (unsigned long long)mark->nonce,
                    bytes);
  }
  return CCT_OK;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

enum cct_status cct_seal_rate(size_t chunk_bytes, int64_t spell_ns, double *gb_s_out) {
  enum {
    n_spells = 5
  };
  double gb_s[n_spells];
  struct cct_seal *seal = NULL;
  struct cct_seal_mark mark;
  unsigned char *plain = calloc(chunk_bytes + 1, 1), *cipher = calloc(chunk_bytes + 1, 1);
  enum cct_status status = plain && cipher ? cct_seal_new(NULL, &seal) : cct_fail(CCT_NOMEM, "out of memory");
  if (!status)
    status = cct_seal_chunk(seal, plain, chunk_bytes, cipher, &mark); /* touches the pages */
  for (int i = 0; !status && i < n_spells; i++) {
    int64_t start_ns = cct_clock_ns(), elapsed_ns;
    double bytes = 0;
    do {
      status = cct_seal_chunk(seal, plain, chunk_bytes, cipher, &mark);
      bytes += (double)chunk_bytes;
      elapsed_ns = cct_clock_ns() - start_ns;
    } while (!status && elapsed_ns < spell_ns);
    gb_s[i] = bytes / (double)elapsed_ns;
  }
  if (!status) {
    qsort(gb_s, n_spells, sizeof *gb_s, by_value);
    *gb_s_out = gb_s[n_spells / 2];
  }
  cct_seal_free(seal);
  free(plain);
  free(cipher);
  return status;
}

const char *cct_seal_library(void) {
  return OpenSSL_version(OPENSSL_VERSION);
}
