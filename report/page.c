/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "report/assets.h"
#include "report/html.h"
#include "report/page_parts.h"
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
  cct_text_add(html, "; %d cell%s, %d block%s, %d boot%s</p>\n</header>\n", report->n_cells,
               report->n_cells == 1 ? "" : "s", report->runs->n_blocks, report->runs->n_blocks == 1 ? "" : "s",
               report->runs->n_boots, report->runs->n_boots == 1 ? "" : "s");
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

static void verdict(const struct cct_report *report, struct cct_text *html) {
  cct_text_add(html, "<section class=\"verdict\" aria-label=\"verdict\">\n<div class=\"big\">\n");
  for (int arm = 1; arm < report->n_arms; arm++) {
    const struct cct_comparison *c = &report->summary[arm].mean;
    char percent[32], lo[32], hi[32];
    if (!report->summary[arm].n_cells)
      continue;
    double half = c->df > 0 ? (cct_time_overhead_pct(c->hi) - cct_time_overhead_pct(c->lo)) / 2 : NAN;
    cct_text_add(html, "<div><b>%s</b><span>time, ", cct_percent_text(cct_time_overhead_pct(c->effect), half, percent));
    if (c->df > 0 && c->se > 1e-12)
      cct_text_add(html, "95 %% interval %s to %s, ", cct_percent_text(cct_time_overhead_pct(c->lo), half, lo),
                   cct_percent_text(cct_time_overhead_pct(c->hi), half, hi));
    cct_html_text(html, report->arms[arm]);
    cct_text_add(html, "</span></div>\n<div><b>%s</b><span>throughput</span></div>\n",
                 cct_percent_text(-cct_throughput_loss_pct(c->effect), half, percent));
  }
  cct_text_add(html, "</div>\n<dl>\n");
  for (int part = 0; part < CCT_VERDICT_PART_COUNT; part++) {
    struct cct_text text = {0};
    cct_verdict_text(report, (enum cct_verdict_part)part, &text);
    cct_text_add(html, "<dt>%s</dt><dd>", cct_verdict_title((enum cct_verdict_part)part));
    cct_html_text(html, text.s ? text.s : "-");
    cct_text_add(html, "</dd>\n");
    cct_text_free(&text);
  }
  cct_text_add(html, "</dl>\n</section>\n");
}

static enum cct_status put_figure(const struct cct_figure *figure, const char *directory, struct cct_text *html) {
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
  stamps(report, html);
  verdict(report, html);
  for (int i = 0; !status && i < figures->n; i++) {
    const struct cct_figure *figure = &figures->items[i];
    cct_text_add(html, "<section id=\"%s\">\n<h2>%s</h2>\n", figure->name, figure->heading);
    status = put_figure(figure, figures_directory, html);
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
