/* SPDX-License-Identifier: Apache-2.0
 * The schedule of a serving cell is one on every backend and for every number of processes where no clock decides; and
 * where one does, sim told the times of a host run makes the same schedule. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "mpi_runner/serving_driver.h"
#include "tests/fakes/world_threads.h"
#include "tests/scratch.h"
#include "workloads/program/profile.h"
#include "workloads/steps/workload.h"

#define MOST_RANKS 4
#define SMALL      "model small workload serve layers 1 scale 256 input-len 40 output-len 12 random-range-ratio 0.5 "

/* As qwen3-0.6b and qwen3-30b-a3b are, but for what fills a GPU's memory and decides nothing here. */
static struct {
  const char *name, *text;
  char path[64];
} models[] = {
    {"small",
     "{\"model_type\":\"qwen3\",\"hidden_size\":1024,\"num_hidden_layers\":28,\"num_attention_heads\":16,"
     "\"num_key_value_heads\":8,\"intermediate_size\":3072,\"vocab_size\":2048,\"tie_word_embeddings\":true,"
     "\"torch_dtype\":\"bfloat16\",\"head_dim\":128}",
     "/tmp/cctax-small-XXXXXX.json"},
    {"small-moe",
     "{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,\"num_hidden_layers\":48,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":4,\"intermediate_size\":6144,\"moe_intermediate_size\":768,\"num_experts\":16,"
     "\"num_experts_per_tok\":4,\"norm_topk_prob\":true,\"decoder_sparse_step\":1,\"mlp_only_layers\":[],"
     "\"vocab_size\":2048,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\",\"head_dim\":128}",
     "/tmp/cctax-small-XXXXXX.json"},
};

static const char *value_of(const char *key, const char *value) {
  for (size_t i = 0; !strcmp(key, "model") && i < sizeof models / sizeof *models; i++)
    if (!strcmp(value, models[i].name))
      return models[i].path;
  return value;
}

static int write_models(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    write_temporary(models[i].path, models[i].text);
  return 0;
}

static int remove_models(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    unlink(models[i].path);
  return 0;
}

struct seat { /* of one process */
  enum cct_status status;
  struct cct_serving_result result;
  struct cct_wrong wrong;
};

struct table {
  const char *words, *backend;
  struct table
      *host; /* whose clocks and letters stand for those of this run, prompts and generation apart; NULL: its own
              */
  const struct cct_serving_engine *told; /* whose steps' begin_ns stand for the clock; NULL: the backend's own */
  int verifies;                          /* in place of a run: 1 the plain step, 2 one with every copy */
  struct cct_step step;                  /* built once: what lgamma leaves behind is every thread's */
  struct seat seats[MOST_RANKS];
};

static int64_t told(void *context, int engine, int64_t step, int64_t now_ns) {
  const struct table *table = context;
  (void)engine;
  (void)now_ns;
  return table->told->rows[step < table->told->n ? step : table->told->n - 1].begin_ns;
}

static const struct cct_serving_engine *engine_of(const struct table *table, int number);

/* When and by what an engine's steps were decided on CPUs. */
static int64_t host_clock(void *context, int engine, int64_t step, int64_t now_ns) {
  const struct cct_serving_engine *e = engine_of(((struct table *)context)->host, engine);
  (void)now_ns;
  return e->rows[step < e->n ? step : e->n - 1].begin_ns;
}

static const struct cct_heard *host_heard(void *context, int engine, int64_t *n, int64_t *steps) {
  const struct cct_serving_engine *e = engine_of(((struct table *)context)->host, engine);
  *n = e->n_heard;
  *steps = e->n;
  return e->heard;
}

static enum cct_status build(const char *words, struct cct_step *step) {
  struct cct_options cell;
  char text[512], *save = NULL;
  enum cct_status status = cct_options_init(&cell);
  snprintf(text, sizeof text, "%s", words);
  for (char *key = strtok_r(text, " ", &save); !status && key; key = strtok_r(NULL, " ", &save))
    status = cct_option_set(&cell, cct_option_by_name(key), value_of(key, strtok_r(NULL, " ", &save)), key);
  if (!status)
    status = cct_step_build(&cell, step);
  cct_options_free(&cell);
  return status;
}

