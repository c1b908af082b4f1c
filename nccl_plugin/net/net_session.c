/* SPDX-License-Identifier: Apache-2.0
 * A wire's TLS session. OpenSSL makes the handshake, over a BIO of two buffers; then its secrets become two keys
 * (net_record.h) and it is gone. The same buffers let a system call carry many records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "nccl_plugin/net/net_log.h"
#include "nccl_plugin/net/net_openssl.h"
#include "nccl_plugin/net/net_record.h"
#include "nccl_plugin/net/net_tls.h"

enum {
  CLIENT,
  SERVER,
  SECRET_BYTES = 48
};
/* KeyUpdate, and no update is asked for in return (RFC 8446 4.6.3). */
static const unsigned char key_update[] = {24, 0, 0, 1, 0};

struct session {
  struct cct_tls *tls;
  SSL *ssl; /* NULL once the handshake is over */
  int is_server;
  unsigned char secrets[2][SECRET_BYTES];
  size_t secret_bytes[2];
  struct cct_net_key *seal, *open;
  unsigned char *in, *out;
  size_t in_at, in_end, out_at, out_end, capacity;
  size_t rest_at, rest_end; /* content in `in` that was opened and not read yet */
  int64_t io_ns;            /* system calls within the current operation */
};

/* ---- between buffers and socket ---- */

static int fill(struct cct_wire *wire) {
  struct session *s = wire->record;
  if (s->in_at == s->in_end || s->capacity - s->in_at < CCT_NET_RECORD_ROOM) {
    memmove(s->in, s->in + s->in_at, s->in_end - s->in_at);
    s->in_end -= s->in_at;
    s->in_at = 0;
  }
  ssize_t n = cct_wire_recv(wire, s->in + s->in_end, s->capacity - s->in_end);
  s->in_end += n > 0 ? (size_t)n : 0;
  return n > 0 ? 1 : (int)n;
}

static int drain(struct cct_wire *wire) {
  struct session *s = wire->record;
  while (s->out_at < s->out_end) {
    ssize_t n = cct_wire_send(wire, s->out + s->out_at, s->out_end - s->out_at);
    if (n <= 0)
      return (int)n;
    s->out_at += (size_t)n;
  }
  s->out_at = s->out_end = 0;
  return 1;
}

static int timed(struct cct_wire *wire, int (*io)(struct cct_wire *)) {
  struct session *s = wire->record;
  int64_t start = cct_clock_ns();
  int result = io(wire);
  s->io_ns += cct_clock_ns() - start;
  return result;
}

/* ---- the handshake, by OpenSSL ---- */

static int bio_read(BIO *bio, char *bytes, int n) {
  struct cct_wire *wire = BIO_get_data(bio);
  struct session *s = wire->record;
  int got = s->in_at < s->in_end ? 1 : timed(wire, fill);
  BIO_clear_retry_flags(bio);
  if (got == 0)
    BIO_set_retry_read(bio);
  if (got <= 0)
    return -1;
  size_t have = s->in_end - s->in_at, take = have < (size_t)n ? have : (size_t)n;
  memcpy(bytes, s->in + s->in_at, take);
  s->in_at += take;
  return (int)take;
}

static int bio_write(BIO *bio, const char *bytes, int n) {
  struct cct_wire *wire = BIO_get_data(bio);
  struct session *s = wire->record;
  int gone = s->capacity - s->out_end >= (size_t)n ? 1 : timed(wire, drain);
  BIO_clear_retry_flags(bio);
  if (gone == 0)
    BIO_set_retry_write(bio);
  if (gone <= 0)
    return -1;
  memcpy(s->out + s->out_end, bytes, (size_t)n);
  s->out_end += (size_t)n;
  return n;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer) {
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH; /* tls_handshake drains */
}

static int bio_create(BIO *bio) {
  BIO_set_init(bio, 1);
  return 1;
}

