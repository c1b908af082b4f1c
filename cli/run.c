/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/document.h"
#include "cli/launch.h"
#include "cli/own_suite.h"
#include "cli/run_block.h"
#include "cli/run_folder.h"
#include "json/json.h"
#include "machine/host_facts.h"
#include "mpi_runner/condition.h"
#include "mpi_runner/unread.h"
#include "record/record.h"

struct run {
  const struct cct_options *flags;
  const char *suite;
  cct_run_print *print;
  const char *again;
  struct cct_options planned; /* the flags with the backend resolved */
  struct cct_agenda *agenda;
  struct cct_run_folder folder;
  struct cct_machine_state state;
  char boot_id[64], why_no_cuda[256]; /* the latter "" where cuda works or was not asked for */
  int is_quiet, n_planned, n_performed;
};

static int is_given(const struct run *run, enum cct_option_id id) {
  return run->flags->v[id].is_set;
}

/* auto: cuda where it can work, else sim; never host, whose figures are of another machine's kind. */
static enum cct_status resolve_backend(struct run *run) {
  if (strcmp(run->flags->v[CCT_OPT_BACKEND].s, "auto"))
    return CCT_OK;
  if (is_given(run, CCT_OPT_DRY_RUN)) { /* a program is the same on every backend, and none was asked for */
    enum cct_status dry = cct_option_set(&run->planned, CCT_OPT_BACKEND, "sim", "--backend");
    run->planned.v[CCT_OPT_BACKEND].is_set = 0;
    return dry;
  }
  enum cct_status status = cct_launch_why_no_cuda(run->why_no_cuda, sizeof run->why_no_cuda);
  if (status)
    return status;
  return cct_option_set(&run->planned, CCT_OPT_BACKEND, *run->why_no_cuda ? "sim" : "cuda", "--backend");
}

static enum cct_status plan(struct run *run) {
  enum cct_status status = resolve_backend(run);
  if (status)
    return status;
  const char *backend = run->planned.v[CCT_OPT_BACKEND].s;
  int is_sim = !strcmp(backend, "sim");
  const char *detected = is_sim ? "off" : cct_condition_detected(backend, &run->state);
  status =
      cct_agenda_plan(&run->planned, run->suite, strcmp(detected, "misconfigured") ? detected : "off", &run->agenda);
  /* A command that prints its own result holds it against the profile. */
  if (!status && is_given(run, CCT_OPT_PROFILE_FILE) && !run->print && run->planned.v[CCT_OPT_BACKEND].is_set &&
      !*run->agenda->profile && !*run->agenda->stripped) {
    status = cct_fail(CCT_USAGE, "--profile: sim plays it and a stripped arm on GPUs lacks by it, and neither is here");
    cct_agenda_free(run->agenda);
    run->agenda = NULL;
  }
  return status;
}

/* ---- going on with a run ---- */

int cct_run_says_how(enum cct_option_id id) {
  static const enum cct_option_id how[] = {CCT_OPT_OUTPUT, CCT_OPT_RESUME,   CCT_OPT_APPEND, CCT_OPT_JSON,
                                           CCT_OPT_QUIET,  CCT_OPT_DEADLINE, CCT_OPT_PROCS,  CCT_OPT_LAUNCHER};
  for (size_t i = 0; i < sizeof how / sizeof *how; i++)
    if (how[i] == id)
      return 1;
  return 0;
}

/* The suite and the flags that say what is performed: "--rounds, --np". */
static void list_asked(const struct run *run, struct cct_text *text) {
  if (run->suite && strncmp(run->suite, CCT_OWN_SUITE, strlen(CCT_OWN_SUITE)))
    cct_text_add(text, "%s", run->suite);
  for (int id = 0; id < CCT_OPTION_COUNT; id++)
    if (cct_is_asked(run->flags, (enum cct_option_id)id) && !cct_run_says_how((enum cct_option_id)id) &&
        id != CCT_OPT_BACKEND)
      cct_text_add(text, "%s--%s", text->length ? ", " : "", cct_option_table[id].name);
}

