/* SPDX-License-Identifier: Apache-2.0
 * Our records against OpenSSL's own: a wire on one end of a socket pair, SSL_read and SSL_write on the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "nccl_plugin/net/net_log.h"
#include "nccl_plugin/net/net_record.h"
#include "nccl_plugin/net/net_tls.h"
#include "nccl_plugin/net/net_wire.h"

static char psk_path[] = "/tmp/cct-net-record-XXXXXX";
static const unsigned char psk[32] = "0123456789abcdef0123456789abcde";

struct pair {
  struct cct_tls *tls;
  struct cct_wire *wire;
  SSL_CTX *ctx;
  SSL *ssl;
};

static SSL_SESSION *session_of(SSL *ssl) {
  SSL_SESSION *session = SSL_SESSION_new();
  STACK_OF(SSL_CIPHER) *ciphers = SSL_get1_supported_ciphers(ssl);
  assert_true(SSL_SESSION_set1_master_key(session, psk, sizeof psk) &&
              SSL_SESSION_set_cipher(session, sk_SSL_CIPHER_value(ciphers, 0)) &&
              SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) &&
              SSL_SESSION_set1_id_context(session, (const unsigned char *)"x", 1));
  sk_SSL_CIPHER_free(ciphers);
  return session;
}

static int use_psk(SSL *ssl, const EVP_MD *digest, const unsigned char **id, size_t *n, SSL_SESSION **session) {
  (void)digest;
  *id = (const unsigned char *)"cctax-net-1";
  *n = strlen("cctax-net-1");
  *session = session_of(ssl);
  return 1;
}

static int find_psk(SSL *ssl, const unsigned char *id, size_t n, SSL_SESSION **session) {
  (void)id, (void)n;
  *session = session_of(ssl);
  return 1;
}

/* A wire and OpenSSL that have shaken hands. `key_records` is the wire's. */
static struct pair meet(const char *suite, int wire_is_server, uint64_t key_records) {
  struct cct_net_config config = {.is_tls = 1, .key_records = key_records, .cipher = suite};
  struct pair p = {0};
  int fds[2], shaken = 0, theirs = 0;
  snprintf(config.psk_file, sizeof config.psk_file, "%s", psk_path);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  assert_int_equal(cct_tls_new(&config, &p.tls), CCT_NCCL_SUCCESS);
  assert_int_equal(cct_wire_open(fds[0], p.tls, wire_is_server, 0, &p.wire), CCT_NCCL_SUCCESS);
  p.ctx = SSL_CTX_new(TLS_method());
  SSL_CTX_set_ciphersuites(p.ctx, suite);
  SSL_CTX_set_min_proto_version(p.ctx, TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(p.ctx, 0);
  SSL_CTX_set_session_id_context(p.ctx, (const unsigned char *)"x", 1);
  SSL_CTX_set_mode(p.ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_psk_use_session_callback(p.ctx, use_psk);
  SSL_CTX_set_psk_find_session_callback(p.ctx, find_psk);
  p.ssl = SSL_new(p.ctx);
  SSL_set_fd(p.ssl, fds[1]);
  if (wire_is_server)
    SSL_set_connect_state(p.ssl);
  else
    SSL_set_accept_state(p.ssl);
  for (int i = 0; i < 100 && (shaken <= 0 || theirs != 1); i++) {
    if (shaken <= 0)
      shaken = p.wire->ops->handshake(p.wire);
    assert_true(shaken >= 0);
    if (theirs != 1)
      theirs = SSL_do_handshake(p.ssl);
  }
  assert_true(shaken > 0 && theirs == 1);
  return p;
}

static void part(struct pair *p) {
  int fd = SSL_get_fd(p->ssl);
  SSL_free(p->ssl);
  close(fd);
  SSL_CTX_free(p->ctx);
  cct_wire_close(p->wire);
  cct_tls_free(p->tls);
}

static unsigned char out[200000], in[200000];

/* n bytes from the wire to OpenSSL. */
static void to_ssl(struct pair *p, size_t n) {
  size_t gone = 0, got = 0, one;
  memset(in, 0, n);
  while (got < n) {
    ssize_t moved = gone < n ? p->wire->ops->write(p->wire, out + gone, n - gone) : 0;
    assert_true(moved >= 0 && p->wire->ops->flush(p->wire) >= 0);
    gone += (size_t)moved;
    while (SSL_read_ex(p->ssl, in + got, sizeof in - got, &one))
      got += one;
    assert_int_equal(SSL_get_error(p->ssl, 0), SSL_ERROR_WANT_READ);
  }
  assert_int_equal(got, n);
  assert_memory_equal(in, out, n);
}

/* n bytes from OpenSSL to the wire, which reads at most `room` at once. */
static void to_wire(struct pair *p, size_t n, size_t room) {
  size_t gone = 0, got = 0, one;
  memset(in, 0xa5, n + 1);
  while (got < n) {
    if (gone < n && SSL_write_ex(p->ssl, out + gone, n - gone, &one))
      gone += one;
    size_t want = n - got < room ? n - got : room;
    ssize_t moved = p->wire->ops->read(p->wire, in + got, want);
    assert_true(moved >= 0 && (size_t)moved <= want);
    got += (size_t)moved;
    assert_int_equal(in[got < n ? n : got], 0xa5);
  }
  assert_memory_equal(in, out, n);
}

static const char *const suites[] = {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"};

static void openssl_reads_what_is_sealed_and_seals_what_is_read(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 15, 16, 17, 1000, 16383, 16384, 16385, 40000, 200000 - 1};
  for (int i = 0; i < 4; i++) {
    struct pair p = meet(suites[i / 2], i % 2, 1 << 23);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      to_ssl(&p, sizes[k]);
      to_wire(&p, sizes[k], sizes[k]);
      to_wire(&p, sizes[k], 777);
    }
    SSL_set_block_padding(p.ssl, 512); /* records with zeros behind their content */
    to_wire(&p, 100000, 100000);
    to_wire(&p, 100000, 5000);
    part(&p);
  }
}

static void keys_are_updated_both_ways(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    struct pair p = meet(suites[i / 2], i % 2, 5);
    for (int k = 0; k < 6; k++) {
      to_ssl(&p, 100000);
      SSL_key_update(p.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
      to_wire(&p, 30000, 30000);
    }
    assert_int_equal(p.wire->counts.key_updates_in, 6);
    assert_in_range(p.wire->counts.key_updates_out, 42 / 5, 42 / 4);
    part(&p);
  }
}

static void one_key_for_too_many_records_is_refused(void **state) {
  (void)state;
  struct pair p = meet(suites[0], 1, 8);
  for (int i = 0; i < 8; i++)
    to_wire(&p, 10, 10);
  assert_int_equal(SSL_write(p.ssl, out, 10), 10);
  assert_int_equal(p.wire->ops->read(p.wire, in, 10), -1);
  assert_int_equal(p.wire->result, CCT_NCCL_REMOTE_ERROR);
  assert_non_null(strstr(p.wire->why, "CCTAX_NET_KEY_RECORDS"));
  part(&p);
}

static void what_is_no_data_ends_the_session_in_words(void **state) {
  (void)state;
  struct pair p = meet(suites[0], 0, 1 << 23);
  SSL_shutdown(p.ssl);
  assert_int_equal(p.wire->ops->read(p.wire, in, 10), -1);
  assert_non_null(strstr(p.wire->why, "the peer ended the session"));
  part(&p);
  p = meet(suites[0], 0, 1 << 23);
  SSL_key_update(p.ssl, SSL_KEY_UPDATE_REQUESTED); /* none of this plugin asks */
  assert_int_equal(SSL_do_handshake(p.ssl), 1);
  assert_int_equal(p.wire->ops->read(p.wire, in, 10), -1);
  assert_non_null(strstr(p.wire->why, "does not send"));
  part(&p);
  p = meet(suites[0], 0, 1 << 23);
  assert_int_equal(write(SSL_get_fd(p.ssl), "GET / HTTP/1.0\r\n", 16), 16);
  assert_int_equal(p.wire->ops->read(p.wire, in, 10), -1);
  assert_non_null(strstr(p.wire->why, "no TLS record"));
  part(&p);
}

static void what_came_before_a_goodbye_has_come(void **state) {
  (void)state;
  struct pair p = meet(suites[0], 0, 1 << 23);
  assert_int_equal(SSL_write(p.ssl, out, 10), 10);
  assert_int_equal(SSL_write(p.ssl, out + 10, 5), 5);
  SSL_shutdown(p.ssl);
  assert_int_equal(p.wire->ops->read(p.wire, in, 100), 15);
  assert_memory_equal(in, out, 15);
  for (int i = 0; i < 2; i++)
    assert_int_equal(p.wire->ops->read(p.wire, in, 100), -1);
  assert_non_null(strstr(p.wire->why, "the peer ended the session"));
  part(&p);
}

static void our_goodbye_is_openssls(void **state) {
  (void)state;
  struct pair p = meet(suites[1], 1, 1 << 23);
  size_t got;
  cct_wire_close(p.wire);
  p.wire = NULL;
  assert_int_equal(SSL_read_ex(p.ssl, in, 10, &got), 0);
  assert_int_equal(SSL_get_error(p.ssl, 0), SSL_ERROR_ZERO_RETURN);
  part(&p);
}

/* No byte of a record may change, and no length. */
static void a_changed_record_does_not_open(void **state) {
  (void)state;
  unsigned char secret[48] = "any secret will do for a record by itself", content[100], type_byte;
  unsigned char record[100 + CCT_NET_RECORD_MORE], changed[sizeof record];
  int type;
  for (size_t i = 0; i <= sizeof record; i++) {
    struct cct_net_key *seal = cct_net_key_new(1, secret, 48), *open = cct_net_key_new(0, secret, 48);
    assert_true(seal && open && cct_net_seal(seal, CCT_NET_DATA, out, 100, record));
    memcpy(changed, record, sizeof record);
    type_byte = i < sizeof record ? 0x20 : 0;
    changed[i % sizeof record] ^= type_byte;
    ptrdiff_t n = cct_net_open(open, changed, sizeof changed, content, &type);
    assert_int_equal(n, type_byte ? -1 : 100);
    assert_int_equal(cct_net_key_records(open), 1);
    cct_net_key_free(seal);
    cct_net_key_free(open);
  }
  ERR_clear_error();
  static const unsigned char headers[][5] = {
      {22, 3, 3, 0, 50}, {23, 3, 1, 0, 50}, {23, 3, 3, 0, 16}, {23, 3, 3, 65, 1}};
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
    assert_int_equal(cct_net_record_length(headers[i]), 0);
  assert_int_equal(cct_net_record_length((const unsigned char[]){23, 3, 3, 65, 0}), CCT_NET_RECORD_ROOM);
}

int main(void) {
  int fd = mkstemp(psk_path);
  for (size_t i = 0; i < sizeof psk; i++)
    dprintf(fd, "%02x", psk[i]);
  close(fd);
  for (size_t i = 0; i < sizeof out; i++)
    out[i] = (unsigned char)(i * 7 + i / 251);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(openssl_reads_what_is_sealed_and_seals_what_is_read),
      cmocka_unit_test(keys_are_updated_both_ways),
      cmocka_unit_test(one_key_for_too_many_records_is_refused),
      cmocka_unit_test(what_is_no_data_ends_the_session_in_words),
      cmocka_unit_test(what_came_before_a_goodbye_has_come),
      cmocka_unit_test(our_goodbye_is_openssls),
      cmocka_unit_test(a_changed_record_does_not_open),
  };
  int result = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(psk_path);
  return result;
}