/* OpenSSL hands out a session's secrets as the lines of a key log. */
static void on_secret(const SSL *ssl, const char *line) {
  static const char *const labels[] = {"CLIENT_TRAFFIC_SECRET_0 ", "SERVER_TRAFFIC_SECRET_0 "};
  const struct cct_wire *wire = SSL_get_app_data(ssl);
  struct session *s = wire->record;
  const char *hex = strrchr(line, ' ');
  for (int i = 0; i < 2 && hex; i++) {
    size_t n = strlen(hex + 1) / 2;
    if (strncmp(line, labels[i], strlen(labels[i])) != 0 || n > SECRET_BYTES)
      continue;
    for (size_t k = 0; k < n; k++)
      s->secrets[i][k] = (unsigned char)(OPENSSL_hexchar2int((unsigned char)hex[1 + 2 * k]) << 4 |
                                         OPENSSL_hexchar2int((unsigned char)hex[2 + 2 * k]));
    s->secret_bytes[i] = n;
  }
}

int cct_tls_session_set_up(struct cct_tls *tls) {
  tls->bio = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cctax wire");
  SSL_CTX_set_keylog_callback(tls->ctx, on_secret);
  return tls->bio && BIO_meth_set_read(tls->bio, bio_read) && BIO_meth_set_write(tls->bio, bio_write) &&
         BIO_meth_set_ctrl(tls->bio, bio_ctrl) && BIO_meth_set_create(tls->bio, bio_create);
}

/* The answer to a handshake that is not done: 0 to try again, -1 failed. */
static int fault_of_handshake(struct cct_wire *wire, int returned) {
  struct session *s = wire->record;
  int error = SSL_get_error(s->ssl, returned);
  unsigned long code = ERR_peek_last_error();
  long verdict = SSL_get_verify_result(s->ssl);
  const char *reason = code ? ERR_reason_error_string(code) : NULL;
  char why[sizeof wire->why];
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
    return 0;
  if (wire->result) /* the socket itself failed, and said so */
    return -1;
  if (!s->tls->psk_bytes && verdict != X509_V_OK)
    snprintf(why, sizeof why, "handshake: certificate: %s", X509_verify_cert_error_string(verdict));
  else
    snprintf(why, sizeof why, "handshake: %s", reason ? reason : "the peer ended the session");
  return cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR, why);
}

/* From OpenSSL's session to our two keys. */
static int take_over(struct cct_wire *wire) {
  struct session *s = wire->record;
  int is_tls13 = SSL_version(s->ssl) == TLS1_3_VERSION, is_proven = !s->tls->psk_bytes || SSL_session_reused(s->ssl);
  int mine = s->is_server ? SERVER : CLIENT, theirs = SERVER + CLIENT - mine;
  if (!is_tls13 || !is_proven)
    return cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR, "handshake: the peer did not prove the pre-shared key");
  s->seal = cct_net_key_new(1, s->secrets[mine], s->secret_bytes[mine]);
  s->open = cct_net_key_new(0, s->secrets[theirs], s->secret_bytes[theirs]);
  OPENSSL_cleanse(s->secrets, sizeof s->secrets);
  SSL_free(s->ssl);
  s->ssl = NULL;
  if (!s->seal || !s->open) {
    ERR_clear_error();
    return cct_wire_fail(wire, CCT_NCCL_SYSTEM_ERROR, "handshake: OpenSSL gives no key for its records");
  }
  return 1;
}

static int tls_handshake(struct cct_wire *wire) {
  struct session *s = wire->record;
  if (!s->ssl)
    return drain(wire);
  ERR_clear_error();
  int64_t start = cct_clock_ns();
  s->io_ns = 0;
  int done = SSL_do_handshake(s->ssl);
  CCT_NET_COUNT(wire->counts.crypto_ns, cct_clock_ns() - start - s->io_ns);
  int result = done == 1 ? take_over(wire) : fault_of_handshake(wire, done);
  int gone = drain(wire); /* also an alert that says why */
  return result > 0 ? gone : result;
}

/* ---- records ---- */

static int fail_crypto(struct cct_wire *wire, const char *why) {
  ERR_clear_error();
  return cct_wire_fail(wire, CCT_NCCL_SYSTEM_ERROR, why);
}

