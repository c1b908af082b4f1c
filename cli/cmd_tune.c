/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/document.h"
#include "cli/launch.h"
#include "cli/own_suite.h"
#include "cli/tune.h"

/* ---- the folder ---- */

static enum cct_status enter(const char *path, struct cct_tune *tune) {
  char *whole = realpath(path, NULL);
  int is_fitting = whole && strlen(whole) < sizeof tune->folder;
  if (is_fitting)
    snprintf(tune->folder, sizeof tune->folder, "%s", whole);
  enum cct_status status =
      is_fitting ? CCT_OK : cct_fail(CCT_IO, "%s: cannot be entered: %s", path, strerror(whole ? ENAMETOOLONG : errno));
  free(whole);
  return status;
}

static char *run_path(const struct cct_tune *tune, const char *name, char out[4200]) {
  snprintf(out, 4200, "%s/%s", tune->folder, name);
  return out;
}

static int has_entries(const char *path) {
  DIR *folder = opendir(path);
  struct dirent *entry;
  int n = 0;
  while (folder && (entry = readdir(folder)))
    n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
  if (folder)
    closedir(folder);
  return n > 0;
}

static enum cct_status make_folder(const char *path, struct cct_tune *tune) {
  char file[4200];
  tune->is_made = mkdir(path, 0777) == 0;
  if (!tune->is_made && errno != EEXIST)
    return cct_fail(CCT_IO, "%s: cannot be made: %s", path, strerror(errno));
  snprintf(file, sizeof file, "%.3900s/tune.json", path);
  if (access(file, F_OK) == 0)
    return cct_fail(CCT_USAGE, "%s: holds a tune; --resume finishes it, --verify only verifies it, or give another -o",
                    path);
  if (has_entries(path))
    return cct_fail(CCT_USAGE, "%s: holds other files; give a new or empty folder", path);
  return enter(path, tune);
}

/* A tune of which nothing was measured leaves nothing, as a run does. */
static void drop_folder(const struct cct_tune *tune) {
  char file[4200];
  if (access(run_path(tune, "first", file), F_OK) == 0)
    return;
  unlink(run_path(tune, "tune.json", file));
  if (tune->is_made)
    rmdir(tune->folder);
}

static enum cct_status open_folder(const char *path, struct cct_tune *tune) {
  char file[4200];
  struct cct_json *document = NULL;
  snprintf(file, sizeof file, "%.3900s/tune.json", path);
  if (access(file, F_OK) != 0)
    return cct_fail(CCT_USAGE, "%s: no tune is there; without --resume and --verify only, cctax tune -o %s begins one",
                    path, path);
  enum cct_status status = enter(path, tune);
  if (!status)
    status = cct_json_load(run_path(tune, "tune.json", file), &document);
  if (status)
    return status;
  struct cct_json_at root = cct_json_root(document, file), plan = cct_json_at_key(&root, "plan");
  status = cct_tune_plan_read(&plan, &tune->plan);
  tune->told = cct_tune_told(document);
  cct_json_free(document);
  return status;
}

/* ---- its runs ---- */

static enum cct_status say_nothing(const struct cct_agenda *agenda, const char *folder, const struct cct_options *flags,
                                   enum cct_status ended) {
  (void)agenda;
  (void)folder;
  (void)flags;
  (void)ended;
  return CCT_OK;
}

/* A run of this suite that is whole is read wherever its folder is: on another boot, or another machine. */
static int is_whole(const char *run, const struct cct_json *suite) {
  struct cct_agenda *agenda = NULL;
  int is_there;
  cct_log_mute(1);
  enum cct_status status = cct_agenda_load(run, &agenda);
  cct_log_mute(0);
  is_there = !status && cct_agenda_blocks(agenda) > 0 && cct_own_has_cells(agenda, suite);
  for (int b = 0; is_there && b < cct_agenda_blocks(agenda); b++) {
    char path[4400];
    is_there = access(cct_agenda_path(run, b, path, sizeof path), F_OK) == 0;
  }
  if (!status)
    cct_agenda_free(agenda);
  return is_there;
}

