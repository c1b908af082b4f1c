/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/heard.h"
#include "workloads/program/counts.h"
#include "workloads/shape/cell.h"
#include "workloads/shape/footprint.h"
#include "workloads/steps/step_fixture.h"

/* 2 flops a multiply-add; attention 4 x heads x head_dim a query-key pair. */
static void a_dense_decode_step_is_its_formulas(void **state) {
  (void)state;
  int64_t tokens;
  struct cct_counts c =
      cct_fixture_count("model qwen3-8b workload decode layout tp=1 batch 8 input-len 1024 output-len 1024", &tokens);
  double pairs = 8 * 1536.0;
  assert_int_equal(tokens, 8);
  cct_fixture_same(c.flops, 2 * 8 * (L * layer_matrices + (double)V * H) + L * 4.0 * HEADS * pairs, "flops");
  cct_fixture_same(c.weight_bytes, 2 * (L * layer_matrices + 2.0 * V * H), "weight bytes");
  assert_int_equal(c.submissions, 3); /* input copy, graph, ids back */
  assert_int_equal(c.graphs, 1);
  assert_int_equal(c.nodes, L * 9 + 4); /* norm qkv rope core o norm up product down; embedding, norm, head, sample */
  assert_int_equal(c.syncs, 1);
  assert_int_equal(c.copies[CCT_COPY_H2D], 1);
  assert_int_equal(c.copies[CCT_COPY_D2H], 1);
  cct_fixture_same(c.copy_bytes[CCT_COPY_D2H], 32, "ids");
  cct_fixture_same(c.copy_bytes[CCT_COPY_H2D], 8 * (24 + 4 * 96), "input");
  /* every weight and cache byte once, at least */
  assert_true(c.hbm_bytes > 2 * (L * layer_matrices + (double)V * H) + L * pairs * 4096);
  assert_true(c.hbm_bytes < 1.05 * (2 * (L * layer_matrices + (double)V * H) + L * pairs * 4096));
}

static void graphs_decide_the_submissions(void **state) {
  (void)state;
  struct cct_counts eager = cct_fixture_count("model qwen3-8b workload decode layout tp=1 graph none", NULL);
  struct cct_counts pieces = cct_fixture_count("model qwen3-8b workload decode layout tp=1 graph piecewise", NULL);
  assert_int_equal(eager.submissions, L * 9 + 4 + 2);
  assert_int_equal(pieces.graphs, L + 1);
  assert_int_equal(pieces.submissions, L + 1 + L + 2);
  struct cct_counts full = cct_fixture_count("model qwen3-8b workload decode layout tp=1 graph full", NULL);
  cct_fixture_same(eager.flops, full.flops, "flops");
  cct_fixture_same(pieces.flops, full.flops, "flops");
}

/* Megatron-LM: two all-reduces a layer, and one of the embedding; the logits are gathered. */
static void tensor_parallel_decode_reduces_twice_a_layer(void **state) {
  (void)state;
  struct cct_counts c = cct_fixture_count("model qwen3-8b workload decode layout tp=8 batch 8", NULL);
  assert_int_equal(c.collectives[CCT_COLL_ALL_REDUCE], 2 * L + 1);
  cct_fixture_same(c.collective_bytes[CCT_COLL_ALL_REDUCE], (2 * L + 1) * 8.0 * H * 2, "all-reduce bytes");
  cct_fixture_same(c.wire_bytes[CCT_COLL_ALL_REDUCE], 1.75 * (2 * L + 1) * 8.0 * H * 2, "wire bytes");
  assert_int_equal(c.collectives[CCT_COLL_ALL_GATHER], 1);
  cct_fixture_same(c.collective_bytes[CCT_COLL_ALL_GATHER], 8.0 * V * 2, "logits");
  struct cct_counts one = cct_fixture_count("model qwen3-8b workload decode layout tp=1 batch 8", NULL);
  cct_fixture_same(8 * c.flops, one.flops, "the ranks share the flops");
  struct cct_counts two = cct_fixture_count("model qwen3-8b workload decode layout tp=1,dp=2 batch 8", NULL);
  cct_fixture_same(two.flops, one.flops, "replicas work apart");
  assert_int_equal(two.collectives[CCT_COLL_ALL_REDUCE], 0);
}

