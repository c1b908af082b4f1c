/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/program/price.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"

/* Longer than any entry of a step, and short enough that no burst's clocks overflow. */
#define LIMIT_NS INT64_C(1000000000000)

static int64_t rounded_ns(double ns) {
  return ns > (double)LIMIT_NS ? LIMIT_NS + 1 : llround(ns);
}

static int64_t ns_of_us(double us) {
  return rounded_ns(us * 1e3);
}

/* us of `bytes` at `gb_s` = 1e9 bytes a second */
static double transfer_us(double bytes, double gb_s) {
  return bytes / gb_s * 1e-3;
}

static double value(struct cct_quantity quantity, const struct cct_binding *binding) {
  return (double)cct_quantity_value(quantity, binding);
}

/* ---- collectives and messages ---- */

static int needs_multicast(const struct cct_collective_cost *row) {
  return !memcmp(row->algorithm, "NVLS", 4);
}

/* A probe measures the library's own choice as it stands, and calls its rows so. */
static int is_own_choice(const struct cct_collective_cost *row) {
  return strstr(row->algorithm, "auto") != NULL;
}

static int fits(const struct cct_collective_cost *row, const struct cct_choice *choice, int has_own) {
  int is_algorithm = *choice->algorithm ? !strcasecmp(row->algorithm, choice->algorithm)
                                        : *choice->protocol || !has_own || is_own_choice(row);
  return is_algorithm && (!*choice->protocol || !strcasecmp(row->protocol, choice->protocol)) &&
         row->channels == choice->channels;
}

static int has_own_rows(const struct cct_column *column, enum cct_collective kind, int channels) {
  for (int i = 0; i < column->n_collectives; i++)
    if (column->collectives[i].kind == kind && column->collectives[i].channels == channels &&
        is_own_choice(&column->collectives[i]))
      return 1;
  return 0;
}

static int is_candidate(const struct cct_collective_cost *row, enum cct_collective kind, int has_multicast) {
  return row->kind == kind && (has_multicast || !needs_multicast(row));
}

/* The cheapest of the rows that a group's choice leaves, with the listed number of ranks nearest to its own (the
 * smaller of two as near); 0: none. */
static int cheapest_row(const struct cct_pricing *pricing, enum cct_collective kind, const struct cct_group *group,
                        double wire_bytes, int in_graph, struct cct_link_cost *cost_out) {
  const struct cct_column *column = pricing->column;
  struct cct_choice choice;
  int nearest = 0, ranks = group->size;
  if (!cct_choice_parse(group->choice, &choice))
    return 0;
  int has_own = has_own_rows(column, kind, choice.channels);
  double best_us = INFINITY;
  for (int i = 0; i < column->n_collectives; i++) {
    const struct cct_collective_cost *row = &column->collectives[i];
    if (!is_candidate(row, kind, pricing->has_multicast) || !fits(row, &choice, has_own))
      continue;
    int distance = abs(row->ranks - ranks), best = abs(nearest - ranks);
    if (nearest && row->ranks != nearest && (distance > best || (distance == best && row->ranks > nearest)))
      continue;
    double toll_us = in_graph ? row->toll_us_graph.value : row->toll_us_eager.value;
    double us = toll_us + transfer_us(wire_bytes, row->busbw_gb_s.value);
    if (row->ranks == nearest && us >= best_us)
      continue;
    nearest = row->ranks;
    best_us = us;
    *cost_out = (struct cct_link_cost){toll_us, wire_bytes, row->busbw_gb_s.value};
  }
  return nearest > 0;
}

double cct_busiest_bytes(const struct cct_matrix *matrix) {
  double busiest = 0;
  for (int i = 0; i < matrix->n; i++) {
    double sent = 0, received = 0;
    for (int j = 0; j < matrix->n; j++) {
      sent += j == i ? 0 : (double)matrix->bytes[i * matrix->n + j];
      received += j == i ? 0 : (double)matrix->bytes[j * matrix->n + i];
    }
    busiest = fmax(busiest, fmax(sent, received));
  }
  return busiest;
}

