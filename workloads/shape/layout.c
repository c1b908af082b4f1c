/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/shape/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum {
  MOST_RANKS = 65536
};

enum cct_status cct_layout_parse(const char *text, const char *where, struct cct_layout *layout_out) {
  static const char *const keys[] = {"tp", "ep", "dp", "pp"};
  int64_t values[4] = {0};
  const char *at = text;
  for (;;) {
    char word[32], *equals;
    size_t length = strcspn(at, ",");
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
    equals = strchr(word, '=');
    if (!equals)
      return cct_fail(CCT_USAGE, "%s: '%s' is no layout such as tp=8 or tp=2,ep=8,dp=4", where, text);
    *equals = '\0';
    int key = 0;
    while (key < 4 && strcmp(keys[key], word))
      key++;
    if (key == 4)
      return cct_fail(CCT_USAGE, "%s: '%s' in '%s' is none of tp, ep, dp, pp", where, word, text);
    if (values[key])
      return cct_fail(CCT_USAGE, "%s: %s twice in '%s'", where, word, text);
    if (!cct_parse_i64(equals + 1, &values[key]) || values[key] < 1 || values[key] > MOST_RANKS)
      return cct_fail(CCT_USAGE, "%s: %s=%s in '%s' is no count from 1 to %d", where, word, equals + 1, text,
                      MOST_RANKS);
    if (!at[length])
      break;
    at += length + 1;
  }
  for (int i = 0; i < 4; i++)
    values[i] += !values[i];
  if (values[0] * values[2] > MOST_RANKS || values[0] * values[2] * values[3] > MOST_RANKS)
    return cct_fail(CCT_USAGE, "%s: '%s' needs more than %d ranks", where, text, MOST_RANKS);
  *layout_out = (struct cct_layout){.tp = values[0], .ep = values[1], .dp = values[2], .pp = values[3]};
  return CCT_OK;
}

char *cct_layout_text(const struct cct_layout *layout, char out[64]) {
  const struct {
    const char *key;
    int64_t value;
  } parts[] = {{"tp", layout->tp}, {"ep", layout->ep}, {"dp", layout->dp}, {"pp", layout->pp}};
  size_t length = 0;
  out[0] = '\0';
  for (size_t i = 0; i < 4; i++)
    if (parts[i].value > 1)
      length += (size_t)snprintf(out + length, 64 - length, "%s%s=%lld", length ? "," : "", parts[i].key,
                                 (long long)parts[i].value);
  if (!length)
    snprintf(out, 64, "tp=1");
  return out;
}

int64_t cct_layout_ranks(const struct cct_layout *layout) {
  return layout->tp * layout->dp * layout->pp;
}

static const char *refuse_kind(const struct cct_layout *layout, const struct cct_layer_kind *kind, char why[192]) {
  long long tp = layout->tp, ep = layout->ep, heads = kind->heads, kv = kind->kv_heads, experts = kind->experts;
  if (heads % tp)
    snprintf(why, 192, "tp=%lld does not divide the %lld query heads", tp, heads);
  else if (!kind->is_latent && kv % tp && tp % kv)
    snprintf(why, 192, "tp=%lld neither divides the %lld KV heads nor is a multiple of them", tp, kv);
  else if (experts && experts % ep)
    snprintf(why, 192, "ep=%lld does not divide the %lld experts", ep, experts);
  else
    return NULL;
  return why;
}

const char *cct_layout_refusal(const struct cct_layout *layout, const struct cct_model *model, char why[192]) {
  long long tp = layout->tp, ep = layout->ep, dp = layout->dp;
  if (layout->pp > 1)
    snprintf(why, 192,
             "pp=%lld: pipeline stages are not priced (their bubbles and point-to-point sends have no template)",
             (long long)layout->pp);
  else if (ep > 1 && !cct_model_has_experts(model))
    snprintf(why, 192, "ep=%lld: %s has no experts", ep, model->name);
  else if (tp * dp % ep)
    snprintf(why, 192, "ep=%lld does not divide tp x dp = %lld", ep, tp * dp);
  else if (ep > 1 && ep % tp)
    snprintf(why, 192, "ep=%lld is neither 1 nor a multiple of tp=%lld", ep, tp);
  else {
    for (int i = 0; i < model->n_kinds; i++)
      if (refuse_kind(layout, &model->kinds[i], why))
        return why;
    return NULL;
  }
  return why;
}

enum cct_status cct_layout_check(const struct cct_layout *layout, const struct cct_model *model) {
  char why[192], text[64];
  if (!cct_layout_refusal(layout, model, why))
    return CCT_OK;
  return cct_fail(layout->pp > 1 ? CCT_UNSUPPORTED : CCT_USAGE, "layout %s: %s", cct_layout_text(layout, text), why);
}