static void a_prefill_step_is_its_formulas(void **state) {
  (void)state;
  int64_t tokens;
  struct cct_counts c = cct_fixture_count("model qwen3-8b workload prefill layout tp=4,dp=2 input-len 1000", &tokens);
  assert_int_equal(tokens, 2000);
  double pairs = 1000.0 * 1001 / 2;
  cct_fixture_same(c.flops, (2 * 1000 * L * layer_matrices + 2.0 * V * H + L * 4.0 * HEADS * pairs) / 4, "flops");
}

/* Dispatch and combine once a layer and direction, with the bytes of routing.h; tp > 1 restores its tokens. */
static void experts_dispatch_and_combine(void **state) {
  (void)state;
  static const struct {
    const char *dispatch;
    double copies;
  } rows[] = {{"per-expert", 8}, {"allgather", 8}, {"per-rank", 8 * 0.6675}};
  char words[256];
  for (int i = 0; i < 3; i++) {
    snprintf(words, sizeof words, "model qwen3-30b-a3b workload decode layout tp=2,ep=8,dp=4 batch 32 dispatch %s",
             rows[i].dispatch);
    struct cct_counts c = cct_fixture_count(words, NULL);
    int is_gather = i == 1;
    double bytes = is_gather ? c.collective_bytes[CCT_COLL_REDUCE_SCATTER] : c.collective_bytes[CCT_COLL_ALL_TO_ALLV];
    int64_t calls = is_gather ? c.collectives[CCT_COLL_REDUCE_SCATTER] : c.collectives[CCT_COLL_ALL_TO_ALLV];
    assert_int_equal(calls, is_gather ? 48 : 2 * 48);
    double expected = (is_gather ? 48 : 96) * 16 * rows[i].copies * 2048 * 2; /* 16 of 32 tokens on each tp rank */
    assert_true(fabs(bytes / expected - 1) < 0.001);
    /* the restoring all-gathers and the logits', and the dispatch's when it is one */
    assert_int_equal(c.collectives[CCT_COLL_ALL_GATHER], 48 + 1 + (is_gather ? 48 : 0));
    assert_int_equal(c.collectives[CCT_COLL_ALL_REDUCE], 48 + 1);
  }
  struct cct_counts sharded = cct_fixture_count("model qwen3-30b-a3b workload decode layout tp=8 batch 32", NULL);
  assert_int_equal(sharded.collectives[CCT_COLL_ALL_REDUCE], 2 * 48 + 1);
  assert_int_equal(sharded.collectives[CCT_COLL_ALL_TO_ALLV], 0);
  struct cct_counts train = cct_fixture_count("model qwen3-30b-a3b workload train layout ep=8,dp=8 seq-len 512", NULL);
  assert_int_equal(train.collectives[CCT_COLL_ALL_TO_ALLV], 4 * 48);
}

/* Of T tokens a rank's experts compute T k / n rows: many tokens make the flops of the active parameters. */
static void expert_flops_follow_the_chosen(void **state) {
  (void)state;
  struct cct_counts c = cct_fixture_count("model qwen3-30b-a3b workload prefill layout ep=8,dp=8 input-len 4096", NULL);
  double t = 4096, experts = 2 * t * 48 * 8 * 3.0 * 2048 * 768, router = 2 * t * 48 * 128.0 * 2048;
  double attention = 2 * t * 48 * (2048.0 * 5120 + 4096.0 * 2048) + 48 * 4.0 * 4096 * t * (t + 1) / 2;
  cct_fixture_same(c.flops, experts + router + attention + 2.0 * 151936 * 2048, "flops");
}

/* DeepSeek decodes over the latent: per head 2 (512 + 64 + 512) flops a pair, 576 x 2 bytes a cache entry on every
 * rank. */
static void latent_attention_decodes_absorbed(void **state) {
  (void)state;
  struct cct_counts c = cct_fixture_count("model deepseek-r1 workload decode layout tp=8 layers 3 batch 8", NULL);
  double pairs = 8 * 1536.0, heads = 16, rows = 8;
  double matrices = 7168.0 * 1536 + 1536.0 * heads * 192 + 7168.0 * 576 + heads * 128 * 512 * 2 + heads * 128 * 7168;
  double ffn = 3 * 7168.0 * 18432 / 8, head = 129280 / 8 * 7168.0;
  cct_fixture_same(c.flops, 3 * (2 * rows * (matrices + ffn) + heads * 2 * 1088 * pairs) + 2 * rows * head, "flops");
}

