/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/steps/moe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/shape/cell.h"

void cct_moe_draw_free(struct cct_moe_draw *draw) {
  if (!draw)
    return;
  free(draw->matrices[0].bytes);
  free(draw->matrices[1].bytes);
  free(draw->rows);
  memset(draw, 0, sizeof *draw);
}

static enum cct_status find_experts(const struct cct_model *model, struct cct_routing *routing) {
  for (int i = 0; i < model->n_kinds; i++) {
    const struct cct_layer_kind *kind = &model->kinds[i];
    if (kind->experts && routing->experts && (kind->experts != routing->experts || kind->top_k != routing->top_k))
      return cct_fail(CCT_USAGE, "%s: MoE layers with different numbers of experts are not modelled", model->name);
    if (kind->experts) {
      routing->experts = kind->experts;
      routing->top_k = kind->top_k;
    }
  }
  routing->groups = model->routing_groups;
  routing->groups_chosen = model->routing_groups_chosen;
  return CCT_OK;
}

static enum cct_type type_of(const char *word, enum cct_type standard) {
  return !word ? standard : !strcmp(word, "fp8") ? CCT_TYPE_FP8 : CCT_TYPE_BF16;
}

static enum cct_status fill_matrix(const struct cct_routing_draw *drawn, int64_t hidden, enum cct_type type,
                                   int is_combine, struct cct_matrix *matrix) {
  int n = drawn->n;
  matrix->n = n;
  matrix->bytes = malloc((size_t)(n * n) * sizeof *matrix->bytes);
  if (!matrix->bytes)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      matrix->bytes[i * n + j] = drawn->copies[is_combine ? j * n + i : i * n + j] * hidden * cct_type_bits(type) / 8;
  return CCT_OK;
}

/* Every expert is sent as many copies by every rank as it has capacity for, chosen or not. */
static void pad_to_capacity(struct cct_routing_draw *drawn, int64_t capacity) {
  for (int i = 0; i < drawn->n * drawn->n; i++)
    drawn->copies[i] = capacity * (drawn->experts / drawn->n);
}

static double copies_of(const struct cct_routing_draw *drawn) {
  int64_t sum = 0;
  for (int i = 0; i < drawn->n * drawn->n; i++)
    sum += drawn->copies[i];
  return (double)sum;
}

/* Experts that anyone chose, and rows, of each rank; and the busiest expert of all, or the capacity. */
static void fill_rows(const struct cct_routing_draw *drawn, int is_padded, struct cct_moe *moe, int64_t *rows) {
  int64_t own = drawn->experts / drawn->n, busiest = 0, most_active = 1;
  for (int rank = 0; rank < drawn->n; rank++) {
    int64_t active = 0;
    rows[rank] = 0;
    for (int64_t i = rank * own; i < (rank + 1) * own; i++) {
      active += drawn->rows[i] > 0;
      rows[rank] += drawn->rows[i];
      busiest = drawn->rows[i] > busiest ? drawn->rows[i] : busiest;
    }
    most_active = active > most_active ? active : most_active;
  }
  if (moe->routing.capacity)
    busiest = moe->routing.capacity * drawn->n;
  moe->groups = is_padded ? own : most_active;
  moe->rows = 1;
  for (int rank = 0; rank < drawn->n; rank++) {
    rows[rank] = is_padded ? busiest : cct_share(rows[rank], moe->groups);
    moe->rows = rows[rank] > moe->rows ? rows[rank] : moe->rows;
  }
}

