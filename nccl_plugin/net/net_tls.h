/* SPDX-License-Identifier: Apache-2.0
 * TLS 1.3 under a wire, by OpenSSL: its handshake, then records by net_record.h. Both sides prove themselves: by one
 * pre-shared key (with (EC)DHE, so past traffic stays closed if the key leaks), or by certificates of one private
 * authority. No 0-RTT, no tickets, no renegotiation, no other version. The sender updates its key before
 * `key_records` records, and a receiver ends a session whose peer has not by its own `key_records`. */
#ifndef CCT_NCCL_NET_TLS_H
#define CCT_NCCL_NET_TLS_H

#include "nccl_plugin/net/net_config.h"
#include "nccl_plugin/net/net_wire.h"

struct cct_tls; /* key material and settings of a process; used by many wires */

/* Reads the key material. A file that another user may read, or that has another owner (root excepted), is refused. */
enum cct_nccl cct_tls_new(const struct cct_net_config *config, struct cct_tls **tls_out);
void cct_tls_free(struct cct_tls *tls); /* NULL-safe; after the last wire is closed */

/* Gives `wire` its record layer (net_session.c). */
enum cct_nccl cct_tls_open(struct cct_tls *tls, int is_server, size_t buffer_bytes, struct cct_wire *wire);

#endif
