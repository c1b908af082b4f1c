/* SPDX-License-Identifier: Apache-2.0
 * What blocks say of a step beside its time: what its collectives spend, expose and move, and what it works on.
 * Compared with nothing by the verdict: a trace is for attribution (workloads/backends/exposure.h). */
#ifndef CCT_REPORT_OVERLAP_H
#define CCT_REPORT_OVERLAP_H

#include "report/report.h"

struct cct_exposed {           /* of all collectives of one kind over one group, in one cell under one arm */
  int cell, arm;               /* the cell of the step's own time */
  char name[40];               /* "all_reduce.tp" */
  double spent_us, exposed_us; /* means over ranks, steps and blocks */
  int n[2];                    /* values in each */
};

struct cct_moved { /* by the collectives of the layout itself, over tp and ep, of a step */
  int cell, arm;
  struct cct_unit *units; /* owned: a block's mean, as its logarithm once finished; round: the block */
  int n_units;
};

struct cct_arm_step { /* of a cell under an arm; all 0 where no step could be built, or is no model's */
  int64_t tokens;     /* of all ranks */
  int ranks;
  double model_flops; /* of all ranks; 0: no training */
  double flops;       /* that one rank performs */
  double wire_bytes;  /* of one rank's collectives over tp and ep, and of the largest of them */
  double largest_bytes;
  int64_t checkpoint_every; /* 0: no checkpoints */
};

struct cct_overlap {
  struct cct_exposed *exposed; /* owned, by cell, arm, first use */
  struct cct_moved *moved;     /* owned */
  struct cct_arm_step *steps;  /* owned: [cell * n_arms + arm] */
  int n_exposed, n_moved;
};

/* Adds a block's metric that cct_exposure_is_metric names. Boot and place as in pairing. */
enum cct_status cct_overlap_add(struct cct_report *report, int cell, int arm, const struct cct_block_metric *metric,
                                int boot, int block) CCT_CHECKED;
enum cct_status cct_overlap_finish(struct cct_report *report) CCT_CHECKED; /* once all blocks are added */
void cct_overlap_free(struct cct_overlap *overlap);                        /* NULL-safe */

/* Do the collectives over tp and ep of two steps of one model, workload and number of tokens take time in the order of
 * their counted bytes? What replicas reduce is no part of it: it comes once a step, however many tokens that has, and
 * in other sizes. Asked where one counts 1.25 times the other's and each has a collective of 4 MiB. */
#define CCT_ORDER_RATIO 1.25
#define CCT_ORDER_BYTES (4.0 * 1024 * 1024)
#define CCT_ORDERS(X)                                                                                                  \
  X(AS_COUNTED, "as counted") X(AGAINST, "against the count") X(UNCLEAR, "not told apart") X(TIE, "not ordered")
enum cct_order_verdict {
#define CCT_ORDER_ENUM(id, name) CCT_ORDER_##id,
  CCT_ORDERS(CCT_ORDER_ENUM)
#undef CCT_ORDER_ENUM
};
const char *cct_order_name(enum cct_order_verdict verdict);
struct cct_order {
  int less, more;                   /* of overlap->moved; by counted bytes */
  double counted;                   /* ratio of bytes */
  struct cct_comparison comparison; /* of time, more against less; df 0: no interval */
  enum cct_order_verdict verdict;
};
/* Every pair under each arm (an A/A report: all of its blocks together, as arm 0). free() it. */
enum cct_status cct_order_list(const struct cct_report *report, struct cct_order **orders_out, int *n_out) CCT_CHECKED;

/* A step's seconds with its part of a checkpoint, and what follows; NAN: not known. */
struct cct_training {
  double step_s, checkpoint_s; /* s a step, the part of a checkpoint in it; s that a checkpoint adds to its step */
  double tokens_s, model_tflop_s, hardware_tflop_s; /* a second; the latter two of one GPU */
};
/* 0: the cell is no training, or has no time under that arm. */
int cct_training_of(const struct cct_report *report, int cell, int arm, struct cct_training *training_out);

/* ---- page_steps.c, export_steps.c ---- */
enum cct_status cct_page_steps(const struct cct_report *report, struct cct_text *html) CCT_CHECKED;
/* Sets "training", "collectives" and "order" of the document. */
enum cct_status cct_export_steps(const struct cct_report *report, struct cct_json *document) CCT_CHECKED;

#endif
