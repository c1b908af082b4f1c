/* SPDX-License-Identifier: Apache-2.0
 * The figures of a tune: what it gains by size, and where which choice holds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/tune.h"
#include "report/assets.h"
#include "report/figure.h"

#define MOST_LABELS 12 /* kinds of rules that a figure tells apart */

const char *cct_tune_label(const struct cct_tune *tune) {
  return !strcmp(tune->plan.backend, "sim")               ? "predicted"
         : !strncmp(tune->data.condition, "emulated:", 9) ? "emulated"
                                                          : "measured";
}

const char *cct_tune_gpu(const struct cct_tune *tune) {
  return *tune->data.gpu ? tune->data.gpu : tune->plan.gpu;
}

static const struct cct_ordered *ratio_of(const struct cct_tune *tune, int kind, int size) {
  return tune->is_verified ? &tune->verdict.first[kind * tune->plan.n_bytes + size].ratio
                           : &cct_tune_setting(tune)->shown[kind][size];
}

static void add_title(const struct cct_tune *tune, const char *title, const char *how, struct cct_figure *figure) {
  char what[160];
  snprintf(what, sizeof what, "%d ranks%s%s, %s", tune->plan.ranks, *cct_tune_gpu(tune) ? ", " : "", cct_tune_gpu(tune),
           tune->data.condition);
  cct_figure_title(figure, title, what, how, cct_tune_label(tune));
}

char *cct_tune_channels_text(const struct cct_tune *tune, char out[64]) {
  if (cct_tune_channels(tune))
    snprintf(out, 64, "%d channels", cct_tune_channels(tune));
  else
    snprintf(out, 64, "NCCL's own number of channels");
  return out;
}

static void set_axis(const struct cct_tune *tune, struct cct_figure *figure, int series) {
  const struct cct_tune_plan *plan = &tune->plan;
  int from = (int)floor(log2((double)plan->bytes[0])), to = (int)ceil(log2((double)plan->bytes[plan->n_bytes - 1]));
  cct_text_add(&figure->numbers, "SERIES = %d; EXP_LO = %d; EXP_HI = %d; EXP_STEP = %d; ", series, from, to,
               to - from > 8 ? 3 : 1);
  figure->width = 860;
  figure->narrow_width = 380;
}

void cct_tune_gain_figure(const struct cct_tune *tune, struct cct_figure *figure) {
  const struct cct_tune_plan *plan = &tune->plan;
  double lo = 1, hi = 1;
  char how[120];
  snprintf(figure->name, sizeof figure->name, "gain");
  snprintf(figure->heading, sizeof figure->heading, "What does each size gain?");
  figure->body = cct_asset_size_gp;
  const struct cct_ordered *any = ratio_of(tune, 0, 0);
  snprintf(how, sizeof how, "median and ordered ratios %zu to %zu of %zu", any->rank, any->n - any->rank + 1, any->n);
  add_title(tune, "Tuned against NCCL's default, ratio of times", any->n ? how : "", figure);
  cct_figure_next(figure);
  for (int k = 0; k < plan->n_kinds; k++) {
    cct_text_add(&figure->data, "%d\t", k + 1);
    cct_figure_field(figure, cct_tune_kind_name(plan->kinds[k]), 48, "\n");
  }
  for (int k = 0; k < plan->n_kinds; k++) {
    cct_figure_next(figure);
    cct_text_add(&figure->data, "# bytes\tratio\tlo\thi\n");
    const struct cct_ordered *best = NULL;
    int at = 0;
    for (int s = 0; s < plan->n_bytes; s++) {
      const struct cct_ordered *ratio = ratio_of(tune, k, s);
      if (!ratio->n)
        continue;
      cct_text_add(&figure->data, "%lld\t%.6g\t%.6g\t%.6g\n", (long long)plan->bytes[s], ratio->median, ratio->lo,
                   ratio->hi);
      lo = fmin(lo, ratio->lo);
      hi = fmax(hi, ratio->hi);
      if (!best || ratio->median < best->median) {
        best = ratio;
        at = s;
      }
    }
    char size[32];
    if (best)
      cct_text_add(&figure->alt, "%s: at best %.3f, at %s. ", cct_tune_kind_name(plan->kinds[k]), best->median,
                   cct_bytes_text((double)plan->bytes[at], size));
  }
  double margin = 0.08 * (hi - lo) + 0.005;
  set_axis(tune, figure, plan->n_kinds);
  cct_text_add(&figure->numbers, "LO = %.6g; HI = %.6g", lo - margin, hi + margin);
  cct_text_add(&figure->caption, "Below 1x the tuned is faster; %s. ",
               tune->is_verified ? "alternating blocks of the verification"
                                 : "the processes that judged. Where the same ran either way, a difference is noise");
  figure->height = 380 + 20 * plan->n_kinds;
  figure->narrow_height = 400 + 20 * plan->n_kinds;
}