static enum cct_status verify(const struct cct_serving_run *run, int with_copies, struct cct_wrong *wrong) {
  struct cct_binding *bindings = NULL;
  enum cct_status status = with_copies ? cct_serving_bind_copies(run->job, run->serve, &bindings) : CCT_OK;
  if (!status)
    status = run->ops->verify(run->executor, bindings, wrong);
  free(bindings);
  return status;
}

static void sit(const struct cct_world *world, void *argument) {
  struct table *table = argument;
  struct seat *seat = &table->seats[world->rank];
  const struct cct_backend_ops *ops = cct_backend_by_name(table->backend);
  struct cct_profile *profile = NULL;
  struct cct_backend_options options = {.has_multicast = 1, .scale = 256, .deadline_ns = 20000000000};
  const struct cct_step *step = &table->step;
  struct cct_requests requests = {0};
  struct cct_world *apart = NULL;
  struct cct_backend *backend = NULL;
  struct cct_executor *executor = NULL;
  seat->status = cct_profile_load("b200x8-tdx", &profile);
  options.machine = profile;
  if (!seat->status)
    seat->status = cct_requests_make(&step->serve->requests, &requests);
  if (!seat->status)
    seat->status = world->ops->split(world, 0, world->rank, &apart);
  if (!seat->status)
    seat->status = ops->open(apart, &options, &backend);
  if (!seat->status)
    seat->status = ops->load(backend, step->job, &executor);
  const struct cct_serving_run run = {.world = world,
                                      .ops = ops,
                                      .executor = executor,
                                      .job = step->job,
                                      .serve = step->serve,
                                      .requests = &requests,
                                      .measure = {.patience_ns = 5000000000},
                                      .clock = table->told   ? told
                                               : table->host ? host_clock
                                                             : NULL,
                                      .heard = table->host ? host_heard : NULL,
                                      .clock_context = table};
  if (!seat->status && table->verifies)
    seat->status = verify(&run, table->verifies > 1, &seat->wrong);
  if (!seat->status && !table->verifies)
    seat->status = cct_serving_warm(&run);
  if (!seat->status && !table->verifies)
    seat->status = cct_serving_perform(&run, &seat->result);
  ops->unload(executor);
  ops->close(backend);
  if (apart)
    world->ops->release(apart);
  cct_requests_free(&requests);
  cct_profile_free(profile);
}

static void perform(struct table *table, int processes) {
  assert_int_equal(build(table->words, &table->step), CCT_OK);
  cct_world_threads(processes, sit, table);
  for (int p = 0; p < processes; p++)
    if (table->seats[p].status)
      fail_msg("%s on %s: process %d: %s", table->words, table->backend, p, cct_status_name(table->seats[p].status));
}

static const struct cct_serving_engine *engine_of(const struct table *table, int number) {
  for (int p = 0; p < MOST_RANKS; p++)
    for (int i = 0; i < table->seats[p].result.n_engines; i++)
      if (table->seats[p].result.engines[i].number == number)
        return &table->seats[p].result.engines[i];
  fail_msg("nobody leads engine %d", number);
  return NULL;
}

static void release(struct table *table) {
  for (int p = 0; p < MOST_RANKS; p++)
    cct_serving_result_free(&table->seats[p].result);
  cct_step_free(&table->step);
}

static void compare(const char *what, const struct cct_serve_row *a, int64_t n_a, const struct cct_serve_row *b,
                    int64_t n_b) {
  if (n_a != n_b)
    fail_msg("%s: %lld steps and %lld", what, (long long)n_a, (long long)n_b);
  for (int64_t s = 0; s < n_a; s++)
    if (a[s].form != b[s].form || a[s].tokens != b[s].tokens || a[s].padded != b[s].padded ||
        a[s].sequences != b[s].sequences || a[s].blocks != b[s].blocks || a[s].preempted != b[s].preempted ||
        a[s].moved != b[s].moved || a[s].moved_blocks != b[s].moved_blocks)
      fail_msg("%s: step %lld differs: %s %lld tokens, %lld sequences, %lld blocks; %s %lld, %lld, %lld", what,
               (long long)s, cct_serve_form_name(a[s].form), (long long)a[s].tokens, (long long)a[s].sequences,
               (long long)a[s].blocks, cct_serve_form_name(b[s].form), (long long)b[s].tokens,
               (long long)b[s].sequences, (long long)b[s].blocks);
}

