/* SPDX-License-Identifier: Apache-2.0
 * The comparison as a terminal shows it: cells by kind, what all share once, above the table, the verdict below it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/figures.h"
#include "report/names.h"
#include "report/numbers.h"
#include "report/verdict.h"

enum {
  WIDTH = 80, /* of running text; the table is as wide as its cells' names make it */
  COLUMNS = 7,
  FIELD = 160
};

/* `s` in lines of at most WIDTH, each behind `indent` blanks; words are never broken. */
static void add_wrapped(struct cct_text *text, const char *s, int indent) {
  while (*s) {
    int line = (int)strcspn(s, "\n"), room = WIDTH - indent, n = line;
    if (cct_text_width(s, room + 1) > room) {
      for (n = 0; n < line;) { /* as many whole words as there is room for, and one at least */
        int word = n + (s[n] == ' ');
        word += (int)strcspn(s + word, " \n");
        if (n && word > room)
          break;
        n = word < line ? word : line;
      }
      n = n < line ? n : line;
    }
    cct_text_add(text, "%*s%.*s\n", indent, "", n, s);
    s += n;
    s += strspn(s, " ");
    s += *s == '\n';
  }
}

struct row {
  char field[COLUMNS][FIELD]; /* name, arm, baseline, median, time, throughput, verdict and label */
};

static void fill(const struct cct_report *report, const struct cct_result *result, struct row *row) {
  const struct cct_report_cell *cell = &report->cells[result->cell];
  const struct cct_comparison *c = &result->comparison;
  struct cct_told told;
  int has_kinds = cct_names_kinds(report) > 1, is_mixed = !strcmp(cct_report_label(report), "mixed labels");
  char text[96], value[48];
  int sign = strcmp(cell->metric.better, "higher") ? 1 : -1;
  cct_cell_name(report, result->cell, has_kinds ? "workload" : "", text, sizeof text);
  snprintf(row->field[0], FIELD, "%s%s%s%s", has_kinds ? "  " : "", text, cct_cell_names_metric(cell) ? ", " : "",
           cct_cell_names_metric(cell) ? cell->metric.name : "");
  snprintf(row->field[1], FIELD, "%s", report->n_arms > 2 ? report->arms[result->arm] : "");
  for (int k = 0; k < 2; k++)
    snprintf(row->field[2 + k], FIELD, "%s", cct_value_text(exp(sign * c->centre[k]), cell->metric.unit, value));
  cct_tell_result(report, result, &told);
  snprintf(row->field[4], FIELD, "%s", told.time);
  snprintf(row->field[5], FIELD, "%s", told.throughput);
  snprintf(row->field[6], FIELD, "%.60s%s%.90s", told.verdict, is_mixed ? "  " : "", is_mixed ? result->label : "");
}

static void add_row(struct cct_text *text, const struct row *row, const int *widths) {
  const char *last = row->field[COLUMNS - 1];
  for (int k = 0; k < COLUMNS; k++)
    if (widths[k] && k < COLUMNS - 1)
      cct_text_add(text, "%s%*s%s%*s", k ? "  " : "", k < 2 ? 0 : widths[k] - cct_text_width(row->field[k], FIELD), "",
                   row->field[k], k < 2 ? widths[k] - cct_text_width(row->field[k], FIELD) : 0, "");
  cct_text_add(text, "%s%s\n", *last ? "  " : "", last);
}

static void add_rows(const struct cct_report *report, struct cct_text *text) {
  struct row row = {{"", "arm", "baseline", "median", "time", "throughput", ""}};
  int widths[COLUMNS] = {4, 0, 8, 8, 8, 10, 0};
  if (report->n_arms > 2)
    widths[1] = 3;
  else
    snprintf(row.field[2], FIELD, "%.12s", report->arms[0]);
  struct row head = row;
  for (int r = 0; r < report->n_results; r++) {
    fill(report, &report->results[r], &row);
    for (int k = 0; k < COLUMNS; k++)
      if (cct_text_width(row.field[k], FIELD) > widths[k])
        widths[k] = cct_text_width(row.field[k], FIELD);
  }
  add_row(text, &head, widths);
  for (int kind = 0; kind < cct_names_kinds(report); kind++) {
    if (cct_names_kinds(report) > 1)
      cct_text_add(text, "%s\n", cct_kind_name(report, kind));
    for (int r = 0; r < report->n_results; r++) {
      if (report->cells[report->results[r].cell].kind_index != kind)
        continue;
      fill(report, &report->results[r], &row);
      add_row(text, &row, widths);
      if (*report->results[r].reason)
        add_wrapped(text, report->results[r].reason, 6);
      if (*report->results[r].remark)
        add_wrapped(text, report->results[r].remark, 6);
    }
  }
}

void cct_report_to_table(const struct cct_report *report, struct cct_text *text) {
  struct cct_text words = {0};
  cct_names_shared(report, &words);
  add_wrapped(text, words.s ? words.s : "", 0);
  cct_text_add(text, "%slabel: %s; time and throughput in per cent of %s\n\n", report->is_null ? "A/A; " : "",
               cct_report_label(report), report->arms[0]);
  add_rows(report, text);
  for (int part = 0; part < CCT_VERDICT_PART_COUNT; part++) {
    cct_text_add(text, "\n%s\n", cct_verdict_title((enum cct_verdict_part)part));
    words.length = 0;
    cct_verdict_text(report, (enum cct_verdict_part)part, &words);
    add_wrapped(text, words.length ? words.s : "-", 2);
  }
  for (int i = 0; i < report->gate.n_allowed; i++) {
    const struct cct_gate_finding *f = &report->gate.allowed[i];
    cct_text_add(text, "ALLOWED: %s fact '%s' differs ('%s', '%s'); these arms are not strictly comparable\n",
                 cct_fact_class_name(f->fact_class), f->name, f->left, f->right);
  }
  text->is_failed |= words.is_failed;
  cct_text_free(&words);
}
