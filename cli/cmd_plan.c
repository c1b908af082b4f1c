/* SPDX-License-Identifier: Apache-2.0
 * cctax plan: what every layout of a model would cost, clear and confidential, before the machine exists. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/document.h"
#include "cli/planner.h"
#include "json/json.h"
#include "workloads/shape/cell.h"

struct sweep {
  enum cct_option_id id; /* CCT_OPTION_COUNT: none */
  char *values;          /* separated by NUL, n of them; owned */
  int n;
};

static enum cct_status check_request(const struct cct_options *options, int n_args, const char *const *args) {
  static const struct {
    enum cct_option_id id;
    const char *what;
  } needed[] = {{CCT_OPT_MODEL, "--model: which model? a preset such as qwen3-8b, or a config.json"},
                {CCT_OPT_WORKLOAD, "--workload: train, prefill, decode or serve?"},
                {CCT_OPT_PROFILE_FILE, "--profile: which machine? a name such as b200x8-tdx, or a file"}};
  if (n_args)
    return cct_fail(CCT_USAGE, "'%s': plan takes only flags", args[0]);
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (!options->v[needed[i].id].has_value)
      return cct_fail(CCT_USAGE, "%s", needed[i].what);
  for (int id = 0; id < CCT_OPTION_COUNT; id++) {
    const struct cct_option *row = &cct_option_table[id];
    const char *text = options->v[id].s;
    if (options->v[id].is_set && row->kind != CCT_KIND_TEXT && text && strchr(text, ','))
      return cct_fail(CCT_USAGE, "--%s %s: plan takes one value; --sweep %s=%s plans over several", row->name, text,
                      row->name, text);
  }
  if (cct_cell_workload(options) >= CCT_WORKLOAD_COLLECTIVE)
    return cct_fail(CCT_USAGE, "--workload %s: plan takes train, prefill, decode or serve",
                    options->v[CCT_OPT_WORKLOAD].s);
  return CCT_OK;
}

static const char *sweep_value(const struct sweep *sweep, int index) {
  const char *at = sweep->values;
  while (at && index--)
    at += strlen(at) + 1;
  return at;
}

static enum cct_status read_sweep(const struct cct_options *options, struct sweep *sweep) {
  const char *text = options->v[CCT_OPT_SWEEP].s, *equals = text ? strchr(text, '=') : NULL;
  char name[64];
  *sweep = (struct sweep){.id = CCT_OPTION_COUNT, .n = 1};
  if (!text)
    return CCT_OK;
  snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - text : 0), text);
  sweep->id = cct_option_by_name(name);
  if (!equals || sweep->id == CCT_OPTION_COUNT || cct_option_table[sweep->id].scope != CCT_SCOPE_CELL ||
      !(cct_option_table[sweep->id].commands & CCT_PLAN) || cct_option_table[sweep->id].kind == CCT_KIND_TEXT ||
      sweep->id == CCT_OPT_NP || sweep->id == CCT_OPT_WORKLOAD)
    return cct_fail(CCT_USAGE, "--sweep: '%s' is no FLAG=VALUE,VALUE such as batch=1,8,64 or input-len=1024,32768",
                    text);
  if (options->v[sweep->id].is_set)
    return cct_fail(CCT_USAGE, "--sweep %s: --%s is given as well", name, name);
  if (!(sweep->values = strdup(equals + 1)))
    return cct_fail(CCT_NOMEM, "out of memory");
  for (char *at = sweep->values; (at = strchr(at, ',')); at++) {
    *at = '\0';
    sweep->n++;
  }
  struct cct_options trial; /* every value is judged before the first is planned */
  enum cct_status status = cct_options_copy(options, &trial);
  if (status)
    return status;
  for (int i = 0; !status && i < sweep->n; i++)
    status = cct_option_set(&trial, sweep->id, sweep_value(sweep, i), "--sweep");
  cct_options_free(&trial);
  return status;
}

