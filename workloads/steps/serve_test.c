/* SPDX-License-Identifier: Apache-2.0
 * A serving step's program: what each form counts, by closed forms, and what a batch binds it to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "workloads/shape/flops.h"
#include "workloads/steps/serve.h"
#include "workloads/steps/step_fixture.h"

#define CELL2                                                                                                          \
  "model qwen3-8b workload serve layout dp=2 layers 4 arrivals zero num-prompts 20 input-len 600 output-len 30 "       \
  "disaggregate "
#define CELL "model qwen3-8b workload serve layout tp=1 layers 4 concurrency 20 kv-tokens 65536 "
enum {
  LAYERS = 4,
  HIDDEN = 4096,
  VOCAB = 151936
};

struct bench { /* a step's program and slots */
  struct cct_step step;
  const struct cct_program *program;
  int64_t slots[64];
  enum cct_stage stage;
};

static void open_bench(struct bench *b, const char *words) {
  memset(b, 0, sizeof *b);
  if (cct_fixture_build(words, &b->step))
    fail_msg("%s", words);
  b->program = b->step.job->roles[0].program;
  assert_in_range(b->program->n_slots, 1, 64);
}

/* Binds one replica's batch and counts. */
static struct cct_counts count(struct bench *b, const struct cct_batch *batch) {
  struct cct_counts counts;
  struct cct_engine_step step = {.batches = batch, .is_empty = !batch->n, .stage = b->stage};
  struct cct_binding binding = {.slots = b->slots};
  for (int i = 0; i < b->program->n_slots; i++)
    b->slots[i] = b->program->slots[i].value;
  cct_serve_bind(b->step.serve, &step, 0, b->slots);
  cct_count_program(b->step.job, b->program, &binding, &counts);
  return counts;
}

static int64_t slot(const struct bench *b, int id) {
  assert_true(id >= 0);
  return b->slots[id];
}

static struct cct_batch batch_of(const struct cct_member *members, int n) {
  struct cct_batch batch = {.members = members, .n = n};
  for (int i = 0; i < n; i++) {
    batch.tokens += members[i].given;
    batch.prefill_tokens += members[i].is_decode ? 0 : members[i].given;
    batch.prefills += !members[i].is_decode;
  }
  return batch;
}

/* Weights that a token multiplies with in qwen3-8b's layers, and its head. */
static double layer_weights(void) {
  return 4096.0 * 6144 + 4096.0 * 4096 + 3.0 * 4096 * 12288;
}

static void decode_is_padded_and_in_one_graph(void **state) {
  (void)state;
  struct bench b;
  struct cct_member members[18];
  int64_t entries = 0;
  for (int i = 0; i < 18; i++) {
    members[i] = (struct cct_member){.request = i, .computed = 100 + 10 * i, .given = 1, .is_decode = 1};
    entries += 101 + 10 * i;
  }
  struct cct_batch batch = batch_of(members, 18);
  open_bench(&b, CELL);
  struct cct_counts counts = count(&b, &batch);
  const struct cct_serve_slots *s = &b.step.serve->slots;
  assert_int_equal(slot(&b, s->form), CCT_SERVE_DECODE);
  assert_int_equal(slot(&b, s->tokens), 24); /* the capture size behind 18 */
  assert_int_equal(slot(&b, s->kv[0]), entries);
  assert_int_equal(slot(&b, s->pairs[0]), entries);
  assert_int_equal(counts.submissions, 3); /* input, graph, ids */
  assert_int_equal(counts.graphs, 1);
  assert_int_equal(counts.nodes, 1 + 9 * LAYERS + 3);
  assert_int_equal(counts.syncs, 1);
  cct_fixture_same(counts.flops,
                   2 * 24 * (LAYERS * layer_weights() + (double)HIDDEN * VOCAB) + 16384.0 * (double)entries * LAYERS,
                   "flops of a padded decode");
  cct_fixture_same(counts.copy_bytes[CCT_COPY_D2H], 4 * 18, "ids of real sequences");
  int64_t blocks = 0;
  for (int i = 0; i < 18; i++)
    blocks += (101 + 10 * i + 15) / 16;
  cct_fixture_same(counts.copy_bytes[CCT_COPY_H2D], 8 * b.program->n_slots + 24 * 24 + 4 * blocks, "metadata");
  cct_step_free(&b.step);

  open_bench(&b, CELL "graph piecewise ");
  counts = count(&b, &batch);
  assert_int_equal(counts.submissions, 2 + LAYERS + 1 + LAYERS); /* copies, pieces, cores */
  assert_int_equal(counts.graphs, LAYERS + 1);
  cct_step_free(&b.step);

  open_bench(&b, CELL "graph none ");
  counts = count(&b, &batch);
  assert_int_equal(slot(&b, b.step.serve->slots.tokens), 18);
  assert_int_equal(counts.submissions, 2 + 1 + 9 * LAYERS + 3);
  cct_step_free(&b.step);
}

