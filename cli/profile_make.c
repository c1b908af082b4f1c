/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_make.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/profile_beside.h"

struct make {
  const struct cct_probe_set *set; /* of the column in hand */
  const struct cct_profile *base;  /* NULL: none */
  const struct cct_column *column; /* the base's; NULL: none */
  const char *name;                /* "clear", "confidential" */
  struct cct_profile_report *report;
  enum cct_status status;
};

const char *cct_value_state_name(enum cct_value_state state) {
  static const char *const names[] = {"measured", "derived", "taken", "replaced", "unstable", "missing"};
  return names[state];
}

void cct_profile_report_free(struct cct_profile_report *report) {
  free(report->lines);
  memset(report, 0, sizeof *report);
}

static void report(struct make *m, const char *path, const char *key, enum cct_value_state state,
                   const struct cct_estimate *estimate) {
  struct cct_profile_report *r = m->report;
  if (!m->status)
    m->status = cct_grow((void **)&r->lines, &r->capacity, r->n + 1, sizeof *r->lines);
  if (m->status)
    return;
  struct cct_profile_line *line = &r->lines[r->n++];
  *line = (struct cct_profile_line){.state = state, .estimate = *estimate};
  snprintf(line->path, sizeof line->path, "%s.%s%s%s", m->name, path, *path && *key ? "." : "", key);
  r->n_lost += state == CCT_VALUE_UNSTABLE || state == CCT_VALUE_MISSING;
}

static void put(struct cct_json *object, const char *key, double value, double lo, double hi, const char *kind,
                const char *source) {
  struct cct_json *cost = cct_json_new_object();
  cct_json_set_f64(cost, "value", value);
  cct_json_set_f64(cost, "lo", lo);
  cct_json_set_f64(cost, "hi", hi);
  cct_json_set_string(cost, "kind", kind);
  cct_json_set_string(cost, "source", source);
  cct_json_set(object, key, cost);
}

/* One value of the profile; `base` NULL or without a source: the base does not have it either. */
static void add(struct make *m, struct cct_json *object, const char *path, const char *key,
                const struct cct_estimate *e, const struct cct_cost *base) {
  int is_sim = !strcmp(m->set->backend, "sim"), has_base = m->column && base && base->source;
  char source[512];
  if (e->is_known && !e->is_unstable) {
    snprintf(source, sizeof source, "cctax probe, run %s, condition %s, backend %s%s%s: %s, %d repeats within %.1f %%",
             m->set->run, m->set->condition, m->set->backend, is_sim ? " playing " : "", m->set->sim_machine, e->from,
             e->repeats, 100 * e->spread);
    put(object, key, e->value, e->lo, e->hi, cct_probe_set_is_derived(m->set) ? "derived" : "measured", source);
    report(m, path, key, cct_probe_set_is_derived(m->set) ? CCT_VALUE_DERIVED : CCT_VALUE_MEASURED, e);
  } else if (has_base) {
    snprintf(source, sizeof source, "%s here; profile %s: %s", e->is_known ? "unstable" : "not measured", m->base->name,
             base->source);
    put(object, key, base->value, base->lo, base->hi, "assumed", source);
    report(m, path, key, e->is_known ? CCT_VALUE_REPLACED : CCT_VALUE_TAKEN, e);
  } else {
    report(m, path, key, e->is_known ? CCT_VALUE_UNSTABLE : CCT_VALUE_MISSING, e);
  }
}

#define BASE(field) (m->column ? &m->column->field : NULL)

static void add_channel(struct make *m, const struct cct_fitted *f, enum cct_submission_form form,
                        struct cct_json *column) {
  struct cct_json *submission = cct_json_new_object(), *graph = cct_json_new_object(), *sync = cct_json_new_object();
  add(m, submission, "submission", "us", &f->submission_us, BASE(submission.us));
  cct_json_set_string(submission, "form", form == CCT_FORM_STREAM ? "stream" : "host");
  add(m, graph, "graph_launch", "us", &f->graph_us, BASE(graph_launch.us));
  add(m, graph, "graph_launch", "us_per_node", &f->graph_us_per_node, BASE(graph_launch.us_per_node));
  add(m, sync, "sync", "us", &f->sync_us, BASE(sync_us));
  cct_json_set(column, "submission", submission);
  cct_json_set(column, "graph_launch", graph);
  cct_json_set(column, "sync", sync);
  add(m, column, "", "kernel_floor_us", &f->floor_us, BASE(kernel_floor_us));
}

