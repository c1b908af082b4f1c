/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/page_parts.h"
#include "report/published.h"
#include "report/numbers.h"

void cct_page_cell(struct cct_text *html, const char *tag, const char *text) {
  cct_text_add(html, "<td%s>", tag);
  cct_html_text(html, text);
  cct_text_add(html, "</td>");
}

static void value_cell(struct cct_text *html, const struct cct_report_cell *cell, double centre) {
  char text[48];
  cct_page_cell(html, "",
                cct_value_text(exp(strcmp(cell->metric.better, "higher") ? centre : -centre), cell->metric.unit, text));
}

static int has_mixed_labels(const struct cct_report *report) {
  return !strcmp(cct_report_label(report), "mixed labels");
}

static int has_visible(const struct cct_report *report) {
  for (int r = 0; r < report->n_results; r++)
    if (report->results[r].smallest_visible > 1e-12)
      return 1;
  return 0;
}

static int has_remarks(const struct cct_report *report) {
  for (int r = 0; r < report->n_results; r++)
    if (*report->results[r].reason || *report->results[r].remark)
      return 1;
  return 0;
}

static void number_row(const struct cct_report *report, const struct cct_result *result, int with_arm, int with_remark,
                       struct cct_text *html) {
  const struct cct_report_cell *cell = &report->cells[result->cell];
  const struct cct_comparison *c = &result->comparison;
  static const char *const classes[] = {"slower", "faster"};
  struct cct_told told;
  char visible[32] = "-", number[32];
  cct_tell_result(report, result, &told);
  if (result->smallest_visible > 1e-12)
    snprintf(visible, sizeof visible, "%.24s %%",
             cct_digits_text(cct_time_overhead_pct(result->smallest_visible), 2, number));
  cct_text_add(html, "<tr>");
  cct_page_cell(html, "", cell->title);
  if (with_arm)
    cct_page_cell(html, " class=\"text\"", report->arms[result->arm]);
  value_cell(html, cell, c->centre[0]);
  value_cell(html, cell, c->centre[1]);
  cct_page_cell(html, "", told.time);
  cct_page_cell(html, "", told.throughput);
  if (has_visible(report))
    cct_page_cell(html, "", visible);
  cct_text_add(html, "<td class=\"%s\">%s</td>",
               result->verdict == CCT_VERDICT_REFUSED ? "refused"
               : result->verdict == CCT_VERDICT_SAME  ? "same"
                                                      : classes[c->effect < 0],
               told.verdict);
  if (has_mixed_labels(report))
    cct_page_cell(html, " class=\"text\"", result->label);
  if (with_remark) {
    char text[sizeof result->reason + sizeof result->remark + 4];
    snprintf(text, sizeof text, "%s%s%s", result->reason, *result->reason && *result->remark ? "; " : "",
             result->remark);
    cct_page_cell(html, " class=\"wrap\"", text);
  }
  cct_text_add(html, "</tr>\n");
}

void cct_page_numbers(const struct cct_report *report, struct cct_text *html) {
  int with_arm = report->n_arms > 2, with_remark = has_remarks(report);
  cct_text_add(html, "<section id=\"numbers\">\n<h2>All numbers</h2>\n<p class=\"note\">All ");
  cct_html_text(html, cct_report_label(report));
  cct_text_add(html,
               ". The same rows are in <a href=\"report.csv\">report.csv</a> and <a href=\"report.json\">report.json"
               "</a>. ~ means: not told apart at 95 %%. Time: added over the baseline%s.</p>\n<details%s><summary>%d "
               "comparison%s</summary>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>cell</th>%s<th>",
               has_visible(report) ? ", with its 95 % interval" : "",
               report->n_results <= CCT_FIGURE_ROWS ? " open" : "", report->n_results,
               report->n_results == 1 ? "" : "s", with_arm ? "<th class=\"text\">arm</th>" : "");
  cct_html_text(html, report->arms[0]);
  cct_text_add(html, "</th><th>%s</th><th>time</th><th>throughput</th>%s<th>verdict</th>%s%s</tr>\n",
               with_arm ? "median" : "arm", has_visible(report) ? "<th>smallest visible</th>" : "",
               has_mixed_labels(report) ? "<th class=\"text\">label</th>" : "",
               with_remark ? "<th class=\"text\">remark</th>" : "");
  for (int r = 0; r < report->n_results; r++)
    number_row(report, &report->results[r], with_arm, with_remark, html);
  cct_text_add(html, "</table></div></details>\n</section>\n");
}