/* gpt-oss: every other layer sees 128 tokens; 64 heads of 64. Prefill: w (w + 1) / 2 + (n - w) w pairs in a window. */
/* Layers of gpt-oss see 128 tokens and all of them by turns: one of each, as the difference that it makes. */
static void windows_cut_pairs_and_cache(void **state) {
  (void)state;
  static const char *const forms[] = {"decode batch 1", "prefill input-len 1000"};
  for (int i = 0; i < 2; i++) {
    struct cct_counts of[4];
    char words[128];
    for (int layers = 1; layers <= 3; layers++) {
      snprintf(words, sizeof words, "model gpt-oss-20b layout tp=1 layers %d workload %s", layers, forms[i]);
      of[layers] = cct_fixture_count(words, NULL);
    }
    double flops = 2 * of[2].flops - of[1].flops - of[3].flops; /* a full layer less a windowed one */
    double bytes = 2 * of[2].hbm_bytes - of[1].hbm_bytes - of[3].hbm_bytes;
    cct_fixture_same(flops, 4.0 * 4096 * (i ? 500500 - (128 * 129 / 2 + 872 * 128) : 1536 - 128), "pairs");
    cct_fixture_same(bytes, i ? 0 : 2.0 * 8 * 64 * 2 * (1536 - 128),
                     "cache"); /* a prompt's is all read by some query */
  }
}

static void weights_shrink_with_their_type(void **state) {
  (void)state;
  struct cct_counts fp8 = cct_fixture_count("model qwen3-8b workload decode layout tp=1 weights fp8", NULL);
  struct cct_counts nvfp4 = cct_fixture_count("model qwen3-8b workload decode layout tp=1 weights nvfp4", NULL);
  double embeddings = 2 * 2.0 * V * H;
  cct_fixture_same(fp8.weight_bytes, embeddings + L * layer_matrices * (1 + 4.0 / 16384), "fp8");
  cct_fixture_same(nvfp4.weight_bytes, embeddings + L * layer_matrices * (0.5 + 1.0 / 16), "nvfp4");
}

static void skew_binds_ranks_apart(void **state) {
  (void)state;
  struct cct_step step;
  assert_int_equal(
      cct_fixture_build("model qwen3-30b-a3b workload prefill layout ep=4,dp=8 skew zipf:1 routing host input-len 256",
                        &step),
      CCT_OK);
  assert_non_null(step.bindings);
  const struct cct_program *program = step.job->roles[0].program;
  assert_int_equal(program->n_matrices, 2);
  const struct cct_matrix *there = &step.bindings[0].matrices[0], *back = &step.bindings[0].matrices[1];
  assert_int_equal(there->n, 4);
  assert_int_equal(there->bytes[1], back->bytes[4]); /* what went comes back */
  int slot = 0;
  while (strcmp(program->slots[slot].name, "expert_rows"))
    slot++;
  assert_int_equal(step.bindings[1].slots[slot], step.bindings[5].slots[slot]); /* the same place in two EP groups */
  assert_int_not_equal(step.bindings[0].slots[slot], step.bindings[1].slots[slot]);
  struct cct_counts counts;
  cct_count_program(step.job, program, &step.bindings[0], &counts);
  assert_int_equal(counts.copies[CCT_COPY_D2H], 48 + 1); /* counts of each layer, and the ids */
  cct_step_free(&step);
}