/* Performs, or goes on with, the run NAME of the tune; cells that failed are its own business. */
static enum cct_status perform(const struct cct_tune *tune, const struct cct_options *flags, const char *name,
                               int64_t rounds, const char *arms, struct cct_json *suite) {
  struct cct_options own = {0};
  char path[4200], file[4300], again[4200];
  run_path(tune, name, path);
  snprintf(file, sizeof file, "%s/run.json", path);
  snprintf(again, sizeof again, "cctax tune -o %.4000s --resume", flags->v[CCT_OPT_OUTPUT].s);
  if (is_whole(path, suite)) {
    cct_json_free(suite);
    return CCT_OK;
  }
  enum cct_status status = cct_tune_flags(&tune->plan, flags, path, rounds, &own);
  if (!status && arms)
    status = cct_option_set(&own, CCT_OPT_ARMS, arms, "--arms");
  if (!status && access(file, F_OK) == 0)
    status = cct_option_set(&own, CCT_OPT_RESUME, "1", "--resume");
  if (status)
    cct_json_free(suite);
  else
    status = cct_own_perform(&own, suite, say_nothing, again);
  cct_options_free(&own);
  return status == CCT_FOUND ? CCT_OK : status;
}

static int64_t first_rounds(const struct cct_tune *tune) {
  return tune->plan.n_choices > 1 ? CCT_TUNE_FIRST : tune->plan.rounds;
}

/* Two processes measure everything, the others what is not hopeless. */
static enum cct_status measure(struct cct_tune *tune, const struct cct_options *flags, int is_performed) {
  char path[4200];
  int64_t rest = tune->plan.rounds - first_rounds(tune);
  enum cct_status status = CCT_OK;
  if (is_performed)
    status = perform(tune, flags, "first", first_rounds(tune), NULL, cct_tune_measure_suite(&tune->plan, NULL));
  if (!status)
    status = cct_tune_data_new(&tune->plan, (int)tune->plan.rounds, &tune->data);
  if (!status)
    status = cct_tune_data_read(&tune->plan, run_path(tune, "first", path), 0, &tune->data);
  if (!status && rest && is_performed)
    status = perform(tune, flags, "rest", rest, NULL, cct_tune_measure_suite(&tune->plan, &tune->data));
  if (!status && rest)
    status = cct_tune_data_read(&tune->plan, run_path(tune, "rest", path), (int)first_rounds(tune), &tune->data);
  return status;
}

static int count_proofs(const char *folder) {
  DIR *entries = opendir(folder);
  struct dirent *entry;
  int n = 0;
  while (entries && (entry = readdir(entries))) {
    size_t length = strlen(entry->d_name);
    n += length > 6 && !strcmp(entry->d_name + length - 6, ".proof");
  }
  if (entries)
    closedir(entries);
  return n;
}

/* The machine that is verified must be the one that was measured. */
static enum cct_status check_machine(const struct cct_tune *tune, const struct cct_tune_data *now) {
  const struct cct_tune_data *then = &tune->data;
  if (strcmp(then->gpu, now->gpu))
    return cct_fail(CCT_USAGE, "measured on '%s', and this is '%s': tune this machine", then->gpu, now->gpu);
  if (strcmp(then->nccl, now->nccl))
    return cct_fail(CCT_USAGE, "measured with NCCL %s, and this is %s: tune with this one", then->nccl, now->nccl);
  return CCT_OK;
}

static enum cct_status verify_run(struct cct_tune *tune, const struct cct_options *flags, const char *name,
                                  const struct cct_tune_cells *only, struct cct_tune_held *held_out) {
  char path[4200];
  struct cct_tune_data now = {0};
  int is_by_plugin = cct_tune_verifies_by_plugin(&tune->plan);
  enum cct_status status = perform(tune, flags, name, tune->plan.rounds, is_by_plugin ? "tuner=none,tuned" : NULL,
                                   cct_tune_verify_suite(&tune->plan, &tune->decision, only));
  if (!status)
    status = cct_tune_verify_read(&tune->plan, run_path(tune, name, path), &now, held_out, &tune->verdict.n_failed);
  return status ? status : check_machine(tune, &now);
}

/* What is in verify/ was measured with the rules that tune.json had. */
static enum cct_status check_rules(const struct cct_tune *tune) {
  char path[4200], file[4300];
  struct cct_text text = {0};
  snprintf(file, sizeof file, "%s/run.json", run_path(tune, "verify", path));
  if (!tune->told || access(file, F_OK) != 0)
    return CCT_OK;
  cct_tune_tell(tune, &text);
  enum cct_status status = text.is_failed ? cct_fail(CCT_NOMEM, "out of memory")
                           : !strcmp(text.s, tune->told)
                               ? CCT_OK
                               : cct_fail(CCT_USAGE,
                                          "%s: holds the verification of other rules, by "
                                          "another cctax; take it away with again/ and proofs/",
                                          path);
  cct_text_free(&text);
  return status;
}

