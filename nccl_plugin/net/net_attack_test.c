/* SPDX-License-Identifier: Apache-2.0
 * Who is not a peer is refused, with one line; who tampers on the way ends the connection; nobody gets wrong data or a
 * hang. Side 0 connects and sends, side 1 listens and receives; the man in the middle (net_middle.h) is a thread of
 * side 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "nccl_plugin/net/net_middle.h"
#include "nccl_plugin/net/net_play.h"
#include "tests/scratch.h"

static char psk[100], psk2[100], good[3][100], expired[3][100], foreign[3][100];

/* ---- wrong keys and certificates ---- */

static int caller(struct play *play) { /* PLAY_GOOD: it is taken */
  void *listen = NULL, *send = NULL;
  char mine[CCT_NCCL_HANDLE_BYTES], theirs[CCT_NCCL_HANDLE_BYTES];
  PLAY_CHECK(play_listen(play, mine, &listen) == CCT_NCCL_SUCCESS);
  play_trade(play, mine, theirs, sizeof mine);
  enum cct_nccl result = play_connect(play, theirs, &send, 60);
  if (getenv("PLAY_GOOD"))
    PLAY_CHECK(result == CCT_NCCL_SUCCESS && send && play->log->n_warnings == 0);
  else
    PLAY_CHECK((result == CCT_NCCL_REMOTE_ERROR || result == CCT_NCCL_INVALID_USAGE) && !send &&
               play->log->n_warnings == 1);
  play_barrier(play);
  play->net->close_send(send);
  return (int)play->net->close_listen(listen);
}

static int callee(struct play *play) {
  void *listen = NULL, *recv = NULL;
  char mine[CCT_NCCL_HANDLE_BYTES], theirs[CCT_NCCL_HANDLE_BYTES];
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  int64_t deadline = play_now_ns() + 60000000000;
  PLAY_CHECK(play_listen(play, mine, &listen) == CCT_NCCL_SUCCESS);
  play_trade(play, mine, theirs, sizeof mine);
  while (!result && !recv && !play->log->n_warnings && play_now_ns() < deadline)
    result = play->net->accept(listen, &recv, NULL);
  if (getenv("PLAY_GOOD"))
    PLAY_CHECK(result == CCT_NCCL_SUCCESS && recv && play->log->n_warnings == 0);
  else if (getenv("PLAY_NOBODY")) /* nothing reached the listener: it does not wait for ever */
    PLAY_CHECK(result == CCT_NCCL_REMOTE_ERROR && !recv && play->log->n_warnings == 1);
  else /* the stranger is refused, the real peer may still come */
    PLAY_CHECK(result == CCT_NCCL_SUCCESS && !recv && play->log->n_warnings == 1);
  play_barrier(play);
  play->net->close_recv(recv);
  return (int)play->net->close_listen(listen);
}

