/* SPDX-License-Identifier: Apache-2.0 */
#include "crypt/digest.h"

#include <stdio.h>

#include "base/log.h"
#include "crypt/evp.h"

/* struct cct_digest is OpenSSL's EVP_MD_CTX under our name. */
static EVP_MD_CTX *own(struct cct_digest *digest) {
  return (EVP_MD_CTX *)digest;
}

enum cct_status cct_digest_new(struct cct_digest **digest_out) {
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
    EVP_MD_CTX_free(context);
    return cct_fail(CCT_NOMEM, "SHA-256 cannot be started");
  }
  *digest_out = (struct cct_digest *)context;
  return CCT_OK;
}

enum cct_status cct_digest_add(struct cct_digest *digest, const void *bytes, size_t length) {
  return EVP_DigestUpdate(own(digest), bytes, length) == 1 ? CCT_OK : cct_fail(CCT_NOMEM, "SHA-256 failed");
}

enum cct_status cct_digest_end(struct cct_digest *digest, unsigned char sha256_out[32]) {
  int ok = EVP_DigestFinal_ex(own(digest), sha256_out, NULL);
  cct_digest_free(digest);
  return ok == 1 ? CCT_OK : cct_fail(CCT_NOMEM, "SHA-256 failed");
}

void cct_digest_free(struct cct_digest *digest) {
  EVP_MD_CTX_free(own(digest));
}

void cct_digest_hex(const unsigned char sha256[32], char hex_out[65]) {
  for (int i = 0; i < 32; i++)
    snprintf(hex_out + 2 * i, 3, "%02x", sha256[i]);
}

enum cct_status cct_digest_text(const void *bytes, size_t length, char hex_out[65]) {
  unsigned char sha256[32];
  if (EVP_Digest(bytes, length, sha256, NULL, EVP_sha256(), NULL) != 1)
    return cct_fail(CCT_NOMEM, "SHA-256 failed");
  cct_digest_hex(sha256, hex_out);
  return CCT_OK;
}