/* What holds of the times of any run. Without a worker an engine knows a step's tokens at its end, an overlapped one at
 * the end of the next. */
static void check_times(const struct cct_serve *serve, const struct cct_serving_engine *engine, int64_t n_requests,
                        int is_prefill) {
  int64_t served = 0, last_ns = 0;
  for (int64_t s = 0; s < engine->n; s++) {
    const struct cct_serve_row *row = &engine->rows[s];
    assert_true(row->end_ns >= row->begin_ns && row->begin_ns >= last_ns);
    if (row->form != CCT_SERVE_IDLE)
      assert_true(row->known_ns > row->begin_ns);
    if (!serve->is_worker && s + serve->is_overlapped < engine->n)
      assert_int_equal(row->known_ns, row[serve->is_overlapped].end_ns);
    last_ns = row->begin_ns;
  }
  for (int64_t i = 0; i < n_requests; i++) {
    const struct cct_request_times *t = &engine->times.requests[i];
    if (t->first_ns < 0)
      continue;
    served++;
    assert_true(t->arrival_ns >= 0 && t->first_ns > t->arrival_ns && t->last_ns >= t->first_ns);
    assert_true(t->moved_ns < 0 || (t->moved_ns > t->first_ns && t->moved_ns < t->last_ns));
  }
  assert_true(served > 0 || is_prefill);
}

static void one_schedule_on_every_backend(void **state) {
  (void)state;
  static const struct {
    const char *words;
    int ranks, engines;
  } rows[] = {
      {SMALL "layout tp=1 concurrency 5 kv-tokens 256 num-prompts 12", 1, 1},
      {SMALL "layout tp=2 concurrency 5 kv-tokens 160 num-prompts 10 overlap on host-us 20 preempt offload", 2, 1},
      {SMALL "layout dp=2 concurrency 6 num-prompts 10 overlap on readback worker max-batched-tokens 50", 2, 2},
      {SMALL "layout tp=1 arrivals steps request-rate 0.3 num-prompts 9 speculate 2 graph piecewise", 1, 1},
      {SMALL "layout tp=2 arrivals zero num-prompts 9 graph none readback worker max-seqs 3", 2, 1},
      {"model small-moe workload serve layers 1 scale 4096 layout ep=2,dp=2 input-len 20 output-len 6 concurrency "
       "5 "
       "num-prompts 7 overlap on",
       2, 1},
      {SMALL "layout dp=2 disaggregate 1:1 arrivals zero num-prompts 9", 2, 2},
      {SMALL "layout dp=3 disaggregate 1:2 kv-route host arrivals steps request-rate 0.4 num-prompts 9 overlap on "
             "kv-tokens 160",
       3, 3},
      {SMALL "layout dp=3 disaggregate 2:1 arrivals steps request-rate 0.7 num-prompts 8 preempt offload kv-tokens 160",
       3, 3},
      {SMALL "layout tp=2,dp=2 disaggregate 1:1 kv-route host arrivals zero num-prompts 6 readback worker overlap on",
       4, 2},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct table host = {.words = rows[i].words, .backend = "host"};
    struct table sim = {.words = rows[i].words, .backend = "sim"}, alone = sim;
    struct cct_step step;
    struct cct_requests requests;
    perform(&host, rows[i].ranks);
    perform(&sim, rows[i].ranks);
    perform(&alone, 1);
    assert_int_equal(build(rows[i].words, &step), CCT_OK);
    assert_int_equal(cct_requests_make(&step.serve->requests, &requests), CCT_OK);
    for (int e = 0; e < rows[i].engines; e++) {
      const struct cct_serving_engine *h = engine_of(&host, e), *s = engine_of(&sim, e), *a = engine_of(&alone, e);
      struct cct_serve_row *plan;
      int64_t n;
      assert_int_equal(cct_serve_schedule(step.serve, &requests, e, &plan, &n), CCT_OK);
      compare("plan and sim", plan, n, s->rows, s->n);
      compare("plan and host", plan, n, h->rows, h->n);
      check_times(step.serve, h, requests.n, e < step.serve->prefills);
      check_times(step.serve, s, requests.n, e < step.serve->prefills);
      assert_int_equal(s->n, a->n);
      for (int64_t k = 0; k < s->n; k++) { /* sim's times do not depend on how many processes share its ranks */
        assert_int_equal(s->rows[k].begin_ns, a->rows[k].begin_ns);
        assert_int_equal(s->rows[k].known_ns, a->rows[k].known_ns);
      }
      free(plan);
    }
    cct_requests_free(&requests);
    cct_step_free(&step);
    release(&host);
    release(&sim);
    release(&alone);
  }
}

