/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/serving/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"

#define DRAW_ACCEPTANCE 4

struct state { /* of one request */
  int64_t computed, generated, blocks;
  int64_t rejected, worked_in; /* drafts of the last step that worked on it, and which step that was */
  int is_unseen;               /* it has ended by a draft, and the scheduler does not know */
};

struct cct_scheduler {
  struct cct_limits limits;
  const struct cct_requests *requests;
  int64_t first, stride, n;
  struct state *states; /* [n], by own number */
  int64_t entered;      /* own requests 0 .. entered - 1 */
  int64_t admitted;     /* of these, those that were admitted at least once */
  int64_t *running;     /* own numbers, in the order of admission */
  int64_t n_running;
  int64_t *preempted; /* own numbers; the last one is in front of all that wait */
  int64_t n_preempted;
  struct cct_member *members; /* of the step in hand; [i] belongs to running[places[i]] at first */
  int64_t free_blocks;
  int64_t returning[2]; /* blocks that come back in the step after the next one, and in the next */
  int64_t ended;
  int64_t steps;          /* before the one in hand */
  int is_late;            /* the step before emitted tokens, and lag is 1 */
  struct cct_move *moves; /* of the step in hand */
  /* DECODE: own numbers in the order in which they were handed: those that run or have ended, whose transfer is done,
   * that are in transfer, that wait for one */
  int64_t *handed;
  int64_t n_joined, n_arrived, n_fetched, n_handed;
  int is_stuck;
};

static const struct cct_request *request_of(const struct cct_scheduler *s, int64_t own) {
  return &s->requests->items[s->first + own * s->stride];
}

/* Tokens with which it ends here. */
static int64_t output_of(const struct cct_scheduler *s, int64_t own) {
  return s->limits.stage == CCT_STAGE_PREFILL ? 1 : request_of(s, own)->output;
}

static int64_t blocks_of(int64_t tokens) {
  return (tokens + CCT_BLOCK_TOKENS - 1) / CCT_BLOCK_TOKENS;
}

static enum cct_status check_requests(const struct cct_scheduler *s) {
  for (int64_t i = 0; i < s->n; i++) {
    const struct cct_request *r = request_of(s, i);
    int64_t tokens = r->input + r->output, drafts = (1 + s->limits.lag) * s->limits.drafts;
    if (blocks_of(tokens + drafts) > s->limits.blocks)
      return cct_fail(
          CCT_USAGE,
          "request %lld: %lld + %lld tokens%s, and the KV cache holds %lld: more --kv-tokens or --gpu-memory, or "
          "shorter requests",
          (long long)(s->first + i * s->stride), (long long)r->input, (long long)r->output,
          drafts ? " and places for drafts" : "", (long long)(s->limits.blocks * CCT_BLOCK_TOKENS));
    tokens = tokens > s->limits.drafts ? tokens : s->limits.drafts + 1;
    if (!s->limits.is_chunked && tokens > s->limits.tokens)
      return cct_fail(CCT_USAGE,
                      "request %lld: %lld + %lld tokens, and a step without chunked prefill works on %lld: "
                      "--max-batched-tokens %lld, or --chunked-prefill on",
                      (long long)(s->first + i * s->stride), (long long)r->input, (long long)r->output,
                      (long long)s->limits.tokens, (long long)tokens);
  }
  return CCT_OK;
}

enum cct_status cct_scheduler_new(const struct cct_limits *limits, const struct cct_requests *requests, int64_t first,
                                  int64_t stride, struct cct_scheduler **scheduler_out) {
  struct cct_scheduler *s = calloc(1, sizeof *s);
  if (!s)
    return cct_fail(CCT_NOMEM, "out of memory");
  *s = (struct cct_scheduler){.limits = *limits,
                              .requests = requests,
                              .first = first,
                              .stride = stride,
                              .n = first < requests->n ? (requests->n - first + stride - 1) / stride : 0,
                              .free_blocks = limits->blocks};
  size_t room = (size_t)s->n + 1;
  s->states = calloc(room, sizeof *s->states);
  s->running = malloc(room * sizeof *s->running);
  s->preempted = malloc(room * sizeof *s->preempted);
  s->members = malloc(room * sizeof *s->members);
  s->moves = malloc(room * sizeof *s->moves);
  s->handed = malloc(room * sizeof *s->handed);
  enum cct_status status = s->states && s->running && s->preempted && s->members && s->moves && s->handed
                               ? check_requests(s)
                               : cct_fail(CCT_NOMEM, "out of memory: %lld requests", (long long)s->n);
  if (status) {
    cct_scheduler_free(s);
    return status;
  }
  *scheduler_out = s;
  return CCT_OK;
}

void cct_scheduler_free(struct cct_scheduler *s) {
  if (!s)
    return;
  free(s->states);
  free(s->running);
  free(s->preempted);
  free(s->members);
  free(s->moves);
  free(s->handed);
  free(s);
}

