/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_record.h"

#include <stdlib.h>
#include <string.h>

#include "nccl_plugin/net/net_openssl.h"

enum {
  IV_BYTES = 12,
  TAG_BYTES = 16,
  SECRET_MAX_BYTES = 48
};

struct cct_net_key {
  EVP_CIPHER_CTX *cipher;
  int is_seal;
  unsigned char secret[SECRET_MAX_BYTES], iv[IV_BYTES];
  size_t secret_bytes;
  uint64_t sequence;
};

/* HKDF-Expand-Label(secret, label, "", n) */
static int expand(const struct cct_net_key *key, const char *label, unsigned char *out, size_t n) {
  char *digest = key->secret_bytes == 32 ? "SHA256" : "SHA384", *mode = "EXPAND_ONLY";
  OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_MODE, mode, 0),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)key->secret, key->secret_bytes),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, "tls13 ", 6),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)(uintptr_t)label, strlen(label)),
      OSSL_PARAM_construct_end()};
  EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);
  EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
  int done = ctx && EVP_KDF_derive(ctx, out, n, params) > 0;
  EVP_KDF_CTX_free(ctx);
  EVP_KDF_free(kdf);
  return done;
}

static int use_secret(struct cct_net_key *key) {
  unsigned char bytes[32];
  const EVP_CIPHER *cipher = key->secret_bytes == 32 ? EVP_aes_128_gcm() : EVP_aes_256_gcm();
  int done = expand(key, "key", bytes, key->secret_bytes == 32 ? 16 : 32) && expand(key, "iv", key->iv, IV_BYTES) &&
             EVP_CipherInit_ex(key->cipher, cipher, NULL, bytes, NULL, key->is_seal);
  OPENSSL_cleanse(bytes, sizeof bytes);
  key->sequence = 0;
  return done;
}

struct cct_net_key *cct_net_key_new(int is_seal, const unsigned char *secret, size_t n) {
  struct cct_net_key *key = n == 32 || n == SECRET_MAX_BYTES ? calloc(1, sizeof *key) : NULL;
  if (!key)
    return NULL;
  key->is_seal = is_seal;
  key->secret_bytes = n;
  memcpy(key->secret, secret, n);
  key->cipher = EVP_CIPHER_CTX_new();
  if (key->cipher && use_secret(key))
    return key;
  cct_net_key_free(key);
  return NULL;
}

void cct_net_key_free(struct cct_net_key *key) {
  if (!key)
    return;
  EVP_CIPHER_CTX_free(key->cipher);
  OPENSSL_cleanse(key, sizeof *key);
  free(key);
}

int cct_net_key_next(struct cct_net_key *key) {
  unsigned char next[SECRET_MAX_BYTES];
  int done = expand(key, "traffic upd", next, key->secret_bytes);
  if (done)
    memcpy(key->secret, next, key->secret_bytes);
  OPENSSL_cleanse(next, sizeof next);
  return done && use_secret(key);
}

uint64_t cct_net_key_records(const struct cct_net_key *key) {
  return key->sequence;
}

/* A new record: its nonce, and its header as the additional data. */
static int begin(struct cct_net_key *key, const unsigned char *header) {
  unsigned char nonce[IV_BYTES];
  int n;
  memcpy(nonce, key->iv, sizeof nonce);
  for (int i = 0; i < 8; i++)
    nonce[IV_BYTES - 1 - i] ^= (unsigned char)(key->sequence >> 8 * i);
  key->sequence++;
  return EVP_CipherInit_ex(key->cipher, NULL, NULL, NULL, nonce, -1) &&
         EVP_CipherUpdate(key->cipher, NULL, &n, header, CCT_NET_RECORD_HEADER);
}

int cct_net_seal(struct cct_net_key *key, enum cct_net_record_type type, const void *bytes, size_t n,
                 unsigned char *out) {
  size_t inner = n + 1 + TAG_BYTES;
  unsigned char kind = (unsigned char)type, *tag = out + CCT_NET_RECORD_HEADER + n + 1;
  OSSL_PARAM wanted[] = {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, TAG_BYTES),
                         OSSL_PARAM_construct_end()};
  int moved;
  memcpy(out, (unsigned char[]){CCT_NET_DATA, 3, 3, (unsigned char)(inner >> 8), (unsigned char)inner},
         CCT_NET_RECORD_HEADER);
  return begin(key, out) &&
         (n == 0 || EVP_CipherUpdate(key->cipher, out + CCT_NET_RECORD_HEADER, &moved, bytes, (int)n)) &&
         EVP_CipherUpdate(key->cipher, tag - 1, &moved, &kind, 1) && EVP_CipherFinal_ex(key->cipher, tag, &moved) &&
         EVP_CIPHER_CTX_get_params(key->cipher, wanted);
}

size_t cct_net_record_length(const unsigned char header[CCT_NET_RECORD_HEADER]) {
  size_t length = CCT_NET_RECORD_HEADER + ((size_t)header[3] << 8 | header[4]);
  int is_one = header[0] == CCT_NET_DATA && header[1] == 3 && header[2] == 3 && length >= CCT_NET_RECORD_MORE &&
               length <= CCT_NET_RECORD_ROOM;
  return is_one ? length : 0;
}

ptrdiff_t cct_net_open(struct cct_net_key *key, const unsigned char *record, size_t length, unsigned char *out,
                       int *type_out) {
  size_t n = length - CCT_NET_RECORD_MORE; /* of content, or of padding behind it */
  const unsigned char *content = record + CCT_NET_RECORD_HEADER;
  unsigned char last, header[CCT_NET_RECORD_HEADER], tag[TAG_BYTES];
  OSSL_PARAM expected[] = {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, TAG_BYTES),
                           OSSL_PARAM_construct_end()};
  int moved;
  memcpy(header, record, sizeof header);
  memcpy(tag, content + n + 1, sizeof tag);
  if (!begin(key, header) || !EVP_CIPHER_CTX_set_params(key->cipher, expected) ||
      (n > 0 && !EVP_CipherUpdate(key->cipher, out, &moved, content, (int)n)) ||
      !EVP_CipherUpdate(key->cipher, &last, &moved, content + n, 1) ||
      EVP_CipherFinal_ex(key->cipher, tag, &moved) <= 0)
    return -1;
  while (last == 0 && n > 0) /* padding */
    last = out[--n];
  *type_out = last;
  return last ? (ptrdiff_t)n : -1;
}
