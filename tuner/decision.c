/* SPDX-License-Identifier: Apache-2.0
 * For each collective, and within it for each number of pipelined operations that rules name (-1 first), the sizes are
 * cut at every rule's ends. Each piece keeps its rules in the file's order, without those that an earlier one of the
 * same cell makes pointless: at most one for each cell and each set of needs, however many rules there are. A call
 * searches the piece of the -1 group and that of its own group, and takes the earliest rule of the two whose cell is
 * usable. */
#include "tuner/decision.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum {
  NEED_REGISTERED = 1,
  NEED_UNREGISTERED = 2,
  NEED_NO_MULTICAST = 4
};
#define END UINT32_MAX

struct entry {
  uint32_t next; /* index of the next of its piece, or END */
  struct cct_tuner_choice choice;
  unsigned needs;
};

struct piece {
  uint32_t first, last;
};

struct group {
  int pipe_ops;
  size_t n;
  uint64_t *starts; /* of the pieces, ascending; the first is 0, the last one's end is 2^64 - 1 */
  struct piece *pieces;
};

struct cct_decision {
  int is_multicast_off;
  size_t n_groups[CCT_TUNER_COLLECTIVES];
  struct group *groups[CCT_TUNER_COLLECTIVES];
  struct entry *entries;
  size_t n_entries, capacity;
};

int cct_cost_is_usable(float cost_us) {
  return cost_us >= 0 && cost_us <= FLT_MAX;
}

int cct_cost_has_nvls(const float *cost, int algorithms, int protocols) {
  int n = algorithms < CCT_TUNER_PAT ? algorithms : CCT_TUNER_PAT;
  for (int i = CCT_TUNER_NVLS * protocols; i < n * protocols; i++)
    if (cct_cost_is_usable(cost[i]))
      return 1;
  return 0;
}

void cct_cost_force(float *cost, int algorithms, int protocols, int algorithm, int protocol) {
  float forced = 1e-3f * (float)(3 * algorithm + protocol + 1);
  for (int i = 0; i < algorithms * protocols; i++)
    if (cct_cost_is_usable(cost[i]) && cost[i] <= forced)
      cost[i] = 1e9f;
  cost[algorithm * protocols + protocol] = forced;
}

int cct_rule_holds(const struct cct_rule *rule, const struct cct_tuner_situation *s) {
  return (rule->nodes == -1 || rule->nodes == s->nodes) && (rule->ranks == -1 || rule->ranks == s->ranks) &&
         (rule->condition != CCT_RULE_CC || s->cc == 1) && (rule->condition != CCT_RULE_CLEAR || s->cc == 0) &&
         !strncmp(rule->gpu, s->gpu, strlen(rule->gpu));
}