static void prompts_beside_generation_are_counted(void **state) {
  (void)state;
  struct bench b;
  const struct cct_member members[] = {
      {.computed = 500, .given = 1, .is_decode = 1}, {.computed = 0, .given = 300}, {.computed = 256, .given = 100}};
  struct cct_batch batch = batch_of(members, 3);
  int64_t pairs = 501 + 300 * 301 / 2 + 100 * 256 + 100 * 101 / 2, kv = 501 + 300 + 356;
  open_bench(&b, CELL);
  struct cct_counts counts = count(&b, &batch);
  const struct cct_serve_slots *s = &b.step.serve->slots;
  assert_int_equal(slot(&b, s->form), CCT_SERVE_MIXED);
  assert_int_equal(slot(&b, s->tokens), 401);
  assert_int_equal(slot(&b, s->logits), 3);
  assert_int_equal(slot(&b, s->pairs[0]), pairs);
  assert_int_equal(slot(&b, s->kv[0]), kv);
  assert_int_equal(counts.submissions, 2 + 1 + 9 * LAYERS + 3);
  cct_fixture_same(counts.flops,
                   2 * (401 * LAYERS * layer_weights() + 3.0 * HIDDEN * VOCAB) + 16384.0 * (double)pairs * LAYERS,
                   "flops of a mixed batch");
  cct_step_free(&b.step);

  open_bench(&b, CELL "graph piecewise ");
  counts = count(&b, &batch);
  s = &b.step.serve->slots;
  assert_int_equal(slot(&b, s->form), CCT_SERVE_PIECEWISE);
  assert_int_equal(slot(&b, s->tokens), 416);
  assert_int_equal(slot(&b, s->logits), 20); /* what a graph of this size holds for any batch */
  assert_int_equal(counts.graphs, LAYERS + 1);
  cct_step_free(&b.step);

  open_bench(&b, CELL "graph piecewise max-seqs 8 max-batched-tokens 8192 ");
  (void)count(&b, &batch);
  assert_int_equal(slot(&b, b.step.serve->slots.form), CCT_SERVE_MIXED); /* capture sizes end at 16 */
  assert_int_equal(cct_serve_capture(b.step.serve, 16), 16);
  assert_int_equal(cct_serve_capture(b.step.serve, 17), -1);
  cct_step_free(&b.step);
}

static void an_empty_step_does_nothing(void **state) {
  (void)state;
  struct bench b;
  struct cct_batch none = {0};
  open_bench(&b, CELL "host-us 100 ");
  struct cct_counts counts = count(&b, &none);
  assert_int_equal(counts.submissions, 0);
  assert_int_equal(counts.syncs, 0);
  cct_step_free(&b.step);
  open_bench(&b, CELL "overlap on ");
  counts = count(&b, &none);
  assert_int_equal(counts.submissions, 0);
  assert_int_equal(counts.syncs, 1); /* of the ids of the step before */
  cct_step_free(&b.step);
}

