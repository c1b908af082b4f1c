/* SPDX-License-Identifier: Apache-2.0
 * The page of a tune: what it gains, where which choice holds, and every number. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cli/tune.h"
#include "report/assets.h"
#include "report/figure.h"
#include "report/html.h"
#include "report/page.h"

static void percent(const struct cct_ordered *ratio, char out[64]) {
  if (ratio->n)
    snprintf(out, 64, "%+.1f %% [%+.1f, %+.1f]", 100 * (ratio->median - 1), 100 * (ratio->lo - 1),
             100 * (ratio->hi - 1));
  else
    snprintf(out, 64, "-");
}

static void cell(struct cct_text *html, const char *class_name, const char *text) {
  cct_text_add(html, "<td%s%s%s>", *class_name ? " class=\"" : "", class_name, *class_name ? "\"" : "");
  cct_html_text(html, text);
  cct_text_add(html, "</td>");
}

static void add_head(const struct cct_tune *tune, struct cct_text *html) {
  const struct cct_tune_data *data = &tune->data;
  char line[512], nccl[32];
  cct_text_add(html,
               "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
               "content=\"width=device-width, initial-scale=1\">\n<title>cctax tune</title>\n<style>\n%s</style>\n"
               "</head>\n<body>\n<header>\n<h1>What do rules gain over NCCL's own choices?</h1>\n<p class=\"lede\">"
               "<span class=\"chip\">%s</span>",
               cct_asset_page_css, cct_tune_label(tune));
  snprintf(line, sizeof line, "%s: %d ranks%s%s; %s, driver %s, condition\u00a0%s", data->date, tune->plan.ranks,
           *data->gpu ? " on " : "", data->gpu, cct_tune_nccl(tune, nccl), *data->driver ? data->driver : "none",
           data->condition);
  cct_html_text(html, line);
  cct_text_add(html, "</p>\n</header>\n");
}

static void add_big(struct cct_text *html, const char *class_name, const char *what, const char *format, double value) {
  cct_text_add(html, "<div><b class=\"%s\">", class_name);
  cct_text_add(html, format, value);
  cct_text_add(html, "</b><span>%s</span></div>\n", what);
}

static void add_bars(const struct cct_tune *tune, struct cct_text *html) {
  const struct cct_tune_verdict *verdict = &tune->verdict;
  if (!tune->is_verified) {
    cct_text_add(html, "not yet: these are the processes that judged");
    return;
  }
  cct_text_add(
      html,
      "%s: gain %.2f %%, at least 90 %% of the whole grid's %.2f %% is asked (with these channels %.2f %% can be "
      "had); %d cells slower at first, %d after one more measurement",
      verdict->is_held ? "all bars held" : "<span class=\"slower\">NOT held</span>", 100 * (1 - verdict->gain),
      100 * (1 - tune->decision.grid_gain), 100 * (1 - tune->decision.allowed_gain), verdict->n_missed,
      verdict->n_still);
  if (verdict->n_unknown || verdict->n_failed)
    cct_text_add(html, "; %d cells without a pair, %d failed", verdict->n_unknown, verdict->n_failed);
}

static void add_verdict(const struct cct_tune *tune, struct cct_text *html) {
  const struct cct_tune_setting *setting = cct_tune_setting(tune);
  double gain = tune->is_verified ? tune->verdict.gain : setting->gain.median;
  char what[80];
  snprintf(what, sizeof what, "time, geometric mean over %d cells", tune->plan.n_kinds * tune->plan.n_bytes);
  cct_text_add(html, "<section class=\"verdict\" aria-label=\"verdict\">\n<div class=\"big\">\n");
  add_big(html, "", what, "%+.1f %%", 100 * (gain - 1));
  add_big(html, "", "the best choice of every cell", "%+.1f %%", 100 * (tune->decision.grid_gain - 1));
  if (tune->is_verified)
    add_big(html, tune->verdict.n_still ? "slower" : "", "cells slower, interval above +2 %", "%.0f",
            tune->verdict.n_still);
  cct_text_add(html, "</div>\n<dl>\n<dt>Verified</dt><dd>");
  add_bars(tune, html);
  cct_text_add(html, "</dd>\n<dt>Channels</dt><dd>");
  if (tune->decision.channels)
    cct_text_add(html, "%d, set for the whole process by NCCL_MIN_CTAS and NCCL_MAX_CTAS; ",
                 tune->plan.channels[tune->decision.channels]);
  else
    cct_text_add(html, "NCCL's own number; ");
  cct_text_add(html, "objective %s</dd>\n<dt>Use</dt><dd>. ", tune->plan.objective);
  cct_html_text(html, tune->folder);
  cct_text_add(html,
               "/environment.sh, on every rank alike, or NCCL_CONF_FILE naming nccl.conf beside it; on such a machine "
               "alone: the plugin warns where it meets another</dd>\n</dl>\n</section>\n");
}

static void add_rules(const struct cct_tune *tune, struct cct_text *html) {
  struct cct_rule *rules = calloc(CCT_TUNE_MOST_KINDS * CCT_TUNE_MOST_SIZES, sizeof *rules);
  int n = rules ? cct_tune_rules(tune, rules) : 0;
  char text[64], least[32], most[32];
  html->is_failed |= !rules;
  cct_text_add(html,
               "<section id=\"rules\">\n<h2>%d rules</h2>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<tr>"
               "<th>collective</th><th>from</th><th>to</th><th class=\"text\">runs as</th></tr>\n",
               n);
  for (int i = 0; i < n; i++) {
    cct_text_add(html, "<tr>");
    cell(html, "", cct_tuner_collectives[rules[i].collective]);
    cell(html, "", cct_bytes_text((double)rules[i].min_bytes, least));
    cell(html, "", cct_bytes_text((double)rules[i].max_bytes, most));
    cell(html, "text",
         cct_tune_ran_text(&(struct cct_tune_ran){rules[i].algorithm, rules[i].protocol, rules[i].channels}, text));
    cct_text_add(html, "</tr>\n");
  }
  cct_text_add(html, "</table></div>\n<p class=\"note\">Everything else is NCCL's own choice with %s.",
               cct_tune_channels_text(tune, text));
  if (cct_tune_setting(tune)->n_held)
    cct_text_add(html, " Held to what NCCL's default runs as, since these channels make them slower: %d sizes.",
                 cct_tune_setting(tune)->n_held);
  cct_text_add(html, "</p>\n</section>\n");
  free(rules);
}

static void add_settings(const struct cct_tune *tune, struct cct_text *html) {
  cct_text_add(
      html, "<section id=\"channels\">\n<h2>What do channels cost and gain?</h2>\n<p class=\"note\">Every number "
            "with the rules that were found for it, against NCCL's default; beside a GEMM the collective and a "
            "product in bf16 end together, against NCCL's number.</p>\n<div class=\"scroll\" tabindex=\"0\"><table>\n"
            "<tr><th>channels</th><th>alone</th><th>beside a GEMM</th><th class=\"text\">decision</th></tr>\n");
  for (int c = 0; c < tune->plan.n_channels; c++) {
    const struct cct_tune_setting *setting = &tune->decision.settings[c];
    char text[64];
    snprintf(text, sizeof text, "%d", tune->plan.channels[c]);
    cct_text_add(html, "<tr>");
    cell(html, "", tune->plan.channels[c] ? text : "NCCL's own");
    percent(&setting->gain, text);
    cell(html, "", text);
    percent(&setting->beside, text);
    cell(html, "", text);
    cell(html, "wrap", c == tune->decision.channels ? "taken" : setting->why_not);
    cct_text_add(html, "</tr>\n");
  }
  cct_text_add(html, "</table></div>\n</section>\n");
}

/* Whether any cell was measured once again. */
static int has_again(const struct cct_tune *tune) {
  return tune->is_verified && tune->verdict.n_missed;
}

