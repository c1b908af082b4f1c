/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "workloads/shape/cell.h"
#include "workloads/shape/footprint.h"
#include "workloads/steps/moe.h"
#include "workloads/steps/serve.h"

const char *cct_serve_form_name(enum cct_serve_form form) {
  static const char *const names[] = {"idle", "decode", "mixed", "piecewise"};
  return names[form];
}

void cct_serve_free(struct cct_serve *serve) {
  if (!serve)
    return;
  free((void *)(uintptr_t)serve->requests.trace);
  free(serve);
}

int64_t cct_serve_capture(const struct cct_serve *serve, int64_t tokens) {
  for (int i = 0; i < serve->n_captures; i++)
    if (serve->captures[i] >= tokens)
      return serve->captures[i];
  return -1;
}

static int is_word(const struct cct_options *cell, enum cct_option_id id, const char *word) {
  return !strcmp(cct_cell_text(cell, id), word);
}

static void plan_captures(struct cct_serve *serve) {
  int64_t largest = 2 * serve->limits.sequences * (serve->limits.drafts + 1);
  largest = largest < 512 ? largest : 512;
  for (int64_t size = 1; size <= largest; size += size < 4 ? size : size < 8 ? 4 : size < 256 ? 8 : 16)
    serve->captures[serve->n_captures++] = size;
}

static enum cct_status plan_requests(const struct cct_options *cell, struct cct_serve *serve) {
  static const char *const names[] = {"closed", "zero", "steps", "seconds"};
  struct cct_request_plan *plan = &serve->requests;
  const struct cct_value *v = cell->v;
  const char *arrivals = cct_cell_text(cell, CCT_OPT_ARRIVALS);
  int a = 0;
  while (strcmp(names[a], arrivals) != 0)
    a++;
  *plan = (struct cct_request_plan){
      .arrivals = (enum cct_arrivals)a,
      .concurrency = v[CCT_OPT_CONCURRENCY].i,
      .rate = v[CCT_OPT_REQUEST_RATE].f,
      .burstiness = v[CCT_OPT_BURSTINESS].f,
      .input = v[CCT_OPT_INPUT_LEN].i,
      .output = v[CCT_OPT_OUTPUT_LEN].i,
      .range_ratio = v[CCT_OPT_RANDOM_RANGE_RATIO].f,
      .seed = (uint64_t)v[CCT_OPT_SEED].i,
  };
  int is_timed = plan->arrivals == CCT_ARRIVE_STEPS || plan->arrivals == CCT_ARRIVE_SECONDS;
  const char *trace = v[CCT_OPT_TRACE].s;
  if (trace && v[CCT_OPT_REQUEST_RATE].has_value)
    return cct_fail(CCT_USAGE, "--request-rate: the trace %s says when requests come", trace);
  if (is_timed && !trace && !v[CCT_OPT_REQUEST_RATE].has_value)
    return cct_fail(CCT_USAGE, "--arrivals %s: needs --request-rate or --trace", arrivals);
  if (!is_timed && v[CCT_OPT_REQUEST_RATE].has_value)
    return cct_fail(CCT_USAGE, "--request-rate: requests that arrive '%s' have no rate", arrivals);
  plan->n = v[CCT_OPT_NUM_PROMPTS].has_value ? v[CCT_OPT_NUM_PROMPTS].i : trace ? 0 : 4 * plan->concurrency;
  if (plan->arrivals == CCT_ARRIVE_SECONDS && !trace && (double)plan->n / plan->rate > 1e9)
    return cct_fail(CCT_USAGE, "--request-rate: %lld requests at %g a second take longer than 1e9 s",
                    (long long)plan->n, plan->rate);
  if (!trace) {
    double most = 1 + plan->range_ratio;
    serve->longest = (int64_t)(ceil((double)plan->input * most) + ceil((double)plan->output * most));
    return CCT_OK;
  }
  struct cct_requests requests;
  plan->trace = trace;
  enum cct_status status = cct_requests_make(plan, &requests);
  plan->trace = status ? NULL : strdup(trace);
  if (status)
    return status;
  plan->n = requests.n;
  for (int64_t i = 0; i < requests.n; i++) {
    int64_t tokens = requests.items[i].input + requests.items[i].output;
    serve->longest = tokens > serve->longest ? tokens : serve->longest;
  }
  cct_requests_free(&requests);
  return plan->trace ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
}

