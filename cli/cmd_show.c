/* SPDX-License-Identifier: Apache-2.0
 * cctax show RUN|PROFILE: a run, or a profile, as text. The medians here are of all samples of an arm; what compares
 * arms is cctax report. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/show_steps.h"
#include "mpi_runner/agenda.h"
#include "record/record.h"
#include "report/remarks.h"
#include "report/series.h"
#include "stats/stats.h"
#include "workloads/backends/exposure.h"
#include "workloads/program/profile.h"

struct show {
  const char *run;
  struct cct_agenda *agenda;
  struct cct_block **blocks; /* by number; NULL: not there, or damaged (said when it was read) */
  int *is_partial;
  int n_blocks;
};

static enum cct_status read_blocks(struct show *show) {
  show->n_blocks = cct_agenda_blocks(show->agenda);
  show->blocks = calloc((size_t)show->n_blocks + 1, sizeof *show->blocks);
  show->is_partial = calloc((size_t)show->n_blocks + 1, sizeof *show->is_partial);
  if (!show->blocks || !show->is_partial)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int b = 0; b < show->n_blocks; b++) {
    char path[4096], partial[4200];
    cct_agenda_path(show->run, b, path, sizeof path);
    snprintf(partial, sizeof partial, "%s.partial", path);
    show->is_partial[b] = access(path, F_OK) != 0;
    if (show->is_partial[b] && access(partial, F_OK) != 0)
      continue;
    enum cct_status status =
        cct_block_read(show->is_partial[b] ? partial : path, show->is_partial[b], &show->blocks[b]);
    if (status == CCT_NOMEM)
      return status;
  }
  return CCT_OK;
}

static void print_head(const struct show *show) {
  const struct cct_agenda *agenda = show->agenda;
  int n_finished = 0;
  for (int b = 0; b < show->n_blocks; b++)
    n_finished += show->blocks[b] && !show->is_partial[b];
  if (*agenda->question)
    printf("%s\n", agenda->question);
  printf("run %s, agenda %.16s, cctax %s\n", show->run, agenda->digest, CCT_VERSION);
  printf("backend %s%s%s; %lld rounds, %lld samples a cell and block, %lld warm-ups, seed %lld\n", agenda->backend,
         *agenda->profile ? " playing " : "", agenda->profile, (long long)agenda->rounds, (long long)agenda->samples,
         (long long)agenda->warmup, (long long)agenda->seed);
  printf("%d boots, %d blocks, %d finished\n", agenda->n_boots, show->n_blocks, n_finished);
  printf("arms of '%s':", agenda->factor);
  for (int i = 0; i < agenda->n_arms; i++)
    printf(" %s", agenda->arms[i]);
  if (*agenda->condition)
    printf(" (condition %s)", agenda->condition);
  printf("\n\n");
}