static void drafts_are_verified_at_once(void **state) {
  (void)state;
  struct bench b;
  const struct cct_member members[] = {{.computed = 500, .given = 4, .is_decode = 1},
                                       {.computed = 100, .given = 4, .is_decode = 1}};
  struct cct_batch batch = batch_of(members, 2);
  open_bench(&b, CELL "speculate 3 ");
  struct cct_counts counts = count(&b, &batch);
  const struct cct_serve_slots *s = &b.step.serve->slots;
  assert_int_equal(slot(&b, s->tokens), 8);
  assert_int_equal(slot(&b, s->draft_tokens), 2);
  assert_int_equal(slot(&b, s->pairs[0]), 4 * 500 + 10 + 4 * 100 + 10);
  assert_int_equal(counts.submissions, 3);
  assert_int_equal(counts.nodes, 1 + 9 * LAYERS + 3 + 3 * (1 + 9 + 3));
  double pass = 2 * 2 * (layer_weights() + (double)HIDDEN * VOCAB) + 16384.0 * (504 + 104);
  cct_fixture_same(counts.flops,
                   2 * 8 * (LAYERS * layer_weights() + (double)HIDDEN * VOCAB) +
                       16384.0 * LAYERS * (4 * 500 + 10 + 4 * 100 + 10) + 3 * pass,
                   "flops of verification and three draft passes");
  cct_fixture_same(counts.copy_bytes[CCT_COPY_D2H], 4 * 4 * 2, "ids");
  cct_step_free(&b.step);
}

static void caches_go_to_the_host_and_back(void **state) {
  (void)state;
  struct bench b;
  const struct cct_member member = {.computed = 500, .given = 1, .is_decode = 1};
  struct cct_batch batch = batch_of(&member, 1);
  batch.out_blocks = 7;
  batch.in_blocks = 3;
  open_bench(&b, CELL "preempt offload graph none ");
  struct cct_counts counts = count(&b, &batch);
  double block = 16.0 * LAYERS * 2 * 8 * 128 * 2; /* tokens, layers, K and V, heads, width, bytes */
  assert_int_equal(counts.copies[CCT_COPY_D2H], 2);
  assert_int_equal(counts.copies[CCT_COPY_H2D], 2);
  cct_fixture_same(counts.copy_bytes[CCT_COPY_D2H], 7 * block + 4, "to the host");
  cct_fixture_same(counts.copy_bytes[CCT_COPY_H2D], 3 * block + 8 * b.program->n_slots + 24 + 4 * 32, "and back");
  cct_step_free(&b.step);
}

static void replicas_that_step_together_are_bound_alike(void **state) {
  (void)state;
  struct bench b;
  const struct cct_member one = {.computed = 500, .given = 1, .is_decode = 1}, prompt = {.given = 64};
  struct cct_batch batches[4] = {batch_of(&one, 1), batch_of(&prompt, 1), {0}, batch_of(&one, 1)};
  struct cct_engine_step step = {.batches = batches};
  int64_t slots[2][64];
  open_bench(&b, "model qwen3-30b-a3b workload serve layout ep=4,dp=4 layers 4 concurrency 20 kv-tokens 65536 ");
  assert_int_equal(b.step.serve->together, 4);
  for (int r = 0; r < 4; r++) {
    cct_serve_bind(b.step.serve, &step, r, slots[r > 0]);
    assert_int_equal(slots[r > 0][b.step.serve->slots.form], CCT_SERVE_MIXED);
    assert_int_equal(slots[r > 0][b.step.serve->slots.tokens], 64);
    assert_int_equal(slots[r > 0][b.step.serve->slots.rows], slots[0][b.step.serve->slots.rows]);
  }
  cct_step_free(&b.step);
}

/* Where prompts and generation multiply differently (MLA) each has its own rows. */
static void mixed_latent_attention_has_both_forms(void **state) {
  (void)state;
  struct bench b;
  const struct cct_member members[] = {{.computed = 500, .given = 1, .is_decode = 1}, {.computed = 0, .given = 300}};
  struct cct_batch batch = batch_of(members, 2);
  open_bench(&b, "model deepseek-r1 workload serve layout tp=8 layers 2 concurrency 20 kv-tokens 65536 ");
  (void)count(&b, &batch);
  const struct cct_serve_slots *s = &b.step.serve->slots;
  assert_int_equal(slot(&b, s->context), 300);
  assert_int_equal(slot(&b, s->decode), 1);
  assert_int_equal(slot(&b, s->pairs[0]), 300 * 301 / 2);
  assert_int_equal(slot(&b, s->pairs_decode[0]), 501);
  int both[2] = {0};
  for (int i = 0; i < b.program->n_ops; i++)
    if (b.program->ops[i].kind == CCT_OP_ATTENTION &&
        cct_op_is_performed(b.program, &b.program->ops[i], &(struct cct_binding){.slots = b.slots}))
      both[strstr(b.program->ops[i].name, "decode") != NULL]++;
  assert_int_equal(both[0], 2);
  assert_int_equal(both[1], 2);
  cct_step_free(&b.step);
}