static enum cct_status verify(struct cct_tune *tune, const struct cct_options *flags) {
  struct cct_tune_verdict *verdict = &tune->verdict;
  struct cct_tune_cells missed;
  char proofs[4200];
  size_t n = (size_t)tune->plan.n_kinds * (size_t)tune->plan.n_bytes;
  int is_by_plugin = cct_tune_verifies_by_plugin(&tune->plan);
  *verdict = (struct cct_tune_verdict){
      .n_proofs = -1, .first = calloc(n, sizeof *verdict->first), .again = calloc(n, sizeof *verdict->again)};
  if (!verdict->first || !verdict->again)
    return cct_fail(CCT_NOMEM, "out of memory");
  run_path(tune, "proofs", proofs);
  if (is_by_plugin && ((mkdir(proofs, 0777) != 0 && errno != EEXIST) || setenv("CCTAX_TUNER_PROOF", proofs, 1) != 0))
    return cct_fail(CCT_IO, "%s: cannot be made: %s", proofs, strerror(errno));
  enum cct_status status = verify_run(tune, flags, "verify", NULL, verdict->first);
  if (status)
    return status;
  if (is_by_plugin) {
    verdict->n_proofs = count_proofs(proofs);
    if (!verdict->n_proofs)
      return cct_fail(CCT_FOUND, "%s: the plugin left no proof: NCCL did not load it, so nothing was verified", proofs);
  }
  cct_tune_missed(&tune->plan, verdict, &missed);
  if (missed.n)
    status = verify_run(tune, flags, "again", &missed, verdict->again);
  if (status)
    return status;
  cct_tune_judge(&tune->plan, &tune->decision, verdict);
  tune->is_verified = 1;
  return CCT_OK;
}

/* ---- the command ---- */

/* What NCCL would obey besides, or instead of, what is measured. */
static enum cct_status check_environment(const struct cct_tune_plan *plan) {
  static const char *const names[] = {"NCCL_ALGO",       "NCCL_PROTO",         "NCCL_MIN_CTAS",
                                      "NCCL_MAX_CTAS",   "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS",
                                      "NCCL_CTA_POLICY", "CCTAX_TUNER_RULES",  "NCCL_TUNER_CONFIG_FILE"};
  const char *plugin = getenv("NCCL_TUNER_PLUGIN");
  if (strcmp(plan->backend, "cuda"))
    return CCT_OK;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (getenv(names[i]))
      return cct_fail(CCT_USAGE, "%s is set, which tune measures or sets itself: unset it", names[i]);
  if (plugin && strcmp(plugin, "none"))
    return cct_fail(CCT_USAGE, "NCCL_TUNER_PLUGIN is set: NCCL's own choices are measured without a tuner; unset it");
  return setenv("NCCL_TUNER_PLUGIN", "none", 1) ? cct_fail(CCT_NOMEM, "out of memory") : CCT_OK;
}

static enum cct_status check_alone(const struct cct_options *flags) {
  for (int id = 0; id < CCT_OPTION_COUNT; id++)
    if (flags->v[id].is_set && id != CCT_OPT_VERIFY && !cct_run_says_how((enum cct_option_id)id))
      return cct_fail(CCT_USAGE,
                      "--%s: a tune that was begun goes on as its tune.json says; give -o and --resume alone",
                      cct_option_table[id].name);
  return CCT_OK;
}

/* Before anything is measured, since the rules are written last. */
static enum cct_status check_rules_path(const char *path) {
  char folder[4096];
  if (access(path, F_OK) == 0)
    return cct_fail(CCT_USAGE, "--rules %s: a file is there, and stays; name another, or take it away", path);
  snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (slash)
    slash[slash == folder] = '\0';
  if (access(slash ? folder : ".", W_OK) != 0)
    return cct_fail(CCT_USAGE, "--rules %s: cannot be written: %s; name a file in a folder that is there", path,
                    strerror(errno));
  return CCT_OK;
}