/* The cell of one swept value in one of the layouts; both counted from 0. */
static enum cct_status planned_cell(const struct cct_options *options, const struct sweep *sweep, int value, int layout,
                                    struct cct_options *cell_out) {
  const char *at = options->v[CCT_OPT_LAYOUTS].has_value ? options->v[CCT_OPT_LAYOUTS].s : "all";
  char text[128];
  while (layout--)
    at = strchr(at, '/') + 1;
  snprintf(text, sizeof text, "%.*s", (int)strcspn(at, "/"), at);
  enum cct_status status = cct_options_copy(options, cell_out);
  if (!status && sweep->values)
    status = cct_option_set(cell_out, sweep->id, sweep_value(sweep, value), "--sweep");
  if (!status && *text)
    status = cct_option_set(cell_out, CCT_OPT_LAYOUT, text, "--layouts");
  return status;
}

static enum cct_status refuse_keys(const struct cct_options *cells, int n) {
  char why[200];
  for (int i = 0; i < CCT_OPTION_COUNT; i++) {
    enum cct_option_id id = (enum cct_option_id)i;
    if (cct_option_table[i].scope != CCT_SCOPE_CELL || !cct_cells_ignore(cells, n, id, why))
      continue;
    if (cct_cell_reads(cells, id, why, NULL) == CCT_OF_OTHER_WORKLOADS)
      return cct_fail(CCT_USAGE, "--%s: %s, and --workload is %s", cct_option_table[i].name, why,
                      cells->v[CCT_OPT_WORKLOAD].s);
    return cct_fail(CCT_USAGE, "--%s: %s", cct_option_table[i].name, why);
  }
  return CCT_OK;
}

/* What one layout, or one swept value, reads is enough. */
static enum cct_status refuse_unread(const struct cct_options *options, const struct sweep *sweep) {
  int n_layouts = 1, n = 0;
  const char *at = options->v[CCT_OPT_LAYOUTS].s;
  while (at && (at = strchr(at, '/')) && at++)
    n_layouts++;
  struct cct_options *cells = calloc((size_t)(sweep->n * n_layouts), sizeof *cells);
  enum cct_status status = cells ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (; !status && n < sweep->n * n_layouts; n += !status)
    status = planned_cell(options, sweep, n / n_layouts, n % n_layouts, &cells[n]);
  if (!status)
    status = refuse_keys(cells, n);
  for (int i = 0; cells && i < sweep->n * n_layouts; i++)
    cct_options_free(&cells[i]);
  free(cells);
  return status;
}

/* ---- text ---- */

static const char *label_of(const struct cct_plan_row *row) {
  return row->is_scaled     ? row->is_stand_in ? "predicted scaled stand-in" : "predicted scaled"
         : row->is_stand_in ? "predicted stand-in"
                            : "predicted";
}

static void why_not(const struct cct_plan_row *row, char text[96]) {
  char missing[32], room[32];
  snprintf(text, 96, "needs %s more than the %s a GPU has",
           cct_bytes_text(row->footprint.total - row->room_bytes, missing), cct_bytes_text(row->room_bytes, room));
}

/* Four significant digits without an exponent. */
static char *rate_text(double rate, char out[32]) {
  int digits = rate >= 1000 ? 0 : rate >= 100 ? 1 : rate >= 10 ? 2 : 3;
  snprintf(out, 32, "%.*f", digits, rate);
  return out;
}

static void print_row(const struct cct_plan_row *row, int place) {
  char clear[32], confidential[32], lo[32], hi[32], bounds[68], memory[32], wire[32], note[96] = "", number[16] = "-";
  double added = row->confidential_ns - row->clear_ns;
  snprintf(bounds, sizeof bounds, "%s..%s", rate_text(cct_per_second(row->tokens, row->hi_ns), lo),
           rate_text(cct_per_second(row->tokens, row->lo_ns), hi));
  if (row->fits)
    snprintf(number, sizeof number, "%d", place);
  else
    why_not(row, note);
  printf("%4s  %-18s %9s %9s %19s %8.2f %9s %9s", number, row->text,
         rate_text(cct_per_second(row->tokens, row->clear_ns), clear),
         rate_text(cct_per_second(row->tokens, row->confidential_ns), confidential), bounds,
         cct_per_cent(added, row->clear_ns), cct_bytes_text(row->footprint.total, memory),
         cct_bytes_text(row->link_bytes, wire));
  for (int i = 0; i < CCT_BOUNDARY_COUNT; i++)
    printf(" %7.2f", cct_per_cent(row->share_ns[i], row->clear_ns));
  printf(" %8.2f%s%s\n", cct_per_cent(row->interaction_ns, row->clear_ns), *note ? "  " : "", note);
}