/* Flags and suite beside --resume or --append must say what the run says. */
static enum cct_status check_same(struct run *run) {
  struct cct_agenda *stored = run->agenda;
  struct cct_text asked = {0};
  enum cct_status status = CCT_OK;
  const char *backend = run->flags->v[CCT_OPT_BACKEND].s;
  if (strcmp(backend, "auto") && strcmp(backend, stored->backend))
    return cct_fail(CCT_USAGE, "--backend %s: %s was begun on %s, and goes on there", backend, run->folder.path,
                    stored->backend);
  list_asked(run, &asked);
  if (!run->suite && !asked.length)
    return CCT_OK;
  if (!strcmp(backend, "auto"))
    status = cct_option_set(&run->planned, CCT_OPT_BACKEND, stored->backend, "--backend");
  cct_log_mute(!run->suite); /* what flags alone lack is in the run */
  if (!status)
    status = plan(run);
  cct_log_mute(0);
  int is_other = status ? status == CCT_USAGE && !run->suite : strcmp(run->agenda->digest, stored->digest) != 0;
  if (is_other)
    status = cct_fail(CCT_USAGE,
                      "%s: %s: not what this run was begun with; beside --%s give -o, --deadline, --procs, --launcher, "
                      "--json and -q alone, or all that it was begun with",
                      run->folder.path, asked.length ? asked.s : "these flags",
                      is_given(run, CCT_OPT_RESUME) ? "resume" : "append");
  if (run->agenda != stored)
    cct_agenda_free(run->agenda);
  run->agenda = stored;
  cct_text_free(&asked);
  return status;
}

/* How blocks are launched may change from one session to the next. */
static enum cct_status take_launch_flags(struct run *run) {
  enum cct_status status = cct_unread_refuse_flags(run->flags, run->agenda->backend);
  if (status)
    return status;
  if (is_given(run, CCT_OPT_DEADLINE))
    run->agenda->deadline_s = run->flags->v[CCT_OPT_DEADLINE].i;
  if (is_given(run, CCT_OPT_PROCS))
    run->agenda->procs = run->flags->v[CCT_OPT_PROCS].i;
  return run->flags->v[CCT_OPT_LAUNCHER].is_set
             ? cct_option_copy(run->flags, CCT_OPT_LAUNCHER, run->agenda->launcher, sizeof run->agenda->launcher)
             : CCT_OK;
}

/* The arms that the machine can perform in its present state; the others wait for another boot. */
static enum cct_status add_boot(struct run *run) {
  struct cct_agenda *agenda = run->agenda;
  int arms[CCT_MOST_ARMS], n = 0;
  char why[256], first[256] = "";
  for (int i = 0; i < agenda->n_arms; i++) {
    if (cct_condition_fits(agenda->backend, cct_agenda_condition(agenda, i), &run->state, why, sizeof why)) {
      arms[n++] = i;
      continue;
    }
    if (!*first)
      snprintf(first, sizeof first, "%s", why);
  }
  for (int i = 0; n && i < agenda->n_arms; i++)
    if (!cct_condition_fits(agenda->backend, cct_agenda_condition(agenda, i), &run->state, why, sizeof why))
      cct_note("arm '%s' waits for another boot (--append): %s", agenda->arms[i], why);
  return n ? cct_agenda_add_boot(agenda, run->boot_id, arms, n)
           : cct_fail(CCT_USAGE, "no arm can be performed here: %s", first);
}

static enum cct_status check_boot(const struct run *run) {
  const struct cct_agenda *agenda = run->agenda;
  if (agenda->n_boots && !strcmp(agenda->boots[agenda->n_boots - 1].id, run->boot_id))
    return CCT_OK;
  return cct_fail(CCT_USAGE,
                  "%s: this is another boot of the machine than the one to be finished; --append adds it to the run",
                  run->folder.path);
}

static enum cct_status open_run(struct run *run) {
  int is_resume = is_given(run, CCT_OPT_RESUME), is_append = is_given(run, CCT_OPT_APPEND);
  const char *output = run->flags->v[CCT_OPT_OUTPUT].s;
  enum cct_status status;
  if (is_resume && is_append)
    return cct_fail(CCT_USAGE, "--resume finishes this boot's blocks, --append adds a boot: give one of them");
  if (!output)
    return cct_fail(CCT_USAGE, "-o RUN: give the folder of the run");
  if (!is_resume && !is_append) {
    status = plan(run);
    if (!status)
      status = cct_run_folder_make(output, &run->folder);
    if (!status)
      status = add_boot(run);
    return status ? status : cct_agenda_save(run->agenda, run->folder.path);
  }
  status = cct_run_folder_open(output, &run->folder);
  if (!status)
    status = cct_agenda_load(run->folder.path, &run->agenda);
  if (!status)
    status = check_same(run);
  if (!status)
    status = take_launch_flags(run);
  if (!status)
    status = is_resume ? check_boot(run) : add_boot(run);
  return status ? status : cct_agenda_save(run->agenda, run->folder.path);
}

