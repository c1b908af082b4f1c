/* SPDX-License-Identifier: Apache-2.0
 * What probe runs measured, as one list: a point is one metric of one cell in one block, the median of its samples (of
 * a step the maximum over ranks of each). */
#ifndef CCT_CLI_PROBE_POINTS_H
#define CCT_CLI_PROBE_POINTS_H

#include "base/option.h"
#include "record/record.h"

enum cct_probe_column {   /* by the condition of the block */
  CCT_PROBE_CLEAR,        /* off, tee */
  CCT_PROBE_STRIPPED,     /* clear without multicast */
  CCT_PROBE_CONFIDENTIAL, /* on, emulated */
  /* The same with buffers registered while a graph is captured (--arms registration=off,on): beside the profile. */
  CCT_PROBE_CLEAR_REGISTERED,
  CCT_PROBE_CONFIDENTIAL_REGISTERED,
  CCT_PROBE_COLUMNS,
};

struct cct_probe_point {
  struct cct_options cell; /* owned */
  char metric[24], unit[24];
  int block;       /* tells repeats apart, over all runs */
  double n, value; /* repetitions a burst; median, of a step in us a repetition */
};

struct cct_probe_set { /* one column */
  struct cct_probe_point *points;
  size_t n, capacity;
  int n_blocks;
  char condition[96]; /* of its blocks */
  char run[16];       /* the first digits of its agenda's digest */
  char backend[8];
  char sim_machine[64];          /* that sim plays; "" */
  struct cct_record_fact *facts; /* of its first block; owned */
  int n_facts;
};
struct cct_probe_points {
  struct cct_probe_set sets[CCT_PROBE_COLUMNS];
};

/* Adds what the finished blocks of RUN hold; only done cells count. */
enum cct_status cct_probe_points_add(struct cct_probe_points *points, const char *run) CCT_CHECKED;
void cct_probe_points_free(struct cct_probe_points *points);
/* Adds one point; the cell is copied. */
enum cct_status cct_probe_set_add(struct cct_probe_set *set, const struct cct_options *cell, const char *metric,
                                  const char *unit, int block, double n, double value) CCT_CHECKED;
int cct_probe_set_is_derived(const struct cct_probe_set *set); /* of sim or an emulated arm: nothing was measured so */
const char *cct_probe_set_fact(const struct cct_probe_set *set, const char *name); /* NULL: it has none of that name */

#endif
