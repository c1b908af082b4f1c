/* SPDX-License-Identifier: Apache-2.0
 * The records of TLS 1.3 in one direction (RFC 8446: 5.2 the record, 5.3 the nonce, 7.2 and 7.3 the keys), sealed and
 * opened by OpenSSL's AES-GCM and TLS 1.3 key derivation, straight between the caller's memory and what goes on the
 * wire: SSL_write and SSL_read copy every byte twice on the way. The handshake that made the secret is OpenSSL's. */
#ifndef CCT_NCCL_NET_RECORD_H
#define CCT_NCCL_NET_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum {
  CCT_NET_RECORD_HEADER = 5,
  CCT_NET_RECORD_MORE = 5 + 1 + 16,     /* header, inner type and tag: what a sealed record is larger by */
  CCT_NET_RECORD_BYTES = 16384,         /* content of one record at most */
  CCT_NET_RECORD_ROOM = 5 + 16384 + 256 /* a record on the wire at most */
};
enum cct_net_record_type {
  CCT_NET_ALERT = 21,
  CCT_NET_HANDSHAKE = 22,
  CCT_NET_DATA = 23
};

struct cct_net_key; /* one direction's traffic key and its record number */

/* `secret` is the traffic secret, 32 bytes of TLS_AES_128_GCM_SHA256 or 48 of TLS_AES_256_GCM_SHA384. NULL: OpenSSL
 * gives no such key. */
struct cct_net_key *cct_net_key_new(int is_seal, const unsigned char *secret, size_t n);
void cct_net_key_free(struct cct_net_key *key); /* NULL-safe; erases */
/* The key after this one, as after a key update. 1 done, 0 failed. */
int cct_net_key_next(struct cct_net_key *key);
/* Records under the present key so far. */
uint64_t cct_net_key_records(const struct cct_net_key *key);

/* Writes one record of n <= CCT_NET_RECORD_BYTES bytes to `out`, n + CCT_NET_RECORD_MORE bytes. 1 done, 0 failed. */
int cct_net_seal(struct cct_net_key *key, enum cct_net_record_type type, const void *bytes, size_t n,
                 unsigned char *out);

/* Bytes of the record that begins at `header`, header included; 0: no peer would send that. */
size_t cct_net_record_length(const unsigned char header[CCT_NET_RECORD_HEADER]);
/* Opens the whole record `record` of `length` bytes. `out` has room for length - CCT_NET_RECORD_MORE bytes, and may be
 * record + CCT_NET_RECORD_HEADER. What stands there means something only if the answer is not negative: bytes of
 * content. -1: it is not the record that the peer sent next. */
ptrdiff_t cct_net_open(struct cct_net_key *key, const unsigned char *record, size_t length, unsigned char *out,
                       int *type_out);

#endif