static int is_there(const struct run *run, int block) {
  char path[4096];
  return access(cct_agenda_path(run->folder.path, block, path, sizeof path), F_OK) == 0;
}

static int is_of_this_boot(const struct run *run, int block) {
  return cct_agenda_block(run->agenda, block).boot == run->agenda->n_boots - 1;
}

static enum cct_status perform_block(struct run *run, int block, struct cct_progress *progress) {
  const struct cct_agenda *agenda = run->agenda;
  struct cct_block_at at = cct_agenda_block(agenda, block);
  const struct cct_launch launch = {
      .launcher = agenda->launcher,
      .run = run->folder.path,
      .block = block,
      .processes = cct_agenda_processes(agenda),
      .deadline_s = agenda->deadline_s,
      .progress = cct_progress_cell,
      .context = progress,
  };
  int64_t start_ns = cct_clock_ns();
  snprintf(progress->text, sizeof progress->text, "round %d, arm %.40s", at.round + 1, agenda->arms[at.arm]);
  enum cct_status status = cct_launch_block(&launch);
  if ((!status || status == CCT_FOUND) && !is_there(run, block))
    status = cct_fail(CCT_STOPPED, "block %d: ended well, and left no file", block);
  int is_done = !status || status == CCT_FOUND;
  cct_progress_end_block(progress, (double)(cct_clock_ns() - start_ns) / 1e9, is_done);
  run->n_performed += is_done;
  return status == CCT_FOUND ? CCT_OK : status;
}

static void say_again(const struct run *run, int n_blocks) {
  int n_done = n_blocks - run->n_planned + run->n_performed;
  if (run->again)
    cct_note("%d of %d blocks are finished; go on with: %s", n_done, n_blocks, run->again);
  else
    cct_note("%d of %d blocks are finished; go on with: cctax %s -o %s --resume", n_done, n_blocks,
             run->print ? "coll" : "run", run->flags->v[CCT_OPT_OUTPUT].s);
}

static enum cct_status perform_blocks(struct run *run) {
  struct cct_progress progress;
  int n_blocks = cct_agenda_blocks(run->agenda);
  for (int b = 0; b < n_blocks; b++)
    run->n_planned += is_of_this_boot(run, b) && !is_there(run, b);
  cct_progress_start(&progress, run->n_planned, run->agenda->n_cells, run->is_quiet);
  enum cct_status status = CCT_OK;
  for (int b = 0; !status && b < n_blocks; b++) {
    if (!is_of_this_boot(run, b) || is_there(run, b))
      continue;
    if (cct_launch_is_stopped())
      status = CCT_STOPPED;
    if (!status)
      status = perform_block(run, b, &progress);
  }
  if (status == CCT_STOPPED || status == CCT_NOSPACE)
    say_again(run, n_blocks);
  return status;
}

struct tally {
  int done, failed, refused, damaged, unfinished;
};

static void tally_blocks(const struct run *run, struct tally *tally) {
  for (int b = 0; b < cct_agenda_blocks(run->agenda); b++) {
    struct cct_block *block;
    if (!is_there(run, b)) {
      tally->unfinished++;
      continue;
    }
    if (cct_run_block_read(run->agenda, run->folder.path, b, 0, &block)) {
      tally->damaged++;
      continue;
    }
    for (int i = 0; i < block->n_cells; i++) {
      tally->done += block->cells[i].state == CCT_CELL_DONE;
      tally->failed += block->cells[i].state == CCT_CELL_FAILED;
      tally->refused += block->cells[i].state == CCT_CELL_REFUSED;
    }
    cct_block_free(block);
  }
}

