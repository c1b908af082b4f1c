/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/shape/flops.h"
#include "workloads/shape/layout.h"
#include "workloads/steps/step_fixture.h"

static const double all_parameters = L * (layer_matrices + 2 * H) + 2.0 * V * H + H;

static const struct cct_program *program_of(const struct cct_job *job) {
  return job->roles[0].program;
}

static const char *lane_of(const struct cct_program *p, const struct cct_op *op) {
  return op->lane < 0 ? "" : p->lanes[op->lane].name;
}

/* Id of the first entry of that name at or behind `from`; -1: none. */
static int find(const struct cct_program *p, const char *name, int from) {
  for (int id = from; id < p->n_ops; id++)
    if (!strcmp(p->ops[id].name, name))
      return id;
  return -1;
}

/* Forward once, backward twice each GEMM; attention 1 + 2.5; full recomputation one more forward of the layers. */
static void a_training_step_is_its_formulas(void **state) {
  (void)state;
  int64_t tokens;
  double t = 512, pairs = 512.0 * 513 / 2;
  struct cct_counts c =
      cct_fixture_count("model qwen3-8b workload train layout dp=8 seq-len 512 micro-batch 2 accumulation 3", &tokens);
  double matrices = 2 * 2 * t * (L * layer_matrices + (double)V * H), core = 2 * L * 4.0 * HEADS * pairs;
  assert_int_equal(tokens, 512 * 2 * 3 * 8);
  cct_fixture_same(c.flops, 3 * (3 * matrices + 3.5 * core), "flops");
  assert_int_equal(c.copies[CCT_COPY_D2H], 1);
  assert_int_equal(c.copies[CCT_COPY_H2D], 1);
  cct_fixture_same(c.copy_bytes[CCT_COPY_H2D], 16 * 2 * 3 * t, "ids and labels");
  assert_int_equal(c.syncs, 1); /* for the loss */
  struct cct_counts full =
      cct_fixture_count("model qwen3-8b workload train layout dp=8 seq-len 512 recompute full", NULL);
  struct cct_counts none = cct_fixture_count("model qwen3-8b workload train layout dp=8 seq-len 512", NULL);
  cct_fixture_same(full.flops - none.flops, 2 * t * L * layer_matrices + L * 4.0 * HEADS * pairs, "recomputed flops");
}

/* PaLM's 6 N and Megatron's causal half; recomputation and what a core does twice are no part of it. */
static void model_flops_are_as_published(void **state) {
  (void)state;
  double n = L * layer_matrices + (double)V * H, pairs = 512.0 * 513 / 2, core = 4.0 * HEADS * pairs * L;
  static const char *const variants[] = {"", " recompute full", " optimizer adam-zero1 accumulation 1", " weights fp8"};
  for (int i = 0; i < 4; i++) {
    struct cct_step step;
    char words[160];
    snprintf(words, sizeof words, "model qwen3-8b workload train layout tp=2,dp=4 seq-len 512%s", variants[i]);
    assert_int_equal(cct_fixture_build(words, &step), CCT_OK);
    cct_fixture_same(step.model_flops, 4 * (6 * n * 512 + 3 * core), "model flops");
    cct_step_free(&step);
  }
  struct cct_counts c = cct_fixture_count("model qwen3-8b workload train layout tp=1 seq-len 512", NULL);
  cct_fixture_same(c.flops - (6 * n * 512 + 3 * core), 0.5 * core, "hardware flops beyond");
  /* Mixtral: two of eight experts, and the router */
  struct cct_model model;
  assert_int_equal(cct_model_load("mixtral-8x7b", NULL, NULL, &model), CCT_OK);
  double mixtral = 32 * (4096.0 * 6144 + 4096.0 * 4096 + 2 * 3 * 4096.0 * 14336 + 8 * 4096.0) + 32000 * 4096.0;
  cct_fixture_same(cct_model_matrix_parameters(&model), mixtral, "mixtral");
  cct_model_free(&model);
}

