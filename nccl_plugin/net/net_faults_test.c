/* SPDX-License-Identifier: Apache-2.0
 * The net plugin played through faults: peers that die, stop or leave, calls that ask too much, and settings that
 * cannot be meant. Each is an error that says its cause, and none a hang. */
#include <signal.h>
#include <sys/resource.h>

#include "nccl_plugin/net/net_played_test.h"

/* ---- peers that die or stop ---- */

static int victim_receives(struct play *play) { /* some of it, then it is gone */
  void *recv, *request;
  size_t n = 8 << 20;
  int tag = 0, got, signal_number = getenv("PLAY_STOP") ? SIGSTOP : SIGKILL;
  void *data = malloc(n);
  PLAY_CHECK(play_meet(play, 1, NULL, &recv) == CCT_NCCL_SUCCESS);
  PLAY_CHECK(play->net->irecv(recv, 1, &data, &n, &tag, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
  PLAY_CHECK(play_wait(play, request, &got, 60) == CCT_NCCL_SUCCESS);
  kill(getpid(), signal_number);
  if (getenv("PLAY_RESUMES")) { /* continued: the rest arrives, and right */
    for (int i = 1; i < 20; i++) {
      PLAY_CHECK(play->net->irecv(recv, 1, &data, &n, &tag, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
      PLAY_CHECK(play_wait(play, request, &got, 60) == CCT_NCCL_SUCCESS && got == (int)n);
      PLAY_CHECK(play_check(data, n, 5) == n);
    }
    free(data);
    return play->net->close_recv(recv);
  }
  return 1;
}

static int survivor_sends(struct play *play) {
  void *send, *request = NULL;
  size_t n = 8 << 20;
  int done = 0, got;
  unsigned char *data = malloc(n);
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  play_fill(data, n, 5);
  PLAY_CHECK(play_meet(play, 1, &send, NULL) == CCT_NCCL_SUCCESS);
  int64_t start = play_now_ns();
  int is_continued = 0;
  int64_t continued = start;
  for (int i = 0; i < 20 && !result; i++) {
    for (request = NULL; !request && !result;)
      result = play->net->isend(send, data, n, 0, NULL, NULL, &request);
    for (done = 0; !done && !result && play_now_ns() - start < 60000000000;) {
      result = play->net->test(request, &done, &got);
      if (getenv("PLAY_RESUMES") && play_now_ns() - continued > 700000000) { /* again and again: it may stop late */
        continued = play_now_ns();
        is_continued = kill(play->other, SIGCONT) == 0;
      }
    }
  }
  int ended_ms = (int)((play_now_ns() - start) / 1000000);
  if (getenv("PLAY_RESUMES"))
    PLAY_CHECK(result == CCT_NCCL_SUCCESS && done && is_continued);
  else {
    PLAY_CHECK(result == CCT_NCCL_REMOTE_ERROR && ended_ms < 30000);
    PLAY_CHECK(play->net->isend(send, data, n, 0, NULL, NULL, &request) == CCT_NCCL_REMOTE_ERROR); /* it stays one */
    PLAY_CHECK(play->log->n_warnings == 1);
    kill(play->other, SIGKILL);
  }
  free(data);
  return play->net->close_send(send);
}

static int survivor_receives(struct play *play) {
  void *recv, *request;
  size_t n = 8 << 20;
  int tag = 0, got;
  void *data = malloc(n);
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  PLAY_CHECK(play_meet(play, 1, NULL, &recv) == CCT_NCCL_SUCCESS);
  for (int i = 0; i < 3 && !result; i++) {
    result = play->net->irecv(recv, 1, &data, &n, &tag, NULL, NULL, &request);
    if (!result)
      result = play_wait(play, request, &got, 60);
  }
  PLAY_CHECK(result == CCT_NCCL_REMOTE_ERROR && play->log->n_warnings == 1);
  free(data);
  return play->net->close_recv(recv);
}

static int victim_sends(struct play *play) {
  void *send, *request = NULL;
  size_t n = 8 << 20;
  unsigned char *data = calloc(1, n);
  int got;
  PLAY_CHECK(play_meet(play, 1, &send, NULL) == CCT_NCCL_SUCCESS);
  for (int i = 0; i < 2; i++)
    while (!request)
      PLAY_CHECK(play->net->isend(send, data, n, 0, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
  PLAY_CHECK(play->net->test(request, &got, &got) == CCT_NCCL_SUCCESS);
  return kill(getpid(), SIGKILL);
}

static void a_killed_peer_is_an_error(void **state) {
  (void)state;
  assert_true(run_both_modes((struct play_case){.sides = {survivor_sends, victim_receives}, .ends = {0, -SIGKILL}}));
  assert_true(run_both_modes((struct play_case){.sides = {victim_sends, survivor_receives}, .ends = {-SIGKILL, 0}}));
}

static void a_stopped_peer_is_waited_for_and_then_an_error(void **state) {
  (void)state;
  const char *stalls[] = {psk_variable, "PLAY_STOP=1", "CCTAX_NET_STALL_S=1", NULL};
  const char *resumes[] = {psk_variable, "PLAY_STOP=1", "PLAY_RESUMES=1", NULL};
  struct play_case c = {.sides = {survivor_sends, victim_receives}, .env = {stalls, stalls}, .ends = {0, -SIGKILL}};
  assert_true(play_run(&c));
  assert_non_null(strstr(c.logs[0]->warnings[0], "CCTAX_NET_STALL_S"));
  play_free(&c);
  run_once((struct play_case){.sides = {survivor_sends, victim_receives}, .env = {resumes, resumes}});
}

/* ---- what must be refused ---- */

static int truncated_receive(struct play *play) {
  void *comm, *request = NULL, *data = malloc(1000);
  size_t n = play->role ? 100 : 1000; /* the receiver has room for less than is sent */
  int tag = 0, got;
  PLAY_CHECK(play_meet(play, 1, play->role ? NULL : &comm, play->role ? &comm : NULL) == CCT_NCCL_SUCCESS);
  memset(data, 0, 1000);
  if (play->role == 0)
    PLAY_CHECK(play->net->isend(comm, data, n, 0, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
  else {
    PLAY_CHECK(play->net->irecv(comm, 1, &data, &n, &tag, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
    PLAY_CHECK(play_wait(play, request, &got, 60) == CCT_NCCL_INVALID_USAGE && play->log->n_warnings == 1);
  }
  play_barrier(play);
  free(data);
  return (int)(play->role ? play->net->close_recv(comm) : play->net->close_send(comm));
}

static void a_receive_that_is_too_small_is_an_error(void **state) {
  (void)state;
  assert_true(run_both_modes((struct play_case){.sides = {truncated_receive, truncated_receive}}));
}

static int starved_side(struct play *play) { /* role 0 has no descriptors to connect with */
  void *listen = NULL, *send = NULL;
  char handle[CCT_NCCL_HANDLE_BYTES], theirs[CCT_NCCL_HANDLE_BYTES];
  PLAY_CHECK(play_listen(play, handle, &listen) == CCT_NCCL_SUCCESS);
  play_trade(play, handle, theirs, sizeof handle);
  if (play->role == 0) {
    struct rlimit limit = {(rlim_t)dup(0), 64};
    close((int)limit.rlim_cur);
    limit.rlim_cur += 2;
    PLAY_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    PLAY_CHECK(play_connect(play, theirs, &send, 5) == CCT_NCCL_SYSTEM_ERROR);
    PLAY_CHECK(play->log->n_warnings == 1 && strstr(play->log->warnings[0], "ulimit"));
    void *again = NULL;
    for (int i = 0; i < 3; i++) /* and none leaked on the way */
      PLAY_CHECK(play_listen(play, handle, &again) == CCT_NCCL_SUCCESS && !play->net->close_listen(again));
  } else {
    void *recv = NULL;
    PLAY_CHECK(play_accept(play, listen, &recv, 5) == CCT_NCCL_REMOTE_ERROR); /* CONNECT_TIMEOUT_S, not a hang */
  }
  play_barrier(play);
  return play->net->close_listen(listen);
}

static void without_descriptors_it_is_a_system_error(void **state) {
  (void)state;
  const char *env[] = {"CCTAX_NET_MODE=plain", "CCTAX_NET_CONNECT_TIMEOUT_S=1", "CCTAX_NET_SOCKETS=4", NULL};
  run_once((struct play_case){.sides = {starved_side, starved_side}, .env = {env, env}});
}

static int unusable_side(struct play *play) { /* initialises, shows a device, and lets nothing through */
  void *listen = NULL;
  char handle[CCT_NCCL_HANDLE_BYTES] = {0};
  int n = 0;
  struct cct_nccl_net_props_v11 props;
  if (play->role == 1)
    return 0;
  PLAY_CHECK(play->net->devices(&n) == CCT_NCCL_SUCCESS && n == 1);
  PLAY_CHECK(((const struct cct_nccl_net_v11 *)(const void *)play->net)->get_properties(0, &props) == CCT_NCCL_SUCCESS);
  PLAY_CHECK(play_listen(play, handle, &listen) == CCT_NCCL_INVALID_USAGE && !listen);
  PLAY_CHECK(play_connect_once(play, handle, &listen) == CCT_NCCL_INVALID_USAGE && !listen);
  PLAY_CHECK(play->log->n_warnings == 1);
  return 0;
}

static void what_cannot_be_meant_lets_nothing_through(void **state) {
  (void)state;
  char open_psk[PSK_ROOM], short_psk[PSK_ROOM];
  write_key(open_psk, "open", "0000000000000000000000000000000000000000000000000000000000000007", 0644);
  write_key(short_psk, "short", "00000000000000000000000000000000000000000000000000000000000007", 0600);
  const struct {
    const char *env[3], *says;
  } rows[] = {{{NULL}, "no key material"},
              {{open_psk}, "chmod 600"},
              {{short_psk}, "hexadecimal"},
              {{"CCTAX_NET_PSK_FILE=/nowhere"}, "/nowhere"},
              {{"CCTAX_NET_PSK_FILE=/dev/zero"}, "regular"},
              {{"CCTAX_NET_MODE=TLS"}, "neither 'tls' nor 'plain'"},
              {{"CCTAX_NET_MODE="}, "neither 'tls' nor 'plain'"},
              {{"CCTAX_NET_MODE=plain", "CCTAX_NET_SOCKETS=0"}, "CCTAX_NET_SOCKETS"},
              {{"CCTAX_NET_MODE=plain", "CCTAX_NET_THREADS=many"}, "CCTAX_NET_THREADS"},
              {{psk_variable, "CCTAX_NET_KEY_RECORDS=8388609"}, "CCTAX_NET_KEY_RECORDS"},
              {{psk_variable, "CCTAX_NET_CIPHER=none"}, "CCTAX_NET_CIPHER"},
              {{psk_variable, "CCTAX_NET_CA_FILE=/x"}, "choose one"},
              {{"CCTAX_NET_MODE=plain", "NCCL_SOCKET_IFNAME=nosuch"}, "nosuch"},
              {{"CCTAX_NET_MODE=plain", "NCCL_SOCKET_FAMILY=6"}, "NCCL_SOCKET_FAMILY"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct play_case c = {.sides = {unusable_side, unusable_side}, .env = {rows[i].env, plain_env}};
    if (!play_run(&c) || !strstr(c.logs[0]->warnings[0], rows[i].says))
      fail_msg("row %zu: '%s' does not say '%s'", i, c.logs[0]->warnings[0], rows[i].says);
    play_free(&c);
  }
}

static int odd_calls(struct play *play) { /* what NCCL does on its way out of a failed start */
  void *send, *recv, *request = NULL, *memory = NULL, *none = NULL;
  size_t n = 8 << 20;
  int done = 0, got;
  char *data = calloc(1, n), handle[CCT_NCCL_HANDLE_BYTES] = "nonsense";
  PLAY_CHECK(play->net->finalize(NULL) == CCT_NCCL_SUCCESS);
  PLAY_CHECK(play_connect_once(play, handle, &none) == CCT_NCCL_REMOTE_ERROR && !none);
  PLAY_CHECK(play_meet(play, 1, &send, &recv) == CCT_NCCL_SUCCESS);
  PLAY_CHECK(play->net->reg_mr(send, data, n, 2, &memory) == CCT_NCCL_INTERNAL_ERROR); /* CUDA memory */
  PLAY_CHECK(play->net->reg_mr(send, data, n, CCT_NCCL_PTR_HOST, &memory) == CCT_NCCL_SUCCESS);
  request = (void *)0x1;
  PLAY_CHECK(play->net->iflush(recv, 1, NULL, NULL, NULL, &request) == CCT_NCCL_SUCCESS && !request);
  PLAY_CHECK(play->net->test(NULL, &done, NULL) == CCT_NCCL_INTERNAL_ERROR);
  /* Memory taken away while it is being sent ends the connection, and is touched no more. */
  while (!request)
    PLAY_CHECK(play->net->isend(send, data, n, 0, memory, NULL, &request) == CCT_NCCL_SUCCESS);
  PLAY_CHECK(play->net->dereg_mr(send, memory) == CCT_NCCL_SUCCESS);
  free(data);
  PLAY_CHECK(play->net->test(request, &done, &got) == CCT_NCCL_INTERNAL_ERROR);
  play_barrier(play);
  return play->net->close_send(send) || play->net->close_recv(recv) || play->net->close_send(NULL) ||
         play->net->close_listen(NULL);
}

static void odd_calls_do_no_harm(void **state) {
  (void)state;
  assert_true(run_both_modes((struct play_case){.sides = {odd_calls, odd_calls}}));
}

static int leaver(struct play *play) { /* ends the program in the middle of a transfer, closing nothing */
  void *send, *recv, *request = NULL;
  size_t n = 8 << 20;
  char *data = calloc(1, n);
  PLAY_CHECK(play_meet(play, 1, &send, &recv) == CCT_NCCL_SUCCESS);
  while (!request)
    PLAY_CHECK(play->net->isend(send, data, n, 0, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
  play_barrier(play);
  exit(0);
}

static void a_program_may_end_with_connections_standing(void **state) {
  (void)state;
  assert_true(run_both_modes((struct play_case){.sides = {leaver, leaver}}));
  const char *env[] = {psk_variable, stats_variable, NULL}; /* and its counters are written all the same */
  struct play_case c = {.sides = {leaver, leaver}, .env = {env, env}};
  FILE *file = run_counted(c);
  char line[1000];
  for (int i = 0; i < 2; i++) {
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(number_after(line, "\"connections\":"), 2);
    assert_int_equal(number_after(line, "\"messages_sent\":"), 1);
    assert_int_equal(number_after(line, "\"bytes_sent\":"), 8 << 20);
    assert_true(number_after(line, "\"records_sent\":") > 0);
  }
  assert_null(fgets(line, sizeof line, file));
  fclose(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_killed_peer_is_an_error),
      cmocka_unit_test(a_stopped_peer_is_waited_for_and_then_an_error),
      cmocka_unit_test(a_receive_that_is_too_small_is_an_error),
      cmocka_unit_test(without_descriptors_it_is_a_system_error),
      cmocka_unit_test(what_cannot_be_meant_lets_nothing_through),
      cmocka_unit_test(odd_calls_do_no_harm),
      cmocka_unit_test(a_program_may_end_with_connections_standing),
  };
  return cmocka_run_group_tests(tests, make_key, scratch_remove);
}
