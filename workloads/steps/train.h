/* SPDX-License-Identifier: Apache-2.0
 * The parts of a training step: gradients in buckets, gathered weights, checkpoints. Private to this room.
 *
 * A unit is a piece of gradient that is complete at one moment of the backward pass: a layer's matrix, or the head.
 * Units fill buckets in the order in which they are completed, those of experts apart from all others, and a bucket
 * closes with the unit that makes it as large as --bucket-bytes: Megatron-core's rule
 * (megatron/core/distributed/param_and_grad_buffer.py), whose default is max(40e6, 1e6 x dp) parameters. */
#ifndef CCT_WORKLOADS_STEPS_TRAIN_H
#define CCT_WORKLOADS_STEPS_TRAIN_H

#include "workloads/steps/emit.h"

struct cct_bucket {
  double parameters;
  int is_expert;
  int last;   /* the unit that completes it */
  int buffer; /* of its gradients */
  int gather; /* entry that gathered its weights, -1: not in this step */
};

struct cct_unit {
  double parameters;
  int is_expert, bucket;
  int layer, block; /* that needs it: block 0 of a layer is attention, 1 feed-forward; of -1 embedding, and head */
};

struct cct_train {
  struct cct_emit *e;
  int is_zero1, recompute; /* recompute: 0 none, 1 selective, 2 full */
  int is_overlapped;       /* gradients are reduced beside the backward pass */
  int is_gathered_early;   /* weights are gathered beside the forward pass */
  enum cct_type grad_type;
  int grad_bytes;             /* of one gradient */
  int is_last;                /* the micro-batch whose backward pass completes the gradients */
  struct cct_unit *units;     /* owned; in the order of the backward pass */
  struct cct_bucket *buckets; /* owned */
  int n_units, n_buckets, next;
  size_t capacity_units, capacity_buckets;
  double owned;       /* parameters that this rank updates */
  int awaited;        /* the latest gather that something waits for */
  int optimizer;      /* buffer of its state */
  int gathered_after; /* the wait that names the update, whose entry is known later; -1: none */
  int saved;          /* the last copy of an asynchronous checkpoint, -1: none */
};

/* ---- train_buckets.c ---- */
enum cct_status cct_train_plan(struct cct_train *t) CCT_CHECKED; /* units, buckets and their buffers */
void cct_train_free(struct cct_train *t);
/* The next unit is complete; with the last one of a bucket goes its reduction. `context` is a cct_train. */
void cct_train_complete(void *context);
/* What was not reduced beside the backward pass. */
void cct_train_reduce_rest(struct cct_train *t);
/* The all-gathers of the weights that the step before updated, and the waits of a block of a layer for its own. */
void cct_train_gather_early(struct cct_train *t);
void cct_train_await_weights(struct cct_train *t, int layer, int block);
void cct_train_gather_late(struct cct_train *t);

/* ---- train_checkpoint.c ---- */

/* Copies the rank's part of weights and optimizer state, as the step before left them, to the host: every byte of the
 * job's state once, spread over the replicas (Megatron-core's --ckpt-fully-parallel-save); 2 bytes of weight, 4 of
 * master weight and 2 x 4 of moments a parameter. `sync` waits for them; `async` has the optimizer wait. */
enum cct_status cct_train_checkpoint(struct cct_train *t) CCT_CHECKED;

#endif