static const char *null_text(const struct cct_series *series, char out[96]) {
  return series->has_null ? cct_effect_text(&series->null, out) : "-";
}

void cct_page_noise(const struct cct_report *report, struct cct_text *html) {
  int rows = 0;
  for (int c = 0; c < report->n_cells; c++)
    rows += report->n_arms;
  cct_text_add(
      html,
      "<p class=\"note\">Spread: 10th to 90th percentile of a block's steps over their median. Outliers: steps "
      "beyond 5 scaled median absolute deviations, kept. Drift: last third of a block against its first. A/A: "
      "every second block of an arm against its neighbour; it should hold 0.</p>\n<details%s><summary>%d "
      "series</summary>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>cell</th><th "
      "class=\"text\">arm</th><th>steps</th><th>blocks</th><th>spread</th><th>outliers</th><th>drift</th>"
      "<th>A/A</th></tr>\n",
      rows <= 12 ? " open" : "", rows);
  for (int c = 0; c < report->n_cells; c++)
    for (int a = 0; a < report->n_arms; a++) {
      const struct cct_series *series = &report->cells[c].arms[a];
      char null[96], spread[32];
      cct_text_add(html, "<tr>");
      cct_page_cell(html, "", report->cells[c].title);
      cct_page_cell(html, " class=\"text\"", report->arms[a]);
      cct_text_add(html, "<td>%d</td><td>%d</td><td>%s %%</td><td>%d</td><td%s>", series->n_samples, series->n_units,
                   cct_digits_text(100 * series->spread, 2, spread), series->outliers,
                   series->is_drifting ? " class=\"slower\"" : "");
      cct_text_add(html, isfinite(series->drift) && series->n_units ? "%+.2f %%</td>" : "-</td>",
                   cct_time_overhead_pct(series->drift));
      cct_page_cell(html, "", null_text(series, null));
      cct_text_add(html, "</tr>\n");
    }
  cct_text_add(html, "</table></div></details>\n");
}

/* ---- published ---- */

static void put_range(struct cct_text *html, const struct cct_published_row *row) {
  if (!isfinite(row->lo))
    cct_text_add(html, "<td>-</td>");
  else if (row->lo == row->hi)
    cct_text_add(html, "<td>%+.1f %%</td>", row->lo);
  else
    cct_text_add(html, "<td>%+.1f to %+.1f %%</td>", row->lo, row->hi);
}

