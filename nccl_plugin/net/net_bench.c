/* SPDX-License-Identifier: Apache-2.0
 * Prices the net plugin on this machine's loopback, without a GPU: net_bench PSK_FILE [MILLISECONDS [COMMS [WINDOW
 * [plain|tls]]]]. For plain and TLS: 64 handshakes, one-way latency (half a ping-pong) of small messages, and
 * throughput one way and both ways at once with COMMS connections a direction and WINDOW requests outstanding, as NCCL
 * drives them. Cores used are the processes' CPU time over the time. Settings come from CCTAX_NET_* as in a job. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nccl_plugin/net/net_play.h"

enum {
  MAX_COMMS = 16,
  HANDSHAKES = 64,
  MOST_PASSES = 100000
};
static int64_t budget_ns = 300000000;
static int n_comms = 2, window = 8, is_two_way;
static size_t message_bytes;

static double cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int handshakes_side(struct play *play) {
  void *comms[HANDSHAKES];
  int64_t start = play_now_ns();
  PLAY_CHECK(play_meet(play, HANDSHAKES, play->role ? NULL : comms, play->role ? comms : NULL) == CCT_NCCL_SUCCESS);
  play_barrier(play);
  int64_t took_ns = play_now_ns() - start;
  if (play->role == 0)
    printf("  %d connections: %.0f ms\n", HANDSHAKES, 1e-6 * (double)took_ns);
  for (int i = 0; i < HANDSHAKES; i++)
    PLAY_CHECK(!(play->role ? play->net->close_recv(comms[i]) : play->net->close_send(comms[i])));
  return 0;
}

static int pass(struct play *play, void *send, void *recv, void *data, size_t n, int is_first) {
  void *request = NULL;
  int tag = 0, bytes;
  for (int half = 0; half < 2; half++) {
    if ((half == 0) == is_first)
      for (request = NULL; !request;)
        PLAY_CHECK(play->net->isend(send, data, n, 0, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
    else
      PLAY_CHECK(play->net->irecv(recv, 1, &data, &n, &tag, NULL, NULL, &request) == CCT_NCCL_SUCCESS);
    for (int done = 0; !done;)
      PLAY_CHECK(play->net->test(request, &done, &bytes) == CCT_NCCL_SUCCESS);
  }
  return 0;
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Where other work takes the cores, a pass in some is interrupted for longer than all others take: median, and the
 * tenth of passes that none interrupted. */
static int latency_side(struct play *play) {
  static const size_t sizes[] = {8, 1024, 8192, 16360, 24576, 32768, 65512, 65536};
  static char data[65536];
  static int64_t took_ns[MOST_PASSES];
  void *send, *recv;
  PLAY_CHECK(play_meet(play, 1, &send, &recv) == CCT_NCCL_SUCCESS);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int n = 0;
    int64_t start = play_now_ns();
    char more = 1, theirs;
    while (more) {
      for (int k = 0; k < 50; k++) {
        int64_t begin = play_now_ns();
        if (pass(play, send, recv, data, sizes[i], play->role == 0))
          return 1;
        took_ns[n++] = play_now_ns() - begin;
      }
      if (play->role == 0)
        more = (char)(play_now_ns() - start < budget_ns / 3 && n + 50 <= MOST_PASSES);
      play_trade(play, &more, &theirs, 1);
      more = play->role ? theirs : more;
    }
    qsort(took_ns, (size_t)n, sizeof *took_ns, by_value);
    if (play->role == 0)
      printf("  %8zu B: %7.2f us one way, the fastest tenth %7.2f\n", sizes[i], 1e-3 * (double)took_ns[n / 2] / 2,
             1e-3 * (double)took_ns[n / 10] / 2);
  }
  PLAY_CHECK(!play->net->close_send(send) && !play->net->close_recv(recv));
  return 0;
}