/* Blocks that --kv-tokens asks for, or that weights and the activations of a full step leave of --gpu-memory. */
static enum cct_status plan_cache(const struct cct_model *model, const struct cct_layout *layout,
                                  const struct cct_options *cell, struct cct_serve *serve) {
  struct cct_footprint footprint;
  struct cct_options prompt;
  char room[32], taken[32];
  for (int layer = 0; layer < model->n_layers; layer++)
    serve->block_bytes += CCT_BLOCK_TOKENS * cct_kv_bytes_share(cct_model_layer(model, layer), layout->tp);
  if (cell->v[CCT_OPT_KV_TOKENS].has_value) {
    serve->limits.blocks = cell->v[CCT_OPT_KV_TOKENS].i / CCT_BLOCK_TOKENS;
    return CCT_OK;
  }
  enum cct_status status = cct_options_copy(cell, &prompt);
  if (!status)
    status = cct_option_set(&prompt, CCT_OPT_WORKLOAD, "prefill", "--workload");
  if (status)
    return status;
  prompt.v[CCT_OPT_INPUT_LEN].i = serve->limits.tokens;
  cct_footprint_of(model, layout, &prompt, &footprint);
  cct_options_free(&prompt);
  double all = (double)cell->v[CCT_OPT_GPU_MEMORY].i, used = footprint.total - footprint.cache;
  if (all - used < (double)serve->block_bytes)
    return cct_fail(CCT_USAGE, "--gpu-memory: weights and activations take %s of %s and leave no KV cache",
                    cct_bytes_text(used, taken), cct_bytes_text(all, room));
  serve->limits.blocks = (int64_t)((all - used) / (double)serve->block_bytes);
  return CCT_OK;
}

/* The experts of a rank that compute in each form: as many as its largest batch is expected to choose. */
static enum cct_status plan_experts(const struct cct_model *model, const struct cct_layout *layout,
                                    const struct cct_options *cell, struct cct_serve *serve) {
  for (int form = CCT_SERVE_DECODE; form < CCT_SERVE_FORMS; form++) {
    struct cct_moe moe;
    struct cct_moe_draw draw;
    enum cct_status status = cct_moe_plan(
        model, layout, cell, form == CCT_SERVE_DECODE ? serve->most_decode : serve->most_mixed, &moe, &draw);
    cct_moe_draw_free(&draw);
    if (status)
      return status;
    serve->groups[form] = moe.groups;
    serve->top_k = moe.routing.top_k;
  }
  return CCT_OK;
}

/* "P:D": of dp replicas, which read prompts and which generate. */
static enum cct_status plan_stages(const struct cct_options *cell, struct cct_serve *serve) {
  const char *text = cell->v[CCT_OPT_DISAGGREGATE].s;
  char *colon = NULL, *end = NULL;
  if (!cell->v[CCT_OPT_DISAGGREGATE].has_value)
    return CCT_OK;
  serve->prefills = isdigit((unsigned char)*text) ? strtoll(text, &colon, 10) : 0;
  if (serve->prefills && *colon == ':' && isdigit((unsigned char)colon[1]))
    serve->decodes = strtoll(colon + 1, &end, 10);
  if (serve->prefills < 1 || serve->decodes < 1 || *end)
    return cct_fail(CCT_USAGE, "--disaggregate %s: P:D, replicas that read prompts and that generate, each at least 1",
                    text);
  if (serve->together > 1)
    return cct_fail(CCT_USAGE,
                    "--disaggregate %s: experts spread over replicas (ep) make them step together, and these "
                    "have different steps; an ep of at most tp",
                    text);
  if (serve->prefills + serve->decodes != serve->replicas)
    return cct_fail(CCT_USAGE, "--disaggregate %s: %lld replicas, and the layout has dp=%lld: dp=%lld, or another P:D",
                    text, (long long)(serve->prefills + serve->decodes), (long long)serve->replicas,
                    (long long)(serve->prefills + serve->decodes));
  serve->is_staged = is_word(cell, CCT_OPT_KV_ROUTE, "host");
  serve->n_sources = serve->is_staged ? 1 : (int)serve->prefills;
  if (serve->prefills > CCT_MOST_SOURCES && !serve->is_staged)
    return cct_fail(CCT_USAGE, "--disaggregate %s: caches are read from up to %d replicas' memory: --kv-route host",
                    text, CCT_MOST_SOURCES);
  return CCT_OK;
}

