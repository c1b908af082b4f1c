/* SPDX-License-Identifier: Apache-2.0
 * Latency and throughput of serving against load: one figure for each set of cells that differ in nothing else. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/assets.h"
#include "report/figure_parts.h"
#include "report/load.h"
#include "report/names.h"
#include "workloads/serving/metrics.h"

enum {
  MOST_FIGURES = 4,
  MOST_ARMS = 6, /* that colours tell apart */
  MOST_PANELS = 4,
  PITCH = 272 /* pixels from a panel to the one below it */
};

struct panel {
  enum cct_load_value value, tail; /* tail: the same as value where it has none */
  const char *title;
  double limit; /* of --slo, in the panel's unit; 0: none */
  double scale, least, most;
  int is_log;
};

struct drawing {
  const struct cct_report *report;
  const struct cct_load *load;
  struct panel panels[MOST_PANELS];
  int n_panels, n_arms;
  int has_interval;
};

static enum cct_status measure_panel(struct drawing *drawing, struct panel *panel) {
  enum cct_status status = CCT_OK;
  panel->least = INFINITY;
  panel->most = 0;
  panel->scale = 1;
  for (int i = 0; i < drawing->load->n; i++)
    for (int arm = 0; arm < drawing->n_arms; arm++)
      for (int is_tail = 0; !status && is_tail < 2; is_tail++) {
        struct cct_load_seen seen;
        status =
            cct_load_see(drawing->report, &drawing->load->points[i], is_tail ? panel->tail : panel->value, arm, &seen);
        if (status || !isfinite(seen.value))
          continue;
        drawing->has_interval |= isfinite(seen.lo);
        panel->least = fmin(panel->least, isfinite(seen.lo) ? seen.lo : seen.value);
        panel->most = fmax(panel->most, isfinite(seen.hi) ? seen.hi : seen.value);
      }
  return status;
}

/* Adds a panel where some arm has values. Times are in ms, in s where they are long. */
static enum cct_status add_panel(struct drawing *drawing, enum cct_load_value value, enum cct_load_value tail,
                                 const char *title, double limit_ms) {
  struct panel *panel = &drawing->panels[drawing->n_panels];
  *panel = (struct panel){.value = value, .tail = tail, .title = title, .limit = limit_ms};
  enum cct_status status = measure_panel(drawing, panel);
  if (status || !isfinite(panel->least))
    return status;
  if (tail != value && panel->most >= 20000) {
    panel->scale = 1e-3;
    panel->limit *= 1e-3;
    panel->least *= 1e-3;
    panel->most *= 1e-3;
  }
  panel->is_log = tail != value && panel->most > 10 * panel->least;
  drawing->n_panels++;
  return CCT_OK;
}

static enum cct_status plan_panels(struct drawing *drawing) {
  const struct cct_json *text =
      cct_json_member(drawing->report->cells[cct_load_cell(drawing->load->points)].parameters, "slo");
  struct cct_slo slo = {0};
  enum cct_status status = text ? cct_slo_parse(cct_json_string(text), &slo) : CCT_OK;
  if (!status)
    status =
        add_panel(drawing, CCT_LOAD_TTFT, CCT_LOAD_TTFT_P99, "time to first token (TTFT)", (double)slo.ttft_ns / 1e6);
  if (!status)
    status =
        add_panel(drawing, CCT_LOAD_TPOT, CCT_LOAD_TPOT_P99, "time per output token (TPOT)", (double)slo.tpot_ns / 1e6);
  if (!status)
    status = add_panel(drawing, CCT_LOAD_OUTPUT_TOK_S, CCT_LOAD_OUTPUT_TOK_S, "output, tokens/s", 0);
  if (!status && text)
    return add_panel(drawing, CCT_LOAD_GOODPUT, CCT_LOAD_GOODPUT, "goodput: requests/s within every limit", 0);
  if (!status)
    status = add_panel(drawing, CCT_LOAD_E2E, CCT_LOAD_E2E_P99, "time of a request (E2E)", 0);
  return status;
}

static void put_value(struct cct_figure *figure, const struct cct_load_seen *seen, double scale) {
  double lo = isfinite(seen->lo) ? seen->lo : seen->value, hi = isfinite(seen->hi) ? seen->hi : seen->value;
  cct_text_add(&figure->data, "\t%.6g\t%.6g\t%.6g", scale * seen->value, scale * lo, scale * hi);
}

