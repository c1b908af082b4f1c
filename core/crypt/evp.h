/* SPDX-License-Identifier: Apache-2.0
 * Private to crypt: the one place where OpenSSL enters. */
#ifndef CCT_CRYPT_EVP_H
#define CCT_CRYPT_EVP_H

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#endif