/* Every gradient is reduced once, whatever the buckets, their type and the optimizer. */
static void gradients_are_reduced_once(void **state) {
  (void)state;
  static const struct {
    const char *words;
    int bytes, buckets;
  } rows[] = {
      /* of 40e6 parameters: head, then 4 layers' gate_up each (100 e6), down (50 e6), o and qkv (42 e6); embedding */
      {"", 2, 1 + 4 * 3 + 1},
      {"grad-type fp32", 4, 1 + 4 * 3 + 1},
      {"bucket-bytes 1", 2, 1 + 4 * 4 + 1},
      {"bucket-bytes 300M", 2,
       1 + 4 + 1}, /* of 157 e6 parameters: head; matrices of about a layer; the rest with the embedding */
      {"overlap-grad-reduce off", 2, 1},
      {"optimizer adam-zero1", 2, 1 + 4 * 3 + 1},
      {"optimizer adam-zero1 overlap-grad-reduce off overlap-param-gather off", 2, 1},
      {"accumulation 3", 2, 1 + 4 * 3 + 1},
      {"graph full optimizer adam-zero1", 2, 1 + 4 * 3 + 1},
  };
  double parameters = 4 * (layer_matrices + 2 * H) + 2.0 * V * H + H;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char words[256];
    snprintf(words, sizeof words, "model qwen3-8b workload train layout dp=8 layers 4 seq-len 128 %s", rows[i].words);
    struct cct_counts c = cct_fixture_count(words, NULL);
    int is_zero1 = strstr(words, "zero1") != NULL;
    enum cct_collective kind = is_zero1 ? CCT_COLL_REDUCE_SCATTER : CCT_COLL_ALL_REDUCE;
    assert_int_equal(c.collectives[kind], rows[i].buckets + !is_zero1); /* and the norm */
    cct_fixture_same(c.collective_bytes[kind], rows[i].bytes * parameters + 4 * !is_zero1, rows[i].words);
    if (is_zero1) /* each weight comes back once */
      cct_fixture_same(c.collective_bytes[CCT_COLL_ALL_GATHER], 2 * parameters, rows[i].words);
    else
      assert_int_equal(c.collectives[CCT_COLL_ALL_GATHER], 0);
  }
}

/* Experts are reduced over their own replicas, everything else over dp; ZeRO-1's shares follow. */
static void experts_have_buckets_of_their_own(void **state) {
  (void)state;
  struct cct_step step;
  struct cct_model model;
  struct cct_layout layout;
  struct cct_parameters p;
  double shared = 0, experts = 0;
  const char *words = "model qwen3-30b-a3b workload train layout tp=2,ep=4,dp=4 seq-len 128 layers 3";
  assert_int_equal(cct_fixture_build(words, &step), CCT_OK);
  const struct cct_program *program = program_of(step.job);
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    const char *name = strchr(op->name, '.');
    if (op->kind == CCT_OP_COLLECTIVE && name && !strcmp(name, ".gradients"))
      shared += (double)op->collective.bytes.base;
    if (op->kind == CCT_OP_COLLECTIVE && name && !strcmp(name, ".expert_gradients")) {
      assert_string_equal(step.job->groups[op->collective.group].name, "expert_dp");
      experts += (double)op->collective.bytes.base;
    }
  }
  cct_step_free(&step);
  assert_int_equal(cct_model_load("qwen3-30b-a3b", NULL, NULL, &model), CCT_OK);
  assert_int_equal(cct_model_cut(&model, 3), CCT_OK);
  assert_int_equal(cct_layout_parse("tp=2,ep=4,dp=4", "test", &layout), CCT_OK);
  cct_parameters_share(&model, &layout, &p);
  cct_fixture_same(shared, 2 * (p.embedding + p.matrices + p.small), "shared");
  cct_fixture_same(experts, 2 * p.experts, "experts");
  cct_model_free(&model);
}

