/* SPDX-License-Identifier: Apache-2.0
 * sources_page PUBLISHED.tsv: docs/sources.md on stdout. For every published figure that the planner has to predict,
 * and for each sentence the sources draw from them, what unfitted unit costs give. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sources/sources_predict.h"

enum {
  NOISE = 2 /* points: the source's own figure for one pass */
};

static void published_range(const struct row *row, const struct source *source, double *lo, double *hi) {
  *lo = row->end == 2 ? source->hi : source->lo;
  *hi = row->end == 1 ? source->lo : source->hi;
}

static const char *decides(const struct prediction *p) {
  static const char *const costs[] = {"submission", "copies", "collectives", "multicast", "CPU"};
  int most = 0;
  for (int i = 1; i < CCT_BOUNDARY_COUNT; i++)
    most = p->share[i] > p->share[most] ? i : most;
  return p->share[most] < 0.05 ? "none" : costs[most];
}

/* "yes" within the source's noise, "in bounds" when the profile's bounds reach it, "no". */
static const char *size_verdict(const struct prediction *p, double lo, double hi) {
  if (p->value >= lo - NOISE && p->value <= hi + NOISE)
    return "yes";
  return p->hi >= lo - NOISE && p->lo <= hi + NOISE ? "in bounds" : "no";
}

static const char *sign_verdict(const struct prediction *p, double lo, double hi) {
  if (lo > -NOISE && hi < NOISE)
    return "in noise";
  return (p->value > 0) == (hi > 0) ? "yes" : "no";
}

static void print_table(const struct sources *sources) {
  printf("| figure | what was measured | published +%% | predicted +%% | bounds | sign | size | decides | how it is "
         "predicted |\n"
         "|---|---|---|---|---|---|---|---|---|\n");
  const struct row *row;
  for (int i = 0; (row = sources_row(i)); i++) {
    const struct source *source = sources_find(sources, row->id);
    const struct prediction *p = sources_prediction(i);
    double lo, hi;
    published_range(row, source, &lo, &hi);
    printf("| %s | %s | ", source->id, source->workload);
    printf(lo == hi ? "%.1f" : "%.1f to %.1f", lo, hi);
    printf(" | %.1f | %.1f to %.1f | %s | %s | %s | %s |\n", p->value, p->lo, p->hi, sign_verdict(p, lo, hi),
           size_verdict(p, lo, hi), decides(p), row->note);
  }
}

/* Which must be predicted and have no row. */
static void print_missing(const struct sources *sources) {
  int n = 0;
  for (int i = 0; i < sources->n; i++)
    if (!strcmp(sources->rows[i].must_predict, "yes") && !predicted(sources->rows[i].id, 0))
      printf("%s%s", n++ ? ", " : "\nWithout a prediction: ", sources->rows[i].id);
  if (n)
    printf(".\n");
}

static const char *yes(int is_so) {
  return is_so ? "yes" : "no";
}