static void every_preset_in_every_layout_is_performable(void **state) {
  (void)state;
  static const char *const models[] = {"qwen3-0.6b", "qwen2.5-72b",  "llama-3.1-8b", "phi-4-mini", "qwen3-30b-a3b",
                                       "minimax-m2", "mixtral-8x7b", "gpt-oss-20b",  "deepseek-r1"};
  static const char *const variants[] = {"workload decode",
                                         "workload decode graph none dispatch allgather",
                                         "workload decode graph piecewise overlap on host-us 50",
                                         "workload decode graph piecewise routing host skew zipf:0.8",
                                         "workload prefill",
                                         "workload prefill graph piecewise",
                                         "workload train",
                                         "workload train weights fp8 optimizer adam-zero1 recompute full graph full",
                                         "workload train recompute selective sequence-parallel off dispatch per-rank"};
  for (size_t m = 0; m < sizeof models / sizeof *models; m++)
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
      char words[256];
      struct cct_model model;
      struct cct_layout *layouts;
      int n;
      snprintf(words, sizeof words, "%s layers 4 seq-len 256", variants[v]);
      struct cct_options cell = cct_fixture_cell(words);
      assert_int_equal(cct_model_load(models[m], NULL, cell.v[CCT_OPT_WEIGHTS].s, &model), CCT_OK);
      assert_int_equal(cct_model_cut(&model, 4), CCT_OK);
      assert_int_equal(cct_layout_all(&model, 8, &layouts, &n), CCT_OK);
      assert_int_equal(cct_option_set(&cell, CCT_OPT_MODEL, models[m], "test"), CCT_OK);
      assert_true(n > 0);
      for (int i = 0; i < n; i++) {
        char text[64];
        struct cct_step step;
        assert_int_equal(cct_option_set(&cell, CCT_OPT_LAYOUT, cct_layout_text(&layouts[i], text), "test"), CCT_OK);
        if (cct_step_build(&cell, &step))
          fail_msg("%s in %s: %s", models[m], text, variants[v]);
        cct_step_free(&step);
      }
      free(layouts);
      cct_model_free(&model);
      cct_options_free(&cell);
    }
}

/* What a rank's buffers hold of weights is what the footprint says. */
static void weights_agree_with_the_footprint(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"qwen2.5-72b", "tp=8"}, {"deepseek-r1", "tp=2,ep=8,dp=4"}, {"mixtral-8x7b", "tp=4,dp=2"}};
  for (int i = 0; i < 3; i++) {
    char words[128];
    struct cct_model model;
    struct cct_layout layout;
    struct cct_parameters p;
    snprintf(words, sizeof words, "model %s workload prefill layout %s input-len 32768", rows[i][0], rows[i][1]);
    struct cct_counts c = cct_fixture_count(words, NULL);
    assert_int_equal(cct_model_load(rows[i][0], NULL, NULL, &model), CCT_OK);
    assert_int_equal(cct_layout_parse(rows[i][1], "test", &layout), CCT_OK);
    cct_parameters_share(&model, &layout, &p);
    double norms = 0;
    for (int layer = 0; layer < model.n_layers; layer++)
      norms += (double)cct_model_layer(&model, layer)->norms;
    cct_fixture_same(c.weight_bytes,
                     2 * (p.embedding + p.matrices + p.experts + p.small - norms - (double)model.hidden), rows[i][0]);
    cct_model_free(&model);
  }
}

static void cells_that_make_no_step_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *words;
    enum cct_status status;
  } rows[] = {
      {"model qwen3-8b workload decode", CCT_USAGE},
      {"model qwen3-8b layout tp=8", CCT_USAGE},
      {"workload decode layout tp=8", CCT_USAGE},
      {"model qwen3-8b workload decode layout tp=8 np 4", CCT_USAGE},
      {"model deepseek-r1 workload decode layout tp=2,ep=4,dp=2 np 8", CCT_USAGE},
      {"model qwen3-8b workload decode layout tp=2,pp=4", CCT_UNSUPPORTED},
      {"model qwen3-8b workload decode layout tp=5", CCT_USAGE},
      {"model qwen3-8b workload decode layout tp=8 layers 37", CCT_USAGE},
      {"model qwen3-8b workload train layout tp=8 graph piecewise", CCT_USAGE},
      {"model qwen3-8b workload train layout tp=8 accumulation 65536", CCT_USAGE},
      {"model qwen3-30b-a3b workload decode layout ep=8,dp=8 routing host", CCT_USAGE},
      {"model qwen3-30b-a3b workload decode layout ep=8,dp=8 skew zipf:x", CCT_USAGE},
      {"model /nowhere workload decode layout tp=8", CCT_IO},
      {"program /nowhere.json", CCT_IO},
      {"program p.json model qwen3-8b", CCT_USAGE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_step step = {0};
    enum cct_status status = cct_fixture_build(rows[i].words, &step);
    if (status != rows[i].status)
      fail_msg("%s: %s", rows[i].words, cct_status_name(status));
  }
}

