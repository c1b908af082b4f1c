/* SPDX-License-Identifier: Apache-2.0
 * For tests that play the net plugin: a folder with a key, environments of both modes, and what the plugin counted. */
#ifndef CCT_NCCL_NET_PLAYED_TEST_H
#define CCT_NCCL_NET_PLAYED_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "nccl_plugin/net/net_play.h"

static char played_folder[] = "/tmp/cct-net-play-XXXXXX";
static char psk_variable[300], stats_variable[300], stats_path[200];
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

static inline int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(played_folder))
    return -1;
  snprintf(psk_variable, sizeof psk_variable, "CCTAX_NET_PSK_FILE=%s/psk", played_folder);
  snprintf(stats_path, sizeof stats_path, "%s/stats.jsonl", played_folder);
  snprintf(stats_variable, sizeof stats_variable, "CCTAX_NET_STATS=%s", stats_path);
  FILE *file = fopen(psk_variable + strlen("CCTAX_NET_PSK_FILE="), "w");
  fprintf(file, "00112233445566778899AABBccddeeff00112233445566778899aabbccddeeff\n");
  fchmod(fileno(file), 0600);
  fclose(file);
  return 0;
}

static inline int remove_folder(void **state) {
  char command[400];
  (void)state;
  snprintf(command, sizeof command, "rm -r %s", played_folder);
  return system(command);
}

#endif
