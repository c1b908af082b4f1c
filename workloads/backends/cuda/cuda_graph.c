/* SPDX-License-Identifier: Apache-2.0
 * CUDA graphs: thread-local capture of what stands in a GRAPH bracket, one graph for a key and the sizes inside; and
 * the counts of a step, taken from the nodes of captured graphs. */
#include <stdlib.h>

#include "workloads/backends/cuda/cuda_room.h"

enum cct_status cct_cuda_capture(struct cct_executor *x, cudaStream_t stream, cct_cuda_enqueue_fn *enqueue,
                                 void *context, cudaGraph_t *graph_out) {
  cudaGraph_t graph = NULL;
  enum cct_status status = CCT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  if (status)
    return status;
  status = enqueue(x, context);
  cudaError_t error = cudaStreamEndCapture(stream, &graph);
  if (!status)
    status = CCT_CUDA(error);
  if (status && graph)
    cudaGraphDestroy(graph);
  if (!status)
    *graph_out = graph;
  return status;
}

struct range {
  int first, last; /* entries, half open */
  int origin;      /* lane */
  enum mode mode;
};

static int uses_lane(const struct cct_executor *x, const struct range *range, int lane) {
  for (int id = range->first; id < range->last; id++)
    if (x->program->ops[id].lane == lane)
      return 1;
  return 0;
}

/* The other lanes inside are branches of the origin: empty at its start, joined at its end. */
static enum cct_status walk_branches(struct cct_executor *x, void *context) {
  const struct range *range = context;
  const struct lane *origin = &x->lanes[range->origin];
  enum cct_status status = CCT_CUDA(cudaEventRecord(origin->join, origin->stream));
  for (int i = 0; !status && i < x->program->n_lanes; i++)
    if (i != range->origin && x->lanes[i].stream && uses_lane(x, range, i))
      status = CCT_CUDA(cudaStreamWaitEvent(x->lanes[i].stream, origin->join, 0));
  if (!status)
    status = cct_cuda_walk(x, range->first, range->last, 0, range->mode);
  for (int i = 0; !status && i < x->program->n_lanes; i++)
    if (i != range->origin && x->lanes[i].stream && uses_lane(x, range, i)) {
      status = CCT_CUDA(cudaEventRecord(x->lanes[i].join, x->lanes[i].stream));
      if (!status)
        status = CCT_CUDA(cudaStreamWaitEvent(origin->stream, x->lanes[i].join, 0));
    }
  return status;
}

/* Nodes that the GPU performs (kernels, copies, memsets) and the kernels among them; graphs within count what they
 * hold. */
static enum cct_status count_nodes(cudaGraph_t graph, int64_t *nodes, int64_t *kernels) {
  size_t n = 0;
  enum cct_status status = CCT_CUDA(cudaGraphGetNodes(graph, NULL, &n));
  cudaGraphNode_t *all = calloc(n + 1, sizeof(cudaGraphNode_t));
  if (!status && !all)
    status = cct_fail(CCT_NOMEM, "out of memory");
  if (!status && n)
    status = CCT_CUDA(cudaGraphGetNodes(graph, all, &n));
  for (size_t i = 0; !status && i < n; i++) {
    enum cudaGraphNodeType type;
    cudaGraph_t child;
    cudaError_t error = cudaGraphNodeGetType(all[i], &type);
    if (error == cudaErrorUnknown) { /* a kind of the driver's alone: NCCL's waits and writes beside copy engines */
      (void)cudaGetLastError();
      *nodes += 1;
      continue;
    }
    status = CCT_CUDA(error);
    if (status)
      break;
    if (type == cudaGraphNodeTypeGraph) {
      status = CCT_CUDA(cudaGraphChildGraphNodeGetGraph(all[i], &child));
      if (!status)
        status = count_nodes(child, nodes, kernels);
    }
    *nodes += type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
    *kernels += type == cudaGraphNodeTypeKernel;
  }
  free(all);
  return status;
}

static uint64_t graph_shape(const struct cct_executor *x, int id) {
  uint64_t shape = 1;
  for (int i = id + 1; i < x->plan[id].end; i++)
    shape = cct_cuda_fold(shape, cct_cuda_op_shape(x, i));
  return shape;
}

static struct captured *find(struct cct_executor *x, int key, uint64_t shape) {
  struct captured *c = x->graphs;
  while (c && (c->key != key || c->shape != shape))
    c = c->next;
  return c;
}

int cct_cuda_graphs_missing(struct cct_executor *x) {
  int missing = 0;
  for (int id = 0; id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    if (op->kind != CCT_OP_GRAPH || x->plan[id].is_out)
      continue;
    x->plan[id].captured = find(x, op->graph.key, graph_shape(x, id));
    missing += !x->plan[id].captured;
  }
  return missing;
}

/* DELAY kernels stand for time, not for work, and a trace's for nothing: their nodes are no nodes of the step. */
static int64_t own_kernels_in(const struct cct_executor *x, int first, int last) {
  int64_t n = 0;
  struct cct_quantity bytes;
  for (int id = first; id < last; id++) {
    const struct cct_op *op = &x->program->ops[id];
    n += op->kind == CCT_OP_DELAY && 2 * x->plan[id].delay_ns >= x->plan[id].own_ns;
    n += x->marks && !x->plan[id].in_group && (cct_op_is_gpu(op) || op->kind == CCT_OP_GROUP) ? 2 : 0;
    n += x->marks && cct_cuda_streams(x, id, &bytes);
  }
  return n;
}

