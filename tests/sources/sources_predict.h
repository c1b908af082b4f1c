/* SPDX-License-Identifier: Apache-2.0
 * Published figures, and what unfitted unit costs predict of them. No constant is moved here: a row is a model, a
 * layout and a profile as they ship. */
#ifndef CCT_TESTS_SOURCES_SOURCES_PREDICT_H
#define CCT_TESTS_SOURCES_SOURCES_PREDICT_H

#include "base/status.h"
#include "workloads/program/emulate.h"

struct source { /* a row of published.tsv */
  char *id, *workload, *must_predict;
  double off, on, lo, hi; /* NAN: empty */
};

struct sources {
  char *text;
  struct source rows[128];
  int n;
};

struct prediction { /* added time in per cent of the clear time, and the clear time */
  double value, lo, hi, clear_s, added_s, share[CCT_BOUNDARY_COUNT];
};

/* What is predicted for a published row. `end`: 0 the whole range, 1 its low end, 2 its high end. */
struct row {
  const char *id, *words, *note;
  int end;
};

/* Published rows that have a prediction, in the order of the page; NULL behind the last. */
const struct row *sources_row(int i);
/* Of that row, once all were predicted. */
const struct prediction *sources_prediction(int i);
/* The `n`-th row of this id; NULL: none. */
const struct prediction *predicted(const char *id, int n);
enum cct_status sources_read(const char *path, struct sources *sources);
const struct source *sources_find(const struct sources *sources, const char *id);
enum cct_status sources_predict(void);

#endif