static void add_copies(struct make *m, const struct cct_fitted *f, struct cct_json *column) {
  static const char *const directions[] = {"h2d", "d2h"}, *const memories[] = {"pinned", "pageable"};
  struct cct_json *copies = cct_json_new_object();
  for (int d = 0; d < 2; d++) {
    struct cct_json *direction = cct_json_new_object();
    for (int k = 0; k < 2; k++) {
      struct cct_json *memory = cct_json_new_object();
      char path[32];
      int blocks = f->copy[d][k].blocks;
      snprintf(path, sizeof path, "copy.%s.%s", directions[d], memories[k]);
      add(m, memory, path, "fixed_us", &f->copy[d][k].fixed_us, BASE(copy[d][k].fixed_us));
      add(m, memory, path, "gb_s", &f->copy[d][k].gb_s, BASE(copy[d][k].gb_s));
      if (blocks < 0 && m->column)
        blocks = m->column->copy[d][k].blocks;
      if (blocks < 0)
        report(m, path, "blocks", CCT_VALUE_MISSING, &(struct cct_estimate){0});
      cct_json_set_bool(memory, "blocks", blocks > 0);
      cct_json_set_bool(memory, "waits_for_stream", 1); /* by the order of a stream */
      cct_json_set(direction, memories[k], memory);
      if (f->copy[d][k].gb_s.is_known && f->copy[d][k].fixed_us.is_known)
        m->report->copies[!strcmp(m->name, "confidential")].crossover_bytes[d][k] =
            (f->submission_us.value + f->copy[d][k].fixed_us.value) * f->copy[d][k].gb_s.value * 1e3;
    }
    cct_json_set(copies, directions[d], direction);
  }
  cct_json_set(column, "copy", copies);
}

static void add_p2p(struct make *m, const struct cct_fitted *f, struct cct_json *column) {
  struct cct_json *p2p = cct_json_new_object();
  add(m, p2p, "p2p", "ce_gb_s", &f->ce_gb_s, BASE(p2p.ce_gb_s));
  add(m, p2p, "p2p", "sm_gb_s", &f->sm_gb_s, BASE(p2p.sm_gb_s));
  add(m, p2p, "p2p", "short_write_us", &f->short_write_us, BASE(p2p.short_write_us));
  cct_json_set(column, "p2p", p2p);
}

static const char *const row_keys[] = {"toll_us_eager", "toll_us_graph", "busbw_gb_s"};

/* NCCL's choice for a range of sizes is one row, named by the range; NVLS marks what needs multicast. */
static void add_row(struct make *m, struct cct_json *rows, const struct cct_fitted_row *row, int is_replaced) {
  struct cct_json *object = cct_json_new_object();
  char path[64], protocol[16];
  snprintf(protocol, sizeof protocol, "range%d", row->segment + 1);
  snprintf(path, sizeof path, "collective.%s.%d.%s%s", cct_collective_name(row->kind), row->ranks, protocol,
           row->needs_multicast ? ".nvls" : "");
  cct_json_set_i64(object, "ranks", row->ranks);
  cct_json_set_string(object, "algorithm", row->needs_multicast ? "NVLS/auto" : "auto");
  cct_json_set_string(object, "protocol", protocol);
  cct_json_set_i64(object, "channels", 0);
  int lost = m->report->n_lost;
  const struct cct_estimate *estimates[] = {&row->toll_us_eager, &row->toll_us_graph, &row->busbw_gb_s};
  for (int k = 0; k < 3; k++)
    if (is_replaced)
      report(m, path, row_keys[k], CCT_VALUE_REPLACED, estimates[k]);
    else
      add(m, object, path, row_keys[k], estimates[k], NULL);
  if (m->report->n_lost == lost && !is_replaced)
    cct_json_add(rows, object);
  else
    cct_json_free(object);
}

