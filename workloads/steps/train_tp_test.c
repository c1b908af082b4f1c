/* SPDX-License-Identifier: Apache-2.0
 * Every collective over tp of a training step, count and bytes, against closed forms.
 *
 * Source: Megatron-core (2026-08, commit d98e8a64), which is Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2:
 *  column-parallel linear  gathers its input; backward gathers it again for the weight gradient, since only the shard
 * is kept, and reduce-scatters the input's gradient (tensor_parallel/layers.py,
 *                          LinearWithGradAccumulationAndAsyncCommunication); without sequence parallelism backward
 *                          all-reduces
 *  row-parallel linear     reduce-scatters its output, backward gathers its gradient; without: all-reduces, nothing
 *  embedding               a row-parallel linear's way (VocabParallelEmbedding, reduce_scatter_embeddings)
 *  head                    a column-parallel linear's, in bf16
 *  cross-entropy           three values a token, fp32, all-reduced (tensor_parallel/cross_entropy.py)
 *  replicated parameters   that see a share of the tokens (norms, routers, MLA's down-projections): one all-reduce a
 *                          step (distributed/finalize_model_grads.py, _allreduce_non_tensor_model_parallel_grads)
 *  MLA                     down-projections work on the shard, their latents are gathered (column-parallel inputs of
 *                          q_b and kv_b), and so is the rotary part of the key, whose backward reduce-scatters
 *                          (transformer/multi_latent_attention.py with the Transformer Engine layers of
 *                          gpt_layer_specs.py)
 *  experts, ep = 1         the all-gather dispatcher: gathered once, kept, reduce-scattered (moe/token_dispatcher.py)
 * Transformer Engine gathers what it has cast: one byte an element with fp8 (pytorch/distributed.py, _all_gather_fp8);
 * reductions, the rotary part, embedding, head and experts stay in bf16. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/steps/step_fixture.h"

struct sums {
  int n;
  double bytes;
};
enum {
  GATHER,
  SCATTER,
  REDUCE,
  KINDS
};

static void add_times(struct sums of[KINDS], int kind, int n, double bytes) {
  of[kind].n += n;
  of[kind].bytes += n * bytes;
}

static void count_tp(const char *words, struct sums of[KINDS]) {
  struct cct_step step;
  if (cct_fixture_build(words, &step))
    fail_msg("refused: %s", words);
  const struct cct_program *p = step.job->roles[0].program;
  int64_t slots[64];
  for (int i = 0; i < p->n_slots; i++)
    slots[i] = p->slots[i].value;
  struct cct_binding binding = {.slots = slots};
  for (int id = 0; id < p->n_ops; id++) {
    const struct cct_op *op = &p->ops[id];
    if (op->kind != CCT_OP_COLLECTIVE || strcmp(step.job->groups[op->collective.group].name, "tp") != 0)
      continue;
    int kind = op->collective.kind == CCT_COLL_ALL_GATHER       ? GATHER
               : op->collective.kind == CCT_COLL_REDUCE_SCATTER ? SCATTER
                                                                : REDUCE;
    add_times(of, kind, 1, (double)cct_quantity_value(op->collective.bytes, &binding));
  }
  cct_step_free(&step);
}

/* A model's sizes, from its published config.json. */
struct shape {
  const char *name;
  double hidden;
  int dense, moe;               /* layers */
  double q_rank, kv_rank, rope; /* MLA; 0: heads */
  double experts, shared;       /* of a layer with experts: its number, and the parameters of its shared one */
};
static const struct shape qwen = {.name = "qwen3-8b", .hidden = 4096, .dense = 36};
static const struct shape qwen_moe = {.name = "qwen3-30b-a3b", .hidden = 2048, .moe = 48, .experts = 128};
static const struct shape deepseek = {"deepseek-r1", 7168, 3, 2, 1536, 512, 64, 256, 3.0 * 7168 * 2048};

struct setting {
  int is_sharded, is_fp8, is_full, ep, tp, passes, gradient_bytes;
  double tokens;
};

/* The attention block's norm, projections and output. */
static void add_attention(const struct shape *m, const struct setting *s, int is_backward, struct sums of[KINDS]) {
  double token = s->tokens, cast = s->is_fp8 ? 1 : 2;
  const double inputs[] = {m->kv_rank ? m->q_rank : m->hidden, m->kv_rank}; /* of its column-parallel linears */
  int n = m->kv_rank ? 2 : 1;
  if (!s->is_sharded) {
    for (int i = 0; i < n && is_backward; i++)
      add_times(of, REDUCE, 1, token * inputs[i] * 2);
    if (m->kv_rank && is_backward)
      add_times(of, REDUCE, 1, token * m->rope * 2);
    add_times(of, REDUCE, !is_backward, token * m->hidden * 2);
    return;
  }
  for (int i = 0; i < n; i++) {
    add_times(of, GATHER, 1, token * inputs[i] * cast);
    add_times(of, SCATTER, is_backward, token * inputs[i] * 2);
  }
  if (m->kv_rank)
    add_times(of, is_backward ? SCATTER : GATHER, 1, token * m->rope * 2);
  add_times(of, is_backward ? GATHER : SCATTER, 1, token * m->hidden * (is_backward ? cast : 2));
}