static int put(struct cct_wire *wire, enum cct_net_record_type type, const void *bytes, size_t n) {
  struct session *s = wire->record;
  if (!cct_net_seal(s->seal, type, bytes, n, s->out + s->out_end))
    return fail_crypto(wire, "write: OpenSSL cannot seal a record");
  s->out_end += n + CCT_NET_RECORD_MORE;
  CCT_NET_COUNT(wire->counts.records_out, 1);
  return 1;
}

/* A data record; before the last one that the key may seal, a key update. */
static int put_data(struct cct_wire *wire, const void *bytes, size_t n) {
  struct session *s = wire->record;
  if (cct_net_key_records(s->seal) + 1 >= s->tls->key_records) {
    if (put(wire, CCT_NET_HANDSHAKE, key_update, sizeof key_update) < 0)
      return -1;
    if (!cct_net_key_next(s->seal))
      return fail_crypto(wire, "write: OpenSSL gives no next key");
    CCT_NET_COUNT(wire->counts.key_updates_out, 1);
  }
  return put(wire, CCT_NET_DATA, bytes, n);
}

static ssize_t tls_write(struct cct_wire *wire, const void *bytes, size_t n) {
  struct session *s = wire->record;
  int64_t start = cct_clock_ns();
  size_t taken = 0;
  int done = 1;
  s->io_ns = 0;
  while (taken < n && done > 0) {
    size_t left = n - taken, piece = left < CCT_NET_RECORD_BYTES ? left : CCT_NET_RECORD_BYTES;
    if (s->capacity - s->out_end < piece + sizeof key_update + 2 * CCT_NET_RECORD_MORE) {
      done = timed(wire, drain);
    } else {
      done = put_data(wire, (const char *)bytes + taken, piece);
      taken += piece;
    }
  }
  CCT_NET_COUNT(wire->counts.crypto_ns, cct_clock_ns() - start - s->io_ns);
  return done < 0 ? -1 : (ssize_t)taken;
}

/* Bytes of the record at hand, once it is here as a whole; 0: not yet, or failed. */
static size_t whole_record(struct cct_wire *wire) {
  const struct session *s = wire->record;
  size_t have = s->in_end - s->in_at;
  if (have < CCT_NET_RECORD_HEADER)
    return 0;
  size_t length = cct_net_record_length(s->in + s->in_at);
  if (!length)
    cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR, "read: what arrives is no TLS record: tampered with");
  return length <= have ? length : 0;
}

/* What is no data: an alert, or a key update. */
static int heed(struct cct_wire *wire, int type, const unsigned char *content, size_t n) {
  struct session *s = wire->record;
  char why[sizeof wire->why];
  if (type == CCT_NET_HANDSHAKE && n == sizeof key_update && memcmp(content, key_update, n) == 0) {
    CCT_NET_COUNT(wire->counts.key_updates_in, 1);
    return cct_net_key_next(s->open) ? 0 : fail_crypto(wire, "read: OpenSSL gives no next key");
  }
  if (type != CCT_NET_ALERT || n != 2)
    return cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR, "read: a record that this plugin does not send");
  const char *reason = ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, SSL_AD_REASON_OFFSET + content[1]));
  snprintf(why, sizeof why, "read: %s",
           content[1] == SSL3_AD_CLOSE_NOTIFY ? "the peer ended the session"
           : reason                           ? reason
                                              : "an unknown alert");
  return cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR, why);
}