/* What was fitted of collectives: by the column's own arm, and, in a clear column, by a stripped one (NULL: none). */
struct fits {
  const struct cct_fitted *of[2];
};

static int is_whole(const struct cct_fitted_row *row) {
  const struct cct_estimate *estimates[] = {&row->toll_us_eager, &row->toll_us_graph, &row->busbw_gb_s};
  int is_good = 1;
  for (int k = 0; k < 3; k++)
    is_good &= estimates[k]->is_known && !estimates[k]->is_unstable;
  return is_good;
}

/* The rows of one number of ranks are the lower envelope of its times together: where one is unstable, none is kept. */
static int is_lost(const struct fits *fits, enum cct_collective kind, int ranks) {
  for (int a = 0; a < 2; a++)
    for (int i = 0; fits->of[a] && i < fits->of[a]->n_rows; i++) {
      const struct cct_fitted_row *row = &fits->of[a]->rows[i];
      if (row->kind == kind && row->ranks == ranks && !is_whole(row))
        return 1;
    }
  return 0;
}

static int has_base_rows(const struct make *m, enum cct_collective kind) {
  for (int i = 0; m->column && i < m->column->n_collectives; i++)
    if (m->column->collectives[i].kind == kind)
      return 1;
  return 0;
}

/* The base's rows of `kind` for ranks whose own are lost; all of them with `fits` NULL. */
static void add_base_rows(struct make *m, struct cct_json *rows, enum cct_collective kind, const struct fits *fits,
                          const char *why) {
  char source[512];
  for (int i = 0; m->column && i < m->column->n_collectives; i++) {
    const struct cct_collective_cost *row = &m->column->collectives[i];
    const struct cct_cost *costs[] = {&row->toll_us_eager, &row->toll_us_graph, &row->busbw_gb_s};
    if (row->kind != kind || (fits && !is_lost(fits, kind, row->ranks)))
      continue;
    struct cct_json *object = cct_json_new_object();
    cct_json_set_i64(object, "ranks", row->ranks);
    cct_json_set_string(object, "algorithm", row->algorithm);
    cct_json_set_string(object, "protocol", row->protocol);
    cct_json_set_i64(object, "channels", row->channels);
    for (int k = 0; k < 3; k++) {
      snprintf(source, sizeof source, "%s here; profile %s: %s", why, m->base->name, costs[k]->source);
      put(object, row_keys[k], costs[k]->value, costs[k]->lo, costs[k]->hi, "assumed", source);
    }
    cct_json_add(rows, object);
  }
}

/* Rows that are lost are replaced by the base's of as many ranks; where nothing is left, by all that it has. */
static void add_rows(struct make *m, const struct fits *fits, enum cct_collective kind, struct cct_json *rows) {
  int n = 0, has_base = has_base_rows(m, kind), has_stripped = fits->of[1] && fits->of[1]->n_rows;
  for (int a = 0; a < 2; a++)
    for (int i = 0; fits->of[a] && i < fits->of[a]->n_rows; i++) {
      struct cct_fitted_row row = fits->of[a]->rows[i];
      if (row.kind != kind)
        continue;
      row.needs_multicast = a == 0 && has_stripped;
      add_row(m, rows, &row, has_base && is_lost(fits, kind, row.ranks));
      n++;
    }
  if (has_base && n)
    add_base_rows(m, rows, kind, fits, "unstable");
  if (!has_base || cct_json_size(rows))
    return;
  add_base_rows(m, rows, kind, NULL, n ? "unstable" : "not measured");
  char path[64];
  snprintf(path, sizeof path, "collective.%s", cct_collective_name(kind));
  if (!n)
    report(m, path, "", CCT_VALUE_TAKEN, &(struct cct_estimate){0});
}

