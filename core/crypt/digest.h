/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 of text and files, as the record's self-check and every digest in the product use it. */
#ifndef CCT_CRYPT_DIGEST_H
#define CCT_CRYPT_DIGEST_H

#include <stddef.h>

#include "base/status.h"

struct cct_digest; /* a running SHA-256 */

enum cct_status cct_digest_new(struct cct_digest **digest_out) CCT_CHECKED;
enum cct_status cct_digest_add(struct cct_digest *digest, const void *bytes, size_t length) CCT_CHECKED;
/* Ends and frees it, also on failure. */
enum cct_status cct_digest_end(struct cct_digest *digest, unsigned char sha256_out[32]) CCT_CHECKED;
void cct_digest_free(struct cct_digest *digest); /* NULL-safe, for the error path */

void cct_digest_hex(const unsigned char sha256[32], char hex_out[65]);
/* The digest of one text, as 64 hexadecimal digits. */
enum cct_status cct_digest_text(const void *bytes, size_t length, char hex_out[65]) CCT_CHECKED;

#endif