/* Opens the next record, into `out` if it has room for it. Bytes of data there; 0: none, or they are at rest; -1. */
static ssize_t take(struct cct_wire *wire, size_t length, unsigned char *out, size_t room) {
  struct session *s = wire->record;
  unsigned char *record = s->in + s->in_at;
  int is_direct = length - CCT_NET_RECORD_MORE <= room, type;
  unsigned char *content = is_direct ? out : record + CCT_NET_RECORD_HEADER;
  if (cct_net_key_records(s->open) >= s->tls->key_records)
    return cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR,
                         "read: the peer used one key for more than CCTAX_NET_KEY_RECORDS records");
  ptrdiff_t n = cct_net_open(s->open, record, length, content, &type);
  s->in_at += length;
  if (n < 0) {
    ERR_clear_error();
    return cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR, "read: a record is not what the peer sealed: tampered with");
  }
  CCT_NET_COUNT(wire->counts.records_in, 1);
  if (type != CCT_NET_DATA)
    return heed(wire, type, content, (size_t)n);
  if (is_direct)
    return n;
  s->rest_at = (size_t)(content - s->in);
  s->rest_end = s->rest_at + (size_t)n;
  return 0;
}

static size_t take_rest(struct session *s, void *bytes, size_t room) {
  size_t have = s->rest_end - s->rest_at, n = have < room ? have : room;
  memcpy(bytes, s->in + s->rest_at, n);
  s->rest_at += n;
  return n;
}

static ssize_t tls_read(struct cct_wire *wire, void *bytes, size_t n) {
  struct session *s = wire->record;
  size_t length = 0, moved = 0;
  if (wire->result)
    return -1;
  while (s->rest_at == s->rest_end && !(length = whole_record(wire))) {
    int got = wire->result ? -1 : fill(wire);
    if (got <= 0)
      return got;
  }
  int64_t start = cct_clock_ns();
  while (moved < n && (s->rest_at < s->rest_end || (length = whole_record(wire)) > 0)) {
    unsigned char *out = (unsigned char *)bytes + moved;
    ssize_t one = s->rest_at < s->rest_end ? (ssize_t)take_rest(s, out, n - moved) : take(wire, length, out, n - moved);
    if (one < 0)
      break;
    moved += (size_t)one;
  }
  CCT_NET_COUNT(wire->counts.crypto_ns, cct_clock_ns() - start);
  return wire->result && !moved ? -1 : (ssize_t)moved; /* what came before a failure has come; the next read says it */
}

static void tls_close(struct cct_wire *wire) {
  struct session *s = wire->record;
  static const unsigned char close_notify[] = {1, SSL3_AD_CLOSE_NOTIFY};
  if (!s)
    return;
  if (s->seal && !wire->result && s->capacity - s->out_end >= sizeof close_notify + CCT_NET_RECORD_MORE &&
      put(wire, CCT_NET_ALERT, close_notify, sizeof close_notify) > 0)
    drain(wire);
  ERR_clear_error();
  SSL_free(s->ssl);
  cct_net_key_free(s->seal);
  cct_net_key_free(s->open);
  free(s->in);
  free(s->out);
  OPENSSL_cleanse(s->secrets, sizeof s->secrets);
  free(s);
}

static const struct cct_wire_ops tls_ops = {tls_handshake, tls_write, drain, tls_read, tls_close};

enum cct_nccl cct_tls_open(struct cct_tls *tls, int is_server, size_t buffer_bytes, struct cct_wire *wire) {
  enum {
    LEAST = 2 * CCT_NET_RECORD_ROOM
  };
  struct session *s = calloc(1, sizeof *s);
  BIO *bio = NULL;
  wire->record = s;
  wire->ops = &tls_ops;
  if (!s)
    goto nomem;
  s->tls = tls;
  s->is_server = is_server;
  s->capacity = buffer_bytes < LEAST ? LEAST : buffer_bytes;
  s->in = malloc(s->capacity);
  s->out = malloc(s->capacity);
  s->ssl = SSL_new(tls->ctx);
  bio = BIO_new(tls->bio);
  if (!s->in || !s->out || !s->ssl || !bio)
    goto nomem;
  BIO_set_data(bio, wire);
  SSL_set_bio(s->ssl, bio, bio);
  SSL_set_app_data(s->ssl, wire);
  if (is_server)
    SSL_set_accept_state(s->ssl);
  else
    SSL_set_connect_state(s->ssl);
  return CCT_NCCL_SUCCESS;
nomem:
  BIO_free(bio);
  return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "out of memory for a TLS session");
}
