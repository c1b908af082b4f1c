/* SPDX-License-Identifier: Apache-2.0
 * Which layouts are planned, in which order they are printed, and what is said of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/planner.h"
#include "workloads/shape/cell.h"

static enum cct_status parse_list(const struct cct_planner *planner, const char *list, int64_t np,
                                  struct cct_layout **layouts_out, int *n_out) {
  size_t most = 1;
  for (const char *at = list; (at = strchr(at, '/')); at++)
    most++;
  struct cct_layout *layouts = calloc(most, sizeof *layouts);
  int n = 0;
  enum cct_status status = layouts ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  for (const char *at = list; !status; at++) {
    char text[128];
    size_t length = strcspn(at, "/");
    snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1), at);
    status = cct_layout_parse(text, "--layouts", &layouts[n]);
    if (!status)
      status = cct_layout_check(&layouts[n], cct_planner_model(planner));
    if (!status && np)
      status = cct_layout_check_ranks(&layouts[n], cct_planner_model(planner), np);
    n++;
    at += length;
    if (!*at)
      break;
  }
  if (status) {
    free(layouts);
    return status;
  }
  *layouts_out = layouts;
  *n_out = n;
  return CCT_OK;
}

static enum cct_status find_layouts(const struct cct_planner *planner, const struct cct_options *cell,
                                    struct cct_layout **layouts_out, int *n_out) {
  const struct cct_value *list = &cell->v[CCT_OPT_LAYOUTS], *np = &cell->v[CCT_OPT_NP];
  if (list->has_value && strcmp(list->s, "all"))
    return parse_list(planner, list->s, np->has_value ? np->i : 0, layouts_out, n_out);
  if (!np->has_value)
    return cct_fail(CCT_USAGE, "--np: how many ranks are to be laid out? (or --layouts tp=8/tp=4,dp=2)");
  enum cct_status status = cct_layout_all(cct_planner_model(planner), np->i, layouts_out, n_out);
  if (!status && !*n_out) {
    free(*layouts_out);
    status = cct_fail(CCT_USAGE, "--np %lld: no layout of %s uses so many ranks", (long long)np->i,
                      cct_planner_model(planner)->name);
  }
  return status;
}

static enum cct_status check_domain(const struct cct_planner *planner, const struct cct_layout *layouts, int n) {
  const struct cct_profile *profile = cct_planner_profile(planner);
  int64_t most = 0;
  for (int i = 0; i < n; i++)
    most = cct_layout_ranks(&layouts[i]) > most ? cct_layout_ranks(&layouts[i]) : most;
  if (most > profile->platform.gpus && !profile->clear.net.us.source)
    return cct_fail(CCT_USAGE,
                    "%lld ranks: profile %s has an NVLink domain of %d GPUs and no costs of a network between "
                    "domains (net)",
                    (long long)most, profile->name, profile->platform.gpus);
  return CCT_OK;
}

static int by_throughput(const void *a, const void *b) {
  const struct cct_plan_row *x = a, *y = b;
  double x_rate = x->tokens / x->confidential_ns, y_rate = y->tokens / y->confidential_ns;
  if (x->fits != y->fits)
    return y->fits - x->fits;
  return x_rate != y_rate ? (x_rate < y_rate ? 1 : -1) : strcmp(x->text, y->text);
}

enum cct_status cct_planner_rank(const struct cct_planner *planner, const struct cct_options *cell,
                                 struct cct_plan_row **rows_out, int *n_out) {
  struct cct_layout *layouts = NULL;
  struct cct_plan_row *rows = NULL;
  int n = 0;
  enum cct_status status = find_layouts(planner, cell, &layouts, &n);
  if (status)
    return status;
  status = check_domain(planner, layouts, n);
  if (!status && !(rows = calloc((size_t)n, sizeof *rows)))
    status = cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; !status && i < n; i++)
    status = cct_planner_price(planner, cell, &layouts[i], &rows[i]);
  free(layouts);
  if (status) {
    free(rows);
    return status;
  }
  qsort(rows, (size_t)n, sizeof *rows, by_throughput);
  *rows_out = rows;
  *n_out = n;
  return CCT_OK;
}

int cct_plan_advice(const struct cct_options *cell, const struct cct_plan_row *rows, int n, char *text, size_t size) {
  const char *graph = cct_cell_text(cell, CCT_OPT_GRAPH);
  const struct cct_plan_row *best = &rows[0], *clear = &rows[0];
  if (!best->fits)
    return 0;
  for (int i = 1; i < n && rows[i].fits; i++)
    if (rows[i].tokens / rows[i].clear_ns > clear->tokens / clear->clear_ns)
      clear = &rows[i];
  /* compared by the time of one token; a decode step's batch is each replica's, so there more replicas do more work */
  double best_worst = best->hi_ns / best->tokens, clear_best = clear->lo_ns / clear->tokens;
  double cost = best->confidential_ns - best->clear_ns;
  if (cct_cell_workload(cell) != CCT_WORKLOAD_DECODE && clear != best && best_worst < clear_best)
    snprintf(text, size, "%s is the fastest in the clear, but under confidential computing %s makes %.1f %% more.",
             clear->text, best->text,
             100 * (clear->confidential_ns / clear->tokens * best->tokens / best->confidential_ns - 1));
  else if (strcmp(graph, "full") && cct_cell_workload(cell) != CCT_WORKLOAD_PREFILL &&
           best->share_ns[CCT_BOUNDARY_CHANNEL] > 0.5 * cost && cct_per_cent(cost, best->clear_ns) > 5)
    snprintf(text, size,
             "submissions make %.0f %% of the %.1f %% that %s pays: %s--graph full leaves one of them a step.",
             100 * best->share_ns[CCT_BOUNDARY_CHANNEL] / cost, cct_per_cent(cost, best->clear_ns), best->text,
             best->layout.ep > 1 && !strcmp(cell->v[CCT_OPT_ROUTING].s, "host") ? "--routing padded with " : "");
  else if (cct_cell_workload(cell) != CCT_WORKLOAD_DECODE && n > 1 && rows[1].fits &&
           best_worst < rows[1].lo_ns / rows[1].tokens)
    snprintf(text, size, "%s makes at least %.1f %% more than any other layout, within the bounds of the profile.",
             best->text, 100 * (rows[1].lo_ns / rows[1].tokens / best_worst - 1));
  else
    return 0;
  return 1;
}