/* Each bucket waits for the GEMM that completes it and runs beside what follows; the norm waits for the last. */
static void gradients_are_reduced_beside_the_backward_pass(void **state) {
  (void)state;
  struct cct_step step;
  int buckets = 0, last = -1, is_awaited = 0, last_made = -1;
  assert_int_equal(
      cct_fixture_build("model qwen3-0.6b workload train layout dp=4 seq-len 128 accumulation 2 bucket-bytes 1", &step),
      CCT_OK);
  const struct cct_program *p = program_of(step.job);
  for (int id = 0; id < p->n_ops; id++) {
    const struct cct_op *op = &p->ops[id];
    for (int w = 0; w < op->n_waits && op->kind == CCT_OP_ELEMENTWISE; w++)
      is_awaited |= p->waits[op->first_wait + w].id == last && !strcmp(op->name, "gradient_norm");
    if (strcmp(lane_of(p, op), "comm"))
      continue;
    assert_int_equal(op->kind, CCT_OP_COLLECTIVE);
    assert_int_equal(op->n_waits, 1);
    int made = p->waits[op->first_wait].id;
    assert_string_equal(lane_of(p, &p->ops[made]), "compute");
    assert_true(made > last_made && made < id);
    last = id;
    last_made = made;
    buckets++;
  }
  assert_int_equal(buckets, 28 * 4 + 1); /* down, gate_up, o, qkv; the tied embedding */
  assert_int_equal(is_awaited, 1);
  cct_step_free(&step);
}

/* ZeRO-1: a bucket's weights are gathered in the order of their use, and what uses them first waits. */
static void weights_are_gathered_beside_the_forward_pass(void **state) {
  (void)state;
  struct cct_step step;
  int gathers = 0, previous = -1;
  assert_int_equal(cct_fixture_build("model qwen3-8b workload train layout dp=4 layers 3 seq-len 128 optimizer "
                                     "adam-zero1 bucket-bytes 1",
                                     &step),
                   CCT_OK);
  const struct cct_program *p = program_of(step.job);
  int norm = find(p, "0.norm1", 0), up = find(p, "1.norm2", 0), head = find(p, "final_norm", 0);
  int embedding = find(p, "embedding", 0), adam = find(p, "adam", 0);
  for (int id = 0; id < p->n_ops; id++)
    if (p->ops[id].kind == CCT_OP_COLLECTIVE && p->ops[id].collective.kind == CCT_COLL_ALL_GATHER) {
      assert_true(id < embedding); /* all are issued first; they run while the lane goes on */
      assert_string_equal(lane_of(p, &p->ops[id]), "comm");
      if (previous < 0) { /* the update of the step before */
        assert_int_equal(p->ops[id].n_waits, 1);
        assert_int_equal(p->waits[p->ops[id].first_wait].id, adam);
        assert_true(p->waits[p->ops[id].first_wait].is_previous);
      }
      previous = id;
      gathers++;
    }
  assert_int_equal(gathers, 1 + 3 * 4 + 1);
  int first = find(p, p->ops[find(p, "13.weights", 0)].name, 0); /* units: 0 head, 1..12 layers 2 to 0, 13 embedding */
  assert_int_equal(p->waits[p->ops[embedding].first_wait].id, first);
  assert_int_equal(p->waits[p->ops[norm].first_wait].id, find(p, "11.weights", 0)); /* qkv 12, then o 11 */
  assert_int_equal(p->waits[p->ops[up].first_wait].id, find(p, "5.weights", 0));    /* layer 1: down 5 */
  assert_int_equal(p->waits[p->ops[head].first_wait].id, find(p, "0.weights", 0));
  cct_step_free(&step);
}

/* Transformer Engine's delayed scaling: 3 values a GEMM forward, 2 backward, their maximum over all ranks, behind every
 * pass. */