/* Every buffer is as large as the largest step that the scheduler may bind. */
static void no_step_outgrows_its_buffers(void **state) {
  (void)state;
  static const char *const cells[] = {CELL "max-batched-tokens 300 input-len 700 output-len 40",
                                      CELL "speculate 4 graph piecewise input-len 90 output-len 30 preempt offload ",
                                      "model qwen3-30b-a3b workload serve layout ep=2,dp=2 layers 2 concurrency 12 "
                                      "input-len 200 output-len 20 kv-tokens 2000",
                                      CELL "speculate 4 overlap on input-len 90 output-len 30 kv-tokens 160 ",
                                      "model deepseek-r1 workload serve layout tp=8 layers 2 concurrency 9 "
                                      "input-len 200 output-len 20 kv-tokens 1000",
                                      CELL2 "1:1 preempt offload max-batched-tokens 300 kv-tokens 2000",
                                      CELL2 "1:1 kv-route host max-batched-tokens 300"};
  for (size_t c = 0; c < 2 * sizeof cells / sizeof *cells; c++) {
    struct bench b;
    struct cct_requests requests;
    struct cct_serve_walk walk;
    struct cct_engine_step step;
    open_bench(&b, cells[c / 2]);
    const struct cct_serve *serve = b.step.serve;
    struct cct_binding binding = {.slots = b.slots};
    int number = c % 2 && cct_serve_engines(serve) > 1; /* the first engine, and another */
    assert_int_equal(cct_requests_make(&serve->requests, &requests), CCT_OK);
    assert_int_equal(cct_serve_walk_open(serve, &requests, number, &walk), CCT_OK);
    while (!cct_serve_walk_next(&walk, &step) && !step.is_over) {
      for (int i = 0; i < b.program->n_slots; i++)
        b.slots[i] = b.program->slots[i].value;
      cct_serve_bind(serve, &step, 0, b.slots);
      for (int i = 0; i < b.program->n_ops; i++) {
        const struct cct_op *op = &b.program->ops[i];
        int64_t need = 0, have;
        if (!cct_op_is_performed(b.program, op, &binding))
          continue;
        if (op->kind == CCT_OP_COPY)
          need = cct_quantity_value(op->copy.bytes, &binding);
        else if (op->kind == CCT_OP_GEMM && op->gemm.groups == 1)
          need = cct_quantity_value(op->gemm.m, &binding) * op->gemm.n * 2;
        else if (op->kind == CCT_OP_GEMM && op->writes >= 0)
          need = cct_quantity_value(op->gemm.m, &binding) * op->gemm.n * op->gemm.groups * 2;
        else if (op->kind == CCT_OP_ATTENTION)
          need = cct_quantity_value(op->attention.kv_bytes, &binding);
        if (!need)
          continue;
        int buffer = op->kind == CCT_OP_ATTENTION ? op->reads[1] : op->writes;
        have = b.program->buffers[buffer].bytes.base;
        assert_int_equal(b.program->buffers[buffer].bytes.slot, -1);
        if (need > have)
          fail_msg("%s: %s needs %lld bytes of '%s', which has %lld", cells[c / 2], op->name, (long long)need,
                   b.program->buffers[buffer].name, (long long)have);
      }
    }
    cct_serve_walk_close(&walk);
    cct_requests_free(&requests);
    cct_step_free(&b.step);
  }
}

