/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "nccl_plugin/net/net_log.h"

enum {
  PSK_MIN_BYTES = 32,
  PSK_MAX_BYTES = 64,
  RECORD_ROOM = 16384 + 512
};
static const unsigned char psk_identity[] = "cctax-net-1";

struct cct_tls {
  SSL_CTX *ctx;
  BIO_METHOD *bio;
  uint64_t key_records;
  unsigned char psk[PSK_MAX_BYTES];
  size_t psk_bytes; /* 0: certificates */
  unsigned char cipher_id[2];
};

/* A wire's own: two buffers between OpenSSL's 16 KiB records and the socket, so that a system call carries many of
 * them. */
struct session {
  struct cct_tls *tls;
  SSL *ssl;
  unsigned char *in, *out;
  size_t in_at, in_end, out_at, out_end, capacity;
  uint64_t key_records_out, key_records_in; /* under the present key */
  int64_t io_ns;                            /* system calls within the current SSL call */
};

/* ---- between OpenSSL and the socket ---- */

static int fill(struct cct_wire *wire, struct session *s) {
  ssize_t n = cct_wire_recv(wire, s->in, s->capacity);
  s->in_at = 0;
  s->in_end = n > 0 ? (size_t)n : 0;
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

static int bio_read(BIO *bio, char *bytes, int n) {
  struct cct_wire *wire = BIO_get_data(bio);
  struct session *s = wire->record;
  BIO_clear_retry_flags(bio);
  if (s->in_at == s->in_end) {
    int64_t start = cct_clock_ns();
    int got = fill(wire, s);
    s->io_ns += cct_clock_ns() - start;
    if (got <= 0) {
      if (got == 0)
        BIO_set_retry_read(bio);
      return -1;
    }
  }
  size_t have = s->in_end - s->in_at, take = have < (size_t)n ? have : (size_t)n;
  memcpy(bytes, s->in + s->in_at, take);
  s->in_at += take;
  return (int)take;
}

static int bio_write(BIO *bio, const char *bytes, int n) {
  struct cct_wire *wire = BIO_get_data(bio);
  struct session *s = wire->record;
  BIO_clear_retry_flags(bio);
  if (s->capacity - s->out_end < (size_t)n) {
    int64_t start = cct_clock_ns();
    int gone = drain(wire);
    s->io_ns += cct_clock_ns() - start;
    if (gone < 0)
      return -1;
    if (s->capacity - s->out_end < (size_t)n) {
      BIO_set_retry_write(bio);
      return -1;
    }
  }
  memcpy(s->out + s->out_end, bytes, (size_t)n);
  s->out_end += (size_t)n;
  return n;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer) {
  (void)number, (void)pointer;
  if (command != BIO_CTRL_FLUSH)
    return 0;
  BIO_clear_retry_flags(bio);
  int gone = drain(BIO_get_data(bio));
  if (gone == 0)
    BIO_set_retry_write(bio);
  return gone > 0 ? 1 : -1;
}

static int bio_create(BIO *bio) {
  BIO_set_init(bio, 1);
  return 1;
}

/* ---- failures in words ---- */

static int fail_ssl(struct cct_wire *wire, const char *during) {
  struct session *s = wire->record;
  unsigned long code = ERR_peek_last_error();
  long verdict = SSL_get_verify_result(s->ssl);
  const char *reason = code ? ERR_reason_error_string(code) : NULL;
  char why[sizeof wire->why];
  if (!s->tls->psk_bytes && verdict != X509_V_OK)
    snprintf(why, sizeof why, "%s: certificate: %s", during, X509_verify_cert_error_string(verdict));
  else
    snprintf(why, sizeof why, "%s: %s", during, reason ? reason : "the peer ended the session");
  ERR_clear_error();
  return cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR, why);
}

/* The answer to an SSL call that moved nothing: 0 to try again, -1 failed. */
static int answer(struct cct_wire *wire, int returned, const char *during) {
  struct session *s = wire->record;
  int error = SSL_get_error(s->ssl, returned);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
    return 0;
  if (wire->result) { /* the socket itself failed, and said so */
    ERR_clear_error();
    return -1;
  }
  return fail_ssl(wire, during);
}