static void print_sentences(void) {
  const struct prediction *eager = predicted("skel-eager", 0), *graph = predicted("skel-graph", 0);
  const struct prediction *tp_short = predicted("tp2ep4dp2", 0), *tp_long = predicted("tp2ep4dp2", 1);
  const struct prediction *ep_short = predicted("dp8ep8", 0), *ep_long = predicted("dp8ep8", 1);
  const struct prediction *out[] = {predicted("tp8-out256", 0), predicted("tp8-out512", 0), predicted("tp8-out1024", 0),
                                    predicted("tp8-out2048", 0)};
  const struct prediction *tp4 = predicted("tp4-pin", 0), *tp8 = predicted("tp8-pin1", 0);
  const struct prediction *bf16 = predicted("train-bf16", 0), *fp8 = predicted("train-fp8", 0);
  int falls = out[0]->value > out[1]->value && out[1]->value > out[2]->value && out[2]->value > out[3]->value;
  printf("| sentence | sign | size | decides |\n|---|---|---|---|\n");
  printf("| eager decode pays by submission, one graph does not (+140.5 against +3.6) | %s: +%.1f against +%.1f | %s "
         "and %s | "
         "%s |\n",
         yes(eager->value > 10 * graph->value), eager->value, graph->value, size_verdict(eager, 140.5, 140.5),
         size_verdict(graph, 3.6, 3.6), decides(eager));
  printf(
      "| TP grows with the input (TP2/EP4/DP2, +9.9 at 4k to +17.0 at 32k) | %s: +%.1f to +%.1f | %s and %s | %s |\n",
      yes(tp_long->value > tp_short->value), tp_short->value, tp_long->value, size_verdict(tp_short, 9.9, 9.9),
      size_verdict(tp_long, 17, 17), decides(tp_long));
  printf("| EP with DP shrinks with the input (DP8/EP8, +12.4 at 4k to +2.0 at 32k) | %s: +%.1f to +%.1f | %s and %s | "
         "%s |\n",
         yes(ep_long->value < ep_short->value), ep_short->value, ep_long->value, size_verdict(ep_short, 12.4, 12.4),
         size_verdict(ep_long, 2, 2), decides(ep_short));
  printf("| longer outputs pay less (256 to 2048 tokens: +16.8, +11.2, +7.6, +1.1) | %s: +%.1f, +%.1f, +%.1f, +%.1f | "
         "%s and "
         "%s | %s |\n",
         yes(falls), out[0]->value, out[1]->value, out[2]->value, out[3]->value, size_verdict(out[0], 16.8, 16.8),
         size_verdict(out[3], 1.1, 1.1), decides(out[0]));
  printf("| TP4 pays half of TP8's tax (+1.6 against +2.9 to +3.7) | %s: +%.1f against +%.1f | %s and %s | %s |\n",
         yes(tp4->value < tp8->value), tp4->value, tp8->value, size_verdict(tp4, 1.6, 1.6), size_verdict(tp8, 2.9, 3.7),
         decides(tp8));
  printf("| FP8 training pays relatively more (+24.1 against +13.3) | %s: +%.1f against +%.1f | %s and %s | %s |\n",
         yes(fp8->value > bf16->value), fp8->value, bf16->value, size_verdict(fp8, 24.1, 24.1),
         size_verdict(bf16, 13.3, 13.3), decides(fp8));
}

static void print_skeleton(void) {
  const struct prediction *eager = predicted("skel-eager", 0);
  double clear_us = eager->clear_s * 1e6, confidential_us = clear_us + eager->added_s * 1e6;
  double serial_us = 2644 + 181 * (34.45 - 3.45);
  printf("\n## Two readings of the skeleton\n\n"
         "The source gives 2644 us clear and 6358 us confidential (x2.41). Serially, as if each of the 181\n"
         "launches added its surcharge to the clear step: 2644 + 181 x 31 = %.0f us, x%.2f. By the timing law the\n"
         "host runs ahead, and the step is as long as the slower of host and GPU: clear %.0f us, confidential\n"
         "%.0f us, x%.2f; the host alone needs 181 x 34.45 = %.0f us. The measured 6358 us are the second; the\n"
         "clear step is predicted %.0f %% too short (rooflines), which makes the ratio too large.\n",
         serial_us, serial_us / 2644, clear_us, confidential_us, 1 + eager->value / 100, 181 * 34.45,
         100 * (1 - clear_us / 2644));
}

static double share_s(const struct prediction *p, enum cct_boundary boundary) {
  return p->share[boundary] * p->clear_s / 100;
}