/* A token's place has to be one of those that the model knows, whatever of them a window sees. */
static void requests_beyond_the_positions_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *words, *line; /* NULL: it is a step */
  } rows[] = {
      {"model qwen3-8b workload prefill layout tp=8 input-len 40960", NULL},
      {"model qwen3-8b workload prefill layout tp=8 input-len 40961",
       "--input-len: a prompt of 40961 tokens, and qwen3-8b has 40960 positions"},
      {"model qwen3-8b workload decode layout tp=8 input-len 40000 output-len 960", NULL},
      {"model qwen3-8b workload decode layout tp=8 input-len 40000 output-len 961",
       "--input-len and --output-len: a request of 40961 tokens, and qwen3-8b has 40960 positions"},
      {"model qwen3-8b workload decode layout tp=8 input-len 50000 assume max_position_embeddings=ignore", NULL},
      {"model qwen3-8b workload train layout tp=8 layers 1 seq-len 65536",
       "--seq-len: a sequence of 65536 tokens, and qwen3-8b has 40960 positions"},
      {"model gpt-oss-20b workload prefill layout tp=8 input-len 131073",
       "--input-len: a prompt of 131073 tokens, and gpt-oss-20b has 131072 positions"},
      {"model qwen3-8b workload serve layout tp=8 input-len 40000 output-len 960 max-seqs 4", NULL},
      {"model qwen3-8b workload serve layout tp=8 input-len 30000 output-len 1000 random-range-ratio 0.5",
       "--input-len, --output-len and --random-range-ratio: a request of 46500 tokens, and qwen3-8b has 40960 "
       "positions"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_step step = {0};
    char line[320] = "";
    listen();
    enum cct_status status = cct_fixture_build(rows[i].words, &step);
    hear();
    if (rows[i].line)
      snprintf(line, sizeof line,
               "cctax: %s: shorter ones, a longer rope_scaling in a config.json, or --assume "
               "max_position_embeddings=ignore\n",
               rows[i].line);
    assert_string_equal(said, line);
    assert_int_equal(status, rows[i].line ? CCT_USAGE : CCT_OK);
    cct_step_free(&step);
  }
}

static void a_program_cell_is_what_was_printed(void **state) {
  (void)state;
  struct cct_step step, again;
  struct cct_json *document = NULL;
  char path[] = "/tmp/cctax-step-XXXXXX.json", words[128], digest[65], digest_again[65];
  int fd = mkstemps(path, 5);
  assert_true(fd >= 0);
  assert_int_equal(cct_fixture_build("model qwen3-0.6b workload decode layout tp=2,dp=2 graph piecewise", &step),
                   CCT_OK);
  assert_int_equal(cct_job_to_json(step.job, &document), CCT_OK);
  assert_int_equal(cct_json_save(document, path), CCT_OK);
  snprintf(words, sizeof words, "program %s np 4", path);
  assert_int_equal(cct_fixture_build(words, &again), CCT_OK);
  assert_int_equal(cct_job_digest(step.job, digest), CCT_OK);
  assert_int_equal(cct_job_digest(again.job, digest_again), CCT_OK);
  assert_string_equal(digest, digest_again);
  cct_step_free(&again);
  snprintf(words, sizeof words, "program %s np 8", path);
  assert_int_equal(cct_fixture_build(words, &again), CCT_USAGE);
  cct_step_free(&step);
  cct_json_free(document);
  remove(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_dense_decode_step_is_its_formulas),
      cmocka_unit_test(graphs_decide_the_submissions),
      cmocka_unit_test(tensor_parallel_decode_reduces_twice_a_layer),
      cmocka_unit_test(a_prefill_step_is_its_formulas),
      cmocka_unit_test(experts_dispatch_and_combine),
      cmocka_unit_test(expert_flops_follow_the_chosen),
      cmocka_unit_test(latent_attention_decodes_absorbed),
      cmocka_unit_test(windows_cut_pairs_and_cache),
      cmocka_unit_test(weights_shrink_with_their_type),
      cmocka_unit_test(skew_binds_ranks_apart),
      cmocka_unit_test(every_preset_in_every_layout_is_performable),
      cmocka_unit_test(weights_agree_with_the_footprint),
      cmocka_unit_test(cells_that_make_no_step_are_refused),
      cmocka_unit_test(requests_beyond_the_positions_are_refused),
      cmocka_unit_test(a_program_cell_is_what_was_printed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