static void print_slo_row(const struct cct_plan_row *row, const struct cct_options *cell) {
  const struct cct_slo_point *clear = &row->slo_clear, *confidential = &row->slo_confidential;
  char rate[32], confidential_rate[32];
  if (!clear->concurrency || !confidential->concurrency) {
    printf("      %-18s cannot keep %s%s\n", row->text, cell->v[CCT_OPT_SLO].s,
           clear->concurrency ? " under confidential computing" : " at all");
    return;
  }
  printf("      %-18s clear: %lld requests, %s tok/s on %.0f GPUs; confidential: %lld requests, %s tok/s, so %.2f GPUs",
         row->text, (long long)clear->concurrency, rate_text(clear->tokens_per_s, rate), clear->gpus,
         (long long)confidential->concurrency, rate_text(confidential->tokens_per_s, confidential_rate),
         confidential->gpus);
  if (cell->v[CCT_OPT_PRICE].has_value)
    printf(", %.2f an hour instead of %.2f", confidential->price, clear->price);
  printf("\n");
}

static double price_per_million(const struct cct_options *cell, const struct cct_plan_row *row, double ns) {
  return cell->v[CCT_OPT_PRICE].f * (double)cct_layout_ranks(&row->layout) / 3600 / cct_per_second(row->tokens, ns) *
         1e6;
}

static void print_rows(const struct cct_options *cell, const struct cct_plan_row *rows, int n) {
  char advice[256];
  printf("%4s  %-18s %9s %9s %19s %8s %9s %9s", "", "layout", "clear", "confid.", "bounds", "time +%", "memory",
         "link B");
  for (int i = 0; i < CCT_BOUNDARY_COUNT; i++) {
    static const char *const heads[] = {"channel", "copies", "nvlink", "lost", "cpu"};
    printf(" %7s", heads[i]);
  }
  printf(" %8s\n", "interact");
  for (int i = 0; i < n; i++)
    print_row(&rows[i], i + 1);
  for (int i = 0; cell->v[CCT_OPT_SLO].has_value && i < n && rows[i].fits; i++)
    print_slo_row(&rows[i], cell);
  if (cell->v[CCT_OPT_PRICE].has_value && rows[0].fits)
    printf("a million tokens on %s: %.2f clear, %.2f confidential\n", rows[0].text,
           price_per_million(cell, &rows[0], rows[0].clear_ns),
           price_per_million(cell, &rows[0], rows[0].confidential_ns));
  if (cct_plan_advice(cell, rows, n, advice, sizeof advice))
    printf("%s\n", advice);
}

static void print_header(const struct cct_options *cell, const struct cct_planner *planner, const char *label) {
  const struct cct_model *model = cct_planner_model(planner);
  printf("%s (%.2f e9 parameters, %.2f e9 active, %s), %s, on %s: %s, nothing was measured\n", model->name,
         cct_model_parameters(model) / 1e9, cct_model_active_parameters(model) / 1e9, cct_type_name(model->weights),
         cell->v[CCT_OPT_WORKLOAD].s, cct_planner_profile(planner)->name, label);
  for (int id = 0, n = 0; id < CCT_OPTION_COUNT; id++) {
    if (id == CCT_OPT_MODEL || id == CCT_OPT_WORKLOAD || id == CCT_OPT_SLO ||
        !(cct_option_table[id].commands & CCT_PLAN) || !cct_cell_matters(cell, (enum cct_option_id)id))
      continue;
    printf("%s%s %s", n++ ? ", " : "", cct_option_table[id].name, cct_cell_text(cell, (enum cct_option_id)id));
  }
  printf("\ntok/s and its bounds; boundaries in %% of the clear time; link B: bytes a rank sends over tp and ep for a "
         "token in a layer%s\n\n",
         cct_cell_workload(cell) == CCT_WORKLOAD_TRAIN ? ", forward and backward" : "");
  if (cct_cell_workload(cell) == CCT_WORKLOAD_SERVE)
    printf("serve: prompts are priced one by one, each an eager step; a scheduler that reads several in one step pays "
           "less "
           "(cctax run plays it)\n\n");
}

