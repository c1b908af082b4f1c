/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/shape/routing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "json/json.h"

static double log_choose(double n, double k) {
  return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* C(a, k) / C(b, k), a <= b */
static double choose_ratio(double a, double b, double k) {
  return a < k ? 0 : exp(log_choose(a, k) - log_choose(b, k));
}

double cct_routing_hit(const struct cct_routing *r) {
  double experts = (double)r->experts, k = (double)r->top_k, own = experts / (double)r->ranks;
  if (!r->groups)
    return 1 - choose_ratio(experts - own, experts, k);
  /* A rank's experts lie in `spanned` routing groups, `each` of them in one; `chosen` groups hold a token's experts. */
  double groups = (double)r->groups, chosen = (double)r->groups_chosen, size = experts / groups;
  double spanned = own > size ? own / size : 1, each = own > size ? size : own, hit = 0;
  for (double shared = 1; shared <= spanned && shared <= chosen; shared++) {
    if (chosen - shared > groups - spanned)
      continue;
    double chance =
        exp(log_choose(spanned, shared) + log_choose(groups - spanned, chosen - shared) - log_choose(groups, chosen));
    hit += chance * (1 - choose_ratio(chosen * size - shared * each, chosen * size, k));
  }
  return hit;
}

double cct_routing_copies(const struct cct_routing *r) {
  switch (r->dispatch) {
  case CCT_DISPATCH_PER_EXPERT:
    return (double)r->top_k;
  case CCT_DISPATCH_PER_RANK:
    return (double)r->ranks * cct_routing_hit(r);
  case CCT_DISPATCH_ALLGATHER:
    break;
  }
  return (double)r->ranks;
}

double cct_routing_bytes(const struct cct_routing *r) {
  double n = (double)r->ranks;
  return (n - 1) / n * 2 * cct_routing_copies(r) / n;
}

double cct_routing_active(const struct cct_routing *r, double tokens) {
  double own = (double)(r->experts / r->ranks);
  return own * (1 - pow(1 - (double)r->top_k / (double)r->experts, tokens));
}

static enum cct_status read_popularity(const char *path, int64_t experts, double *popularity) {
  struct cct_json *document = NULL;
  enum cct_status status = cct_json_load(path, &document);
  if (status)
    return status;
  struct cct_json_at at = cct_json_root(document, path);
  status = cct_json_expect(&at, CCT_JSON_ARRAY);
  if (!status && cct_json_size(at.value) != (size_t)experts)
    status = cct_json_fail(&at, CCT_USAGE, "%zu numbers for %lld experts", cct_json_size(at.value), (long long)experts);
  for (int64_t i = 0; !status && i < experts; i++) {
    struct cct_json_at one = cct_json_at_index(&at, (size_t)i);
    status = cct_json_read_f64(&one, 1e-12, 1e12, &popularity[i]);
  }
  cct_json_free(document);
  return status;
}

enum cct_status cct_routing_popularity(const char *skew, int64_t experts, uint64_t seed, double **popularity_out) {
  double s = 0, *popularity;
  if (!strcmp(skew, "uniform")) {
    *popularity_out = NULL;
    return CCT_OK;
  }
  int is_zipf = !strncmp(skew, "zipf:", 5);
  if (is_zipf && (!cct_parse_f64(skew + 5, &s) || s < 0 || s > 10))
    return cct_fail(CCT_USAGE, "--skew: '%s' is no zipf:S with S from 0 to 10", skew);
  popularity = malloc((size_t)experts * sizeof *popularity);
  if (!popularity)
    return cct_fail(CCT_NOMEM, "out of memory");
  enum cct_status status = is_zipf ? CCT_OK : read_popularity(skew, experts, popularity);
  for (int64_t i = 0; is_zipf && i < experts;
       i++) { /* a drawn order, so that the popular experts do not share a rank */
    int64_t j = cct_random_below(cct_random_fold(seed, 7), (uint64_t)i, i + 1);
    popularity[i] = popularity[j];
    popularity[j] = pow((double)(i + 1), -s);
  }
  if (status) {
    free(popularity);
    return status;
  }
  *popularity_out = popularity;
  return CCT_OK;
}

struct pick { /* the k smallest keys seen so far, unordered */
  double key;
  int64_t index;
};

/* The `k` of items first..first+n-1 with the smallest -ln(u)/weight. */
static void pick_k(const double *weights, int64_t first, int64_t n, int64_t k, uint64_t seed, struct pick *best,
                   int64_t *count) {
  for (int64_t i = first; i < first + n; i++) {
    double weight = weights ? weights[i] : 1, key = -log(1 - cct_random_unit(seed, (uint64_t)i)) / weight;
    if (*count < k) {
      best[(*count)++] = (struct pick){key, i};
      continue;
    }
    int64_t worst = 0;
    for (int64_t j = 1; j < k; j++)
      worst = best[j].key > best[worst].key ? j : worst;
    if (key < best[worst].key)
      best[worst] = (struct pick){key, i};
  }
}

/* Experts of one token in best[0..top_k-1]. */
static void choose_experts(const struct cct_routing *r, const double *group_weights, uint64_t seed, struct pick *groups,
                           struct pick *best) {
  int64_t n_groups = 0, count = 0;
  if (!r->groups) {
    pick_k(r->popularity, 0, r->experts, r->top_k, seed, best, &count);
    return;
  }
  int64_t size = r->experts / r->groups;
  pick_k(group_weights, 0, r->groups, r->groups_chosen, cct_random_fold(seed, 1), groups, &n_groups);
  for (int64_t i = 0; i < n_groups; i++)
    pick_k(r->popularity, groups[i].index * size, size, r->top_k, seed, best, &count);
}

/* Of `weight` tokens alike, how many each chosen expert takes. */
static void take(const struct cct_routing *r, const struct pick *best, int64_t weight, int64_t *taken, int64_t *kept,
                 struct cct_routing_draw *draw) {
  for (int64_t i = 0; i < r->top_k; i++) {
    int64_t *of_expert = &taken[best[i].index], room = r->capacity - *of_expert;
    kept[i] = !r->capacity || weight < room ? weight : room;
    *of_expert += kept[i];
    draw->rows[best[i].index] += kept[i];
    draw->dropped += weight - kept[i];
  }
}

/* Per rank: one copy for all of its experts that take the token. */
static void count_copies(const struct cct_routing *r, const struct pick *best, int64_t from, const int64_t *kept,
                         int64_t *copies) {
  int64_t n = r->ranks, own = r->experts / n;
  for (int64_t i = 0; i < r->top_k; i++) {
    int64_t to = best[i].index / own, sent = 0;
    for (int64_t j = 0; j < i && r->dispatch == CCT_DISPATCH_PER_RANK; j++)
      sent = best[j].index / own == to && kept[j] > sent ? kept[j] : sent;
    copies[from * n + to] += kept[i] > sent ? kept[i] - sent : 0;
  }
}

enum cct_status cct_routing_draw(const struct cct_routing *r, int64_t tokens, uint64_t seed,
                                 struct cct_routing_draw *draw_out) {
  enum {
    MOST_DRAWN = 16384
  };
  int64_t n = r->ranks, drawn = tokens * n > MOST_DRAWN ? MOST_DRAWN / n + 1 : tokens;
  struct cct_routing_draw draw = {.n = (int)n, .experts = r->experts};
  enum cct_status status = CCT_OK;
  double *group_weights = calloc((size_t)r->groups + 1, sizeof *group_weights);
  struct pick *groups = calloc((size_t)r->groups_chosen + 1, sizeof *groups);
  struct pick *best = calloc((size_t)r->top_k, sizeof *best);
  int64_t *kept = calloc((size_t)r->top_k, sizeof *kept), *taken = calloc((size_t)r->experts, sizeof *taken);
  draw.copies = calloc((size_t)(n * n), sizeof *draw.copies);
  draw.rows = calloc((size_t)r->experts, sizeof *draw.rows);
  if (!group_weights || !groups || !best || !kept || !taken || !draw.copies || !draw.rows) {
    cct_routing_draw_free(&draw);
    status = cct_fail(CCT_NOMEM, "out of memory");
    goto out;
  }
  for (int64_t i = 0; r->groups && i < r->experts; i++)
    group_weights[i / (r->experts / r->groups)] += r->popularity ? r->popularity[i] : 1;
  for (int64_t from = 0; from < n; from++) {
    memset(taken, 0, (size_t)r->experts * sizeof *taken);
    for (int64_t token = 0; token < drawn; token++) {
      /* token by token the rest of tokens / drawn is spread, so that the sum is exact */
      int64_t weight = tokens * (token + 1) / drawn - tokens * token / drawn;
      choose_experts(r, group_weights, cct_random_fold(seed, (uint64_t)(from * drawn + token)), groups, best);
      take(r, best, weight, taken, kept, &draw);
      if (r->dispatch != CCT_DISPATCH_ALLGATHER)
        count_copies(r, best, from, kept, draw.copies);
    }
  }
  *draw_out = draw;
out:
  free(group_weights);
  free(groups);
  free(best);
  free(kept);
  free(taken);
  return status;
}

void cct_routing_draw_free(struct cct_routing_draw *draw) {
  if (!draw)
    return;
  free(draw->copies);
  free(draw->rows);
  memset(draw, 0, sizeof *draw);
}
