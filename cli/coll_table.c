/* SPDX-License-Identifier: Apache-2.0
 * nccl-tests' table, line by line and column by column, from its first comment to its last: what parses one parses the
 * other. What it does not have stands in comments behind, without words by which its readers find their place. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/coll.h"
#include "workloads/shape/cell.h"

static const char *const place_names[CCT_COLL_PLACES] = {"out of place", "in place"};

/* nccl-tests' program of a collective. */
static const char *program_of(const struct cct_coll_table *table) {
  static const char *const names[CCT_COLL_COUNT] = {
      [CCT_COLL_ALL_REDUCE] = "all_reduce_perf",
      [CCT_COLL_ALL_GATHER] = "all_gather_perf",
      [CCT_COLL_REDUCE_SCATTER] = "reduce_scatter_perf",
      [CCT_COLL_ALL_TO_ALL] = "alltoall_perf",
      [CCT_COLL_ALL_TO_ALLV] = "alltoallv_perf",
      [CCT_COLL_BROADCAST] = "broadcast_perf",
      [CCT_COLL_REDUCE] = "reduce_perf",
  };
  return table->kind < 0 ? "sendrecv_perf" : names[table->kind];
}

/* As many digits as fit `width`, as nccl-tests does. */
static char *number(double value, int width, char out[32]) {
  for (int digits = 2; digits >= 0; digits--)
    if (snprintf(out, 32, "%*.*f", width, digits, value) <= width)
      return out;
  snprintf(out, 32, "%*.*e", width, width >= 7 ? 1 : 0, value);
  return out;
}