static void only_the_right_key_or_certificate_is_taken(void **state) {
  (void)state;
  const char *nobody = "PLAY_NOBODY=1", *in_time = "CCTAX_NET_CONNECT_TIMEOUT_S=1";
  const struct {
    const char *name;
    const char *env[2][5];
    const char *says[2]; /* side 0's line and the first of side 1; NULL: it is taken */
  } rows[] = {
      {"psk", {{psk, "PLAY_GOOD=1"}, {psk, "PLAY_GOOD=1"}}, {NULL, NULL}},
      {"certificates",
       {{good[0], good[1], good[2], "PLAY_GOOD=1"}, {good[0], good[1], good[2], "PLAY_GOOD=1"}},
       {NULL, NULL}},
      {"aes-128",
       {{psk, "CCTAX_NET_CIPHER=aes-128-gcm", "PLAY_GOOD=1"}, {psk, "CCTAX_NET_CIPHER=aes-128-gcm", "PLAY_GOOD=1"}},
       {NULL, NULL}},
      {"other psk", {{psk2}, {psk}}, {"alert", "binder"}},
      {"psk meets certificates", {{psk}, {good[0], good[1], good[2]}}, {"", ""}},
      {"certificates meet psk", {{good[0], good[1], good[2]}, {psk}}, {"", ""}},
      {"expired caller", {{expired[0], expired[1], expired[2]}, {good[0], good[1], good[2]}}, {"expired", "expired"}},
      {"expired listener", {{good[0], good[1], good[2]}, {expired[0], expired[1], expired[2]}}, {"expired", "expired"}},
      {"foreign caller", {{foreign[0], foreign[1], good[2]}, {good[0], good[1], good[2]}}, {"unknown ca", "issuer"}},
      {"foreign listener", {{good[0], good[1], good[2]}, {foreign[0], foreign[1], good[2]}}, {"issuer", "unknown ca"}},
      {"other cipher", {{psk, "CCTAX_NET_CIPHER=aes-128-gcm"}, {psk}}, {"", ""}},
      {"plain meets tls", {{"CCTAX_NET_MODE=plain"}, {psk, nobody, in_time}}, {"CCTAX_NET_MODE", "no peer"}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct play_case c = {.sides = {caller, callee}, .env = {rows[i].env[0], rows[i].env[1]}};
    int is_good = play_run(&c);
    for (int k = 0; k < 2 && is_good && rows[i].says[k]; k++)
      is_good = strstr(c.logs[k]->warnings[0], rows[i].says[k]) != NULL;
    if (!is_good)
      fail_msg("%s: '%s' / '%s'", rows[i].name, c.logs[0]->warnings[0], c.logs[1]->warnings[0]);
    play_free(&c);
  }
}

/* ---- port scanners, and sessions that mean somebody else ---- */

static int scanner(struct play *play) {
  static const char *const says[] = {"", "GET / HTTP/1.0\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"};
  void *send = NULL, *listen = NULL, *none = NULL;
  char mine[CCT_NCCL_HANDLE_BYTES], theirs[2][CCT_NCCL_HANDLE_BYTES], unused[2][CCT_NCCL_HANDLE_BYTES] = {{0}};
  struct cct_net_handle first, second;
  int silent[3];
  PLAY_CHECK(play_listen(play, mine, &listen) == CCT_NCCL_SUCCESS);
  play_trade(play, unused, theirs, sizeof theirs);
  memcpy(&first, theirs[0], sizeof first);
  memcpy(&second, theirs[1], sizeof second);
  for (int i = 0; i < 3; i++) {
    int fd = net_middle_dial(&first.address);
    size_t n = strlen(says[i]) + (i == 2);
    PLAY_CHECK(fd >= 0 && write(fd, says[i], n) == (ssize_t)n);
    if (i < 2)
      close(fd);
    else
      silent[0] = fd; /* never finishes its hello */
  }
  silent[1] = net_middle_dial(&first.address);
  /* A peer with the key that was led to another listener, as by a tampered handle, is refused too. */
  union cct_net_address right = first.address;
  first.address = second.address;
  memcpy(theirs[0], &first, sizeof first);
  PLAY_CHECK(play_connect(play, theirs[0], &none, 60) == CCT_NCCL_REMOTE_ERROR && !none);
  first.address = right;
  first.call = 0;
  memcpy(theirs[0], &first, sizeof first);
  PLAY_CHECK(play_connect(play, theirs[0], &send, 60) == CCT_NCCL_SUCCESS);
  play_barrier(play);
  close(silent[0]);
  close(silent[1]);
  return play->net->close_send(send) || play->net->close_listen(listen);
}

static int scanned(struct play *play) {
  void *listens[2], *recv = NULL, *none = NULL;
  char mine[2][CCT_NCCL_HANDLE_BYTES], theirs[2][CCT_NCCL_HANDLE_BYTES];
  int64_t deadline = play_now_ns() + 60000000000;
  for (int i = 0; i < 2; i++)
    PLAY_CHECK(play_listen(play, mine[i], &listens[i]) == CCT_NCCL_SUCCESS);
  play_trade(play, mine, theirs, sizeof mine);
  while (!recv) {
    PLAY_CHECK(play->net->accept(listens[0], &recv, NULL) == CCT_NCCL_SUCCESS && play_now_ns() < deadline);
    PLAY_CHECK(play->net->accept(listens[1], &none, NULL) == CCT_NCCL_SUCCESS && !none);
  }
  for (int i = 0; i < 2; i++)
    play->net->close_listen(listens[i]);
  /* Closed at once, HTTP, led astray; and the two that said nothing, when the listener closes. */
  PLAY_CHECK(play->log->n_warnings == 5);
  for (int i = 0; i < 5; i++)
    PLAY_CHECK(strstr(play->log->warnings[i], "refused a connection from 127.0.0.1:"));
  play_barrier(play);
  return play->net->close_recv(recv);
}

static void strangers_are_refused_with_a_line_each_and_hold_nobody_up(void **state) {
  (void)state;
  const char *env[] = {psk, NULL}, *plain[] = {"CCTAX_NET_MODE=plain", NULL};
  for (int i = 0; i < 2; i++) {
    struct play_case c = {.sides = {scanner, scanned}, .env = {i ? plain : env, i ? plain : env}};
    assert_true(play_run(&c));
    play_free(&c);
  }
}

/* ---- the man in the middle ---- */

enum {
  MESSAGES = 40,
  LARGE = 300000
};

static int attacked_sender(struct play *play) {
  struct middle m = {.attack = (enum attack)atoi(getenv("PLAY_ATTACK")),
                     .victim = atoi(getenv("PLAY_VICTIM")),
                     .at = atoi(getenv("PLAY_AT"))};
  char unused[CCT_NCCL_HANDLE_BYTES] = {0}, theirs[CCT_NCCL_HANDLE_BYTES];
  static unsigned char data[LARGE];
  void *send = NULL, *request;
  pthread_t thread;
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  int done, bytes;
  play_trade(play, unused, theirs, sizeof theirs);
  PLAY_CHECK(net_middle_put(&m, theirs, &thread));
  result = play_connect(play, theirs, &send, 60);
  int64_t deadline = play_now_ns() + 60000000000;
  for (uint64_t i = 0; i < MESSAGES && !result; i++) {
    play_fill(data, LARGE, i);
    for (request = NULL; !request && !result;)
      result = play->net->isend(send, data, i % 2 ? LARGE : 100, 0, NULL, NULL, &request);
    for (done = 0; !done && !result && play_now_ns() < deadline;)
      result = play->net->test(request, &done, &bytes);
  }
  PLAY_CHECK(play_now_ns() < deadline); /* done or an error, no hang */
  PLAY_CHECK(m.attack != PASS || result == CCT_NCCL_SUCCESS);
  play_barrier(play);
  play->net->close_send(send);
  shutdown(m.fd, SHUT_RDWR);
  pthread_join(thread, NULL);
  close(m.fd);
  PLAY_CHECK(m.has_struck);
  if (m.attack == PASS) { /* the whole session again, as it was recorded */
    int fd = net_middle_dial(&m.target);
    PLAY_CHECK(fd >= 0 && net_middle_write(fd, m.tape, m.tape_bytes));
    play_barrier(play);
    close(fd);
  }
  return 0;
}

static int attacked_receiver(struct play *play) {
  char mine[CCT_NCCL_HANDLE_BYTES], theirs[CCT_NCCL_HANDLE_BYTES];
  static unsigned char data[LARGE];
  void *listen, *recv = NULL, *request, *in = data;
  size_t room = LARGE;
  int tag = 0, bytes, is_attack = atoi(getenv("PLAY_ATTACK")) != PASS;
  PLAY_CHECK(play_listen(play, mine, &listen) == CCT_NCCL_SUCCESS);
  play_trade(play, mine, theirs, sizeof mine);
  PLAY_CHECK(play_accept(play, listen, &recv, 60) == CCT_NCCL_SUCCESS);
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  for (uint64_t i = 0; i < MESSAGES && !result; i++) {
    result = play->net->irecv(recv, 1, &in, &room, &tag, NULL, NULL, &request);
    if (!result)
      result = play_wait(play, request, &bytes, 60);
    PLAY_CHECK(result || (bytes == (i % 2 ? LARGE : 100) && play_check(data, (size_t)bytes, i) == (size_t)bytes));
  }
  PLAY_CHECK(result == (is_attack ? CCT_NCCL_REMOTE_ERROR : CCT_NCCL_SUCCESS) && play->log->n_warnings == is_attack);
  play->net->close_recv(recv);
  play_barrier(play);
  if (!is_attack) {
    PLAY_CHECK(play_accept(play, listen, &recv, 1) == CCT_NCCL_INTERNAL_ERROR && play->log->n_warnings == 1);
    PLAY_CHECK(strstr(play->log->warnings[0], "refused a connection"));
    play_barrier(play);
  }
  return play->net->close_listen(listen);
}

static void tampering_ends_the_connection_and_never_changes_data(void **state) {
  (void)state;
  for (int attack = PASS; attack <= FLIP_LENGTH; attack++)
    for (int victim = 0; victim < 2; victim++) {
      char text[3][40];
      snprintf(text[0], sizeof text[0], "PLAY_ATTACK=%d", attack);
      snprintf(text[1], sizeof text[1], "PLAY_VICTIM=%d", victim);
      snprintf(text[2], sizeof text[2], "PLAY_AT=%d", 5 + 3 * attack);
      const char *env[] = {psk, "CCTAX_NET_SOCKETS=2", text[0], text[1], text[2], NULL};
      struct play_case c = {.sides = {attacked_sender, attacked_receiver}, .env = {env, env}};
      if (!play_run(&c))
        fail_msg("attack %d on connection %d: '%s' / '%s'", attack, victim, c.logs[0]->warnings[0],
                 c.logs[1]->warnings[0]);
      play_free(&c);
    }
}

static void name_files(char out[3][100], const char *name) {
  snprintf(out[0], 100, "CCTAX_NET_CERT_FILE=%s/%s.pem", scratch, name);
  snprintf(out[1], 100, "CCTAX_NET_KEY_FILE=%s/%s.key", scratch, name);
  snprintf(out[2], 100, "CCTAX_NET_CA_FILE=%s/ca.pem", scratch);
}

static int make_keys(void **state) {
  char command[400];
  if (scratch_make(state))
    return -1;
  snprintf(command, sizeof command, "%s %s", NET_KEYS, scratch);
  if (system(command) != 0)
    return -1;
  snprintf(psk, sizeof psk, "CCTAX_NET_PSK_FILE=%s/psk", scratch);
  snprintf(psk2, sizeof psk2, "CCTAX_NET_PSK_FILE=%s/psk2", scratch);
  name_files(good, "good");
  name_files(expired, "expired");
  name_files(foreign, "foreign");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_the_right_key_or_certificate_is_taken),
      cmocka_unit_test(strangers_are_refused_with_a_line_each_and_hold_nobody_up),
      cmocka_unit_test(tampering_ends_the_connection_and_never_changes_data),
  };
  return cmocka_run_group_tests(tests, make_keys, scratch_remove);
}
