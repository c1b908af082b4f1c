/* SPDX-License-Identifier: Apache-2.0
 * A report in memory: cells paired across arms, each pair with its effect, interval and verdict. Filled by
 * cct_report_make from blocks that passed the gate; the exports, the figures and the page only read it. */
#ifndef CCT_REPORT_REPORT_H
#define CCT_REPORT_REPORT_H

#include "base/status.h"
#include "json/json.h"
#include "report/gate.h"
#include "report/runs.h"
#include "stats/compare.h"
#include "workloads/program/emulate.h"

/* One arm of one cell and metric: its block medians, and what is noteworthy in its samples. */
struct cct_series {
  struct cct_unit *units; /* owned; value = log of the block's median, negated where higher is better */
  int n_units, n_samples;
  int n_zero;        /* blocks whose value is 0 and may be (goodput): of these there is no logarithm, and no unit */
  int n_repetitions; /* of a burst of its first block */
  int outliers;      /* steps beyond 5 scaled MADs of their block's median; kept */
  double spread;     /* (p90 - p10) / median of a block's steps, the median over blocks */
  double *drifts;    /* owned: log(last third / first third) of each block, NAN: too few steps */
  double drift;      /* their mean */
  int is_drifting;   /* its 95 % interval leaves 0 out, and it exceeds 0.5 % */
  struct cct_cell_counts program, performed; /* of its first block that knows them */
  char mark[200];                            /* of its first block that has one, with that block's name */
  char label[64];
  char refusal[200];          /* "": usable; else why no number of it enters a comparison */
  struct cct_comparison null; /* A/A of its own halves */
  int has_null;
};

struct cct_names;
struct cct_overlap;

struct cct_report_cell {
  char *key;                             /* owned: canonical JSON of the CELL without the factor */
  struct cct_json *parameters;           /* owned: the same, parsed */
  const char *workload, *model, *layout; /* borrowed from parameters; NULL where it has none */
  const char *kind; /* what readers call its workload: of collectives and probes which one, "program" without any */
  int kind_index;   /* among the report's kinds */
  char title[160];  /* what tells it from the report's other cells: names.h */
  struct cct_metric metric;
  int64_t tokens; /* of one step of all ranks; 0: not known */
  int is_first;   /* the first metric of its CELL */
  int is_open;    /* its requests come at a rate of their own, which is then its throughput */
  int is_primary; /* the first metric of its CELL if that is a speed, or of requests that come by themselves e2e: the
                     geometric mean and the figures take only these */
  struct cct_series *arms; /* owned: n_arms of them */
};

/* more, fewer: of what is no speed, by its value */
#define CCT_VERDICTS(X)                                                                                                \
  X(SLOWER, "slower") X(FASTER, "faster") X(MORE, "more") X(FEWER, "fewer") X(SAME, "~") X(REFUSED, "refused")
enum cct_verdict {
#define CCT_VERDICT_ENUM(id, name) CCT_VERDICT_##id,
  CCT_VERDICTS(CCT_VERDICT_ENUM)
#undef CCT_VERDICT_ENUM
  CCT_VERDICT_COUNT
};
const char *cct_verdict_name(enum cct_verdict verdict);

/* Per cent of the baseline's time. Shares by switching boundaries on and off in sim: docs/report.md. */
struct cct_attribution {
  int is_known;
  double share[CCT_BOUNDARY_COUNT]; /* it alone on, minus all off */
  double off[CCT_BOUNDARY_COUNT];   /* all on, minus all but it */
  double interaction;               /* all on - all off - sum of shares */
  double residual;                  /* measured - all on */
  char why_not[160];                /* where it is not known */
};

struct cct_result { /* one cell, one arm against the baseline */
  int cell, arm;
  enum cct_verdict verdict;
  char label[96];
  char reason[200]; /* of a refusal, or of a missing interval; "" otherwise */
  char remark[480]; /* what else is to be known of the two arms: remarks.h */
  struct cct_comparison comparison;
  int is_exact;            /* predicted without noise: different or not, and no interval */
  double smallest_visible; /* log ratio; NAN: no interval */
  struct cct_attribution attribution;
};

struct cct_arm_summary {      /* one arm against the baseline over primary cells */
  int n_cells;                /* that entered */
  struct cct_comparison mean; /* of the geometric mean over cells, blocks kept apart */
};

struct cct_report {
  const struct cct_runs *runs; /* borrowed */
  struct cct_gate gate;
  char factor[32];
  char arms[CCT_MAX_ARMS][112];
  int n_arms;    /* arm 0 is the baseline */
  int *arm_of;   /* owned: the arm of each block */
  int is_null;   /* two arms of one condition: what differs is noise */
  int has_steps; /* some cell is a step of a model; the geometric mean is then over those alone */
  struct cct_report_cell *cells;
  int n_cells;
  struct cct_names *names;     /* owned: how its cells are called */
  struct cct_overlap *overlap; /* owned: what steps say beside their time, overlap.h */
  struct cct_result *results;
  int n_results;
  double visible_df, visible;     /* the last degrees of freedom, and what they let be seen, in standard errors */
  int n_compared;                 /* results with an interval, or exact */
  int n_nulls, n_nulls_different; /* A/A comparisons of halves, and those whose interval leaves 0 out */
  struct cct_arm_summary summary[CCT_MAX_ARMS];
  struct cct_arm_summary throughput[CCT_MAX_ARMS]; /* over those that are not open */
};

/* The gate, the pairing, the intervals, the verdicts and the attribution. `allow` as for cct_gate_check; `profile` as
 * for cct_attribute. */
enum cct_status cct_report_make(const struct cct_runs *runs, const char *allow, const char *profile,
                                struct cct_report *report_out) CCT_CHECKED;
/* 1 if a cell failed, or its samples cannot be used: exit code 1. A cell in one arm only is no failure. */
int cct_report_has_failures(const struct cct_report *report);
void cct_report_free(struct cct_report *report); /* NULL-safe; leaves it zero */

/* 100 * (exp(effect) - 1): time added, and 100 * (1 - exp(-effect)): throughput lost, both in per cent. */
double cct_time_overhead_pct(double effect);
double cct_throughput_loss_pct(double effect);

/* ---- exports ---- */
/* The document of interfaces section 7, plus "summary"; `page` is the path of index.html, NULL for none. */
enum cct_status cct_report_to_json(const struct cct_report *report, const char *page,
                                   struct cct_json **document_out) CCT_CHECKED;
enum cct_status cct_report_to_csv(const struct cct_report *report, struct cct_text *text) CCT_CHECKED;
/* The comparison table for a terminal, verdict lines first. */
void cct_report_to_table(const struct cct_report *report, struct cct_text *text);

/* Writes index.html, report.json, report.csv and figures/ into `directory` (made where missing). */
enum cct_status cct_report_write(const struct cct_report *report, const char *directory) CCT_CHECKED;

#endif