static int stream_side(struct play *play) {
  void *sends[MAX_COMMS], *recvs[MAX_COMMS], *requests[2][MAX_COMMS][32] = {{{NULL}}};
  int heads[2][MAX_COMMS] = {{0}}, tails[2][MAX_COMMS] = {{0}}, tag = 0;
  int does_send = is_two_way || play->role == 0, does_recv = is_two_way || play->role == 1;
  size_t room = message_bytes;
  char *buffers[2] = {calloc((size_t)(n_comms * window), room), calloc((size_t)(n_comms * window), room)};
  PLAY_CHECK(play_meet(play, n_comms, does_send ? sends : NULL, does_recv ? recvs : NULL) == CCT_NCCL_SUCCESS);
  for (int i = 0; i < 2; i++) /* touched, so that the first faults are not measured */
    memset(buffers[i], 1, (size_t)(n_comms * window) * room);
  int target = (int)(budget_ns / 1000 * 4000 / (int64_t)message_bytes / n_comms) + window; /* at 4 GB/s */
  play_barrier(play);
  int64_t start = play_now_ns();
  double cpu = cpu_s();
  for (int left = (does_send + does_recv) * n_comms; left > 0; sched_yield()) /* NCCL's thread yields too */
    for (int c = 0; c < n_comms; c++)
      for (int way = !does_send; way <= does_recv; way++) {
        int *head = &heads[way][c], *tail = &tails[way][c], done, bytes;
        if (*tail < target && *tail - *head < window) {
          void **request = &requests[way][c][*tail % window];
          void *data = buffers[way] + (size_t)(c * window + *tail % window) * message_bytes;
          enum cct_nccl result = way ? play->net->irecv(recvs[c], 1, &data, &room, &tag, NULL, NULL, request)
                                     : play->net->isend(sends[c], data, room, 0, NULL, NULL, request);
          PLAY_CHECK(result == CCT_NCCL_SUCCESS);
          *tail += *request != NULL;
        }
        if (*head < *tail) {
          PLAY_CHECK(play->net->test(requests[way][c][*head % window], &done, &bytes) == CCT_NCCL_SUCCESS);
          *head += done;
          left -= done && *head == target;
        }
      }
  play_barrier(play);
  double took_s = 1e-9 * (double)(play_now_ns() - start), mine = (cpu_s() - cpu) / took_s, theirs = 0;
  play_trade(play, &mine, &theirs, sizeof mine);
  if (play->role == 0)
    printf("  %8zu B x %d, %s: %6.2f GB/s each way, %.1f + %.1f cores\n", message_bytes, n_comms,
           is_two_way ? "both ways" : "one way  ", 1e-9 * (double)message_bytes * target * n_comms / took_s, mine,
           theirs);
  for (int c = 0; c < n_comms; c++) {
    if (does_send)
      play->net->close_send(sends[c]);
    if (does_recv)
      play->net->close_recv(recvs[c]);
  }
  free(buffers[0]);
  free(buffers[1]);
  return 0;
}

static int run(play_side *side, const char *const *env) {
  struct play_case c = {.sides = {side, side}, .env = {env, env}};
  int is_good = play_run(&c);
  play_free(&c);
  return is_good;
}

int main(int argc, char **argv) {
  char psk[4200];
  if (argc < 2 || argc > 6) {
    fprintf(stderr, "usage: net_bench PSK_FILE [MILLISECONDS [COMMS [WINDOW [plain|tls]]]]\n");
    return 2;
  }
  snprintf(psk, sizeof psk, "CCTAX_NET_PSK_FILE=%s", argv[1]);
  budget_ns = argc > 2 ? 1000000LL * atoi(argv[2]) : budget_ns;
  n_comms = argc > 3 ? atoi(argv[3]) : n_comms;
  window = argc > 4 ? atoi(argv[4]) : window;
  if (n_comms < 1 || n_comms > MAX_COMMS || window < 1 || window > 32 || budget_ns < 1000000) {
    fprintf(stderr, "net_bench: 1 to %d connections, 1 to 32 requests, 1 or more milliseconds\n", MAX_COMMS);
    return 2;
  }
  const char *plain[] = {"CCTAX_NET_MODE=plain", NULL}, *tls[] = {psk, NULL};
  int is_good = 1;
  for (int mode = 0; mode < 2 && is_good; mode++) {
    if (argc > 5 && strcmp(argv[5], mode ? "tls" : "plain") != 0)
      continue;
    const char *const *env = mode ? tls : plain;
    printf("%s\n", mode ? "tls" : "plain");
    is_good = run(handshakes_side, env) && run(latency_side, env);
    for (is_two_way = 0; is_two_way < 2 && is_good; is_two_way++)
      for (message_bytes = 32 << 10; message_bytes <= 2 << 20 && is_good; message_bytes *= 4)
        is_good = run(stream_side, env);
  }
  return !is_good;
}