static void print_outputs(const struct sources *sources) {
  static const char *const ids[] = {"tp8-out256", "tp8-out512", "tp8-out1024", "tp8-out2048"};
  const struct prediction *shortest = predicted(ids[0], 0), *longest = predicted(ids[3], 0);
  double ratio[4];
  printf(
      "\n## The output sweep in seconds\n\n"
      "A wave of 32 requests, confidential less clear, and what collectives and submissions make of it.\n\n"
      "| output | published clear | published added | predicted clear | predicted added | collectives | submissions |\n"
      "|---|---|---|---|---|---|---|\n");
  for (int i = 0; i < 4; i++) {
    const struct source *source = sources_find(sources, ids[i]);
    const struct prediction *p = predicted(ids[i], 0);
    double clear_s = 32.0 * (256 << i) / source->off, on_s = 32.0 * (256 << i) / source->on;
    ratio[i] = clear_s / p->clear_s;
    printf("| %d | %.2f | %.2f | %.2f | %.2f | %.3f | %.3f |\n", 256 << i, clear_s, on_s - clear_s, p->clear_s,
           p->added_s, share_s(p, CCT_BOUNDARY_NVLINK), share_s(p, CCT_BOUNDARY_CHANNEL));
  }
  printf(
      "\nThe published addition is nearly the same for 256 and for 1024 tokens, so it is paid a wave, not a token.\n"
      "Bytes and tolls of encrypted collectives make %.2f to %.2f s of it. What unit costs find are the submissions\n"
      "of 32 prompts, which `plan` composes one by one and without a graph; an engine that packs prompts submits\n"
      "less, so that the seconds agree is no proof. The clear time is predicted %.1f to %.1f times too short\n"
      "(rooflines, no engine), and so no size in per cent comes out. No constant was moved.\n",
      share_s(shortest, CCT_BOUNDARY_NVLINK), share_s(longest, CCT_BOUNDARY_NVLINK), ratio[3], ratio[0]);
}

static void print_overlap(const struct sources *sources) {
  const struct source *tpot = sources_find(sources, "overlap-on-tpot");
  printf(
      "\n## What unit costs alone cannot say\n\n"
      "- Overlapped scheduling (overlap-on, async-d2h) loses what it hid: a confidential copy back holds the host\n"
      "  until the GPU is done, so the engine's own work, hidden before, follows the step. `--overlap on --host-us\n"
      "  US` prices it; US is a property of the engine, which no profile holds. The published %.2f ms and %.2f ms a\n"
      "  token leave %.2f ms for it.\n"
      "- Architectures that are not public or not modelled are predicted by stand-ins, named in the table; a figure\n"
      "  that a stand-in meets or misses says little about size.\n"
      "- How many copies and small kernels an engine submits beside its graphs is the engine's: 7 copies a decode "
      "step\n"
      "  in vLLM 0.22, none in SGLang 0.5.13, one here. It is not what the tables of TP8 lack "
      "([serving.md](serving.md)).\n"
      "- Which way the cost of experts' layouts goes with the input is decided by how many tokens a step reads, which\n"
      "  no source states; the planner reads each prompt in one step ([serving.md](serving.md)).\n"
      "- The source's four measurements of one configuration (tp8-c32, tp8-out2048, tp8-pin1, tp8-pin2) span +1.1\n"
      "  to +5.0.\n",
      tpot->off, tpot->on, tpot->on - tpot->off);
}

static void print_head(void) {
  printf(
      "# What the sources say, and what unit costs predict\n\n"
      "<!-- generated: build/debug/tests/sources_page data/published.tsv > docs/sources.md -->\n\n"
      "Every figure that data/published.tsv marks as one the planner has to predict, by sim from the shipped\n"
      "profiles, unfitted. Added time in per cent of the clear time. *size* is yes within %d points (what the source\n"
      "states for one pass), *in bounds* when the bounds of the profile's confidential costs reach it. *decides* is\n"
      "the boundary with the largest share.\n\n## Sentences\n\n",
      NOISE);
}

int main(int argc, char **argv) {
  struct sources sources = {0};
  enum cct_status status;
  if (argc != 2)
    return cct_status_exit(cct_fail(CCT_USAGE, "usage: sources_page PUBLISHED.tsv > docs/sources.md"));
  status = sources_read(argv[1], &sources);
  for (int i = 0; !status && sources_row(i); i++)
    if (!sources_find(&sources, sources_row(i)->id))
      status = cct_fail(CCT_USAGE, "%s: no figure '%s'", argv[1], sources_row(i)->id);
  if (!status)
    status = sources_predict();
  if (!status) {
    print_head();
    print_sentences();
    print_skeleton();
    print_outputs(&sources);
    print_overlap(&sources);
    printf("\n## Figures\n\n");
    print_table(&sources);
    print_missing(&sources);
  }
  free(sources.text);
  return cct_status_exit(status);
}