/* What goes from the replicas of prompts to those of generation, by either way: whole blocks, each from where it is. */
static void caches_change_replicas(void **state) {
  (void)state;
  const struct cct_member prompt = {.given = 100, .emitted = 1}, one = {.computed = 500, .given = 1, .is_decode = 1};
  const struct cct_move moves[] = {{6, 7}, {9, 3}};
  double block = 16.0 * LAYERS * 2 * 8 * 128 * 2;
  for (int is_staged = 0; is_staged < 2; is_staged++) {
    struct bench b;
    struct cct_batch batch = batch_of(&one, 1);
    open_bench(&b, is_staged ? CELL2 "2:1 layout dp=3 kv-route host graph none " : CELL2 "2:1 layout dp=3 graph none ");
    struct cct_counts before = count(&b, &batch);
    batch.moves = moves;
    batch.n_moves = 2;
    batch.moved_blocks = 10;
    b.stage = CCT_STAGE_DECODE;
    struct cct_counts reads = count(&b, &batch);
    enum cct_direction in = is_staged ? CCT_COPY_H2D : CCT_COPY_P2P;
    int copies = is_staged ? 1 : 2; /* requests 6 and 9 were read by the first replica and by the second */
    assert_int_equal(reads.copies[in] - before.copies[in], copies);
    assert_int_equal(reads.submissions - before.submissions, copies);
    assert_int_equal(reads.syncs - before.syncs, copies);
    cct_fixture_same(reads.copy_bytes[in] - before.copy_bytes[in], 10 * block, "read");
    if (!is_staged) {
      assert_int_equal(slot(&b, b.step.serve->slots.fetch_bytes[0]), 7 * (int64_t)block);
      assert_int_equal(slot(&b, b.step.serve->slots.fetch_bytes[1]), 3 * (int64_t)block);
    }
    batch = batch_of(&prompt, 1);
    b.stage = CCT_STAGE_PREFILL;
    before = count(&b, &batch);
    batch.moves = moves;
    batch.n_moves = 1;
    batch.moved_blocks = 7;
    struct cct_counts left = count(&b, &batch);
    assert_int_equal(left.copies[CCT_COPY_D2H] - before.copies[CCT_COPY_D2H], is_staged);
    assert_int_equal(left.submissions - before.submissions, is_staged);
    cct_fixture_same(left.copy_bytes[CCT_COPY_D2H] - before.copy_bytes[CCT_COPY_D2H], is_staged * 7 * block, "left");
    cct_step_free(&b.step);
  }
}

static void what_cannot_be_served_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *words, *said;
  } rows[] = {
      {CELL "kv-tokens 1024 input-len 1000 output-len 1000", "the longest request has 2000 tokens"},
      {CELL "chunked-prefill off max-batched-tokens 1000", "--chunked-prefill off"},
      {CELL "arrivals seconds", "needs --request-rate or --trace"},
      {CELL "arrivals zero request-rate 5", "have no rate"},
      {CELL "trace /nowhere.csv", "/nowhere.csv"},
      {CELL "trace /nowhere.csv request-rate 5", "says when requests come"},
      {CELL "slo ttft=5", "is no limit"},
      {CELL "batch 5", "--batch"},
      {"model qwen3-8b workload serve layout tp=1 gpu-memory 1G", "leave no KV cache"},
      {"model qwen3-8b workload serve layout dp=4 concurrency 3", "at least one request each"},
      {"model qwen3-30b-a3b workload serve layout ep=4,dp=4 skew zipf:1", "serve: experts"},
      {CELL2 "0:2", "each at least 1"},
      {CELL2 "2", "each at least 1"},
      {CELL2 "1:1:1", "each at least 1"},
      {CELL2 "1:2", "the layout has dp=2: dp=3"},
      {CELL "disaggregate 1:1", "the layout has dp=1: dp=2"},
      {"model qwen3-8b workload serve layout dp=4 disaggregate 2:2 concurrency 1", "2 replicas need at least one"},
      {"model qwen3-8b workload serve layout dp=40 disaggregate 33:7", "--kv-route host"},
      {"model qwen3-30b-a3b workload serve layout ep=2,dp=2 disaggregate 1:1", "make them step together"},
  };
  cct_log_mute(1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_step step = {0};
    enum cct_status status = cct_fixture_build(rows[i].words, &step);
    if (status == CCT_OK || !strstr(cct_log_last(), rows[i].said))
      fail_msg("%s: %s: '%s'", rows[i].words, cct_status_name(status), cct_log_last());
  }
  cct_log_mute(0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(decode_is_padded_and_in_one_graph),
      cmocka_unit_test(prompts_beside_generation_are_counted),
      cmocka_unit_test(an_empty_step_does_nothing),
      cmocka_unit_test(drafts_are_verified_at_once),
      cmocka_unit_test(caches_go_to_the_host_and_back),
      cmocka_unit_test(caches_change_replicas),
      cmocka_unit_test(replicas_that_step_together_are_bound_alike),
      cmocka_unit_test(mixed_latent_attention_has_both_forms),
      cmocka_unit_test(no_step_outgrows_its_buffers),
      cmocka_unit_test(what_cannot_be_served_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