/* A step begins the transfer of one input; prompts that end in one are those of its tokens, and what was computed of
 * one before, or of all that were off-loaded. */
static void plan_transfers(struct cct_serve *serve) {
  const struct cct_limits *limits = &serve->limits;
  int64_t longest = cct_share(serve->longest, CCT_BLOCK_TOKENS), rows = serve->most_sequences;
  int64_t all = serve->most_cache / CCT_BLOCK_TOKENS + rows;
  int64_t ending = limits->tokens / CCT_BLOCK_TOKENS + (rows < limits->tokens ? rows : limits->tokens) + longest;
  serve->most_fetch_blocks = longest;
  serve->most_stage_blocks = limits->is_offload || ending > all ? all : ending;
}

static void plan_sizes(const struct cct_model *model, struct cct_serve *serve) {
  const struct cct_request_plan *requests = &serve->requests;
  int64_t at_once = requests->arrivals == CCT_ARRIVE_CLOSED ? requests->concurrency : requests->n;
  int64_t sequences = serve->prefills ? at_once : cct_share(at_once, serve->replicas);
  serve->most_sequences = sequences < serve->limits.sequences ? sequences : serve->limits.sequences;
  int64_t decode = serve->most_sequences * (serve->limits.drafts + 1), longest = serve->most_sequences * serve->longest;
  int64_t mixed = serve->limits.tokens < longest ? serve->limits.tokens : longest;
  decode = decode < serve->limits.tokens ? decode : serve->limits.tokens;
  int64_t captured = cct_serve_capture(serve, decode);
  serve->most_decode = serve->is_decode_graph && captured > 0 ? captured : decode;
  captured = cct_serve_capture(serve, mixed);
  serve->most_mixed = serve->is_mixed_graph && captured > 0 ? captured : mixed;
  if (serve->most_mixed < serve->most_decode)
    serve->most_mixed = serve->most_decode; /* a decode that no graph holds */
  serve->most_cache =
      serve->limits.blocks * CCT_BLOCK_TOKENS < longest ? serve->limits.blocks * CCT_BLOCK_TOKENS : longest;
  serve->n_kinds = model->n_kinds;
  serve->last_kind = model->kind_of[model->n_layers - 1];
  for (int i = 0; i < model->n_kinds; i++) {
    const struct cct_layer_kind *kind = &model->kinds[i];
    serve->windows[i] = kind->window;
    for (int k = 0; k < kind->n_linears; k++)
      serve->is_split |= kind->linears[k].form != CCT_FORM_BOTH;
  }
}

static enum cct_status check_cell(const struct cct_model *model, const struct cct_options *cell) {
  if (cct_model_has_experts(model) &&
      (!is_word(cell, CCT_OPT_SKEW, "uniform") || !is_word(cell, CCT_OPT_ROUTING, "padded") ||
       cell->v[CCT_OPT_CAPACITY].has_value))
    return cct_fail(CCT_USAGE, "serve: experts are chosen alike and padded; leave --skew, --routing and "
                               "--capacity-factor to prefill and decode");
  if (cell->v[CCT_OPT_BATCH].is_set)
    return cct_fail(CCT_USAGE, "--batch: serve's batches are the scheduler's; --concurrency or --max-seqs limits them");
  return CCT_OK;
}