static void add_row(const struct cct_tune *tune, int k, int s, struct cct_text *html) {
  const struct cct_tune_plan *plan = &tune->plan;
  const struct cct_tune_pick *pick = &cct_tune_setting(tune)->picks[k][s];
  const int choices[] = {0, pick->choice};
  char text[64];
  cct_text_add(html, "<tr>");
  cell(html, "", cct_tune_kind_name(plan->kinds[k]));
  cell(html, "", cct_bytes_text((double)cct_tune_bytes(plan, k, plan->bytes[s]), text));
  for (int i = 0; i < 2; i++) {
    const struct cct_tune_ran *ran = cct_tune_ran(plan, &tune->data, k, s, choices[i]);
    cell(html, "text", ran->channels ? cct_tune_ran_text(ran, text) : cct_tune_choice_text(plan, choices[i], text));
  }
  cell(html, "text", pick->is_held ? "held" : pick->choice == tune->decision.channels * plan->each ? "" : "rule");
  if (!tune->is_verified) {
    percent(&cct_tune_setting(tune)->shown[k][s], text);
    cell(html, "", text);
  } else {
    const struct cct_tune_held *held[] = {&tune->verdict.first[k * plan->n_bytes + s],
                                          &tune->verdict.again[k * plan->n_bytes + s]};
    for (int i = 0; i < 2; i++) {
      snprintf(text, sizeof text, "%.2f", held[0]->us[i]);
      cell(html, "", text);
    }
    for (int i = 0; i < 1 + has_again(tune); i++) {
      percent(&held[i]->ratio, text);
      cell(html, held[i]->ratio.n && held[i]->ratio.lo > CCT_TUNE_SLOWER ? "slower" : "", text);
    }
  }
  cct_text_add(html, "</tr>\n");
}