enum cct_status cct_layout_check_ranks(const struct cct_layout *layout, const struct cct_model *model, int64_t np) {
  int64_t ranks = cct_layout_ranks(layout);
  char text[64], near_text[64], why[192];
  if (ranks == np)
    return CCT_OK;
  struct cct_layout near = {.tp = layout->tp, .ep = layout->ep == ranks ? np : layout->ep, .pp = 1};
  near.dp = np / near.tp;
  if (cct_layout_ranks(&near) != np || cct_layout_refusal(&near, model, why)) {
    near = (struct cct_layout){.tp = np, .ep = 1, .dp = 1, .pp = 1};
    if (cct_layout_refusal(&near, model, why))
      return cct_fail(CCT_USAGE, "%s needs %lld ranks, --np is %lld", cct_layout_text(layout, text), (long long)ranks,
                      (long long)np);
  }
  return cct_fail(CCT_USAGE, "%s needs %lld ranks, --np is %lld: %s uses %lld", cct_layout_text(layout, text),
                  (long long)ranks, (long long)np, cct_layout_text(&near, near_text), (long long)np);
}

enum cct_status cct_layout_all(const struct cct_model *model, int64_t np, struct cct_layout **layouts_out, int *n_out) {
  struct cct_layout *layouts = NULL;
  size_t capacity = 0;
  int n = 0;
  char why[192];
  for (int64_t tp = 1; tp <= np; tp++)
    for (int64_t ep = 1; np % tp == 0 && ep <= np; ep = ep == 1 && tp > 1 ? tp : ep + (ep == 1 ? 1 : tp)) {
      struct cct_layout layout = {.tp = tp, .ep = ep, .dp = np / tp, .pp = 1};
      if (cct_layout_refusal(&layout, model, why))
        continue;
      enum cct_status status = cct_grow((void **)&layouts, &capacity, (size_t)n + 1, sizeof *layouts);
      if (status) {
        free(layouts);
        return status;
      }
      layouts[n++] = layout;
    }
  *layouts_out = layouts;
  *n_out = n;
  return CCT_OK;
}

int64_t cct_kv_heads_share(const struct cct_layer_kind *kind, int64_t tp) {
  return kind->is_latent ? 1 : cct_share(kind->kv_heads, tp);
}

int64_t cct_kv_bytes_share(const struct cct_layer_kind *kind, int64_t tp) {
  return kind->kv_bytes / kind->kv_heads * cct_kv_heads_share(kind, tp);
}

void cct_linear_share(const struct cct_layer_kind *kind, const struct cct_linear *linear, int64_t tp, int64_t *n_out,
                      int64_t *k_out, int64_t *groups_out) {
  int64_t n = linear->n, k = linear->k, groups = 1;
  if (linear->split == CCT_SPLIT_COLUMN)
    n = cct_share(n, tp);
  else if (linear->split == CCT_SPLIT_ROW)
    k = cct_share(k, tp);
  else if (linear->split == CCT_SPLIT_HEADS)
    groups = kind->heads / tp;
  *n_out = n + linear->n_kv / kind->kv_heads * cct_kv_heads_share(kind, tp);
  *k_out = k;
  *groups_out = groups;
}

void cct_parameters_of_layer(const struct cct_model *model, const struct cct_layout *layout, int layer,
                             struct cct_parameters *parameters_out) {
  const struct cct_layer_kind *kind = cct_model_layer(model, layer);
  int64_t n, k, groups, expert_tp = layout->ep > 1 ? 1 : layout->tp;
  double hidden = (double)model->hidden;
  struct cct_parameters p = {0};
  for (int i = 0; i < kind->n_linears; i++) {
    cct_linear_share(kind, &kind->linears[i], layout->tp, &n, &k, &groups);
    p.matrices += kind->linears[i].is_view ? 0 : (double)n * (double)k * (double)groups;
  }
  p.matrices += 3 * hidden * (double)cct_share(kind->ffn, layout->tp);
  p.matrices += 3 * hidden * (double)cct_share(kind->shared_ffn, expert_tp);
  p.experts = (double)(kind->experts / layout->ep) * 3 * hidden * (double)cct_share(kind->expert_ffn, expert_tp);
  p.small = (double)kind->norms + (double)kind->experts * hidden;
  *parameters_out = p;
}

void cct_parameters_share(const struct cct_model *model, const struct cct_layout *layout,
                          struct cct_parameters *parameters_out) {
  struct cct_parameters sum = {.small = (double)model->hidden}, of_kind[CCT_MAX_KINDS];
  int is_known[CCT_MAX_KINDS] = {0};
  sum.embedding = (model->is_tied ? 1 : 2) * (double)cct_share(model->vocab, layout->tp) * (double)model->hidden;
  for (int layer = 0; layer < model->n_layers; layer++) {
    int kind = model->kind_of[layer];
    if (!is_known[kind])
      cct_parameters_of_layer(model, layout, layer, &of_kind[kind]);
    is_known[kind] = 1;
    sum.matrices += of_kind[kind].matrices;
    sum.small += of_kind[kind].small;
    sum.experts += of_kind[kind].experts;
  }
  *parameters_out = sum;
}

int64_t cct_expert_replicas(const struct cct_layout *layout) {
  return layout->ep > 1 ? layout->tp * layout->dp / layout->ep : layout->dp;
}
