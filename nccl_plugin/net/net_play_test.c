/* SPDX-License-Identifier: Apache-2.0
 * The net plugin played as NCCL plays it, in both modes and all three versions: bytes arrive, right and in order, and
 * keys are updated and counted on the way. */
#include "nccl_plugin/net/net_played_test.h"

/* ---- sizes ---- */

static const size_t sizes[] = {0,     1,     7,     128,   1000,   16335,         16359,   16360,   16361,   16384,
                               16385, 65535, 65536, 65537, 131075, (1 << 20) - 1, 1 << 20, 4 << 20, 64 << 20};

static int sizes_side(struct play *play) {
  void *send = NULL, *recv = NULL, *request;
  size_t room = (64 << 20) + 64;
  unsigned char *out = malloc(room), *in = malloc(room);
  PLAY_CHECK(play_meet(play, 1, &send, &recv) == CCT_NCCL_SUCCESS);
  size_t n_sizes = sizeof sizes / sizeof *sizes - (play->version == 11 ? 0 : 2); /* the largest once */
  for (size_t i = 0; i < n_sizes; i++) {
    size_t n = sizes[i], posted = n + (i % 2 ? 64 : 0);
    int tag = 0, got = -1;
    void *data = in, *sent = NULL;
    play_fill(out, n, i * 2 + (size_t)play->role);
    memset(in + (n > 8 ? n - 8 : 0), 0xa5, 72);
    request = (void *)0x1; /* the marker NCCL leaves for LL */
    PLAY_CHECK(play->net->irecv(recv, 1, &data, &posted, &tag, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
    PLAY_CHECK(request && request != (void *)0x1);
    while (!sent)
      PLAY_CHECK(play->net->isend(send, out, n, 0, NULL, NULL, &sent) == CCT_NCCL_SUCCESS);
    for (int done[2] = {0}, bytes = -1; !done[0] || !done[1];) { /* each may need the other to move */
      if (!done[0])
        PLAY_CHECK(play->net->test(sent, &done[0], &bytes) == CCT_NCCL_SUCCESS && (!done[0] || bytes == (int)n));
      if (!done[1])
        PLAY_CHECK(play->net->test(request, &done[1], &got) == CCT_NCCL_SUCCESS);
    }
    PLAY_CHECK(got == (int)n);
    PLAY_CHECK(play_check(in, n, i * 2 + 1 - (size_t)play->role) == n);
    PLAY_CHECK(in[n] == 0xa5 && in[n + 63] == 0xa5);
  }
  free(out);
  free(in);
  PLAY_CHECK(play->net->close_send(send) == CCT_NCCL_SUCCESS && play->net->close_recv(recv) == CCT_NCCL_SUCCESS);
  return 0;
}

static void every_size_arrives_in_both_modes_and_all_versions(void **state) {
  (void)state;
  for (int version = 10; version <= 12; version++)
    assert_true(
        run_both_modes((struct play_case){.sides = {sizes_side, sizes_side}, .version = version, .timeout_s = 120}));
}

/* ---- windows of outstanding requests, late receives, slow peers ---- */

enum {
  WINDOW_MESSAGES = 400,
  WINDOW = CCT_NCCL_NET_REQUESTS,
  WINDOW_ROOM = 300000
};

static size_t size_of_message(int i) {
  static const size_t some[] = {8, 0, 250000, 40, 16360, 16384, 65532, 3, 40000, 131072};
  return some[(i * 7 + i / 10) % 10] + (size_t)(i % 5);
}

static int window_sender(struct play *play) {
  void *send, *requests[WINDOW] = {NULL};
  unsigned char *out = malloc((size_t)WINDOW * WINDOW_ROOM);
  const char *inline_bytes = getenv("CCTAX_NET_INLINE_BYTES");
  PLAY_CHECK(play_meet(play, 1, &send, NULL) == CCT_NCCL_SUCCESS);
  int posted = 0, finished = 0;
  int64_t deadline = play_now_ns() + 80000000000;
  while (finished < WINDOW_MESSAGES) {
    PLAY_CHECK(play_now_ns() < deadline);
    if (posted < WINDOW_MESSAGES && posted - finished < WINDOW) {
      int slot = posted % WINDOW;
      play_fill(out + (size_t)slot * WINDOW_ROOM, size_of_message(posted), (uint64_t)posted);
      PLAY_CHECK(play->net->isend(send, out + (size_t)slot * WINDOW_ROOM, size_of_message(posted), 0, NULL, NULL,
                                  &requests[slot]) == CCT_NCCL_SUCCESS);
      if (requests[slot] && inline_bytes && size_of_message(posted) <= strtoul(inline_bytes, NULL, 10))
        memset(out + (size_t)slot * WINDOW_ROOM, 0, size_of_message(posted)); /* it has been taken over whole */
      posted += requests[slot] != NULL;
    }
    if (finished < posted) {
      int done, bytes;
      PLAY_CHECK(play->net->test(requests[finished % WINDOW], &done, &bytes) == CCT_NCCL_SUCCESS);
      finished += done;
    }
    if (posted % 97 == 96)
      usleep(1000);
  }
  play_barrier(play);
  free(out);
  return play->net->close_send(send);
}

static int window_receiver(struct play *play) {
  void *recv, *requests[WINDOW + 1] = {NULL};
  unsigned char *in = malloc((size_t)WINDOW * WINDOW_ROOM);
  PLAY_CHECK(play_meet(play, 1, NULL, &recv) == CCT_NCCL_SUCCESS);
  usleep(100000); /* late: the sender has filled its window and the sockets */
  int posted = 0, finished = 0, tag = 0, has_seen_full = 0;
  int64_t deadline = play_now_ns() + 80000000000;
  while (finished < WINDOW_MESSAGES) {
    size_t room = WINDOW_ROOM;
    PLAY_CHECK(play_now_ns() < deadline);
    while (posted < WINDOW_MESSAGES) {
      void *data = in + (size_t)(posted % WINDOW) * WINDOW_ROOM, *request = (void *)0x1;
      PLAY_CHECK(play->net->irecv(recv, 1, &data, &room, &tag, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
      if (!request) { /* 32 are out: NCCL's limit is the plugin's */
        PLAY_CHECK(posted - finished == WINDOW);
        has_seen_full = 1;
        break;
      }
      requests[posted++ % WINDOW] = request;
    }
    int done, bytes;
    PLAY_CHECK(play->net->test(requests[finished % WINDOW], &done, &bytes) == CCT_NCCL_SUCCESS);
    if (done) {
      size_t n = size_of_message(finished);
      PLAY_CHECK(bytes == (int)n);
      PLAY_CHECK(play_check(in + (size_t)(finished % WINDOW) * WINDOW_ROOM, n, (uint64_t)finished) == n);
      finished++;
      if (finished % 61 == 0)
        usleep(2000); /* slow */
    }
  }
  PLAY_CHECK(has_seen_full);
  play_barrier(play);
  free(in);
  return play->net->close_recv(recv);
}

static void windows_late_receives_and_slow_peers_keep_order(void **state) {
  (void)state;
  assert_true(run_both_modes((struct play_case){.sides = {window_sender, window_receiver}}));
  setenv("CCTAX_NET_INLINE_BYTES", "65536", 1);
  assert_true(run_both_modes((struct play_case){.sides = {window_sender, window_receiver}}));
  unsetenv("CCTAX_NET_INLINE_BYTES");
}

/* ---- many connections ---- */

enum {
  COMMS = 24
};

static int many_side(struct play *play) {
  void *sends[COMMS], *recvs[COMMS], *out_requests[COMMS] = {NULL}, *in_requests[COMMS] = {NULL};
  static unsigned char out[COMMS][200000], in[COMMS][200000];
  PLAY_CHECK(play_meet(play, COMMS, sends, recvs) == CCT_NCCL_SUCCESS);
  for (int round = 0; round < 6; round++) {
    size_t n = round % 2 ? 200000 : 100 + (size_t)round;
    int tag = 0, left = 2 * COMMS;
    for (int i = 0; i < COMMS; i++) {
      void *data = in[i];
      play_fill(out[i], n, (uint64_t)(round * 1000 + i * 2 + play->role));
      PLAY_CHECK(play->net->irecv(recvs[i], 1, &data, &n, &tag, NULL, NULL, &in_requests[i]) == CCT_NCCL_SUCCESS);
      do
        PLAY_CHECK(play->net->isend(sends[i], out[i], n, 0, NULL, NULL, &out_requests[i]) == CCT_NCCL_SUCCESS);
      while (!out_requests[i]);
    }
    while (left > 0)
      for (int i = COMMS - 1; i >= 0; i--) { /* any order */
        int done = 0, bytes;
        if (out_requests[i]) {
          PLAY_CHECK(play->net->test(out_requests[i], &done, &bytes) == CCT_NCCL_SUCCESS);
          out_requests[i] = done ? NULL : out_requests[i];
          left -= done;
        }
        if (in_requests[i]) {
          PLAY_CHECK(play->net->test(in_requests[i], &done, &bytes) == CCT_NCCL_SUCCESS);
          in_requests[i] = done ? NULL : in_requests[i];
          left -= done;
          if (done)
            PLAY_CHECK(play_check(in[i], n, (uint64_t)(round * 1000 + i * 2 + 1 - play->role)) == n);
        }
      }
  }
  play_barrier(play);
  for (int i = 0; i < COMMS; i++)
    PLAY_CHECK(!play->net->close_send(sends[i]) && !play->net->close_recv(recvs[i]));
  return 0;
}

static void many_connections_at_once(void **state) {
  (void)state;
  assert_true(run_both_modes((struct play_case){.sides = {many_side, many_side}}));
}

/* ---- key updates and counters ---- */

static int stream_side(struct play *play) { /* role 0 sends 64 messages to role 1 */
  void *comm, *request = NULL;
  size_t n = 100000;
  unsigned char *bytes = malloc(n);
  void *data = bytes;
  PLAY_CHECK(play_meet(play, 1, play->role ? NULL : &comm, play->role ? &comm : NULL) == CCT_NCCL_SUCCESS);
  for (uint64_t i = 0; i < 64; i++) {
    int tag = 0, got;
    if (play->role == 0) {
      play_fill(bytes, n, i);
      do
        PLAY_CHECK(play->net->isend(comm, bytes, i % 4 ? n : 50, 0, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
      while (!request);
    } else
      PLAY_CHECK(play->net->irecv(comm, 1, &data, &n, &tag, NULL, NULL, &request) == CCT_NCCL_SUCCESS && request);
    PLAY_CHECK(play_wait(play, request, &got, 60) == CCT_NCCL_SUCCESS);
    PLAY_CHECK(play->role == 0 || play_check(bytes, (size_t)got, i) == (i % 4 ? n : 50));
  }
  play_barrier(play);
  free(bytes);
  return (int)(play->role ? play->net->close_recv(comm) : play->net->close_send(comm));
}

static void keys_are_updated_before_the_limit_and_counted(void **state) {
  (void)state;
  const char *env[] = {psk_variable, stats_variable, "CCTAX_NET_KEY_RECORDS=8", NULL};
  struct play_case c = {.sides = {stream_side, stream_side}, .env = {env, env}};
  FILE *file = run_counted(c);
  char line[1000];
  long long total = 64, bytes = 48 * 100000 + 16 * 50, updates = 0;
  for (int i = 0; i < 2; i++) { /* one line a process: the sender's and the receiver's */
    assert_non_null(fgets(line, sizeof line, file));
    int is_sender = number_after(line, "\"messages_sent\":") > 0;
    const char *way = is_sender ? "\"messages_sent\":" : "\"messages_received\":";
    assert_int_equal(number_after(line, way), total);
    assert_int_equal(number_after(line, is_sender ? "\"bytes_sent\":" : "\"bytes_received\":"), bytes);
    long long records = number_after(line, is_sender ? "\"records_sent\":" : "\"records_received\":");
    updates = number_after(line, is_sender ? "\"key_updates_sent\":" : "\"key_updates_received\":");
    long long sockets = number_after(line, "\"connections\":") * (1 + 16);
    assert_true(records >= bytes / 16384 && (updates + sockets) * 8 >= records && updates >= records / 8 - sockets &&
                updates > 10);
    assert_true(number_after(line, "\"crypto_ns\":") > 0);
    assert_int_equal(number_after(line, "\"connections\":"), 1);
  }
  fclose(file);
}

static int keeper_of_one_key(struct play *play) { /* role 0 sends until the receiver, whose limit is lower, ends it */
  void *comm, *request = NULL;
  size_t n = 100000;
  void *data = calloc(1, n);
  int got, tag = 0;
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  PLAY_CHECK(play_meet(play, 1, play->role ? NULL : &comm, play->role ? &comm : NULL) == CCT_NCCL_SUCCESS);
  for (int i = 0; i < 2000 && !result; i++) {
    for (request = NULL; !request && !result;)
      result = play->role ? play->net->irecv(comm, 1, &data, &n, &tag, NULL, NULL, &request)
                          : play->net->isend(comm, data, n, 0, NULL, NULL, &request);
    if (!result)
      result = play_wait(play, request, &got, 60);
  }
  PLAY_CHECK(result == CCT_NCCL_REMOTE_ERROR && play->log->n_warnings == 1);
  free(data);
  return (int)(play->role ? play->net->close_recv(comm) : play->net->close_send(comm));
}

static void a_peer_that_keeps_its_key_too_long_is_an_error(void **state) {
  (void)state;
  const char *low[] = {psk_variable, "CCTAX_NET_KEY_RECORDS=16", NULL};
  struct play_case c = {.sides = {keeper_of_one_key, keeper_of_one_key}, .env = {tls_env, low}};
  assert_true(play_run(&c));
  assert_non_null(strstr(c.logs[1]->warnings[0], "one key for more than CCTAX_NET_KEY_RECORDS"));
  play_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_size_arrives_in_both_modes_and_all_versions),
      cmocka_unit_test(windows_late_receives_and_slow_peers_keep_order),
      cmocka_unit_test(many_connections_at_once),
      cmocka_unit_test(keys_are_updated_before_the_limit_and_counted),
      cmocka_unit_test(a_peer_that_keeps_its_key_too_long_is_an_error),
  };
  return cmocka_run_group_tests(tests, make_key, scratch_remove);
}