/* What a tune leaves is for jobs on GPUs: only who asks for it gets a simulator's. */
static enum cct_status find_gpus(struct cct_options *options) {
  char why_not[256];
  if (strcmp(options->v[CCT_OPT_BACKEND].s, "auto"))
    return CCT_OK;
  enum cct_status status = cct_launch_why_no_cuda(why_not, sizeof why_not);
  if (!status && *why_not)
    status =
        cct_fail(CCT_UNSUPPORTED, "rules are measured on GPUs: %s; --backend sim predicts them by a profile", why_not);
  return status ? status : cct_option_set(options, CCT_OPT_BACKEND, "cuda", "--backend");
}

static enum cct_status begin(const struct cct_options *flags, struct cct_tune *tune) {
  struct cct_options own = {0};
  const char *output = flags->v[CCT_OPT_OUTPUT].s;
  enum cct_status status = cct_options_copy(flags, &own);
  if (!status)
    status = find_gpus(&own);
  if (!status)
    status = cct_tune_plan_make(&own, &tune->plan);
  if (!status && *tune->plan.rules)
    status = check_rules_path(tune->plan.rules);
  if (!status)
    status = check_environment(&tune->plan);
  if (!status)
    status = make_folder(output, tune);
  if (!status)
    status = cct_tune_save(tune, CCT_STOPPED);
  if (status && *tune->folder)
    drop_folder(tune);
  cct_options_free(&own);
  return status;
}

static enum cct_status print(const struct cct_tune *tune, const struct cct_options *flags, enum cct_status ended) {
  struct cct_text text = {0};
  if (flags->v[CCT_OPT_JSON].is_set)
    return cct_document_print(cct_tune_json(tune, ended));
  cct_tune_print(tune, &text);
  enum cct_status status = text.is_failed ? cct_fail(CCT_NOMEM, "out of memory") : CCT_OK;
  if (!status && text.s)
    fputs(text.s, stdout);
  cct_text_free(&text);
  return status;
}

static enum cct_status tune_all(struct cct_tune *tune, const struct cct_options *flags) {
  const char *verifying = flags->v[CCT_OPT_VERIFY].s;
  enum cct_status status = measure(tune, flags, strcmp(verifying, "only") != 0);
  if (!status)
    status = cct_tune_decide(&tune->plan, &tune->data, &tune->decision);
  if (!status) {
    status = check_rules(tune);
    tune->is_decided = !status;
    if (status)
      cct_tune_decision_free(&tune->decision);
  }
  if (!status)
    status = cct_tune_write(tune);
  if (!status && strcmp(verifying, "no") && tune->plan.n_choices > 1)
    status = verify(tune, flags);
  if (!status && tune->is_verified && !tune->verdict.is_held)
    status = CCT_FOUND;
  return status;
}

static void tune_free(struct cct_tune *tune) {
  cct_tune_data_free(&tune->data);
  if (tune->is_decided)
    cct_tune_decision_free(&tune->decision);
  free(tune->told);
  free(tune->verdict.first);
  free(tune->verdict.again);
  free(tune);
}

enum cct_status cct_cmd_tune(const struct cct_options *options, const char *const *args, int n_args) {
  int is_old = options->v[CCT_OPT_RESUME].is_set || !strcmp(options->v[CCT_OPT_VERIFY].s, "only");
  if (n_args)
    return cct_fail(CCT_USAGE, "'%s': tune takes flags alone", args[0]);
  if (options->v[CCT_OPT_DRY_RUN].is_set)
    return cct_fail(CCT_USAGE, "--dry-run: tune has no single program; cctax coll --dry-run prints a collective's");
  if (!options->v[CCT_OPT_OUTPUT].s)
    return cct_fail(CCT_USAGE, "-o RUN: give the folder of the tune");
  struct cct_tune *tune = calloc(1, sizeof *tune);
  if (!tune)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = is_old ? check_alone(options) : begin(options, tune);
  if (!status && is_old)
    status = open_folder(options->v[CCT_OPT_OUTPUT].s, tune);
  if (!status && is_old)
    status = check_environment(&tune->plan);
  if (!status) {
    status = tune_all(tune, options);
    enum cct_status saved = tune->is_decided ? cct_tune_save(tune, status) : CCT_OK;
    if (!saved && tune->is_decided)
      saved = cct_tune_page(tune);
    if (!saved)
      saved = print(tune, options, status);
    status = status ? status : saved;
    if (status && !is_old && !tune->is_decided)
      drop_folder(tune);
  }
  tune_free(tune);
  return status;
}