static void print_value(const struct cct_coll_value *value, struct cct_text *text) {
  char time[32], algbw[32], busbw[32];
  if (!value->n_samples) {
    cct_text_add(text, "  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
    return;
  }
  cct_text_add(text, "  %7s  %6s  %6s", number(value->time_us, 7, time), number(value->algbw_gb_s, 6, algbw),
               number(value->busbw_gb_s, 6, busbw));
  if (value->wrong < 0)
    cct_text_add(text, "    N/A");
  else
    cct_text_add(text, "  %6g", (double)value->wrong);
}

static void print_sizes(const struct cct_coll_table *table, const struct cct_options *flags, struct cct_text *text) {
  if (!flags) {
    int64_t least = table->rows[0].bytes, most = least;
    for (int i = 1; i < table->n_rows; i++) {
      least = table->rows[i].bytes < least ? table->rows[i].bytes : least;
      most = table->rows[i].bytes > most ? table->rows[i].bytes : most;
    }
    cct_text_add(text, "minBytes %lld maxBytes %lld", (long long)least, (long long)most);
    return;
  }
  int is_factor = flags->v[CCT_OPT_STEP_FACTOR].i > 1;
  cct_text_add(text, "minBytes %lld maxBytes %lld step: %lld(%s)", (long long)flags->v[CCT_OPT_MIN_BYTES].i,
               (long long)flags->v[CCT_OPT_MAX_BYTES].i,
               (long long)flags->v[is_factor ? CCT_OPT_STEP_FACTOR : CCT_OPT_STEP_BYTES].i,
               is_factor ? "factor" : "bytes");
}

/* What its figures are: measured, emulated, predicted, ... */
static const char *label_of(const struct cct_coll_table *table) {
  for (int r = 0; r < table->n_rows; r++)
    for (int p = 0; p < CCT_COLL_PLACES; p++)
      if (table->rows[r].value[p].n_samples)
        return table->rows[r].value[p].label;
  return "nothing";
}

static void print_head(const struct cct_coll_result *result, const struct cct_coll_table *table,
                       const struct cct_options *flags, struct cct_text *text) {
  const struct cct_agenda *agenda = result->agenda;
  const struct cct_options *cell = table->cell;
  int ranks = (int)cell->v[CCT_OPT_NP].i;
  cct_text_add(text, "# cctax %s coll, backend %s, %s %s: %s%s%s\n", CCT_VERSION, agenda->backend, agenda->factor,
               agenda->arms[table->arm], label_of(table), *result->nccl ? "; NCCL " : "", result->nccl);
  cct_text_add(text, "# Collective test starting: %s\n", program_of(table));
  cct_text_add(text, "# nThread 1 nGpus 1 ");
  print_sizes(table, flags, text);
  cct_text_add(text,
               " warmup iters: %lld iters: %lld agg iters: %lld validation: %lld graph: %lld unalign: 0\n#\n# Using "
               "devices\n",
               (long long)agenda->warmup, (long long)cell->v[CCT_OPT_ITERS].i,
               (long long)(cell->v[CCT_OPT_AGG_ITERS].has_value ? cell->v[CCT_OPT_AGG_ITERS].i : 1),
               (long long)(cell->v[CCT_OPT_CHECK].has_value ? cell->v[CCT_OPT_CHECK].i : 1),
               (long long)cell->v[CCT_OPT_CUDAGRAPH].i);
  cct_text_add(text, "#  Ranks 0 to %d on %s\n#\n", ranks - 1,
               *result->gpu                     ? result->gpu
               : strcmp(agenda->backend, "sim") ? "CPUs"
               : *agenda->profile               ? agenda->profile
                                                : "sim");
  cct_text_add(text, "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n",
               "", "", "", "", "");
  cct_text_add(text, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s \n", "size", "count", "type",
               "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
  cct_text_add(text, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s \n", "(B)", "(elements)", "",
               "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

static const char *why_above(int kind, const char *ran) {
  static const char
      nvls[] = "NVLS reduces in the switch, and moves less over a rank's link than the formula counts",
      slower[] = "the profile is of a slower link",
      either[] = "NVLS, which moves less over a rank's link than the formula counts, or a profile of a slower link: "
                 "what ran is not told";
  int has_nvls = kind == CCT_COLL_ALL_REDUCE || kind == CCT_COLL_ALL_GATHER || kind == CCT_COLL_REDUCE_SCATTER;
  return strstr(ran, "NVLS") ? nvls : *ran || !has_nvls ? slower : either;
}

static void print_row_name(const struct cct_coll_row *row, struct cct_text *text) {
  cct_text_add(text, "# %10lld  %8s  %6s  %6d", (long long)row->bytes, row->type, row->reduction, row->root);
}

/* Of the value out of place, or the one in place where there is no other. */
static void print_more(const struct cct_coll_result *result, const struct cct_coll_table *table,
                       const struct cct_coll_row *row, struct cct_text *text) {
  const struct cct_coll_value *value =
      row->value[CCT_COLL_OUT].n_samples ? &row->value[CCT_COLL_OUT] : &row->value[CCT_COLL_IN];
  char slowest[32], ran[160], limit[16] = "n/a";
  if (!value->n_samples)
    return;
  if (table->limit_gb_s > 0)
    snprintf(limit, sizeof limit, "%.0f%%", 100 * value->busbw_gb_s / table->limit_gb_s);
  print_row_name(row, text);
  cct_text_add(text, "  %6s  %7s  %4d", limit, number(value->slowest_us, 7, slowest), value->slowest_rank);
  if (row->is_launch_bound)
    cct_text_add(text, "  launch-bound");
  if (*value->ran)
    cct_text_add(text, "  %s", cct_coll_ran(result->agenda, table->arm, value->ran, ran));
  cct_text_add(text, "\n");
}

/* Why a value is missing or wrong, and how one can be above the limit. */
static void print_notes(const struct cct_coll_table *table, const struct cct_coll_row *row, struct cct_text *text) {
  for (int p = 0; p < CCT_COLL_PLACES; p++) {
    const struct cct_coll_value *value = &row->value[p];
    if (value->is_asked && *value->reason) {
      print_row_name(row, text);
      cct_text_add(text, "  %s: %s\n", place_names[p], value->reason);
    }
    if (table->limit_gb_s > 0 && value->busbw_gb_s > table->limit_gb_s) {
      print_row_name(row, text);
      cct_text_add(text, "  %s: above the limit: %s\n", place_names[p], why_above(table->kind, value->ran));
    }
  }
}

static void print_behind(const struct cct_coll_result *result, const struct cct_coll_table *table,
                         struct cct_text *text) {
  const struct cct_agenda *agenda = result->agenda;
  cct_text_add(text, "# n = %d; busbw = %s; limit %s\n", (int)table->cell->v[CCT_OPT_NP].i,
               cct_coll_formula(table->kind), table->limit_of);
  cct_text_add(text, "# %lld samples of a burst each in %lld rounds, medians\n", (long long)agenda->samples,
               (long long)agenda->rounds);
  if (!cct_has_in_place(table->collective, agenda->backend))
    cct_text_add(text, "# in place: n/a: the %s backend moves this from one buffer to another\n", agenda->backend);
  cct_text_add(text, "# %10s  %8s  %6s  %6s  %6s  %7s  %4s  verdict, ran\n", "size", "type", "redop", "root", "limit",
               "slowest", "rank");
  for (int i = 0; i < table->n_rows; i++)
    print_more(result, table, &table->rows[i], text);
  for (int i = 0; i < table->n_rows; i++)
    print_notes(table, &table->rows[i], text);
  cct_text_add(text, "#\n");
}

static void print_table(const struct cct_coll_result *result, const struct cct_coll_table *table,
                        const struct cct_options *flags, struct cct_text *text) {
  print_head(result, table, flags, text);
  for (int i = 0; i < table->n_rows; i++) {
    const struct cct_coll_row *row = &table->rows[i];
    cct_text_add(text, "%12lld  %12lld  %8s  %6s  %6d", (long long)row->bytes, (long long)row->count, row->type,
                 row->reduction, row->root);
    for (int p = 0; p < CCT_COLL_PLACES; p++)
      print_value(&row->value[p], text);
    cct_text_add(text, "\n");
  }
  cct_text_add(text, "# %-20s : %d %s\n", "Out of bounds values", table->wrong_values,
               table->wrong_values ? "FAILED" : "OK");
  cct_text_add(text, "# %-20s : %g \n#\n", "Avg bus bandwidth",
               isnan(table->average_busbw_gb_s) ? 0.0 : table->average_busbw_gb_s);
  cct_text_add(text, "# Collective test concluded: %s\n#\n", program_of(table));
  print_behind(result, table, text);
}

void cct_coll_print(const struct cct_coll_result *result, const struct cct_options *flags, struct cct_text *text) {
  for (int i = 0; i < result->n_tables; i++)
    print_table(result, &result->tables[i], flags, text);
}