/* Requests in seconds: what the clock decided on CPUs, sim decides again when it is told that clock. And a clock of its
 * own decides otherwise, so that the test would notice. */
static void a_replay_makes_the_same_schedule(void **state) {
  (void)state;
  static const char *const cells[] = {
      SMALL "layout tp=1 request-rate 3000 burstiness 0.5 num-prompts 30",
      SMALL "layout tp=2 request-rate 3000 num-prompts 30 overlap on kv-tokens 160",
      SMALL "layout tp=1 request-rate 500 num-prompts 10 overlap on readback worker",
  };
  int differs = 0;
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
    int ranks = strstr(cells[i], "tp=2") ? 2 : 1;
    struct table host = {.words = cells[i], .backend = "host"};
    perform(&host, ranks);
    const struct cct_serving_engine *h = engine_of(&host, 0);
    struct table replay = {.words = cells[i], .backend = "sim", .told = h};
    struct table sim = {.words = cells[i], .backend = "sim"};
    perform(&replay, ranks);
    perform(&sim, ranks);
    const struct cct_serving_engine *r = engine_of(&replay, 0), *s = engine_of(&sim, 0);
    compare("host and its replay", h->rows, h->n, r->rows, r->n);
    differs += s->n != h->n;
    release(&host);
    release(&replay);
    release(&sim);
  }
  assert_true(differs > 0);
}

/* The same where two kinds of engines write to each other: each does in sim what it did on CPUs, told when its steps
 * were decided and what it had heard by then; and nothing was heard before it was so. */
static void a_replay_of_apart_engines_makes_the_same_schedule(void **state) {
  (void)state;
  static const struct {
    const char *words;
    int ranks, engines;
  } rows[] = {
      {SMALL "layout dp=2 disaggregate 1:1 request-rate 3000 num-prompts 20", 2, 2},
      {SMALL "layout dp=2 disaggregate 1:1 kv-route host concurrency 4 num-prompts 16 overlap on kv-tokens 160", 2, 2},
      {SMALL "layout dp=3 disaggregate 2:1 concurrency 5 num-prompts 14 readback worker overlap on", 3, 3},
      {SMALL "layout tp=2,dp=2 disaggregate 1:1 kv-route host request-rate 500 num-prompts 8", 4, 2},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct table host = {.words = rows[i].words, .backend = "host"};
    struct table replay = {.words = rows[i].words, .backend = "sim", .host = &host};
    struct table sim = {.words = rows[i].words, .backend = "sim"}, alone = sim;
    int64_t served = 0;
    perform(&host, rows[i].ranks);
    perform(&replay, rows[i].ranks);
    perform(&sim, rows[i].ranks);
    perform(&alone, 1);
    const struct cct_serve *serve = host.step.serve;
    for (int e = 0; e < rows[i].engines; e++) {
      const struct cct_serving_engine *h = engine_of(&host, e), *r = engine_of(&replay, e);
      const struct cct_serving_engine *s = engine_of(&sim, e), *a = engine_of(&alone, e);
      compare("host and its replay", h->rows, h->n, r->rows, r->n);
      check_times(serve, h, serve->requests.n, e < serve->prefills);
      check_times(serve, s, serve->requests.n, e < serve->prefills);
      for (int64_t k = 0; k < serve->requests.n; k++)
        served += h->times.requests[k].first_ns >= 0;
      assert_int_equal(s->n, a->n);
      for (int64_t k = 0; k < s->n; k++)
        assert_int_equal(s->rows[k].begin_ns, a->rows[k].begin_ns);
    }
    assert_int_equal(served, serve->requests.n);
    release(&host);
    release(&replay);
    release(&sim);
    release(&alone);
  }
}