enum cct_status cct_page_contradictions(struct cct_text *html) {
  struct cct_published published;
  enum cct_status status = cct_published_read(&published);
  if (status)
    return status;
  cct_text_add(html, "<h3>Where the published figures contradict themselves</h3>\n<ul>\n");
  for (int i = 0; i < cct_contradiction_count; i++) {
    cct_text_add(html, "<li>%s <span class=\"note\">", cct_contradictions[i].text);
    for (int k = 0; k < 4 && cct_contradictions[i].ids[k]; k++)
      for (int r = 0; r < published.n; r++)
        if (!strcmp(published.rows[r].field[CCT_PUBLISHED_ID], cct_contradictions[i].ids[k])) {
          cct_text_add(html, "%s%s", k ? ", " : "(", cct_contradictions[i].ids[k]);
          if (isfinite(published.rows[r].lo) && published.rows[r].lo < 1000)
            cct_text_add(html, " %+.1f %%", published.rows[r].lo);
        }
    cct_text_add(html, ")</span></li>\n");
  }
  cct_text_add(html,
               "</ul>\n<details><summary>All %d published rows, with their sources</summary>\n<div class=\"scroll\" "
               "tabindex=\"0\"><table>\n<tr><th>id</th><th class=\"text\">source</th><th class=\"text\">platform</th>"
               "<th class=\"text\">workload</th><th class=\"text\">metric</th><th>CC off</th><th>CC on</th><th>time "
               "added</th><th class=\"text\">note</th></tr>\n",
               published.n);
  for (int r = 0; r < published.n; r++) {
    const struct cct_published_row *row = &published.rows[r];
    cct_text_add(html, "<tr>");
    cct_page_cell(html, "", row->field[CCT_PUBLISHED_ID]);
    cct_page_cell(html, " class=\"text\"", row->field[CCT_PUBLISHED_SOURCE]);
    cct_page_cell(html, " class=\"text\"", row->field[CCT_PUBLISHED_PLATFORM]);
    cct_page_cell(html, " class=\"wrap\"", row->field[CCT_PUBLISHED_WORKLOAD]);
    cct_page_cell(html, " class=\"text\"", row->field[CCT_PUBLISHED_METRIC]);
    for (int f = CCT_PUBLISHED_CC_OFF; f <= CCT_PUBLISHED_CC_ON; f++) {
      char text[64] = "-";
      if (*row->field[f])
        snprintf(text, sizeof text, "%.30s %.20s", row->field[f], row->field[CCT_PUBLISHED_UNIT]);
      cct_page_cell(html, "", text);
    }
    put_range(html, row);
    cct_page_cell(html, " class=\"wrap\"", row->field[CCT_PUBLISHED_NOTE]);
    cct_text_add(html, "</tr>\n");
  }
  cct_text_add(html, "</table></div></details>\n");
  cct_published_free(&published);
  return CCT_OK;
}

/* ---- provenance ---- */

/* What the blocks of an arm say of one fact: the value, its range where all are numbers or moments, or the first few.
 */
static void fact_text(const struct cct_report *report, int arm, const char *name, char *out, size_t size) {
  enum {
    MOST = 3
  };
  const struct cct_runs *runs = report->runs;
  const char *values[MOST], *least = NULL, *most = NULL;
  double lo = INFINITY, hi = -INFINITY;
  int distinct = 0, numbers = 1, beyond = 0, is_moment = !strcmp(name, "start");
  for (int b = 0; b < runs->n_blocks; b++) {
    const char *value = cct_block_fact(runs->blocks[b], name);
    double number;
    int k = 0;
    if (!value || report->arm_of[b] != arm)
      continue;
    while (k < distinct && strcmp(values[k], value))
      k++;
    if (k == distinct && k < MOST)
      values[distinct++] = value;
    else
      beyond |= k == MOST;
    least = !least || strcmp(value, least) < 0 ? value : least;
    most = !most || strcmp(value, most) > 0 ? value : most;
    numbers &= cct_parse_f64(value, &number);
    if (numbers) {
      lo = fmin(lo, number);
      hi = fmax(hi, number);
    }
  }
  if (!distinct)
    snprintf(out, size, "-");
  else if (distinct == 1 && strlen(least) == 64 && strspn(least, "0123456789abcdef") == 64)
    snprintf(out, size, "%.16s\u2026", least); /* a digest: whoever compares looks at its head */
  else if (distinct == 1)
    snprintf(out, size, "%s", *least ? least : "(empty)");
  else if (numbers)
    snprintf(out, size, "%.10g to %.10g", lo, hi);
  else if (is_moment)
    snprintf(out, size, "%s to %s", least, most);
  else {
    *out = '\0';
    for (int k = 0; k < distinct; k++) {
      size_t n = strlen(out);
      snprintf(out + n, size - n, "%s%s", k ? ", " : "", values[k]);
    }
    size_t n = strlen(out);
    snprintf(out + n, size - n, "%s", beyond ? " and others" : "");
  }
}