static void largest_values_are_reduced_behind_each_pass(void **state) {
  (void)state;
  struct cct_step step;
  int n[2] = {0, 0};
  assert_int_equal(cct_fixture_build("model qwen3-8b workload train layout tp=2,dp=2 layers 5 seq-len 128 weights fp8 "
                                     "accumulation 3",
                                     &step),
                   CCT_OK);
  const struct cct_program *p = program_of(step.job);
  for (int id = 0; id < p->n_ops; id++) {
    const struct cct_op *op = &p->ops[id];
    int is_backward = !strcmp(op->name, "amax_backward");
    if (!is_backward && strcmp(op->name, "amax_forward"))
      continue;
    n[is_backward]++;
    assert_int_equal(op->collective.reduction, CCT_REDUCTION_MAX);
    assert_int_equal(step.job->groups[op->collective.group].size, 4);
    assert_int_equal(op->collective.bytes.base, 4 * 5 * 4 * (is_backward ? 2 : 3)); /* qkv, o, gate_up, down */
  }
  assert_int_equal(n[0], 3);
  assert_int_equal(n[1], 3);
  cct_step_free(&step);
  assert_int_equal(cct_fixture_build("model qwen3-30b-a3b workload train layout ep=4,dp=4 layers 2 seq-len 128 weights "
                                     "fp8",
                                     &step),
                   CCT_OK);
  p = program_of(step.job);
  const struct cct_op *amax = &p->ops[find(p, "amax_forward", 0)];
  assert_int_equal(amax->collective.bytes.base, 4 * 2 * (2 + 2 * 32) * 3); /* 32 experts of its own */
  cct_step_free(&step);
}

/* Every byte of weights and state goes to the host once over the replicas; the plain step has none of it. */
static void a_checkpoint_copies_the_state_once(void **state) {
  (void)state;
  static const char *const how[] = {"checkpoint sync", "checkpoint async", "checkpoint async optimizer adam-zero1",
                                    "checkpoint sync memory pageable graph full"};
  double moved = 14 * all_parameters / 4;
  for (int i = 0; i < 4; i++) {
    struct cct_step step;
    char words[256];
    snprintf(words, sizeof words, "model qwen3-8b workload train layout dp=4 seq-len 128 checkpoint-every 100 %s",
             how[i]);
    assert_int_equal(cct_fixture_build(words, &step), CCT_OK);
    assert_int_equal(step.checkpoint_every, 100);
    const struct cct_program *p = program_of(step.checkpoint), *plain = program_of(step.job);
    struct cct_counts with, without;
    int64_t slots[64];
    for (int s = 0; s < p->n_slots; s++)
      slots[s] = p->slots[s].value;
    struct cct_binding binding = {.slots = slots};
    cct_count_program(step.checkpoint, p, &binding, &with);
    cct_count_program(step.job, plain, &binding, &without);
    assert_true(fabs((with.copy_bytes[CCT_COPY_D2H] - without.copy_bytes[CCT_COPY_D2H]) / moved - 1) < 1e-6);
    assert_true(with.flops == without.flops && with.kernels == without.kernels);
    int is_async = strstr(how[i], "async") != NULL, copies = 0, last = -1;
    assert_int_equal(with.syncs - without.syncs, !is_async);
    for (int id = 0; id < p->n_ops; id++)
      if (p->ops[id].kind == CCT_OP_COPY && strstr(p->ops[id].name, ".save_")) {
        assert_string_equal(lane_of(p, &p->ops[id]), is_async ? "checkpoint" : "compute");
        last = id;
        copies++;
      }
    assert_int_equal(copies, with.copies[CCT_COPY_D2H] - 1);
    const struct cct_op *adam = &p->ops[find(p, "adam", 0)];
    assert_int_equal(adam->n_waits, is_async); /* what is being saved is not updated */
    if (is_async)
      assert_int_equal(p->waits[adam->first_wait].id, last);
    cct_step_free(&step);
  }
}