/* The times that sim gives are the law's: an overlapped engine's step is the longer of host and GPU. */
static void overlap_hides_the_shorter_side(void **state) {
  (void)state;
  static const char cell[] =
      "model qwen3-8b workload serve layout tp=1 layers 8 input-len 64 output-len 40 concurrency 4 "
      "num-prompts 4 host-us 5000 ";
  double step_us[2];
  for (int k = 0; k < 2; k++) {
    char words[300];
    snprintf(words, sizeof words, "%soverlap %s", cell, k ? "on" : "off");
    struct table sim = {.words = words, .backend = "sim"};
    perform(&sim, 1);
    const struct cct_serving_engine *e = engine_of(&sim, 0);
    step_us[k] = (double)(e->rows[30].begin_ns - e->rows[10].begin_ns) / 20e3;
    release(&sim);
  }
  assert_true(step_us[1] > 5000 && step_us[1] < 5060); /* the host's own time, and what it submits */
  assert_true(step_us[0] > step_us[1] + 500);          /* and the GPU's behind it */
}

/* A worker lane is through with step 5 after 3 ms, while the engine's own lane takes 10 us a step; step 80 waits for
 * requests. Times in ns. */
static void what_holds_an_engine_is_its_lag_beyond_the_room(void **state) {
  (void)state;
  enum {
    n = 100
  };
  static int64_t ends[n * 2];
  static struct cct_serve_row rows[n];
  struct cct_sequence sequence = {.lane_end_ns = ends, .n_host_lanes = 2};
  struct serving_driver driver = {.sequence = &sequence, .count = 1};
  struct serving_engine engine = {.rows = rows, .n = n};
  int64_t now_ns = 0;
  for (int s = 0; s < n; s++) {
    int64_t room_ns = s < CCT_SEQUENCE_DEPTH ? 0 : ends[2 * (s - CCT_SEQUENCE_DEPTH) + 1];
    rows[s].index = s;
    rows[s].begin_ns = s == 80 ? 9000000 : now_ns > room_ns ? now_ns : room_ns;
    ends[2 * s] = rows[s].end_ns = now_ns = rows[s].begin_ns + 10000;
    int64_t worker_ns = s == 5 ? 3000000 : s == 16 ? 6000000 : now_ns, before_ns = s ? ends[2 * s - 1] : 0;
    ends[2 * s + 1] = worker_ns > before_ns ? worker_ns : before_ns;
  }
  double held_ns = 3000000 - (CCT_SEQUENCE_DEPTH + 5) * 10000;
  assert_true(fabs(cct_serving_held(&driver, &engine) - held_ns / (double)now_ns) < 1e-12);
  engine.n = CCT_SEQUENCE_DEPTH + 5;
  assert_true(cct_serving_held(&driver, &engine) == 0);
}

/* A worker whose thread is put aside between waking the engine and writing down when it was through: the engine, which
 * awaited it at the end of its next step, knew the tokens by then. Times in ns, on a process that started 1000 late. */