static enum cct_status print_result(const struct run *run, const struct tally *tally, enum cct_status status) {
  const struct cct_agenda *agenda = run->agenda;
  if (!is_given(run, CCT_OPT_JSON)) {
    if (!run->is_quiet)
      printf("%s: %d blocks, %d unfinished; cells: %d done, %d failed, %d refused%s\n", run->flags->v[CCT_OPT_OUTPUT].s,
             cct_agenda_blocks(agenda), tally->unfinished, tally->done, tally->failed, tally->refused,
             strcmp(agenda->backend, "sim") ? "" : " (sim: the figures are predicted)");
    return CCT_OK;
  }
  struct cct_json *document = cct_document_new("run");
  cct_json_set_string(document, "run", run->flags->v[CCT_OPT_OUTPUT].s);
  cct_json_set_string(document, "agenda", agenda->digest);
  cct_json_set_string(document, "backend", agenda->backend);
  cct_json_set_i64(document, "blocks", cct_agenda_blocks(agenda));
  cct_json_set_i64(document, "unfinished", tally->unfinished);
  cct_json_set_i64(document, "done", tally->done);
  cct_json_set_i64(document, "failed", tally->failed);
  cct_json_set_i64(document, "refused", tally->refused);
  cct_json_set_string(document, "ended", cct_status_text(status));
  return cct_document_print(document);
}

static void announce(const struct run *run) {
  const struct cct_agenda *agenda = run->agenda;
  struct cct_text arms = {0};
  if (*run->why_no_cuda)
    cct_note("backend sim, the figures are predicted: %s", run->why_no_cuda);
  for (char *line = agenda->notes, *next; line && (next = strchr(line, '\n')); line = next + 1) {
    *next = '\0';
    cct_note("%s", line);
  }
  for (int i = 0; i < agenda->n_arms; i++)
    cct_text_add(&arms, "%s%s", i ? ", " : "", agenda->arms[i]);
  cct_note("%d cells, %s: %s; %lld rounds; up to %d ranks in %d processes; backend %s%s%s", agenda->n_cells,
           agenda->factor, arms.s ? arms.s : "", (long long)agenda->rounds, cct_agenda_most_ranks(agenda),
           cct_agenda_processes(agenda), agenda->backend, *agenda->profile ? " playing " : "", agenda->profile);
  cct_text_free(&arms);
}

static enum cct_status conclude(const struct run *run, enum cct_status status) {
  struct tally tally = {0};
  tally_blocks(run, &tally);
  if (!status && tally.damaged)
    status = CCT_FOUND;
  if (!status && tally.failed)
    status = cct_fail(CCT_FOUND, "%d cells failed; cctax show %s names them", tally.failed, run->folder.path);
  if (!status && !tally.done && tally.refused)
    status = cct_fail(CCT_UNSUPPORTED, "every cell was refused; cctax show %s says why", run->folder.path);
  enum cct_status printed =
      run->print ? run->print(run->agenda, run->folder.path, run->flags, status) : print_result(run, &tally, status);
  return status ? status : printed;
}

/* What is refused before anything was performed leaves nothing. */
static enum cct_status perform(struct run *run) {
  int is_new = !is_given(run, CCT_OPT_RESUME) && !is_given(run, CCT_OPT_APPEND), is_kept = !is_new;
  cct_launch_prepare();
  enum cct_status status = open_run(run);
  if (!status) {
    announce(run);
    status = perform_blocks(run);
    is_kept = !is_new || run->n_performed || cct_status_exit(status) == cct_status_exit(CCT_STOPPED);
    if (is_kept)
      status = conclude(run, status);
  }
  cct_run_folder_close(&run->folder, is_kept);
  return status;
}

enum cct_status cct_run_perform(const struct cct_options *flags, const char *suite_path, cct_run_print *print,
                                const char *again) {
  struct cct_host_facts host;
  struct run run = {.flags = flags, .suite = suite_path, .print = print, .again = again, .folder.lock = -1};
  run.is_quiet = (int)flags->v[CCT_OPT_QUIET].i;
  cct_host_facts_read(&host);
  memcpy(run.boot_id, host.boot_id, sizeof run.boot_id);
  cct_machine_state_read(&run.state);
  enum cct_status status = cct_options_copy(flags, &run.planned);
  if (status)
    return status;
  if (is_given(&run, CCT_OPT_DRY_RUN) && (is_given(&run, CCT_OPT_RESUME) || is_given(&run, CCT_OPT_APPEND))) {
    status = cct_fail(CCT_USAGE, "--dry-run performs nothing, so that no run goes on: leave one of the two out");
  } else if (is_given(&run, CCT_OPT_DRY_RUN)) {
    status = plan(&run);
    if (!status)
      status = cct_dry_run(run.agenda, is_given(&run, CCT_OPT_JSON));
  } else {
    status = perform(&run);
  }
  cct_agenda_free(run.agenda);
  cct_options_free(&run.planned);
  return status;
}
