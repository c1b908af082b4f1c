/* SPDX-License-Identifier: Apache-2.0
 * cctax show RUN|PROFILE: a run, or a profile, as text. The medians here are of all samples of an arm; what compares
 * arms is cctax report. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/document.h"
#include "cli/show_run.h"
#include "cli/show_steps.h"
#include "report/remarks.h"
#include "report/series.h"
#include "workloads/backends/exposure.h"
#include "workloads/program/profile.h"

static void print_head(const struct cct_show *show) {
  const struct cct_agenda *agenda = show->agenda;
  if (*agenda->question)
    printf("%s\n", agenda->question);
  printf("run %s, agenda %.16s, cctax %s\n", show->run, agenda->digest, CCT_VERSION);
  printf("backend %s%s%s; %lld rounds, %lld samples a cell and block, %lld warm-ups, seed %lld\n", agenda->backend,
         *agenda->profile ? " playing " : "", agenda->profile, (long long)agenda->rounds, (long long)agenda->samples,
         (long long)agenda->warmup, (long long)agenda->seed);
  printf("%d boots, %d blocks, %d finished\n", agenda->n_boots, show->n_blocks, show->n_finished);
  printf("arms of '%s':", agenda->factor);
  for (int i = 0; i < agenda->n_arms; i++)
    printf(" %s", agenda->arms[i]);
  if (*agenda->condition)
    printf(" (condition %s)", agenda->condition);
  printf("\n\n");
}

/* A fact as its first block has it; blocks of other arms may lack it. */
static void print_facts(const struct cct_show *show) {
  int n_other;
  for (int b = 0; b < show->n_blocks; b++)
    for (int i = 0; show->blocks[b] && i < show->blocks[b]->n_facts; i++) {
      const struct cct_record_fact *fact = &show->blocks[b]->facts[i];
      if (!cct_show_is_place(fact) && cct_show_is_first(show, b, fact, &n_other))
        printf("%-10s %-22s %s%s\n", cct_fact_class_name(fact->fact_class), fact->name, fact->value,
               n_other ? " (other blocks differ)" : "");
    }
  printf("\n");
}

static void print_summary(const char *arm, const char *label, const struct cct_metric *metric,
                          const struct cct_show_summary *s) {
  printf("  %-28s %-10s %12.6g %-6s %5zu in %d blocks", arm, metric->name, s->median, metric->unit, s->n, s->n_blocks);
  if (cct_metric_has_tail(metric))
    printf("; mean %.6g, p99 %.6g", s->mean, s->p99);
  if (s->spread > 0)
    printf("; ranks spread %.1f %%, slowest rank %zu in %.0f %%", 100 * s->spread, s->slowest, 100 * s->slowest_share);
  printf("  %s\n", label);
}

static enum cct_status print_arm(const struct cct_show *show, int cell, int arm) {
  const struct cct_block_cell *known = cct_show_cell(show, cell, arm);
  enum cct_status status = CCT_OK;
  double step_us = NAN, checkpoint_us = NAN;
  for (int m = 0; known && !status && m < known->n_metrics; m++) {
    struct cct_show_summary summary;
    const char *name = known->metrics[m].metric.name;
    if (cct_exposure_is_metric(name))
      continue;
    status = cct_show_summarize(show, cell, arm, m, &summary);
    if (status || !summary.n)
      continue;
    print_summary(show->agenda->arms[arm], known->label, &known->metrics[m].metric, &summary);
    step_us = strcmp(name, "step") ? step_us : summary.median;
    checkpoint_us = strcmp(name, "checkpoint_step") ? checkpoint_us : summary.median;
  }
  if (!status) {
    cct_show_training(show->agenda, cell, arm, step_us, checkpoint_us);
    cct_show_exposed(show->agenda, show->blocks, show->n_blocks, cell, arm);
  }
  return status;
}

/* What an arm's blocks of a serving cell scheduled: once, if all had the same. */
static void print_schedules(const struct cct_show *show, int cell, int arm) {
  const char *last = "", *said;
  for (int b = 0; (said = cct_show_schedule(show, cell, arm, last, &b)); last = said)
    printf("  %-28s %s (block %d%s)\n", show->agenda->arms[arm], said, b, *last ? "" : " and on");
}

static void print_counts(const struct cct_show *show, int cell, int arm) {
  char text[200];
  cct_show_counts(show, cell, arm, text, sizeof text);
  if (*text)
    printf("  %-28s %s\n", show->agenda->arms[arm], text);
}

static void print_marks(const struct cct_show *show) {
  char text[200];
  int n = 0;
  for (int b = 0; b < show->n_blocks; b++) {
    if (!show->blocks[b])
      continue;
    cct_block_mark(show->blocks[b], text, sizeof text);
    if (*text)
      printf("block %d (%s) is marked: %s\n", b, show->blocks[b]->head.arm, text);
    n += *text != '\0';
  }
  if (n)
    printf("\n");
}

static void print_trouble(const struct cct_show *show, int cell) {
  for (int b = 0; b < show->n_blocks; b++) {
    if (!show->blocks[b])
      continue;
    const struct cct_block_cell *at = &show->blocks[b]->cells[cell];
    if (at->state == CCT_CELL_FAILED || at->state == CCT_CELL_REFUSED)
      printf("  block %d: %s: %s\n", b, at->state == CCT_CELL_FAILED ? "failed" : "refused", at->reason);
  }
}

static enum cct_status print_cells(const struct cct_show *show) {
  const struct cct_block *first = NULL;
  enum cct_status status = CCT_OK;
  for (int b = 0; b < show->n_blocks && !first; b++)
    first = show->blocks[b];
  for (int c = 0; first && !status && c < first->n_cells; c++) {
    printf("cell %d: %s\n", c, first->cells[c].key);
    for (int arm = 0; !status && arm < show->agenda->n_arms; arm++)
      status = print_arm(show, c, arm);
    for (int arm = 0; !status && arm < show->agenda->n_arms; arm++)
      print_counts(show, c, arm);
    for (int arm = 0; !status && arm < show->agenda->n_arms; arm++)
      print_schedules(show, c, arm);
    print_trouble(show, c);
  }
  return status;
}

static enum cct_status print_run(const struct cct_show *show) {
  print_head(show);
  print_facts(show);
  print_marks(show);
  return print_cells(show);
}

static enum cct_status show_profile(const char *name, int is_json) {
  struct cct_profile *profile;
  enum cct_status status = cct_profile_load(name, &profile);
  if (status)
    return status;
  if (is_json) {
    struct cct_json *document = cct_document_new("show");
    cct_json_set(document, "profile", cct_json_copy(profile->document));
    status = cct_document_print(document);
  } else {
    cct_profile_show(profile, stdout);
  }
  cct_profile_free(profile);
  return status;
}

enum cct_status cct_cmd_show(const struct cct_options *options, const char *const *args, int n_args) {
  struct cct_show show;
  struct stat facts;
  int is_json = (int)options->v[CCT_OPT_JSON].i;
  if (n_args != 1)
    return cct_fail(CCT_USAGE, "show takes one run's folder, or one profile");
  if (stat(args[0], &facts) != 0 || !S_ISDIR(facts.st_mode))
    return show_profile(args[0], is_json);
  enum cct_status status = cct_show_load(args[0], &show);
  if (status)
    return status;
  int n_damaged = show.n_damaged;
  status = is_json ? cct_show_json(&show) : print_run(&show);
  cct_show_free(&show);
  return !status && n_damaged ? CCT_FOUND : status;
}
