/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "report/assets.h"
#include "report/html.h"
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
    if (c->df > 0)
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
  cct_text_add(html, "<section id=\"%s\">\n<h2>%s</h2>\n<figure>\n", figure->name, figure->heading);
  for (int k = 0; !status && k < 2; k++) {
    snprintf(path, sizeof path, "%s/%s%s.svg", directory, figure->name, forms[k]);
    snprintf(name, sizeof name, "%s%s", figure->name, forms[k]);
    status = cct_svg_inline(path, name, alt, html);
  }
  cct_text_add(html, "<figcaption>");
  cct_html_text(html, alt);
  cct_text_add(
      html,
      "<br>Redraw: <a href=\"figures/%s.dat\">data</a>, <a href=\"figures/%s.gp\">script</a>; as <a "
      "href=\"figures/%s.png\">PNG</a>, <a href=\"figures/%s.pdf\">PDF</a>, <a href=\"figures/%s.svg\">SVG</a>."
      "</figcaption>\n</figure>\n</section>\n",
      figure->name, figure->name, figure->name, figure->name, figure->name);
  return status;
}

static void cell_text(struct cct_text *html, const char *tag, const char *text) {
  cct_text_add(html, "<td%s>", tag);
  cct_html_text(html, text);
  cct_text_add(html, "</td>");
}

static void value_cell(struct cct_text *html, const struct cct_report_cell *cell, double centre) {
  if (isfinite(centre))
    cct_text_add(html, "<td>%.4g ", exp(strcmp(cell->metric.better, "higher") ? centre : -centre));
  else
    cct_text_add(html, "<td>- ");
  cct_html_text(html, cell->metric.unit);
  cct_text_add(html, "</td>");
}

static void numbers(const struct cct_report *report, struct cct_text *html) {
  cct_text_add(
      html,
      "<section id=\"numbers\">\n<h2>All numbers</h2>\n<p class=\"note\">The same rows are in <a "
      "href=\"report.csv\">report.csv</a> and <a href=\"report.json\">report.json</a>. ~ means: not told "
      "apart at 95 %%.</p>\n<details%s><summary>%d comparison%s</summary>\n<div class=\"scroll\" tabindex=\"0\">"
      "<table>\n<tr><th>cell</th><th class=\"text\">arm</th><th>baseline</th><th>median</th><th>time</th>"
      "<th>throughput</th><th>smallest visible</th><th>verdict</th><th class=\"text\">label</th><th "
      "class=\"text\">remark</th></tr>\n",
      report->n_results <= CCT_FIGURE_ROWS ? " open" : "", report->n_results, report->n_results == 1 ? "" : "s");
  for (int r = 0; r < report->n_results; r++) {
    const struct cct_result *result = &report->results[r];
    const struct cct_report_cell *cell = &report->cells[result->cell];
    const struct cct_comparison *c = &result->comparison;
    char effect[96], loss[32] = "-", visible[32] = "-";
    if (isfinite(c->effect))
      cct_percent_text(-cct_throughput_loss_pct(c->effect), NAN, loss);
    if (isfinite(result->smallest_visible))
      snprintf(visible, sizeof visible, "%.2g %%", cct_time_overhead_pct(result->smallest_visible));
    cct_text_add(html, "<tr>");
    cell_text(html, "", cell->title);
    cell_text(html, " class=\"text\"", report->arms[result->arm]);
    value_cell(html, cell, c->centre[0]);
    value_cell(html, cell, c->centre[1]);
    cell_text(html, "", cct_effect_text(c, effect));
    cell_text(html, "", loss);
    cell_text(html, "", visible);
    cct_text_add(html, "<td class=\"%s\">%s</td>",
                 result->verdict == CCT_VERDICT_SAME ? "same" : cct_verdict_name(result->verdict),
                 cct_verdict_name(result->verdict));
    cell_text(html, " class=\"text\"", result->label);
    cell_text(html, " class=\"wrap\"", result->reason);
    cct_text_add(html, "</tr>\n");
  }
  cct_text_add(html, "</table></div></details>\n</section>\n");
}

enum cct_status cct_page_build(const struct cct_report *report, const struct cct_figures *figures,
                               const char *figures_directory, struct cct_text *html) {
  enum cct_status status = CCT_OK;
  head(report, html);
  stamps(report, html);
  verdict(report, html);
  for (int i = 0; !status && i < figures->n; i++)
    status = put_figure(&figures->items[i], figures_directory, html);
  numbers(report, html);
  cct_text_add(html,
               "<footer>cctax %s. Overhead in both forms: time added over the baseline, throughput lost of it. Method: "
               "docs/statistics.md. This page loads nothing and runs nothing.</footer>\n</body>\n</html>\n",
               CCT_VERSION);
  if (!status && html->is_failed)
    status = cct_fail(CCT_NOMEM, "index.html: out of memory");
  return status;
}