/* As nccl-tests launches its graph: the first launch of a new executable, which nothing has uploaded. */
enum cct_status cct_cuda_graphs_renew(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  int n = 0;
  for (int id = 0; !status && id < x->program->n_ops; id++) {
    struct captured *c = x->plan[id].captured;
    if (x->program->ops[id].kind != CCT_OP_GRAPH || x->plan[id].is_out || !x->program->ops[id].graph.is_fresh)
      continue;
    n++;
    if (c->exec)
      status = CCT_CUDA(cudaGraphExecDestroy(c->exec));
    c->exec = NULL;
    if (!status)
      status = CCT_CUDA(cudaGraphInstantiate(&c->exec, c->graph, 0));
  }
  return n ? cct_cuda_agree(x->backend, status) : status;
}

enum cct_status cct_cuda_graph_try(struct cct_executor *x, int id) {
  struct range range = {id + 1, x->plan[id].end, x->program->ops[id].lane, MODE_GRAPH};
  cudaGraph_t graph = NULL;
  enum cct_status status = cct_cuda_capture(x, x->lanes[range.origin].stream, walk_branches, &range, &graph);
  if (graph)
    cudaGraphDestroy(graph);
  return status;
}

static void captured_free(struct captured *c) {
  if (c->exec)
    cudaGraphExecDestroy(c->exec);
  if (c->graph)
    cudaGraphDestroy(c->graph);
  free(c);
}

static enum cct_status capture_bracket(struct cct_executor *x, int id) {
  const struct cct_op *op = &x->program->ops[id];
  struct range range = {id + 1, x->plan[id].end, op->lane, MODE_GRAPH};
  struct captured *c = calloc(1, sizeof *c);
  if (!c)
    return cct_fail(CCT_NOMEM, "out of memory");
  *c = (struct captured){.key = op->graph.key, .shape = graph_shape(x, id)};
  enum cct_status status = cct_cuda_capture(x, x->lanes[op->lane].stream, walk_branches, &range, &c->graph);
  if (!status)
    status = count_nodes(c->graph, &c->nodes, &c->kernels);
  if (!status)
    status = CCT_CUDA(cudaGraphInstantiate(&c->exec, c->graph, 0));
  if (!status)
    status = CCT_CUDA(cudaGraphUpload(c->exec, x->lanes[op->lane].stream));
  if (status) { /* a graph that cannot be launched is not kept: the next binding of its shape is to fail alike */
    captured_free(c);
    return status;
  }
  int64_t own = own_kernels_in(x, range.first, range.last);
  c->nodes -= own;
  c->kernels -= own;
  c->next = x->graphs;
  x->graphs = c;
  x->plan[id].captured = c;
  return CCT_OK;
}

/* A serving driver binds many batch sizes; beyond this the graphs start anew. */
#define MAX_GRAPHS 4096

enum cct_status cct_cuda_graphs_prepare(struct cct_executor *x) {
  int held = 0;
  for (struct captured *c = x->graphs; c; c = c->next)
    held++;
  if (held > MAX_GRAPHS)
    cct_cuda_graphs_release(x);
  return cct_cuda_graphs_capture(x);
}

enum cct_status cct_cuda_graphs_capture(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  for (int id = 0; !status && id < x->program->n_ops; id++)
    if (x->program->ops[id].kind == CCT_OP_GRAPH && !x->plan[id].is_out) {
      x->plan[id].captured = find(x, x->program->ops[id].graph.key, graph_shape(x, id));
      if (!x->plan[id].captured)
        status = capture_bracket(x, id);
    }
  return status ? status : cct_cuda_drain(x);
}

void cct_cuda_graphs_release(struct cct_executor *x) {
  cct_cuda_cache_clear(x); /* plans name graphs */
  while (x->graphs) {
    struct captured *c = x->graphs;
    x->graphs = c->next;
    captured_free(c);
  }
}

/* What stands outside graphs is captured for its nodes alone; syncs and copies that hold the host are counted by hand.
 */
enum cct_status cct_cuda_count_nodes(struct cct_executor *x) {
  struct cct_counts counts;
  struct cct_binding binding = {x->slots, x->matrices};
  cct_count_program(x->job, x->program, &binding, &counts);
  int origin = 0;
  while (origin < x->program->n_lanes && !x->lanes[origin].stream)
    origin++;
  if (origin == x->program->n_lanes)
    return CCT_OK;
  struct range range = {0, x->program->n_ops, origin, MODE_COUNT};
  cudaGraph_t graph = NULL;
  int64_t nodes = 0, kernels = 0, by_hand = 0, graphs = 0, graph_nodes = 0;
  enum cct_status status = cct_cuda_capture(x, x->lanes[origin].stream, walk_branches, &range, &graph);
  if (!status)
    status = count_nodes(graph, &nodes, &kernels);
  if (graph)
    cudaGraphDestroy(graph);
  for (int id = 0; id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    const struct captured *c = x->plan[id].captured;
    if (x->plan[id].is_out)
      continue;
    by_hand += op->kind == CCT_OP_COPY && !x->plan[id].in_graph &&
               (op->copy.is_blocking || op->copy.is_bounce || op->copy.memory == CCT_MEM_PAGEABLE);
    graphs += op->kind == CCT_OP_GRAPH;
    graph_nodes += c ? c->nodes : 0;
    kernels += c ? c->kernels : 0;
  }
  if (status)
    return status;
  counts.submissions = nodes + by_hand + graphs;
  counts.graphs = graphs;
  counts.nodes = graph_nodes;
  counts.kernels = kernels;
  x->performed = counts;
  return CCT_OK;
}
