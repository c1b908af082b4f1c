/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nccl_plugin/net/net_log.h"
#include "nccl_plugin/net/net_openssl.h"

static const unsigned char psk_identity[] = "cctax-net-1";

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
  char text[2 * CCT_TLS_PSK_MAX_BYTES + 2] = "";
  int fd, is_hex = 1;
  enum cct_nccl result = open_secret(path, &fd);
  if (result)
    return result;
  ssize_t got = read(fd, text, sizeof text);
  close(fd);
  size_t n = got > 0 ? (size_t)got : 0;
  if (n && text[n - 1] == '\n')
    n--;
  for (size_t i = 0; i + 1 < n && is_hex && n <= 2 * CCT_TLS_PSK_MAX_BYTES; i += 2) {
    is_hex = hex_digit(text[i]) >= 0 && hex_digit(text[i + 1]) >= 0;
    tls->psk[i / 2] = (unsigned char)(hex_digit(text[i]) << 4 | hex_digit(text[i + 1]));
  }
  OPENSSL_cleanse(text, sizeof text);
  if (!is_hex || n % 2 || n < 2 * CCT_TLS_PSK_MIN_BYTES || n > 2 * CCT_TLS_PSK_MAX_BYTES)
    return cct_net_fail(CCT_NCCL_INVALID_USAGE,
                        "%s does not hold %d to %d hexadecimal digits: make it with 'openssl rand -hex 32'", path,
                        2 * CCT_TLS_PSK_MIN_BYTES, 2 * CCT_TLS_PSK_MAX_BYTES);
  tls->psk_bytes = n / 2;
  return CCT_NCCL_SUCCESS;
}

static SSL_SESSION *psk_session(SSL *ssl) {
  const struct cct_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
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
  tls->ctx = SSL_CTX_new(TLS_method());
  if (!tls->ctx)
    return 0;
  SSL_CTX_set_app_data(tls->ctx, tls);
  memcpy(tls->cipher_id, strcmp(c->cipher, "TLS_AES_128_GCM_SHA256") == 0 ? "\x13\x01" : "\x13\x02", 2);
  SSL_CTX_set_options(tls->ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(tls->ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  SSL_CTX_set_default_passwd_cb(tls->ctx, no_passphrase);
  if (*c->psk_file) {
    SSL_CTX_set_psk_use_session_callback(tls->ctx, psk_use);
    SSL_CTX_set_psk_find_session_callback(tls->ctx, psk_find);
  }
  return cct_tls_session_set_up(tls) && SSL_CTX_set_min_proto_version(tls->ctx, TLS1_3_VERSION) &&
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
