/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/program/counts.h"

#include <string.h>

static double value(struct cct_quantity quantity, const struct cct_binding *binding) {
  return (double)cct_quantity_value(quantity, binding);
}

double cct_wire_bytes(const struct cct_job *job, const struct cct_op *op, const struct cct_binding *binding) {
  int n = job->groups[op->collective.group].size;
  double bytes = value(op->collective.bytes, binding);
  return op->collective.algorithm == CCT_ALGORITHM_ONESHOT ? (n - 1) * bytes
                                                           : bytes * cct_collective_factor(op->collective.kind, n);
}

static void count_work(const struct cct_job *job, const struct cct_op *op, const struct cct_binding *binding,
                       struct cct_counts *c) {
  switch (op->kind) {
  case CCT_OP_GEMM: {
    double m = value(op->gemm.m, binding), n = (double)op->gemm.n, k = (double)op->gemm.k, groups = op->gemm.groups;
    c->flops += 2 * m * n * k * groups;
    c->hbm_bytes += groups * (m * k + k * n + m * n) * cct_type_bits(op->gemm.type) / 8;
    break;
  }
  case CCT_OP_ATTENTION:
    c->flops += value(op->attention.flops, binding);
    c->hbm_bytes += value(op->attention.kv_bytes, binding);
    break;
  case CCT_OP_ELEMENTWISE:
    c->hbm_bytes += value(op->elementwise.bytes, binding);
    break;
  case CCT_OP_COLLECTIVE: {
    enum cct_collective kind = op->collective.kind;
    c->collectives[kind]++;
    c->collective_bytes[kind] += value(op->collective.bytes, binding);
    c->wire_bytes[kind] += cct_wire_bytes(job, op, binding);
    break;
  }
  case CCT_OP_SEND:
    c->messages++;
    c->message_bytes += value(op->p2p.bytes, binding);
    break;
  case CCT_OP_COPY:
    c->copies[op->copy.direction]++;
    c->copy_bytes[op->copy.direction] += value(op->copy.bytes, binding);
    break;
  case CCT_OP_SYNC:
    c->syncs++;
    break;
  default:
    break;
  }
}

void cct_count_program(const struct cct_job *job, const struct cct_program *program, const struct cct_binding *binding,
                       struct cct_counts *counts_out) {
  struct cct_counts *c = counts_out;
  int in_graph = 0, in_group = 0;
  memset(c, 0, sizeof *c);
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    /* A GROUP is one submission, one node and one kernel as a whole; a GRAPH one submission, and its nodes the kernels.
     */
    if (!cct_op_is_performed(program, op, binding))
      continue;
    int is_unit = cct_op_is_submission(op) && !in_group;
    c->submissions += is_unit && !in_graph;
    c->graphs += op->kind == CCT_OP_GRAPH;
    c->nodes += is_unit && in_graph;
    c->kernels += is_unit && op->kind != CCT_OP_GRAPH && op->kind != CCT_OP_COPY;
    if (op->kind == CCT_OP_GRAPH)
      in_graph = 1;
    else if (op->kind == CCT_OP_GROUP)
      in_group = 1;
    else if (op->kind == CCT_OP_END && program->ops[op->end.opens].kind == CCT_OP_GRAPH)
      in_graph = 0;
    else if (op->kind == CCT_OP_END && program->ops[op->end.opens].kind == CCT_OP_GROUP)
      in_group = 0;
    count_work(job, op, binding, c);
  }
  for (int i = 0; i < program->n_buffers; i++) {
    const struct cct_buffer *buffer = &program->buffers[i];
    c->memory_bytes[buffer->memory] += value(buffer->bytes, binding);
    c->weight_bytes += buffer->is_weight ? value(buffer->bytes, binding) : 0;
  }
}
