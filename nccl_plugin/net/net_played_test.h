/* SPDX-License-Identifier: Apache-2.0
 * For tests that play the net plugin: a folder with a key, environments of both modes, and what the plugin counted. */
#ifndef CCT_NCCL_NET_PLAYED_TEST_H
#define CCT_NCCL_NET_PLAYED_TEST_H

#include <sys/stat.h>

#include "nccl_plugin/net/net_play.h"
#include "tests/scratch.h"

enum {
  PSK_ROOM = 300
};
static char psk_variable[PSK_ROOM], stats_variable[300], stats_path[200];
static const char *plain_env[] = {"CCTAX_NET_MODE=plain", NULL};
static const char *tls_env[] = {psk_variable, NULL};

static inline int run_both_modes(struct play_case c) {
  int is_good = 1;
  for (int tls = 0; tls < 2 && is_good; tls++) {
    c.env[0] = c.env[1] = tls ? tls_env : plain_env;
    is_good = play_run(&c);
    play_free(&c);
  }
  return is_good;
}

/* Runs the case; its logs are freed. */
static inline void run_once(struct play_case c) {
  assert_true(play_run(&c));
  play_free(&c);
}

/* One line a process, of a case with stats_variable. */
static inline FILE *run_counted(struct play_case c) {
  unlink(stats_path);
  run_once(c);
  FILE *file = fopen(stats_path, "r");
  assert_non_null(file);
  return file;
}

static inline long long number_after(const char *text, const char *name) {
  const char *at = strstr(text, name);
  assert_non_null(at);
  return atoll(at + strlen(name));
}

/* A key file, and the variable that names it. */
static inline void write_key(char variable[PSK_ROOM], const char *name, const char *digits, mode_t mode) {
  snprintf(variable, PSK_ROOM, "CCTAX_NET_PSK_FILE=%s/%s", scratch, name);
  FILE *file = fopen(variable + strlen("CCTAX_NET_PSK_FILE="), "w");
  assert_non_null(file);
  fprintf(file, "%s\n", digits);
  fchmod(fileno(file), mode);
  fclose(file);
}

static inline int make_key(void **state) {
  if (scratch_make(state))
    return -1;
  write_key(psk_variable, "psk", "00112233445566778899AABBccddeeff00112233445566778899aabbccddeeff", 0600);
  snprintf(stats_path, sizeof stats_path, "%s/stats.jsonl", scratch);
  snprintf(stats_variable, sizeof stats_variable, "CCTAX_NET_STATS=%s", stats_path);
  return 0;
}

#endif