static int leaves_domain(const struct cct_pricing *pricing, int a, int b) {
  int gpus = pricing->profile->platform.gpus;
  return a / gpus != b / gpus;
}

static void over_network(const struct cct_pricing *pricing, struct cct_link_cost *cost) {
  cost->fixed_us = pricing->column->net.us.value;
  cost->gb_s = pricing->column->net.gb_s.value;
}

static enum cct_status price_collective(const struct cct_pricing *pricing, const struct cct_job *job,
                                        const struct cct_op *op, const struct cct_binding *binding, int rank,
                                        int in_graph, struct cct_link_cost *cost) {
  const struct cct_group *group = &job->groups[op->collective.group];
  const struct cct_column *column = pricing->column;
  enum cct_collective kind = op->collective.kind;
  int n = group->size;
  double bytes = value(op->collective.bytes, binding), wire_bytes = bytes * cct_collective_factor(kind, n);
  if (op->collective.matrix >= 0 && binding->matrices)
    wire_bytes = cct_busiest_bytes(&binding->matrices[op->collective.matrix]);
  *cost = (struct cct_link_cost){0, wire_bytes, column->p2p.sm_gb_s.value};
  if (n == 1) {
    cost->wire_bytes = 0;
  } else if (leaves_domain(pricing, cct_group_member(group, rank, 0), cct_group_member(group, rank, n - 1))) {
    over_network(pricing, cost);
  } else if (op->collective.algorithm == CCT_ALGORITHM_ONESHOT) {
    cost->fixed_us = 2 * column->p2p.short_write_us.value;
    cost->wire_bytes = (n - 1) * bytes;
  } else if (op->collective.algorithm == CCT_ALGORITHM_TWOSHOT) {
    cost->fixed_us = 4 * column->p2p.short_write_us.value;
  } else if (!cheapest_row(pricing, kind, group, wire_bytes, in_graph, cost) &&
             !(kind == CCT_COLL_ALL_TO_ALLV &&
               cheapest_row(pricing, CCT_COLL_ALL_TO_ALL, group, wire_bytes, in_graph, cost))) {
    return CCT_UNSUPPORTED;
  }
  return CCT_OK;
}

/* SEND, RECV by kernels; a COPY from another's memory by a copy engine. */
static struct cct_link_cost price_pair(const struct cct_pricing *pricing, const struct cct_job *job,
                                       const struct cct_op *op, const struct cct_binding *binding, int rank) {
  const struct cct_column *column = pricing->column;
  int is_copy = op->kind == CCT_OP_COPY;
  struct cct_link_cost cost = {column->p2p.short_write_us.value,
                               value(is_copy ? op->copy.bytes : op->p2p.bytes, binding),
                               is_copy ? column->p2p.ce_gb_s.value : column->p2p.sm_gb_s.value};
  if (leaves_domain(pricing, rank, cct_op_peer(job, op, rank)))
    over_network(pricing, &cost);
  return cost;
}

enum cct_status cct_price_link(const struct cct_pricing *pricing, const struct cct_job *job, const struct cct_op *op,
                               const struct cct_binding *binding, int rank, int in_graph,
                               struct cct_link_cost *cost_out) {
  if (op->kind == CCT_OP_COLLECTIVE)
    return price_collective(pricing, job, op, binding, rank, in_graph, cost_out);
  *cost_out = price_pair(pricing, job, op, binding, rank);
  return CCT_OK;
}

/* ---- work on one GPU ---- */

static int has_rate(const struct cct_column *column, enum cct_type type) {
  return column->gemm_tflop_s[type].source != NULL;
}

static double roofline_us(const struct cct_column *column, double flops, enum cct_type type, double bytes) {
  double compute_us = flops > 0 ? flops / column->gemm_tflop_s[type].value * 1e-6 : 0;
  return fmax(column->kernel_floor_us.value, fmax(compute_us, transfer_us(bytes, column->hbm_gb_s.value)));
}