static enum cct_status draw_routing(const struct cct_model *model, const struct cct_options *cell, int64_t tokens,
                                    const double *popularity, struct cct_moe *moe, struct cct_moe_draw *draw) {
  struct cct_routing routing = moe->routing;
  struct cct_routing_draw drawn = {0};
  int is_matrix = routing.ranks > 1 && routing.dispatch != CCT_DISPATCH_ALLGATHER;
  routing.popularity = popularity;
  enum cct_status status = cct_routing_draw(&routing, tokens, (uint64_t)cell->v[CCT_OPT_SEED].i, &drawn);
  draw->rows = status ? NULL : calloc((size_t)routing.ranks, sizeof *draw->rows);
  if (!status && !draw->rows)
    status = cct_fail(CCT_NOMEM, "out of memory");
  if (!status) {
    fill_rows(&drawn, !moe->is_host_routed, moe, draw->rows);
    moe->routed = tokens * routing.ranks * routing.top_k;
    moe->dropped = drawn.dropped;
    if (routing.capacity && !moe->is_host_routed && routing.dispatch == CCT_DISPATCH_PER_EXPERT)
      pad_to_capacity(&drawn, routing.capacity);
    if (routing.capacity && is_matrix)
      moe->copies = copies_of(&drawn) / (double)(tokens * routing.ranks);
  }
  if (!status && is_matrix)
    status = fill_matrix(&drawn, model->hidden, moe->dispatch_type, 0, &draw->matrices[0]);
  if (!status && is_matrix)
    status = fill_matrix(&drawn, model->hidden, moe->combine_type, 1, &draw->matrices[1]);
  moe->dispatch_matrix = is_matrix ? 0 : -1;
  moe->combine_matrix = is_matrix ? 1 : -1;
  cct_routing_draw_free(&drawn);
  return status;
}

enum cct_status cct_moe_plan(const struct cct_model *model, const struct cct_layout *layout,
                             const struct cct_options *cell, int64_t tokens, struct cct_moe *moe,
                             struct cct_moe_draw *draw_out) {
  const char *dispatch = cct_cell_text(cell, CCT_OPT_DISPATCH);
  struct cct_moe plan = {.dispatch_matrix = -1, .combine_matrix = -1};
  struct cct_moe_draw draw = {0};
  double *popularity = NULL;
  *moe = plan;
  *draw_out = draw;
  if (!cct_model_has_experts(model))
    return CCT_OK;
  enum cct_status status = find_experts(model, &plan.routing);
  if (status)
    return status;
  int is_quantised = model->weights != CCT_TYPE_BF16 && cct_cell_workload(cell) != CCT_WORKLOAD_TRAIN;
  plan.routing.ranks = layout->ep;
  plan.routing.dispatch = !strcmp(dispatch, "per-expert") ? CCT_DISPATCH_PER_EXPERT
                          : !strcmp(dispatch, "per-rank") ? CCT_DISPATCH_PER_RANK
                                                          : CCT_DISPATCH_ALLGATHER;
  plan.copies = cct_routing_copies(&plan.routing);
  plan.dispatch_type = type_of(cct_cell_text(cell, CCT_OPT_DISPATCH_TYPE), is_quantised ? CCT_TYPE_FP8 : CCT_TYPE_BF16);
  plan.combine_type = type_of(cct_cell_text(cell, CCT_OPT_COMBINE_TYPE), CCT_TYPE_BF16);
  plan.is_host_routed = layout->ep > 1 && !strcmp(cell->v[CCT_OPT_ROUTING].s, "host");
  int64_t routed = layout->ep > 1 ? cct_share(tokens, layout->tp) : tokens;
  status = cct_routing_popularity(cell->v[CCT_OPT_SKEW].s, plan.routing.experts, (uint64_t)cell->v[CCT_OPT_SEED].i,
                                  &popularity);
  if (cell->v[CCT_OPT_CAPACITY].has_value)
    plan.routing.capacity = (int64_t)ceil((double)(routed * plan.routing.top_k) / (double)plan.routing.experts *
                                          cell->v[CCT_OPT_CAPACITY].f);
  if (!status && (popularity || plan.routing.capacity)) {
    status = draw_routing(model, cell, routed, popularity, &plan, &draw);
  } else if (!status) {
    double all = (double)(routed * layout->ep);
    plan.groups = llround(fmax(1, cct_routing_active(&plan.routing, all)));
    plan.rows = (int64_t)ceil(all * (double)plan.routing.top_k / (double)layout->ep / (double)plan.groups);
  }
  free(popularity);
  if (status) {
    cct_moe_draw_free(&draw);
    return status;
  }
  *moe = plan;
  *draw_out = draw;
  return CCT_OK;
}