/* Counts what is under each key: every record's header passes here, and every handshake message. */
static void on_message(int is_write, int version, int type, const void *bytes, size_t n, SSL *ssl, void *arg) {
  (void)version, (void)ssl;
  struct cct_wire *wire = arg;
  struct session *s = wire->record;
  if (type == SSL3_RT_HEADER) {
    *(is_write ? &wire->counts.records_out : &wire->counts.records_in) += 1;
    *(is_write ? &s->key_records_out : &s->key_records_in) += 1;
  } else if (type == SSL3_RT_HANDSHAKE && n > 0 && *(const unsigned char *)bytes == SSL3_MT_KEY_UPDATE) {
    *(is_write ? &wire->counts.key_updates_out : &wire->counts.key_updates_in) += 1;
    *(is_write ? &s->key_records_out : &s->key_records_in) = 0;
  }
}

/* ---- the wire's operations ---- */

static int tls_handshake(struct cct_wire *wire) {
  struct session *s = wire->record;
  ERR_clear_error();
  int64_t start = cct_clock_ns();
  s->io_ns = 0;
  int done = SSL_do_handshake(s->ssl);
  wire->counts.crypto_ns += cct_clock_ns() - start - s->io_ns;
  if (done != 1) {
    int again = answer(wire, done, "handshake");
    drain(wire); /* an alert that says why is worth sending */
    return again;
  }
  if (SSL_version(s->ssl) != TLS1_3_VERSION || (s->tls->psk_bytes && !SSL_session_reused(s->ssl)))
    return cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR, "handshake: the peer did not prove the pre-shared key");
  return drain(wire);
}

static ssize_t tls_write(struct cct_wire *wire, const void *bytes, size_t n) {
  struct session *s = wire->record;
  ERR_clear_error();
  int64_t start = cct_clock_ns();
  s->io_ns = 0;
  /* The update is itself a record under the old key, so it leaves one before the limit. */
  if (s->key_records_out + 1 >= s->tls->key_records && SSL_get_key_update_type(s->ssl) == SSL_KEY_UPDATE_NONE) {
    SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    ERR_clear_error(); /* it may refuse while a record is half sent; the next write asks again */
  }
  size_t moved = 0;
  int done = SSL_write_ex(s->ssl, bytes, n, &moved);
  wire->counts.crypto_ns += cct_clock_ns() - start - s->io_ns;
  return done == 1 ? (ssize_t)moved : answer(wire, done, "write");
}

static ssize_t tls_read(struct cct_wire *wire, void *bytes, size_t n) {
  struct session *s = wire->record;
  if (s->in_at == s->in_end && !SSL_pending(s->ssl)) { /* an idle poll costs one system call, as in plain mode */
    int got = fill(wire, s);
    if (got <= 0)
      return got;
  }
  ERR_clear_error();
  int64_t start = cct_clock_ns();
  s->io_ns = 0;
  size_t moved = 0;
  int done = SSL_read_ex(s->ssl, bytes, n, &moved);
  wire->counts.crypto_ns += cct_clock_ns() - start - s->io_ns;
  if (s->key_records_in > CCT_NET_KEY_RECORDS)
    return cct_wire_fail(wire, CCT_NCCL_REMOTE_ERROR, "the peer used one key for too many records");
  return done == 1 ? (ssize_t)moved : answer(wire, done, "read");
}

static void tls_close(struct cct_wire *wire) {
  struct session *s = wire->record;
  if (!s)
    return;
  if (s->ssl && !wire->result && SSL_is_init_finished(s->ssl)) {
    ERR_clear_error();
    SSL_shutdown(s->ssl);
    drain(wire);
  }
  ERR_clear_error();
  SSL_free(s->ssl);
  free(s->in);
  free(s->out);
  free(s);
}

static const struct cct_wire_ops tls_ops = {tls_handshake, tls_write, drain, tls_read, tls_close};