/* ---- JSON ---- */

static struct cct_json *slo_json(const struct cct_slo_point *point) {
  struct cct_json *json = cct_json_new_object();
  cct_json_set_i64(json, "concurrency", point->concurrency);
  cct_json_set_f64(json, "tokens_per_s", point->concurrency ? point->tokens_per_s : NAN);
  cct_json_set_f64(json, "gpus", point->gpus > 0 ? point->gpus : NAN);
  cct_json_set_f64(json, "price_per_hour", point->price > 0 ? point->price : NAN);
  return json;
}

static void set_rate(struct cct_json *json, double rate) {
  cct_json_set_f64(json, "value", rate);
  cct_json_set_string(json, "unit", "tok/s");
}

static struct cct_json *row_json(const struct cct_options *cell, const struct cct_plan_row *row, int place) {
  struct cct_json *json = cct_json_new_object(), *clear = cct_json_new_object(), *confidential = cct_json_new_object();
  struct cct_json *boundaries = cct_json_new_object(), *memory = cct_json_new_object();
  char why[96];
  why_not(row, why);
  if (row->fits)
    cct_json_set_i64(json, "place", place);
  else
    cct_json_set_null(json, "place");
  cct_json_set_string(json, "layout", row->text);
  cct_json_set_i64(json, "ranks", cct_layout_ranks(&row->layout));
  cct_json_set_bool(json, "fits", row->fits);
  cct_json_set_string(json, "why_not", row->fits ? NULL : why);
  cct_json_set_f64(json, "missing_bytes", row->fits ? 0 : row->footprint.total - row->room_bytes);
  cct_json_set_string(json, "label", label_of(row));
  set_rate(clear, cct_per_second(row->tokens, row->clear_ns));
  set_rate(confidential, cct_per_second(row->tokens, row->confidential_ns));
  cct_json_set_f64(confidential, "lo", cct_per_second(row->tokens, row->hi_ns));
  cct_json_set_f64(confidential, "hi", cct_per_second(row->tokens, row->lo_ns));
  cct_json_set(json, "clear", clear);
  cct_json_set(json, "confidential", confidential);
  cct_json_set_f64(json, "time_overhead_pct", cct_per_cent(row->confidential_ns - row->clear_ns, row->clear_ns));
  cct_json_set_f64(json, "throughput_loss_pct",
                   cct_per_cent(row->confidential_ns - row->clear_ns, row->confidential_ns));
  cct_json_set_f64(json, "memory_bytes_per_gpu", row->footprint.total);
  cct_json_set_f64(memory, "weights", row->footprint.weights);
  cct_json_set_f64(memory, "gradients", row->footprint.gradients);
  cct_json_set_f64(memory, "optimizer", row->footprint.optimizer);
  cct_json_set_f64(memory, "activations", row->footprint.activations);
  cct_json_set_f64(memory, "cache", row->footprint.cache);
  cct_json_set(json, "memory_bytes", memory);
  cct_json_set_f64(json, "link_bytes_per_token_layer", row->link_bytes);
  cct_json_set_f64(json, "token_clear_ms", row->token_clear_ns > 0 ? row->token_clear_ns * 1e-6 : NAN);
  cct_json_set_f64(json, "token_confidential_ms", row->token_clear_ns > 0 ? row->token_confidential_ns * 1e-6 : NAN);
  for (int i = 0; i < CCT_BOUNDARY_COUNT; i++)
    cct_json_set_f64(boundaries, cct_boundary_name((enum cct_boundary)i),
                     cct_per_cent(row->share_ns[i], row->clear_ns));
  cct_json_set(json, "boundaries_pct", boundaries);
  cct_json_set_f64(json, "interaction_pct", cct_per_cent(row->interaction_ns, row->clear_ns));
  if (cell->v[CCT_OPT_PRICE].has_value) {
    cct_json_set_f64(clear, "price_per_million_tokens", price_per_million(cell, row, row->clear_ns));
    cct_json_set_f64(confidential, "price_per_million_tokens", price_per_million(cell, row, row->confidential_ns));
  }
  if (cell->v[CCT_OPT_SLO].has_value) {
    cct_json_set(clear, "slo", slo_json(&row->slo_clear));
    cct_json_set(confidential, "slo", slo_json(&row->slo_confidential));
  }
  return json;
}