static void add_collectives(struct make *m, const struct cct_fitted *f, const struct cct_fitted *stripped,
                            struct cct_json *column) {
  struct cct_json *collectives = cct_json_new_object();
  const struct fits fits = {.of = {f, stripped}};
  for (int kind = 0; kind < CCT_COLL_COUNT; kind++) {
    struct cct_json *rows = cct_json_new_array();
    add_rows(m, &fits, (enum cct_collective)kind, rows);
    if (cct_json_size(rows))
      cct_json_set(collectives, cct_collective_name((enum cct_collective)kind), rows);
    else
      cct_json_free(rows);
  }
  cct_json_set(column, "collective", collectives);
}

static void add_device(struct make *m, const struct cct_fitted *f, struct cct_json *column) {
  struct cct_json *rates = cct_json_new_object();
  int n = 0;
  for (int type = 0; type < CCT_TYPE_COUNT; type++) {
    const struct cct_cost *base = BASE(gemm_tflop_s[type]);
    const char *name = cct_type_name((enum cct_type)type);
    if (!f->gemm_tflop_s[type].is_known && !(base && base->source))
      continue; /* a type that nobody has is no gap */
    add(m, rates, "gemm_tflop_s", name, &f->gemm_tflop_s[type], base);
    n++;
  }
  if (!n)
    report(m, "gemm_tflop_s", "", CCT_VALUE_MISSING, &(struct cct_estimate){0});
  cct_json_set(column, "gemm_tflop_s", rates);
  add(m, column, "", "hbm_gb_s", &f->hbm_gb_s, BASE(hbm_gb_s));
  add(m, column, "", "memory_bytes", &f->memory_bytes, BASE(memory_bytes));
  add(m, column, "", "reserved_bytes", &f->reserved_bytes, BASE(reserved_bytes));
  add(m, column, "", "cpu_slowdown", &f->cpu_slowdown, BASE(cpu_slowdown));
}

static struct cct_json *make_column(struct make *m, const struct cct_fitted *f, const struct cct_fitted *stripped,
                                    enum cct_submission_form form) {
  struct cct_json *column = cct_json_new_object();
  add_channel(m, f, form, column);
  add_copies(m, f, column);
  add_p2p(m, f, column);
  add_collectives(m, f, stripped, column);
  add_device(m, f, column);
  return column;
}

/* ---- platform and capability ---- */

static const char *fact_of(const struct cct_probe_set *set, const char *const *names, const char *base) {
  for (int i = 0; names[i]; i++) {
    const char *value = cct_probe_set_fact(set, names[i]);
    if (value && *value && strcmp(value, "unknown"))
      return value;
  }
  return base ? base : "not known";
}
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static int most_ranks(const struct cct_probe_set *set) {
  int64_t most = 1;
  for (size_t i = 0; i < set->n; i++)
    if (set->points[i].cell.v[CCT_OPT_NP].i > most)
      most = set->points[i].cell.v[CCT_OPT_NP].i;
  return (int)most;
}

static struct cct_json *make_platform(const struct cct_probe_points *points, const struct cct_profile *base) {
  const struct cct_probe_set *clear = &points->sets[CCT_PROBE_CLEAR], *on = &points->sets[CCT_PROBE_CONFIDENTIAL];
  struct cct_json *platform = cct_json_new_object();
  int ranks = most_ranks(clear), has_on = on->n > 0;
  cct_json_set_string(platform, "gpu", fact_of(clear, NAMES("gpu.name", "gpu"), base ? base->platform.gpu : NULL));
  cct_json_set_i64(platform, "gpus", base && base->platform.gpus > ranks ? base->platform.gpus : ranks);
  cct_json_set_i64(platform, "partition", ranks);
  cct_json_set_string(platform, "cpu", fact_of(clear, NAMES("cpu"), base ? base->platform.cpu : NULL));
  cct_json_set_string(platform, "tee", has_on ? fact_of(on, NAMES("tee"), base ? base->platform.tee : NULL) : "none");
  cct_json_set_string(platform, "mode",
                      has_on ? fact_of(on, NAMES("gpu.multi_gpu", "gpu_mode"), base ? base->platform.mode : NULL)
                             : "none");
  cct_json_set_string(platform, "driver",
                      fact_of(clear, NAMES("driver", "gpu.driver"), base ? base->platform.driver : NULL));
  return platform;
}