/* Capacity C = ceil(T k / E x F) of each expert and rank: what is above is dropped, and no copy is lost otherwise. */
static void capacity_drops_and_conserves(void **state) {
  (void)state;
  static const struct {
    const char *words;
    int is_padded, drops;
  } rows[] = {
      {"capacity-factor 1", 1, 1},
      {"capacity-factor 1 routing host", 0, 1},
      {"capacity-factor 1 skew zipf:1", 1, 1},
      {"capacity-factor 16", 1, 0}, /* 128 / 8: room for every token */
      {"capacity-factor 1 dispatch per-rank routing host", 0, 1},
      {"skew zipf:1 routing host", 0, 0},
  };
  int64_t tokens = 1024, n = 4, top_k = 8, experts = 128, dropped[6];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_step step;
    char words[256];
    snprintf(words, sizeof words, "model qwen3-30b-a3b workload train layout ep=4,dp=4 layers 2 seq-len 1024 %s",
             rows[i].words);
    assert_int_equal(cct_fixture_build(words, &step), CCT_OK);
    dropped[i] = step.dropped;
    assert_int_equal(step.routed, tokens * n * top_k);
    assert_int_equal(step.dropped > 0, rows[i].drops);
    const struct cct_matrix *there = &step.bindings[0].matrices[0];
    int64_t sent = 0;
    for (int k = 0; k < there->n * there->n; k++)
      sent += there->bytes[k] / (2048 * 2);
    if (rows[i].is_padded)
      assert_int_equal(sent, n * experts * (int64_t)ceil(tokens * top_k / 128.0 * (i == 3 ? 16 : 1)));
    else if (!strstr(words, "per-rank"))
      assert_int_equal(sent, step.routed - step.dropped);
    else
      assert_true(sent < step.routed - step.dropped);
    cct_step_free(&step);
  }
  assert_int_equal(dropped[0], dropped[1]);
  assert_true(dropped[2] > 2 * dropped[0]); /* skew fills popular experts sooner */
  assert_int_equal(dropped[1], dropped[4]);
}

static void what_cannot_be_trained_is_refused(void **state) {
  (void)state;
  static const char *const rows[] = {
      "model qwen3-8b workload train layout dp=2 graph full checkpoint-every 5 checkpoint async",
      "model qwen3-8b workload train layout dp=2 checkpoint-every 5 memory mapped",
      "model qwen3-8b workload decode layout tp=2 checkpoint-every 5",
      "model qwen3-8b workload train layout dp=2 weights nvfp4",
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_step step = {0};
    assert_int_equal(cct_fixture_build(rows[i], &step), CCT_USAGE);
  }
}

/* Korthikanti et al. 2022, section 4.2.2: 2 + 4 all-gathers, 2 + 2 reduce-scatters a layer; without: 2 + 2 all-reduces.
 * train_tp_test.c has all models and their bytes. */
static void sequence_parallelism_gathers_and_scatters(void **state) {
  (void)state;
  struct cct_counts on = cct_fixture_count("model qwen3-8b workload train layout tp=8 seq-len 512", NULL);
  struct cct_counts off =
      cct_fixture_count("model qwen3-8b workload train layout tp=8 seq-len 512 sequence-parallel off", NULL);
  /* the head gathers forward and backward, the embedding's gradient is gathered; embedding and head's gradient scatter
   */
  assert_int_equal(on.collectives[CCT_COLL_ALL_GATHER], 6 * L + 3);
  assert_int_equal(on.collectives[CCT_COLL_REDUCE_SCATTER], 4 * L + 2);
  assert_int_equal(on.collectives[CCT_COLL_ALL_REDUCE], 3 + 1 + 1); /* cross-entropy, norms' gradients, their norm */
  assert_int_equal(off.collectives[CCT_COLL_ALL_REDUCE], 4 * L + 2 + 3 + 1);
  assert_int_equal(off.collectives[CCT_COLL_ALL_GATHER], 0);
  cct_fixture_same(on.flops, off.flops, "flops");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_training_step_is_its_formulas),
      cmocka_unit_test(model_flops_are_as_published),
      cmocka_unit_test(gradients_are_reduced_once),
      cmocka_unit_test(experts_have_buckets_of_their_own),
      cmocka_unit_test(gradients_are_reduced_beside_the_backward_pass),
      cmocka_unit_test(weights_are_gathered_beside_the_forward_pass),
      cmocka_unit_test(largest_values_are_reduced_behind_each_pass),
      cmocka_unit_test(a_checkpoint_copies_the_state_once),
      cmocka_unit_test(capacity_drops_and_conserves),
      cmocka_unit_test(sequence_parallelism_gathers_and_scatters),
      cmocka_unit_test(what_cannot_be_trained_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
