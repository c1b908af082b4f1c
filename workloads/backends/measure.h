/* SPDX-License-Identifier: Apache-2.0
 * The one timing loop of the product: the only caller of a backend's step() and sequence(). Host clock around each
 * burst (on sim the virtual one), all processes started together by a barrier, raw bursts kept; whoever reads them
 * computes medians and rates. */
#ifndef CCT_WORKLOADS_BACKENDS_MEASURE_H
#define CCT_WORKLOADS_BACKENDS_MEASURE_H

#include "workloads/backends/backend.h"

/* More repetitions than about 1024 queued submissions take would measure the queue. */
#define CCT_MOST_REPETITIONS 512

struct cct_measure_options {
  int64_t warmup, samples; /* warmup: single repetitions; where a burst has several, one burst follows them, untimed */
  int repetitions;         /* of a burst; 0: chosen by burst_ns */
  int64_t burst_ns;        /* repetitions are chosen so that a burst lasts this long; 0: one repetition, a step */
  /* Told before each burst, so that whoever watches knows that it goes on and what it was doing; may be NULL. */
  void (*progress)(void *context, const char *phase, int64_t index);
  void *context;
  const char *name;    /* of what is measured, where a rank fails alone; NULL: "a step" */
  int64_t patience_ns; /* that such a rank waits for the others before it ends them all; 0: as long as it takes */
};

struct cct_measured {
  int first, count; /* ranks this process owns */
  int n;            /* repetitions a burst, the same on all processes */
  int64_t samples;
  int64_t *start_ns; /* [samples] */
  int64_t *burst_ns; /* [samples * count]: the whole burst of each owned rank, not divided */
};

/* Collective over `world`: the processes the backend was opened with, in a world of their own, so that one that left a
 * step by a failure meets nobody's messages. `bindings` has one a rank of the job, or NULL. */
enum cct_status cct_measure(const struct cct_world *world, const struct cct_backend_ops *ops,
                            struct cct_executor *executor, const struct cct_binding *bindings,
                            const struct cct_measure_options *options, struct cct_measured *measured_out) CCT_CHECKED;
/* One sequence, started together: `burst->rank_ns` as sequence() leaves it. Of the options progress, context, name and
 * patience_ns count. */
enum cct_status cct_measure_sequence(const struct cct_world *world, const struct cct_backend_ops *ops,
                                     struct cct_executor *executor, struct cct_sequence *sequence,
                                     const struct cct_measure_options *options, struct cct_burst *burst) CCT_CHECKED;
void cct_measured_free(struct cct_measured *measured);

#endif