int64_t cct_scheduler_requests(const struct cct_scheduler *s) {
  return s->n;
}

void cct_scheduler_enter(struct cct_scheduler *s, int64_t n) {
  int64_t before = s->entered;
  if (n > s->entered)
    s->entered = n < s->n ? n : s->n;
  s->is_stuck &= s->entered == before;
}

int64_t cct_scheduler_entered(const struct cct_scheduler *s) {
  return s->entered;
}

int64_t cct_scheduler_ended(const struct cct_scheduler *s) {
  return s->ended;
}

int cct_scheduler_lags(const struct cct_scheduler *s) {
  return s->is_late;
}

/* ---- from and to other replicas ---- */

void cct_scheduler_release(struct cct_scheduler *s, int64_t request) {
  struct state *state = &s->states[(request - s->first) / s->stride];
  s->free_blocks += state->blocks;
  state->blocks = 0;
  s->is_stuck = 0;
}

void cct_scheduler_hand(struct cct_scheduler *s, int64_t request) {
  int64_t own = (request - s->first) / s->stride;
  s->states[own] = (struct state){.computed = request_of(s, own)->input, .generated = 1};
  s->handed[s->n_handed++] = own;
  s->entered++;
  s->is_stuck = 0;
}

void cct_scheduler_arrive(struct cct_scheduler *s, int64_t n) {
  s->n_arrived += n;
  s->is_stuck = 0;
}

int cct_scheduler_is_stuck(const struct cct_scheduler *s) {
  return s->is_stuck;
}

/* ---- one step ---- */

struct step {
  struct cct_scheduler *s;
  struct cct_batch *batch;
  int64_t budget;
};

static int decodes(const struct cct_scheduler *s, int64_t own) {
  const struct state *state = &s->states[own];
  return state->generated > 0 && request_of(s, own)->input + state->generated - state->computed == 1;
}

static int64_t wants(const struct cct_scheduler *s, int64_t own) {
  const struct cct_request *r = request_of(s, own);
  const struct state *state = &s->states[own];
  return decodes(s, own) ? 1 + s->limits.drafts : r->input + state->generated - state->computed;
}

/* The cache of `own` grows to computed + given tokens, drafts of the step before counted as if all were accepted where
 * that is not known, if there are blocks for it. */
static int grow(struct cct_scheduler *s, int64_t own, int64_t given) {
  struct state *state = &s->states[own];
  int64_t unseen = s->limits.lag && state->worked_in == s->steps - 1 ? state->rejected : 0;
  int64_t more = blocks_of(state->computed + unseen + given) - state->blocks;
  if (more > s->free_blocks)
    return 0;
  if (more > 0) {
    s->free_blocks -= more;
    state->blocks += more;
  }
  return 1;
}

static void preempt_last(struct step *step) {
  struct cct_scheduler *s = step->s;
  int64_t own = s->running[--s->n_running];
  struct state *state = &s->states[own];
  step->batch->preempted++;
  if (s->limits.is_offload)
    step->batch->out_blocks += blocks_of(state->computed);
  else
    state->computed = 0;
  s->free_blocks += state->blocks;
  state->blocks = 0;
  if (state->generated < output_of(s, own))
    s->preempted[s->n_preempted++] = own;
}

static void give(struct step *step, int64_t own, int64_t given) {
  struct cct_batch *batch = step->batch;
  int is_decode = decodes(step->s, own);
  step->s->members[batch->n++] = (struct cct_member){own, step->s->states[own].computed, given, 0, is_decode};
  step->budget -= given;
  batch->tokens += given;
  batch->prefills += !is_decode;
  batch->prefill_tokens += is_decode ? 0 : given;
}

static void schedule_running(struct step *step) {
  struct cct_scheduler *s = step->s;
  for (int64_t i = 0; i < s->n_running && step->budget > 0; i++) {
    int64_t own = s->running[i], given = wants(s, own);
    given = given < step->budget ? given : step->budget;
    while (i < s->n_running && !grow(s, own, given))
      preempt_last(step);
    if (i < s->n_running)
      give(step, own, given);
  }
}

static void note_move(const struct cct_scheduler *s, struct cct_batch *batch, int64_t own) {
  int64_t blocks = blocks_of(request_of(s, own)->input);
  s->moves[batch->n_moves++] = (struct cct_move){s->first + own * s->stride, blocks};
  batch->moved_blocks += blocks;
}

static int has_room(const struct step *step) {
  return step->budget > 0 && step->s->n_running < step->s->limits.sequences;
}

/* Whose transfer is done: it has the blocks of its first want. */
static void admit_arrived(struct step *step) {
  struct cct_scheduler *s = step->s;
  while (has_room(step) && s->n_joined < s->n_arrived) {
    int64_t own = s->handed[s->n_joined], given = wants(s, own);
    if (!s->limits.is_chunked && given > step->budget)
      break;
    s->n_joined++;
    s->running[s->n_running++] = own;
    give(step, own, given < step->budget ? given : step->budget);
  }
}

