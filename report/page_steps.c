/* SPDX-License-Identifier: Apache-2.0
 * The sections of the page on training and on what collectives expose. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/html.h"
#include "report/overlap.h"
#include "report/numbers.h"
#include "report/page_parts.h"

#define OPEN_ROWS 12 /* a longer table is folded */

static void number(struct cct_text *html, const char *format, double value) {
  char text[48] = "-";
  if (isfinite(value))
    snprintf(text, sizeof text, format, value);
  cct_page_cell(html, "", text);
}

static void digits(struct cct_text *html, double value) {
  char text[32] = "-";
  cct_page_cell(html, "", isfinite(value) ? cct_digits_text(value, 4, text) : text);
}

static void time(struct cct_text *html, double us) {
  char text[48];
  cct_page_cell(html, "", cct_value_text(us, "us", text));
}

static void begin(struct cct_text *html, const char *what, int rows, const char *heads) {
  cct_text_add(html,
               "<details%s><summary>%d %s%s</summary>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>cell</th>"
               "<th class=\"text\">arm</th>%s</tr>\n",
               rows <= OPEN_ROWS ? " open" : "", rows, what, rows == 1 ? "" : "s", heads);
}

static void first_cells(const struct cct_report *report, int cell, int arm, struct cct_text *html) {
  cct_text_add(html, "<tr>");
  cct_page_cell(html, "", report->cells[cell].title);
  cct_page_cell(html, " class=\"text\"", report->arms[arm]);
}

static void put_training(const struct cct_report *report, struct cct_text *html) {
  struct cct_training t;
  int rows = 0;
  for (int c = 0; c < report->n_cells; c++)
    for (int a = 0; a < report->n_arms; a++)
      rows += cct_training_of(report, c, a, &t);
  if (!rows)
    return;
  cct_text_add(html, "<section id=\"training\">\n<h2>How fast is training?</h2>\n<p class=\"note\">s a step holds a "
                     "checkpoint's part of it, 1 in N. Model FLOPs: 6 a weight and token, and the causal half of "
                     "attention, no recomputation; hardware FLOPs: what a GPU performs (docs/training.md).</p>\n");
  begin(html, "row", rows,
        "<th>s a step</th><th>a checkpoint adds</th><th>tokens/s</th><th>model TFLOP/s a GPU</th>"
        "<th>hardware TFLOP/s a GPU</th>");
  for (int c = 0; c < report->n_cells; c++)
    for (int a = 0; a < report->n_arms; a++) {
      if (!cct_training_of(report, c, a, &t))
        continue;
      first_cells(report, c, a, html);
      digits(html, t.step_s);
      number(html, "%.3g s", t.checkpoint_s);
      digits(html, t.tokens_s);
      digits(html, t.model_tflop_s);
      digits(html, t.hardware_tflop_s);
      cct_text_add(html, "</tr>\n");
    }
  cct_text_add(html, "</table></div></details>\n</section>\n");
}

static void put_exposed(const struct cct_report *report, struct cct_text *html) {
  const struct cct_overlap *o = report->overlap;
  if (!o->n_exposed)
    return;
  cct_text_add(html, "<section id=\"collectives\">\n<h2>What of the collectives is hidden behind compute?</h2>\n<p "
                     "class=\"note\">Of one rank and step: what it spends in collectives of a kind and group, waiting "
                     "for others included, and how much of that no compute of the rank covers. From a traced step, "
                     "which enters no time above.</p>\n");
  begin(html, "row", o->n_exposed,
        "<th class=\"text\">collective over</th><th>spent</th><th>exposed</th><th>exposed</th><th>hidden</th>");
  for (int i = 0; i < o->n_exposed; i++) {
    const struct cct_exposed *e = &o->exposed[i];
    const char *group = strchr(e->name, '.');
    char text[64];
    snprintf(text, sizeof text, "%.*s over %s", (int)(group ? group - e->name : 40), e->name, group ? group + 1 : "?");
    double share = e->spent_us > 0 ? 100 * e->exposed_us / e->spent_us : NAN;
    first_cells(report, e->cell, e->arm, html);
    cct_page_cell(html, " class=\"text\"", text);
    time(html, e->spent_us);
    time(html, e->exposed_us);
    number(html, "%.1f %%", share);
    number(html, "%.1f %%", 100 - share);
    cct_text_add(html, "</tr>\n");
  }
  cct_text_add(html, "</table></div></details>\n</section>\n");
}

static void put_order(const struct cct_report *report, const struct cct_order *orders, int n, struct cct_text *html) {
  if (!n)
    return;
  cct_text_add(
      html,
      "<section id=\"order\">\n<h2>Do collectives come in the order of their counted bytes?</h2>\n<p "
      "class=\"note\">Pairs of cells of one model and as many tokens. Bytes: what a rank's collectives over tp and ep "
      "put on the wire in a step. Time: what they take without waiting, in traced steps. Asked where the "
      "bytes differ by %.0f %% and both have a collective of %.0f MiB.</p>\n",
      100 * (CCT_ORDER_RATIO - 1), CCT_ORDER_BYTES / 1024 / 1024);
  begin(html, "pair", n,
        "<th class=\"text\">fewer bytes: the cell; more:</th><th>bytes</th><th>time</th><th>95 % interval</th>"
        "<th class=\"text\">verdict</th>");
  for (int i = 0; i < n; i++) {
    const struct cct_order *o = &orders[i];
    const struct cct_moved *less = &report->overlap->moved[o->less], *more = &report->overlap->moved[o->more];
    char interval[64] = "-";
    if (o->comparison.df > 0)
      snprintf(interval, sizeof interval, "x%.3f to x%.3f", exp(o->comparison.lo), exp(o->comparison.hi));
    first_cells(report, less->cell, less->arm, html);
    cct_page_cell(html, " class=\"text\"", report->cells[more->cell].title);
    number(html, "x%.3f", o->counted);
    number(html, "x%.3f", exp(o->comparison.effect));
    cct_page_cell(html, "", interval);
    cct_page_cell(html, " class=\"text\"", cct_order_name(o->verdict));
    cct_text_add(html, "</tr>\n");
  }
  cct_text_add(html, "</table></div></details>\n</section>\n");
}

enum cct_status cct_page_steps(const struct cct_report *report, struct cct_text *html) {
  struct cct_order *orders;
  int n;
  enum cct_status status = cct_order_list(report, &orders, &n);
  if (status)
    return status;
  put_training(report, html);
  put_exposed(report, html);
  put_order(report, orders, n, html);
  free(orders);
  return CCT_OK;
}