static enum cct_status fill_json(const struct cct_options *cell, const struct cct_plan_row *rows, int n,
                                 struct cct_json *json) {
  struct cct_json *layouts = cct_json_new_array(), *parameters = NULL;
  char advice[256];
  enum cct_status status = cct_cell_to_json(cell, &parameters);
  for (int i = 0; i < n; i++)
    cct_json_add(layouts, row_json(cell, &rows[i], i + 1));
  cct_json_set(json, "parameters", parameters);
  cct_json_set_string(json, "advice", cct_plan_advice(cell, rows, n, advice, sizeof advice) ? advice : NULL);
  cct_json_set(json, "layouts", layouts);
  return status;
}

static struct cct_json *open_document(const struct cct_planner *planner) {
  struct cct_json *json = cct_document_new("plan");
  char condition[96];
  snprintf(condition, sizeof condition, "emulated:%s", cct_planner_profile(planner)->name);
  cct_json_set_string(json, "baseline", "off");
  cct_json_set_string(json, "condition", condition);
  return json;
}

/* ---- the command ---- */

/* `heading` names a sweep's value, NULL without a sweep; the first of all is preceded by what is planned. */
static enum cct_status plan_once(const struct cct_planner *planner, const struct cct_options *cell, const char *heading,
                                 int is_first, struct cct_json *json) {
  struct cct_plan_row *rows = NULL;
  int n = 0;
  enum cct_status status = cct_planner_rank(planner, cell, &rows, &n);
  if (!status && json)
    status = fill_json(cell, rows, n, json);
  if (!status && !json) {
    if (is_first)
      print_header(cell, planner, label_of(&rows[0]));
    if (heading)
      printf("%s%s\n", is_first ? "" : "\n", heading);
    print_rows(cell, rows, n);
  }
  free(rows);
  return status;
}

static enum cct_status plan_point(const struct cct_planner *planner, const struct cct_options *options,
                                  const struct sweep *sweep, int index, struct cct_json *points) {
  struct cct_options cell;
  enum cct_status status = cct_options_copy(options, &cell);
  const char *value = sweep_value(sweep, index);
  char heading[96];
  if (status)
    return status;
  snprintf(heading, sizeof heading, "%s %s", cct_option_table[sweep->id].name, value);
  struct cct_json *point = points ? cct_json_new_object() : NULL;
  status = cct_option_set(&cell, sweep->id, value, "--sweep");
  if (!status)
    status = plan_once(planner, &cell, heading, index == 0, point);
  if (points)
    cct_json_add(points, point);
  cct_options_free(&cell);
  return status;
}

enum cct_status cct_cmd_plan(const struct cct_options *options, const char *const *args, int n_args) {
  struct cct_planner *planner = NULL;
  struct sweep sweep = {.id = CCT_OPTION_COUNT};
  struct cct_json *json = NULL, *points = NULL;
  enum cct_status status = check_request(options, n_args, args);
  if (!status)
    status = read_sweep(options, &sweep);
  if (!status)
    status = refuse_unread(options, &sweep);
  if (!status)
    status = cct_planner_open(options, &planner);
  if (status)
    goto out;
  if (options->v[CCT_OPT_JSON].i)
    json = open_document(planner);
  points = json && sweep.values ? cct_json_new_array() : NULL;
  if (!sweep.values)
    status = plan_once(planner, options, NULL, 1, json);
  for (int i = 0; sweep.values && !status && i < sweep.n; i++)
    status = plan_point(planner, options, &sweep, i, points);
  if (points) {
    cct_json_set_null(json, "layouts");
    cct_json_set(json, "sweep", points);
  }
  if (!status && json) {
    status = cct_document_print(json);
    json = NULL;
  }
out:
  cct_json_free(json);
  free(sweep.values);
  cct_planner_close(planner);
  return status;
}