static void begin_transfer(struct step *step) {
  struct cct_scheduler *s = step->s;
  if (s->n_preempted || s->n_arrived < s->n_fetched || s->n_fetched == s->n_handed ||
      s->n_running + s->n_fetched - s->n_joined >= s->limits.sequences)
    return;
  int64_t own = s->handed[s->n_fetched];
  if (!grow(s, own, wants(s, own)))
    return;
  s->n_fetched++;
  note_move(s, step->batch, own);
}

static void admit_waiting(struct step *step) {
  struct cct_scheduler *s = step->s;
  int is_whole = s->limits.stage != CCT_STAGE_DECODE;
  while (has_room(step) && (s->n_preempted || (is_whole && s->admitted < s->entered))) {
    int64_t own = s->n_preempted ? s->preempted[s->n_preempted - 1] : s->admitted, given = wants(s, own);
    if (!s->limits.is_chunked && given > step->budget)
      break;
    given = given < step->budget ? given : step->budget;
    if (!grow(s, own, given))
      break;
    if (s->n_preempted)
      s->n_preempted--;
    else
      s->admitted++;
    step->batch->in_blocks += blocks_of(s->states[own].computed);
    s->running[s->n_running++] = own;
    give(step, own, given);
  }
}

static int is_accepted(const struct cct_scheduler *s, int64_t request, int64_t position) {
  uint64_t seed = cct_random_fold(cct_random_fold(s->limits.seed, DRAW_ACCEPTANCE), (uint64_t)request);
  return cct_random_unit(seed, (uint64_t)position) < s->limits.acceptance;
}

/* Requests that had ended by drafts of the step before, which is known now: their blocks come back in the next. */
static void dismiss(struct cct_scheduler *s) {
  for (int64_t i = 0; i < s->n_running; i++) {
    struct state *state = &s->states[s->running[i]];
    if (!state->is_unseen)
      continue;
    s->returning[1] += state->blocks;
    state->blocks = 0;
    state->is_unseen = 0;
  }
}

/* What a member's step leads to; 1 when its request has ended. */
static int conclude(struct cct_scheduler *s, struct cct_member *member) {
  int64_t own = member->request, drafts = member->is_decode ? member->given - 1 : 0, accepted = 0;
  const struct cct_request *r = request_of(s, own);
  struct state *state = &s->states[own];
  member->request = s->first + own * s->stride;
  if (state->generated == output_of(s, own))
    return 0; /* it ran once more */
  while (accepted < drafts && state->generated + 1 + accepted < r->output &&
         is_accepted(s, member->request, state->generated + accepted))
    accepted++;
  state->computed += member->given - drafts + accepted;
  state->rejected = drafts - accepted;
  state->worked_in = s->steps;
  if (state->computed < r->input + state->generated)
    return 0;
  member->emitted = 1 + accepted;
  state->generated += member->emitted;
  return state->generated == output_of(s, own);
}

/* The blocks of a request that has ended; a cache that another replica is to read stays. */
static void give_back(struct cct_scheduler *s, struct cct_batch *batch, int64_t own) {
  struct state *state = &s->states[own];
  if (s->limits.stage == CCT_STAGE_PREFILL && request_of(s, own)->output > 1) {
    note_move(s, batch, own);
    return;
  }
  if (s->limits.lag)
    s->returning[0] += state->blocks;
  else
    s->free_blocks += state->blocks;
  state->blocks = 0;
}

void cct_scheduler_step(struct cct_scheduler *s, struct cct_batch *batch_out) {
  struct cct_batch batch = {.members = s->members, .moves = s->moves};
  struct step step = {s, &batch, s->limits.tokens};
  s->free_blocks += s->returning[1];
  s->returning[1] = s->returning[0];
  s->returning[0] = 0;
  schedule_running(&step);
  if (!batch.preempted) {
    admit_arrived(&step);
    admit_waiting(&step);
    begin_transfer(&step);
  }
  batch.blocks = s->limits.blocks - s->free_blocks;
  dismiss(s);
  int64_t kept = 0;
  for (int64_t i = 0; i < batch.n; i++) {
    int64_t own = s->members[i].request;
    if (conclude(s, &s->members[i])) {
      batch.ended++;
      s->states[own].is_unseen = s->limits.lag && s->members[i].emitted > 1;
      if (!s->states[own].is_unseen)
        give_back(s, &batch, own);
    }
    batch.emitted += s->members[i].emitted;
  }
  for (int64_t i = 0; i < s->n_running; i++) {
    const struct state *state = &s->states[s->running[i]];
    if (state->generated < output_of(s, s->running[i]) || state->is_unseen)
      s->running[kept++] = s->running[i];
  }
  s->n_running = kept;
  s->ended += batch.ended;
  s->steps++;
  s->is_late = s->limits.lag && batch.emitted > 0;
  s->is_stuck = !batch.n && !batch.preempted && !s->returning[0] && !s->returning[1];
  *batch_out = batch;
}