static int compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static int compare_int(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

/* The last of the n ascending `starts` that is <= bytes; starts[0] is 0. */
static size_t piece_of(const uint64_t *starts, size_t n, uint64_t bytes) {
  size_t at = 0;
  while (n > 1) {
    size_t half = n / 2;
    at += starts[at + half] <= bytes ? half : 0;
    n -= half;
  }
  return at;
}

static unsigned needs_of(const struct cct_rule *rule) {
  return (rule->reg_buff == 1 ? NEED_REGISTERED : 0u) | (rule->reg_buff == 0 ? NEED_UNREGISTERED : 0u) |
         (rule->condition == CCT_RULE_NO_MULTICAST ? NEED_NO_MULTICAST : 0u);
}

static enum cct_status piece_add(struct cct_decision *d, struct piece *piece, const struct entry *entry) {
  for (uint32_t i = piece->first; i != END; i = d->entries[i].next) {
    const struct entry *e = &d->entries[i];
    if (e->choice.algorithm == entry->choice.algorithm && e->choice.protocol == entry->choice.protocol &&
        !(e->needs & ~entry->needs))
      return CCT_OK;
  }
  enum cct_status status = d->n_entries >= END
                               ? CCT_NOMEM
                               : cct_grow((void **)&d->entries, &d->capacity, d->n_entries + 1, sizeof *d->entries);
  if (status)
    return status;
  uint32_t at = (uint32_t)d->n_entries++;
  d->entries[at] = *entry;
  d->entries[at].next = END;
  *(piece->first == END ? &piece->first : &d->entries[piece->last].next) = at;
  piece->last = at;
  return CCT_OK;
}

/* `mine` are the n indices of the group's rules, in the file's order. */
static enum cct_status group_build(struct cct_decision *d, struct group *group, const struct cct_rules *rules,
                                   const size_t *mine, size_t n) {
  enum cct_status status = CCT_OK;
  size_t n_starts = 1;
  group->starts = malloc((2 * n + 1) * sizeof *group->starts);
  group->pieces = malloc((2 * n + 1) * sizeof *group->pieces);
  if (!group->starts || !group->pieces)
    return CCT_NOMEM;
  group->starts[0] = 0;
  for (size_t i = 0; i < n; i++) {
    group->starts[n_starts++] = rules->items[mine[i]].min_bytes;
    if (rules->items[mine[i]].max_bytes < UINT64_MAX)
      group->starts[n_starts++] = rules->items[mine[i]].max_bytes + 1;
  }
  qsort(group->starts, n_starts, sizeof *group->starts, compare_u64);
  for (size_t i = 0; i < n_starts; i++) {
    if (i && group->starts[i] == group->starts[group->n - 1])
      continue;
    group->starts[group->n] = group->starts[i];
    group->pieces[group->n++] = (struct piece){END, END};
  }
  for (size_t i = 0; i < n && !status; i++) {
    const struct cct_rule *rule = &rules->items[mine[i]];
    struct entry entry = {.choice = {(int)mine[i], rule->algorithm, rule->protocol, rule->channels},
                          .needs = needs_of(rule)};
    size_t last = piece_of(group->starts, group->n, rule->max_bytes);
    for (size_t p = piece_of(group->starts, group->n, rule->min_bytes); p <= last && !status; p++)
      status = piece_add(d, &group->pieces[p], &entry);
  }
  return status;
}

/* The rules of one collective, group by group; `mine` has room for all rules, `pipe_ops` for one more. */
static enum cct_status collective_build(struct cct_decision *d, int collective, const struct cct_rules *rules,
                                        const struct cct_tuner_situation *s, size_t *mine, int *pipe_ops) {
  size_t n_groups = 1, n = 0;
  pipe_ops[0] = -1;
  for (size_t i = 0; i < rules->n; i++)
    if (rules->items[i].collective == collective && cct_rule_holds(&rules->items[i], s))
      pipe_ops[++n] = rules->items[i].pipe_ops;
  if (n == 0)
    return CCT_OK;
  qsort(pipe_ops, n + 1, sizeof *pipe_ops, compare_int);
  for (size_t i = 1; i <= n; i++)
    if (pipe_ops[i] != pipe_ops[n_groups - 1])
      pipe_ops[n_groups++] = pipe_ops[i];
  struct group *groups = calloc(n_groups, sizeof *groups);
  if (!groups)
    return CCT_NOMEM;
  d->groups[collective] = groups;
  d->n_groups[collective] = n_groups;
  for (size_t g = 0; g < n_groups; g++) {
    groups[g].pipe_ops = pipe_ops[g];
    n = 0;
    for (size_t i = 0; i < rules->n; i++)
      if (rules->items[i].collective == collective && rules->items[i].pipe_ops == pipe_ops[g] &&
          cct_rule_holds(&rules->items[i], s))
        mine[n++] = i;
    enum cct_status status = group_build(d, &groups[g], rules, mine, n);
    if (status)
      return status;
  }
  return CCT_OK;
}

enum cct_status cct_decision_build(const struct cct_rules *rules, const struct cct_tuner_situation *situation,
                                   struct cct_decision **decision_out) {
  struct cct_decision *d = calloc(1, sizeof *d);
  size_t *mine = malloc((rules->n + 1) * sizeof *mine);
  int *pipe_ops = malloc((rules->n + 1) * sizeof *pipe_ops);
  enum cct_status status = d && mine && pipe_ops ? CCT_OK : CCT_NOMEM;
  if (d)
    d->is_multicast_off = situation->is_multicast_off;
  for (int c = 0; c < CCT_TUNER_COLLECTIVES && !status; c++)
    status = collective_build(d, c, rules, situation, mine, pipe_ops);
  free(mine);
  free(pipe_ops);
  if (status)
    cct_decision_free(d);
  else
    *decision_out = d;
  return status;
}

void cct_decision_free(struct cct_decision *d) {
  if (!d)
    return;
  for (int c = 0; c < CCT_TUNER_COLLECTIVES; c++) {
    for (size_t g = 0; g < d->n_groups[c]; g++) {
      free(d->groups[c][g].starts);
      free(d->groups[c][g].pieces);
    }
    free(d->groups[c]);
  }
  free(d->entries);
  free(d);
}

static const struct group *group_find(const struct group *groups, size_t n, int pipe_ops) {
  size_t low = 1, high = n; /* group 0 is that of any number */
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (groups[middle].pipe_ops == pipe_ops)
      return &groups[middle];
    if (groups[middle].pipe_ops < pipe_ops)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

static uint32_t chain_of(const struct group *group, uint64_t bytes) {
  return group ? group->pieces[piece_of(group->starts, group->n, bytes)].first : END;
}

enum cct_tuner_verdict cct_decision_choose(const struct cct_decision *d, const struct cct_tuner_call *call,
                                           struct cct_tuner_choice *choice_out) {
  if (!d || call->collective < 0 || call->collective >= CCT_TUNER_COLLECTIVES || !d->n_groups[call->collective])
    return CCT_TUNER_NOT_COVERED;
  const struct group *groups = d->groups[call->collective];
  uint32_t a = chain_of(&groups[0], call->bytes);
  uint32_t b = chain_of(group_find(groups, d->n_groups[call->collective], call->pipe_ops), call->bytes);
  unsigned have = (call->reg_buff == 1 ? NEED_REGISTERED : 0u) | (call->reg_buff == 0 ? NEED_UNREGISTERED : 0u);
  if (d->is_multicast_off || !cct_cost_has_nvls(call->cost, call->algorithms, call->protocols))
    have |= NEED_NO_MULTICAST;
  enum cct_tuner_verdict verdict = CCT_TUNER_NOT_COVERED;
  while (a != END || b != END) {
    int takes_a = b == END || (a != END && d->entries[a].choice.rule < d->entries[b].choice.rule);
    const struct entry *e = &d->entries[takes_a ? a : b];
    *(takes_a ? &a : &b) = e->next;
    if (e->needs & ~have)
      continue;
    verdict = CCT_TUNER_NOT_USABLE;
    if (e->choice.algorithm < call->algorithms && e->choice.protocol < call->protocols &&
        cct_cost_is_usable(call->cost[e->choice.algorithm * call->protocols + e->choice.protocol])) {
      *choice_out = e->choice;
      return CCT_TUNER_CHOSEN;
    }
  }
  return verdict;
}