static double gemm_us(const struct cct_column *column, const struct cct_op *op, const struct cct_binding *binding) {
  int64_t rows = cct_quantity_value(op->gemm.m, binding);
  for (int i = 0; i < column->n_gemms; i++) {
    const struct cct_gemm_cost *listed = &column->gemms[i];
    if (op->gemm.groups == 1 && listed->type == op->gemm.type && listed->m == rows && listed->n == op->gemm.n &&
        listed->k == op->gemm.k)
      return listed->us.value;
  }
  double m = (double)rows, n = (double)op->gemm.n, k = (double)op->gemm.k, groups = op->gemm.groups;
  double bytes = groups * (m * k + k * n + m * n) * cct_type_bits(op->gemm.type) / 8;
  return roofline_us(column, 2 * m * n * k * groups, op->gemm.type, bytes);
}

static double copy_us(const struct cct_column *column, const struct cct_op *op, const struct cct_binding *binding) {
  double bytes = value(op->copy.bytes, binding);
  if (op->copy.direction == CCT_COPY_D2D)
    return roofline_us(column, 0, CCT_TYPE_FP32, 2 * bytes);
  const struct cct_copy_cost *cost = cct_column_copy(column, op->copy.direction, op->copy.memory);
  return cost->fixed_us.value + transfer_us(bytes, cost->gb_s.value);
}

static void price_copy(const struct cct_pricing *pricing, const struct cct_op *op, const struct cct_binding *binding,
                       int in_graph, struct cct_duration *duration) {
  double us = copy_us(pricing->column, op, binding);
  if (op->copy.is_bounce && pricing->bounce)
    us = fmax(us, copy_us(pricing->bounce, op, binding));
  duration->run_ns = ns_of_us(us);
  duration->is_blocking =
      op->copy.is_blocking || (cct_copy_is_host(op->copy.direction) && !in_graph &&
                               cct_column_copy(pricing->column, op->copy.direction, op->copy.memory)->blocks);
}

/* ---- a whole program ---- */

/* How long a GROUP lasts alone: its messages run side by side, its collectives follow each other. */
static int64_t group_ns(const struct cct_program *program, int id, const struct cct_duration *durations) {
  int64_t total = 0;
  for (int i = id + 1; program->ops[i].kind != CCT_OP_END; i++)
    if (program->ops[i].kind == CCT_OP_COLLECTIVE)
      total += durations[i].run_ns;
    else if (durations[i].run_ns > total)
      total = durations[i].run_ns;
  return total;
}

static int64_t delay_ns(const struct cct_program *program, const struct cct_op *op,
                        const struct cct_duration *durations) {
  int of = op->delay.of;
  if (of < 0)
    return op->delay.ns;
  int64_t alone = program->ops[of].kind == CCT_OP_GROUP ? group_ns(program, of, durations) : durations[of].run_ns;
  double ns = (double)op->delay.ns + op->delay.stretch * (double)alone;
  return ns > 0 ? rounded_ns(ns) : 0;
}

int cct_graph_nodes(const struct cct_program *program, int id) {
  int nodes = 0, in_group = 0;
  for (int i = id + 1; i < program->n_ops; i++) {
    const struct cct_op *op = &program->ops[i];
    if (op->kind == CCT_OP_END && op->end.opens == id)
      break;
    nodes += cct_op_is_submission(op) && !in_group;
    in_group = op->kind == CCT_OP_GROUP || (in_group && op->kind != CCT_OP_END);
  }
  return nodes;
}

struct place { /* what brackets an entry stands in */
  int in_graph, in_group;
};