static void add_feed_forward(const struct shape *m, const struct setting *s, int is_moe, int is_backward,
                             struct sums of[KINDS]) {
  double bytes = s->tokens * m->hidden * 2, cast = s->is_fp8 && !is_moe ? bytes / 2 : bytes;
  if (is_moe && s->ep > 1) { /* tokens come back from the dispatch as they went; without shards they are put together */
    add_times(of, GATHER, !s->is_sharded, bytes);
  } else if (!s->is_sharded) {
    add_times(of, REDUCE, 1, bytes);
  } else {
    add_times(of, GATHER, is_backward && !is_moe ? 2 : 1, cast);
    add_times(of, SCATTER, 1, bytes);
    if (is_moe && m->shared > 0) { /* a layer of its own (moe/shared_experts.py) */
      add_times(of, GATHER, is_backward ? 2 : 1, s->is_fp8 ? bytes / 2 : bytes);
      add_times(of, SCATTER, 1, bytes);
    }
  }
}

static void add_pass(const struct shape *m, const struct setting *s, struct sums of[KINDS]) {
  double bytes = s->tokens * m->hidden * 2;
  for (int layer = 0; layer < m->dense + m->moe; layer++)
    for (int pass = 0; pass < (s->is_full ? 3 : 2); pass++) { /* the third: forward again */
      add_attention(m, s, pass == 1, of);
      add_feed_forward(m, s, layer >= m->dense, pass == 1, of);
    }
  if (s->is_sharded) {
    add_times(of, SCATTER, 2, bytes); /* embedding; the head's gradient */
    add_times(of, GATHER, 3, bytes);  /* head, and again; the embedding's gradient */
  } else {
    add_times(of, REDUCE, 2, bytes); /* embedding; the head's gradient */
  }
  add_times(of, REDUCE, 3, s->tokens * 4);
}

static double replicated(const struct shape *m, const struct setting *s) {
  int layers = m->dense + m->moe;
  double norms = layers * (2 * m->hidden + m->q_rank + m->kv_rank) + m->hidden;
  double down = layers * m->hidden * (m->q_rank + m->kv_rank + m->rope);
  double routers = m->moe * m->experts * m->hidden;
  return (s->is_sharded ? norms + down : 0) + routers + (s->ep > 1 ? m->moe * m->shared : 0);
}

static void compare(const struct shape *m, const struct setting *s, const char *extra) {
  static const char *const names[] = {"all-gathers", "reduce-scatters", "all-reduces"};
  struct sums is[KINDS] = {{0}}, should[KINDS] = {{0}};
  char words[256];
  int dp = s->ep > 1 ? 2 * s->ep / s->tp : 2; /* so that the whole world is another group */
  snprintf(words, sizeof words,
           "model %s layers %d workload train layout tp=%d,ep=%d,dp=%d seq-len 64 micro-batch %d accumulation %d "
           "sequence-parallel %s recompute %s weights %s grad-type %s %s",
           m->name, m->dense + m->moe, s->tp, s->ep, dp, (int)(s->tokens / 64), s->passes, s->is_sharded ? "on" : "off",
           s->is_full ? "full" : "none", s->is_fp8 ? "fp8" : "bf16", s->gradient_bytes == 4 ? "fp32" : "bf16", extra);
  count_tp(words, is);
  for (int pass = 0; pass < s->passes; pass++)
    add_pass(m, s, should);
  if (replicated(m, s) > 0)
    add_times(should, REDUCE, 1, s->gradient_bytes * replicated(m, s));
  for (int kind = 0; kind < KINDS; kind++) {
    if (is[kind].n != should[kind].n)
      fail_msg("%s: %d %s, not %d", words, is[kind].n, names[kind], should[kind].n);
    cct_fixture_same(is[kind].bytes, should[kind].bytes, words);
  }
}

static void collectives_over_tp_are_megatrons(void **state) {
  (void)state;
  static const struct shape *const models[] = {&qwen, &qwen_moe, &deepseek};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    for (int bits = 0; bits < 32; bits++) {
      struct setting s = {.is_sharded = bits & 1,
                          .is_fp8 = bits >> 1 & 1,
                          .is_full = bits >> 2 & 1,
                          .passes = 1 + (bits >> 3 & 1),
                          .ep = bits >> 4 && models[i]->moe ? 4 : 1,
                          .tp = bits & 2 ? 4 : 2,
                          .gradient_bytes = bits & 8 ? 4 : 2,
                          .tokens = bits & 4 ? 128 : 64};
      compare(models[i], &s, bits & 1 ? "optimizer adam-zero1" : "overlap-grad-reduce off");
    }
}

/* It comes when the gradients have been reduced over the replicas, and before their norm. */
static void replicated_gradients_are_reduced_behind_the_replicas(void **state) {
  (void)state;
  struct cct_step step;
  int at[3] = {-1, -1, -1};
  assert_int_equal(cct_fixture_build("model qwen3-0.6b layers 2 workload train layout tp=2,dp=2 seq-len 64", &step),
                   CCT_OK);
  const struct cct_program *p = step.job->roles[0].program;
  for (int id = 0; id < p->n_ops; id++) {
    const struct cct_op *op = &p->ops[id];
    if (op->kind == CCT_OP_COLLECTIVE && !strcmp(step.job->groups[op->collective.group].name, "dp"))
      at[0] = id;
    if (!strcmp(op->name, "tp_gradients"))
      at[1] = id;
    if (!strcmp(op->name, "gradient_norm"))
      at[2] = id;
  }
  assert_true(0 <= at[0] && at[0] < at[1] && at[1] < at[2]);
  assert_int_equal(p->ops[at[1]].n_waits, 1);
  assert_int_equal(p->waits[p->ops[at[1]].first_wait].id, at[0]);
  cct_step_free(&step);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(collectives_over_tp_are_megatrons),
      cmocka_unit_test(replicated_gradients_are_reduced_behind_the_replicas),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