static int is_named_before(const struct cct_runs *runs, int block, int fact) {
  for (int b = 0; b <= block; b++)
    for (int i = 0; i < (b == block ? fact : runs->blocks[b]->n_facts); i++)
      if (!strcmp(runs->blocks[b]->facts[i].name, runs->blocks[block]->facts[fact].name))
        return 1;
  return 0;
}

static void put_fact(const struct cct_report *report, const struct cct_record_fact *fact, struct cct_text *html) {
  char value[CCT_MAX_ARMS][400];
  int differs = 0;
  for (int arm = 0; arm < report->n_arms; arm++) {
    fact_text(report, arm, fact->name, value[arm], sizeof *value);
    differs |= strcmp(value[arm], value[0]) != 0;
  }
  cct_text_add(html, "<tr%s><td>", differs && fact->fact_class < CCT_FACT_REPLICATE ? " class=\"differs\"" : "");
  cct_html_text(html, fact->name);
  cct_text_add(html, "</td><td class=\"text\">%s</td>", cct_fact_class_name(fact->fact_class));
  for (int arm = 0; arm < report->n_arms; arm++)
    cct_page_cell(html, " class=\"wrap\"", value[arm]);
  cct_text_add(html, "</tr>\n");
}

static void put_facts(const struct cct_report *report, enum cct_fact_class fact_class, struct cct_text *html) {
  const struct cct_runs *runs = report->runs;
  for (int b = 0; b < runs->n_blocks; b++)
    for (int i = 0; i < runs->blocks[b]->n_facts; i++)
      if (runs->blocks[b]->facts[i].fact_class == fact_class && !is_named_before(runs, b, i))
        put_fact(report, &runs->blocks[b]->facts[i], html);
}

/* "off: 5 blocks of 1 boot; on: 5 blocks of 1 other boot": what was the same machine at the same time. */
static void put_boots(const struct cct_report *report, struct cct_text *html) {
  const struct cct_runs *runs = report->runs;
  for (int arm = 0; arm < report->n_arms; arm++) {
    int blocks = 0, boots = 0, others = 0;
    for (int boot = 0; boot < runs->n_boots; boot++) {
      int here = 0, baseline = 0;
      for (int b = 0; b < runs->n_blocks; b++) {
        here += runs->boot_of[b] == boot && report->arm_of[b] == arm;
        baseline |= runs->boot_of[b] == boot && report->arm_of[b] == 0;
      }
      blocks += here;
      boots += here > 0;
      others += here > 0 && !baseline;
    }
    cct_text_add(html, "%s", arm ? "; " : " ");
    cct_html_text(html, report->arms[arm]);
    cct_text_add(html, ": %d block%s of %d %sboot%s", blocks, blocks == 1 ? "" : "s", boots,
                 !arm              ? ""
                 : others == boots ? "other "
                 : others          ? "partly other "
                                   : "shared ",
                 boots == 1 ? "" : "s");
  }
  cct_text_add(html, ". ");
}

void cct_page_provenance(const struct cct_report *report, struct cct_text *html) {
  cct_text_add(
      html,
      "<section id=\"provenance\">\n<h2>Which machines, which software?</h2>\n<p class=\"note\">Identity facts "
      "agree in all blocks, condition facts within an arm, or this page would not exist; drift facts are what they "
      "were. In bold: what differs between the arms.");
  put_boots(report, html);
  cct_text_add(html, "From ");
  for (int i = 0; i < report->runs->n_runs; i++) {
    cct_text_add(html, "%s", i ? ", " : "");
    cct_html_text(html, report->runs->names[i]);
  }
  cct_text_add(html,
               ".</p>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>fact</th><th class=\"text\">class</th>");
  for (int arm = 0; arm < report->n_arms; arm++) {
    cct_text_add(html, "<th class=\"text\">");
    cct_html_text(html, report->arms[arm]);
    cct_text_add(html, "</th>");
  }
  cct_text_add(html, "</tr>\n");
  for (int k = 0; k < CCT_FACT_CLASS_COUNT; k++)
    put_facts(report, (enum cct_fact_class)k, html);
  cct_text_add(html, "</table></div>\n</section>\n");
}
