/* SPDX-License-Identifier: Apache-2.0
 * What requests see as load grows: serving cells that differ in the number of requests at once, or in their rate, and
 * in nothing else. Values are each arm's own, with an interval over its blocks (over its boots, where it has several);
 * what compares arms is in the report's results. */
#ifndef CCT_REPORT_LOAD_H
#define CCT_REPORT_LOAD_H

#include "report/report.h"

#define CCT_LOAD_VALUES(X)                                                                                             \
  X(TTFT, "ttft")                                                                                                      \
  X(TTFT_P99, "ttft_p99")                                                                                              \
  X(TPOT, "tpot")                                                                                                      \
  X(TPOT_P99, "tpot_p99") X(E2E, "e2e") X(E2E_P99, "e2e_p99") X(OUTPUT_TOK_S, "output_tok_s") X(GOODPUT, "goodput")
enum cct_load_value {
#define CCT_LOAD_ENUM(id, name) CCT_LOAD_##id,
  CCT_LOAD_VALUES(CCT_LOAD_ENUM)
#undef CCT_LOAD_ENUM
  CCT_LOAD_VALUE_COUNT
};

struct cct_load_point {
  double x;
  int cells[CCT_LOAD_VALUE_COUNT]; /* of the report; -1: none */
};

struct cct_load {
  const char *axis;              /* the parameter: "concurrency" or "request_rate" */
  char *key;                     /* owned: the other parameters, as canonical text */
  struct cct_load_point *points; /* owned, by x; two and more */
  int n;
};

struct cct_loads {
  struct cct_load *items; /* owned; by axis, then in the order of the report's cells */
  int n;
};

enum cct_status cct_loads_find(const struct cct_report *report, struct cct_loads *loads_out) CCT_CHECKED;
void cct_loads_free(struct cct_loads *loads); /* NULL-safe; leaves it zero */
/* Any cell of the point, for its parameters. */
int cct_load_cell(const struct cct_load_point *point);

/* lo and hi NAN: no interval. Goodput of an arm of which no request kept its limits is 0. */
struct cct_load_seen {
  double value, lo, hi; /* NAN: the arm has none, or one that enters no comparison */
};
enum cct_status cct_load_see(const struct cct_report *report, const struct cct_load_point *point,
                             enum cct_load_value value, int arm, struct cct_load_seen *seen_out) CCT_CHECKED;

/* Sets "load" of the document: a row a point and arm. */
enum cct_status cct_export_load(const struct cct_report *report, struct cct_json *document) CCT_CHECKED;

#endif