static enum cct_status price_entry(const struct cct_pricing *pricing, const struct cct_job *job,
                                   const struct cct_program *program, const struct cct_binding *binding, int rank,
                                   int id, struct place place, struct cct_duration *durations) {
  const struct cct_column *column = pricing->column;
  const struct cct_op *op = &program->ops[id];
  struct cct_duration *d = &durations[id];
  struct cct_link_cost link;
  enum cct_type type = op->kind == CCT_OP_GEMM ? op->gemm.type : op->attention.type;
  if ((op->kind == CCT_OP_GEMM || op->kind == CCT_OP_ATTENTION) && !has_rate(column, type))
    return cct_fail(CCT_UNSUPPORTED, "profile '%s': gemm_tflop_s has no %s, which entry %d (%s '%s') of '%s' needs",
                    pricing->profile->name, cct_type_name(type), id, cct_op_name(op->kind), op->name, program->name);
  if (cct_op_is_submission(op) && !place.in_graph && !place.in_group)
    d->submit_ns = ns_of_us(column->submission.us.value);
  switch (op->kind) {
  case CCT_OP_GEMM:
    d->run_ns = ns_of_us(gemm_us(column, op, binding));
    break;
  case CCT_OP_ATTENTION:
    d->run_ns = ns_of_us(
        roofline_us(column, value(op->attention.flops, binding), type, value(op->attention.kv_bytes, binding)));
    break;
  case CCT_OP_ELEMENTWISE:
    d->run_ns = ns_of_us(roofline_us(column, 0, CCT_TYPE_FP32, value(op->elementwise.bytes, binding)));
    break;
  case CCT_OP_LAUNCH:
  case CCT_OP_STAMP:
    d->run_ns = ns_of_us(column->kernel_floor_us.value);
    break;
  case CCT_OP_COLLECTIVE:
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    if (cct_price_link(pricing, job, op, binding, rank, place.in_graph, &link) != CCT_OK)
      return cct_fail(CCT_UNSUPPORTED,
                      "profile '%s': no row prices %s over %d ranks, which entry %d ('%s') of '%s' needs",
                      pricing->profile->name, cct_collective_name(op->collective.kind),
                      job->groups[op->collective.group].size, id, op->name, program->name);
    d->run_ns = ns_of_us(link.fixed_us + transfer_us(link.wire_bytes, link.gb_s));
    break;
  case CCT_OP_COPY:
    if (op->copy.direction == CCT_COPY_P2P) {
      link = price_pair(pricing, job, op, binding, rank);
      d->run_ns = ns_of_us(link.fixed_us + transfer_us(link.wire_bytes, link.gb_s));
    } else {
      price_copy(pricing, op, binding, place.in_graph, d);
    }
    break;
  case CCT_OP_SYNC:
    d->run_ns = ns_of_us(column->sync_us.value);
    break;
  case CCT_OP_HOSTWORK:
    d->run_ns = rounded_ns((double)op->hostwork.ns * column->cpu_slowdown.value);
    break;
  case CCT_OP_DELAY:
    d->run_ns = delay_ns(program, op, durations);
    break;
  case CCT_OP_GRAPH:
    d->submit_ns =
        ns_of_us(column->graph_launch.us.value + cct_graph_nodes(program, id) * column->graph_launch.us_per_node.value);
    break;
  default:
    break;
  }
  if (d->run_ns > LIMIT_NS || d->submit_ns > LIMIT_NS)
    return cct_fail(CCT_USAGE, "program '%s': entry %d (%s '%s') would last longer than %lld s: a size in it is wrong",
                    program->name, id, cct_op_name(op->kind), op->name, (long long)(LIMIT_NS / 1000000000));
  return CCT_OK;
}

enum cct_status cct_price(const struct cct_pricing *pricing, const struct cct_job *job,
                          const struct cct_program *program, const struct cct_binding *binding, int rank,
                          struct cct_duration *durations) {
  if (job->ranks > pricing->profile->platform.gpus && !pricing->column->net.us.source)
    return cct_fail(
        CCT_UNSUPPORTED,
        "profile '%s': %d ranks, but its NVLink domain has %d GPUs and it lists no net; add net to the profile",
        pricing->profile->name, job->ranks, pricing->profile->platform.gpus);
  struct place place = {0, 0};
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    durations[id] = (struct cct_duration){0};
    if (!cct_op_is_performed(program, op, binding))
      continue;
    enum cct_status status = price_entry(pricing, job, program, binding, rank, id, place, durations);
    if (status)
      return status;
    place.in_graph |= op->kind == CCT_OP_GRAPH;
    place.in_group |= op->kind == CCT_OP_GROUP;
    if (op->kind == CCT_OP_END && program->ops[op->end.opens].kind == CCT_OP_GRAPH)
      place.in_graph = 0;
    if (op->kind == CCT_OP_END && program->ops[op->end.opens].kind == CCT_OP_GROUP)
      place.in_group = 0;
  }
  return CCT_OK;
}