static int label_at(char labels[MOST_LABELS][64], int n, const char *text) {
  int i = 0;
  while (i < n && strcmp(labels[i], text))
    i++;
  return i;
}

/* Which of the labels a size has, from 1; a new one is added. */
static int label_number(const struct cct_tune_pick *pick, char labels[MOST_LABELS][64], int *n) {
  char text[64];
  if (pick->is_held)
    snprintf(text, sizeof text, "held to NCCL's default");
  else
    cct_tune_ran_text(&pick->rule, text);
  int i = label_at(labels, *n, text);
  if (i == MOST_LABELS - 1)
    snprintf(text, sizeof text, "others");
  i = i < MOST_LABELS - 1 ? i : label_at(labels, *n, text);
  if (i == *n)
    snprintf(labels[(*n)++], sizeof labels[0], "%s", text);
  return i + 1;
}

void cct_tune_choices_figure(const struct cct_tune *tune, struct cct_figure *figure) {
  const struct cct_tune_plan *plan = &tune->plan;
  int own = tune->decision.channels * plan->each, n = 0, widest = 0;
  int numbers[CCT_TUNE_MOST_KINDS][CCT_TUNE_MOST_SIZES] = {0};
  char labels[MOST_LABELS][64], name[80];
  for (int k = 0; k < plan->n_kinds; k++)
    for (int s = 0; s < plan->n_bytes; s++)
      if (cct_tune_setting(tune)->picks[k][s].choice != own)
        numbers[k][s] = label_number(&cct_tune_setting(tune)->picks[k][s], labels, &n);
  snprintf(figure->name, sizeof figure->name, "choices");
  snprintf(figure->heading, sizeof figure->heading, "Which choice holds for which size?");
  figure->body = cct_asset_choices_gp;
  add_title(tune, "The rules, by collective and size", cct_tune_channels_text(tune, name), figure);
  cct_figure_next(figure);
  for (int i = 0; i < n; i++) {
    snprintf(name, sizeof name, "%d: %s", i + 1, labels[i]);
    cct_text_add(&figure->data, "%d\t", i + 1);
    cct_figure_field(figure, name, 64, "\n");
  }
  cct_text_add(&figure->data, "%d\t", ++n);
  cct_figure_field(figure, "no rule: NCCL's own", 48, "\n");
  cct_figure_next(figure);
  for (int k = 0; k < plan->n_kinds; k++) {
    int n_rules = 0;
    for (int s = 0; s < plan->n_bytes; s++) {
      cct_text_add(&figure->data, "%lld\t%d\t%d\n", (long long)plan->bytes[s], k, numbers[k][s] ? numbers[k][s] : n);
      n_rules += numbers[k][s] > 0;
    }
    cct_text_add(&figure->alt, "%s: %d of %d sizes by a rule. ", cct_tune_kind_name(plan->kinds[k]), n_rules,
                 plan->n_bytes);
  }
  cct_figure_next(figure);
  for (int k = 0; k < plan->n_kinds; k++) {
    int width = cct_text_width(cct_tune_kind_name(plan->kinds[k]), 24);
    widest = width > widest ? width : widest;
    cct_text_add(&figure->data, "%d\t", k);
    cct_figure_field(figure, cct_tune_kind_name(plan->kinds[k]), 24, "\n");
  }
  set_axis(tune, figure, n);
  double gap = plan->n_bytes > 1 ? log2((double)plan->bytes[1] / (double)plan->bytes[0]) : 1;
  cct_text_add(&figure->numbers, "ROWS = %d; LABELS = %d; EXP_GAP = %.6g", plan->n_kinds, widest, gap);
  cct_text_add(&figure->caption, "Grey: no rule, since no other choice was shown to gain 1 %%. ");
  figure->height = 150 + 20 * n + 46 * plan->n_kinds;
  figure->narrow_height = 180 + 20 * n + 60 * plan->n_kinds;
}
