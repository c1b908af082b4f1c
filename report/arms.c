/* SPDX-License-Identifier: Apache-2.0 */
#include "report/arms.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum {
  ROUNDS_A_RUN = 1 << 20
};

static enum cct_status list_arms(const struct cct_runs *runs, struct cct_report *report, struct cct_place *places) {
  int total = 0;
  for (int b = 0; b < runs->n_blocks; b++) {
    const struct cct_record_head *head = &runs->blocks[b]->head;
    int arm = 0;
    while (arm < total && strcmp(report->arms[arm], head->arm))
      arm++;
    if (arm == total && total == CCT_MAX_ARMS)
      return cct_fail(CCT_USAGE, "%s: more than %d arms; report fewer runs at once", runs->blocks[b]->path,
                      CCT_MAX_ARMS);
    if (arm == total)
      snprintf(report->arms[total++], sizeof *report->arms, "%s", head->arm);
    places[b] = (struct cct_place){arm, runs->run_of[b] * ROUNDS_A_RUN + head->round};
  }
  report->n_arms = total;
  return CCT_OK;
}

/* The baseline is `off` where there is one, then `stripped`, else the first arm. */
static void put_baseline_first(struct cct_report *report, struct cct_place *places, int n) {
  static const char *const clear[] = {"off", "stripped"};
  int best = 0;
  for (size_t k = 0; k < 2 && !best && !strcmp(report->factor, "condition"); k++)
    for (int arm = 0; arm < report->n_arms; arm++)
      if (!strcmp(report->arms[arm], clear[k])) {
        best = arm;
        k = 2;
        break;
      }
  if (!best)
    return;
  char name[sizeof *report->arms];
  memcpy(name, report->arms[best], sizeof name);
  memcpy(report->arms[best], report->arms[0], sizeof name);
  memcpy(report->arms[0], name, sizeof name);
  for (int b = 0; b < n; b++)
    places[b].arm = places[b].arm == best ? 0 : places[b].arm == 0 ? best : places[b].arm;
}

/* One arm only: the A/A report. Several runs are told apart by run; the blocks of one run by turn, neighbours paired.
 */
static enum cct_status split_null(const struct cct_runs *runs, struct cct_report *report, struct cct_place *places) {
  char name[96];
  snprintf(name, sizeof name, "%.90s", report->arms[0]);
  report->is_null = 1;
  report->n_arms = runs->n_runs > 1 ? runs->n_runs : 2;
  if (report->n_arms > CCT_MAX_ARMS)
    return cct_fail(CCT_USAGE, "%d runs of one arm: more than %d in one report", runs->n_runs, CCT_MAX_ARMS);
  for (int arm = 0; arm < report->n_arms; arm++)
    snprintf(report->arms[arm], sizeof *report->arms, "%s, %s %d", name, runs->n_runs > 1 ? "run" : "turn", arm + 1);
  for (int b = 0, turn = 0; b < runs->n_blocks; b++) {
    turn = b && runs->boot_of[b] == runs->boot_of[b - 1] ? turn + 1 : 0;
    places[b] = runs->n_runs > 1 ? (struct cct_place){runs->run_of[b], places[b].round}
                                 : (struct cct_place){turn % 2, turn / 2};
  }
  return CCT_OK;
}

enum cct_status cct_arms_find(const struct cct_runs *runs, struct cct_report *report, struct cct_place *places) {
  snprintf(report->factor, sizeof report->factor, "%s", runs->blocks[0]->head.factor);
  enum cct_status status = list_arms(runs, report, places);
  if (!status && report->n_arms > 1)
    put_baseline_first(report, places, runs->n_blocks);
  else if (!status)
    status = split_null(runs, report, places);
  return status;
}