static enum cct_status fill(const struct cct_model *model, const struct cct_layout *layout,
                            const struct cct_options *cell, struct cct_serve *serve) {
  const struct cct_value *v = cell->v;
  serve->tp = layout->tp;
  serve->ep = layout->ep;
  serve->replicas = layout->dp;
  serve->together = layout->ep > layout->tp ? layout->ep / layout->tp : 1;
  serve->is_decode_graph = !is_word(cell, CCT_OPT_GRAPH, "none");
  serve->is_mixed_graph = !is_word(cell, CCT_OPT_MIXED_GRAPH, "none");
  serve->is_overlapped = is_word(cell, CCT_OPT_OVERLAP, "on");
  serve->is_worker = is_word(cell, CCT_OPT_READBACK, "worker");
  serve->limits = (struct cct_limits){
      .tokens = v[CCT_OPT_MAX_BATCHED_TOKENS].i,
      .sequences = v[CCT_OPT_MAX_SEQS].i,
      .is_chunked = is_word(cell, CCT_OPT_CHUNKED_PREFILL, "on"),
      .is_offload = is_word(cell, CCT_OPT_PREEMPT, "offload"),
      .lag = serve->is_overlapped,
      .drafts = v[CCT_OPT_SPECULATE].i,
      .acceptance = v[CCT_OPT_ACCEPTANCE].f,
      .seed = (uint64_t)v[CCT_OPT_SEED].i,
  };
  const int64_t drafts = (1 + serve->limits.lag) * serve->limits.drafts; /* scheduler.h: that may be accepted */
  plan_captures(serve);
  enum cct_status status = check_cell(model, cell);
  if (!status)
    status = plan_stages(cell, serve);
  if (!status)
    status = plan_requests(cell, serve);
  if (!status)
    status = cct_model_check_length(model,
                                    v[CCT_OPT_TRACE].has_value ? "--trace: a request"
                                    : v[CCT_OPT_RANDOM_RANGE_RATIO].f > 0
                                        ? "--input-len, --output-len and --random-range-ratio: a request"
                                        : "--input-len and --output-len: a request",
                                    serve->longest);
  if (!status && v[CCT_OPT_SLO].has_value)
    status = cct_slo_parse(v[CCT_OPT_SLO].s, &serve->slo);
  if (!status)
    status = plan_cache(model, layout, cell, serve);
  if (status)
    return status;
  int64_t room = serve->limits.blocks * CCT_BLOCK_TOKENS;
  if (serve->longest + drafts > room)
    return cct_fail(CCT_USAGE,
                    "the longest request has %lld tokens%s, and the KV cache holds %lld: more --kv-tokens or "
                    "--gpu-memory, a wider layout, or shorter requests",
                    (long long)(serve->longest + drafts), drafts ? ", its drafts counted" : "", (long long)room);
  if (!serve->limits.is_chunked && serve->longest > serve->limits.tokens)
    return cct_fail(CCT_USAGE,
                    "--chunked-prefill off: the longest request has %lld tokens, and a step takes %lld: "
                    "--max-batched-tokens %lld",
                    (long long)serve->longest, (long long)serve->limits.tokens, (long long)serve->longest);
  int64_t takers = serve->prefills ? serve->prefills : serve->replicas;
  if (serve->requests.arrivals == CCT_ARRIVE_CLOSED && serve->requests.concurrency < takers)
    return cct_fail(CCT_USAGE, "--concurrency %lld: %lld replicas need at least one request each",
                    (long long)serve->requests.concurrency, (long long)takers);
  serve->longest += drafts;
  plan_sizes(model, serve);
  plan_transfers(serve);
  return plan_experts(model, layout, cell, serve);
}

enum cct_status cct_serve_plan(const struct cct_model *model, const struct cct_layout *layout,
                               const struct cct_options *cell, struct cct_serve **serve_out) {
  struct cct_serve *serve = calloc(1, sizeof *serve);
  if (!serve)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = fill(model, layout, cell, serve);
  if (status) {
    cct_serve_free(serve);
    return status;
  }
  *serve_out = serve;
  return CCT_OK;
}
