/* SPDX-License-Identifier: Apache-2.0
 * The decision: rules turned, once for each communicator, into tables that a call searches instead of scanning. Pure:
 * no NCCL types, no environment, no files. A built decision is never written again, so any thread may ask it.
 *
 * A cost table is `algorithms` rows of `protocols` microseconds, row after row. A cell is usable if it holds a finite
 * number >= 0; NCCL marks the others with a negative (-1, and -1024 where it scales an ignored row). */
#ifndef CCT_TUNER_DECISION_H
#define CCT_TUNER_DECISION_H

#include "tuner/rules.h"

/* What holds for a communicator as long as it lives. */
struct cct_tuner_situation {
  int nodes, ranks;
  int cc;               /* 1 on, 0 off, -1 not known: rules for `cc` and for `clear` are then both left out */
  int is_multicast_off; /* agreed for all ranks: `no-multicast` holds whatever a table says */
  const char *gpu;      /* the GPU's name, "" if not known: rules that ask for a name are then left out */
};

struct cct_tuner_call {
  int collective;
  uint64_t bytes;
  int pipe_ops;
  int reg_buff; /* -1: this NCCL does not say; rules that ask are left out */
  const float *cost;
  int algorithms, protocols;
};

struct cct_tuner_choice {
  int rule; /* index in the rules it was built from */
  int algorithm, protocol;
  int channels; /* 0: NCCL's own number */
};

enum cct_tuner_verdict {
  CCT_TUNER_CHOSEN,
  CCT_TUNER_NOT_COVERED, /* no rule holds for the call */
  CCT_TUNER_NOT_USABLE,  /* rules hold, and none of their cells is usable */
};

struct cct_decision; /* opaque; NULL decides CCT_TUNER_NOT_COVERED */

/* `rules` may be freed afterwards. CCT_NOMEM leaves *decision_out alone. */
enum cct_status cct_decision_build(const struct cct_rules *rules, const struct cct_tuner_situation *situation,
                                   struct cct_decision **decision_out) CCT_CHECKED;
void cct_decision_free(struct cct_decision *decision);
/* Whether a rule can hold for this communicator at all. */
int cct_rule_holds(const struct cct_rule *rule, const struct cct_tuner_situation *situation);

/* *choice_out is written only with CCT_TUNER_CHOSEN. Neither allocates nor locks. */
enum cct_tuner_verdict cct_decision_choose(const struct cct_decision *decision, const struct cct_tuner_call *call,
                                           struct cct_tuner_choice *choice_out);

int cct_cost_is_usable(float cost_us);
/* Whether any NVLS or NVLS_TREE cell is usable. */
int cct_cost_has_nvls(const float *cost, int algorithms, int protocols);
/* Makes a usable cell the cheapest: it gets 1e-3 x (3 x algorithm + protocol + 1) us, below any real cost, so that an
 * estimate names the cell. Any other usable cell at or below that is set to 1e9 us: still usable, never chosen. No
 * other cell is touched, so none becomes usable and none is disabled. */
void cct_cost_force(float *cost, int algorithms, int protocols, int algorithm, int protocol);

#endif
