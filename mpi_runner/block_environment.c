/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "mpi_runner/block.h"

/* Arms of net: NCCL's own Socket, this product's plugin in one of its modes (docs/net.md), or the name of another
 * plugin. */
static void set_net(const char *arm) {
  char path[4200];
  ssize_t length = readlink("/proc/self/exe", path, 4096);
  path[length > 0 ? length : 0] = '\0';
  for (int up = 0; up < 2 && strrchr(path, '/'); up++)
    *strrchr(path, '/') = '\0';
  strcat(path, "/lib/libnccl-net-cctax.so");
  int is_ours = !strcmp(arm, "plain") || !strcmp(arm, "tls"), is_socket = !strcmp(arm, "socket");
  setenv("NCCL_NET_PLUGIN", is_socket ? "none" : !is_ours ? arm : access(path, R_OK) == 0 ? path : "cctax", 1);
  if (is_socket || is_ours)
    setenv("NCCL_NET", is_socket ? "Socket" : "cctax",
           1); /* without it NCCL goes on in plaintext where the plugin is not found */
  if (is_ours)
    setenv("CCTAX_NET_MODE", arm, 1);
}

/* Arms of choice, ALGORITHM/PROTOCOL/CHANNELS; "default" leaves one to NCCL. */
static void set_choice(const char *arm) {
  static const char *const names[3][2] = {
      {"NCCL_ALGO", NULL}, {"NCCL_PROTO", NULL}, {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"}};
  char text[96], *rest = text;
  snprintf(text, sizeof text, "%s", arm);
  for (int i = 0; i < 3; i++) {
    const char *word = strsep(&rest, "/");
    for (int k = 0; k < 2 && word && *word && strcmp(word, "default"); k++)
      if (names[i][k])
        setenv(names[i][k], word, 1);
  }
}

/* The variables of nccl.conf beside the run, as cctax tune leaves it and NCCL would read it. */
static enum cct_status set_tuned(const char *run) {
  char path[4300], line[4400];
  int n = 0;
  snprintf(path, sizeof path, "%s/../nccl.conf", run);
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file)) {
    char *equals = strchr(line, '=');
    line[strcspn(line, "\n")] = '\0';
    if (*line == '#' || !equals)
      continue;
    *equals = '\0';
    setenv(line, equals + 1, 1);
    n++;
  }
  if (file)
    fclose(file);
  return n ? CCT_OK
           : cct_fail(CCT_IO, "%s: not there, or sets nothing: the arm 'tuned' is what cctax tune left in it", path);
}

static enum cct_status set_tuner(const char *arm, const char *run) {
  if (!strcmp(arm, "tuned"))
    return set_tuned(run);
  setenv("NCCL_TUNER_PLUGIN", arm, 1);
  return CCT_OK;
}

enum cct_status cct_block_environment(const struct cct_agenda *agenda, const struct cct_block_at *at, const char *run,
                                      const struct cct_profile *machine, const struct cct_profile *emulated) {
  const struct cct_profile *profile = emulated ? emulated : machine;
  struct cct_environment environment = {0};
  int is_built = emulated || !strcmp(cct_agenda_condition(agenda, at->arm), "stripped");
  const char *factor = agenda->factor, *arm = agenda->arms[at->arm];
  if (is_built && strcmp(agenda->backend, "sim")) {
    if (!profile)
      return cct_fail(CCT_USAGE,
                      "condition 'stripped': this run names no profile of what CC takes away; begin another");
    cct_capability_environment(profile, 0, &environment);
  }
  for (int i = 0; i < environment.n; i++)
    putenv((char *)(uintptr_t)environment.pairs[i]);
  if (agenda->cells[0].v[CCT_OPT_ITERS].has_value)
    setenv("NCCL_GRAPH_REGISTER", "1", 0); /* NCCL's default, which the backend changes for steps */
  if (!strcmp(factor, "tuner"))
    return set_tuner(arm, run);
  else if (!strcmp(factor, "net"))
    set_net(arm);
  else if (!strcmp(factor, "choice"))
    set_choice(arm);
  else if (!strcmp(factor, "registration")) {
    setenv("NCCL_LOCAL_REGISTER", strcmp(arm, "off") ? "1" : "0", 1);
    setenv("NCCL_GRAPH_REGISTER", strcmp(arm, "off") ? "1" : "0", 1);
  }
  return CCT_OK;
}

void cct_block_environment_facts(struct cct_fact_list *list) {
  for (char **at = environ; *at; at++) {
    const char *equals = strchr(*at, '=');
    char name[48];
    if ((strncmp(*at, "NCCL_", 5) && strncmp(*at, "CCTAX_NET_", 10) && strncmp(*at, "CCTAX_TUNER_", 12)) || !equals)
      continue;
    snprintf(name, sizeof name, "%.*s", (int)(equals - *at < 47 ? equals - *at : 47), *at);
    cct_fact_add(list, CCT_FACT_CONDITION, name, "%s", equals + 1);
  }
}