/* What is left under confidential computing; without that column nothing is taken away. */
static struct cct_json *make_capability(const struct cct_probe_points *points, const struct cct_fitted *on,
                                        const struct cct_profile *base) {
  const struct cct_probe_set *set = &points->sets[CCT_PROBE_CONFIDENTIAL];
  const char *multicast = set->n ? cct_probe_set_fact(set, "multicast") : NULL;
  struct cct_json *capability = cct_json_new_object();
  int is_clear = !set->n, blocks = on->copy[0][0].blocks;
  cct_json_set_bool(capability, "multicast",
                    is_clear || (multicast ? !strcmp(multicast, "1") : base && base->capability.multicast));
  cct_json_set_bool(capability, "work_fifo", is_clear); /* NCCL gives it up under CC */
  cct_json_set_bool(capability, "async_copy",
                    is_clear || (blocks >= 0 ? !blocks : base && base->capability.async_copy));
  cct_json_set_bool(capability, "host_register",
                    is_clear || (on->host_register >= 0 ? on->host_register : base && base->capability.host_register));
  cct_json_set_bool(capability, "gdr", is_clear || (on->gdr >= 0 ? on->gdr : base && base->capability.gdr));
  return capability;
}

enum cct_status cct_profile_make(const struct cct_probe_points *points, const struct cct_profile *base,
                                 const char *name, struct cct_profile_report *report_out,
                                 struct cct_json **document_out) {
  const struct cct_probe_set *sets = points->sets;
  struct cct_fitted *f = calloc(CCT_PROBE_COLUMNS, sizeof *f);
  struct cct_json *document = cct_json_new_object();
  if (!f || !document) {
    free(f);
    cct_json_free(document);
    return cct_fail(CCT_NOMEM, "out of memory");
  }
  memset(report_out, 0, sizeof *report_out);
  for (int s = 0; s < CCT_PROBE_COLUMNS; s++)
    cct_profile_fit(&sets[s], &f[s]);
  enum cct_submission_form form = cct_profile_form(&f[CCT_PROBE_CLEAR], &f[CCT_PROBE_CONFIDENTIAL]);
  if (form == CCT_FORM_STREAM)
    f[CCT_PROBE_CONFIDENTIAL].floor_us = f[CCT_PROBE_CLEAR].floor_us;
  cct_json_set_i64(document, "schema", 1);
  cct_json_set_string(document, "name", name);
  cct_json_set(document, "platform", make_platform(points, base));
  struct make m = {
      &sets[CCT_PROBE_CLEAR], base, base && base->has_clear ? &base->clear : NULL, "clear", report_out, CCT_OK};
  cct_json_set(
      document, "clear",
      make_column(&m, &f[CCT_PROBE_CLEAR], sets[CCT_PROBE_STRIPPED].n ? &f[CCT_PROBE_STRIPPED] : NULL, CCT_FORM_HOST));
  if (sets[CCT_PROBE_CONFIDENTIAL].n) {
    struct make on = {&sets[CCT_PROBE_CONFIDENTIAL],
                      base,
                      base && base->has_confidential ? &base->confidential : NULL,
                      "confidential",
                      report_out,
                      m.status};
    cct_json_set(document, "confidential", make_column(&on, &f[CCT_PROBE_CONFIDENTIAL], NULL, form));
    m.status = on.status;
  }
  cct_json_set(document, "capability", make_capability(points, &f[CCT_PROBE_CONFIDENTIAL], base));
  report_out->n_values = report_out->n;
  if (!m.status)
    m.status = cct_profile_beside(points, f, report_out);
  free(f);
  if (m.status) {
    cct_json_free(document);
    cct_profile_report_free(report_out);
    return m.status;
  }
  *document_out = document;
  return CCT_OK;
}