enum cct_nccl cct_tls_open(struct cct_tls *tls, int is_server, size_t buffer_bytes, struct cct_wire *wire) {
  struct session *s = calloc(1, sizeof *s);
  BIO *bio = NULL;
  wire->record = s;
  wire->ops = &tls_ops;
  if (!s)
    goto nomem;
  s->tls = tls;
  s->capacity = buffer_bytes < RECORD_ROOM ? RECORD_ROOM : buffer_bytes;
  s->in = malloc(s->capacity);
  s->out = malloc(s->capacity);
  s->ssl = SSL_new(tls->ctx);
  bio = BIO_new(tls->bio);
  if (!s->in || !s->out || !s->ssl || !bio)
    goto nomem;
  BIO_set_data(bio, wire);
  SSL_set_bio(s->ssl, bio, bio);
  SSL_set_app_data(s->ssl, tls);
  SSL_set_msg_callback(s->ssl, on_message);
  SSL_set_msg_callback_arg(s->ssl, wire);
  if (is_server)
    SSL_set_accept_state(s->ssl);
  else
    SSL_set_connect_state(s->ssl);
  return CCT_NCCL_SUCCESS;
nomem:
  BIO_free(bio);
  return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "out of memory for a TLS session");
}

/* ---- key material ---- */

/* Opens a secret: a regular file of this user or root that nobody else may touch. */
static enum cct_nccl open_secret(const char *path, int *fd_out) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  if (fd < 0)
    return cct_net_fail(CCT_NCCL_INVALID_USAGE, "%s: %m", path);
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    result = cct_net_fail(CCT_NCCL_INVALID_USAGE, "%s is not a regular file", path);
  else if (st.st_uid != geteuid() && st.st_uid != 0)
    result = cct_net_fail(CCT_NCCL_INVALID_USAGE, "%s belongs to user %u, and this process is user %u: chown it", path,
                          (unsigned)st.st_uid, (unsigned)geteuid());
  else if (st.st_mode & 077)
    result = cct_net_fail(CCT_NCCL_INVALID_USAGE, "%s may be used by others (mode %03o): chmod 600 it", path,
                          (unsigned)(st.st_mode & 0777));
  if (result)
    close(fd);
  else
    *fd_out = fd;
  return result;
}

static int hex_digit(char c) {
  const char *digits = "0123456789abcdef", *at = strchr(digits, c | 0x20);
  return c && at ? (int)(at - digits) : -1;
}

static enum cct_nccl read_psk(const char *path, struct cct_tls *tls) {
  char text[2 * PSK_MAX_BYTES + 2] = "";
  int fd, is_hex = 1;
  enum cct_nccl result = open_secret(path, &fd);
  if (result)
    return result;
  ssize_t got = read(fd, text, sizeof text);
  close(fd);
  size_t n = got > 0 ? (size_t)got : 0;
  if (n && text[n - 1] == '\n')
    n--;
  for (size_t i = 0; i + 1 < n && is_hex && n <= 2 * PSK_MAX_BYTES; i += 2) {
    is_hex = hex_digit(text[i]) >= 0 && hex_digit(text[i + 1]) >= 0;
    tls->psk[i / 2] = (unsigned char)(hex_digit(text[i]) << 4 | hex_digit(text[i + 1]));
  }
  OPENSSL_cleanse(text, sizeof text);
  if (!is_hex || n % 2 || n < 2 * PSK_MIN_BYTES || n > 2 * PSK_MAX_BYTES)
    return cct_net_fail(CCT_NCCL_INVALID_USAGE,
                        "%s does not hold %d to %d hexadecimal digits: make it with 'openssl rand -hex 32'", path,
                        2 * PSK_MIN_BYTES, 2 * PSK_MAX_BYTES);
  tls->psk_bytes = n / 2;
  return CCT_NCCL_SUCCESS;
}

static SSL_SESSION *psk_session(SSL *ssl) {
  const struct cct_tls *tls = SSL_get_app_data(ssl);
  SSL_SESSION *session = SSL_SESSION_new();
  const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, tls->cipher_id);
  if (session && cipher && SSL_SESSION_set1_master_key(session, tls->psk, tls->psk_bytes) &&
      SSL_SESSION_set1_id_context(session, psk_identity, sizeof psk_identity - 1) &&
      SSL_SESSION_set_cipher(session, cipher) && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
    return session;
  SSL_SESSION_free(session);
  return NULL;
}

static int psk_use(SSL *ssl, const EVP_MD *digest, const unsigned char **id, size_t *id_bytes, SSL_SESSION **session) {
  (void)digest;
  *id = psk_identity;
  *id_bytes = sizeof psk_identity - 1;
  *session = psk_session(ssl);
  return *session != NULL;
}

