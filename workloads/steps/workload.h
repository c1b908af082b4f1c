/* SPDX-License-Identifier: Apache-2.0
 * From a cell to what its ranks do: the job of one step of a workload, or the job that a `program` cell names. */
#ifndef CCT_WORKLOADS_STEPS_WORKLOAD_H
#define CCT_WORKLOADS_STEPS_WORKLOAD_H

#include <stdint.h>

#include "base/option.h"
#include "workloads/program/program.h"
#include "workloads/steps/experiments.h"

/* One step of the whole job. Release with cct_step_free. */
struct cct_step {
  struct cct_job *job;          /* owned */
  struct cct_binding *bindings; /* owned; one a rank of the job, or NULL: every rank binds its program's defaults */
  struct cct_experiment_call experiment; /* to be performed instead of the job; .experiment NULL: none */
  struct cct_job *checkpoint; /* owned; the same step with a checkpoint in it, or NULL; it takes the same bindings */
  struct cct_serve *serve;  /* owned; of a serving cell, whose job's slots say what a step does (serve.h); else NULL */
  int64_t checkpoint_every; /* steps, of which one has it; 0: none has */
  int64_t repetitions;      /* of a sample; 0: one, or so many that they last long enough to be timed */
  int64_t operations;       /* in one repetition, by which a sample's time is divided too; 0 is 1 */
  int64_t checks;           /* of the values, before the samples */
  int64_t tokens;           /* that one step of all ranks together generates (decode), reads (prefill) or trains on;
                               0 for a `program` cell */
  double model_flops;       /* of one training step of all ranks, as flops.h counts them; 0: no training */
  int64_t routed, dropped;  /* copies of tokens for experts in one MoE layer and EP group; those above capacity;
                               counted where routing is drawn (--skew, --capacity-factor), else 0 */
  int is_scaled;            /* label: only some layers (--layers), or sizes divided (--scale) */
  int is_stand_in;          /* label: a generic model file stands in for an architecture */
  char model[64];           /* the model's name; "" for a `program` cell */
  char layout[64];          /* canonical text, "tp=2,ep=8,dp=4"; "" for a `program` cell */
  struct cct_step_store *store; /* what the bindings point into */
};

/* Builds the step of `cell`: its `program` (a file as --dry-run --json prints it), or its workload (train, prefill,
 * decode, serve) of its model in its layout. --np, when given, must equal the ranks.
 * Every error is one line; CCT_UNSUPPORTED where the layout is parsed but not priced (pp). The job has passed
 * cct_job_check. */
enum cct_status cct_step_build(const struct cct_options *cell, struct cct_step *step_out) CCT_CHECKED;
/* The same for a model already read, whatever model and layout the cell names. */
struct cct_model;
struct cct_layout;
enum cct_status cct_step_build_model(const struct cct_model *model, const struct cct_layout *layout,
                                     const struct cct_options *cell, struct cct_step *step_out) CCT_CHECKED;
void cct_step_free(struct cct_step *step); /* NULL-safe; leaves it zero */

#endif