static void what_the_engine_awaited_was_known(void **state) {
  (void)state;
  struct cct_request item = {0, 4, 2};
  const struct cct_requests requests = {.arrivals = CCT_ARRIVE_ZERO, .items = &item, .n = 1};
  const struct cct_engine_plan plan = {
      .limits = {.tokens = 64, .sequences = 4, .blocks = 8, .is_chunked = 1, .lag = 1}, .replicas = 1, .together = 1};
  const struct cct_serve serve = {.is_worker = 1, .is_overlapped = 1, .replicas = 1};
  const struct cct_serving_run run = {.requests = &requests, .serve = &serve};
  int64_t ends[] = {90, 400, 190, 195, 290, 290};
  struct cct_serve_row rows[3] = {
      {.index = 0, .begin_ns = 0}, {.index = 1, .begin_ns = 100}, {.index = 2, .begin_ns = 200}};
  struct cct_sequence sequence = {.lane_end_ns = ends, .n_host_lanes = 2};
  const struct serving_driver driver = {.run = &run, .sequence = &sequence, .count = 1, .offset_ns = 1000};
  struct serving_engine engine = {.rows = rows, .n = 3};
  struct cct_engine_step step;
  struct cct_serve_times times;
  assert_int_equal(cct_engine_new(&plan, &requests, &engine.engine), CCT_OK);
  for (int s = 0; s < 3; s++)
    assert_int_equal(cct_engine_next(engine.engine, 0, &step), CCT_OK);
  assert_true(step.is_empty);
  assert_int_equal(cct_serving_take_times(&driver, &engine, &times), CCT_OK);
  assert_int_equal(times.requests[0].arrival_ns, 0);
  assert_int_equal(times.requests[0].first_ns, 1190);
  assert_int_equal(times.requests[0].last_ns, 1195);
  cct_serve_times_free(&times);
  cct_engine_free(engine.engine);
}

/* What only some steps copy, between replicas and to the host and back, is checked by value, and what is wrong found.
 */
static void what_a_case_holds_is_checked(void **state) {
  (void)state;
  static const struct {
    const char *words, *found;
    int ranks, copies; /* of a block, on all ranks */
  } rows[] = {
      {SMALL "layout tp=1 num-prompts 4 preempt offload", NULL, 1, 2},
      {SMALL "layout dp=3 disaggregate 2:1 num-prompts 4", "'kv_read'", 3, 3 * 2},
      {SMALL "layout dp=2 disaggregate 1:1 kv-route host num-prompts 4", NULL, 2, 2 * 2},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t elements[2] = {0}, block = 0;
    for (int with_copies = 0; with_copies < 2; with_copies++) {
      struct table host = {.words = rows[i].words, .backend = "host", .verifies = 1 + with_copies};
      perform(&host, rows[i].ranks);
      for (int r = 0; r < rows[i].ranks; r++) {
        elements[with_copies] += host.seats[r].wrong.elements;
        assert_int_equal(host.seats[r].wrong.wrong, 0);
      }
      block = host.step.serve->block_bytes;
      release(&host);
    }
    int64_t copied = elements[1] - elements[0]; /* on CPUs sizes are scaled */
    assert_true(copied == rows[i].copies * block || copied == rows[i].copies * (block / 256));
    struct table wrong = {.words = rows[i].words, .backend = "host", .verifies = 2};
    setenv("CCTAX_TEST_CORRUPT", "0", 1);
    if (rows[i].found)
      perform(&wrong, rows[i].ranks);
    unsetenv("CCTAX_TEST_CORRUPT");
    if (rows[i].found)
      assert_true(wrong.seats[0].wrong.wrong > 0 && strstr(wrong.seats[0].wrong.first, rows[i].found));
    release(&wrong);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_schedule_on_every_backend),
      cmocka_unit_test(a_replay_makes_the_same_schedule),
      cmocka_unit_test(a_replay_of_apart_engines_makes_the_same_schedule),
      cmocka_unit_test(overlap_hides_the_shorter_side),
      cmocka_unit_test(what_holds_an_engine_is_its_lag_beyond_the_room),
      cmocka_unit_test(what_the_engine_awaited_was_known),
      cmocka_unit_test(what_a_case_holds_is_checked),
  };
  return cmocka_run_group_tests(tests, write_models, remove_models);
}
