/* SPDX-License-Identifier: Apache-2.0
 * truth_noise SUITE MACHINE NOISE SEEDS: the suite as a run of sim with noise, once with each seed, and of each report
 * what it prints: cell, arm and interval, one line a result. Blocks are performed by the runner's own function in this
 * one process, without launching anything; in the folder it is started in. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "mpi_runner/agenda.h"
#include "mpi_runner/block.h"
#include "report/report.h"

static const char *const folder = "noise-run";

static struct cct_agenda *plan(const char *suite, const char *machine, const char *noise, const char *seed) {
  static const int all[CCT_MAX_ARMS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  struct cct_options flags;
  struct cct_agenda *agenda = NULL;
  if (cct_options_init(&flags) || cct_option_set(&flags, CCT_OPT_BACKEND, "sim", "--backend") ||
      cct_option_set(&flags, CCT_OPT_PROFILE_FILE, machine, "--profile") ||
      cct_option_set(&flags, CCT_OPT_NOISE, noise, "--noise") || cct_option_set(&flags, CCT_OPT_SEED, seed, "--seed") ||
      cct_agenda_plan(&flags, suite, "off", &agenda) || cct_agenda_add_boot(agenda, "boot", all, agenda->n_arms) ||
      cct_agenda_save(agenda, folder))
    exit(1);
  cct_options_free(&flags);
  return agenda;
}

/* What `cctax report --json` prints of each result. */
static void print_intervals(FILE *out) {
  struct cct_runs runs;
  struct cct_report report;
  struct cct_json *document;
  if (cct_runs_load(&folder, 1, &runs) || cct_report_make(&runs, NULL, NULL, &report) ||
      cct_report_to_json(&report, NULL, &document))
    exit(1);
  const struct cct_json *cells = cct_json_member(document, "cells");
  for (size_t i = 0; i < cct_json_size(cells); i++) {
    const struct cct_json *row = cct_json_element(cells, i), *ci = cct_json_member(row, "ci95_pct");
    fprintf(out, "%s\t%s\t%.9g\t%.9g\n",
            cct_json_string(cct_json_member(cct_json_member(row, "parameters"), "program")),
            cct_json_string(cct_json_member(row, "arm")), cct_json_number(cct_json_element(ci, 0)),
            cct_json_number(cct_json_element(ci, 1)));
  }
  cct_json_free(document);
  cct_report_free(&report);
  cct_runs_free(&runs);
}

static void one_seed(FILE *out, char **arguments, int seed) {
  char text[16], path[4096];
  snprintf(text, sizeof text, "%d", seed);
  struct cct_agenda *agenda = plan(arguments[1], arguments[2], arguments[3], text);
  for (int b = 0; b < cct_agenda_blocks(agenda); b++)
    if (cct_block_perform(cct_world_self(), folder, agenda, b))
      exit(1);
  print_intervals(out);
  for (int b = 0; b < cct_agenda_blocks(agenda); b++)
    unlink(cct_agenda_path(folder, b, path, sizeof path));
  cct_agenda_free(agenda);
}

int main(int argc, char **argv) {
  cct_log_name("truth_noise");
  FILE *out = fdopen(dup(STDOUT_FILENO), "w"); /* blocks tell their launcher on stdout how far they are */
  if (argc != 5 || !out || !freopen("/dev/null", "w", stdout))
    return 2;
  mkdir(folder, 0777);
  for (int seed = 1; seed <= atoi(argv[4]); seed++)
    one_seed(out, argv, seed);
  return fclose(out) ? 1 : 0;
}
