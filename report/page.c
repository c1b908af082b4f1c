/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "report/assets.h"
#include "report/html.h"
#include "report/names.h"
#include "report/numbers.h"
#include "report/overlap.h"
#include "report/page_parts.h"
#include "report/spread.h"
#include "report/verdict.h"

static void head(const struct cct_report *report, struct cct_text *html) {
  const char *question = NULL;
  for (int i = 0; i < report->runs->n_runs && !question; i++)
    question = report->runs->questions[i];
  cct_text_add(html, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
                     "content=\"width=device-width, initial-scale=1\">\n<title>cctax: ");
  cct_html_text(html, question ? question : "what confidential computing costs");
  cct_text_add(html, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header>\n<h1>", cct_asset_page_css);
  if (question)
    cct_html_text(html, question);
  else if (report->is_null)
    cct_text_add(html, "One condition twice: what this machine cannot tell apart");
  else
    cct_text_add(html, "What confidential computing costs");
  cct_text_add(html, "</h1>\n<p class=\"lede\"><span class=\"chip\">");
  cct_html_text(html, cct_report_label(report));
  cct_text_add(html, "</span>");
  for (int arm = 1; arm < report->n_arms; arm++) {
    cct_html_text(html, report->arms[arm]);
    cct_text_add(html, arm + 1 < report->n_arms ? ", " : " against ");
  }
  cct_html_text(html, report->arms[0]);
  int cells = 0;
  for (int c = 0; c < report->n_cells; c++) /* a row is a metric of a cell */
    cells += report->cells[c].is_first;
  cct_text_add(html, "; %d cell%s, %d block%s, %d boot%s</p>\n", cells, cells == 1 ? "" : "s", report->runs->n_blocks,
               report->runs->n_blocks == 1 ? "" : "s", report->runs->n_boots, report->runs->n_boots == 1 ? "" : "s");
}

static void shared(const struct cct_report *report, struct cct_text *html) {
  struct cct_text words = {0};
  cct_names_shared(report, &words);
  if (words.length) {
    cct_text_add(html, "<p class=\"note\">");
    cct_html_text(html, words.s);
    cct_text_add(html, "</p>\n");
  }
  html->is_failed |= words.is_failed;
  cct_text_free(&words);
}

static void stamps(const struct cct_report *report, struct cct_text *html) {
  for (int i = 0; i < report->gate.n_allowed; i++) {
    const struct cct_gate_finding *f = &report->gate.allowed[i];
    cct_text_add(html, "<p class=\"stamp\"><b>Compared although %s fact ", cct_fact_class_name(f->fact_class));
    cct_html_text(html, f->name);
    cct_text_add(html, " differs</b> (--allow): ");
    cct_html_text(html, f->left);
    cct_text_add(html, " against ");
    cct_html_text(html, f->right);
    cct_text_add(html, ". The arms are not strictly comparable.</p>\n");
  }
  if (report->runs->n_unfinished)
    cct_text_add(html, "<p class=\"stamp\">%d unfinished block%s left out; cctax run --resume finishes the run.</p>\n",
                 report->runs->n_unfinished, report->runs->n_unfinished == 1 ? " was" : "s were");
}

static void tile(struct cct_text *html, const char *big, const char *small) {
  cct_text_add(html, "<div><b>%s</b><span>", big);
  cct_html_text(html, small);
  cct_text_add(html, "</span></div>\n");
}

/* What a reader takes home. One number where one number is true of all cells; else what is typical of each kind of step
 * and how far it goes. */
static enum cct_status tiles(const struct cct_report *report, int arm, struct cct_text *html) {
  struct cct_spread all, spread;
  char percent[32], lo[CCT_SCOPE_TEXT], hi[32], words[256];
  enum cct_status status = cct_spread_of(report, arm, -1, &all);
  if (status || !all.n)
    return status;
  const char *comma = report->n_arms > 2 ? ", " : "", *name = report->n_arms > 2 ? report->arms[arm] : "";
  if (!cct_spread_is_wide(&all)) {
    const struct cct_comparison *c = &report->summary[arm].mean;
    double half = c->df > 0 ? (cct_time_overhead_pct(c->hi) - cct_time_overhead_pct(c->lo)) / 2 : NAN;
    snprintf(words, sizeof words, "time%s%s%s", all.n > 1 ? ", geometric mean" : "", comma, name);
    size_t n = strlen(words);
    if (c->df > 0)
      snprintf(words + n, sizeof words - n, ", 95 %% interval %s to %s",
               cct_percent_text(cct_time_overhead_pct(c->lo), half, lo),
               cct_percent_text(cct_time_overhead_pct(c->hi), half, hi));
    tile(html, cct_percent_text(cct_time_overhead_pct(c->effect), half, percent), words);
    const struct cct_arm_summary *throughput = &report->throughput[arm];
    if (throughput->n_cells) {
      cct_throughput_scope(report, arm, lo);
      snprintf(words, sizeof words, "throughput%s", lo);
      tile(html, cct_percent_text(-cct_throughput_loss_pct(throughput->mean.effect), half, percent), words);
    }
    return CCT_OK;
  }
  for (int kind = 0; !status && kind < cct_names_kinds(report); kind++) {
    status = cct_spread_of(report, arm, kind, &spread);
    if (status || !spread.n || (report->has_steps && !report->cells[spread.most->cell].model))
      continue;
    cct_percent_text(cct_time_overhead_pct(spread.least->comparison.effect), NAN, lo);
    cct_percent_text(cct_time_overhead_pct(spread.most->comparison.effect), NAN, hi);
    if (spread.n == 1)
      snprintf(words, sizeof words, "%s, time%s%s", cct_kind_name(report, kind), comma, name);
    else
      snprintf(words, sizeof words, "%s, time, median of %d cells%s%s; %s to %s", cct_kind_name(report, kind), spread.n,
               comma, name, lo, hi);
    tile(html, cct_percent_text(cct_time_overhead_pct(spread.median), NAN, percent), words);
  }
  return status;
}

/* Lines of a verdict's part; several are a list. */
static void put_lines(struct cct_text *html, const char *text) {
  const char *first = strchr(text, '\n');
  int is_list = first && first[1];
  for (const char *at = text; *at;) {
    size_t n = strcspn(at, "\n");
    char line[1024];
    snprintf(line, sizeof line, "%.*s", (int)n, at);
    cct_text_add(html, is_list ? "<p>" : "");
    cct_html_text(html, line);
    cct_text_add(html, is_list ? "</p>" : "");
    at += n + (at[n] == '\n');
  }
}

static enum cct_status verdict(const struct cct_report *report, struct cct_text *html) {
  enum cct_status status = CCT_OK;
  cct_text_add(html, "<section class=\"verdict\" aria-label=\"verdict\">\n<div class=\"big\">\n");
  for (int arm = 1; !status && arm < report->n_arms; arm++)
    status = tiles(report, arm, html);
  cct_text_add(html, "</div>\n<dl>\n");
  for (int part = 0; part < CCT_VERDICT_PART_COUNT; part++) {
    struct cct_text text = {0};
    cct_verdict_text(report, (enum cct_verdict_part)part, &text);
    cct_text_add(html, "<dt>%s</dt><dd>", cct_verdict_title((enum cct_verdict_part)part));
    put_lines(html, text.s ? text.s : "-");
    cct_text_add(html, "</dd>\n");
    cct_text_free(&text);
  }
  cct_text_add(html, "</dl>\n</section>\n");
  return status;
}

enum cct_status cct_page_figure(const struct cct_figure *figure, const char *directory, struct cct_text *html) {
  static const char *const forms[] = {"", "-narrow"};
  char path[4096], name[80];
  enum cct_status status = CCT_OK;
  const char *alt = figure->alt.s ? figure->alt.s : figure->heading;
  cct_text_add(html, "<figure>\n");
  for (int k = 0; !status && k < 2; k++) {
    snprintf(path, sizeof path, "%s/%s%s.svg", directory, figure->name, forms[k]);
    snprintf(name, sizeof name, "%s%s", figure->name, forms[k]);
    status = cct_svg_inline(path, name, alt, html);
  }
  cct_text_add(html, "<figcaption>");
  cct_html_text(html, figure->caption.s ? figure->caption.s : "");
  cct_text_add(
      html,
      "Redraw: <a href=\"figures/%s.dat\">data</a>, <a href=\"figures/%s.gp\">script</a>; as <a "
      "href=\"figures/%s.png\">PNG</a>, <a href=\"figures/%s.pdf\">PDF</a>, <a href=\"figures/%s.svg\">SVG</a>."
      "</figcaption>\n</figure>\n",
      figure->name, figure->name, figure->name, figure->name, figure->name);
  return status;
}

enum cct_status cct_page_build(const struct cct_report *report, const struct cct_figures *figures,
                               const char *figures_directory, struct cct_text *html) {
  enum cct_status status = CCT_OK;
  head(report, html);
  shared(report, html);
  cct_text_add(html, "</header>\n");
  stamps(report, html);
  status = verdict(report, html);
  for (int i = 0; !status && i < figures->n; i++) {
    const struct cct_figure *figure = &figures->items[i];
    cct_text_add(html, "<section id=\"%s\">\n<h2>%s</h2>\n", figure->name, figure->heading);
    status = cct_page_figure(figure, figures_directory, html);
    if (!status && !strcmp(figure->name, "published"))
      status = cct_page_contradictions(html);
    if (!status && !strcmp(figure->name, "noise"))
      cct_page_noise(report, html);
    cct_text_add(html, "</section>\n");
  }
  if (!cct_figures_find(figures, "noise")) {
    cct_text_add(html, "<section id=\"noise\">\n<h2>How steady was the machine?</h2>\n");
    cct_page_noise(report, html);
    cct_text_add(html, "</section>\n");
  }
  if (!status)
    status = cct_page_steps(report, html);
  cct_page_numbers(report, html);
  cct_page_provenance(report, html);
  cct_text_add(html,
               "<footer>cctax %s. Overhead in both forms: time added over the baseline, throughput lost of it. Method: "
               "docs/statistics.md. This page loads nothing and runs nothing.</footer>\n</body>\n</html>\n",
               CCT_VERSION);
  if (!status && html->is_failed)
    status = cct_fail(CCT_NOMEM, "index.html: out of memory");
  return status;
}