static void add_numbers(const struct cct_tune *tune, struct cct_text *html) {
  cct_text_add(
      html,
      "<section id=\"numbers\">\n<h2>All numbers</h2>\n<p class=\"note\">What ran by NCCL's default and tuned, by a "
      "rule or by the channels alone; %s. More is in ../tune.json.</p>\n<details><summary>%d "
      "cells</summary>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>collective</th><th>size</th>"
      "<th class=\"text\">NCCL's default</th><th class=\"text\">tuned</th><th class=\"text\">by</th>%s%s</tr>\n",
      tune->is_verified ? "verified: the tuned time against the default's, in alternating blocks"
                        : "judged: the tuned time against the default's, by processes that did not choose",
      tune->plan.n_kinds * tune->plan.n_bytes,
      tune->is_verified ? "<th>default us</th><th>tuned us</th><th>verified</th>" : "<th>judged</th>",
      has_again(tune) ? "<th>again</th>" : "");
  for (int k = 0; k < tune->plan.n_kinds; k++)
    for (int s = 0; s < tune->plan.n_bytes; s++)
      add_row(tune, k, s, html);
  cct_text_add(html, "</table></div>\n</details>\n");
  for (int k = 0; k < tune->plan.n_kinds; k++)
    if (cct_tune_tuned(tune->plan.kinds[k]) < 0)
      cct_text_add(html, "<p class=\"note\">NCCL asks no tuner about %s: environment settings alone.</p>\n",
                   cct_tune_kind_name(tune->plan.kinds[k]));
  cct_text_add(html, "</section>\n");
}

static enum cct_status make_folder(const char *path) {
  return mkdir(path, 0777) == 0 || errno == EEXIST ? CCT_OK
                                                   : cct_fail(CCT_IO, "%s: cannot be made: %s", path, strerror(errno));
}

/* Without gnuplot the page has its tables alone; a tune is not lost for that. */
static enum cct_status draw(struct cct_figure *figures, int n, const char *folder, int *n_drawn_out) {
  enum cct_status status = CCT_OK;
  *n_drawn_out = 0;
  cct_log_mute(1);
  for (int i = 0; !status && i < n; i++) {
    status = cct_figure_draw(&figures[i], folder);
    *n_drawn_out += !status;
  }
  cct_log_mute(0);
  if (status == CCT_UNSUPPORTED) {
    cct_note("report/index.html has no figures: %s", cct_log_last());
    return CCT_OK;
  }
  return status ? cct_fail(status, "%s", cct_log_last()) : CCT_OK;
}

enum cct_status cct_tune_page(const struct cct_tune *tune) {
  struct cct_figure figures[2] = {0};
  struct cct_text html = {0};
  char folder[4200], drawings[4300], path[4300];
  int n_drawn = 0;
  snprintf(folder, sizeof folder, "%s/report", tune->folder);
  snprintf(drawings, sizeof drawings, "%s/figures", folder);
  snprintf(path, sizeof path, "%s/index.html", folder);
  cct_tune_gain_figure(tune, &figures[0]);
  cct_tune_choices_figure(tune, &figures[1]);
  enum cct_status status = make_folder(folder);
  if (!status)
    status = make_folder(drawings);
  if (!status)
    status = draw(figures, 2, drawings, &n_drawn);
  add_head(tune, &html);
  add_verdict(tune, &html);
  for (int i = 0; !status && i < n_drawn; i++) {
    cct_text_add(&html, "<section id=\"%s\">\n<h2>%s</h2>\n", figures[i].name, figures[i].heading);
    status = cct_page_figure(&figures[i], drawings, &html);
    cct_text_add(&html, "</section>\n");
  }
  add_rules(tune, &html);
  add_settings(tune, &html);
  add_numbers(tune, &html);
  cct_text_add(&html,
               "<footer>cctax %s. Method: docs/tune.md. This page loads nothing and runs nothing.</footer>\n</body>\n"
               "</html>\n",
               CCT_VERSION);
  if (!status)
    status =
        html.is_failed ? cct_fail(CCT_NOMEM, "index.html: out of memory") : cct_write_file(path, html.s, html.length);
  for (int i = 0; i < 2; i++)
    cct_figure_free(&figures[i]);
  cct_text_free(&html);
  return status;
}
