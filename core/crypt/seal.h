/* SPDX-License-Identifier: Apache-2.0
 * AES-256-GCM over chunks, as a bounce buffer under confidential computing is filled: one key for a channel, a nonce
 * that counts chunks and is never used twice, a 16-byte tag a chunk. The keyed context is kept: setting up a key costs
 * more than sealing 256 bytes. One thread uses a seal at a time. */
#ifndef CCT_CRYPT_SEAL_H
#define CCT_CRYPT_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What a bounce copy moves at once: "about 517 KB" (arXiv 2608.26575, section 2.2). */
#define CCT_SEAL_CHUNK_BYTES (517 * 1024)

struct cct_seal;

struct cct_seal_mark { /* what opening a chunk needs beside its ciphertext */
  uint64_t nonce;      /* the chunk's number under this key */
  unsigned char tag[16];
};

/* A fresh random key; `key` NULL, or 32 bytes (known answers). */
enum cct_status cct_seal_new(const unsigned char *key, struct cct_seal **seal_out) CCT_CHECKED;
void cct_seal_free(struct cct_seal *seal); /* NULL-safe */

/* Encrypts `bytes` (at most INT_MAX) of `plain` into `cipher_out`, which may not overlap it. */
enum cct_status cct_seal_chunk(struct cct_seal *seal, const void *plain, size_t bytes, void *cipher_out,
                               struct cct_seal_mark *mark_out) CCT_CHECKED;
/* Decrypts and checks the tag. CCT_DAMAGED when it does not fit; `plain_out` is then zeroed. */
enum cct_status cct_seal_open(struct cct_seal *seal, const void *cipher, size_t bytes, const struct cct_seal_mark *mark,
                              void *plain_out) CCT_CHECKED;

/* What one thread here seals in GB/s (1e9 bytes), in chunks of `chunk_bytes`: the median of 5 spells of at least
 * `spell_ns` each. */
enum cct_status cct_seal_rate(size_t chunk_bytes, int64_t spell_ns, double *gb_s_out) CCT_CHECKED;

const char *cct_seal_library(void); /* "OpenSSL 3.0.22 ...", as the library that is loaded says it */

#endif
