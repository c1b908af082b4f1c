/* SPDX-License-Identifier: Apache-2.0
 * A profile as a person reads it: one cost a line, both columns with their bounds, what confidential computing adds,
 * and where each number is from, as numbers of a list of sources at the end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "workloads/program/profile.h"

struct show {
  FILE *out;
  const char *sources[1024];
  int n_sources;
};

static int source_number(struct show *s, const char *source) {
  for (int i = 0; i < s->n_sources; i++)
    if (!strcmp(s->sources[i], source))
      return i + 1;
  if (s->n_sources == (int)(sizeof s->sources / sizeof *s->sources))
    return 0;
  s->sources[s->n_sources++] = source;
  return s->n_sources;
}

static const char *number(double value, char *text, size_t size) {
  snprintf(text, size, fabs(value) >= 1e5 ? "%.4g" : "%.5g", value);
  return text;
}

static void cell(const struct cct_cost *cost, char text[64]) {
  char value[24], lo[24], hi[24];
  if (!cost || !cost->source)
    snprintf(text, 64, "-");
  else if (cost->lo == cost->hi)
    snprintf(text, 64, "%s", number(cost->value, value, sizeof value));
  else
    snprintf(text, 64, "%s (%s..%s)", number(cost->value, value, sizeof value), number(cost->lo, lo, sizeof lo),
             number(cost->hi, hi, sizeof hi));
}

static void row(struct show *s, const char *name, const char *unit, const struct cct_cost *clear,
                const struct cct_cost *confidential) {
  char left[64], right[64], surcharge[32] = "", kinds[32] = "", sources[24] = "", value[24];
  int has_clear = clear && clear->source, has_confidential = confidential && confidential->source;
  if (!has_clear && !has_confidential)
    return;
  cell(clear, left);
  cell(confidential, right);
  if (has_clear && has_confidential) {
    double added = confidential->value - clear->value;
    snprintf(surcharge, sizeof surcharge, "%s%s", added > 0 ? "+" : "", number(added, value, sizeof value));
  }
  if (has_clear)
    snprintf(kinds, sizeof kinds, "%s", cct_cost_kind_name(clear->kind));
  if (has_confidential && !(has_clear && clear->kind == confidential->kind))
    snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), "%s%s", has_clear ? "/" : "-/",
             cct_cost_kind_name(confidential->kind));
  int a = has_clear ? source_number(s, clear->source) : 0;
  int b = has_confidential ? source_number(s, confidential->source) : 0;
  if (a && b && a != b)
    snprintf(sources, sizeof sources, "[%d] [%d]", a, b);
  else
    snprintf(sources, sizeof sources, "[%d]", a ? a : b);
  fprintf(s->out, "%-42s %-8s %-26s %-26s %-10s %-19s %s\n", name, unit, left, right, surcharge, kinds, sources);
}

static const struct cct_collective_cost *same_row(const struct cct_column *column,
                                                  const struct cct_collective_cost *like) {
  for (int i = 0; i < column->n_collectives; i++) {
    const struct cct_collective_cost *row = &column->collectives[i];
    if (row->kind == like->kind && row->ranks == like->ranks && row->channels == like->channels &&
        !strcmp(row->algorithm, like->algorithm) && !strcmp(row->protocol, like->protocol))
      return row;
  }
  return NULL;
}

static void show_collective(struct show *s, const struct cct_collective_cost *like,
                            const struct cct_collective_cost *clear, const struct cct_collective_cost *confidential) {
  char place[80], name[120];
  snprintf(place, sizeof place, "%s x%d %s%s%s", cct_collective_name(like->kind), like->ranks, like->algorithm,
           *like->protocol ? "/" : "", like->protocol);
  if (like->channels)
    snprintf(place + strlen(place), sizeof place - strlen(place), " %d channels", like->channels);
#define PART(label, unit, field)                                                                                       \
  snprintf(name, sizeof name, "%s %s", place, label);                                                                  \
  row(s, name, unit, clear ? &clear->field : NULL, confidential ? &confidential->field : NULL)
  PART("toll eager", "us", toll_us_eager);
  PART("toll graph", "us", toll_us_graph);
  PART("busbw", "GB/s", busbw_gb_s);
#undef PART
}

static void show_copies(struct show *s, const struct cct_profile *p) {
  for (int d = 0; d < 2; d++)
    for (int m = 0; m < 2; m++) {
      const struct cct_copy_cost *clear = &p->clear.copy[d][m], *cc = &p->confidential.copy[d][m];
      char name[64];
      snprintf(name, sizeof name, "copy %s %s fixed", cct_direction_name((enum cct_direction)d),
               cct_memory_name((enum cct_memory)m));
      row(s, name, "us", &clear->fixed_us, &cc->fixed_us);
      snprintf(name, sizeof name, "copy %s %s%s", cct_direction_name((enum cct_direction)d),
               cct_memory_name((enum cct_memory)m),
               clear->blocks ? " (blocks)"
               : cc->blocks  ? " (confidential: blocks)"
                             : "");
      row(s, name, "GB/s", &clear->gb_s, &cc->gb_s);
    }
}

void cct_profile_show(const struct cct_profile *p, FILE *out) {
  struct show s = {.out = out};
  const struct cct_column *clear = &p->clear, *cc = &p->confidential;
  fprintf(out, "profile %s: %d x %s (guest of %d), %s, TEE %s, %s, driver %s\n", p->name, p->platform.gpus,
          p->platform.gpu, p->platform.partition, p->platform.cpu, p->platform.tee, p->platform.mode,
          p->platform.driver);
  fprintf(out, "a confidential submission's extra time is spent %s\n",
          cc->submission.form == CCT_FORM_HOST ? "on the submitting thread (form host)"
                                               : "on the stream (form stream)");
  fprintf(out,
          "confidential computing leaves: multicast %s, work FIFO %s, asynchronous copies %s, host registration %s, "
          "GPUDirect RDMA %s\n\n",
          p->capability.multicast ? "yes" : "no", p->capability.work_fifo ? "yes" : "no",
          p->capability.async_copy ? "yes" : "no", p->capability.host_register ? "yes" : "no",
          p->capability.gdr ? "yes" : "no");
  fprintf(out, "%-42s %-8s %-26s %-26s %-10s %-19s %s\n", "cost", "unit", "clear (lo..hi)", "confidential (lo..hi)",
          "surcharge", "kind", "source");
#define ROW(name, unit, field) row(&s, name, unit, &clear->field, &cc->field)
  ROW("submission", "us", submission.us);
  ROW("graph launch", "us", graph_launch.us);
  ROW("graph launch, a node", "us", graph_launch.us_per_node);
  ROW("sync", "us", sync_us);
  ROW("kernel floor", "us", kernel_floor_us);
  show_copies(&s, p);
  ROW("p2p copy engine", "GB/s", p2p.ce_gb_s);
  ROW("p2p SM", "GB/s", p2p.sm_gb_s);
  ROW("p2p short write", "us", p2p.short_write_us);
  for (int i = 0; i < clear->n_collectives; i++)
    show_collective(&s, &clear->collectives[i], &clear->collectives[i], same_row(cc, &clear->collectives[i]));
  for (int i = 0; i < cc->n_collectives; i++)
    if (!same_row(clear, &cc->collectives[i]))
      show_collective(&s, &cc->collectives[i], NULL, &cc->collectives[i]);
  for (int type = 0; type < CCT_TYPE_COUNT; type++) {
    char name[32];
    snprintf(name, sizeof name, "gemm %s", cct_type_name((enum cct_type)type));
    ROW(name, "TFLOP/s", gemm_tflop_s[type]);
  }
  ROW("HBM", "GB/s", hbm_gb_s);
  ROW("memory", "bytes", memory_bytes);
  ROW("reserved", "bytes", reserved_bytes);
  ROW("CPU slowdown", "x", cpu_slowdown);
  ROW("network latency", "us", net.us);
  ROW("network", "GB/s", net.gb_s);
#undef ROW
  if (clear->n_gemms || cc->n_gemms)
    fprintf(out, "listed GEMM shapes: %d clear, %d confidential\n", clear->n_gemms, cc->n_gemms);
  fprintf(out, "\nsources\n");
  for (int i = 0; i < s.n_sources; i++)
    fprintf(out, "  [%d] %s\n", i + 1, s.sources[i]);
}