static int psk_find(SSL *ssl, const unsigned char *id, size_t id_bytes, SSL_SESSION **session) {
  int is_ours = id_bytes == sizeof psk_identity - 1 && memcmp(id, psk_identity, id_bytes) == 0;
  *session = is_ours ? psk_session(ssl) : NULL;
  return !is_ours || *session;
}

static enum cct_nccl load_certificates(const struct cct_net_config *c, SSL_CTX *ctx) {
  int fd;
  enum cct_nccl result = open_secret(c->key_file, &fd);
  if (result)
    return result;
  close(fd);
  if (SSL_CTX_use_certificate_chain_file(ctx, c->cert_file) != 1)
    result = cct_net_fail(CCT_NCCL_INVALID_USAGE, "%s is not a PEM certificate: %s", c->cert_file,
                          ERR_reason_error_string(ERR_peek_last_error()));
  else if (SSL_CTX_use_PrivateKey_file(ctx, c->key_file, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(ctx) != 1)
    result = cct_net_fail(CCT_NCCL_INVALID_USAGE, "%s is not the private key of %s: %s", c->key_file, c->cert_file,
                          ERR_reason_error_string(ERR_peek_last_error()));
  else if (SSL_CTX_load_verify_locations(ctx, c->ca_file, NULL) != 1)
    result = cct_net_fail(CCT_NCCL_INVALID_USAGE, "%s holds no PEM certificate authority: %s", c->ca_file,
                          ERR_reason_error_string(ERR_peek_last_error()));
  ERR_clear_error();
  return result;
}

static int no_passphrase(char *text, int n, int is_write, void *arg) {
  (void)text, (void)n, (void)is_write, (void)arg;
  return -1; /* an encrypted key would ask on the terminal of every rank */
}

static int set_up(struct cct_tls *tls, const struct cct_net_config *c) {
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL); /* NCCL's threads may still send while the program ends */
  tls->bio = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cctax wire");
  tls->ctx = SSL_CTX_new(TLS_method());
  if (!tls->bio || !tls->ctx)
    return 0;
  memcpy(tls->cipher_id, strcmp(c->cipher, "TLS_AES_128_GCM_SHA256") == 0 ? "\x13\x01" : "\x13\x02", 2);
  SSL_CTX_set_mode(tls->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(tls->ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(tls->ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  SSL_CTX_set_default_passwd_cb(tls->ctx, no_passphrase);
  if (*c->psk_file) {
    SSL_CTX_set_psk_use_session_callback(tls->ctx, psk_use);
    SSL_CTX_set_psk_find_session_callback(tls->ctx, psk_find);
  }
  return BIO_meth_set_read(tls->bio, bio_read) && BIO_meth_set_write(tls->bio, bio_write) &&
         BIO_meth_set_ctrl(tls->bio, bio_ctrl) && BIO_meth_set_create(tls->bio, bio_create) &&
         SSL_CTX_set_min_proto_version(tls->ctx, TLS1_3_VERSION) &&
         SSL_CTX_set_max_proto_version(tls->ctx, TLS1_3_VERSION) && SSL_CTX_set_ciphersuites(tls->ctx, c->cipher) &&
         SSL_CTX_set_session_id_context(tls->ctx, psk_identity, sizeof psk_identity - 1) &&
         SSL_CTX_set1_groups_list(tls->ctx, "X25519:P-256") && SSL_CTX_set_num_tickets(tls->ctx, 0);
}

enum cct_nccl cct_tls_new(const struct cct_net_config *config, struct cct_tls **tls_out) {
  struct cct_tls *tls = calloc(1, sizeof *tls);
  enum cct_nccl result;
  if (!tls || !set_up(tls, config)) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    result = cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "OpenSSL gives no TLS 1.3 with %s: %s", config->cipher,
                          reason ? reason : "no memory");
    goto out;
  }
  tls->key_records = config->key_records;
  result = *config->psk_file ? read_psk(config->psk_file, tls) : load_certificates(config, tls->ctx);
out:
  if (result)
    cct_tls_free(tls);
  else
    *tls_out = tls;
  return result;
}

void cct_tls_free(struct cct_tls *tls) {
  if (!tls)
    return;
  SSL_CTX_free(tls->ctx);
  BIO_meth_free(tls->bio);
  OPENSSL_cleanse(tls->psk, sizeof tls->psk);
  free(tls);
}