/* Where a block stands among the others is said by the head and the arms. */
static int is_place(const struct cct_record_fact *fact) {
  static const char *const places[] = {"boot", "boot_id", "round", "block", "start"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (!strcmp(fact->name, places[i]))
      return 1;
  return fact->fact_class == CCT_FACT_DRIFT;
}

static const struct cct_record_fact *find_fact(const struct cct_block *block, const char *name) {
  for (int i = 0; block && i < block->n_facts; i++)
    if (!strcmp(block->facts[i].name, name))
      return &block->facts[i];
  return NULL;
}

/* A fact as its first block has it; blocks of other arms may lack it. */
static void print_fact(const struct show *show, int block, const struct cct_record_fact *fact) {
  int n_other = 0;
  for (int b = 0; b < block; b++)
    if (find_fact(show->blocks[b], fact->name))
      return;
  for (int b = block + 1; b < show->n_blocks; b++) {
    const struct cct_record_fact *other = find_fact(show->blocks[b], fact->name);
    n_other += other && strcmp(other->value, fact->value);
  }
  printf("%-10s %-22s %s%s\n", cct_fact_class_name(fact->fact_class), fact->name, fact->value,
         n_other ? " (other blocks differ)" : "");
}

static void print_facts(const struct show *show) {
  for (int b = 0; b < show->n_blocks; b++)
    for (int i = 0; show->blocks[b] && i < show->blocks[b]->n_facts; i++)
      if (!is_place(&show->blocks[b]->facts[i]))
        print_fact(show, b, &show->blocks[b]->facts[i]);
  printf("\n");
}

/* What one arm's samples of one metric of one cell come to. */
struct summary {
  double *steps, *spreads; /* of each index: the slowest rank's value; (slowest - fastest) / slowest */
  int *slowest;            /* times that each rank was it */
  size_t n, capacity_steps, capacity_spreads, capacity_ranks;
};

static void summary_free(struct summary *summary) {
  free(summary->steps);
  free(summary->spreads);
  free(summary->slowest);
}

struct extreme {
  double worst, best;
  int rank, is_set, times;
};

/* Worst is the largest of a metric where lower is better, else the smallest. */
static enum cct_status add_samples(const struct cct_block_metric *metric, struct summary *summary) {
  int n_steps = 0, n_ranks = 0, sign = strcmp(metric->metric.better, "higher") ? 1 : -1;
  for (int i = 0; i < metric->n_samples; i++) {
    n_steps = metric->samples[i].index >= n_steps ? metric->samples[i].index + 1 : n_steps;
    n_ranks = metric->samples[i].rank >= n_ranks ? metric->samples[i].rank + 1 : n_ranks;
  }
  struct extreme *steps = calloc((size_t)n_steps + 1, sizeof *steps);
  size_t had_ranks = summary->capacity_ranks;
  enum cct_status status = steps ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  if (!status)
    status = cct_grow((void **)&summary->slowest, &summary->capacity_ranks, (size_t)n_ranks, sizeof *summary->slowest);
  if (!status && summary->capacity_ranks > had_ranks)
    memset(summary->slowest + had_ranks, 0, (summary->capacity_ranks - had_ranks) * sizeof *summary->slowest);
  size_t need = summary->n + cct_metric_values(metric);
  if (!status)
    status = cct_grow((void **)&summary->steps, &summary->capacity_steps, need, sizeof *summary->steps);
  if (!status)
    status = cct_grow((void **)&summary->spreads, &summary->capacity_spreads, need, sizeof *summary->spreads);
  for (int i = 0; !status && i < metric->n_samples; i++) {
    const struct cct_sample *sample = &metric->samples[i];
    struct extreme *step = &steps[sample->index];
    if (!step->is_set || sign * sample->value > sign * step->worst) {
      step->worst = sample->value;
      step->rank = sample->rank;
    }
    if (!step->is_set || sign * sample->value < sign * step->best)
      step->best = sample->value;
    step->is_set = 1;
    step->times = cct_metric_is_counted(&metric->metric) && sample->n > 1 ? sample->n : 1;
  }
  for (int s = 0; !status && s < n_steps; s++)
    for (int k = 0; k < steps[s].times; k++) {
      summary->steps[summary->n] = steps[s].worst;
      summary->spreads[summary->n++] =
          steps[s].worst != 0 ? fabs(steps[s].worst - steps[s].best) / fabs(steps[s].worst) : 0;
      summary->slowest[steps[s].rank]++;
    }
  free(steps);
  return status;
}

/* Returns the median; NAN: no sample. */
static double print_summary(const char *arm, const char *label, const struct cct_metric *metric, int n_blocks,
                            struct summary *summary) {
  size_t slowest = 0;
  if (!summary->n)
    return NAN;
  for (size_t r = 0; r < summary->capacity_ranks; r++)
    if (summary->slowest[r] > summary->slowest[slowest])
      slowest = r;
  double spread = cct_median(summary->spreads, summary->n), median = cct_median(summary->steps, summary->n);
  printf("  %-28s %-10s %12.6g %-6s %5zu in %d blocks", arm, metric->name, median, metric->unit, summary->n, n_blocks);
  if (cct_metric_has_tail(metric)) {
    cct_sort(summary->steps, summary->n);
    printf("; p99 %.6g", cct_quantile(summary->steps, summary->n, 0.99));
  }
  if (spread > 0)
    printf("; ranks spread %.1f %%, slowest rank %zu in %.0f %%", 100 * spread, slowest,
           100.0 * summary->slowest[slowest] / (double)summary->n);
  printf("  %s\n", label);
  return median;
}

static enum cct_status print_arm(const struct show *show, int cell, int arm) {
  const struct cct_block_cell *known = NULL;
  enum cct_status status = CCT_OK;
  for (int b = 0; b < show->n_blocks && !known; b++)
    if (show->blocks[b] && cct_agenda_block(show->agenda, b).arm == arm && cell < show->blocks[b]->n_cells)
      known = &show->blocks[b]->cells[cell];
  double step_us = NAN, checkpoint_us = NAN;
  for (int m = 0; known && !status && m < known->n_metrics; m++) {
    struct summary summary = {0};
    int n_blocks = 0;
    const char *name = known->metrics[m].metric.name;
    if (cct_exposure_is_metric(name))
      continue;
    for (int b = 0; !status && b < show->n_blocks; b++) {
      const struct cct_block *block = show->blocks[b];
      if (!block || cct_agenda_block(show->agenda, b).arm != arm || block->cells[cell].state != CCT_CELL_DONE)
        continue;
      status = add_samples(&block->cells[cell].metrics[m], &summary);
      n_blocks++;
    }
    double median =
        status ? NAN
               : print_summary(show->agenda->arms[arm], known->label, &known->metrics[m].metric, n_blocks, &summary);
    step_us = strcmp(name, "step") ? step_us : median;
    checkpoint_us = strcmp(name, "checkpoint_step") ? checkpoint_us : median;
    summary_free(&summary);
  }
  if (!status) {
    cct_show_training(show->agenda, cell, arm, step_us, checkpoint_us);
    cct_show_exposed(show->agenda, show->blocks, show->n_blocks, cell, arm);
  }
  return status;
}

/* What an arm's blocks of a serving cell scheduled, where they say so: once, if all had the same. */
static void print_schedules(const struct show *show, int cell, int arm) {
  const char *last = "";
  for (int b = 0; b < show->n_blocks; b++) {
    const struct cct_block_cell *at = show->blocks[b] ? &show->blocks[b]->cells[cell] : NULL;
    if (!at || at->state != CCT_CELL_DONE || cct_agenda_block(show->agenda, b).arm != arm ||
        strncmp(at->reason, "schedule ", 9) != 0 || !strcmp(last, at->reason))
      continue;
    printf("  %-28s %s (block %d%s)\n", show->agenda->arms[arm], at->reason, b, *last ? "" : " and on");
    last = at->reason;
  }
}

/* What an arm's backend performed otherwise than the program says, as its first finished block has it. */
static void print_counts(const struct show *show, int cell, int arm) {
  char text[200] = "";
  for (int b = 0; b < show->n_blocks && !*text; b++) {
    const struct cct_block_cell *at = show->blocks[b] ? &show->blocks[b]->cells[cell] : NULL;
    if (at && at->state == CCT_CELL_DONE && cct_agenda_block(show->agenda, b).arm == arm)
      cct_counts_remark(&at->program, &at->performed, text, sizeof text);
  }
  if (*text)
    printf("  %-28s %s\n", show->agenda->arms[arm], text);
}

static void print_marks(const struct show *show) {
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

static void print_trouble(const struct show *show, int cell) {
  for (int b = 0; b < show->n_blocks; b++) {
    if (!show->blocks[b])
      continue;
    const struct cct_block_cell *at = &show->blocks[b]->cells[cell];
    if (at->state == CCT_CELL_FAILED || at->state == CCT_CELL_REFUSED)
      printf("  block %d: %s: %s\n", b, at->state == CCT_CELL_FAILED ? "failed" : "refused", at->reason);
  }
}

static enum cct_status print_cells(const struct show *show) {
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

static enum cct_status show_run(const char *run) {
  struct show show = {.run = run};
  enum cct_status status = cct_agenda_load(run, &show.agenda);
  if (!status)
    status = read_blocks(&show);
  if (!status) {
    print_head(&show);
    print_facts(&show);
    print_marks(&show);
    status = print_cells(&show);
  }
  for (int b = 0; show.blocks && b < show.n_blocks; b++)
    cct_block_free(show.blocks[b]);
  free(show.blocks);
  free(show.is_partial);
  cct_agenda_free(show.agenda);
  return status;
}

enum cct_status cct_cmd_show(const struct cct_options *options, const char *const *args, int n_args) {
  struct stat facts;
  (void)options;
  if (n_args != 1)
    return cct_fail(CCT_USAGE, "show takes one run's folder, or one profile");
  if (stat(args[0], &facts) == 0 && S_ISDIR(facts.st_mode))
    return show_run(args[0]);
  struct cct_profile *profile;
  enum cct_status status = cct_profile_load(args[0], &profile);
  if (status)
    return status;
  cct_profile_show(profile, stdout);
  cct_profile_free(profile);
  return CCT_OK;
}