static enum cct_status put_line(const struct drawing *drawing, const struct panel *panel, int arm,
                                struct cct_figure *figure) {
  enum cct_status status = CCT_OK;
  cct_figure_next(figure);
  cct_text_add(&figure->data, "# %s\tvalue\tlo\thi\tp99\tlo\thi\n", drawing->load->axis);
  for (int i = 0; !status && i < drawing->load->n; i++) {
    struct cct_load_seen seen, tail;
    const struct cct_load_point *point = &drawing->load->points[i];
    status = cct_load_see(drawing->report, point, panel->value, arm, &seen);
    if (!status)
      status = cct_load_see(drawing->report, point, panel->tail, arm, &tail);
    if (status)
      break;
    cct_text_add(&figure->data, "%.10g", point->x);
    put_value(figure, &seen, panel->scale);
    put_value(figure, &tail, panel->scale);
    cct_text_add(&figure->data, "\n");
    if (i == 0 || i == drawing->load->n - 1)
      cct_text_add(&figure->alt, "%s %.4g at %g", i ? " and" : "", panel->scale * seen.value, point->x);
  }
  return status;
}

/* From 0, or in decades where the largest would hide the smallest; a limit that is not far off is shown. */
static void put_ranges(const struct drawing *drawing, struct cct_figure *figure) {
  double lo[MOST_PANELS], hi[MOST_PANELS], limit[MOST_PANELS], is_log[MOST_PANELS], has_tail[MOST_PANELS];
  int limits = 0;
  for (int p = 0; p < drawing->n_panels; p++) {
    const struct panel *panel = &drawing->panels[p];
    double most = panel->limit > panel->most && panel->limit < (panel->is_log ? 10 : 2) * panel->most ? panel->limit
                                                                                                      : panel->most;
    lo[p] = panel->is_log ? panel->least / 1.3 : 0;
    hi[p] = panel->is_log ? most * 1.3 : most > 0 ? most * 1.08 : 1;
    limit[p] = panel->limit > lo[p] && panel->limit < hi[p] ? panel->limit : 0;
    limits |= limit[p] > 0;
    is_log[p] = panel->is_log;
    has_tail[p] = panel->tail != panel->value;
  }
  cct_text_add(&figure->numbers, "\nLIMITS = %d; INTERVALS = %d", limits, drawing->has_interval);
  cct_figure_numbers(figure, "LO", lo, drawing->n_panels);
  cct_figure_numbers(figure, "HI", hi, drawing->n_panels);
  cct_figure_numbers(figure, "LIMIT", limit, drawing->n_panels);
  cct_figure_numbers(figure, "LOGY", is_log, drawing->n_panels);
  cct_figure_numbers(figure, "TAIL", has_tail, drawing->n_panels);
  figure->width = 860;
  figure->height = 62 + 20 * drawing->n_arms + (drawing->n_panels + 1) / 2 * PITCH;
  figure->narrow_width = 380;
  figure->narrow_height = 98 + 20 * (drawing->n_arms + 1 + limits) + drawing->n_panels * PITCH;
}

static enum cct_status put_axis(const struct drawing *drawing, struct cct_figure *figure) {
  const struct cct_load *load = drawing->load;
  double ticks[CCT_MOST_TICKS], *values = malloc((size_t)load->n * sizeof *values);
  if (!values)
    return cct_fail(CCT_NOMEM, "out of memory: the ticks of %d points", load->n);
  for (int i = 0; i < load->n; i++)
    values[i] = load->points[i].x;
  double lo = values[0], hi = values[load->n - 1];
  /* Requests a second are what output is proportional to, until a machine is full; requests at once go by doubling. */
  int is_log = hi / lo >= (strcmp(load->axis, "concurrency") ? 100 : 4),
      n = cct_choose_ticks(values, load->n, is_log, 0.11, ticks);
  double pad = is_log ? pow(hi / lo, 0.06) : 0.06 * (hi - lo);
  free(values);
  cct_text_add(&figure->numbers, "ARMS = %d; PANELS = %d; PITCH = %d; LOG = %d; X_LO = %.8g; X_HI = %.8g; TICKS = %d",
               drawing->n_arms, drawing->n_panels, PITCH, is_log, is_log ? lo / pad : lo - pad,
               is_log ? hi * pad : hi + pad, n);
  cct_figure_numbers(figure, "TICK", ticks, n);
  return CCT_OK;
}

/* "requests at once", "requests a second", "requests a step" */
static const char *axis_text(const struct drawing *drawing) {
  const struct cct_json *parameters = drawing->report->cells[cct_load_cell(drawing->load->points)].parameters;
  const char *arrivals = cct_json_string(cct_json_member(parameters, "arrivals"));
  if (!strcmp(drawing->load->axis, "concurrency"))
    return "requests at once (concurrency)";
  return arrivals && !strcmp(arrivals, "steps") ? "requests that come a step (request rate)"
                                                : "requests that come a second (request rate)";
}

static void put_captions(const struct drawing *drawing, struct cct_figure *figure) {
  cct_text_add(&figure->caption, "Each arm's own values, of a block's requests%s. ",
               drawing->has_interval ? " with the 95 % interval over blocks" : "");
  for (int p = 0; p < drawing->n_panels; p++)
    if (drawing->panels[p].is_log) {
      cct_text_add(&figure->caption, "An axis that does not begin at 0 is logarithmic. ");
      break;
    }
  if (drawing->n_arms < drawing->report->n_arms)
    cct_text_add(&figure->caption, "%d further arms are in report.json. ", drawing->report->n_arms - drawing->n_arms);
}

