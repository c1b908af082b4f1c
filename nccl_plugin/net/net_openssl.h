/* SPDX-License-Identifier: Apache-2.0
 * The plugin's one door to OpenSSL: net_tls.c (settings and key material), net_session.c (a socket's session) and
 * net_record.c (its records) go through it. */
#ifndef CCT_NCCL_NET_OPENSSL_H
#define CCT_NCCL_NET_OPENSSL_H

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <stdint.h>

enum {
  CCT_TLS_PSK_MIN_BYTES = 32,
  CCT_TLS_PSK_MAX_BYTES = 64
};

struct cct_tls {
  SSL_CTX *ctx; /* its app data is this struct */
  BIO_METHOD *bio;
  uint64_t key_records;
  unsigned char psk[CCT_TLS_PSK_MAX_BYTES];
  size_t psk_bytes; /* 0: certificates */
  unsigned char cipher_id[2];
};

/* Sets what sessions need of `tls`: how they reach their sockets and their secrets. 1 done, 0 failed. */
int cct_tls_session_set_up(struct cct_tls *tls);

#endif