/* What is served, and what tells this line of cells from the others on the same axis. */
static void name_group(const struct cct_report *report, const struct cct_loads *loads, const struct cct_load *load,
                       char *out, size_t size) {
  const struct cct_report_cell *cell = &report->cells[cct_load_cell(load->points)];
  char word[128], other[128];
  void *iterator = NULL;
  const char *key;
  const struct cct_json *value;
  snprintf(out, size, "%s %s", cell->model ? cell->model : "", cell->layout ? cell->layout : "");
  while (cct_json_next(cell->parameters, &iterator, &key, &value)) {
    int is_told = 0;
    if (!strcmp(key, load->axis) || !strcmp(key, "model") || !strcmp(key, "layout"))
      continue;
    cct_cell_word(cell, key, word, sizeof word);
    for (int i = 0; i < loads->n; i++) {
      const struct cct_report_cell *beside = &report->cells[cct_load_cell(loads->items[i].points)];
      is_told |= !strcmp(loads->items[i].axis, load->axis) &&
                 (!cct_cell_word(beside, key, other, sizeof other) || strcmp(word, other));
    }
    size_t length = strlen(out);
    if (is_told)
      snprintf(out + length, size - length, ", %s", word);
  }
}

static enum cct_status add_figure(const struct cct_report *report, const struct cct_loads *loads, int at, int number,
                                  struct cct_figures *figures) {
  const struct cct_load *load = &loads->items[at];
  struct drawing drawing = {.report = report, .load = load};
  int is_rate = strcmp(load->axis, "concurrency") != 0;
  char name[48], group[160], title[80];
  drawing.n_arms = report->n_arms < MOST_ARMS ? report->n_arms : MOST_ARMS;
  enum cct_status status = plan_panels(&drawing);
  if (status || !drawing.n_panels)
    return status;
  snprintf(name, sizeof name, number ? "load_%s_%d" : "load_%s", load->axis, number + 1);
  struct cct_figure *figure = cct_figures_add(figures, name,
                                              is_rate ? "What do requests see as more come a second?"
                                                      : "What do requests see as more run at once?",
                                              cct_asset_load_gp);
  name_group(report, loads, load, group, sizeof group);
  snprintf(title, sizeof title, "Latency and throughput by %s", is_rate ? "request rate" : "concurrency");
  cct_figure_title(figure, title, group,
                   drawing.has_interval ? "medians, 95 % intervals" : "medians, no noise and no interval",
                   cct_report_label(report));
  cct_figure_next(figure);
  for (int arm = 0; arm < drawing.n_arms; arm++) {
    cct_text_add(&figure->data, "%d\t", arm + 1);
    cct_figure_field(figure, report->arms[arm], 40, "\n");
  }
  cct_figure_next(figure);
  for (int p = 0; p < drawing.n_panels; p++) {
    const struct panel *panel = &drawing.panels[p];
    const char *unit = panel->tail == panel->value ? "" : panel->scale < 1 ? ", s" : ", ms";
    cct_text_add(&figure->data, "%d\t%s%s", p + 1, panel->title, unit);
    cct_text_add(&figure->data, panel->limit > 0 ? "; limit %g\n" : "\n", panel->limit);
  }
  cct_figure_next(figure);
  cct_text_add(&figure->data, "%s\n", axis_text(&drawing));
  cct_text_add(&figure->alt, "Lines by %s. ", axis_text(&drawing));
  for (int p = 0; !status && p < drawing.n_panels; p++)
    for (int arm = 0; !status && arm < drawing.n_arms; arm++) {
      cct_text_add(&figure->alt, "%s, %s:", drawing.panels[p].title, report->arms[arm]);
      status = put_line(&drawing, &drawing.panels[p], arm, figure);
      cct_text_add(&figure->alt, ". ");
    }
  if (!status)
    status = put_axis(&drawing, figure);
  if (!status)
    put_ranges(&drawing, figure);
  put_captions(&drawing, figure);
  return status;
}

enum cct_status cct_figure_load(const struct cct_report *report, struct cct_figures *figures) {
  struct cct_loads loads = {0};
  enum cct_status status = cct_loads_find(report, &loads);
  int made = 0;
  for (int i = 0, number = 0; !status && i < loads.n && made < MOST_FIGURES; i++, made++) {
    number = i && !strcmp(loads.items[i].axis, loads.items[i - 1].axis) ? number + 1 : 0;
    status = add_figure(report, &loads, i, number, figures);
  }
  if (!status && loads.n > made)
    cct_text_add(&figures->items[figures->n - 1].caption, "%d further sweeps of load are in report.json. ",
                 loads.n - made);
  cct_loads_free(&loads);
  return status;
}
